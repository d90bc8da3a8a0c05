/* provider/tensor/freivalds.h - whether C is the product of A and B, without computing the product.
 *
 * Freivalds' check: for a random vector r of +1 and -1, C r = A (B r) if C is the product, and if a row of C is
 * not, the two differ there for at least half of all r. Products of float32 are rounded, so a row's
 * difference (the residual, in double) is held against the two bounds of base/residual.h. Between the two nobody is
 * accused: one more r is drawn, and a second such row leaves the verdict UNSURE.
 * Values that are not finite have no residual. A row of A or a column of B that holds one makes a row or a
 * column of C that is not finite anywhere; these entries are computed and compared one by one.
 *
 * The vectors come from the seed by xoshiro256** (seed: its state, four little-endian words; bit 63 of each
 * output makes one sign, r by r), so that anyone who has the seed computes the same verdict. Whoever made C must not know
 * the seed before C is fixed. */
#ifndef BOURSE_PROVIDER_TENSOR_FREIVALDS_H
#define BOURSE_PROVIDER_TENSOR_FREIVALDS_H

#include "formats/tensor_op.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stdint.h>

struct freivalds {
    uint64_t rows, inner, columns;
    const float *a, *b, *c;
    uint8_t seed[TENSOR_SEED_BYTES];
    uint32_t rounds; /* 1 to TENSOR_ROUNDS_MOST */
};

struct freivalds_result {
    enum result_verdict verdict;
    uint32_t rounds; /* vectors that were drawn */
    double
        false_accept; /* at most this probable for a wrong row beyond the bounds; 1 unless accepted */
    double worst;     /* the largest residual as a part of its bound of acceptance */
    uint64_t row;     /* where that was; of a rejection: the row that decided */
    const char *why; /* one phrase */
};

/* Memory that the check takes beside the matrices. 0: more than can be counted. */
uint64_t freivalds_bytes(uint64_t rows, uint64_t inner, uint64_t columns);
/* False: out of memory. */
bool freivalds_run(const struct freivalds *check, struct freivalds_result *ret_result);

#endif
