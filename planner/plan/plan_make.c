#include "planner/plan/plan_make.h"

#include "base/checked.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define ROUNDING 1e-9 /* relative error that rounding may cause in a share */

/* ---------------------------------------------------------------- whole nanoseconds */

static double seconds_of(int64_t ns)
{
    return (double)ns / NS_PER_S;
}

int64_t plan_ns(double seconds)
{
    const double ns = seconds * (double)NS_PER_S + 0.5;
    assert(seconds >= 0);
    return ns < (double)INT64_MAX ? (int64_t)ns : INT64_MAX;
}

int64_t plan_row_ns(const struct plan_row *row)
{
    return plan_ns(row->finish_s) - plan_ns(row->start_s);
}

int64_t plan_busy_ns(const struct plan *plan)
{
    int64_t sum_ns = 0;
    for (size_t i = 0; i < plan->row_count; i++) {
        sum_ns = checked_add(sum_ns, plan_row_ns(&plan->rows[i]), &sum_ns) ? sum_ns : INT64_MAX;
    }
    return sum_ns;
}

int64_t plan_makespan_ns(const struct plan *plan)
{
    return plan_ns(plan->total.makespan_s.value);
}

int64_t plan_share_ppm(const struct plan *plan)
{
    const int128 possible_ns = (int128)plan_makespan_ns(plan) * plan->lanes;
    return possible_ns == 0 ? 0 : (int64_t)((int128)plan_busy_ns(plan) * 1000000 / possible_ns);
}

int plan_use_percent(const struct plan_use *use)
{
    return (int)(100 * use->share * (1 + ROUNDING));
}

/* ---------------------------------------------------------------- prices of steps */

/* `is_idle`: all rows of the device are steps of unknown time, which get equal parts. */
static double weight_of(const struct plan_row *row, uint32_t device, bool is_idle)
{
    return row->device != device ? 0 : is_idle ? 1 : row->is_left_out ? 0 : row->busy_s;
}

/* Divides a device's price among its rows by their time. Left-over micro-credits go to the rows
 * that lost most by rounding down. */
static void share_price(struct plan *plan, uint32_t device, double *lost)
{
    int64_t left = plan->uses[device].price_micro;
    double sum = 0;
    for (size_t i = 0; i < plan->row_count; i++) {
        sum += weight_of(&plan->rows[i], device, false);
    }
    const bool is_idle = !(sum > 0);
    for (size_t i = 0; is_idle && i < plan->row_count; i++) {
        sum += weight_of(&plan->rows[i], device, true);
    }
    double each = sum > 0 ? (double)left / sum : 0;
    for (size_t i = 0; i < plan->row_count; i++) {
        double weight = weight_of(&plan->rows[i], device, is_idle);
        if (weight > 0) {
            plan->rows[i].price_micro = (int64_t)(weight * each);
            lost[i] = weight * each - (double)plan->rows[i].price_micro;
            left -= plan->rows[i].price_micro;
        }
    }
    for (bool again = sum > 0; again && left > 0; left--) {
        size_t most = 0;
        for (size_t i = 1; i < plan->row_count; i++) {
            most = lost[i] > lost[most] ? i : most;
        }
        again = lost[most] >= 0;
        plan->rows[most].price_micro += again;
        lost[most] = -1;
    }
    for (size_t i = 0; i < plan->row_count; i++) {
        lost[i] = -1;
    }
}

/* The parts of a device's price add up to it. Returns false when memory is short. */
static bool share_prices(struct plan *plan)
{
    double *lost = calloc(plan->row_count + 1, sizeof *lost);
    if (lost == NULL) {
        return false;
    }
    for (size_t i = 0; i < plan->row_count; i++) {
        struct plan_row *row = &plan->rows[i];
        const bool is_priced = !row->is_left_out && plan->uses[row->device].price_micro >= 0;
        lost[i] = -1;
        row->price_micro = is_priced ? 0 : PLAN_UNPRICED;
    }
    for (uint32_t d = 0; d < plan->device_count; d++) {
        plan->uses[d].lanes = plan->uses[d].row_count > 0;
        if (plan->uses[d].price_micro > 0) {
            share_price(plan, d, lost);
        }
    }
    free(lost);
    return true;
}

/* ---------------------------------------------------------------- the parts of a job */

static enum plan_status status_of(enum list_schedule_status status, struct problem *problem)
{
    switch (status) {
    case LIST_SCHEDULE_OK:
        return PLAN_OK;
    case LIST_SCHEDULE_BAD_INPUT:
        problem_set(problem, "a count, a time, a price or a dependency of the job's parts is out "
                             "of its range");
        return PLAN_BAD_INPUT;
    case LIST_SCHEDULE_OVERFLOW:
        problem_set(problem, "the job takes more time or costs more than can be computed");
        return PLAN_BAD_INPUT;
    case LIST_SCHEDULE_TOO_MANY:
        problem_set(problem, "the job has more than %d subtasks", LIST_SCHEDULE_SUBTASKS);
        return PLAN_TOO_MANY;
    case LIST_SCHEDULE_NOWHERE:
        problem_set(problem, "a part of the job fits no device");
        return PLAN_NOWHERE;
    case LIST_SCHEDULE_NO_MEMORY:
        break;
    }
    return PLAN_NO_MEMORY;
}

static struct figure time_of(int64_t ns)
{
    return (struct figure){.value = seconds_of(ns), .source = FIGURE_DECLARED};
}

static struct figure energy_of(const struct plan_parts *parts, size_t device, double slot_s)
{
    struct figure energy_j = {.source = FIGURE_UNKNOWN};
    if (parts->slot_w != NULL) {
        energy_j = parts->slot_w[device];
        energy_j.value *= slot_s;
    }
    return energy_j;
}

/* Sums over the rows of a device. */
struct sum {
    int64_t busy_ns, slot_ns;
};

/* The price of a row is that of the device up to the row, less the price of the earlier rows. So
 * the rows' prices add up exactly. Returns false when a sum does not fit. */
static bool add_row(const struct plan_parts *parts, const struct list_schedule_run *run,
                    uint32_t index, uint32_t slots, struct sum *sum, struct plan *plan)
{
    const int64_t takes_ns = run->end_ns - run->start_ns;
    const int64_t price_micro = parts->schedule.devices[run->device].price_micro;
    struct plan_row *row = &plan->rows[index];
    struct plan_use *use = &plan->uses[run->device];
    int64_t slot_ns = 0;
    int64_t until_micro = 0;
    if (!checked_mul(takes_ns, slots, &slot_ns) ||
        !checked_add(sum->busy_ns, takes_ns, &sum->busy_ns) ||
        !checked_add(sum->slot_ns, slot_ns, &sum->slot_ns) ||
        !checked_muldiv_ceil(sum->slot_ns, price_micro, NS_PER_HOUR, &until_micro)) {
        return false;
    }
    *row = (struct plan_row){.device = run->device,
                             .lane = run->lane,
                             .first_step = index,
                             .step_count = 1,
                             .items = 1,
                             .start_s = seconds_of(run->start_ns),
                             .finish_s = seconds_of(run->end_ns),
                             .busy_s = seconds_of(takes_ns),
                             .time_s = time_of(takes_ns),
                             .energy_j = energy_of(parts, run->device, seconds_of(slot_ns)),
                             .price_micro = until_micro - use->price_micro};
    use->price_micro = until_micro;
    use->first_s = use->row_count == 0 || row->start_s < use->first_s ? row->start_s : use->first_s;
    use->last_s = row->finish_s > use->last_s ? row->finish_s : use->last_s;
    use->row_count++;
    return true;
}

/* Adds a device's use to the plan's total. The total energy is unknown when the energy of a used
 * device is. Returns false when the price does not fit. */
static bool add_use(const struct plan_parts *parts, const struct list_schedule *schedule,
                    uint32_t device, const struct sum *sum, struct plan *plan)
{
    struct plan_use *use = &plan->uses[device];
    struct plan_outcome *total = &plan->total;
    use->energy_j = energy_of(parts, device, seconds_of(sum->slot_ns));
    if (use->row_count == 0) {
        return true;
    }
    use->lanes = schedule->lanes[device];
    use->busy_s = seconds_of(sum->busy_ns);
    use->share = (double)sum->busy_ns / ((double)schedule->makespan_ns * use->lanes);
    plan->lanes += use->lanes;
    total->device_count++;
    total->energy_j.value += use->energy_j.value;
    total->energy_j.unverified = total->energy_j.unverified || use->energy_j.unverified;
    if (use->energy_j.source == FIGURE_UNKNOWN) {
        total->energy_j.source = FIGURE_UNKNOWN;
    }
    return checked_add(total->price_micro, use->price_micro, &total->price_micro);
}

static bool add_all(const struct plan_parts *parts, const struct list_schedule *schedule,
                    struct sum *sums, struct plan *plan)
{
    uint32_t index = 0;
    bool fits = true;
    for (size_t i = 0; i < parts->schedule.part_count; i++) {
        const struct list_schedule_part *part = &parts->schedule.parts[i];
        for (uint32_t k = 0; fits && k < part->subtasks; k++, index++) {
            const struct list_schedule_run *run = &schedule->runs[index];
            fits = add_row(parts, run, index, part->slots, &sums[run->device], plan);
        }
    }
    for (uint32_t d = 0; fits && d < plan->device_count; d++) {
        fits = add_use(parts, schedule, d, &sums[d], plan);
    }
    return fits;
}

static enum list_schedule_status fill_plan(const struct plan_parts *parts,
                                           const struct list_schedule *schedule, struct plan *plan)
{
    struct sum *sums = calloc(plan->device_count, sizeof *sums);
    if (sums == NULL) {
        return LIST_SCHEDULE_NO_MEMORY;
    }
    plan->form = PLAN_GRAPH;
    plan->found_by = "the exchange's rules";
    plan->total.makespan_s = time_of(schedule->makespan_ns);
    plan->total.merit = plan->total.makespan_s.value;
    plan->total.energy_j.source = FIGURE_DECLARED;
    plan->bound = plan->time_bound_s = seconds_of(schedule->bound_ns);
    plan->gap = (double)schedule->makespan_ns / (double)schedule->bound_ns - 1;
    const bool fits = add_all(parts, schedule, sums, plan);
    for (int i = 0; i < PLAN_FORMS; i++) {
        plan->forms[i] = (struct plan_outcome){
            .status = PLAN_INDIVISIBLE, .price_micro = PLAN_UNPRICED, .merit = INFINITY};
    }
    plan->forms[PLAN_GRAPH] = plan->total;
    free(sums);
    return fits ? LIST_SCHEDULE_OK : LIST_SCHEDULE_OVERFLOW;
}

/* Returns false when memory is short. */
static bool find_single(const struct plan_parts *parts, struct plan *plan)
{
    struct list_schedule_input input = parts->schedule;
    struct list_schedule_device *devices = calloc(input.device_count, sizeof *devices);
    size_t device = 0;
    int64_t makespan_ns = 0;
    if (devices == NULL) {
        return false;
    }
    for (size_t i = 0; i < input.device_count; i++) {
        devices[i] = input.devices[i];
        devices[i].slots = parts->single_slots != NULL ? parts->single_slots[i] : devices[i].slots;
    }
    input.devices = devices;
    if (list_schedule_best_single(&input, &device, &makespan_ns)) {
        struct plan_outcome *single = &plan->forms[PLAN_SINGLE];
        plan->single = (uint32_t)device;
        single->status = PLAN_OK;
        single->makespan_s = time_of(makespan_ns);
        single->merit = single->makespan_s.value;
        single->device_count = 1;
    }
    free(devices);
    return true;
}

/* Returns false when memory is short. A job that is too long in the worst case has no p90. */
static bool find_p90(const struct plan_parts *parts, struct plan *plan)
{
    struct list_schedule_input input = parts->schedule;
    struct list_schedule *slow = NULL;
    input.takes_ns = parts->p90_ns;
    const enum list_schedule_status status = list_schedule_make(&input, &slow);
    if (status == LIST_SCHEDULE_OK) {
        plan->total.p90_s = plan->forms[PLAN_GRAPH].p90_s = seconds_of(slow->makespan_ns);
    }
    list_schedule_destroy(&slow);
    return status != LIST_SCHEDULE_NO_MEMORY;
}

static struct plan *plan_create(size_t rows, size_t devices)
{
    struct plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) {
        return NULL;
    }
    plan->rows = calloc(rows, sizeof *plan->rows);
    plan->uses = calloc(devices, sizeof *plan->uses);
    plan->row_count = rows;
    plan->device_count = devices;
    plan->single = PLAN_ANYWHERE;
    if (plan->rows == NULL || plan->uses == NULL) {
        plan_destroy(&plan);
    }
    return plan;
}

static enum plan_status plan_of_parts(const struct plan_parts *parts, struct plan **ret_plan,
                                      struct plan_fault *ret_fault)
{
    struct list_schedule *schedule = NULL;
    struct plan *plan = NULL;
    enum list_schedule_status status = list_schedule_make(&parts->schedule, &schedule);
    *ret_fault = (struct plan_fault){.step = PLAN_ANYWHERE, .device = PLAN_ANYWHERE};
    if (status == LIST_SCHEDULE_OK) {
        plan = plan_create(schedule->subtasks, schedule->device_count);
        status = plan != NULL ? fill_plan(parts, schedule, plan) : LIST_SCHEDULE_NO_MEMORY;
    }
    list_schedule_destroy(&schedule);
    if (status == LIST_SCHEDULE_OK && ((parts->finds_single && !find_single(parts, plan)) ||
                                       (parts->p90_ns != NULL && !find_p90(parts, plan)))) {
        status = LIST_SCHEDULE_NO_MEMORY;
    }
    if (status != LIST_SCHEDULE_OK) {
        plan_destroy(&plan);
        return status_of(status, &ret_fault->problem);
    }
    *ret_plan = plan;
    return PLAN_OK;
}

/* ---------------------------------------------------------------- the whole */

enum plan_status plan_make(const struct plan_work *work, struct plan **ret_plan,
                           struct plan_fault *ret_fault)
{
    assert((work->steps == NULL) != (work->parts == NULL));
    if (work->parts != NULL) {
        return plan_of_parts(work->parts, ret_plan, ret_fault);
    }
    const enum plan_status status = plan_search(work->steps, ret_plan, ret_fault);
    if (status == PLAN_OK && !share_prices(*ret_plan)) {
        plan_destroy(ret_plan);
        return PLAN_NO_MEMORY;
    }
    return status;
}
