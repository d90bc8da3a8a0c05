#include "exchange/work/lane_choice.h"

#include "exchange/lifecycle.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lease_lanes.h"
#include "exchange/state/parts.h"
#include "exchange/state/residency.h"
#include "exchange/work/graph.h"
#include "exchange/work/runtime_stats.h"
#include "planner/schedule/online.h"

uint32_t lane_depth(const struct lease *lease)
{
    const uint32_t idle = lease_idle_lanes(lease);
    const uint32_t waiting = lease->part->waiting;
    return online_depth(lease->mean_ns, lease->part->lanes, waiting > idle ? waiting - idle : 0);
}

int64_t lane_saves_ns(const struct lease *lease, uint32_t lane, uint32_t index)
{
    const struct residents *residents = lease->lanes[lane].residents;
    return residents == NULL || index == NO_SUBTASK
               ? 0
               : residency_saves_ns(residency_bytes(residents, lease->job->graph, index));
}

int lane_compare_open(const void *left, const void *right)
{
    const struct open_lane *a = left;
    const struct open_lane *b = right;
    if (a->finish_ns != b->finish_ns) {
        return a->finish_ns < b->finish_ns ? -1 : 1;
    }
    if (a->is_busy != b->is_busy) {
        return a->is_busy ? 1 : -1;
    }
    if (a->since_ns != b->since_ns) {
        return a->since_ns < b->since_ns ? -1 : 1;
    }
    if (a->lease->id != b->lease->id) {
        return a->lease->id < b->lease->id ? -1 : 1;
    }
    return (a->lane > b->lane) - (a->lane < b->lane);
}

bool lane_has_time(const struct exchange *exchange, const struct lease *lease)
{
    return exchange->now_ns + part_needs_ns(lease->part) <= lease->term_end_ns;
}

/* Returns the lane's load and the next subtask's time there. In an unmeasured lane, the time so far
 * is a lower bound. Unlike subtasks keep their own times, since the time of one tells nothing about
 * another. A withdrawn attempt ends at once. */
static struct online_lane front_of(const struct exchange *exchange, const struct lease *lease,
                                   const struct lane *lane, int64_t takes_ns,
                                   const struct runtime_stats *usual)
{
    const int64_t so_far_ns = exchange->now_ns - lane->unbilled_from_ns;
    if (lane->in_flight == 0) {
        return (struct online_lane){.takes_ns = takes_ns};
    }
    const bool is_apart = graph_tells_apart(lease->job) && !part_is_checks(lease->part);
    const bool is_known = takes_ns > so_far_ns || (takes_ns > 0 && is_apart);
    const int64_t next_ns = is_known ? takes_ns : so_far_ns;
    const int64_t runs_ns = is_apart ? runtime_stats_subtask_ns(lease, lane->runs, usual) : 0;
    const int64_t left_ns = online_left_ns(runs_ns > 0 ? runs_ns : next_ns, so_far_ns);
    return (struct online_lane){.takes_ns = next_ns, .load_ns = lane->is_ending ? 0 : left_ns};
}

/* The lane finishes the subtask `next` sooner by what it need not copy. */
static struct open_lane open_lane_of(const struct exchange *exchange, struct lease *lease,
                                     uint32_t lane, uint32_t next, int64_t takes_ns,
                                     const struct runtime_stats *usual)
{
    const struct lane *of = &lease->lanes[lane];
    const struct online_lane front = front_of(exchange, lease, of, takes_ns, usual);
    const int64_t finish_ns = online_finish_ns(&front) - lane_saves_ns(lease, lane, next);
    return (struct open_lane){lease, lane, of->in_flight > 0, finish_ns, of->unbilled_from_ns};
}

uint32_t lane_next(const struct part *part)
{
    if (part->retry_head != NO_SUBTASK || part->job->graph == NULL) {
        return part->retry_head;
    }
    return part->ready_count > 0 ? part->ready[0] : NO_SUBTASK;
}

/* Returns the time of the next subtask on the lease's device. */
static int64_t time_there_ns(const struct lease *lease, uint32_t next,
                             const struct runtime_stats *usual)
{
    return next == NO_SUBTASK ? runtime_stats_lease_ns(lease, usual)
                              : runtime_stats_subtask_ns(lease, next, usual);
}

size_t lane_find_open(const struct exchange *exchange, const struct part *part,
                      struct open_lane *ret_lanes)
{
    const struct job *job = part->job;
    const struct runtime_stats usual = runtime_stats_of_part(part);
    const uint32_t next = lane_next(part);
    size_t count = 0;
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part != part || lease->state != LEASE_ACTIVE) {
            continue;
        }
        lease_find_unbilled(exchange, lease);
        const uint32_t depth = lane_depth(lease);
        const int64_t takes_ns = time_there_ns(lease, next, &usual);
        const bool may_queue = lane_has_time(exchange, lease);
        for (uint32_t lane = 0; lane < lease->lane_count; lane++) {
            const uint32_t in_flight = lease->lanes[lane].in_flight;
            if (in_flight == 0 || (may_queue && in_flight <= depth)) {
                ret_lanes[count++] = open_lane_of(exchange, lease, lane, next, takes_ns, &usual);
            }
        }
    }
    return count;
}

bool lane_is_soon_done(const struct lease *lease)
{
    const struct runtime_stats usual = runtime_stats_of_part(lease->part);
    const uint32_t next = lane_next(lease->part);
    return lease->job->graph == NULL && time_there_ns(lease, next, &usual) < ONLINE_MOVE_NS;
}

bool lane_is_choosy(const struct lease *lease)
{
    const int64_t takes_ns = lease->mean_ns > 0 ? lease->mean_ns : lease->part->expect_ns;
    return graph_tells_apart(lease->job) && takes_ns >= ONLINE_MOVE_NS;
}

static bool overtakes(const struct job *job, uint32_t index, const struct lane *lane)
{
    return graph_tells_apart(job) && index != NO_SUBTASK && lane->in_flight > 1 &&
           graph_way_ns(job, index) > graph_way_ns(job, lane->last);
}

const struct open_lane *lane_is_worth_waiting_for(const struct open_lane *lanes, size_t count,
                                                  const struct lease *lease, uint32_t next)
{
    const uint32_t depth = lane_is_choosy(lease) ? lane_depth(lease) : 1;
    const struct open_lane *first = NULL;
    const struct open_lane *own = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct lane *lane = &lanes[i].lease->lanes[lanes[i].lane];
        if (lanes[i].lease == lease) {
            const bool is_better = own == NULL || lane_compare_open(&lanes[i], own) < 0;
            own = lane->in_flight < depth && is_better ? &lanes[i] : own;
        } else if (lane->in_flight <= 1 || overtakes(lease->job, next, lane)) {
            first = first == NULL || lane_compare_open(&lanes[i], first) < 0 ? &lanes[i] : first;
        }
    }
    const bool is_worth_it = own != NULL && first != NULL && first->is_busy &&
                             first->finish_ns <= own->finish_ns - ONLINE_MOVE_NS;
    return is_worth_it ? first : NULL;
}

bool lane_matters(const struct part *part)
{
    const bool is_ranked = graph_tells_apart(part->job) && part->lanes <= PLACED_LANES_MOST;
    const bool is_last = part->waiting <= part->lanes && part->lanes <= LAST_LANES_MOST;
    return !part_is_checks(part) && !job_has_juries(part->job) && (is_last || is_ranked);
}
