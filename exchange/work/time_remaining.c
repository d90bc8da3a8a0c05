/* The time left of an open job follows from the expected time of its undecided subtasks. The time
 * counts at the pace of each part's results, over the job's lanes, less what running attempts have
 * run. The expected time is a running sum, so only attempts in flight are looked at:
 *
 *   lane 1 |####==|              work: rest of running attempts and waiting ones, over the lanes
 *   lane 2 |##====|=====|        way:  longest path to the end from a running or next subtask
 *             now
 *
 * A read: nothing of this enters the state. */
#include "exchange/lifecycle.h"
#include "exchange/state/lease_lanes.h"
#include "exchange/state/steps.h"
#include "exchange/work/graph.h"
#include "exchange/work/runtime_stats.h"
#include "planner/schedule/online.h"

#include <stdlib.h>

struct left { /* Time left of one part, or of the whole job. */
    int128 work_ns;
    int64_t way_ns;
    uint64_t lanes, open;
};

static int64_t within(int128 ns)
{
    return ns < 0 ? 0 : ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static uint32_t open_of(const struct part *part)
{
    return part->end - part->first - part->decided - part->checking;
}

/* Returns the expected time of open subtasks. Subtasks in check count at the mean, since the sum
 * does not tell which they are. */
static int64_t said_of_open(const struct part *part)
{
    if (!graph_tells_apart(part->job)) {
        return within((int128)part->expect_ns * open_of(part));
    }
    return within((int128)part->undecided_ms * NS_PER_MS -
                  (int128)part->expect_ns * part->checking);
}

static struct online_pace pace_of(const struct part *part)
{
    const struct runtime_stats usual = runtime_stats_of_part(part);
    const bool is_apart = usual.pace.said_ns > 0;
    const int64_t subtasks = part->end - part->first;
    const int128 said_ns = is_apart ? usual.pace.said_ns : usual.expect_ns;
    const int128 took_ns = is_apart ? usual.pace.took_ns : usual.mean_ns;
    return online_pace_of_rest(&(struct online_done){
        .sum = {within(said_ns * (int64_t)usual.samples), within(took_ns * (int64_t)usual.samples)},
        .samples = usual.samples,
        .all_ns = within((int128)part->expect_ns * subtasks),
        .subtasks = (uint64_t)subtasks});
}

/* Returns the path from the start of an open subtask. */
static int64_t way_from(const struct part *part, uint32_t index, struct online_pace pace)
{
    const struct job *job = part->job;
    return online_at_pace_ns(larger(graph_way_ns(job, index), graph_expects_ns(job, index)), pace);
}

/* The newest attempt of a subtask in two lanes counts, and none of a decided subtask. */
static bool is_open(const struct attempt *attempt)
{
    const struct job *job = attempt->lease->job;
    const struct page *page = job->pages[attempt->key.index / PAGE_SUBTASKS];
    const struct subtask *subtask =
        page == NULL ? NULL : &page->subtasks[attempt->key.index % PAGE_SUBTASKS];
    return subtask != NULL && subtask->state == SUBTASK_RUNNING &&
           subtask->attempts == attempt->key.attempt;
}

static void take_off(const struct attempt *attempt, struct online_pace pace, int64_t now_ns,
                     struct left *left)
{
    const struct part *part = attempt->lease->part;
    const struct lane *lane = &attempt->lease->lanes[attempt->lane];
    const int64_t begun_ns = larger(attempt->dispatched_ns, lane->seen_until_ns);
    const int64_t takes_ns =
        online_at_pace_ns(graph_expects_ns(part->job, attempt->key.index), pace);
    const int64_t left_ns = online_ends_in_ns(takes_ns, larger(now_ns - begun_ns, 0));
    const int64_t way_ns = way_from(part, attempt->key.index, pace) - takes_ns;
    left->work_ns += (int128)left_ns - takes_ns;
    left->way_ns = larger(left->way_ns, within((int128)way_ns + left_ns));
}

/* `first` has room for the lanes of any lease. */
static void add_running(const struct part *part, struct online_pace pace, int64_t now_ns,
                        const struct attempt **first, struct left *left)
{
    const struct job *job = part->job;
    for (const struct list_link *at = job->leases.next; part->running > 0 && at != &job->leases;
         at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part != part || lease->live == 0) {
            continue;
        }
        lease_find_first(lease, first);
        for (uint32_t i = 0; i < lease->lane_count; i++) {
            if (first[i] != NULL && is_open(first[i])) {
                take_off(first[i], pace, now_ns, left);
            }
        }
    }
}

static struct left left_of(const struct part *part, int64_t now_ns, const struct attempt **first)
{
    if (open_of(part) == 0) {
        return (struct left){.lanes = part->lanes};
    }
    const struct online_pace pace = pace_of(part);
    struct left left = {.work_ns = online_at_pace_ns(said_of_open(part), pace),
                        .lanes = part->lanes,
                        .open = open_of(part)};
    add_running(part, pace, now_ns, first, &left);
    if (part->ready_count > 0) {
        left.way_ns = larger(left.way_ns, way_from(part, part->ready[0], pace));
    }
    if (part->retry_head != NO_SUBTASK) {
        left.way_ns = larger(left.way_ns, way_from(part, part->retry_head, pace));
    }
    return left;
}

static int64_t rest_of(const struct left *left)
{
    return online_rest_ns(&(struct online_rest){
        .work_ns = within(left->work_ns),
        .way_ns = left->way_ns,
        .lanes = left->lanes < UINT32_MAX ? (uint32_t)left->lanes : UINT32_MAX,
        .open = left->open < UINT32_MAX ? (uint32_t)left->open : UINT32_MAX});
}

/* A part takes as long as its own lanes need, and the job as long as all its lanes need. */
static int64_t rest_of_all(const struct job *job, int64_t now_ns, const struct attempt **first)
{
    struct left all = {.way_ns = 0};
    for (uint32_t i = 0; i < job->part_count; i++) {
        const struct left left = left_of(&job->parts[i], now_ns, first);
        all.work_ns += left.work_ns;
        all.lanes += left.lanes;
        all.open += left.open;
        all.way_ns = larger(all.way_ns, rest_of(&left));
    }
    return all.lanes == 0 || all.open == 0 ? -1 : rest_of(&all);
}

int64_t exchange_job_left_ns(const struct exchange *exchange, const struct id128 *id,
                             int64_t now_ns)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job == NULL || job->phase != JOB_PHASE_OPEN || job->is_closing) {
        return -1;
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        steps_add(exchange, job->part_count + lease->lane_count + 4 * (uint64_t)lease->live);
    }
    const struct attempt **first = calloc(lease_most_lanes(job) + 1, sizeof *first);
    const int64_t left_ns = first == NULL ? -1 : rest_of_all(job, now_ns, first);
    free(first);
    return left_ns;
}
