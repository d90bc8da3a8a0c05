/* The tests compare which handles have an order with a plain array. */
#include "matching/resting.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { HANDLES = 20000 };

static bool rests[2 * HANDLES];

static void check_walk(const struct resting *resting, uint32_t capacity)
{
    uint32_t at = resting_next(resting, 0);
    for (uint32_t handle = 0; handle < capacity; handle++) {
        if (rests[handle]) {
            ck_assert_uint_eq(at, handle);
            at = resting_next(resting, handle + 1);
        }
    }
    ck_assert_uint_eq(at, RESTING_NONE);
    ck_assert_uint_eq(resting_next(resting, capacity), RESTING_NONE);
    ck_assert_uint_eq(resting_next(resting, RESTING_NONE), RESTING_NONE);
}

static void change(struct resting *resting, struct random *dice, uint32_t capacity, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t handle = (uint32_t)random_below(dice, capacity);
        rests[handle] = !rests[handle];
        if (rests[handle]) {
            resting_set(resting, handle);
        } else {
            resting_clear(resting, handle);
        }
    }
}

START_TEST(a_walk_meets_what_rests_and_nothing_else)
{
    struct resting resting = {0};
    struct random dice = random_seeded(1);
    memset(rests, 0, sizeof rests);
    check_walk(&resting, 0);
    ck_assert(resting_grow(&resting, HANDLES));
    for (uint32_t count = 0; count < 4000; count = 3 * count + 1) {
        change(&resting, &dice, HANDLES, count);
        check_walk(&resting, HANDLES);
    }
    ck_assert(resting_grow(&resting, 2 * HANDLES));
    ck_assert(resting_grow(&resting, 1)); /* never fewer */
    check_walk(&resting, 2 * HANDLES);
    change(&resting, &dice, 2 * HANDLES, 4000);
    check_walk(&resting, 2 * HANDLES);
    resting_fini(&resting);
}
END_TEST

SUITE("resting", NULL, NULL, TEST(a_walk_meets_what_rests_and_nothing_else))
