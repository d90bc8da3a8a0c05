#include "provider/onnx/generate/decoder.h"

#include "formats/generate/decoder_ports.h"
#include "provider/onnx/own/own_half.h"

#include <stdlib.h>
#include <string.h>

struct decoder {
    const struct onnx_engine *engine;
    void *session;
    struct decoder_ports ports;
    struct onnx_engine_ports inputs, outputs;
    struct onnx_array *values;  /* one for each input; the pasts among them */
    struct onnx_array *results; /* one for each output */
    size_t length;              /* tokens of the past */
    float *logits;
    size_t logit_count;
};

static void release_all(struct onnx_array *arrays, size_t count)
{
    for (size_t i = 0; arrays != NULL && i < count; i++) {
        onnx_array_release(&arrays[i]);
    }
}

void decoder_destroy(struct decoder **self)
{
    struct decoder *decoder = *self;
    if (decoder != NULL) {
        release_all(decoder->values, decoder->inputs.count);
        release_all(decoder->results, decoder->outputs.count);
        free(decoder->values);
        free(decoder->results);
        free(decoder->logits);
        free(decoder);
        *self = NULL;
    }
}

/* Writes the ports of an engine as the reader of formats knows them. Returns NULL when memory is
 * short. */
static struct onnx_port *ports_of(struct onnx_engine_ports ports)
{
    struct onnx_port *items = calloc(ports.count + 1, sizeof *items);
    for (size_t i = 0; items != NULL && i < ports.count; i++) {
        const struct onnx_engine_port *port = &ports.items[i];
        items[i] = (struct onnx_port){.name = {(const uint8_t *)port->name, strlen(port->name)},
                                      .type = port->type,
                                      .is_tensor = true,
                                      .has_shape = port->has_shape,
                                      .rank = port->rank};
        for (uint32_t k = 0; k < port->rank; k++) {
            items[i].dims[k].value = port->dims[k];
        }
    }
    return items;
}

static bool find_ports(struct decoder *decoder, struct problem *problem)
{
    struct onnx_port *inputs = ports_of(decoder->inputs);
    struct onnx_port *outputs = ports_of(decoder->outputs);
    bool good = inputs != NULL && outputs != NULL;
    if (!good) {
        problem_set(problem, "there is not enough memory");
    }
    good = good && decoder_ports_read(inputs, decoder->inputs.count, outputs,
                                      decoder->outputs.count, &decoder->ports, problem);
    free(inputs);
    free(outputs);
    return good;
}

/* Makes the empty past that the first step begins with. */
static bool make_pasts(struct decoder *decoder, struct problem *problem)
{
    for (size_t i = 0; i < decoder->ports.past_count; i++) {
        const size_t input = decoder->ports.pasts[i];
        const struct onnx_engine_port *port = &decoder->inputs.items[input];
        const int64_t dims[4] = {1, port->dims[1], 0, port->dims[3]};
        if (!onnx_array_make(port->type, 4, dims, &decoder->values[input], problem)) {
            return false;
        }
    }
    return true;
}

struct decoder *decoder_create(const struct onnx_engine *engine, void *session,
                               struct problem *ret_problem)
{
    struct decoder *decoder = calloc(1, sizeof *decoder);
    if (decoder == NULL) {
        problem_set(ret_problem, "there is not enough memory");
        return NULL;
    }
    decoder->engine = engine;
    decoder->session = session;
    decoder->inputs = engine->inputs(session);
    decoder->outputs = engine->outputs(session);
    decoder->values = calloc(decoder->inputs.count + 1, sizeof *decoder->values);
    decoder->results = calloc(decoder->outputs.count + 1, sizeof *decoder->results);
    if (decoder->values == NULL || decoder->results == NULL) {
        problem_set(ret_problem, "there is not enough memory");
        decoder_destroy(&decoder);
    } else if (!find_ports(decoder, ret_problem) || !make_pasts(decoder, ret_problem)) {
        decoder_destroy(&decoder);
    }
    return decoder;
}

/* ---------------------------------------------------------------- one step */

/* Makes an input of integers, unless the model has none such. */
static bool make_integers(struct decoder *decoder, size_t input, size_t count, int64_t **ret_items,
                          struct problem *problem)
{
    const int64_t dims[2] = {1, (int64_t)count};
    *ret_items = NULL;
    if (input == DECODER_NONE) {
        return true;
    }
    onnx_array_release(&decoder->values[input]);
    const bool good = onnx_array_make(ONNX_INT64, 2, dims, &decoder->values[input], problem);
    *ret_items = good ? decoder->values[input].bytes : NULL;
    return good;
}

static bool make_inputs(struct decoder *decoder, const uint32_t *tokens, size_t count,
                        struct problem *problem)
{
    int64_t *ids = NULL;
    int64_t *mask = NULL;
    int64_t *positions = NULL;
    const size_t all = decoder->length + count;
    if (!make_integers(decoder, decoder->ports.ids, count, &ids, problem) ||
        !make_integers(decoder, decoder->ports.mask, all, &mask, problem) ||
        !make_integers(decoder, decoder->ports.positions, count, &positions, problem)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        ids[i] = tokens[i];
        if (positions != NULL) {
            positions[i] = (int64_t)(decoder->length + i);
        }
    }
    for (size_t i = 0; mask != NULL && i < all; i++) {
        mask[i] = 1;
    }
    return true;
}

/* A model may declare any dims, and leave others. */
static bool check_results(const struct decoder *decoder, size_t count, struct problem *problem)
{
    const struct onnx_array *logits = &decoder->results[decoder->ports.logits];
    if (logits->rank != 3 || logits->dims[0] != 1 || logits->dims[1] != (int64_t)count ||
        logits->dims[2] < 1) {
        problem_set(problem, "the model's logits have other dims than one row for each token");
        return false;
    }
    for (size_t i = 0; i < decoder->ports.past_count; i++) {
        const struct onnx_array *past = &decoder->values[decoder->ports.pasts[i]];
        const struct onnx_array *present = &decoder->results[decoder->ports.presents[i]];
        if (present->rank != 4 || present->type != past->type || present->dims[0] != 1 ||
            present->dims[1] != past->dims[1] || present->dims[3] != past->dims[3] ||
            present->dims[2] != (int64_t)(decoder->length + count)) {
            problem_set(problem, "the model leaves a past (%s) that does not fit its own input",
                        decoder->outputs.items[decoder->ports.presents[i]].name);
            return false;
        }
    }
    return true;
}

/* Copies the logits of the last token. */
static bool take_logits(struct decoder *decoder, size_t count, struct problem *problem)
{
    const struct onnx_array *all = &decoder->results[decoder->ports.logits];
    const size_t width = (size_t)all->dims[2];
    const size_t first = (count - 1) * width;
    if (width != decoder->logit_count) {
        free(decoder->logits);
        decoder->logits = malloc(width * sizeof(float));
        decoder->logit_count = decoder->logits != NULL ? width : 0;
    }
    if (decoder->logits == NULL) {
        problem_set(problem, "there is not enough memory");
        return false;
    }
    if (all->type == ONNX_FLOAT) {
        memcpy(decoder->logits, (const float *)all->bytes + first, width * sizeof(float));
    } else {
        own_halves_widen(all->type, (int64_t)width, (const uint16_t *)all->bytes + first,
                         decoder->logits);
    }
    return true;
}

/* The present becomes the past. */
static void move_on(struct decoder *decoder, size_t count)
{
    for (size_t i = 0; i < decoder->ports.past_count; i++) {
        struct onnx_array *past = &decoder->values[decoder->ports.pasts[i]];
        struct onnx_array *present = &decoder->results[decoder->ports.presents[i]];
        onnx_array_release(past);
        *past = *present;
        *present = (struct onnx_array){.type = ONNX_UNDEFINED};
    }
    decoder->length += count;
}

enum onnx_engine_status decoder_step(struct decoder *decoder, const uint32_t *tokens, size_t count,
                                     const float **ret_logits, size_t *ret_count,
                                     struct problem *ret_problem)
{
    if (!make_inputs(decoder, tokens, count, ret_problem)) {
        return ONNX_ENGINE_MEMORY;
    }
    enum onnx_engine_status status =
        decoder->engine->run(decoder->session, decoder->values, decoder->results, ret_problem);
    if (status != ONNX_ENGINE_OK) {
        return status;
    }
    if (!check_results(decoder, count, ret_problem)) {
        status = ONNX_ENGINE_MODEL;
    } else if (!take_logits(decoder, count, ret_problem)) {
        status = ONNX_ENGINE_MEMORY;
    } else {
        move_on(decoder, count);
        *ret_logits = decoder->logits;
        *ret_count = decoder->logit_count;
    }
    release_all(decoder->results, decoder->outputs.count);
    return status;
}
