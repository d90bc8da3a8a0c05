/* The tests ask which products Freivalds' check believes. */
#include "numeric/seeded_check.h"
#include "tests/support/matrices.h"
#include "tests/support/suite.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct claim { /* a product and what is said to be it */
    uint64_t rows, inner, columns;
    float *a, *b, *c;
};

static struct claim claim_of(uint64_t rows, uint64_t inner, uint64_t columns, bool by_reference)
{
    struct claim claim = {
        rows, inner, columns, drawn(rows * inner), drawn(inner * columns), drawn(rows * columns)};
    struct gemm gemm = {rows, inner, columns, 1, 0, claim.a, claim.b, claim.c, TENSOR_FP32};
    multiply(&gemm, by_reference);
    return claim;
}

static void claim_fini(struct claim *claim)
{
    free(claim->a);
    free(claim->b);
    free(claim->c);
}

static struct seeded_result judge(const struct claim *claim, uint8_t seed)
{
    struct seeded_check check = {claim->rows, claim->inner, claim->columns, claim->a,
                                 claim->b,    claim->c,     {seed, 1, 2},   20};
    struct seeded_result result;
    ck_assert(seeded_check_run(&check, &result));
    return result;
}

START_TEST(honest_products_are_accepted)
{
    static const uint64_t shapes[][3] = {{1, 1, 1},     {1, 500, 1}, {40, 3, 50}, {60, 200, 70},
                                         {9, 1000, 11}, {0, 2, 2},   {2, 0, 2},   {2, 2, 0}};
    for (size_t s = 0; s < COUNT(shapes); s++) {
        struct claim claim = claim_of(shapes[s][0], shapes[s][1], shapes[s][2], _i == 0);
        for (uint8_t seed = 0; seed < 20; seed++) {
            struct seeded_result result = judge(&claim, seed);
            ck_assert_msg(result.verdict == VERDICT_ACCEPT, "%zu, seed %u: %s (%g)", s, seed,
                          result.why, result.worst);
            ck_assert(result.false_accept <= 0x1p-15);
        }
        claim_fini(&claim);
    }
}
END_TEST

static float to_half_precision(float value)
{
    uint32_t bits; /* bfloat16: the upper half, rounded to nearest */
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x8000U) & 0xffff0000U;
    memcpy(&value, &bits, sizeof value);
    return value;
}

START_TEST(lies_are_rejected)
{
    struct claim claim = claim_of(50, 60, 70, true);
    uint64_t cells = claim.rows * claim.columns;
    float *honest = claim.c;
    for (uint8_t seed = 0; seed < 20; seed++) {
        struct seeded_result result;
        claim.c = drawn(cells); /* an old answer */
        ck_assert_int_eq(judge(&claim, seed).verdict, VERDICT_REJECT);

        memset(claim.c, 0, cells * sizeof *claim.c);
        ck_assert_int_eq(judge(&claim, seed).verdict, VERDICT_REJECT);

        memcpy(claim.c, honest, cells * sizeof *claim.c);
        claim.c[31 * claim.columns + 5] += 0.1F; /* one entry of 3500 */
        result = judge(&claim, seed);
        ck_assert_int_eq(result.verdict, VERDICT_REJECT);
        ck_assert_uint_eq(result.row, 31);

        struct claim cheap = {claim.rows,     claim.inner,    claim.columns,
                              drawn(50 * 60), drawn(60 * 70), drawn(cells)};
        for (size_t i = 0; i < 50 * 60; i++) {
            cheap.a[i] = to_half_precision(claim.a[i]);
        }
        for (size_t i = 0; i < 60 * 70; i++) {
            cheap.b[i] = to_half_precision(claim.b[i]);
        }
        struct gemm gemm = {50, 60, 70, 1, 0, cheap.a, cheap.b, claim.c, TENSOR_FP32};
        gemm_reference(&gemm);
        ck_assert_int_eq(judge(&claim, seed).verdict, VERDICT_REJECT);
        claim_fini(&cheap);

        memcpy(claim.c, honest, cells * sizeof *claim.c);
        claim.c[7] = NAN;
        result = judge(&claim, seed);
        ck_assert_int_eq(result.verdict, VERDICT_REJECT);
        ck_assert_uint_eq(result.row, 0);
        ck_assert(result.false_accept == 1);
        free(claim.c);
    }
    claim.c = honest;
    claim_fini(&claim);
}
END_TEST

START_TEST(what_is_not_finite_is_compared_one_by_one)
{
    struct claim claim = claim_of(30, 40, 20, true);
    struct gemm gemm = {30, 40, 20, 1, 0, claim.a, claim.b, claim.c, TENSOR_FP32};
    claim.a[4 * 40 + 7] = INFINITY;
    claim.b[9 * 20 + 3] = NAN;
    claim.b[9 * 20 + 4] = -INFINITY;
    multiply(&gemm, _i == 0);
    ck_assert_int_eq(judge(&claim, 1).verdict, VERDICT_ACCEPT);

    float kept = claim.c[4 * 20 + 1];
    ck_assert(isinf(kept));
    claim.c[4 * 20 + 1] = -kept;
    ck_assert_int_eq(judge(&claim, 1).verdict, VERDICT_REJECT);
    claim.c[4 * 20 + 1] = 1;
    ck_assert_int_eq(judge(&claim, 1).verdict, VERDICT_REJECT);
    claim.c[4 * 20 + 1] = kept;
    claim.c[11 * 20 + 3] = 0; /* must be NaN */
    ck_assert_int_eq(judge(&claim, 1).verdict, VERDICT_REJECT);
    claim.c[11 * 20 + 3] = NAN;
    claim.c[11 * 20 + 6] += 0.1F; /* a lie elsewhere is not hidden by them */
    ck_assert_int_eq(judge(&claim, 1).verdict, VERDICT_REJECT);
    claim_fini(&claim);
}
END_TEST

static uint64_t pick(uint64_t below)
{
    return (uint64_t)random() % below;
}

/* Products have any size, scale and cancellation, with NaN, infinities and overflows in between. */
START_TEST(no_honest_product_is_ever_refuted)
{
    static const float strange[] = {INFINITY, -INFINITY, NAN, 3e38F, -3e38F, 1e-40F, -0.0F};
    srandom((unsigned)_i + 1);
    for (int round = 0; round < 40; round++) {
        uint64_t rows = 1 + pick(40);
        uint64_t inner = 1 + pick(400);
        uint64_t columns = 1 + pick(40);
        struct claim claim = claim_of(rows, inner, columns, true);
        struct gemm gemm = {rows, inner, columns, 1, 0, claim.a, claim.b, claim.c, TENSOR_FP32};
        for (uint64_t k = 0; k < inner && round % 2 == 0; k++) {
            float scale = ldexpf(1, (int)pick(60) - 30);
            for (uint64_t i = 0; i < rows; i++) { /* each term is nearly taken back by the next */
                claim.a[i * inner + k] =
                    k % 2 == 1 ? -claim.a[i * inner + k - 1] : claim.a[i * inner + k] * scale;
            }
            for (uint64_t j = 0; j < columns && k % 2 == 1; j++) {
                claim.b[k * columns + j] = claim.b[(k - 1) * columns + j] * (1 + 1e-6F);
            }
        }
        for (int i = 0; i < round % 4; i++) {
            claim.a[pick(rows * inner)] = strange[pick(COUNT(strange))];
            claim.b[pick(inner * columns)] = strange[pick(COUNT(strange))];
        }
        multiply(&gemm, _i % 2 == 0);
        for (uint8_t seed = 0; seed < 3; seed++) {
            struct seeded_result result = judge(&claim, seed);
            ck_assert_msg(result.verdict != VERDICT_REJECT, "round %d, %lu x %lu x %lu: %s", round,
                          (unsigned long)rows, (unsigned long)inner, (unsigned long)columns,
                          result.why);
        }
        claim_fini(&claim);
    }
}
END_TEST

/* Computes what the engine makes of the factors as they are now. */
static void compute(struct claim *claim, bool by_reference)
{
    struct gemm gemm = {claim->rows, claim->inner, claim->columns, 1,          0,
                        claim->a,    claim->b,     claim->c,       TENSOR_FP32};
    multiply(&gemm, by_reference);
}

static void check_verdict(const struct claim *claim, enum result_verdict expected, const char *what)
{
    for (uint8_t seed = 0; seed < 5; seed++) {
        struct seeded_result result = judge(claim, seed);
        ck_assert_msg(result.verdict == expected, "%s, seed %u: %s (row %lu, %g)", what, seed,
                      result.why, (unsigned long)result.row, result.worst);
        ck_assert(expected == VERDICT_ACCEPT ? result.false_accept <= 0x1p-20
                                             : result.false_accept == 1);
    }
}

/* Small beside its terms, tiny, too large, or not a number at all, and honest: two engines, and
 * nobody waits for ever. */
START_TEST(honest_products_however_odd_are_accepted)
{
    enum { ROWS = 20, INNER = 2000, COLUMNS = 30 };
    const bool by_reference = _i == 0;
    struct claim claim = claim_of(ROWS, INNER, COLUMNS, by_reference);
    for (size_t i = 0; i < ROWS * INNER; i++) {
        claim.a[i] = 1;
    }
    for (size_t j = 0; j < COLUMNS; j++) { /* columns whose mean is zero */
        for (size_t k = 0; k < INNER / 2; k++) {
            claim.b[(INNER - 1 - k) * COLUMNS + j] = -claim.b[k * COLUMNS + j];
        }
    }
    compute(&claim, by_reference);
    check_verdict(&claim, VERDICT_ACCEPT, "ones and columns of mean zero");

    for (size_t k = 0; k < INNER; k += 2) { /* each term is nearly taken back by the next */
        for (size_t i = 0; i < ROWS; i++) {
            claim.a[i * INNER + k + 1] = -claim.a[i * INNER + k];
        }
        for (size_t j = 0; j < COLUMNS; j++) {
            claim.b[(k + 1) * COLUMNS + j] = claim.b[k * COLUMNS + j] * (1 + 1e-6F);
        }
    }
    compute(&claim, by_reference);
    check_verdict(&claim, VERDICT_ACCEPT, "cancellation");

    static const float scales[][2] = {{1e-30F, 1e-30F}, {1e-25F, 1e-18F}, {1e-30F, 1}, {1e-41F, 1},
                                      {1e20F, 1e20F},   {1e20F, 1e18F},   {3e36F, 1}};
    for (size_t s = 0; s < COUNT(scales); s++) {
        claim_fini(&claim);
        claim = claim_of(ROWS, INNER, COLUMNS, by_reference);
        for (size_t i = 0; i < ROWS * INNER; i++) {
            claim.a[i] *= scales[s][0];
        }
        for (size_t i = 0; i < INNER * COLUMNS; i++) {
            claim.b[i] *= scales[s][1];
        }
        compute(&claim, by_reference);
        char what[64];
        (void)snprintf(what, sizeof what, "%g x %g", (double)scales[s][0], (double)scales[s][1]);
        check_verdict(&claim, VERDICT_ACCEPT, what);
    }
    claim_fini(&claim);
}
END_TEST

START_TEST(what_overflows_on_its_way_may_be_infinite_and_nothing_else_may)
{
    struct claim claim = claim_of(3, 4, 2, true);
    static const float a[] = {3e38F, 3e38F, -3e38F, -3e38F, 3e38F, 1, 1, -3e38F, 1, 1, 1, 1};
    memcpy(claim.a, a, sizeof a);
    for (size_t i = 0; i < 8; i++) {
        claim.b[i] = 1;
    }
    compute(&claim, true);
    ck_assert(isinf(claim.c[0])); /* though the sum is 0 */
    check_verdict(&claim, VERDICT_ACCEPT, "in order");
    claim.c[0] = 0;
    claim.c[1] = -INFINITY;
    check_verdict(&claim, VERDICT_ACCEPT, "in other orders");
    claim.c[1] = NAN;
    check_verdict(&claim, VERDICT_ACCEPT, "by parts");
    claim.c[2] = INFINITY;
    check_verdict(&claim, VERDICT_REJECT, "no order overflows in the second row");
    claim.c[2] = NAN;
    check_verdict(&claim, VERDICT_REJECT, "nor is it no number");
    claim.c[2] = 2;
    claim.c[4] = INFINITY;
    check_verdict(&claim, VERDICT_REJECT, "nor in the third");
    claim_fini(&claim);
}
END_TEST

/* Few rows and columns, and so many terms that what rounding may do is far more than the usual. */
static struct claim long_claim(uint64_t rows, uint64_t columns, bool is_positive)
{
    struct claim claim = claim_of(rows, 40000, columns, false);
    for (size_t i = 0; i < rows * claim.inner && is_positive; i++) {
        claim.a[i] = fabsf(claim.a[i]);
    }
    for (size_t i = 0; i < claim.inner * columns && is_positive; i++) {
        claim.b[i] = fabsf(claim.b[i]);
    }
    compute(&claim, false);
    return claim;
}

static float with_bits(float value, unsigned dropped, bool is_nearest)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits += is_nearest ? UINT32_C(1) << (dropped - 1) : 0;
    bits &= UINT32_MAX << dropped;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Positive factors make honest sums, term by term, as far off as factors of 8 bits do. */
START_TEST(a_lower_precision_shows_however_long_the_sums_are)
{
    static const struct {
        unsigned dropped;
        bool is_nearest;
    } formats[] = {{16, true}, {16, false}, {13, true}, {13, false}};
    const bool is_positive = _i == 1;
    struct claim claim = long_claim(34, 33, is_positive);
    ck_assert_int_eq(judge(&claim, 1).verdict, VERDICT_ACCEPT);
    compute(&claim, true);
    ck_assert_int_eq(judge(&claim, 1).verdict, VERDICT_ACCEPT);
    for (size_t f = 0; f < COUNT(formats); f++) {
        const size_t a_size = claim.rows * claim.inner;
        const size_t b_size = claim.inner * claim.columns;
        struct claim cheap = claim;
        cheap.a = drawn(a_size);
        cheap.b = drawn(b_size);
        for (size_t i = 0; i < a_size; i++) {
            cheap.a[i] = with_bits(claim.a[i], formats[f].dropped, formats[f].is_nearest);
        }
        for (size_t i = 0; i < b_size; i++) {
            cheap.b[i] = with_bits(claim.b[i], formats[f].dropped, formats[f].is_nearest);
        }
        compute(&cheap, false);
        struct seeded_result result = judge(&claim, (uint8_t)f);
        ck_assert_msg(result.verdict == VERDICT_REJECT, "format %zu: %s, %g", f, result.why,
                      result.worst);
        free(cheap.a);
        free(cheap.b);
    }
    claim_fini(&claim);
}
END_TEST

START_TEST(long_sums_are_no_cover_for_lies)
{
    struct claim claim = long_claim(6, 16, _i == 1);
    const size_t cells = claim.rows * claim.columns;
    const size_t size = cells * sizeof(float);
    float *honest = malloc(size);
    ck_assert_ptr_nonnull(honest);
    memcpy(honest, claim.c, size);
    check_verdict(&claim, VERDICT_ACCEPT, "honest");
    compute(&claim, true);
    check_verdict(&claim, VERDICT_ACCEPT, "honest, term by term");

    memset(claim.c, 0, size);
    check_verdict(&claim, VERDICT_REJECT, "zeros");
    memcpy(claim.c, honest, size);
    memset(claim.c, 0, size / 2);
    check_verdict(&claim, VERDICT_REJECT, "half of the rows");
    claim.inner /= 2;
    float *whole = claim.a;
    claim.a = malloc(claim.rows * claim.inner * sizeof(float));
    ck_assert_ptr_nonnull(claim.a);
    for (size_t i = 0; i < claim.rows; i++) {
        memcpy(claim.a + i * claim.inner, whole + i * claim.inner * 2, claim.inner * sizeof(float));
    }
    compute(&claim, true);
    free(claim.a);
    claim.a = whole;
    claim.inner *= 2;
    check_verdict(&claim, VERDICT_REJECT, "half of each sum");

    /* One entry, by a little more than the bound of rounding. */
    const size_t at = 3 * claim.columns + 7;
    double exact = 0;
    double reach = 0;
    for (size_t k = 0; k < claim.inner; k++) {
        double term = (double)claim.a[3 * claim.inner + k] * (double)claim.b[k * claim.columns + 7];
        exact += term;
        reach += fabs(term);
    }
    const double bound = 40000 * 0x1p-24 / (1 - 40000 * 0x1p-24) * reach;
    memcpy(claim.c, honest, size);
    claim.c[at] = (float)(exact + bound * 1.001);
    check_verdict(&claim, VERDICT_REJECT, "one entry");
    claim.c[at] = (float)(exact - bound * 1.001);
    check_verdict(&claim, VERDICT_REJECT, "one entry, less");
    claim.c[at] = (float)(exact + bound * 0.999);
    for (uint8_t seed = 0; seed < 5; seed++) {
        ck_assert_int_ne(judge(&claim, seed).verdict, VERDICT_REJECT);
    }
    claim.c[at] = INFINITY;
    check_verdict(&claim, VERDICT_REJECT, "an infinity");
    free(honest);
    claim_fini(&claim);
}
END_TEST

/* Each addition rounds to the same side: further off than independent errors are, and honest. */
START_TEST(equal_terms_one_after_the_other_are_accepted)
{
    struct claim claim = claim_of(4, 40000, 6, true);
    for (size_t i = 0; i < 4 * 40000; i++) {
        claim.a[i] = 0.1F;
    }
    for (size_t i = 0; i < 6 * 40000; i++) {
        claim.b[i] = 0.3F;
    }
    compute(&claim, true);
    check_verdict(&claim, VERDICT_ACCEPT, "term by term");
    const double exact = 40000 * (double)0.1F * (double)0.3F;
    const double usual = 8 * 200 * 0x1p-24 * exact;
    ck_assert_double_gt(fabs((double)claim.c[0] - exact), usual);
    const float honest = claim.c[9];
    for (int sign = -1; sign <= 1; sign += 2) { /* but nothing else that far off is */
        claim.c[9] = (float)(exact + sign * 0.9 * 40000 * 0x1p-24 * exact);
        check_verdict(&claim, VERDICT_UNSURE, "between the bounds");
    }
    claim.c[9] = honest;
    compute(&claim, false);
    check_verdict(&claim, VERDICT_ACCEPT, "by the library");
    claim_fini(&claim);
}
END_TEST

/* More rows than are computed anew: the worst are, and of those without a residual some. */
START_TEST(too_many_doubtful_rows_are_neither_unsure_for_ever_nor_a_cover)
{
    enum { ROWS = 700, INNER = 300, COLUMNS = 300, LIE = 613, AT = 17 };
    struct claim claim = claim_of(ROWS, INNER, COLUMNS, false);
    for (size_t i = 0; i < ROWS * INNER; i++) {
        claim.a[i] = 1;
    }
    for (size_t j = 0; j < COLUMNS; j++) {
        for (size_t k = 0; k < INNER / 2; k++) {
            claim.b[(INNER - 1 - k) * COLUMNS + j] = -claim.b[k * COLUMNS + j];
        }
    }
    compute(&claim, true);
    struct seeded_result result = judge(&claim, 1);
    ck_assert_msg(result.verdict == VERDICT_ACCEPT, "%s", result.why);
    ck_assert(result.false_accept <= 0x1p-20);
    double reach = 0;
    for (size_t k = 0; k < INNER; k++) {
        reach += fabs((double)claim.b[k * COLUMNS + AT]);
    }
    claim.c[LIE * COLUMNS + AT] += (float)(2 * INNER * 0x1p-24 * reach);
    result = judge(&claim, 2);
    ck_assert_int_eq(result.verdict, VERDICT_REJECT);
    ck_assert_uint_eq(result.row, LIE);

    for (size_t i = 0; i < ROWS * INNER; i++) {
        claim.a[i] = 1e38F;
    }
    compute(&claim, true);
    result = judge(&claim, 3);
    ck_assert_msg(result.verdict == VERDICT_ACCEPT, "%s", result.why);
    ck_assert(result.false_accept > 0.1); /* of so many rows nothing is known, and it is said */
    ck_assert(result.false_accept < 0.5);
    for (size_t i = 0; i < ROWS / 2; i++) { /* beside what may be infinite, what may not */
        claim.c[i * COLUMNS] = INFINITY;
        claim.c[i * COLUMNS + 1] = 1e37F;
    }
    ck_assert_int_eq(judge(&claim, 4).verdict, VERDICT_REJECT);
    claim_fini(&claim);
}
END_TEST

SUITE("freivalds", NULL, NULL, LOOP(honest_products_are_accepted, 0, 2), TEST(lies_are_rejected),
      LOOP(what_is_not_finite_is_compared_one_by_one, 0, 2),
      LOOP(no_honest_product_is_ever_refuted, 0, 10),
      LOOP(honest_products_however_odd_are_accepted, 0, 2),
      TEST(what_overflows_on_its_way_may_be_infinite_and_nothing_else_may),
      LOOP(long_sums_are_no_cover_for_lies, 0, 2),
      TEST(equal_terms_one_after_the_other_are_accepted),
      TEST(too_many_doubtful_rows_are_neither_unsure_for_ever_nor_a_cover),
      LOOP(a_lower_precision_shows_however_long_the_sums_are, 0, 2))
