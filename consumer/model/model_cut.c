#include "consumer/model/model_cut.h"

#include "consumer/model/model_work.h"
#include "formats/onnx/onnx_cut.h"
#include "formats/onnx/onnx_npy.h"
#include "formats/onnx/onnx_words.h"
#include "planner/layout/cuts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A model while its cuts are chosen. */
struct choosing {
    const struct onnx_model *model;
    const struct onnx_shapes *shapes;
    /* Bytes that cross between each node and the node before it. */
    double *bytes;
    int64_t *values, *stuck; /* how many values, and how many that cannot cross */
    /* Columns of the planner, each some consecutive nodes. */
    uint32_t first[CUTS_COLUMNS];
    double column_s[CUTS_COLUMNS], cross_s[CUTS_COLUMNS];
    size_t column_count;
};

bool model_cut_crosses(const struct onnx_model *model, const struct onnx_shapes *shapes,
                       uint32_t value)
{
    const struct onnx_fact *fact = &shapes->facts[value];
    const struct onnx_span name = model->values[value].name;
    struct npy npy;
    return fact->is_known && onnx_npy_describe(fact->type, fact->rank, fact->dims, &npy) &&
           memchr(name.at, '=', name.size) == NULL && memchr(name.at, '{', name.size) == NULL &&
           memchr(name.at, '}', name.size) == NULL;
}

/* ---------------------------------------------------------------- what crosses */

/* Finds the last node that takes each value, or 0. */
static void find_last(const struct onnx_model *model, uint32_t *ret_last)
{
    for (uint32_t i = 0; i < model->node_count; i++) {
        const struct onnx_node *node = &model->nodes[i];
        for (uint32_t k = 0; k < node->input_count; k++) {
            const uint32_t value = model->uses[node->first_input + k];
            if (value != ONNX_NONE) {
                ret_last[value] = i;
            }
        }
    }
}

/* Counts what crosses before each node. A value crosses from behind its maker to the last node that
 * takes it. The figures are written as differences from node to node, and summed up after. */
static void count_crossing(struct choosing *choosing, const uint32_t *last)
{
    const struct onnx_model *model = choosing->model;
    for (uint32_t i = 0; i < model->value_count; i++) {
        const uint32_t maker = model->values[i].node;
        if (maker == ONNX_NONE || last[i] <= maker || onnx_cut_is_constant(model, i)) {
            continue;
        }
        const double bytes = (double)choosing->shapes->facts[i].bytes;
        const bool is_stuck = !model_cut_crosses(model, choosing->shapes, i);
        choosing->bytes[maker + 1] += bytes;
        choosing->bytes[last[i] + 1] -= bytes;
        choosing->values[maker + 1]++;
        choosing->values[last[i] + 1]--;
        choosing->stuck[maker + 1] += is_stuck;
        choosing->stuck[last[i] + 1] -= is_stuck;
    }
    for (uint32_t i = 1; i < model->node_count; i++) {
        choosing->bytes[i] += choosing->bytes[i - 1];
        choosing->values[i] += choosing->values[i - 1];
        choosing->stuck[i] += choosing->stuck[i - 1];
    }
}

/* ---------------------------------------------------------------- how long nodes take */

static double bytes_of(const struct onnx_model *model, const struct onnx_shapes *shapes,
                       const struct onnx_node *node)
{
    double bytes = 0;
    for (uint32_t k = 0; k < node->input_count; k++) {
        const uint32_t value = model->uses[node->first_input + k];
        bytes += value != ONNX_NONE ? (double)shapes->facts[value].bytes : 0;
    }
    for (uint32_t k = 0; k < node->output_count; k++) {
        const uint32_t value = model->makes[node->first_output + k];
        bytes += value != ONNX_NONE ? (double)shapes->facts[value].bytes : 0;
    }
    return bytes;
}

static double time_of(const struct onnx_model *model, const struct onnx_shapes *shapes,
                      uint32_t number)
{
    struct model_node counted;
    struct operation_size size = {.flops = 0};
    struct problem ignored; /* what is not known counts by its bytes */
    if (model_node_count(model, shapes, number, &counted, &ignored)) {
        if (counted.source == MODEL_NOTHING) {
            return 0;
        }
        if (operation_measure(&counted.operation, &size, NULL) == OPERATION_OK) {
            return (double)size.flops / MODEL_CUT_OPERATIONS +
                   ((double)size.read_bytes + (double)size.written_bytes) / MODEL_CUT_MEMORY;
        }
    }
    return bytes_of(model, shapes, &model->nodes[number]) / MODEL_CUT_MEMORY;
}

double model_cut_time_s(const struct onnx_model *model, const struct onnx_shapes *shapes)
{
    double time_s = 0;
    for (uint32_t i = 0; i < model->node_count; i++) {
        time_s += time_of(model, shapes, i);
    }
    return time_s;
}

/* ---------------------------------------------------------------- columns */

/* A constant has no column of its own: it goes with the node behind it. */
static bool may_begin(const struct choosing *choosing, uint32_t node)
{
    const struct onnx_model *model = choosing->model;
    const struct onnx_node *of = &model->nodes[node];
    const uint32_t value = of->output_count > 0 ? model->makes[of->first_output] : ONNX_NONE;
    return choosing->values[node] > 0 && choosing->values[node] <= ONNX_WORDS_FILES &&
           choosing->stuck[node] == 0 &&
           (value == ONNX_NONE || !onnx_cut_is_constant(model, value));
}

/* Chooses the first nodes of columns: all that there are, or of each run of nodes the one before
 * which least crosses. */
static void find_columns(struct choosing *choosing)
{
    const uint32_t nodes = choosing->model->node_count;
    const uint32_t each = (nodes - 1) / (CUTS_COLUMNS - 1) + 1;
    choosing->first[choosing->column_count++] = 0;
    for (uint32_t from = 1; from < nodes; from += each) {
        uint32_t best = ONNX_NONE;
        for (uint32_t i = from; i < from + each && i < nodes; i++) {
            const bool is_better = best == ONNX_NONE || choosing->bytes[i] < choosing->bytes[best];
            best = may_begin(choosing, i) && is_better ? i : best;
        }
        if (best != ONNX_NONE) {
            choosing->cross_s[choosing->column_count] = choosing->bytes[best] / MODEL_CUT_LINK;
            choosing->first[choosing->column_count++] = best;
        }
    }
    size_t column = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        column += column + 1 < choosing->column_count && choosing->first[column + 1] == i;
        choosing->column_s[column] += time_of(choosing->model, choosing->shapes, i);
    }
}

/* ---------------------------------------------------------------- all of it */

static bool take_room(struct choosing *choosing, uint32_t **ret_last, struct model_cut *cut)
{
    const size_t nodes = (size_t)choosing->model->node_count + 2;
    choosing->bytes = calloc(nodes, sizeof *choosing->bytes);
    choosing->values = calloc(nodes, sizeof *choosing->values);
    choosing->stuck = calloc(nodes, sizeof *choosing->stuck);
    cut->stage_of = calloc(nodes, sizeof *cut->stage_of);
    *ret_last = calloc((size_t)choosing->model->value_count + 1, sizeof **ret_last);
    return choosing->bytes != NULL && choosing->values != NULL && choosing->stuck != NULL &&
           cut->stage_of != NULL && *ret_last != NULL;
}

static void give_room(struct choosing *choosing, uint32_t *last)
{
    free(choosing->bytes);
    free(choosing->values);
    free(choosing->stuck);
    free(last);
}

static void deal_nodes(const struct choosing *choosing, const struct cuts *cuts, uint32_t stages,
                       struct model_cut *cut)
{
    uint32_t stage = 0;
    size_t column = 0;
    for (uint32_t i = 0; i < choosing->model->node_count; i++) {
        column += column + 1 < choosing->column_count && choosing->first[column + 1] == i;
        stage += stage + 1 < stages && cuts->first[stage + 1] == column;
        cut->stage_of[i] = stage;
    }
    for (size_t i = 0, at = 0; i < choosing->column_count; i++) {
        at += at + 1 < stages && cuts->first[at + 1] == i;
        cut->time_s[at] += choosing->column_s[i];
    }
    cut->slowest_s = cuts->slowest_s;
    cut->crossing_s = cuts->crossing_s;
}

static bool choose(struct choosing *choosing, uint32_t stages, struct model_cut *cut,
                   struct problem *problem)
{
    struct cuts cuts;
    find_columns(choosing);
    const enum cuts_status status =
        cuts_find(&(struct cuts_input){.column_count = choosing->column_count,
                                       .stage_count = stages,
                                       .time_s = choosing->column_s,
                                       .cross_s = choosing->cross_s},
                  &cuts);
    if (status == CUTS_OK) {
        deal_nodes(choosing, &cuts, stages, cut);
        return true;
    }
    if (status == CUTS_NO_MEMORY) {
        problem_set(problem, "there is not enough memory");
    } else {
        problem_set(problem, "it has places for %zu cuts, and %u stages need %u",
                    choosing->column_count - 1, stages, stages - 1);
    }
    return false;
}

bool model_cut_choose(const struct onnx_model *model, const struct onnx_shapes *shapes,
                      uint32_t stages, struct model_cut *ret_cut, struct problem *ret_problem)
{
    struct choosing *choosing = calloc(1, sizeof *choosing);
    uint32_t *last = NULL;
    struct model_cut cut = {.stage_of = NULL};
    bool good = choosing != NULL && model->node_count > 0;
    if (choosing != NULL) {
        choosing->model = model;
        choosing->shapes = shapes;
    }
    if (!good || !take_room(choosing, &last, &cut)) {
        problem_set(ret_problem, good ? "there is not enough memory" : "it has no nodes");
        good = false;
    } else {
        find_last(model, last);
        count_crossing(choosing, last);
        good = choose(choosing, stages, &cut, ret_problem);
    }
    if (choosing != NULL) {
        give_room(choosing, last);
        free(choosing);
    }
    if (!good) {
        model_cut_fini(&cut);
        return false;
    }
    *ret_cut = cut;
    return true;
}

void model_cut_fini(struct model_cut *cut)
{
    free(cut->stage_of);
    cut->stage_of = NULL;
}
