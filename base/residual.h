/* base/residual.h judges the error of a product of float32 matrices.
 *
 * C claims to be A B, and u = 2^-24. The first test is by rows. For a vector r of +1 and -1 the
 * residual of row i is |C r - A (B r)|_i, computed in double. With n terms in each sum, a row is
 *
 *  right      up to  (8 u sqrt(n) + 24 u) ||C_i||
 *             a generous bound on honest rounding
 *  wrong      above  gamma_n (|A| (|B| 1))_i + our own rounding
 *             no order of summation and no fused multiplication exceeds this;
 *             gamma_n = n u / (1 - n u)
 *  doubtful   between them: the entries of the row are computed
 *
 * The second test computes an entry anew. The sums of its positive and of its negative terms bound
 * the possible results in float32. Let s be the sum of all magnitudes. By its error, an entry is
 *
 *  right      up to  min(8 sqrt(n) u, gamma_n) s + n 2^-149
 *             independent rounding errors stay below, except one time in
 *             e^32 / 2 n (Higham and Mary, SIAM J. Sci. Comput. 41, 2019)
 *  wrong      above  gamma_n s + (2 n + 1) 2^-126
 *             no float32 result is further off, even if tiny values are flushed to zero
 *  doubtful   between them: nobody is accused. The entry is right after all when it is as close
 *             (residual_agrees) to the float32 sum term by term, whose errors may all have one
 *             sign
 *
 * An infinity is right where a partial sum in some order may pass the end of float32's range. NaN
 * is right where partial sums may pass both ends. Infinities and NaN are right, too, where infinite
 * or NaN operands cause them. */
#ifndef BOURSE_BASE_RESIDUAL_H
#define BOURSE_BASE_RESIDUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum residual { RESIDUAL_RIGHT, RESIDUAL_DOUBTFUL, RESIDUAL_WRONG };

struct residual_row { /* sums of doubles over the row */
    uint64_t inner;   /* n: the terms of each sum */
    uint64_t columns; /* finite entries of C_i */
    /* The reach is (|A| (|B| 1))_i: no entry and no partial sum is larger. */
    double reach;
    double magnitude; /* sum of |c| */
    double squares;   /* sum of c^2 */
};

struct residual_bounds {
    double right; /* up to this: right */
    /* Right entries add up to at most this. A doubtful row above it has other entries. */
    double close;
    double wrong; /* above this and above `right`: wrong */
};

/* Returns the bounds of a row. A row with an entry that is not finite has no residual; callers
 * leave it out. */
struct residual_bounds residual_bounds(const struct residual_row *row);
/* Judges a residual. NaN is wrong. */
enum residual residual_judge(const struct residual_bounds *bounds, double residual);

/* Adds one term, a b[j], to each of `count` entries. `plus` and `minus` are the sums of positive
 * and of negative terms without their sign. An infinite term makes one of them infinite; NaN
 * makes both NaN. */
void residual_add_terms(float a, const float *b, size_t count, double *plus, double *minus);
/* Judges whether `found` may be the float32 sum of these `inner` terms. */
enum residual residual_judge_entry(uint64_t inner, double plus, double minus, float found);
/* Returns true when `found` is close to `other`, a float32 sum of the same terms. The tolerance
 * is the one between a right entry and the exact sum. */
bool residual_agrees(uint64_t inner, double plus, double minus, float found, float other);
/* Returns true when a partial sum of `inner` terms may pass the end of float32's range. `reach`
 * is the sum of their magnitudes. */
bool residual_may_overflow(uint64_t inner, double reach);

#endif
