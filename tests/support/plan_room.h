/* tests/support/plan_room.h furnishes a few devices for plans whose figures are worked out by hand.
 * Devices take whole seconds for a unit of work. One program includes it once. */
#ifndef BOURSE_TESTS_SUPPORT_PLAN_ROOM_H
#define BOURSE_TESTS_SUPPORT_PLAN_ROOM_H

#include "planner/layout/plan.h"
#include "tests/support/sample_work.h"

#include <check.h>

enum { MOST = 4 };

/* Devices 0 to MOST - 1 at memories of the same numbers, at 3,600 credits an hour: a credit a
 * second. */
struct room {
    struct sample_device devices[MOST];
    struct plan_device list[MOST];
    struct plan_input input;
};

static inline void furnish(struct room *room, const struct steps *steps, size_t count,
                           const struct topology *topology)
{
    static const char *const names[MOST] = {"left", "right", "third", "fourth"};
    *room = (struct room){.input = {.steps = steps,
                                    .devices = room->list,
                                    .device_count = count,
                                    .topology = topology,
                                    .budget_micro = LIMIT_NONE,
                                    .effort = PLAN_EFFORT}};
    for (uint32_t d = 0; d < count; d++) {
        sample_device(&room->devices[d], 1, 0);
        room->list[d] = (struct plan_device){.name = names[d],
                                             .cost = &room->devices[d].cost,
                                             .memory = d,
                                             .price_micro = 3600 * MICRO_PER_CREDIT};
    }
}

static inline struct plan_fault refused(const struct plan_input *input, enum plan_status wanted)
{
    struct plan *plan = NULL;
    struct plan_fault fault;
    enum plan_status status = plan_search(input, &plan, &fault);
    ck_assert_msg(status == wanted, "%s: %s", plan_status_name(status), fault.problem.text);
    ck_assert_ptr_null(plan);
    ck_assert_str_ne(fault.problem.text, "");
    return fault;
}

static inline const struct plan_row *row_of(const struct plan *plan, uint32_t step)
{
    for (size_t i = 0; i < plan->row_count; i++) {
        if (plan->rows[i].first_step == step) {
            return &plan->rows[i];
        }
    }
    ck_abort_msg("no row of step %u", step);
    return NULL;
}

static inline void assert_near(double value, double wanted)
{
    ck_assert_double_eq_tol(value, wanted, 1e-6 * wanted + 1e-7);
}

#endif
