#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/random.h"
#include "planner/layout/pipeline.h"
#include "tests/support/suite.h"

enum { LAYERS = 6, DEVICES = 4, GRAPHS = 400 };

struct sample {
    double fixed[LAYERS * DEVICES], item[LAYERS * DEVICES];
    double weights[LAYERS], held[LAYERS], out[LAYERS];
    double memory[DEVICES], latency[DEVICES * DEVICES], bandwidth[DEVICES * DEVICES];
    double staging[DEVICES * DEVICES];
    struct pipeline_input input;
};

/* Layers of no fixed time and 1 for an item, on devices that are alike, with links that take
 * nothing. */
static struct sample *sample(size_t layers, size_t devices, uint64_t items, uint64_t micro_batches)
{
    static struct sample made;
    memset(&made, 0, sizeof made);
    for (size_t i = 0; i < layers * devices; i++) {
        made.item[i] = 1;
    }
    for (size_t i = 0; i < devices; i++) {
        made.memory[i] = INFINITY;
    }
    for (size_t i = 0; i < devices * devices; i++) {
        made.bandwidth[i] = INFINITY;
    }
    made.input = (struct pipeline_input){.layer_count = layers,
                                         .device_count = devices,
                                         .fixed_s = made.fixed,
                                         .item_s = made.item,
                                         .weight_bytes = made.weights,
                                         .held_bytes = made.held,
                                         .out_bytes = made.out,
                                         .memory_bytes = made.memory,
                                         .latency_s = made.latency,
                                         .bandwidth = made.bandwidth,
                                         .staging_s = made.staging,
                                         .staging_bytes = 4,
                                         .items = items,
                                         .micro_batches_most = micro_batches};
    return &made;
}

static struct pipeline make(const struct sample *given)
{
    struct pipeline pipeline;
    ck_assert_int_eq(pipeline_make(&given->input, &pipeline), PIPELINE_OK);
    return pipeline;
}

START_TEST(alike_stages_have_the_bubble_of_the_literature)
{
    struct pipeline pipeline = make(sample(4, 4, 8, 8));
    ck_assert_uint_eq(pipeline.stage_count, 4);
    ck_assert_uint_eq(pipeline.micro_batches, 8);
    ck_assert_double_eq(pipeline.time_s, 4 + 7);
    ck_assert_double_eq_tol(pipeline.bubble, 3.0 / 11, 1e-12); /* (K - 1) / (M + K - 1) */
    ck_assert_double_eq(pipeline.single_s, 32);
}
END_TEST

START_TEST(fixed_times_bound_the_number_of_micro_batches)
{
    struct sample *given = sample(2, 2, 16, 16);
    for (int i = 0; i < 4; i++) {
        given->fixed[i] = 2;
    }
    struct pipeline pipeline = make(given); /* M micro-batches: (M + 1) (2 + 16 / M) */
    ck_assert_uint_eq(pipeline.micro_batches, 2);
    ck_assert_double_eq(pipeline.time_s, 30);
    given->input.micro_batches_most = 1;
    pipeline = make(given);
    ck_assert_double_eq(pipeline.time_s, 36); /* nothing overlaps: one device does as well */
    ck_assert_double_eq(pipeline.single_s, 36);
}
END_TEST

START_TEST(the_cut_goes_where_little_is_carried_and_stages_are_alike)
{
    struct sample *given = sample(4, 2, 64, 64);
    const double out[] = {1, 1000, 1, 0};
    memcpy(given->out, out, sizeof out);
    for (int i = 0; i < 4; i++) {
        given->bandwidth[i] = 1;
    }
    struct pipeline pipeline = make(given);
    ck_assert_uint_eq(pipeline.stage_count, 2);
    ck_assert(pipeline.stages[0].layer_count == 1 || pipeline.stages[0].layer_count == 3);
    ck_assert_double_eq(pipeline.slowest_s, 3);
    given->out[1] = 2; /* now the even cut is worth it */
    pipeline = make(given);
    ck_assert_uint_eq(pipeline.stages[0].layer_count, 2);
    ck_assert_double_eq(pipeline.slowest_s, 2);
    ck_assert_double_eq(pipeline.stages[0].transfer_s, 2);
    ck_assert_double_eq(pipeline.stages[1].transfer_s, 0);
}
END_TEST

START_TEST(a_device_that_only_slows_it_down_is_left_out)
{
    struct sample *given = sample(4, 3, 8, 8);
    for (size_t layer = 0; layer < 4; layer++) {
        given->item[layer * 3 + 1] = 100;
    }
    struct pipeline pipeline = make(given);
    ck_assert_uint_eq(pipeline.stage_count, 2);
    ck_assert_uint_ne(pipeline.stages[0].device, 1);
    ck_assert_uint_ne(pipeline.stages[1].device, 1);
}
END_TEST

START_TEST(what_does_not_fit_is_not_planned)
{
    struct sample *given = sample(4, 2, 4, 4);
    for (int i = 0; i < 4; i++) {
        given->weights[i] = 10;
        given->held[i] = 1;
    }
    given->memory[0] = 40;
    given->memory[1] = 21;
    struct pipeline pipeline = make(given);
    ck_assert_double_le(pipeline.stages[0].memory_bytes, given->memory[pipeline.stages[0].device]);
    ck_assert(isinf(pipeline.single_s));
    for (uint32_t i = 0; i < pipeline.stage_count; i++) {
        ck_assert_uint_eq(pipeline.stages[i].in_flight, pipeline.stage_count - i);
    }
    given->memory[0] = 9;
    given->memory[1] = 9;
    ck_assert_int_eq(pipeline_make(&given->input, &pipeline), PIPELINE_NOWHERE);
}
END_TEST

START_TEST(what_layers_of_a_stage_share_takes_room_once)
{
    struct sample *given = sample(3, 2, 4, 4);
    double shared[9] = {[0 * 3 + 2] = 10,
                        [1 * 3 + 2] = 10}; /* the last has the weights of the one before it */
    for (int i = 0; i < 3; i++) {
        given->weights[i] = 10;
    }
    given->memory[0] = 19;
    given->memory[1] = 19;
    struct pipeline pipeline;
    ck_assert_int_eq(pipeline_make(&given->input, &pipeline), PIPELINE_NOWHERE);
    given->input.shared_bytes = shared;
    pipeline = make(given);
    ck_assert_uint_eq(pipeline.stages[0].layer_count, 1);
    ck_assert_double_eq(pipeline.stages[1].memory_bytes, 10);
    ck_assert(isinf(pipeline.single_s));
    given->memory[0] = 20;
    ck_assert_double_eq(make(given).single_s, 12);
    shared[5] = NAN;
    ck_assert_int_eq(pipeline_make(&given->input, &pipeline), PIPELINE_BAD_INPUT);
}
END_TEST

START_TEST(what_comes_first_holds_more_than_what_comes_last)
{
    struct sample *given = sample(2, 2, 4, 4);
    given->held[0] = 10;
    given->held[1] = 10;
    given->memory[0] = 10; /* one micro-batch in flight */
    given->memory[1] = 20; /* two */
    struct pipeline pipeline = make(given);
    ck_assert_uint_eq(pipeline.stage_count, 2);
    ck_assert_uint_eq(pipeline.stages[0].device, 1);
    ck_assert_uint_eq(pipeline.stages[0].in_flight, 2);
    ck_assert_uint_eq(pipeline.stages[1].device, 0);
    ck_assert_double_eq(pipeline.time_s, 5);
}
END_TEST

START_TEST(figures_outside_their_range_are_refused)
{
    struct pipeline pipeline;
    struct sample *given = sample(2, 2, 4, 4);
    given->item[3] = -1;
    ck_assert_int_eq(pipeline_make(&given->input, &pipeline), PIPELINE_BAD_INPUT);
    given = sample(2, 2, 4, 4);
    given->out[0] = NAN;
    ck_assert_int_eq(pipeline_make(&given->input, &pipeline), PIPELINE_BAD_INPUT);
    given = sample(2, 2, 4, 4);
    given->bandwidth[1] = 0;
    ck_assert_int_eq(pipeline_make(&given->input, &pipeline), PIPELINE_BAD_INPUT);
    given = sample(2, 2, 0, 4);
    ck_assert_int_eq(pipeline_make(&given->input, &pipeline), PIPELINE_BAD_INPUT);
    given = sample(2, 2, 4, 0);
    ck_assert_int_eq(pipeline_make(&given->input, &pipeline), PIPELINE_BAD_INPUT);
    given = sample(2, 2, 4, 4);
    given->input.device_count = PIPELINE_DEVICES + 1;
    ck_assert_int_eq(pipeline_make(&given->input, &pipeline), PIPELINE_BAD_INPUT);
}
END_TEST

/* ---------------------------------------------------------------- every cut, every order, played
 * through */

struct stage {
    size_t first, end, device;
};

/* Returns when the last micro-batch leaves the last stage: each goes on when it is there and the
 * stage or link is free. */
static double play(const struct pipeline_input *input, const struct stage *stages, size_t count,
                   uint64_t micro_batches)
{
    double free_from[2 * LAYERS] = {0};
    double items = (double)((input->items + micro_batches - 1) / micro_batches);
    double now = 0;
    for (uint64_t batch = 0; batch < micro_batches; batch++) {
        now = 0;
        for (size_t i = 0; i < count; i++) {
            const struct stage *stage = &stages[i];
            double time = 0;
            double memory = 0;
            size_t to_end = count - i;
            double held = items * (double)(micro_batches < to_end ? micro_batches : to_end);
            for (size_t layer = stage->first; layer < stage->end; layer++) {
                size_t at = layer * input->device_count + stage->device;
                time += input->fixed_s[at] + items * input->item_s[at];
                memory += input->weight_bytes[layer] + held * input->held_bytes[layer];
            }
            if (memory > input->memory_bytes[stage->device]) {
                return INFINITY;
            }
            now = free_from[2 * i] = fmax(now, free_from[2 * i]) + time;
            if (i + 1 < count) {
                size_t at = stage->device * input->device_count + stages[i + 1].device;
                double bytes = items * input->out_bytes[stage->end - 1];
                double link = input->latency_s[at] + bytes / input->bandwidth[at] +
                              input->staging_s[at] * fmin(bytes, input->staging_bytes);
                now = free_from[2 * i + 1] = fmax(now, free_from[2 * i + 1]) + link;
            }
        }
    }
    return now;
}

static double best_of_all(const struct pipeline_input *input, struct stage *stages, size_t count,
                          size_t layer, uint64_t micro_batches)
{
    if (layer == input->layer_count) {
        return play(input, stages, count, micro_batches);
    }
    double best = INFINITY;
    for (size_t device = 0; device < input->device_count; device++) {
        bool is_free = true;
        for (size_t i = 0; i < count; i++) {
            is_free = is_free && stages[i].device != device;
        }
        for (size_t end = layer + 1; is_free && end <= input->layer_count; end++) {
            stages[count] = (struct stage){layer, end, device};
            best = fmin(best, best_of_all(input, stages, count + 1, end, micro_batches));
        }
    }
    return best;
}

static double draw(struct random *dice, uint64_t most)
{
    return (double)random_below(dice, most);
}

static void fill(struct random *dice, struct sample *given)
{
    size_t layers = given->input.layer_count;
    size_t devices = given->input.device_count;
    uint64_t carrying = 1 + random_below(dice, 30);
    for (size_t i = 0; i < layers * devices; i++) {
        given->fixed[i] = random_below(dice, 12) == 0 ? INFINITY : draw(dice, 4);
        given->item[i] = 1 + draw(dice, 8);
    }
    for (size_t i = 0; i < layers; i++) {
        given->weights[i] = draw(dice, 20);
        given->held[i] = draw(dice, 4);
        given->out[i] = draw(dice, carrying);
    }
    for (size_t i = 0; i < devices; i++) {
        given->memory[i] = random_below(dice, 2) == 0 ? INFINITY : 20 + draw(dice, 200);
    }
    for (size_t i = 0; i < devices * devices; i++) {
        given->latency[i] = random_below(dice, 8) == 0 ? INFINITY : draw(dice, 3);
        given->bandwidth[i] = (double)(1u << random_below(dice, 4));
        given->staging[i] = draw(dice, 2);
    }
}

/* Two devices through a memory between them: what a small piece takes there is by its own size,
 * however large the chunks are. */
START_TEST(what_goes_through_a_memory_between_is_counted_by_its_size)
{
    struct sample *given = sample(2, 2, 4, 4);
    for (size_t i = 0; i < 2; i++) {
        given->out[i] = 1;
    }
    for (size_t i = 0; i < 4; i++) {
        given->bandwidth[i] = 4;
        given->staging[i] = 0.25;
    }
    given->input.staging_bytes = 1000;
    struct pipeline pipeline = make(given);
    ck_assert_uint_eq(pipeline.stage_count, 2);
    ck_assert_double_eq(pipeline.stages[0].transfer_s, 0.5);
    ck_assert_double_eq(pipeline.time_s, 1 + 0.5 + 1 + 3);
    given->staging[1] = given->staging[2] = NAN;
    ck_assert_int_eq(pipeline_make(&given->input, &pipeline), PIPELINE_BAD_INPUT);
}
END_TEST

START_TEST(no_cut_and_no_order_is_better)
{
    uint32_t planned = 0;
    uint32_t split = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct random dice = random_seeded(seed);
        struct sample *given =
            sample(1 + random_below(&dice, LAYERS), 1 + random_below(&dice, DEVICES),
                   1 + random_below(&dice, 12), 1 + random_below(&dice, 8));
        fill(&dice, given);
        const struct pipeline_input *input = &given->input;
        uint64_t most =
            input->items < input->micro_batches_most ? input->items : input->micro_batches_most;
        double best = INFINITY;
        double single = INFINITY;
        for (uint64_t number = 1; number <= most; number++) {
            if ((number & (number - 1)) == 0 || number == most) {
                struct stage stages[LAYERS];
                best = fmin(best, best_of_all(input, stages, 0, 0, number));
                for (size_t device = 0; device < input->device_count; device++) {
                    stages[0] = (struct stage){0, input->layer_count, device};
                    single = fmin(single, play(input, stages, 1, number));
                }
            }
        }
        struct pipeline pipeline;
        enum pipeline_status status = pipeline_make(input, &pipeline);
        ck_assert_int_eq(status, best < INFINITY ? PIPELINE_OK : PIPELINE_NOWHERE);
        if (status == PIPELINE_OK) {
            ck_assert_double_eq_tol(pipeline.time_s, best, 1e-9 * best);
            ck_assert(pipeline.single_s == single ||
                      fabs(pipeline.single_s - single) < 1e-9 * single);
            ck_assert_double_le(pipeline.time_s, pipeline.single_s * (1 + 1e-9));
            struct stage stages[LAYERS];
            for (uint32_t i = 0; i < pipeline.stage_count; i++) {
                const struct pipeline_stage *stage = &pipeline.stages[i];
                stages[i] = (struct stage){stage->first_layer,
                                           stage->first_layer + stage->layer_count, stage->device};
            }
            ck_assert_double_eq_tol(
                play(input, stages, pipeline.stage_count, pipeline.micro_batches), best,
                1e-9 * best);
            ck_assert(pipeline.bubble > -1e-9 && pipeline.bubble < 1);
            planned++;
            split += pipeline.stage_count > 1;
        }
    }
    ck_assert_uint_gt(planned, GRAPHS / 2);
    ck_assert_uint_gt(split, GRAPHS / 4);
}
END_TEST

SUITE("pipeline", NULL, NULL, TEST(alike_stages_have_the_bubble_of_the_literature),
      TEST(fixed_times_bound_the_number_of_micro_batches),
      TEST(the_cut_goes_where_little_is_carried_and_stages_are_alike),
      TEST(a_device_that_only_slows_it_down_is_left_out), TEST(what_does_not_fit_is_not_planned),
      TEST(what_layers_of_a_stage_share_takes_room_once),
      TEST(what_comes_first_holds_more_than_what_comes_last),
      TEST(figures_outside_their_range_are_refused),
      TEST(what_goes_through_a_memory_between_is_counted_by_its_size),
      TEST(no_cut_and_no_order_is_better))
