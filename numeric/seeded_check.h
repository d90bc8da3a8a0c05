/* numeric/seeded_check.h - whether C is the product of A and B, without computing the product.
 *
 * Freivalds' check: for a random vector r of +1 and -1, C r = A (B r) if C is the product, and if a
 * row of C is not, the two differ there for at least half of all r. Products of float32 are
 * rounded, so a row's difference (the residual, in double) is held against the bounds of
 * base/residual.h. Rows between them, and what has no residual because NaN or an infinity is in it,
 * are computed anew, entry by entry: all of them while that is cheap. What is left in doubt then
 * accuses nobody: UNSURE. At last a sample of entries shows whether A and B had been rounded to
 * fewer bits (base/precision.h), which sizes of errors do not show.
 *
 * The vectors come from the seed by xoshiro256** (seed: its state, four little-endian words; bit 63
 * of each output makes one sign, r by r; the outputs after them choose rows and columns), so that
 * anyone who has the seed computes the same verdict. Whoever made C must not know the seed before C
 * is fixed. */
#ifndef BOURSE_NUMERIC_SEEDED_CHECK_H
#define BOURSE_NUMERIC_SEEDED_CHECK_H

#include "base/verdict.h"

#include <stdbool.h>
#include <stdint.h>

enum { SEEDED_SEED_BYTES = 32, SEEDED_ROUNDS_MOST = 64 };

struct seeded_check {
    uint64_t rows, inner, columns;
    const float *a, *b, *c;
    uint8_t seed[SEEDED_SEED_BYTES];
    uint32_t rounds; /* 1 to SEEDED_ROUNDS_MOST */
};

struct seeded_result {
    enum result_verdict verdict;
    uint32_t rounds;     /* vectors that were drawn */
    double false_accept; /* at most this probable for a wrong row beyond the bounds; 1 unless
                            accepted */
    double worst;        /* the largest residual as a part of its bound of acceptance */
    uint64_t row;        /* where that was; of a rejection: the row that decided */
    const char *why;     /* one phrase */
};

/* Memory that the check takes beside the matrices. 0: more than can be counted. */
uint64_t seeded_check_bytes(uint64_t rows, uint64_t inner, uint64_t columns);
/* False: out of memory. */
bool seeded_check_run(const struct seeded_check *check, struct seeded_result *ret_result);

#endif
