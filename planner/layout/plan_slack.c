/* Slack moves a step that no other step waits for to where it costs less, if the plan ends no
 * later. It applies to plans by time in which each step is a row. The searches for the shortest
 * time already take the cheaper of two equal plans (plan_outcome_is_better). Slack is left if
 * prices are unknown or equal and energy differs, or where these searches did not look. Steps move
 * one at a time, while that helps. */
#include "planner/layout/plan_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The most step times that the moves compute. */
#define SLACK_EFFORT UINT64_C(200000)

struct reclaim {
    const struct plan_case *of;
    struct plan_trial *best, *now;
    uint64_t left; /* effort left */
};

/* Takes over the devices and the order of the plan's steps. */
static void follow(const struct plan *plan, struct plan_trial *trial)
{
    for (size_t i = 0; i < plan->row_count; i++) {
        const struct plan_row *row = &plan->rows[i];
        trial->on[row->first_step] = row->device;
        trial->sequence[i] = row->first_step;
    }
}

static bool is_by_step(const struct plan_case *of, const struct plan *plan)
{
    return (plan->form == PLAN_SINGLE || plan->form == PLAN_GRAPH) && plan->rows[0].rounds < 2 &&
           plan->row_count == of->steps->step_count && plan->left_out == of->left_out;
}

/* Returns true when the trial ends no later, and takes less money, or the same money and less
 * energy. */
static bool takes_less(const struct plan_trial *now, const struct plan_trial *best)
{
    const struct plan_outcome *a = &now->outcome;
    const struct plan_outcome *b = &best->outcome;
    const bool has_prices = a->price_micro >= 0 && b->price_micro >= 0;
    const bool has_energy =
        a->energy_j.source != FIGURE_UNKNOWN && b->energy_j.source != FIGURE_UNKNOWN;
    if (a->status != PLAN_OK || now->overflow_bytes > best->overflow_bytes ||
        a->makespan_s.value > b->makespan_s.value * (1 + PLAN_ROUNDING) ||
        (b->price_micro >= 0 && a->price_micro < 0) ||
        (b->energy_j.source != FIGURE_UNKNOWN && !has_energy)) {
        return false;
    }
    if (has_prices && a->price_micro != b->price_micro) {
        return a->price_micro < b->price_micro;
    }
    return has_energy && a->energy_j.value < b->energy_j.value * (1 - PLAN_ROUNDING);
}

/* Returns true when a device might take less for a step than its present device. */
static bool may_help(const struct plan_case *of, size_t step, uint32_t from, uint32_t to)
{
    const struct plan_cost *here = plan_cost_at(of, step, from);
    const struct plan_cost *there = plan_cost_at(of, step, to);
    const struct figure *energy = &there->here.energy_j;
    return to != from && plan_can_run(of, step, to) && !here->is_left_out &&
           (of->input->devices[to].price_micro < of->input->devices[from].price_micro ||
            (energy->source != FIGURE_UNKNOWN && energy->value < here->here.energy_j.value));
}

static bool move_one(struct reclaim *reclaim)
{
    const struct plan_case *of = reclaim->of;
    bool is_any = false;
    for (size_t s = 0; s < of->steps->step_count; s++) {
        for (uint32_t d = 0; d < of->input->device_count; d++) {
            if (!may_help(of, s, reclaim->best->on[s], d) ||
                reclaim->left < of->steps->step_count) {
                continue;
            }
            reclaim->left -= of->steps->step_count;
            plan_trial_copy(reclaim->now, reclaim->best);
            reclaim->now->on[s] = d;
            if (plan_try(reclaim->now) && takes_less(reclaim->now, reclaim->best)) {
                plan_trial_copy(reclaim->best, reclaim->now);
                is_any = true;
            }
        }
    }
    return is_any;
}

/* Copies the other results of the plan, and computes the savings. */
static void carry_over(const struct plan *from, struct plan *to)
{
    for (int i = 0; i < PLAN_FORMS; i++) {
        to->forms[i] = from->forms[i];
    }
    to->forms[PLAN_GRAPH] = to->total;
    to->single = from->single;
    memcpy(to->variants, from->variants, sizeof to->variants);
    to->variant_count = from->variant_count;
    to->bound = from->bound;
    to->time_bound_s = from->time_bound_s;
    to->slack.saved_micro = from->total.price_micro >= 0 && to->total.price_micro >= 0
                                ? from->total.price_micro - to->total.price_micro
                                : 0;
    to->slack.saved_j = from->total.energy_j.source != FIGURE_UNKNOWN
                            ? from->total.energy_j.value - to->total.energy_j.value
                            : 0;
    for (size_t i = 0; i < from->row_count; i++) {
        for (size_t k = 0; k < to->row_count; k++) {
            to->slack.moved += to->rows[k].first_step == from->rows[i].first_step &&
                               to->rows[k].device != from->rows[i].device;
        }
    }
}

static bool reclaim_all(struct reclaim *reclaim, struct plan **plan)
{
    follow(*plan, reclaim->best);
    /* The trial must reproduce the plan. Otherwise the plan rests on facts that are unknown
     * here. */
    if (!plan_try(reclaim->best) || reclaim->best->outcome.status != PLAN_OK ||
        reclaim->best->overflow_bytes > 0 ||
        reclaim->best->outcome.makespan_s.value >
            (*plan)->total.makespan_s.value * (1 + PLAN_ROUNDING)) {
        return true;
    }
    bool is_any = false;
    while (move_one(reclaim)) {
        is_any = true;
    }
    if (!is_any) {
        return true;
    }
    struct plan *made = plan_of_trial(reclaim->best, PLAN_GRAPH, "slack");
    if (made == NULL) {
        return false;
    }
    carry_over(*plan, made);
    plan_destroy(plan);
    *plan = made;
    return true;
}

bool plan_reclaim(const struct plan_case *of, struct plan **plan)
{
    if (of->input->objective != PLAN_TIME || !is_by_step(of, *plan)) {
        return true;
    }
    struct reclaim reclaim = {.of = of,
                              .best = plan_trial_create(of),
                              .now = plan_trial_create(of),
                              .left = SLACK_EFFORT};
    const bool ok = reclaim.best != NULL && reclaim.now != NULL && reclaim_all(&reclaim, plan);
    plan_trial_destroy(&reclaim.best);
    plan_trial_destroy(&reclaim.now);
    return ok;
}
