/* This file makes cases, which are steps with their costs on each device (plan_internal.h). */
#include "planner/layout/plan_internal.h"

#include "planner/layout/plan_team.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- shape */

static bool alloc_case(struct plan_case *of)
{
    size_t steps = of->steps->step_count;
    of->costs = calloc(steps * of->input->device_count, sizeof *of->costs);
    of->own_bytes = calloc(steps, sizeof *of->own_bytes);
    of->out_first = calloc(steps + 1, sizeof *of->out_first);
    of->out = calloc(of->steps->edge_count + steps + 1, sizeof *of->out);
    of->in_count = calloc(steps, sizeof *of->in_count);
    of->lean = calloc(steps, sizeof *of->lean);
    return of->costs != NULL && of->own_bytes != NULL && of->out_first != NULL && of->out != NULL &&
           of->in_count != NULL && of->lean != NULL;
}

void plan_case_destroy(struct plan_case **self)
{
    struct plan_case *of = *self;
    if (of != NULL) {
        steps_destroy(&of->owned);
        free(of->costs);
        free(of->own_bytes);
        free(of->out_first);
        free(of->out);
        free(of->in_count);
        free(of->lean);
        free(of);
        *self = NULL;
    }
}

static int by_step(const void *left, const void *right)
{
    const struct plan_arc *a = left;
    const struct plan_arc *b = right;
    return a->step < b->step ? -1 : a->step > b->step;
}

/* Sorts arcs by the step that they leave, and finds what each step keeps beside them. */
static void connect(struct plan_case *of)
{
    const struct steps *steps = of->steps;
    for (size_t s = 0; s < steps->step_count; s++) {
        of->own_bytes[s] = (double)steps->steps[s].held_bytes;
    }
    for (size_t i = 0; i < steps->edge_count; i++) {
        const struct step_edge *edge = &steps->edges[i];
        assert(edge->from < edge->to && edge->to < steps->step_count);
        of->out_first[edge->from + 1]++;
        of->in_count[edge->to]++;
        of->own_bytes[edge->from] -= (double)(edge->bytes - edge->set_bytes);
        of->own_bytes[edge->to] -= (double)(edge->bytes - edge->set_bytes);
    }
    for (size_t s = 0; s < steps->step_count; s++) {
        assert(steps->steps[s].renewed_by == 0 || steps->steps[s].renewed_by > s);
        of->out_first[steps->steps[s].renewed_by + 1] += steps->steps[s].renewed_by > 0;
    }
    for (size_t s = 0; s < steps->step_count; s++) {
        of->out_first[s + 1] += of->out_first[s];
        of->own_bytes[s] = fmax(of->own_bytes[s], 0);
    }
    for (size_t i = steps->edge_count; i-- > 0;) { /* each row is filled from its end */
        const struct step_edge *edge = &steps->edges[i];
        of->out[--of->out_first[edge->from + 1]] =
            (struct plan_arc){.step = edge->to,
                              .bytes = (double)edge->bytes,
                              .held = (double)(edge->bytes - edge->set_bytes)};
    }
    uint32_t count = (uint32_t)steps->edge_count;
    for (uint32_t s = 0; s < steps->step_count; s++) {
        const struct step *step = &steps->steps[s];
        if (step->renewed_by > 0) {
            of->out[--of->out_first[step->renewed_by + 1]] =
                (struct plan_arc){.step = s, .bytes = (double)step->renewed_bytes};
            count++;
        }
    }
    for (size_t s = 0; s < steps->step_count; s++) { /* ends where the next began to be filled */
        of->out_first[s] = of->out_first[s + 1];
    }
    of->out_first[steps->step_count] = count;
    for (size_t s = 0; s < steps->step_count; s++) {
        qsort(&of->out[of->out_first[s]], of->out_first[s + 1] - of->out_first[s], sizeof *of->out,
              by_step);
    }
}

/* `waits` counts the arcs that each step still waits for. `growth` is the change of the bytes in
 * edges when the step is done. */
static void order_lean(struct plan_case *of, uint32_t *waits, double *growth)
{
    size_t steps = of->steps->step_count;
    memcpy(waits, of->in_count, steps * sizeof *waits);
    for (size_t i = 0; i < of->steps->edge_count; i++) {
        const struct step_edge *edge = &of->steps->edges[i];
        double held = (double)(edge->bytes - edge->set_bytes);
        growth[edge->from] += held;
        growth[edge->to] -= held;
    }
    for (size_t i = 0; i < steps; i++) {
        size_t next = steps;
        for (size_t s = 0; s < steps; s++) {
            bool is_ready = waits[s] == 0;
            next = is_ready && (next == steps || growth[s] < growth[next]) ? s : next;
        }
        assert(next < steps); /* edges lead from earlier steps to later ones */
        of->lean[i] = (uint32_t)next;
        waits[next] = UINT32_MAX;
        for (uint32_t k = of->out_first[next]; k < of->out_first[next + 1]; k++) {
            waits[of->out[k].step] -= of->out[k].step > next;
        }
    }
}

static bool find_lean(struct plan_case *of)
{
    assert(of->steps->step_count > 0);
    uint32_t *waits = calloc(of->steps->step_count, sizeof *waits);
    double *growth = calloc(of->steps->step_count, sizeof *growth);
    bool ok = waits != NULL && growth != NULL;
    if (ok) {
        order_lean(of, waits, growth);
    }
    free(waits);
    free(growth);
    return ok;
}

static bool shape(struct plan_case *of)
{
    if (!alloc_case(of)) {
        return false;
    }
    connect(of);
    return find_lean(of);
}

/* ---------------------------------------------------------------- costs of a step */

#define LINKS_FREE 1e300 /* bytes per second: link times are counted elsewhere */

static void lengthen(struct plan_figures *figures, double time_s)
{
    if (figures->energy_j.source != FIGURE_UNKNOWN && figures->time_s.value > 0) {
        figures->energy_j.value *= time_s / figures->time_s.value;
    }
    figures->time_s.value = time_s;
}

/* Makes times expected ones if the device may be taken away. Returns false if they never end. */
static bool interrupt(const struct spot_risk *risk, struct plan_figures *figures)
{
    double expected_s = 0;
    if (!(risk->per_hour > 0)) {
        return true;
    }
    if (spot_expect(risk, figures->time_s.value, &expected_s) != SPOT_OK) {
        return false;
    }
    lengthen(figures, expected_s);
    figures->p90_s = 0;
    return true;
}

static struct plan_figures stream(const struct cost_device *device, const struct step *step,
                                  const struct plan_figures *here)
{
    struct plan_figures figures = *here;
    double stream_s = (double)step->weight_bytes * (double)step->passes / device->stream.value;
    if (stream_s > figures.time_s.value) {
        lengthen(&figures, stream_s);
    }
    if (device->stream.source < figures.time_s.source) {
        figures.time_s.source = device->stream.source;
    }
    figures.time_s.unverified |= device->stream.unverified;
    figures.p90_s = figures.p90_s > 0 ? fmax(figures.p90_s, figures.time_s.value) : 0;
    return figures;
}

static void learn(const struct history_summary *history, const struct step_cost *from,
                  struct plan_cost *cost)
{
    struct cost learnt = {.bound_s = from->bound_s,
                          .time_s = cost->here.time_s,
                          .p90_s = cost->here.p90_s,
                          .energy_j = cost->here.energy_j,
                          .lacks = from->lacks};
    if (history != NULL && history->count > 0) {
        cost_learn(history, &learnt);
        cost->here = (struct plan_figures){learnt.time_s, learnt.p90_s, learnt.energy_j};
        cost->samples = learnt.samples;
    }
}

/* An unknown figure is never taken for large or fast. The step must be known to fit, and the time
 * of its bytes must be known or measured. */
static bool check_known(const struct history_summary *history, const struct step_cost *found,
                        struct plan_cost *cost)
{
    bool is_measured = history != NULL && history->count > 0;
    if ((found->lacks & COST_LACKS_MEMORY) != 0) {
        cost->status = COST_UNKNOWN_MEMORY;
    } else if ((found->lacks & COST_LACKS_BANDWIDTH) != 0 && !is_measured) {
        cost->status = COST_UNKNOWN_BANDWIDTH;
    }
    return cost->status == COST_OK;
}

static const struct history_summary *history_of(const struct plan_input *input, size_t step,
                                                size_t device)
{
    return input->histories == NULL ? NULL : &input->histories[step * input->device_count + device];
}

/* The links of a team are those between its devices, not the catalogue's figure of one. */
static enum cost_status tell(const struct plan_case *of, const struct step *step, uint32_t device,
                             const struct cost_device *on, struct plan_figures *figures)
{
    struct device_profile profile = *on->profile;
    struct cost_device free_links = *on;
    profile.figures[FIGURE_INTERCONNECT] =
        (struct figure){.value = LINKS_FREE, .source = FIGURE_MEASURED};
    free_links.profile = &profile;
    return plan_team_add(of->teams, of, &free_links, step, device, figures);
}

static void set_cost(struct plan_case *of, size_t s, size_t d, enum plan_terms terms,
                     const struct history_summary *history)
{
    const struct plan_input *input = of->input;
    const struct plan_device *device = &input->devices[d];
    const struct step *step = &of->steps->steps[s];
    struct plan_cost *cost = &of->costs[s * input->device_count + d];
    struct spot_risk risk = device->risk;
    struct cost_device on = *device->cost;
    struct device_profile roomy = *on.profile;
    struct step_cost found;
    if (terms == PLAN_AT_LEAST && on.profile->figures[FIGURE_MEMORY].source != FIGURE_UNKNOWN) {
        roomy.figures[FIGURE_MEMORY] =
            (struct figure){.value = INFINITY, .source = FIGURE_MEASURED};
        on.profile = &roomy;
    }
    if (of->has_own_links) {
        roomy.figures[FIGURE_INTERCONNECT] =
            (struct figure){.value = LINKS_FREE, .source = FIGURE_MEASURED};
        on.profile = &roomy;
    }
    cost->part = step->part_count;
    cost->status = steps_cost(&on, step, &found, &cost->part);
    if (cost->status != COST_OK) {
        return;
    }
    if (!check_known(history, &found, cost)) {
        return;
    }
    cost->here = (struct plan_figures){found.time_s, found.p90_s, found.energy_j};
    cost->must_stream = found.is_streamed;
    cost->is_widened = found.is_widened;
    learn(history, &found, cost);
    if (of->teams != NULL) {
        cost->status = tell(of, step, (uint32_t)d, &on, &cost->here);
        risk.per_hour *= of->teams->width;
        cost->here.energy_j.value *= of->teams->is_whole ? of->teams->width : 1;
    }
    if (terms == PLAN_AT_LEAST || cost->status != COST_OK) {
        return;
    }
    cost->can_stream = on.stream.source != FIGURE_UNKNOWN;
    cost->streamed = cost->can_stream ? stream(&on, step, &cost->here) : cost->here;
    cost->is_hopeless = !interrupt(&risk, &cost->here);
    cost->can_stream = interrupt(&risk, &cost->streamed) && cost->can_stream;
}

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

static void leave_out(struct plan_cost *cost)
{
    cost->status = COST_OK;
    cost->is_left_out = true;
    cost->here = cost->streamed = (struct plan_figures){.time_s = {.source = FIGURE_UNKNOWN}};
    cost->can_stream = true;
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
            leave_out(&row[d]);
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
    if (!shape(of)) {
        plan_case_destroy(&of);
        return PLAN_NO_MEMORY;
    }
    find_alike(of);
    for (size_t s = 0; s < of->steps->step_count; s++) {
        struct plan_cost *row = &of->costs[s * input->device_count];
        for (size_t d = 0; d < input->device_count; d++) {
            if (of->like[d] == d) {
                set_cost(of, s, d, PLAN_AS_IT_IS, history_of(input, s, d));
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

/* Returns the length of a name without its number. */
static size_t stem_of(const char *name)
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
    size_t length = stem_of(name);
    size_t s = 0;
    while (s < whole->steps->step_count &&
           !(stem_of(whole->steps->steps[s].name) == length &&
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
                leave_out(cost);
            } else {
                set_cost(of, s, d, terms, is_new ? NULL : history_of(of->input, same, d));
                cost->is_barred = known != NULL && known->is_barred;
            }
        }
    }
}

bool plan_case_share(const struct plan_case *whole, int64_t items, int64_t parts, uint32_t only,
                     enum plan_terms terms, struct plan_case **ret_case)
{
    struct plan_case *of = calloc(1, sizeof *of);
    *ret_case = NULL;
    if (of == NULL) {
        return false;
    }
    of->input = whole->input;
    of->left_out = whole->left_out;
    of->nowhere = PLAN_ANYWHERE;
    of->teams = whole->teams;
    memcpy(of->like, whole->like, sizeof of->like);
    enum steps_status status = make_steps(whole->input, items, parts, of);
    if (status != STEPS_OK || !shape(of)) {
        plan_case_destroy(&of);
        return status != STEPS_OK && status != STEPS_NO_MEMORY;
    }
    cost_share(whole, only, terms, of);
    *ret_case = of;
    return true;
}

void plan_case_interrupt(struct plan_case *least, const struct plan_case *one)
{
    size_t devices = least->input->device_count;
    for (size_t s = 0; s < least->steps->step_count; s++) {
        size_t same = steps_find(one->steps, least->steps->steps[s].name);
        for (size_t d = 0; d < devices; d++) {
            struct plan_figures *figures = &least->costs[s * devices + d].here;
            bool is_there = same < one->steps->step_count && plan_can_run(one, same, d);
            double part_s = is_there ? plan_cost_at(one, same, d)->here.time_s.value : 0;
            lengthen(figures,
                     spot_least(&least->input->devices[d].risk, figures->time_s.value, part_s));
        }
    }
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
    struct plan_case *of = calloc(1, sizeof *of);
    if (of == NULL) {
        return false;
    }
    of->input = whole->input;
    of->left_out = whole->left_out;
    of->nowhere = PLAN_ANYWHERE;
    memcpy(of->like, whole->like, sizeof of->like);
    of->teams = teams;
    enum steps_status status = make_chain(whole->input, items, of, ret_why);
    if (status != STEPS_OK || !shape(of)) {
        plan_case_destroy(&of);
        return status != STEPS_OK && status != STEPS_NO_MEMORY;
    }
    cost_share(whole, PLAN_ANYWHERE, terms, of);
    *ret_case = of;
    return true;
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
                    (int)stem_of(on->name), on->name, figure,
                    cost->status == COST_UNKNOWN_MEMORY ? "SIZE" : "RATE");
    } else if (cost->status != COST_OK && cost->part < what->part_count) {
        struct cost again;
        const struct operation *operation = &what->parts[cost->part].operation;
        (void)cost_predict(on->cost, operation, &again); /* the cost as far as it is known */
        cost_explain(cost->status, on->name, on->cost->profile, operation, &again, ret_why->text,
                     sizeof ret_why->text);
    } else if (cost->status != COST_OK) {
        problem_set(
            ret_why, "it needs %.3g GB, and there are %.3g GB of memory",
            ((double)what->weight_bytes + (double)what->held_bytes + (double)what->working_bytes) /
                1e9,
            on->cost->profile->figures[FIGURE_MEMORY].value / 1e9);
    } else if (cost->is_hopeless) {
        problem_set(ret_why, "it would be interrupted too often to come to its end");
    } else {
        problem_set(ret_why, "it has to be on another device");
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
