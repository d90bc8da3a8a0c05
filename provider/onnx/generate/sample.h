/* provider/onnx/generate/sample.h chooses the next token of a text from a model's logits.
 *
 * A choice is the same for the same logits, rule and random numbers. */
#ifndef BOURSE_PROVIDER_ONNX_GENERATE_SAMPLE_H
#define BOURSE_PROVIDER_ONNX_GENERATE_SAMPLE_H

#include "base/random.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sample_rule {
    uint32_t temperature_milli; /* 0: the likeliest token, the lowest of equals */
    uint32_t top;               /* 0: all tokens; at most SAMPLE_TOP_MOST */
};
enum { SAMPLE_TOP_MOST = 4096 };

/* Chooses one of `count` tokens. A logit that is no number is never chosen. Returns false when no
 * logit is a number. */
bool sample_next(const float *logits, size_t count, const struct sample_rule *rule,
                 struct random *random, uint32_t *ret_token);

#endif
