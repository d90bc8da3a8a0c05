#include "provider/onnx/generate/prompts.h"

#include "formats/limits.h"
#include "formats/template.h"

#include <stdlib.h>
#include <string.h>

void prompts_fini(struct prompts *prompts)
{
    for (size_t i = 0; i < prompts->count; i++) {
        free(prompts->items[i]);
    }
    free(prompts->items);
    *prompts = (struct prompts){.items = NULL};
}

static bool add(struct prompts *prompts, char *text)
{
    prompts->items[prompts->count] = text;
    prompts->count += text != NULL;
    return text != NULL;
}

static bool add_line(struct prompts *prompts, const char *template, const char *line, size_t length)
{
    char *value = strndup(line, length);
    const struct template_values values = {.value = value};
    const bool good = value != NULL &&
                      add(prompts, template_filled(template, &values, FORMAT_ARGUMENT_BYTES, NULL));
    free(value);
    return good;
}

static bool list_lines(const struct generate_words *words, const char *text, size_t size,
                       struct prompts *prompts, struct problem *problem)
{
    const char *line = NULL;
    size_t length = 0;
    unsigned number = 0;
    while (generate_words_line(&text, &size, &line, &length, &number)) {
        if (memchr(line, '\0', length) != NULL) {
            problem_set(problem, "%.200s: line %u has a NUL", words->file, number);
            return false;
        }
        if (prompts->count == GENERATE_LINES_MOST) {
            problem_set(problem, "%.200s has more than %d prompts", words->file,
                        GENERATE_LINES_MOST);
            return false;
        }
        if (!add_line(prompts, words->prompts[0], line, length)) {
            problem_set(problem, "%.200s: the prompt of line %u cannot be made, or is too long",
                        words->file, number);
            return false;
        }
    }
    if (prompts->count == 0) {
        problem_set(problem, "%.200s has no prompt", words->file);
    }
    return prompts->count > 0;
}

bool prompts_list(const struct generate_words *words, const char *text, size_t size,
                  struct prompts *ret_prompts, struct problem *ret_problem)
{
    const size_t most = words->file != NULL ? GENERATE_LINES_MOST : words->prompt_count;
    *ret_prompts = (struct prompts){.items = calloc(most, sizeof(char *))};
    bool good = ret_prompts->items != NULL;
    for (size_t i = 0; good && words->file == NULL && i < words->prompt_count; i++) {
        good = add(ret_prompts, strdup(words->prompts[i]));
    }
    if (!good) {
        problem_set(ret_problem, "there is not enough memory");
    }
    good = good && (words->file == NULL || list_lines(words, text, size, ret_prompts, ret_problem));
    if (!good) {
        prompts_fini(ret_prompts);
    }
    return good;
}
