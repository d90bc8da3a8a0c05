#include "consumer/job/quote/quote_energy.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "consumer/client/client.h"
#include "consumer/job/job_plan.h"
#include "consumer/job/quote/power_limits.h"
#include "consumer/job/quote/quote_objective.h"
#include "consumer/job/submit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- places */

static bool is_known(const struct supply_place *place)
{
    return place->power_mw > 0 && place->instrument[0] != '\0';
}

static bool is_within(const struct job_power_limits *limits, const struct supply_place *place)
{
    return power_limits_allow(limits, place->instrument, place->power_mw);
}

void quote_energy_restrict(const struct job_power_limits *limits, struct supply *supply)
{
    size_t kept = 0;
    for (size_t i = 0; i < supply->count; i++) {
        if (is_within(limits, &supply->places[i])) {
            supply->places[kept++] = supply->places[i];
        }
    }
    supply->count = kept;
}

/* ---------------------------------------------------------------- steps */

struct ranked {
    size_t place;
    int128 energy; /* milliwatts times ns of all subtasks; -1: unknown */
};

/* Unknown energies come last. */
static int least_first(const void *a, const void *b)
{
    const struct ranked *left = a;
    const struct ranked *right = b;
    if ((left->energy < 0) != (right->energy < 0)) {
        return left->energy < 0 ? 1 : -1;
    }
    if (left->energy != right->energy) {
        return left->energy < right->energy ? -1 : 1;
    }
    return left->place < right->place ? -1 : left->place > right->place;
}

/* Returns the time of all subtasks of the first part on a class of devices. */
static int64_t work_ns(const struct bourse_job *job, const struct supply *supply, uint32_t of_class)
{
    int64_t sum_ns = 0;
    for (uint32_t k = 0; k < job->parts[0].subtasks; k++) {
        if (!checked_add(sum_ns, supply_figure(job, supply, of_class, 0, k).takes_ns, &sum_ns)) {
            return INT64_MAX;
        }
    }
    return sum_ns;
}

static void rank(const struct bourse_job *job, const struct supply *supply, struct ranked *ranked)
{
    int64_t takes_ns[LIST_SCHEDULE_CLASSES] = {0};
    for (size_t i = 0; i < supply->count; i++) {
        const struct supply_place *place = &supply->places[i];
        int64_t *all_ns = &takes_ns[place->slots.of_class];
        *all_ns = *all_ns > 0 ? *all_ns : work_ns(job, supply, place->slots.of_class);
        ranked[i] = (struct ranked){
            .place = i, .energy = is_known(place) ? (int128)place->power_mw * *all_ns : -1};
    }
    qsort(ranked, supply->count, sizeof *ranked, least_first);
}

static uint32_t slots_within(const struct bourse_job *job, const struct supply *supply,
                             const struct job_power_limits *limits)
{
    const uint32_t width = job->parts[0].slots;
    uint64_t slots = 0;
    for (size_t i = 0; i < supply->count; i++) {
        const struct supply_place *place = &supply->places[i];
        slots += is_within(limits, place) ? place->slots.slots / width * width : 0;
    }
    return slots < UINT32_MAX ? (uint32_t)slots : UINT32_MAX;
}

size_t quote_energy_steps(const struct bourse_job *job, const struct supply *supply,
                          struct energy_step ret_steps[QUOTE_ENERGY_STEPS])
{
    struct ranked *ranked = calloc(supply->count + 1, sizeof *ranked);
    struct job_power_limits limits = {.count = 0};
    const uint32_t all = slots_within(job, supply, &limits);
    size_t count = 0;
    uint32_t before = 0;
    if (ranked == NULL || all == 0) {
        free(ranked);
        return 0;
    }
    rank(job, supply, ranked);
    for (size_t i = 0; i < supply->count && ranked[i].energy >= 0; i++) {
        const struct supply_place *place = &supply->places[ranked[i].place];
        if (!power_limits_add(&limits, place->instrument, place->power_mw)) {
            break;
        }
        const bool is_last = i + 1 == supply->count || ranked[i + 1].energy != ranked[i].energy;
        const uint32_t slots = is_last ? slots_within(job, supply, &limits) : 0;
        if (slots > before && slots < all && count < QUOTE_ENERGY_STEPS - 1) {
            ret_steps[count++] = (struct energy_step){.limits = limits, .slots = slots};
            before = slots;
        }
    }
    free(ranked);
    ret_steps[count++] = (struct energy_step){.slots = all};
    return count;
}

/* ---------------------------------------------------------------- the choice */

struct planner {
    struct bourse_job *job;
    const struct supply *supply;
    const struct energy_step *steps;
    enum plan_status status; /* of the last plan */
};

/* A plan of unknown energy counts as the worst. */
static int64_t energy_uj(const struct plan *plan)
{
    const struct figure *energy = &plan->total.energy_j;
    return energy->source == FIGURE_UNKNOWN || energy->value > 1e12 ? INT64_MAX
                                                                    : llround(energy->value * 1e6);
}

static bool plan_step(void *context, uint32_t number, struct objective_try *ret_try)
{
    struct planner *planner = context;
    struct supply some = *planner->supply;
    CLEANUP(plan_destroy) struct plan *plan = NULL;
    some.places = calloc(some.count, sizeof *some.places);
    planner->status = PLAN_NO_MEMORY;
    if (some.places != NULL) {
        memcpy(some.places, planner->supply->places, some.count * sizeof *some.places);
        quote_energy_restrict(&planner->steps[number - 1].limits, &some);
        planner->status = job_plan_on(planner->job, &some, 0, &plan);
    }
    free(some.places);
    if (planner->status != PLAN_OK) {
        return false;
    }
    *ret_try = (struct objective_try){
        .slots = number, .cost_micro = energy_uj(plan), .makespan_ns = plan_makespan_ns(plan)};
    return true;
}

static uint32_t slots_unknown(const struct supply *supply)
{
    uint32_t slots = 0;
    for (size_t i = 0; i < supply->count; i++) {
        slots += is_known(&supply->places[i]) ? 0 : supply->places[i].slots.slots;
    }
    return slots;
}

bool quote_energy(const struct bourse *bourse, struct bourse_job *job, const struct supply *supply,
                  struct bourse_quote *quote, struct bourse_error *error)
{
    uint32_t numbers[QUOTE_ENERGY_STEPS];
    struct objective_try choice;
    quote->energy_slots = quote->energy_of = quote->energy_unknown = 0;
    quote->energy_uj = -1;
    job->power_limits.count = 0;
    if (job->file->objective != JOB_OBJECTIVE_ENERGY) {
        return true;
    }
    struct energy_step *steps = calloc(QUOTE_ENERGY_STEPS, sizeof *steps);
    if (steps == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    struct planner planner = {.job = job, .supply = supply, .steps = steps};
    const size_t count = quote_energy_steps(job, supply, steps);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (uint32_t)i + 1;
    }
    bool good = true;
    if (count > 0) {
        good = quote_objective_choose(numbers, count, 1, quote_objective_left_ns(bourse, job),
                                      plan_step, &planner, &choice) ||
               quote_objective_refuse(job, planner.status, error);
    }
    if (good && count > 0) {
        const struct energy_step *step = &steps[choice.slots - 1];
        struct requirement needs = job->parts[0].needs;
        job->power_limits = step->limits;
        quote->energy_slots = step->slots;
        quote->energy_of = steps[count - 1].slots;
        quote->energy_unknown = slots_unknown(supply);
        quote->energy_uj = choice.cost_micro < INT64_MAX ? choice.cost_micro : -1;
        good = power_limits_add_needs(&step->limits, &needs) ||
               client_fail(error, BOURSE_USAGE,
                           "needs: too many terms to ask for the devices of least energy");
    }
    free(steps);
    return good;
}
