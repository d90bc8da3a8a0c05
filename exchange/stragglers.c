/* The end of a part, when nothing waits and lanes fall idle while others are still at work. What has run much longer than
 * the part's subtasks do is started once more elsewhere: the first accepted result wins. What only waits in the lane of a
 * slower lease is taken back, and goes to the idle one. */
#include "exchange/state.h"

#include <stdlib.h>

/* The average of what was accepted, over the part's leases; 0 while too few were. */
static int64_t mean_ns(const struct part *part)
{
    int128 sum = 0;
    uint64_t count = 0;
    const struct job *job = part->job;
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part == part) {
            sum += (int128)lease->mean_ns * lease->accepted;
            count += lease->accepted;
        }
    }
    return count < STRAGGLER_SAMPLES ? 0 : (int64_t)(sum / count);
}

static bool is_over(const struct part *part)
{
    const struct job *job = part->job;
    /* Checks are short, and not for everyone: they are not begun twice. */
    return job->phase != JOB_PHASE_OPEN || job->is_closing || part->waiting > 0 ||
           part_is_checks(part);
}

/* How long a subtask may run; INT64_MAX while nothing is known of the others. */
static int64_t patience_ns(const struct part *part)
{
    int64_t mean = mean_ns(part); /* no longer than a lease */
    if (mean == 0) {
        return INT64_MAX;
    }
    return STRAGGLER_TIMES * mean > STRAGGLER_LEAST_NS ? STRAGGLER_TIMES * mean
                                                       : STRAGGLER_LEAST_NS;
}

/* Whether it may be started once more: its lane runs it, and nobody else is at it. The lanes' use is known. */
static bool is_lone(struct exchange *exchange, const struct lease *lease,
                    const struct attempt *attempt)
{
    const struct lane *lane = &lease->lanes[attempt->lane];
    const struct subtask *subtask = job_subtask(exchange, lease->job, attempt->key.index);
    int64_t from_ns =
        attempt->dispatched_ns > lane->seen_until_ns ? attempt->dispatched_ns : lane->seen_until_ns;
    return from_ns == lane->unbilled_from_ns && !attempt->is_doubted && !attempt->is_withdrawn &&
           subtask->live == 1 && subtask->state == SUBTASK_RUNNING &&
           subtask->attempts < VANISHED_MOST;
}

struct straggler {
    struct attempt *attempt;
    int64_t due_ns;
};

/* The one that is due first, but for those of `except`: elsewhere is another lease. */
static struct straggler first_due(struct exchange *exchange, const struct part *part,
                                  const struct lease *except)
{
    struct straggler first = {NULL, INT64_MAX};
    const struct job *job = part->job;
    const int64_t patience = patience_ns(part);
    for (struct list_link *at = job->leases.next; at != &job->leases && patience != INT64_MAX;
         at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part != part || lease == except || lease->live == 0 ||
            lease->state == LEASE_ENDED) {
            continue;
        }
        lease_find_unbilled(exchange, lease);
        for (struct list_link *link = lease->attempts.next; link != &lease->attempts;
             link = link->next) {
            struct attempt *attempt = LIST_ELEMENT(link, struct attempt, of_lease);
            int64_t due_ns = lease->lanes[attempt->lane].unbilled_from_ns + patience;
            if (!attempt->is_fenced && due_ns < first.due_ns && is_lone(exchange, lease, attempt)) {
                first = (struct straggler){attempt, due_ns};
            }
        }
    }
    return first;
}

static void watch(struct exchange *exchange, struct part *part, int64_t due_ns)
{
    if (due_ns != INT64_MAX) {
        part->straggler_ns = due_ns > exchange->now_ns ? due_ns : exchange->now_ns;
        timer_arm(exchange, TIMER_JOB, &part->job->id, part->straggler_ns);
        touch(exchange, &part->job->tracked);
    }
}

static bool may_take(const struct exchange *exchange, const struct lease *lease)
{
    return lease->state == LEASE_ACTIVE &&
           exchange->now_ns + lease->part->limit_ns <= lease->term_end_ns &&
           exchange->attempt_count < exchange->limits.attempts;
}

void part_stragglers_due(struct exchange *exchange, struct part *part, int64_t at_ns)
{
    struct job *job = part->job;
    if (part->straggler_ns != at_ns) {
        return;
    }
    part->straggler_ns = INT64_MAX;
    touch(exchange, &job->tracked);
    if (is_over(part)) {
        return;
    }
    int64_t next_ns = INT64_MAX; /* of those that are not due yet */
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        for (uint32_t lane = 0;
             lease->part == part && lane < lease->lane_count && may_take(exchange, lease); lane++) {
            if (lease->lanes[lane].in_flight > 0) {
                continue;
            }
            struct straggler first = first_due(exchange, part, lease);
            if (first.attempt == NULL || first.due_ns > exchange->now_ns) {
                next_ns = first.due_ns < next_ns ? first.due_ns : next_ns;
                break;
            }
            lease_start(exchange, lease, lane, first.attempt->key.index);
            report_job(exchange, job);
        }
    }
    watch(exchange, part, next_ns);
}

/* The last that a lane of a slower lease has queued behind what it runs; NULL: none. */
static struct attempt *queued_behind(struct exchange *exchange, struct lease *slow)
{
    for (struct list_link *at = slow->attempts.previous; at != &slow->attempts; at = at->previous) {
        struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        const struct subtask *subtask = job_subtask(exchange, slow->job, attempt->key.index);
        if (!attempt->is_fenced && !attempt->is_doubted && !attempt->is_withdrawn &&
            slow->lanes[attempt->lane].in_flight > 1 && subtask->state == SUBTASK_RUNNING &&
            subtask->attempts < MOVES_MOST) {
            return attempt;
        }
    }
    return NULL;
}

/* Those that were taken back and have not come back yet: lanes that fell idle are theirs. */
static uint32_t on_their_way(const struct lease *lease)
{
    uint32_t count = 0;
    for (const struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        const struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        count += attempt->is_withdrawn && !attempt->is_fenced;
    }
    return count;
}

/* What a subtask takes there, as far as is known: what it runs now has run at least so long. */
static int64_t slowness_ns(const struct exchange *exchange, struct lease *lease, uint32_t lane)
{
    lease_find_unbilled(exchange, lease);
    int64_t so_far_ns = exchange->now_ns - lease->lanes[lane].unbilled_from_ns;
    return so_far_ns > lease->mean_ns ? so_far_ns : lease->mean_ns;
}

static void take_back(struct exchange *exchange, const struct lease *idle)
{
    const struct job *job = idle->job;
    struct attempt *slowest = NULL;
    int64_t slowest_ns = idle->mean_ns > MOVE_LEAST_NS ? idle->mean_ns : MOVE_LEAST_NS;
    uint32_t coming = 0;
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part != idle->part || lease->state != LEASE_ACTIVE || lease == idle) {
            continue;
        }
        coming += on_their_way(lease);
        struct attempt *queued = lease->live < 2 ? NULL : queued_behind(exchange, lease);
        int64_t takes_ns = queued == NULL ? 0 : slowness_ns(exchange, lease, queued->lane);
        if (takes_ns > slowest_ns) {
            slowest_ns = takes_ns;
            slowest = queued;
        }
    }
    if (slowest != NULL && coming < idle->lane_count - idle->live) {
        attempt_withdraw(exchange, slowest);
    }
}

void part_help(struct exchange *exchange, struct lease *idle)
{
    struct part *part = idle->part;
    if (is_over(part) || part->running == 0 || idle->live >= idle->lane_count) {
        return;
    }
    take_back(exchange, idle);
    if (part->straggler_ns == INT64_MAX) {
        watch(exchange, part, first_due(exchange, part, idle).due_ns);
    }
}
