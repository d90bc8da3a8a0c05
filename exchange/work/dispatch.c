#include "exchange/work/dispatch.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/state/effects.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lease_lanes.h"
#include "exchange/state/memory.h"
#include "exchange/state/parts.h"
#include "exchange/state/residency.h"
#include "exchange/state/tracking.h"
#include "exchange/work/attempts.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/check_seeds.h"
#include "exchange/work/choice/lateness.h"
#include "exchange/work/graph.h"
#include "exchange/work/lane_choice.h"
#include "exchange/work/part_queues.h"
#include "exchange/work/subtask_makers.h"
#include "exchange/work/subtasks.h"
#include "exchange/work/work_checkpoint.h"

#include <assert.h>
#include <stdlib.h>

void dispatch_subtask(struct exchange *exchange, struct lease *lease, uint32_t lane, uint32_t index,
                      bool is_urgent)
{
    struct job *job = lease->job;
    struct attempt *attempt = memory_allocate(exchange, sizeof *attempt);
    if (attempt == NULL) {
        return;
    }
    struct subtask *subtask = job_subtask(exchange, job, index);
    assert(subtask->attempts < ATTEMPTS_MOST);
    assert(subtask_may_run_on(exchange, job, index, lease->provider));
    if (subtask->state == SUBTASK_WAITING) { /* a running one is started once more */
        subtask_becomes(exchange, job, index, SUBTASK_RUNNING);
    }
    subtask->live++;
    subtask->attempts++;
    job_subtask_changed(exchange, job, index);
    attempt->key.index = index;
    attempt->key.attempt = subtask->attempts;
    attempt->lane = lane;
    attempt->dispatched_ns = exchange->now_ns;
    if (!attempt_put(exchange, lease, attempt)) {
        exchange->is_out_of_memory = true;
        free(attempt);
        return;
    }
    lease_lane_gains(lease, lane);
    lease->live++;
    lease->idle_since_ns = INT64_MAX;
    tracking_touch(exchange, &lease->tracked);
    struct exchange_work told = attempt_work(lease, attempt);
    told.is_urgent = is_urgent;
    work_checkpoint_give(exchange, attempt, &told);
    graph_give(exchange, job, index, &told);
    told.seed = check_seed(job, index, attempt->key.attempt);
    told.checked = check_subject(job, index);
    residency_note_inputs(exchange, lease, lane, index);
    effect_emit(exchange, EFFECT_DISPATCH, lease->provider)->work = told;
    exchange->totals.dispatches++;
}

void dispatch_again(struct exchange *exchange, struct lease *lease, uint32_t lane, uint32_t index)
{
    dispatch_subtask(exchange, lease, lane, index, false);
}

/* Returns true when something waits that a lane with this time left may have. */
static bool has_choice(const struct exchange *exchange, const struct lease *lease,
                       const struct lateness *late)
{
    return part_choice(exchange, lease->part, lease->provider) > 0 &&
           lateness_leaves_work(late, lease->part);
}

bool dispatch_has_choice(const struct exchange *exchange, const struct lease *lease)
{
    const struct lateness late = lateness_of(exchange, lease);
    return has_choice(exchange, lease, &late);
}

/* Takes off the queues what goes to a lane of the lease next, with `late` for this lane. A retry
 * goes before the work that the agent has queued in the lane, as it went before waiting work here.
 * Among `residents` may be the inputs of a subtask that then goes first; NULL: the first subtask
 * goes. */
static uint32_t take_next(struct exchange *exchange, struct lease *lease,
                          const struct residents *residents, const struct lateness *late,
                          bool *is_urgent)
{
    if (part_is_checks(lease->part)) {
        *is_urgent = false;
        return check_queue_next(exchange, lease);
    }
    if (!lateness_leaves_work(late, lease->part)) {
        return NO_SUBTASK;
    }
    const uint32_t index = part_next_retry(exchange, lease->part, lease->provider, late);
    *is_urgent = *is_urgent || index != NO_SUBTASK;
    return index != NO_SUBTASK ? index : part_next_fresh(exchange, lease->part, residents, late);
}

/* Returns false when the lane gets nothing. */
static bool dispatch(struct exchange *exchange, struct lease *lease, uint32_t lane,
                     const struct residents *residents, const struct lateness *late, bool is_urgent)
{
    const struct lateness here = lateness_behind(*late, lease->lanes[lane].in_flight);
    const uint32_t index = take_next(exchange, lease, residents, &here, &is_urgent);
    if (index != NO_SUBTASK) {
        dispatch_subtask(exchange, lease, lane, index, is_urgent);
    }
    return index != NO_SUBTASK;
}

/* Fills each lane that has less than `target`. A lane may get nothing where others do. */
static void fill_to(struct exchange *exchange, struct lease *lease, const struct lateness *late,
                    uint32_t target)
{
    for (uint32_t lane = 0; lane < lease->lane_count && has_choice(exchange, lease, late); lane++) {
        if (lease->lanes[lane].in_flight < target &&
            exchange->attempt_count < exchange->limits.attempts) {
            (void)dispatch(exchange, lease, lane, lease->lanes[lane].residents, late, false);
        }
    }
}

/* Each lane has a memory of its own. So a lane that holds inputs of what is ready takes that before
 * another lane of the lease does. */
static void fill_from_residents(struct exchange *exchange, struct lease *lease,
                                const struct lateness *late, uint32_t target)
{
    for (uint32_t lane = 0; lane < lease->lane_count && lease->lane_count > 1; lane++) {
        const struct residents *residents = lease->lanes[lane].residents;
        if (residents != NULL && lease->lanes[lane].in_flight < target &&
            part_has_resident(lease->part, residents, late) &&
            exchange->attempt_count < exchange->limits.attempts) {
            (void)dispatch(exchange, lease, lane, residents, late, false);
        }
    }
}

void dispatch_fill_lanes(struct exchange *exchange, struct lease *lease, uint32_t depth)
{
    const struct lateness late = lateness_of(exchange, lease);
    uint32_t least = depth;
    for (uint32_t lane = 0; lane < lease->lane_count && least > 0; lane++) {
        uint32_t in_flight = lease->lanes[lane].in_flight;
        least = in_flight < least ? in_flight : least;
    }
    for (uint32_t target = least + 1; target <= depth && has_choice(exchange, lease, &late);
         target++) {
        fill_from_residents(exchange, lease, &late, target);
        fill_to(exchange, lease, &late, target);
    }
}

void dispatch_place_next(struct exchange *exchange, struct lease *lease)
{
    const struct part *part = lease->part;
    if (!lane_matters(part) || part->lanes == lease->lane_count ||
        (lease_idle_lanes(lease) == 0 && !lane_is_choosy(lease)) || lane_is_soon_done(lease)) {
        return;
    }
    struct open_lane *lanes = memory_allocate(exchange, part->lanes * sizeof *lanes);
    bool is_placed = true;
    while (is_placed) {
        const size_t count = lanes == NULL ? 0 : lane_find_open(exchange, part, lanes);
        const struct open_lane *first =
            lane_is_worth_waiting_for(lanes, count, lease, lane_next(part));
        is_placed = first != NULL && exchange->attempt_count < exchange->limits.attempts;
        if (is_placed) {
            const struct lateness late = lateness_of(exchange, first->lease);
            is_placed = dispatch(exchange, first->lease, first->lane, NULL, &late,
                                 first->lease->lanes[first->lane].in_flight > 1);
        }
        is_placed = is_placed && dispatch_has_choice(exchange, lease);
    }
    free(lanes);
}

void dispatch_take_back_late(struct exchange *exchange, struct lease *lease)
{
    const struct lateness late = lateness_of(exchange, lease);
    if (!late.is_bound || lease->live == 0 || (!late.is_apart && late.takes_ns <= late.left_ns)) {
        return;
    }
    lease_find_unbilled(exchange, lease);
    for (struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        const struct lane *lane = &lease->lanes[attempt->lane];
        /* A retry may have gone before the oldest attempt of its lane. */
        const bool may_be_first = lane->runs == attempt->key.index || attempt->key.attempt > 1;
        const bool has_begun = may_be_first && attempt->dispatched_ns < exchange->now_ns &&
                               lane->seen_until_ns < exchange->now_ns;
        if (!attempt->is_fenced && !attempt->is_withdrawn && !has_begun &&
            lateness_is_late(&late, lease->job, attempt->key.index)) {
            attempt_withdraw(exchange, attempt);
        }
    }
}
