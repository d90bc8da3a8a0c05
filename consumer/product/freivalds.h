/* consumer/product/freivalds.h - whether C is the product of A and B, without computing it again.
 * Not installed.
 *
 * Freivalds: for a random vector r of +1 and -1, C r = A (B r) costs three products of a matrix and
 * a vector. An entry that is wrong by more than rounding explains shows in its row with probability
 * 1/2 at least, in 20 rounds all but one time in a million. All sums are doubles; which residuals
 * |C r - A (B r)| are right, doubtful or wrong is said in base/residual.h. Rows that are wrong,
 * some of the doubtful ones (the worst, and others at random), and some at random are then computed
 * anew in double, entry by entry: this names the tiles, and finds how far off the product is.
 *
 * Where sums are long, a product of factors that were rounded to fewer bits is no further off than
 * honest rounding may be. So in some tiles the errors of 32 x 32 entries are looked at together
 * (base/precision.h).
 *
 * NaN and infinities: a row of A or a column of B that has one has no residual. Such rows, and the
 * entries of such columns, are looked at only where a row is computed anew; how many are left is
 * reported. */
#ifndef BOURSE_CONSUMER_PRODUCT_FREIVALDS_H
#define BOURSE_CONSUMER_PRODUCT_FREIVALDS_H

#include "base/problem.h"
#include "consumer/product/matrix.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    FREIVALDS_ROUNDS = 20,
    FREIVALDS_WRONG = 64, /* rows computed anew at most: wrong ones, two of each row of tiles, */
    FREIVALDS_WORST = 24, /* the most doubtful, */
    FREIVALDS_UNSURE = 8, /* doubtful ones and those with NaN or infinity, at random, */
    FREIVALDS_SAMPLE = 8, /* and any, at random */
    FREIVALDS_NAMED = 8,  /* wrong tiles that are told one by one */
    FREIVALDS_PRECISE =
        8 /* tiles of which a sample shows whether their factors were rounded, at random */
};

struct freivalds_grid { /* of the tiles, for names */
    uint32_t rows, columns;
};

struct freivalds_tile {
    uint32_t row, column;
    uint64_t at_row, at_column; /* its first wrong entry, in C */
    float found;
    double expected;
};

struct freivalds {
    bool is_right; /* nothing was found wrong */
    uint64_t wrong_rows, doubtful_rows;
    uint64_t unchecked_rows;    /* they have a NaN or an infinity, and were not computed anew */
    uint64_t unchecked_columns; /* the same: looked at only in rows computed anew */
    uint64_t rows_anew;
    double max_rel_error; /* of entries computed anew: |c - exact| / root mean square of its row */
    uint64_t reduced_tiles; /* made of factors that had been rounded to fewer bits; they are wrong
                               ones too */
    uint64_t wrong_tiles;
    struct freivalds_tile tiles[FREIVALDS_NAMED]; /* the first of them */
};

/* Reads A and C once, and B some times: twice where all is well. False when something cannot be
 * read, or without memory for inner x 20 numbers. The dice are the machine's entropy. */
bool freivalds_check(const struct matrix *a, const struct matrix *b, const struct matrix *c,
                     const struct freivalds_grid *grid, struct freivalds *ret_verdict,
                     struct problem *ret_problem);

#endif
