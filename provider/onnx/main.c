/* The program bourse-onnx computes models inside a jail, for one job, subtask after subtask
 * (provider/tensor/ask.h).
 *
 * The program reads models and arrays of strangers in the jail, never in the agent. An open model
 * stays for the next subtask of the job. */
#include "provider/onnx/onnx_engines.h"
#include "provider/onnx/onnx_serve.h"
#include "provider/onnx/onnx_trial.h"
#include "provider/tensor/ask.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_MOST = 1024 };

/* The engine is opened by the first ASK, so that a fault of it has somebody to hear of it. */
struct state {
    struct onnx_engine engine;
    bool is_open;
    struct onnx_serve *serve;
};

/* Returns the threads that the worker allows. */
static uint32_t read_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    const long count = text != NULL ? strtol(text, NULL, 10) : 1;
    return count < 1 ? 1 : count > THREADS_MOST ? THREADS_MOST : (uint32_t)count;
}

static bool begin(struct state *state, struct problem *ret_problem)
{
    if (!state->is_open) {
        state->is_open =
            onnx_engines_open(ONNX_LIBRARY, ONNX_SETTINGS, &state->engine, ret_problem);
        if (!state->is_open) {
            return false;
        }
    }
    if (state->serve == NULL) {
        state->serve = onnx_serve_create(&state->engine, read_threads());
    }
    if (state->serve == NULL) {
        problem_set(ret_problem, "there is not enough memory");
    }
    return state->serve != NULL;
}

static enum operation_status look(const struct state *state, struct problem *ret_problem)
{
    const struct onnx_engine *engine = &state->engine;
    const bool has_provider = access(ONNX_SETTINGS, F_OK) == 0;
    char lines[512] = "";
    int64_t mflops = 0;
    if (!(has_provider ? onnx_trial_run(engine, &mflops, ret_problem)
                       : onnx_serve_try(engine, ret_problem)) ||
        (engine->describe != NULL &&
         !engine->describe(engine->context, lines, sizeof lines, ret_problem))) {
        return OPERATION_FAILED;
    }
    (void)printf("%s\n%s", engine->name, lines);
    if (has_provider) {
        (void)printf("mflops %lld\n", (long long)mflops);
    }
    return OPERATION_OK;
}

static enum operation_status compute(struct state *state, const struct ask *ask,
                                     struct problem *ret_problem)
{
    if (!begin(state, ret_problem)) {
        return OPERATION_DEVICE;
    }
    if (ask->count == 1 && strcmp(ask->words[0], ONNX_LOOK) == 0) {
        return look(state, ret_problem);
    }
    const struct onnx_serve_run run = {.folder = AT_FDCWD,
                                       .words = ask->words,
                                       .count = ask->count,
                                       .memory_bytes = ask->memory_bytes,
                                       .live = STDOUT_FILENO,
                                       .contents = ask->contents,
                                       .content_count = ask->content_count,
                                       .given = ask->given,
                                       .given_count = ask->given_count};
    return onnx_serve_run(state->serve, &run, ret_problem);
}

static enum operation_status carry_out(void *context, const struct ask *ask,
                                       struct ask_result *ret_result, struct problem *ret_problem)
{
    const enum operation_status status = compute(context, ask, ret_problem);
    (void)ret_result;
    for (size_t i = 0; i < ask->given_count; i++) {
        (void)close(ask->given[i].file);
    }
    return status;
}

int main(void)
{
    static struct state state;
    return ask_serve(carry_out, &state, NULL);
}
