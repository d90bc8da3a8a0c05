/* This file makes a program of a subtask that is a WASM module. The words of the engine come before
 * the module's name and arguments. */
#include "provider/executors/program_internal.h"
#include "provider/executors/wasm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns true when the subtask has a file of this name. */
static bool is_input(const struct run *run, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < run->input_count && !found; i++) {
        found = strcmp(run->inputs[i].name, name) == 0;
    }
    return found;
}

static const char *plain_name(const char *word)
{
    return strncmp(word, "./", 2) == 0 ? word + 2 : word;
}

/* Adds a copy of the word to a list with room for it. */
static bool add_word(struct texts *words, const char *word)
{
    char *copy = strdup(word);
    if (copy != NULL) {
        words->items[words->count++] = copy;
    }
    return copy != NULL;
}

/* Makes the whole list. The variables are words, because the engine reads variables of its own that
 * would load other code (NODE_OPTIONS). */
static bool make_words(const struct run *run, const struct wasm_words *engine, struct texts *words)
{
    bool good = true;
    for (size_t i = 0; good && i < engine->count; i++) {
        good = add_word(words, engine->items[i]);
    }
    for (size_t i = 0; good && i < run->environment.count; i++) {
        good = add_word(words, "-e") && add_word(words, run->environment.items[i]);
    }
    good = good && add_word(words, "--");
    for (size_t i = 0; good && i < run->arguments.count; i++) {
        good = add_word(words, run->arguments.items[i]);
    }
    return good;
}

bool program_settle_wasm(struct run *run, struct outcome *outcome)
{
    const struct wasm_engine *engine = run->program->wasm_engine;
    const uint64_t memory_bytes = run->program->wasm_memory_bytes;
    struct texts words = {.items = NULL};
    if (engine == NULL) {
        return true;
    }
    if (!is_input(run, plain_name(run->arguments.items[0]))) {
        outcome_fail(outcome, OUTCOME_PROGRAM_FAILED,
                     "the first word of `run` names none of the subtask's files, and a WASM module "
                     "is one of them");
        return false;
    }
    if (!wasm_engine_suffices(engine, memory_bytes)) {
        /* A slot of the device suffices, so the limit is the job's own. */
        outcome_fail(outcome, OUTCOME_MEMORY_LIMIT,
                     "a WASM module needs %llu MiB of memory here, the engine's own included, and "
                     "the subtask has %llu MiB (limits: memory)",
                     (unsigned long long)(wasm_engine_least(engine) >> 20),
                     (unsigned long long)(memory_bytes >> 20));
        return false;
    }
    struct wasm_words engine_words;
    wasm_fill(engine, memory_bytes, &engine_words);
    const size_t most = engine_words.count + 2 * run->environment.count + 1 + run->arguments.count;
    bool good = program_texts_reserve(&words, most) && make_words(run, &engine_words, &words);
    if (good) {
        const struct texts old = run->arguments;
        run->arguments = words;
        words = old;
        program_texts_clear(&run->environment);
        good = program_texts_reserve(&run->environment, 0);
    }
    program_texts_clear(&words);
    return good || program_refuse(outcome, "out of memory");
}

void program_explain_wasm(const struct run *run, const struct jail_reply *reply,
                          struct outcome *outcome)
{
    char text[LIMIT_TEXT_BYTES];
    if (run->program->wasm_engine != NULL && reply->outcome == OUTCOME_PROGRAM_FAILED &&
        (reply->exit_code == WASM_UNUSABLE || reply->exit_code == WASM_TRAPPED) &&
        wasm_explain(reply, text, sizeof text)) {
        (void)snprintf(outcome->detail, sizeof outcome->detail, "%s", text);
    }
}
