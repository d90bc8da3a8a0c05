/* The program llm-direct goes on with a prompt by a model, without a market: the loop of
 * bourse-onnx in a process of its own, for bench/llm.sh.
 *
 *     llm-direct LIBRARY|none FOLDER PROMPT TOKENS ROUNDS
 *
 * It prints for each round one line: the tokens of the prompt and their seconds, those of the text
 * and their seconds, and the processor time of the text. The model is opened once, and a first
 * round warms up. */
#include "provider/onnx/generate/generate.h"
#include "provider/onnx/onnx_engines.h"
#include "provider/onnx/onnx_file.h"
#include "provider/onnx/own/own_engine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096, WORDS = 6 };

static void need(bool good, const struct problem *problem)
{
    if (!good) {
        (void)fprintf(stderr, "llm-direct: %s\n", problem->text);
        exit(1);
    }
}

static struct onnx_file map(const char *folder, const char *name)
{
    char path[PATH_SIZE];
    struct onnx_file file;
    struct problem problem = {""};
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    need(onnx_file_map(AT_FDCWD, path, &file, &problem), &problem);
    return file;
}

static void run_rounds(const struct generate_run *run, long rounds)
{
    for (long round = 0; round <= rounds; round++) {
        struct generate_result result;
        struct problem problem = {""};
        need(generate_text(run, &result, &problem) == ONNX_ENGINE_OK, &problem);
        if (round > 0) {
            (void)printf("%zu %.9f %zu %.9f %.9f\n", result.prompt_count,
                         (double)result.prefill_ns / 1e9, result.decode_steps,
                         (double)result.decode_ns / 1e9, (double)result.decode_cpu_ns / 1e9);
        }
        generate_result_fini(&result);
    }
}

int main(int argc, char **argv)
{
    struct onnx_engine engine;
    struct problem problem = {""};
    void *session = NULL;
    if (argc != WORDS) {
        (void)fprintf(stderr, "llm-direct LIBRARY|none FOLDER PROMPT TOKENS ROUNDS\n");
        return 2;
    }
    if (strcmp(argv[1], "none") == 0) {
        own_engine_make(&engine);
    } else {
        need(onnx_engines_open(argv[1], NULL, &engine, &problem), &problem);
    }
    struct onnx_file model = map(argv[2], "decoder.onnx");
    struct onnx_file file = map(argv[2], "tokenizer.json");
    struct tokenizer *tokenizer = tokenizer_read(file.bytes, file.size, &problem);
    need(tokenizer != NULL, &problem);
    const struct onnx_engine_model opened = {
        .bytes = model.bytes, .size = model.size, .threads = 1};
    need(engine.open(engine.context, &opened, &session, &problem) == ONNX_ENGINE_OK, &problem);
    const struct generate_words words = {.prompts = {argv[3]},
                                         .prompt_count = 1,
                                         .tokens_most = (uint32_t)strtoul(argv[4], NULL, 10),
                                         .context = GENERATE_CONTEXT_MOST};
    const struct generate_run run = {
        .engine = &engine, .session = session, .tokenizer = tokenizer, .words = &words, .live = -1};
    run_rounds(&run, strtol(argv[5], NULL, 10));
    engine.close(&session);
    tokenizer_destroy(&tokenizer);
    onnx_file_unmap(&file);
    onnx_file_unmap(&model);
    return 0;
}
