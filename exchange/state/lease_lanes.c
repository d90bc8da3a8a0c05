#include "exchange/state/lease_lanes.h"

#include <assert.h>

/* Returns true when `later`, dispatched after `earlier` to the same lane, started first. Both
 * waited when the lane last had a result, and a retry goes before other queued work. */
static bool overtakes(const struct attempt *later, const struct attempt *earlier,
                      const struct lane *lane)
{
    return later->dispatched_ns < lane->seen_until_ns && later->key.attempt > 1 &&
           earlier->key.attempt == 1;
}

static void note_deep(struct lease *lease)
{
    if (lease->deep_lanes++ == 0) {
        list_append(&lease->part->deep, &lease->deep);
    }
}

void lease_lane_gains(struct lease *lease, uint32_t lane)
{
    if (++lease->lanes[lane].in_flight == 2) {
        note_deep(lease);
    }
}

void lease_lane_loses(struct lease *lease, uint32_t lane)
{
    assert(lease->lanes[lane].in_flight > 0);
    if (--lease->lanes[lane].in_flight == 1 && --lease->deep_lanes == 0) {
        list_remove(&lease->deep);
    }
}

void lease_link_deep(struct lease *lease)
{
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        if (lease->lanes[i].in_flight > 1) {
            note_deep(lease);
        }
    }
}

void lease_find_first(const struct lease *lease, const struct attempt **ret_first)
{
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        ret_first[i] = NULL;
    }
    for (const struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        const struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        const struct attempt **first = &ret_first[attempt->lane];
        if (!attempt->is_fenced &&
            (*first == NULL || overtakes(attempt, *first, &lease->lanes[attempt->lane]))) {
            *first = attempt;
        }
    }
}

uint32_t lease_most_lanes(const struct job *job)
{
    uint32_t most = 0;
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        most = lease->lane_count > most ? lease->lane_count : most;
    }
    return most;
}

void lease_find_unbilled(const struct exchange *exchange, struct lease *lease)
{
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        lease->lanes[i].unbilled_from_ns = exchange->now_ns;
        lease->lanes[i].is_ending = false;
        lease->lanes[i].runs = lease->lanes[i].last = NO_SUBTASK;
    }
    for (const struct list_link *at = lease->attempts.previous; at != &lease->attempts;
         at = at->previous) { /* newest first: the first of each lane stays */
        const struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        struct lane *lane = &lease->lanes[attempt->lane];
        if (!attempt->is_fenced) {
            lane->unbilled_from_ns = attempt->dispatched_ns > lane->seen_until_ns
                                         ? attempt->dispatched_ns
                                         : lane->seen_until_ns;
            lane->is_ending = attempt->is_withdrawn;
            lane->last = lane->runs == NO_SUBTASK ? attempt->key.index : lane->last;
            lane->runs = attempt->key.index;
        }
    }
}

uint32_t lease_idle_lanes(const struct lease *lease)
{
    uint32_t idle = 0;
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        idle += lease->lanes[i].in_flight == 0;
    }
    return idle;
}
