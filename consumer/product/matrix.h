/* consumer/product/matrix.h reads blocks of matrices in .npy files, and makes a matrix out of
 * blocks. The header is not installed.
 *
 * pread reads a block and pwrite writes one, so that no matrix is ever whole in memory. A new
 * matrix gets its final name when it is complete. Until then it is a file without a name in the
 * same folder, which disappears with the process. A file system without such files gets
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
    uint64_t row, column;   /* first element */
    uint64_t rows, columns; /* >= 1 */
};

/* Opens a float32 matrix with at least one element. The problem begins with the file's name. */
bool matrix_open(const char *path, struct matrix *ret_matrix, struct problem *ret_problem);
void matrix_close(struct matrix *matrix);
/* Reads the shape of a float32 matrix. */
bool matrix_shape(const char *path, uint64_t *ret_rows, uint64_t *ret_columns,
                  struct problem *ret_problem);
/* Reads a block, row after row. Returns false also when the file has become shorter. */
bool matrix_read(const struct matrix *matrix, const struct matrix_block *block, float *ret_elements,
                 struct problem *ret_problem);

/* Reads a block as a .npy file of its own: `length` bytes from `offset`. */
static inline uint64_t matrix_blob_bytes(const struct matrix_block *block)
{
    return NPY_MATRIX_BYTES + block->rows * block->columns * sizeof(float);
}
bool matrix_read_blob(const struct matrix *matrix, const struct matrix_block *block,
                      uint64_t offset, size_t length, uint8_t *ret_bytes,
                      struct problem *ret_problem);
/* Finds where the blob's bytes from `offset` on lie in the matrix's file. Returns how many lie
 * together there, and their place in `ret_at`; 0: none. */
uint64_t matrix_find_blob(const struct matrix *matrix, const struct matrix_block *block,
                          uint64_t offset, uint64_t *ret_at);
/* Finds where the elements begin in a .npy file of `size` bytes. `bytes` holds the first `length`
 * bytes: all, or NPY_PREFIX_BYTES at least. The file must have exactly the block's shape; the
 * problem gives its actual shape. */
bool matrix_blob_begin(const uint8_t *bytes, size_t length, uint64_t size,
                       const struct matrix_block *block, uint64_t *ret_offset,
                       struct problem *ret_problem);

struct matrix_draft;

/* Begins a matrix with the final name `path`, in an existing folder, and reserves all its disk
 * space. Returns NULL and the problem on failure. */
struct matrix_draft *matrix_draft_create(const char *path, uint64_t rows, uint64_t columns,
                                         struct problem *ret_problem);
/* Frees the draft; an unkept file is removed. */
void matrix_draft_destroy(struct matrix_draft **self);
bool matrix_draft_write(struct matrix_draft *draft, const struct matrix_block *block,
                        const float *elements, struct problem *ret_problem);
/* Writes `length` bytes of the block's elements, from byte `offset` of them on. */
bool matrix_draft_write_bytes(struct matrix_draft *draft, const struct matrix_block *block,
                              uint64_t offset, const uint8_t *bytes, size_t length,
                              struct problem *ret_problem);
/* Returns the written part as a matrix to read. The draft owns the matrix; the caller does not
 * close it. */
const struct matrix *matrix_draft_matrix(const struct matrix_draft *draft);
/* Makes the matrix durable and gives it its name; a file of that name is replaced. */
bool matrix_draft_keep(struct matrix_draft *draft, struct problem *ret_problem);

#endif
