#include "provider/pjrt/pjrt_file.h"

#include "base/text.h"
#include "formats/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define REFUSE(problem, ...) (problem_set((problem), __VA_ARGS__), false)

/* The types that .npy and PJRT both have. */
static const struct {
    int type;
    char kind;
    uint32_t bytes;
} types[] = {
    {PJRT_TYPE_PRED, 'b', 1}, {PJRT_TYPE_S8, 'i', 1},    {PJRT_TYPE_S16, 'i', 2},
    {PJRT_TYPE_S32, 'i', 4},  {PJRT_TYPE_S64, 'i', 8},   {PJRT_TYPE_U8, 'u', 1},
    {PJRT_TYPE_U16, 'u', 2},  {PJRT_TYPE_U32, 'u', 4},   {PJRT_TYPE_U64, 'u', 8},
    {PJRT_TYPE_F16, 'f', 2},  {PJRT_TYPE_F32, 'f', 4},   {PJRT_TYPE_F64, 'f', 8},
    {PJRT_TYPE_C64, 'c', 8},  {PJRT_TYPE_C128, 'c', 16},
};
enum { TYPES = sizeof types / sizeof types[0] };

static struct text_shown {
    char text[100];
} shown(const char *path)
{
    struct text_shown shown;
    text_printable(path, strlen(path), shown.text, sizeof shown.text);
    return shown;
}

bool pjrt_file_map(const char *path, struct pjrt_map *ret_map, struct problem *ret_problem)
{
    struct stat status;
    struct pjrt_map map = {.bytes = NULL};
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0 || fstat(file, &status) != 0) {
        const int error = errno;
        if (file >= 0) {
            (void)close(file);
        }
        return REFUSE(ret_problem, "%s: %s", shown(path).text, strerror(error));
    }
    map.size = S_ISREG(status.st_mode) ? (size_t)status.st_size : 0;
    map.bytes = map.size == 0 ? NULL : mmap(NULL, map.size, PROT_READ, MAP_PRIVATE, file, 0);
    const int error = errno;
    (void)close(file);
    if (map.size == 0) {
        return REFUSE(ret_problem, "%s: the file is empty", shown(path).text);
    }
    if (map.bytes == MAP_FAILED) {
        return REFUSE(ret_problem, "%s: %s", shown(path).text, strerror(error));
    }
    *ret_map = map;
    return true;
}

void pjrt_file_unmap(struct pjrt_map *map)
{
    if (map->bytes != NULL) {
        (void)munmap(map->bytes, map->size);
    }
    *map = (struct pjrt_map){.bytes = NULL};
}

/* Describes the array of a header that was read. */
static bool describe(const struct npy *npy, const struct pjrt_map *map, struct pjrt_array *array,
                     struct problem *problem)
{
    char name[NPY_TYPE_SIZE];
    size_t i = 0;
    while (i < TYPES && (types[i].kind != npy->kind || types[i].bytes != npy->item_bytes)) {
        i++;
    }
    npy_type_text(npy, name);
    if (i == TYPES || npy->is_big_endian) {
        return REFUSE(problem,
                      "the elements are %s, which devices do not take; convert them, as in "
                      "array.astype('<f4')",
                      name);
    }
    if (npy->is_fortran && npy->dimension_count > 1) {
        return REFUSE(problem, "the file is in Fortran order; save it as np.save(file, "
                               "np.ascontiguousarray(array))");
    }
    if (npy->data_offset % npy->item_bytes != 0) {
        return REFUSE(problem,
                      "the data begins at byte %llu, which is no multiple of %u; save it "
                      "again with np.save",
                      (unsigned long long)npy->data_offset, npy->item_bytes);
    }
    *array = (struct pjrt_array){.type = types[i].type,
                                 .dimension_count = npy->dimension_count,
                                 .data = (char *)map->bytes + npy->data_offset,
                                 .size = (size_t)npy->data_bytes};
    for (size_t j = 0; j < npy->dimension_count; j++) {
        array->shape[j] = (int64_t)npy->shape[j];
    }
    return true;
}

bool pjrt_file_read(const char *path, struct pjrt_map *ret_map, struct pjrt_array *ret_array,
                    struct problem *ret_problem)
{
    struct npy npy;
    struct pjrt_map map;
    struct problem why = {""};
    if (!pjrt_file_map(path, &map, ret_problem)) {
        return false;
    }
    if (!npy_read(map.bytes, map.size, map.size, &npy, &why) ||
        !describe(&npy, &map, ret_array, &why)) {
        pjrt_file_unmap(&map);
        return REFUSE(ret_problem, "%s: %s", shown(path).text, why.text);
    }
    *ret_map = map;
    return true;
}

bool pjrt_file_write(const char *path, const struct pjrt_array *array, struct problem *ret_problem)
{
    uint8_t header[NPY_HEADER_MOST];
    struct npy npy = {.dimension_count = (uint32_t)array->dimension_count};
    for (size_t i = 0; i < TYPES; i++) {
        if (types[i].type == array->type) {
            npy.kind = types[i].kind;
            npy.item_bytes = types[i].bytes;
        }
    }
    if (npy.kind == '\0') {
        return REFUSE(ret_problem,
                      "%s: .npy files have no elements of type %s; convert them in the "
                      "program",
                      shown(path).text, array->type == PJRT_TYPE_BF16 ? "bf16" : "this device");
    }
    for (size_t i = 0; i < array->dimension_count; i++) {
        npy.shape[i] = (uint64_t)array->shape[i];
    }
    const size_t length = npy_write(&npy, header);
    FILE *file = fopen(path, "wbe");
    bool good = file != NULL && fwrite(header, 1, length, file) == length &&
                fwrite(array->data, 1, array->size, file) == array->size;
    const int error = errno;
    good = (file == NULL || fclose(file) == 0) && good;
    return good || REFUSE(ret_problem, "%s: %s", shown(path).text, strerror(error));
}
