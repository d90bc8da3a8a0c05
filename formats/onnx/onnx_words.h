/* formats/onnx/onnx_words.h reads one run of a model from the words of a subtask of the executor
 * "onnx".
 *
 *     MODEL [-i NAME=FILE]... [-o NAME=FILE]... [-s NAME]... [-p PART/PARTS]
 *
 *     -i NAME=FILE               the model's input NAME is the array in FILE, which is .npy
 *     -i NAME=FILE:float32[2,3]  FILE has only the elements, in this order, low byte first
 *     -o NAME=FILE               the model's output NAME becomes FILE, which is .npy
 *     -s NAME                    the run takes a part of the rows of this input
 *     -p PART/PARTS              the part, from 0, and how many there are; all rows without it
 *
 * Files are in the work folder. A row is what stands at one index of the first dim. Part k of n
 * takes the rows from k * rows / n on, and before (k + 1) * rows / n, rounded down.
 *
 * The consumer, the agent and the computing program share this one reader. Pure. */
#ifndef BOURSE_FORMATS_ONNX_ONNX_WORDS_H
#define BOURSE_FORMATS_ONNX_ONNX_WORDS_H

#include "base/problem.h"
#include "formats/onnx/onnx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ONNX_WORDS_FILES = 60,   /* inputs, and outputs, of one run */
    ONNX_WORDS_PARTS = 4096, /* of one input */
    ONNX_WORDS_MOST = 1 + 6 * ONNX_WORDS_FILES + 2,
};

/* One input or output. The texts are parts of a word, so that a NUL does not end them. */
struct onnx_words_file {
    struct onnx_span name, file;
    bool is_raw; /* the file has no header; type, rank and dims are the word's */
    enum onnx_type type;
    uint32_t rank;
    int64_t dims[ONNX_RANK_MOST];
    bool is_split;
};

struct onnx_words { /* points into the words */
    const char *model;
    struct onnx_words_file inputs[ONNX_WORDS_FILES], outputs[ONNX_WORDS_FILES];
    size_t input_count, output_count;
    uint32_t part, parts; /* parts 0: the words have no -p */
};

/* Reads the words. Returns false with a problem that says what to do. `has_holes` says that the
 * words are templates; a part that is a placeholder is 0 of 1. */
bool onnx_words_read(const char *const *words, size_t count, bool has_holes,
                     struct onnx_words *ret_words, struct problem *ret_problem);

/* Computes the rows of a part: the first one, and how many. */
void onnx_words_rows(int64_t rows, uint32_t part, uint32_t parts, int64_t *ret_first,
                     int64_t *ret_count);

/* Writes the name of an output's file: the output's name and ".npy". Letters, digits, "." within,
 * "-" and "_" stay, and every other byte becomes "_". */
enum { ONNX_WORDS_FILE_SIZE = 200 };
void onnx_words_file_name(struct onnx_span output, char ret_name[ONNX_WORDS_FILE_SIZE]);

#endif
