/* formats/generate/model_config.h tells what the config.json beside a language model says of it.
 *
 * The file says how many tokens the model knows places for, and which tokens end a text. Pure. */
#ifndef BOURSE_FORMATS_GENERATE_MODEL_CONFIG_H
#define BOURSE_FORMATS_GENERATE_MODEL_CONFIG_H

#include "base/problem.h"
#include "formats/generate/generate_words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_CONFIG_BYTES = 1 << 20 };

struct model_config {
    uint32_t context; /* n_positions, max_position_embeddings or n_ctx; 0: not said */
    uint32_t ends[GENERATE_STOPS_MOST]; /* eos_token_id */
    size_t end_count;
};

/* Reads a config.json or generation_config.json. Other keys say nothing here. Returns false with
 * the problem when the bytes are no JSON object, or a number is none. */
bool model_config_read(const void *bytes, size_t size, struct model_config *ret_config,
                       struct problem *ret_problem);

#endif
