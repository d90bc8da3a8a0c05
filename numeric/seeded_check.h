/* numeric/seeded_check.h checks whether C is the product of A and B, without computing the
 * product.
 *
 * The method is Freivalds' check. For a random vector r of +1 and -1, C r = A (B r) if C is the
 * product. If a row of C is wrong, the two differ there for at least half of all r. Products of
 * float32 are rounded, so the row's difference (the residual, in double) is compared with the
 * bounds of base/residual.h. The check recomputes rows between the bounds entry by entry, all of
 * them while that is cheap. Entries without a residual, because of a NaN or an infinity, are
 * recomputed likewise. Remaining doubt accuses nobody: the verdict is VERDICT_UNSURE. At the end a
 * sample of entries shows whether A and B had been rounded to fewer bits (base/precision.h). The
 * sizes of errors do not show this.
 *
 * The vectors come from the seed by xoshiro256**. The seed is its state, four little-endian words.
 * Bit 63 of each output makes one sign, r by r; the outputs after them choose rows and columns.
 * Anyone who has the seed computes the same verdict. The maker of C must not know the seed before C
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
    uint32_t rounds; /* vectors drawn */
    /* The probability bound for a wrong row beyond the bounds; 1 unless accepted. */
    double false_accept;
    double worst;    /* largest residual as a part of its bound of acceptance */
    uint64_t row;    /* row of `worst`; after a rejection, the row that decided */
    const char *why; /* a short phrase */
};

/* Returns the memory of the check beyond the matrices, in bytes. Returns 0 when it is more than can
 * be counted. */
uint64_t seeded_check_bytes(uint64_t rows, uint64_t inner, uint64_t columns);
/* Returns false when memory is short. */
bool seeded_check_run(const struct seeded_check *check, struct seeded_result *ret_result);

#endif
