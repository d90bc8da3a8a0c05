/* lying-tensor: bourse-tensor whose products are lies, for tests of those who find them out. With
 * it beside an honest agent's program, all that the agent signs is well formed, and wrong.
 *
 * Which lie is the last word of the program's own file, after a line of its own: `{ cat
 * lying-tensor; echo; echo zeros; }`.
 *
 *     entry      one entry is another
 *     precision  computed from factors rounded to bfloat16
 *     zeros      no work at all
 *     old        another product: the columns stand one place further
 *     shape      a product of fewer rows, as short as its header says
 *     garbage    bytes of the right length that are no matrix
 *     reject     products are right, and every check rejects what it looks at
 *
 * Linked with --wrap=operation_run, it stands between the program and what computes. */
#include "formats/npy.h"
#include "formats/tensor_op.h"
#include "provider/tensor/ask.h"
#include "provider/tensor/gemm.h"
#include "provider/tensor/operation.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIE_BYTES = 32 };

enum operation_status __real_operation_run(const struct operation_files *files,
                                           const struct operation_multiplier *multiplier,
                                           const char *const *arguments, size_t count,
                                           uint64_t memory_bytes,
                                           struct operation_answer *ret_answer,
                                           struct problem *ret_problem);
enum operation_status __wrap_operation_run(const struct operation_files *files,
                                           const struct operation_multiplier *multiplier,
                                           const char *const *arguments, size_t count,
                                           uint64_t memory_bytes,
                                           struct operation_answer *ret_answer,
                                           struct problem *ret_problem);

/* The operation closes the files that it was given; these are copies. */
static struct operation_given kept[OPERATION_GIVEN_MOST];
static size_t kept_count;

struct matrix {
    uint8_t *file;
    size_t file_bytes;
    uint64_t rows, columns;
    float *values;
};

static void read_lie(char ret_lie[LIE_BYTES])
{
    struct stat status;
    char tail[LIE_BYTES] = "";
    int file = open(TENSOR_PROGRAM, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0 || status.st_size < LIE_BYTES ||
        pread(file, tail, sizeof tail - 1, status.st_size - (LIE_BYTES - 1)) != LIE_BYTES - 1) {
        (void)fputs("lying-tensor: cannot read itself\n", stderr);
        exit(1);
    }
    (void)close(file);
    tail[LIE_BYTES - 2] = '\0'; /* the last newline */
    const char *line = memrchr(tail, '\n', LIE_BYTES - 2);
    (void)snprintf(ret_lie, LIE_BYTES, "%s", line != NULL ? line + 1 : "");
}

static int open_input(const char *name)
{
    for (size_t i = 0; i < kept_count; i++) {
        if (strcmp(kept[i].name, name) == 0) {
            return dup(kept[i].file);
        }
    }
    return open(name, O_RDONLY | O_CLOEXEC);
}

static struct matrix load(const char *name)
{
    struct matrix matrix = {.file = NULL};
    struct stat status;
    struct npy npy;
    int file = open_input(name);
    if (file < 0 || fstat(file, &status) != 0 || status.st_size <= 0) {
        exit(1);
    }
    matrix.file_bytes = (size_t)status.st_size;
    matrix.file = malloc(matrix.file_bytes);
    if (matrix.file == NULL ||
        pread(file, matrix.file, matrix.file_bytes, 0) != (ssize_t)matrix.file_bytes ||
        !npy_read(matrix.file, matrix.file_bytes, matrix.file_bytes, &npy, NULL) ||
        !npy_is_matrix(&npy, NULL)) {
        exit(1);
    }
    (void)close(file);
    matrix.rows = npy.shape[0];
    matrix.columns = npy.shape[1];
    matrix.values = (float *)(void *)(matrix.file + npy.data_offset);
    return matrix;
}

static void store(const char *name, const void *bytes, size_t length)
{
    int file = open(name, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (file < 0 || write(file, bytes, length) != (ssize_t)length || close(file) != 0) {
        exit(1);
    }
}

static void round_to_bfloat16(struct matrix *matrix)
{
    for (uint64_t i = 0; i < matrix->rows * matrix->columns; i++) {
        uint32_t bits;
        memcpy(&bits, &matrix->values[i], sizeof bits);
        bits = (bits + 0x8000U) & 0xffff0000U;
        memcpy(&matrix->values[i], &bits, sizeof bits);
    }
}

static void compute_in_bfloat16(const struct tensor_op *op, struct matrix *product)
{
    struct matrix a = load(op->a);
    struct matrix b = load(op->b);
    round_to_bfloat16(&a);
    round_to_bfloat16(&b);
    struct gemm gemm = {.rows = a.rows,
                        .inner = a.columns,
                        .columns = b.columns,
                        .alpha = 1,
                        .a = a.values,
                        .b = b.values,
                        .c = product->values};
    if (gemm_run(&gemm) != GEMM_OK) {
        exit(1);
    }
    free(a.file);
    free(b.file);
}

static void move_columns(struct matrix *product)
{
    for (uint64_t i = 0; i < product->rows; i++) {
        float *row = product->values + i * product->columns;
        float first = row[0];
        memmove(row, row + 1, (size_t)(product->columns - 1) * sizeof *row);
        row[product->columns - 1] = first;
    }
}

static void lie_about(const struct tensor_op *op, const char *lie)
{
    struct matrix product = load(op->result);
    size_t length = product.file_bytes;
    if (strcmp(lie, "entry") == 0) {
        product.values[product.rows * product.columns / 2] += 1;
    } else if (strcmp(lie, "precision") == 0) {
        compute_in_bfloat16(op, &product);
    } else if (strcmp(lie, "zeros") == 0) {
        memset(product.values, 0, (size_t)(product.rows * product.columns) * sizeof(float));
    } else if (strcmp(lie, "old") == 0) {
        move_columns(&product);
    } else if (strcmp(lie, "shape") == 0) {
        npy_write_matrix(product.rows - 1, product.columns, product.file);
        length -= (size_t)product.columns * sizeof(float);
    } else if (strcmp(lie, "garbage") == 0) {
        memset(product.file, 0x5a, length);
    } else {
        (void)fprintf(stderr, "lying-tensor: no lie '%s'\n", lie);
        exit(1);
    }
    store(op->result, product.file, length);
    free(product.file);
}

enum operation_status __wrap_operation_run(const struct operation_files *files,
                                           const struct operation_multiplier *multiplier,
                                           const char *const *arguments, size_t count,
                                           uint64_t memory_bytes,
                                           struct operation_answer *ret_answer,
                                           struct problem *ret_problem)
{
    char lie[LIE_BYTES];
    struct tensor_op op;
    kept_count = files->given_count;
    for (size_t i = 0; i < kept_count; i++) {
        kept[i] = (struct operation_given){.name = files->given[i].name,
                                           .file = dup(files->given[i].file)};
    }
    enum operation_status status = __real_operation_run(files, multiplier, arguments, count,
                                                        memory_bytes, ret_answer, ret_problem);
    if (status == OPERATION_OK && tensor_op_read(arguments, count, false, &op, NULL) &&
        op.result != NULL) {
        read_lie(lie);
        if (strcmp(lie, "reject") != 0) {
            lie_about(&op, lie);
        }
    }
    if (status == OPERATION_OK && ret_answer->verdict != VERDICT_NONE) {
        read_lie(lie);
        if (strcmp(lie, "reject") == 0) {
            ret_answer->verdict = VERDICT_REJECT;
        }
    }
    for (size_t i = 0; i < kept_count; i++) {
        (void)close(kept[i].file);
    }
    return status;
}
