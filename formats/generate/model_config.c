#include "formats/generate/model_config.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <jansson.h>
#include <string.h>

static void unload(json_t **root)
{
    json_decref(*root);
}

static bool read_context(const json_t *root, struct model_config *config, struct problem *problem)
{
    static const char *const keys[] = {"n_positions", "max_position_embeddings", "n_ctx"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *value = json_object_get(root, keys[i]);
        if (value == NULL || json_is_null(value)) {
            continue;
        }
        const json_int_t number = json_is_integer(value) ? json_integer_value(value) : 0;
        if (number < 1) {
            problem_set(problem, "its %s is no number above 0", keys[i]);
            return false;
        }
        config->context = number < GENERATE_CONTEXT_MOST ? (uint32_t)number : GENERATE_CONTEXT_MOST;
        return true;
    }
    return true;
}

static bool read_end(const json_t *value, struct model_config *config, struct problem *problem)
{
    const json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    if (number < 0 || number >= UINT32_MAX || config->end_count == GENERATE_STOPS_MOST) {
        problem_set(problem, "its eos_token_id is no token, or a list of more than %d",
                    GENERATE_STOPS_MOST);
        return false;
    }
    config->ends[config->end_count++] = (uint32_t)number;
    return true;
}

static bool read_ends(const json_t *value, struct model_config *config, struct problem *problem)
{
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    if (!json_is_array(value)) {
        return read_end(value, config, problem);
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!read_end(json_array_get(value, i), config, problem)) {
            return false;
        }
    }
    return true;
}

bool model_config_read(const void *bytes, size_t size, struct model_config *ret_config,
                       struct problem *ret_problem)
{
    json_error_t error;
    char shown[sizeof error.text];
    *ret_config = (struct model_config){.context = 0};
    if (size > MODEL_CONFIG_BYTES) {
        problem_set(ret_problem, "it has %zu bytes; at most %d are read", size, MODEL_CONFIG_BYTES);
        return false;
    }
    CLEANUP(unload) json_t *root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        text_printable(error.text, strlen(error.text), shown, sizeof shown);
        problem_set(ret_problem, "it is no JSON: line %d: %s", error.line, shown);
        return false;
    }
    return read_context(root, ret_config, ret_problem) &&
           read_ends(json_object_get(root, "eos_token_id"), ret_config, ret_problem);
}
