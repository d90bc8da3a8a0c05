/* The tests make the plan of a job from its parts: what list_schedule.h decides, as rows, uses and
 * an outcome, with the figures that only the plan has. */
#include "planner/plan/plan_make.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "tests/support/sample_work.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { SUBTASKS = 7 };

struct job {
    struct list_schedule_part part;
    struct list_schedule_device devices[2];
    struct figure slot_w[2];
    int64_t takes_ns[SUBTASKS], slow_ns[SUBTASKS];
    struct plan_parts parts;
};

/* Subtasks of a second: on two slots of a device, and on one of a dearer device. */
static void begin(struct job *job, uint32_t slots)
{
    *job = (struct job){.part = {.subtasks = SUBTASKS, .slots = slots},
                        .devices = {{.slots = 2 * slots, .price_micro = 3600, .parts = 1},
                                    {.slots = slots, .price_micro = 7200, .parts = 1}}};
    for (uint32_t i = 0; i < SUBTASKS; i++) {
        job->takes_ns[i] = NS_PER_S;
        job->slow_ns[i] = 2 * NS_PER_S;
    }
    job->parts.schedule = (struct list_schedule_input){.parts = &job->part,
                                                       .part_count = 1,
                                                       .takes_ns = job->takes_ns,
                                                       .devices = job->devices,
                                                       .device_count = 2};
}

static struct plan *made(const struct job *job)
{
    struct plan *plan = NULL;
    struct plan_fault fault;
    const struct plan_work work = {.parts = &job->parts};
    ck_assert_int_eq(plan_make(&work, &plan, &fault), PLAN_OK);
    return plan;
}

START_TEST(a_job_has_a_row_for_each_subtask_in_their_order)
{
    struct job job;
    begin(&job, 1);
    CLEANUP(plan_destroy) struct plan *plan = made(&job);
    static const uint32_t devices[SUBTASKS] = {0, 0, 1, 0, 0, 1, 0};
    ck_assert_uint_eq(plan->row_count, SUBTASKS);
    for (uint32_t i = 0; i < SUBTASKS; i++) {
        const struct plan_row *row = &plan->rows[i];
        ck_assert_uint_eq(row->device, devices[i]);
        ck_assert_uint_lt(row->lane, plan->uses[row->device].lanes);
        ck_assert_uint_eq(row->first_step, i);
        ck_assert_uint_eq(row->step_count, 1);
        ck_assert_int_eq(plan_ns(row->start_s), i / 3 * NS_PER_S);
        ck_assert_int_eq(plan_row_ns(row), NS_PER_S);
        ck_assert_double_eq(row->time_s.value, 1);
    }
    ck_assert_int_eq(plan->form, PLAN_GRAPH);
    ck_assert_int_eq(plan_makespan_ns(plan), 3 * NS_PER_S);
    ck_assert_double_eq(plan->bound, 3); /* three rounds of three: none is better */
    ck_assert_double_eq(plan->gap, 0);
    ck_assert_uint_eq(plan->lanes, 3);
    ck_assert_int_eq(plan_busy_ns(plan), 7 * NS_PER_S);
    ck_assert_int_eq(plan_share_ppm(plan), 777777);
}
END_TEST

START_TEST(each_device_knows_its_lanes_and_its_lease)
{
    struct job job;
    begin(&job, 1);
    CLEANUP(plan_destroy) struct plan *plan = made(&job);
    ck_assert_uint_eq(plan->uses[0].row_count, 5);
    ck_assert_uint_eq(plan->uses[0].lanes, 2);
    ck_assert_double_eq(plan->uses[0].first_s, 0);
    ck_assert_double_eq(plan->uses[0].last_s, 3);
    ck_assert_double_eq(plan->uses[0].busy_s, 5);
    ck_assert_int_eq(plan_use_percent(&plan->uses[0]), 83);
    ck_assert_double_eq(plan->uses[1].last_s, 2);
    ck_assert_int_eq(plan->uses[0].price_micro, 5);
    ck_assert_int_eq(plan->uses[1].price_micro, 4);
    ck_assert_int_eq(plan->total.price_micro, 9);
    ck_assert_uint_eq(plan->total.device_count, 2);
}
END_TEST

/* A tenth of a micro-credit for each subtask: the first of ten pays for all of them. */
START_TEST(rows_share_the_price_of_their_device_exactly)
{
    struct job job;
    begin(&job, 3);
    job.devices[0].price_micro = 120;
    job.devices[1].price_micro = 0;
    CLEANUP(plan_destroy) struct plan *plan = made(&job);
    int64_t sums[2] = {0};
    for (uint32_t i = 0; i < SUBTASKS; i++) {
        ck_assert_int_ge(plan->rows[i].price_micro, 0);
        sums[plan->rows[i].device] += plan->rows[i].price_micro;
    }
    ck_assert_int_eq(sums[0], 1);
    ck_assert_int_eq(sums[0], plan->uses[0].price_micro);
    ck_assert_int_eq(plan->rows[0].price_micro, 1);
    ck_assert_int_eq(sums[1], 0);
}
END_TEST

START_TEST(energy_is_known_where_the_power_of_all_is)
{
    struct job job;
    begin(&job, 2);
    CLEANUP(plan_destroy) struct plan *unknown = made(&job);
    ck_assert_int_eq(unknown->total.energy_j.source, FIGURE_UNKNOWN);
    ck_assert_int_eq(unknown->rows[0].energy_j.source, FIGURE_UNKNOWN);
    job.parts.slot_w = job.slot_w;
    job.slot_w[0] = (struct figure){.value = 10, .source = FIGURE_DECLARED, .unverified = true};
    CLEANUP(plan_destroy) struct plan *half = made(&job);
    ck_assert_double_eq(half->rows[0].energy_j.value, 20);
    ck_assert_double_eq(half->uses[0].energy_j.value, 100);
    ck_assert_int_eq(half->uses[1].energy_j.source, FIGURE_UNKNOWN);
    ck_assert_int_eq(half->total.energy_j.source, FIGURE_UNKNOWN);
    job.slot_w[1] = (struct figure){.value = 30, .source = FIGURE_DECLARED};
    CLEANUP(plan_destroy) struct plan *known = made(&job);
    ck_assert_int_eq(known->total.energy_j.source, FIGURE_DECLARED);
    ck_assert_double_eq(known->total.energy_j.value, 100 + 120);
    ck_assert(known->total.energy_j.unverified);
    job.devices[1].parts = 0;
    CLEANUP(plan_destroy) struct plan *idle = made(&job);
    ck_assert_int_eq(idle->uses[1].energy_j.source, FIGURE_DECLARED);
    ck_assert_double_eq(idle->uses[1].energy_j.value, 0);
}
END_TEST

START_TEST(what_costs_a_schedule_more_is_known_only_when_asked_for)
{
    struct job job;
    begin(&job, 1);
    CLEANUP(plan_destroy) struct plan *plain = made(&job);
    ck_assert_uint_eq(plain->single, PLAN_ANYWHERE);
    ck_assert_int_eq(plain->forms[PLAN_SINGLE].makespan_s.source, FIGURE_UNKNOWN);
    ck_assert(!(plain->total.p90_s > 0));
    job.parts.finds_single = true;
    job.parts.p90_ns = job.slow_ns;
    CLEANUP(plan_destroy) struct plan *asked = made(&job);
    ck_assert_uint_eq(asked->single, 0);
    ck_assert_double_eq(asked->forms[PLAN_SINGLE].makespan_s.value, 4);
    ck_assert_double_eq(asked->total.p90_s, 6);
    ck_assert_int_eq(plan_makespan_ns(asked), 3 * NS_PER_S);
    /* The first place is two devices of a slot, so the second is as wide as one of them. */
    static const uint32_t single_slots[] = {1, 1};
    job.parts.single_slots = single_slots;
    CLEANUP(plan_destroy) struct plan *places = made(&job);
    ck_assert_double_eq(places->forms[PLAN_SINGLE].makespan_s.value, 7);
    ck_assert_uint_eq(places->uses[0].lanes, 2);
    static const uint32_t unknown_slots[] = {0, 0};
    job.parts.single_slots = unknown_slots;
    CLEANUP(plan_destroy) struct plan *unknown = made(&job);
    ck_assert_uint_eq(unknown->single, PLAN_ANYWHERE);
}
END_TEST

START_TEST(a_job_that_cannot_be_planned_says_why)
{
    struct job job;
    struct plan *plan = NULL;
    struct plan_fault fault;
    const struct plan_work work = {.parts = &job.parts};
    begin(&job, 1);
    job.part.slots = 3;
    ck_assert_int_eq(plan_make(&work, &plan, &fault), PLAN_NOWHERE);
    ck_assert_str_eq(fault.problem.text, "a part of the job fits no device");
    begin(&job, 1);
    job.part.subtasks = LIST_SCHEDULE_SUBTASKS + 1;
    ck_assert_int_eq(plan_make(&work, &plan, &fault), PLAN_TOO_MANY);
    ck_assert_str_eq(plan_status_name(PLAN_TOO_MANY), "TOO_MANY");
    begin(&job, 1);
    job.takes_ns[3] = 0;
    ck_assert_int_eq(plan_make(&work, &plan, &fault), PLAN_BAD_INPUT);
    begin(&job, 1);
    job.takes_ns[0] = INT64_MAX;
    ck_assert_int_eq(plan_make(&work, &plan, &fault), PLAN_BAD_INPUT);
    ck_assert_str_eq(fault.problem.text, "the job takes more time or costs more than can be "
                                         "computed");
    begin(&job, 1);
    job.devices[0].price_micro = INT64_MAX;
    for (uint32_t i = 0; i < SUBTASKS; i++) {
        job.takes_ns[i] = 2 * NS_PER_HOUR;
    }
    ck_assert_int_eq(plan_make(&work, &plan, &fault), PLAN_BAD_INPUT);
    ck_assert_ptr_null(plan);
}
END_TEST

/* Seconds lose nothing of a nanosecond in plans of up to 26 days. */
START_TEST(nanoseconds_come_back_exactly)
{
    struct random random = random_seeded((uint64_t)_i + 1);
    for (int i = 0; i < 1000; i++) {
        const int64_t ns = (int64_t)(random_u64(&random) >> (13 + i % 50));
        ck_assert_int_eq(plan_ns((double)ns / NS_PER_S), ns);
    }
    ck_assert_int_eq(plan_ns(0), 0);
    ck_assert_int_eq(plan_ns(1e300), INT64_MAX);
}
END_TEST

/* Two steps of one device: their prices add up to that of its lease. */
START_TEST(rows_of_steps_share_the_price_of_a_lease)
{
    CLEANUP(steps_destroy) struct steps *steps = sample_steps(2);
    struct sample_device device;
    sample_device(&device, 1, 0);
    sample_units(steps, 0, 1, 0);
    sample_units(steps, 1, 2, 0);
    const struct plan_device devices[] = {
        {.name = "a 1", .cost = &device.cost, .price_micro = 4800}};
    const struct plan_input input = {
        .steps = steps, .devices = devices, .device_count = 1, .budget_micro = LIMIT_NONE};
    struct plan_fault fault;
    struct plan *made = NULL;
    ck_assert_int_eq(plan_make(&(struct plan_work){.steps = &input}, &made, &fault), PLAN_OK);
    CLEANUP(plan_destroy) struct plan *plan = made;
    ck_assert_uint_eq(plan->row_count, 2);
    ck_assert_int_eq(plan->uses[0].price_micro, 4);
    ck_assert_int_eq(plan->rows[0].price_micro + plan->rows[1].price_micro, 4);
    ck_assert_uint_eq(plan->uses[0].lanes, 1);
    ck_assert_uint_eq(plan->lanes, 0); /* it is not a job's */
}
END_TEST

SUITE("plan_make", NULL, NULL, TEST(a_job_has_a_row_for_each_subtask_in_their_order),
      TEST(each_device_knows_its_lanes_and_its_lease),
      TEST(rows_share_the_price_of_their_device_exactly),
      TEST(energy_is_known_where_the_power_of_all_is),
      TEST(what_costs_a_schedule_more_is_known_only_when_asked_for),
      TEST(a_job_that_cannot_be_planned_says_why), LOOP(nanoseconds_come_back_exactly, 0, 20),
      TEST(rows_of_steps_share_the_price_of_a_lease))
