/* provider/onnx/generate/generate_internal.h declares what one text and several texts share while
 * they are made. No file outside this folder includes it. */
#ifndef BOURSE_PROVIDER_ONNX_GENERATE_GENERATE_INTERNAL_H
#define BOURSE_PROVIDER_ONNX_GENERATE_GENERATE_INTERNAL_H

#include "base/random.h"
#include "provider/onnx/generate/decoder.h"
#include "provider/onnx/generate/generate.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* One text while it is made. */
struct making {
    const struct generate_run *run;
    const char *prompt;
    struct generate_result *result;
    struct random random; /* of this text alone, so that others change nothing in it */
    size_t text_capacity;
    size_t shown; /* bytes of the text that went to `live` */
    int64_t shown_ns;
    bool is_labelled; /* `live` gets whole lines, each with the text's number */
    size_t number;
    struct problem *problem;
};

/* Cuts the prompt into tokens, and makes room for the text. */
enum onnx_engine_status generate_making_begin(struct making *making);
/* Chooses the next token by the logits and adds its text. *ret_is_over says that the text has
 * ended; otherwise the token at the end of result->tokens goes into the next step. */
enum onnx_engine_status generate_making_take(struct making *making, const float *logits,
                                             size_t count, bool *ret_is_over);
/* Shows the rest of a text that has ended. */
void generate_making_end(struct making *making);
/* Runs the prompt as the decoder's first step, and notes the time that it took. */
enum onnx_engine_status generate_making_prefill(struct making *making, struct decoder *decoder,
                                                const float **ret_logits, size_t *ret_count);

int64_t generate_now_ns(clockid_t clock);

#endif
