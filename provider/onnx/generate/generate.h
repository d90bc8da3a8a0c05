/* provider/onnx/generate/generate.h makes a text by a language model that goes on with a prompt.
 *
 * The prompt is cut into tokens, the model runs, and token after token is chosen. Several prompts
 * share the steps of the model, and each text is the one that its prompt alone would become.
 *
 * The text goes to a file descriptor while it is made, so that whoever follows the subtask reads
 * along. */
#ifndef BOURSE_PROVIDER_ONNX_GENERATE_GENERATE_H
#define BOURSE_PROVIDER_ONNX_GENERATE_GENERATE_H

#include "base/problem.h"
#include "formats/generate/generate_words.h"
#include "formats/generate/tokenizer.h"
#include "provider/onnx/onnx_engine.h"
#include "provider/tensor/operation.h"

enum generate_end {
    GENERATE_END_TOKEN,   /* a token that ends the text */
    GENERATE_END_MOST,    /* as many tokens as were asked for */
    GENERATE_END_CONTEXT, /* the model knows no further places */
    GENERATE_ENDS
};

/* The struct holds what one prompt became. */
struct generate_result {
    uint32_t *prompt, *tokens; /* the token that ends the text is not among `tokens` */
    size_t prompt_count, token_count;
    uint8_t *text; /* of the tokens; may end within a character */
    size_t text_size;
    enum generate_end end;
    int64_t prefill_ns, decode_ns;         /* the prompt's run, and all later ones */
    int64_t prefill_cpu_ns, decode_cpu_ns; /* processor time of the same, of all threads */
    size_t decode_steps;
};
void generate_result_fini(struct generate_result *result);

struct generate_run {
    const struct onnx_engine *engine;
    void *session;
    const struct tokenizer *tokenizer;
    const struct generate_words *words;
    int live; /* gets the text as it comes; -1: nobody does */
};

/* Makes the text of the words' first prompt. The caller ends the result, whatever the status. */
enum onnx_engine_status generate_text(const struct generate_run *run,
                                      struct generate_result *ret_result,
                                      struct problem *ret_problem);

/* Several prompts of one run. */
struct generate_many {
    const char *const *prompts; /* instead of those of the words */
    size_t count;
    size_t rows; /* texts that take a step together at most; 1 .. GENERATE_ROWS_MOST */
};

/* The struct tells how long all texts of a run took. */
struct generate_speed {
    size_t prompt_tokens, decode_tokens;
    int64_t prefill_ns, decode_ns, prefill_cpu_ns, decode_cpu_ns;
    size_t rows;       /* that took a step together at most */
    const char *lacks; /* why the model takes one row alone; NULL: it takes several */
};

/* Makes a text of each prompt. `live` gets lines that begin with the prompt's number from 0, as in
 * "[2] text". There is one result for each prompt; the caller ends them all, whatever the
 * status. */
enum onnx_engine_status generate_texts(const struct generate_run *run,
                                       const struct generate_many *texts,
                                       struct generate_result *ret_results,
                                       struct generate_speed *ret_speed,
                                       struct problem *ret_problem);

/* Writes the two files of several texts (formats/generate/generate_words.h) as new ones in the
 * folder. Any status but OK leaves none. */
enum operation_status generate_write_many(int folder, const struct generate_run *run,
                                          const struct generate_many *texts,
                                          const struct generate_result *results,
                                          const struct generate_speed *speed,
                                          struct problem *ret_problem);

/* Writes the three files of a result (formats/generate/generate_words.h) as new ones in the folder.
 * Any status but OK leaves none. */
enum operation_status generate_write(int folder, const struct generate_run *run,
                                     const struct generate_result *result,
                                     struct problem *ret_problem);

#endif
