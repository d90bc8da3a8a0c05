#include "consumer/model/model_join.h"

#include "base/cleanup.h"
#include "consumer/job/input_list.h"
#include "consumer/job/place.h"
#include "consumer/model/model_staged.h"
#include "formats/npy.h"
#include "formats/onnx/onnx_words.h"
#include "runtime/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = PLACE_PATH_SIZE + 4096, COPY_BYTES = 1 << 16 };

/* One output while it is joined. */
struct joining {
    const char *folder;
    const char *name; /* of the file, as the job has it */
    uint32_t parts;
    struct npy whole; /* dim 0 is the sum of the parts */
    int fd;           /* of the new file; -1: none */
    uint64_t at;      /* where the next bytes go */
    struct problem *problem;
};

static bool path_of(const struct joining *joining, bool is_whole, uint32_t part,
                    char ret_path[PATH_SIZE])
{
    char path[PLACE_PATH_SIZE];
    if (!place_path(NULL, is_whole, part, joining->name, path)) {
        return false;
    }
    return snprintf(ret_path, PATH_SIZE, "%s/%s", joining->folder, path) < PATH_SIZE;
}

/* Opens a part, and reads its header. Returns -1 when it is not there, or is no such file. */
static int open_part(const struct joining *joining, uint32_t part, struct npy *ret_npy)
{
    char path[PATH_SIZE];
    struct problem ignored; /* the caller says that the part is missing */
    uint64_t size = 0;
    const int fd = path_of(joining, false, part, path) ? input_open(path, &size, &ignored) : -1;
    uint8_t *head = fd >= 0 ? malloc(NPY_PREFIX_BYTES) : NULL;
    const ssize_t length = head != NULL ? pread(fd, head, NPY_PREFIX_BYTES, 0) : -1;
    const bool good = length > 0 && npy_read(head, (size_t)length, size, ret_npy, &ignored);
    free(head);
    if (fd >= 0 && !good) {
        (void)close(fd);
    }
    return good ? fd : -1;
}

/* Returns true when the rows of both have the same type and dims. */
static bool same_rows(const struct npy *a, const struct npy *b)
{
    bool same = a->kind == b->kind && a->item_bytes == b->item_bytes &&
                a->is_big_endian == b->is_big_endian && !a->is_fortran && !b->is_fortran &&
                a->dimension_count == b->dimension_count;
    for (uint32_t i = 1; same && i < a->dimension_count; i++) {
        same = a->shape[i] == b->shape[i];
    }
    return same;
}

enum measured { MEASURED, INCOMPLETE, UNFIT };

/* Adds up the rows of all parts. */
static enum measured measure(struct joining *joining)
{
    for (uint32_t part = 0; part < joining->parts; part++) {
        struct npy npy;
        const int fd = open_part(joining, part, &npy);
        if (fd < 0) {
            return INCOMPLETE;
        }
        (void)close(fd);
        if (npy.dimension_count == 0) {
            return INCOMPLETE; /* a number for each part, which has no rows */
        }
        if (part == 0) {
            joining->whole = npy;
        } else if (!same_rows(&joining->whole, &npy)) {
            problem_set(joining->problem,
                        "the parts of %.200s have rows of different types or dims, so that they "
                        "stay apart",
                        joining->name);
            return UNFIT;
        } else {
            joining->whole.shape[0] += npy.shape[0];
        }
    }
    return MEASURED;
}

static bool failed(const struct joining *joining, const char *path)
{
    problem_set(joining->problem, "%.300s: %s", path, strerror(errno));
    return false;
}

static bool copy_part(struct joining *joining, uint32_t part, const char *path)
{
    uint8_t bytes[COPY_BYTES];
    struct npy npy;
    const int fd = open_part(joining, part, &npy);
    bool good = fd >= 0;
    for (uint64_t done = 0; good && done < npy.data_bytes;) {
        const uint64_t left = npy.data_bytes - done;
        const size_t size = left < sizeof bytes ? (size_t)left : sizeof bytes;
        good = file_read_at(fd, bytes, size, npy.data_offset + done) &&
               file_write_at(joining->fd, bytes, size, joining->at);
        joining->at += size;
        done += size;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return good || failed(joining, path);
}

static bool write_whole(struct joining *joining, const char *path)
{
    uint8_t header[NPY_HEADER_MOST];
    const size_t length = npy_write(&joining->whole, header);
    joining->at = length;
    if (!file_write_at(joining->fd, header, length, 0)) {
        return failed(joining, path);
    }
    for (uint32_t part = 0; part < joining->parts; part++) {
        if (!copy_part(joining, part, path)) {
            return false;
        }
    }
    return fsync(joining->fd) == 0 || failed(joining, path);
}

static bool has_same_bytes(int a, int b)
{
    uint8_t of_a[COPY_BYTES];
    uint8_t of_b[COPY_BYTES];
    off_t at = 0;
    for (;;) {
        const ssize_t length = pread(a, of_a, sizeof of_a, at);
        const ssize_t other = pread(b, of_b, sizeof of_b, at);
        if (length <= 0 || other <= 0) {
            return length == 0 && other == 0;
        }
        if (length != other || memcmp(of_a, of_b, (size_t)length) != 0) {
            return false;
        }
        at += length;
    }
}

/* Gives the new file its name, unless the same file is there already. */
static bool keep(struct joining *joining, const char *new_path, const char *path)
{
    if (link(new_path, path) == 0) {
        return true;
    }
    if (errno != EEXIST) {
        return failed(joining, path);
    }
    const int there = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    const bool same = there >= 0 && has_same_bytes(joining->fd, there);
    if (there >= 0) {
        (void)close(there);
    }
    if (!same) {
        problem_set(joining->problem,
                    "%.300s is there with other content; take it away, or fetch into another "
                    "folder",
                    path);
    }
    return same;
}

static bool join(struct joining *joining)
{
    char path[PATH_SIZE];
    char new_path[PATH_SIZE + 32];
    if (!path_of(joining, true, 0, path)) {
        problem_set(joining->problem, "the name %.200s is too long", joining->name);
        return false;
    }
    (void)snprintf(new_path, sizeof new_path, "%s.%ld.part", path, (long)getpid());
    joining->fd = open(new_path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (joining->fd < 0) {
        return failed(joining, new_path);
    }
    const bool good = write_whole(joining, new_path) && keep(joining, new_path, path);
    (void)close(joining->fd);
    (void)unlink(new_path);
    return good;
}

/* Reads the parts of the job's words. Returns 0 for any other job. */
static uint32_t parts_of(const Bourse__V1__Manifest *manifest, struct onnx_words *ret_words)
{
    struct problem ignored;
    if (strcmp(manifest->executor, "onnx") != 0 ||
        !onnx_words_read((const char *const *)manifest->arguments, manifest->n_arguments, true,
                         ret_words, &ignored)) {
        return 0;
    }
    const bool has_tasks = manifest->n_subtasks > 0 && manifest->subtasks[0]->task != NULL;
    uint32_t part = 0;
    uint32_t parts = 0;
    if (has_tasks) {
        const bool is_staged = model_staged_part(manifest, 0, &part, &parts);
        return is_staged && ret_words->parts > 0 ? parts : 0;
    }
    return ret_words->parts > 0 ? manifest->subtask_count : 0;
}

bool model_join(const Bourse__V1__Manifest *manifest, const char *folder, size_t *ret_count,
                struct problem *ret_problem)
{
    struct onnx_words words;
    const uint32_t parts = parts_of(manifest, &words);
    *ret_count = 0;
    for (size_t i = 0; parts > 0 && i < words.output_count; i++) {
        char name[PLACE_PATH_SIZE];
        const struct onnx_span file = words.outputs[i].file;
        if (file.size >= sizeof name) {
            continue; /* no file of such a name was placed */
        }
        memcpy(name, file.at, file.size);
        name[file.size] = '\0';
        struct joining joining = {
            .folder = folder, .name = name, .parts = parts, .fd = -1, .problem = ret_problem};
        const enum measured measured = measure(&joining);
        if (measured == UNFIT || (measured == MEASURED && !join(&joining))) {
            return false;
        }
        *ret_count += measured == MEASURED;
    }
    return true;
}
