/* Stages that several devices hold together, against figures worked out by hand. Devices take a
 * second for a unit of work, and a round of what they tell one another a tenth of a second. */
#include "planner/layout/plan.h"

#include "base/cleanup.h"
#include "planner/cost/device_set.h"
#include "planner/templates/template_list.h"
#include "tests/support/sample_work.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8, BATCH = 0, UNITS = 8, WEIGHTS = 800000000, TOLD = 1000, KEPT = 64000000 };

static const double round_s = 0.1;

struct room {
    struct sample_device devices[MOST];
    struct plan_device list[MOST];
    struct plan_input input;
};

static void furnish(struct room *room, const struct steps *steps, const struct template *template,
                    const int64_t *values, size_t count, const struct topology *topology)
{
    static const char *const names[MOST] = {"a", "b", "c", "d", "e", "f", "g", "h"};
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
        sample_memory(&room->devices[d], 10.0 * WEIGHTS);
        sample_power(&room->devices[d], 100);
        room->list[d] = (struct plan_device){.name = names[d],
                                             .cost = &room->devices[d].cost,
                                             .memory = d,
                                             .price_micro = 3600 * MICRO_PER_CREDIT};
    }
}

static struct plan *made(const struct plan_input *input)
{
    struct plan *plan = sample_plan(input);
    ck_assert(plan->bound <= plan->total.merit * (1 + 1e-9) &&
              plan->time_bound_s <= plan->total.makespan_s.value * (1 + 1e-9));
    return plan;
}

static void assert_near(double value, double wanted)
{
    ck_assert_double_eq_tol(value, wanted, 1e-5 * wanted + 1e-7);
}

static const struct template_parameter parameters[] = {
    {.name = "batch", .meaning = "items", .usual = 1, .least = 1, .most = 64, .is_batch = true},
    {.name = NULL},
};

/* a -> b there, UNITS of each item each, on `ways` devices with a part of the weights each; of b
 * four sums of TOLD elements of each item. */
static struct steps *chain(int64_t batch, int64_t ways)
{
    struct steps *steps = sample_steps(2);
    for (uint32_t s = 0; s < 2; s++) {
        steps->steps[s].column = (uint16_t)s;
        steps->steps[s].phase = STEP_FORWARD;
        sample_units(steps, s, UNITS * batch / ways, 0);
        sample_weights(steps, s, s, 1, WEIGHTS / ways);
    }
    sample_edge(steps, 0, 1, 1000);
    if (ways > 1) {
        struct step *step = &steps->steps[1];
        step->told_count = 1;
        step->told[0] =
            (struct step_part){.operation = operation_of(OPERATION_ALL_REDUCE, DTYPE_FP32)};
        step->told[0].operation.shape.all_reduce =
            (struct all_reduce_shape){.elements = TOLD * batch, .devices = ways};
        step->told[0].times = 4;
    }
    return steps;
}

static enum steps_status make_chain(const int64_t *values, struct steps **ret_steps,
                                    struct problem *ret_problem)
{
    (void)ret_problem;
    *ret_steps = chain(values[BATCH], 1);
    return STEPS_OK;
}

static enum steps_status make_chain_line(const int64_t *values, struct steps **ret_steps,
                                         struct problem *ret_problem)
{
    (void)ret_problem;
    *ret_steps = chain(values[BATCH], 1);
    (*ret_steps)->column_count = 2;
    return STEPS_OK;
}

static enum steps_status make_chain_divided(const int64_t *values, int64_t ways, bool is_chain,
                                            struct steps **ret_steps, struct problem *ret_problem)
{
    (void)ret_problem;
    *ret_steps = chain(values[BATCH], ways);
    (*ret_steps)->column_count = is_chain ? 2 : 0;
    return STEPS_OK;
}

static const struct template chain_template = {.name = "chain",
                                               .parameters = parameters,
                                               .make = make_chain,
                                               .make_chain = make_chain_line,
                                               .make_divided = make_chain_divided};

static const struct plan_variant *variant_of(const struct plan *plan, const char *found_by)
{
    for (size_t i = 0; i < plan->variant_count; i++) {
        if (strcmp(plan->variants[i].found_by, found_by) == 0) {
            return &plan->variants[i];
        }
    }
    ck_abort_msg("%s was not looked for", found_by);
    return NULL;
}

/* Work of 16 s takes 16 / g on g devices, and four sums of 2 (g - 1) rounds of 0.1 s: 8.8 on two,
 * 6.4 on four, 7.6 on eight. */
START_TEST(a_stage_takes_a_part_of_its_work_and_the_rounds_of_its_sums)
{
    const int64_t values[] = {1};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_fabrics(8, 8, round_s, 1e12);
    struct room room;
    ck_assert_int_eq(template_create(&chain_template, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &chain_template, values, 8, topology);
    CLEANUP(plan_destroy) struct plan *plan = made(&room.input);
    ck_assert_int_eq(plan->form, PLAN_PIPELINE);
    ck_assert_str_eq(plan->found_by, "layers divided over 4 devices");
    assert_near(plan->total.makespan_s.value, 16 / 4.0 + 4 * 6 * round_s);
    const char *const ways[] = {"layers divided over 2 devices", "layers divided over 4 devices",
                                "layers divided over 8 devices"};
    const double takes_s[] = {16 / 2.0 + 4 * 2 * round_s, 16 / 4.0 + 4 * 6 * round_s,
                              16 / 8.0 + 4 * 14 * round_s};
    for (size_t i = 0; i < 3; i++) {
        const struct plan_outcome *outcome = &variant_of(plan, ways[i])->outcome;
        ck_assert_int_eq(outcome->status, PLAN_OK);
        ck_assert_uint_eq(outcome->device_count, 2u << i);
        assert_near(outcome->makespan_s.value, takes_s[i]);
        /* Each device is leased, and at its power, all the time. */
        assert_near((double)outcome->price_micro, (2u << i) * takes_s[i] * MICRO_PER_CREDIT);
        assert_near(outcome->energy_j.value, (2u << i) * takes_s[i] * 100);
    }
    assert_near(plan->forms[PLAN_SINGLE].makespan_s.value, 16);
    /* No item's way is shorter, on however many. */
    assert_near(plan->time_bound_s, 8 / 8.0 + 8 / 4.0 + 4 * 6 * round_s);
}
END_TEST

START_TEST(all_of_its_devices_are_leased_and_have_a_part)
{
    const int64_t values[] = {1};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_fabrics(4, 4, round_s, 1e12);
    struct room room;
    ck_assert_int_eq(template_create(&chain_template, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &chain_template, values, 4, topology);
    CLEANUP(plan_destroy) struct plan *plan = made(&room.input);
    ck_assert_uint_eq(plan->row_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct plan_row *row = &plan->rows[i];
        const struct plan_use *use = &plan->uses[row->device];
        char what[PLAN_WHAT_SIZE];
        (void)snprintf(what, sizeof what, "embed, head (%u of 4)", i + 1);
        ck_assert_str_eq(plan->names[i], what);
        ck_assert_uint_eq(row->device, i);
        ck_assert_uint_eq(row->team_size, 4);
        ck_assert_uint_eq(row->team_number, i);
        assert_near(row->busy_s, plan->total.makespan_s.value);
        assert_near(use->share, 1);
        assert_near(use->last_s - use->first_s, plan->total.makespan_s.value);
        /* A quarter of both weights. Of each sum of 4,000 bytes six rounds of a quarter. */
        ck_assert(use->memory_bytes >= 2 * WEIGHTS / 4.0 &&
                  use->memory_bytes < 2 * WEIGHTS / 4.0 + 20e6);
        assert_near(use->bytes_in, 4 * 6 * 1000);
        assert_near(use->bytes_out, 4 * 6 * 1000);
    }
}
END_TEST

/* 1.6 GB in all, and 0.5 GB on each of four: neither one nor two hold it, nor do stages of a device
 * each. */
START_TEST(a_part_fits_where_a_layer_does_not)
{
    const int64_t values[] = {1};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_fabrics(4, 4, 10, 1e12);
    struct room room;
    struct plan *none = NULL;
    struct plan_fault fault;
    ck_assert_int_eq(template_create(&chain_template, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &chain_template, values, 4, topology);
    for (int d = 0; d < 4; d++) {
        sample_memory(&room.devices[d], 500e6);
    }
    CLEANUP(plan_destroy) struct plan *plan = made(&room.input);
    ck_assert(plan->rows[0].team_size > 1);
    for (int d = 0; d < 4; d++) {
        ck_assert(plan->uses[d].memory_bytes <= 500e6);
    }
    for (int d = 0; d < 4; d++) {
        sample_memory(&room.devices[d], 199e6); /* of each weights a quarter is 200 MB */
    }
    ck_assert_int_ne(plan_search(&room.input, &none, &fault), PLAN_OK);
}
END_TEST

/* Two machines of two: a stage on each, of two micro-batches. What comes to the second goes to its
 * first device and from there on. */
START_TEST(stages_may_be_held_by_two_each)
{
    const int64_t values[] = {2};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_fabrics(4, 2, 0.001, 1e12);
    struct room room;
    ck_assert_int_eq(template_create(&chain_template, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &chain_template, values, 4, topology);
    for (int d = 0; d < 4; d++) {
        sample_memory(&room.devices[d], 500e6);
    }
    CLEANUP(plan_destroy) struct plan *plan = made(&room.input);
    ck_assert_str_eq(plan->found_by, "layers divided over 2 devices");
    ck_assert_int_eq(plan->micro_batches, 2);
    ck_assert_uint_eq(plan->row_count, 4);
    /* A micro-batch takes 4 s in the first; 0.001 from there; in the second as long to be handed
     * on, 4 s, and 4 x 2 rounds. */
    double second_s = 0.001 + 4 + 4 * 2 * 0.001;
    assert_near(plan->total.makespan_s.value, 4 + 0.001 + 2 * second_s);
    ck_assert_uint_eq(plan->transfer_count,
                      1 + 2); /* and what the two of the second tell one another */
    unsigned told_to = 0;
    for (size_t i = 0; i < plan->transfer_count; i++) {
        const struct plan_transfer *transfer = &plan->transfers[i];
        bool is_told = transfer->from >= 2;
        ck_assert_int_eq(transfer->kind, is_told ? TOPOLOGY_NVLINK : TOPOLOGY_PEER);
        ck_assert(is_told || (transfer->from == 0 && transfer->to == 2));
        assert_near(transfer->bytes, is_told ? 2.0 * 4 * 2 * 2000 : 1000);
        told_to |= is_told ? 1u << transfer->to : 0;
    }
    ck_assert_uint_eq(told_to, 1u << 2 | 1u << 3);
    /* Each of two micro-batches has 1,000 bytes: out of the first, into both of the second, of
     * which one hands them on. */
    double told = 2.0 * 4 * 2 * 2000;
    assert_near(plan->uses[0].bytes_out, 2000);
    assert_near(plan->uses[1].bytes_out, 0);
    assert_near(plan->uses[2].bytes_in, 2000 + told);
    assert_near(plan->uses[2].bytes_out, 2000 + told);
    assert_near(plan->uses[3].bytes_in, 2000 + told);
    assert_near(plan->uses[3].bytes_out, told);
}
END_TEST

/* An item for each of two groups: 16 s, by two 8, and four sums of two rounds. The second is told
 * to begin and says that it is done, a tenth of a second each; all four together on both items
 * would take six rounds for each sum. */
START_TEST(groups_may_have_shares_of_the_batch)
{
    const int64_t values[] = {2};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_fabrics(4, 4, round_s, 1e12);
    struct room room;
    ck_assert_int_eq(template_create(&chain_template, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &chain_template, values, 4, topology);
    CLEANUP(plan_destroy) struct plan *plan = made(&room.input);
    const double share_s = 16 / 2.0 + 4 * 2 * round_s;
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_str_eq(plan->found_by, "shares for groups of 2 devices");
    assert_near(plan->total.makespan_s.value, share_s + 2 * round_s);
    assert_near(variant_of(plan, "water-filling")->outcome.makespan_s.value, 16 + 2 * round_s);
    ck_assert_uint_eq(plan->row_count, 4);
    ck_assert_uint_eq(plan->total.device_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct plan_row *row = &plan->rows[i];
        const struct plan_use *use = &plan->uses[row->device];
        ck_assert_str_eq(plan->names[i], i % 2 == 0 ? "all of 1 (1 of 2)" : "all of 1 (2 of 2)");
        ck_assert_uint_eq(row->device, i);
        ck_assert_uint_eq(row->team_size, 2);
        ck_assert_int_eq(row->items, 1);
        assert_near(row->busy_s, share_s);
        assert_near(row->energy_j.value, share_s * 100);
        ck_assert(use->memory_bytes >= 2 * WEIGHTS / 2.0);
        assert_near(use->bytes_in,
                    4 * 2 * 2000); /* of each sum of 4,000 bytes two rounds of a half */
        assert_near((double)use->price_micro, (use->last_s - use->first_s) * MICRO_PER_CREDIT);
    }
    assert_near(plan->total.energy_j.value, 4 * share_s * 100);
}
END_TEST

static void assert_none(const struct plan_input *input, const char *why)
{
    CLEANUP(plan_destroy) struct plan *plan = made(input);
    const struct plan_outcome *outcome = &variant_of(plan, "layers divided over devices")->outcome;
    ck_assert_int_eq(outcome->status, PLAN_INDIVISIBLE);
    ck_assert_str_eq(outcome->problem.text, why);
    for (size_t i = 0; i < plan->row_count; i++) {
        ck_assert_uint_le(plan->rows[i].team_size, 1);
    }
}

START_TEST(why_layers_are_not_divided_is_said)
{
    const int64_t values[] = {1};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *apart = sample_links(4, round_s, 1e12);
    CLEANUP(topology_destroy) struct topology *topology = sample_fabrics(2, 2, round_s, 1e12);
    static const char *const no_team =
        "no 2 alike devices are in one machine with a fabric between them";
    struct template whole = chain_template;
    struct room room;
    ck_assert_int_eq(template_create(&chain_template, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &chain_template, values, 4, apart);
    assert_none(&room.input, no_team);
    furnish(&room, steps, &chain_template, values, 2, topology);
    room.list[1].price_micro++;
    assert_none(&room.input, no_team);
    furnish(&room, steps, &whole, values, 2, topology);
    whole.make_divided = NULL;
    assert_none(&room.input, "the layers of this work are not divided");
}
END_TEST

/* All have to begin again where one goes: two are taken away twice as often as one. */
START_TEST(a_team_is_taken_away_as_often_as_all_of_its_devices)
{
    const int64_t values[] = {1};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_fabrics(2, 2, round_s, 1e12);
    struct room room;
    double a_s = 0;
    double b_s = 0;
    ck_assert_int_eq(template_create(&chain_template, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &chain_template, values, 2, topology);
    room.list[0].risk = room.list[1].risk = (struct spot_risk){.per_hour = 30, .restart_s = 5};
    CLEANUP(plan_destroy) struct plan *plan = made(&room.input);
    const struct spot_risk both = {.per_hour = 60, .restart_s = 5};
    ck_assert_int_eq(spot_expect(&both, 4, &a_s), SPOT_OK);
    ck_assert_int_eq(spot_expect(&both, 4 + 4 * 2 * round_s, &b_s), SPOT_OK);
    assert_near(variant_of(plan, "layers divided over 2 devices")->outcome.makespan_s.value,
                a_s + b_s);
}
END_TEST

/* ---------------------------------------------------------------- keys and values */

/* a there, in bf16, c around in fp32: what a leaves for c is divided as both are. */
static struct steps *ring(int64_t batch, int64_t ways)
{
    struct steps *steps = sample_steps(3);
    for (uint32_t s = 1; s < 3; s++) {
        steps->steps[s].column = 1;
        steps->steps[s].phase = s == 1 ? STEP_FORWARD : STEP_DECODE;
        sample_units(steps, s, s == 1 ? 0 : UNITS * batch / ways,
                     s == 1 ? UNITS * batch / ways : 0);
        sample_weights(steps, s, 1, 1, WEIGHTS / ways);
        steps->steps[s].held_bytes = KEPT * batch / ways;
    }
    sample_edge(steps, 0, 1, 0);
    sample_edge(steps, 1, 2, KEPT * batch / ways);
    return steps;
}

static enum steps_status make_ring(const int64_t *values, struct steps **ret_steps,
                                   struct problem *ret_problem)
{
    (void)ret_problem;
    *ret_steps = ring(values[BATCH], 1);
    return STEPS_OK;
}

static enum steps_status make_ring_divided(const int64_t *values, int64_t ways, bool is_chain,
                                           struct steps **ret_steps, struct problem *ret_problem)
{
    (void)ret_problem;
    *ret_steps = ring(values[BATCH], ways);
    (*ret_steps)->column_count = is_chain ? 2 : 0;
    (*ret_steps)->rounds = 2;
    return STEPS_OK;
}

static enum steps_status make_ring_line(const int64_t *values, struct steps **ret_steps,
                                        struct problem *ret_problem)
{
    return make_ring_divided(values, 1, true, ret_steps, ret_problem);
}

static const struct template ring_template = {.name = "ring",
                                              .parameters = parameters,
                                              .make = make_ring,
                                              .make_chain = make_ring_line,
                                              .make_divided = make_ring_divided};

/* Four can do what is there only, and two what is around: each of the two gets 16 MB of 64 from
 * each of two of the four, in a second over a link of its own. */
START_TEST(what_is_kept_goes_in_parts_from_where_it_is_to_where_it_is_needed)
{
    const int64_t values[] = {1};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_fabrics(6, 6, 0, 16e6);
    struct room room;
    ck_assert_int_eq(template_create(&ring_template, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, &ring_template, values, 6, topology);
    for (int d = 0; d < 6; d++) {
        sample_device(&room.devices[d], d < 4 ? 0 : 1, d < 4 ? 1 : 0);
        sample_memory(&room.devices[d], 10.0 * WEIGHTS);
    }
    CLEANUP(plan_destroy) struct plan *plan = made(&room.input);
    ck_assert_str_eq(plan->found_by, "layers divided over 4 devices");
    assert_near(plan->total.makespan_s.value, 8 / 4.0 + 1 + 8 / 2.0);
    double parts = 0;
    for (size_t i = 0; i < plan->transfer_count; i++) {
        const struct plan_transfer *transfer = &plan->transfers[i];
        const struct plan_row *from = &plan->rows[transfer->from];
        const struct plan_row *to = &plan->rows[transfer->to];
        if (transfer->bytes > 0) {
            assert_near(transfer->bytes, KEPT / 4.0);
            ck_assert_uint_eq(from->team_number / 2, to->team_number);
            parts += transfer->bytes;
        }
    }
    assert_near(parts, KEPT);
    for (uint32_t d = 0; d < 6; d++) {
        assert_near(plan->uses[d].bytes_out, d < 4 ? KEPT / 4.0 : 0);
        assert_near(plan->uses[d].bytes_in, d < 4 ? 0 : KEPT / 2.0);
        ck_assert(plan->uses[d].memory_bytes >= (WEIGHTS + KEPT) / (d < 4 ? 4.0 : 2.0));
    }
}
END_TEST

/* ---------------------------------------------------------------- a model's answer */

/* Llama 3's 8 x 10^9 in int8 on two H100, 256 tokens after a prompt of one: each reads half of
 * 218,103,808 bytes of each layer and of 525 MB of the last product for each token, at 3.35 TB/s;
 * 64 sums of 8,192 bytes, of two rounds of 2 us and half of that at 450 GB/s, and one round for
 * half of 128,256 figures. What else there is takes less than a 20th of that. */
START_TEST(two_devices_read_half_of_the_weights_each_for_each_token)
{
    static const char *const settings[][2] = {
        {"dtype", "fp16"}, {"weights", "int8"}, {"prompt", "1"}, {"answer", "256"}};
    const struct template *llm = template_named("llm");
    CLEANUP(device_set_destroy) struct device_set *set = device_set_create();
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    int64_t values[TEMPLATE_PARAMETERS];
    struct device_set_links links = device_set_defaults();
    const struct catalogue_device *known = NULL;
    struct plan_device list[2];
    struct problem problem = {""};
    template_begin(llm, values);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        ck_assert(template_set(llm, settings[i][0], settings[i][1], values, &problem));
    }
    ck_assert_int_eq(template_create(llm, values, &steps, &problem), STEPS_OK);
    ck_assert_int_eq(device_set_find("h100", &known, &problem), DEVICE_SET_OK);
    for (uint32_t d = 0; d < 2; d++) {
        ck_assert_int_eq(device_set_add(set, 0, known, NULL, NULL, false, 2500000, &problem),
                         DEVICE_SET_OK);
    }
    ck_assert_int_eq(device_set_link(set, &links, &problem), DEVICE_SET_OK);
    for (uint32_t d = 0; d < 2; d++) {
        list[d] = (struct plan_device){.name = set->items[d].name,
                                       .cost = &set->items[d].cost,
                                       .memory = set->items[d].memory,
                                       .price_micro = 2500000};
    }
    const struct plan_input input = {.steps = steps,
                                     .template = llm,
                                     .values = values,
                                     .devices = list,
                                     .device_count = 2,
                                     .topology = set->topology,
                                     .budget_micro = LIMIT_NONE,
                                     .may_leave_out = true,
                                     .effort = PLAN_EFFORT};
    CLEANUP(plan_destroy) struct plan *plan = made(&input);
    const double layer = 4096.0 * 48 * 128 + 4096.0 * 4096 + 3 * 4096.0 * 14336;
    const double weights_s = 256 * (32 * layer + 128256.0 * 4096) / 2 / 3.35e12;
    const double sums_s = 256 * 64 * 2 * (2e-6 + 8192 / 2.0 / 450e9);
    const double figures_s = 256 * (2e-6 + 128256.0 * 2 / 2 / 450e9);
    const double least_s = weights_s + sums_s + figures_s;
    ck_assert_double_eq(layer, 218103808);
    ck_assert_str_eq(plan->found_by, "layers divided over 2 devices");
    ck_assert_msg(plan->total.makespan_s.value > least_s &&
                      plan->total.makespan_s.value < 1.05 * least_s,
                  "%g, at least %g", plan->total.makespan_s.value, least_s);
}
END_TEST

SUITE("plan_team", NULL, NULL, TEST(a_stage_takes_a_part_of_its_work_and_the_rounds_of_its_sums),
      TEST(all_of_its_devices_are_leased_and_have_a_part), TEST(a_part_fits_where_a_layer_does_not),
      TEST(stages_may_be_held_by_two_each), TEST(groups_may_have_shares_of_the_batch),
      TEST(why_layers_are_not_divided_is_said),
      TEST(a_team_is_taken_away_as_often_as_all_of_its_devices),
      TEST(what_is_kept_goes_in_parts_from_where_it_is_to_where_it_is_needed),
      TEST(two_devices_read_half_of_the_weights_each_for_each_token))
