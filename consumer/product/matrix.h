/* consumer/product/matrix.h - matrices in .npy files: blocks read out of one, and one made out of
 * blocks. Not installed.
 *
 * A block is read with pread and written with pwrite, so that no matrix is ever in memory whole.
 * What is made has its final name only when it is complete: until then it is a file without a name
 * in the same folder, which goes away with its process; where the file system has no such files,
 * .bourse-PID-N.part. */
#ifndef BOURSE_CONSUMER_PRODUCT_MATRIX_H
#define BOURSE_CONSUMER_PRODUCT_MATRIX_H

#include "base/problem.h"
#include "formats/npy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct matrix {
    const char *path; /* borrowed */
    int fd;           /* -1: closed */
    uint64_t rows, columns;
    uint64_t data_offset;
};

struct matrix_block {
    uint64_t row, column;   /* its first element */
    uint64_t rows, columns; /* >= 1 */
};

/* Opens a float32 matrix with at least one element. The problem begins with the file's name. */
bool matrix_open(const char *path, struct matrix *ret_matrix, struct problem *ret_problem);
void matrix_close(struct matrix *matrix);
/* Reads the shape of such a matrix. */
bool matrix_shape(const char *path, uint64_t *ret_rows, uint64_t *ret_columns,
                  struct problem *ret_problem);
/* Reads a block of it, row after row. False also when the file has become shorter. */
bool matrix_read(const struct matrix *matrix, const struct matrix_block *block, float *ret_elements,
                 struct problem *ret_problem);

/* A block as a .npy file of its own: `length` bytes of it from `offset`. */
static inline uint64_t matrix_blob_bytes(const struct matrix_block *block)
{
    return NPY_MATRIX_BYTES + block->rows * block->columns * sizeof(float);
}
bool matrix_read_blob(const struct matrix *matrix, const struct matrix_block *block,
                      uint64_t offset, size_t length, uint8_t *ret_bytes,
                      struct problem *ret_problem);
/* Where the bytes of it from `offset` on lie in the matrix's file: how many together, and where. 0:
 * nowhere. */
uint64_t matrix_find_blob(const struct matrix *matrix, const struct matrix_block *block,
                          uint64_t offset, uint64_t *ret_at);
/* Where the elements begin in such a file of `size` bytes, whose first `length` are given: all, or
 * NPY_PREFIX_BYTES at least. It must have exactly the block's shape; the problem says what it has
 * instead. */
bool matrix_blob_begin(const uint8_t *bytes, size_t length, uint64_t size,
                       const struct matrix_block *block, uint64_t *ret_offset,
                       struct problem *ret_problem);

struct matrix_draft;

/* Begins a matrix that is to be called `path`, in an existing folder, with room on the disk for all
 * of it. NULL with the problem. */
struct matrix_draft *matrix_draft_create(const char *path, uint64_t rows, uint64_t columns,
                                         struct problem *ret_problem);
/* What was not kept is removed. */
void matrix_draft_destroy(struct matrix_draft **self);
bool matrix_draft_write(struct matrix_draft *draft, const struct matrix_block *block,
                        const float *elements, struct problem *ret_problem);
/* `length` bytes of the block's elements, from byte `offset` of them on. */
bool matrix_draft_write_bytes(struct matrix_draft *draft, const struct matrix_block *block,
                              uint64_t offset, const uint8_t *bytes, size_t length,
                              struct problem *ret_problem);
/* What is written so far, to be read like any matrix; it lives as long as the draft and is not
 * closed. */
const struct matrix *matrix_draft_matrix(const struct matrix_draft *draft);
/* Makes it durable and gives it its name; a file of that name is replaced. */
bool matrix_draft_keep(struct matrix_draft *draft, struct problem *ret_problem);

#endif
