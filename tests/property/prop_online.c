/* planner/schedule/online.h against its definitions written slowly, and in random runs: whoever
 * takes work from whom, it ends, and nobody is later for it. From a printed seed. */
#include "planner/schedule/online.h"

#include "base/checked.h"
#include "base/random.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 24, ROUNDS = 20000, RUNS = 3000, QUEUE = 12 };

static struct random dice;

static int64_t draw(int64_t bound)
{
    return (int64_t)random_below(&dice, (uint64_t)bound);
}

static int64_t draw_time(void)
{
    const int64_t scales[] = {10, 1000, 100 * NS_PER_MS, 100 * NS_PER_S, INT64_MAX};
    return draw(4) == 0 ? 0 : draw(scales[draw(5)]);
}

static size_t draw_lanes(struct online_lane *lanes)
{
    size_t count = (size_t)draw(LANES) + 1;
    for (size_t i = 0; i < count; i++) {
        lanes[i] = (struct online_lane){.load_ns = draw(9) == 0 ? ONLINE_NEVER : draw_time(),
                                        .takes_ns = draw_time(),
                                        .can_give = draw(2) == 0};
    }
    return count;
}

/* ---------------------------------------------------------------- the definitions */

static int128 finish_of(const struct online_lane *lane)
{
    return (int128)lane->load_ns + lane->takes_ns;
}

/* Returns the time in fifths of the mean times the number of lanes: 6 is 20 % above, 4 below. */
static int fifths(const struct online_lane *lanes, size_t count, size_t lane)
{
    int128 sum = 0;
    int128 known = 0;
    for (size_t i = 0; i < count; i++) {
        sum += lanes[i].load_ns == ONLINE_NEVER ? 0 : lanes[i].load_ns;
        known += lanes[i].load_ns != ONLINE_NEVER;
    }
    int128 mine = 5 * known * lanes[lane].load_ns;
    return mine > 6 * sum ? 1 : mine < 4 * sum ? -1 : 0;
}

static bool may_take(const struct online_lane *lanes, size_t count, size_t thief, size_t victim)
{
    const struct online_lane *from = &lanes[victim];
    return victim != thief && from->can_give && from->load_ns != ONLINE_NEVER &&
           finish_of(&lanes[thief]) + ONLINE_MOVE_NS <= from->load_ns &&
           fifths(lanes, count, victim) > 0 && fifths(lanes, count, thief) < 0;
}

/* The first of the most loaded that can give. */
static size_t model_victim(const struct online_lane *lanes, size_t count, size_t thief)
{
    for (size_t i = 0; i < count; i++) {
        bool is_most = i != thief && lanes[i].can_give && lanes[i].load_ns != ONLINE_NEVER;
        for (size_t k = 0; k < count && is_most; k++) {
            bool counts = k != thief && lanes[k].can_give && lanes[k].load_ns != ONLINE_NEVER;
            is_most = !counts || (k < i ? lanes[k].load_ns < lanes[i].load_ns
                                        : lanes[k].load_ns <= lanes[i].load_ns);
        }
        if (is_most) {
            return may_take(lanes, count, thief, i) ? i : ONLINE_NONE;
        }
    }
    return ONLINE_NONE;
}

START_TEST(what_is_chosen_is_what_the_definitions_say)
{
    uint32_t moved = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct online_lane lanes[LANES];
        size_t count = draw_lanes(lanes);
        for (size_t i = 0; i < count; i++) {
            const int128 finish = finish_of(&lanes[i]);
            ck_assert(online_finish_ns(&lanes[i]) ==
                      (finish < ONLINE_NEVER ? (int64_t)finish : ONLINE_NEVER));
        }
        size_t thief = (size_t)draw((int64_t)count);
        size_t victim = online_victim(lanes, count, thief);
        ck_assert_uint_eq(victim, model_victim(lanes, count, thief));
        moved += victim != ONLINE_NONE;
    }
    ck_assert_uint_gt(moved, ROUNDS / 100); /* it was tried */
}
END_TEST

/* A lane's load, as its tasks make it. */
static int64_t load_of(int64_t so_far_ns, const int64_t *takes_ns, uint32_t tasks)
{
    struct online_lane lane = {.load_ns = 0};
    for (uint32_t i = 0; i < tasks; i++) {
        lane.takes_ns = i == 0 ? online_left_ns(takes_ns[i], so_far_ns) : takes_ns[i];
        lane.load_ns = online_finish_ns(&lane);
    }
    return lane.load_ns;
}

/* The short answer spares the look at all lanes. It must never be no where a look finds a move. */
START_TEST(a_lane_that_may_not_give_is_no_victim)
{
    uint32_t moved = 0;
    uint32_t spared = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct online_lane lanes[LANES];
        uint32_t tasks[LANES];
        int64_t longest_ns[LANES];
        const size_t count = (size_t)draw(LANES - 1) + 2;
        const int64_t scale_ns = 1 + draw(draw(2) == 0 ? 4 * ONLINE_MOVE_NS : ONLINE_MOVE_NS / 2);
        for (size_t i = 0; i < count; i++) {
            int64_t takes_ns[QUEUE];
            const int64_t so_far_ns = draw(scale_ns);
            tasks[i] = (uint32_t)draw(draw(2) == 0 ? 2 : QUEUE);
            longest_ns[i] = so_far_ns;
            for (uint32_t k = 0; k < tasks[i]; k++) {
                takes_ns[k] = draw(scale_ns);
                longest_ns[i] = takes_ns[k] > longest_ns[i] ? takes_ns[k] : longest_ns[i];
            }
            lanes[i] = (struct online_lane){.load_ns = load_of(so_far_ns, takes_ns, tasks[i]),
                                            .takes_ns = draw(scale_ns),
                                            .can_give = tasks[i] > 1};
            spared += !online_may_give(tasks[i], longest_ns[i]);
        }
        const size_t thief = online_thief(lanes, count);
        const size_t victim =
            thief == ONLINE_NONE ? ONLINE_NONE : online_victim(lanes, count, thief);
        ck_assert(victim == ONLINE_NONE || online_may_give(tasks[victim], longest_ns[victim]));
        moved += victim != ONLINE_NONE;
    }
    ck_assert_uint_gt(moved, ROUNDS / 100); /* it was tried */
    ck_assert_uint_gt(spared, ROUNDS);
}
END_TEST

START_TEST(depth_patience_and_drift_are_what_they_say)
{
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t takes = draw_time();
        const uint32_t lanes = (uint32_t)draw(draw(2) == 0 ? 8 : 5000);
        const uint32_t waiting = (uint32_t)draw(draw(2) == 0 ? 50 : 10000000);
        uint32_t depth = 1; /* one more while it is of use, and there is room and a share */
        for (;; depth++) {
            const int128 share = (int128)depth * 2 * (lanes > 0 ? lanes : 1);
            const bool is_full = depth >= ONLINE_WINDOW_LEAST &&
                                 (takes == 0 || (int128)(depth + 1) * takes > ONLINE_WINDOW_NS);
            const bool is_much = depth >= ONLINE_WINDOW_ALWAYS &&
                                 (depth >= ONLINE_WINDOW_MOST ||
                                  (uint64_t)(depth + 1) * lanes > ONLINE_WINDOW_JOB_MOST);
            if (share > waiting || is_full || is_much) {
                break;
            }
        }
        ck_assert_uint_eq(online_depth(takes, lanes, waiting), depth);

        const uint64_t samples = (uint64_t)draw(9);
        const int64_t other = draw_time();
        const int64_t patience = online_patience_ns(takes, samples);
        ck_assert(patience >= NS_PER_S);
        ck_assert(samples >= ONLINE_SAMPLES || patience == ONLINE_NEVER);
        ck_assert(patience == ONLINE_NEVER || patience == NS_PER_S || patience / 2 == takes);
        const bool is_off =
            (int128)10 * other > (int128)12 * takes || 10 * (int128)other < 8 * (int128)takes;
        ck_assert(online_drifts(takes, other, samples) ==
                  (samples >= ONLINE_SAMPLES && takes > 0 && other > 0 && is_off));
    }
}
END_TEST

/* Late: a fifth, or a move, after whichever is later of what was expected and what the idle lane
 * takes; never where that is three times away from what was said. */
START_TEST(late_is_what_it_says)
{
    int late_ones = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t said = draw_time();
        const int64_t there = draw(2) == 0 ? draw_time() : said / 4 + draw(said / 2 + 1);
        const struct online_late late = {said, draw(2) == 0 ? 0 : draw_time(), there};
        const int64_t late_ns = online_late_ns(&late);
        const bool is_guess = said == 0 || there == 0 || there / 3 > said || said / 3 > there;
        int128 longest = late.usual_ns > 0 ? late.usual_ns : said;
        longest = longest > there ? longest : there;
        const int128 slack =
            longest / 100 * 20 > ONLINE_MOVE_NS ? longest / 100 * 20 : ONLINE_MOVE_NS;
        ck_assert(
            late_ns ==
            (is_guess || longest + slack > INT64_MAX ? ONLINE_NEVER : (int64_t)(longest + slack)));
        late_ones += late_ns != ONLINE_NEVER;
    }
    ck_assert_int_gt(late_ones, ROUNDS / 100); /* it was tried */
}
END_TEST

/* ---------------------------------------------------------------- runs */

struct run { /* lanes whose tasks take what they are said to */
    size_t count;
    int64_t takes_ns[LANES];
    int64_t begun_ns[LANES]; /* what runs there */
    int queue[LANES];        /* with what runs */
    int64_t now_ns;
};

static void look(const struct run *run, struct online_lane *ret_lanes)
{
    for (size_t i = 0; i < run->count; i++) {
        const int64_t takes_ns = run->takes_ns[i];
        ret_lanes[i] = (struct online_lane){.takes_ns = takes_ns, .can_give = run->queue[i] > 1};
        if (run->queue[i] > 0) {
            ret_lanes[i].load_ns = online_left_ns(takes_ns, run->now_ns - run->begun_ns[i]) +
                                   (run->queue[i] - 1) * takes_ns;
        }
    }
}

static int descending(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return (a < b) - (a > b);
}

static void sorted_loads(const struct run *run, int64_t *ret_loads)
{
    struct online_lane lanes[LANES];
    look(run, lanes);
    for (size_t i = 0; i < run->count; i++) {
        ret_loads[i] = lanes[i].load_ns;
    }
    qsort(ret_loads, run->count, sizeof *ret_loads, descending);
}

static bool is_less(const int64_t *a, const int64_t *b, size_t count)
{
    size_t at = 0;
    while (at < count && a[at] == b[at]) {
        at++;
    }
    return at < count && a[at] < b[at];
}

/* Lets every lane take what it may, in random order, again and again; returns how many moves that
 * were. */
static int take_all(struct run *run)
{
    int moves = 0;
    for (bool again = true; again;) {
        again = false;
        size_t begin = (size_t)draw((int64_t)run->count);
        for (size_t i = 0; i < run->count; i++) {
            size_t thief = (begin + i) % run->count;
            struct online_lane lanes[LANES];
            look(run, lanes);
            size_t victim = online_victim(lanes, run->count, thief);
            if (victim == ONLINE_NONE) {
                continue;
            }
            int64_t before[LANES];
            int64_t after[LANES];
            sorted_loads(run, before);
            ck_assert_int_gt(run->queue[victim], 1);
            run->queue[victim]--;
            run->begun_ns[thief] = run->queue[thief] == 0 ? run->now_ns : run->begun_ns[thief];
            run->queue[thief]++;
            sorted_loads(run, after);
            ck_assert(is_less(after, before, run->count));
            ck_assert_int_lt(++moves, LANES * LANES * QUEUE); /* no loop */
            again = true;
        }
    }
    return moves;
}

/* Returns when all is done. Each time a lane falls idle others may take its work. */
static int64_t run_to_the_end(struct run run, bool takes, int *ret_moves)
{
    for (;;) {
        *ret_moves += takes ? take_all(&run) : 0;
        size_t next = ONLINE_NONE;
        int64_t next_ns = ONLINE_NEVER;
        for (size_t i = 0; i < run.count; i++) {
            if (run.queue[i] > 0 && run.begun_ns[i] + run.takes_ns[i] < next_ns) {
                next = i;
                next_ns = run.begun_ns[i] + run.takes_ns[i];
            }
        }
        if (next == ONLINE_NONE) {
            return run.now_ns;
        }
        run.now_ns = next_ns;
        run.begun_ns[next] = next_ns;
        run.queue[next]--;
    }
}

START_TEST(taking_work_ends_and_makes_nobody_later)
{
    int moves = 0;
    int sooner = 0;
    for (int round = 0; round < RUNS; round++) {
        struct run run = {.count = (size_t)draw(LANES) + 1};
        const int64_t scale = draw(2) == 0 ? 200 * NS_PER_MS : 20 * NS_PER_S;
        for (size_t i = 0; i < run.count; i++) {
            run.takes_ns[i] = draw(scale) + 1;
            run.queue[i] = (int)draw(draw(3) == 0 ? QUEUE : 3);
        }
        int none = 0;
        const int64_t without_ns = run_to_the_end(run, false, &none);
        const int64_t with_ns = run_to_the_end(run, true, &moves);
        ck_assert_int_le(with_ns, without_ns);
        sooner += with_ns < without_ns;
    }
    ck_assert_int_gt(moves, RUNS);
    ck_assert_int_gt(sooner, RUNS / 4);
}
END_TEST

int main(void)
{
    const char *given = getenv("BOURSE_SEED");
    const uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : 1;
    printf("BOURSE_SEED=%llu\n", (unsigned long long)seed);
    dice = random_seeded(seed);
    Suite *suite = suite_create("online rules");
    TCase *tests = tcase_create("random");
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, what_is_chosen_is_what_the_definitions_say);
    tcase_add_test(tests, a_lane_that_may_not_give_is_no_victim);
    tcase_add_test(tests, depth_patience_and_drift_are_what_they_say);
    tcase_add_test(tests, late_is_what_it_says);
    tcase_add_test(tests, taking_work_ends_and_makes_nobody_later);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
