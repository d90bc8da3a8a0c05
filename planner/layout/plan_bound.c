/* This file computes bounds that no plan can beat. Undivided work has the bound of its graph. The
 * graph's bound does not hold for a batch that may be divided. A batch has two bounds:
 *
 *    work   the work of all items, as if it were divisible at will. A share of the batch takes no
 *           less than its part of the whole, since fixed costs, repeated weights and smaller
 *           shapes only make the share take longer.
 *    path   the path of one item, which goes through all steps
 *
 * Both bounds assume devices with unbounded memory. On devices that may be taken away, each step
 * takes its expected time in the smallest parts, one item each. A longer part repeats more work
 * after an interruption. The bounds of price and energy take each step on the device where the step
 * is cheapest. A lease is never shorter than its work.
 *
 * Work with a chain (steps.h) may be planned in its steps, or in columns of the chain on devices of
 * their own. Each of the two kinds of plans has its own bound, and the lower bound holds for all
 * plans. The columns do not sum up to the steps, since each column is rounded up. */
#include "planner/layout/plan_team.h"

#include "planner/schedule/bound.h"

#include <stdlib.h>

/* Returns the sum over all steps of the least value of `each` on a device that can run the step.
 * Returns 0 when the value of some step is unknown on every device. */
static double sum_of_least(const struct plan_case *of,
                           double (*each)(const struct plan_case *of, size_t step, size_t device))
{
    double sum = 0;
    for (size_t s = 0; s < of->steps->step_count; s++) {
        double lowest = INFINITY;
        for (size_t d = 0; d < of->input->device_count; d++) {
            lowest = plan_can_run(of, s, d) ? fmin(lowest, each(of, s, d)) : lowest;
        }
        if (!(lowest < INFINITY)) {
            return 0;
        }
        sum += lowest;
    }
    return sum * (1 - PLAN_ROUNDING);
}

static double price_at(const struct plan_case *of, size_t step, size_t device)
{
    int64_t price = of->input->devices[device].price_micro;
    double time_s = plan_cost_at(of, step, device)->here.time_s.value;
    return price < 0 ? INFINITY : (double)price * time_s / PLAN_HOUR_S;
}

static double energy_at(const struct plan_case *of, size_t step, size_t device)
{
    const struct plan_cost *cost = plan_cost_at(of, step, device);
    if (cost->is_left_out) {
        return 0;
    }
    return cost->here.energy_j.source == FIGURE_UNKNOWN ? INFINITY : cost->here.energy_j.value;
}

/* Raises *ret_bound_s to what `bound` finds for the graph of the plan's work. Returns false when
 * memory is short. */
static bool bound_by(const struct plan_case *of,
                     bool (*bound)(const struct workload *graph, double *ret_bound),
                     double *ret_bound_s)
{
    struct workload *graph = NULL;
    struct workload_fault fault;
    double slack_s = 0;
    enum workload_status status = plan_workload(of, &graph, &slack_s, &fault);
    bool ok = status != WORKLOAD_NO_MEMORY;
    if (status == WORKLOAD_OK) {
        double found_s = 0;
        ok = bound(graph, &found_s);
        *ret_bound_s = fmax(*ret_bound_s, found_s * (1 - PLAN_ROUNDING) - slack_s);
    }
    workload_destroy(&graph);
    return ok;
}

/* The lower bounds for one kind of plans. 0 means that a bound is unknown. */
struct least {
    double time_s, price_micro, energy_j;
};

/* Finds the bounds for `all` items, undivided (`is_whole`) or divisible at will. `one` is the same
 * work with one item, for the bound of the path, or NULL. Returns false when memory is short. */
static bool bound_case(struct plan_case *all, struct plan_case *one, bool is_whole,
                       struct least *ret_least)
{
    plan_case_interrupt(all, one == NULL ? all : one);
    if (one != NULL) {
        plan_case_interrupt(one, one);
    }
    *ret_least = (struct least){.price_micro = sum_of_least(all, price_at),
                                .energy_j = sum_of_least(all, energy_at)};
    return bound_by(all, is_whole ? bound_make : bound_work, &ret_least->time_s) &&
           (one == NULL || bound_by(one, bound_make, &ret_least->time_s));
}

/* Lowers each step's cost in `to` to the cost in `other` where that is lower. */
static void lower_costs(struct plan_case *to, const struct plan_case *other)
{
    for (size_t i = 0; i < to->steps->step_count * to->input->device_count; i++) {
        size_t step = i / to->input->device_count;
        size_t device = i % to->input->device_count;
        bool is_lower = plan_can_run(other, step, device) &&
                        (!plan_can_run(to, step, device) ||
                         other->costs[i].here.time_s.value < to->costs[i].here.time_s.value);
        to->costs[i] = is_lower ? other->costs[i] : to->costs[i];
    }
}

/* Lowers the costs in `one`, the work of one item, for layers that may be divided over a team of
 * devices. Each step takes its least time over all team widths, on the team's first device. Data
 * between devices counts as for the widest team. A team does no less work than one device, so the
 * division lowers the bound of the path only. Returns false when memory is short. */
static bool lower_to_teams(const struct plan_case *of, bool is_chain, struct plan_case **one)
{
    struct plan_teams *teams = calloc(1, sizeof *teams);
    struct plan_case whole = *of;
    const bool is_divided = of->input->template->make_divided != NULL;
    bool ok = teams != NULL;
    whole.teams = teams;
    for (uint32_t width = 2; ok && is_divided && width <= TEAM_MOST; width *= 2) {
        struct plan_case *divided = NULL;
        plan_teams_find(of, width, teams);
        if (teams->count > 0 && is_chain) {
            ok = plan_case_chain(of, 1, teams, PLAN_AT_LEAST, &divided, NULL);
        } else if (teams->count > 0) {
            ok = plan_case_share(&whole, 1, 1, PLAN_ANYWHERE, PLAN_AT_LEAST, &divided);
        }
        if (divided != NULL) {
            divided->teams = NULL; /* the teams array changes for the next width */
            lower_costs(divided, *one);
            plan_case_destroy(one);
            *one = divided;
        }
    }
    free(teams);
    return ok;
}

/* Finds the bounds for plans in steps. */
static bool bound_steps(const struct plan_case *of, double graph_bound_s, struct least *ret_least)
{
    struct plan_outcome unused;
    struct plan_case *all = NULL;
    struct plan_case *one = NULL;
    bool is_whole = !plan_is_divisible(of, &unused) && !plan_may_part(of->input);
    bool ok = plan_case_share(of, of->items, 1, PLAN_ANYWHERE, PLAN_AT_LEAST, &all) &&
              all != NULL &&
              (is_whole || plan_case_share(of, 1, 1, PLAN_ANYWHERE, PLAN_AT_LEAST, &one)) &&
              (is_whole || plan_has_replicas(of->input) || lower_to_teams(of, false, &one)) &&
              bound_case(all, one, is_whole, ret_least);
    if (ok && is_whole) {
        ret_least->time_s = fmax(ret_least->time_s, graph_bound_s);
    }
    plan_case_destroy(&all);
    plan_case_destroy(&one);
    return ok;
}

/* Lowers the bounds to the bounds for plans in columns, where those are lower. */
static bool lower_to_chain(const struct plan_case *of, struct least *least)
{
    struct least chain;
    struct plan_case *all = NULL;
    struct plan_case *one = NULL;
    bool ok =
        plan_case_chain(of, of->items, NULL, PLAN_AT_LEAST, &all, NULL) &&
        plan_case_chain(of, 1, NULL, PLAN_AT_LEAST, &one, NULL) &&
        (all == NULL || (lower_to_teams(of, true, &one) && bound_case(all, one, false, &chain)));
    if (ok && all != NULL) {
        least->time_s = fmin(least->time_s, chain.time_s);
        least->price_micro = fmin(least->price_micro, chain.price_micro);
        least->energy_j = fmin(least->energy_j, chain.energy_j);
    }
    plan_case_destroy(&all);
    plan_case_destroy(&one);
    return ok;
}

bool plan_bound(const struct plan_case *of, double graph_bound_s, struct plan_bounds *ret_bounds)
{
    struct least least;
    if (!bound_steps(of, graph_bound_s, &least) ||
        (plan_can_chain(of) && !lower_to_chain(of, &least))) {
        return false;
    }
    const double by_objective[] = {
        [PLAN_TIME] = least.time_s,
        [PLAN_PRICE] = least.price_micro,
        [PLAN_ENERGY] = least.energy_j,
        [PLAN_VALUE] =
            least.price_micro + least.time_s / PLAN_HOUR_S * (double)of->input->worth_micro,
    };
    *ret_bounds = (struct plan_bounds){.time_s = least.time_s,
                                       .merit = by_objective[of->input->objective],
                                       .price_micro = least.price_micro};
    return true;
}
