/* Models that are cut into stages compute what the whole model computes. The models are ONNX's own
 * test cases with several nodes, which Debian's package libonnx-testdata has, and random graphs.
 * Our own operators give the same bytes; ONNX Runtime joins nodes, and may round differently. */
#include "base/cleanup.h"
#include "formats/onnx/onnx_cut.h"
#include "formats/onnx/onnx_infer.h"
#include "provider/onnx/own/own_engine.h"
#include "provider/onnx/own/own_weights.h"
#include "provider/onnx/runtime/ort_engine.h"
#include "runtime/files.h"
#include "tests/support/onnx_writer.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CASES "/usr/share/libonnx-testdata/data"
enum {
    FILE_MOST = 16 << 20,
    PORTS_MOST = 64,
    PATH_SIZE = 2048,
    VALUES_MOST = 256,
    NODES_MOST = 4096,
    GRAPHS = 60,
    MODELS_LEAST = 80, /* of the package, that are cut */
};

struct bytes {
    uint8_t *at;
    size_t size;
};
static void bytes_free(struct bytes *bytes)
{
    free(bytes->at);
}

/* Arrays by name: inputs of the whole model, and what stages have left. */
struct known {
    char names[VALUES_MOST][128];
    struct onnx_array arrays[VALUES_MOST];
    size_t count;
};

static struct onnx_array *find(struct known *known, const char *name)
{
    for (size_t i = 0; i < known->count; i++) {
        if (strcmp(known->names[i], name) == 0) {
            return &known->arrays[i];
        }
    }
    return NULL;
}

/* Copies the bytes, since those of an engine end with its session. */
static void keep(struct known *known, const char *name, const struct onnx_array *array)
{
    ck_assert_uint_lt(known->count, VALUES_MOST);
    struct onnx_array *copy = &known->arrays[known->count];
    (void)snprintf(known->names[known->count++], sizeof known->names[0], "%s", name);
    ck_assert(onnx_array_make(array->type, array->rank, array->dims, copy, NULL));
    if (array->size > 0) {
        memcpy(copy->bytes, array->bytes, array->size);
    }
}

static void known_fini(struct known *known)
{
    for (size_t i = 0; i < known->count; i++) {
        onnx_array_release(&known->arrays[i]);
    }
    known->count = 0;
}

/* Runs a model on known arrays, and keeps its outputs. Returns false for one that the engine
 * refuses. */
static bool run(const struct onnx_engine *engine, struct bytes model, struct known *known,
                struct problem *problem)
{
    struct onnx_array inputs[PORTS_MOST];
    struct onnx_array outputs[PORTS_MOST];
    void *session = NULL;
    const struct onnx_engine_model of = {.bytes = model.at, .size = model.size, .threads = 1};
    if (engine->open(engine->context, &of, &session, problem) != ONNX_ENGINE_OK) {
        return false;
    }
    const struct onnx_engine_ports takes = engine->inputs(session);
    const struct onnx_engine_ports leaves = engine->outputs(session);
    bool good = takes.count <= PORTS_MOST && leaves.count <= PORTS_MOST;
    for (size_t i = 0; good && i < takes.count; i++) {
        const struct onnx_array *array = find(known, takes.items[i].name);
        good = array != NULL && onnx_engine_fit(&takes.items[i], array, problem);
        inputs[i] = good ? *array : inputs[i];
    }
    good = good && engine->run(session, inputs, outputs, problem) == ONNX_ENGINE_OK;
    for (size_t i = 0; good && i < leaves.count; i++) {
        keep(known, leaves.items[i].name, &outputs[i]);
        onnx_array_release(&outputs[i]);
    }
    engine->close(&session);
    return good;
}

/* ---------------------------------------------------------------- comparing */

static bool are_close(const struct onnx_array *a, const struct onnx_array *b)
{
    const float *left = a->bytes;
    const float *right = b->bytes;
    bool close = a->type == ONNX_FLOAT;
    for (int64_t i = 0; close && i < a->elements; i++) {
        close = (isnan(left[i]) && isnan(right[i])) || left[i] == right[i] ||
                fabsf(left[i] - right[i]) <= 1e-4F + 1e-3F * fabsf(left[i]);
    }
    return close;
}

static bool are_equal(const struct onnx_array *a, const struct onnx_array *b, bool is_exact)
{
    return a->type == b->type && a->rank == b->rank && a->size == b->size &&
           memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0 &&
           (a->size == 0 || memcmp(a->bytes, b->bytes, a->size) == 0 ||
            (!is_exact && are_close(a, b)));
}

/* ---------------------------------------------------------------- one model */

struct trial {
    const struct onnx_engine *engine;
    bool is_exact;
    struct bytes model;
    struct onnx_model *read;
    struct onnx_shapes *shapes;
    struct known *inputs; /* and the outputs of the whole model behind them */
    size_t input_count;
};

static struct bytes bytes_of(const struct onnx_stage *stage)
{
    struct bytes bytes = {malloc(stage->size), stage->size};
    ck_assert_ptr_nonnull(bytes.at);
    /* Two reads make it, so that one begins within a piece. */
    const size_t half = stage->size / 2;
    ck_assert(onnx_cut_read(stage, 0, half, NULL, NULL, bytes.at));
    ck_assert(onnx_cut_read(stage, half, stage->size - half, NULL, NULL, bytes.at + half));
    return bytes;
}

/* The ports that the cut names are those that an engine finds, and weights are not there twice. */
static void check_stage(const struct onnx_model *whole, const struct onnx_stage *stage,
                        struct bytes bytes)
{
    struct onnx_model *model = NULL;
    struct problem problem = {""};
    const enum onnx_status status = onnx_read(bytes.at, bytes.size, &model, &problem);
    ck_assert_msg(status == ONNX_OK, "a stage is no model: %s", problem.text);
    ck_assert_uint_eq(model->output_count, stage->output_count);
    uint32_t inputs = 0;
    uint64_t weight_bytes = 0;
    for (uint32_t i = 0; i < model->input_count; i++) {
        inputs += model->values[model->inputs[i].value].initializer == ONNX_NONE;
    }
    for (uint32_t i = 0; i < model->initializer_count; i++) {
        weight_bytes += (uint64_t)model->initializers[i].bytes;
    }
    ck_assert_uint_eq(inputs, stage->input_count);
    ck_assert_uint_eq(weight_bytes, stage->weight_bytes);
    for (uint32_t i = 0; i < stage->output_count; i++) {
        bool is_there = false;
        for (uint32_t k = 0; k < model->output_count; k++) {
            is_there = is_there || onnx_span_equals(model->outputs[k].name,
                                                    whole->values[stage->outputs[i].value].name);
        }
        ck_assert(is_there);
    }
    onnx_destroy(&model);
}

static void run_stages(const struct trial *trial, const uint32_t *stage_of, uint32_t stages)
{
    struct onnx_cut *cut = NULL;
    struct problem problem = {""};
    struct known known = {.count = 0};
    const struct onnx_cut_input input = {.bytes = {trial->model.at, trial->model.size},
                                         .model = trial->read,
                                         .shapes = trial->shapes,
                                         .stage_of = stage_of,
                                         .stage_count = stages};
    const enum onnx_status status = onnx_cut_make(&input, &cut, &problem);
    ck_assert_msg(status == ONNX_OK, "%s", problem.text);
    for (size_t i = 0; i < trial->input_count; i++) {
        keep(&known, trial->inputs->names[i], &trial->inputs->arrays[i]);
    }
    for (uint32_t i = 0; i < stages; i++) {
        CLEANUP(bytes_free) struct bytes bytes = bytes_of(&cut->stages[i]);
        check_stage(trial->read, &cut->stages[i], bytes);
        const bool is_run = run(trial->engine, bytes, &known, &problem);
        ck_assert_msg(is_run, "stage %u of %u: %s", i + 1, stages, problem.text);
    }
    for (size_t i = trial->input_count; i < trial->inputs->count; i++) {
        const struct onnx_array *array = find(&known, trial->inputs->names[i]);
        ck_assert_msg(array != NULL, "no stage leaves \"%s\"", trial->inputs->names[i]);
        ck_assert_msg(are_equal(&trial->inputs->arrays[i], array, trial->is_exact),
                      "\"%s\" differs with %u stages", trial->inputs->names[i], stages);
    }
    known_fini(&known);
    onnx_cut_destroy(&cut);
}

static bool is_constant(const struct onnx_model *model, uint32_t node)
{
    const uint32_t value = model->makes[model->nodes[node].first_output];
    return value != ONNX_NONE && onnx_cut_is_constant(model, value);
}

/* Deals the nodes to stages of equally many. Constants go to the stage of the next other node. */
static void deal_nodes(const struct onnx_model *model, uint32_t stages, uint32_t others,
                       uint32_t *ret_stage_of)
{
    uint32_t met = 0;
    for (uint32_t i = 0; i < model->node_count; i++) {
        const uint32_t place = met < others ? met : others - 1;
        ret_stage_of[i] = (uint32_t)((uint64_t)place * stages / others);
        met += !is_constant(model, i);
    }
}

static uint32_t count_others(const struct onnx_model *model)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < model->node_count; i++) {
        others += !is_constant(model, i);
    }
    return others;
}

/* Cuts a model that the engine runs, into some numbers of stages of equally many nodes. */
static bool try_model(struct trial *trial)
{
    static uint32_t stage_of[NODES_MOST];
    struct problem problem = {""};
    const uint32_t nodes = trial->read->node_count;
    const uint32_t others = count_others(trial->read);
    trial->input_count = trial->inputs->count;
    if (nodes > NODES_MOST || !run(trial->engine, trial->model, trial->inputs, &problem)) {
        return false;
    }
    for (uint32_t stages = 1; stages <= others && stages <= 5; stages += stages) {
        deal_nodes(trial->read, stages, others, stage_of);
        run_stages(trial, stage_of, stages);
    }
    return true;
}

static bool open_trial(struct trial *trial, const struct onnx_given *given, size_t given_count)
{
    if (onnx_read(trial->model.at, trial->model.size, &trial->read, NULL) != ONNX_OK) {
        return false;
    }
    const struct onnx_infer_input input = {
        .model = trial->read, .given = given, .given_count = given_count};
    return trial->read->node_count > 1 && onnx_infer(&input, &trial->shapes, NULL) == ONNX_OK;
}

static void close_trial(struct trial *trial)
{
    onnx_shapes_destroy(&trial->shapes);
    onnx_destroy(&trial->read);
}

/* ---------------------------------------------------------------- ONNX's own cases */

static struct bytes read_path(const char *path)
{
    struct bytes bytes = {NULL, 0};
    struct problem problem;
    return file_read(path, FILE_MOST, &bytes.at, &bytes.size, &problem) ? bytes
                                                                        : (struct bytes){NULL, 0};
}

/* Reads input_N.pb for the N-th input without weights. */
static bool read_input(const char *folder, size_t number, const char *name, struct known *known)
{
    static struct own_memory memory = {.limit = INT64_MAX};
    char path[PATH_SIZE];
    struct onnx_tensor head;
    struct own_tensor tensor = {.type = ONNX_UNDEFINED};
    struct onnx_array array;
    (void)snprintf(path, sizeof path, "%s/test_data_set_0/input_%zu.pb", folder, number);
    CLEANUP(bytes_free) struct bytes bytes = read_path(path);
    const bool good =
        bytes.at != NULL &&
        onnx_tensor_read((struct onnx_span){bytes.at, bytes.size}, &head, NULL) == ONNX_OK &&
        own_weights_load(&head, NULL, &memory, &tensor, NULL) == ONNX_OK &&
        onnx_array_describe(tensor.type, tensor.rank, tensor.dims, &array, NULL);
    if (good) {
        array.bytes = (void *)(uintptr_t)tensor.at;
        keep(known, name, &array);
    }
    own_tensor_drop(&tensor);
    return good;
}

static bool read_inputs(const char *folder, const struct onnx_model *model, struct known *known)
{
    bool good = true;
    size_t number = 0;
    for (uint32_t i = 0; good && i < model->input_count; i++) {
        if (model->values[model->inputs[i].value].initializer == ONNX_NONE) {
            char name[128];
            (void)snprintf(name, sizeof name, "%.*s", (int)model->inputs[i].name.size,
                           (const char *)model->inputs[i].name.at);
            good = read_input(folder, number++, name, known);
        }
    }
    return good;
}

static unsigned try_case(const struct onnx_engine *engine, const char *folder)
{
    char path[PATH_SIZE];
    struct known known = {.count = 0};
    struct trial trial = {.engine = engine, .is_exact = true, .inputs = &known};
    (void)snprintf(path, sizeof path, "%s/model.onnx", folder);
    CLEANUP(bytes_free) struct bytes bytes = read_path(path);
    trial.model = bytes;
    const bool is_cut = bytes.at != NULL && open_trial(&trial, NULL, 0) &&
                        read_inputs(folder, trial.read, &known) && try_model(&trial);
    close_trial(&trial);
    known_fini(&known);
    return is_cut;
}

START_TEST(cases_of_onnx_with_several_nodes_are_the_same_in_stages)
{
    static const char *const groups[] = {"node", "pytorch-converted", "pytorch-operator", "simple"};
    struct onnx_engine engine;
    unsigned tried = 0;
    own_engine_make(&engine);
    if (access(CASES, F_OK) != 0) {
        (void)printf("left out: prop_onnx_cut/cases: %s is not there; Debian's package "
                     "libonnx-testdata has it\n",
                     CASES);
        return;
    }
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        char path[PATH_SIZE];
        struct dirent **names = NULL;
        (void)snprintf(path, sizeof path, CASES "/%s", groups[i]);
        const int count = scandir(path, &names, NULL, alphasort);
        for (int k = 0; k < count; k++) {
            (void)snprintf(path, sizeof path, CASES "/%s/%.255s", groups[i], names[k]->d_name);
            tried += names[k]->d_name[0] != '.' ? try_case(&engine, path) : 0;
            free(names[k]);
        }
        free(names);
    }
    (void)printf("%u models of several nodes were cut\n", tried);
    ck_assert_uint_ge(tried, MODELS_LEAST);
}
END_TEST

/* ---------------------------------------------------------------- random graphs */

static uint64_t dice;
static uint32_t throw(uint32_t sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (uint32_t)((dice >> 20) % sides);
}

static void name_value(uint32_t number, char ret_name[16])
{
    if (number < 2) {
        (void)snprintf(ret_name, 16, "%s", number == 0 ? "x" : "z");
    } else {
        (void)snprintf(ret_name, 16, "n%u", number - 2);
    }
}

/* Writes a graph of matrices of 4 x 4 in which any node may take what any earlier one made, a
 * number of the weights, or the input; and in which some values are outputs on the way. */
static struct bytes random_model(uint32_t nodes)
{
    static const char *const one[] = {"Tanh", "Relu", "Neg", "Abs", "Identity", "Softmax"};
    static const char *const two[] = {"Add", "Mul", "Sub", "MatMul", "Max"};
    struct onnx_writer writer = {.opset = 13};
    bool is_taken[NODES_MOST] = {false};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "4,4");
    onnx_write_input(&writer, "z", WRITER_FLOAT, "4,4");
    for (uint32_t i = 0; i < 4; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "w%u", i);
        onnx_write_real(&writer, name, 0.5F + (float)i / 8);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        char name[16];
        char inputs[48];
        const uint32_t a = throw(i + 2);
        const uint32_t b = throw(i + 2);
        char left[16];
        char right[16];
        name_value(a, left);
        name_value(b, right);
        (void)snprintf(name, sizeof name, "n%u", i);
        const uint32_t kind = throw(3);
        if (kind == 0) {
            onnx_write_node(&writer, one[throw(sizeof one / sizeof *one)], left, name);
        } else if (kind == 1) {
            (void)snprintf(inputs, sizeof inputs, "%s w%u", left, throw(4));
            onnx_write_node(&writer, two[throw(3)], inputs, name);
        } else {
            (void)snprintf(inputs, sizeof inputs, "%s %s", left, right);
            onnx_write_node(&writer, two[throw(sizeof two / sizeof *two)], inputs, name);
        }
        is_taken[a] = true;
        is_taken[b] = is_taken[b] || kind == 2;
    }
    for (uint32_t i = 0; i < nodes; i++) {
        char name[16];
        name_value(i + 2, name);
        if (!is_taken[i + 2] || throw(5) == 0) {
            onnx_write_output(&writer, name, WRITER_FLOAT, "4,4");
        }
    }
    onnx_write_output(&writer, "x", WRITER_FLOAT, "4,4"); /* goes through as it is */
    const struct onnx_bytes model = onnx_write_end(&writer);
    return (struct bytes){model.at, model.size};
}

static void give_input(struct known *known, const char *name)
{
    const int64_t dims[] = {4, 4};
    struct onnx_array array;
    float values[16];
    for (size_t i = 0; i < 16; i++) {
        values[i] = (float) throw(2000) / 1000 - 1;
    }
    ck_assert(onnx_array_describe(ONNX_FLOAT, 2, dims, &array, NULL));
    array.bytes = values;
    keep(known, name, &array);
}

static void try_graph(const struct onnx_engine *engine, bool is_exact, uint32_t number)
{
    static uint32_t stage_of[NODES_MOST];
    struct known known = {.count = 0};
    struct problem problem = {""};
    dice = 88172645463325252U + 7919 * number;
    const uint32_t nodes = 2 + throw(24);
    CLEANUP(bytes_free) struct bytes model = random_model(nodes);
    struct trial trial = {.engine = engine, .is_exact = is_exact, .model = model, .inputs = &known};
    ck_assert(open_trial(&trial, NULL, 0));
    give_input(&known, "x");
    give_input(&known, "z");
    trial.input_count = known.count;
    const bool is_run = run(engine, model, &known, &problem);
    ck_assert_msg(is_run, "graph %u: %s", number, problem.text);
    const uint32_t stages = 1 + throw(nodes < ONNX_CUT_STAGES ? nodes : ONNX_CUT_STAGES);
    for (uint32_t i = 0, at = 0; i < nodes; i++) {
        const uint32_t left = nodes - i;
        const bool must = left == stages - at - 1;
        at += i > 0 && at + 1 < stages && (must || left <= stages - at - 1 || throw(3) == 0);
        stage_of[i] = at;
    }
    run_stages(&trial, stage_of, stage_of[nodes - 1] + 1);
    close_trial(&trial);
    known_fini(&known);
}

START_TEST(random_graphs_are_the_same_in_stages)
{
    struct onnx_engine engine;
    own_engine_make(&engine);
    for (uint32_t i = 0; i < GRAPHS; i++) {
        try_graph(&engine, true, i);
    }
}
END_TEST

START_TEST(onnx_runtime_runs_the_stages_of_random_graphs)
{
    const char *given = getenv("BOURSE_ONNXRUNTIME");
    const char *library =
        given != NULL ? given : BOURSE_SOURCE_DIR "/build/onnxruntime/libonnxruntime.so.1";
    struct onnx_engine engine;
    struct problem problem = {""};
    if (access(library, R_OK) != 0) {
        (void)printf(
            "left out: prop_onnx_cut/onnxruntime: no library of ONNX Runtime; scripts/setup "
            "fetches it\n");
        return;
    }
    ck_assert_msg(ort_engine_open(library, NULL, &engine, &problem), "%s", problem.text);
    for (uint32_t i = 0; i < GRAPHS / 4; i++) {
        try_graph(&engine, false, i);
    }
    ort_engine_close(&engine);
}
END_TEST

SUITE("onnx_cut", NULL, NULL, TEST(cases_of_onnx_with_several_nodes_are_the_same_in_stages),
      TEST(random_graphs_are_the_same_in_stages),
      TEST(onnx_runtime_runs_the_stages_of_random_graphs))
