/* Plans of work on few devices agree with figures worked out by hand. Devices take whole seconds
 * for a unit of work. */
#include "planner/layout/plan.h"

#include "base/cleanup.h"
#include "tests/support/plan_room.h"
#include "tests/support/sample_work.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

/* a does 1 unit, then b and c 3 each; 100 bytes flow to either. */
static struct steps *fork_steps(void)
{
    struct steps *steps = sample_steps(3);
    sample_units(steps, 0, 1, 0);
    sample_units(steps, 1, 3, 0);
    sample_units(steps, 2, 3, 0);
    sample_edge(steps, 0, 1, 100);
    sample_edge(steps, 0, 2, 100);
    return steps;
}

START_TEST(a_chain_stays_on_the_faster_device)
{
    CLEANUP(steps_destroy) struct steps *steps = sample_steps(2);
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0.5, 100);
    sample_units(steps, 0, 2, 0);
    sample_units(steps, 1, 1, 0);
    sample_edge(steps, 0, 1, 100);
    struct room room;
    furnish(&room, steps, 2, topology);
    sample_device(&room.devices[0], 2, 0);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SINGLE);
    ck_assert_uint_eq(plan->single, 1);
    assert_near(plan->total.makespan_s.value, 3);
    ck_assert_int_eq(plan->total.makespan_s.source, FIGURE_DECLARED);
    assert_near(plan->bound, 3);
    assert_near(plan->gap, 0);
    ck_assert_uint_eq(plan->transfer_count, 0);
    ck_assert_uint_eq(plan->uses[0].row_count, 0);
    ck_assert_int_eq(plan->total.price_micro, 3 * MICRO_PER_CREDIT);
    ck_assert_int_eq(plan->forms[PLAN_SPLIT].status, PLAN_INDIVISIBLE);
    ck_assert_int_eq(plan->total.energy_j.source, FIGURE_UNKNOWN); /* and not 0 */
}
END_TEST

START_TEST(what_waits_for_one_runs_on_two)
{
    CLEANUP(steps_destroy) struct steps *steps = fork_steps();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0.5, 100);
    struct room room;
    furnish(&room, steps, 2, topology);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    /* a until 1; one of the others on its device until 4, 1.5 s to the other, there from 2.5 to
     * 5.5. Alone: 7. */
    ck_assert_int_eq(plan->form, PLAN_GRAPH);
    assert_near(plan->total.makespan_s.value, 5.5);
    assert_near(plan->bound, 5.5);
    assert_near(plan->forms[PLAN_SINGLE].makespan_s.value, 7);
    ck_assert_uint_eq(plan->transfer_count, 1);
    assert_near(plan->transfers[0].start_s, 1);
    assert_near(plan->transfers[0].finish_s, 2.5);
    const struct plan_row *late = &plan->rows[plan->transfers[0].to];
    assert_near(late->start_s, 2.5);
    assert_near(late->bytes_in, 100);
    const struct plan_use *other = &plan->uses[late->device];
    assert_near(other->first_s, 1); /* its lease begins with the transfer */
    assert_near(other->last_s, 5.5);
    assert_near(other->busy_s, 3);
    assert_near(other->share, 3 / 5.5);
    assert_near((double)other->price_micro, 4.5e6);
    /* The other is leased from 0 to 4. */
    assert_near((double)plan->total.price_micro, 8.5e6);
}
END_TEST

/* left -> right and left -> third leave by the same port. */
/* Left does 4 s of each round, right 3 s, and the link between them 1.5 s: every 4 s another may
 * begin. */
START_TEST(the_busiest_says_how_soon_it_can_begin_anew)
{
    CLEANUP(steps_destroy) struct steps *steps = fork_steps();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0.5, 100);
    struct room room;
    furnish(&room, steps, 2, topology);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    assert_near(plan->total.makespan_s.value, 5.5);
    assert_near(plan_round_s(plan), 4);
    CLEANUP(topology_destroy) struct topology *slow = sample_links(2, 0.5, 21);
    room.input.topology = slow;
    static const uint32_t apart[] = {0, 1, 1};
    room.input.placed = apart; /* twice 100 bytes at 21 a second, and half a second before each */
    CLEANUP(plan_destroy) struct plan *waiting = sample_plan(&room.input);
    assert_near(plan_round_s(waiting), 2 * (0.5 + 100.0 / 21));
}
END_TEST

START_TEST(transfers_by_one_port_come_one_after_the_other)
{
    static const struct topology_link links[] = {
        {0, 1, TOPOLOGY_PEER, 0, 100, {0, 1}, 2},
        {0, 2, TOPOLOGY_PEER, 0, 100, {0, 2}, 2},
    };
    const struct topology_input ways = {
        .memory_count = 3, .port_count = 3, .links = links, .link_count = 2};
    CLEANUP(topology_destroy) struct topology *topology = NULL;
    ck_assert_int_eq(topology_create(&ways, &topology, NULL), TOPOLOGY_OK);
    CLEANUP(steps_destroy) struct steps *steps = fork_steps();
    sample_units(steps, 0, 1, 0);
    sample_units(steps, 1, 0, 2); /* left cannot */
    sample_units(steps, 2, 0, 2);
    struct room room;
    furnish(&room, steps, 3, topology);
    sample_device(&room.devices[1], 0, 1);
    sample_device(&room.devices[2], 0, 1);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    /* Each transfer takes 1 s: at 2 and at 3, on different devices; both on one would be done at
     * 6. */
    ck_assert_uint_eq(plan->transfer_count, 2);
    assert_near(plan->transfers[0].start_s, 1);
    assert_near(plan->transfers[1].start_s, 2);
    assert_near(plan->total.makespan_s.value, 5);
    ck_assert(plan->bound <= 5);
}
END_TEST

START_TEST(steps_that_run_nowhere_are_named_with_the_reason)
{
    CLEANUP(steps_destroy) struct steps *steps = fork_steps();
    sample_units(steps, 2, 0, 1);
    struct room room;
    furnish(&room, steps, 2, NULL);
    struct plan_fault fault = refused(&room.input, PLAN_NOWHERE);
    ck_assert_uint_eq(fault.step, 2);
    ck_assert_ptr_nonnull(strstr(fault.problem.text, "\"c\""));
    ck_assert_ptr_nonnull(strstr(fault.problem.text, "left: no bf16 rate"));
    ck_assert_ptr_nonnull(strstr(fault.problem.text, "right: no bf16 rate"));

    sample_device(&room.devices[1], 0, 1); /* right can do c alone, and nothing brings it there */
    fault = refused(&room.input, PLAN_UNREACHED);
    ck_assert_ptr_nonnull(strstr(fault.problem.text, "\"a\""));
    ck_assert_ptr_nonnull(strstr(fault.problem.text, "\"c\""));
}
END_TEST

/* Left: 1 s for a unit, 10 credits a second, 500 W. Right: 3 s, 1 credit, 100 W. */
static void furnish_unlike(struct room *room, const struct steps *steps,
                           const struct topology *topology)
{
    furnish(room, steps, 2, topology);
    sample_device(&room->devices[1], 3, 0);
    room->list[0].price_micro *= 10;
    sample_power(&room->devices[0], 500);
    sample_power(&room->devices[1], 100);
}

static struct steps *two_units(void)
{
    struct steps *steps = sample_steps(2);
    sample_units(steps, 0, 1, 0);
    sample_units(steps, 1, 1, 0);
    sample_edge(steps, 0, 1, 100);
    return steps;
}

START_TEST(what_is_asked_for_decides)
{
    CLEANUP(steps_destroy) struct steps *steps = two_units();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 100);
    struct room room;
    furnish_unlike(&room, steps, topology);
    const struct {
        enum plan_objective objective;
        uint32_t device;
        int64_t worth; /* credits a second */
        double merit, bound;
    } cases[] = {
        {PLAN_TIME, 0, 0, 2, 2},
        {PLAN_PRICE, 1, 0, 6e6, 6e6},
        {PLAN_ENERGY, 1, 0, 600, 600},
        /* 6 + 6 against 20 + 2 */
        {PLAN_VALUE, 1, 1, 12e6, 8e6},
        /* 20 + 18 against 6 + 54 */
        {PLAN_VALUE, 0, 9, 38e6, 24e6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        room.input.objective = cases[i].objective;
        room.input.worth_micro = cases[i].worth * 3600 * MICRO_PER_CREDIT;
        CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
        ck_assert_uint_eq(plan->single, cases[i].device);
        assert_near(plan->total.merit, cases[i].merit);
        assert_near(plan->bound, cases[i].bound);
        assert_near(plan->gap, cases[i].merit / cases[i].bound - 1);
    }
}
END_TEST

START_TEST(limits_are_kept_or_refused_with_the_least_there_is)
{
    CLEANUP(steps_destroy) struct steps *steps = two_units();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1000);
    struct room room;
    furnish_unlike(&room, steps, topology);
    room.input.objective = PLAN_PRICE;
    room.input.deadline_s = 5;
    CLEANUP(plan_destroy) struct plan *mixed = sample_plan(&room.input);
    /* One step on either, 0.1 s between, which both are leased for: 11 credits and 3.1. Right alone
     * would take 6 s, left alone 20 credits. */
    assert_near(mixed->total.makespan_s.value, 4.1);
    assert_near((double)mixed->total.price_micro, 14.1e6);
    assert_near((double)mixed->forms[PLAN_SINGLE].price_micro, 20e6);
    assert_near(mixed->bound, 6e6); /* which knows no deadline */

    room.input.deadline_s = 1.5;
    struct plan_fault late = refused(&room.input, PLAN_DEADLINE);
    assert_near(late.least, 2);
    assert_near(late.bound, 2);

    room.input.deadline_s = 0;
    room.input.objective = PLAN_TIME;
    room.input.budget_micro = 7 * MICRO_PER_CREDIT;
    CLEANUP(plan_destroy) struct plan *cheap = sample_plan(&room.input);
    assert_near(cheap->total.makespan_s.value, 6);
    room.input.budget_micro = 5 * MICRO_PER_CREDIT;
    struct plan_fault dear = refused(&room.input, PLAN_BUDGET);
    assert_near(dear.least, 6e6);
    assert_near(dear.bound, 6e6);
    ck_assert_ptr_nonnull(strstr(dear.problem.text, "budget is 5 credits"));

    room.list[0].price_micro = PLAN_UNPRICED;
    room.list[1].price_micro = PLAN_UNPRICED;
    (void)refused(&room.input, PLAN_NO_PRICE);
    room.input.budget_micro = LIMIT_NONE;
    CLEANUP(plan_destroy) struct plan *fast = sample_plan(&room.input);
    ck_assert_int_eq(fast->total.price_micro, PLAN_UNPRICED); /* and not 0 */
    room.input.objective = PLAN_ENERGY;
    room.devices[0].profile.figures[FIGURE_POWER].source = FIGURE_UNKNOWN;
    CLEANUP(plan_destroy) struct plan *slow = sample_plan(&room.input);
    ck_assert_uint_eq(slow->single, 1); /* the only one of which it is known */
    room.devices[1].profile.figures[FIGURE_POWER].source = FIGURE_UNKNOWN;
    (void)refused(&room.input, PLAN_NO_POWER);
}
END_TEST

START_TEST(idle_time_counts_where_its_power_is_known)
{
    CLEANUP(steps_destroy) struct steps *steps = fork_steps();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0.5, 100);
    struct room room;
    furnish(&room, steps, 2, topology);
    sample_power(&room.devices[0], 100);
    sample_power(&room.devices[1], 100);
    CLEANUP(plan_destroy) struct plan *active = sample_plan(&room.input);
    assert_near(active->total.energy_j.value, 700);
    ck_assert(!active->total.counts_idle);
    room.list[0].idle_w = room.list[1].idle_w =
        (struct figure){.value = 10, .source = FIGURE_DECLARED};
    CLEANUP(plan_destroy) struct plan *all = sample_plan(&room.input);
    assert_near(all->total.energy_j.value, 715); /* leased 4 and 4.5 s, busy 7 */
    ck_assert(all->total.counts_idle);
}
END_TEST

START_TEST(steps_are_where_they_have_to_be)
{
    const uint32_t placed[] = {0, 1, PLAN_ANYWHERE};
    CLEANUP(steps_destroy) struct steps *steps = fork_steps();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0.5, 100);
    struct room room;
    furnish(&room, steps, 2, topology);
    sample_device(&room.devices[1], 5, 0);
    room.input.placed = placed;
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_uint_eq(row_of(plan, 0)->device, 0);
    ck_assert_uint_eq(row_of(plan, 1)->device, 1);
    assert_near(plan->total.makespan_s.value, 17.5); /* 1 + 1.5 + 15 */
    assert_near(plan->bound, 17.5);
    ck_assert_int_eq(plan->forms[PLAN_SINGLE].status, PLAN_NOWHERE);

    sample_units(steps, 1, 0, 1);
    sample_device(&room.devices[0], 1, 1);
    struct plan_fault fault = refused(&room.input, PLAN_PLACEMENT);
    ck_assert_uint_eq(fault.step, 1);
    ck_assert_uint_eq(fault.device, 1);
    ck_assert_ptr_nonnull(strstr(fault.problem.text, "\"b\" cannot run on right: no bf16"));
    room.input.may_fall_back = true;
    CLEANUP(plan_destroy) struct plan *back = sample_plan(&room.input);
    ck_assert_uint_eq(row_of(back, 1)->device, 0);
    ck_assert_uint_eq(back->fallen_back, 1);
}
END_TEST

START_TEST(what_is_changed_goes_back_before_all_of_it_begins_anew)
{
    const uint32_t placed[] = {0, 1, 0};
    CLEANUP(steps_destroy) struct steps *steps = fork_steps();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0.5, 100);
    struct room room;
    furnish(&room, steps, 2, topology);
    room.input.placed = placed;
    steps->steps[0].renewed_by = 1;
    steps->steps[0].renewed_bytes = 200;
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    /* a is done at 1, b between 2.5 and 5.5, and what it changed is there 2.5 s later. */
    assert_near(row_of(plan, 1)->finish_s, 5.5);
    assert_near(plan->total.makespan_s.value, 8);
    ck_assert_uint_eq(plan->transfer_count, 2);
    assert_near(plan->transfers[1].start_s, 5.5);
    assert_near(row_of(plan, 0)->bytes_in, 200);
    assert_near(plan->uses[0].last_s, 8);
    room.input.placed = NULL;
    CLEANUP(plan_destroy) struct plan *anywhere = sample_plan(&room.input);
    ck_assert_uint_eq(row_of(anywhere, 1)->device, row_of(anywhere, 0)->device);
    assert_near(anywhere->total.makespan_s.value, 5.5);
}
END_TEST

START_TEST(what_nobody_knows_is_left_out_only_when_that_is_said)
{
    CLEANUP(steps_destroy) struct steps *steps = two_units();
    struct operation text = operation_of(OPERATION_TOKENISE, DTYPE_FP32);
    text.shape.tokenise.bytes = 1000;
    steps->steps[0].parts[0].operation = text;
    struct room room;
    furnish(&room, steps, 1, NULL);
    (void)refused(&room.input, PLAN_NOWHERE);
    room.input.may_leave_out = true;
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    assert_near(plan->total.makespan_s.value, 1);
    ck_assert_uint_eq(plan->left_out, 1);
    ck_assert(row_of(plan, 0)->is_left_out && !row_of(plan, 1)->is_left_out);
    ck_assert_int_eq(row_of(plan, 0)->time_s.source, FIGURE_UNKNOWN);
}
END_TEST

START_TEST(of_a_device_that_may_be_taken_away_times_are_expected)
{
    CLEANUP(steps_destroy) struct steps *steps = two_units();
    struct room room;
    double expected_s = 0;
    furnish(&room, steps, 1, NULL);
    room.list[0].risk = (struct spot_risk){.per_hour = 3600, .restart_s = 1};
    ck_assert_int_eq(spot_expect(&room.list[0].risk, 1, &expected_s), SPOT_OK);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert(expected_s > 2);
    assert_near(plan->total.makespan_s.value, 2 * expected_s);
    ck_assert(plan->bound <= plan->total.makespan_s.value);
    room.list[0].risk.per_hour = 1e6;
    struct plan_fault fault = refused(&room.input, PLAN_NOWHERE);
    ck_assert_ptr_nonnull(strstr(fault.problem.text, "interrupted too often"));
}
END_TEST

START_TEST(what_was_measured_outweighs_the_model)
{
    CLEANUP(steps_destroy) struct steps *steps = two_units();
    struct room room;
    struct history history = {.count = 0};
    furnish(&room, steps, 1, NULL);
    for (int i = 0; i < 12; i++) {
        ck_assert(history_add(&history, 5 * HISTORY_BOUND));
    }
    struct history_summary histories[] = {history_summarise(&history), {.count = 0}};
    room.input.histories = histories;
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    /* 12 of 16 parts of 5 s, 4 of 1 s. */
    assert_near(row_of(plan, 0)->busy_s, 4);
    ck_assert_int_eq(row_of(plan, 0)->time_s.source, FIGURE_MEASURED);
    ck_assert_uint_eq(row_of(plan, 0)->samples, 12);
    assert_near(row_of(plan, 0)->p90_s, 4);
    assert_near(row_of(plan, 1)->busy_s, 1);
    ck_assert_int_eq(plan->total.makespan_s.source, FIGURE_DECLARED); /* the worse of the two */
    ck_assert_double_eq(plan->total.p90_s, 0);
    histories[1] = histories[0];
    CLEANUP(plan_destroy) struct plan *both = sample_plan(&room.input);
    assert_near(both->total.p90_s, 8);
    ck_assert_int_eq(both->total.makespan_s.source, FIGURE_MEASURED);
}
END_TEST

START_TEST(input_that_makes_no_sense_is_refused)
{
    CLEANUP(steps_destroy) struct steps *steps = two_units();
    struct room room;
    furnish(&room, steps, 1, NULL);
    struct plan_input input = room.input;
    input.device_count = 0;
    (void)refused(&input, PLAN_BAD_INPUT);
    input = room.input;
    input.deadline_s = -1;
    (void)refused(&input, PLAN_BAD_INPUT);
    input = room.input;
    input.objective = PLAN_VALUE;
    (void)refused(&input, PLAN_BAD_INPUT);
    const uint32_t placed[] = {0, 1};
    input = room.input;
    input.placed = placed;
    (void)refused(&input, PLAN_BAD_INPUT);
    room.list[0].memory = TOPOLOGY_MEMORIES;
    (void)refused(&room.input, PLAN_BAD_INPUT);
}
END_TEST

START_TEST(names_lead_back)
{
    for (int i = 0; i < PLAN_OBJECTIVES; i++) {
        enum plan_objective found = PLAN_OBJECTIVES;
        ck_assert(plan_objective_find(plan_objective_name((enum plan_objective)i), &found));
        ck_assert_int_eq(found, i);
    }
    enum plan_objective unknown = PLAN_TIME;
    ck_assert(!plan_objective_find("speed", &unknown));
    ck_assert_str_eq(plan_form_name(PLAN_PIPELINE), "pipeline");
}
END_TEST

SUITE("plan", NULL, NULL, TEST(a_chain_stays_on_the_faster_device),
      TEST(what_waits_for_one_runs_on_two), TEST(the_busiest_says_how_soon_it_can_begin_anew),
      TEST(transfers_by_one_port_come_one_after_the_other),
      TEST(steps_that_run_nowhere_are_named_with_the_reason), TEST(what_is_asked_for_decides),
      TEST(limits_are_kept_or_refused_with_the_least_there_is),
      TEST(idle_time_counts_where_its_power_is_known), TEST(steps_are_where_they_have_to_be),
      TEST(what_is_changed_goes_back_before_all_of_it_begins_anew),
      TEST(what_nobody_knows_is_left_out_only_when_that_is_said),
      TEST(of_a_device_that_may_be_taken_away_times_are_expected),
      TEST(what_was_measured_outweighs_the_model), TEST(input_that_makes_no_sense_is_refused),
      TEST(names_lead_back))
