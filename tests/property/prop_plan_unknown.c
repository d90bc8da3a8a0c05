/* Plans of real work on devices of which figures were rubbed out at random: none is ever taken for
 * infinite. What a row takes is looked at from the figures that are left alone. */
#include "planner/layout/plan.h"

#include "base/cleanup.h"
#include "base/random.h"
#include "planner/cost/device_set.h"
#include "planner/templates/template_list.h"
#include "tests/support/suite.h"
#include "tests/support/template_steps.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 150, DEVICES = 3, VALUES = 64 };

struct work {
    const struct template *template;
    int64_t values[VALUES];
    struct steps *steps;
    struct device_set *set;
    struct plan_device devices[DEVICES];
    struct plan_input input;
};

static void work_fini(struct work *work)
{
    steps_destroy(&work->steps);
    device_set_destroy(&work->set);
}

static void draw_template(struct work *work, struct random *dice)
{
    static const struct {
        const char *template, *name, *value;
    } all[] = {{"matmul", "m", "1"},           {"matmul", "dtype", "int8"},
               {"matmul", "dtype", "fp16"},    {"llm", "model", "llama-2-7b"},
               {"train", "model", "gpt-2-xl"}, {"video", "streams", "4"}};
    size_t which = random_below(dice, sizeof all / sizeof all[0]);
    struct problem problem = {.text = ""};
    work->template = template_named(all[which].template);
    template_begin(work->template, work->values);
    ck_assert_msg(
        template_set(work->template, all[which].name, all[which].value, work->values, &problem),
        "%s", problem.text);
    ck_assert_int_eq(template_create(work->template, work->values, &work->steps, &problem),
                     STEPS_OK);
}

static void rub_out(struct device_profile *profile, struct random *dice)
{
    static const enum profile_figure figures[] = {FIGURE_MEMORY, FIGURE_BANDWIDTH, FIGURE_FP32,
                                                  FIGURE_FP16,   FIGURE_BF16,      FIGURE_INT8,
                                                  FIGURE_FP64};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (random_below(dice, 4) == 0) {
            profile->figures[figures[i]] = (struct figure){.source = FIGURE_UNKNOWN};
        }
    }
}

static void draw(struct work *work, uint64_t seed)
{
    struct random dice = random_seeded(seed);
    struct device_set_links links = device_set_defaults();
    struct problem problem = {.text = ""};
    memset(work, 0, sizeof *work);
    draw_template(work, &dice);
    work->set = device_set_create();
    size_t count = 1 + random_below(&dice, DEVICES);
    for (size_t i = 0; i < count; i++) {
        const struct catalogue_device *known = catalogue_at(random_below(&dice, catalogue_count()));
        ck_assert_int_eq(device_set_add(work->set,
                                        random_below(&dice, 2) > 0 ? 0 : work->set->host_count,
                                        known, NULL, NULL, false, -1, &problem),
                         DEVICE_SET_OK);
        rub_out(&work->set->items[i].profile, &dice);
    }
    links.storage = 7e9;
    ck_assert_int_eq(device_set_link(work->set, &links, &problem), DEVICE_SET_OK);
    for (size_t i = 0; i < count; i++) {
        const struct device_set_item *item = &work->set->items[i];
        work->devices[i] = (struct plan_device){.name = item->name,
                                                .cost = &item->cost,
                                                .memory = item->memory,
                                                .price_micro = PLAN_UNPRICED};
    }
    work->input = (struct plan_input){.steps = work->steps,
                                      .template = work->template,
                                      .values = work->values,
                                      .devices = work->devices,
                                      .device_count = count,
                                      .topology = work->set->topology,
                                      .budget_micro = LIMIT_NONE,
                                      .may_leave_out = true,
                                      .effort = PLAN_EFFORT / 100};
}

/* No rate that is known is higher: what computes at all takes at least that. */
static double fastest(const struct device_profile *profile)
{
    double most = 0;
    for (int i = FIGURE_FP64; i <= FIGURE_INT4; i++) {
        const struct figure *rate = &profile->figures[i];
        most = rate->source != FIGURE_UNKNOWN && rate->value > most ? rate->value : most;
    }
    return most;
}

/* Returns what a row of whole steps takes at least: all that it moves and computes, by known
 * figures. */
static double least_of(const struct work *work, const struct plan_row *row)
{
    const struct device_profile *profile = work->devices[row->device].cost->profile;
    double sum = 0;
    for (uint32_t s = row->first_step; s < row->first_step + row->step_count; s++) {
        const struct step *step = &work->steps->steps[s];
        for (size_t i = 0; i < step->part_count; i++) {
            struct operation_size size;
            ck_assert_int_eq(operation_measure(&step->parts[i].operation, &size, NULL),
                             OPERATION_OK);
            double bytes = (double)size.read_bytes + (double)size.written_bytes;
            double moving = bytes / profile->figures[FIGURE_BANDWIDTH].value;
            /* A device of which no rate is known may still move bytes. */
            double computing = size.flops > 0 ? (double)size.flops / fastest(profile) : 0;
            sum += (double)step->parts[i].times * (moving > computing ? moving : computing);
        }
    }
    return sum;
}

START_TEST(no_figure_that_is_unknown_is_ever_infinite)
{
    unsigned planned = 0;
    unsigned refused = 0;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        CLEANUP(work_fini) struct work work;
        CLEANUP(plan_destroy) struct plan *plan = NULL;
        struct plan_fault fault;
        draw(&work, seed);
        enum plan_status status = plan_search(&work.input, &plan, &fault);
        if (status != PLAN_OK) {
            refused += status == PLAN_UNKNOWN;
            ck_assert_msg(status != PLAN_UNKNOWN || strstr(fault.problem.text, "--figure") != NULL,
                          "%s", fault.problem.text);
            continue;
        }
        for (size_t i = 0; i < plan->row_count; i++) {
            const struct plan_row *row = &plan->rows[i];
            const struct device_profile *profile = work.devices[row->device].cost->profile;
            if (row->is_left_out) { /* look-ups, of which nobody knows the time */
                continue;
            }
            ck_assert_int_ne(profile->figures[FIGURE_MEMORY].source, FIGURE_UNKNOWN);
            ck_assert_int_ne(profile->figures[FIGURE_BANDWIDTH].source, FIGURE_UNKNOWN);
            bool is_whole = plan->form == PLAN_SINGLE || plan->form == PLAN_GRAPH;
            ck_assert_msg(!is_whole || row->busy_s >= least_of(&work, row) * (1 - 1e-6),
                          "seed %d, row %d: %g of %g", (int)seed, (int)i, row->busy_s,
                          least_of(&work, row));
            planned++;
        }
    }
    ck_assert_msg(planned > CASES / 2 && refused > CASES / 20, "%u rows, %u refused", planned,
                  refused);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_unknown");
    TCase *tcase = tcase_create("all");
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, no_figure_that_is_unknown_is_ever_infinite);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
