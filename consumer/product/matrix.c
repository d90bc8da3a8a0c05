#include "consumer/product/matrix.h"

#include "base/text.h"
#include "consumer/job/input_list.h"
#include "runtime/files.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN_BYTES = 256 };

/* Returns a file's name in a printable form. */
struct shown {
    char text[SHOWN_BYTES];
};
static struct shown shown(const char *text)
{
    struct shown copy;
    text_printable(text, strlen(text), copy.text, sizeof copy.text);
    return copy;
}

static bool disk_failed(const char *path, struct problem *ret_problem)
{
    problem_set(ret_problem, "%s: %s", shown(path).text, strerror(errno));
    return false;
}

/* ---------------------------------------------------------------- bytes */

/* Reads all bytes, or returns false with errno; 0 means that the file ended early. */
static bool read_at(int fd, void *ret_bytes, size_t length, uint64_t offset)
{
    uint8_t *to = ret_bytes;
    for (size_t done = 0; done < length;) {
        ssize_t got = pread(fd, to + done, length - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            errno = got == 0 ? 0 : errno;
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

/* ---------------------------------------------------------------- reading */

static bool read_header(struct matrix *matrix, uint64_t size, struct problem *ret_problem)
{
    size_t length = size < NPY_PREFIX_BYTES ? (size_t)size : NPY_PREFIX_BYTES;
    uint8_t *bytes = malloc(length + 1);
    struct npy npy;
    struct problem why = {.text = ""};
    if (bytes == NULL || !read_at(matrix->fd, bytes, length, 0)) {
        problem_set(ret_problem, "%s: %s", shown(matrix->path).text,
                    bytes == NULL ? "out of memory" : strerror(errno));
        free(bytes);
        return false;
    }
    bool good = npy_read(bytes, length, size, &npy, &why) && npy_is_matrix(&npy, &why);
    free(bytes);
    if (!good) {
        problem_set(ret_problem, "%s: %s", shown(matrix->path).text, why.text);
        return false;
    }
    matrix->rows = npy.shape[0];
    matrix->columns = npy.shape[1];
    matrix->data_offset = npy.data_offset;
    return true;
}

bool matrix_open(const char *path, struct matrix *ret_matrix, struct problem *ret_problem)
{
    struct matrix matrix = {.path = path};
    uint64_t size = 0;
    matrix.fd = input_open(path, &size, ret_problem);
    if (matrix.fd < 0) {
        return false;
    }
    bool good = read_header(&matrix, size, ret_problem);
    if (good && (matrix.rows == 0 || matrix.columns == 0)) {
        problem_set(ret_problem,
                    "%s: the file has no elements: the shape is (%" PRIu64 ", %" PRIu64
                    "); a product "
                    "is of one row and one column at least",
                    shown(path).text, matrix.rows, matrix.columns);
        good = false;
    }
    if (!good) {
        matrix_close(&matrix);
        return false;
    }
    *ret_matrix = matrix;
    return true;
}

bool matrix_shape(const char *path, uint64_t *ret_rows, uint64_t *ret_columns,
                  struct problem *ret_problem)
{
    struct matrix matrix;
    bool good = matrix_open(path, &matrix, ret_problem);
    if (good) {
        *ret_rows = matrix.rows;
        *ret_columns = matrix.columns;
        matrix_close(&matrix);
    }
    return good;
}

void matrix_close(struct matrix *matrix)
{
    if (matrix->fd >= 0) {
        (void)close(matrix->fd); /* read only: nothing to lose */
        matrix->fd = -1;
    }
}

static uint64_t offset_of(const struct matrix *matrix, uint64_t row, uint64_t column)
{
    return matrix->data_offset + (row * matrix->columns + column) * sizeof(float);
}

static bool read_failed(const struct matrix *matrix, struct problem *ret_problem)
{
    problem_set(ret_problem, "%s: %s", shown(matrix->path).text,
                errno == 0 ? "the file became shorter while it was read" : strerror(errno));
    return false;
}

/* A run is a contiguous range of a block's bytes in the file; a block has its rows one after the
 * other. */
struct run {
    uint64_t at; /* offset in the file */
    size_t length;
};

/* Returns the run at byte `offset` of the block's elements, cut to `most` bytes. */
static struct run run_at(const struct matrix *matrix, const struct matrix_block *block,
                         uint64_t offset, size_t most)
{
    bool whole_rows = block->columns == matrix->columns;
    uint64_t row_bytes = block->columns * sizeof(float);
    uint64_t run_bytes = whole_rows ? block->rows * row_bytes : row_bytes;
    uint64_t row = offset / run_bytes;
    uint64_t within = offset % run_bytes;
    uint64_t left = run_bytes - within;
    return (struct run){.at = offset_of(matrix, block->row + row, block->column) + within,
                        .length = left < most ? (size_t)left : most};
}

/* Reads `length` bytes from `offset` of a block's elements. */
static bool read_elements(const struct matrix *matrix, const struct matrix_block *block,
                          uint64_t offset, size_t length, uint8_t *ret_bytes,
                          struct problem *ret_problem)
{
    for (size_t done = 0; done < length;) {
        struct run run = run_at(matrix, block, offset + done, length - done);
        if (!read_at(matrix->fd, ret_bytes + done, run.length, run.at)) {
            return read_failed(matrix, ret_problem);
        }
        done += run.length;
    }
    return true;
}

bool matrix_read(const struct matrix *matrix, const struct matrix_block *block, float *ret_elements,
                 struct problem *ret_problem)
{
    size_t length = (size_t)(block->rows * block->columns * sizeof(float));
    return read_elements(matrix, block, 0, length, (uint8_t *)ret_elements, ret_problem);
}

uint64_t matrix_find_blob(const struct matrix *matrix, const struct matrix_block *block,
                          uint64_t offset, uint64_t *ret_at)
{
    if (offset < NPY_MATRIX_BYTES || offset >= matrix_blob_bytes(block)) {
        return 0;
    }
    struct run run = run_at(matrix, block, offset - NPY_MATRIX_BYTES, SIZE_MAX);
    *ret_at = run.at;
    return run.length;
}

bool matrix_read_blob(const struct matrix *matrix, const struct matrix_block *block,
                      uint64_t offset, size_t length, uint8_t *ret_bytes,
                      struct problem *ret_problem)
{
    assert(offset <= matrix_blob_bytes(block) && length <= matrix_blob_bytes(block) - offset);
    uint8_t header[NPY_MATRIX_BYTES];
    size_t of_header = 0;
    if (offset < NPY_MATRIX_BYTES) {
        size_t left = NPY_MATRIX_BYTES - (size_t)offset;
        of_header = left < length ? left : length;
        npy_write_matrix(block->rows, block->columns, header);
        memcpy(ret_bytes, header + offset, of_header);
    }
    return read_elements(matrix, block, offset + of_header - NPY_MATRIX_BYTES, length - of_header,
                         ret_bytes + of_header, ret_problem);
}

bool matrix_blob_begin(const uint8_t *bytes, size_t length, uint64_t size,
                       const struct matrix_block *block, uint64_t *ret_offset,
                       struct problem *ret_problem)
{
    struct npy npy;
    if (length > size || (length < size && length < NPY_PREFIX_BYTES)) {
        problem_set(ret_problem, "the file has not the %" PRIu64 " bytes that were promised", size);
        return false;
    }
    if (!npy_read(bytes, length, size, &npy, ret_problem) || !npy_is_matrix(&npy, ret_problem)) {
        return false;
    }
    if (npy.shape[0] != block->rows || npy.shape[1] != block->columns) {
        problem_set(ret_problem,
                    "the shape is (%" PRIu64 ", %" PRIu64 "), not (%" PRIu64 ", %" PRIu64 ")",
                    npy.shape[0], npy.shape[1], block->rows, block->columns);
        return false;
    }
    *ret_offset = npy.data_offset;
    return true;
}

/* ---------------------------------------------------------------- making one */

struct matrix_draft {
    struct matrix matrix;
    char *path;
    char *temporary; /* temporary name; NULL: it has the final name */
    bool is_named;   /* has either name */
};

/* Returns the folder of `path`, which the caller frees. */
static char *folder_of(const char *path)
{
    char *copy = strdup(path);
    char *folder = copy != NULL ? strdup(dirname(copy)) : NULL;
    free(copy);
    return folder;
}

/* A file without a name disappears with its process, however that ends. Some file systems do not
 * support this. */
static bool draft_open(struct matrix_draft *draft, struct problem *ret_problem)
{
    static unsigned serial;
    char *folder = folder_of(draft->path);
    int length = folder == NULL ? -1
                                : asprintf(&draft->temporary, "%s/.bourse-%ld-%u.part", folder,
                                           (long)getpid(), serial++);
    if (length < 0) {
        free(folder);
        draft->temporary = NULL;
        problem_set(ret_problem, "out of memory");
        return false;
    }
    (void)unlink(draft->temporary); /* left by a dead process of this number */
    draft->matrix.fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
    draft->is_named = draft->matrix.fd < 0;
    if (draft->is_named) {
        draft->matrix.fd =
            open(draft->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    }
    free(folder);
    if (draft->matrix.fd < 0) {
        (void)disk_failed(draft->path, ret_problem);
        free(draft->temporary);
        draft->temporary = NULL;
        return false;
    }
    return true;
}

/* A link cannot replace a file, but a rename can. */
static bool draft_name(struct matrix_draft *draft)
{
    char descriptor[32];
    if (!draft->is_named) {
        (void)snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", draft->matrix.fd);
        if (linkat(AT_FDCWD, descriptor, AT_FDCWD, draft->temporary, AT_SYMLINK_FOLLOW) != 0) {
            return false;
        }
        draft->is_named = true;
    }
    return rename(draft->temporary, draft->path) == 0;
}

static bool draft_begin(struct matrix_draft *draft, struct problem *ret_problem)
{
    const struct matrix *matrix = &draft->matrix;
    uint8_t header[NPY_MATRIX_BYTES];
    npy_write_matrix(matrix->rows, matrix->columns, header);
    uint64_t size = offset_of(matrix, matrix->rows, 0);
    int failed = posix_fallocate(matrix->fd, 0, (off_t)size);
    if (failed != 0) {
        errno = failed;
    }
    return (failed == 0 && file_write_at(matrix->fd, header, sizeof header, 0)) ||
           disk_failed(draft->path, ret_problem);
}

struct matrix_draft *matrix_draft_create(const char *path, uint64_t rows, uint64_t columns,
                                         struct problem *ret_problem)
{
    struct stat status;
    /* The name of a link is never replaced. */
    if (lstat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        problem_set(ret_problem, "%s: is not a regular file, and will not be replaced",
                    shown(path).text);
        return NULL;
    }
    struct matrix_draft *draft = calloc(1, sizeof *draft);
    if (draft == NULL) {
        problem_set(ret_problem, "out of memory");
        return NULL;
    }
    draft->path = strdup(path);
    draft->matrix = (struct matrix){.path = draft->path,
                                    .fd = -1,
                                    .rows = rows,
                                    .columns = columns,
                                    .data_offset = NPY_MATRIX_BYTES};
    if (draft->path == NULL) {
        problem_set(ret_problem, "out of memory");
        matrix_draft_destroy(&draft);
    } else if (!draft_open(draft, ret_problem) || !draft_begin(draft, ret_problem)) {
        matrix_draft_destroy(&draft);
    }
    return draft;
}

void matrix_draft_destroy(struct matrix_draft **self)
{
    struct matrix_draft *draft = *self;
    if (draft != NULL) {
        if (draft->temporary != NULL && draft->is_named) {
            (void)unlink(draft->temporary); /* nothing more can be done */
        }
        matrix_close(&draft->matrix); /* durable, or unwanted */
        free(draft->temporary);
        free(draft->path);
        free(draft);
        *self = NULL;
    }
}

bool matrix_draft_write_bytes(struct matrix_draft *draft, const struct matrix_block *block,
                              uint64_t offset, const uint8_t *bytes, size_t length,
                              struct problem *ret_problem)
{
    assert(offset + length <= block->rows * block->columns * sizeof(float));
    for (size_t done = 0; done < length;) {
        struct run run = run_at(&draft->matrix, block, offset + done, length - done);
        if (!file_write_at(draft->matrix.fd, bytes + done, run.length, run.at)) {
            return disk_failed(draft->path, ret_problem);
        }
        done += run.length;
    }
    return true;
}

bool matrix_draft_write(struct matrix_draft *draft, const struct matrix_block *block,
                        const float *elements, struct problem *ret_problem)
{
    return matrix_draft_write_bytes(draft, block, 0, (const uint8_t *)elements,
                                    (size_t)(block->rows * block->columns * sizeof(float)),
                                    ret_problem);
}

const struct matrix *matrix_draft_matrix(const struct matrix_draft *draft)
{
    return &draft->matrix;
}

bool matrix_draft_keep(struct matrix_draft *draft, struct problem *ret_problem)
{
    if (fsync(draft->matrix.fd) != 0 || !draft_name(draft)) {
        return disk_failed(draft->path, ret_problem);
    }
    free(draft->temporary);
    draft->temporary = NULL;
    char *folder = folder_of(draft->path);
    bool good = folder != NULL && file_sync_folder(folder, ret_problem);
    if (folder == NULL) {
        problem_set(ret_problem, "out of memory");
    }
    free(folder);
    return good;
}
