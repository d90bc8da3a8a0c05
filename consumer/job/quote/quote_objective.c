#include "consumer/job/quote/quote_objective.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "consumer/client/client.h"
#include "consumer/job/job_plan.h"
#include "consumer/job/submit.h"
#include "runtime/clock.h"

enum { PRICES_MOST = LIST_SCHEDULE_DEVICES };

static bool is_in_time(const struct objective_try *one, int64_t most_ns)
{
    return most_ns == 0 || one->makespan_ns <= most_ns;
}

/* Searches between `low` slots, which are too slow, and the slots of `choice` for the fewest that
 * are in time. Takes that number when it costs less. The search assumes that more slots are never
 * slower. */
static bool narrow(uint32_t low, uint32_t width, int64_t most_ns, objective_plan *plan,
                   void *context, struct objective_try *choice)
{
    struct objective_try fewest = *choice;
    while (fewest.slots - low > width) {
        const uint32_t half = (fewest.slots - low) / (2 * width) * width;
        struct objective_try one;
        if (!plan(context, low + (half > 0 ? half : width), &one)) {
            return false;
        }
        if (is_in_time(&one, most_ns)) {
            fewest = one;
        } else {
            low = one.slots;
        }
    }
    *choice = fewest.cost_micro < choice->cost_micro ? fewest : *choice;
    return true;
}

bool quote_objective_choose(const uint32_t *steps, size_t step_count, uint32_t width,
                            int64_t most_ns, objective_plan *plan, void *context,
                            struct objective_try *ret_choice)
{
    struct objective_try choice = {.slots = 0};
    struct objective_try last = {.slots = 0};
    uint32_t late_slots = 0; /* the last step before the choice that is too slow; 0: none */
    uint32_t before = 0;     /* the last step so far that is too slow */
    for (size_t i = 0; i < step_count; i++) {
        if (!plan(context, steps[i], &last)) {
            return false;
        }
        if (is_in_time(&last, most_ns) &&
            (choice.slots == 0 || last.cost_micro <= choice.cost_micro)) {
            choice = last;
            late_slots = before;
        }
        before = is_in_time(&last, most_ns) ? before : steps[i];
    }
    if (step_count == 0) {
        return false;
    }
    if (choice.slots == 0) {
        choice = last;
    } else if (late_slots > 0 && !narrow(late_slots, width, most_ns, plan, context, &choice)) {
        return false;
    }
    *ret_choice = choice;
    return true;
}

struct planner {
    struct bourse_job *job;
    const struct supply *supply;
    enum plan_status status; /* of the last plan */
};

static bool plan_with(void *context, uint32_t slots, struct objective_try *ret_try)
{
    struct planner *planner = context;
    struct order_part *part = &planner->job->parts[0];
    const uint32_t at_most = part->at_most;
    CLEANUP(plan_destroy) struct plan *plan = NULL;
    part->at_most = slots;
    const enum plan_status status = job_plan_on(planner->job, planner->supply, 0, &plan);
    part->at_most = at_most;
    planner->status = status;
    if (status != PLAN_OK) {
        return false;
    }
    *ret_try = (struct objective_try){.slots = slots,
                                      .cost_micro = plan->total.price_micro,
                                      .makespan_ns = plan_makespan_ns(plan)};
    return true;
}

/* Fills `steps` with one number for each price on offer: the slots of all places at this price or
 * less. Each place counts its slots for whole subtasks only. No number exceeds the job's own bound.
 * Returns how many numbers there are. */
static size_t steps_of(const struct bourse_job *job, const struct supply *supply,
                       uint32_t steps[PRICES_MOST])
{
    const struct order_part *part = &job->parts[0];
    const uint64_t wanted = (uint64_t)part->subtasks * part->slots;
    uint64_t most = job->file->at_most > 0 ? job->file->at_most : UINT32_MAX / part->slots;
    uint64_t slots = 0;
    size_t count = 0;
    most = wanted < most ? wanted : most;
    for (size_t i = 0; i < supply->count && i < PRICES_MOST && slots < most; i++) {
        slots += supply->places[i].slots.slots / part->slots * part->slots;
        slots = slots < most ? slots : most;
        const bool is_last_of_price =
            i + 1 == supply->count || slots == most ||
            supply->places[i + 1].slots.price_micro != supply->places[i].slots.price_micro;
        if (is_last_of_price && slots > 0) {
            steps[count++] = (uint32_t)slots;
        }
    }
    return count;
}

bool quote_objective_refuse(const struct bourse_job *job, enum plan_status status,
                            struct bourse_error *error)
{
    if (status == PLAN_NO_MEMORY) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    return client_fail(error, BOURSE_USAGE,
                       "objective: %s is for jobs that can be planned: at most %d subtasks, and "
                       "this job has %llu; split the job, or leave objective out",
                       job_objective_names[job->file->objective], LIST_SCHEDULE_SUBTASKS,
                       (unsigned long long)job->subtasks);
}

int64_t quote_objective_left_ns(const struct bourse *bourse, const struct bourse_job *job)
{
    const int64_t deadline_ms = submit_deadline_ms(bourse, job);
    const int64_t now_ms = consumer_session_log_time_ms(bourse->session, clock_monotonic_ns());
    int64_t left_ns = 0;
    return deadline_ms > now_ms && checked_mul(deadline_ms - now_ms, NS_PER_MS, &left_ns) ? left_ns
                                                                                          : 0;
}

bool quote_objective(const struct bourse *bourse, struct bourse_job *job,
                     const struct supply *supply, struct bourse_quote *quote,
                     struct bourse_error *error)
{
    uint32_t steps[PRICES_MOST];
    struct planner planner = {.job = job, .supply = supply};
    struct objective_try choice;
    quote->chosen_slots = quote->chosen_of = 0;
    if (job->file->objective == JOB_OBJECTIVE_TIME) {
        return true;
    }
    if (job->part_count != 1) {
        return client_fail(error, BOURSE_USAGE,
                           "objective: %s is for a job whose subtasks all have the same needs; "
                           "this job has %zu parts with different needs",
                           job_objective_names[job->file->objective], job->part_count);
    }
    if (job->file->objective != JOB_OBJECTIVE_PRICE) {
        return true;
    }
    const size_t count = steps_of(job, supply, steps);
    if (count == 0) {
        return true; /* nothing is on offer */
    }
    if (!quote_objective_choose(steps, count, job->parts[0].slots,
                                quote_objective_left_ns(bourse, job), plan_with, &planner,
                                &choice)) {
        return quote_objective_refuse(job, planner.status, error);
    }
    job->parts[0].at_most = choice.slots;
    quote->chosen_slots = choice.slots;
    quote->chosen_of = steps[count - 1];
    return true;
}
