/* provider/onnx/generate/prompts.h makes the list of the prompts of a run of a language model. The
 * prompts stand in the words, or in the lines of a file. */
#ifndef BOURSE_PROVIDER_ONNX_GENERATE_PROMPTS_H
#define BOURSE_PROVIDER_ONNX_GENERATE_PROMPTS_H

#include "base/problem.h"
#include "formats/generate/generate_words.h"

#include <stdbool.h>
#include <stddef.h>

struct prompts {
    char **items;
    size_t count;
};

/* Lists the prompts. `text` has the `size` bytes of the words' file of prompts, if they name one.
 * Returns false with the problem, and an empty list: a file has no line, more than
 * GENERATE_LINES_MOST or a NUL, or the template is none. */
bool prompts_list(const struct generate_words *words, const char *text, size_t size,
                  struct prompts *ret_prompts, struct problem *ret_problem);
void prompts_fini(struct prompts *prompts);

#endif
