/* This file computes and compares the outcomes of plans, and makes plans of trials. */
#include "planner/layout/plan_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- names */

const char *plan_status_name(enum plan_status status)
{
    switch (status) {
    case PLAN_OK:
        return "OK";
    case PLAN_BAD_INPUT:
        return "BAD_INPUT";
    case PLAN_TOO_MANY:
        return "TOO_MANY";
    case PLAN_NOWHERE:
        return "NOWHERE";
    case PLAN_UNKNOWN:
        return "UNKNOWN_FIGURE";
    case PLAN_PLACEMENT:
        return "PLACEMENT";
    case PLAN_NO_ROOM:
        return "NO_ROOM";
    case PLAN_UNREACHED:
        return "UNREACHED";
    case PLAN_NO_PRICE:
        return "NO_PRICE";
    case PLAN_NO_POWER:
        return "NO_POWER";
    case PLAN_DEADLINE:
        return "DEADLINE";
    case PLAN_BUDGET:
        return "BUDGET";
    case PLAN_LIMITS:
        return "LIMITS";
    case PLAN_INDIVISIBLE:
        return "INDIVISIBLE";
    case PLAN_NO_GAIN:
        return "NO_GAIN";
    case PLAN_NO_MEMORY:
        return "NO_MEMORY";
    }
    return "";
}

static const char *const objectives[PLAN_OBJECTIVES] = {
    [PLAN_TIME] = "time", [PLAN_PRICE] = "price", [PLAN_ENERGY] = "energy", [PLAN_VALUE] = "value"};

const char *plan_objective_name(enum plan_objective objective)
{
    assert(objective < PLAN_OBJECTIVES);
    return objectives[objective];
}

bool plan_objective_find(const char *name, enum plan_objective *ret_objective)
{
    for (int i = 0; i < PLAN_OBJECTIVES; i++) {
        if (strcmp(objectives[i], name) == 0) {
            *ret_objective = (enum plan_objective)i;
            return true;
        }
    }
    return false;
}

const char *plan_form_name(enum plan_form form)
{
    static const char *const names[PLAN_FORMS] = {[PLAN_SINGLE] = "single",
                                                  [PLAN_GRAPH] = "graph",
                                                  [PLAN_SPLIT] = "split",
                                                  [PLAN_PIPELINE] = "pipeline"};
    assert(form < PLAN_FORMS);
    return names[form];
}

/* ---------------------------------------------------------------- sums */

void plan_add(struct figure *sum, const struct figure *term)
{
    if (sum->source == FIGURE_UNKNOWN || term->source == FIGURE_UNKNOWN) {
        *sum = (struct figure){.source = FIGURE_UNKNOWN};
        return;
    }
    sum->value += term->value;
    sum->source = term->source < sum->source ? term->source : sum->source;
    sum->unverified |= term->unverified;
}

static int64_t price_of(const struct plan_device *device, double lease_s)
{
    const struct cost lease = {.time_s = {.value = lease_s, .source = FIGURE_DECLARED}};
    int64_t price = PLAN_UNPRICED;
    if (device->price_micro < 0 || !cost_price(&lease, device->price_micro, &price)) {
        return PLAN_UNPRICED;
    }
    return price;
}

static double merit_of(const struct plan_input *input, const struct plan_outcome *outcome)
{
    switch (input->objective) {
    case PLAN_TIME:
        return outcome->makespan_s.value;
    case PLAN_PRICE:
        return outcome->price_micro < 0 ? INFINITY : (double)outcome->price_micro;
    case PLAN_ENERGY:
        return outcome->energy_j.source == FIGURE_UNKNOWN ? INFINITY : outcome->energy_j.value;
    case PLAN_VALUE:
        return outcome->price_micro < 0
                   ? INFINITY
                   : (double)outcome->price_micro +
                         outcome->makespan_s.value / PLAN_HOUR_S * (double)input->worth_micro;
    case PLAN_OBJECTIVES:
        break;
    }
    return INFINITY;
}

static enum plan_status check_limits(const struct plan_input *input,
                                     const struct plan_outcome *outcome)
{
    bool is_late = input->deadline_s > 0 && outcome->makespan_s.value > input->deadline_s;
    bool is_priced = outcome->price_micro >= 0;
    bool is_dear = !limit_allows(input->budget_micro, outcome->price_micro);
    if (!(outcome->merit < INFINITY)) {
        return input->objective == PLAN_ENERGY ? PLAN_NO_POWER : PLAN_NO_PRICE;
    }
    if (limit_is_set(input->budget_micro) && !is_priced) {
        return PLAN_NO_PRICE;
    }
    return is_late && is_dear ? PLAN_LIMITS
           : is_late          ? PLAN_DEADLINE
           : is_dear          ? PLAN_BUDGET
                              : PLAN_OK;
}

static void add_idle(const struct plan_device *device, struct plan_use *use, bool *counts_idle)
{
    double idle_s = use->last_s - use->first_s - use->busy_s;
    if (device->idle_w.source == FIGURE_UNKNOWN) {
        *counts_idle = false;
        return;
    }
    struct figure idle_j = device->idle_w;
    idle_j.value *= fmax(idle_s, 0);
    plan_add(&use->energy_j, &idle_j);
}

void plan_sum_up(const struct plan_input *input, struct plan_use *uses,
                 const struct figure *makespan_s, struct plan_outcome *ret_outcome)
{
    struct plan_outcome outcome = {
        .makespan_s = *makespan_s, .energy_j = {.source = FIGURE_MEASURED}, .counts_idle = true};
    for (size_t d = 0; d < input->device_count; d++) {
        struct plan_use *use = &uses[d];
        if (use->row_count == 0) {
            *use = (struct plan_use){.row_count = 0};
            continue;
        }
        outcome.device_count++;
        add_idle(&input->devices[d], use, &outcome.counts_idle);
        plan_add(&outcome.energy_j, &use->energy_j);
        use->share = makespan_s->value > 0 ? use->busy_s / makespan_s->value : 0;
        use->price_micro = price_of(&input->devices[d], use->last_s - use->first_s);
        if (use->price_micro < 0 || outcome.price_micro < 0 ||
            !checked_add(outcome.price_micro, use->price_micro, &outcome.price_micro)) {
            outcome.price_micro = PLAN_UNPRICED;
        }
    }
    plan_judge(input, &outcome);
    *ret_outcome = outcome;
}

void plan_judge(const struct plan_input *input, struct plan_outcome *outcome)
{
    outcome->merit = merit_of(input, outcome);
    outcome->status = check_limits(input, outcome);
}

/* ---------------------------------------------------------------- aims */

bool plan_has_limits(const struct plan_input *input)
{
    return input->deadline_s > 0 || limit_is_set(input->budget_micro);
}

size_t plan_aims(const struct plan_input *input, struct plan_input aims[PLAN_AIMS])
{
    int64_t worth_micro = 0;
    size_t count = 0;
    for (size_t d = 0; d < input->device_count; d++) {
        int64_t price = input->devices[d].price_micro;
        if (price > 0 && !checked_add(worth_micro, price, &worth_micro)) {
            break;
        }
    }
    int rounds = plan_has_limits(input) ? 2 : 1; /* the second one within the limits */
    for (int limited = 0; limited < rounds; limited++) {
        for (int i = 0; i < PLAN_OBJECTIVES; i++) {
            struct plan_input aim = *input;
            aim.objective = (enum plan_objective)i;
            aim.worth_micro = worth_micro;
            aim.deadline_s = limited ? input->deadline_s : 0;
            aim.budget_micro = limited ? input->budget_micro : LIMIT_NONE;
            if (i != PLAN_VALUE || worth_micro > 0) {
                aims[count++] = aim;
            }
        }
    }
    return count;
}

void plan_soonest_aims(const struct plan_input *input, struct plan_input aims[PLAN_SOONEST])
{
    for (int i = 0; i < PLAN_SOONEST; i++) {
        aims[i] = *input;
        aims[i].objective = PLAN_TIME;
    }
    aims[0].deadline_s = 0;
    aims[0].budget_micro = LIMIT_NONE;
}

/* ---------------------------------------------------------------- comparison */

/* Returns the distance outside the limits, as shares of them. */
static double excess(const struct plan_input *input, const struct plan_outcome *outcome)
{
    double sum = 0;
    if (input->deadline_s > 0 && outcome->makespan_s.value > input->deadline_s) {
        sum += outcome->makespan_s.value / input->deadline_s - 1;
    }
    if (limit_is_set(input->budget_micro) && outcome->price_micro < 0) {
        return INFINITY;
    }
    if (!limit_allows(input->budget_micro, outcome->price_micro)) {
        sum += (double)(outcome->price_micro - input->budget_micro) /
               fmax((double)input->budget_micro, 1);
    }
    return sum;
}

static int compare(double a, double b)
{
    return a < b ? -1 : a > b;
}

/* Sums of the same terms in another order differ in their last digits. These must not decide. */
static double coarse(double value)
{
    int exponent = 0;
    double fraction = frexp(value, &exponent);
    return value < INFINITY ? ldexp(round(ldexp(fraction, PLAN_DIGITS)), exponent - PLAN_DIGITS)
                            : value;
}

static double price_or_infinity(const struct plan_outcome *outcome)
{
    return outcome->price_micro < 0 ? INFINITY : (double)outcome->price_micro;
}

bool plan_outcome_is_better(const struct plan_input *input, const struct plan_outcome *a,
                            const struct plan_outcome *b)
{
    if (a->makespan_s.source == FIGURE_UNKNOWN || b->makespan_s.source == FIGURE_UNKNOWN) {
        return a->makespan_s.source != FIGURE_UNKNOWN;
    }
    int order = (b->merit < INFINITY) - (a->merit < INFINITY);
    order = order != 0 ? order : compare(excess(input, a), excess(input, b));
    order = order != 0 ? order : compare(coarse(a->merit), coarse(b->merit));
    order = order != 0 ? order : compare(price_or_infinity(a), price_or_infinity(b));
    order = order != 0 ? order : compare(coarse(a->makespan_s.value), coarse(b->makespan_s.value));
    return order != 0 ? order < 0 : a->device_count < b->device_count;
}

bool plan_is_better(const struct plan_trial *a, const struct plan_trial *b)
{
    bool is_a = a->outcome.makespan_s.source != FIGURE_UNKNOWN;
    bool is_b = b->outcome.makespan_s.source != FIGURE_UNKNOWN;
    if (!is_a || !is_b || a->overflow_bytes == b->overflow_bytes) {
        return plan_outcome_is_better(a->aims, &a->outcome, &b->outcome);
    }
    return a->overflow_bytes < b->overflow_bytes;
}

/* ---------------------------------------------------------------- plans */

struct plan *plan_alloc(const struct plan_input *input, size_t rows, size_t transfers)
{
    struct plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) {
        return NULL;
    }
    plan->rows = calloc(rows, sizeof *plan->rows);
    plan->transfers = calloc(transfers + 1, sizeof *plan->transfers);
    plan->uses = calloc(input->device_count, sizeof *plan->uses);
    if (plan->rows == NULL || plan->transfers == NULL || plan->uses == NULL) {
        plan_destroy(&plan);
        return NULL;
    }
    plan->row_count = rows;
    plan->transfer_count = transfers;
    plan->device_count = input->device_count;
    plan->single = PLAN_ANYWHERE;
    return plan;
}

void plan_note(struct plan_variants *variants, const struct plan_input *input,
               const struct plan_variant *variant)
{
    size_t at = 0;
    while (at < variants->count && (variants->list[at].form != variant->form ||
                                    strcmp(variants->list[at].found_by, variant->found_by) != 0)) {
        at++;
    }
    assert(at < PLAN_VARIANTS);
    struct plan_variant *known = &variants->list[at];
    const bool is_new = at == variants->count;
    if (is_new || known->outcome.makespan_s.source == FIGURE_UNKNOWN ||
        (variant->outcome.makespan_s.source != FIGURE_UNKNOWN &&
         plan_outcome_is_better(input, &variant->outcome, &known->outcome))) {
        *known = *variant;
        variants->count += is_new;
    }
}

void plan_destroy(struct plan **self)
{
    struct plan *plan = *self;
    if (plan != NULL) {
        free(plan->rows);
        free(plan->names);
        free(plan->transfers);
        free(plan->waits);
        free(plan->uses);
        free(plan);
        *self = NULL;
    }
}

void plan_soonest_fini(struct plan_soonest *soonest)
{
    for (int i = 0; i < PLAN_SOONEST; i++) {
        plan_destroy(&soonest->plans[i]);
    }
}

static int by_start(const void *left, const void *right)
{
    const struct plan_row *a = left;
    const struct plan_row *b = right;
    if (a->start_s != b->start_s) {
        return a->start_s < b->start_s ? -1 : 1;
    }
    if (a->device != b->device) {
        return a->device < b->device ? -1 : 1;
    }
    return a->first_step < b->first_step ? -1 : a->first_step > b->first_step;
}

static int by_transfer_start(const void *left, const void *right)
{
    const struct plan_transfer *a = left;
    const struct plan_transfer *b = right;
    if (a->start_s != b->start_s) {
        return a->start_s < b->start_s ? -1 : 1;
    }
    if (a->from != b->from) {
        return a->from < b->from ? -1 : 1;
    }
    return a->to < b->to ? -1 : a->to > b->to;
}

void plan_sort_transfers(struct plan *plan)
{
    qsort(plan->transfers, plan->transfer_count, sizeof *plan->transfers, by_transfer_start);
}

static struct plan_row row_of(const struct plan_trial *trial, uint32_t step)
{
    const struct plan_cost *cost = plan_cost_at(trial->of, step, trial->on[step]);
    const struct plan_figures *figures = plan_figures_of(trial, step);
    return (struct plan_row){.device = trial->on[step],
                             .first_step = step,
                             .step_count = 1,
                             .items = trial->of->items,
                             .start_s = trial->start[step],
                             .finish_s = trial->finish[step],
                             .busy_s = trial->finish[step] - trial->start[step],
                             .time_s = figures->time_s,
                             .p90_s = figures->p90_s,
                             .samples = cost->samples,
                             .energy_j = figures->energy_j,
                             .is_streamed = cost->must_stream || trial->streams[trial->on[step]],
                             .is_left_out = cost->is_left_out,
                             .is_widened = cost->is_widened};
}

struct plan *plan_of_trial(struct plan_trial *trial, enum plan_form form, const char *found_by)
{
    const struct plan_case *of = trial->of;
    size_t steps = of->steps->step_count;
    uint32_t *row_of_step = calloc(steps, sizeof *row_of_step);
    struct plan *plan = plan_alloc(of->input, steps, trial->transfer_count);
    if (plan == NULL || row_of_step == NULL) {
        plan_destroy(&plan);
        free(row_of_step);
        return NULL;
    }
    plan->form = form;
    plan->found_by = found_by;
    plan->left_out = of->left_out;
    plan->fallen_back = of->fallen_back;
    const struct plan_outcome outcome = trial->outcome;
    trial->is_exact = true;
    bool is_as_before = plan_try(trial);
    assert(is_as_before);
    double p90_s = plan_try_p90(trial);
    trial->is_exact = false;
    trial->outcome = outcome;
    trial->outcome.p90_s = p90_s;
    plan->total = trial->outcome;
    for (uint32_t s = 0; s < steps; s++) {
        plan->rows[s] = row_of(trial, s);
    }
    qsort(plan->rows, steps, sizeof *plan->rows, by_start);
    for (uint32_t i = 0; i < steps; i++) {
        row_of_step[plan->rows[i].first_step] = i;
    }
    for (size_t i = 0; i < trial->transfer_count; i++) {
        struct plan_transfer *transfer = &plan->transfers[i];
        *transfer = trial->transfers[i];
        transfer->from = row_of_step[transfer->from];
        transfer->to = row_of_step[transfer->to];
        plan->rows[transfer->to].bytes_in += transfer->bytes;
    }
    plan_sort_transfers(plan);
    memcpy(plan->uses, trial->uses, of->input->device_count * sizeof *plan->uses);
    free(row_of_step);
    return plan;
}

/* ---------------------------------------------------------------- repeated plans */

/* Returns the time of all transfers over a link. */
static double link_s(const struct plan *plan, uint32_t link)
{
    double sum = 0;
    for (size_t i = 0; i < plan->transfer_count; i++) {
        const struct plan_transfer *transfer = &plan->transfers[i];
        for (uint32_t k = 0; k < transfer->link_count; k++) {
            sum += transfer->links[k] == link ? transfer->finish_s - transfer->start_s : 0;
        }
    }
    return sum;
}

double plan_round_s(const struct plan *plan)
{
    double most = 0;
    for (size_t d = 0; d < plan->device_count; d++) {
        most = fmax(most, plan->uses[d].busy_s);
    }
    for (size_t i = 0; i < plan->transfer_count; i++) {
        for (uint32_t k = 0; k < plan->transfers[i].link_count; k++) {
            most = fmax(most, link_s(plan, plan->transfers[i].links[k]));
        }
    }
    return most;
}
