/* Plans of work that has a line, against figures worked out by hand: what is gone around again and
 * again, there and back, and there on some devices and around on others. Devices take a second for
 * a unit of work, unless it is said. */
#include "planner/layout/plan.h"

#include "base/cleanup.h"
#include "planner/cost/catalogue.h"
#include "planner/templates/template_list.h"
#include "tests/support/sample_work.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4, WEIGHTS = 1000000000, BATCH = 0, ROUNDS = 1 };

struct room {
    struct sample_device devices[MOST];
    struct plan_device list[MOST];
    struct plan_input input;
};

static void furnish(struct room *room, const struct steps *steps, const struct template *template,
                    const int64_t *values, size_t count, const struct topology *topology)
{
    static const char *const names[MOST] = {"left", "right", "third", "fourth"};
    *room = (struct room){.input = {.steps = steps,
                                    .template = template,
                                    .values = values,
                                    .devices = room->list,
                                    .device_count = count,
                                    .topology = topology,
                                    .budget_micro = LIMIT_NONE,
                                    .effort = PLAN_EFFORT}};
    for (uint32_t d = 0; d < count; d++) {
        sample_device(&room->devices[d], 1, 1);
        sample_memory(&room->devices[d], 1.5 * WEIGHTS); /* of one column, not of two */
        room->list[d] = (struct plan_device){.name = names[d],
                                             .cost = &room->devices[d].cost,
                                             .memory = d,
                                             .price_micro = 3600 * MICRO_PER_CREDIT};
    }
}

static struct plan *made(const struct plan_input *input)
{
    struct plan *plan = sample_plan(input);
    ck_assert(plan->bound <= plan->total.merit &&
              plan->time_bound_s <= plan->total.makespan_s.value);
    return plan;
}

static void assert_near(double value, double wanted)
{
    ck_assert_double_eq_tol(value, wanted, 1e-5 * wanted + 1e-7);
}

static void place(struct steps *steps, uint32_t step, uint32_t column, enum step_phase phase)
{
    steps->steps[step].column = (uint16_t)column;
    steps->steps[step].phase = (uint8_t)phase;
    sample_weights(steps, step, column, 1, WEIGHTS);
}

static const struct template_parameter parameters[] = {
    {.name = "batch", .meaning = "items", .usual = 1, .least = 1, .most = 64, .is_batch = true},
    {.name = "rounds", .meaning = "rounds", .usual = 0, .least = 0, .most = 1000},
    {.name = NULL},
};

/* ---------------------------------------------------------------- around */

/* z -> a -> b there in bf16, c -> d around in fp32, a unit for each item and round, but for z,
 * which is nothing; a and c are of one column, b and d of the next. What a and b leave for c and d
 * is 1,000 bytes of an item. */
static enum steps_status make_ring(const int64_t *values, struct steps **ret_steps,
                                   struct problem *ret_problem)
{
    (void)ret_problem;
    int64_t batch = values[BATCH];
    struct steps *steps = sample_steps(5);
    for (uint32_t s = 1; s <= 2; s++) {
        sample_units(steps, s, 0, batch);
        sample_units(steps, 2 + s, batch * values[ROUNDS], 0);
        steps->steps[s].held_bytes = steps->steps[2 + s].held_bytes = 1000 * batch;
        place(steps, s, s, STEP_FORWARD);
        place(steps, 2 + s, s, STEP_DECODE);
    }
    sample_edge(steps, 0, 1, 0);
    sample_edge(steps, 1, 2, 0);
    sample_edge(steps, 1, 3, 1000 * batch);
    sample_edge(steps, 2, 4, 1000 * batch);
    sample_edge(steps, 2, 3, 0);
    sample_edge(steps, 3, 4, 0);
    *ret_steps = steps;
    return STEPS_OK;
}

static enum steps_status make_ring_line(const int64_t *values, struct steps **ret_steps,
                                        struct problem *ret_problem)
{
    enum steps_status status = make_ring(values, ret_steps, ret_problem);
    (*ret_steps)->column_count = 3;
    (*ret_steps)->rounds = values[ROUNDS];
    return status;
}

static const struct template ring = {
    .name = "ring", .parameters = parameters, .make = make_ring, .make_chain = make_ring_line};

/* Two micro-batches of an item keep both devices busy: there until 1, 2 and 2, 3; the first round
 * until 3, 4 and 4, 5; and then 2 s for each round. */
START_TEST(rounds_of_full_stages_take_the_slowest_for_each_micro_batch)
{
    const int64_t values[] = {2, 10};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e12);
    struct room room;
    ck_assert_int_eq(template_create(&ring, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &ring, values, 2, topology);
    CLEANUP(plan_destroy) struct plan *plan = made(&room.input);
    ck_assert_int_eq(plan->form, PLAN_PIPELINE);
    ck_assert_str_eq(plan->found_by, "stages around");
    ck_assert_int_eq(plan->micro_batches, 2);
    assert_near(plan->total.makespan_s.value, 5 + 9 * 2);
    ck_assert_uint_eq(plan->row_count, 2);
    assert_near(plan->rows[0].busy_s, 22);
    assert_near(plan->rows[1].busy_s, 22);
    /* Weights, and what each of both micro-batches keeps. */
    ck_assert(plan->uses[0].memory_bytes >= WEIGHTS + 2 * 1000);
    ck_assert_int_eq(plan->forms[PLAN_SINGLE].status, PLAN_NO_ROOM);
}
END_TEST

/* A round of a micro-batch takes 2 s and two links of 0.25 s, in which the devices are not busy all
 * the time. */
START_TEST(rounds_of_waiting_stages_take_the_sum_of_stages_and_links)
{
    const int64_t values[] = {2, 10};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0.25, 1e12);
    struct room room;
    ck_assert_int_eq(template_create(&ring, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &ring, values, 2, topology);
    CLEANUP(plan_destroy) struct plan *plan = made(&room.input);
    /* There until 1, 2 and 2.25, 3.25; the first rounds end at 4.75 and 5.75. */
    assert_near(plan->total.makespan_s.value, 5.75 + 9 * 2.5);
    double waited_s = 0;
    for (size_t i = 0; i < plan->wait_count; i++) {
        waited_s += plan->waits[i].row == 1 ? plan->waits[i].until_s - plan->waits[i].from_s : 0;
    }
    const struct plan_row *row = &plan->rows[1];
    assert_near(row->finish_s - row->start_s - waited_s, row->busy_s);
}
END_TEST

/* NULL: it was not looked for. */
static const struct plan_variant *variant_of(const struct plan *plan, const char *found_by)
{
    for (size_t i = 0; i < plan->variant_count; i++) {
        if (strcmp(plan->variants[i].found_by, found_by) == 0) {
            return &plan->variants[i];
        }
    }
    return NULL;
}

/* Two can do what is around only, and two the way there, and what is around in ten times the
 * time. */
START_TEST(what_is_gone_around_may_be_apart)
{
    const int64_t values[] = {2, 10};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(4, 0, 1000);
    struct room room;
    ck_assert_int_eq(template_create(&ring, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &ring, values, 4, topology);
    for (int d = 0; d < 4; d++) {
        sample_device(&room.devices[d], d < 2 ? 1 : 10, d < 2 ? 0 : 1);
        sample_memory(&room.devices[d], 1.5 * WEIGHTS);
    }
    CLEANUP(plan_destroy) struct plan *plan = made(&room.input);
    ck_assert_int_eq(plan->form, PLAN_PIPELINE);
    ck_assert_str_eq(plan->found_by, "prefill and decode apart");
    /* There until 1, 2 and 2, 3; what b leaves is where d is at 3 and at 4; so first rounds end at
     * 5 and 6. */
    assert_near(plan->total.makespan_s.value, 6 + 9 * 2);
    ck_assert_uint_eq(plan->row_count, 4);
    for (size_t i = 0; i < plan->row_count; i++) {
        bool is_there = strncmp(plan->names[i], "prefill", 7) == 0;
        ck_assert(is_there == (plan->rows[i].device >= 2));
    }
    /* The other kind of stages would have put all on the two that can do all, one micro-batch
     * behind the other. */
    const struct plan_variant *taken = variant_of(plan, "prefill and decode apart");
    const struct plan_variant *around = variant_of(plan, "stages around");
    ck_assert_ptr_nonnull(taken);
    ck_assert_ptr_nonnull(around);
    assert_near(taken->outcome.makespan_s.value, plan->total.makespan_s.value);
    ck_assert_int_eq(around->outcome.status, PLAN_OK);
    ck_assert_uint_eq(around->outcome.device_count, 2);
    assert_near(around->outcome.makespan_s.value, 3 + 10 * 2 * 10 + 10 - 1);
}
END_TEST

/* Apart takes four: of two it is said that there is none. */
START_TEST(what_could_not_be_apart_is_said)
{
    const int64_t values[] = {2, 10};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e12);
    struct room room;
    ck_assert_int_eq(template_create(&ring, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &ring, values, 2, topology);
    CLEANUP(plan_destroy) struct plan *plan = made(&room.input);
    const struct plan_variant *none = variant_of(plan, "prefill and decode apart");
    ck_assert_ptr_nonnull(none);
    ck_assert_int_eq(none->outcome.status, PLAN_NO_ROOM);
    ck_assert_str_ne(none->outcome.problem.text, "");
}
END_TEST

/* ---------------------------------------------------------------- there and back */

/* a -> b there, 1 unit of an item, c <- d back, 2 units; then e and f once, 3 units. a and b keep
 * 100 MB of an item. */
static enum steps_status make_back(const int64_t *values, struct steps **ret_steps,
                                   struct problem *ret_problem)
{
    (void)ret_problem;
    int64_t batch = values[BATCH];
    struct steps *steps = sample_steps(6);
    const uint32_t columns[] = {0, 1, 1, 0, 0, 1}; /* a b d c e f */
    for (uint32_t s = 0; s < 6; s++) {
        sample_units(steps, s, s < 2 ? batch : s < 4 ? 2 * batch : 3, 0);
        place(steps, s, columns[s], s < 2 ? STEP_FORWARD : s < 4 ? STEP_BACKWARD : STEP_ONCE);
    }
    steps->steps[0].held_bytes = steps->steps[1].held_bytes = 100000000 * batch;
    sample_edge(steps, 0, 1, 0);
    sample_edge(steps, 1, 2, 100000000 * batch);
    sample_edge(steps, 0, 3, 100000000 * batch);
    sample_edge(steps, 2, 3, 0);
    sample_edge(steps, 3, 4, 0);
    sample_edge(steps, 2, 5, 0);
    *ret_steps = steps;
    return STEPS_OK;
}

static enum steps_status make_back_line(const int64_t *values, struct steps **ret_steps,
                                        struct problem *ret_problem)
{
    enum steps_status status = make_back(values, ret_steps, ret_problem);
    (*ret_steps)->column_count = 2;
    return status;
}

static const struct template back = {
    .name = "back", .parameters = parameters, .make = make_back, .make_chain = make_back_line};

/* (m + p - 1)(forward + backward) with p = 2 stages and m = 4 micro-batches (Narayanan et al. 2021,
 * section 2.2): the bubble is (p - 1) of them; and what is done once. */
START_TEST(there_and_back_has_the_bubble_of_one_forward_one_backward)
{
    const int64_t values[] = {4, 0};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e15);
    struct room room;
    ck_assert_int_eq(template_create(&back, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &back, values, 2, topology);
    CLEANUP(plan_destroy) struct plan *plan = made(&room.input);
    ck_assert_int_eq(plan->form, PLAN_PIPELINE);
    ck_assert_str_eq(plan->found_by, "stages there and back");
    ck_assert_int_eq(plan->micro_batches, 4);
    assert_near(plan->total.makespan_s.value, (4 + 2 - 1) * (1 + 2) + 3);
    /* Two micro-batches are under way at the first stage, and one at the last. */
    assert_near(plan->uses[0].memory_bytes - plan->uses[1].memory_bytes, 100000000);
    ck_assert(plan->uses[0].memory_bytes >= WEIGHTS + 2 * 100000000.0);
    ck_assert(plan->uses[0].memory_bytes < WEIGHTS + 3 * 100000000.0);
}
END_TEST

/* Four micro-batches under way would not fit, which all forward and then all backward would
 * need. */
START_TEST(what_does_not_fit_under_way_is_cut_smaller)
{
    const int64_t values[] = {8, 0};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e15);
    struct room room;
    ck_assert_int_eq(template_create(&back, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &back, values, 2, topology);
    sample_memory(&room.devices[0], WEIGHTS + 230e6); /* two of an item */
    sample_memory(&room.devices[1], WEIGHTS + 230e6);
    CLEANUP(plan_destroy) struct plan *plan = made(&room.input);
    ck_assert_int_eq(plan->micro_batches, 8);
    assert_near(plan->total.makespan_s.value, (8 + 2 - 1) * (1 + 2) + 3);
    sample_memory(&room.devices[0], WEIGHTS + 150e6);
    sample_memory(&room.devices[1], WEIGHTS + 150e6);
    struct plan *none = NULL;
    struct plan_fault fault;
    ck_assert_int_ne(plan_search(&room.input, &none, &fault), PLAN_OK);
}
END_TEST

/* ---------------------------------------------------------------- the catalogue's */

/* One of the catalogue's, as many as are asked for, all linked. */
struct rack {
    struct plan_device list[PLAN_DEVICES];
    struct cost_device cost[2];
    struct plan_input input;
    int64_t values[TEMPLATE_PARAMETERS];
    struct steps *steps;
    struct topology *topology;
};

static void rack_fini(struct rack *rack)
{
    steps_destroy(&rack->steps);
    topology_destroy(&rack->topology);
}

static void fill(struct rack *rack, const char *template, const char *const *settings,
                 uint32_t first, const char *model, uint32_t count, const char *other)
{
    const struct template *it = template_named(template);
    struct problem problem = {""};
    *rack = (struct rack){.steps = NULL};
    rack->cost[0] = (struct cost_device){.profile = &catalogue_find(model)->profile};
    rack->cost[1] = (struct cost_device){.profile = &catalogue_find(other)->profile};
    template_begin(it, rack->values);
    for (; settings[0] != NULL; settings += 2) {
        ck_assert_msg(template_set(it, settings[0], settings[1], rack->values, &problem), "%s",
                      problem.text);
    }
    ck_assert_int_eq(template_create(it, rack->values, &rack->steps, &problem), STEPS_OK);
    rack->topology = sample_links(first + count, 2e-6, 100e9);
    for (uint32_t d = 0; d < first + count; d++) {
        rack->list[d] = (struct plan_device){.name = d < first ? "big" : "small",
                                             .cost = &rack->cost[d < first],
                                             .memory = d,
                                             .price_micro = 1000000};
    }
    rack->input = (struct plan_input){.steps = rack->steps,
                                      .template = it,
                                      .values = rack->values,
                                      .devices = rack->list,
                                      .device_count = first + count,
                                      .topology = rack->topology,
                                      .budget_micro = LIMIT_NONE,
                                      .may_leave_out = true,
                                      .effort = PLAN_EFFORT};
}

/* 1.6 x 10^9 parameters of two bytes, 230 MB each: no fewer than 14 of them, and layers are not
 * divided. */
START_TEST(a_model_lies_on_chips_that_hold_a_few_layers_each)
{
    static const char *const settings[] = {"model",  "gpt-2-xl", "dtype", "fp16", "prompt", "64",
                                           "answer", "16",       "batch", "4",    NULL};
    CLEANUP(rack_fini) struct rack rack;
    fill(&rack, "llm", settings, 0, "groq-lpu-v1", 24, "groq-lpu-v1");
    CLEANUP(plan_destroy) struct plan *plan = made(&rack.input);
    ck_assert_int_eq(plan->form, PLAN_PIPELINE);
    ck_assert(plan->row_count >= 14 && plan->row_count <= 24);
    for (size_t d = 0; d < 24; d++) {
        ck_assert(plan->uses[d].memory_bytes <= 230e6);
    }
    ck_assert_int_eq(plan->forms[PLAN_SINGLE].status, PLAN_NOWHERE);
}
END_TEST

/* The refusal says how many of them the weights would take. */
START_TEST(a_model_that_does_not_fit_says_how_many_would_hold_it)
{
    static const char *const settings[] = {"model", "llama-3-70b", "dtype", "fp16", NULL};
    CLEANUP(rack_fini) struct rack rack;
    struct plan *none = NULL;
    struct plan_fault fault;
    fill(&rack, "llm", settings, 0, "groq-lpu-v1", 24, "groq-lpu-v1");
    ck_assert_int_eq(plan_search(&rack.input, &none, &fault), PLAN_NOWHERE);
    ck_assert_ptr_nonnull(
        strstr(fault.problem.text, "weights of 141 GB take 614 of small at least"));
    ck_assert_ptr_nonnull(strstr(fault.problem.text, "64 are planned for at most"));
    ck_assert_ptr_nonnull(strstr(fault.problem.text, "which is not divided, fits none"));
}
END_TEST

/* A prompt is work for what computes fast; each of its tokens' weights are read once from 32
 * memories of 80 TB/s. */
START_TEST(prompts_on_one_type_and_answers_on_another)
{
    static const char *const settings[] = {"model", "llama-3-8b", "dtype", "fp16", "weights",
                                           "int8",  "batch",      "1",     NULL};
    CLEANUP(rack_fini) struct rack rack;
    fill(&rack, "llm", settings, 2, "groq-lpu-v1", 33, "nvidia-h100-sxm5");
    CLEANUP(plan_destroy) struct plan *plan = made(&rack.input);
    ck_assert_int_eq(plan->form, PLAN_PIPELINE);
    ck_assert_str_eq(plan->found_by, "prefill and decode apart");
    ck_assert(plan->total.makespan_s.value < 0.5 * plan->forms[PLAN_SINGLE].makespan_s.value);
    ck_assert_int_eq(plan->total.makespan_s.source, FIGURE_DECLARED);
}
END_TEST

/* Vectors of 15 GB and a model of 141 GB on four devices of 80 GB: queries are looked up on the
 * first while layers are gone through on others. */
START_TEST(what_is_looked_up_is_a_stage_before_the_layers)
{
    static const char *const settings[] = {"model",  "llama-3-70b", "batch", "32",
                                           "answer", "64",          NULL};
    CLEANUP(rack_fini) struct rack rack;
    fill(&rack, "rag", settings, 0, "nvidia-h100-sxm5", 4, "nvidia-h100-sxm5");
    CLEANUP(plan_destroy) struct plan *plan = made(&rack.input);
    ck_assert_int_eq(plan->form, PLAN_PIPELINE);
    ck_assert_str_eq(plan->found_by, "stages around");
    ck_assert(strncmp(plan->names[0], "retrieval", 9) == 0);
    ck_assert_uint_ge(plan->row_count, 3);
}
END_TEST

/* An H100 has no rate of int4: such weights take a quarter of the room and of the bytes, and are
 * multiplied in bf16. */
START_TEST(weights_without_a_rate_of_their_own_are_widened)
{
    static const char *const none[] = {"batch", "4", NULL};
    static const char *const narrow[] = {"batch", "4", "weights", "int4", NULL};
    static const char *const bytes[] = {"batch", "4", "weights", "int8", NULL};
    CLEANUP(rack_fini) struct rack wide;
    CLEANUP(rack_fini) struct rack four;
    CLEANUP(rack_fini) struct rack eight;
    fill(&wide, "llm", none, 0, "nvidia-h100-sxm5", 1, "nvidia-h100-sxm5");
    fill(&four, "llm", narrow, 0, "nvidia-h100-sxm5", 1, "nvidia-h100-sxm5");
    fill(&eight, "llm", bytes, 0, "nvidia-h100-sxm5", 1, "nvidia-h100-sxm5");
    CLEANUP(plan_destroy) struct plan *usual = made(&wide.input);
    CLEANUP(plan_destroy) struct plan *quarter = made(&four.input);
    CLEANUP(plan_destroy) struct plan *half = made(&eight.input);
    bool is_widened = false;
    for (size_t i = 0; i < quarter->row_count; i++) {
        is_widened = is_widened || quarter->rows[i].is_widened;
        ck_assert(!half->rows[i].is_widened && !usual->rows[i].is_widened);
    }
    ck_assert(is_widened);
    ck_assert(half->total.makespan_s.value < usual->total.makespan_s.value);
    ck_assert(quarter->total.makespan_s.value < half->total.makespan_s.value);
    ck_assert(quarter->uses[0].memory_bytes < half->uses[0].memory_bytes);
    ck_assert(half->uses[0].memory_bytes < usual->uses[0].memory_bytes);
}
END_TEST

/* A tied table is at both ends: its gradients come together, and what was changed goes back. */
START_TEST(weights_at_both_ends_come_together)
{
    static const char *const settings[] = {"model",      "gpt-2-xl", "batch",     "4",
                                           "sequence",   "1024",     "tokenised", "yes",
                                           "checkpoint", "0",        NULL};
    CLEANUP(rack_fini) struct rack rack;
    fill(&rack, "train", settings, 0, "nvidia-l4", 2, "nvidia-l4");
    CLEANUP(plan_destroy) struct plan *plan = made(&rack.input);
    ck_assert_int_eq(plan->form, PLAN_PIPELINE);
    ck_assert_str_eq(plan->found_by, "stages there and back");
    double table = 50257.0 * 1600 * 2;
    unsigned there = 0;
    unsigned again = 0;
    for (size_t i = 0; i < plan->transfer_count; i++) {
        const struct plan_transfer *transfer = &plan->transfers[i];
        there += transfer->bytes >= table && plan->rows[transfer->to].device == 0;
        again += transfer->bytes >= table && plan->rows[transfer->from].device == 0;
    }
    ck_assert(there >= 1 && again >= 1);
}
END_TEST

/* A checkpoint every 1,000 iterations: of each layer a part that is rounded up, 48 times, or of all
 * of them once. */
START_TEST(no_rounding_of_columns_is_a_bound_of_the_whole)
{
    static const char *const settings[] = {"model",     "gpt-2-xl", "batch",     "4",
                                           "sequence",  "128",      "tokenised", "yes",
                                           "optimiser", "momentum", NULL};
    CLEANUP(rack_fini) struct rack rack;
    fill(&rack, "train", settings, 0, "nvidia-l40s", 2, "nvidia-l40s");
    rack.cost[0].storage = rack.cost[1].storage =
        (struct figure){.value = 7e9, .source = FIGURE_DECLARED};
    rack.input.objective = PLAN_ENERGY;
    CLEANUP(plan_destroy) struct plan *plan = made(&rack.input);
    ck_assert(plan->total.merit >= plan->bound);
    ck_assert(plan->gap < 1e-6);
}
END_TEST

SUITE("stage_chain", NULL, NULL, TEST(rounds_of_full_stages_take_the_slowest_for_each_micro_batch),
      TEST(rounds_of_waiting_stages_take_the_sum_of_stages_and_links),
      TEST(what_is_gone_around_may_be_apart), TEST(what_could_not_be_apart_is_said),
      TEST(there_and_back_has_the_bubble_of_one_forward_one_backward),
      TEST(what_does_not_fit_under_way_is_cut_smaller),
      TEST(a_model_lies_on_chips_that_hold_a_few_layers_each),
      TEST(a_model_that_does_not_fit_says_how_many_would_hold_it),
      TEST(prompts_on_one_type_and_answers_on_another),
      TEST(what_is_looked_up_is_a_stage_before_the_layers),
      TEST(weights_without_a_rate_of_their_own_are_widened),
      TEST(weights_at_both_ends_come_together),
      TEST(no_rounding_of_columns_is_a_bound_of_the_whole))
