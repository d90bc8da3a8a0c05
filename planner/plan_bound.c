/* Work that is not divided has the bound of its graph. A batch may be divided, which graphs do not know: there the bounds are
 *
 *     work   of all items, taken to be divisible at will: a share takes no less than its part of the whole, for what it costs to
 *            begin, weights that are read again and smaller shapes make it longer, never shorter
 *     path   of one item, which goes through all steps
 *
 * Work that can be cut into a line (steps.h) is bounded by the steps of that, each where it is best: pipelines put parts of a
 * step on devices of their own. The path of a batch that may be cut is that of one item through them.
 *
 * both on devices of which the memory has no bound and which nobody takes away. Price and energy of steps are least each
 * where it is least; a lease is never shorter than what it is for. */
#include "planner/plan_inner.h"

#include "planner/bound.h"

/* The sum over steps of the least that `each` is on a device where the step can run. 0: unknown everywhere, for some step. */
static double sum_of_least(const struct plan_case *least,
                           double (*each)(const struct plan_case *least, size_t step,
                                          size_t device))
{
    double sum = 0;
    for (size_t s = 0; s < least->steps->step_count; s++) {
        double lowest = INFINITY;
        for (size_t d = 0; d < least->input->device_count; d++) {
            lowest = plan_can_run(least, s, d) ? fmin(lowest, each(least, s, d)) : lowest;
        }
        if (!(lowest < INFINITY)) {
            return 0;
        }
        sum += lowest;
    }
    return sum * (1 - PLAN_ROUNDING);
}

static double price_at(const struct plan_case *least, size_t step, size_t device)
{
    int64_t price = least->input->devices[device].price_micro;
    double time_s = plan_cost_at(least, step, device)->here.time_s.value;
    return price < 0 ? INFINITY : (double)price * time_s / PLAN_HOUR_S;
}

static double energy_at(const struct plan_case *least, size_t step, size_t device)
{
    const struct plan_cost *cost = plan_cost_at(least, step, device);
    if (cost->is_left_out) {
        return 0;
    }
    return cost->here.energy_j.source == FIGURE_UNKNOWN ? INFINITY : cost->here.energy_j.value;
}

/* By one of the bounds of graphs, for what there is of each step. */
static bool bound_by(const struct plan_case *least,
                     bool (*bound)(const struct workload *graph, double *ret_bound),
                     double *ret_bound_s)
{
    struct workload *graph = NULL;
    struct workload_fault fault;
    double slack_s = 0;
    enum workload_status status = plan_workload(least, &graph, &slack_s, &fault);
    bool ok = status != WORKLOAD_NO_MEMORY;
    if (status == WORKLOAD_OK) {
        double found_s = 0;
        ok = bound(graph, &found_s);
        *ret_bound_s = fmax(*ret_bound_s, found_s * (1 - PLAN_ROUNDING) - slack_s);
    }
    workload_destroy(&graph);
    return ok;
}

static bool bound_time(const struct plan_case *of, const struct plan_case *least,
                       double graph_bound_s, double *ret_bound_s)
{
    struct plan_outcome unused;
    *ret_bound_s = 0;
    bool is_line = least->steps->column_count > 0;
    if (!is_line && !plan_is_divisible(least, &unused)) {
        *ret_bound_s = graph_bound_s;
        return true;
    }
    struct plan_case *one = NULL;
    bool ok = (is_line ? plan_case_line(of, 1, PLAN_AT_LEAST, &one)
                       : plan_case_share(least, 1, 1, PLAN_ANYWHERE, PLAN_AT_LEAST, &one)) &&
              bound_by(least, bound_work, ret_bound_s) &&
              (one == NULL || bound_by(one, bound_make, ret_bound_s));
    plan_case_destroy(&one);
    return ok;
}

bool plan_bound(const struct plan_case *of, double graph_bound_s, struct plan_bounds *ret_bounds)
{
    const struct plan_input *input = of->input;
    struct plan_bounds bounds = {.time_s = 0};
    struct plan_case *least = NULL;
    bool can_line = plan_can_line(of);
    if (can_line && !plan_case_line(of, of->items, PLAN_AT_LEAST, &least)) {
        return false;
    }
    if ((least == NULL &&
         !plan_case_share(of, of->items, 1, PLAN_ANYWHERE, PLAN_AT_LEAST, &least)) ||
        least == NULL || !bound_time(of, least, graph_bound_s, &bounds.time_s)) {
        plan_case_destroy(&least);
        return false;
    }
    bounds.price_micro = sum_of_least(least, price_at);
    switch (input->objective) {
    case PLAN_TIME:
        bounds.merit = bounds.time_s;
        break;
    case PLAN_PRICE:
        bounds.merit = bounds.price_micro;
        break;
    case PLAN_ENERGY:
        bounds.merit = sum_of_least(least, energy_at);
        break;
    case PLAN_VALUE:
        bounds.merit =
            bounds.price_micro + bounds.time_s / PLAN_HOUR_S * (double)input->worth_micro;
        break;
    case PLAN_OBJECTIVES:
        break;
    }
    plan_case_destroy(&least);
    *ret_bounds = bounds;
    return true;
}
