/* base/precision.h judges whether the factors of a product had been rounded to fewer bits.
 *
 * Long sums that are honestly rounded, but in an unlucky order, are as far off as sums of bfloat16
 * factors. The size of an error therefore proves nothing (base/residual.h). The direction of the
 * errors does. Rounding A to A' changes C by T = (A' - A) B, which is known for each entry;
 * rounding B to B' changes C by T = A (B' - B). The errors of honest sums do not follow T. The
 * sample has 32 x 32 entries. Each entry is divided by the sum of its magnitudes, and the means of
 * its row and column are subtracted. The errors of C are then compared with T of either factor:
 *
 *  slope      sum of error T / sum of T^2. The slope is 1 for a product of rounded factors,
 *             2 where T of A and T of B are alike, and 0 for an honest product. A slope from
 *             1/2 to 5/2 counts as rounded.
 *  evidence   sum of U / sqrt(sum of U^2) >= 4.5, where U is the sum of error T in a row; the
 *             same by columns. Errors with either sign equally likely reach 4.5 by chance
 *             once in e^10 = 25,000 times.
 *
 * C is called reduced when both factors show the trace. Chance does this once in 6e8 times, and
 * only where honest errors are as large as T. One factor may have no more bits than the format has,
 * so that only the other factor can show the trace. Sums in float32 may then round their terms in
 * the same places, so the product is called doubtful. */
#ifndef BOURSE_BASE_PRECISION_H
#define BOURSE_BASE_PRECISION_H

#include <stddef.h>
#include <stdint.h>

enum {
    PRECISION_SIDE = 32, /* rows and columns of the sample */
    /* The formats have 8 or 11 bits (bfloat16; TF32 and float16) and round to nearest or towards
     * zero. */
    PRECISION_FORMATS = 4,
};
enum precision { PRECISION_FULL, PRECISION_DOUBTFUL, PRECISION_REDUCED };

struct precision_entry { /* sums over the terms so far */
    double product, magnitude;
    double lost_a[PRECISION_FORMATS], lost_b[PRECISION_FORMATS];
};
struct precision_sample { /* zeroed by the caller */
    struct precision_entry entries[PRECISION_SIDE][PRECISION_SIDE];
};

/* Adds one term to each entry: one column of A times the row of B that it meets. All values are
 * finite. */
void precision_add(struct precision_sample *sample, const float a[PRECISION_SIDE],
                   const float b[PRECISION_SIDE]);
/* Judges the sample after all terms are added. `found` holds the PRECISION_SIDE rows of entries
 * of C, all finite. */
enum precision precision_judge(const struct precision_sample *sample,
                               float (*found)[PRECISION_SIDE]);

#endif
