/* The tests ask what a residual says of a row of a product: right, doubtful, wrong. */
#include "base/residual.h"
#include "tests/support/suite.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A row whose entries, partial sums included, add up to `reach`, and whose product is `columns`
 * times `entry`. */
static struct residual_bounds bounds_of(uint64_t inner, uint64_t columns, double reach,
                                        double entry)
{
    const struct residual_row row = {.inner = inner,
                                     .columns = columns,
                                     .reach = reach,
                                     .magnitude = (double)columns * fabs(entry),
                                     .squares = (double)columns * entry * entry};
    return residual_bounds(&row);
}

START_TEST(the_bounds_are_those_that_were_promised)
{
    const double u = 0x1p-24;
    struct residual_bounds bounds = bounds_of(100, 16, 1000, 3);
    /* ||C_i|| = 3 * 4 */
    ck_assert_double_eq_tol(bounds.right, (8 * u * 10 + 24 * u) * 12, 1e-15);
    ck_assert(bounds.wrong > 100 * u / (1 - 100 * u) * 1000);
    ck_assert(bounds.wrong < 100 * u / (1 - 100 * u) * 1000 * (1 + 1e-5));
}
END_TEST

START_TEST(between_the_bounds_nobody_is_accused)
{
    struct residual_bounds bounds = bounds_of(100, 16, 1000, 3);
    ck_assert(bounds.right < bounds.wrong);
    ck_assert_int_eq(residual_judge(&bounds, 0), RESIDUAL_RIGHT);
    ck_assert_int_eq(residual_judge(&bounds, bounds.right), RESIDUAL_RIGHT);
    ck_assert_int_eq(residual_judge(&bounds, nextafter(bounds.right, 1)), RESIDUAL_DOUBTFUL);
    ck_assert_int_eq(residual_judge(&bounds, bounds.wrong), RESIDUAL_DOUBTFUL);
    ck_assert_int_eq(residual_judge(&bounds, nextafter(bounds.wrong, 1)), RESIDUAL_WRONG);
    ck_assert_int_eq(residual_judge(&bounds, INFINITY), RESIDUAL_WRONG);
    ck_assert_int_eq(residual_judge(&bounds, NAN), RESIDUAL_WRONG);
}
END_TEST

START_TEST(what_is_usual_is_right_even_beyond_what_rounding_can_do)
{
    /* One term: no rounding is further off than u, and the generous bound is wider. */
    struct residual_bounds bounds = bounds_of(1, 1, 1, 1);
    ck_assert(bounds.right > bounds.wrong);
    ck_assert_int_eq(residual_judge(&bounds, bounds.right), RESIDUAL_RIGHT);
    ck_assert_int_eq(residual_judge(&bounds, 2 * bounds.right), RESIDUAL_WRONG);
}
END_TEST

START_TEST(empty_rows_tiny_entries_and_endless_sums_are_judged_too)
{
    struct residual_bounds nothing = bounds_of(0, 0, 0, 0);
    ck_assert_int_eq(residual_judge(&nothing, 0), RESIDUAL_RIGHT);
    struct residual_bounds tiny = bounds_of(10, 4, 0, 0); /* products that became zero */
    ck_assert_int_eq(residual_judge(&tiny, 40 * (double)FLT_TRUE_MIN), RESIDUAL_DOUBTFUL);
    struct residual_bounds endless = bounds_of(UINT64_C(1) << 40, 4, 1, 1);
    ck_assert(isinf(endless.wrong)); /* so many terms may add up to anything */
    ck_assert_int_eq(residual_judge(&endless, 1e300), RESIDUAL_DOUBTFUL);
}
END_TEST

/* A sum in float32, term by term, beside the exact one: the worst that was seen is within the
 * bound. */
START_TEST(no_honest_sum_is_wrong)
{
    uint64_t state = 88172645463325252U;
    for (int round = 0; round < 2000; round++) {
        enum { INNER = 300 };
        float sum = 0;
        double exact = 0;
        double reach = 0;
        for (int k = 0; k < INNER; k++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            float a = (float)((int64_t)(state % 2000001) - 1000000) * 1e-6F;
            float b = k % 2 == 0 ? 1.0F : (round % 3 == 0 ? -1.0F : 1e3F); /* also what cancels */
            sum += a * b;
            exact += (double)a * (double)b;
            reach += fabs((double)a * (double)b);
        }
        struct residual_bounds bounds = bounds_of(INNER, 1, reach, (double)sum);
        ck_assert_int_ne(residual_judge(&bounds, fabs((double)sum - exact)), RESIDUAL_WRONG);
    }
}
END_TEST

/* ---------------------------------------------------------------- entries */

__extension__ typedef __float128 quad; /* sums of these terms are exact in it */

enum { TERMS = 90 };
static const double unit = 0x1p-24;

static uint64_t draw(uint64_t below)
{
    static uint64_t state = 88172645463325252U;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

struct terms {
    float a[TERMS], b[TERMS];
    double plus, minus; /* as the code under test adds them up */
    quad exact, reach;
};

static void add_up(struct terms *terms)
{
    terms->plus = terms->minus = 0;
    terms->exact = terms->reach = 0;
    for (size_t k = 0; k < TERMS; k++) {
        quad term = (quad)terms->a[k] * (quad)terms->b[k];
        residual_add_terms(terms->a[k], &terms->b[k], 1, &terms->plus, &terms->minus);
        terms->exact += term;
        terms->reach += term < 0 ? -term : term;
    }
}

/* Draws terms of one scale, of many, or such that most of them cancel. */
static void draw_terms(struct terms *terms, unsigned kind)
{
    for (size_t k = 0; k < TERMS; k++) {
        int spread = kind == 0 ? 0 : (int)draw(20) - 10;
        terms->a[k] = ldexpf((float)draw(1U << 24) - 0x1p23F, spread - 23);
        terms->b[k] = ldexpf((float)draw(1U << 24) - 0x1p23F, -spread / 2 - 23);
        if (kind == 2 && k % 2 == 1) {
            terms->a[k] = -terms->a[k - 1] * (1 + (float)draw(4) * 0x1p-23F);
            terms->b[k] = terms->b[k - 1];
        }
    }
    add_up(terms);
}

/* Sums in another order each time, with and without fused multiplication, and by parts. */
static float summed(const struct terms *terms)
{
    size_t order[TERMS];
    float parts[8] = {0};
    const size_t count = 1 + draw(8);
    const bool fused = draw(2) == 0;
    for (size_t k = 0; k < TERMS; k++) {
        size_t other = draw(k + 1);
        order[k] = k;
        order[k] = order[other];
        order[other] = k;
    }
    for (size_t k = 0; k < TERMS; k++) {
        const float x = terms->a[order[k]];
        const float y = terms->b[order[k]];
        float *part = &parts[k % count];
        *part = fused ? fmaf(x, y, *part) : *part + x * y;
    }
    float sum = parts[0];
    for (size_t i = 1; i < count; i++) {
        sum += parts[i];
    }
    return sum;
}

START_TEST(no_order_of_summation_makes_an_entry_wrong_and_nearly_all_are_right)
{
    for (unsigned round = 0; round < 6000; round++) {
        struct terms terms;
        draw_terms(&terms, round % 3);
        float sum = summed(&terms);
        ck_assert_int_eq(residual_judge_entry(TERMS, terms.plus, terms.minus, sum), RESIDUAL_RIGHT);
    }
}
END_TEST

/* Against the bounds themselves, from exact sums. */
START_TEST(an_entry_is_judged_by_the_bounds_that_were_promised)
{
    const quad gamma = (quad)(TERMS * unit) / (1 - (quad)(TERMS * unit));
    const quad usual = (quad)8 * (quad)sqrt(TERMS) * unit;
    ck_assert(usual < gamma); /* so that there is something between them */
    unsigned counts[3] = {0};
    for (unsigned round = 0; round < 6000; round++) {
        struct terms terms;
        draw_terms(&terms, round % 3);
        const quad part = (quad)draw(2000) / 1000 * gamma;
        const quad wished = terms.exact + (draw(2) == 0 ? part : -part) * terms.reach;
        const float found = (float)wished;
        const quad off =
            ((quad)found > terms.exact ? (quad)found - terms.exact : terms.exact - (quad)found) /
            terms.reach;
        enum residual verdict = residual_judge_entry(TERMS, terms.plus, terms.minus, found);
        counts[verdict]++;
        if (off > gamma * (1 + 1e-6)) {
            ck_assert_int_eq(verdict, RESIDUAL_WRONG);
        } else if (off > usual * (1 + 1e-6) && off < gamma) {
            ck_assert_int_eq(verdict, RESIDUAL_DOUBTFUL);
        } else if (off < usual) {
            ck_assert_int_eq(verdict, RESIDUAL_RIGHT);
        }
    }
    ck_assert_uint_gt(counts[RESIDUAL_RIGHT], 1000);
    ck_assert_uint_gt(counts[RESIDUAL_DOUBTFUL], 100);
    ck_assert_uint_gt(counts[RESIDUAL_WRONG], 1000);
}
END_TEST

static enum residual judged(const float *a, const float *b, size_t count, float found)
{
    double plus = 0;
    double minus = 0;
    for (size_t k = 0; k < count; k++) {
        residual_add_terms(a[k], &b[k], 1, &plus, &minus);
    }
    return residual_judge_entry(count, plus, minus, found);
}

START_TEST(what_is_tiny_is_rounded_there_or_taken_for_zero)
{
    float a[1000];
    float b[1000];
    float sum = 0;
    for (size_t k = 0; k < 1000; k++) {
        a[k] = 1e-25F;
        b[k] = 1e-18F * (1 + (float)k / 1000);
        sum += a[k] * b[k];
    }
    ck_assert(sum > 0);
    ck_assert_int_eq(judged(a, b, 1000, sum), RESIDUAL_RIGHT);
    ck_assert_int_eq(judged(a, b, 1000, 0), RESIDUAL_DOUBTFUL); /* as some processors do it */
    ck_assert_int_eq(judged(a, b, 1000, 2002 * FLT_MIN), RESIDUAL_WRONG);
    for (size_t k = 0; k < 1000; k++) {
        a[k] = 1e-30F;
        b[k] = 1;
    }
    ck_assert_int_eq(judged(a, b, 1000, 1e-27F), RESIDUAL_RIGHT);
    ck_assert_int_eq(judged(a, b, 1000, 0), RESIDUAL_WRONG);
}
END_TEST

START_TEST(nan_and_infinities_are_those_that_operands_and_range_lead_to)
{
    static const float ones[4] = {1, 1, 1, 1};
    static const float up[4] = {3e38F, 3e38F, 1, 1};
    static const float down[4] = {-3e38F, -3e38F, 1, 1};
    static const float both[4] = {3e38F, 3e38F, -3e38F, -3e38F};
    static const float near[4] = {3.4e38F, 2e35F, 1, 1}; /* 3.402e38, just below the end */
    static const float endless[4] = {INFINITY, 1, 1, 1};
    static const float endless_down[4] = {-INFINITY, 3e38F, 3e38F, 1};
    static const float endless_both[4] = {INFINITY, -INFINITY, 1, 1};
    static const float nothing[4] = {NAN, 1, 1, 1};
    static const float zeros[4] = {0, 0, 0, 0};
    const struct {
        const float *a, *b;
        enum residual plus, minus, nan, one; /* of +infinity, -infinity, NaN and 1 */
    } cases[] = {
        {ones, ones, RESIDUAL_WRONG, RESIDUAL_WRONG, RESIDUAL_WRONG, RESIDUAL_WRONG},
        {up, ones, RESIDUAL_RIGHT, RESIDUAL_WRONG, RESIDUAL_WRONG, RESIDUAL_WRONG},
        {down, ones, RESIDUAL_WRONG, RESIDUAL_RIGHT, RESIDUAL_WRONG, RESIDUAL_WRONG},
        {both, ones, RESIDUAL_RIGHT, RESIDUAL_RIGHT, RESIDUAL_RIGHT, RESIDUAL_RIGHT},
        {near, ones, RESIDUAL_WRONG, RESIDUAL_WRONG, RESIDUAL_WRONG, RESIDUAL_WRONG},
        {up, up, RESIDUAL_RIGHT, RESIDUAL_WRONG, RESIDUAL_WRONG, RESIDUAL_WRONG},
        {endless, ones, RESIDUAL_RIGHT, RESIDUAL_WRONG, RESIDUAL_WRONG, RESIDUAL_WRONG},
        {endless, down, RESIDUAL_WRONG, RESIDUAL_RIGHT, RESIDUAL_WRONG, RESIDUAL_WRONG},
        {endless_down, ones, RESIDUAL_WRONG, RESIDUAL_RIGHT, RESIDUAL_RIGHT, RESIDUAL_WRONG},
        {endless_both, ones, RESIDUAL_WRONG, RESIDUAL_WRONG, RESIDUAL_RIGHT, RESIDUAL_WRONG},
        {endless, zeros, RESIDUAL_WRONG, RESIDUAL_WRONG, RESIDUAL_RIGHT, RESIDUAL_WRONG},
        {nothing, ones, RESIDUAL_WRONG, RESIDUAL_WRONG, RESIDUAL_RIGHT, RESIDUAL_WRONG},
        {nothing, zeros, RESIDUAL_WRONG, RESIDUAL_WRONG, RESIDUAL_RIGHT, RESIDUAL_WRONG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(judged(cases[i].a, cases[i].b, 4, INFINITY) == cases[i].plus, "%zu: +", i);
        ck_assert_msg(judged(cases[i].a, cases[i].b, 4, -INFINITY) == cases[i].minus, "%zu: -", i);
        ck_assert_msg(judged(cases[i].a, cases[i].b, 4, NAN) == cases[i].nan, "%zu: NaN", i);
        ck_assert_msg(judged(cases[i].a, cases[i].b, 4, 1) == cases[i].one, "%zu: 1", i);
    }
    ck_assert_int_eq(judged(zeros, zeros, 4, 0), RESIDUAL_RIGHT);
    ck_assert_int_eq(judged(zeros, zeros, 4, 1e-30F), RESIDUAL_WRONG);
    ck_assert_int_eq(residual_judge_entry(0, 0, 0, 0), RESIDUAL_RIGHT);
    ck_assert_int_eq(residual_judge_entry(0, 0, 0, 1), RESIDUAL_WRONG);
    ck_assert_int_eq(residual_judge_entry(UINT64_C(1) << 40, 1, 1, 1e30F), RESIDUAL_DOUBTFUL);
}
END_TEST

SUITE("residual", NULL, NULL, TEST(the_bounds_are_those_that_were_promised),
      TEST(between_the_bounds_nobody_is_accused),
      TEST(what_is_usual_is_right_even_beyond_what_rounding_can_do),
      TEST(empty_rows_tiny_entries_and_endless_sums_are_judged_too), TEST(no_honest_sum_is_wrong),
      TEST(no_order_of_summation_makes_an_entry_wrong_and_nearly_all_are_right),
      TEST(an_entry_is_judged_by_the_bounds_that_were_promised),
      TEST(what_is_tiny_is_rounded_there_or_taken_for_zero),
      TEST(nan_and_infinities_are_those_that_operands_and_range_lead_to))
