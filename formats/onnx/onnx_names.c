/* This file gives every name of a graph one value, and finds who makes what a node needs. */
#include "formats/onnx/onnx_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A name in the order of names; its value is made as an index. */
struct entry {
    struct onnx_span name;
    uint32_t value;
};

struct resolving {
    struct onnx_reading *reading;
    struct entry *entries; /* sorted by name */
    uint32_t count;
};

static int compare_names(struct onnx_span a, struct onnx_span b)
{
    const size_t least = a.size < b.size ? a.size : b.size;
    const int order = least == 0 ? 0 : memcmp(a.at, b.at, least);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static int by_name(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;
    const int order = compare_names(left->name, right->name);
    return order != 0 ? order : (left->value > right->value) - (left->value < right->value);
}

/* Returns the value of a name, or ONNX_NONE. */
static uint32_t find(const struct resolving *resolving, struct onnx_span name)
{
    uint32_t low = 0;
    uint32_t high = resolving->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = compare_names(resolving->entries[middle].name, name);
        if (order == 0) {
            return resolving->entries[middle].value;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return ONNX_NONE;
}

static struct onnx_value *add_value(struct onnx_model *model, struct onnx_span name)
{
    struct onnx_value *value = &model->values[model->value_count++];
    *value = (struct onnx_value){
        .name = name, .node = ONNX_NONE, .initializer = ONNX_NONE, .input = ONNX_NONE};
    return value;
}

/* Lists what makes names: inputs, weights, nodes. An output of a node may be left out. */
static bool list_values(struct onnx_reading *reading, const struct onnx_span *output_names)
{
    struct onnx_model *model = reading->model;
    const size_t most =
        (size_t)model->input_count + model->initializer_count + model->make_count + 1;
    model->values = calloc(most, sizeof *model->values);
    if (model->values == NULL) {
        return onnx_fault(reading, ONNX_NO_MEMORY, "there is not enough memory");
    }
    for (uint32_t i = 0; i < model->input_count; i++) {
        model->inputs[i].value = model->value_count;
        add_value(model, model->inputs[i].name)->input = i;
    }
    for (uint32_t i = 0; i < model->initializer_count; i++) {
        add_value(model, model->initializers[i].name)->initializer = i;
    }
    for (uint32_t i = 0; i < model->node_count; i++) {
        const struct onnx_node *node = &model->nodes[i];
        for (uint32_t k = 0; k < node->output_count; k++) {
            const uint32_t at = node->first_output + k;
            model->makes[at] = ONNX_NONE;
            if (output_names[at].size == 0) {
                continue;
            }
            if (!onnx_name_is_good(reading, output_names[at], "an output of a node")) {
                return false;
            }
            model->makes[at] = model->value_count;
            add_value(model, output_names[at])->node = i;
        }
    }
    return true;
}

static const char *maker_kind(const struct onnx_value *value)
{
    return value->node != ONNX_NONE          ? "a node"
           : value->initializer != ONNX_NONE ? "weights"
                                             : "an input";
}

/* Sorts the names. An input that has weights, too, is one value: the weights are its default. */
static bool sort_names(struct resolving *resolving)
{
    struct onnx_model *model = resolving->reading->model;
    for (uint32_t i = 0; i < model->value_count; i++) {
        resolving->entries[i] = (struct entry){model->values[i].name, i};
    }
    resolving->count = model->value_count;
    qsort(resolving->entries, resolving->count, sizeof *resolving->entries, by_name);
    for (uint32_t i = 1; i < resolving->count; i++) {
        const struct entry *before = &resolving->entries[i - 1];
        struct entry *entry = &resolving->entries[i];
        struct onnx_value *first = &model->values[before->value];
        const struct onnx_value *second = &model->values[entry->value];
        if (!onnx_span_equals(before->name, entry->name)) {
            continue;
        }
        if (first->input != ONNX_NONE && first->initializer == ONNX_NONE &&
            second->initializer != ONNX_NONE) {
            first->initializer = second->initializer;
            entry->value = before->value;
            continue;
        }
        return onnx_fault(resolving->reading, ONNX_TWICE,
                          "the name \"%s\" stands twice: %s has it, and %s",
                          onnx_label(entry->name).text, maker_kind(first), maker_kind(second));
    }
    return true;
}

/* Gives the nodes' inputs and the graph's outputs their values. */
static bool find_makers(struct resolving *resolving, const struct onnx_span *input_names)
{
    struct onnx_reading *reading = resolving->reading;
    struct onnx_model *model = reading->model;
    for (uint32_t i = 0; i < model->node_count; i++) {
        const struct onnx_node *node = &model->nodes[i];
        for (uint32_t k = 0; k < node->input_count; k++) {
            const uint32_t at = node->first_input + k;
            const struct onnx_span name = input_names[at];
            model->uses[at] = name.size == 0 ? ONNX_NONE : find(resolving, name);
            if (name.size > 0 && model->uses[at] == ONNX_NONE) {
                return onnx_fault(reading, ONNX_UNMADE,
                                  "node \"%s\" (%s) needs \"%s\" as input %u, and nothing in the "
                                  "graph makes it",
                                  onnx_node_label(model, node).text,
                                  onnx_label(node->operator).text, onnx_label(name).text, k);
            }
        }
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        model->outputs[i].value = find(resolving, model->outputs[i].name);
        if (model->outputs[i].value == ONNX_NONE) {
            return onnx_fault(reading, ONNX_UNMADE, "nothing in the graph makes its output \"%s\"",
                              onnx_label(model->outputs[i].name).text);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- order */

/* Returns a node that makes an input of `node` and is not done, or ONNX_NONE. */
static uint32_t undone_maker(const struct onnx_model *model, uint32_t number, const bool *is_done)
{
    const struct onnx_node *node = &model->nodes[number];
    for (uint32_t k = 0; k < node->input_count; k++) {
        const uint32_t value = model->uses[node->first_input + k];
        const uint32_t maker = value == ONNX_NONE ? ONNX_NONE : model->values[value].node;
        if (maker != ONNX_NONE && !is_done[maker]) {
            return maker;
        }
    }
    return ONNX_NONE;
}

/* A walk from a node to the nodes that it needs, depth first. It has a stack of its own, since a
 * graph may be as deep as it has nodes. */
struct walk {
    const struct onnx_model *model;
    bool *is_done;    /* by node: everything that it needs was seen, without a circle */
    bool *is_on_path; /* by node */
    uint32_t *path;   /* from the first node to the present one */
    uint32_t *next;   /* by node: the input that is looked at next */
    uint32_t depth;
};

static bool walk_begin(struct walk *walk, const struct onnx_model *model, bool *is_done)
{
    const size_t room = (size_t)model->node_count + 1;
    *walk = (struct walk){.model = model,
                          .is_done = is_done,
                          .is_on_path = calloc(room, sizeof *walk->is_on_path),
                          .path = calloc(room, sizeof *walk->path),
                          .next = calloc(room, sizeof *walk->next)};
    return walk->is_on_path != NULL && walk->path != NULL && walk->next != NULL;
}

static void walk_end(struct walk *walk)
{
    free(walk->is_on_path);
    free(walk->path);
    free(walk->next);
}

/* Returns the next maker of the node at the end of the path that is not done, or ONNX_NONE. */
static uint32_t walk_maker(struct walk *walk)
{
    const uint32_t number = walk->path[walk->depth - 1];
    const struct onnx_node *node = &walk->model->nodes[number];
    while (walk->next[number] < node->input_count) {
        const uint32_t value = walk->model->uses[node->first_input + walk->next[number]++];
        const uint32_t maker = value == ONNX_NONE ? ONNX_NONE : walk->model->values[value].node;
        if (maker != ONNX_NONE && !walk->is_done[maker]) {
            return maker;
        }
    }
    return ONNX_NONE;
}

/* Walks until a node is met that is on the path already. Returns that node, or ONNX_NONE. */
static uint32_t walk_to_circle(struct walk *walk, uint32_t from)
{
    walk->path[walk->depth++] = from;
    walk->is_on_path[from] = true;
    while (walk->depth > 0) {
        const uint32_t maker = walk_maker(walk);
        if (maker == ONNX_NONE) {
            const uint32_t last = walk->path[--walk->depth];
            walk->is_done[last] = true;
            walk->is_on_path[last] = false;
        } else if (walk->is_on_path[maker]) {
            return maker;
        } else {
            walk->path[walk->depth++] = maker;
            walk->is_on_path[maker] = true;
        }
    }
    return ONNX_NONE;
}

static bool refuse_pair(struct onnx_reading *reading, enum onnx_status status, uint32_t number,
                        uint32_t maker)
{
    const struct onnx_model *model = reading->model;
    const struct onnx_node *node = &model->nodes[number];
    const struct onnx_node *other = &model->nodes[maker];
    return onnx_fault(reading, status,
                      status == ONNX_CYCLE
                          ? "the graph has a circle: node \"%s\" (%s) needs what node \"%s\" (%s) "
                            "makes, which waits for the first"
                          : "node \"%s\" (%s) stands before node \"%s\" (%s), which it needs; in "
                            "ONNX, nodes follow those that they need",
                      onnx_node_label(model, node).text, onnx_label(node->operator).text,
                      onnx_node_label(model, other).text, onnx_label(other->operator).text);
}

/* Says whether a node that stands before `maker` is on a circle, or merely out of order. */
static bool refuse_order(struct onnx_reading *reading, uint32_t number, uint32_t maker,
                         bool *is_done)
{
    struct walk walk;
    if (!walk_begin(&walk, reading->model, is_done)) {
        (void)onnx_fault(reading, ONNX_NO_MEMORY, "there is not enough memory");
    } else {
        const uint32_t circle = walk_to_circle(&walk, number);
        (void)(circle != ONNX_NONE
                   ? refuse_pair(reading, ONNX_CYCLE, walk.path[walk.depth - 1], circle)
                   : refuse_pair(reading, ONNX_ORDER, number, maker));
    }
    walk_end(&walk);
    return false;
}

static bool check_order(struct onnx_reading *reading)
{
    const struct onnx_model *model = reading->model;
    bool *is_done = calloc((size_t)model->node_count + 1, sizeof *is_done);
    bool ok = true;
    if (is_done == NULL) {
        return onnx_fault(reading, ONNX_NO_MEMORY, "there is not enough memory");
    }
    for (uint32_t i = 0; ok && i < model->node_count; i++) {
        const uint32_t maker = undone_maker(model, i, is_done);
        ok = maker == ONNX_NONE || refuse_order(reading, i, maker, is_done);
        is_done[i] = true;
    }
    free(is_done);
    return ok;
}

bool onnx_names_resolve(struct onnx_reading *reading, const struct onnx_span *input_names,
                        const struct onnx_span *output_names)
{
    struct resolving resolving = {.reading = reading};
    if (!list_values(reading, output_names)) {
        return false;
    }
    resolving.entries = calloc((size_t)reading->model->value_count + 1, sizeof *resolving.entries);
    bool ok = resolving.entries != NULL ||
              onnx_fault(reading, ONNX_NO_MEMORY, "there is not enough memory");
    ok = ok && sort_names(&resolving) && find_makers(&resolving, input_names);
    free(resolving.entries);
    return ok && check_order(reading);
}
