/* An iteration of training as steps: against what is published of operations, activations and
 * memory, and figures worked out by hand. */
#include "base/cleanup.h"
#include "planner/templates/template_list.h"
#include "tests/support/suite.h"
#include "tests/support/template_steps.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* 2 layers, width 8, 2 heads of 4 on 1 KV head, 16 wide, 32 tokens, two matrices: 464 parameters a
 * layer, a table of 256, a head of 8 + 256. 2 sequences of 3 tokens: 6 rows. */
#define TINY                                                                                       \
    "layers=2", "width=8", "heads=2", "kv=1", "head-size=4", "feed-forward=16", "vocabulary=32",   \
        "gated=no", "dtype=bf16", "batch=2", "sequence=3"

START_TEST(steps_are_as_drawn)
{
    static const char *const names[] = {
        "load",
        "preprocess",
        "tokenise",
        "embed",
        "forward 1",
        "forward 2",
        "loss",
        "backward 2",
        "backward 1",
        "backward embed",
        "all-reduce 1",
        "snapshot 1",
        "checkpoint 1",
        "optimiser 1",
        "all-reduce 2",
        "snapshot 2",
        "checkpoint 2",
        "optimiser 2",
        "all-reduce embed",
        "snapshot embed",
        "checkpoint embed",
        "optimiser embed",
        "all-reduce head",
        "snapshot head",
        "checkpoint head",
        "optimiser head",
    };
    CLEANUP(steps_destroy)
    struct steps *all = template_steps("train", SETTINGS(TINY, "stages=2", "replicas=4"));
    ck_assert_uint_eq(all->step_count, sizeof names / sizeof names[0]);
    for (size_t i = 0; i < all->step_count; i++) {
        ck_assert_str_eq(all->steps[i].name, names[i]);
    }
    ck_assert_int_eq(all->parameters, 2 * 464 + 256 + 8 + 256);
    /* Alone, from tokens, without checkpoints, tied: fewer. */
    CLEANUP(steps_destroy)
    struct steps *few =
        template_steps("train", SETTINGS(TINY, "tokenised=yes", "checkpoint=0", "tied=yes"));
    ck_assert_uint_eq(few->step_count, 9);
    ck_assert_uint_eq(steps_find(few, "tokenise"), few->step_count);
    ck_assert_uint_eq(steps_find(few, "optimiser head"), few->step_count);
}
END_TEST

START_TEST(what_flows_is_states_gradients_and_weights)
{
    CLEANUP(steps_destroy)
    struct steps *all =
        template_steps("train", SETTINGS(TINY, "stages=2", "replicas=4", "checkpoint=1"));
    const int64_t state = 6 * 8 * 2; /* of 6 rows */
    const int64_t weights = 464 * 2; /* of a stage, and its gradients */
    /* Each row keeps in a layer: 4 x 8 beside norms, (2 + 2) x 4 queries, keys and values, 2 x 4
     * out of attention, 2 x 16 in the feed-forward part: 88 elements; and 2 float32 sums. */
    const int64_t kept = 6 * (88 * 2 + 2 * 4);
    ck_assert_int_eq(template_flow(all, "load", "preprocess"), 6 * 4);
    ck_assert_int_eq(template_flow(all, "embed", "forward 1"), state);
    ck_assert_int_eq(template_flow(all, "forward 2", "loss"), state);
    ck_assert_int_eq(template_flow(all, "loss", "backward 2"), state);
    ck_assert_int_eq(template_flow(all, "backward 2", "backward 1"), state);
    ck_assert_int_eq(template_flow(all, "forward 1", "backward 1"), kept + weights);
    ck_assert_int_eq(template_step(all, "forward 1")->held_bytes, kept);
    ck_assert_int_eq(template_flow(all, "backward 1", "all-reduce 1"), 2 * weights);
    ck_assert_int_eq(template_flow(all, "all-reduce 1", "optimiser 1"), 2 * weights);
    ck_assert_int_eq(template_flow(all, "embed", "all-reduce embed"), 256 * 2);
    ck_assert_int_eq(template_flow(all, "loss", "all-reduce head"), 2 * 264 * 2);
    /* Weights of 2 bytes, two moments and the weights in float32. */
    ck_assert_int_eq(template_flow(all, "snapshot 1", "checkpoint 1"), 464 * 14);
    /* A changed part goes back to where the next iteration begins with it. */
    const char *const changed[][2] = {{"forward 1", "optimiser 1"},
                                      {"forward 2", "optimiser 2"},
                                      {"embed", "optimiser embed"},
                                      {"loss", "optimiser head"}};
    const int64_t sizes[] = {weights, weights, 256 * 2, 264 * 2};
    for (size_t i = 0; i < 4; i++) {
        const struct step *step = template_step(all, changed[i][0]);
        ck_assert_uint_eq(step->renewed_by, steps_find(all, changed[i][1]));
        ck_assert_int_eq(step->renewed_bytes, sizes[i]);
    }
    CLEANUP(steps_destroy)
    struct steps *again = template_steps("train", SETTINGS(TINY, "recompute=yes"));
    ck_assert_int_eq(template_step(again, "forward 1")->held_bytes, 2 * state);
}
END_TEST

/* Two of two heads' parts, but keys and values of one: so of a model of two. Of each layer two sums
 * there and two back (Shoeybi et al., section 3), six where layers go forward again. */
START_TEST(a_divided_layer_has_two_sums_there_and_two_back)
{
    CLEANUP(steps_destroy)
    struct steps *part = template_chain("train", SETTINGS(TINY, "kv=2", "replicas=4"), 2);
    const struct step *there = template_step(part, "forward 1");
    const struct step *back = template_step(part, "backward 1");
    const struct step *loss = template_step(part, "loss");
    /* 8 x (1 + 2) x 4 and 4 x 8 of one head, 2 x 8 x 8 of the feed-forward part, two norms of 8
     * that are whole: 272. */
    ck_assert_int_eq(there->weight_bytes, 272 * 2);
    ck_assert_int_eq(there->told[0].operation.shape.all_reduce.elements, 6 * 8);
    ck_assert_int_eq(there->told[0].operation.shape.all_reduce.devices, 2);
    ck_assert_int_eq(there->told[0].times, 2);
    ck_assert_int_eq(back->told[0].times, 2);
    ck_assert_int_eq(back->told[0].operation.shape.all_reduce.elements, 6 * 8);
    /* Kept: of each row 4 x 8 beside norms whole; (2 + 2) x 4 of one head, 2 x 8 of the
     * feed-forward part, a sum. */
    ck_assert_int_eq(there->held_bytes, 6 * ((4 * 8 + 4 * 4 + 2 * 8) * 2 + 4));
    /* The loss tells three figures of each row, and the gradient of what came in. */
    ck_assert_uint_eq(loss->told_count, 2);
    ck_assert_int_eq(loss->told[0].times, 3);
    ck_assert_int_eq(loss->told[0].operation.shape.all_reduce.elements, 6);
    ck_assert_int_eq(loss->told[1].times, 1);
    ck_assert_int_eq(loss->told[1].operation.shape.all_reduce.elements, 6 * 8);
    /* Optimisers and sums over replicas are of a device's own part. */
    ck_assert_uint_eq(template_step(part, "optimiser 1")->told_count, 0);
    ck_assert_int_eq(template_flow(part, "all-reduce 1", "optimiser 1"), 2 * 272 * 2);
    CLEANUP(steps_destroy)
    struct steps *again = template_chain("train", SETTINGS(TINY, "kv=2", "recompute=yes"), 2);
    ck_assert_int_eq(template_step(again, "backward 1")->told[0].times, 4);
}
END_TEST

/* Six operations for each parameter and token (Kaplan et al., arXiv 2001.08361, section 2.1): two
 * there, four back. GPT-3 was trained on 300 x 10^9 tokens in 3.14 x 10^23 of them (Brown et al.,
 * arXiv 2005.14165, table D.1), attention not counted. */
START_TEST(a_token_takes_six_operations_for_each_parameter)
{
    CLEANUP(steps_destroy)
    struct steps *all = template_steps("train", SETTINGS("model=gpt-3-175b", "sequence=2048"));
    double parameters = 96.0 * 12 * 12288 * 12288 + 12288.0 * 50257; /* in matrices */
    double products = template_flops(all, NULL, OPERATION_MATMUL);
    ck_assert(products == 6 * parameters * 2048);
    double whole = products / 2048 * 300e9;
    ck_assert_msg(whole > 0.995 * 3.14e23 && whole < 1.005 * 3.14e23, "%g", whole);
    /* Layers twice there: eight, but for the last product. */
    CLEANUP(steps_destroy)
    struct steps *again =
        template_steps("train", SETTINGS("model=gpt-3-175b", "sequence=2048", "recompute=yes"));
    ck_assert(template_flops(again, NULL, OPERATION_MATMUL) ==
              (8 * parameters - 2 * 12288.0 * 50257) * 2048);
    /* Attention has two products there and five back. */
    double there = template_flops(all, template_step(all, "forward 1"), OPERATION_ATTENTION);
    double back = template_flops(all, template_step(all, "backward 1"), OPERATION_ATTENTION);
    ck_assert(there == 96.0 * 4 * 96 * 128 * (2048.0 * 2049 / 2));
    ck_assert(back == 2.5 * there);
}
END_TEST

/* Korthikanti et al., arXiv 2205.05198, have 34 s b h bytes of a layer that keeps no weights of
 * attention: two of these are masks of dropout, which there is none of here. Sums of attention's
 * rows come on top, 4 for each head. */
START_TEST(activations_are_as_published)
{
    CLEANUP(steps_destroy)
    struct steps *all =
        template_steps("train", SETTINGS("model=gpt-3-175b", "sequence=2048", "batch=3"));
    int64_t rows = 3 * 2048;
    ck_assert_int_eq(template_step(all, "forward 1")->held_bytes,
                     96 * (32 * rows * 12288 + 4 * rows * 96));
}
END_TEST

/* Rajbhandari et al., ZeRO, SC 2020, section 3.1: 16 bytes of each parameter in mixed precision
 * with Adam. */
START_TEST(a_parameter_takes_16_bytes)
{
    static const struct {
        const char *dtype, *optimiser;
        int64_t bytes;
    } cases[] = {
        {"dtype=bf16", "optimiser=adam", 16}, {"dtype=fp32", "optimiser=adam", 16},
        {"dtype=fp32", "optimiser=sgd", 8},   {"dtype=bf16", "optimiser=momentum", 8},
        {"dtype=fp64", "optimiser=adam", 24},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CLEANUP(steps_destroy)
        struct steps *all = template_steps(
            "train", SETTINGS("stages=3", cases[i].dtype, cases[i].optimiser, "tied=yes"));
        int64_t bytes = 0;
        for (size_t k = 0; k < all->set_count; k++) {
            bytes += all->sets[k];
        }
        ck_assert_int_eq(bytes, cases[i].bytes * all->parameters);
    }
}
END_TEST

START_TEST(nothing_waits_for_a_checkpoint)
{
    CLEANUP(steps_destroy)
    struct steps *all = template_steps("train", SETTINGS(TINY, "stages=2", "checkpoint=10"));
    static const char *const groups[] = {"1", "2", "embed", "head"};
    double stored = 0;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        char name[STEP_NAME_SIZE];
        (void)snprintf(name, sizeof name, "checkpoint %s", groups[i]);
        ck_assert_uint_eq(template_edges_from(all, name), 0);
        ck_assert_uint_eq(template_edges_to(all, name), 1);
        struct operation_size size;
        ck_assert_int_eq(
            operation_measure(&template_step(all, name)->parts[0].operation, &size, NULL),
            OPERATION_OK);
        stored += (double)size.storage_bytes;
        (void)snprintf(name, sizeof name, "snapshot %s", groups[i]);
        ck_assert_uint_eq(template_edges_to(all, name), 0); /* of what the iteration before left */
    }
    /* A tenth of each, rounded up: 47 + 47 + 26 + 27 parameters of 14 bytes. */
    ck_assert(stored == 147 * 14);
}
END_TEST

/* Each replica of a ring sends all but one of four parts twice and gets as much: 464 - 116 = 348
 * elements of 2 bytes, four times. */
START_TEST(replicas_add_up_their_gradients)
{
    CLEANUP(steps_destroy)
    struct steps *all = template_steps("train", SETTINGS(TINY, "stages=2", "replicas=4"));
    struct operation_size size;
    const struct step *step = template_step(all, "all-reduce 1");
    ck_assert_int_eq(operation_measure(&step->parts[0].operation, &size, NULL), OPERATION_OK);
    ck_assert_int_eq(size.link_bytes, 4 * 348 * 2);
    ck_assert_int_eq(step->weight_bytes, 464 * 2); /* its gradients are there already */
    CLEANUP(steps_destroy) struct steps *alone = template_steps("train", SETTINGS(TINY));
    ck_assert_uint_eq(steps_find(alone, "all-reduce 1"), alone->step_count);
    const struct template *train = template_named("train");
    ck_assert_str_eq(train->parameters[template_batch(train)].name, "batch");
    ck_assert_str_eq(train->parameters[template_replicas(train)].name, "replicas");
    ck_assert_uint_eq(template_replicas(template_named("llm")), TEMPLATE_NO_PARAMETER);
}
END_TEST

/* Each as soon as its gradients are there, and before those of the parts before it are; optimisers
 * follow when all have gone back. */
START_TEST(sums_may_overlap_the_way_back)
{
    CLEANUP(steps_destroy)
    struct steps *all =
        template_steps("train", SETTINGS(TINY, "stages=2", "replicas=4", "overlap=yes"));
    static const char *const order[] = {"loss",           "all-reduce head", "backward 2",
                                        "all-reduce 2",   "backward 1",      "all-reduce 1",
                                        "backward embed", "all-reduce embed"};
    ck_assert(all->sums_behind);
    for (size_t i = 0; i + 1 < sizeof order / sizeof order[0]; i++) {
        ck_assert_uint_eq(steps_find(all, order[i]) + 1, steps_find(all, order[i + 1]));
    }
    CLEANUP(steps_destroy)
    struct steps *after = template_steps("train", SETTINGS(TINY, "stages=2", "replicas=4"));
    ck_assert(!after->sums_behind);
    ck_assert_uint_eq(all->step_count, after->step_count);
    ck_assert_uint_eq(all->edge_count, after->edge_count);
    ck_assert(template_flops(all, NULL, OPERATION_KINDS) ==
              template_flops(after, NULL, OPERATION_KINDS));
    CLEANUP(steps_destroy)
    struct steps *alone = template_steps("train", SETTINGS(TINY, "overlap=yes"));
    ck_assert(!alone->sums_behind); /* nothing is summed */
}
END_TEST

START_TEST(stages_change_nothing_of_the_sum)
{
    static const char *const stages[] = {"stages=1", "stages=2", "stages=3", "stages=7",
                                         "stages=32"};
    static const char *const names[] = {"train", "llm"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        double flops = 0;
        double bytes = 0;
        for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
            const char *last = n == 0 ? "checkpoint=1" : "answer=3";
            CLEANUP(steps_destroy)
            struct steps *all = template_steps(names[n], SETTINGS(stages[i], last));
            if (i == 0) {
                flops = template_flops(all, NULL, OPERATION_KINDS);
                bytes = template_bytes(all, NULL, OPERATION_KINDS);
            }
            ck_assert(template_flops(all, NULL, OPERATION_KINDS) == flops);
            ck_assert(template_bytes(all, NULL, OPERATION_KINDS) == bytes);
        }
    }
}
END_TEST

START_TEST(what_cannot_be_is_refused_by_name)
{
    struct problem problem = {""};
    ck_assert_int_eq(template_refusal("train", SETTINGS(TINY, "stages=3"), &problem),
                     STEPS_BAD_VALUE);
    ck_assert_str_eq(problem.text, "stages is 3; it may be 1 to 2");
    ck_assert_int_eq(template_refusal("train", SETTINGS(TINY, "kv=3"), &problem), STEPS_CONFLICT);
    ck_assert_ptr_nonnull(strstr(problem.text, "must be a multiple of kv, 3"));
    ck_assert_int_eq(template_refusal("train", SETTINGS(TINY, "head-size=3"), &problem),
                     STEPS_CONFLICT);
    ck_assert_int_eq(template_refusal("train",
                                      SETTINGS("width=16777216", "vocabulary=16777216",
                                               "layers=16777216", "feed-forward=16777216"),
                                      &problem),
                     STEPS_OVERFLOW);
}
END_TEST

SUITE("train", NULL, NULL, TEST(a_divided_layer_has_two_sums_there_and_two_back),
      TEST(steps_are_as_drawn), TEST(what_flows_is_states_gradients_and_weights),
      TEST(a_token_takes_six_operations_for_each_parameter), TEST(activations_are_as_published),
      TEST(a_parameter_takes_16_bytes), TEST(nothing_waits_for_a_checkpoint),
      TEST(replicas_add_up_their_gradients), TEST(sums_may_overlap_the_way_back),
      TEST(stages_change_nothing_of_the_sum), TEST(what_cannot_be_is_refused_by_name))
