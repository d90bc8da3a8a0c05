/* Steps that nobody waits for go where they take less, and all of it ends no later. Devices take
 * whole seconds for a unit of work. */
#include "planner/layout/plan.h"

#include "base/cleanup.h"
#include "tests/support/sample_work.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { DEVICES = 3 };

struct room {
    struct sample_device devices[DEVICES];
    struct plan_device list[DEVICES];
    struct plan_input input;
};

/* Two that take a second for a unit and 100 W, and one that takes two and 10 W; no prices. */
static void furnish(struct room *room, const struct steps *steps, const struct topology *topology)
{
    static const char *const names[DEVICES] = {"left", "right", "slow"};
    *room = (struct room){.input = {.steps = steps,
                                    .devices = room->list,
                                    .device_count = DEVICES,
                                    .topology = topology,
                                    .budget_micro = LIMIT_NONE,
                                    .effort = PLAN_EFFORT}};
    for (uint32_t d = 0; d < DEVICES; d++) {
        sample_device(&room->devices[d], d == 2 ? 2 : 1, 0);
        sample_power(&room->devices[d], d == 2 ? 10 : 100);
        room->list[d] = (struct plan_device){.name = names[d],
                                             .cost = &room->devices[d].cost,
                                             .memory = d,
                                             .price_micro = PLAN_UNPRICED};
    }
}

static uint32_t device_of(const struct plan *plan, uint32_t step)
{
    for (size_t i = 0; i < plan->row_count; i++) {
        if (plan->rows[i].first_step == step) {
            return plan->rows[i].device;
        }
    }
    return PLAN_ANYWHERE;
}

/* a takes 4, b and c 1 each, and none waits for another. */
static struct steps *loose_steps(void)
{
    struct steps *steps = sample_steps(3);
    sample_units(steps, 0, 4, 0);
    sample_units(steps, 1, 1, 0);
    sample_units(steps, 2, 1, 0);
    return steps;
}

START_TEST(what_nobody_waits_for_goes_where_it_takes_less_energy)
{
    CLEANUP(steps_destroy) struct steps *steps = loose_steps();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(DEVICES, 0, 1e9);
    struct room room;
    furnish(&room, steps, topology);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_double_eq_tol(plan->total.makespan_s.value, 4, 1e-6);
    ck_assert_uint_ne(device_of(plan, 0), 2); /* that would take 8 */
    ck_assert_uint_eq(device_of(plan, 1), 2);
    ck_assert_uint_eq(device_of(plan, 2), 2); /* 2 + 2: no later */
    ck_assert_double_eq_tol(plan->total.energy_j.value, 400 + 2 * 20, 1e-3);
    ck_assert_double_eq(plan->forms[plan->form].energy_j.value, plan->total.energy_j.value);
    ck_assert(plan->slack.moved == 0 || plan->slack.saved_j > 0);
    ck_assert_double_ge(plan->gap, 0);
}
END_TEST

/* The least energy would put all of it on the slow one, and take 12. */
START_TEST(what_others_wait_for_stays)
{
    CLEANUP(steps_destroy) struct steps *steps = loose_steps();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(DEVICES, 0, 1e9);
    sample_edge(steps, 0, 1, 100);
    sample_edge(steps, 1, 2, 100);
    struct room room;
    furnish(&room, steps, topology);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_double_eq_tol(plan->total.makespan_s.value, 6, 1e-6);
    ck_assert_uint_eq(plan->slack.moved, 0);
    ck_assert_double_eq_tol(plan->total.energy_j.value, 600, 1e-3);
    room.input.objective = PLAN_ENERGY;
    CLEANUP(plan_destroy) struct plan *lean = sample_plan(&room.input);
    ck_assert_double_eq_tol(lean->total.energy_j.value, 6 * 20, 1e-3);
    ck_assert_uint_eq(lean->slack.moved, 0); /* of plans by time only */
}
END_TEST

/* A dearer plan is not taken to save energy. */
START_TEST(money_comes_before_energy)
{
    CLEANUP(steps_destroy) struct steps *steps = loose_steps();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(DEVICES, 0, 1e9);
    struct room room;
    furnish(&room, steps, topology);
    for (uint32_t d = 0; d < DEVICES; d++) {
        room.list[d].price_micro = d == 2 ? 36000000000 : 3600000000;
    }
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_double_eq_tol(plan->total.makespan_s.value, 4, 1e-6);
    ck_assert_uint_eq(plan->uses[2].row_count, 0);
    ck_assert_int_eq(plan->total.price_micro, 6000000);
}
END_TEST

SUITE("plan_slack", NULL, NULL, TEST(what_nobody_waits_for_goes_where_it_takes_less_energy),
      TEST(what_others_wait_for_stays), TEST(money_comes_before_energy))
