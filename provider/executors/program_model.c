/* This file prepares a subtask that is a run of an ONNX model (formats/onnx/onnx_words.h), or the
 * answer of one to a prompt (formats/generate/generate_words.h). */
#include "formats/generate/generate_words.h"
#include "formats/onnx/onnx_words.h"
#include "provider/executors/program_internal.h"

#include <string.h>

bool program_settle_model(const struct run *run, struct outcome *outcome)
{
    struct onnx_words words;
    struct generate_words text;
    struct problem problem = {""};
    const char *const *items = (const char *const *)run->arguments.items;
    const size_t count = run->arguments.count;
    if (!(generate_words_are(items, count)
              ? generate_words_read(items, count, false, &text, &problem)
              : onnx_words_read(items, count, false, &words, &problem))) {
        outcome_fail(outcome, OUTCOME_PROGRAM_FAILED, "%s", problem.text);
        return false;
    }
    return true;
}

/* Returns true when a word gives the file to an input of a model: "x=FILE" or "x=FILE:TYPE[]". */
static bool is_given(const struct run *run, const char *name)
{
    const size_t length = strlen(name);
    bool found = false;
    for (size_t i = 1; i < run->arguments.count && !found; i++) {
        const char *equals = strchr(run->arguments.items[i], '=');
        found = equals != NULL && strncmp(equals + 1, name, length) == 0 &&
                (equals[1 + length] == '\0' || equals[1 + length] == ':');
    }
    return found;
}

bool program_keeps_model(const struct run *run, const char *name)
{
    return generate_words_are((const char *const *)run->arguments.items, run->arguments.count) ||
           !is_given(run, name);
}
