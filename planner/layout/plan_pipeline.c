/* This file plans pipelines, which are the stages of a chain (stage_chain.h). */
#include "planner/layout/plan_internal.h"

bool plan_pipeline(const struct plan_case *of, struct layout_found *ret_found)
{
    if (plan_can_chain(of) && !of->has_no_chain) {
        return plan_stage_chain(of, ret_found);
    }
    *ret_found = (struct layout_found){.plan = NULL};
    if (plan_is_divisible(of, &ret_found->outcome)) {
        ret_found->outcome.status = PLAN_INDIVISIBLE;
        problem_set(&ret_found->outcome.problem, "this work has no layers to make stages of");
    }
    return true;
}
