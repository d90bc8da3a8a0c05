#include "provider/tensor/operation.h"

#include "base/text.h"
#include "formats/npy.h"
#include "formats/tensor_op.h"
#include "numeric/seeded_check.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct matrix {
    bool is_there; /* a file of its name exists */
    uint8_t *file; /* mapped; NULL: nothing */
    size_t file_bytes;
    uint64_t rows, columns;
    float *values; /* part of the mapped file */
};

/* One input. */
struct mapped {
    const char *name;
    void *bytes; /* MAP_FAILED: not mapped, for the reason in `error` */
    size_t size; /* 0: there is nothing to map */
    int error;
    bool is_regular;
};

struct operation {
    int folder;
    const struct operation_multiplier *multiplier;
    struct mapped given[OPERATION_GIVEN_MOST], opened[OPERATION_GIVEN_MOST];
    size_t given_count, opened_count;
    struct tensor_op op;
    uint64_t memory_bytes;
    struct matrix a, b, c;
    struct operation_answer *answer;
    struct problem *problem;
};

static enum operation_status fail(const struct operation *operation, enum operation_status status,
                                  const char *name, const char *what)
{
    problem_set(operation->problem, "%.200s: %s", name, what);
    return status;
}

const struct hash32 *operation_contents_find(const struct operation_contents *contents,
                                             const char *name)
{
    for (size_t i = 0; contents != NULL && i < contents->count; i++) {
        if (strcmp(contents->items[i].name, name) == 0) {
            return &contents->items[i].hash;
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- operands */

static bool take_header(const struct operation *operation, const char *name, struct matrix *matrix)
{
    struct npy npy;
    struct problem why = {""};
    if (!npy_read(matrix->file, matrix->file_bytes, matrix->file_bytes, &npy, &why) ||
        !npy_is_matrix(&npy, &why)) {
        (void)fail(operation, OPERATION_FAILED, name, why.text);
        return false;
    }
    matrix->rows = npy.shape[0];
    matrix->columns = npy.shape[1];
    matrix->values = (float *)(void *)(matrix->file + npy.data_offset); /* a multiple of 4 */
    return true;
}

/* Takes the file over. */
static struct mapped map_file(const char *name, int file)
{
    struct stat status;
    struct mapped mapped = {.name = name, .bytes = MAP_FAILED};
    mapped.is_regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    mapped.size = mapped.is_regular ? (size_t)status.st_size : 0;
    if (mapped.size > 0) {
        mapped.bytes = mmap(NULL, mapped.size, PROT_READ, MAP_PRIVATE, file, 0);
    }
    mapped.error = errno;
    (void)close(file);
    return mapped;
}

static void unmap_all(struct mapped *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].bytes != MAP_FAILED) {
            (void)munmap(list[i].bytes, list[i].size);
        }
    }
}

static const struct mapped *find_given(const struct operation *operation, const char *name)
{
    for (size_t i = 0; i < operation->given_count; i++) {
        if (strcmp(operation->given[i].name, name) == 0) {
            return &operation->given[i];
        }
    }
    return NULL;
}

/* Maps an input of the folder, or one that was given open. */
static enum operation_status map_input(struct operation *operation, const char *name,
                                       struct matrix *matrix)
{
    const struct mapped *found = find_given(operation, name);
    if (found == NULL) {
        int file = openat(operation->folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file < 0) {
            return fail(operation, OPERATION_FAILED, name,
                        errno == ENOENT ? "no such file in the work folder; list it under `files`"
                                        : strerror(errno));
        }
        operation->opened[operation->opened_count] = map_file(name, file);
        found = &operation->opened[operation->opened_count++];
    }
    matrix->is_there = true;
    if (found->size == 0) {
        return fail(operation, OPERATION_FAILED, name,
                    found->is_regular ? "the file is empty; np.save writes a .npy file"
                                      : "the path is no regular file");
    }
    if (found->bytes == MAP_FAILED) {
        return fail(operation, found->error == ENOMEM ? OPERATION_MEMORY : OPERATION_FAILED, name,
                    strerror(found->error));
    }
    matrix->file = found->bytes;
    matrix->file_bytes = found->size;
    return take_header(operation, name, matrix) ? OPERATION_OK : OPERATION_FAILED;
}

/* Maps A and B, and checks that both are matrices whose shapes fit. */
static enum operation_status take_factors(struct operation *operation)
{
    const struct tensor_op *op = &operation->op;
    enum operation_status status = map_input(operation, op->a, &operation->a);
    status = status != OPERATION_OK ? status : map_input(operation, op->b, &operation->b);
    if (status != OPERATION_OK) {
        return status;
    }
    const struct matrix *a = &operation->a;
    const struct matrix *b = &operation->b;
    if (a->columns != b->rows) {
        problem_set(operation->problem,
                    "the shapes do not fit: %.100s is %" PRIu64 " x %" PRIu64 " and %.100s %" PRIu64
                    " x %" PRIu64 "; the first must have as many columns as the second has rows",
                    op->a, a->rows, a->columns, op->b, b->rows, b->columns);
        return OPERATION_FAILED;
    }
    return OPERATION_OK;
}

/* Maps C and checks that it has the shape of the product. */
static enum operation_status take_c(struct operation *operation)
{
    const struct tensor_op *op = &operation->op;
    const struct matrix *a = &operation->a;
    const struct matrix *b = &operation->b;
    const struct matrix *c = &operation->c;
    enum operation_status status = map_input(operation, op->c, &operation->c);
    if (status == OPERATION_OK && (c->rows != a->rows || c->columns != b->columns)) {
        problem_set(operation->problem,
                    "the shapes do not fit: %.100s is %" PRIu64 " x %" PRIu64
                    ", and the product of %.100s and %.100s is %" PRIu64 " x %" PRIu64,
                    op->c, c->rows, c->columns, op->a, op->b, a->rows, b->columns);
        return OPERATION_FAILED;
    }
    return status;
}

/* ---------------------------------------------------------------- matmul and gemm */

static enum operation_status no_room(const struct operation *operation, uint64_t bytes, int error)
{
    const struct tensor_op *op = &operation->op;
    if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
        problem_set(operation->problem,
                    "%.200s: the result of %" PRIu64
                    " bytes does not fit beside the inputs; raise `limits: {disk: ...}`",
                    op->result, bytes);
        return OPERATION_DISK;
    }
    return fail(operation, error == ENOMEM ? OPERATION_MEMORY : OPERATION_FAILED, op->result,
                strerror(error));
}

/* A given input counts as if it were in the folder, so its size must stay free there. */
static bool fits_beside_given(const struct operation *operation, int file, uint64_t bytes)
{
    struct statvfs disk;
    uint64_t given = 0;
    for (size_t i = 0; i < operation->given_count; i++) {
        given += operation->given[i].size;
    }
    if (given == 0) {
        return true;
    }
    if (fstatvfs(file, &disk) != 0) {
        return false;
    }
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    return given <= room && bytes <= room - given;
}

/* Makes a new file with its header and reserves its room, so that writing through the mapping
 * cannot fail. */
static enum operation_status make_result(struct operation *operation, struct matrix *result)
{
    uint64_t cells;
    uint64_t bytes;
    result->rows = operation->a.rows;
    result->columns = operation->b.columns;
    if (__builtin_mul_overflow(result->rows, result->columns, &cells) ||
        __builtin_mul_overflow(cells, sizeof(float), &bytes) ||
        bytes > (uint64_t)INT64_MAX - NPY_MATRIX_BYTES) {
        problem_set(operation->problem,
                    "%.200s: a result of %" PRIu64 " x %" PRIu64 " is larger than any file",
                    operation->op.result, result->rows, result->columns);
        return OPERATION_FAILED;
    }
    bytes += NPY_MATRIX_BYTES;
    int file = -1;
    errno = EEXIST;
    if (find_given(operation, operation->op.result) == NULL) {
        file = openat(operation->folder, operation->op.result,
                      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    }
    if (file < 0) {
        return fail(operation, OPERATION_FAILED, operation->op.result,
                    errno == EEXIST ? "the file is there already; name a new file"
                                    : strerror(errno));
    }
    int error =
        fits_beside_given(operation, file, bytes) ? posix_fallocate(file, 0, (off_t)bytes) : ENOSPC;
    void *mapped = MAP_FAILED;
    if (error == 0) {
        mapped = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        error = mapped == MAP_FAILED ? errno : 0;
    }
    (void)close(file); /* writes go through the mapping */
    if (error != 0) {
        (void)unlinkat(operation->folder, operation->op.result, 0);
        return no_room(operation, bytes, error);
    }
    result->file = mapped;
    result->file_bytes = (size_t)bytes;
    result->values = (float *)(void *)(result->file + NPY_MATRIX_BYTES);
    npy_write_matrix(result->rows, result->columns, result->file);
    return OPERATION_OK;
}

static struct operation_place place_of(const char *name, const struct matrix *matrix)
{
    const uint8_t *values = (const uint8_t *)matrix->values;
    return (struct operation_place){
        .name = name, .file_bytes = matrix->file_bytes, .at = (uint64_t)(values - matrix->file)};
}

static enum operation_status multiply(struct operation *operation)
{
    struct matrix result = {.file = NULL};
    struct gemm gemm = {.rows = operation->a.rows,
                        .inner = operation->a.columns,
                        .columns = operation->b.columns,
                        .alpha = 1,
                        .beta = 0,
                        .a = operation->a.values,
                        .b = operation->b.values,
                        .compute = operation->op.compute};
    enum operation_status status = operation->op.c != NULL ? take_c(operation) : OPERATION_OK;
    status = status != OPERATION_OK ? status : make_result(operation, &result);
    if (status != OPERATION_OK) {
        return status;
    }
    gemm.c = result.values;
    if (operation->op.verb == TENSOR_GEMM) {
        gemm.alpha = strtof(operation->op.alpha, NULL);
        gemm.beta = strtof(operation->op.beta, NULL);
    }
    if (gemm.beta != 0) {
        memcpy(result.values, operation->c.values, result.file_bytes - NPY_MATRIX_BYTES);
    }
    const struct operation_multiplier *multiplier = operation->multiplier;
    const struct operation_places places = {.a = place_of(operation->op.a, &operation->a),
                                            .b = place_of(operation->op.b, &operation->b),
                                            .result = place_of(operation->op.result, &result)};
    struct problem why = {""};
    status = multiplier->multiply(multiplier->context, &gemm, &places, &why);
    if (status != OPERATION_OK) {
        (void)fail(operation, status, operation->op.result, why.text);
    }
    (void)munmap(result.file, result.file_bytes);
    if (status != OPERATION_OK) {
        (void)unlinkat(operation->folder, operation->op.result, 0);
    }
    return status;
}

/* ---------------------------------------------------------------- freivalds */

static_assert((int)SEEDED_SEED_BYTES == (int)TENSOR_SEED_BYTES, "a seed is read for the check");
static_assert((int)SEEDED_ROUNDS_MOST == (int)TENSOR_ROUNDS_MOST, "rounds are read for the check");

static void say_verdict(struct operation *operation, const struct seeded_result *result)
{
    static const char *const verdicts[] = {[VERDICT_NONE] = "none",
                                           [VERDICT_ACCEPT] = "accept",
                                           [VERDICT_REJECT] = "reject",
                                           [VERDICT_UNSURE] = "unsure"};
    operation->answer->verdict = result->verdict;
    (void)snprintf(operation->answer->line, OPERATION_LINE_SIZE,
                   "{\"verdict\":\"%s\",\"rounds\":%" PRIu32
                   ",\"false_accept\":%.6g,\"worst\":%.6g,\"row\":%" PRIu64 ",\"why\":\"%s\"}\n",
                   verdicts[result->verdict], result->rounds, result->false_accept, result->worst,
                   result->row, result->why);
}

static enum operation_status check_product(struct operation *operation)
{
    enum operation_status status = take_c(operation);
    if (status == OPERATION_FAILED && operation->c.is_there) { /* otherwise nobody can be blamed */
        operation->problem->text[0] = '\0';
        say_verdict(operation,
                    &(struct seeded_result){.verdict = VERDICT_REJECT,
                                            .false_accept = 1,
                                            .why = "it is no float32 matrix of this shape"});
        return OPERATION_OK;
    }
    if (status != OPERATION_OK) {
        return status;
    }
    struct seeded_check check = {.rows = operation->a.rows,
                                 .inner = operation->a.columns,
                                 .columns = operation->b.columns,
                                 .a = operation->a.values,
                                 .b = operation->b.values,
                                 .c = operation->c.values,
                                 .rounds = operation->op.rounds};
    struct seeded_result result;
    uint64_t bytes = seeded_check_bytes(check.rows, check.inner, check.columns);
    memcpy(check.seed, operation->op.seed, sizeof check.seed);
    if (bytes == 0 || bytes > operation->memory_bytes) {
        problem_set(operation->problem,
                    "the check takes %s of memory, and %s may be used; raise `limits: {memory: "
                    "...}`",
                    text_size(bytes == 0 ? UINT64_MAX : bytes).text,
                    text_size(operation->memory_bytes).text);
        return OPERATION_MEMORY;
    }
    if (!seeded_check_run(&check, &result)) {
        problem_set(operation->problem, "no memory left for the check of %s",
                    text_size(bytes).text);
        return OPERATION_MEMORY;
    }
    say_verdict(operation, &result);
    return OPERATION_OK;
}

static enum operation_status carry_out(struct operation *operation)
{
    enum operation_status status = take_factors(operation);
    if (status != OPERATION_OK) {
        return status;
    }
    return operation->op.verb == TENSOR_FREIVALDS ? check_product(operation) : multiply(operation);
}

enum operation_status operation_run(const struct operation_files *files,
                                    const struct operation_multiplier *multiplier,
                                    const char *const *arguments, size_t count,
                                    uint64_t memory_bytes, struct operation_answer *ret_answer,
                                    struct problem *ret_problem)
{
    struct operation operation = {.folder = files->folder,
                                  .multiplier = multiplier,
                                  .memory_bytes = memory_bytes,
                                  .answer = ret_answer,
                                  .problem = ret_problem};
    enum operation_status status = OPERATION_FAILED;
    *ret_answer = (struct operation_answer){.verdict = VERDICT_NONE};
    for (size_t i = 0; i < files->given_count; i++) { /* maps all before reading any */
        operation.given[operation.given_count++] =
            map_file(files->given[i].name, files->given[i].file);
    }
    if (tensor_op_read(arguments, count, false, &operation.op, ret_problem)) {
        if (operation.op.is_drawn) {
            problem_set(ret_problem, "the seed of the check has not been drawn");
        } else {
            status = carry_out(&operation);
        }
    }
    unmap_all(operation.opened, operation.opened_count);
    unmap_all(operation.given, operation.given_count);
    return status;
}
