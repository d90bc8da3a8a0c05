/* The tests ask what explain says in its one line, for bids that wait and for jobs that wait for
 * nothing. */
#include "broker/answer/explanation.h"
#include "formats/requirement.h"
#include "formats/units.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct explanation *explanation;

static void set_up_many(void)
{
    static const struct exchange_genesis_account accounts[] = {
        {.key = {{1}},
         .roles = ROLE_CONSUMER | ROLE_PROVIDER,
         .credits_micro = 1000 * MICRO_PER_CREDIT,
         .name = "both"},
        {.key = {{2}}, .roles = ROLE_PROVIDER, .name = "provider"},
        {.key = {{3}}, .roles = ROLE_PROVIDER, .name = "other"},
        {.key = {{4}}, .roles = ROLE_OPERATOR, .name = "operator"},
    };
    struct exchange_limits limits = exchange_limits_default();
    open_market_of(&limits, 10 * price, accounts, sizeof accounts / sizeof *accounts);
    explanation = calloc(1, sizeof *explanation);
}

static void tear_down_many(void)
{
    explanation_free(explanation);
    tear_down();
}

static void offer_at(uint32_t owner, uint8_t number, uint32_t slots, int64_t at_price,
                     const char *label)
{
    struct exchange_device device = {.device = {{(uint8_t)owner, number}}, .slots = slots};
    (void)snprintf(device.label, sizeof device.label, "%s", label);
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, owner);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct exchange_command ask = command(EXCHANGE_ASK, owner);
    ask.ask =
        (struct exchange_ask){.device = device.device, .slots = slots, .price_micro = at_price};
    apply(&ask);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

static const char *line_of(struct id128 job)
{
    smallest_change_wire_fini(&explanation->smallest_change);
    memset(explanation, 0, sizeof *explanation);
    ck_assert(exchange_explain_job(market.exchange, &job, EXCHANGE_ANY_PART, &explanation->row));
    ck_assert(explanation_to_wire(explanation));
    return explanation->text;
}

static struct id128 submit_at_most(uint32_t account, uint32_t subtasks, uint32_t at_most,
                                   int64_t cap)
{
    struct exchange_command made = submit_of(subtasks, 100);
    made.account = account;
    made.submit.at_most = at_most;
    made.submit.cap_micro = cap;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

/* A referee does not make again what it judged. Such a job waits for a maker. */
START_TEST(where_all_in_reach_judged_what_waits_another_maker_is_needed)
{
    explanation->row = (struct exchange_explanation){.devices = 3,
                                                     .fitting = 3,
                                                     .asking = 2,
                                                     .affordable = 2,
                                                     .judges = 2,
                                                     .starts_at_micro = -1,
                                                     .fills_at_micro = -1,
                                                     .takes_at_micro = -1,
                                                     .takes_budget_micro = -1,
                                                     .past_own_micro = -1};
    ck_assert(explanation_to_wire(explanation));
    ck_assert_ptr_nonnull(strstr(explanation->text, "another maker is needed"));
    ck_assert_ptr_null(strstr(explanation->text, "another referee"));
    ck_assert_ptr_null(strstr(explanation->text, "closed"));

    explanation->row.closed = explanation->row.withdrawn = 1;
    explanation->row.opens_ns = 7200 * NS_PER_S;
    ck_assert(explanation_to_wire(explanation));
    ck_assert_ptr_nonnull(strstr(explanation->text, "1 other is closed and opens in 2h"));

    explanation->row.fills_at_micro = 3 * price; /* of a maker above the cap */
    ck_assert(explanation_to_wire(explanation));
    ck_assert_ptr_nonnull(strstr(explanation->text, "another maker asks"));
    ck_assert_ptr_null(strstr(explanation->text, "referee"));
}
END_TEST

static void freeze(uint32_t account, bool is_frozen, const char *reason)
{
    struct exchange_account_row row;
    struct exchange_command made = command(EXCHANGE_FREEZE, OPERATOR);
    ck_assert(exchange_account(market.exchange, account, &row));
    made.freeze =
        (struct exchange_freeze){.account = row.key, .frozen = is_frozen, .reason = reason};
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

/* An account whose every job is refused gets no advice on offers. */
START_TEST(a_frozen_account_is_told_before_it_submits)
{
    static const struct requirement no_needs;
    const struct exchange_need need = {
        .needs = &no_needs, .account = CONSUMER, .subtasks = 1, .slots = 1, .cap_micro = price};
    offer_at(PROVIDER, 1, 2, price, "one");
    exchange_explain(market.exchange, &need, &explanation->row);
    ck_assert_uint_eq(explanation->row.refusal, 0);
    ck_assert_int_eq(explanation->row.starts_at_micro, price);

    freeze(CONSUMER, true, "unpaid bills");
    exchange_explain(market.exchange, &need, &explanation->row);
    ck_assert(explanation_to_wire(explanation));
    ck_assert_uint_eq(explanation->wire.refusal, REJECT_FROZEN);
    ck_assert(!explanation->wire.has_starts_at_micro);
    ck_assert(!explanation->wire.has_fills_at_micro);
    ck_assert_uint_eq(explanation->wire.n_changes, 0);
    ck_assert_str_eq(explanation->text,
                     "the operator froze this account (\"unpaid bills\"): the market takes "
                     "none of its jobs until the operator ends the freeze");
}
END_TEST

/* The owner of a job that had a lease of a frozen provider learns the reason. Others only learn
 * that it is frozen. */
START_TEST(a_frozen_provider_is_named_to_those_who_wait)
{
    struct exchange_lease_row lease;
    offer_at(PROVIDER, 1, 1, price, "one");
    const struct id128 first = submit_at_most(CONSUMER, 1, 0, price);
    const struct id128 second = submit_at_most(CONSUMER, 1, 0, price);
    ck_assert_uint_eq(exchange_leases(market.exchange, &first, &lease, 1), 1);
    ck_assert(!lease.is_frozen);
    freeze(PROVIDER, true, "bad disks");
    ck_assert_uint_eq(exchange_leases(market.exchange, &first, &lease, 1), 1);
    ck_assert(lease.is_frozen);
    ck_assert_str_eq(lease.frozen_why, "bad disks");
    ck_assert_str_eq(line_of(first), "1 of 1 device fits; its provider is frozen by the operator "
                                     "(\"bad disks\"): wait until that ends");
    ck_assert_str_eq(line_of(second), "1 of 1 device fits; its provider is frozen by the operator: "
                                      "wait until that ends");
    freeze(PROVIDER, false, NULL);
    ck_assert_uint_eq(exchange_leases(market.exchange, &first, &lease, 1), 1);
    ck_assert(!lease.is_frozen);
    ck_assert_ptr_null(lease.frozen_why);
}
END_TEST

static void fall_silent(uint32_t provider)
{
    struct exchange_command made = command(EXCHANGE_SUSPECT, EXCHANGE_NO_ACCOUNT);
    made.provider = provider;
    apply(&made);
}

/* The log's time goes on with each command. */
static void let_time_pass(int64_t seconds)
{
    market.now_ns += seconds * NS_PER_S;
    tick();
}

START_TEST(a_silent_provider_is_named_with_the_time_of_its_silence)
{
    offer_at(PROVIDER, 1, 1, price, "one");
    fall_silent(PROVIDER);
    const struct id128 job = submit_at_most(CONSUMER, 1, 0, price);
    let_time_pass(7);
    ck_assert_str_eq(line_of(job), "1 of 1 device fits; its provider \"provider\" has been silent "
                                   "for 7.0s; wait until that provider answers");
    offer_at(OTHER_PROVIDER, 1, 1, 2 * price, "dear");
    ck_assert_ptr_null(strstr(line_of(job), "silent")); /* the other one's price is what matters */
    fall_silent(OTHER_PROVIDER);
    let_time_pass(1);
    ck_assert_str_eq(line_of(job), "2 of 2 devices fit; their providers have been silent for 8.0s; "
                                   "wait until one of these answers");
    struct exchange_command made = command(EXCHANGE_RETURNED, EXCHANGE_NO_ACCOUNT);
    made.provider = OTHER_PROVIDER;
    apply(&made);
    ck_assert_str_eq(line_of(job), "2 of 2 devices fit; none is offered now, and 1 is of silent "
                                   "providers; wait for a provider to ask");
}
END_TEST

START_TEST(a_job_of_which_all_runs_waits_for_nothing)
{
    offer_at(PROVIDER, 1, 2, price, "one");
    struct id128 job = submit_at_most(CONSUMER, 2, 0, price);
    ck_assert_str_eq(line_of(job), "2 subtasks run; nothing waits for a device");
    ck_assert(!explanation->wire.has_fills_at_micro);
    ck_assert(!explanation->wire.has_ahead);
    ck_assert_uint_eq(explanation->row.smallest_change.count, 0);
}
END_TEST

START_TEST(a_job_that_has_all_that_it_asked_for_at_a_time_waits_for_itself)
{
    offer_at(PROVIDER, 1, 2, price, "one");
    struct id128 job = submit_at_most(CONSUMER, 1000, 1, price);
    const char *line = line_of(job);
    ck_assert_msg(strstr(line, "wait for these: the job has all the slots that it asked for at a "
                               "time") != NULL,
                  "%s", line);
    ck_assert(!explanation->wire.has_fills_at_micro);
}
END_TEST

START_TEST(what_runs_is_told_beside_what_waits)
{
    offer_at(PROVIDER, 1, 1, price, "one");
    struct id128 job = submit_at_most(CONSUMER, 1000, 0, price);
    const char *line = line_of(job);
    ck_assert_str_eq(
        line, "1 subtask runs and 999 wait; 1 of 1 device fits; the one within the limit is busy "
              "with jobs of this account, and none of these takes a lease from another; "
              "more subtasks run when one is free");
}
END_TEST

START_TEST(a_limit_that_meets_its_own_ask_first_fills_nothing)
{
    offer_at(CONSUMER, 1, 1, price, "mine");
    offer_at(PROVIDER, 2, 1, 5 * price, "theirs");
    struct id128 job = submit_at_most(CONSUMER, 1, 0, price / 2);
    ck_assert_str_eq(
        line_of(job),
        "1 of 2 devices fits; the one on offer asks more; a limit of 18000.00 would be "
        "refused with SELF_MATCH: this account's own ask of mine at 3600.00 comes "
        "first; `bourse order cancel` that ask, then this limit fills");
    ck_assert(!explanation->wire.has_fills_at_micro);
}
END_TEST

START_TEST(a_list_is_failed_on_as_a_whole)
{
    struct requirement needs;
    struct problem problem;
    offer_at(PROVIDER, 1, 1, price, "one");
    ck_assert(requirement_parse("region in (fr, de) and memory in (1GiB, 2GiB)", &needs, &problem));
    struct exchange_command made = submit_of(1, 100);
    made.submit.needs = &needs;
    apply(&made);
    const char *line = line_of(made.id);
    ck_assert_msg(strncmp(line, "0 of 1 device fits; 1 fails on region in (\"fr\", \"de\")", 53) ==
                      0,
                  "%s", line);
    ck_assert_uint_eq(explanation->row.predicate_count, 2);
    ck_assert_str_eq(explanation->row.predicates[1].text, "memory in (1.0 GiB, 2.0 GiB)");
}
END_TEST

START_TEST(a_bid_that_waits_for_its_price_knows_who_comes_before_it)
{
    offer_at(PROVIDER, 1, 1, 5 * price, "one");
    (void)submit_at_most(CONSUMER, 1, 0, 2 * price);
    (void)submit_at_most(CONSUMER, 1, 0, price / 2);
    (void)line_of(submit_at_most(CONSUMER, 1, 0, price));
    ck_assert(explanation->wire.has_ahead);
    ck_assert_uint_eq(explanation->wire.ahead, 1);
}
END_TEST

START_TEST(a_budget_that_buys_no_term_is_named)
{
    offer_at(PROVIDER, 1, 1, price, "one");
    struct exchange_command made = submit_of(1, 100);
    made.submit.cap_micro = 2 * price;
    made.submit.budget_micro = 1;
    apply(&made);
    const int64_t term_micro = price / 3600 * (made.submit.term_ns / NS_PER_S);
    char least[UNITS_TEXT_SIZE];
    char line[200];
    units_money_text(term_micro, least);
    (void)snprintf(line, sizeof line,
                   "1 of 1 device fits; 1 is free at this price, but a term of one subtask takes "
                   "more than the job's budget: %s",
                   least);
    const char *told = line_of(made.id);
    ck_assert_msg(strncmp(told, line, strlen(line)) == 0, "%s", told);
    made = submit_of(1, 100); /* one that it buys is all it takes */
    made.submit.cap_micro = price / 2;
    apply(&made);
    (void)line_of(made.id);
    ck_assert_uint_eq(explanation->row.uncovered, 0);
}
END_TEST

/* The LPU and the GPU of the catalogue as simulations, and a processor. */
static void offer_simulated(void)
{
    static const struct attribute lpu[] = {
        {.name = "simulated", .number = 1},
        {.name = "kind", .is_text = true, .text = "lpu"},
        {.name = "fp16", .number = INT64_C(188000000000000)},
    };
    static const struct attribute gpu[] = {
        {.name = "simulated", .number = 1},
        {.name = "kind", .is_text = true, .text = "gpu"},
        {.name = "executor", .is_text = true, .text = "tensor"},
    };
    static const struct attribute cpu[] = {
        {.name = "simulated"},
        {.name = "kind", .is_text = true, .text = "cpu"},
        {.name = "executor", .is_text = true, .text = "tensor"},
    };
    const struct exchange_device devices[] = {
        {.device = {{1}}, .slots = 1, .attributes = lpu, .attribute_count = 3},
        {.device = {{2}}, .slots = 1, .attributes = gpu, .attribute_count = 3},
        {.device = {{3}}, .slots = 1, .attributes = cpu, .attribute_count = 3},
    };
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){devices, 3};
    apply(&advertise);
}

static const char *line_of_needs(const char *text)
{
    struct requirement needs;
    struct problem problem;
    ck_assert_msg(requirement_parse(text, &needs, &problem), "%s", problem.text);
    struct exchange_command made = submit_of(1, 100);
    made.submit.needs = &needs;
    apply(&made);
    return line_of(made.id);
}

START_TEST(what_is_simulated_is_counted_apart)
{
    offer_simulated();
    ck_assert_str_eq(line_of_needs("fp16 >= 1TFLOPS"),
                     "0 of 3 devices fit; 1 fails on fp16 >= 1.0 TFLOPS; 2 are simulated and not "
                     "asked for: add `simulated = true` (in a map `simulated: true`)");
    ck_assert_uint_eq(explanation->wire.n_predicates, 2);
    ck_assert_str_eq(explanation->wire.predicates[1]->text, "simulated = false");
    ck_assert_uint_eq(explanation->wire.predicates[1]->failing, 2);
}
END_TEST

START_TEST(a_kind_that_is_only_simulated_says_how_to_ask_for_it)
{
    offer_simulated();
    const char *line = line_of_needs("kind = lpu");
    ck_assert_msg(strstr(line, "1 fails on kind = \"lpu\"; 2 are simulated and not asked for: add "
                               "`simulated = true`") != NULL,
                  "%s", line);
}
END_TEST

START_TEST(simulated_devices_that_would_not_do_are_no_advice)
{
    offer_simulated();
    ck_assert_str_eq(line_of_needs("kind = tpu"),
                     "0 of 3 devices fit; 1 fails on kind = \"tpu\"; 2 are simulated and not asked "
                     "for; ask for less, or wait for other devices");
    ck_assert_str_eq(line_of_needs("kind = lpu and simulated = false"),
                     "0 of 3 devices fit; 1 fails on kind = \"lpu\"; 2 are simulated and not asked "
                     "for; ask for less, or wait for other devices");
}
END_TEST

START_TEST(what_is_named_says_what_it_lacks_itself)
{
    offer_simulated();
    const char *line =
        line_of_needs("kind = lpu and simulated = true and executor = tensor and fp16 > 1TFLOPS");
    ck_assert_str_eq(
        line,
        "0 of 3 devices fit; the one device that the needs name fails on executor = \"tensor\"; "
        "ask for less, or wait for other devices");
    line = line_of_needs("kind = gpu and simulated = true and program = sh and executor = tensor");
    ck_assert_str_eq(line, "0 of 3 devices fit; 3 fail on program = \"sh\"; ask for less, or wait "
                           "for other devices");
}
END_TEST

START_TEST(an_architecture_that_nobody_has_is_waited_for_and_never_dropped)
{
    offer_simulated();
    ck_assert_str_eq(line_of_needs("arch = aarch64"),
                     "0 of 3 devices fit; 1 fails on arch = \"aarch64\"; 2 are simulated and not "
                     "asked for; the job's image or program needs a provider with arch = "
                     "\"aarch64\": wait for one, or take an image or program for another "
                     "architecture");
    ck_assert_uint_eq(explanation->row.smallest_change.count, 0);
}
END_TEST

SUITE("explanation", set_up_many, tear_down_many,
      TEST(where_all_in_reach_judged_what_waits_another_maker_is_needed),
      TEST(a_frozen_account_is_told_before_it_submits),
      TEST(a_frozen_provider_is_named_to_those_who_wait),
      TEST(a_silent_provider_is_named_with_the_time_of_its_silence),
      TEST(a_job_of_which_all_runs_waits_for_nothing),
      TEST(a_job_that_has_all_that_it_asked_for_at_a_time_waits_for_itself),
      TEST(what_runs_is_told_beside_what_waits),
      TEST(a_limit_that_meets_its_own_ask_first_fills_nothing),
      TEST(a_list_is_failed_on_as_a_whole),
      TEST(an_architecture_that_nobody_has_is_waited_for_and_never_dropped),
      TEST(a_bid_that_waits_for_its_price_knows_who_comes_before_it),
      TEST(a_budget_that_buys_no_term_is_named), TEST(what_is_simulated_is_counted_apart),
      TEST(a_kind_that_is_only_simulated_says_how_to_ask_for_it),
      TEST(simulated_devices_that_would_not_do_are_no_advice),
      TEST(what_is_named_says_what_it_lacks_itself))
