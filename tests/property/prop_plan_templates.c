/* No plan of a template, on random devices of the catalogue, is below its bound. */
#include "base/cleanup.h"
#include "base/random.h"
#include "planner/cost/device_set.h"
#include "planner/layout/plan.h"
#include "planner/templates/template_list.h"
#include "tests/support/random_plans.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>

enum { TEMPLATE_CASES = 300 };

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
    Suite *suite = suite_create("plans: templates");
    TCase *tcase = tcase_create("plans: templates");
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, no_plan_of_a_template_is_below_its_bound);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
