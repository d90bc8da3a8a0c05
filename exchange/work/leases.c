/* This file gives leases their work, renews them, gives up attempts and ends leases. fills.c grants
 * leases; results.c takes results. */
#include "exchange/state.h"

#include "base/checked.h"
#include "planner/schedule/online.h"

#include <stdlib.h>

int64_t escrow_micro(int64_t price_micro, uint32_t slots, int64_t term_ns)
{
    assert(price_micro >= 0 && term_ns >= 0);
    uint128 product = (uint128)price_micro * slots;
    if (product > (uint128)INT64_MAX) {
        return INT64_MAX;
    }
    int64_t micro;
    return checked_muldiv_ceil((int64_t)product, term_ns, NS_PER_HOUR, &micro) ? micro : INT64_MAX;
}

struct lease *lease_by_id(const struct exchange *exchange, uint64_t id)
{
    return table_find(&exchange->leases, &id);
}

/* ---------------------------------------------------------------- telling the agent */

void lease_effect(struct exchange *exchange, const struct lease *lease,
                  enum exchange_effect_type type)
{
    struct exchange_effect *effect = emit(exchange, type, lease->provider);
    int64_t left_ns = lease->term_end_ns - exchange->now_ns;
    left_ns = left_ns > 0 ? left_ns : 0;
    if (type != EFFECT_LEASE_GRANT) {
        effect->lease = (struct exchange_lease_note){.lease = lease->id,
                                                     .term_ns = left_ns,
                                                     .reason = lease->end_reason,
                                                     .job = lease->job->id};
        return;
    }
    effect->grant = (struct exchange_grant){
        .lease = lease->id,
        .job = lease->job->id,
        .device = lease->device_id,
        .ask = lease->ask,
        .owner = member_by_number(exchange, lease->job->owner)->key,
        .owner_number = lease->job->owner,
        .slots = lease->slots,
        .width = lease->part->width,
        .price_micro = lease->price_micro,
        .term_ns = left_ns,
        .limit_ns = lease->part->limit_ns,
        .manifest = lease->job->manifest,
        .has_checkpoints = lease->job->has_checkpoints,
    };
}

static struct exchange_work work_of(const struct lease *lease, const struct attempt *attempt)
{
    return (struct exchange_work){.lease = lease->id,
                                  .index = attempt->key.index,
                                  .attempt = attempt->key.attempt,
                                  .lane = attempt->lane};
}

void work_effect(struct exchange *exchange, struct lease *lease, struct attempt *attempt,
                 enum exchange_effect_type type)
{
    struct exchange_work work = work_of(lease, attempt);
    if (type == EFFECT_DISPATCH) {
        saved_give(exchange, attempt, &work);
        touch(exchange, &lease->tracked);
        graph_give(exchange, lease->job, attempt->key.index, &work);
        work.seed = check_seed(lease->job, attempt->key.index, attempt->key.attempt);
        work.checked = check_subject(lease->job, attempt->key.index);
    }
    emit(exchange, type, lease->provider)->work = work;
}

/* ---------------------------------------------------------------- attempts, by subtask and number
 */

static struct attempt *attempt_of(const struct exchange *exchange, const struct job *job,
                                  uint32_t index, uint32_t number)
{
    const struct attempt_key key = {.job = job->order, .index = index, .attempt = number};
    return table_find(&exchange->attempts, &key);
}

struct attempt *attempt_find(const struct exchange *exchange, const struct lease *lease,
                             uint32_t index, uint32_t number)
{
    struct attempt *attempt = attempt_of(exchange, lease->job, index, number);
    return attempt != NULL && attempt->lease == lease ? attempt : NULL;
}

bool attempt_put(struct exchange *exchange, struct lease *lease, struct attempt *attempt)
{
    attempt->key.job = lease->job->order;
    attempt->lease = lease;
    if (table_find(&exchange->attempts, &attempt->key) != NULL ||
        !table_insert(&exchange->attempts, attempt)) {
        return false;
    }
    list_append(&lease->attempts, &attempt->of_lease);
    exchange->attempt_count++;
    return true;
}

void attempt_drop(struct exchange *exchange, struct attempt *attempt)
{
    table_remove(&exchange->attempts, &attempt->key);
    list_remove(&attempt->of_lease);
    exchange->attempt_count--;
    free(attempt);
}

/* ---------------------------------------------------------------- its deadline, its provider, its
 * turn */

/* State saved within the notice takes longer to arrive than a result. */
static int64_t grace_ns(const struct lease *lease)
{
    return lease->is_noticed && lease->job->has_checkpoints ? SAVING_NS : LEASE_GRACE_NS;
}

int64_t lease_deadline(const struct lease *lease)
{
    int64_t at_ns = lease->term_end_ns + grace_ns(lease);
    bool is_idle = lease->idle_since_ns != INT64_MAX;
    return is_idle && lease->idle_since_ns + LEASE_IDLE_NS < at_ns
               ? lease->idle_since_ns + LEASE_IDLE_NS
               : at_ns;
}

void lease_arm(struct exchange *exchange, const struct lease *lease)
{
    if (lease->state == LEASE_PROMISED) {
        return; /* it begins when its former lease ends */
    }
    struct id128 key = timer_key_of_lease(lease->id);
    timer_arm(exchange, TIMER_LEASE, &key, lease_deadline(lease));
    const int64_t exposed_ns = lease_exposed_ns(lease);
    if (exposed_ns > exchange->now_ns && exposed_ns != INT64_MAX) {
        timer_arm(exchange, TIMER_LEASE, &key, exposed_ns);
    }
}

/* Lease numbers rise, so appending keeps the list in order. */
void lease_link_provider(struct exchange *exchange, struct lease *lease)
{
    struct provider *provider = member_by_number(exchange, lease->provider)->provider;
    list_append(&provider->leases, &lease->of_provider);
    provider->lease_count++;
}

void lease_refill_later(struct exchange *exchange, struct lease *lease)
{
    if (list_empty(&lease->refill)) {
        list_append(&exchange->refills, &lease->refill);
    }
}

void lease_refill_next(struct exchange *exchange, struct lease *lease)
{
    list_remove(&lease->refill);
    list_insert_before(exchange->refills.next, &lease->refill);
}

/* ---------------------------------------------------------------- handing out subtasks */

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

/* Returns the escrow that the lease needs to run until `end_ns`; call lease_find_unbilled
 * before. */
static int64_t needed_micro(const struct lease *lease, int64_t end_ns)
{
    int64_t lane_ns = 0; /* LEASE_AGE_MOST_NS on all lanes fits */
    if (lease->price_micro == 0) {
        return 0; /* nothing is charged, so nothing is rounded */
    }
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        const struct lane *lane = &lease->lanes[i];
        lane_ns += end_ns - lane->unbilled_from_ns + lane->seen_ns - lane->paid_ns;
    }
    int64_t micro = escrow_micro(lease->price_micro, lease->part->width, lane_ns);
    int64_t held_micro = escrow_micro(lease->price_micro, 1, lease->held_ns);
    /* The extra micro-credit covers earlier rounding of the running total that may still come
     * due. */
    return micro < INT64_MAX - held_micro ? micro + held_micro + 1 : INT64_MAX;
}

/* Returns true when the budget and the device's day have room until then; call lease_find_unbilled
 * before. */
static bool has_room_till(const struct exchange *exchange, struct lease *lease, int64_t end_ns)
{
    const int64_t more_ns = donation_promised_till(exchange, lease, end_ns);
    return needed_micro(lease, end_ns) - lease->reserved_micro <= job_free_micro(lease->job) &&
           (lease->device->ask->daily_ns == 0 ||
            more_ns - lease->promised_ns <= daily_left_ns(exchange, lease->device->ask));
}

/* Extends the lease at its price while its ask stands open for this account and the bid's limit
 * allows it. No other account may come first in the donation queue. The extension is a term, or
 * enough for one subtask when budget or day cover no more. */
static bool renew(struct exchange *exchange, struct lease *lease)
{
    struct job *job = lease->job;
    const struct member *provider = member_by_number(exchange, lease->provider);
    const struct ask *ask = lease->device->ask;
    if (ask == NULL || !ask->is_open || !ask_is_for(ask, job->owner) || exchange->is_halted ||
        provider->is_frozen ||
        lease->price_micro > part_limit_in(exchange, lease->part, lease->device->cell) ||
        /* The bid's limit may have been lowered. */
        exchange->now_ns - lease->granted_ns > LEASE_AGE_MOST_NS ||
        donation_is_due(exchange, lease)) {
        return false;
    }
    lease_find_unbilled(exchange, lease);
    int64_t end_ns = exchange->now_ns + lease->part->term_ns;
    if (!has_room_till(exchange, lease, end_ns)) {
        end_ns = exchange->now_ns + lease->part->limit_ns;
    }
    if (!has_room_till(exchange, lease, end_ns)) {
        return false;
    }
    int64_t extra = needed_micro(lease, end_ns) - lease->reserved_micro;
    extra = extra > 0 ? extra : 0;
    lease->reserved_micro += extra;
    job->reserved_micro += extra;
    lease->term_end_ns = end_ns;
    donation_promise(exchange, lease);
    touch(exchange, &job->tracked);
    touch(exchange, &lease->tracked);
    lease_effect(exchange, lease, EFFECT_LEASE_RENEW);
    return true;
}

static void dispatch_subtask(struct exchange *exchange, struct lease *lease, uint32_t lane,
                             uint32_t index, bool is_urgent)
{
    struct job *job = lease->job;
    struct attempt *attempt = allocate(exchange, sizeof *attempt);
    if (attempt == NULL) {
        return;
    }
    struct subtask *subtask = job_subtask(exchange, job, index);
    assert(subtask->attempts < ATTEMPTS_MOST);
    assert(provider_may_run(exchange, job, index, lease->provider));
    if (subtask->state == SUBTASK_WAITING) { /* a running one is started once more */
        subtask_becomes(exchange, job, index, SUBTASK_RUNNING);
    }
    subtask->live++;
    subtask->attempts++;
    subtask_changed(exchange, job, index);
    attempt->key.index = index;
    attempt->key.attempt = subtask->attempts;
    attempt->lane = lane;
    attempt->dispatched_ns = exchange->now_ns;
    if (!attempt_put(exchange, lease, attempt)) {
        exchange->is_out_of_memory = true;
        free(attempt);
        return;
    }
    lease->lanes[lane].in_flight++;
    lease->live++;
    lease->idle_since_ns = INT64_MAX;
    touch(exchange, &lease->tracked);
    struct exchange_work told = work_of(lease, attempt);
    told.is_urgent = is_urgent;
    saved_give(exchange, attempt, &told);
    graph_give(exchange, job, index, &told);
    told.seed = check_seed(job, index, attempt->key.attempt);
    told.checked = check_subject(job, index);
    emit(exchange, EFFECT_DISPATCH, lease->provider)->work = told;
    exchange->totals.dispatches++;
}

void lease_start(struct exchange *exchange, struct lease *lease, uint32_t lane, uint32_t index)
{
    dispatch_subtask(exchange, lease, lane, index, false);
}

/* A retry goes before the work that the agent has queued in the lane, as it went before waiting
 * work here. */
static void dispatch(struct exchange *exchange, struct lease *lease, uint32_t lane, bool is_urgent)
{
    if (part_is_checks(lease->part)) {
        uint32_t check = checks_next(exchange, lease);
        if (check != NO_SUBTASK) {
            dispatch_subtask(exchange, lease, lane, check, false);
        }
        return;
    }
    uint32_t index = part_next_retry(exchange, lease->part, lease->provider);
    bool is_retry = index != NO_SUBTASK;
    if (!is_retry) {
        index = part_next_fresh(exchange, lease->part);
    }
    if (index != NO_SUBTASK) {
        dispatch_subtask(exchange, lease, lane, index, is_retry || is_urgent);
    }
}

/* Idle lanes of the lease take one subtask each before any is queued. A queued subtask wants no
 * slots, and slots that become free would stand idle. */
static uint32_t lane_depth(const struct lease *lease)
{
    const uint32_t idle = lease_idle_lanes(lease);
    const uint32_t waiting = lease->part->waiting;
    return online_depth(lease->mean_ns, lease->part->lanes, waiting > idle ? waiting - idle : 0);
}

static void become_idle(struct exchange *exchange, struct lease *lease)
{
    if (lease->live == 0 && lease->idle_since_ns == INT64_MAX) {
        lease->idle_since_ns = exchange->now_ns;
        touch(exchange, &lease->tracked);
        lease_arm(exchange, lease);
    }
}

static bool has_choice(const struct exchange *exchange, const struct lease *lease)
{
    return part_choice(exchange, lease->part, lease->provider) > 0;
}

/* Fills the emptiest lanes first, up to `depth` in each. */
static void fill_lanes(struct exchange *exchange, struct lease *lease, uint32_t depth)
{
    uint32_t least = depth;
    for (uint32_t lane = 0; lane < lease->lane_count && least > 0; lane++) {
        uint32_t in_flight = lease->lanes[lane].in_flight;
        least = in_flight < least ? in_flight : least;
    }
    for (uint32_t target = least + 1; target <= depth && has_choice(exchange, lease); target++) {
        for (uint32_t lane = 0; lane < lease->lane_count && has_choice(exchange, lease); lane++) {
            if (lease->lanes[lane].in_flight < target &&
                exchange->attempt_count < exchange->limits.attempts) {
                dispatch(exchange, lease, lane, false);
            }
        }
    }
}

/* ---------------------------------------------------------------- retries, before what is queued
 * (P18) */

struct open_lane {
    struct lease *lease;
    uint32_t lane;
    bool is_busy;
    int64_t finish_ns; /* if it goes before queued work */
    int64_t since_ns;  /* start of what the lane runs, as far as known */
};

static int compare_open(const void *left, const void *right)
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

static bool has_time(const struct exchange *exchange, const struct lease *lease)
{
    return exchange->now_ns + lease->part->limit_ns <= lease->term_end_ns;
}

/* Returns the lane's load and the next subtask's time there. In an unmeasured lane, the time so far
 * is a lower bound. Unlike subtasks keep their own times, since the time of one tells nothing about
 * another. A withdrawn attempt ends at once. */
static struct online_lane front_of(const struct exchange *exchange, const struct lease *lease,
                                   const struct lane *lane, int64_t takes_ns,
                                   const struct usual *usual)
{
    const int64_t so_far_ns = exchange->now_ns - lane->unbilled_from_ns;
    if (lane->in_flight == 0) {
        return (struct online_lane){.takes_ns = takes_ns};
    }
    const bool is_apart = graph_tells_apart(lease->job) && !part_is_checks(lease->part);
    const bool is_known = takes_ns > so_far_ns || (takes_ns > 0 && is_apart);
    const int64_t next_ns = is_known ? takes_ns : so_far_ns;
    const int64_t runs_ns = is_apart ? subtask_takes_ns(lease, lane->runs, usual) : 0;
    const int64_t left_ns = online_left_ns(runs_ns > 0 ? runs_ns : next_ns, so_far_ns);
    return (struct online_lane){.takes_ns = next_ns, .load_ns = lane->is_ending ? 0 : left_ns};
}

static struct open_lane open_lane_of(const struct exchange *exchange, struct lease *lease,
                                     uint32_t lane, int64_t takes_ns, const struct usual *usual)
{
    const struct lane *of = &lease->lanes[lane];
    const struct online_lane front = front_of(exchange, lease, of, takes_ns, usual);
    return (struct open_lane){lease, lane, of->in_flight > 0, online_finish_ns(&front),
                              of->unbilled_from_ns};
}

/* Returns the subtask that goes next, where subtasks differ. */
static uint32_t next_of(const struct part *part)
{
    if (part->retry_head != NO_SUBTASK || part->job->graph == NULL) {
        return part->retry_head;
    }
    return part->ready_count > 0 ? part->ready[0] : NO_SUBTASK;
}

/* Each lane may have one more than its depth: one retry before queued work, and the next when it
 * has started. An idle lease may need renewal first. */
static size_t find_open_lanes(const struct exchange *exchange, const struct part *part,
                              struct open_lane *ret_lanes)
{
    const struct job *job = part->job;
    const struct usual usual = part_usual(part);
    const uint32_t next = next_of(part);
    size_t count = 0;
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part != part || lease->state != LEASE_ACTIVE) {
            continue;
        }
        lease_find_unbilled(exchange, lease);
        const uint32_t depth = lane_depth(lease);
        const int64_t takes_ns = next == NO_SUBTASK ? lease_takes_ns(lease, &usual)
                                                    : subtask_takes_ns(lease, next, &usual);
        const bool may_queue = has_time(exchange, lease);
        for (uint32_t lane = 0; lane < lease->lane_count; lane++) {
            const uint32_t in_flight = lease->lanes[lane].in_flight;
            if (in_flight == 0 || (may_queue && in_flight <= depth)) {
                ret_lanes[count++] = open_lane_of(exchange, lease, lane, takes_ns, &usual);
            }
        }
    }
    return count;
}

/* Returned subtasks go to the lanes that finish them first; of equals, to idle lanes, then to lanes
 * that have run longest. They go before queued work, since a subtask lost with its provider has
 * waited long enough. */
void part_place_retries(struct exchange *exchange, struct part *part)
{
    struct job *job = part->job;
    if (job->phase != JOB_PHASE_OPEN || job->is_closing || part->retry_head == NO_SUBTASK ||
        part->lanes == 0) {
        return;
    }
    struct open_lane *lanes = allocate(exchange, part->lanes * sizeof *lanes);
    if (lanes == NULL) {
        return;
    }
    size_t count = find_open_lanes(exchange, part, lanes);
    qsort(lanes, count, sizeof *lanes, compare_open);
    for (size_t i = 0; i < count && exchange->attempt_count < exchange->limits.attempts; i++) {
        if (job_has_juries(job) && !has_choice(exchange, lanes[i].lease)) {
            continue; /* its provider has judged all that waits */
        }
        if (!has_time(exchange, lanes[i].lease) && !renew(exchange, lanes[i].lease)) {
            continue; /* its refill winds it down */
        }
        uint32_t index = part_next_retry(exchange, part, lanes[i].lease->provider);
        if (index == NO_SUBTASK && !job_has_juries(job)) {
            break;
        }
        if (index == NO_SUBTASK) {
            continue;
        }
        dispatch_subtask(exchange, lanes[i].lease, lanes[i].lane, index, true);
    }
    free(lanes);
    part_wants(exchange, part);
    report_job(exchange, job);
}

/* Returns true when the next subtask is chosen before a lane is idle; short subtasks gain nothing
 * and are many. */
static bool is_choosy(const struct lease *lease)
{
    const int64_t takes_ns = lease->mean_ns > 0 ? lease->mean_ns : lease->part->expect_ns;
    return graph_tells_apart(lease->job) && takes_ns >= ONLINE_MOVE_NS;
}

static bool overtakes(const struct job *job, uint32_t index, const struct lane *lane)
{
    return graph_tells_apart(job) && index != NO_SUBTASK && lane->in_flight > 1 &&
           graph_way_ns(job, index) > graph_way_ns(job, lane->last);
}

/* Returns a lane of another lease that is worth waiting for: it finishes the next subtask so much
 * sooner than a lane of this lease, and has nothing queued or less urgent work. NULL: none. */
static const struct open_lane *worth_waiting_for(const struct open_lane *lanes, size_t count,
                                                 const struct lease *lease, uint32_t next)
{
    const uint32_t depth = is_choosy(lease) ? lane_depth(lease) : 1;
    const struct open_lane *first = NULL;
    const struct open_lane *own = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct lane *lane = &lanes[i].lease->lanes[lanes[i].lane];
        if (lanes[i].lease == lease) {
            const bool is_better = own == NULL || compare_open(&lanes[i], own) < 0;
            own = lane->in_flight < depth && is_better ? &lanes[i] : own;
        } else if (lane->in_flight <= 1 || overtakes(lease->job, next, lane)) {
            first = first == NULL || compare_open(&lanes[i], first) < 0 ? &lanes[i] : first;
        }
    }
    const bool is_worth_it = own != NULL && first != NULL && first->is_busy &&
                             first->finish_ns <= own->finish_ns - ONLINE_MOVE_NS;
    return is_worth_it ? first : NULL;
}

/* The choice of a lane matters for like subtasks only at the end, with at most one waiting per
 * lane. */
static bool matters_where(const struct part *part)
{
    const bool is_ranked = graph_tells_apart(part->job) && part->lanes <= PLACED_LANES_MOST;
    const bool is_last = part->waiting <= part->lanes && part->lanes <= LAST_LANES_MOST;
    return !part_is_checks(part) && !job_has_juries(part->job) && (is_last || is_ranked);
}

/* The next subtask goes where it is done first, even behind running work of a faster lane; on the
 * slowest lane it could end long after all others. An idle lane then gets the one after it. */
static void place_next(struct exchange *exchange, struct lease *lease)
{
    const struct part *part = lease->part;
    if (!matters_where(part) || part->lanes == lease->lane_count ||
        (lease_idle_lanes(lease) == 0 && !is_choosy(lease))) {
        return;
    }
    struct open_lane *lanes = allocate(exchange, part->lanes * sizeof *lanes);
    const struct open_lane *first = NULL;
    do {
        const size_t count = lanes == NULL ? 0 : find_open_lanes(exchange, part, lanes);
        first = worth_waiting_for(lanes, count, lease, next_of(part));
        if (first != NULL && exchange->attempt_count < exchange->limits.attempts) {
            dispatch(exchange, first->lease, first->lane,
                     first->lease->lanes[first->lane].in_flight > 1);
        }
    } while (first != NULL && has_choice(exchange, lease) &&
             exchange->attempt_count < exchange->limits.attempts);
    free(lanes);
}

/* The lease has nothing to run. It ends at once when its part's waiting work is for others, or when
 * no more work will come. Otherwise another part of the job may use its slots. */
static void become_useless(struct exchange *exchange, struct lease *lease)
{
    if (lease->live == 0 && (lease->part->waiting > 0 || part_is_over(lease->part))) {
        lease_end(exchange, lease, XEND_RETURNED, true);
        return;
    }
    become_idle(exchange, lease);
    if (lease->live == 0 && lease->job->part_count > 1) {
        job_wants(exchange, lease->job);
    }
}

void lease_refill(struct exchange *exchange, struct lease *lease)
{
    struct job *job = lease->job;
    struct part *part = lease->part;
    if (lease->state != LEASE_ACTIVE || job->phase != JOB_PHASE_OPEN) {
        return;
    }
    if (job->is_closing) {
        if (job->reason == XREASON_EXPIRED) { /* others may have work for a long time */
            become_idle(exchange, lease);
        }
        return;
    }
    if (!has_choice(exchange, lease)) {
        part_help(exchange, lease);
        become_useless(exchange, lease);
        return;
    }
    if (!has_time(exchange, lease) && !renew(exchange, lease)) {
        lease_wind_down(exchange, lease);
        job_check(exchange, job);
        return;
    }
    if (exchange->attempt_count >= exchange->limits.attempts) {
        leases_make_room(exchange);
    }
    place_next(exchange, lease);
    fill_lanes(exchange, lease, lane_depth(lease));
    if (part->retry_head != NO_SUBTASK && list_empty(&part->front)) {
        list_append(&exchange->fronts, &part->front);
    }
    if (!has_choice(exchange, lease)) {
        part_help(exchange, lease); /* it took the last */
    }
    /* The lease ends when attempts are at their limit, and the job tries again. */
    become_idle(exchange, lease);
    part_wants(exchange, part); /* less than before, once nothing waits */
    report_job(exchange, job);
}

/* ---------------------------------------------------------------- attempts that end without a
 * result */

/* Gives an attempt up; a late result is logged, not paid. */
static void attempt_fence(struct exchange *exchange, struct lease *lease, struct attempt *attempt)
{
    assert(!attempt->is_fenced);
    attempt->is_fenced = true;
    lease->lanes[attempt->lane].in_flight--;
    lease->live--;
    touch(exchange, &lease->tracked);
    if (!attempt->is_doubted) {
        job_subtask(exchange, lease->job, attempt->key.index)->live--;
        subtask_changed(exchange, lease->job, attempt->key.index);
    }
}

/* The provider failed the subtask, which goes elsewhere, unless that happened too often. */
static void crash(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct subtask *subtask = job_subtask(exchange, job, index);
    if (subtask->state != SUBTASK_RUNNING) {
        return; /* it goes on without this attempt already */
    }
    if (subtask->attempts >= VANISHED_MOST && !job->is_closing) {
        subtask_decide(exchange, job, index, SUBTASK_FAILED);
    } else {
        job_requeue(exchange, job, index);
    }
}

static void attempt_vanish(struct exchange *exchange, struct lease *lease, struct attempt *attempt)
{
    bool goes_on_without = attempt->is_doubted;
    uint32_t index = attempt->key.index;
    attempt_fence(exchange, lease, attempt);
    if (!goes_on_without && job_subtask(exchange, lease->job, index)->live == 0) {
        crash(exchange, lease->job, index);
    }
}

void attempts_give_up(struct exchange *exchange, struct job *job, uint32_t index)
{
    const uint32_t attempts = job_subtask(exchange, job, index)->attempts;
    for (uint32_t number = 1; number <= attempts; number++) {
        struct attempt *attempt = attempt_of(exchange, job, index, number);
        if (attempt == NULL || attempt->is_fenced) {
            continue;
        }
        struct lease *lease = attempt->lease;
        if (!attempt->is_withdrawn) {
            attempt_withdraw(exchange, attempt);
        }
        attempt_fence(exchange, lease, attempt);
        lease_end_if_failing(exchange, lease);
        if (lease->state == LEASE_ACTIVE) {
            lease_refill_later(exchange, lease);
        }
    }
}

void attempt_missing(struct exchange *exchange, struct lease *lease, struct attempt *attempt)
{
    if (!attempt->is_fenced) {
        attempt_vanish(exchange, lease, attempt);
    }
    attempt_drop(exchange, attempt);
    touch(exchange, &lease->tracked);
}

void lease_suspect(struct exchange *exchange, struct lease *lease)
{
    if (lease->state == LEASE_PROMISED) { /* its slots may be long in coming: it bids elsewhere */
        lease_end(exchange, lease, XEND_RETURNED, false);
        return;
    }
    if (lease->state != LEASE_ACTIVE && lease->state != LEASE_ENDING) {
        return;
    }
    struct job *job = lease->job;
    if (lease->state == LEASE_ACTIVE) {
        lease_move(&lease->state, LEASE_SUSPECT);
        lease->part->lanes -= lease->lane_count;
        lease_expose(exchange, lease);
    }
    touch(exchange, &lease->tracked);
    for (struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        struct subtask *subtask = job_subtask(exchange, job, attempt->key.index);
        bool may_go_on = subtask->state == SUBTASK_RUNNING && subtask->attempts < ATTEMPTS_MOST;
        if (!attempt->is_fenced && !attempt->is_doubted && may_go_on && !job->is_closing) {
            attempt->is_doubted = true;
            subtask->live--;
            subtask_changed(exchange, job, attempt->key.index);
            if (subtask->live == 0) { /* no other attempt is out */
                job_requeue(exchange, job, attempt->key.index);
            }
        }
    }
    report_job(exchange, job);
    job_wants(exchange, job);
}

/* A returned agent is trusted to have its attempts until its statement says otherwise. A subtask
 * that nobody else has started is not started again, since its result may be on its way. */
static void trust_again(struct exchange *exchange, struct lease *lease, struct attempt *attempt)
{
    struct job *job = lease->job;
    struct subtask *subtask = job_subtask(exchange, job, attempt->key.index);
    if (!attempt->is_doubted || attempt->is_fenced || subtask->state != SUBTASK_WAITING ||
        !provider_may_run(exchange, job, attempt->key.index, lease->provider)) {
        return;
    }
    attempt->is_doubted = false;
    check_unqueue(job, attempt->key.index);
    subtask_becomes(exchange, job, attempt->key.index, SUBTASK_RUNNING);
    subtask->live++;
    subtask_changed(exchange, job, attempt->key.index);
}

void lease_returned(struct exchange *exchange, struct lease *lease)
{
    if (lease->state != LEASE_SUSPECT) {
        return;
    }
    for (struct list_link *at = lease->attempts.next;
         at != &lease->attempts && !lease->job->is_closing; at = at->next) {
        trust_again(exchange, lease, LIST_ELEMENT(at, struct attempt, of_lease));
    }
    lease_move(&lease->state, LEASE_ACTIVE);
    lease->part->lanes += lease->lane_count;
    lease_expose(exchange, lease);
    touch(exchange, &lease->tracked);
    report_job(exchange, lease->job);
    job_wants(exchange, lease->job);
    lease_refill_later(exchange, lease);
}

void attempt_withdraw(struct exchange *exchange, struct attempt *attempt)
{
    assert(!attempt->is_withdrawn);
    attempt->is_withdrawn = true;
    touch(exchange, &attempt->lease->tracked);
    work_effect(exchange, attempt->lease, attempt, EFFECT_WITHDRAW);
}

void lease_withdraw_all(struct exchange *exchange, struct lease *lease)
{
    for (struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        if (!attempt->is_fenced && !attempt->is_withdrawn) {
            attempt_withdraw(exchange, attempt);
        }
    }
}

void withdraw_others(struct exchange *exchange, struct job *job, uint32_t index)
{
    uint32_t attempts = job_subtask(exchange, job, index)->attempts;
    for (uint32_t number = 1; number <= attempts; number++) {
        struct attempt *attempt = attempt_of(exchange, job, index, number);
        if (attempt == NULL || attempt->is_fenced || attempt->is_withdrawn) {
            continue; /* it ended, was given up, or knows already */
        }
        attempt_withdraw(exchange, attempt);
    }
}

/* ---------------------------------------------------------------- ending */

/* Stops new work: running attempts may end, and the job buys its lanes elsewhere. */
void lease_wind_down(struct exchange *exchange, struct lease *lease)
{
    if (lease->state != LEASE_ACTIVE && lease->state != LEASE_SUSPECT) {
        return;
    }
    if (lease->live == 0) {
        lease_end(exchange, lease, XEND_TERM, true);
        return;
    }
    if (lease->state == LEASE_ACTIVE) {
        lease->part->lanes -= lease->lane_count;
    }
    lease_move(&lease->state, LEASE_ENDING);
    list_remove(&lease->refill);
    lease_expose(exchange, lease);
    touch(exchange, &lease->tracked);
}

void lease_release_reserve(struct exchange *exchange, struct lease *lease)
{
    int64_t total_micro = 0;
    bool fits = checked_muldiv_floor(lease->price_micro, lease->paid_ns + lease->held_ns,
                                     NS_PER_HOUR, &total_micro);
    assert(fits); /* a longer time at this price fitted */
    (void)fits;
    const int64_t due_micro = lease->held_count == 0 ? 0 : total_micro - lease->charged_micro;
    assert(due_micro >= 0 && due_micro <= lease->reserved_micro);
    lease->job->reserved_micro -= lease->reserved_micro - due_micro;
    lease->reserved_micro = due_micro;
    touch(exchange, &lease->tracked);
    touch(exchange, &lease->job->tracked);
}

static uint8_t why_over(const struct lease *lease)
{
    return lease->is_noticed ? XEND_PREEMPTED : XEND_TERM;
}

/* The promised lease gets the slots first. */
static void free_slots(struct exchange *exchange, struct lease *lease, struct device *device)
{
    struct lease *successor = lease->successor;
    device->leased -= lease->slots;
    lease->successor = NULL;
    if (successor != NULL) {
        lease_begin(exchange, successor, device);
    }
    device_slots_changed(exchange, device);
    device_drop_if_gone(exchange, device);
}

void lease_end(struct exchange *exchange, struct lease *lease, uint8_t reason, bool tell)
{
    struct job *job = lease->job;
    struct device *device = lease->device;
    const bool had_slots = lease->state != LEASE_PROMISED;
    if (lease->state == LEASE_ACTIVE || lease->state == LEASE_PROMISED) {
        lease->part->lanes -= lease->lane_count;
    }
    lease_move(&lease->state, LEASE_ENDED);
    lease_expose(exchange, lease);
    if (lease->former != 0) { /* the former lease still ends, and its slots are free then */
        lease_by_id(exchange, lease->former)->successor = NULL;
        lease->former = 0;
    }
    lease->end_reason = reason;
    lease->ended_ns = exchange->now_ns;
    lease->idle_since_ns = INT64_MAX;
    for (struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        if (!attempt->is_fenced) {
            attempt_vanish(exchange, lease, attempt);
        }
    }
    lease_release_reserve(exchange, lease);
    donation_ended(exchange, lease);
    list_remove(&lease->refill);
    touch(exchange, &lease->tracked);
    touch(exchange, &job->tracked);
    if (tell) {
        lease_effect(exchange, lease, EFFECT_LEASE_END);
    }
    lease->device = NULL;
    list_remove(&lease->of_provider);
    member_by_number(exchange, lease->provider)->provider->lease_count--;
    if (had_slots) {
        free_slots(exchange, lease, device);
    }
    report_job(exchange, job);
    job_wants(exchange, job);
}

void lease_end_if_failing(struct exchange *exchange, struct lease *lease)
{
    if (lease->state != LEASE_ENDED && lease->failures_in_row >= LEASE_FAILURES_MOST) {
        job_avoid(exchange, lease->job, lease->provider, AVOID_NS);
        lease_end(exchange, lease, XEND_FAILED, true);
    } else if (lease->state == LEASE_ENDING && lease->live == 0) {
        lease_end(exchange, lease, why_over(lease), true);
    }
}

void lease_due(struct exchange *exchange, struct lease *lease, int64_t at_ns)
{
    if (lease->state == LEASE_ENDED || lease->state == LEASE_PROMISED) {
        return;
    }
    if (lease_exposed_ns(lease) == at_ns) {
        lease_expose(exchange, lease);
    }
    if (lease_deadline(lease) > at_ns) {
        lease_arm(exchange, lease);
        return;
    }
    bool is_over = at_ns >= lease->term_end_ns + grace_ns(lease);
    lease_end(exchange, lease, is_over ? why_over(lease) : XEND_RETURNED, true);
    job_check(exchange, lease->job);
}

void lease_forget(struct exchange *exchange, struct lease *lease)
{
    assert(lease->state == LEASE_ENDED);
    while (!list_empty(&lease->attempts)) {
        attempt_drop(exchange, LIST_ELEMENT(lease->attempts.next, struct attempt, of_lease));
    }
    table_remove(&exchange->leases, &lease->id);
    list_remove(&lease->of_job);
    list_remove(&lease->refill);
    list_remove(&lease->exposing);
    exchange->lease_count--;
    untrack(exchange, &lease->tracked);
    free(lease->lanes);
    free(lease);
}

/* Ended leases are kept for reports and late results, but make room for new ones. The oldest jobs
 * lose their ended leases first. */
void leases_make_room(struct exchange *exchange)
{
    uint32_t left = ENDED_LEASES_FORGOTTEN;
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, all);
        for (struct list_link *link = job->leases.next; link != &job->leases;) {
            struct lease *lease = LIST_ELEMENT(link, struct lease, of_job);
            link = link->next;
            if (lease->state == LEASE_ENDED && lease->held_count == 0) {
                lease_forget(exchange, lease);
                if (--left == 0) {
                    return;
                }
            }
        }
    }
}
