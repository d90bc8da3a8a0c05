/* The timers are a binary heap ordered by time, kind and key.
 *
 * An entry may be stale. A woken job, ask or lease acts only when its own deadline is the entry's
 * time. Otherwise it sets a new entry for a later deadline. So no entry need be removed, deadlines
 * of one step fire in their true order, and snapshots leave the heap out. Stale entries are dropped
 * when they may be more than half of the heap; the cost depends on the heap, not on the market. */
#include "exchange/state.h"

#include <stdlib.h>
#include <string.h>

enum { WEED_LEAST = 1024 };

static int compare(const struct timer *a, const struct timer *b)
{
    if (a->at_ns != b->at_ns) {
        return a->at_ns < b->at_ns ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return memcmp(a->key.bytes, b->key.bytes, sizeof a->key.bytes);
}

static void swap(struct timer *a, struct timer *b)
{
    struct timer keep = *a;
    *a = *b;
    *b = keep;
}

void timer_arm(struct exchange *exchange, enum timer_kind kind, const struct id128 *key,
               int64_t at_ns)
{
    if (exchange->timer_count == exchange->timer_capacity) {
        size_t capacity = exchange->timer_capacity == 0 ? 64 : 2 * exchange->timer_capacity;
        struct timer *timers = realloc(exchange->timers, capacity * sizeof *timers);
        if (timers == NULL) {
            exchange->is_out_of_memory = true;
            return;
        }
        exchange->timers = timers;
        exchange->timer_capacity = capacity;
    }
    size_t at = exchange->timer_count++;
    exchange->timers[at] = (struct timer){.at_ns = at_ns, .kind = (uint8_t)kind, .key = *key};
    while (at > 0 && compare(&exchange->timers[at], &exchange->timers[(at - 1) / 2]) < 0) {
        swap(&exchange->timers[at], &exchange->timers[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static struct timer pop(struct exchange *exchange)
{
    struct timer first = exchange->timers[0];
    exchange->timers[0] = exchange->timers[--exchange->timer_count];
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < exchange->timer_count;
             child++) {
            least = compare(&exchange->timers[child], &exchange->timers[least]) < 0 ? child : least;
        }
        if (least == at) {
            return first;
        }
        swap(&exchange->timers[at], &exchange->timers[least]);
        at = least;
    }
}

struct id128 timer_key_of_lease(uint64_t lease)
{
    struct id128 key = {0};
    for (size_t i = 0; i < 8; i++) {
        key.bytes[i] = (uint8_t)(lease >> (56 - 8 * i)); /* big endian: memcmp orders by number */
    }
    return key;
}

static uint64_t lease_of_timer_key(const struct id128 *key)
{
    uint64_t lease = 0;
    for (size_t i = 0; i < 8; i++) {
        lease = lease << 8 | key->bytes[i];
    }
    return lease;
}

static void fire_job(struct exchange *exchange, struct job *job, int64_t at_ns)
{
    if (job->phase != JOB_PHASE_OPEN) {
        return;
    }
    if (job->is_closing) {
        if (job->closing_ns == at_ns) {
            job_settle(exchange, job);
        }
        return;
    }
    if (job->good_till_ns == at_ns) {
        job_expire(exchange, job);
        return;
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        part_stragglers_due(exchange, &job->parts[i], at_ns);
    }
    if (job_has_juries(job)) {
        juries_due(exchange, job, at_ns);
        job_check(exchange, job);
    }
    for (uint32_t i = 0; job->phase == JOB_PHASE_OPEN && i < job->avoided_count; i++) {
        if (job->avoided[i].until_ns == at_ns) { /* the provider may serve it again */
            job_wants(exchange, job);
            return;
        }
    }
}

static void fire(struct exchange *exchange, const struct timer *timer)
{
    if (timer->kind == TIMER_LEASE) {
        struct lease *lease = lease_by_id(exchange, lease_of_timer_key(&timer->key));
        if (lease != NULL) {
            lease_due(exchange, lease, timer->at_ns);
        }
    } else if (timer->kind == TIMER_ASK) {
        struct ask *ask = table_find(&exchange->asks, &timer->key);
        if (ask != NULL && ask->good_till_ns == timer->at_ns) {
            ask_cancel(exchange, ask, CANCEL_EXPIRED);
        } else if (ask != NULL && ask->turns_ns == timer->at_ns) {
            ask_turn(exchange, ask);
        }
    } else {
        struct job *job = table_find(&exchange->jobs, &timer->key);
        if (job != NULL) {
            fire_job(exchange, job, timer->at_ns);
        }
    }
}

void timers_arm_job(struct exchange *exchange, const struct job *job)
{
    if (job->is_closing && job->closing_ns != INT64_MAX) {
        timer_arm(exchange, TIMER_JOB, &job->id, job->closing_ns);
    }
    if (!job->is_closing && job->good_till_ns != 0) {
        timer_arm(exchange, TIMER_JOB, &job->id, job->good_till_ns);
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        if (job->parts[i].straggler_ns != INT64_MAX) {
            timer_arm(exchange, TIMER_JOB, &job->id, job->parts[i].straggler_ns);
        }
    }
    for (uint32_t i = 0; i < job->avoided_count; i++) {
        if (job->avoided[i].until_ns > exchange->now_ns) {
            timer_arm(exchange, TIMER_JOB, &job->id, job->avoided[i].until_ns);
        }
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->state != LEASE_ENDED) {
            lease_arm(exchange, lease);
        }
    }
}

/* Returns true when the job still waits for that time. */
static bool job_awaits(const struct exchange *exchange, const struct job *job, int64_t at_ns)
{
    if (job->phase != JOB_PHASE_OPEN) {
        return false;
    }
    bool awaits = job->is_closing ? job->closing_ns == at_ns : job->good_till_ns == at_ns;
    for (uint32_t i = 0; i < job->part_count; i++) {
        awaits = awaits || job->parts[i].straggler_ns == at_ns;
    }
    for (uint32_t i = 0; i < job->avoided_count; i++) {
        awaits = awaits || (job->avoided[i].until_ns == at_ns && at_ns > exchange->now_ns);
    }
    return awaits || juries_await(job, at_ns);
}

/* An entry of a lease may be early because the deadline has moved; the entry moves along. */
static bool stands(const struct exchange *exchange, struct timer *timer)
{
    if (timer->kind == TIMER_LEASE) {
        const struct lease *lease = lease_by_id(exchange, lease_of_timer_key(&timer->key));
        if (lease == NULL || lease->state == LEASE_ENDED || lease->state == LEASE_PROMISED) {
            return false;
        }
        const bool is_exposure =
            timer->at_ns == lease_exposed_ns(lease) && timer->at_ns > exchange->now_ns;
        timer->at_ns = is_exposure ? timer->at_ns : lease_deadline(lease);
        return true;
    }
    if (timer->kind == TIMER_ASK) {
        const struct ask *ask = table_find(&exchange->asks, &timer->key);
        return ask != NULL && (ask->good_till_ns == timer->at_ns || ask->turns_ns == timer->at_ns);
    }
    const struct job *job = table_find(&exchange->jobs, &timer->key);
    return job != NULL && job_awaits(exchange, job, timer->at_ns);
}

static int compare_timers(const void *left, const void *right)
{
    return compare(left, right);
}

/* Everything due has fired, so remaining entries lie ahead. A sorted array is a heap. */
void timers_weed(struct exchange *exchange)
{
    if (exchange->timer_count < WEED_LEAST || exchange->timer_count < exchange->timer_rebuild_at) {
        return;
    }
    struct timer *timers = exchange->timers;
    size_t standing = 0;
    size_t kept = 0;
    for (size_t i = 0; i < exchange->timer_count; i++) {
        if (stands(exchange, &timers[i])) {
            timers[standing++] = timers[i];
        }
    }
    qsort(timers, standing, sizeof *timers, compare_timers);
    for (size_t i = 0; i < standing; i++) {
        if (i == 0 || compare(&timers[i], &timers[kept - 1]) != 0) {
            timers[kept++] = timers[i];
        }
    }
    exchange->timer_count = kept;
    exchange->timer_rebuild_at = 2 * kept;
}

void timers_fire(struct exchange *exchange)
{
    while (exchange->timer_count > 0 && exchange->timers[0].at_ns <= exchange->now_ns) {
        struct timer timer = pop(exchange);
        fire(exchange, &timer);
    }
}

int64_t exchange_next_deadline_ns(const struct exchange *exchange)
{
    return exchange->timer_count > 0 ? exchange->timers[0].at_ns : INT64_MAX;
}

size_t exchange_timer_count(const struct exchange *exchange)
{
    return exchange->timer_count;
}
