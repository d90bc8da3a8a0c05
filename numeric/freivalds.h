/* numeric/freivalds.h computes the sums of Freivalds' check, which tells whether C is the product
 * of A and B.
 *
 * For a vector r of +1 and -1, C r = A (B r) if C is the product. If a row of C is wrong, the two
 * differ there for at least half of all r. All sums are doubles; base/residual.h judges them.
 *
 * A source yields blocks of the matrices, so that they may lie in memory or in files. Every sum
 * takes its terms in the order of the columns; therefore no result depends on the size of blocks.
 *
 * The callers draw the vectors, choose the rows and entries to recompute, and come to a verdict:
 * numeric/seeded_check.h for matrices in memory, consumer/product/product_check.h for files.
 *
 * A column of B with NaN or an infinity is odd. No sum over columns contains the odd ones. */
#ifndef BOURSE_NUMERIC_FREIVALDS_H
#define BOURSE_NUMERIC_FREIVALDS_H

#include "base/precision.h"
#include "base/residual.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FREIVALDS_WIDTH_MOST = 20,   /* vectors that pass through the matrices together */
    FREIVALDS_SAMPLE_DEPTH = 128 /* terms of a sample that are read at a time */
};

/* ---------------------------------------------------------------- the source */

enum freivalds_matrix { FREIVALDS_A, FREIVALDS_B, FREIVALDS_C };

struct freivalds_block { /* at least one element of a matrix */
    enum freivalds_matrix matrix;
    uint64_t row, column; /* first element */
    uint64_t rows, columns;
};

struct freivalds_view { /* the elements of a block; they belong to the source */
    const float *elements;
    uint64_t stride; /* from the beginning of one row to that of the next, in elements */
};

struct freivalds_source {
    uint64_t rows, inner, columns; /* A has rows x inner elements, and B inner x columns */
    /* The check asks for no larger block. At least PRECISION_SIDE. */
    uint64_t block_elements;
    /* Yields a block, which stays valid until the next call for the same matrix. Returns false when
     * the block cannot be read; the check then ends. */
    bool (*read)(void *context, const struct freivalds_block *block,
                 struct freivalds_view *ret_view);
    void *context;
};

/* ---------------------------------------------------------------- rows */

struct freivalds {
    const struct freivalds_source *source; /* borrowed */
    uint32_t width;                        /* vectors: 1 to FREIVALDS_WIDTH_MOST */
    /* columns x width: element t of each group belongs to vector t. The caller draws them. */
    double *signs;
    double *products;  /* inner x width: B r */
    double *b_sums;    /* for each row of B: |B| 1 */
    bool *odd_columns; /* for each column of B */
    bool has_odd_columns;
    bool has_b_sums;
    bool is_spoilt; /* the products and sums so far contain an odd column */
};

/* Returns the memory of a check in bytes. The caller has checked that the sum cannot overflow. */
uint64_t freivalds_bytes(uint64_t inner, uint64_t columns, uint32_t width);
/* Prepares a check; its vectors are zero. Returns false when memory is short. freivalds_fini frees
 * the memory in either case. */
bool freivalds_init(struct freivalds *check, const struct freivalds_source *source, uint32_t width);
void freivalds_fini(struct freivalds *check);

/* Computes B r for the vectors in `signs`. The first call also finds the odd columns and computes
 * |B| 1; it reads B again when there are odd columns. Returns false when B cannot be read. */
bool freivalds_project(struct freivalds *check);

struct freivalds_row { /* of struct residual_row */
    double reach, magnitude, squares;
    bool is_odd_a; /* the row of A has NaN or an infinity */
    bool is_odd_c; /* the row of C has one outside the odd columns */
};

struct freivalds_sums {         /* sums of adjacent rows; the arrays belong to the caller */
    double *left, *right;       /* for each row and vector: C r and A (B r); NULL: not wanted */
    struct freivalds_row *rows; /* NULL: not wanted */
};

/* Computes the sums of rows [from, to). freivalds_project comes first. Returns false when A or C
 * cannot be read. */
bool freivalds_sum_rows(const struct freivalds *check, uint64_t from, uint64_t to,
                        const struct freivalds_sums *sums);
/* Returns the bounds of a row. A row that is odd has none. */
struct residual_bounds freivalds_bounds(const struct freivalds *check,
                                        const struct freivalds_row *row);

/* ---------------------------------------------------------------- entries */

struct freivalds_entries { /* entries [column, column + count) of some rows of C */
    const uint64_t *rows;
    size_t row_count;
    uint64_t column, count;
    /* Arrays of row_count x count, which belong to the caller */
    float *found;  /* the entries of C */
    double *plus;  /* the sums of their positive terms */
    double *minus; /* the sums of their negative terms, without the sign */
};

/* Computes the sums in one reading of B, and reads the entries of C. Returns false when a matrix
 * cannot be read. */
bool freivalds_recompute(const struct freivalds_source *source,
                         const struct freivalds_entries *entries);
/* Computes the same entries in float32, term by term: row_count x count numbers. */
bool freivalds_recompute_plainly(const struct freivalds_source *source,
                                 const struct freivalds_entries *entries, float *ret_plain);

struct freivalds_sample { /* the entries where PRECISION_SIDE rows and columns of C meet */
    uint64_t rows[PRECISION_SIDE], columns[PRECISION_SIDE]; /* set by the caller */
    struct precision_sample sums;
    float found[PRECISION_SIDE][PRECISION_SIDE];
    bool is_odd; /* an operand or an entry is not finite; the sums are useless */
    float a[PRECISION_SIDE][FREIVALDS_SAMPLE_DEPTH]; /* for the computation */
    float b[FREIVALDS_SAMPLE_DEPTH][PRECISION_SIDE];
};

/* Sums up a sample. Columns in sequence are read together. Returns false when a matrix cannot be
 * read. */
bool freivalds_take_sample(const struct freivalds_source *source, struct freivalds_sample *sample);

#endif
