/* The broker tells, at its start, for how long it was down.
 *
 * Log time stood still meanwhile, but the terms of leases went on: an agent counts a term on its
 * own clock. So the time of the outage is taken off each term. Attempts that were under way may be
 * paid for that time, within what their agents claim. The broker measures the time, so no agent can
 * make it longer. A lane is paid no more of it than the limits of the attempts that were in it. */
#include "base/checked.h"
#include "exchange/command/apply.h"
#include "exchange/lifecycle.h"
#include "exchange/state/tracking.h"
#include "exchange/work/lease_records.h"

/* Finds, for each lane, whether attempts of an earlier outage are still in it. */
static bool met_earlier(const struct lease *lease, uint32_t lane)
{
    for (const struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        const struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        if (attempt->lane == lane && !attempt->is_fenced) {
            return attempt->dispatched_ns <= lease->outage_at_ns; /* the oldest comes first */
        }
    }
    return false;
}

/* Returns the time that the attempts in a lane can have taken at most. */
static int64_t longest_ns(const struct lease *lease, uint32_t in_flight)
{
    int64_t most_ns = 0;
    return checked_mul(lease->part->limit_ns, in_flight, &most_ns) ? most_ns : INT64_MAX;
}

static void met_lease(struct exchange *exchange, struct lease *lease, int64_t outage_ns)
{
    const bool stands = lease->state == LEASE_ACTIVE || lease->state == LEASE_SUSPECT ||
                        lease->state == LEASE_ENDING;
    const int64_t left_ns = lease->term_end_ns - exchange->now_ns;
    if (!stands || left_ns <= 0) {
        return;
    }
    const int64_t spent_ns = outage_ns < left_ns ? outage_ns : left_ns;
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        struct lane *lane = &lease->lanes[i];
        const int64_t longest = longest_ns(lease, lane->in_flight);
        lane->outage_ns = met_earlier(lease, i) ? lane->outage_ns : 0;
        lane->outage_ns += spent_ns < longest ? spent_ns : longest;
    }
    lease->term_end_ns -= spent_ns;
    lease->outage_ns += spent_ns;
    lease->outage_at_ns = exchange->now_ns;
    tracking_touch(exchange, &lease->tracked);
    lease_arm(exchange, lease);
}

void apply_outage(struct exchange *exchange, int64_t outage_ns)
{
    if (outage_ns <= 0) {
        return;
    }
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, all);
        for (struct list_link *link = job->leases.next; link != &job->leases; link = link->next) {
            met_lease(exchange, LIST_ELEMENT(link, struct lease, of_job), outage_ns);
        }
    }
}
