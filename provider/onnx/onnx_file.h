/* provider/onnx/onnx_file.h brings files into arrays for a model, and arrays into .npy files.
 *
 * The files are a stranger's. A file is mapped and never copied, unless its elements are not at
 * their natural alignment. */
#ifndef BOURSE_PROVIDER_ONNX_ONNX_FILE_H
#define BOURSE_PROVIDER_ONNX_ONNX_FILE_H

#include "base/problem.h"
#include "formats/onnx/onnx_words.h"
#include "provider/onnx/onnx_array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file mapped for reading. */
struct onnx_file {
    const uint8_t *bytes; /* NULL: an empty file, or nothing is mapped */
    size_t size;
};

/* Maps a regular file below the folder. Returns false with the problem. */
bool onnx_file_map(int folder, const char *name, struct onnx_file *ret_file,
                   struct problem *ret_problem);
void onnx_file_unmap(struct onnx_file *file);

/* The place of a file: below the folder, or open already. */
struct onnx_file_place {
    int folder;
    int file; /* stays the caller's; -1: the file is below the folder */
};

/* Reads the file of an input into an array, which the caller owns. With parts above 0, an input
 * that is split becomes the rows of the part. Returns false with the problem. */
bool onnx_file_read(const struct onnx_file_place *place, const struct onnx_words_file *input,
                    const struct onnx_words *words, struct onnx_array *ret_array,
                    struct problem *ret_problem);

enum onnx_file_status {
    ONNX_FILE_OK,
    ONNX_FILE_TYPE, /* .npy files have no such elements */
    ONNX_FILE_DISK, /* no room */
    ONNX_FILE_FAILED,
};
/* Writes an array as a new .npy file. Any status but OK leaves no file, and says why. */
enum onnx_file_status onnx_file_write(int folder, const struct onnx_words_file *output,
                                      const struct onnx_array *array, struct problem *ret_problem);

#endif
