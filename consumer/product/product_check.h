/* consumer/product/product_check.h checks that C is the product of A and B, three matrices in
 * files, and names the wrong tiles. The header is not installed.
 *
 * The check is Freivalds' (numeric/freivalds.h), with random vectors of this machine. It costs
 * three products of a matrix and a vector. An entry that is wrong by more than rounding shows in
 * its row with probability 1/2 at least; 20 vectors miss it one time in a million. base/residual.h
 * says which residuals are right, doubtful or wrong. Wrong rows, some doubtful rows (the worst, and
 * random ones) and some random rows are then computed anew in double, entry by entry. The entries
 * name the wrong tiles and show how far off the product is.
 *
 * In long sums, factors rounded to fewer bits cause no larger error than honest rounding may. In
 * some tiles the errors of 32 x 32 entries are therefore examined together (base/precision.h).
 *
 * NaN and infinities: a row of A or a column of B with one has no residual. Such rows, and the
 * entries of such columns, are checked only in rows that are computed anew. The verdict counts the
 * unchecked ones. */
#ifndef BOURSE_CONSUMER_PRODUCT_PRODUCT_CHECK_H
#define BOURSE_CONSUMER_PRODUCT_PRODUCT_CHECK_H

#include "base/problem.h"
#include "consumer/product/matrix.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PRODUCT_CHECK_ROUNDS = 20,
    PRODUCT_CHECK_WRONG = 64, /* rows computed anew at most: wrong ones, two of each row of tiles */
    PRODUCT_CHECK_WORST = 24, /* the most doubtful rows */
    PRODUCT_CHECK_UNSURE = 8, /* random rows that are doubtful or have NaN or infinity */
    PRODUCT_CHECK_SAMPLE = 8, /* random rows of any kind */
    PRODUCT_CHECK_NAMED = 8,  /* wrong tiles that the verdict lists */
    /* Random tiles whose sample shows whether their factors were rounded. */
    PRODUCT_CHECK_PRECISE = 8
};

struct product_check_grid { /* the grid of tiles, for names */
    uint32_t rows, columns;
};

struct product_check_tile {
    uint32_t row, column;
    uint64_t at_row, at_column; /* the tile's first wrong entry, in C */
    float found;
    double expected;
};

struct product_check {
    bool is_right; /* no fault was found */
    uint64_t wrong_rows, doubtful_rows;
    uint64_t unchecked_rows;    /* rows with NaN or infinity that were not computed anew */
    uint64_t unchecked_columns; /* columns with one; checked only in rows computed anew */
    uint64_t rows_anew;
    /* Largest |c - exact| / root mean square of its row, over entries computed anew. */
    double max_rel_error;
    uint64_t reduced_tiles; /* wrong tiles made of factors rounded to fewer bits */
    uint64_t wrong_tiles;
    struct product_check_tile tiles[PRODUCT_CHECK_NAMED]; /* the first wrong tiles */
};

/* Checks C; reads A and C once, and B twice or more. Returns false when a file cannot be read, or
 * when memory for (inner + columns) x 20 numbers is short. The machine's entropy gives the random
 * numbers. */
bool product_check_run(const struct matrix *a, const struct matrix *b, const struct matrix *c,
                       const struct product_check_grid *grid, struct product_check *ret_verdict,
                       struct problem *ret_problem);

#endif
