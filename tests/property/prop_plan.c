/* Plans of random work on random devices: they keep to what edges, devices, ports and memories say,
 * no single device is better, no bound is beaten, limits are kept or refused, and the same input
 * gives the same plan. What a plan says is looked at from its rows alone, at every moment at which
 * something begins or ends. */
#include "planner/layout/plan.h"

#include "base/cleanup.h"
#include "base/random.h"
#include "planner/cost/device_set.h"
#include "planner/templates/template_list.h"
#include "tests/support/sample_work.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 300, SOME = 100, FEW = 30, DEVICES = 4, STEPS = 9, COLUMNS = 3, PARAMETERS = 4 };
enum { TEMPLATE_CASES = 300 };

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

static void work_fini(struct work *work)
{
    steps_destroy(&work->steps);
    topology_destroy(&work->topology);
}

/* ---------------------------------------------------------------- random work */

/* Makes work from a seed, `values[1]`: the same shape for each batch, in which some costs grow with
 * the batch and some do not. */
static enum steps_status make_random(const int64_t *values, struct steps **ret_steps,
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
static enum steps_status make_line_as(const int64_t *values, bool is_chain,
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

static enum steps_status make_coarse(const int64_t *values, struct steps **ret_steps,
                                     struct problem *ret_problem)
{
    (void)ret_problem;
    return make_line_as(values, false, ret_steps);
}

static enum steps_status make_fine(const int64_t *values, struct steps **ret_steps,
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

static double one_of(struct random *dice, const double *values, size_t count)
{
    return values[random_below(dice, count)];
}

/* Some links are missing; some share a port with another. */
static struct topology *random_topology(struct random *dice, uint32_t memories, uint32_t *ret_ports)
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

static void draw(struct work *work, uint64_t seed)
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

/* ---------------------------------------------------------------- what a plan has to be */

static const struct plan_row *row_of(const struct plan *plan, uint32_t step)
{
    const struct plan_row *found = NULL;
    for (size_t i = 0; i < plan->row_count; i++) {
        if (plan->rows[i].first_step == step) {
            ck_assert_ptr_null(found);
            found = &plan->rows[i];
        }
    }
    ck_assert_ptr_nonnull(found);
    return found;
}

static const struct plan_transfer *transfer_of(const struct plan *plan, const struct plan_row *from,
                                               const struct plan_row *to)
{
    for (size_t i = 0; i < plan->transfer_count; i++) {
        if (&plan->rows[plan->transfers[i].from] == from &&
            &plan->rows[plan->transfers[i].to] == to) {
            return &plan->transfers[i];
        }
    }
    return NULL;
}

static bool meet(double a_from, double a_until, double b_from, double b_until)
{
    return fmax(a_from, b_from) < fmin(a_until, b_until) - near;
}

/* Devices do one thing at a time; what was not carried has not come. */
static void check_times(const struct work *work, const struct plan *plan)
{
    for (size_t i = 0; i < plan->row_count; i++) {
        const struct plan_row *row = &plan->rows[i];
        ck_assert(row->start_s >= 0 && row->finish_s <= plan->total.makespan_s.value + near);
        for (size_t j = i + 1; j < plan->row_count; j++) {
            const struct plan_row *other = &plan->rows[j];
            ck_assert(row->device != other->device ||
                      !meet(row->start_s, row->finish_s, other->start_s, other->finish_s));
        }
    }
    if ((plan->form != PLAN_SINGLE && plan->form != PLAN_GRAPH) || plan->rows[0].rounds > 1) {
        return;
    }
    ck_assert_uint_eq(plan->row_count, work->steps->step_count);
    for (size_t i = 0; i < work->steps->edge_count; i++) {
        const struct step_edge *edge = &work->steps->edges[i];
        const struct plan_row *from = row_of(plan, edge->from);
        const struct plan_row *to = row_of(plan, edge->to);
        const struct plan_transfer *transfer = transfer_of(plan, from, to);
        uint32_t source = work->list[from->device].memory;
        uint32_t target = work->list[to->device].memory;
        if (source == target) {
            ck_assert_ptr_null(transfer);
            ck_assert(to->start_s >= from->finish_s);
            continue;
        }
        struct topology_transfer alone;
        ck_assert_ptr_nonnull(transfer);
        ck_assert_double_eq(transfer->bytes, (double)edge->bytes);
        ck_assert(transfer->start_s >= from->finish_s && to->start_s >= transfer->finish_s);
        ck_assert_int_eq(topology_find(work->topology, NULL, UINT64_C(1) << source, target,
                                       edge->bytes, 0, &alone),
                         TOPOLOGY_OK);
        ck_assert(transfer->finish_s - transfer->start_s >= alone.finish_s - near);
    }
}

/* A port carries one transfer at a time. */
static void check_ports(const struct work *work, const struct plan *plan)
{
    for (size_t i = 0; i < plan->transfer_count; i++) {
        for (size_t j = i + 1; j < plan->transfer_count; j++) {
            const struct plan_transfer *a = &plan->transfers[i];
            const struct plan_transfer *b = &plan->transfers[j];
            for (uint32_t k = 0; k < a->link_count; k++) {
                for (uint32_t l = 0; l < b->link_count; l++) {
                    ck_assert(work->ports[a->links[k]] != work->ports[b->links[l]] ||
                              !meet(a->start_s, a->finish_s, b->start_s, b->finish_s));
                }
            }
        }
    }
}

static double kept_of(const struct work *work, uint32_t step)
{
    double kept = (double)work->steps->steps[step].held_bytes;
    for (size_t i = 0; i < work->steps->edge_count; i++) {
        const struct step_edge *edge = &work->steps->edges[i];
        kept -=
            edge->from == step || edge->to == step ? (double)(edge->bytes - edge->set_bytes) : 0;
    }
    return fmax(kept, 0);
}

/* Returns what a device holds between one event and the next. */
static double held_at(const struct work *work, const struct plan *plan, uint32_t device,
                      double at_s)
{
    const struct steps *steps = work->steps;
    bool has_set[STEPS + 1] = {false};
    bool is_streamed = false;
    double sum = 0;
    for (uint32_t s = 0; s < steps->step_count; s++) {
        const struct plan_row *row = row_of(plan, s);
        const struct step *step = &steps->steps[s];
        if (row->device != device) {
            continue;
        }
        is_streamed = is_streamed || row->is_streamed;
        sum += kept_of(work, s);
        if (row->start_s <= at_s && at_s < row->finish_s) {
            sum += (double)step->held_bytes - kept_of(work, s) + (double)step->working_bytes;
        }
        has_set[step->first_set] = true;
    }
    for (uint32_t i = 0; i < steps->set_count && !is_streamed; i++) {
        sum += has_set[i] ? (double)steps->sets[i] : 0;
    }
    for (size_t i = 0; i < steps->edge_count; i++) {
        const struct step_edge *edge = &steps->edges[i];
        const struct plan_row *from = row_of(plan, edge->from);
        const struct plan_row *to = row_of(plan, edge->to);
        const struct plan_transfer *transfer = transfer_of(plan, from, to);
        double until_s = transfer == NULL ? to->start_s : transfer->finish_s;
        double since_s = transfer == NULL ? INFINITY : transfer->start_s;
        bool is_leaving = from->device == device && from->finish_s <= at_s && at_s < until_s;
        bool is_coming = to->device == device && since_s <= at_s && at_s < to->start_s;
        sum += is_leaving || is_coming ? (double)(edge->bytes - edge->set_bytes) : 0;
    }
    return sum;
}

static void check_memory(const struct work *work, const struct plan *plan)
{
    if ((plan->form != PLAN_SINGLE && plan->form != PLAN_GRAPH) || plan->rows[0].rounds > 1) {
        return;
    }
    for (uint32_t d = 0; d < work->input.device_count; d++) {
        const struct figure *memory = &work->devices[d].profile.figures[FIGURE_MEMORY];
        double most = 0;
        for (size_t i = 0; i < plan->row_count && plan->uses[d].row_count > 0; i++) {
            most = fmax(most, held_at(work, plan, d, plan->rows[i].start_s));
            most = fmax(most, held_at(work, plan, d, plan->rows[i].finish_s));
        }
        for (size_t i = 0; i < plan->transfer_count; i++) {
            most = fmax(most, held_at(work, plan, d, plan->transfers[i].start_s));
        }
        ck_assert(plan->uses[d].row_count == 0 || plan->uses[d].memory_bytes >= most - 1);
        ck_assert(plan->uses[d].row_count == 0 || memory->source == FIGURE_UNKNOWN ||
                  most <= memory->value + 1);
    }
}

/* Neither the plan nor what any form came to is below a bound, and the gap is that of the plan. */
static void check_bounds(const struct plan *plan, const char *what)
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

static void check_sums(const struct work *work, const struct plan *plan)
{
    const struct plan_input *input = &work->input;
    int64_t price = 0;
    double busy_s = 0;
    double rows_s = 0;
    for (uint32_t d = 0; d < input->device_count; d++) {
        const struct plan_use *use = &plan->uses[d];
        ck_assert(use->busy_s <= use->last_s - use->first_s + near);
        ck_assert(use->share <= 1 + near);
        price = price < 0 || use->price_micro < 0 ? PLAN_UNPRICED : price + use->price_micro;
        busy_s += use->busy_s;
    }
    for (size_t i = 0; i < plan->row_count; i++) {
        const struct plan_use *use = &plan->uses[plan->rows[i].device];
        ck_assert(use->first_s <= plan->rows[i].start_s && use->last_s >= plan->rows[i].finish_s);
        rows_s += plan->rows[i].busy_s;
    }
    ck_assert_double_eq_tol(busy_s, rows_s, near * (1 + rows_s));
    ck_assert(plan->total.price_micro == price);
    ck_assert(!(input->deadline_s > 0) || plan->total.makespan_s.value <= input->deadline_s);
    ck_assert(input->budget_micro < 0 || (price >= 0 && price <= input->budget_micro));
    ck_assert(plan->gap >= 0);
    check_bounds(plan, "random work");
    for (int i = 0; i < PLAN_FORMS; i++) {
        const struct plan_outcome *form = &plan->forms[i];
        bool is_done = form->status == PLAN_OK && form->makespan_s.source != FIGURE_UNKNOWN;
        ck_assert(!is_done || form->merit >= plan->total.merit * (1 - 2 * near));
    }
}

/* Whatever is made in parts: one of them fits, and its device does them one after the other. */
static void check_parts(const struct work *work, const struct plan *plan)
{
    for (size_t i = 0; i < plan->row_count; i++) {
        const struct plan_row *row = &plan->rows[i];
        const struct figure *memory = &work->devices[row->device].profile.figures[FIGURE_MEMORY];
        if (row->rounds > 1) {
            ck_assert_int_le(row->rounds, row->items);
            ck_assert(plan->uses[row->device].memory_bytes <= memory->value);
            ck_assert_uint_eq(plan->uses[row->device].row_count, 1);
            ck_assert_double_eq_tol(row->busy_s, plan->uses[row->device].busy_s,
                                    near * (1 + row->busy_s));
        }
    }
}

/* Each device as if it were the only one. */
static void check_singles(const struct work *work, const struct plan *plan)
{
    for (uint32_t d = 0; d < work->input.device_count; d++) {
        struct plan_input alone = work->input;
        CLEANUP(plan_destroy) struct plan *single = NULL;
        struct plan_fault fault;
        alone.devices = &work->list[d];
        alone.device_count = 1;
        if (plan_search(&alone, &single, &fault) == PLAN_OK &&
            single->forms[PLAN_SINGLE].status == PLAN_OK) {
            ck_assert_ptr_nonnull(plan);
            ck_assert_msg(plan->total.merit <= single->total.merit * (1 + 2 * near),
                          "seed %d: %s %g, alone %g", (int)work->values[1],
                          plan_form_name(plan->form), plan->total.merit, single->total.merit);
        }
    }
}

/* Checks the stages of a line: a row waits when it does not work, each device does one stage, and
 * all of them fit. */
static void check_line(const struct work *work, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->row_count; i++) {
        const struct plan_row *row = &plan->rows[i];
        const struct figure *memory = &work->devices[row->device].profile.figures[FIGURE_MEMORY];
        double waited_s = 0;
        double last_s = row->start_s;
        for (size_t k = 0; k < plan->wait_count; k++) {
            const struct plan_wait *wait = &plan->waits[k];
            if (wait->row == i) {
                ck_assert(wait->from_s >= last_s - near && wait->until_s > wait->from_s);
                waited_s += wait->until_s - wait->from_s;
                last_s = wait->until_s;
            }
        }
        ck_assert(last_s <= row->finish_s + near * row->finish_s);
        ck_assert_double_eq_tol(row->finish_s - row->start_s - waited_s, row->busy_s,
                                near * (1 + row->finish_s) * 10);
        ck_assert_uint_eq(plan->uses[row->device].row_count, 1);
        ck_assert(memory->source == FIGURE_UNKNOWN ||
                  plan->uses[row->device].memory_bytes <= memory->value);
        ck_assert(plan->uses[row->device].memory_bytes >= 100000000);
    }
    ck_assert_int_ge(plan->micro_batches * plan->micro_batch_items, work->values[0]);
}

static bool is_same(const struct plan *a, const struct plan *b)
{
    return a->form == b->form && a->row_count == b->row_count &&
           a->transfer_count == b->transfer_count && a->bound == b->bound &&
           memcmp(a->rows, b->rows, a->row_count * sizeof *a->rows) == 0 &&
           memcmp(a->uses, b->uses, a->device_count * sizeof *a->uses) == 0 &&
           (a->names == NULL || memcmp(a->names, b->names, a->row_count * sizeof *a->names) == 0);
}

START_TEST(plans_are_sound_and_no_single_device_is_better)
{
    unsigned counts[PLAN_FORMS] = {0};
    unsigned refusals[PLAN_NO_MEMORY + 1] = {0}, lines = 0;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        CLEANUP(work_fini) struct work work;
        CLEANUP(plan_destroy) struct plan *plan = NULL;
        CLEANUP(plan_destroy) struct plan *again = NULL;
        struct plan_fault fault;
        draw(&work, seed);
        enum plan_status status = plan_search(&work.input, &plan, &fault);
        ck_assert_int_eq(plan_search(&work.input, &again, &fault), status);
        refusals[status]++;
        check_singles(&work, plan);
        if (status != PLAN_OK) {
            ck_assert_str_ne(fault.problem.text, "");
            continue;
        }
        counts[plan->form]++;
        ck_assert(is_same(plan, again));
        check_times(&work, plan);
        check_ports(&work, plan);
        check_memory(&work, plan);
        check_sums(&work, plan);
        check_parts(&work, plan);
        if (plan->names != NULL) {
            lines++;
            check_line(&work, plan);
        }
    }
    ck_assert_msg(lines > 4, "%u lines", lines);
    for (int i = 0; i < PLAN_FORMS; i++) {
        ck_assert_msg(counts[i] > 3, "%s: %u", plan_form_name((enum plan_form)i), counts[i]);
    }
    ck_assert(refusals[PLAN_NOWHERE] > 0 && refusals[PLAN_NO_ROOM] > 0);
}
END_TEST

/* Limits around what came without any. */
START_TEST(limits_are_kept_or_refused)
{
    unsigned kept = 0;
    unsigned refused = 0;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        CLEANUP(work_fini) struct work work;
        CLEANUP(plan_destroy) struct plan *free_plan = NULL;
        CLEANUP(plan_destroy) struct plan *plan = NULL;
        struct plan_fault fault;
        struct random dice = random_seeded(seed + CASES);
        draw(&work, seed);
        if (plan_search(&work.input, &free_plan, &fault) != PLAN_OK) {
            continue;
        }
        double share = 0.6 + 0.05 * (double)random_below(&dice, 12);
        bool has_price = free_plan->total.price_micro >= 0;
        if (random_below(&dice, 2) == 0 || !has_price) {
            work.input.deadline_s = free_plan->total.makespan_s.value * share;
        } else {
            work.input.budget_micro = (int64_t)((double)free_plan->total.price_micro * share);
        }
        enum plan_status status = plan_search(&work.input, &plan, &fault);
        if (status == PLAN_OK) {
            kept++;
            check_sums(&work, plan);
        } else {
            refused++;
            ck_assert_msg(status == PLAN_DEADLINE || status == PLAN_BUDGET ||
                              status == PLAN_NO_PRICE,
                          "seed %d: %s", (int)seed, plan_status_name(status));
            ck_assert(status == PLAN_NO_PRICE || fault.least >= fault.bound);
            ck_assert(status != PLAN_DEADLINE || fault.least > work.input.deadline_s);
            ck_assert(status != PLAN_BUDGET || fault.least > (double)work.input.budget_micro);
            ck_assert(share < 1);
        }
        check_singles(&work, plan);
    }
    ck_assert(kept > 50 && refused > 50);
}
END_TEST

/* Returns the figure that the objective is about; below 0: unknown. */
static double measure_of(const struct plan *plan, const struct plan_input *input,
                         enum plan_objective objective)
{
    double price = (double)plan->total.price_micro;
    double time_s = plan->total.makespan_s.value;
    switch (objective) {
    case PLAN_TIME:
        return time_s;
    case PLAN_PRICE:
        return price;
    case PLAN_ENERGY:
        return plan->total.energy_j.source == FIGURE_UNKNOWN ? -1 : plan->total.energy_j.value;
    case PLAN_VALUE:
        return price < 0 ? -1 : price + time_s / 3600 * (double)input->worth_micro;
    case PLAN_OBJECTIVES:
        break;
    }
    return -1;
}

/* Each objective's plan beside that of each other, with and without limits. */
START_TEST(no_objective_is_beaten_by_the_plan_of_another)
{
    unsigned unlike = 0;
    unsigned limited = 0;
    for (uint64_t seed = 0; seed < SOME; seed++) {
        CLEANUP(work_fini) struct work work;
        struct plan *plans[PLAN_OBJECTIVES] = {NULL};
        struct plan_fault fault;
        draw(&work, seed);
        work.input.effort = PLAN_EFFORT / 64;
        if (seed % 2 == 1) { /* a limit between what two of them come to */
            CLEANUP(plan_destroy) struct plan *quick = NULL;
            CLEANUP(plan_destroy) struct plan *cheap = NULL;
            work.input.objective = PLAN_TIME;
            enum plan_status status = plan_search(&work.input, &quick, &fault);
            work.input.objective = PLAN_PRICE;
            if (status == PLAN_OK && plan_search(&work.input, &cheap, &fault) == PLAN_OK) {
                work.input.deadline_s =
                    (quick->total.makespan_s.value + cheap->total.makespan_s.value) / 2;
                limited++;
            }
        }
        for (int i = 0; i < PLAN_OBJECTIVES; i++) {
            work.input.objective = (enum plan_objective)i;
            (void)plan_search(&work.input, &plans[i], &fault);
        }
        for (int i = 0; i < PLAN_OBJECTIVES; i++) {
            for (int k = 0; k < PLAN_OBJECTIVES && plans[i] != NULL; k++) {
                double own = measure_of(plans[i], &work.input, (enum plan_objective)i);
                double other = plans[k] == NULL
                                   ? -1
                                   : measure_of(plans[k], &work.input, (enum plan_objective)i);
                ck_assert(own >= 0);
                ck_assert_msg(other < 0 || own <= other * (1 + 4 * near),
                              "seed %d: by %s %.12g, by %s %.12g", (int)seed,
                              plan_objective_name((enum plan_objective)i), own,
                              plan_objective_name((enum plan_objective)k), other);
                unlike += other > own * (1 + near);
            }
        }
        for (int i = 0; i < PLAN_OBJECTIVES; i++) {
            plan_destroy(&plans[i]);
        }
    }
    ck_assert(unlike > SOME / 2 && limited > SOME / 4);
}
END_TEST

/* The plan of some objective meets figures that each objective of known figures can meet. Within
 * these figures no plan is worse than that one, because that one was found. */
static unsigned hold_to(struct work *work, const struct plan *free_plan, uint64_t seed,
                        enum plan_objective of)
{
    unsigned met = 0;
    for (int k = 0; k < PLAN_OBJECTIVES; k++) {
        CLEANUP(plan_destroy) struct plan *plan = NULL;
        struct plan_fault fault;
        work->input.objective = (enum plan_objective)k;
        const enum plan_status status = plan_search(&work->input, &plan, &fault);
        const double known = measure_of(free_plan, &work->input, (enum plan_objective)k);
        ck_assert_msg(status == PLAN_OK || known < 0, "seed %d: %s after %s: %s", (int)seed,
                      plan_objective_name((enum plan_objective)k), plan_objective_name(of),
                      fault.problem.text);
        const double own =
            plan == NULL ? -1 : measure_of(plan, &work->input, (enum plan_objective)k);
        ck_assert_msg(known < 0 || own <= known * (1 + 4 * near),
                      "seed %d: within the plan by %s, by %s %.12g and not %.12g", (int)seed,
                      plan_objective_name(of), plan_objective_name((enum plan_objective)k), own,
                      known);
        met += status == PLAN_OK;
    }
    return met;
}

START_TEST(what_a_plan_meets_is_not_refused_and_makes_none_worse_than_it)
{
    unsigned met = 0;
    for (uint64_t seed = 0; seed < FEW; seed++) {
        CLEANUP(work_fini) struct work work;
        struct plan_fault fault;
        draw(&work, seed);
        work.input.effort = PLAN_EFFORT / 64;
        for (int i = 0; i < PLAN_OBJECTIVES; i++) {
            CLEANUP(plan_destroy) struct plan *free_plan = NULL;
            work.input.objective = (enum plan_objective)i;
            if (plan_search(&work.input, &free_plan, &fault) != PLAN_OK) {
                continue;
            }
            work.input.deadline_s = free_plan->total.makespan_s.value;
            met += hold_to(&work, free_plan, seed, (enum plan_objective)i);
            work.input.deadline_s = 0;
            if (seed % 3 == 0 && free_plan->total.price_micro >= 0) {
                work.input.budget_micro = free_plan->total.price_micro;
                met += hold_to(&work, free_plan, seed, (enum plan_objective)i);
                work.input.budget_micro = LIMIT_NONE;
            }
        }
    }
    ck_assert(met > 5 * FEW);
}
END_TEST

/* One device less in turn: the rest is no better for any objective. */
START_TEST(a_device_more_makes_no_plan_worse)
{
    unsigned helped = 0;
    unsigned compared = 0;
    for (uint64_t seed = 0; seed < SOME; seed++) {
        CLEANUP(work_fini) struct work work;
        CLEANUP(plan_destroy) struct plan *all = NULL;
        struct plan_fault fault;
        draw(&work, seed);
        work.input.effort = PLAN_EFFORT / 64;
        enum plan_status status = plan_search(&work.input, &all, &fault);
        for (uint32_t gone = 0; gone < work.input.device_count && work.input.device_count > 1;
             gone++) {
            CLEANUP(plan_destroy) struct plan *fewer = NULL;
            struct plan_device list[DEVICES];
            struct plan_input input = work.input;
            input.devices = list;
            input.device_count = 0;
            for (uint32_t d = 0; d < work.input.device_count; d++) {
                if (d != gone) {
                    list[input.device_count++] = work.list[d];
                }
            }
            if (plan_search(&input, &fewer, &fault) != PLAN_OK) {
                continue;
            }
            ck_assert_int_eq(status, PLAN_OK);
            ck_assert_msg(all->total.merit <= fewer->total.merit * (1 + 4 * near),
                          "seed %d: by %s with device %d %.12g, without %.12g", (int)seed,
                          plan_objective_name(input.objective), (int)gone, all->total.merit,
                          fewer->total.merit);
            compared++;
            helped += all->total.merit < fewer->total.merit * (1 - near);
        }
    }
    ck_assert(compared > SOME && helped > SOME / 8);
}
END_TEST

/* ---------------------------------------------------------------- templates on devices of the
 * catalogue */

struct catalogued {
    const struct template *template;
    int64_t values[TEMPLATE_PARAMETERS];
    struct steps *steps;
    struct device_set *set;
    struct plan_device list[DEVICES];
    struct plan_input input;
};

static void catalogued_fini(struct catalogued *work)
{
    steps_destroy(&work->steps);
    device_set_destroy(&work->set);
}

/* Draws the usual values of a preset, or fewer, where there are presets. */
static void draw_values(struct catalogued *work, struct random *dice)
{
    const struct template *template = work->template;
    size_t presets = 0;
    template_begin(template, work->values);
    while (template->presets != NULL && template->presets[presets].name != NULL) {
        presets++;
    }
    for (size_t i = 0; i < template_parameters(template); i++) {
        const struct template_parameter *parameter = &template->parameters[i];
        if (parameter->choices != NULL) {
            work->values[i] = (int64_t)random_below(dice, (uint64_t)parameter->most + 1);
        } else if (random_below(dice, 2) == 0) {
            work->values[i] -=
                (int64_t)random_below(dice, (uint64_t)(parameter->usual - parameter->least) + 1);
        }
    }
    if (presets > 0) {
        const char *name = template->presets[random_below(dice, presets)].name;
        ck_assert(template_set(template, TEMPLATE_PRESET, name, work->values, NULL));
    }
    size_t batch = template_batch(template);
    if (batch != TEMPLATE_NO_PARAMETER) {
        int64_t grain = template_grain(template);
        work->values[batch] = grain * (1 + (int64_t)random_below(dice, 8));
    }
}

static void draw_devices(struct catalogued *work, struct random *dice)
{
    static const char *const models[] = {"nvidia-l40s", "nvidia-h200-sxm", "nvidia-b200-hgx",
                                         "nvidia-l4", "google-tpu-v5e"};
    struct device_set_links links = device_set_defaults();
    struct problem problem = {""};
    uint32_t count = 1 + (uint32_t)random_below(dice, DEVICES);
    links.storage = 7e9;
    links.may_stream = random_below(dice, 4) == 0;
    work->set = device_set_create();
    ck_assert_ptr_nonnull(work->set);
    for (uint32_t d = 0; d < count; d++) {
        const struct catalogue_device *known =
            catalogue_find(models[random_below(dice, sizeof models / sizeof models[0])]);
        uint32_t host = (uint32_t)random_below(dice, work->set->host_count + 1u);
        int64_t price = 1000000 + (int64_t)random_below(dice, 4000000);
        ck_assert_ptr_nonnull(known);
        ck_assert_int_eq(device_set_add(work->set, host, known, NULL, NULL, false, price, &problem),
                         DEVICE_SET_OK);
    }
    ck_assert_int_eq(device_set_link(work->set, &links, &problem), DEVICE_SET_OK);
    for (size_t d = 0; d < work->set->count; d++) {
        const struct device_set_item *item = &work->set->items[d];
        work->list[d] = (struct plan_device){.name = item->name,
                                             .cost = &item->cost,
                                             .memory = item->memory,
                                             .price_micro = item->price_micro};
    }
}

/* False: there is no such work. */
static bool draw_catalogued(struct catalogued *work, uint64_t seed)
{
    struct random dice = random_seeded(seed);
    *work = (struct catalogued){.template = template_at((size_t)(seed % template_count()))};
    draw_values(work, &dice);
    draw_devices(work, &dice);
    if (template_create(work->template, work->values, &work->steps, NULL) != STEPS_OK) {
        return false;
    }
    work->input = (struct plan_input){
        .steps = work->steps,
        .template = work->template,
        .values = work->values,
        .devices = work->list,
        .device_count = work->set->count,
        .topology = work->set->topology,
        .objective = (enum plan_objective)(seed / template_count() % PLAN_OBJECTIVES),
        .budget_micro = LIMIT_NONE,
        .worth_micro = 1 + (int64_t)random_below(&dice, 100000000),
        .may_leave_out = true,
        .effort = 3000,
    };
    return true;
}

START_TEST(no_plan_of_a_template_is_below_its_bound)
{
    unsigned made = 0;
    unsigned lines = 0;
    for (uint64_t seed = 0; seed < TEMPLATE_CASES; seed++) {
        CLEANUP(catalogued_fini) struct catalogued work;
        CLEANUP(plan_destroy) struct plan *plan = NULL;
        struct plan_fault fault;
        char what[80];
        if (!draw_catalogued(&work, seed) || plan_search(&work.input, &plan, &fault) != PLAN_OK) {
            continue;
        }
        (void)snprintf(what, sizeof what, "seed %d: %s by %s", (int)seed, work.template->name,
                       plan_objective_name(work.input.objective));
        check_bounds(plan, what);
        made++;
        lines += plan->names != NULL;
    }
    ck_assert_msg(made > TEMPLATE_CASES / 3 && lines > 4, "%u plans, %u lines", made, lines);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plans");
    TCase *tcase = tcase_create("plans");
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, plans_are_sound_and_no_single_device_is_better);
    tcase_add_test(tcase, limits_are_kept_or_refused);
    TCase *aims = tcase_create("objectives");
    tcase_set_timeout(aims, 600);
    tcase_add_test(aims, no_objective_is_beaten_by_the_plan_of_another);
    tcase_add_test(aims, what_a_plan_meets_is_not_refused_and_makes_none_worse_than_it);
    tcase_add_test(aims, a_device_more_makes_no_plan_worse);
    TCase *templates = tcase_create("templates");
    tcase_set_timeout(templates, 600);
    tcase_add_test(templates, no_plan_of_a_template_is_below_its_bound);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, aims);
    suite_add_tcase(suite, templates);
    return suite_run(suite);
}
