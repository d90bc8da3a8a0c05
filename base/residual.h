/* base/residual.h - how far off a row of a product of float32 matrices may be, and what a residual says of it.
 *
 * C is said to be A B. For a vector r of +1 and -1, the residual of row i is |C r - A (B r)|_i, in double. With u = 2^-24 and n
 * terms in each sum,
 *
 *     right      up to  (8 u sqrt(n) + 12 (u + u)) ||C_i||           what honest rounding amounts to, generously
 *     wrong      above  gamma_n (|A| (|B| 1))_i + our own rounding   what no order of summation exceeds, nor fused
 *                                                                    multiplication; gamma_n = n u / (1 - n u)
 *     doubtful   between them: nobody is accused
 *
 * A row that is not finite everywhere has no residual; callers leave it out. Pure. */
#ifndef BOURSE_BASE_RESIDUAL_H
#define BOURSE_BASE_RESIDUAL_H

#include <stdint.h>

enum residual { RESIDUAL_RIGHT, RESIDUAL_DOUBTFUL, RESIDUAL_WRONG };

struct residual_row { /* all are sums of doubles over the row */
    uint64_t inner;   /* n */
    uint64_t columns; /* that count: entries of C_i */
    double reach;     /* (|A| (|B| 1))_i: no entry and no partial sum is larger */
    double magnitude; /* sum of |c| */
    double squares;   /* sum of c^2 */
};

struct residual_bounds {
    double right; /* up to this */
    double wrong; /* above this, and above the other */
};

struct residual_bounds residual_bounds(const struct residual_row *row);
/* NaN is wrong. */
enum residual residual_judge(const struct residual_bounds *bounds, double residual);

#endif
