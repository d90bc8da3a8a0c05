/* Plans of random work on random devices keep to what edges, devices, ports and memories say, no
 * single device is better, limits are kept or refused, and the same input gives the same plan. The
 * checks look at a plan's rows alone, at every moment at which something begins or ends. */
#include "base/cleanup.h"
#include "base/random.h"
#include "planner/layout/plan.h"
#include "tests/support/random_plans.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <string.h>

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

int main(void)
{
    Suite *suite = suite_create("plans");
    TCase *tcase = tcase_create("plans");
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, plans_are_sound_and_no_single_device_is_better);
    tcase_add_test(tcase, limits_are_kept_or_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
