/* provider/pjrt/pjrt_file.h brings .npy files into arrays, and arrays into .npy files. */
#ifndef BOURSE_PROVIDER_PJRT_PJRT_FILE_H
#define BOURSE_PROVIDER_PJRT_PJRT_FILE_H

#include "base/problem.h"
#include "provider/pjrt/pjrt_program.h"

#include <stddef.h>

/* A file mapped for reading. */
struct pjrt_map {
    void *bytes; /* NULL: nothing is mapped */
    size_t size;
};

/* Maps a file, which stays mapped until pjrt_file_unmap. Returns false with the problem. */
bool pjrt_file_map(const char *path, struct pjrt_map *ret_map, struct problem *ret_problem);
void pjrt_file_unmap(struct pjrt_map *map);

/* Maps a .npy file and describes its array, whose data lies in the map. Returns false with the
 * problem when the file is none, or has elements or an order that a program does not take. */
bool pjrt_file_read(const char *path, struct pjrt_map *ret_map, struct pjrt_array *ret_array,
                    struct problem *ret_problem);
/* Writes the array as a .npy file. Returns false with the problem. */
bool pjrt_file_write(const char *path, const struct pjrt_array *array, struct problem *ret_problem);

#endif
