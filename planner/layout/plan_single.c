/* This file plans all steps on one device (plan_internal.h). */
#include "planner/layout/plan_internal.h"

#include <string.h>

bool plan_try_orders(struct plan_trial *trial)
{
    if (!plan_try(trial)) {
        return false;
    }
    if (trial->overflow_on != PLAN_ANYWHERE) {
        memcpy(trial->sequence, trial->of->lean,
               trial->of->steps->step_count * sizeof *trial->sequence);
        return plan_try(trial);
    }
    return true;
}

bool plan_try_single_device(struct plan_trial *trial, uint32_t device)
{
    for (uint32_t s = 0; s < trial->of->steps->step_count; s++) {
        trial->on[s] = device;
        trial->sequence[s] = s;
    }
    return plan_try_orders(trial);
}

/* Names the first step that the first device cannot run. */
static void explain_single(const struct plan_case *of, struct problem *ret_problem)
{
    struct problem why = {""};
    if (of->nowhere != PLAN_ANYWHERE) {
        plan_explain_nowhere(of, ret_problem);
        return;
    }
    for (size_t s = 0; s < of->steps->step_count; s++) {
        if (!plan_can_run(of, s, 0)) {
            plan_explain(of, s, 0, &why);
            problem_set(ret_problem, "no device can run every step; %.60s not \"%s\": %.300s",
                        of->input->devices[0].name, of->steps->steps[s].name, why.text);
            return;
        }
    }
    problem_set(ret_problem, "no device can run every step");
}

static void explain_room(const struct plan_trial *trial, struct problem *ret_problem)
{
    const struct plan_device *device = &trial->of->input->devices[trial->overflow_on];
    problem_set(ret_problem,
                "all that is on %.60s at a time takes %.3g GB, and the device has %.3g GB",
                device->name, trial->uses[trial->overflow_on].memory_bytes / 1e9,
                device->cost->profile->figures[FIGURE_MEMORY].value / 1e9);
}

bool plan_take_best(struct plan_trial *trial, enum plan_form form, const char *found_by,
                    struct layout_found *ret_found)
{
    ret_found->plan = NULL;
    ret_found->outcome = trial->outcome;
    if (trial->outcome.status == PLAN_NO_ROOM) {
        explain_room(trial, &ret_found->outcome.problem);
    }
    if (trial->outcome.status == PLAN_OK) {
        ret_found->plan = plan_of_trial(trial, form, found_by);
        ret_found->outcome = trial->outcome;
        return ret_found->plan != NULL;
    }
    return true;
}

uint32_t plan_best_single(struct plan_trial *now, struct plan_trial *best)
{
    uint32_t single = PLAN_ANYWHERE;
    for (uint32_t d = 0; d < now->of->input->device_count; d++) {
        if (plan_try_single_device(now, d) &&
            (single == PLAN_ANYWHERE || plan_is_better(now, best))) {
            plan_trial_copy(best, now);
            single = d;
        }
    }
    return single;
}

bool plan_single(const struct plan_case *of, struct layout_found *ret_found, uint32_t *ret_device)
{
    struct plan_trial *now = plan_trial_create(of);
    struct plan_trial *best = plan_trial_create(of);
    bool ok = now != NULL && best != NULL;
    *ret_found = (struct layout_found){.plan = NULL};
    if (ok) {
        *ret_device = plan_best_single(now, best);
        if (*ret_device != PLAN_ANYWHERE) {
            ok = plan_take_best(best, PLAN_SINGLE, "single", ret_found);
            *ret_device = best->outcome.status == PLAN_NO_ROOM ? PLAN_ANYWHERE : *ret_device;
        } else {
            ret_found->outcome.status = PLAN_NOWHERE;
            ret_found->outcome.price_micro = PLAN_UNPRICED;
            ret_found->outcome.merit = INFINITY;
            explain_single(of, &ret_found->outcome.problem);
        }
    }
    plan_trial_destroy(&now);
    plan_trial_destroy(&best);
    return ok;
}
