/* What a residual says of a row of a product: right, doubtful, wrong. */
#include "base/residual.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

/* A row whose entries, partial sums included, add up to `reach`, and whose product is `columns` times `entry`. */
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

/* A sum in float32, term by term, beside the exact one: the worst that was seen is within the bound. */
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

int main(void)
{
    Suite *suite = suite_create("residual");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, the_bounds_are_those_that_were_promised);
    tcase_add_test(tcase, between_the_bounds_nobody_is_accused);
    tcase_add_test(tcase, what_is_usual_is_right_even_beyond_what_rounding_can_do);
    tcase_add_test(tcase, empty_rows_tiny_entries_and_endless_sums_are_judged_too);
    tcase_add_test(tcase, no_honest_sum_is_wrong);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
