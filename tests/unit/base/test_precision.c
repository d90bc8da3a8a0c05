/* The tests ask whether a product shows that its factors had been rounded to fewer bits. */
#include "base/precision.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = PRECISION_SIDE, INNER = 600 };

static float a[INNER][SIDE], b[INNER][SIDE], found[SIDE][SIDE];
static struct random dice;

static float cut(float value, unsigned dropped, bool is_nearest)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits += is_nearest ? UINT32_C(1) << (dropped - 1) : 0;
    bits &= UINT32_MAX << dropped;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float drawn(void)
{
    return (float)random_below(&dice, 1 << 24) * 0x1p-23F - 1;
}

static void draw(void)
{
    for (size_t k = 0; k < INNER; k++) {
        for (size_t s = 0; s < SIDE; s++) {
            a[k][s] = drawn();
            b[k][s] = drawn();
        }
    }
}

/* Term by term in float32, of factors without so many bits; 0: of all. */
static void multiply(unsigned a_dropped, unsigned b_dropped, bool is_nearest)
{
    for (size_t i = 0; i < SIDE; i++) {
        for (size_t j = 0; j < SIDE; j++) {
            float sum = 0;
            for (size_t k = 0; k < INNER; k++) {
                sum += (a_dropped > 0 ? cut(a[k][i], a_dropped, is_nearest) : a[k][i]) *
                       (b_dropped > 0 ? cut(b[k][j], b_dropped, is_nearest) : b[k][j]);
            }
            found[i][j] = sum;
        }
    }
}

static enum precision judged(void)
{
    struct precision_sample *sample = calloc(1, sizeof *sample);
    ck_assert_ptr_nonnull(sample);
    for (size_t k = 0; k < INNER; k++) {
        precision_add(sample, a[k], b[k]);
    }
    enum precision precision = precision_judge(sample, found);
    free(sample);
    return precision;
}

static void set_up(void)
{
    dice = random_seeded(7);
    draw();
}

START_TEST(rounded_factors_show)
{
    static const unsigned dropped[] = {16, 13};
    for (size_t d = 0; d < 2; d++) {
        for (int nearest = 0; nearest < 2; nearest++) {
            multiply(dropped[d], dropped[d], nearest == 1);
            ck_assert_msg(judged() == PRECISION_REDUCED, "%u bits fewer, %d", dropped[d], nearest);
        }
    }
}
END_TEST

START_TEST(honest_sums_do_not)
{
    for (int round = 0; round < 40; round++) {
        draw();
        multiply(0, 0, false);
        ck_assert_int_eq(judged(), PRECISION_FULL);
    }
}
END_TEST

/* The first two terms cancel in the end; until then the sums are so large that they round each term
 * as bfloat16 would. */
START_TEST(honest_sums_that_round_in_the_same_places_are_not_accused)
{
    for (size_t k = 0; k < INNER; k++) {
        for (size_t s = 0; s < SIDE; s++) {
            a[k][s] = k == 0 ? 0x1p17F : k + 1 == INNER ? -0x1p17F : a[k][s];
            b[k][s] = k == 0 || k + 1 == INNER ? 1 : random_below(&dice, 2) == 0 ? -1 : 1;
        }
    }
    multiply(0, 0, false);
    ck_assert_int_ne(judged(), PRECISION_REDUCED);
    multiply(16, 16, true); /* nothing tells the two apart */
    ck_assert_int_ne(judged(), PRECISION_REDUCED);
}
END_TEST

START_TEST(rows_that_are_alike_are_one_row)
{
    for (size_t k = 0; k < INNER; k++) {
        for (size_t s = 1; s < SIDE; s++) {
            a[k][s] = a[k][0];
        }
    }
    multiply(0, 0, false);
    ck_assert_int_eq(judged(), PRECISION_FULL);
    for (size_t k = 0; k < INNER; k++) {
        for (size_t s = 0; s < SIDE; s++) {
            a[k][s] = 0.1F;
            b[k][s] = 0.3F;
        }
    }
    multiply(0, 0, false);
    ck_assert_int_eq(judged(), PRECISION_FULL);
}
END_TEST

START_TEST(what_has_no_more_bits_loses_none)
{
    for (size_t k = 0; k < INNER; k++) {
        for (size_t s = 0; s < SIDE; s++) {
            a[k][s] = (float)random_below(&dice, 200) - 100;
            b[k][s] = (float)random_below(&dice, 200) - 100;
        }
    }
    multiply(16, 16, true);
    ck_assert_int_eq(judged(), PRECISION_FULL);
    memset(a, 0, sizeof a);
    multiply(0, 0, true);
    ck_assert_int_eq(judged(), PRECISION_FULL);
}
END_TEST

START_TEST(where_one_factor_alone_can_show_it_there_is_doubt)
{
    for (size_t k = 0; k < INNER; k++) {
        for (size_t s = 0; s < SIDE; s++) {
            a[k][s] = (float)random_below(&dice, 200) - 100;
        }
    }
    multiply(16, 16, true);
    ck_assert_int_eq(judged(), PRECISION_DOUBTFUL);
}
END_TEST

SUITE("precision", set_up, NULL, TEST(rounded_factors_show), TEST(honest_sums_do_not),
      TEST(honest_sums_that_round_in_the_same_places_are_not_accused),
      TEST(rows_that_are_alike_are_one_row), TEST(what_has_no_more_bits_loses_none),
      TEST(where_one_factor_alone_can_show_it_there_is_doubt))
