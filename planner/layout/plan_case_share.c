/* This file makes cases of a share of the batch, and of the work's chain (plan_internal.h). */
#include "planner/layout/plan_internal.h"

#include "planner/layout/plan_team.h"

#include <stdlib.h>
#include <string.h>

static enum steps_status make_chain(const struct plan_input *input, int64_t items,
                                    struct plan_case *of, struct problem *ret_why)
{
    int64_t values[TEMPLATE_PARAMETERS];
    size_t batch = template_batch(input->template);
    enum steps_status status;
    of->items = items;
    memcpy(values, input->values, template_parameters(input->template) * sizeof *values);
    if (batch != TEMPLATE_NO_PARAMETER) {
        values[batch] = items;
    }
    if (of->teams == NULL) {
        status = template_create_chain(input->template, values, &of->owned, ret_why);
    } else {
        status = template_create_divided(input->template, values, of->teams->width, true,
                                         &of->owned, ret_why);
    }
    of->steps = of->owned;
    return status;
}

static enum steps_status make_steps(const struct plan_input *input, int64_t items, int64_t parts,
                                    struct plan_case *of)
{
    int64_t values[TEMPLATE_PARAMETERS];
    of->steps = input->steps;
    of->items = items;
    bool is_parted = parts > 1 && plan_has_replicas(input);
    of->has_own_links = is_parted && input->values[template_replicas(input->template)] == 1;
    if (items == plan_items(input) && !is_parted && of->teams == NULL) {
        return STEPS_OK;
    }
    memcpy(values, input->values, template_parameters(input->template) * sizeof *values);
    values[template_batch(input->template)] = items;
    if (is_parted && !checked_mul(values[template_replicas(input->template)], parts,
                                  &values[template_replicas(input->template)])) {
        return STEPS_OVERFLOW;
    }
    enum steps_status status = of->teams == NULL
                                   ? template_create(input->template, values, &of->owned, NULL)
                                   : plan_team_steps(input, values, of->teams, &of->owned);
    of->steps = of->owned;
    return status;
}

size_t plan_stem(const char *name)
{
    size_t length = strlen(name);
    while (length > 0 && ((name[length - 1] >= '0' && name[length - 1] <= '9'))) {
        length--;
    }
    return length > 0 && name[length - 1] == ' ' ? length - 1 : strlen(name);
}

/* Returns the first step with the same name but for its number, for a chain. */
static size_t step_of_stem(const struct plan_case *whole, const char *name)
{
    size_t length = plan_stem(name);
    size_t s = 0;
    while (s < whole->steps->step_count &&
           !(plan_stem(whole->steps->steps[s].name) == length &&
             strncmp(whole->steps->steps[s].name, name, length) == 0)) {
        s++;
    }
    return s;
}

/* Returns the same step of the whole work, or its step count when only parts have the step. */
static size_t step_of_whole(const struct plan_case *whole, const struct plan_case *of, size_t step)
{
    const char *name = of->steps->steps[step].name;
    bool is_there =
        step < whole->steps->step_count && strcmp(whole->steps->steps[step].name, name) == 0;
    if (of->steps->column_count > 0) {
        return step_of_stem(whole, name);
    }
    return is_there ? step : steps_find(whole->steps, name);
}

static void cost_share(const struct plan_case *whole, uint32_t only, enum plan_terms terms,
                       struct plan_case *of)
{
    size_t devices = of->input->device_count;
    for (size_t s = 0; s < of->steps->step_count; s++) {
        size_t same = step_of_whole(whole, of, s);
        bool is_new = same == whole->steps->step_count;
        for (size_t d = 0; d < devices; d++) {
            struct plan_cost *cost = &of->costs[s * devices + d];
            const struct plan_cost *known = is_new ? NULL : plan_cost_at(whole, same, d);
            uint32_t like = of->like[d];
            if (only != PLAN_ANYWHERE && d != only) {
                cost->is_barred = true;
            } else if (only == PLAN_ANYWHERE && like != d) {
                *cost = of->costs[s * devices + like];
                cost->is_barred = known != NULL && known->is_barred;
            } else if (known != NULL && known->is_left_out) {
                plan_cost_leave_out(cost);
            } else {
                plan_case_set_cost(of, s, d, terms,
                                   is_new ? NULL : plan_history_at(of->input, same, d));
                cost->is_barred = known != NULL && known->is_barred;
            }
        }
    }
}

/* Returns an empty case over the devices of `whole`, or NULL when memory is short. */
static struct plan_case *begin_case(const struct plan_case *whole, struct plan_teams *teams)
{
    struct plan_case *of = calloc(1, sizeof *of);
    if (of != NULL) {
        of->input = whole->input;
        of->left_out = whole->left_out;
        of->nowhere = PLAN_ANYWHERE;
        of->teams = teams;
        memcpy(of->like, whole->like, sizeof of->like);
    }
    return of;
}

bool plan_case_share(const struct plan_case *whole, int64_t items, int64_t parts, uint32_t only,
                     enum plan_terms terms, struct plan_case **ret_case)
{
    struct plan_case *of = begin_case(whole, whole->teams);
    *ret_case = NULL;
    if (of == NULL) {
        return false;
    }
    enum steps_status status = make_steps(whole->input, items, parts, of);
    if (status != STEPS_OK || !plan_case_shape(of)) {
        plan_case_destroy(&of);
        return status != STEPS_OK && status != STEPS_NO_MEMORY;
    }
    cost_share(whole, only, terms, of);
    *ret_case = of;
    return true;
}

bool plan_can_chain(const struct plan_case *of)
{
    const struct plan_input *input = of->input;
    return input->template != NULL && input->template->make_chain != NULL &&
           input->placed == NULL && input->device_count > 1;
}

bool plan_case_chain(const struct plan_case *whole, int64_t items, struct plan_teams *teams,
                     enum plan_terms terms, struct plan_case **ret_case, struct problem *ret_why)
{
    const struct template *template = whole->input->template;
    *ret_case = NULL;
    if (template == NULL || template->make_chain == NULL ||
        (teams != NULL && template->make_divided == NULL)) {
        return true;
    }
    struct plan_case *of = begin_case(whole, teams);
    if (of == NULL) {
        return false;
    }
    enum steps_status status = make_chain(whole->input, items, of, ret_why);
    if (status != STEPS_OK || !plan_case_shape(of)) {
        plan_case_destroy(&of);
        return status != STEPS_OK && status != STEPS_NO_MEMORY;
    }
    cost_share(whole, PLAN_ANYWHERE, terms, of);
    *ret_case = of;
    return true;
}
