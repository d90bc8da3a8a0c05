/* The rules say how large a challenge is, how long it may take, and what follows. */
#include "broker/challenge/challenge_rules.h"

#include "tests/support/suite.h"

#include <check.h>

#define DAY (24 * NS_PER_HOUR)
#define GFLOPS INT64_C(1000)

static const int64_t start_ns = INT64_C(1700000000) * NS_PER_S;

/* Returns what the products take at this speed. */
static int64_t takes_ns(const struct challenge_product *product, int64_t mflops)
{
    const double side = product->side;
    return (int64_t)(2e3 * side * side * side * product->rounds / (double)mflops);
}

START_TEST(the_size_follows_from_the_claim)
{
    for (int64_t claim = 1; claim < INT64_C(1) << 40; claim = claim * 3 / 2 + 1) {
        struct challenge_product product;
        challenge_rules_size(claim, false, &product);
        ck_assert(challenge_product_is_valid(&product));
        if (product.side > CHALLENGE_SIDE_LEAST) {
            ck_assert_int_le(takes_ns(&product, claim), CHALLENGE_WORK_NS);
        }
    }
    struct challenge_product product;
    challenge_rules_size(50 * GFLOPS, false, &product);
    ck_assert_uint_eq(product.side, CHALLENGE_SIDE_MOST); /* 344 ms */
    ck_assert_uint_eq(product.rounds, 1);
    challenge_rules_size(100 * GFLOPS, false, &product);
    ck_assert_uint_eq(product.rounds, 3);
    challenge_rules_size(20 * GFLOPS, false, &product);
    ck_assert_uint_lt(product.side, CHALLENGE_SIDE_MOST);
    ck_assert_int_gt(takes_ns(&product, 20 * GFLOPS), CHALLENGE_WORK_NS * 8 / 10);
}
END_TEST

START_TEST(a_device_of_a_quarter_of_its_claim_is_too_slow)
{
    const int64_t claims[] = {GFLOPS, 10 * GFLOPS, 50 * GFLOPS, 300 * GFLOPS};
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        struct challenge_product product;
        challenge_rules_size(claims[i], false, &product);
        const int64_t allowed_ns = challenge_rules_allowed_ns(&product, claims[i], false);
        ck_assert_int_gt(takes_ns(&product, claims[i] / 4), allowed_ns);
        ck_assert_int_lt(takes_ns(&product, claims[i]) * 2, allowed_ns);
        ck_assert_int_lt(allowed_ns, 3 * NS_PER_S);
        /* The factors and sums of a device for kernels go there and back. */
        ck_assert_int_eq(challenge_rules_allowed_ns(&product, claims[i], true) - allowed_ns,
                         (CHALLENGE_DEVICE_ENTRY_NS - CHALLENGE_ENTRY_NS) * (int64_t)product.side *
                             product.side * product.rounds);
    }
}
END_TEST

#define TFLOPS (1000 * GFLOPS)

/* Returns what the chain takes at this speed. */
static int64_t chain_takes_ns(const struct challenge_product *product, int64_t mflops)
{
    const double side = product->side;
    return (int64_t)(2e3 * side * side * product->rows * product->rounds * product->steps /
                     (double)mflops);
}

START_TEST(a_fast_device_has_a_chain_of_the_size_of_its_claim)
{
    for (int64_t claim = CHALLENGE_CHAIN_LEAST_MFLOPS; claim < INT64_C(1) << 40;
         claim = claim * 3 / 2) {
        struct challenge_product product;
        challenge_rules_size(claim, true, &product);
        ck_assert(challenge_product_is_valid(&product) && challenge_product_is_chain(&product));
        ck_assert_int_le(chain_takes_ns(&product, claim), CHALLENGE_WORK_NS);
        if (claim > 4 * GFLOPS && claim < 160 * TFLOPS) {
            ck_assert_int_gt(chain_takes_ns(&product, claim), CHALLENGE_WORK_NS * 8 / 10);
        }
        /* The broker's check of one row: multiplications. */
        ck_assert_int_lt((int64_t)product.steps * product.side * product.side, 400000000);
        if (claim <= 4 * TFLOPS) {
            ck_assert_uint_lt(product.steps, CHALLENGE_CHAIN_STEPS);
        }
        challenge_rules_way(claim, true, &product);
        ck_assert(challenge_product_is_valid(&product) && challenge_product_is_chain(&product));
        ck_assert_uint_eq(product.steps, 1);
    }
    struct challenge_product product;
    challenge_rules_size(CHALLENGE_CHAIN_LEAST_MFLOPS - 1, true, &product);
    ck_assert(challenge_product_is_valid(&product) && !challenge_product_is_chain(&product));
    challenge_rules_size(60 * TFLOPS, false, &product); /* an older agent */
    ck_assert(challenge_product_is_valid(&product) && !challenge_product_is_chain(&product));
}
END_TEST

/* A device that does what it claims, and 60 % more slowly for other work between the products, is
 * in time. One that does a part of its claim is not. */
START_TEST(a_false_claim_of_a_fast_device_is_too_slow)
{
    static const struct {
        int64_t claimed;
        int part; /* of the claim that is found too slow */
    } claims[] = {{10 * GFLOPS, 4}, {TFLOPS / 10, 4},  {TFLOPS, 4},       {10 * TFLOPS, 4},
                  {60 * TFLOPS, 3}, {300 * TFLOPS, 4}, {1000 * TFLOPS, 6}};
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        struct challenge_product product;
        challenge_rules_size(claims[i].claimed, true, &product);
        const int64_t allowed_ns = challenge_rules_allowed_ns(&product, claims[i].claimed, true);
        ck_assert_int_gt(chain_takes_ns(&product, claims[i].claimed / claims[i].part), allowed_ns);
        ck_assert_int_lt(chain_takes_ns(&product, claims[i].claimed) * 16 / 10 + 250 * NS_PER_MS,
                         allowed_ns);
        ck_assert_int_lt(allowed_ns, 2 * NS_PER_S);
    }
}
END_TEST

START_TEST(what_is_shown_is_rounded_down)
{
    const struct challenge_product product = {.side = 1024, .rounds = 1}; /* 2.147 Gflop */
    ck_assert_int_eq(challenge_rules_shown(&product, NS_PER_S), 2100);
    ck_assert_int_eq(challenge_rules_shown(&product, NS_PER_S / 10), 21000);
    const struct challenge_product chain = {
        .side = 1024, .rounds = 2, .rows = 65536, .steps = 100}; /* 27.49 Tflop */
    ck_assert_int_eq(challenge_rules_shown(&chain, NS_PER_S), 27000000);
    ck_assert_int_eq(challenge_rules_shown(&product, NS_PER_HOUR),
                     1); /* never 0: that is no claim */
}
END_TEST

static bool settle(struct challenge_fact *fact, enum challenge_outcome outcome, int64_t shown)
{
    return challenge_rules_settle(fact, outcome, 100 * GFLOPS, shown, start_ns, DAY, 0);
}

START_TEST(three_slow_answers_in_a_row_lower_the_claim_to_the_best)
{
    struct challenge_fact fact = {.outcome = CHALLENGE_NONE};
    ck_assert(!settle(&fact, CHALLENGE_SLOW, 8000));
    ck_assert_int_eq(fact.outcome, CHALLENGE_NONE); /* nothing is decided */
    ck_assert_int_eq(fact.due_ns, start_ns + CHALLENGE_SLOW_AGAIN_NS);
    ck_assert(!settle(&fact, CHALLENGE_SLOW, 11000));
    ck_assert(challenge_rules_admit(&fact, 100 * GFLOPS, start_ns));
    ck_assert(settle(&fact, CHALLENGE_SLOW, 9000));
    ck_assert_int_eq(fact.outcome, CHALLENGE_SLOW);
    ck_assert_int_eq(fact.limit_mflops, 11000);
    ck_assert_int_eq(fact.shown_mflops, 11000);
    ck_assert(!challenge_rules_admit(&fact, 11001, start_ns));
    ck_assert(challenge_rules_admit(&fact, 11000, start_ns));
    /* The lower claim is right, and the higher one is still refused, for a week. */
    ck_assert(!settle(&fact, CHALLENGE_OK, 11000));
    ck_assert(!challenge_rules_admit(&fact, 100 * GFLOPS, start_ns + CHALLENGE_LOWERED_NS - 1));
    ck_assert(challenge_rules_admit(&fact, 100 * GFLOPS, start_ns + CHALLENGE_LOWERED_NS));
}
END_TEST

START_TEST(a_lowered_device_that_shows_more_may_claim_more)
{
    struct challenge_fact fact = {.limit_mflops = 11000, .limit_until_ns = start_ns + DAY};
    ck_assert(!settle(&fact, CHALLENGE_OK, 10000));
    ck_assert_int_eq(fact.limit_mflops, 11000);
    ck_assert(!settle(&fact, CHALLENGE_OK, 50000));
    ck_assert(challenge_rules_admit(&fact, 50000, start_ns));
    ck_assert(!challenge_rules_admit(&fact, 50001, start_ns));
}
END_TEST

START_TEST(an_answer_in_time_forgets_the_slow_ones_before)
{
    struct challenge_fact fact = {.outcome = CHALLENGE_NONE};
    for (int i = 0; i < 10; i++) {
        ck_assert(!settle(&fact, CHALLENGE_SLOW, 8000));
        ck_assert(!settle(&fact, CHALLENGE_SLOW, 8000));
        ck_assert(!settle(&fact, CHALLENGE_OK, 90000));
    }
    ck_assert_int_eq(fact.limit_mflops, 0);
    ck_assert(challenge_rules_admit(&fact, 100 * GFLOPS, start_ns));
    ck_assert_int_eq(fact.outcome, CHALLENGE_OK);
}
END_TEST

START_TEST(wrong_and_missing_answers_close_the_asks_as_refuted_results_do)
{
    struct challenge_fact fact = {.outcome = CHALLENGE_NONE};
    ck_assert(!settle(&fact, CHALLENGE_WRONG, 0)); /* the first alone closes nothing */
    ck_assert(challenge_rules_admit(&fact, 1, start_ns));
    ck_assert(settle(&fact, CHALLENGE_UNANSWERED, 0));
    ck_assert(!challenge_rules_admit(&fact, 1, start_ns + CHALLENGE_CLOSED_NS - 1));
    ck_assert(challenge_rules_admit(&fact, 1, start_ns + CHALLENGE_CLOSED_NS));
    ck_assert(settle(&fact, CHALLENGE_WRONG, 0));
    ck_assert_int_eq(fact.closed_until_ns, start_ns + 2 * CHALLENGE_CLOSED_NS);
    for (int i = 0; i < 100; i++) {
        (void)settle(&fact, CHALLENGE_WRONG, 0);
    }
    ck_assert_int_eq(fact.closed_until_ns, start_ns + CHALLENGE_CLOSED_MOST_NS);
    const uint32_t failed = fact.failed;
    (void)settle(&fact, CHALLENGE_OK, 100 * GFLOPS);
    ck_assert_uint_eq(fact.failed, failed - 1);
}
END_TEST

START_TEST(the_dice_spread_the_times)
{
    ck_assert_int_eq(challenge_rules_spread(DAY, 0), DAY / 2);
    ck_assert_int_gt(challenge_rules_spread(DAY, UINT64_MAX), DAY / 2 * 3 - NS_PER_S);
    ck_assert_int_lt(challenge_rules_spread(DAY, UINT64_MAX), DAY / 2 * 3 + 1);
}
END_TEST

SUITE("challenge_rules", NULL, NULL, TEST(the_size_follows_from_the_claim),
      TEST(a_fast_device_has_a_chain_of_the_size_of_its_claim),
      TEST(a_false_claim_of_a_fast_device_is_too_slow),
      TEST(a_device_of_a_quarter_of_its_claim_is_too_slow), TEST(what_is_shown_is_rounded_down),
      TEST(three_slow_answers_in_a_row_lower_the_claim_to_the_best),
      TEST(a_lowered_device_that_shows_more_may_claim_more),
      TEST(an_answer_in_time_forgets_the_slow_ones_before),
      TEST(wrong_and_missing_answers_close_the_asks_as_refuted_results_do),
      TEST(the_dice_spread_the_times))
