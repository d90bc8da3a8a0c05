/* The timers are a binary heap ordered by time, kind and key.
 *
 * An entry may be stale. A woken job, ask or lease acts only when its own deadline is the entry's
 * time. Otherwise it sets a new entry for a later deadline. So no entry need be removed, deadlines
 * of one step fire in their true order, and snapshots leave the heap out. Stale entries are dropped
 * when they may be more than half of the heap; the cost depends on the heap, not on the market. */
#include "exchange/state/timers.h"

#include <stdlib.h>
#include <string.h>

int timer_compare(const struct timer *a, const struct timer *b)
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
    while (at > 0 && timer_compare(&exchange->timers[at], &exchange->timers[(at - 1) / 2]) < 0) {
        swap(&exchange->timers[at], &exchange->timers[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

struct timer timer_pop(struct exchange *exchange)
{
    struct timer first = exchange->timers[0];
    exchange->timers[0] = exchange->timers[--exchange->timer_count];
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < exchange->timer_count;
             child++) {
            least = timer_compare(&exchange->timers[child], &exchange->timers[least]) < 0 ? child
                                                                                          : least;
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

uint64_t timer_lease_of_key(const struct id128 *key)
{
    uint64_t lease = 0;
    for (size_t i = 0; i < 8; i++) {
        lease = lease << 8 | key->bytes[i];
    }
    return lease;
}

int64_t exchange_next_deadline_ns(const struct exchange *exchange)
{
    return exchange->timer_count > 0 ? exchange->timers[0].at_ns : INT64_MAX;
}
