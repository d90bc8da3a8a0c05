/* formats/template.h fills in the placeholders of a job, such as {in} in `run` and `outputs`. An
 * example is run: [xz, "{in}"], outputs: ["{in}.xz"].
 *
 *     {in}       each:   the name of the subtask's input file in its work folder
 *     {line}     lines:  the line
 *     {index}    array:  the number
 *     {value}    any of these three: the same text
 *     {out}      a free name for an output: "out/" and the input's name; without an input, "out/"
 *                and the value where it is a plain file name, else the subtask's index from 0
 *     {{  }}     one brace
 *
 * The agent makes the folders of every output, "out" too, before the program starts.
 *
 * A single brace that begins no placeholder is refused, and so is a placeholder of another source.
 * The consumer checks templates when it reads the job. The agent expands them for each subtask by
 * these same functions. */
#ifndef BOURSE_FORMATS_TEMPLATE_H
#define BOURSE_FORMATS_TEMPLATE_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Subtasks come from one of three keys of the job, or from none (one subtask). These are bits. */
enum template_source {
    TEMPLATE_ONE = 1,
    TEMPLATE_EACH = 2,
    TEMPLATE_ARRAY = 4,
    TEMPLATE_LINES = 8,
    TEMPLATE_ANY = 15,
};

/* Returns true when `text` is a well-formed template of a job whose subtasks come from `source`. */
bool template_check(const char *text, enum template_source source, struct problem *ret_problem);

struct template_values {
    const char *in; /* name of the subtask's own input; NULL when it has none */
    /* The value is a file's name, a line or a number. NULL stands for the index in decimal. */
    const char *value;
    uint64_t index; /* the subtask's index, from 0 */
};

enum template_status { TEMPLATE_OK, TEMPLATE_MALFORMED, TEMPLATE_TOO_LONG };

/* Writes the expansion and a NUL into `capacity` bytes; ret_length (may be NULL) gets its
 * length. TEMPLATE_MALFORMED: the text is no template, or needs an input where there is none.
 * Any status but TEMPLATE_OK leaves ret_text undefined. */
enum template_status template_expand(const char *text, const struct template_values *values,
                                     char *ret_text, size_t capacity, size_t *ret_length);
/* Returns the bytes that template_expand needs, NUL included, or 0 when the template is
 * malformed. */
size_t template_size(const char *text, const struct template_values *values);

/* Returns the expansion, which the caller frees. Returns NULL when the template is malformed, the
 * expansion is longer than `cap` bytes without the NUL, or memory is short. ret_length (may be
 * NULL) gets its length. */
char *template_filled(const char *text, const struct template_values *values, size_t cap,
                      size_t *ret_length);

/* Returns true when the template of an output is a pattern (base/pattern.h): when it has a special
 * character of a pattern outside of its placeholders. */
bool template_is_pattern(const char *text);
/* Returns the expansion as a pattern, which the caller frees. Whatever comes from a placeholder
 * stands for itself there. Returns NULL as template_filled does, with twice the cap. */
char *template_pattern(const char *text, const struct template_values *values, size_t cap);

/* Returns true when a file that the pattern matches may be `path`, contain `path` or lie below it.
 * Both may be templates, whose placeholders are taken as they are written. */
bool template_pattern_meets(const char *pattern, const char *path);

/* Returns true when `path` is plain text (text_is_plain) and stays inside the folder it is
 * relative to. The path is not empty and not absolute, has no empty, "." or ".." component, and
 * at most FORMAT_PATH_BYTES. Inputs and outputs obey this rule. */
bool template_path_safe(const char *path);
/* The same for an output or a file that is taken over, which is a folder when its path ends with a
 * slash. */
bool template_output_safe(const char *path);
bool template_is_folder(const char *path);
/* Returns true when two such paths are equal, or one is a folder that contains the other. */
bool template_paths_meet(const char *a, const char *b);

#endif
