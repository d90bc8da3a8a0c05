/* The tests choose slots for `objective: price`, in a market with equal subtasks and a few
 * prices. */
#include "base/checked.h"
#include "base/random.h"
#include "consumer/job/quote/quote_objective.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

enum { LEVELS = 4, WORKS_MOST = 40, ROUNDS = 2000 };

/* Each subtask takes a second on one slot; the market gives the cheapest free slot first. */
struct offers {
    uint32_t levels, subtasks;
    uint32_t slots[LEVELS];
    int64_t price[LEVELS]; /* ascending; what one subtask costs */
    uint32_t plans;
    bool is_broken;
};

static struct objective_try plan_of(const struct offers *offers, uint32_t slots)
{
    struct objective_try one = {.slots = slots};
    for (uint32_t done = 0; done < offers->subtasks;) {
        uint32_t used = 0;
        for (uint32_t l = 0; l < offers->levels; l++) {
            for (uint32_t s = 0; s < offers->slots[l] && used < slots; s++, used++) {
                one.cost_micro += done < offers->subtasks ? offers->price[l] : 0;
                done += done < offers->subtasks;
            }
        }
        one.makespan_ns += NS_PER_S;
    }
    return one;
}

static bool plan(void *context, uint32_t slots, struct objective_try *ret_try)
{
    struct offers *offers = context;
    offers->plans++;
    *ret_try = plan_of(offers, slots);
    return !offers->is_broken;
}

static size_t steps_of(const struct offers *offers, uint32_t steps[LEVELS])
{
    uint32_t slots = 0;
    for (uint32_t l = 0; l < offers->levels; l++) {
        slots += offers->slots[l];
        steps[l] = slots;
    }
    return offers->levels;
}

static struct objective_try choose(struct offers *offers, int64_t most_ns)
{
    uint32_t steps[LEVELS];
    struct objective_try choice = {.slots = 0};
    ck_assert(
        quote_objective_choose(steps, steps_of(offers, steps), 1, most_ns, plan, offers, &choice));
    return choice;
}

static struct offers two_prices(void)
{
    return (struct offers){
        .levels = 2, .subtasks = 12, .slots = {2, 4}, .price = {10, 30}, .plans = 0};
}

START_TEST(without_a_deadline_all_slots_of_the_cheapest_price_are_taken)
{
    struct offers offers = two_prices();
    const struct objective_try choice = choose(&offers, 0);
    ck_assert_uint_eq(choice.slots, 2);
    ck_assert_int_eq(choice.cost_micro, 120);
}
END_TEST

START_TEST(a_deadline_takes_as_few_dear_slots_as_keep_it)
{
    struct offers offers = two_prices();
    ck_assert_uint_eq(choose(&offers, 6 * NS_PER_S).slots, 2);
    ck_assert_uint_eq(choose(&offers, 4 * NS_PER_S).slots, 3);
    ck_assert_uint_eq(choose(&offers, 3 * NS_PER_S).slots, 4);
    ck_assert_uint_eq(choose(&offers, 2 * NS_PER_S).slots, 6);
}
END_TEST

START_TEST(a_deadline_that_nothing_keeps_takes_all)
{
    struct offers offers = two_prices();
    const struct objective_try choice = choose(&offers, NS_PER_S);
    ck_assert_uint_eq(choice.slots, 6);
    ck_assert_int_gt(choice.makespan_ns, NS_PER_S);
}
END_TEST

START_TEST(equal_prices_take_the_most_slots)
{
    struct offers offers = two_prices();
    offers.price[1] = 10;
    ck_assert_uint_eq(choose(&offers, 0).slots, 6);
}
END_TEST

START_TEST(nothing_on_offer_or_no_plan_is_no_choice)
{
    struct offers offers = two_prices();
    struct objective_try choice = {.slots = 77};
    uint32_t steps[LEVELS];
    ck_assert(!quote_objective_choose(steps, 0, 1, 0, plan, &offers, &choice));
    offers.is_broken = true;
    ck_assert(
        !quote_objective_choose(steps, steps_of(&offers, steps), 1, 0, plan, &offers, &choice));
    ck_assert_uint_eq(choice.slots, 77);
}
END_TEST

/* A slow search looks at every number of slots. */
START_TEST(no_number_of_slots_in_time_is_cheaper)
{
    struct random random = random_seeded(24);
    for (int i = 0; i < ROUNDS; i++) {
        struct offers offers = {.levels = 1 + (uint32_t)random_below(&random, LEVELS),
                                .subtasks = 1 + (uint32_t)random_below(&random, WORKS_MOST)};
        uint32_t all = 0;
        int64_t price = 0;
        for (uint32_t l = 0; l < offers.levels; l++) {
            all += offers.slots[l] = 1 + (uint32_t)random_below(&random, 6);
            price += (int64_t)random_below(&random, 3);
            offers.price[l] = price;
        }
        const int64_t most_ns = (int64_t)random_below(&random, 12) * NS_PER_S;
        const struct objective_try choice = choose(&offers, most_ns);
        ck_assert_uint_le(offers.plans, 2 * LEVELS + 8);
        bool is_possible = false;
        for (uint32_t slots = 1; slots <= all; slots++) {
            const struct objective_try one = plan_of(&offers, slots);
            if (most_ns == 0 || one.makespan_ns <= most_ns) {
                is_possible = true;
                ck_assert_msg(choice.cost_micro <= one.cost_micro,
                              "round %d: %u slots cost less than %u", i, slots, choice.slots);
            }
        }
        ck_assert(!is_possible || most_ns == 0 || choice.makespan_ns <= most_ns);
        ck_assert(is_possible || choice.slots == all);
    }
}
END_TEST

SUITE("quote: objective", NULL, NULL,
      TEST(without_a_deadline_all_slots_of_the_cheapest_price_are_taken),
      TEST(a_deadline_takes_as_few_dear_slots_as_keep_it),
      TEST(a_deadline_that_nothing_keeps_takes_all), TEST(equal_prices_take_the_most_slots),
      TEST(nothing_on_offer_or_no_plan_is_no_choice), TEST(no_number_of_slots_in_time_is_cheaper))
