/* The plan for an objective is not beaten by the plans for others, by what is known to be possible,
 * or by fewer devices. */
#include "base/cleanup.h"
#include "planner/layout/plan.h"
#include "tests/support/random_plans.h"
#include "tests/support/suite.h"

#include <check.h>

/* Returns the figure that the objective is about; below 0: unknown. */
static double measure_of(const struct plan *plan, const struct plan_input *input,
                         enum plan_objective objective)
{
    double price = (double)plan->total.price_micro;
    double time_s = plan->total.makespan_s.value;
    switch (objective) {
    case PLAN_TIME:
        return time_s;
    case PLAN_PRICE:
        return price;
    case PLAN_ENERGY:
        return plan->total.energy_j.source == FIGURE_UNKNOWN ? -1 : plan->total.energy_j.value;
    case PLAN_VALUE:
        return price < 0 ? -1 : price + time_s / 3600 * (double)input->worth_micro;
    case PLAN_OBJECTIVES:
        break;
    }
    return -1;
}

/* Each objective's plan beside that of each other, with and without limits. */
START_TEST(no_objective_is_beaten_by_the_plan_of_another)
{
    unsigned unlike = 0;
    unsigned limited = 0;
    for (uint64_t seed = 0; seed < SOME; seed++) {
        CLEANUP(work_fini) struct work work;
        struct plan *plans[PLAN_OBJECTIVES] = {NULL};
        struct plan_fault fault;
        draw(&work, seed);
        work.input.effort = PLAN_EFFORT / 64;
        if (seed % 2 == 1) { /* a limit between what two of them come to */
            CLEANUP(plan_destroy) struct plan *quick = NULL;
            CLEANUP(plan_destroy) struct plan *cheap = NULL;
            work.input.objective = PLAN_TIME;
            enum plan_status status = plan_search(&work.input, &quick, &fault);
            work.input.objective = PLAN_PRICE;
            if (status == PLAN_OK && plan_search(&work.input, &cheap, &fault) == PLAN_OK) {
                work.input.deadline_s =
                    (quick->total.makespan_s.value + cheap->total.makespan_s.value) / 2;
                limited++;
            }
        }
        for (int i = 0; i < PLAN_OBJECTIVES; i++) {
            work.input.objective = (enum plan_objective)i;
            (void)plan_search(&work.input, &plans[i], &fault);
        }
        for (int i = 0; i < PLAN_OBJECTIVES; i++) {
            for (int k = 0; k < PLAN_OBJECTIVES && plans[i] != NULL; k++) {
                double own = measure_of(plans[i], &work.input, (enum plan_objective)i);
                double other = plans[k] == NULL
                                   ? -1
                                   : measure_of(plans[k], &work.input, (enum plan_objective)i);
                ck_assert(own >= 0);
                ck_assert_msg(other < 0 || own <= other * (1 + 4 * near),
                              "seed %d: by %s %.12g, by %s %.12g", (int)seed,
                              plan_objective_name((enum plan_objective)i), own,
                              plan_objective_name((enum plan_objective)k), other);
                unlike += other > own * (1 + near);
            }
        }
        for (int i = 0; i < PLAN_OBJECTIVES; i++) {
            plan_destroy(&plans[i]);
        }
    }
    ck_assert(unlike > SOME / 2 && limited > SOME / 4);
}
END_TEST

/* The plan of some objective meets figures that each objective of known figures can meet. Within
 * these figures no plan is worse than that one, because that one was found. */
static unsigned hold_to(struct work *work, const struct plan *free_plan, uint64_t seed,
                        enum plan_objective of)
{
    unsigned met = 0;
    for (int k = 0; k < PLAN_OBJECTIVES; k++) {
        CLEANUP(plan_destroy) struct plan *plan = NULL;
        struct plan_fault fault;
        work->input.objective = (enum plan_objective)k;
        const enum plan_status status = plan_search(&work->input, &plan, &fault);
        const double known = measure_of(free_plan, &work->input, (enum plan_objective)k);
        ck_assert_msg(status == PLAN_OK || known < 0, "seed %d: %s after %s: %s", (int)seed,
                      plan_objective_name((enum plan_objective)k), plan_objective_name(of),
                      fault.problem.text);
        const double own =
            plan == NULL ? -1 : measure_of(plan, &work->input, (enum plan_objective)k);
        ck_assert_msg(known < 0 || own <= known * (1 + 4 * near),
                      "seed %d: within the plan by %s, by %s %.12g and not %.12g", (int)seed,
                      plan_objective_name(of), plan_objective_name((enum plan_objective)k), own,
                      known);
        met += status == PLAN_OK;
    }
    return met;
}

START_TEST(what_a_plan_meets_is_not_refused_and_makes_none_worse_than_it)
{
    unsigned met = 0;
    for (uint64_t seed = 0; seed < FEW; seed++) {
        CLEANUP(work_fini) struct work work;
        struct plan_fault fault;
        draw(&work, seed);
        work.input.effort = PLAN_EFFORT / 64;
        for (int i = 0; i < PLAN_OBJECTIVES; i++) {
            CLEANUP(plan_destroy) struct plan *free_plan = NULL;
            work.input.objective = (enum plan_objective)i;
            if (plan_search(&work.input, &free_plan, &fault) != PLAN_OK) {
                continue;
            }
            work.input.deadline_s = free_plan->total.makespan_s.value;
            met += hold_to(&work, free_plan, seed, (enum plan_objective)i);
            work.input.deadline_s = 0;
            if (seed % 3 == 0 && free_plan->total.price_micro >= 0) {
                work.input.budget_micro = free_plan->total.price_micro;
                met += hold_to(&work, free_plan, seed, (enum plan_objective)i);
                work.input.budget_micro = LIMIT_NONE;
            }
        }
    }
    ck_assert(met > 5 * FEW);
}
END_TEST

/* One device less in turn: the rest is no better for any objective. */
START_TEST(a_device_more_makes_no_plan_worse)
{
    unsigned helped = 0;
    unsigned compared = 0;
    for (uint64_t seed = 0; seed < SOME; seed++) {
        CLEANUP(work_fini) struct work work;
        CLEANUP(plan_destroy) struct plan *all = NULL;
        struct plan_fault fault;
        draw(&work, seed);
        work.input.effort = PLAN_EFFORT / 64;
        enum plan_status status = plan_search(&work.input, &all, &fault);
        for (uint32_t gone = 0; gone < work.input.device_count && work.input.device_count > 1;
             gone++) {
            CLEANUP(plan_destroy) struct plan *fewer = NULL;
            struct plan_device list[DEVICES];
            struct plan_input input = work.input;
            input.devices = list;
            input.device_count = 0;
            for (uint32_t d = 0; d < work.input.device_count; d++) {
                if (d != gone) {
                    list[input.device_count++] = work.list[d];
                }
            }
            if (plan_search(&input, &fewer, &fault) != PLAN_OK) {
                continue;
            }
            ck_assert_int_eq(status, PLAN_OK);
            ck_assert_msg(all->total.merit <= fewer->total.merit * (1 + 4 * near),
                          "seed %d: by %s with device %d %.12g, without %.12g", (int)seed,
                          plan_objective_name(input.objective), (int)gone, all->total.merit,
                          fewer->total.merit);
            compared++;
            helped += all->total.merit < fewer->total.merit * (1 - near);
        }
    }
    ck_assert(compared > SOME && helped > SOME / 8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plans: objectives");
    TCase *tcase = tcase_create("plans: objectives");
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, no_objective_is_beaten_by_the_plan_of_another);
    tcase_add_test(tcase, what_a_plan_meets_is_not_refused_and_makes_none_worse_than_it);
    tcase_add_test(tcase, a_device_more_makes_no_plan_worse);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
