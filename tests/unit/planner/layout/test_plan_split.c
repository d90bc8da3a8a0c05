/* Batches that are divided, with all that goes between their devices, against figures worked out by
 * hand. Devices take a second for a unit of work, and cost a credit a second. */
#include "planner/layout/plan.h"

#include "base/cleanup.h"
#include "tests/support/sample_work.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4, ELEMENTS = 200000000 };

/* Values: items; parts, for those that meet; bytes that each item brings, and that are fetched of
 * it. */
enum { BATCH, PARTS, BROUGHT, FETCHED, VALUES };

/* Two units for each item, and where there are parts a sum of 800 MB over them, then a unit. */
static enum steps_status make(const int64_t *values, struct steps **ret_steps,
                              struct problem *ret_problem)
{
    (void)ret_problem;
    struct steps *steps = sample_steps(values[PARTS] > 1 ? 3 : 1);
    sample_units(steps, 0, values[BATCH], values[BATCH]);
    steps->steps[0].brought_bytes = values[BATCH] * values[BROUGHT];
    steps->steps[0].fetched_bytes = values[BATCH] * values[FETCHED];
    if (values[PARTS] > 1) {
        sample_units(steps, 1, 1, 0);
        struct operation *sum = &steps->steps[1].parts[0].operation;
        *sum = operation_of(OPERATION_ALL_REDUCE, DTYPE_FP32);
        sum->shape.all_reduce =
            (struct all_reduce_shape){.elements = ELEMENTS, .devices = values[PARTS]};
        sample_units(steps, 2, 1, 0);
        sample_edge(steps, 0, 1, 0);
        sample_edge(steps, 1, 2, 0);
    }
    *ret_steps = steps;
    return STEPS_OK;
}

#define NUMBER(what, is_the_batch, is_parts, grains)                                               \
    {                                                                                              \
        .name = (what), .least = 0, .most = INT64_MAX, .is_batch = (is_the_batch),                 \
        .is_replicas = (is_parts), .grain = (grains)                                               \
    }
static const struct template_parameter apart[] = {
    NUMBER("batch", true, false, 0),
    NUMBER("parts", false, false, 0),
    NUMBER("brought", false, false, 0),
    NUMBER("fetched", false, false, 0),
    {.name = NULL},
};
static const struct template_parameter together[] = {
    NUMBER("batch", true, false, 0),
    NUMBER("parts", false, true, 0),
    NUMBER("brought", false, false, 0),
    NUMBER("fetched", false, false, 0),
    {.name = NULL},
};
static const struct template_parameter grainy[] = {
    NUMBER("batch", true, false, 8),
    NUMBER("parts", false, false, 0),
    NUMBER("brought", false, false, 0),
    NUMBER("fetched", false, false, 0),
    {.name = NULL},
};
static const struct template apart_template = {.name = "apart", .parameters = apart, .make = make};
static const struct template together_template = {
    .name = "together", .parameters = together, .make = make};
static const struct template grainy_template = {
    .name = "grainy", .parameters = grainy, .make = make};

struct room {
    struct sample_device devices[MOST];
    struct plan_device list[MOST];
    struct steps *steps;
    struct topology *topology;
    struct plan_input input;
};

static void room_fini(struct room *room)
{
    steps_destroy(&room->steps);
    topology_destroy(&room->topology);
}

/* Takes over the topology. */
static void furnish(struct room *room, const struct template *template, const int64_t *values,
                    size_t count, struct topology *topology)
{
    static const char *const names[MOST] = {"left", "right", "third", "fourth"};
    *room = (struct room){.topology = topology};
    ck_assert_int_eq(template_create(template, values, &room->steps, NULL), STEPS_OK);
    room->input = (struct plan_input){.steps = room->steps,
                                      .template = template,
                                      .values = values,
                                      .devices = room->list,
                                      .device_count = count,
                                      .topology = topology,
                                      .budget_micro = LIMIT_NONE,
                                      .effort = PLAN_EFFORT};
    for (uint32_t d = 0; d < count; d++) {
        sample_device(&room->devices[d], 1, 1);
        room->list[d] = (struct plan_device){.name = names[d],
                                             .cost = &room->devices[d].cost,
                                             .memory = d,
                                             .price_micro = 3600 * MICRO_PER_CREDIT};
    }
}

static void assert_near(double value, double wanted)
{
    ck_assert_double_eq_tol(value, wanted, 1e-6 * wanted + 1e-7);
}

START_TEST(input_sets_out_and_results_come_back)
{
    const int64_t values[VALUES] = {10, 1, 100, 50};
    CLEANUP(room_fini) struct room room;
    furnish(&room, &apart_template, values, 2, sample_links(2, 0, 250));
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    /* Five items would be there after 2 s, done at 12 and back at 13; so six stay at home. */
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_int_eq(plan->rows[0].items, 6);
    ck_assert_int_eq(plan->rows[1].items, 4);
    assert_near(plan->rows[0].finish_s, 12);
    assert_near(plan->rows[1].start_s, 1.6);
    assert_near(plan->rows[1].finish_s, 9.6);
    assert_near(plan->rows[1].bytes_in, 400);
    assert_near(plan->total.makespan_s.value, 12);
    assert_near(plan->uses[0].bytes_out, 400);
    assert_near(plan->uses[0].bytes_in, 200);
    assert_near(plan->uses[1].last_s, 10.4); /* it is leased from the first transfer to the last */
    assert_near((double)plan->total.price_micro, 22.4e6);
    ck_assert_uint_eq(plan->transfer_count, 2);
    assert_near(plan->transfers[1].start_s, 9.6);
    ck_assert_uint_eq(plan->transfers[1].to, 0);
    ck_assert(plan->bound <= 12);
}
END_TEST

START_TEST(shares_leave_home_one_after_the_other)
{
    const int64_t values[VALUES] = {12, 1, 100, 0};
    /* All that leaves memory 0 goes by one port. */
    const struct topology_link links[] = {
        {0, 1, TOPOLOGY_PEER, 0, 200, {0}, 1}, {0, 2, TOPOLOGY_PEER, 0, 200, {0}, 1},
        {1, 0, TOPOLOGY_PEER, 0, 200, {1}, 1}, {2, 0, TOPOLOGY_PEER, 0, 200, {2}, 1},
        {1, 2, TOPOLOGY_PEER, 0, 200, {1}, 1}, {2, 1, TOPOLOGY_PEER, 0, 200, {2}, 1},
    };
    const struct topology_input linked = {
        .memory_count = 3, .port_count = 3, .links = links, .link_count = 6};
    struct topology *topology = NULL;
    ck_assert_int_eq(topology_create(&linked, &topology, NULL), TOPOLOGY_OK);
    CLEANUP(room_fini) struct room room;
    furnish(&room, &apart_template, values, 3, topology);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_uint_eq(plan->transfer_count, 4); /* who brings nothing back says that it is done */
    ck_assert(plan->transfers[1].start_s >= plan->transfers[0].finish_s);
    /* 5, 4 and 3 items: 10 s; 2 s and 8 s; 3.5 s and 6 s. */
    assert_near(plan->total.makespan_s.value, 10);
}
END_TEST

START_TEST(slow_links_make_it_not_worth_while_and_missing_ones_are_named)
{
    const int64_t values[VALUES] = {10, 1, 100, 50};
    CLEANUP(room_fini) struct room room;
    CLEANUP(room_fini) struct room apart_room;
    furnish(&room, &apart_template, values, 2, sample_links(2, 0, 1));
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SINGLE);
    ck_assert_int_eq(plan->forms[PLAN_SPLIT].status, PLAN_NO_GAIN);
    furnish(&apart_room, &apart_template, values, 2, NULL);
    CLEANUP(plan_destroy) struct plan *alone = sample_plan(&apart_room.input);
    ck_assert_int_eq(alone->form, PLAN_SINGLE);
    ck_assert_int_eq(alone->forms[PLAN_SPLIT].status, PLAN_UNREACHED);
    ck_assert_ptr_nonnull(strstr(alone->forms[PLAN_SPLIT].problem.text, "from left to right"));
}
END_TEST

START_TEST(beginning_costs_the_latency_of_a_link_even_without_input)
{
    const int64_t values[VALUES] = {2, 1, 0, 0};
    CLEANUP(room_fini) struct room near_room;
    CLEANUP(room_fini) struct room far_room;
    furnish(&near_room, &apart_template, values, 2, sample_links(2, 0.125, 1e9));
    CLEANUP(plan_destroy) struct plan *near = sample_plan(&near_room.input);
    ck_assert_int_eq(near->form, PLAN_SPLIT);
    assert_near(near->total.makespan_s.value, 2.25);
    furnish(&far_room, &apart_template, values, 2, sample_links(2, 1, 1e9));
    CLEANUP(plan_destroy) struct plan *far = sample_plan(&far_room.input);
    ck_assert_int_eq(far->form, PLAN_SINGLE);
    ck_assert_int_eq(far->forms[PLAN_SPLIT].status, PLAN_NO_GAIN);
}
END_TEST

START_TEST(shares_are_whole_grains_but_for_one)
{
    const int64_t values[VALUES] = {30, 1, 0, 0};
    CLEANUP(room_fini) struct room room;
    furnish(&room, &grainy_template, values, 3, sample_links(3, 0, 1e9));
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    size_t whole = 0;
    int64_t items = 0;
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    for (size_t i = 0; i < plan->row_count; i++) {
        whole += plan->rows[i].items % 8 == 0;
        items += plan->rows[i].items;
    }
    ck_assert_int_eq(items, 30);
    ck_assert_uint_eq(whole, 2);
    assert_near(plan->total.makespan_s.value, 28); /* 14, 8 and 8: 2 s each */
}
END_TEST

START_TEST(sums_go_over_the_links_in_a_ring)
{
    const int64_t values[VALUES] = {8, 1, 0, 0};
    CLEANUP(room_fini) struct room room;
    furnish(&room, &together_template, values, 4, sample_links(4, 0, 4e8));
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    /* Two items each take 4 s; 6 rounds of 200 MB take 3 s, of which a device needs 0.075 s itself;
     * a unit more. */
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_uint_eq(plan->row_count, 4);
    assert_near(plan->total.makespan_s.value, 8);
    assert_near(plan->rows[0].busy_s, 5.075);
    assert_near(plan->rows[0].bytes_in, 1.2e9);
    assert_near(plan->uses[3].bytes_out, 1.2e9);
    ck_assert_uint_eq(plan->wait_count, 4);
    assert_near(plan->waits[0].from_s, 4.075);
    assert_near(plan->waits[0].until_s, 7);
    assert_near(plan->uses[0].share, 5.075 / 8);
}
END_TEST

/* A unit for each item there and one back; the sum of what there left goes on meanwhile; then a
 * unit more. */
static enum steps_status make_behind(const int64_t *values, struct steps **ret_steps,
                                     struct problem *ret_problem)
{
    (void)ret_problem;
    const bool has_parts = values[PARTS] > 1;
    const uint32_t back = has_parts ? 2 : 1;
    struct steps *steps = sample_steps(has_parts ? 4 : 2);
    sample_units(steps, 0, values[BATCH], 0);
    sample_units(steps, back, values[BATCH], 0);
    strcpy(steps->steps[back].name, "back");
    sample_edge(steps, 0, back, 0);
    if (has_parts) {
        sample_units(steps, 1, 1, 0);
        strcpy(steps->steps[1].name, "sum");
        struct operation *sum = &steps->steps[1].parts[0].operation;
        *sum = operation_of(OPERATION_ALL_REDUCE, DTYPE_FP32);
        sum->shape.all_reduce =
            (struct all_reduce_shape){.elements = ELEMENTS, .devices = values[PARTS]};
        sample_units(steps, 3, 1, 0);
        sample_edge(steps, 0, 1, 0);
        sample_edge(steps, 1, 3, 0);
        sample_edge(steps, 2, 3, 0);
        steps->sums_behind = true;
    }
    *ret_steps = steps;
    return STEPS_OK;
}

static const struct template behind_template = {
    .name = "behind", .parameters = together, .make = make_behind};

START_TEST(sums_may_be_behind_what_comes_after_them)
{
    const int64_t values[VALUES] = {8, 1, 0, 0};
    CLEANUP(room_fini) struct room room;
    furnish(&room, &behind_template, values, 4, sample_links(4, 0, 4e8));
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    /* Two items each are there at 2 s. From then on links are busy for 3 s; a device has 0.075 s of
     * the sum to do, and 2 s back. All wait for the sum, and do a unit more. */
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_uint_eq(plan->row_count, 4);
    assert_near(plan->total.makespan_s.value, 6);
    assert_near(plan->rows[0].busy_s, 5.075);
    ck_assert_uint_eq(plan->wait_count, 4);
    assert_near(plan->waits[0].from_s, 4.075);
    assert_near(plan->waits[0].until_s, 5);
    ck_assert(plan->bound <= plan->total.merit);
}
END_TEST

START_TEST(slow_sums_are_of_fewer_devices_or_none)
{
    const int64_t values[VALUES] = {8, 1, 0, 0};
    CLEANUP(room_fini) struct room room;
    furnish(&room, &together_template, values, 4, sample_links(4, 0, 1e7));
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SINGLE);
    assert_near(plan->total.makespan_s.value, 16);
    ck_assert_int_eq(plan->forms[PLAN_SPLIT].status, PLAN_NO_GAIN);
}
END_TEST

/* Two machines of two devices each: fast within, one network port each way between. */
START_TEST(sums_of_machines_go_once_over_the_network)
{
    const int64_t values[VALUES] = {8, 1, 0, 0};
    struct topology_link links[12];
    size_t count = 0;
    for (uint32_t p = 0; p < 4; p++) {
        for (uint32_t q = 0; q < 4; q++) {
            bool is_near = p / 2 == q / 2;
            if (p != q) {
                links[count++] = (struct topology_link){
                    .from = p,
                    .to = q,
                    .kind = is_near ? TOPOLOGY_NVLINK : TOPOLOGY_NETWORK,
                    .bandwidth = is_near ? 8e9 : 8e8,
                    .ports = {is_near ? 4 + 4 * p + q : p / 2, is_near ? 0 : 2 + q / 2},
                    .port_count = is_near ? 1 : 2};
            }
        }
    }
    const struct topology_input linked = {
        .memory_count = 4, .port_count = 32, .links = links, .link_count = count};
    struct topology *topology = NULL;
    ck_assert_int_eq(topology_create(&linked, &topology, NULL), TOPOLOGY_OK);
    CLEANUP(room_fini) struct room room;
    furnish(&room, &together_template, values, 4, topology);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    /* One ring would take 1.5 s. Here: half of 800 MB to the neighbour and gathered, twice 0.05 s;
     * 2 rounds of 400 MB, 1 s; and back. */
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_uint_eq(plan->row_count, 4);
    assert_near(plan->total.makespan_s.value, 4 + 1.2 + 1);
}
END_TEST

START_TEST(a_slow_device_that_helps_nothing_is_left_alone)
{
    const int64_t values[VALUES] = {9, 1, 0, 0};
    CLEANUP(room_fini) struct room few;
    CLEANUP(room_fini) struct room more;
    furnish(&few, &together_template, values, 3, sample_links(3, 0, 4e8));
    furnish(&more, &together_template, values, 4, sample_links(4, 0, 4e8));
    sample_device(&more.devices[3], 20, 1); /* all would wait for its last unit */
    CLEANUP(plan_destroy) struct plan *without = sample_plan(&few.input);
    CLEANUP(plan_destroy) struct plan *with = sample_plan(&more.input);
    ck_assert_int_eq(with->form, PLAN_SPLIT);
    ck_assert_uint_eq(with->uses[3].row_count, 0);
    assert_near(with->total.makespan_s.value, without->total.makespan_s.value);
}
END_TEST

SUITE("plan_split", NULL, NULL, TEST(input_sets_out_and_results_come_back),
      TEST(shares_leave_home_one_after_the_other),
      TEST(slow_links_make_it_not_worth_while_and_missing_ones_are_named),
      TEST(beginning_costs_the_latency_of_a_link_even_without_input),
      TEST(shares_are_whole_grains_but_for_one), TEST(sums_go_over_the_links_in_a_ring),
      TEST(sums_may_be_behind_what_comes_after_them), TEST(slow_sums_are_of_fewer_devices_or_none),
      TEST(sums_of_machines_go_once_over_the_network),
      TEST(a_slow_device_that_helps_nothing_is_left_alone))
