/* formats/npy.h reads and writes the header of a .npy file, which is NumPy's format of one array,
 * versions 1.0 to 3.0.
 *
 *     offset  size
 *          0     6  "\x93NUMPY"
 *          6     2  version: major, minor
 *          8     2  length of the text, little-endian (versions 2 and 3: 4 bytes)
 *         10     n  {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 *                   and spaces, a newline at the end
 *       10+n        the elements, the last index running fastest
 *
 * The header of a foreign file is not trusted. The reader compares the length that the header
 * declares with the file's length before anything is allocated. The reader knows arrays of numbers
 * alone, and refuses objects and records, which need Python. Refusals say what to do. */
#ifndef BOURSE_FORMATS_NPY_H
#define BOURSE_FORMATS_NPY_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NPY_DIMENSIONS = 8,
    NPY_HEADER_BYTES = 65536,                 /* of the text */
    NPY_PREFIX_BYTES = 12 + NPY_HEADER_BYTES, /* so many bytes of a file always hold its header */
    NPY_MATRIX_BYTES = 128,                   /* written by npy_write_matrix */
    NPY_HEADER_MOST = 320,                    /* written by npy_write */
    NPY_TYPE_SIZE = 32,
};

struct npy {
    char kind; /* b: bool, i: signed, u: unsigned, f: float, c: complex */
    uint32_t item_bytes;
    bool is_big_endian;
    bool is_fortran; /* true: the first index runs fastest */
    uint32_t dimension_count;
    uint64_t shape[NPY_DIMENSIONS];
    uint64_t element_count;
    uint64_t data_offset; /* place of the first element in the file */
    uint64_t data_bytes;
};

/* Reads the header of a file of `file_bytes`. The caller passes the first `length` bytes: the
 * whole file, or at least NPY_PREFIX_BYTES. On success the file holds exactly data_bytes behind
 * the header. Returns false with a problem (without the file's name); *ret_npy is then
 * unchanged. */
bool npy_read(const uint8_t *bytes, size_t length, uint64_t file_bytes, struct npy *ret_npy,
              struct problem *ret_problem);

/* Returns true when the matrix operations accept the array. They take float32 in this machine's
 * byte order, two dimensions, rows one after the other, and elements at their natural alignment.
 * Returns false with a problem otherwise. */
bool npy_is_matrix(const struct npy *npy, struct problem *ret_problem);

/* Writes the element's type as NumPy names it, such as "float32" or "int64, big-endian". */
void npy_type_text(const struct npy *npy, char ret_text[NPY_TYPE_SIZE]);

/* Writes a header of version 1.0 for an array of this kind, size of elements and shape, in this
 * machine's byte order, with the last index running fastest. Returns its length, which is a
 * multiple of 64. The other members do not count. */
size_t npy_write(const struct npy *npy, uint8_t ret_bytes[NPY_HEADER_MOST]);

/* Writes the header of a row-major float32 matrix, byte for byte as NumPy writes it. */
void npy_write_matrix(uint64_t rows, uint64_t columns, uint8_t ret_bytes[NPY_MATRIX_BYTES]);

#endif
