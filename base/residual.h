/* base/residual.h - how far off a product of float32 matrices may be, and what is to be thought of
 * one that is.
 *
 * C is said to be A B, and u = 2^-24. First rows are looked at: for a vector r of +1 and -1 the
 * residual of row i is |C r - A (B r)|_i, in double. With n terms in each sum,
 *
 *     right      up to  (8 u sqrt(n) + 12 (u + u)) ||C_i||           what honest rounding amounts to, generously
 *     wrong      above  gamma_n (|A| (|B| 1))_i + our own rounding   what no order of summation exceeds, nor fused
 *                                                                    multiplication; gamma_n = n u / (1 - n u)
 *     doubtful   between them: its entries are looked at
 *
 * Where an entry is computed anew, the sums of its positive and of its negative terms say what
 * float32 may make of it. With s, the sum of all magnitudes,
 *
 *     right      up to  min(8 sqrt(n) u, gamma_n) s + n 2^-149   independent rounding errors stay below it but for one time in
 *                                                                e^32 / 2 n (Higham and Mary, SIAM J. Sci. Comput. 41, 2019)
 *     wrong      above  gamma_n s + (2 n + 1) 2^-126             even where what is tiny becomes zero
 *     doubtful   between them: nobody is accused. Right after all is what agrees so well with the sum term by term in
 *                float32, where errors may all have one sign
 *
 * An infinity is right where a partial sum in some order may pass the end of the range, NaN where
 * partial sums may pass both ends; both, too, where the operands lead to them. Pure. */
#ifndef BOURSE_BASE_RESIDUAL_H
#define BOURSE_BASE_RESIDUAL_H

#include <stdbool.h>
#include <stddef.h>
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
    double
        close; /* what entries that are all right add up to: a doubtful row above it has others */
    double wrong; /* above this, and above the others */
};

/* A row that is not finite everywhere has no residual; callers leave it out. */
struct residual_bounds residual_bounds(const struct residual_row *row);
/* NaN is wrong. */
enum residual residual_judge(const struct residual_bounds *bounds, double residual);

/* Adds one term, a b[j], to each of `count` entries. `plus` and `minus` are the sums of positive
 * and of negative terms without their sign; infinite terms make one of them infinite, NaN makes
 * both NaN. */
void residual_add_terms(float a, const float *b, size_t count, double *plus, double *minus);
/* Whether `found` may be the float32 sum of these `inner` terms. */
enum residual residual_judge_entry(uint64_t inner, double plus, double minus, float found);
/* Whether `found` is as near to `other`, a float32 sum of the same terms, as one that is right is
 * to the exact sum. */
bool residual_agrees(uint64_t inner, double plus, double minus, float found, float other);
/* Whether a partial sum of so many terms may pass the end of float32's range when their magnitudes
 * add up to `reach`. */
bool residual_may_overflow(uint64_t inner, double reach);

#endif
