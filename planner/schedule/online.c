#include "planner/schedule/online.h"

#include "base/checked.h"

#include <assert.h>

bool online_goes_before(struct online_task a, struct online_task b)
{
    return a.rank != b.rank ? a.rank > b.rank : a.index < b.index;
}

int64_t online_left_ns(int64_t takes_ns, int64_t so_far_ns)
{
    if (takes_ns == 0) {
        return 0;
    }
    return so_far_ns < takes_ns ? takes_ns - so_far_ns : so_far_ns;
}

int64_t online_finish_ns(const struct online_lane *lane)
{
    assert(lane->load_ns >= 0 && lane->takes_ns >= 0);
    int64_t finish_ns;
    return checked_add(lane->load_ns, lane->takes_ns, &finish_ns) ? finish_ns : ONLINE_NEVER;
}

/* Returns true when `a` would finish one task more before the lane `first`, or `first` is
 * ONLINE_NONE. */
static bool is_done_before(const struct online_lane *lanes, size_t a, size_t first)
{
    const int64_t finish_ns = online_finish_ns(&lanes[a]);
    if (finish_ns == ONLINE_NEVER || first == ONLINE_NONE) {
        return finish_ns != ONLINE_NEVER;
    }
    const int64_t other_ns = online_finish_ns(&lanes[first]);
    return finish_ns < other_ns ||
           (finish_ns == other_ns && lanes[a].load_ns < lanes[first].load_ns);
}

size_t online_earliest(const struct online_lane *lanes, size_t count)
{
    size_t first = ONLINE_NONE;
    for (size_t i = 0; i < count; i++) {
        first = is_done_before(lanes, i, first) ? i : first;
    }
    return first;
}

uint32_t online_depth(int64_t takes_ns, uint32_t lanes, uint32_t waiting)
{
    int64_t window = ONLINE_WINDOW_LEAST;
    if (takes_ns > 0 && ONLINE_WINDOW_NS / takes_ns > window) {
        window = ONLINE_WINDOW_NS / takes_ns;
    }
    /* Many lanes keep the broker busy with less in each, and wait less for one another. */
    int64_t most = lanes > 0 ? ONLINE_WINDOW_JOB_MOST / lanes : ONLINE_WINDOW_MOST;
    most = most < ONLINE_WINDOW_MOST ? most : ONLINE_WINDOW_MOST;
    most = most > ONLINE_WINDOW_ALWAYS ? most : ONLINE_WINDOW_ALWAYS;
    window = window < most ? window : most;
    int64_t share = 1 + waiting / (2 * (lanes > 0 ? (int64_t)lanes : 1));
    return (uint32_t)(window < share ? window : share);
}

struct sum {
    int128 load_ns;
    int128 lanes; /* lanes that may take tasks */
};

static struct sum sum_of(const struct online_lane *lanes, size_t count)
{
    assert(count <= UINT32_MAX); /* no product below exceeds 128 bits */
    struct sum sum = {0, 0};
    for (size_t i = 0; i < count; i++) {
        if (lanes[i].load_ns != ONLINE_NEVER) {
            sum.load_ns += lanes[i].load_ns;
            sum.lanes++;
        }
    }
    return sum;
}

/* Returns the load in percent of the mean, times the sum of all loads. */
static int128 share_of(const struct sum *sum, int64_t load_ns)
{
    return (int128)100 * load_ns * sum->lanes;
}

static bool is_below(const struct sum *sum, int64_t load_ns)
{
    return share_of(sum, load_ns) < (100 - ONLINE_SLACK_PERCENT) * sum->load_ns;
}

size_t online_fullest(const struct online_lane *lanes, size_t count)
{
    size_t fullest = ONLINE_NONE;
    for (size_t i = 0; i < count; i++) {
        if (lanes[i].can_give && lanes[i].load_ns != ONLINE_NEVER &&
            (fullest == ONLINE_NONE || lanes[i].load_ns > lanes[fullest].load_ns)) {
            fullest = i;
        }
    }
    return fullest;
}

size_t online_thief(const struct online_lane *lanes, size_t count)
{
    const struct sum sum = sum_of(lanes, count);
    size_t thief = ONLINE_NONE;
    for (size_t i = 0; i < count; i++) {
        if (is_below(&sum, lanes[i].load_ns) && is_done_before(lanes, i, thief)) {
            thief = i;
        }
    }
    return thief;
}

size_t online_victim(const struct online_lane *lanes, size_t count, size_t thief)
{
    assert(thief < count);
    const int64_t there_ns = online_finish_ns(&lanes[thief]);
    size_t victim = ONLINE_NONE;
    for (size_t i = 0; i < count; i++) {
        bool can_give = i != thief && lanes[i].can_give && lanes[i].load_ns != ONLINE_NEVER;
        if (can_give && (victim == ONLINE_NONE || lanes[i].load_ns > lanes[victim].load_ns)) {
            victim = i;
        }
    }
    if (victim == ONLINE_NONE || there_ns > ONLINE_NEVER - ONLINE_MOVE_NS ||
        there_ns + ONLINE_MOVE_NS > lanes[victim].load_ns) {
        return ONLINE_NONE;
    }
    const struct sum sum = sum_of(lanes, count);
    bool is_uneven =
        share_of(&sum, lanes[victim].load_ns) > (100 + ONLINE_SLACK_PERCENT) * sum.load_ns &&
        is_below(&sum, lanes[thief].load_ns);
    return is_uneven ? victim : ONLINE_NONE;
}

bool online_may_give(uint32_t tasks, int64_t longest_ns)
{
    return tasks > 1 && (int128)tasks * longest_ns >= ONLINE_MOVE_NS;
}

int64_t online_patience_ns(int64_t mean_ns, uint64_t samples)
{
    int64_t patience_ns;
    if (samples < ONLINE_SAMPLES || mean_ns <= 0 ||
        !checked_mul(mean_ns, ONLINE_PATIENCE_TIMES, &patience_ns)) {
        return ONLINE_NEVER;
    }
    return patience_ns > ONLINE_PATIENCE_NS ? patience_ns : ONLINE_PATIENCE_NS;
}

static bool is_borne_out(const struct online_late *late)
{
    return late->said_ns > 0 && late->there_ns > 0 &&
           late->there_ns / ONLINE_BELIEF_TIMES <= late->said_ns &&
           late->said_ns / ONLINE_BELIEF_TIMES <= late->there_ns;
}

int64_t online_late_ns(const struct online_late *late)
{
    if (!is_borne_out(late)) {
        return ONLINE_NEVER;
    }
    int64_t expected_ns = late->usual_ns > 0 ? late->usual_ns : late->said_ns;
    expected_ns = expected_ns > late->there_ns ? expected_ns : late->there_ns;
    int64_t slack_ns = expected_ns / 100 * ONLINE_SLACK_PERCENT;
    slack_ns = slack_ns > ONLINE_MOVE_NS ? slack_ns : ONLINE_MOVE_NS;
    int64_t late_ns;
    return checked_add(expected_ns, slack_ns, &late_ns) ? late_ns : ONLINE_NEVER;
}

int64_t online_at_pace_ns(int64_t said_ns, struct online_pace pace)
{
    int64_t takes_ns;
    if (said_ns <= 0 || pace.said_ns <= 0 || pace.took_ns <= 0) {
        return 0;
    }
    return checked_muldiv_floor(said_ns, pace.took_ns, pace.said_ns, &takes_ns) ? takes_ns
                                                                                : ONLINE_NEVER;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t online_own_late_ns(const struct online_own *own)
{
    if (own->said_ns <= 0) {
        return ONLINE_NEVER;
    }
    const int64_t usual_ns = online_at_pace_ns(own->said_ns, own->all);
    if (own->samples >= ONLINE_SAMPLES && usual_ns > 0) {
        return online_patience_ns(larger(usual_ns, own->said_ns), own->samples);
    }
    const struct online_late late = {
        .said_ns = own->said_ns,
        .usual_ns = larger(online_at_pace_ns(own->said_ns, own->here), own->said_ns),
        .there_ns = online_at_pace_ns(own->said_ns, own->there)};
    return online_late_ns(&late);
}

bool online_is_weighty(const struct online_done *done)
{
    const int128 off_ns = (int128)done->sum.took_ns - done->sum.said_ns;
    return (int128)done->sum.said_ns * (int64_t)done->subtasks >=
               (int128)done->all_ns * ONLINE_SAMPLES ||
           100 * (off_ns < 0 ? -off_ns : off_ns) > (int128)done->all_ns * ONLINE_SLACK_PERCENT;
}

struct online_pace online_pace_of_rest(const struct online_done *done)
{
    const bool is_known = done->samples >= ONLINE_SAMPLES && done->sum.said_ns > 0 &&
                          done->sum.took_ns > 0 && online_is_weighty(done);
    return is_known ? done->sum : (struct online_pace){1, 1};
}

int64_t online_ends_in_ns(int64_t takes_ns, int64_t so_far_ns)
{
    assert(takes_ns >= 0 && so_far_ns >= 0);
    return so_far_ns < takes_ns ? takes_ns - so_far_ns : so_far_ns - takes_ns;
}

int64_t online_rest_ns(const struct online_rest *rest)
{
    const uint32_t busy = rest->lanes < rest->open ? rest->lanes : rest->open;
    return larger(rest->way_ns, busy > 0 ? rest->work_ns / busy : 0);
}

bool online_drifts(int64_t predicted_ns, int64_t measured_ns, uint64_t samples)
{
    if (samples < ONLINE_SAMPLES || predicted_ns <= 0 || measured_ns <= 0) {
        return false;
    }
    const int128 away = (int128)measured_ns - predicted_ns;
    return 100 * (away < 0 ? -away : away) > (int128)ONLINE_SLACK_PERCENT * predicted_ns;
}
