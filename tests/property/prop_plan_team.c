/* Layers divided over devices of the catalogue: never worse than undivided, no memory is overrun,
 * no bound is beaten, and what is shown of a team's devices goes together. */
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

enum { CASES = 120, MACHINES = 3, MODELS = 7 };

static const double near = 1e-9;

struct work {
    const struct template *template;
    int64_t values[TEMPLATE_PARAMETERS];
    struct steps *steps;
    struct device_set *set;
    struct plan_device list[DEVICE_SET_MOST];
    struct plan_input input;
};

static void set_value(struct work *work, const char *name, int64_t value)
{
    size_t at = template_parameter(work->template, name);
    if (at != TEMPLATE_NO_PARAMETER) {
        work->values[at] = value;
    }
}

/* A model of 2 to 24 layers with 1 to 8 heads of keys and values. */
static void draw_work(struct work *work, struct random *dice)
{
    int64_t kv = INT64_C(1) << random_below(dice, 4);
    int64_t heads = kv * (1 + (int64_t)random_below(dice, 4));
    work->template = template_named(
        (const char *[]){"llm", "llm", "llm", "train", "rag"}[random_below(dice, 5)]);
    template_begin(work->template, work->values);
    set_value(work, "layers", 2 + (int64_t)random_below(dice, 23));
    set_value(work, "kv", kv);
    set_value(work, "heads", heads);
    set_value(work, "width", heads * 128);
    set_value(work, "feed-forward", 1024 * (1 + (int64_t)random_below(dice, 28)));
    set_value(work, "vocabulary", 32000 + (int64_t)random_below(dice, 100000));
    set_value(work, "tied", (int64_t)random_below(dice, 2));
    set_value(work, "batch", INT64_C(1) << random_below(dice, 6));
    set_value(work, "prompt", 1 << random_below(dice, 12));
    set_value(work, "answer", 1 << random_below(dice, 9));
    set_value(work, "sequence", 1024);
    set_value(work, "tokenised", 1);
    set_value(work, "vectors", 100000);
    ck_assert_int_eq(template_create(work->template, work->values, &work->steps, NULL), STEPS_OK);
}

static void draw_machine(struct work *work, struct random *dice, uint32_t host)
{
    static const char *const models[MODELS] = {"h100",    "mi300x", "h200", "b200",
                                               "tpu-v6e", "a100",   "h100"};
    struct problem problem;
    const struct catalogue_device *known = NULL;
    const char *model = models[random_below(dice, MODELS)];
    int64_t price_micro = 500000 * (1 + (int64_t)random_below(dice, 10));
    uint64_t count = host == 0 ? 2 + random_below(dice, 7) : 1 + random_below(dice, 4);
    ck_assert_int_eq(device_set_find(model, &known, &problem), DEVICE_SET_OK);
    for (uint64_t i = 0; i < count; i++) {
        ck_assert_int_eq(
            device_set_add(work->set, host, known, NULL, NULL, false, price_micro, &problem),
            DEVICE_SET_OK);
    }
}

static void draw_devices(struct work *work, struct random *dice)
{
    static const double latencies[] = {0, 2e-7, 2e-6, 1e-3};
    struct device_set_links links = device_set_defaults();
    struct problem problem;
    size_t machines = 1 + (size_t)random_below(dice, MACHINES);
    work->set = device_set_create();
    ck_assert_ptr_nonnull(work->set);
    for (uint32_t i = 0; i < machines; i++) {
        draw_machine(work, dice, i);
    }
    links.wires[DEVICE_SET_FABRIC].latency_s = latencies[random_below(dice, 4)];
    links.storage = 7e9;
    ck_assert_int_eq(device_set_link(work->set, &links, &problem), DEVICE_SET_OK);
    for (size_t d = 0; d < work->set->count; d++) {
        work->list[d] = (struct plan_device){.name = work->set->items[d].name,
                                             .cost = &work->set->items[d].cost,
                                             .memory = work->set->items[d].memory,
                                             .price_micro = work->set->items[d].price_micro};
    }
    work->input = (struct plan_input){
        .steps = work->steps,
        .template = work->template,
        .values = work->values,
        .devices = work->list,
        .device_count = work->set->count,
        .topology = work->set->topology,
        .objective = random_below(dice, 3) > 0
                         ? PLAN_TIME
                         : (enum plan_objective)random_below(dice, PLAN_OBJECTIVES),
        .budget_micro = LIMIT_NONE,
        .worth_micro = 100000000,
        .may_leave_out = true};
}

static struct plan *plan_of(const struct plan_input *input)
{
    struct plan *plan = NULL;
    struct plan_fault fault;
    enum plan_status status = plan_search(input, &plan, &fault);
    ck_assert(status != PLAN_NO_MEMORY && status != PLAN_BAD_INPUT);
    return plan;
}

/* All devices of a team are alike, in one machine, and take the same; each is in one row. */
static void check_team(const struct work *work, const struct plan *plan, uint32_t first)
{
    const struct plan_row *row = &plan->rows[first];
    const struct device_set_item *item = &work->set->items[row->device];
    ck_assert(row->team_size == 2 || row->team_size == 4 || row->team_size == 8);
    ck_assert_uint_le(first + row->team_size, plan->row_count);
    for (uint32_t i = 0; i < row->team_size; i++) {
        const struct plan_row *other = &plan->rows[first + i];
        const struct plan_use *use = &plan->uses[other->device];
        ck_assert_uint_eq(other->team_size, row->team_size);
        ck_assert_uint_eq(other->team_number, i);
        ck_assert_ptr_eq(work->set->items[other->device].known, item->known);
        ck_assert_uint_eq(work->set->items[other->device].host, item->host);
        ck_assert(other->start_s == row->start_s && other->finish_s == row->finish_s &&
                  other->busy_s == row->busy_s);
        ck_assert_uint_eq(use->row_count, 1);
        ck_assert(use->memory_bytes == plan->uses[row->device].memory_bytes);
        ck_assert(use->price_micro == plan->uses[row->device].price_micro);
    }
}

/* Returns how many teams there are. */
static unsigned check_plan(const struct work *work, const struct plan *plan)
{
    unsigned teams = 0;
    uint32_t used = 0;
    int64_t price = 0;
    double in = 0;
    double out = 0;
    ck_assert(plan->bound <= plan->total.merit * (1 + near));
    ck_assert(plan->time_bound_s <= plan->total.makespan_s.value * (1 + near));
    for (uint32_t i = 0; i < plan->row_count; i++) {
        if (plan->rows[i].team_size > 1 && plan->rows[i].team_number == 0) {
            check_team(work, plan, i);
            teams++;
        }
    }
    for (size_t d = 0; d < plan->device_count; d++) {
        const struct plan_use *use = &plan->uses[d];
        const double memory =
            work->list[d].cost->profile->figures[FIGURE_MEMORY].value * (1 + near);
        ck_assert_msg(use->memory_bytes <= memory, "%g of %g", use->memory_bytes, memory);
        ck_assert(use->busy_s <= (use->last_s - use->first_s) * (1 + near));
        used += use->row_count > 0;
        price += use->price_micro;
        in += use->bytes_in;
        out += use->bytes_out;
    }
    ck_assert_uint_eq(used, plan->total.device_count);
    ck_assert_int_eq(price, plan->total.price_micro);
    ck_assert_double_eq_tol(in, out, near * (1 + in));
    return teams;
}

START_TEST(divided_layers_are_never_worse)
{
    unsigned teams = 0;
    unsigned better = 0;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct random dice = random_seeded(seed);
        struct work work = {.steps = NULL};
        draw_work(&work, &dice);
        draw_devices(&work, &dice);
        struct template undivided = *work.template;
        undivided.make_divided = NULL;
        CLEANUP(plan_destroy) struct plan *with = plan_of(&work.input);
        work.input.template = &undivided;
        CLEANUP(plan_destroy) struct plan *without = plan_of(&work.input);
        if (without != NULL) {
            ck_assert_msg(with != NULL && with->total.merit <= without->total.merit * (1 + near),
                          "seed %d: %s by %s", (int)seed, work.template->name,
                          plan_objective_name(work.input.objective));
            /* A true bound of both. */
            ck_assert(with->bound <= without->bound * (1 + near));
            better += with->total.merit < without->total.merit * (1 - near);
            ck_assert_uint_eq(check_plan(&work, without), 0);
        }
        teams += with != NULL ? check_plan(&work, with) : 0;
        device_set_destroy(&work.set);
        steps_destroy(&work.steps);
    }
    ck_assert_msg(teams > CASES / 8 && better > CASES / 8, "%u teams, %u better", teams, better);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_team");
    TCase *tcase = tcase_create("team");
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, divided_layers_are_never_worse);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
