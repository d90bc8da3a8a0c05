/* Providers that left lately are named with what they would offer, as long as that is of use. */
#include "broker/answer/departures.h"
#include "broker/answer/explanation.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct departures *departures;
static char text[DEPARTURES_TEXT_SIZE];

static void set_up_named(void)
{
    static const struct exchange_genesis_account accounts[] = {
        {.key = {{1}},
         .roles = ROLE_CONSUMER | ROLE_PROVIDER,
         .credits_micro = 1000 * MICRO_PER_CREDIT,
         .name = "owner"},
        {.key = {{2}}, .roles = ROLE_PROVIDER, .name = "lab"},
        {.key = {{3}}, .roles = ROLE_PROVIDER, .name = "attic"},
        {.key = {{4}}, .roles = ROLE_OPERATOR, .name = "operator"},
    };
    struct exchange_limits limits = exchange_limits_default();
    open_market_of(&limits, 10 * price, accounts, sizeof accounts / sizeof *accounts);
    departures = departures_create();
    ck_assert_ptr_nonnull(departures);
}

static void tear_down_named(void)
{
    departures_destroy(&departures);
    tear_down();
}

static void leave(uint32_t provider)
{
    departures_note(departures, market.exchange, provider, market.now_ns);
    presence(EXCHANGE_GOODBYE, provider);
}

static const char *named_for(uint32_t owner, const struct requirement *needs, uint32_t slots)
{
    departures_text(departures, market.exchange, owner, needs, slots, market.now_ns, text);
    return text;
}

/* The line that explains a waiting job. */
static const char *line_of(struct id128 job, struct explanation *explanation)
{
    uint32_t slots = 0;
    ck_assert(exchange_explain_job(market.exchange, &job, EXCHANGE_ANY_PART, &explanation->row));
    const struct requirement *needs = exchange_part_needs(market.exchange, &job, 0, &slots);
    ck_assert_ptr_nonnull(needs);
    (void)snprintf(explanation->departed, sizeof explanation->departed, "%s",
                   named_for(CONSUMER, needs, slots));
    ck_assert(explanation_to_wire(explanation));
    return explanation->text;
}

START_TEST(who_left_is_named_with_the_time_and_the_slots_that_would_fit)
{
    offer(PROVIDER, 4, price);
    market.now_ns = start_ns + NS_PER_S;
    leave(PROVIDER);
    market.now_ns += 720 * NS_PER_S;
    ck_assert_str_eq(named_for(CONSUMER, &anything, 1),
                     "provider \"lab\" left at 22:13:21 UTC, 12m ago; its 4 slots would fit");
    ck_assert_str_eq(named_for(CONSUMER, &anything, 5), ""); /* too narrow */
    ck_assert_str_eq(named_for(PROVIDER, &anything, 1), ""); /* nobody trades with himself */
    departures_text(NULL, market.exchange, CONSUMER, &anything, 1, market.now_ns, text);
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(a_device_that_does_not_fit_is_not_named)
{
    struct requirement needs = {.count = 1};
    needs.nodes[0].op = REQUIREMENT_EQ;
    needs.nodes[0].attribute = (struct attribute){.name = "kind", .is_text = true, .text = "tpu"};
    offer(PROVIDER, 4, price);
    leave(PROVIDER);
    ck_assert_str_eq(named_for(CONSUMER, &needs, 1), "");
    needs.nodes[0].op = REQUIREMENT_AND; /* not well formed */
    ck_assert_str_eq(named_for(CONSUMER, &needs, 1), "");
}
END_TEST

START_TEST(the_last_to_leave_is_named_and_the_others_are_counted)
{
    offer(PROVIDER, 4, price);
    offer(OTHER_PROVIDER, 1, price);
    leave(PROVIDER);
    market.now_ns += 60 * NS_PER_S;
    leave(OTHER_PROVIDER);
    named_for(CONSUMER, &anything, 1);
    ck_assert_ptr_nonnull(strstr(text, "provider \"attic\" left at "));
    ck_assert_ptr_nonnull(strstr(text, " ago, and 1 more; their 5 slots would fit"));
}
END_TEST

START_TEST(who_is_back_is_not_named_and_neither_is_who_left_long_ago)
{
    offer(PROVIDER, 4, price);
    leave(PROVIDER);
    market.now_ns += DEPARTURES_TERM_NS;
    ck_assert_str_ne(named_for(CONSUMER, &anything, 1), "");
    market.now_ns += 1;
    ck_assert_str_eq(named_for(CONSUMER, &anything, 1), "");
    market.now_ns -= 60 * NS_PER_S;
    ck_assert_str_ne(named_for(CONSUMER, &anything, 1), "");
    offer(PROVIDER, 2, price);
    ck_assert_str_eq(named_for(CONSUMER, &anything, 1), "");
    leave(PROVIDER);
    named_for(CONSUMER, &anything, 1);
    ck_assert_ptr_nonnull(strstr(text, "its 2 slots would fit")); /* as they were in the end */
}
END_TEST

/* A pause and the beginning of a drain withdraw the devices; the goodbye may follow later. */
START_TEST(who_is_still_connected_withdrew_its_offer)
{
    offer(PROVIDER, 4, price);
    departures_note(departures, market.exchange, PROVIDER, market.now_ns);
    struct exchange_command withdraw = command(EXCHANGE_ADVERTISE, PROVIDER);
    apply(&withdraw);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    named_for(CONSUMER, &anything, 1);
    ck_assert_ptr_nonnull(strstr(text, "provider \"lab\" withdrew its offer at 22:13:20 UTC, "));
    leave(PROVIDER);
    named_for(CONSUMER, &anything, 1);
    ck_assert_ptr_nonnull(strstr(text, "provider \"lab\" left at 22:13:20 UTC, "));
    ck_assert_ptr_nonnull(strstr(text, "its 4 slots would fit"));
}
END_TEST

START_TEST(whoever_had_no_device_takes_no_place)
{
    offer(PROVIDER, 1, price);
    leave(PROVIDER);
    for (int i = 0; i < 2 * DEPARTURES_PROVIDERS; i++) {
        departures_note(departures, market.exchange, OTHER_PROVIDER, market.now_ns);
    }
    ck_assert_str_ne(named_for(CONSUMER, &anything, 1), "");
}
END_TEST

START_TEST(the_line_of_a_job_names_who_left)
{
    struct explanation *explanation = calloc(1, sizeof *explanation);
    ck_assert_ptr_nonnull(explanation);
    offer(PROVIDER, 4, price);
    leave(PROVIDER);
    struct id128 job = submit(1, 100);
    const char *line = line_of(job, explanation);
    ck_assert_msg(
        strstr(line, "no device is offered now; provider \"lab\" left at 22:13:20 UTC, ") == line,
        "%s", line);
    ck_assert_ptr_nonnull(strstr(line, "its 4 slots would fit: wait for that"));
    explanation_free(explanation);
}
END_TEST

SUITE("departures", set_up_named, tear_down_named,
      TEST(who_left_is_named_with_the_time_and_the_slots_that_would_fit),
      TEST(a_device_that_does_not_fit_is_not_named),
      TEST(the_last_to_leave_is_named_and_the_others_are_counted),
      TEST(who_is_back_is_not_named_and_neither_is_who_left_long_ago),
      TEST(who_is_still_connected_withdrew_its_offer), TEST(whoever_had_no_device_takes_no_place),
      TEST(the_line_of_a_job_names_who_left))
