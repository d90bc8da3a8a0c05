/* Stragglers delay the end of a part, when nothing waits and lanes fall idle beside busy ones.
 *
 * A subtask that runs much longer than usual, or than its own expectation where subtasks differ, is
 * started once more elsewhere. It may go to another lane of its own lease, if its own expectation
 * says so and no other lease has an idle lane. The first accepted result wins. Work queued in a
 * lane with more than its share is taken back and goes to the idle lane. planner/schedule/online.h
 * decides how long is too long, and which lane takes from which. */
#include "exchange/work/stragglers.h"

#include "exchange/lifecycle.h"
#include "exchange/state/effects.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lease_lanes.h"
#include "exchange/state/memory.h"
#include "exchange/state/parts.h"
#include "exchange/state/timers.h"
#include "exchange/state/tracking.h"
#include "exchange/work/attempts.h"
#include "exchange/work/choice/lateness.h"
#include "exchange/work/dispatch.h"
#include "exchange/work/graph.h"
#include "exchange/work/runtime_stats.h"
#include "exchange/work/subtask_makers.h"
#include "planner/schedule/online.h"

#include <assert.h>
#include <stdlib.h>

static bool is_over(const struct part *part)
{
    const struct job *job = part->job;
    /* Checks are short, and few may run them, so they are not started twice. */
    return job->phase != JOB_PHASE_OPEN || job->is_closing || part->waiting > 0 ||
           part_is_checks(part);
}

/* Returns true when the attempt may be started once more on `idle`: it runs in its lane, and has no
 * copy. The lanes' use is known. */
static bool is_lone(struct exchange *exchange, const struct lease *lease,
                    const struct attempt *attempt, const struct lease *idle)
{
    const struct lane *lane = &lease->lanes[attempt->lane];
    const struct subtask *subtask = job_subtask(exchange, lease->job, attempt->key.index);
    int64_t from_ns =
        attempt->dispatched_ns > lane->seen_until_ns ? attempt->dispatched_ns : lane->seen_until_ns;
    return from_ns == lane->unbilled_from_ns && !attempt->is_doubted && !attempt->is_withdrawn &&
           subtask->live == 1 && subtask->state == SUBTASK_RUNNING &&
           subtask->attempts < VANISHED_MOST &&
           subtask_may_run_on(exchange, lease->job, attempt->key.index, idle->provider);
}

/* Returns the mean time of a subtask in a lane there, with the wait for inputs. */
static int64_t lane_took_ns(const struct lease *lease)
{
    int128 seen_ns = 0;
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        seen_ns += lease->lanes[i].seen_ns;
    }
    const int64_t each_ns = lease->accepted == 0 ? 0 : (int64_t)(seen_ns / lease->accepted);
    return each_ns > lease->mean_ns ? each_ns : lease->mean_ns;
}

/* Returns the time after which `idle` starts once more a subtask on `lease`, where subtasks are
 * alike. */
static int64_t patience_with(const struct part *part, const struct runtime_stats *usual,
                             const struct lease *lease, const struct lease *idle)
{
    if (usual->samples >= ONLINE_SAMPLES) {
        return online_patience_ns(usual->mean_ns, usual->samples);
    }
    const struct online_late late = {
        .said_ns = part->expect_ns, .usual_ns = lease->mean_ns, .there_ns = lane_took_ns(idle)};
    return online_late_ns(&late);
}

/* Returns the same for a subtask with its own expectation. */
static int64_t own_patience(const struct runtime_stats *usual, const struct attempt *attempt,
                            const struct lease *idle)
{
    const struct online_own own = {
        .said_ns = graph_said_ns(attempt->lease->job, attempt->key.index),
        .all = usual->pace,
        .samples = usual->samples,
        .here = runtime_stats_pace(attempt->lease),
        .there = runtime_stats_pace(idle),
    };
    return online_own_late_ns(&own);
}

struct straggler {
    struct attempt *attempt;
    int64_t due_ns;
};

/* Returns true when a lane of `idle` may get a copy of late work of the lease. A copy on the same
 * device helps when a process is stuck; otherwise it takes from the first one. The subtask's own
 * expectation must show that it is late, not just long. */
static bool may_help(const struct part *part, const struct runtime_stats *usual,
                     const struct lease *idle, const struct lease *lease)
{
    return lease != idle || (graph_tells_apart(part->job) && usual->samples >= ONLINE_SAMPLES);
}

/* Finds the first subtask of the lease that is due before `first`. */
static void look_at_lease(struct exchange *exchange, struct lease *lease, const struct lease *idle,
                          const struct runtime_stats *usual, struct straggler *first)
{
    const bool is_apart = graph_tells_apart(lease->job);
    const int64_t alike_ns = patience_with(lease->part, usual, lease, idle);
    lease_find_unbilled(exchange, lease);
    for (struct list_link *link = lease->attempts.next; link != &lease->attempts;
         link = link->next) {
        struct attempt *attempt = LIST_ELEMENT(link, struct attempt, of_lease);
        const int64_t patience_ns = is_apart ? own_patience(usual, attempt, idle) : alike_ns;
        int64_t due_ns;
        if (!attempt->is_fenced &&
            checked_add(lease->lanes[attempt->lane].unbilled_from_ns, patience_ns, &due_ns) &&
            due_ns < first->due_ns && is_lone(exchange, lease, attempt, idle)) {
            *first = (struct straggler){attempt, due_ns};
        }
    }
}

/* Finds the first subtask due for a lane of `idle`: from another lease, or from `idle` itself if
 * `of_its_own`. */
static struct straggler first_due(struct exchange *exchange, const struct part *part,
                                  struct lease *idle, bool of_its_own)
{
    struct straggler first = {NULL, INT64_MAX};
    const struct job *job = part->job;
    const struct runtime_stats usual = runtime_stats_of_part(part);
    const struct list_link *const end = of_its_own ? idle->of_job.next : &job->leases;
    struct list_link *at = of_its_own ? &idle->of_job : job->leases.next;
    for (; at != end; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part == part && (lease == idle) == of_its_own && lease->live > 0 &&
            lease->state != LEASE_ENDED && may_help(part, &usual, idle, lease)) {
            look_at_lease(exchange, lease, idle, &usual, &first);
        }
    }
    return first;
}

/* Returns the time at which a lane of `idle` may have something to start once more. */
static int64_t due_for(struct exchange *exchange, const struct part *part, struct lease *idle)
{
    const int64_t own_ns = first_due(exchange, part, idle, true).due_ns;
    const int64_t other_ns = first_due(exchange, part, idle, false).due_ns;
    return own_ns < other_ns ? own_ns : other_ns;
}

static void watch(struct exchange *exchange, struct part *part, int64_t due_ns)
{
    due_ns = due_ns > exchange->now_ns ? due_ns : exchange->now_ns;
    if (due_ns < part->straggler_ns) {
        part->straggler_ns = due_ns;
        timer_arm(exchange, TIMER_JOB, &part->job->id, part->straggler_ns);
        tracking_touch(exchange, &part->job->tracked);
    }
}

static bool may_take(const struct exchange *exchange, const struct lease *lease)
{
    return lease->state == LEASE_ACTIVE &&
           exchange->now_ns + part_needs_ns(lease->part) <= lease->term_end_ns &&
           exchange->attempt_count < exchange->limits.attempts;
}

/* Starts due subtasks in idle lanes, of other leases or their own. Returns the next due time. */
static int64_t start_due(struct exchange *exchange, const struct part *part, bool of_its_own)
{
    struct job *job = part->job;
    int64_t next_ns = INT64_MAX;
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        for (uint32_t lane = 0;
             lease->part == part && lane < lease->lane_count && may_take(exchange, lease); lane++) {
            if (lease->lanes[lane].in_flight > 0) {
                continue;
            }
            struct straggler first = first_due(exchange, part, lease, of_its_own);
            if (first.attempt == NULL || first.due_ns > exchange->now_ns) {
                next_ns = first.due_ns < next_ns ? first.due_ns : next_ns;
                break;
            }
            const struct lateness late = lateness_of(exchange, lease);
            if (lateness_is_late(&late, job, first.attempt->key.index)) {
                break; /* the copy would end after the deadline */
            }
            dispatch_again(exchange, lease, lane, first.attempt->key.index);
            effect_report_job(exchange, job);
        }
    }
    return next_ns;
}

void stragglers_due(struct exchange *exchange, struct part *part, int64_t at_ns)
{
    if (part->straggler_ns != at_ns) {
        return;
    }
    part->straggler_ns = INT64_MAX;
    tracking_touch(exchange, &part->job->tracked);
    if (is_over(part)) {
        return;
    }
    const int64_t elsewhere_ns = start_due(exchange, part, false);
    /* No other lease could take the subtasks that are still due. */
    const int64_t own_ns = start_due(exchange, part, true);
    watch(exchange, part, elsewhere_ns < own_ns ? elsewhere_ns : own_ns);
}

static bool may_be_moved(struct exchange *exchange, const struct attempt *attempt)
{
    const struct subtask *subtask = job_subtask(exchange, attempt->lease->job, attempt->key.index);
    return !attempt->is_doubted && subtask->state == SUBTASK_RUNNING &&
           subtask->attempts < MOVES_MOST;
}

/* The work of one lane. */
struct load {
    struct lease *lease;
    struct attempt *last; /* the attempt that would leave the lane first */
    int64_t so_far_ns;    /* run time of the attempt that runs */
    uint32_t queued;      /* attempts, including the one that runs */
};

/* The lanes of a part. Lane i of the planner's rules has the work `loads[i]`. */
struct loads {
    struct online_lane *lanes;
    struct load *loads;
    size_t count;
    /* Attempts that were taken back from their lanes and have not returned yet. */
    const struct attempt *coming[COMING_MOST];
    size_t coming_count;
};

/* The time so far is a lower bound in an unmeasured lane. */
static int64_t takes_there_ns(const struct load *load, uint32_t index,
                              const struct runtime_stats *usual)
{
    const int64_t takes_ns = runtime_stats_subtask_ns(load->lease, index, usual);
    return takes_ns > load->so_far_ns || graph_said_ns(load->lease->job, index) > 0
               ? takes_ns
               : load->so_far_ns;
}

/* Returns true when the attempt's subtask comes back to the queue. A decided subtask does not. */
static bool comes_back(struct exchange *exchange, const struct attempt *attempt)
{
    const struct subtask *subtask = job_subtask(exchange, attempt->lease->job, attempt->key.index);
    return subtask->state == SUBTASK_RUNNING && subtask->live == 1 && !attempt->is_doubted;
}

static void add_coming(struct exchange *exchange, struct loads *loads,
                       const struct attempt *attempt)
{
    if (comes_back(exchange, attempt)) {
        if (loads->coming_count < COMING_MOST) {
            loads->coming[loads->coming_count] = attempt;
        }
        loads->coming_count++;
    }
}

static void add_attempt(struct exchange *exchange, const struct runtime_stats *usual,
                        struct load *load, struct online_lane *lane, struct attempt *attempt)
{
    const int64_t takes_ns = takes_there_ns(load, attempt->key.index, usual);
    const bool runs = load->last == NULL;
    lane->takes_ns = runs ? online_left_ns(takes_ns, load->so_far_ns) : takes_ns;
    lane->load_ns = online_finish_ns(lane);
    lane->can_give = !runs && may_be_moved(exchange, attempt);
    load->last = attempt;
    load->queued++;
}

static void add_lease(struct exchange *exchange, struct lease *lease,
                      const struct runtime_stats *usual, struct loads *loads)
{
    struct load *of_lease = &loads->loads[loads->count];
    lease_find_unbilled(exchange, lease);
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        of_lease[i] = (struct load){
            .lease = lease, .so_far_ns = exchange->now_ns - lease->lanes[i].unbilled_from_ns};
    }
    for (struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        if (attempt->is_withdrawn && !attempt->is_fenced) {
            add_coming(exchange, loads, attempt);
        } else if (!attempt->is_fenced) {
            add_attempt(exchange, usual, &of_lease[attempt->lane],
                        &loads->lanes[loads->count + attempt->lane], attempt);
        }
    }
    loads->count += lease->lane_count;
}

/* Returns true when a lane of the lease may have enough queued for another lane to take from. The
 * lane began nothing before it last had a result, so what it runs is no older. */
static bool may_give(const struct exchange *exchange, const struct lease *lease,
                     const struct runtime_stats *usual)
{
    const int64_t takes_ns = runtime_stats_lease_ns(lease, usual);
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        const struct lane *lane = &lease->lanes[i];
        const int64_t so_far_ns = exchange->now_ns - lane->seen_until_ns;
        if (online_may_give(lane->in_flight, takes_ns > so_far_ns ? takes_ns : so_far_ns)) {
            return true;
        }
    }
    return false;
}

/* Looks only at leases that have something queued: near the end of a job of many leases these are
 * few, and short work is not worth a move. */
static bool may_take_back(const struct exchange *exchange, const struct part *part)
{
    const struct runtime_stats usual = runtime_stats_of_part(part);
    const bool is_apart = graph_tells_apart(part->job);
    for (const struct list_link *at = part->deep.next; at != &part->deep; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, deep);
        if (lease->state == LEASE_ACTIVE && (is_apart || may_give(exchange, lease, &usual))) {
            return true;
        }
    }
    return false;
}

/* Sets the subtask's time in each lane that may have the subtask. Such a lane is idle or has
 * nothing queued, and its provider may run the subtask. lease_place_retries() finds the same
 * lanes. */
static void set_lane_times(struct exchange *exchange, const struct runtime_stats *usual,
                           struct loads *loads, uint32_t index)
{
    for (size_t i = 0; i < loads->count; i++) {
        const struct load *load = &loads->loads[i];
        const struct lease *lease = load->lease;
        const bool has_room = load->queued == 0 || (load->queued == 1 && may_take(exchange, lease));
        const bool may_have =
            has_room && subtask_may_run_on(exchange, lease->job, index, lease->provider);
        loads->lanes[i].takes_ns = may_have ? takes_there_ns(load, index, usual) : ONLINE_NEVER;
    }
}

/* Work that was taken back will go to the lanes that end it first, so those lanes count as having
 * that work. */
static void place_coming(struct exchange *exchange, const struct runtime_stats *usual,
                         struct loads *loads)
{
    for (size_t i = 0; i < loads->coming_count; i++) {
        set_lane_times(exchange, usual, loads, loads->coming[i]->key.index);
        const size_t lane = online_earliest(loads->lanes, loads->count);
        if (lane != ONLINE_NONE) {
            loads->lanes[lane].load_ns = online_finish_ns(&loads->lanes[lane]);
            loads->lanes[lane].can_give = false;
            loads->loads[lane].queued++;
        }
    }
}

/* Takes back one attempt, where another lane would end the attempt sooner. The next attempt is
 * taken back when this one has returned, or with the next result. */
static void take_back_one(struct exchange *exchange, const struct runtime_stats *usual,
                          struct loads *loads)
{
    if (loads->coming_count >= COMING_MOST) {
        return;
    }
    place_coming(exchange, usual, loads);
    const size_t victim = online_fullest(loads->lanes, loads->count);
    if (victim == ONLINE_NONE) {
        return;
    }
    struct attempt *last = loads->loads[victim].last;
    set_lane_times(exchange, usual, loads, last->key.index);
    const size_t thief = online_thief(loads->lanes, loads->count);
    if (thief != ONLINE_NONE && online_victim(loads->lanes, loads->count, thief) == victim) {
        attempt_withdraw(exchange, last);
    }
}

static void take_back(struct exchange *exchange, const struct part *part)
{
    const struct job *job = part->job;
    /* The arrays are longer than needed: part->lanes also counts lanes of promised leases. */
    struct loads loads = {.lanes = memory_allocate(exchange, part->lanes * sizeof *loads.lanes),
                          .loads = memory_allocate(exchange, part->lanes * sizeof *loads.loads)};
    const struct runtime_stats usual = runtime_stats_of_part(part);
    for (struct list_link *at = job->leases.next;
         loads.lanes != NULL && loads.loads != NULL && at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part == part && lease->state == LEASE_ACTIVE) {
            assert(loads.count + lease->lane_count <= part->lanes);
            add_lease(exchange, lease, &usual, &loads);
        }
    }
    take_back_one(exchange, &usual, &loads);
    free(loads.lanes);
    free(loads.loads);
}

void straggler_help(struct exchange *exchange, struct lease *lease)
{
    struct part *part = lease->part;
    if (is_over(part) || part->running == 0) {
        return;
    }
    if (may_take_back(exchange, part)) {
        take_back(exchange, part);
    }
    if (lease_idle_lanes(lease) == 0) {
        return;
    }
    /* The next due time is the same for all idle lanes with the same rights, once there are enough
     * samples. */
    if (part->straggler_ns == INT64_MAX || job_has_juries(part->job) ||
        runtime_stats_of_part(part).samples < ONLINE_SAMPLES) {
        watch(exchange, part, due_for(exchange, part, lease));
    }
}
