/* Divisions of real kinds of work over devices of the catalogue: a device more never makes what is
 * asked for worse, with whatever links; what is shown of times, waits and transfers goes together;
 * no bound is beaten. */
#include "planner/layout/plan.h"

#include "base/cleanup.h"
#include "base/random.h"
#include "planner/cost/device_set.h"
#include "planner/templates/template_list.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CASES = 300, MACHINES = 3, MODELS = 8 };

static const double near = 1e-9;

struct machine {
    const char *model;
    uint64_t count;
    int64_t price_micro;
};

struct work {
    const struct template *template;
    int64_t values[TEMPLATE_PARAMETERS];
    struct steps *steps;
    struct machine machines[MACHINES];
    size_t machine_count;
    struct device_set_links links;
    enum plan_objective objective;
    struct spot_risk risk; /* of all devices */
};

struct answer {
    double merit; /* INFINITY: none */
    struct plan *plan;
};

static void set_value(struct work *work, const char *name, int64_t value)
{
    size_t at = template_parameter(work->template, name);
    ck_assert_uint_ne(at, TEMPLATE_NO_PARAMETER);
    work->values[at] = value;
}

static void set_text(struct work *work, const char *name, const char *text)
{
    struct problem problem;
    ck_assert_msg(template_set(work->template, name, text, work->values, &problem), "%s",
                  problem.text);
}

static void draw_work(struct work *work, struct random *dice)
{
    int64_t batch = INT64_C(1) << random_below(dice, 8);
    work->template = template_named(
        (const char *[]){"train", "train", "matmul", "llm", "diffusion"}[random_below(dice, 5)]);
    template_begin(work->template, work->values);
    if (work->template == template_named("train")) {
        set_text(work, "model", "gpt-2-xl");
        set_text(work, "tokenised", "yes");
        set_value(work, "sequence", 1024);
        set_value(work, "checkpoint", 0);
        set_value(work, "stages", 1 + 2 * (int64_t)random_below(dice, 2));
        set_value(work, "batch", batch);
    } else if (work->template == template_named("matmul")) {
        set_value(work, "m", batch * 257);
        set_value(work, "n", 64 << random_below(dice, 10));
        set_value(work, "k", 64 << random_below(dice, 10));
    } else if (work->template == template_named("llm")) {
        set_text(work, "model", "llama-3-8b");
        set_value(work, "batch", batch);
    } else {
        set_text(work, "model", "pixart-alpha");
        set_value(work, "batch", batch);
    }
    ck_assert_int_eq(template_create(work->template, work->values, &work->steps, NULL), STEPS_OK);
}

static void draw_devices(struct work *work, struct random *dice)
{
    static const char *const models[MODELS] = {"h100",    "mi300x", "l4",      "b200",
                                               "tpu-v6e", "h200",   "rtx4090", "h100"};
    static const double networks[] = {0, 1e6, 1.25e9, 1.25e10, 1e12};
    work->machine_count = 1 + (size_t)random_below(dice, MACHINES);
    for (size_t i = 0; i < work->machine_count; i++) {
        work->machines[i] =
            (struct machine){.model = models[random_below(dice, MODELS)],
                             .count = 1 + random_below(dice, 4),
                             .price_micro = 500000 * (1 + (int64_t)random_below(dice, 10))};
    }
    work->links = device_set_defaults();
    work->links.wires[DEVICE_SET_NETWORK].bandwidth = networks[random_below(dice, 5)];
    work->links.storage = 7e9;
    if (random_below(dice, 4) == 0) {
        work->links.wires[DEVICE_SET_FABRIC].bandwidth = 0;
    }
    work->objective = random_below(dice, 3) > 0
                          ? PLAN_TIME
                          : (enum plan_objective)random_below(dice, PLAN_OBJECTIVES);
}

static void add_machine(struct device_set *set, uint32_t host, const struct machine *machine)
{
    struct problem problem;
    const struct catalogue_device *known = NULL;
    ck_assert_msg(device_set_find(machine->model, &known, &problem) == DEVICE_SET_OK, "%s",
                  problem.text);
    for (uint64_t i = 0; i < machine->count; i++) {
        ck_assert_int_eq(
            device_set_add(set, host, known, NULL, NULL, false, machine->price_micro, &problem),
            DEVICE_SET_OK);
    }
}

/* Returns the answer of the forms single and split, without effort for others. */
static struct answer answer_of(const struct work *work)
{
    CLEANUP(device_set_destroy) struct device_set *set = device_set_create();
    struct plan_device list[DEVICE_SET_MOST];
    struct problem problem;
    struct plan_fault fault;
    struct answer answer = {.merit = INFINITY};
    ck_assert_ptr_nonnull(set);
    for (uint32_t i = 0; i < work->machine_count; i++) {
        add_machine(set, i, &work->machines[i]);
    }
    ck_assert_int_eq(device_set_link(set, &work->links, &problem), DEVICE_SET_OK);
    for (size_t d = 0; d < set->count; d++) {
        list[d] = (struct plan_device){.name = set->items[d].name,
                                       .cost = &set->items[d].cost,
                                       .memory = set->items[d].memory,
                                       .price_micro = set->items[d].price_micro,
                                       .risk = work->risk};
    }
    const struct plan_input input = {.steps = work->steps,
                                     .template = work->template,
                                     .values = work->values,
                                     .devices = list,
                                     .device_count = set->count,
                                     .topology = set->topology,
                                     .objective = work->objective,
                                     .budget_micro = LIMIT_NONE,
                                     .worth_micro = 100000000,
                                     .may_leave_out = true};
    if (plan_search(&input, &answer.plan, &fault) == PLAN_OK) {
        const struct plan_outcome *forms = answer.plan->forms;
        answer.merit =
            fmin(forms[PLAN_SINGLE].status == PLAN_OK ? forms[PLAN_SINGLE].merit : INFINITY,
                 forms[PLAN_SPLIT].status == PLAN_OK ? forms[PLAN_SPLIT].merit : INFINITY);
    }
    return answer;
}

/* A row waits when it does not work, and its inputs come over the transfers. */
static void check_rows(const struct plan *plan)
{
    ck_assert(plan->bound <= plan->total.merit * (1 + near));
    for (uint32_t i = 0; i < plan->row_count && plan->form == PLAN_SPLIT; i++) {
        const struct plan_row *row = &plan->rows[i];
        double waited_s = 0;
        double bytes = 0;
        double last_s = row->start_s;
        for (size_t k = 0; k < plan->wait_count; k++) {
            const struct plan_wait *wait = &plan->waits[k];
            if (wait->row == i) {
                ck_assert(wait->from_s >= last_s && wait->until_s > wait->from_s);
                waited_s += wait->until_s - wait->from_s;
                last_s = wait->until_s;
            }
        }
        for (size_t k = 0; k < plan->transfer_count; k++) {
            bytes += plan->transfers[k].to == i ? plan->transfers[k].bytes : 0;
            ck_assert(plan->transfers[k].finish_s <= plan->total.makespan_s.value * (1 + near));
        }
        ck_assert(last_s <= row->finish_s);
        ck_assert_double_eq_tol(row->finish_s - row->start_s - waited_s, row->busy_s,
                                near * row->finish_s);
        ck_assert_double_eq_tol(bytes, row->bytes_in, near * (1 + bytes));
    }
}

START_TEST(a_device_more_never_makes_it_worse)
{
    unsigned splits = 0;
    unsigned better = 0;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct random dice = random_seeded(seed);
        struct work work = {.machine_count = 0};
        draw_work(&work, &dice);
        draw_devices(&work, &dice);
        struct answer few = answer_of(&work);
        if (work.machine_count < MACHINES && random_below(&dice, 2) == 0) {
            work.machines[work.machine_count++] =
                (struct machine){.model = "l4", .count = 1, .price_micro = 9000000};
        } else {
            work.machines[random_below(&dice, work.machine_count)].count++;
        }
        struct answer more = answer_of(&work);
        ck_assert_msg(more.merit <= few.merit * (1 + near), "seed %d: %s by %s, %.9g, was %.9g",
                      (int)seed, work.template->name, plan_objective_name(work.objective),
                      more.merit, few.merit);
        better += more.merit < few.merit;
        if (more.plan != NULL) {
            splits += more.plan->form == PLAN_SPLIT;
            check_rows(more.plan);
        }
        plan_destroy(&few.plan);
        plan_destroy(&more.plan);
        steps_destroy(&work.steps);
    }
    ck_assert_msg(splits > CASES / 6 && better > CASES / 10, "%u divided, %u better", splits,
                  better);
}
END_TEST

/* One device of three works alone: what it may be given in parts nobody else takes from it. */
static void draw_risk(struct work *work, struct random *dice)
{
    static const double rates[] = {0.5, 6, 60, 600, 36000};
    if (random_below(dice, 3) == 0) {
        work->machine_count = 1;
        work->machines[0].count = 1;
    }
    work->risk = (struct spot_risk){.per_hour = rates[random_below(dice, 5)],
                                    .restart_s = (double)random_below(dice, 30),
                                    .checkpoint_s = (double)random_below(dice, 3)};
    work->risk.interval_s = spot_interval(&work->risk);
}

START_TEST(no_plan_is_below_its_bound_where_devices_may_be_taken_away)
{
    unsigned in_parts = 0;
    unsigned plans = 0;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct random dice = random_seeded(seed + CASES);
        struct work work = {.machine_count = 0};
        draw_work(&work, &dice);
        draw_devices(&work, &dice);
        draw_risk(&work, &dice);
        struct answer answer = answer_of(&work);
        if (answer.plan != NULL) {
            const struct plan *plan = answer.plan;
            ck_assert_msg(plan->time_bound_s <= plan->total.makespan_s.value * (1 + near),
                          "seed %d: %s takes %.9g s, bound %.9g s", (int)seed, work.template->name,
                          plan->total.makespan_s.value, plan->time_bound_s);
            check_rows(plan);
            in_parts += plan->rows[0].rounds > 1;
            plans++;
        }
        plan_destroy(&answer.plan);
        steps_destroy(&work.steps);
    }
    ck_assert_msg(in_parts > CASES / 20 && plans > CASES / 3, "%u, %u in parts", plans, in_parts);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_split");
    TCase *tcase = tcase_create("split");
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, a_device_more_never_makes_it_worse);
    tcase_add_test(tcase, no_plan_is_below_its_bound_where_devices_may_be_taken_away);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
