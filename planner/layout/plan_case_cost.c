/* This file sets the cost of a case's step on a device (plan_internal.h). The cost knows what was
 * measured, streamed weights, interruptions, and steps that are left out. */
#include "planner/layout/plan_internal.h"

#include "planner/layout/plan_team.h"

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

void plan_case_set_cost(struct plan_case *of, size_t s, size_t d, enum plan_terms terms,
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

void plan_cost_leave_out(struct plan_cost *cost)
{
    cost->status = COST_OK;
    cost->is_left_out = true;
    cost->here = cost->streamed = (struct plan_figures){.time_s = {.source = FIGURE_UNKNOWN}};
    cost->can_stream = true;
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
