/* This file makes cases, which are steps with their costs on each device (plan_internal.h). */
#include "planner/layout/plan_internal.h"

#include "planner/layout/plan_team.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool plan_is_same_figure(const struct figure *a, const struct figure *b)
{
    return a->value == b->value && a->source == b->source && a->unverified == b->unverified;
}

static bool is_same_history(const struct history_summary *a, const struct history_summary *b)
{
    return a->count == b->count && a->median == b->median && a->p90 == b->p90;
}

bool plan_is_same_kind(const struct plan_input *input, uint32_t a, uint32_t b)
{
    const struct cost_device *left = input->devices[a].cost;
    const struct cost_device *right = input->devices[b].cost;
    const struct spot_risk *risk = &input->devices[a].risk;
    const struct spot_risk *other = &input->devices[b].risk;
    bool is_same = left->calibrations == right->calibrations &&
                   plan_is_same_figure(&left->storage, &right->storage) &&
                   plan_is_same_figure(&left->stream, &right->stream) &&
                   risk->per_hour == other->per_hour && risk->restart_s == other->restart_s &&
                   risk->interval_s == other->interval_s &&
                   risk->checkpoint_s == other->checkpoint_s;
    for (int i = 0; is_same && i < PROFILE_FIGURES; i++) {
        is_same = plan_is_same_figure(&left->profile->figures[i], &right->profile->figures[i]);
    }
    for (size_t s = 0; is_same && input->histories != NULL && s < input->steps->step_count; s++) {
        const struct history_summary *row = &input->histories[s * input->device_count];
        is_same = is_same_history(&row[a], &row[b]);
    }
    return is_same;
}

static void find_alike(struct plan_case *of)
{
    for (uint32_t d = 0; d < of->input->device_count; d++) {
        uint32_t first = 0;
        while (first < d && !(of->like[first] == first && plan_is_same_kind(of->input, first, d))) {
            first++;
        }
        of->like[d] = first;
    }
}

/* ---------------------------------------------------------------- placement */

static bool is_unknown(const struct plan_cost *cost)
{
    return cost->status == COST_NO_RATE || cost->status == COST_NO_LINK ||
           cost->status == COST_NO_STORAGE;
}

static bool can_run_somewhere(const struct plan_case *of, size_t step)
{
    bool can = false;
    for (size_t d = 0; d < of->input->device_count; d++) {
        can = can || plan_can_run(of, step, d);
    }
    return can;
}

static void leave_out_unknown(struct plan_case *of, size_t step)
{
    struct plan_cost *row = &of->costs[step * of->input->device_count];
    bool is_any = false;
    for (size_t d = 0; d < of->input->device_count; d++) {
        if (is_unknown(&row[d])) {
            plan_cost_leave_out(&row[d]);
            is_any = true;
        }
    }
    of->left_out += is_any;
}

static void bar_others(struct plan_case *of, size_t step, uint32_t device)
{
    for (uint32_t d = 0; d < of->input->device_count; d++) {
        of->costs[step * of->input->device_count + d].is_barred = d != device;
    }
}

static enum plan_status refuse_placement(const struct plan_case *of, uint32_t step,
                                         struct plan_fault *fault)
{
    struct problem why = {""};
    uint32_t device = of->input->placed[step];
    fault->step = step;
    fault->device = device;
    plan_explain(of, step, device, &why);
    problem_set(&fault->problem, "step \"%s\" cannot run on %s: %.300s",
                of->steps->steps[step].name, of->input->devices[device].name, why.text);
    return PLAN_PLACEMENT;
}

static enum plan_status settle(struct plan_case *of, struct plan_fault *fault)
{
    const struct plan_input *input = of->input;
    for (uint32_t s = 0; s < of->steps->step_count; s++) {
        if (!can_run_somewhere(of, s) && input->may_leave_out) {
            leave_out_unknown(of, s);
        }
        uint32_t device = input->placed == NULL ? PLAN_ANYWHERE : input->placed[s];
        if (device != PLAN_ANYWHERE && plan_can_run(of, s, device)) {
            bar_others(of, s, device);
        } else if (device != PLAN_ANYWHERE && !input->may_fall_back) {
            return refuse_placement(of, s, fault);
        }
        if (of->nowhere == PLAN_ANYWHERE && !can_run_somewhere(of, s)) {
            of->nowhere = s;
        }
        of->fallen_back += device != PLAN_ANYWHERE && !plan_can_run(of, s, device);
    }
    return PLAN_OK;
}

/* ---------------------------------------------------------------- the case */

int64_t plan_items(const struct plan_input *input)
{
    size_t batch =
        input->template == NULL ? TEMPLATE_NO_PARAMETER : template_batch(input->template);
    return batch == TEMPLATE_NO_PARAMETER || input->placed != NULL ? 1 : input->values[batch];
}

enum plan_status plan_case_create(const struct plan_input *input, struct plan_case **ret_case,
                                  struct plan_fault *ret_fault)
{
    return plan_case_of_teams(input, NULL, ret_case, ret_fault);
}

enum plan_status plan_case_of_teams(const struct plan_input *input, struct plan_teams *teams,
                                    struct plan_case **ret_case, struct plan_fault *ret_fault)
{
    struct plan_case *of = calloc(1, sizeof *of);
    if (of == NULL) {
        return PLAN_NO_MEMORY;
    }
    of->input = input;
    of->steps = input->steps;
    of->items = plan_items(input);
    of->nowhere = PLAN_ANYWHERE;
    of->teams = teams;
    if (!plan_case_shape(of)) {
        plan_case_destroy(&of);
        return PLAN_NO_MEMORY;
    }
    find_alike(of);
    for (size_t s = 0; s < of->steps->step_count; s++) {
        struct plan_cost *row = &of->costs[s * input->device_count];
        for (size_t d = 0; d < input->device_count; d++) {
            if (of->like[d] == d) {
                plan_case_set_cost(of, s, d, PLAN_AS_IT_IS, plan_history_at(input, s, d));
            } else {
                row[d] = row[of->like[d]];
            }
        }
    }
    enum plan_status status = settle(of, ret_fault);
    if (status != PLAN_OK) {
        plan_case_destroy(&of);
        return status;
    }
    *ret_case = of;
    return PLAN_OK;
}

uint32_t plan_samples(const struct plan_case *of, uint32_t first, size_t count, uint32_t device)
{
    uint32_t least = UINT32_MAX;
    for (size_t s = first; s < first + count; s++) {
        const struct plan_cost *cost = plan_cost_at(of, s, device);
        least = !cost->is_left_out && cost->samples < least ? cost->samples : least;
    }
    return least < UINT32_MAX ? least : 0;
}

bool plan_may_part(const struct plan_input *input)
{
    return plan_items(input) > 1 && !plan_has_replicas(input);
}

bool plan_has_replicas(const struct plan_input *input)
{
    return input->template != NULL && template_replicas(input->template) != TEMPLATE_NO_PARAMETER;
}

/* ---------------------------------------------------------------- reasons */

void plan_explain(const struct plan_case *of, size_t step, size_t device, struct problem *ret_why)
{
    const struct plan_cost *cost = plan_cost_at(of, step, device);
    const struct plan_device *on = &of->input->devices[device];
    const struct step *what = &of->steps->steps[step];
    if (cost->status == COST_UNKNOWN_BANDWIDTH || cost->status == COST_UNKNOWN_MEMORY) {
        const char *figure = cost->status == COST_UNKNOWN_MEMORY ? "memory" : "bandwidth";
        problem_set(ret_why, "its %s is not known; --figure %.*s=%s=%s says it", figure,
                    (int)plan_stem(on->name), on->name, figure,
                    cost->status == COST_UNKNOWN_MEMORY ? "SIZE" : "RATE");
    } else if (cost->status != COST_OK && cost->part < what->part_count) {
        struct cost again;
        const struct operation *operation = &what->parts[cost->part].operation;
        (void)cost_predict(on->cost, operation, &again); /* the cost as far as it is known */
        cost_explain(cost->status, on->name, on->cost->profile, operation, &again, ret_why->text,
                     sizeof ret_why->text);
    } else if (cost->status != COST_OK) {
        problem_set(
            ret_why, "the step needs %.3g GB, and the memory has %.3g GB",
            ((double)what->weight_bytes + (double)what->held_bytes + (double)what->working_bytes) /
                1e9,
            on->cost->profile->figures[FIGURE_MEMORY].value / 1e9);
    } else if (cost->is_hopeless) {
        problem_set(ret_why, "the step would be interrupted too often to end");
    } else {
        problem_set(ret_why, "the step has to be on another device");
    }
}

bool plan_lacks_figure(const struct plan_case *of)
{
    size_t devices = of->input->device_count;
    for (size_t d = 0; of->nowhere != PLAN_ANYWHERE && d < devices; d++) {
        enum cost_status status = plan_cost_at(of, of->nowhere, d)->status;
        if (status == COST_UNKNOWN_BANDWIDTH || status == COST_UNKNOWN_MEMORY) {
            return true;
        }
    }
    return false;
}

/* Lists the reasons of the first few devices. */
void plan_explain_nowhere(const struct plan_case *of, struct problem *ret_why)
{
    enum { SHOWN = 3 };
    size_t count = of->input->device_count;
    char text[sizeof ret_why->text];
    int used = snprintf(text, sizeof text, "step \"%s\" can run on none of the devices",
                        of->steps->steps[of->nowhere].name);
    for (size_t d = 0; d < count && d < SHOWN; d++) {
        struct problem why = {""};
        plan_explain(of, of->nowhere, d, &why);
        used += snprintf(text + used, sizeof text - (size_t)used, "; %.40s: %.85s",
                         of->input->devices[d].name, why.text);
    }
    problem_set(ret_why, "%s%s", text, count > SHOWN ? "; ..." : "");
}
