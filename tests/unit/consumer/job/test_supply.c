/* The tests ask what is on offer for the parts of a job, by quotes made by hand, and how the job
 * would run there. */
#include "consumer/job/job_plan.h"

#include "base/cleanup.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 2 };

struct asked {
    struct bourse_job job;
    struct order_part parts[PARTS];
    struct bourse_quote quotes[PARTS];
};

/* Two parts of two subtasks of a second each. Nothing is offered yet. */
static struct asked *asked_create(void)
{
    struct asked *asked = calloc(1, sizeof *asked);
    ck_assert_ptr_nonnull(asked);
    asked->job.parts = asked->parts;
    asked->job.part_count = PARTS;
    asked->job.subtasks = 4;
    for (size_t i = 0; i < PARTS; i++) {
        asked->parts[i] = (struct order_part){.subtasks = 2, .slots = 1, .expect_ns = NS_PER_S};
    }
    return asked;
}

static void asked_destroy(struct asked **self)
{
    free(*self);
}

static void offer(struct bourse_quote *quote, int64_t price_micro, uint32_t slots,
                  uint32_t providers)
{
    quote->levels[quote->level_count++] = (struct bourse_level){
        .price_micro = price_micro, .slots = slots, .providers = providers, .worth_micro = -1};
    quote->slots_now += slots;
}

static struct plan *planned(const struct asked *asked, const struct supply *supply,
                            unsigned figures)
{
    struct plan *plan = NULL;
    ck_assert_int_eq(job_plan_on(&asked->job, supply, figures, &plan), PLAN_OK);
    return plan;
}

START_TEST(what_is_offered_to_both_parts_is_there_once)
{
    CLEANUP(asked_destroy) struct asked *asked = asked_create();
    offer(&asked->quotes[0], 200, 2, 1);
    offer(&asked->quotes[1], 200, 2, 1);
    CLEANUP(supply_destroy) struct supply *supply = supply_create(&asked->job, asked->quotes);
    ck_assert_uint_eq(supply->count, 1);
    ck_assert_uint_eq(supply->places[0].slots.slots, 2);
    ck_assert_uint_eq(supply->places[0].slots.parts, 3);
    ck_assert(!supply->is_busy);
    CLEANUP(plan_destroy) struct plan *plan = planned(asked, supply, 0);
    ck_assert_int_eq(plan_makespan_ns(plan), 2 * NS_PER_S); /* each part alone would take one */
}
END_TEST

START_TEST(unlike_offers_are_places_of_their_own_the_cheapest_first)
{
    CLEANUP(asked_destroy) struct asked *asked = asked_create();
    offer(&asked->quotes[0], 300, 2, 1);
    offer(&asked->quotes[1], 100, 1, 1);
    offer(&asked->quotes[1], 300, 3, 2);
    CLEANUP(supply_destroy) struct supply *supply = supply_create(&asked->job, asked->quotes);
    ck_assert_uint_eq(supply->count, 3);
    ck_assert_int_eq(supply->places[0].slots.price_micro, 100);
    ck_assert_uint_eq(supply->places[0].slots.parts, 2);
    CLEANUP(plan_destroy) struct plan *plan = planned(asked, supply, 0);
    ck_assert_int_eq(plan_makespan_ns(plan), NS_PER_S);
}
END_TEST

START_TEST(what_is_worth_less_than_it_costs_is_no_offer)
{
    CLEANUP(asked_destroy) struct asked *asked = asked_create();
    asked->job.part_count = 1;
    asked->job.subtasks = 2;
    offer(&asked->quotes[0], 300, 2, 1);
    asked->quotes[0].levels[0].worth_micro = 299;
    CLEANUP(supply_destroy) struct supply *supply = supply_create(&asked->job, asked->quotes);
    ck_assert_uint_eq(supply->count, 0);
    struct plan *plan = NULL;
    ck_assert_int_eq(job_plan_on(&asked->job, supply, 0, &plan), PLAN_NOWHERE);
    asked->quotes[0].levels[0].worth_micro = 300;
    CLEANUP(supply_destroy) struct supply *worth = supply_create(&asked->job, asked->quotes);
    ck_assert_uint_eq(worth->count, 1);
}
END_TEST

/* Nothing is free: what it would take from others counts, or else it is as if what is leased were
 * free. */
START_TEST(leases_that_it_would_take_are_a_place_without_an_owner)
{
    CLEANUP(asked_destroy) struct asked *asked = asked_create();
    asked->job.part_count = 1;
    asked->job.subtasks = 2;
    offer(&asked->quotes[0], 100, 4, 2);
    asked->quotes[0].slots_now = 0;
    CLEANUP(supply_destroy) struct supply *idle = supply_create(&asked->job, asked->quotes);
    ck_assert(idle->is_busy);
    ck_assert_uint_eq(idle->places[0].slots.slots, 4);
    asked->quotes[0].slots_taken = 1;
    asked->quotes[0].taken_high_micro = 500;
    CLEANUP(supply_destroy) struct supply *taken = supply_create(&asked->job, asked->quotes);
    ck_assert_uint_eq(taken->count, 1);
    ck_assert_uint_eq(taken->places[0].providers, 0);
    ck_assert_int_eq(taken->places[0].slots.price_micro, 500);
    CLEANUP(plan_destroy) struct plan *plan = planned(asked, taken, 0);
    ck_assert_int_eq(plan_makespan_ns(plan), 2 * NS_PER_S);
}
END_TEST

/* A check has the time of its part, and not the time known of its subtask. */
START_TEST(checks_take_what_their_part_does)
{
    CLEANUP(asked_destroy) struct asked *asked = asked_create();
    int64_t *takes_ns = calloc(2, sizeof *takes_ns);
    ck_assert_ptr_nonnull(takes_ns);
    takes_ns[0] = takes_ns[1] = 9000; /* less than a millisecond is no more than that */
    asked->job.expect_ns = takes_ns;
    asked->job.checks = 2;
    asked->job.graph.count = 4;
    ck_assert_int_eq(supply_takes_ns(&asked->job, 0, 1), 9000);
    ck_assert_int_eq(supply_takes_ns(&asked->job, 1, 2), NS_PER_S);
    ck_assert_int_eq(supply_takes_ns(&asked->job, 1, 3), NS_PER_S);
    free(takes_ns);
}
END_TEST

START_TEST(without_figures_of_its_own_a_subtask_has_the_p90_of_the_job)
{
    CLEANUP(asked_destroy) struct asked *asked = asked_create();
    int64_t takes_ns[] = {NS_PER_S, 4 * NS_PER_S, NS_PER_S, NS_PER_S};
    uint32_t after_count[] = {0, 0, 0, 0};
    asked->job.expect_ns = takes_ns;
    asked->job.graph = (struct order_graph){.count = 4, .after_count = after_count};
    offer(&asked->quotes[0], 100, 4, 1);
    offer(&asked->quotes[1], 100, 4, 1);
    CLEANUP(supply_destroy) struct supply *supply = supply_create(&asked->job, asked->quotes);
    CLEANUP(plan_destroy) struct plan *plan = planned(asked, supply, JOB_PLAN_P90);
    ck_assert_int_eq(plan_makespan_ns(plan), 4 * NS_PER_S); /* each as it is known to */
    ck_assert(!(plan->total.p90_s > 0));                    /* nobody measured this work */
    asked->job.learned.p90_ns = 7;
    asked->job.learned.subtasks = 4;
    CLEANUP(plan_destroy) struct plan *known = planned(asked, supply, JOB_PLAN_P90);
    ck_assert_int_eq(plan_makespan_ns(known), 4 * NS_PER_S);
    ck_assert_int_eq(plan_ns(known->total.p90_s), 7);
    CLEANUP(plan_destroy) struct plan *unasked = planned(asked, supply, 0);
    ck_assert(!(unasked->total.p90_s > 0));
}
END_TEST

/* One make was measured to be twice as fast as the job says, and of the other nothing is known. */
/* One fast, which nobody tells apart, and of two speeds more devices than there are numbers. */
START_TEST(devices_beyond_the_numbers_count_as_one_that_is_about_as_fast)
{
    enum { DEVICES = 40 };
    static struct supply_place places[DEVICES];
    struct measured_kind kinds[LIST_SCHEDULE_CLASSES];
    struct supply supply = {.places = places, .count = DEVICES};
    memset(places, 0, sizeof places);
    for (int i = 0; i < DEVICES; i++) {
        struct supply_place *place = &places[i];
        (void)snprintf(place->instrument, sizeof place->instrument, "cpu.a");
        (void)snprintf(place->account, sizeof place->account, "%d", i);
        (void)snprintf(place->device, sizeof place->device, "%d", i);
        place->is_unlike = i > 0;
        place->pace = i == 0 ? 0 : i % 4 == 0 ? 5100 + (uint32_t)i : 2900 + (uint32_t)i;
    }
    ck_assert_uint_eq(supply_number_kinds(&supply, kinds), LIST_SCHEDULE_CLASSES);
    ck_assert_uint_eq(places[0].slots.of_class, 1);
    for (int i = 1; i < DEVICES; i++) {
        const uint32_t of_class = places[i].slots.of_class;
        ck_assert_uint_gt(of_class, 1);
        ck_assert_uint_lt(of_class, LIST_SCHEDULE_CLASSES);
        const int like = atoi(kinds[of_class].device);
        ck_assert_int_eq(like % 4 == 0, i % 4 == 0);
    }
}
END_TEST

START_TEST(what_a_make_was_measured_to_take_it_takes)
{
    CLEANUP(asked_destroy) struct asked *asked = asked_create();
    offer(&asked->quotes[0], 100, 1, 1);
    offer(&asked->quotes[0], 200, 1, 1);
    asked->job.part_count = 1;
    asked->job.subtasks = 2;
    CLEANUP(supply_destroy) struct supply *supply = supply_create(&asked->job, asked->quotes);
    ck_assert_uint_eq(supply->count, 2);
    supply->places[1].slots.of_class = 1;
    supply->class_count = 2;
    supply->figures = calloc(2, sizeof *supply->figures);
    ck_assert_ptr_nonnull(supply->figures);
    supply->figures[0] = (struct history_figure){.takes_ns = NS_PER_S, .p90_ns = -1};
    supply->figures[1] =
        (struct history_figure){.takes_ns = NS_PER_S / 2, .p90_ns = 600 * NS_PER_MS, .samples = 8};
    ck_assert_uint_eq(supply_figure(&asked->job, supply, 1, 0, 1).samples, 8);
    asked->job.learned.p90_ns = 3 * NS_PER_S;
    asked->job.learned.subtasks = 2;
    CLEANUP(plan_destroy)
    struct plan *plan = planned(asked, supply, JOB_PLAN_SINGLE | JOB_PLAN_P90);
    ck_assert_int_eq(plan_ns(plan->rows[0].finish_s), NS_PER_S);
    ck_assert_int_eq(plan_ns(plan->rows[1].finish_s), NS_PER_S / 2);
    /* The second place takes as long for both as the first for one, and is dearer. */
    ck_assert_uint_eq(plan->single, 1);
    ck_assert_int_eq(plan_ns(plan->forms[PLAN_SINGLE].makespan_s.value), NS_PER_S);
    /* The first place has no p90 of its own, so that of the job counts. */
    ck_assert_int_eq(plan_ns(plan->total.p90_s), 3 * NS_PER_S);
    supply->figures[0].p90_ns = 500 * NS_PER_MS;
    CLEANUP(plan_destroy) struct plan *told = planned(asked, supply, JOB_PLAN_P90);
    ck_assert_int_eq(plan_ns(told->total.p90_s), 600 * NS_PER_MS);
}
END_TEST

SUITE("supply", NULL, NULL, TEST(what_is_offered_to_both_parts_is_there_once),
      TEST(unlike_offers_are_places_of_their_own_the_cheapest_first),
      TEST(what_is_worth_less_than_it_costs_is_no_offer),
      TEST(leases_that_it_would_take_are_a_place_without_an_owner),
      TEST(checks_take_what_their_part_does),
      TEST(without_figures_of_its_own_a_subtask_has_the_p90_of_the_job),
      TEST(devices_beyond_the_numbers_count_as_one_that_is_about_as_fast),
      TEST(what_a_make_was_measured_to_take_it_takes))
