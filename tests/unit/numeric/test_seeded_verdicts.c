/* The tests hold a seed to its verdict. A market asks a second referee to compute a verdict again,
 * and an old journal asks an audit; so the same seed must give the same bytes for ever. */
#include "numeric/seeded_check.h"
#include "tests/support/matrices.h"
#include "tests/support/suite.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 40, INNER = 300, COLUMNS = 36, LONG = 40000, FEW_ROWS = 4, FEW_COLUMNS = 6 };

struct claim { /* a product and what is said to be it */
    uint64_t rows, inner, columns;
    float *a, *b, *c;
};

static struct claim claim_of(uint64_t rows, uint64_t inner, uint64_t columns)
{
    state = 1; /* of the draws */
    return (struct claim){
        rows, inner, columns, drawn(rows * inner), drawn(inner * columns), drawn(rows * columns)};
}

static void compute(const struct claim *claim)
{
    struct gemm gemm = {claim->rows, claim->inner, claim->columns, 1,          0,
                        claim->a,    claim->b,     claim->c,       TENSOR_FP32};
    multiply(&gemm, true);
}

static void claim_fini(struct claim *claim)
{
    free(claim->a);
    free(claim->b);
    free(claim->c);
}

static void expect(const struct claim *claim, uint32_t rounds, const char *expected)
{
    static const char *const verdicts[] = {"none", "accept", "reject", "unsure"};
    struct seeded_check check = {claim->rows, claim->inner, claim->columns, claim->a,
                                 claim->b,    claim->c,     {7, 1, 2},      rounds};
    struct seeded_result result;
    char line[256];
    ck_assert(seeded_check_run(&check, &result));
    (void)snprintf(line, sizeof line, "%s %" PRIu32 " %a %a %" PRIu64 " %s",
                   verdicts[result.verdict], result.rounds, result.false_accept, result.worst,
                   result.row, result.why);
    ck_assert_str_eq(line, expected);
}

START_TEST(a_product_and_one_wrong_entry)
{
    struct claim claim = claim_of(ROWS, INNER, COLUMNS);
    compute(&claim);
    expect(&claim, 20, "accept 20 0x1p-20 0x1.cbdf4a1f8b2cp-4 32 every row is within its bound");
    expect(&claim, 5, "accept 5 0x1p-5 0x1.c33dafda421e4p-4 32 every row is within its bound");
    expect(&claim, 64, "accept 64 0x1p-64 0x1.10e980bfe4094p-3 32 every row is within its bound");
    claim.c[31 * COLUMNS + 5] += 0.001F;
    expect(&claim, 20,
           "unsure 20 0x1p+0 0x1.c5f457dbe4227p+1 31 an entry is further off than usual, but not "
           "than rounding can be");
    claim.c[31 * COLUMNS + 5] += 0.1F;
    expect(&claim, 20,
           "reject 8 0x1p+0 0x1.60dad2a604189p+8 31 a row differs by more than any order of "
           "summation can");
    claim.c[12 * COLUMNS + 9] = NAN; /* before the vectors */
    expect(&claim, 20,
           "reject 0 0x1p+0 0x0p+0 12 an entry is not finite, and nothing could make it so");
    claim_fini(&claim);
}
END_TEST

/* Each term is nearly taken back by the next, so rows are doubtful and recomputed. */
START_TEST(cancellation)
{
    struct claim claim = claim_of(ROWS, INNER, COLUMNS);
    for (size_t k = 0; k < INNER; k += 2) {
        for (size_t i = 0; i < ROWS; i++) {
            claim.a[i * INNER + k + 1] = -claim.a[i * INNER + k];
        }
        for (size_t j = 0; j < COLUMNS; j++) {
            claim.b[(k + 1) * COLUMNS + j] = claim.b[k * COLUMNS + j] * (1 + 1e-6F);
        }
    }
    compute(&claim);
    expect(&claim, 20, "accept 20 0x1p-20 0x1.336039cb8ff55p+14 33 every row is within its bound");
    claim.c[20 * COLUMNS + 3] += 0.01F; /* the row's residual does not decide */
    expect(&claim, 20,
           "reject 20 0x1p+0 0x1.9345294e85b34p+16 20 an entry is none that any order of summation "
           "leads to");
    claim_fini(&claim);
}
END_TEST

START_TEST(operands_and_sums_that_are_not_finite)
{
    struct claim claim = claim_of(ROWS, INNER, COLUMNS);
    claim.a[4 * INNER + 7] = INFINITY;
    claim.b[9 * COLUMNS + 3] = NAN;
    claim.b[250 * COLUMNS + 35] = -INFINITY; /* found after the first rows of B were summed up */
    compute(&claim);
    expect(&claim, 20, "accept 20 0x1p-20 0x1.d169a3977f23p-4 32 every row is within its bound");
    claim.c[11 * COLUMNS + 3] = 0; /* must be NaN */
    expect(&claim, 20,
           "reject 20 0x1p+0 0x1.d169a3977f23p-4 11 an entry is none that any order of summation "
           "leads to");
    claim.c[11 * COLUMNS + 3] = NAN;
    claim.c[11 * COLUMNS + 6] += 0.001F;
    expect(&claim, 20,
           "unsure 20 0x1p+0 0x1.c1043e6a5826ap+1 11 an entry is further off than usual, but not "
           "than rounding can be");
    for (size_t i = 0; i < ROWS * INNER; i++) {
        claim.a[i] = i < 10 * INNER ? 1e38F : claim.a[i];
    }
    compute(&claim);
    expect(&claim, 20, "accept 20 0x1p-20 0x1.d169a3977f23p-4 32 every row is within its bound");
    claim_fini(&claim);
}
END_TEST

static float shortened(float value)
{
    uint32_t bits; /* bfloat16: the upper half, rounded to nearest */
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x8000U) & 0xffff0000U;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Sums are so long that only the sample shows rounded factors. */
START_TEST(factors_of_fewer_bits)
{
    struct claim claim = claim_of(34, LONG, 33);
    struct claim rounded = claim_of(34, LONG, 33);
    for (size_t i = 0; i < 34 * LONG; i++) {
        claim.a[i] = fabsf(claim.a[i]);
        rounded.a[i] = shortened(claim.a[i]);
    }
    for (size_t i = 0; i < LONG * 33; i++) {
        claim.b[i] = fabsf(claim.b[i]);
        rounded.b[i] = shortened(claim.b[i]);
    }
    float *honest = claim.c;
    compute(&rounded);
    claim.c = rounded.c;
    expect(&claim, 20,
           "reject 20 0x1p+0 0x1.0a3ff912c4d91p-1 0 it is the product of factors that were rounded "
           "to fewer bits");
    memcpy(claim.b, rounded.b, (size_t)LONG * 33 * sizeof *claim.b); /* it has no more to lose */
    expect(
        &claim, 20,
        "unsure 20 0x1p+0 0x1.0019b09ff7405p-1 0 one factor may have been rounded to fewer bits");
    claim.c = honest;
    claim_fini(&claim);
    claim_fini(&rounded);
}
END_TEST

START_TEST(equal_terms_one_after_the_other)
{
    struct claim claim = claim_of(FEW_ROWS, LONG, FEW_COLUMNS);
    for (size_t i = 0; i < (size_t)FEW_ROWS * LONG; i++) {
        claim.a[i] = 0.1F;
    }
    for (size_t i = 0; i < (size_t)FEW_COLUMNS * LONG; i++) {
        claim.b[i] = 0.3F;
    }
    compute(&claim);
    expect(&claim, 20, "accept 20 0x1p-20 0x1.b815ffd788225p+3 0 every row is within its bound");
    claim.c[9] = (float)(1200 * (1 - 0.9 * LONG * 0x1p-24)); /* between the bounds */
    expect(&claim, 20,
           "unsure 20 0x1p+0 0x1.fdb8258a71ab6p+3 1 an entry is further off than usual, but not "
           "than rounding can be");
    claim_fini(&claim);
}
END_TEST

SUITE("seeded verdicts", NULL, NULL, TEST(a_product_and_one_wrong_entry), TEST(cancellation),
      TEST(operands_and_sums_that_are_not_finite), TEST(factors_of_fewer_bits),
      TEST(equal_terms_one_after_the_other))
