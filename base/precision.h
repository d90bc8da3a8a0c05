/* base/precision.h - whether a product was made of factors that had been rounded to fewer bits.
 *
 * Where sums are long, honest rounding in an unfortunate order is as far off as factors of
 * bfloat16, so that the size of an error says nothing (base/residual.h). Its direction does: what
 * is lost by rounding A, T = (A' - A) B, and by rounding B is known for each entry, and the errors
 * of honest sums do not follow it. Over a sample of 32 x 32 entries, each as a part of the sum of
 * its magnitudes and without the means of its row and its column, the errors of C are compared with
 * T of either factor:
 *
 *     slope      sum of error T / sum of T^2 is 1 for such a product, 2 where both T are alike, and 0 for an
 *                honest one; from 1/2 to 5/2 is taken for the former
 *     evidence   sum of U / sqrt(sum of U^2) >= 4.5, U being the sum of error T in a row, and the same by columns. When errors
 *                are as likely to have one sign as the other, chance does that once in e^10 = 25,000 times
 *
 * Both factors have to show it for C to be called reduced: once in 6e8 times by chance, and only
 * where honest errors are as large as T. Where one factor has no more bits than that, so that only
 * the other can show it, sums in float32 may round its terms in the same places: that is called
 * doubtful. Pure. */
#ifndef BOURSE_BASE_PRECISION_H
#define BOURSE_BASE_PRECISION_H

#include <stddef.h>
#include <stdint.h>

enum {
    PRECISION_SIDE = 32, /* rows and columns of the sample */
    PRECISION_FORMATS =
        4, /* 8 and 11 bits (bfloat16; TF32 and float16), to nearest and towards zero */
};
enum precision { PRECISION_FULL, PRECISION_DOUBTFUL, PRECISION_REDUCED };

struct precision_entry { /* sums over the terms so far */
    double product, magnitude;
    double lost_a[PRECISION_FORMATS], lost_b[PRECISION_FORMATS];
};
struct precision_sample { /* zeroed by the caller */
    struct precision_entry entries[PRECISION_SIDE][PRECISION_SIDE];
};

/* Adds a term to each entry: of one column of A and the row of B that it meets, all finite. */
void precision_add(struct precision_sample *sample, const float a[PRECISION_SIDE],
                   const float b[PRECISION_SIDE]);
/* When all terms have been added; `found` are the PRECISION_SIDE rows of entries of C, finite. */
enum precision precision_judge(const struct precision_sample *sample,
                               float (*found)[PRECISION_SIDE]);

#endif
