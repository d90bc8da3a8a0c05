#include "formats/onnx/onnx_cut.h"

#include "base/array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of fields in onnx.proto. */
enum {
    MODEL_GRAPH = 7,
    MODEL_TRAINING = 20,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    PORT_NAME = 1,
    PORT_TYPE = 2,
    TYPE_TENSOR = 1,
    TENSOR_TYPE = 1,
    TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    WEIGHTS_DIMS = 1,
    WEIGHTS_TYPE = 2,
    WEIGHTS_NAME = 8,
    WEIGHTS_RAW = 9,
};
enum { NUMBER_BYTES = 10, HEAD_BYTES = 2 * NUMBER_BYTES };

/* A model while it is cut. */
struct cutting {
    const struct onnx_cut_input *input;
    struct onnx_cut *cut;
    uint32_t *owner;      /* by value: the stage that leaves it as an output; NONE: it is none */
    bool *is_output;      /* by value: the model's own output */
    bool *is_used;        /* by value: the present stage takes it */
    bool *is_taken_later; /* by value: a later stage takes it */
    bool is_short;        /* of memory */
};

bool onnx_cut_is_constant(const struct onnx_model *model, uint32_t value)
{
    const struct onnx_value *of = &model->values[value];
    if (of->node == ONNX_NONE) {
        return of->initializer != ONNX_NONE;
    }
    const struct onnx_node *node = &model->nodes[of->node];
    return node->input_count == 0 && onnx_span_is(node->operator, "Constant");
}

/* ---------------------------------------------------------------- bytes */

/* Writes the key of a field of bytes, and how many there are. */
static size_t put_head(uint8_t *to, uint32_t field, uint64_t size)
{
    const size_t length = onnx_wire_put_number(to, (uint64_t)field << 3 | ONNX_WIRE_BYTES);
    return length + onnx_wire_put_number(to + length, size);
}

static size_t put_field(uint8_t *to, uint32_t field, uint64_t value)
{
    const size_t length = onnx_wire_put_number(to, (uint64_t)field << 3 | ONNX_WIRE_NUMBER);
    return length + onnx_wire_put_number(to + length, value);
}

static struct onnx_piece *add_piece(struct cutting *cutting, struct onnx_stage *stage,
                                    struct onnx_piece piece)
{
    struct onnx_piece *pieces =
        array_with_room(stage->pieces, stage->piece_count, &stage->piece_capacity, sizeof *pieces);
    if (pieces == NULL) {
        cutting->is_short = true;
        return NULL;
    }
    stage->pieces = pieces;
    stage->pieces[stage->piece_count] = piece;
    return &stage->pieces[stage->piece_count++];
}

/* Adds bytes of the model's file. Bytes that follow one another there become one piece. */
static void add_span(struct cutting *cutting, struct onnx_stage *stage, struct onnx_span span)
{
    struct onnx_piece *last =
        stage->piece_count > 0 ? &stage->pieces[stage->piece_count - 1] : NULL;
    if (last != NULL && last->at != NULL && last->at + last->size == span.at) {
        last->size += span.size;
    } else if (span.size > 0) {
        (void)add_piece(cutting, stage, (struct onnx_piece){.size = span.size, .at = span.at});
    }
}

/* Adds bytes that are in no file. Their piece has their place among these until all are there. */
static void add_made(struct cutting *cutting, struct onnx_stage *stage, const uint8_t *bytes,
                     size_t size)
{
    struct onnx_cut *cut = cutting->cut;
    if (cut->made_capacity - cut->made_size < size) {
        const size_t capacity = 2 * cut->made_capacity + size;
        uint8_t *made = realloc(cut->made, capacity);
        if (made == NULL) {
            cutting->is_short = true;
            return;
        }
        cut->made = made;
        cut->made_capacity = capacity;
    }
    memcpy(cut->made + cut->made_size, bytes, size);
    (void)add_piece(cutting, stage, (struct onnx_piece){.size = size, .offset = cut->made_size});
    cut->made_size += size;
}

/* ---------------------------------------------------------------- who takes what */

/* A node of another stage is copied when it makes a constant that this stage uses. */
static bool has_node(const struct cutting *cutting, uint32_t node, uint32_t stage)
{
    const struct onnx_model *model = cutting->input->model;
    const struct onnx_node *of = &model->nodes[node];
    if (cutting->input->stage_of[node] == stage) {
        return true;
    }
    const uint32_t value = of->output_count > 0 ? model->makes[of->first_output] : ONNX_NONE;
    return value != ONNX_NONE && cutting->is_used[value] && onnx_cut_is_constant(model, value);
}

static void mark_used(struct cutting *cutting, uint32_t stage)
{
    const struct onnx_model *model = cutting->input->model;
    memset(cutting->is_used, 0, model->value_count * sizeof *cutting->is_used);
    for (uint32_t i = 0; i < model->node_count; i++) {
        const struct onnx_node *node = &model->nodes[i];
        for (uint32_t k = 0; k < node->input_count; k++) {
            const uint32_t value = model->uses[node->first_input + k];
            if (value != ONNX_NONE && cutting->input->stage_of[i] == stage) {
                cutting->is_used[value] = true;
            }
        }
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        const uint32_t value = model->outputs[i].value;
        if (model->values[value].node == ONNX_NONE && cutting->owner[value] == stage) {
            cutting->is_used[value] = true; /* it goes through as it is */
        }
    }
}

/* Returns the stage of the node that makes a value, or NONE. */
static uint32_t made_in(const struct cutting *cutting, uint32_t value)
{
    const uint32_t node = cutting->input->model->values[value].node;
    return node == ONNX_NONE ? ONNX_NONE : cutting->input->stage_of[node];
}

/* Finds the outputs of the stages: what later stages take, and what the model leaves. */
static void find_owners(struct cutting *cutting)
{
    const struct onnx_model *model = cutting->input->model;
    for (uint32_t i = 0; i < model->value_count; i++) {
        cutting->owner[i] = ONNX_NONE;
    }
    for (uint32_t i = 0; i < model->node_count; i++) {
        const struct onnx_node *node = &model->nodes[i];
        for (uint32_t k = 0; k < node->input_count; k++) {
            const uint32_t value = model->uses[node->first_input + k];
            const uint32_t from = value == ONNX_NONE ? ONNX_NONE : made_in(cutting, value);
            if (from != ONNX_NONE && from != cutting->input->stage_of[i] &&
                !onnx_cut_is_constant(model, value)) {
                cutting->owner[value] = from;
                cutting->is_taken_later[value] = true;
            }
        }
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        const uint32_t value = model->outputs[i].value;
        const uint32_t from = made_in(cutting, value);
        cutting->is_output[value] = true;
        cutting->owner[value] = from != ONNX_NONE ? from : cutting->input->stage_count - 1;
    }
}

/* ---------------------------------------------------------------- ports */

/* Writes the dims of a value: numbers where all runs agree. */
static size_t put_dims(const struct cutting *cutting, uint32_t value, uint8_t *to)
{
    const struct onnx_fact *fact = &cutting->input->shapes->facts[value];
    const struct onnx_fact *other =
        cutting->input->other != NULL ? &cutting->input->other->facts[value] : fact;
    size_t size = 0;
    for (uint32_t i = 0; i < fact->rank; i++) {
        uint8_t dim[HEAD_BYTES];
        const size_t length = fact->dims[i] == other->dims[i]
                                  ? put_field(dim, DIM_VALUE, (uint64_t)fact->dims[i])
                                  : 0;
        size += put_head(to + size, SHAPE_DIM, length);
        memcpy(to + size, dim, length);
        size += length;
    }
    return size;
}

/* Writes a ValueInfoProto for a value that crosses. */
static void add_port(struct cutting *cutting, struct onnx_stage *stage, uint32_t field,
                     uint32_t value)
{
    enum { DIMS_BYTES = ONNX_RANK_MOST * 2 * HEAD_BYTES };
    const struct onnx_value *of = &cutting->input->model->values[value];
    const struct onnx_fact *fact = &cutting->input->shapes->facts[value];
    uint8_t dims[DIMS_BYTES];
    uint8_t tensor[DIMS_BYTES + 2 * HEAD_BYTES];
    uint8_t type[sizeof tensor + HEAD_BYTES];
    uint8_t port[sizeof type + HEAD_BYTES];
    uint8_t head[2 * HEAD_BYTES];
    const bool has_rank =
        cutting->input->other == NULL || cutting->input->other->facts[value].rank == fact->rank;
    const size_t dims_size = has_rank ? put_dims(cutting, value, dims) : 0;
    size_t tensor_size = put_field(tensor, TENSOR_TYPE, fact->type);
    if (has_rank) {
        tensor_size += put_head(tensor + tensor_size, TENSOR_SHAPE, dims_size);
        memcpy(tensor + tensor_size, dims, dims_size);
        tensor_size += dims_size;
    }
    size_t type_size = put_head(type, TYPE_TENSOR, tensor_size);
    memcpy(type + type_size, tensor, tensor_size);
    type_size += tensor_size;
    size_t port_size = put_head(port, PORT_TYPE, type_size);
    memcpy(port + port_size, type, type_size);
    port_size += type_size;
    uint8_t name[HEAD_BYTES];
    const size_t name_size = put_head(name, PORT_NAME, of->name.size);
    const size_t head_size = put_head(head, field, name_size + of->name.size + port_size);
    add_made(cutting, stage, head, head_size);
    add_made(cutting, stage, name, name_size);
    add_span(cutting, stage, of->name);
    add_made(cutting, stage, port, port_size);
}

static bool list_ports(struct cutting *cutting, uint32_t number)
{
    const struct onnx_model *model = cutting->input->model;
    struct onnx_stage *stage = &cutting->cut->stages[number];
    stage->inputs = calloc((size_t)model->value_count + 1, sizeof *stage->inputs);
    stage->outputs = calloc((size_t)model->value_count + 1, sizeof *stage->outputs);
    if (stage->inputs == NULL || stage->outputs == NULL) {
        cutting->is_short = true;
        return false;
    }
    for (uint32_t i = 0; i < model->value_count; i++) {
        const uint32_t from = made_in(cutting, i);
        const bool is_given =
            model->values[i].input != ONNX_NONE && model->values[i].initializer == ONNX_NONE;
        const bool crosses = from != ONNX_NONE && from != number && !onnx_cut_is_constant(model, i);
        if (cutting->is_used[i] && (is_given || crosses)) {
            stage->inputs[stage->input_count++] = (struct onnx_cut_port){i, from};
        }
        if (cutting->owner[i] == number) {
            stage->outputs[stage->output_count++] = (struct onnx_cut_port){i, number};
        }
    }
    return true;
}

static void add_ports(struct cutting *cutting, uint32_t number)
{
    struct onnx_stage *stage = &cutting->cut->stages[number];
    for (uint32_t i = 0; i < stage->input_count; i++) {
        if (stage->inputs[i].from != ONNX_NONE) {
            add_port(cutting, stage, GRAPH_INPUT, stage->inputs[i].value);
        }
    }
    for (uint32_t i = 0; i < stage->output_count; i++) {
        if (!cutting->is_output[stage->outputs[i].value]) {
            add_port(cutting, stage, GRAPH_OUTPUT, stage->outputs[i].value);
        }
    }
}

/* ---------------------------------------------------------------- weights */

/* Weights that lie in another file become part of the stage. */
static void add_other(struct cutting *cutting, struct onnx_stage *stage,
                      const struct onnx_tensor *tensor)
{
    struct onnx_wire wire = onnx_wire_over(tensor->message);
    struct onnx_field field;
    uint8_t head[HEAD_BYTES];
    uint8_t raw[HEAD_BYTES];
    uint64_t size = (uint64_t)tensor->bytes + put_head(raw, WEIGHTS_RAW, (uint64_t)tensor->bytes);
    for (const uint8_t *at = wire.at; onnx_wire_next(&wire, &field); at = wire.at) {
        const bool stays = field.number == WEIGHTS_DIMS || field.number == WEIGHTS_TYPE ||
                           field.number == WEIGHTS_NAME;
        size += stays ? (uint64_t)(wire.at - at) : 0;
    }
    add_made(cutting, stage, head, put_head(head, GRAPH_INITIALIZER, size));
    wire = onnx_wire_over(tensor->message);
    for (const uint8_t *at = wire.at; onnx_wire_next(&wire, &field); at = wire.at) {
        if (field.number == WEIGHTS_DIMS || field.number == WEIGHTS_TYPE ||
            field.number == WEIGHTS_NAME) {
            add_span(cutting, stage, (struct onnx_span){at, (size_t)(wire.at - at)});
        }
    }
    add_made(cutting, stage, raw, put_head(raw, WEIGHTS_RAW, (uint64_t)tensor->bytes));
    if (tensor->bytes > 0) {
        (void)add_piece(cutting, stage,
                        (struct onnx_piece){.size = (uint64_t)tensor->bytes,
                                            .path = tensor->path,
                                            .offset = (uint64_t)tensor->offset});
    }
}

static void add_weights(struct cutting *cutting, struct onnx_stage *stage,
                        const struct onnx_tensor *tensor, struct onnx_span field)
{
    stage->weight_bytes += (uint64_t)tensor->bytes;
    if (tensor->is_external) {
        add_other(cutting, stage, tensor);
    } else {
        add_span(cutting, stage, field);
    }
}

/* ---------------------------------------------------------------- the graph */

/* Numbers of the graph's fields, as far as they are met. */
struct met {
    uint32_t nodes, weights, inputs, outputs;
};

/* Returns true when the stage has a field of the graph as it is. */
static bool has_field(const struct cutting *cutting, uint32_t number, uint32_t field,
                      struct met *met)
{
    const struct onnx_model *model = cutting->input->model;
    switch (field) {
    case GRAPH_NODE:
        return has_node(cutting, met->nodes++, number);
    case GRAPH_INPUT:
        return cutting->is_used[model->inputs[met->inputs++].value];
    case GRAPH_OUTPUT:
        return cutting->owner[model->outputs[met->outputs++].value] == number;
    default:
        return field == GRAPH_NAME;
    }
}

static void add_graph(struct cutting *cutting, uint32_t number, struct onnx_span graph,
                      const uint32_t *value_of)
{
    const struct onnx_model *model = cutting->input->model;
    struct onnx_stage *stage = &cutting->cut->stages[number];
    struct onnx_wire wire = onnx_wire_over(graph);
    struct onnx_field field;
    struct met met = {.nodes = 0};
    for (const uint8_t *at = wire.at; onnx_wire_next(&wire, &field); at = wire.at) {
        const struct onnx_span whole = {at, (size_t)(wire.at - at)};
        if (field.number == GRAPH_INITIALIZER) {
            const uint32_t weights = met.weights++;
            if (cutting->is_used[value_of[weights]]) {
                add_weights(cutting, stage, &model->initializers[weights], whole);
            }
        } else if (has_field(cutting, number, field.number, &met)) {
            add_span(cutting, stage, whole);
        }
    }
    add_ports(cutting, number);
}

/* Returns how many bytes the pieces from `first` on have. */
static uint64_t size_from(const struct onnx_stage *stage, size_t first)
{
    uint64_t size = 0;
    for (size_t i = first; i < stage->piece_count; i++) {
        size += stage->pieces[i].size;
    }
    return size;
}

/* Adds the fields of the model, and its graph last. The length of the graph is known at its end.
 * So the piece with the length is made as long as any, and shortened then. */
static void add_model(struct cutting *cutting, uint32_t number, const uint32_t *value_of)
{
    struct onnx_stage *stage = &cutting->cut->stages[number];
    struct onnx_wire wire = onnx_wire_over(cutting->input->bytes);
    struct onnx_field field;
    struct onnx_span graph = {NULL, 0};
    uint8_t head[HEAD_BYTES] = {0};
    for (const uint8_t *at = wire.at; onnx_wire_next(&wire, &field); at = wire.at) {
        if (field.number == MODEL_GRAPH) {
            graph = field.bytes;
        } else if (field.number != MODEL_TRAINING) {
            add_span(cutting, stage, (struct onnx_span){at, (size_t)(wire.at - at)});
        }
    }
    const size_t head_at = cutting->cut->made_size;
    const size_t before = stage->piece_count;
    add_made(cutting, stage, head, sizeof head);
    add_graph(cutting, number, graph, value_of);
    if (!cutting->is_short) {
        const uint64_t size = size_from(stage, before + 1);
        stage->pieces[before].size = put_head(cutting->cut->made + head_at, MODEL_GRAPH, size);
    }
}

/* Made bytes do not move any more, so that their pieces can point to them. */
static void settle_pieces(struct onnx_cut *cut)
{
    for (uint32_t i = 0; i < cut->stage_count; i++) {
        struct onnx_stage *stage = &cut->stages[i];
        for (size_t k = 0; k < stage->piece_count; k++) {
            struct onnx_piece *piece = &stage->pieces[k];
            piece->begin = stage->size;
            stage->size += piece->size;
            if (piece->at == NULL && piece->path.size == 0) {
                piece->at = cut->made + piece->offset;
            }
        }
    }
}

/* ---------------------------------------------------------------- all of it */

static bool take_room(struct cutting *cutting)
{
    const size_t values = (size_t)cutting->input->model->value_count + 1;
    cutting->cut = calloc(1, sizeof *cutting->cut);
    cutting->owner = calloc(values, sizeof *cutting->owner);
    cutting->is_output = calloc(values, sizeof *cutting->is_output);
    cutting->is_used = calloc(values, sizeof *cutting->is_used);
    cutting->is_taken_later = calloc(values, sizeof *cutting->is_taken_later);
    return cutting->cut != NULL && cutting->owner != NULL && cutting->is_output != NULL &&
           cutting->is_used != NULL && cutting->is_taken_later != NULL;
}

static void give_room(struct cutting *cutting)
{
    free(cutting->owner);
    free(cutting->is_output);
    free(cutting->is_used);
    free(cutting->is_taken_later);
}

static uint32_t *values_of_weights(const struct onnx_model *model)
{
    uint32_t *value_of = calloc((size_t)model->initializer_count + 1, sizeof *value_of);
    for (uint32_t i = 0; value_of != NULL && i < model->value_count; i++) {
        if (model->values[i].initializer != ONNX_NONE) {
            value_of[model->values[i].initializer] = i;
        }
    }
    return value_of;
}

/* A value that crosses is a tensor of a known type. */
static enum onnx_status check_crossing(const struct cutting *cutting, struct problem *problem)
{
    const struct onnx_cut_input *input = cutting->input;
    for (uint32_t i = 0; i < input->model->value_count; i++) {
        if (cutting->is_taken_later[i] &&
            (!input->shapes->facts[i].is_known ||
             (input->other != NULL && !input->other->facts[i].is_known))) {
            problem_set(problem, "\"%s\" would go from stage to stage, and is no tensor",
                        onnx_label(input->model->values[i].name).text);
            return ONNX_UNSUPPORTED;
        }
    }
    return ONNX_OK;
}

static enum onnx_status check_stages(const struct onnx_cut *cut, struct problem *problem)
{
    for (uint32_t i = 0; i < cut->stage_count; i++) {
        if (cut->stages[i].output_count == 0) {
            problem_set(problem,
                        "stage %u of %u would make nothing that anybody takes: ask for fewer "
                        "stages",
                        i + 1, cut->stage_count);
            return ONNX_UNSUPPORTED;
        }
        if (cut->stages[i].size > (uint64_t)ONNX_FILE_BYTES) {
            problem_set(problem,
                        "stage %u of %u would have %llu bytes, and a model has at most 2^31: ask "
                        "for more stages",
                        i + 1, cut->stage_count, (unsigned long long)cut->stages[i].size);
            return ONNX_TOO_LARGE;
        }
    }
    return ONNX_OK;
}

static enum onnx_status cut_all(struct cutting *cutting, struct problem *problem)
{
    uint32_t *value_of = values_of_weights(cutting->input->model);
    find_owners(cutting);
    enum onnx_status status = check_crossing(cutting, problem);
    cutting->is_short = value_of == NULL;
    for (uint32_t i = 0; status == ONNX_OK && !cutting->is_short && i < cutting->input->stage_count;
         i++) {
        cutting->cut->stage_count = i + 1;
        mark_used(cutting, i);
        if (list_ports(cutting, i)) {
            add_model(cutting, i, value_of);
        }
    }
    free(value_of);
    if (cutting->is_short) {
        problem_set(problem, "there is not enough memory");
        return ONNX_NO_MEMORY;
    }
    settle_pieces(cutting->cut);
    return status == ONNX_OK ? check_stages(cutting->cut, problem) : status;
}

enum onnx_status onnx_cut_make(const struct onnx_cut_input *input, struct onnx_cut **ret_cut,
                               struct problem *ret_problem)
{
    struct cutting cutting = {.input = input};
    enum onnx_status status = ONNX_NO_MEMORY;
    assert(input->stage_count > 0);
    assert(input->stage_count <= ONNX_CUT_STAGES);
    if (take_room(&cutting)) {
        status = cut_all(&cutting, ret_problem);
    } else {
        problem_set(ret_problem, "there is not enough memory");
    }
    give_room(&cutting);
    if (status != ONNX_OK) {
        onnx_cut_destroy(&cutting.cut);
        return status;
    }
    *ret_cut = cutting.cut;
    return ONNX_OK;
}

void onnx_cut_destroy(struct onnx_cut **self)
{
    struct onnx_cut *cut = *self;
    if (cut != NULL) {
        for (uint32_t i = 0; i < cut->stage_count; i++) {
            free(cut->stages[i].pieces);
            free(cut->stages[i].inputs);
            free(cut->stages[i].outputs);
        }
        free(cut->made);
        free(cut);
        *self = NULL;
    }
}

/* Returns the piece with the byte at `offset`. */
static const struct onnx_piece *piece_at(const struct onnx_stage *stage, uint64_t offset)
{
    size_t low = 0;
    size_t high = stage->piece_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(stage->pieces[middle].begin <= offset ? &low : &high) = middle;
    }
    return &stage->pieces[low];
}

bool onnx_cut_read(const struct onnx_stage *stage, uint64_t offset, size_t length,
                   onnx_cut_other *other, void *context, uint8_t *ret_bytes)
{
    assert(offset + length <= stage->size);
    while (length > 0) {
        const struct onnx_piece *piece = piece_at(stage, offset);
        const uint64_t within = offset - piece->begin;
        const size_t size = length < piece->size - within ? length : (size_t)(piece->size - within);
        if (piece->at != NULL) {
            memcpy(ret_bytes, piece->at + within, size);
        } else if (other == NULL ||
                   !other(context, piece->path, piece->offset + within, size, ret_bytes)) {
            return false;
        }
        ret_bytes += size;
        offset += size;
        length -= size;
    }
    return true;
}
