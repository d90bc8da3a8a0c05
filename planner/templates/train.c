#include "planner/templates/train.h"

#include "planner/templates/transformer.h"

enum {
    BATCH = TRANSFORMER_PARAMETERS,
    SEQUENCE,
    REPLICAS,
    STAGES,
    TOKENISED,
    RECOMPUTE,
    OPTIMISER,
    CHECKPOINT,
    OVERLAP,
};

enum { ADAM, MOMENTUM, SGD };
static const char *const optimisers[] = {"adam", "momentum", "sgd"};

static const struct template_parameter parameters[] = {
    TRANSFORMER_TABLE,
    [BATCH] = MAKING_BATCH("batch", "sequences of one replica", 1, TRANSFORMER_FIGURE_MOST),
    [SEQUENCE] = TRANSFORMER_FIGURE("sequence", "tokens of each sequence", 4096),
    [REPLICAS] = {"replicas", "that train together, each with a batch of its own", 1, 1,
                  TRANSFORMER_FIGURE_MOST, NULL, false, true, 0},
    [STAGES] = MAKING_NUMBER("stages", "parts that the layers are cut into; at most the layers", 1,
                             1, TRANSFORMER_STAGES),
    [TOKENISED] =
        MAKING_CHOICE("tokenised", "what is loaded are tokens, not text", 0, making_answers),
    [RECOMPUTE] = MAKING_CHOICE("recompute",
                                "layers go forward again on the way back, instead of "
                                "keeping what is in them",
                                0, making_answers),
    [OPTIMISER] = MAKING_CHOICE(
        "optimiser", "adam keeps two figures of each parameter, momentum one", ADAM, optimisers),
    [CHECKPOINT] = MAKING_NUMBER("checkpoint", "iterations from one to the next; 0: none", 1000, 0,
                                 TRANSFORMER_FIGURE_MOST),
    [OVERLAP] =
        MAKING_CHOICE("overlap", "gradients of a part are summed while the parts before it go back",
                      0, making_answers),
    MAKING_END,
};

/* A group holds weights that are computed, reduced, optimised and stored together. Its sets are
 * gradients, weights and the optimiser's state. */
struct group {
    int64_t number; /* number of a stage, from 1; 0: the group has a name */
    const char *name;
    uint128 parameters;
    uint32_t first_set;
    struct step *reads[2]; /* steps that begin with the weights of the iteration before */
    size_t reader_count;
    const struct step *gives[3]; /* steps that send gradients or weights to the optimiser */
    uint128 given[3];
    size_t giver_count;
};

enum { GROUPS_MOST = TRANSFORMER_STAGES + 2 };

struct train {
    struct making *making;
    const int64_t *values;
    struct transformer model;
    struct transformer_span span;
    int64_t rows; /* tokens of an iteration */
    int64_t stages;
    int64_t states; /* float32 figures that the optimiser keeps for each parameter */
    bool has_master;
    /* The all-reduce of a part follows its own backward pass, not all of them. */
    bool sums_behind;
    struct step *forward[TRANSFORMER_STAGES];
    struct group groups[GROUPS_MOST]; /* stages, embed, and head unless tied */
    size_t group_count;
};

static struct group *embed_group(struct train *train)
{
    return &train->groups[train->stages];
}

/* Returns the last group, which is embed if tied. */
static struct group *head_group(struct train *train)
{
    return &train->groups[train->group_count - 1];
}

static uint128 weights_of(const struct train *train, const struct group *group)
{
    return making_bytes(group->parameters, train->model.dtype);
}

/* Returns the bytes that the optimiser keeps beside the weights. */
static uint128 held_of(const struct train *train, const struct group *group)
{
    int64_t kept = train->states + (train->has_master ? 1 : 0);
    return making_times(making_bytes(group->parameters, DTYPE_FP32), kept);
}

static void add_group(struct train *train, const char *name, int64_t number, uint128 size)
{
    struct group *group = &train->groups[train->group_count++];
    *group = (struct group){.name = name, .number = number, .parameters = size};
    group->first_set = making_set(train->making, weights_of(train, group)); /* gradients */
    (void)making_set(train->making, weights_of(train, group));
    (void)making_set(train->making, held_of(train, group));
}

static void add_groups(struct train *train)
{
    const struct transformer *model = &train->model;
    uint128 table = transformer_table_parameters(model);
    uint128 head = transformer_head_parameters(model);
    for (int64_t i = 0; i < train->stages; i++) {
        int64_t layers = transformer_layers_of(model, train->stages, i);
        add_group(train, "", i + 1, making_times(transformer_layer_parameters(model), layers));
    }
    add_group(train, "embed", 0, model->is_tied ? table + head : table);
    if (!model->is_tied) {
        add_group(train, "head", 0, head);
    }
}

static void need(const struct train *train, struct step *step, const struct group *group,
                 uint32_t skipped, uint32_t count)
{
    making_need(train->making, step, group->first_set + skipped, count);
}

static void gives(struct group *group, const struct step *step, uint128 bytes)
{
    group->gives[group->giver_count] = step;
    group->given[group->giver_count++] = bytes;
}

static void reads(struct group *group, struct step *step)
{
    group->reads[group->reader_count++] = step;
}

/* Returns the column of a group in the chain: that of its stage, the first, or the last. */
static int64_t column_of(const struct train *train, const struct group *group)
{
    bool is_embed = group == &train->groups[train->stages];
    return group->number > 0 ? group->number : is_embed ? 0 : train->stages + 1;
}

/* Adds a step for a group, such as "optimiser 3" or "optimiser embed". */
static struct step *group_step(const struct train *train, const char *what,
                               const struct group *group)
{
    struct step *step = group->number > 0 ? making_numbered_step(train->making, what, group->number)
                                          : making_named_step(train->making, what, group->name);
    making_place(train->making, step, column_of(train, group), STEP_ONCE);
    return step;
}

/* ---------------------------------------------------------------- data */

static struct step *add_data(struct train *train)
{
    struct making *making = train->making;
    bool is_text = train->values[TOKENISED] == 0;
    int64_t bytes = is_text ? TOKEN_TEXT_BYTES : TOKEN_BYTES; /* bytes of a token */
    uint128 all = making_times((uint128)train->rows, bytes);
    struct operation load = operation_of(OPERATION_LOAD, DTYPE_INT8);
    load.shape.load = (struct load_shape){.items = train->values[BATCH],
                                          .bytes = train->values[SEQUENCE] * bytes};
    struct operation shuffle = making_each(OPERATION_COPY, DTYPE_INT8, train->rows, bytes);
    struct operation row = transformer_embedding(&train->model, train->rows);
    struct step *step = making_step(making, "load");
    making_part(making, step, &load, 1, 0, 0);
    struct step *preprocess = making_step(making, "preprocess");
    making_part(making, preprocess, &shuffle, 1, 0, 0);
    making_edge(making, step, preprocess, all);
    struct step *last = preprocess;
    if (is_text) {
        struct operation text = transformer_tokenising(train->rows);
        last = making_step(making, "tokenise");
        making_part(making, last, &text, 1, 0, 0);
        making_edge(making, preprocess, last, all);
    }
    struct step *embed = making_step(making, "embed");
    making_part(making, embed, &row, 1, 1, 0);
    transformer_tell_states(making, embed, &train->model, train->rows, 1);
    need(train, embed, embed_group(train), 1, 1);
    reads(embed_group(train), embed);
    making_edge(making, last, embed, making_times((uint128)train->rows, TOKEN_BYTES));
    gives(embed_group(train), embed, weights_of(train, embed_group(train)));
    for (struct step *it = step; it <= embed; it++) {
        making_place(making, it, 0, STEP_FORWARD);
    }
    return embed;
}

/* ---------------------------------------------------------------- forward and backward */

static uint128 state_of(const struct train *train)
{
    return transformer_state(&train->model, train->rows);
}

/* Returns the bytes that a stage keeps for the backward pass: everything in its layers, or the
 * input of each layer. */
static uint128 held_for_backward(const struct train *train, int64_t layers)
{
    bool is_recomputed = train->values[RECOMPUTE] == MAKING_YES;
    return making_times(is_recomputed ? state_of(train)
                                      : transformer_activations(&train->model, &train->span),
                        layers);
}

static const struct step *add_forward(struct train *train, const struct step *before)
{
    struct making *making = train->making;
    for (int64_t i = 0; i < train->stages; i++) {
        int64_t layers = transformer_layers_of(&train->model, train->stages, i);
        struct step *step = making_numbered_step(making, "forward", i + 1);
        transformer_forward(making, step, &train->model, &train->span, layers, layers);
        need(train, step, &train->groups[i], 1, 1);
        reads(&train->groups[i], step);
        step->held_bytes = making_narrow(making, held_for_backward(train, layers), "what is kept");
        making_edge(making, before, step, state_of(train));
        making_place(making, step, i + 1, STEP_FORWARD);
        train->forward[i] = step;
        before = step;
    }
    return before;
}

/* A divided model exchanges three float32 figures for each row: the maximum, the sum, and the
 * figure of the right token. It also exchanges the gradient of the input. */
static void tell_loss(const struct train *train, struct step *step)
{
    struct operation figures = operation_of(OPERATION_ALL_REDUCE, DTYPE_FP32);
    figures.shape.all_reduce =
        (struct all_reduce_shape){.elements = train->rows, .devices = train->model.ways};
    making_told(train->making, step, &figures, train->model.ways > 1 ? 3 : 0);
    transformer_tell_states(train->making, step, &train->model, train->rows, 1);
}

/* The loss contains the forward and the backward pass of norm, product and loss. */
static const struct step *add_loss(struct train *train, const struct step *before)
{
    struct making *making = train->making;
    const struct transformer *model = &train->model;
    struct group *group = head_group(train);
    struct operation norm = making_rows(OPERATION_RMSNORM, model->dtype, train->rows, model->width);
    int64_t classes = transformer_vocabulary(model);
    struct operation last = making_product(model->dtype, train->rows, classes, model->width);
    struct operation loss = operation_of(OPERATION_CROSS_ENTROPY, model->dtype);
    loss.shape.loss = (struct loss_shape){.rows = train->rows, .classes = classes, .gradient = 1};
    struct step *step = making_step(making, "loss");
    making_part(making, step, &norm, 3, 1, 0);
    making_part(making, step, &last, 1, 1, 0);
    making_part(making, step, &loss, 1, 0, 0);
    transformer_product_backward(making, step, &last, 1);
    tell_loss(train, step);
    need(train, step, group, 0, 2);
    reads(group, step);
    making_edge(making, before, step, state_of(train));
    making_place(making, step, train->stages + 1, STEP_FORWARD);
    /* The group of a tied table gets its weights from embed. */
    gives(group, step, making_times(weights_of(train, group), model->is_tied ? 1 : 2));
    return step;
}

/* Sums the group's gradients over all replicas, and passes them on with the weights. */
static void add_all_reduce(const struct train *train, struct group *group)
{
    struct making *making = train->making;
    struct operation sum = operation_of(OPERATION_ALL_REDUCE, train->model.dtype);
    sum.shape.all_reduce = (struct all_reduce_shape){
        .elements = making_narrow(making, group->parameters, "a gradient"),
        .devices = train->values[REPLICAS]};
    struct step *step = group_step(train, "all-reduce", group);
    making_part(making, step, &sum, 1, 0, weights_of(train, group));
    need(train, step, group, 0, 1);
    uint128 given = 0;
    for (size_t i = 0; i < group->giver_count; i++) {
        given += group->given[i];
        making_set_edge(making, group->gives[i], step, 0, group->given[i]);
    }
    group->giver_count = 0;
    gives(group, step, given);
}

static void add_backward(struct train *train, const struct step *before, const struct step *embed)
{
    struct making *making = train->making;
    const struct transformer *model = &train->model;
    if (train->sums_behind && !model->is_tied) {
        add_all_reduce(train, head_group(train));
    }
    for (int64_t i = train->stages - 1; i >= 0; i--) {
        struct group *group = &train->groups[i];
        int64_t layers = transformer_layers_of(model, train->stages, i);
        struct step *step = making_numbered_step(making, "backward", i + 1);
        uint128 weights = weights_of(train, group);
        uint128 working = 0;
        if (train->values[RECOMPUTE] == MAKING_YES) {
            transformer_forward(making, step, model, &train->span, layers, layers);
            working = transformer_activations(model, &train->span);
        }
        transformer_backward(making, step, model, &train->span, layers);
        step->working_bytes =
            making_narrow(making, (uint128)step->working_bytes + working, "working memory");
        need(train, step, group, 0, 2);
        making_set_edge(making, train->forward[i], step, held_for_backward(train, layers), weights);
        making_edge(making, before, step, state_of(train));
        making_place(making, step, i + 1, STEP_BACKWARD);
        gives(group, step, making_times(weights, 2));
        if (train->sums_behind) {
            add_all_reduce(train, group);
        }
        before = step;
    }
    struct operation scatter = making_each(OPERATION_ADD, model->dtype, train->rows, model->width);
    struct step *step = making_step(making, "backward embed");
    making_part(making, step, &scatter, 1, 0, 0);
    need(train, step, embed_group(train), 0, 1);
    making_edge(making, embed, step, making_times((uint128)train->rows, TOKEN_BYTES));
    making_edge(making, before, step, state_of(train));
    making_place(making, step, 0, STEP_BACKWARD);
    gives(embed_group(train), step, weights_of(train, embed_group(train)));
    if (train->sums_behind) {
        add_all_reduce(train, embed_group(train));
    }
}

/* ---------------------------------------------------------------- optimiser and checkpoint */

/* Each iteration stores a part of the weights, so that all are stored from one checkpoint to the
 * next. */
static struct step *add_snapshot(const struct train *train, const struct group *group)
{
    struct making *making = train->making;
    uint128 every = (uint128)train->values[CHECKPOINT];
    uint128 part = group->parameters / every + (group->parameters % every != 0);
    int64_t elements = making_narrow(making, part, "a checkpoint");
    int64_t figures = train->states + (train->has_master ? 1 : 0);
    uint128 bytes = making_bytes(part, train->model.dtype) +
                    making_times(making_bytes(part, DTYPE_FP32), figures);
    struct operation weights = making_each(OPERATION_COPY, train->model.dtype, elements, 1);
    struct operation others = making_each(OPERATION_COPY, DTYPE_FP32, elements, 1);
    struct operation store = operation_of(OPERATION_CHECKPOINT, train->model.dtype);
    store.shape.optimiser.parameters = elements;
    store.shape.optimiser.states = train->states;
    store.shape.optimiser.master = train->has_master ? 1 : 0;
    struct step *snapshot = group_step(train, "snapshot", group);
    making_part(making, snapshot, &weights, 1, 0, making_bytes(part, train->model.dtype));
    making_part(making, snapshot, &others, figures, 0, making_bytes(part, DTYPE_FP32));
    need(train, snapshot, group, 1, 2);
    struct step *checkpoint = group_step(train, "checkpoint", group);
    making_part(making, checkpoint, &store, 1, 0, 0);
    making_edge(making, snapshot, checkpoint, bytes);
    return snapshot;
}

static void add_optimiser(const struct train *train, struct group *group)
{
    struct making *making = train->making;
    bool is_adam = train->values[OPTIMISER] == ADAM;
    const struct step *snapshot = train->values[CHECKPOINT] > 0 ? add_snapshot(train, group) : NULL;
    struct operation update =
        operation_of(is_adam ? OPERATION_ADAM : OPERATION_SGD, train->model.dtype);
    update.shape.optimiser.parameters = making_narrow(making, group->parameters, "parameters");
    update.shape.optimiser.momentum = !is_adam && train->states > 0 ? 1 : 0;
    update.shape.optimiser.master = is_adam && train->has_master ? 1 : 0;
    struct step *step = group_step(train, "optimiser", group);
    making_part(making, step, &update, 1, 0,
                making_times(weights_of(train, group), 2) + held_of(train, group));
    need(train, step, group, 0, 3);
    for (size_t i = 0; i < group->giver_count; i++) {
        making_set_edge(making, group->gives[i], step, 0, group->given[i]);
    }
    if (snapshot != NULL) {
        making_set_edge(making, snapshot, step, 0, held_of(train, group));
    }
    for (size_t i = 0; i < group->reader_count; i++) {
        making_renew(making, group->reads[i], step, weights_of(train, group));
    }
}

static void make(struct train *train)
{
    add_groups(train);
    const struct step *embed = add_data(train);
    const struct step *last = add_forward(train, embed);
    const struct step *loss = add_loss(train, last);
    add_backward(train, loss, embed);
    for (size_t i = 0; i < train->group_count; i++) {
        if (train->values[REPLICAS] > 1 && !train->sums_behind) {
            add_all_reduce(train, &train->groups[i]);
        }
        add_optimiser(train, &train->groups[i]);
    }
    making_count(train->making, transformer_parameters(&train->model));
}

static enum steps_status create_in(const int64_t *values, int64_t stages, bool sums_behind,
                                   int64_t ways, struct steps **ret_steps,
                                   struct problem *ret_problem)
{
    static const int64_t states[] = {[ADAM] = 2, [MOMENTUM] = 1, [SGD] = 0};
    struct making making;
    struct train train = {.making = &making,
                          .values = values,
                          .model = transformer_of(values),
                          .span = {.batch = values[BATCH],
                                   .positions = values[SEQUENCE],
                                   .context = values[SEQUENCE],
                                   .is_causal = true},
                          .rows = values[BATCH] * values[SEQUENCE],
                          .stages = stages,
                          .sums_behind = sums_behind && values[REPLICAS] > 1,
                          .states = states[values[OPTIMISER]]};
    train.model.ways = ways;
    train.has_master = values[OPTIMISER] == ADAM && dtype_bits(train.model.dtype) < 32;
    if (making_begin(&making, ret_problem)) {
        making_check(&making, "stages", train.stages, 1, train.model.layers);
        transformer_check(&making, &train.model);
        if (making.status == STEPS_OK) {
            making.steps->sums_behind = train.sums_behind;
            make(&train);
        }
    }
    return making_end(&making, ret_steps);
}

/* A chain has the most stages possible. Its sums run once, after all micro-batches. */
static enum steps_status create_divided(const int64_t *values, int64_t ways, bool is_chain,
                                        struct steps **ret_steps, struct problem *ret_problem)
{
    int64_t layers = values[TRANSFORMER_LAYERS];
    int64_t most = layers < TRANSFORMER_STAGES ? layers : TRANSFORMER_STAGES;
    bool sums_behind = !is_chain && values[OVERLAP] == MAKING_YES;
    enum steps_status status = create_in(values, is_chain ? most : values[STAGES], sums_behind,
                                         ways, ret_steps, ret_problem);
    if (status == STEPS_OK && !is_chain) {
        (*ret_steps)->column_count = 0;
    }
    return status;
}

static enum steps_status create(const int64_t *values, struct steps **ret_steps,
                                struct problem *ret_problem)
{
    return create_divided(values, 1, false, ret_steps, ret_problem);
}

static enum steps_status create_chain(const int64_t *values, struct steps **ret_steps,
                                      struct problem *ret_problem)
{
    return create_divided(values, 1, true, ret_steps, ret_problem);
}

const struct template train_template = {
    .name = "train",
    .meaning = "an iteration of training a language model",
    .parameters = parameters,
    .presets = transformer_presets,
    .make = create,
    .make_chain = create_chain,
    .make_divided = create_divided,
};
