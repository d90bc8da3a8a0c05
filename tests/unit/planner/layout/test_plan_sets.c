/* The tests ask which devices are taken together when some of them are planned for alone. They look
 * inside the planner: the effect of a wrong kind on a plan depends on how far a search gets. */
#include "planner/layout/plan_internal.h"

#include "base/cleanup.h"
#include "tests/support/sample_work.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { DEVICES = 6 };

struct room {
    struct sample_device figures[DEVICES];
    struct plan_device list[DEVICES];
    struct history_summary histories[DEVICES];
    struct plan_input input;
};

/* Six devices that are alike, which are one kind: of no set. */
static void furnish(struct room *room, const struct steps *steps)
{
    *room = (struct room){.input = {.steps = steps,
                                    .devices = room->list,
                                    .device_count = DEVICES,
                                    .budget_micro = LIMIT_NONE}};
    for (uint32_t d = 0; d < DEVICES; d++) {
        sample_device(&room->figures[d], 1, 0);
        room->list[d] =
            (struct plan_device){.name = "one",
                                 .cost = &room->figures[d].cost,
                                 .memory = d,
                                 .price_micro = MICRO_PER_CREDIT,
                                 .risk = {.per_hour = 1, .restart_s = 10, .checkpoint_s = 5}};
    }
}

/* The last two are a kind of their own: there are sets of the others, and of them. */
static void assert_two_kinds(const struct room *room)
{
    struct plan_set *sets = calloc(PLAN_SETS, sizeof *sets);
    ck_assert_ptr_nonnull(sets);
    ck_assert_uint_eq(plan_sets(&room->input, sets), 2);
    ck_assert_uint_eq(sets[0].count, DEVICES - 2);
    ck_assert_uint_eq(sets[0].devices[0], 0);
    ck_assert_uint_eq(sets[1].count, 2);
    ck_assert_uint_eq(sets[1].devices[0], DEVICES - 2);
    free(sets);
}

START_TEST(what_an_interruption_costs_makes_a_kind)
{
    CLEANUP(steps_destroy) struct steps *steps = sample_steps(1);
    struct room room;
    furnish(&room, steps);
    struct plan_set sets[PLAN_SETS];
    ck_assert_uint_eq(plan_sets(&room.input, sets), 0);
    for (uint32_t d = DEVICES - 2; d < DEVICES; d++) {
        room.list[d].risk.restart_s = 600;
    }
    assert_two_kinds(&room);
    furnish(&room, steps);
    for (uint32_t d = DEVICES - 2; d < DEVICES; d++) {
        room.list[d].risk.checkpoint_s = 60;
    }
    assert_two_kinds(&room);
    furnish(&room, steps);
    for (uint32_t d = DEVICES - 2; d < DEVICES; d++) {
        room.list[d].risk.interval_s = 60;
    }
    assert_two_kinds(&room);
}
END_TEST

START_TEST(links_and_idle_power_make_a_kind)
{
    CLEANUP(steps_destroy) struct steps *steps = sample_steps(1);
    struct room room;
    furnish(&room, steps);
    for (uint32_t d = DEVICES - 2; d < DEVICES; d++) {
        sample_stream(&room.figures[d], 1e9);
    }
    assert_two_kinds(&room);
    furnish(&room, steps);
    for (uint32_t d = DEVICES - 2; d < DEVICES; d++) {
        room.list[d].idle_w = (struct figure){.value = 10, .source = FIGURE_DECLARED};
    }
    assert_two_kinds(&room);
}
END_TEST

/* The class of a device keeps what was measured, so devices of one class have one history. */
START_TEST(a_history_makes_a_kind_where_it_differs)
{
    CLEANUP(steps_destroy) struct steps *steps = sample_steps(1);
    struct room room;
    furnish(&room, steps);
    struct plan_set sets[PLAN_SETS];
    for (uint32_t d = 0; d < DEVICES; d++) {
        room.histories[d] = (struct history_summary){.count = 8, .median = 2000000};
    }
    room.input.histories = room.histories;
    ck_assert_uint_eq(plan_sets(&room.input, sets), 0);
    ck_assert(plan_is_same_kind(&room.input, 0, 1));
    room.histories[DEVICES - 2].median = room.histories[DEVICES - 1].median = 3000000;
    assert_two_kinds(&room);
}
END_TEST

SUITE("plan_sets", NULL, NULL, TEST(what_an_interruption_costs_makes_a_kind),
      TEST(links_and_idle_power_make_a_kind), TEST(a_history_makes_a_kind_where_it_differs))
