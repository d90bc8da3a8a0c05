/* Plans of work on few devices, against figures worked out by hand. Devices take whole seconds for
 * a unit of work. */
#include "planner/layout/plan.h"

#include "base/cleanup.h"
#include "tests/support/sample_work.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4 };

/* Devices 0 to MOST - 1 at memories of the same numbers, at 3,600 credits an hour: a credit a
 * second. */
struct room {
    struct sample_device devices[MOST];
    struct plan_device list[MOST];
    struct plan_input input;
};

static void furnish(struct room *room, const struct steps *steps, size_t count,
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

static struct plan_fault refused(const struct plan_input *input, enum plan_status wanted)
{
    struct plan *plan = NULL;
    struct plan_fault fault;
    enum plan_status status = plan_search(input, &plan, &fault);
    ck_assert_msg(status == wanted, "%s: %s", plan_status_name(status), fault.problem.text);
    ck_assert_ptr_null(plan);
    ck_assert_str_ne(fault.problem.text, "");
    return fault;
}

static const struct plan_row *row_of(const struct plan *plan, uint32_t step)
{
    for (size_t i = 0; i < plan->row_count; i++) {
        if (plan->rows[i].first_step == step) {
            return &plan->rows[i];
        }
    }
    ck_abort_msg("no row of step %u", step);
    return NULL;
}

static void assert_near(double value, double wanted)
{
    ck_assert_double_eq_tol(value, wanted, 1e-6 * wanted + 1e-7);
}

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

/* Two steps in turn, with weights of 600 MB each. */
static struct steps *heavy_steps(void)
{
    struct steps *steps = sample_steps(2);
    sample_units(steps, 0, 2, 0);
    sample_units(steps, 1, 2, 0);
    sample_edge(steps, 0, 1, 100);
    sample_weights(steps, 0, 0, 1, 600000000);
    sample_weights(steps, 1, 1, 1, 600000000);
    return steps;
}

START_TEST(weights_that_do_not_fit_together_go_to_two_devices)
{
    CLEANUP(steps_destroy) struct steps *steps = heavy_steps();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 100);
    struct room room;
    furnish(&room, steps, 2, topology);
    sample_memory(&room.devices[0], 1e9);
    sample_memory(&room.devices[1], 1e9);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    assert_near(plan->total.makespan_s.value, 5);
    ck_assert_int_eq(plan->form, PLAN_GRAPH);
    ck_assert_int_eq(plan->forms[PLAN_SINGLE].status, PLAN_NO_ROOM);
    ck_assert_ptr_nonnull(strstr(plan->forms[PLAN_SINGLE].problem.text, "1.2 GB"));
    ck_assert_uint_eq(plan->single, PLAN_ANYWHERE);
    assert_near(plan->uses[0].memory_bytes, 600000100);

    room.input.device_count = 1;
    struct plan_fault fault = refused(&room.input, PLAN_NO_ROOM);
    ck_assert_ptr_nonnull(strstr(fault.problem.text, "left"));
}
END_TEST

START_TEST(weights_that_steps_share_are_there_once)
{
    CLEANUP(steps_destroy) struct steps *steps = heavy_steps();
    sample_weights(steps, 1, 0, 1, 600000000);
    struct room room;
    furnish(&room, steps, 1, NULL);
    sample_memory(&room.devices[0], 1e9);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    assert_near(plan->total.makespan_s.value, 4);
    assert_near(plan->uses[0].memory_bytes, 600000100);
}
END_TEST

/* They change, so that they have to be carried: 400 MB at 100 MB a second. */
START_TEST(weights_that_flow_take_no_more_room_than_their_sets)
{
    CLEANUP(steps_destroy) struct steps *steps = heavy_steps();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 100e6);
    sample_weights(steps, 1, 0, 1, 600000000);
    steps->edges[0].bytes = 400000100;
    steps->edges[0].set_bytes = 400000000;
    struct room room;
    furnish(&room, steps, 2, topology);
    sample_memory(&room.devices[0], 1e9);
    sample_memory(&room.devices[1], 1e9);
    CLEANUP(plan_destroy) struct plan *together = sample_plan(&room.input);
    ck_assert_int_eq(together->form, PLAN_SINGLE);
    assert_near(together->uses[0].memory_bytes, 600000100);
    static const uint32_t apart[] = {0, 1};
    room.input.placed = apart;
    CLEANUP(plan_destroy) struct plan *two = sample_plan(&room.input);
    assert_near(two->uses[0].memory_bytes, 600000100);
    assert_near(two->uses[1].memory_bytes, 600000100);
    assert_near(two->uses[1].bytes_in, 400000100);
    assert_near(row_of(two, 1)->start_s, row_of(two, 0)->finish_s + 4.000001);
}
END_TEST

START_TEST(weights_that_do_not_fit_are_streamed_at_each_pass_where_that_is_known)
{
    CLEANUP(steps_destroy) struct steps *steps = heavy_steps();
    steps->steps[1].passes = 10;
    struct room room;
    furnish(&room, steps, 1, NULL);
    sample_memory(&room.devices[0], 1e9);
    sample_stream(&room.devices[0], 1e9);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    /* 0.6 s hide behind 2 s of work; ten times 0.6 s do not. */
    assert_near(row_of(plan, 0)->busy_s, 2);
    assert_near(row_of(plan, 1)->busy_s, 6);
    ck_assert(row_of(plan, 0)->is_streamed && row_of(plan, 1)->is_streamed);
    assert_near(plan->total.makespan_s.value, 8);
}
END_TEST

START_TEST(what_is_held_takes_room_while_it_is_held)
{
    CLEANUP(steps_destroy) struct steps *steps = heavy_steps();
    struct room room;
    sample_weights(steps, 0, 0, 1, 100000000);
    sample_weights(steps, 1, 1, 1, 100000000);
    steps->edges[0].bytes = 300000000;
    steps->steps[0].held_bytes = 300000000;    /* all of it goes to the other */
    steps->steps[1].held_bytes = 500000000;    /* 200 MB more than came */
    steps->steps[1].working_bytes = 250000000; /* while it runs: 200 weights + 500 + 250 */
    furnish(&room, steps, 1, NULL);
    sample_memory(&room.devices[0], 1e9);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    assert_near(plan->uses[0].memory_bytes, 950000000);
    steps->steps[1].working_bytes = 350000000;
    (void)refused(&room.input, PLAN_NO_ROOM);
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

/* ---------------------------------------------------------------- a batch */

/* Makes for each item a unit of fp32 and then a unit of bf16, with 100 bytes between them. */
static enum steps_status make_batch(const int64_t *values, struct steps **ret_steps,
                                    struct problem *ret_problem)
{
    (void)ret_problem;
    struct steps *steps = sample_steps(2);
    sample_units(steps, 0, values[0] + values[1], 0);
    sample_units(steps, 1, 0, values[0]);
    sample_edge(steps, 0, 1, 100 * values[0]);
    steps->steps[1].held_bytes = values[0] * values[2];
    *ret_steps = steps;
    return STEPS_OK;
}

static const struct template_parameter batch_parameters[] = {
    {.name = "batch", .meaning = "items", .usual = 1, .least = 1, .most = 1000, .is_batch = true},
    {.name = "fixed", .meaning = "units before the first", .usual = 0, .least = 0, .most = 1000},
    {.name = "held", .meaning = "bytes of an item", .usual = 0, .least = 0, .most = 1 << 30},
    {.name = NULL},
};
static const struct template batch_template = {
    .name = "batch", .meaning = "a batch", .parameters = batch_parameters, .make = make_batch};

static void bring_batch(struct room *room, struct steps **steps, const int64_t *values,
                        const struct topology *topology)
{
    ck_assert_int_eq(template_create(&batch_template, values, steps, NULL), STEPS_OK);
    furnish(room, *steps, 2, topology);
    room->input.template = &batch_template;
    room->input.values = values;
}

START_TEST(a_batch_is_dealt_out_by_speed)
{
    const int64_t values[] = {6, 0, 0};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e9);
    struct room room;
    bring_batch(&room, &steps, values, topology);
    sample_device(&room.devices[0], 1, 1); /* 2 s an item */
    sample_device(&room.devices[1], 2, 2);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_uint_eq(plan->row_count, 2);
    ck_assert_int_eq(plan->rows[0].items, 4);
    ck_assert_int_eq(plan->rows[1].items, 2);
    assert_near(plan->total.makespan_s.value, 8);
    assert_near(plan->forms[PLAN_SINGLE].makespan_s.value, 12);
    assert_near(plan->time_bound_s, 8); /* 12 items of 1 s at 1.5 a second */
    ck_assert_int_eq(plan->forms[PLAN_PIPELINE].status, PLAN_INDIVISIBLE);
    ck_assert_ptr_nonnull(strstr(plan->forms[PLAN_PIPELINE].problem.text, "no layers"));
    assert_near((double)plan->total.price_micro, 16e6);
}
END_TEST

START_TEST(a_batch_is_not_dealt_out_where_beginning_takes_longer)
{
    const int64_t values[] = {6, 100, 0};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e9);
    struct room room;
    bring_batch(&room, &steps, values, topology);
    sample_device(&room.devices[0], 1, 1);
    sample_device(&room.devices[1], 2, 2); /* begins to work when the other is done */
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SINGLE);
    assert_near(plan->total.makespan_s.value, 112);
    ck_assert_int_eq(plan->forms[PLAN_SPLIT].status, PLAN_NO_GAIN);
}
END_TEST

START_TEST(shares_fit_the_memory_of_their_devices)
{
    const int64_t values[] = {6, 0, 6000000};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e9);
    struct room room;
    bring_batch(&room, &steps, values, topology);
    sample_device(&room.devices[0], 1, 1);
    sample_device(&room.devices[1], 2, 2);
    sample_memory(
        &room.devices[0],
        20e6); /* three items at once: the four that are its share are made in two parts */
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_int_eq(plan->rows[0].items, 4);
    ck_assert_int_eq(plan->rows[0].rounds, 2);
    ck_assert_int_eq(plan->rows[1].items, 2);
    ck_assert_int_eq(plan->rows[1].rounds, 1);
    assert_near(plan->uses[0].memory_bytes, 12e6);
    assert_near(plan->total.makespan_s.value, 8);
    assert_near(plan->forms[PLAN_SINGLE].makespan_s.value, 12); /* in two parts, too */
    ck_assert_uint_eq(plan->single, 0);
    assert_near(plan->time_bound_s, 8); /* which knows no memory */
}
END_TEST

START_TEST(a_batch_that_fits_nowhere_at_once_is_divided)
{
    const int64_t values[] = {6, 0, 6000000};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e9);
    struct room room;
    bring_batch(&room, &steps, values, topology);
    for (size_t d = 0; d < 2; d++) {
        sample_device(&room.devices[d], 1, 1);
        sample_memory(&room.devices[d], 20e6);
    }
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_int_eq(plan->forms[PLAN_GRAPH].status, PLAN_NOWHERE);
    assert_near(plan->total.makespan_s.value, 6);
    assert_near(plan->forms[PLAN_SINGLE].makespan_s.value, 12); /* three, and three after them */
    sample_memory(&room.devices[0], 5e6);                       /* of one item */
    sample_memory(&room.devices[1], 5e6);
    struct plan_fault fault = refused(&room.input, PLAN_NOWHERE);
    ck_assert_uint_eq(fault.step, 0);
    ck_assert_ptr_nonnull(strstr(fault.problem.text, "GB of memory"));
}
END_TEST

/* Makes make_batch's steps, and where there are parts, 2 units more that all do together. */
static enum steps_status make_parts(const int64_t *values, struct steps **ret_steps,
                                    struct problem *ret_problem)
{
    (void)ret_problem;
    struct steps *steps = sample_steps(values[1] > 1 ? 3 : 2);
    sample_units(steps, 0, values[0], 0);
    sample_units(steps, 1, 0, values[0]);
    sample_edge(steps, 0, 1, 100);
    if (values[1] > 1) {
        sample_units(steps, 2, 2, 0);
        sample_edge(steps, 1, 2, 100);
    }
    *ret_steps = steps;
    return STEPS_OK;
}

START_TEST(parts_that_hear_of_one_another_wait_for_the_last)
{
    static const struct template_parameter parameters[] = {
        {.name = "batch", .usual = 1, .least = 1, .most = 100, .is_batch = true},
        {.name = "replicas", .usual = 1, .least = 1, .most = 100, .is_replicas = true},
        {.name = NULL},
    };
    static const struct template parts = {
        .name = "parts", .parameters = parameters, .make = make_parts};
    const int64_t values[] = {9, 1};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e9);
    struct room room;
    ck_assert_int_eq(template_create(&parts, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, 2, topology);
    room.input.template = &parts;
    room.input.values = values;
    sample_device(&room.devices[0], 1, 1);
    sample_device(&room.devices[1], 1, 1);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    /* Five items are done at 10, four at 8; then both do 2 s from 10 on. One device would need 18,
     * and no meeting. */
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    assert_near(plan->total.makespan_s.value, 12);
    assert_near(plan->forms[PLAN_SINGLE].makespan_s.value, 18);
    assert_near(plan->rows[0].busy_s + plan->rows[1].busy_s, 22);
    assert_near(plan->rows[0].finish_s, 12);
    assert_near(plan->rows[1].finish_s, 12);
    assert_near((double)plan->total.price_micro, 24e6);
    ck_assert_int_eq(plan->forms[PLAN_PIPELINE].status, PLAN_INDIVISIBLE);
}
END_TEST

START_TEST(rows_of_several_steps_say_the_fewest_samples)
{
    const int64_t values[] = {8, 0, 0};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e9);
    struct room room;
    bring_batch(&room, &steps, values, topology);
    sample_device(&room.devices[0], 1, 1);
    sample_device(&room.devices[1], 1, 1);
    struct history_summary histories[4] = {{.count = 0}}; /* of two steps on two devices */
    for (uint32_t i = 0; i < 4; i++) {
        histories[i] = (struct history_summary){.count = 5 + i, .median = HISTORY_BOUND};
    }
    room.input.histories = histories;
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_uint_eq(plan->rows[0].samples, 5); /* of 5 and 7 */
    ck_assert_uint_eq(plan->rows[1].samples, 6);
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

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *graph = tcase_create("graph");
    tcase_add_test(graph, a_chain_stays_on_the_faster_device);
    tcase_add_test(graph, what_waits_for_one_runs_on_two);
    tcase_add_test(graph, the_busiest_says_how_soon_it_can_begin_anew);
    tcase_add_test(graph, transfers_by_one_port_come_one_after_the_other);
    tcase_add_test(graph, steps_that_run_nowhere_are_named_with_the_reason);
    tcase_add_test(graph, weights_that_do_not_fit_together_go_to_two_devices);
    tcase_add_test(graph, weights_that_steps_share_are_there_once);
    tcase_add_test(graph, weights_that_flow_take_no_more_room_than_their_sets);
    tcase_add_test(graph, weights_that_do_not_fit_are_streamed_at_each_pass_where_that_is_known);
    tcase_add_test(graph, what_is_held_takes_room_while_it_is_held);
    tcase_add_test(graph, what_is_asked_for_decides);
    tcase_add_test(graph, limits_are_kept_or_refused_with_the_least_there_is);
    tcase_add_test(graph, idle_time_counts_where_its_power_is_known);
    tcase_add_test(graph, steps_are_where_they_have_to_be);
    tcase_add_test(graph, what_is_changed_goes_back_before_all_of_it_begins_anew);
    tcase_add_test(graph, what_nobody_knows_is_left_out_only_when_that_is_said);
    tcase_add_test(graph, of_a_device_that_may_be_taken_away_times_are_expected);
    tcase_add_test(graph, what_was_measured_outweighs_the_model);
    suite_add_tcase(suite, graph);
    TCase *batch = tcase_create("batch");
    tcase_add_test(batch, a_batch_is_dealt_out_by_speed);
    tcase_add_test(batch, a_batch_is_not_dealt_out_where_beginning_takes_longer);
    tcase_add_test(batch, shares_fit_the_memory_of_their_devices);
    tcase_add_test(batch, a_batch_that_fits_nowhere_at_once_is_divided);
    tcase_add_test(batch, parts_that_hear_of_one_another_wait_for_the_last);
    tcase_add_test(batch, rows_of_several_steps_say_the_fewest_samples);
    suite_add_tcase(suite, batch);
    TCase *input = tcase_create("input");
    tcase_add_test(input, input_that_makes_no_sense_is_refused);
    tcase_add_test(input, names_lead_back);
    suite_add_tcase(suite, input);
    return suite_run(suite);
}
