/* A language model's answer as steps: against published counts and figures worked out by hand. */
#include "planner/templates/llm.h"

#include "base/cleanup.h"
#include "planner/cost/catalogue.h"
#include "planner/templates/template_list.h"
#include "tests/support/suite.h"
#include "tests/support/template_steps.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const struct transformer llama3_8b = {.layers = 32,
                                             .width = 4096,
                                             .heads = 32,
                                             .kv = 8,
                                             .head_size = 128,
                                             .feed_forward = 14336,
                                             .vocabulary = 128256,
                                             .is_gated = true,
                                             .dtype = DTYPE_BF16};
static const struct transformer llama2_70b = {.layers = 80,
                                              .width = 8192,
                                              .heads = 64,
                                              .kv = 8,
                                              .head_size = 128,
                                              .feed_forward = 28672,
                                              .vocabulary = 32000,
                                              .is_gated = true,
                                              .dtype = DTYPE_BF16};
/* 2 layers, width 8, 2 heads of 4 on 1 KV head, 16 wide, 32 tokens, two matrices, tied. */
static const struct transformer tiny = {.layers = 2,
                                        .width = 8,
                                        .heads = 2,
                                        .kv = 1,
                                        .head_size = 4,
                                        .feed_forward = 16,
                                        .vocabulary = 32,
                                        .is_tied = true,
                                        .dtype = DTYPE_FP32};

static struct steps *made(const struct transformer *model, const struct llm_request *request)
{
    struct steps *llm = NULL;
    struct problem problem = {""};
    ck_assert_msg(llm_create(model, request, &llm, &problem) == STEPS_OK, "%s", problem.text);
    return llm;
}

static const struct step *step_named(const struct steps *llm, const char *name)
{
    for (size_t i = 0; i < llm->step_count; i++) {
        if (strcmp(llm->steps[i].name, name) == 0) {
            return &llm->steps[i];
        }
    }
    ck_abort_msg("no step %s", name);
    return NULL;
}

static double matrix_operations(const struct step *step)
{
    double sum = 0;
    for (size_t i = 0; i < step->part_count; i++) {
        struct operation_size size;
        const struct step_part *part = &step->parts[i];
        ck_assert_int_eq(operation_measure(&part->operation, &size, NULL), OPERATION_OK);
        if (part->operation.kind == OPERATION_MATMUL) {
            sum += (double)size.flops * (double)part->times;
        }
    }
    return sum;
}

static struct operation_size size_of(const struct step *step, enum operation_kind kind,
                                     int64_t *ret_times)
{
    struct operation_size size = {.flops = 0};
    for (size_t i = 0; i < step->part_count; i++) {
        if (step->parts[i].operation.kind == kind) {
            ck_assert_int_eq(operation_measure(&step->parts[i].operation, &size, NULL),
                             OPERATION_OK);
            *ret_times = step->parts[i].times;
        }
    }
    return size;
}

START_TEST(models_have_as_many_parameters_as_is_published)
{
    const struct llm_request request = {.batch = 1, .prompt = 8, .answer = 1, .stages = 1};
    CLEANUP(steps_destroy) struct steps *small = made(&llama3_8b, &request);
    ck_assert_int_eq(small->parameters, INT64_C(8030261248));
    CLEANUP(steps_destroy) struct steps *large = made(&llama2_70b, &request);
    ck_assert_int_eq(large->parameters, INT64_C(68976648192));
    CLEANUP(steps_destroy) struct steps *least = made(&tiny, &request);
    /* A layer: 8 x 16 queries, keys, values + 8 x 8 output + 2 x 8 x 16 + two norms of 8 = 464.
     * Twice, the table 32 x 8, a norm of 8. */
    ck_assert_int_eq(least->parameters, 2 * 464 + 256 + 8);
}
END_TEST

static const struct product_shape *product_of(const struct step *step, size_t number)
{
    for (size_t i = 0; i < step->part_count; i++) {
        if (step->parts[i].operation.kind == OPERATION_MATMUL && number-- == 0) {
            return &step->parts[i].operation.shape.product;
        }
    }
    ck_abort_msg("%s has no such product", step->name);
    return NULL;
}

/* Llama 3's 8 x 10^9 over four: 8 of 32 heads and 2 of 8 with keys and values on each, 3,584 of
 * 14,336 columns up and rows down. */
START_TEST(a_divided_layer_is_a_part_of_each_matrix_and_two_sums)
{
    static const char *const settings[] = {"batch=3", "prompt=100", "answer=11", NULL};
    CLEANUP(steps_destroy) struct steps *part = template_chain("llm", settings, 4);
    const struct step *prefill = step_named(part, "prefill 1");
    const struct step *decode = step_named(part, "decode 32");
    const int64_t rows = 3 * 100;
    const struct {
        int64_t n, k;
    } shapes[] = {{(8 + 2 * 2) * 128, 4096}, {4096, 8 * 128}, {2 * 3584, 4096}, {4096, 3584}};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(product_of(prefill, i)->m, rows);
        ck_assert_int_eq(product_of(prefill, i)->n, shapes[i].n);
        ck_assert_int_eq(product_of(prefill, i)->k, shapes[i].k);
    }
    /* Two norms of 4,096 are whole. */
    ck_assert_int_eq(prefill->weight_bytes,
                     2 * (4096 * (8 + 4) * 128 + 8 * 128 * 4096 + 3 * 4096 * 3584 + 2 * 4096));
    /* Two heads' keys and values of the 110 positions that are kept. */
    ck_assert_int_eq(decode->held_bytes, INT64_C(3) * 2 * 2 * 128 * 110 * 2);
    ck_assert_uint_eq(prefill->told_count, 1);
    ck_assert_int_eq(prefill->told[0].times, 2);
    ck_assert_int_eq(prefill->told[0].operation.kind, OPERATION_ALL_REDUCE);
    ck_assert_int_eq(prefill->told[0].operation.shape.all_reduce.elements, rows * 4096);
    ck_assert_int_eq(prefill->told[0].operation.shape.all_reduce.devices, 4);
    ck_assert_int_eq(decode->told[0].times, 2 * 10);
    ck_assert_int_eq(decode->told[0].operation.shape.all_reduce.elements, 3 * 4096);
    /* A quarter of the last product, whose figures all of them get: eleven times. */
    const struct step *head = step_named(part, "head");
    ck_assert_int_eq(product_of(head, 0)->n, 128256 / 4);
    ck_assert_int_eq(head->told[0].operation.kind, OPERATION_COPY);
    ck_assert_int_eq(head->told[0].operation.shape.elements.elements, 3 * 128256);
    ck_assert_int_eq(head->told[0].times, 11);
    ck_assert_int_eq(step_named(part, "embed")->told[0].times, 1);
}
END_TEST

/* Four parts do what one does: all products and all that is held; what flows between columns is
 * whole. */
START_TEST(parts_of_divided_layers_are_all_of_them)
{
    static const char *const settings[] = {"batch=3", "prompt=100", "answer=11", NULL};
    CLEANUP(steps_destroy) struct steps *whole = template_chain("llm", settings, 1);
    CLEANUP(steps_destroy) struct steps *part = template_chain("llm", settings, 4);
    ck_assert_uint_eq(part->step_count, whole->step_count);
    ck_assert_uint_eq(part->edge_count, whole->edge_count);
    ck_assert_uint_eq(part->column_count, whole->column_count);
    for (size_t s = 0; s < whole->step_count; s++) {
        const struct step *one = &whole->steps[s];
        const struct step *of = &part->steps[s];
        ck_assert_str_eq(of->name, one->name);
        ck_assert_uint_eq(one->told_count, 0);
        ck_assert_double_eq_tol(4 * matrix_operations(of), matrix_operations(one), 1);
        ck_assert_int_eq(4 * of->held_bytes, one->held_bytes);
        ck_assert_int_ge(4 * of->weight_bytes, one->weight_bytes);
    }
    for (size_t i = 0; i < whole->edge_count; i++) {
        const struct step *from = &whole->steps[whole->edges[i].from];
        const struct step *to = &whole->steps[whole->edges[i].to];
        bool is_cache = from->phase == STEP_FORWARD && to->phase == STEP_DECODE &&
                        from->column == to->column && from->held_bytes > 0;
        ck_assert_int_eq(part->edges[i].bytes * (is_cache ? 4 : 1), whole->edges[i].bytes);
    }
}
END_TEST

START_TEST(what_is_no_multiple_is_not_divided)
{
    const struct template *llm = template_named("llm");
    int64_t values[TEMPLATE_PARAMETERS];
    struct steps *steps = NULL;
    struct problem problem = {""};
    template_begin(llm, values);
    ck_assert(template_set(llm, "model", "gpt-2-xl", values, &problem));
    ck_assert_int_eq(template_create_divided(llm, values, 2, true, &steps, &problem),
                     STEPS_CONFLICT);
    ck_assert_str_eq(problem.text, "heads, 25, is no multiple of 2 devices");
    template_begin(llm, values);
    ck_assert(template_set(llm, "kv", "4", values, &problem));
    ck_assert_int_eq(template_create_divided(llm, values, 8, true, &steps, &problem),
                     STEPS_CONFLICT);
    ck_assert_str_eq(problem.text, "kv, 4, is no multiple of 8 devices");
    template_begin(llm, values);
    ck_assert(template_set(llm, "vocabulary", "50257", values, &problem)); /* rows that are none */
    ck_assert_int_eq(template_create_divided(llm, values, 8, true, &steps, &problem), STEPS_OK);
    ck_assert_int_eq(product_of(step_named(steps, "head"), 0)->n, 6283);
    steps_destroy(&steps);
}
END_TEST

START_TEST(steps_are_as_drawn)
{
    static const char *const names[] = {"tokenise",  "embed",  "prefill 1", "prefill 2",
                                        "prefill 3", "decode", "detokenise"};
    const struct llm_request request = {.batch = 2, .prompt = 100, .answer = 11, .stages = 3};
    CLEANUP(steps_destroy) struct steps *llm = made(&llama3_8b, &request);
    ck_assert_uint_eq(llm->step_count, 7);
    for (size_t i = 0; i < 7; i++) {
        ck_assert_str_eq(llm->steps[i].name, names[i]);
    }
    /* 32 layers in three: 11, 11, 10. */
    int64_t times = 0;
    (void)size_of(&llm->steps[2], OPERATION_ATTENTION, &times);
    ck_assert_int_eq(times, 11);
    (void)size_of(&llm->steps[4], OPERATION_ATTENTION, &times);
    ck_assert_int_eq(times, 10);
    (void)size_of(&llm->steps[5], OPERATION_ATTENTION, &times);
    ck_assert_int_eq(times, 32 * 10); /* the first token came of prefill */
}
END_TEST

/* Every step but the ends is reached from the one before; every stage hands its cache to decode. */
START_TEST(what_flows_is_the_state_and_the_cache)
{
    const struct llm_request request = {.batch = 2, .prompt = 100, .answer = 11, .stages = 2};
    CLEANUP(steps_destroy) struct steps *llm = made(&llama3_8b, &request);
    const struct {
        uint32_t from, to;
        int64_t bytes;
    } wanted[] = {
        {0, 1, 2 * 100 * 4},
        {1, 2, 2 * 100 * 4096 * 2},
        /* Keys and values of 16 layers: 2 x 2 prompts x 8 heads x 100 x 128 x 2 bytes each. */
        {2, 4, 16 * 2 * 2 * 8 * 100 * 128 * 2},
        {2, 3, 2 * 100 * 4096 * 2},
        {3, 4, 16 * 2 * 2 * 8 * 100 * 128 * 2 + 2 * 4096 * 2}, /* and the last position's state */
        {4, 5, 2 * 11 * 4},
    };
    ck_assert_uint_eq(llm->edge_count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < llm->edge_count; i++) {
        bool is_there = false;
        for (size_t k = 0; k < llm->edge_count; k++) {
            is_there |= llm->edges[k].from == wanted[i].from && llm->edges[k].to == wanted[i].to &&
                        llm->edges[k].bytes == wanted[i].bytes;
        }
        ck_assert_msg(is_there, "%u to %u: %lld", wanted[i].from, wanted[i].to,
                      (long long)wanted[i].bytes);
    }
    const struct llm_request one = {.batch = 2, .prompt = 100, .answer = 1, .stages = 2};
    CLEANUP(steps_destroy)
    struct steps *first = made(&llama3_8b, &one); /* nothing is decoded: no cache flows */
    ck_assert_uint_eq(first->edge_count, 5);
}
END_TEST

/* Twice the weights of the layers for each position: 6,979,321,856 of them are matrices. */
START_TEST(prefill_computes_twice_its_weights_for_each_position)
{
    const struct llm_request request = {.batch = 1, .prompt = 1000, .answer = 1, .stages = 1};
    CLEANUP(steps_destroy) struct steps *llm = made(&llama3_8b, &request);
    const struct step *prefill = step_named(llm, "prefill 1");
    ck_assert(matrix_operations(prefill) == 2.0 * 1000 * 6979321856.0);
    ck_assert_int_eq(prefill->weight_bytes, 2 * (INT64_C(6979321856) + 32 * 2 * 4096));
    int64_t times = 0;
    struct operation_size attention = size_of(prefill, OPERATION_ATTENTION, &times);
    ck_assert(attention.flops == (uint128)4 * 32 * 128 * (1000 * 1001 / 2));
    ck_assert_int_eq(times, 32);
    ck_assert_int_eq(prefill->held_bytes, INT64_C(32) * 2 * 8 * 1000 * 128 * 2);
}
END_TEST

START_TEST(decoding_reads_every_weight_for_every_token)
{
    const struct llm_request request = {.batch = 1, .prompt = 1000, .answer = 101, .stages = 1};
    CLEANUP(steps_destroy) struct steps *llm = made(&llama3_8b, &request);
    const struct step *decode = step_named(llm, "decode");
    /* All parameters are there: layers, table, last product, last norm. */
    ck_assert_int_eq(decode->weight_bytes, 2 * llm->parameters);
    /* 100 tokens through the layers, 101 through the last product. */
    ck_assert(matrix_operations(decode) == 2.0 * 100 * 6979321856.0 + 2.0 * 101 * 4096 * 128256);
    /* The context is 1001 .. 1100, on the average 1050.5: 1051. */
    int64_t times = 0;
    struct operation_size attention = size_of(decode, OPERATION_ATTENTION, &times);
    ck_assert(attention.flops == (uint128)4 * 32 * 1051 * 128);
    ck_assert_int_eq(decode->held_bytes, INT64_C(32) * 2 * 8 * 1100 * 128 * 2);
    ck_assert_int_eq(decode->passes, 101);
    CLEANUP(steps_destroy) struct steps *tied = made(&tiny, &request);
    ck_assert_int_eq(step_named(tied, "decode")->weight_bytes, 4 * tied->parameters);
}
END_TEST

/* An H100 reads 15 GB of weights at 3.35 TB/s in 4.48 ms. No token comes sooner, and with a cache
 * of 0.13 GB and states hardly later. Prefill of 4096 is bound by its 989.4 TFLOPS. */
START_TEST(an_h100_decodes_at_its_bandwidth)
{
    const struct llm_request request = {.batch = 1, .prompt = 1000, .answer = 101, .stages = 1};
    CLEANUP(steps_destroy) struct steps *llm = made(&llama3_8b, &request);
    const struct cost_device h100 = {.profile = &catalogue_find("nvidia-h100-sxm5")->profile};
    struct step_cost cost;
    ck_assert_int_eq(steps_cost(&h100, step_named(llm, "decode"), &cost, NULL), COST_OK);
    double token_s = cost.time_s.value / 100;
    double weights_s = 2 * (8030261248.0 - 128256.0 * 4096) / 3350e9;
    ck_assert_msg(token_s > weights_s && token_s < 1.03 * weights_s, "%g, %g", token_s, weights_s);
    ck_assert(cost.time_s.value == cost.bound_s.value && cost.p90_s == 0);
    ck_assert_int_eq(steps_cost(&h100, step_named(llm, "prefill 1"), &cost, NULL), COST_OK);
    ck_assert(cost.time_s.value > 2.0 * 1000 * 6979321856.0 / 989.4e12);
    ck_assert_double_eq_tol(cost.energy_j.value, 700 * cost.time_s.value,
                            1e-9 * cost.energy_j.value);
    size_t part = 99;
    ck_assert_int_eq(steps_cost(&h100, step_named(llm, "tokenise"), &cost, &part), COST_NO_RATE);
    ck_assert_uint_eq(part, 0);
}
END_TEST

START_TEST(a_model_that_does_not_fit_is_refused_or_streamed)
{
    const struct llm_request request = {.batch = 1, .prompt = 100, .answer = 11, .stages = 1};
    CLEANUP(steps_destroy) struct steps *llm = made(&llama2_70b, &request);
    const struct step *decode = step_named(llm, "decode");
    struct cost_device h100 = {.profile = &catalogue_find("nvidia-h100-sxm5")->profile};
    struct step_cost cost = {.bytes = 77};
    ck_assert_int_eq(steps_cost(&h100, decode, &cost, NULL), COST_NO_MEMORY); /* 138 of 80 GB */
    ck_assert(cost.bytes == 77);
    h100.stream = (struct figure){.value = 25e9, .source = FIGURE_DECLARED};
    ck_assert_int_eq(steps_cost(&h100, decode, &cost, NULL), COST_OK);
    ck_assert(cost.is_streamed);
    ck_assert_double_eq_tol(cost.time_s.value, 11 * 2 * 68976648192.0 / 25e9, 1e-6);
    const struct cost_device mi300x = {.profile = &catalogue_find("amd-mi300x")->profile};
    ck_assert_int_eq(steps_cost(&mi300x, decode, &cost, NULL), COST_OK); /* 192 GB */
    ck_assert(!cost.is_streamed);
    /* A chip of 230 MB holds no layer of it. */
    const struct llm_request cut = {.batch = 1, .prompt = 100, .answer = 1, .stages = 64};
    struct transformer half = llama2_70b;
    half.dtype = DTYPE_FP16;
    CLEANUP(steps_destroy) struct steps *pieces = made(&half, &cut);
    const struct cost_device lpu = {.profile = &catalogue_find("groq-lpu-v1")->profile};
    ck_assert_int_eq(steps_cost(&lpu, step_named(pieces, "prefill 64"), &cost, NULL),
                     COST_NO_MEMORY);
}
END_TEST

/* One device that does all of it has each weight once: what decoding needs is what the others have,
 * and its own. */
START_TEST(steps_share_their_weights)
{
    const struct {
        const struct transformer *model;
        int64_t answer;
        uint32_t first, count;
        int64_t own; /* of decode: the last product, unless tied, and the last norm */
    } cases[] = {
        {&llama3_8b, 11, 0, 4, INT64_C(2) * (4096 * 128256 + 4096)},
        {&llama3_8b, 1, 3, 1, INT64_C(2) * (4096 * 128256 + 4096)},
        {&tiny, 11, 0, 4, 4 * 8},
        {&tiny, 1, 2, 2, 4 * 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct llm_request request = {.batch = 1, .prompt = 8, .stages = 2};
        request.answer = cases[i].answer;
        CLEANUP(steps_destroy) struct steps *llm = made(cases[i].model, &request);
        const struct step *decode = step_named(llm, "decode");
        ck_assert_uint_eq(llm->set_count, 4); /* two stages, the table, decode's own */
        ck_assert_int_eq(llm->sets[3], cases[i].own);
        ck_assert_uint_eq(step_named(llm, "prefill 2")->first_set, 1);
        ck_assert_uint_eq(step_named(llm, "embed")->first_set, 2);
        ck_assert_uint_eq(decode->first_set, cases[i].first);
        ck_assert_uint_eq(decode->set_count, cases[i].count);
        int64_t all = 0;
        for (size_t k = 0; k < llm->set_count; k++) {
            all += llm->sets[k];
        }
        int64_t bytes = dtype_bits(cases[i].model->dtype) / 8;
        ck_assert_int_eq(all, bytes * llm->parameters);
    }
}
END_TEST

START_TEST(figures_that_cannot_be_are_refused_by_name)
{
    const struct llm_request good = {.batch = 1, .prompt = 8, .answer = 2, .stages = 1};
    const struct {
        size_t offset;
        bool is_request;
        const char *name;
    } figures[] = {
        {offsetof(struct transformer, layers), false, "layers"},
        {offsetof(struct transformer, width), false, "width"},
        {offsetof(struct transformer, heads), false, "heads"},
        {offsetof(struct transformer, kv), false, "kv"},
        {offsetof(struct transformer, head_size), false, "head-size"},
        {offsetof(struct transformer, feed_forward), false, "feed-forward"},
        {offsetof(struct transformer, vocabulary), false, "vocabulary"},
        {offsetof(struct llm_request, batch), true, "batch"},
        {offsetof(struct llm_request, prompt), true, "prompt"},
        {offsetof(struct llm_request, answer), true, "answer"},
        {offsetof(struct llm_request, stages), true, "stages"},
    };
    static const int64_t wrong[] = {0, -1, INT64_MIN, TRANSFORMER_FIGURE_MOST + 1, INT64_MAX};
    struct steps *llm = NULL;
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
            struct transformer model = tiny;
            struct llm_request request = good;
            struct problem problem = {""};
            char *base = figures[i].is_request ? (char *)&request : (char *)&model;
            *(int64_t *)(base + figures[i].offset) = wrong[k];
            ck_assert_int_eq(llm_create(&model, &request, &llm, &problem), STEPS_BAD_VALUE);
            ck_assert_msg(strncmp(problem.text, figures[i].name, strlen(figures[i].name)) == 0,
                          "%s", problem.text);
        }
    }
    struct llm_request stages = good;
    stages.stages = 3; /* of two layers */
    ck_assert_int_eq(llm_create(&tiny, &stages, &llm, NULL), STEPS_BAD_VALUE);
    struct transformer model = tiny;
    model.heads = 3;
    model.kv = 2;
    ck_assert_int_eq(llm_create(&model, &good, &llm, NULL), STEPS_CONFLICT);
    model = tiny;
    model.head_size = 3;
    ck_assert_int_eq(llm_create(&model, &good, &llm, NULL), STEPS_CONFLICT);
    model = tiny;
    model.dtype = DTYPE_INT8;
    ck_assert_int_eq(llm_create(&model, &good, &llm, NULL), STEPS_CONFLICT);
    ck_assert_ptr_null(llm);
}
END_TEST

START_TEST(the_largest_figures_overflow_and_nothing_else)
{
    struct transformer model = tiny;
    struct steps *llm = NULL;
    const struct llm_request most = {.batch = TRANSFORMER_FIGURE_MOST,
                                     .prompt = TRANSFORMER_FIGURE_MOST,
                                     .answer = TRANSFORMER_FIGURE_MOST,
                                     .stages = 1};
    int64_t *const all[] = {&model.layers,    &model.width,        &model.heads,     &model.kv,
                            &model.head_size, &model.feed_forward, &model.vocabulary};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        *all[i] = TRANSFORMER_FIGURE_MOST;
        ck_assert_int_eq(llm_create(&model, &most, &llm, NULL), STEPS_OVERFLOW);
    }
    ck_assert_ptr_null(llm);
}
END_TEST

SUITE("llm", NULL, NULL, TEST(a_divided_layer_is_a_part_of_each_matrix_and_two_sums),
      TEST(parts_of_divided_layers_are_all_of_them), TEST(what_is_no_multiple_is_not_divided),
      TEST(models_have_as_many_parameters_as_is_published), TEST(steps_are_as_drawn),
      TEST(what_flows_is_the_state_and_the_cache),
      TEST(prefill_computes_twice_its_weights_for_each_position),
      TEST(decoding_reads_every_weight_for_every_token), TEST(an_h100_decodes_at_its_bandwidth),
      TEST(a_model_that_does_not_fit_is_refused_or_streamed), TEST(steps_share_their_weights),
      TEST(figures_that_cannot_be_are_refused_by_name),
      TEST(the_largest_figures_overflow_and_nothing_else))
