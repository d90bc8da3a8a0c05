/* tests/support/random_plans.h draws random work and devices for plans, and holds a plan against
 * its bounds. One program includes it once. */
#ifndef BOURSE_TESTS_SUPPORT_RANDOM_PLANS_H
#define BOURSE_TESTS_SUPPORT_RANDOM_PLANS_H

#include "base/random.h"
#include "planner/layout/plan.h"
#include "tests/support/sample_work.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { CASES = 300, SOME = 100, FEW = 30, DEVICES = 4, STEPS = 9, COLUMNS = 3, PARAMETERS = 4 };

static const double near = 1e-9;

struct work {
    struct sample_device devices[DEVICES];
    struct plan_device list[DEVICES];
    struct steps *steps;
    struct topology *topology;
    uint32_t ports[DEVICES * DEVICES]; /* of each link */
    struct plan_input input;
    int64_t values[PARAMETERS];
};

static inline void work_fini(struct work *work)
{
    steps_destroy(&work->steps);
    topology_destroy(&work->topology);
}

/* Makes work from a seed, `values[1]`: the same shape for each batch, in which some costs grow with
 * the batch and some do not. */
static inline enum steps_status make_random(const int64_t *values, struct steps **ret_steps,
                                            struct problem *ret_problem)
{
    struct random dice = random_seeded((uint64_t)values[1]);
    int64_t batch = values[0];
    size_t count = 1 + (size_t)random_below(&dice, STEPS);
    bool is_chain = random_below(&dice, 2) == 0;
    struct steps *steps = sample_steps(count);
    (void)ret_problem;
    for (uint32_t s = 0; s < count; s++) {
        int64_t of_item = is_chain + (int64_t)random_below(&dice, 4);
        int64_t fixed = is_chain ? 0 : 1 + (int64_t)random_below(&dice, 3);
        bool is_bf16 = random_below(&dice, 3) == 0;
        int64_t units = fixed + batch * of_item;
        sample_units(steps, s, is_bf16 ? 0 : units, is_bf16 ? units : 0);
        uint32_t set = (uint32_t)random_below(&dice, s + 1);
        sample_weights(steps, s, set, 1, 100000000 * (1 + (int64_t)set % 3));
        steps->steps[s].held_bytes = batch * 5000000 * (int64_t)random_below(&dice, 4);
        steps->steps[s].working_bytes = 20000000;
        steps->steps[s].passes = 1 + (int64_t)random_below(&dice, 3);
        for (uint32_t from = 0; from < s; from++) {
            if (is_chain ? from + 1 == s : random_below(&dice, 3) == 0) {
                sample_edge(steps, from, s, batch * 10000000 * (int64_t)random_below(&dice, 5));
                struct step_edge *edge = &steps->edges[steps->edge_count - 1];
                edge->set_bytes = random_below(&dice, 2) == 0 ? edge->bytes / 2 : 0;
            }
        }
    }
    *ret_steps = steps;
    return STEPS_OK;
}

/* A line of a few columns: there, and around some rounds or back, and once. Work grows with the
 * batch, but for what is done once. */
static inline enum steps_status make_line_as(const int64_t *values, bool is_chain,
                                             struct steps **ret_steps)
{
    struct random dice = random_seeded((uint64_t)values[1]);
    int64_t batch = values[0];
    uint32_t columns = 2 + (uint32_t)random_below(&dice, COLUMNS - 1);
    bool is_ring = random_below(&dice, 2) == 0;
    uint32_t phases = is_ring ? 2 : 3;
    int64_t rounds = 1 + (int64_t)random_below(&dice, 12);
    struct steps *steps = sample_steps((size_t)columns * phases);
    for (uint32_t s = 0; s < columns * phases; s++) {
        uint32_t phase = s / columns;
        uint32_t column = phase == 1 && !is_ring ? columns - 1 - s % columns : s % columns;
        int64_t units = 1 + (int64_t)random_below(&dice, 3);
        bool is_bf16 = random_below(&dice, 4) == 0;
        units *= phase == 2 ? 1 : batch;
        units *= phase == 1 && is_ring ? rounds : 1;
        sample_units(steps, s, is_bf16 ? 0 : units, is_bf16 ? units : 0);
        sample_weights(steps, s, column, 1, 100000000);
        steps->steps[s].held_bytes = phase == 0 ? batch * 10000000 : 0;
        steps->steps[s].working_bytes = 1000000;
        steps->steps[s].column = (uint16_t)column;
        steps->steps[s].phase = (uint8_t)(phase == 0   ? STEP_FORWARD
                                          : phase == 2 ? STEP_ONCE
                                          : is_ring    ? STEP_DECODE
                                                       : STEP_BACKWARD);
    }
    for (uint32_t c = 0; c < columns; c++) {
        uint32_t second = is_ring ? columns + c : 2 * columns - 1 - c; /* of the same column */
        if (c + 1 < columns) {
            sample_edge(steps, c, c + 1, batch * 1000000);
            sample_edge(steps, columns + c, columns + c + 1,
                        batch * 1000000 * (is_ring ? rounds : 1));
        } else {
            sample_edge(steps, c, columns, is_ring ? batch * 4 : batch * 10000000);
        }
        if (is_ring || c + 1 < columns) {
            sample_edge(steps, c, second, batch * 10000000);
        }
        if (!is_ring) {
            sample_edge(steps, second, 2 * columns + c, 0);
        }
    }
    steps->column_count = is_chain ? columns : 0;
    steps->rounds = is_ring ? rounds : 0;
    steps->round_bytes = is_ring ? batch * 4 : 0;
    *ret_steps = steps;
    return STEPS_OK;
}

static inline enum steps_status make_coarse(const int64_t *values, struct steps **ret_steps,
                                            struct problem *ret_problem)
{
    (void)ret_problem;
    return make_line_as(values, false, ret_steps);
}

static inline enum steps_status make_fine(const int64_t *values, struct steps **ret_steps,
                                          struct problem *ret_problem)
{
    (void)ret_problem;
    return make_line_as(values, true, ret_steps);
}

static const struct template_parameter parameters[] = {
    {.name = "batch", .meaning = "items", .usual = 1, .least = 1, .most = 64, .is_batch = true},
    {.name = "seed", .meaning = "of the dice", .usual = 0, .least = 0, .most = 1 << 30},
    {.name = NULL},
};
static const struct template random_template = {
    .name = "random", .meaning = "random work", .parameters = parameters, .make = make_random};

static const struct template line_template = {.name = "line",
                                              .meaning = "a random line",
                                              .parameters = parameters,
                                              .make = make_coarse,
                                              .make_chain = make_fine};

static inline double one_of(struct random *dice, const double *values, size_t count)
{
    return values[random_below(dice, count)];
}

/* Some links are missing; some share a port with another. */
static inline struct topology *random_topology(struct random *dice, uint32_t memories,
                                               uint32_t *ret_ports)
{
    static const double bandwidths[] = {1e8, 1e9, 1e7};
    struct topology_link links[DEVICES * DEVICES];
    size_t count = 0;
    uint32_t ports = 1 + (uint32_t)random_below(dice, 6);
    struct topology *topology = NULL;
    for (uint32_t p = 0; p < memories; p++) {
        for (uint32_t q = 0; q < memories; q++) {
            if (p != q && random_below(dice, 5) > 0) {
                ret_ports[count] = (uint32_t)random_below(dice, ports);
                links[count] = (struct topology_link){.from = p,
                                                      .to = q,
                                                      .kind = TOPOLOGY_PEER,
                                                      .latency_s = 0.01,
                                                      .bandwidth = one_of(dice, bandwidths, 3),
                                                      .ports = {ret_ports[count]},
                                                      .port_count = 1};
                count++;
            }
        }
    }
    const struct topology_input input = {.memory_count = memories,
                                         .port_count = ports,
                                         .hosts = random_below(dice, 2),
                                         .links = links,
                                         .link_count = count};
    ck_assert_int_eq(topology_create(&input, &topology, NULL), TOPOLOGY_OK);
    return topology;
}

static inline void draw(struct work *work, uint64_t seed)
{
    static const double speeds[] = {1, 2, 3, 8};
    static const double memories[] = {SAMPLE_ENOUGH, 250e6, 500e6, 1e9, 4e9};
    struct random dice = random_seeded(seed);
    memset(work, 0, sizeof *work);
    work->values[0] = random_below(&dice, 4) > 0 ? 1 + (int64_t)random_below(&dice, 12) : 1;
    work->values[1] = (int64_t)seed;
    const struct template *made_by = seed % 4 == 3 ? &line_template : &random_template;
    ck_assert_int_eq(template_create(made_by, work->values, &work->steps, NULL), STEPS_OK);
    uint32_t count = 1 + (uint32_t)random_below(&dice, DEVICES);
    work->topology = random_topology(&dice, count, work->ports);
    work->input = (struct plan_input){
        .steps = work->steps,
        .template = random_below(&dice, 4) > 0 ? made_by : NULL,
        .values = work->values,
        .devices = work->list,
        .device_count = count,
        .topology = random_below(&dice, 8) > 0 ? work->topology : NULL,
        .objective = (enum plan_objective)random_below(&dice, PLAN_OBJECTIVES),
        .budget_micro = LIMIT_NONE,
        .worth_micro = 1 + (int64_t)random_below(&dice, 10000000000),
        .effort = 3000,
    };
    for (uint32_t d = 0; d < count; d++) {
        struct sample_device *device = &work->devices[d];
        sample_device(device, one_of(&dice, speeds, 4),
                      random_below(&dice, 5) > 0 ? one_of(&dice, speeds, 4) : 0);
        bool is_tight = made_by == &line_template && random_below(&dice, 2) == 0;
        sample_memory(device, is_tight ? 350e6 : one_of(&dice, memories, 5));
        sample_power(device, random_below(&dice, 6) > 0 ? 100.0 * (double)(1 + d) : 0);
        if (random_below(&dice, 4) == 0) {
            sample_stream(device, 1e8);
        }
        work->list[d] = (struct plan_device){
            .name = "device",
            .cost = &device->cost,
            .memory = random_below(&dice, 6) > 0 ? d : 0,
            .price_micro = random_below(&dice, 8) > 0 ? (int64_t)random_below(&dice, 10000000000)
                                                      : PLAN_UNPRICED,
            .risk = {.per_hour = random_below(&dice, 5) == 0 ? 10 : 0, .restart_s = 5}};
    }
}

/* Neither the plan nor what any form came to is below a bound, and the gap is that of the plan. */
static inline void check_bounds(const struct plan *plan, const char *what)
{
    double merit = plan->total.merit;
    ck_assert_msg(plan->bound <= merit && plan->time_bound_s <= plan->total.makespan_s.value,
                  "%s: %s takes %.17g, none less than %.17g", what, plan->found_by, merit,
                  plan->bound);
    ck_assert_msg(plan->bound > 0
                      ? fabs(plan->gap - (merit / plan->bound - 1)) <= near * (1 + plan->gap)
                      : plan->gap == -1 || merit == 0,
                  "%s: %s takes %.17g, none less than %.17g, gap %.17g", what, plan->found_by,
                  merit, plan->bound, plan->gap);
    for (int i = 0; i < PLAN_FORMS; i++) {
        const struct plan_outcome *form = &plan->forms[i];
        bool is_done = form->status == PLAN_OK && form->makespan_s.source != FIGURE_UNKNOWN;
        ck_assert_msg(!is_done || (form->makespan_s.value >= plan->time_bound_s &&
                                   form->merit >= plan->bound),
                      "%s: as %s %.17g in %.17g s, none less than %.17g, or sooner than %.17g s",
                      what, plan_form_name((enum plan_form)i), form->merit, form->makespan_s.value,
                      plan->bound, plan->time_bound_s);
    }
}

#endif
