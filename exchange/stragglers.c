/* The end of a part, when nothing waits and lanes fall idle while others are still at work. What has run much longer than
 * the part's subtasks do, or, where these are not alike, than was expected of this one, is started once more elsewhere, or, if
 * that was its own expectation and no other lease has an idle lane, in another lane of its own: the first accepted result wins. What only waits in a lane that has more than its share is taken back, and goes to the idle one. How
 * long is much, and who takes from whom, is planner/online.h's to say. */
#include "exchange/state.h"

#include "planner/online.h"

#include <stdlib.h>

struct usual {
    int64_t mean_ns; /* over the part's leases, of what was accepted */
    uint64_t samples;
    struct online_pace pace; /* of those with an expectation of their own */
};

static struct online_pace pace_of(const struct lease *lease)
{
    return (struct online_pace){.said_ns = lease->said_ns, .took_ns = lease->took_ns};
}

static struct usual usual_of(const struct part *part)
{
    int128 sum = 0;
    int128 said = 0;
    int128 took = 0;
    struct usual usual = {.samples = 0};
    const struct job *job = part->job;
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part == part) {
            sum += (int128)lease->mean_ns * lease->accepted;
            said += (int128)lease->said_ns * lease->accepted;
            took += (int128)lease->took_ns * lease->accepted;
            usual.samples += lease->accepted;
        }
    }
    if (usual.samples > 0) { /* each within a lease's own */
        usual.mean_ns = (int64_t)(sum / usual.samples);
        usual.pace = (struct online_pace){.said_ns = (int64_t)(said / usual.samples),
                                          .took_ns = (int64_t)(took / usual.samples)};
    }
    return usual;
}

int64_t part_usual_ns(const struct part *part)
{
    const struct usual usual = usual_of(part);
    return usual.samples < ONLINE_SAMPLES ? part->expect_ns : usual.mean_ns;
}

int64_t lease_takes_ns(const struct lease *lease, int64_t usual_ns)
{
    return lease->mean_ns > 0 ? lease->mean_ns : usual_ns;
}

static bool is_over(const struct part *part)
{
    const struct job *job = part->job;
    /* Checks are short, and not for everyone: they are not begun twice. */
    return job->phase != JOB_PHASE_OPEN || job->is_closing || part->waiting > 0 ||
           part_is_checks(part);
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

/* What a subtask took of a lane there, with what it waited for its inputs. */
static int64_t lane_took_ns(const struct lease *lease)
{
    int128 seen_ns = 0;
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        seen_ns += lease->lanes[i].seen_ns;
    }
    const int64_t each_ns = lease->accepted == 0 ? 0 : (int64_t)(seen_ns / lease->accepted);
    return each_ns > lease->mean_ns ? each_ns : lease->mean_ns;
}

/* How long a subtask may run on `lease` before `idle` starts it once more, where those of its part are alike. */
static int64_t patience_with(const struct part *part, const struct usual *usual,
                             const struct lease *lease, const struct lease *idle)
{
    if (usual->samples >= ONLINE_SAMPLES) {
        return online_patience_ns(usual->mean_ns, usual->samples);
    }
    const struct online_late late = {
        .said_ns = part->expect_ns, .usual_ns = lease->mean_ns, .there_ns = lane_took_ns(idle)};
    return online_late_ns(&late);
}

/* The same of subtasks with expectations of their own. */
static int64_t own_patience(const struct usual *usual, const struct attempt *attempt,
                            const struct lease *idle)
{
    const struct online_own own = {
        .said_ns = graph_said_ns(attempt->lease->job, attempt->key.index),
        .all = usual->pace,
        .samples = usual->samples,
        .here = pace_of(attempt->lease),
        .there = pace_of(idle),
    };
    return online_own_late_ns(&own);
}

struct straggler {
    struct attempt *attempt;
    int64_t due_ns;
};

/* Whether a lane of `idle` may be given what that lease has run too long. What is late on its own device is not late because of its device: a
 * copy there helps where a process is stuck, and else takes from the first one. That the one is not only long has to be known of it. */
static bool may_help(const struct part *part, const struct usual *usual, const struct lease *idle,
                     const struct lease *lease)
{
    return lease != idle || (graph_tells_apart(part->job) && usual->samples >= ONLINE_SAMPLES);
}

/* Of the subtasks of that lease the one that is due first, if that is before `first`. */
static void look_at_lease(struct exchange *exchange, struct lease *lease, const struct lease *idle,
                          const struct usual *usual, struct straggler *first)
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
            due_ns < first->due_ns && is_lone(exchange, lease, attempt)) {
            *first = (struct straggler){attempt, due_ns};
        }
    }
}

/* The one that is due first for a lane of `idle`: of another lease; or of `idle` itself, if `of_its_own`. */
static struct straggler first_due(struct exchange *exchange, const struct part *part,
                                  const struct lease *idle, bool of_its_own)
{
    struct straggler first = {NULL, INT64_MAX};
    const struct job *job = part->job;
    const struct usual usual = usual_of(part);
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part == part && (lease == idle) == of_its_own && lease->live > 0 &&
            lease->state != LEASE_ENDED && may_help(part, &usual, idle, lease)) {
            look_at_lease(exchange, lease, idle, &usual, &first);
        }
    }
    return first;
}

/* When a lane of `idle` may have something to start once more. */
static int64_t due_for(struct exchange *exchange, const struct part *part, const struct lease *idle)
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
        touch(exchange, &part->job->tracked);
    }
}

static bool may_take(const struct exchange *exchange, const struct lease *lease)
{
    return lease->state == LEASE_ACTIVE &&
           exchange->now_ns + lease->part->limit_ns <= lease->term_end_ns &&
           exchange->attempt_count < exchange->limits.attempts;
}

/* What is due is started in idle lanes, of other leases or of its own; when the next is due. */
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
            lease_start(exchange, lease, lane, first.attempt->key.index);
            report_job(exchange, job);
        }
    }
    return next_ns;
}

void part_stragglers_due(struct exchange *exchange, struct part *part, int64_t at_ns)
{
    if (part->straggler_ns != at_ns) {
        return;
    }
    part->straggler_ns = INT64_MAX;
    touch(exchange, &part->job->tracked);
    if (is_over(part)) {
        return;
    }
    const int64_t elsewhere_ns = start_due(exchange, part, false);
    const int64_t own_ns = start_due(exchange, part, true); /* which no other lease could take */
    watch(exchange, part, elsewhere_ns < own_ns ? elsewhere_ns : own_ns);
}

/* ---------------------------------------------------------------- what waits in other lanes */

static bool may_be_moved(struct exchange *exchange, const struct attempt *attempt)
{
    const struct subtask *subtask = job_subtask(exchange, attempt->lease->job, attempt->key.index);
    return !attempt->is_doubted && subtask->state == SUBTASK_RUNNING &&
           subtask->attempts < MOVES_MOST;
}

/* The part's lanes, and of each that can give one what it would give. */
struct loads {
    struct online_lane *lanes;
    struct attempt **last;
    size_t count;
    uint32_t coming; /* taken back, and not back yet: lanes that fell idle are theirs */
};

/* Where nothing is known of a lane what it runs now has run at least so long. */
static void add_lease(struct exchange *exchange, struct lease *lease, int64_t usual_ns,
                      struct loads *loads)
{
    struct online_lane *lanes = &loads->lanes[loads->count];
    struct attempt **last = &loads->last[loads->count];
    lease_find_unbilled(exchange, lease);
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        const int64_t so_far_ns = exchange->now_ns - lease->lanes[i].unbilled_from_ns;
        const int64_t takes_ns = lease_takes_ns(lease, usual_ns);
        lanes[i].takes_ns = takes_ns > so_far_ns ? takes_ns : so_far_ns;
        if (lease->lanes[i].in_flight > 0) {
            lanes[i].load_ns = online_left_ns(lanes[i].takes_ns, so_far_ns);
        }
    }
    for (struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        const uint32_t lane = attempt->lane;
        if (attempt->is_fenced) {
            continue;
        }
        if (attempt->is_withdrawn) {
            loads->coming++;
        } else if (last[lane] == NULL) {
            last[lane] = attempt; /* the one that runs, and is counted */
        } else {
            last[lane] = attempt;
            lanes[lane].load_ns += lanes[lane].takes_ns;
            lanes[lane].can_give = may_be_moved(exchange, attempt);
        }
    }
    loads->count += lease->lane_count;
}

static bool has_queued(const struct part *part)
{
    const struct job *job = part->job;
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part != part || lease->state != LEASE_ACTIVE || lease->live < 2) {
            continue;
        }
        for (uint32_t i = 0; i < lease->lane_count; i++) {
            if (lease->lanes[i].in_flight > 1) {
                return true;
            }
        }
    }
    return false;
}

/* Its first lane that has nothing, among all. */
static size_t idle_lane(const struct lease *idle, size_t first)
{
    for (uint32_t i = 0; i < idle->lane_count; i++) {
        if (idle->lanes[i].in_flight == 0) {
            return first + i;
        }
    }
    return ONLINE_NONE;
}

/* What is queued behind another is live too, and keeps no lane busy. */
static uint32_t idle_lanes(const struct lease *lease)
{
    uint32_t idle = 0;
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        idle += lease->lanes[i].in_flight == 0;
    }
    return idle;
}

static void take_back(struct exchange *exchange, struct lease *idle)
{
    const struct part *part = idle->part;
    const struct job *job = part->job;
    if (!has_queued(part)) {
        return;
    }
    /* More than enough: those of leases that are promised count, too. */
    struct loads loads = {.lanes = allocate(exchange, part->lanes * sizeof *loads.lanes),
                          .last = allocate(exchange, part->lanes * sizeof(struct attempt *))};
    size_t thief = ONLINE_NONE;
    const int64_t usual_ns = part_usual_ns(part);
    for (struct list_link *at = job->leases.next;
         loads.lanes != NULL && loads.last != NULL && at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part == part && lease->state == LEASE_ACTIVE) {
            thief = lease == idle ? idle_lane(idle, loads.count) : thief;
            assert(loads.count + lease->lane_count <= part->lanes);
            add_lease(exchange, lease, usual_ns, &loads);
        }
    }
    if (thief != ONLINE_NONE && loads.coming < idle_lanes(idle)) {
        size_t victim = online_victim(loads.lanes, loads.count, thief);
        if (victim != ONLINE_NONE) {
            attempt_withdraw(exchange, loads.last[victim]);
        }
    }
    free(loads.lanes);
    free(loads.last);
}

void part_help(struct exchange *exchange, struct lease *idle)
{
    struct part *part = idle->part;
    if (is_over(part) || part->running == 0 || idle_lanes(idle) == 0) {
        return;
    }
    take_back(exchange, idle);
    /* With enough samples the next due is the same for all that are idle. */
    if (part->straggler_ns == INT64_MAX || usual_of(part).samples < ONLINE_SAMPLES) {
        watch(exchange, part, due_for(exchange, part, idle));
    }
}
