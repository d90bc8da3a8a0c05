/* Gaps against a list of what was put, looked through from its beginning. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "planner/schedule/slots.h"
#include "tests/support/suite.h"

enum { MANY = 3000, SEEDS = 6 };

START_TEST(what_fits_goes_into_the_first_gap)
{
    CLEANUP(slots_destroy) struct slots *slots = slots_create(2, 10);
    ck_assert_double_eq(slots_find(slots, 0, 3, 4), 3);
    slots_take(slots, 0, 3, 4);  /* 3 to 7 */
    slots_take(slots, 0, 10, 2); /* 10 to 12 */

    ck_assert_double_eq(slots_find(slots, 0, 0, 3), 0);
    ck_assert_double_eq(slots_find(slots, 0, 1, 3), 7);
    ck_assert_double_eq(slots_find(slots, 0, 0, 3.5), 12);
    ck_assert_double_eq(slots_find(slots, 0, 8, 2), 8);
    ck_assert_double_eq(slots_find(slots, 0, 8.5, 2), 12);
    ck_assert_double_eq(slots_find(slots, 1, 0, 100), 0);
    slots_take(slots, 0, 7, 3); /* fills a gap whole */
    ck_assert_double_eq(slots_find(slots, 0, 7, 1), 12);
    slots_clear(slots);
    ck_assert_double_eq(slots_find(slots, 0, 0, 100), 0);
}
END_TEST

struct taken {
    double start, finish;
};

static double slow_find(const struct taken *taken, size_t count, double ready, double length)
{
    double start = ready;
    for (size_t i = 0; i < count; i++) {
        if (taken[i].finish > start) {
            if (start + length <= taken[i].start) {
                return start;
            }
            start = fmax(start, taken[i].finish);
        }
    }
    return start;
}

START_TEST(the_first_gap_is_what_a_look_at_all_of_them_finds)
{
    struct random dice = random_seeded((uint64_t)_i);
    CLEANUP(slots_destroy) struct slots *slots = slots_create(1, MANY);
    static struct taken taken[MANY];
    uint64_t spread = 10 + random_below(&dice, 20000);
    for (size_t i = 0; i < MANY; i++) {
        double ready = (double)random_below(&dice, spread);
        double length = (double)(1 + random_below(&dice, 8)) / 4;
        double start = slots_find(slots, 0, ready, length);
        ck_assert_double_eq(start, slow_find(taken, i, ready, length));
        slots_take(slots, 0, start, length);
        size_t at = i;
        while (at > 0 && taken[at - 1].start > start) {
            taken[at] = taken[at - 1];
            at--;
        }
        taken[at] = (struct taken){start, start + length};
    }
}
END_TEST

SUITE("slots", NULL, NULL, TEST(what_fits_goes_into_the_first_gap),
      LOOP(the_first_gap_is_what_a_look_at_all_of_them_finds, 0, 6))
