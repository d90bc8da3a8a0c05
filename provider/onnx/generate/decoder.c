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
    size_t rows;
    size_t *lengths; /* tokens of each row's past */
    size_t width;    /* of the past: the most tokens of a row */
    float *logits;   /* of all rows */
    size_t logit_count, logit_rows;
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
        free(decoder->lengths);
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
    decoder->lengths = calloc(1, sizeof *decoder->lengths);
    decoder->rows = 1;
    if (decoder->values == NULL || decoder->results == NULL || decoder->lengths == NULL) {
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
    const int64_t dims[2] = {(int64_t)decoder->rows, (int64_t)count};
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
    const size_t all = decoder->width + count;
    if (!make_integers(decoder, decoder->ports.ids, count, &ids, problem) ||
        !make_integers(decoder, decoder->ports.mask, all, &mask, problem) ||
        !make_integers(decoder, decoder->ports.positions, count, &positions, problem)) {
        return false;
    }
    for (size_t row = 0; row < decoder->rows; row++) {
        const size_t length = decoder->lengths[row];
        for (size_t i = 0; i < count; i++) {
            ids[row * count + i] = tokens[row * count + i];
            if (positions != NULL) {
                positions[row * count + i] = (int64_t)(length + i);
            }
        }
        for (size_t i = decoder->width - length; mask != NULL && i < all; i++) {
            mask[row * all + i] = 1; /* onnx_array_make has zeroed the others */
        }
    }
    return true;
}

/* A model may declare any dims, and leave others. */
static bool check_results(const struct decoder *decoder, size_t count, struct problem *problem)
{
    const struct onnx_array *logits = &decoder->results[decoder->ports.logits];
    const int64_t rows = (int64_t)decoder->rows;
    if (logits->rank != 3 || logits->dims[0] != rows || logits->dims[1] != (int64_t)count ||
        logits->dims[2] < 1) {
        problem_set(problem, "the model's logits have other dims than one row for each token");
        return false;
    }
    for (size_t i = 0; i < decoder->ports.past_count; i++) {
        const struct onnx_array *past = &decoder->values[decoder->ports.pasts[i]];
        const struct onnx_array *present = &decoder->results[decoder->ports.presents[i]];
        if (present->rank != 4 || present->type != past->type || present->dims[0] != rows ||
            present->dims[1] != past->dims[1] || present->dims[3] != past->dims[3] ||
            present->dims[2] != (int64_t)(decoder->width + count)) {
            problem_set(problem, "the model leaves a past (%s) that does not fit its own input",
                        decoder->outputs.items[decoder->ports.presents[i]].name);
            return false;
        }
    }
    return true;
}

/* Copies the logits of each row's last token. */
static bool take_logits(struct decoder *decoder, size_t count, struct problem *problem)
{
    const struct onnx_array *all = &decoder->results[decoder->ports.logits];
    const size_t width = (size_t)all->dims[2];
    if (width != decoder->logit_count || decoder->rows != decoder->logit_rows) {
        free(decoder->logits);
        decoder->logits = calloc(width, decoder->rows * sizeof(float));
        decoder->logit_count = decoder->logits != NULL ? width : 0;
        decoder->logit_rows = decoder->rows;
    }
    if (decoder->logits == NULL) {
        problem_set(problem, "there is not enough memory");
        return false;
    }
    for (size_t row = 0; row < decoder->rows; row++) {
        const size_t first = (row * count + count - 1) * width;
        float *to = decoder->logits + row * width;
        if (all->type == ONNX_FLOAT) {
            memcpy(to, (const float *)all->bytes + first, width * sizeof(float));
        } else {
            own_halves_widen(all->type, (int64_t)width, (const uint16_t *)all->bytes + first, to);
        }
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
    decoder->width += count;
    for (size_t row = 0; row < decoder->rows; row++) {
        decoder->lengths[row] += count;
    }
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

/* ---------------------------------------------------------------- several rows */

static bool is_free(struct onnx_engine_ports ports, size_t port)
{
    return ports.items[port].dims[0] < 0;
}

const char *decoder_lacks_rows(const struct decoder *decoder)
{
    const struct decoder_ports *ports = &decoder->ports;
    if (ports->mask == DECODER_NONE) {
        return "it has no attention_mask";
    }
    if (ports->positions == DECODER_NONE) {
        return "it has no position_ids";
    }
    bool are_free = is_free(decoder->inputs, ports->ids) && is_free(decoder->inputs, ports->mask) &&
                    is_free(decoder->inputs, ports->positions);
    for (size_t i = 0; i < ports->past_count; i++) {
        are_free = are_free && is_free(decoder->inputs, ports->pasts[i]);
    }
    return are_free ? NULL : "its first dim is always 1";
}

/* A row of the new group comes from this one. */
struct row_source {
    const struct decoder *decoder;
    size_t row;
};

static struct row_source source_of(const struct decoder *decoder, const struct decoder_rows *rows,
                                   size_t row)
{
    return row < rows->stay_count ? (struct row_source){decoder, rows->stay[row]}
                                  : (struct row_source){rows->join[row - rows->stay_count], 0};
}

/* Copies the past of a row, each head to the right end of its new place. */
static void copy_row(const struct row_source *source, size_t input, struct onnx_array *to,
                     size_t row)
{
    const struct onnx_array *from = &source->decoder->values[input];
    const size_t heads = (size_t)to->dims[1];
    const size_t token_bytes = (size_t)to->dims[3] * (size_t)onnx_type_bytes(to->type);
    const size_t to_width = (size_t)to->dims[2];
    const size_t from_width = source->decoder->width;
    const size_t length = source->decoder->lengths[source->row];
    for (size_t head = 0; head < heads && length > 0; head++) {
        const size_t from_end = ((source->row * heads + head) + 1) * from_width;
        const size_t to_end = ((row * heads + head) + 1) * to_width;
        memcpy((uint8_t *)to->bytes + (to_end - length) * token_bytes,
               (const uint8_t *)from->bytes + (from_end - length) * token_bytes,
               length * token_bytes);
    }
}

static bool make_group(const struct decoder *decoder, const struct decoder_rows *rows,
                       const size_t *lengths, struct onnx_array *pasts, struct problem *problem)
{
    const size_t count = rows->stay_count + rows->join_count;
    size_t width = 0;
    for (size_t row = 0; row < count; row++) {
        width = lengths[row] > width ? lengths[row] : width;
    }
    for (size_t i = 0; i < decoder->ports.past_count; i++) {
        const size_t input = decoder->ports.pasts[i];
        const struct onnx_engine_port *port = &decoder->inputs.items[input];
        const int64_t dims[4] = {(int64_t)count, port->dims[1], (int64_t)width, port->dims[3]};
        if (!onnx_array_make(port->type, 4, dims, &pasts[i], problem)) {
            return false;
        }
        for (size_t row = 0; row < count; row++) {
            const struct row_source source = source_of(decoder, rows, row);
            copy_row(&source, input, &pasts[i], row);
        }
    }
    return true;
}

bool decoder_regroup(struct decoder *decoder, const struct decoder_rows *rows,
                     struct problem *ret_problem)
{
    const size_t count = rows->stay_count + rows->join_count;
    struct onnx_array *pasts = calloc(decoder->ports.past_count, sizeof *pasts);
    size_t *lengths = calloc(count, sizeof *lengths);
    bool good = pasts != NULL && lengths != NULL;
    if (!good) {
        problem_set(ret_problem, "there is not enough memory");
    }
    for (size_t row = 0; good && row < count; row++) {
        const struct row_source source = source_of(decoder, rows, row);
        lengths[row] = source.decoder->lengths[source.row];
    }
    good = good && make_group(decoder, rows, lengths, pasts, ret_problem);
    for (size_t i = 0; good && i < decoder->ports.past_count; i++) {
        struct onnx_array *past = &decoder->values[decoder->ports.pasts[i]];
        const struct onnx_array old = *past;
        *past = pasts[i];
        pasts[i] = old;
        decoder->width = (size_t)past->dims[2];
    }
    if (good) {
        free(decoder->lengths);
        decoder->lengths = lengths;
        decoder->rows = count;
        lengths = NULL;
    }
    release_all(pasts, decoder->ports.past_count);
    free(pasts);
    free(lengths);
    return good;
}
