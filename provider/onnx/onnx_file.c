#include "provider/onnx/onnx_file.h"

#include "formats/npy.h"
#include "formats/onnx/onnx_npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = ONNX_NAME_BYTES + 1 };

/* ---------------------------------------------------------------- mapped files */

/* Maps an open file, which stays open. */
static bool map_open(int file, const char *name, struct onnx_file *ret_file,
                     struct problem *ret_problem)
{
    struct stat facts;
    *ret_file = (struct onnx_file){.bytes = NULL};
    if (file < 0 || fstat(file, &facts) != 0) {
        problem_set(ret_problem, "%.200s: %s", name, strerror(errno));
        return false;
    }
    if (!S_ISREG(facts.st_mode)) {
        problem_set(ret_problem, "%.200s is no regular file", name);
        return false;
    }
    if (facts.st_size == 0) {
        return true;
    }
    void *bytes = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) {
        problem_set(ret_problem, "%.200s cannot be mapped: %s", name, strerror(errno));
        return false;
    }
    *ret_file = (struct onnx_file){bytes, (size_t)facts.st_size};
    return true;
}

bool onnx_file_map(int folder, const char *name, struct onnx_file *ret_file,
                   struct problem *ret_problem)
{
    const int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool good = map_open(file, name, ret_file, ret_problem);
    if (file >= 0) {
        (void)close(file);
    }
    return good;
}

void onnx_file_unmap(struct onnx_file *file)
{
    if (file->bytes != NULL) {
        (void)munmap((void *)file->bytes, file->size);
        file->bytes = NULL;
    }
}

static void release_map(void *owner)
{
    struct onnx_file *file = owner;
    onnx_file_unmap(file);
    free(file);
}

/* ---------------------------------------------------------------- inputs */

static bool copy_name(struct onnx_span span, char ret_name[PATH_SIZE], struct problem *problem)
{
    if (span.size >= PATH_SIZE) {
        problem_set(problem, "the name of a file has more than %d bytes", PATH_SIZE - 1);
        return false;
    }
    memcpy(ret_name, span.at, span.size);
    ret_name[span.size] = '\0';
    return true;
}

/* Describes what a .npy file has, and says where its elements begin. */
static bool describe_npy(const struct onnx_file *file, struct onnx_array *array, uint64_t *ret_from,
                         struct problem *problem)
{
    struct npy npy;
    enum onnx_type type;
    int64_t dims[ONNX_RANK_MOST];
    if (!npy_read(file->bytes, file->size, file->size, &npy, problem) ||
        !onnx_npy_read(&npy, &type, dims, problem) ||
        !onnx_array_describe(type, npy.dimension_count, dims, array, problem)) {
        return false;
    }
    *ret_from = npy.data_offset;
    return true;
}

static bool describe_raw(const struct onnx_words_file *input, const struct onnx_file *file,
                         struct onnx_array *array, struct problem *problem)
{
    if (!onnx_array_describe(input->type, input->rank, input->dims, array, problem)) {
        return false;
    }
    if (array->size != file->size) {
        problem_set(problem, "it has %zu bytes, and its type and dims are %llu", file->size,
                    (unsigned long long)array->size);
        return false;
    }
    return true;
}

/* Leaves the rows of one part in the array. */
static bool take_rows(const struct onnx_words *words, struct onnx_array *array, uint64_t *from,
                      struct problem *problem)
{
    int64_t first = 0;
    int64_t count = 0;
    if (array->rank == 0) {
        problem_set(problem, "a single number cannot be split");
        return false;
    }
    const uint64_t row_bytes = array->dims[0] > 0 ? array->size / (uint64_t)array->dims[0] : 0;
    onnx_words_rows(array->dims[0], words->part, words->parts, &first, &count);
    int64_t dims[ONNX_RANK_MOST];
    memcpy(dims, array->dims, sizeof dims);
    dims[0] = count;
    *from += (uint64_t)first * row_bytes;
    const struct onnx_array all = *array;
    return onnx_array_describe(all.type, all.rank, dims, array, problem);
}

/* Elements at an odd place are copied, because engines read them at their natural alignment. */
static bool give_bytes(struct onnx_file *file, uint64_t from, struct onnx_array *array,
                       struct problem *problem)
{
    const uint8_t *bytes = array->size > 0 ? file->bytes + from : NULL;
    const size_t alignment = (size_t)onnx_type_bytes(array->type);
    if (bytes != NULL && (uintptr_t)bytes % (alignment < 8 ? alignment : 8) != 0) {
        struct onnx_array copy;
        if (!onnx_array_make(array->type, array->rank, array->dims, &copy, problem)) {
            return false;
        }
        memcpy(copy.bytes, bytes, array->size);
        onnx_file_unmap(file);
        *array = copy;
        return true;
    }
    struct onnx_file *owner = malloc(sizeof *owner);
    if (owner == NULL) {
        problem_set(problem, "there is not enough memory");
        return false;
    }
    *owner = *file;
    array->bytes = (void *)bytes;
    array->owner = owner;
    array->release = release_map;
    return true;
}

bool onnx_file_read(const struct onnx_file_place *place, const struct onnx_words_file *input,
                    const struct onnx_words *words, struct onnx_array *ret_array,
                    struct problem *ret_problem)
{
    char name[PATH_SIZE];
    struct onnx_file file;
    struct problem why = {""};
    uint64_t from = 0;
    *ret_array = (struct onnx_array){.type = ONNX_UNDEFINED};
    if (!copy_name(input->file, name, ret_problem) ||
        !(place->file >= 0 ? map_open(place->file, name, &file, ret_problem)
                           : onnx_file_map(place->folder, name, &file, ret_problem))) {
        return false;
    }
    bool good = input->is_raw ? describe_raw(input, &file, ret_array, &why)
                              : describe_npy(&file, ret_array, &from, &why);
    good =
        good && (!input->is_split || words->parts == 0 || take_rows(words, ret_array, &from, &why));
    good = good && give_bytes(&file, from, ret_array, &why);
    if (!good) {
        onnx_file_unmap(&file);
        *ret_array = (struct onnx_array){.type = ONNX_UNDEFINED};
        problem_set(ret_problem, "%.150s: %.300s", name, why.text);
    }
    return good;
}

/* ---------------------------------------------------------------- outputs */

static bool write_all(int file, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    while (size > 0) {
        const ssize_t written = write(file, at, size);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        at += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

enum onnx_file_status onnx_file_write(int folder, const struct onnx_words_file *output,
                                      const struct onnx_array *array, struct problem *ret_problem)
{
    char name[PATH_SIZE];
    struct npy npy;
    uint8_t header[NPY_HEADER_MOST];
    if (!onnx_npy_describe(array->type, array->rank, array->dims, &npy)) {
        problem_set(ret_problem, "output \"%s\" is %s, which .npy files do not have",
                    onnx_label(output->name).text, onnx_type_name(array->type));
        return ONNX_FILE_TYPE;
    }
    if (!copy_name(output->file, name, ret_problem)) {
        return ONNX_FILE_FAILED;
    }
    const int file =
        openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0) {
        problem_set(ret_problem, "%.200s: %s", name, strerror(errno));
        return ONNX_FILE_FAILED;
    }
    bool good = write_all(file, header, npy_write(&npy, header)) &&
                write_all(file, array->bytes, (size_t)array->size);
    int error = errno;
    if (close(file) != 0 && good) {
        good = false;
        error = errno;
    }
    if (good) {
        return ONNX_FILE_OK;
    }
    problem_set(ret_problem, "%.200s: %s", name, strerror(error));
    (void)unlinkat(folder, name, 0);
    return error == ENOSPC || error == EFBIG || error == EDQUOT ? ONNX_FILE_DISK : ONNX_FILE_FAILED;
}
