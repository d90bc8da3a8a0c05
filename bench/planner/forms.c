#include "bench/planner/forms.h"

#include "base/random.h"
#include "bench/give_up.h"
#include "planner/cost/device_set.h"
#include "planner/layout/plan.h"
#include "planner/templates/template_list.h"

#include <math.h>
#include <string.h>

enum { SETTINGS = 4, KINDS = 2, SETS = 6, WORKLOADS = 5, DEVICES_MOST = 8 };

/* A family is a form, or the ways to find it whose names begin with `found_by`. */
static const struct family {
    const char *name;
    enum plan_form form;
    const char *found_by; /* NULL: the whole form */
} families[] = {
    {"graph", PLAN_GRAPH, NULL},
    {"split", PLAN_SPLIT, NULL},
    {"split: shares of devices", PLAN_SPLIT, "water-filling"},
    {"split: shares for groups", PLAN_SPLIT, "shares for groups"},
    {"pipeline", PLAN_PIPELINE, NULL},
    {"pipeline: stages of layers", PLAN_PIPELINE, "stages"},
    {"pipeline: prefill and decode apart", PLAN_PIPELINE, "prefill and decode apart"},
    {"pipeline: layers divided", PLAN_PIPELINE, "layers divided"},
};
enum { FAMILIES = sizeof families / sizeof families[0] };

struct losses {
    uint32_t cases, planned;
    /* A form is the only one when no plan exists without it; such cases have no loss. */
    uint32_t best[FAMILIES], only[FAMILIES];
    double sum[FAMILIES], most[FAMILIES];
};

static bool is_in(const struct family *family, enum plan_form form, const char *found_by)
{
    if (form != family->form) {
        return false;
    }
    return family->found_by == NULL ||
           strncmp(found_by, family->found_by, strlen(family->found_by)) == 0;
}

static double merit_of(const struct plan_outcome *outcome)
{
    bool is_planned = outcome->status == PLAN_OK && outcome->makespan_s.source != FIGURE_UNKNOWN;
    return is_planned ? outcome->merit : INFINITY;
}

/* Returns the least merit of all forms outside the family; NULL: of all forms. */
static double least_without(const struct plan *plan, const struct family *family)
{
    double least = merit_of(&plan->forms[PLAN_SINGLE]);
    if (family == NULL || family->form != PLAN_GRAPH) {
        least = fmin(least, merit_of(&plan->forms[PLAN_GRAPH]));
    }
    for (size_t i = 0; i < plan->variant_count; i++) {
        const struct plan_variant *variant = &plan->variants[i];
        if (family == NULL || !is_in(family, variant->form, variant->found_by)) {
            least = fmin(least, merit_of(&variant->outcome));
        }
    }
    return least;
}

static void add_losses(const struct plan *plan, struct losses *losses)
{
    const double all = least_without(plan, NULL);
    losses->planned += isfinite(all) ? 1 : 0;
    for (size_t i = 0; isfinite(all) && i < FAMILIES; i++) {
        const double without = least_without(plan, &families[i]);
        const double loss = isfinite(without) && all > 0 ? without / all - 1 : 0;
        losses->only[i] += isfinite(without) ? 0 : 1;
        losses->best[i] += loss > 1e-9 ? 1 : 0;
        losses->sum[i] += loss;
        losses->most[i] = fmax(losses->most[i], loss);
    }
}

static json_t *json_losses(const struct losses *losses)
{
    json_t *rows = json_object();
    for (size_t i = 0; i < FAMILIES; i++) {
        const double mean = losses->planned > 0 ? losses->sum[i] / losses->planned : 0;
        (void)json_object_set_new(rows, families[i].name,
                                  json_pack("{s:f, s:f, s:I, s:I}", "mean_percent", 100 * mean,
                                            "most_percent", 100 * losses->most[i], "best",
                                            (json_int_t)losses->best[i], "only",
                                            (json_int_t)losses->only[i]));
    }
    return json_pack("{s:I, s:I, s:o}", "cases", (json_int_t)losses->cases, "planned",
                     (json_int_t)losses->planned, "forms", rows);
}

/* ---------------------------------------------------------------- work and devices */

struct machines { /* devices of up to two kinds, the second kind in machines of its own */
    const char *names[KINDS];
    uint32_t counts[KINDS];
};

static const struct machines sets[SETS] = {
    {{"nvidia-h100-sxm5", NULL}, {4, 0}},
    {{"nvidia-h100-sxm5", NULL}, {8, 0}},
    {{"nvidia-h200-sxm", "amd-mi300x"}, {2, 2}},
    {{"nvidia-h100-sxm5", "nvidia-a100-sxm4-80"}, {2, 4}},
    {{"nvidia-rtx4090", "nvidia-h100-sxm5"}, {4, 1}},
    {{"nvidia-rtx4090", NULL}, {3, 0}},
};

static const struct workload_kind {
    const char *template;
    const char *settings[SETTINGS][2];
} workloads[WORKLOADS] = {
    {"llm", {{"model", "llama-3-70b"}, {"batch", "32"}, {"stages", "8"}}},
    {"rag", {{"model", "llama-3-8b"}, {"batch", "16"}, {"stages", "4"}}},
    {"diffusion", {{"batch", "16"}}},
    {"train", {{"model", "llama-3-8b"}, {"batch", "16"}, {"stages", "8"}}},
    {"video", {{"streams", "64"}}},
};

static bool add_devices(struct device_set *set, const struct catalogue_device *device,
                        uint32_t count, uint32_t host, int64_t price_micro)
{
    struct problem problem = {""};
    for (uint32_t i = 0; i < count; i++) {
        if (device_set_add(set, host, device, NULL, &device->profile, false, price_micro,
                           &problem) != DEVICE_SET_OK) {
            return false;
        }
    }
    return true;
}

static void plan_case(const struct template *template, const int64_t *values,
                      struct device_set *set, enum plan_objective objective, struct losses *losses)
{
    const struct device_set_links links = device_set_defaults();
    struct plan_device devices[DEVICE_SET_MOST];
    struct steps *steps = NULL;
    struct plan *plan = NULL;
    struct plan_fault fault;
    struct problem problem = {""};
    losses->cases++;
    if (template_create(template, values, &steps, &problem) != STEPS_OK ||
        device_set_link(set, &links, &problem) != DEVICE_SET_OK) {
        steps_destroy(&steps);
        return; /* values that do not go together */
    }
    for (size_t i = 0; i < set->count; i++) {
        devices[i] = (struct plan_device){.name = set->items[i].name,
                                          .cost = &set->items[i].cost,
                                          .memory = set->items[i].memory,
                                          .price_micro = set->items[i].price_micro};
    }
    const struct plan_input input = {.steps = steps,
                                     .template = template,
                                     .values = values,
                                     .devices = devices,
                                     .device_count = set->count,
                                     .topology = set->topology,
                                     .objective = objective,
                                     .budget_micro = LIMIT_NONE,
                                     .may_leave_out = true,
                                     .effort = PLAN_EFFORT};
    if (plan_search(&input, &plan, &fault) == PLAN_OK) {
        add_losses(plan, losses);
    }
    plan_destroy(&plan);
    steps_destroy(&steps);
}

static void set_value(const struct template *template, const char *name, const char *text,
                      int64_t *values)
{
    struct problem problem = {""};
    if (!template_set(template, name, text, values, &problem)) {
        die(problem.text);
    }
}

/* ---------------------------------------------------------------- the five workloads */

static json_t *measure_workload(const struct workload_kind *kind)
{
    const struct template *template = template_named(kind->template);
    struct losses losses = {.cases = 0};
    int64_t values[TEMPLATE_PARAMETERS];
    template_begin(template, values);
    for (size_t i = 0; i < SETTINGS && kind->settings[i][0] != NULL; i++) {
        set_value(template, kind->settings[i][0], kind->settings[i][1], values);
    }
    for (size_t i = 0; i < 2 * (size_t)SETS; i++) {
        const struct machines *machines = &sets[i / 2];
        struct device_set *set = device_set_create();
        uint32_t host = 0;
        for (size_t k = 0; set != NULL && k < KINDS && machines->counts[k] > 0; k++) {
            const struct catalogue_device *device = catalogue_find(machines->names[k]);
            const int64_t price_micro = k == 0 ? 2 * MICRO_PER_CREDIT : MICRO_PER_CREDIT;
            if (device == NULL ||
                !add_devices(set, device, machines->counts[k], host++, price_micro)) {
                die("no such device");
            }
        }
        plan_case(template, values, set, i % 2 == 0 ? PLAN_TIME : PLAN_PRICE, &losses);
        device_set_destroy(&set);
    }
    json_t *row = json_losses(&losses);
    (void)json_object_set_new(row, "workload", json_string(kind->template));
    return row;
}

/* ---------------------------------------------------------------- random cases */

/* Draws devices of one to three kinds with the figures that plans need. */
static struct device_set *draw_devices(struct random *dice)
{
    struct device_set *set = device_set_create();
    const uint32_t kinds = 1 + (uint32_t)random_below(dice, 3);
    uint32_t left = 2 + (uint32_t)random_below(dice, DEVICES_MOST - 1);
    uint32_t host = 0;
    for (uint32_t k = 0; set != NULL && k < kinds && left > 0;) {
        const struct catalogue_device *device =
            catalogue_at((size_t)random_below(dice, catalogue_count()));
        const bool is_known =
            device->profile.figures[FIGURE_MEMORY].source != FIGURE_UNKNOWN &&
            device->profile.figures[FIGURE_BANDWIDTH].source != FIGURE_UNKNOWN &&
            (strcmp(device->kind, "gpu") == 0 || strcmp(device->kind, "tpu") == 0);
        if (!is_known) {
            continue;
        }
        const uint32_t count = k + 1 == kinds ? left : 1 + (uint32_t)random_below(dice, left);
        const int64_t price_micro = MICRO_PER_CREDIT / 10 * (int64_t)(1 + random_below(dice, 50));
        if (!add_devices(set, device, count, host++, price_micro)) {
            break;
        }
        left -= count;
        k++;
    }
    return set;
}

static void draw_values(struct random *dice, const struct template *template, int64_t *values)
{
    static const char *const numbers[] = {"1", "2", "4", "8", "16", "32", "64"};
    size_t presets = 0;
    template_begin(template, values);
    while (template->presets != NULL && template->presets[presets].name != NULL) {
        presets++;
    }
    if (presets > 0) {
        set_value(template, TEMPLATE_PRESET, template->presets[random_below(dice, presets)].name,
                  values);
    }
    const size_t batch = template_batch(template);
    if (batch != TEMPLATE_NO_PARAMETER) {
        set_value(template, template->parameters[batch].name, numbers[random_below(dice, 7)],
                  values);
    }
    if (template_parameter(template, "stages") != TEMPLATE_NO_PARAMETER) {
        set_value(template, "stages", numbers[random_below(dice, 4)], values);
    }
    if (template_parameter(template, "answer") != TEMPLATE_NO_PARAMETER) {
        set_value(template, "answer", numbers[3 + random_below(dice, 4)], values);
    }
}

static json_t *measure_random(size_t count, uint64_t seed)
{
    struct random dice = random_seeded(seed);
    struct losses losses = {.cases = 0};
    for (size_t i = 0; i < count; i++) {
        const struct template *template = template_named(workloads[i % WORKLOADS].template);
        int64_t values[TEMPLATE_PARAMETERS];
        draw_values(&dice, template, values);
        struct device_set *set = draw_devices(&dice);
        if (set == NULL) {
            die("out of memory");
        }
        plan_case(template, values, set, random_below(&dice, 2) == 0 ? PLAN_TIME : PLAN_PRICE,
                  &losses);
        device_set_destroy(&set);
    }
    return json_losses(&losses);
}

json_t *forms_measure(size_t count, uint64_t seed)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < WORKLOADS; i++) {
        (void)json_array_append_new(rows, measure_workload(&workloads[i]));
    }
    return json_pack("{s:o, s:o}", "workloads", rows, "random", measure_random(count, seed));
}
