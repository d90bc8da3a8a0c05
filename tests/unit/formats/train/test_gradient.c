/* Gradients of losses, as models that our own operators run, are compared with differences of the
 * loss itself, one weight after another. Models that change weights are compared with the same
 * steps by hand. */
#include "formats/onnx/onnx_infer.h"
#include "formats/train/gradient.h"
#include "formats/train/update.h"
#include "tests/support/own_case.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 6, WEIGHTS = 3, OPSET = 17, ELEMENTS_MOST = 256 };

struct step {
    const char *operator, * attributes, *inputs, *outputs;
};

/* A model of x and weights, whose last node makes y. A weight is "name=f2,3: ...". */
struct graph {
    const char *what, *x, *weights[WEIGHTS];
    struct step nodes[NODES];
};

/* ---------------------------------------------------------------- a model and its gradient */

struct play {
    struct own_case model;
    struct onnx_model *read;
    struct onnx_shapes *shapes;
    struct gradient gradient;
    struct gradient_labels wanted;
    struct onnx_engine engine;
    void *session;
    struct problem problem;
};

static void build(struct play *play, const struct graph *graph, const char *x)
{
    play->model = (struct own_case){.writer.opset = OPSET};
    own_case_input(&play->model, "x", x);
    for (size_t i = 0; i < WEIGHTS && graph->weights[i] != NULL; i++) {
        const char *equals = strchr(graph->weights[i], '=');
        char name[16];
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - graph->weights[i]),
                       graph->weights[i]);
        own_case_weights(&play->model, name, equals + 1);
    }
    for (size_t i = 0; i < NODES && graph->nodes[i].operator!= NULL; i++) {
        const struct step *node = &graph->nodes[i];
        own_case_node(&play->model, node->operator, node->attributes, node->inputs, node->outputs);
    }
    own_case_output(&play->model, "y", ONNX_FLOAT);
    play->model.model = onnx_write_end(&play->model.writer);
}

static enum onnx_status derive(struct play *play, enum train_loss loss)
{
    const struct onnx_array *x = &play->model.inputs[0];
    struct onnx_given given = {.input = 0,
                               .tensor = {.type = x->type, .rank = x->rank, .is_external = true}};
    memcpy(given.tensor.dims, x->dims, sizeof given.tensor.dims);
    ck_assert_msg(onnx_read(play->model.model.at, play->model.model.size, &play->read,
                            &play->problem) == ONNX_OK,
                  "%s", play->problem.text);
    const struct onnx_infer_input input = {.model = play->read, .given = &given, .given_count = 1};
    ck_assert_msg(onnx_infer(&input, &play->shapes, &play->problem) == ONNX_OK, "%s",
                  play->problem.text);
    const struct gradient_input from = {.bytes = {play->model.model.at, play->model.model.size},
                                        .model = play->read,
                                        .shapes = play->shapes,
                                        .loss = loss};
    const enum onnx_status status = gradient_make(&from, &play->gradient, &play->problem);
    if (status == ONNX_OK) {
        ck_assert_int_eq(gradient_labels_of(&from, &play->wanted, &play->problem), ONNX_OK);
        own_engine_make(&play->engine);
        const struct onnx_engine_model model = {
            .bytes = play->gradient.bytes, .size = play->gradient.size, .threads = 1};
        ck_assert_msg(play->engine.open(NULL, &model, &play->session, &play->problem) ==
                          ONNX_ENGINE_OK,
                      "%s", play->problem.text);
    }
    return status;
}

static void play_end(struct play *play)
{
    if (play->session != NULL) {
        play->engine.close(&play->session);
    }
    gradient_fini(&play->gradient);
    onnx_shapes_destroy(&play->shapes);
    onnx_destroy(&play->read);
    own_case_fini(&play->model);
}

/* Puts the model's own weights one after the other. */
static void read_weights(const struct play *play, float *ret_weights)
{
    for (size_t i = 0; i < play->gradient.weight_count; i++) {
        const struct gradient_weight *weight = &play->gradient.weights[i];
        ck_assert(onnx_tensor_reals(&play->read->initializers[weight->initializer], ELEMENTS_MOST,
                                    ret_weights + weight->first));
    }
}

/* Runs a model whose inputs are named. `found` has the first output, and the others are dropped. */
static void run_named(const struct onnx_engine *engine, void *session, const char *const *names,
                      const struct onnx_array *values, struct onnx_array *ret_found,
                      struct problem *problem)
{
    const struct onnx_engine_ports ports = engine->inputs(session);
    struct onnx_array inputs[16];
    for (size_t i = 0; i < ports.count; i++) {
        size_t k = 0;
        while (strcmp(names[k], ports.items[i].name) != 0) {
            k++;
        }
        inputs[i] = values[k];
        ck_assert_msg(onnx_engine_fit(&ports.items[i], &inputs[i], problem), "%s", problem->text);
    }
    ck_assert_msg(engine->run(session, inputs, ret_found, problem) == ONNX_ENGINE_OK, "%s",
                  problem->text);
}

/* Computes the gradient, the loss and its count at these weights. */
static void run_gradient(struct play *play, float *weights, const struct onnx_array *x,
                         const struct onnx_array *labels, float *ret_values)
{
    static const char *const names[] = {GRADIENT_WEIGHTS, "x", GRADIENT_LABELS};
    struct onnx_array found[2] = {{.type = ONNX_UNDEFINED}};
    struct onnx_array values[3] = {{.type = ONNX_UNDEFINED}, *x, *labels};
    const int64_t dims[] = {play->gradient.elements};
    ck_assert(onnx_array_describe(ONNX_FLOAT, 1, dims, &values[0], &play->problem));
    values[0].bytes = weights;
    run_named(&play->engine, play->session, names, values, found, &play->problem);
    ck_assert_int_eq(found[0].elements, play->gradient.elements + 2);
    memcpy(ret_values, found[0].bytes, found[0].size);
    onnx_array_release(&found[0]);
}

/* Makes labels of the dims that the loss asks for: classes in turn, or numbers. */
static struct onnx_array make_labels(struct play *play)
{
    struct onnx_array labels;
    ck_assert(onnx_array_make(play->wanted.type, play->wanted.rank, play->wanted.dims, &labels,
                              &play->problem));
    for (int64_t i = 0; i < labels.elements; i++) {
        if (labels.type == ONNX_INT64) {
            ((int64_t *)labels.bytes)[i] = (i * 2) % play->wanted.classes;
        } else {
            ((float *)labels.bytes)[i] = 0.25F * (float)(i % 5) - 0.5F;
        }
    }
    return labels;
}

/* ---------------------------------------------------------------- every operator */

#define ROWS "f4,3: 0.4 -0.7 1.1 -0.3 0.9 0.2 1.3 -1.2 0.6 0.8 0.5 -0.4"
#define IMAGES                                                                                     \
    "f2,2,4,5: .1 .2 -.3 .4 .5 -.6 .7 .8 -.9 1 .3 .1 -.2 .6 .4 -.1 .9 .2 .7 -.5 .1 .2 .3 -.4 .5 "  \
    "-.6 .7 .8 .9 -1 .2 .4 .1 .8 -.7 .3 .6 -.2 .5 .1 -.1 .2 .3 .4 -.5 .6 .7 -.8 .9 1 .3 .1 .2 "    \
    ".6 -.4 .1 .9 -.2 .7 .5 .1 -.2 .3 .4 .5 .6 -.7 .8 .9 1 .2 -.4 .1 .8 .7 .3 -.6 .2 .5 .1"

#define W3 "w=f3: 0.6 -1.2 0.8"
#define SCALED                                                                                     \
    {                                                                                              \
        "Mul", "", "x w", "u"                                                                      \
    }
#define UNARY(name)                                                                                \
    {                                                                                              \
        name, ROWS, {W3},                                                                          \
        {                                                                                          \
            SCALED,                                                                                \
            {                                                                                      \
                name, "", "u", "y"                                                                 \
            }                                                                                      \
        }                                                                                          \
    }
/* The operator gets exp(u), which is above 0. */
#define ABOVE(name)                                                                                \
    {                                                                                              \
        name, ROWS, {W3},                                                                          \
        {                                                                                          \
            SCALED, {"Exp", "", "u", "p"},                                                         \
            {                                                                                      \
                name, "", "p", "y"                                                                 \
            }                                                                                      \
        }                                                                                          \
    }
#define BINARY(name, second)                                                                       \
    {                                                                                              \
        name, ROWS, {W3, second},                                                                  \
        {                                                                                          \
            SCALED,                                                                                \
            {                                                                                      \
                name, "", "u v", "y"                                                               \
            }                                                                                      \
        }                                                                                          \
    }

static const struct graph graphs[] = {
    UNARY("Abs"),
    UNARY("Erf"),
    UNARY("Exp"),
    UNARY("Identity"),
    UNARY("Neg"),
    UNARY("Relu"),
    UNARY("Sigmoid"),
    UNARY("Softplus"),
    UNARY("Tanh"),
    ABOVE("Log"),
    ABOVE("Sqrt"),
    ABOVE("Reciprocal"),
    BINARY("Add", "v=f3: 0.1 0.2 0.3"),
    BINARY("Add", "v=f1: 0.4"),
    BINARY("Sub", "v=f4,1: 0.1 0.2 0.3 0.4"),
    BINARY("Mul", "v=f1,3: 0.5 -0.2 0.3"),
    BINARY("Div", "v=f3: 1.5 -2 0.8"),
    BINARY("Div", "v=f1,1: 1.5"),
    BINARY("MatMul", "v=f3,2: 0.1 0.2 0.3 -0.4 0.5 -0.6"),
    {"LeakyRelu", ROWS, {W3}, {SCALED, {"LeakyRelu", "alpha=~0.2", "u", "y"}}},
    {"Sum", ROWS, {W3, "v=f1: 0.3"}, {SCALED, {"Sum", "", "u v u", "y"}}},
    {"Pow",
     ROWS,
     {W3},
     {SCALED,
      {"Exp", "", "u", "p"},
      {"Constant", "value_float=~1.7", "", "e"},
      {"Pow", "", "p e", "y"}}},
    {"Gemm",
     ROWS,
     {W3, "v=f3,2: 0.1 0.2 0.3 -0.4 0.5 -0.6", "c=f2: 0.5 -0.5"},
     {SCALED, {"Gemm", "alpha=~0.7 beta=~1.3", "u v c", "y"}}},
    {"Gemm transB",
     ROWS,
     {W3, "v=f2,3: 0.1 0.2 0.3 -0.4 0.5 -0.6"},
     {SCALED, {"Gemm", "transB=1", "u v", "y"}}},
    {"Gemm transA",
     ROWS,
     {W3, "v=f3,2: 0.1 0.2 0.3 -0.4 0.5 -0.6"},
     {SCALED, {"Transpose", "", "u", "t"}, {"Gemm", "transA=1", "t v", "y"}}},
    {"Gemm both",
     ROWS,
     {W3, "v=f2,3: 0.1 0.2 0.3 -0.4 0.5 -0.6"},
     {SCALED, {"Transpose", "", "u", "t"}, {"Gemm", "transA=1 transB=1", "t v", "y"}}},
    {"MatMul of a stack",
     "f2,2,3: 0.4 -0.7 1.1 -0.3 0.9 0.2 1.3 -1.2 0.6 0.8 0.5 -0.4",
     {W3, "v=f3,2: 0.1 0.2 0.3 -0.4 0.5 -0.6"},
     {SCALED, {"MatMul", "", "u v", "y"}}},
    {"MatMul of stacks",
     "f2,2,3: 0.4 -0.7 1.1 -0.3 0.9 0.2 1.3 -1.2 0.6 0.8 0.5 -0.4",
     {W3},
     {SCALED, {"Transpose", "perm=[0,2,1]", "u", "t"}, {"MatMul", "", "u t", "y"}}},
    {"MatMul of a stack of one",
     "f2,2,3: 0.4 -0.7 1.1 -0.3 0.9 0.2 1.3 -1.2 0.6 0.8 0.5 -0.4",
     {W3, "v=f1,3,1: 0.1 0.2 0.3"},
     {SCALED, {"MatMul", "", "u v", "y"}}},
    {"Reshape", ROWS, {W3, "d=i2: 2 6"}, {SCALED, {"Reshape", "", "u d", "y"}}},
    {"Flatten",
     "f2,2,3: 0.4 -0.7 1.1 -0.3 0.9 0.2 1.3 -1.2 0.6 0.8 0.5 -0.4",
     {W3},
     {SCALED, {"Flatten", "", "u", "y"}}},
    {"Unsqueeze and Squeeze",
     ROWS,
     {W3, "d=i1: 1"},
     {SCALED, {"Unsqueeze", "", "u d", "t"}, {"Tanh", "", "t", "s"}, {"Squeeze", "", "s d", "y"}}},
    {"Transpose",
     "f2,2,3: 0.4 -0.7 1.1 -0.3 0.9 0.2 1.3 -1.2 0.6 0.8 0.5 -0.4",
     {W3},
     {SCALED, {"Tanh", "", "u", "t"}, {"Transpose", "perm=[1,2,0]", "t", "y"}}},
    {"ReduceSum",
     ROWS,
     {W3, "d=i1: -1"},
     {SCALED, {"Mul", "", "u u", "t"}, {"ReduceSum", "keepdims=0", "t d", "y"}}},
    {"ReduceMean",
     ROWS,
     {W3},
     {SCALED, {"Mul", "", "u u", "t"}, {"ReduceMean", "axes=[1]", "t", "y"}}},
    {"Softmax", ROWS, {W3}, {SCALED, {"Softmax", "", "u", "y"}}},
    {"Softmax along 0", ROWS, {W3}, {SCALED, {"Softmax", "axis=0", "u", "y"}}},
    {"LogSoftmax", ROWS, {W3}, {SCALED, {"LogSoftmax", "", "u", "y"}}},
    {"LayerNormalization",
     ROWS,
     {W3, "s=f3: 0.5 1.5 -0.7", "b=f3: 0.1 0.2 0.3"},
     {SCALED, {"LayerNormalization", "epsilon=~0.01", "u s b", "y"}}},
    {"Gather",
     "i4,2: 0 2 1 1 3 0 2 2",
     {"v=f4,2: 0.1 0.2 0.3 0.4 -0.5 0.6 0.7 -0.8"},
     {{"Gather", "", "v x", "t"}, {"Tanh", "", "t", "y"}}},
    {"GlobalAveragePool",
     IMAGES,
     {"w=f2,1,1: 0.6 -1.2"},
     {SCALED, {"Tanh", "", "u", "t"}, {"GlobalAveragePool", "", "t", "y"}}},
    {"Conv",
     IMAGES,
     {"w=f2,1,1: 0.6 -1.2",
      "k=f3,2,2,3: .1 .2 -.3 .4 .5 -.6 .7 .8 -.9 1 .3 .1 -.2 .6 .4 -.1 .9 .2 .7 "
      "-.5 .1 .2 .3 -.4 .5 -.6 .7 .8 .9 -1 .2 .4 .1 .8 -.7 .3",
      "b=f3: 0.1 0.2 0.3"},
     {SCALED, {"Conv", "pads=[1,0,0,1] strides=[2,2]", "u k b", "y"}}},
    {"Conv dilated",
     IMAGES,
     {"w=f2,1,1: 0.6 -1.2", "k=f1,2,2,2: .1 .2 -.3 .4 .5 -.6 .7 .8"},
     {SCALED, {"Conv", "dilations=[2,3]", "u k", "y"}}},
};
enum { GRAPHS = sizeof graphs / sizeof graphs[0] };

/* The differences are those of float32 sums, so that a thousandth is all that they tell. */
static void compare(struct play *play, const char *what)
{
    float weights[ELEMENTS_MOST];
    float found[ELEMENTS_MOST + 2];
    float beside[ELEMENTS_MOST + 2];
    struct onnx_array labels = make_labels(play);
    ck_assert_int_le(play->gradient.elements, ELEMENTS_MOST);
    read_weights(play, weights);
    run_gradient(play, weights, &play->model.inputs[0], &labels, found);
    const int64_t count = play->gradient.elements;
    for (int64_t i = 0; i < count; i++) {
        const float step = 0.004F;
        const float usual = weights[i];
        double loss[2];
        for (int side = 0; side < 2; side++) {
            weights[i] = usual + (side == 0 ? -step : step);
            run_gradient(play, weights, &play->model.inputs[0], &labels, beside);
            loss[side] = (double)beside[count];
        }
        weights[i] = usual;
        const double stated = (loss[1] - loss[0]) / (2 * (double)step);
        ck_assert_msg(fabs(stated - (double)found[i]) <= 2e-3 * (1 + fabs(stated)),
                      "%s: the gradient of weight %lld is %g, not %g", what, (long long)i,
                      (double)found[i], stated);
    }
    onnx_array_release(&labels);
}

START_TEST(gradients_are_the_slopes_of_the_loss)
{
    for (size_t i = 0; i < GRAPHS; i++) {
        struct play play = {.session = NULL};
        build(&play, &graphs[i], graphs[i].x);
        ck_assert_msg(derive(&play, TRAIN_MSE) == ONNX_OK, "%s: %s", graphs[i].what,
                      play.problem.text);
        compare(&play, graphs[i].what);
        play_end(&play);
    }
}
END_TEST

/* Every operator with a derivative stands in a graph above. */
START_TEST(each_derivative_is_tried)
{
    for (const char *const *name = gradient_operators(); *name != NULL; name++) {
        bool is_tried = false;
        for (size_t i = 0; i < GRAPHS; i++) {
            for (size_t k = 0; k < NODES && graphs[i].nodes[k].operator!= NULL; k++) {
                is_tried = is_tried || strcmp(graphs[i].nodes[k].operator, * name) == 0;
            }
        }
        ck_assert_msg(is_tried, "%s has no graph", *name);
    }
}
END_TEST

/* ---------------------------------------------------------------- losses and parts */

static const struct graph perceptron = {
    "perceptron",
    ROWS,
    {"w=f3,5: .1 .2 -.3 .4 .5 -.6 .7 .8 -.9 1 .3 .1 -.2 .6 .4", "b=f5: .1 .2 .3 .4 .5",
     "v=f5,3: .1 .2 -.3 .4 .5 -.6 .7 .8 -.9 1 .3 .1 -.2 .6 .4"},
    {{"Gemm", "", "x w b", "h"}, {"Relu", "", "h", "r"}, {"MatMul", "", "r v", "y"}}};
static const struct graph with_softmax = {"with softmax",
                                          ROWS,
                                          {"w=f3,3: .1 .2 -.3 .4 .5 -.6 .7 .8 -.9"},
                                          {{"MatMul", "", "x w", "z"}, {"Softmax", "", "z", "y"}}};

START_TEST(the_cross_entropy_and_its_slopes)
{
    const struct graph *each[] = {&perceptron, &with_softmax};
    struct play play = {.session = NULL};
    build(&play, each[_i], each[_i]->x);
    ck_assert_msg(derive(&play, TRAIN_CROSS_ENTROPY) == ONNX_OK, "%s", play.problem.text);
    ck_assert_int_eq(play.wanted.classes, 3);
    compare(&play, each[_i]->what);
    play_end(&play);
}
END_TEST

START_TEST(the_loss_of_equal_chances_is_the_logarithm_of_the_classes)
{
    static const struct graph graph = {
        "zeros", ROWS, {"w=f3,3: 0 0 0 0 0 0 0 0 0"}, {{"MatMul", "", "x w", "y"}}};
    struct play play = {.session = NULL};
    float weights[9];
    float found[11];
    build(&play, &graph, graph.x);
    ck_assert_int_eq(derive(&play, TRAIN_CROSS_ENTROPY), ONNX_OK);
    struct onnx_array labels = make_labels(&play);
    read_weights(&play, weights);
    run_gradient(&play, weights, &play.model.inputs[0], &labels, found);
    ck_assert_double_eq_tol((double)found[9], 4 * log(3), 1e-5);
    ck_assert_double_eq_tol((double)found[10], 4, 1e-9);
    onnx_array_release(&labels);
    play_end(&play);
}
END_TEST

/* The gradient of a batch is the sum of those of its parts, of which one has a single row. */
START_TEST(parts_add_up_to_the_batch)
{
    struct play play = {.session = NULL};
    float weights[ELEMENTS_MOST];
    float found[3][ELEMENTS_MOST];
    const int64_t rows[] = {1, 3};
    build(&play, &perceptron, perceptron.x);
    ck_assert_int_eq(derive(&play, TRAIN_CROSS_ENTROPY), ONNX_OK);
    struct onnx_array labels = make_labels(&play);
    const struct onnx_array *x = &play.model.inputs[0];
    read_weights(&play, weights);
    run_gradient(&play, weights, x, &labels, found[2]);
    for (int64_t i = 0, first = 0; i < 2; first += rows[i], i++) {
        struct onnx_array part[2];
        const int64_t dims[] = {rows[i], 3};
        ck_assert(onnx_array_describe(ONNX_FLOAT, 2, dims, &part[0], &play.problem));
        ck_assert(onnx_array_describe(ONNX_INT64, 1, dims, &part[1], &play.problem));
        part[0].bytes = (float *)x->bytes + 3 * first;
        part[1].bytes = (int64_t *)labels.bytes + first;
        run_gradient(&play, weights, &part[0], &part[1], found[i]);
    }
    for (int64_t i = 0; i < play.gradient.elements + 2; i++) {
        ck_assert_double_eq_tol((double)(found[0][i] + found[1][i]), (double)found[2][i], 1e-5);
    }
    onnx_array_release(&labels);
    play_end(&play);
}
END_TEST

/* ---------------------------------------------------------------- what is refused */

START_TEST(what_cannot_be_trained_is_refused_by_name)
{
    static const struct {
        struct graph graph;
        const char *words;
    } refused[] = {
        {{"no derivative", ROWS, {W3}, {SCALED, {"Elu", "", "u", "y"}}}, "\"y\": Elu has no deriv"},
        {{"exponent", ROWS, {"w=f3: 1 2 3"}, {{"Pow", "", "x w", "y"}}}, "by its exponent"},
        {{"no weights", ROWS, {NULL}, {{"Tanh", "", "x", "y"}}}, "has no weights of float32"},
        {{"groups", IMAGES, {"k=f2,1,1,1: 1 2"}, {{"Conv", "group=2", "x k", "y"}}}, "in groups"},
        {{"other axis", "i2,1: 0 1", {"v=f2,2: 1 2 3 4"}, {{"Gather", "axis=1", "v x", "y"}}},
         "another axis"},
        {{"a vector", ROWS, {"w=f3: 1 2 3"}, {{"MatMul", "", "x w", "y"}}}, "of a vector"},
        {{"through truth", ROWS, {W3}, {{"Greater", "", "x w", "g"}, {"Cast", "to=1", "g", "y"}}},
         "only through whole numbers"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct play play = {.session = NULL};
        build(&play, &refused[i].graph, refused[i].graph.x);
        ck_assert_msg(derive(&play, TRAIN_MSE) != ONNX_OK, "%s", refused[i].graph.what);
        ck_assert_msg(strstr(play.problem.text, refused[i].words) != NULL, "%s: \"%s\"",
                      refused[i].graph.what, play.problem.text);
        play_end(&play);
    }
}
END_TEST

/* ---------------------------------------------------------------- the update */

enum { P = 3 };

/* Runs an update twice, and leaves weights, state and losses in `values`. */
static void update(const struct train_optimizer *optimizer, uint32_t gradients, float *weights,
                   float *state, float losses[2])
{
    static const char *const names[] = {"weights", "state", "losses", "g0", "g1"};
    struct onnx_engine engine;
    void *session = NULL;
    struct problem problem = {""};
    struct onnx_engine_model model = {.threads = 1};
    uint8_t *bytes = NULL;
    float g[2][P + 2] = {{1, -2, 0.5F, 3, 2}, {0.25F, 4, -1, 5, 6}};
    const int64_t sizes[] = {P, update_state_elements(optimizer->method, P), 0, P + 2, P + 2};
    own_engine_make(&engine);
    ck_assert(update_make(optimizer, P, gradients, &bytes, &model.size));
    model.bytes = bytes;
    ck_assert_msg(engine.open(NULL, &model, &session, &problem) == ONNX_ENGINE_OK, "%s",
                  problem.text);
    for (int64_t round = 0; round < 2; round++) {
        void *const places[] = {weights, state, losses, g[0], g[1]};
        struct onnx_array values[5];
        struct onnx_array found[3];
        for (size_t i = 0; i < 5; i++) {
            const int64_t dims[] = {i == 2 ? round : sizes[i]};
            ck_assert(onnx_array_describe(ONNX_FLOAT, 1, dims, &values[i], &problem));
            values[i].bytes = places[i];
        }
        run_named(&engine, session, names, values, found, &problem);
        for (size_t i = 0; i < 3; i++) {
            const char *name = engine.outputs(session).items[i].name;
            void *to = strcmp(name, "new-weights") == 0 ? weights
                       : strcmp(name, "new-state") == 0 ? state
                                                        : losses;
            memcpy(to, found[i].bytes, found[i].size);
            onnx_array_release(&found[i]);
        }
    }
    engine.close(&session);
    free(bytes);
}

START_TEST(sgd_with_momentum_and_decay)
{
    const struct train_optimizer optimizer = {
        .method = TRAIN_SGD, .rate = 0.1, .decay = 0.02, .momentum = 0.9};
    const double g[P] = {1.25 / 8, 2.0 / 8, -0.5 / 8};
    double w[P] = {0.5, -1, 2};
    double v[P] = {0};
    float weights[P] = {0.5F, -1, 2};
    float state[P] = {0};
    float losses[2];
    update(&optimizer, 2, weights, state, losses);
    for (int i = 0; i < 2 * P; i++) {
        v[i % P] = 0.9 * v[i % P] + g[i % P] + 0.02 * w[i % P];
        w[i % P] -= 0.1 * v[i % P];
    }
    for (int i = 0; i < P; i++) {
        ck_assert_double_eq_tol((double)weights[i], w[i], 1e-6);
        ck_assert_double_eq_tol((double)state[i], v[i], 1e-6);
    }
    ck_assert_double_eq_tol((double)losses[0], 1, 1e-6);
    ck_assert_double_eq_tol((double)losses[1], 1, 1e-6);
}
END_TEST

START_TEST(adamw_with_its_corrections)
{
    const struct train_optimizer optimizer = {.method = TRAIN_ADAMW,
                                              .rate = 0.01,
                                              .decay = 0.1,
                                              .beta1 = 0.9,
                                              .beta2 = 0.99,
                                              .epsilon = 1e-8};
    const double g[P] = {0.5, -1, 0.25};
    double w[P] = {0.5, -1, 2};
    double m[P] = {0};
    double v[P] = {0};
    float weights[P] = {0.5F, -1, 2};
    float state[2 * P + 1] = {0};
    float losses[2];
    update(&optimizer, 1, weights, state, losses);
    for (int t = 1; t <= 2; t++) {
        for (int i = 0; i < P; i++) {
            m[i] = 0.9 * m[i] + 0.1 * g[i];
            v[i] = 0.99 * v[i] + 0.01 * g[i] * g[i];
            w[i] = w[i] * (1 - 0.01 * 0.1) -
                   0.01 * (m[i] / (1 - pow(0.9, t))) / (sqrt(v[i] / (1 - pow(0.99, t))) + 1e-8);
        }
    }
    for (int i = 0; i < P; i++) {
        ck_assert_double_eq_tol((double)weights[i], w[i], 1e-6);
        ck_assert_double_eq_tol((double)state[i], m[i], 1e-6);
        ck_assert_double_eq_tol((double)state[P + i], v[i], 1e-6);
    }
    ck_assert_double_eq_tol((double)state[2 * P], 2, 1e-9);
    ck_assert_double_eq_tol((double)losses[1], 1.5, 1e-6);
}
END_TEST

SUITE("gradient", NULL, NULL, TEST(gradients_are_the_slopes_of_the_loss),
      TEST(each_derivative_is_tried), LOOP(the_cross_entropy_and_its_slopes, 0, 2),
      TEST(the_loss_of_equal_chances_is_the_logarithm_of_the_classes),
      TEST(parts_add_up_to_the_batch), TEST(what_cannot_be_trained_is_refused_by_name),
      TEST(sgd_with_momentum_and_decay), TEST(adamw_with_its_corrections))
