/* formats/template.h - the placeholders of a job: run: [xz, "{in}"], outputs: ["{in}.xz"].
 *
 *     {in}       each:   the name of the subtask's input file in its work folder
 *     {line}     lines:  the line
 *     {index}    array:  the number
 *     {value}    any of these three: the same text, whichever it is
 *     {out}      a free name for an output: "out/" and the input's name; without one, "out/" and
 *                the value where that is a plain file name, else the subtask's index from 0
 *     {{  }}     one brace
 *
 * The agent makes the folders of every output, "out" too, before the program starts.
 *
 * A single brace that begins none of these is refused, and so is a placeholder of another source.
 * The consumer checks templates when it reads the job; the agent expands them, subtask by subtask,
 * by these same functions. Pure. */
#ifndef BOURSE_FORMATS_TEMPLATE_H
#define BOURSE_FORMATS_TEMPLATE_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What makes the subtasks of a job: nothing (one subtask), or one of three keys. Bits. */
enum template_source {
    TEMPLATE_ONE = 1,
    TEMPLATE_EACH = 2,
    TEMPLATE_ARRAY = 4,
    TEMPLATE_LINES = 8,
    TEMPLATE_ANY = 15,
};

/* Whether `text` is a well-formed template of a job whose subtasks come from `source`. */
bool template_check(const char *text, enum template_source source, struct problem *ret_problem);

struct template_values {
    const char *in; /* name of the subtask's own input; NULL when it has none */
    const char
        *value; /* the file's name, the line, the number; NULL stands for the index in decimal */
    uint64_t index; /* of the subtask, from 0 */
};

enum template_status { TEMPLATE_OK, TEMPLATE_MALFORMED, TEMPLATE_TOO_LONG };

/* Writes the expansion and a NUL into `capacity` bytes; ret_length (may be NULL) gets its length.
 * MALFORMED: not a template, or one that needs an input where there is none. Any status but OK
 * leaves ret_text with no meaning. */
enum template_status template_expand(const char *text, const struct template_values *values,
                                     char *ret_text, size_t capacity, size_t *ret_length);
/* The bytes template_expand needs, NUL included; 0 when MALFORMED. */
size_t template_size(const char *text, const struct template_values *values);

/* The expansion, for the caller to free. NULL: MALFORMED, longer than `cap` bytes without the NUL,
 * or no memory. ret_length (may be NULL) gets its length. */
char *template_filled(const char *text, const struct template_values *values, size_t cap,
                      size_t *ret_length);

/* Whether `path` is plain text (text_is_plain) and stays inside the folder it is relative to: not
 * empty, not absolute, no empty, "." or ".." component, at most FORMAT_PATH_BYTES. The rule for
 * inputs and outputs. */
bool template_path_safe(const char *path);
/* Whether two such paths are one, or one is a folder that the other lies in. */
bool template_paths_meet(const char *a, const char *b);

#endif
