/* The ladder against a slow, obvious one: an array of orders, searched for every question. After
 * every step the ladder that changed is sound; every 64 steps all orders of all ladders come in the
 * order of the slow one, forwards and backwards. */
#include "base/random.h"
#include "matching/ladder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { ORDERS = 300, LADDERS = 3, STEPS = 3000, SEEDS = 40 };

struct slow_order {
    bool is_in;
    uint32_t ladder;
    uint64_t key, sequence;
};

static bool precedes(const struct slow_order *a, const struct slow_order *b)
{
    return a->key != b->key ? a->key < b->key : a->sequence < b->sequence;
}

/* The best of a ladder that comes after `than`; NULL: the best of all. */
static uint32_t slow_after(const struct slow_order *orders, uint32_t ladder,
                           const struct slow_order *than)
{
    uint32_t best = LADDER_NONE;
    for (uint32_t i = 0; i < ORDERS; i++) {
        const struct slow_order *order = &orders[i];
        if (order->is_in && order->ladder == ladder && (than == NULL || precedes(than, order)) &&
            (best == LADDER_NONE || precedes(order, &orders[best]))) {
            best = i;
        }
    }
    return best;
}

/* Keys of one place, of one block, of a few thousand, of a million, of all, and the ends of all. */
static uint64_t draw_key(struct random *random, uint64_t kind)
{
    switch (kind) {
    case 0:
        return 77;
    case 1:
        return 6400 + random_below(random, 64);
    case 2:
        return 1000000 + random_below(random, 3000);
    case 3:
        return random_below(random, 1000000) * 4096;
    case 4:
        return random_u64(random);
    default:
        return random_below(random, 2) == 0 ? random_below(random, 3)
                                            : UINT64_MAX - random_below(random, 3);
    }
}

static void compare(const struct ladder_pool *pool, const struct ladder *ladders,
                    const struct slow_order *orders)
{
    for (uint32_t i = 0; i < LADDERS; i++) {
        ck_assert(ladder_is_sound(pool, &ladders[i]));
        uint32_t want = slow_after(orders, i, NULL);
        uint32_t have = ladders[i].first;
        uint32_t before = LADDER_NONE;
        while (want != LADDER_NONE) {
            ck_assert_uint_eq(have, want);
            ck_assert_uint_eq(ladder_previous(pool, &ladders[i], have), before);
            before = have;
            want = slow_after(orders, i, &orders[want]);
            have = ladder_next(pool, &ladders[i], have);
        }
        ck_assert_uint_eq(have, LADDER_NONE);
    }
}

START_TEST(orders_come_by_key_and_sequence)
{
    struct random random = random_seeded((uint64_t)_i + 1);
    struct ladder_pool owned;
    struct ladder_pool *pool = &owned;
    ck_assert(ladder_pool_init(pool, ORDERS / 2));
    ck_assert(ladder_pool_grow(pool, ORDERS));
    struct ladder ladders[LADDERS] = {LADDER_EMPTY, LADDER_EMPTY, LADDER_EMPTY};
    struct slow_order orders[ORDERS] = {0};
    uint64_t sequence = 1000000;
    for (int step = 0; step < STEPS; step++) {
        uint32_t handle = (uint32_t)random_below(&random, ORDERS);
        struct slow_order *order = &orders[handle];
        bool grows = step % 1000 < 600; /* now it fills, now it empties */
        if (order->is_in) {
            if (!grows || random_below(&random, 4) == 0) {
                ladder_remove(pool, &ladders[order->ladder], handle);
                order->is_in = false;
            }
        } else if (grows || random_below(&random, 8) == 0) {
            *order = (struct slow_order){
                .is_in = true,
                .ladder = (uint32_t)random_below(&random, LADDERS),
                .key = draw_key(&random, random_below(&random, 6)),
                /* Most are new; some come back with the sequence that they had. */
                .sequence = ++sequence - (random_below(&random, 8) == 0 ? 500000 : 0),
            };
            pool->orders[handle].sequence = order->sequence;
            ladder_insert(pool, &ladders[order->ladder], handle, order->key);
            ck_assert_uint_eq(ladder_key(pool, handle), order->key);
        }
        ck_assert(ladder_is_sound(pool, &ladders[order->ladder]));
        if (step % 64 == 0) {
            compare(pool, ladders, orders);
        }
    }
    for (uint32_t i = 0; i < ORDERS; i++) {
        if (orders[i].is_in) {
            ladder_remove(pool, &ladders[orders[i].ladder], i);
            orders[i].is_in = false;
        }
    }
    compare(pool, ladders, orders);
    ck_assert_uint_eq(pool->blocks_used, 0);
    ck_assert_uint_eq(pool->nodes_used, 0);
    ladder_pool_fini(pool);
}
END_TEST

/* The most blocks that there can be: every order far from any other. */
START_TEST(as_many_blocks_as_orders)
{
    struct ladder_pool owned;
    struct ladder_pool *pool = &owned;
    ck_assert(ladder_pool_init(pool, ORDERS));
    struct ladder ladder = LADDER_EMPTY;
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < ORDERS; i++) {
            pool->orders[i].sequence = i;
            ladder_insert(pool, &ladder, i, (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15));
        }
        ck_assert_uint_eq(pool->blocks_used, ORDERS);
        ck_assert(ladder_is_sound(pool, &ladder));
        for (uint32_t i = 0; i < ORDERS; i++) {
            ladder_remove(pool, &ladder, i);
        }
        ck_assert(ladder_is_empty(&ladder));
    }
    ladder_pool_fini(pool);
}
END_TEST

SUITE("prop_ladder", NULL, NULL, LOOP(orders_come_by_key_and_sequence, 0, SEEDS),
      TEST(as_many_blocks_as_orders))
