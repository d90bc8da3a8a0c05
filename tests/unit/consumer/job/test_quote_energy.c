/* The choice of devices for `objective: energy`, by places made by hand. */
#include "consumer/job/quote/quote_energy.h"

#include "base/cleanup.h"
#include "base/random.h"
#include "consumer/job/job_plan.h"
#include "consumer/job/quote/power_limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { PLACES = 8, ROUNDS = 2000 };

static struct supply_place places[PLACES];
static struct supply supply;
static struct order_part part;
static struct job_file file;
static struct bourse_job job;
static struct energy_step steps[QUOTE_ENERGY_STEPS];

static void setup(void)
{
    memset(places, 0, sizeof places);
    memset(&job, 0, sizeof job);
    supply = (struct supply){.places = places};
    part = (struct order_part){.subtasks = 8, .slots = 1, .expect_ns = NS_PER_S};
    job.file = &file;
    job.parts = &part;
    job.part_count = 1;
    job.subtasks = part.subtasks;
}

static struct supply_place *offer(const char *instrument, int64_t power_mw, uint32_t slots)
{
    struct supply_place *place = &places[supply.count++];
    *place = (struct supply_place){.slots = {.slots = slots, .price_micro = 100, .parts = 1},
                                   .power_mw = power_mw};
    (void)snprintf(place->instrument, sizeof place->instrument, "%s", instrument);
    return place;
}

START_TEST(devices_come_in_rising_order_of_power_and_unknown_ones_last)
{
    offer("a", 0, 5);
    offer("a", 9000, 2);
    offer("b", 3000, 1);
    offer("b", 9000, 4);
    ck_assert_uint_eq(quote_energy_steps(&job, &supply, steps), 3);
    ck_assert_uint_eq(steps[0].slots, 1);
    ck_assert_uint_eq(steps[0].limits.count, 1);
    ck_assert_str_eq(steps[0].limits.items[0].instrument, "b");
    ck_assert_int_eq(steps[0].limits.items[0].power_mw, 3000);
    ck_assert_uint_eq(steps[1].slots, 7); /* equal powers come together */
    ck_assert_uint_eq(steps[1].limits.count, 2);
    ck_assert_uint_eq(steps[2].slots, 12);
    ck_assert_uint_eq(steps[2].limits.count, 0);
}
END_TEST

/* A device of twice the power needs less energy when the work takes a third of the time there. */
START_TEST(the_time_of_the_work_counts)
{
    struct history_figure figures[2] = {{.takes_ns = 3 * NS_PER_S}, {.takes_ns = NS_PER_S}};
    offer("slow", 5000, 1);
    offer("quick", 10000, 1)->slots.of_class = 1;
    supply.figures = figures;
    supply.class_count = 2;
    ck_assert_uint_eq(quote_energy_steps(&job, &supply, steps), 2);
    ck_assert_str_eq(steps[0].limits.items[0].instrument, "quick");
}
END_TEST

START_TEST(without_known_powers_all_are_taken)
{
    ck_assert_uint_eq(quote_energy_steps(&job, &supply, steps), 0);
    offer("a", 0, 5);
    offer("", 700, 2); /* whose slots these are is unknown */
    ck_assert_uint_eq(quote_energy_steps(&job, &supply, steps), 1);
    ck_assert_uint_eq(steps[0].slots, 7);
    ck_assert_uint_eq(steps[0].limits.count, 0);
}
END_TEST

static bool fits(const struct requirement *needs, const struct supply_place *place)
{
    struct attribute attributes[2];
    size_t count = 1;
    memset(attributes, 0, sizeof attributes);
    (void)snprintf(attributes[0].name, ATTRIBUTE_NAME_SIZE, "instrument");
    attributes[0].is_text = true;
    (void)snprintf(attributes[0].text, ATTRIBUTE_TEXT_SIZE, "%.60s", place->instrument);
    if (place->power_mw > 0) {
        (void)snprintf(attributes[1].name, ATTRIBUTE_NAME_SIZE, "power_mw");
        attributes[1].number = place->power_mw;
        count = 2;
    }
    return requirement_satisfied(needs, attributes, count);
}

/* The needs that the order asks for take exactly the places of the step. */
START_TEST(the_needs_take_the_chosen_places_and_no_others)
{
    static const char *const instruments[] = {"a", "b", "c"};
    struct random random = random_seeded(7);
    for (int i = 0; i < ROUNDS; i++) {
        setup();
        const size_t count = 1 + (size_t)random_below(&random, PLACES);
        while (supply.count < count) {
            (void)offer(instruments[random_below(&random, 3)],
                        (int64_t)random_below(&random, 5) * 1000,
                        1 + (uint32_t)random_below(&random, 3));
        }
        const size_t step_count = quote_energy_steps(&job, &supply, steps);
        ck_assert_uint_gt(step_count, 0);
        for (size_t s = 0; s < step_count; s++) {
            struct requirement needs = {.count = 0};
            struct supply_place kept[PLACES];
            struct supply some = {.places = kept, .count = count};
            uint32_t slots = 0;
            memcpy(kept, places, sizeof kept);
            ck_assert(power_limits_add_needs(&steps[s].limits, &needs));
            ck_assert(needs.count == 0 || requirement_well_formed(&needs));
            quote_energy_restrict(&steps[s].limits, &some);
            for (size_t k = 0; k < some.count; k++) {
                slots += kept[k].slots.slots;
                ck_assert(needs.count == 0 || fits(&needs, &kept[k]));
            }
            uint32_t all = 0;
            for (size_t k = 0; k < count; k++) {
                all += needs.count == 0 || fits(&needs, &places[k]) ? places[k].slots.slots : 0;
            }
            ck_assert_uint_eq(slots, steps[s].slots);
            ck_assert_uint_eq(all, steps[s].slots);
            ck_assert(s == 0 || steps[s].slots > steps[s - 1].slots);
        }
        ck_assert_uint_eq(steps[step_count - 1].limits.count, 0);
    }
}
END_TEST

/* No set of devices up to some power that is in time needs less. */
START_TEST(the_first_step_has_the_least_power)
{
    struct random random = random_seeded(9);
    for (int i = 0; i < ROUNDS; i++) {
        setup();
        int64_t least_mw = INT64_MAX;
        while (supply.count < PLACES) {
            const int64_t power_mw = (int64_t)random_below(&random, 4) * 500;
            (void)offer("a", power_mw, 1);
            least_mw = power_mw > 0 && power_mw < least_mw ? power_mw : least_mw;
        }
        const size_t count = quote_energy_steps(&job, &supply, steps);
        ck_assert_uint_gt(count, 0);
        ck_assert(count == 1 || steps[0].limits.items[0].power_mw == least_mw);
    }
}
END_TEST

START_TEST(needs_that_are_full_take_no_more)
{
    struct job_power_limits limits = {.count = JOB_POWER_LIMITS_MAX};
    struct requirement needs = {.count = 0};
    for (size_t i = 0; i < limits.count; i++) {
        (void)snprintf(limits.items[i].instrument, sizeof limits.items[i].instrument, "i%zu", i);
        limits.items[i].power_mw = 1;
    }
    ck_assert(power_limits_add_needs(&limits, &needs));
    ck_assert(requirement_well_formed(&needs));
    needs.count = REQUIREMENT_NODES_MAX - 1;
    ck_assert(!power_limits_add_needs(&limits, &needs));
}
END_TEST

SUITE("quote: energy", setup, NULL,
      TEST(devices_come_in_rising_order_of_power_and_unknown_ones_last),
      TEST(the_time_of_the_work_counts), TEST(without_known_powers_all_are_taken),
      TEST(the_needs_take_the_chosen_places_and_no_others),
      TEST(the_first_step_has_the_least_power), TEST(needs_that_are_full_take_no_more))
