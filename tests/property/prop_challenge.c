/* An honest device keeps its claim, whatever the noise; a false claim does not stand.
 *
 * The property's numbers are the reason of CHALLENGE_TOLERANCE. A run takes the time that the claim
 * implies, and up to 30 % more. Each run takes up to CHALLENGE_START_NS beside the products. The
 * owner uses the machine now and then, and a run takes three times as long. */
#include "base/random.h"
#include "broker/challenge/challenge_rules.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { DEVICES = 2000, DAYS = 365 };
#define DAY (24 * NS_PER_HOUR)

static struct random dice;

static void begin(void)
{
    const char *given = getenv("BOURSE_SEED");
    dice = random_seeded(given == NULL ? 1 : strtoull(given, NULL, 10));
}

static int64_t works_ns(const struct challenge_product *product, double mflops)
{
    const double side = product->side;
    return (int64_t)(2e3 * side * side * side * product->rounds / mflops);
}

static double drawn(double most)
{
    return most * (double)random_below(&dice, 1000001) / 1e6;
}

/* Challenges a device of this speed. Returns true when its claim was lowered. */
static bool challenge(struct challenge_fact *fact, int64_t claimed, double speed, double slower)
{
    struct challenge_product product;
    challenge_rules_size(claimed, false, &product);
    const int64_t took_ns = (int64_t)((double)works_ns(&product, speed) * slower) +
                            (int64_t)drawn((double)CHALLENGE_START_NS);
    const bool is_in_time = took_ns <= challenge_rules_allowed_ns(&product, claimed, false);
    return challenge_rules_settle(fact, is_in_time ? CHALLENGE_OK : CHALLENGE_SLOW, claimed,
                                  challenge_rules_shown(&product, took_ns), fact->due_ns, DAY,
                                  random_u64(&dice));
}

START_TEST(noise_of_30_percent_never_costs_an_honest_device_its_claim)
{
    for (int i = 0; i < DEVICES; i++) {
        const int64_t claimed = 1 + (int64_t)random_below(&dice, 1000000);
        struct challenge_fact fact = {.outcome = CHALLENGE_NONE};
        for (int day = 0; day < DAYS; day++) {
            ck_assert(!challenge(&fact, claimed, (double)claimed, 1 + drawn(0.3)));
            ck_assert_int_eq(fact.outcome, CHALLENGE_OK);
        }
    }
}
END_TEST

START_TEST(an_owner_who_uses_the_machine_twice_in_a_row_costs_nothing)
{
    for (int i = 0; i < DEVICES; i++) {
        const int64_t claimed = 1000 + (int64_t)random_below(&dice, 1000000);
        struct challenge_fact fact = {.outcome = CHALLENGE_NONE};
        for (int day = 0; day < DAYS; day++) {
            const double slower = day % 3 < 2 ? 3 : 1 + drawn(0.3);
            ck_assert(!challenge(&fact, claimed, (double)claimed, slower));
        }
        ck_assert_int_eq(fact.limit_mflops, 0);
    }
}
END_TEST

START_TEST(a_claim_of_four_times_the_speed_is_lowered_at_once)
{
    for (int i = 0; i < DEVICES; i++) {
        const int64_t claimed = 1000 + (int64_t)random_below(&dice, 500000);
        const double speed = (double)claimed / (4 + drawn(100));
        struct challenge_fact fact = {.outcome = CHALLENGE_NONE};
        bool is_lowered = false;
        for (int try = 0; try < CHALLENGE_TRIES; try++) {
            is_lowered = challenge(&fact, claimed, speed, 1);
        }
        ck_assert(is_lowered);
        ck_assert(!challenge_rules_admit(&fact, claimed, fact.at_ns));
        ck_assert_int_le(fact.limit_mflops, (int64_t)speed + 1);
    }
}
END_TEST

SUITE("challenge", begin, NULL, TEST(noise_of_30_percent_never_costs_an_honest_device_its_claim),
      TEST(an_owner_who_uses_the_machine_twice_in_a_row_costs_nothing),
      TEST(a_claim_of_four_times_the_speed_is_lowered_at_once))
