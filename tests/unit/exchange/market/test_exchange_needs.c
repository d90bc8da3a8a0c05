/* A job needs more of its provider and lease than the device: trust, isolation, region, notice and
 * minimum run. Each can be said in a text and in a map, and only devices that have it are leased.
 * */
#include "base/cleanup.h"
#include "formats/requirement.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRANGER = 4, REFEREE, OWNER };

/* Three accounts sell the same processor at the same price, the stranger first. */
static void open_market(void)
{
    const struct exchange_limits limits = exchange_limits_default();
    static const struct exchange_genesis_account accounts[] = {
        {.key = {{1}},
         .roles = ROLE_CONSUMER,
         .credits_micro = 100000 * MICRO_PER_CREDIT,
         .name = "consumer"},
        {.key = {{2}}, .roles = ROLE_PROVIDER, .name = "stranger"},
        {.key = {{3}}, .roles = ROLE_PROVIDER | ROLE_REFEREE, .name = "referee"},
        {.key = {{4}}, .roles = ROLE_PROVIDER | ROLE_OPERATOR, .name = "owner"},
    };
    open_market_of(&limits, 10 * price, accounts, sizeof accounts / sizeof *accounts);
}

static void sell(uint32_t provider, uint8_t device_number, const struct attribute *has,
                 const struct exchange_terms *terms)
{
    struct exchange_device device = {.device = {{(uint8_t)provider, device_number}},
                                     .slots = 4,
                                     .attributes = has,
                                     .attribute_count = 1,
                                     .label = "a cpu"};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, provider);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    struct exchange_command ask = command(EXCHANGE_ASK, provider);
    ask.ask = (struct exchange_ask){
        .device = device.device, .slots = 4, .price_micro = price, .terms = *terms};
    apply(&ask);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

/* Returns the account whose device a job with these needs gets; 0: nobody's. */
static uint32_t leased_of(const struct requirement *needs)
{
    struct exchange_command job = submit_of(1, 1000);
    job.submit.needs = needs;
    apply(&job);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    const struct exchange_effect *grant = nth(EFFECT_LEASE_GRANT, 0);
    const uint32_t found = grant == NULL ? 0 : grant->grant.device.bytes[0];
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = job.id;
    apply(&cancel);
    market.now_ns += NS_PER_HOUR; /* whatever was leased is free again */
    tick();
    return found;
}

struct said {
    const char *text, *map; /* NULL: it cannot be said in a map */
    uint32_t leased;
};

static void check_leased(const struct said *said, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct requirement needs;
        struct requirement mapped;
        struct problem problem;
        ck_assert_msg(requirement_parse(said[i].text, &needs, &problem), "%s: %s", said[i].text,
                      problem.text);
        const uint32_t leased = leased_of(&needs);
        ck_assert_msg(leased == said[i].leased, "%s: the device of %u, not of %u", said[i].text,
                      leased, said[i].leased);
        if (said[i].map != NULL) {
            char text[256];
            (void)snprintf(text, sizeof text, "needs: {%s}", said[i].map);
            CLEANUP(yaml_close)
            struct yaml_file *file = yaml_open(text, strlen(text), "f", &problem);
            requirement_read(yaml_key(yaml_root(file), "needs"), &mapped);
            ck_assert_msg(yaml_finished(file, &problem), "%s", problem.text);
            ck_assert_msg(leased_of(&mapped) == said[i].leased, "%s", said[i].map);
        }
    }
}

START_TEST(trust_is_what_the_operator_gives)
{
    static const struct attribute liar = {.name = "trust", .number = 9};
    static const struct attribute silent = {.name = "cores", .number = 4};
    static const struct exchange_terms firm = {.is_interruptible = false};
    static const struct said said[] = {
        {"any", NULL, STRANGER},
        {"trust >= 1", "trust: 1", REFEREE},
        {"trust = 1", "trust: \"= 1\"", REFEREE},
        {"trust > 1", "trust: 2", OWNER},
        {"trust in (2)", "trust: [2]", OWNER},
        {"trust >= 2 and trust < 2", NULL, 0},
        {"not trust >= 1", "trust: \"not in (1, 2)\"", STRANGER},
        {"referee = true", "referee: true", REFEREE},
    };
    sell(STRANGER, 0, &liar, &firm);
    sell(REFEREE, 0, &silent, &firm);
    sell(OWNER, 0, &silent, &firm);
    check_leased(said, sizeof said / sizeof *said);
}
END_TEST

/* There is none above the most trusted one: the predicate goes, it gets no figure that an order may
 * not have. */
START_TEST(no_change_asks_for_more_than_any_device_has)
{
    static const struct attribute fast = {.name = "cores", .number = 4};
    static const struct exchange_terms firm = {.is_interruptible = false};
    static struct exchange_explanation why;
    struct requirement needs;
    struct problem problem;
    sell(OWNER, 0, &fast, &firm);
    ck_assert(requirement_parse("cores >= 4 and not trust >= 2", &needs, &problem));
    const struct exchange_need need = {.needs = &needs,
                                       .account = CONSUMER,
                                       .subtasks = 1,
                                       .slots = 1,
                                       .cap_micro = 2 * price,
                                       .limit_ns = NS_PER_S,
                                       .term_ns = NS_PER_S};
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.smallest_change.count, 1);
    ck_assert_int_eq(why.smallest_change.changes[0].kind, BID_CHANGE_DROP);
    char text[256];
    ck_assert(requirement_text(&why.smallest_change.needs, text, sizeof text));
    ck_assert_str_eq(text, "cores >= 4");
    ck_assert(requirement_parse("cores >= 4 and not trust >= 1", &needs, &problem));
    sell(REFEREE, 0, &fast, &firm);
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.smallest_change.count, 1);
    ck_assert_int_eq(why.smallest_change.changes[0].kind, BID_CHANGE_LOOSEN);
    ck_assert(requirement_text(&why.smallest_change.needs, text, sizeof text));
    ck_assert_str_eq(text, "cores >= 4 and not trust > 1");
}
END_TEST

START_TEST(isolation_and_region_are_the_devices)
{
    static const struct attribute open = {.name = "isolation", .number = 0};
    static const struct attribute closed = {.name = "isolation", .number = 2};
    static const struct attribute french = {.name = "region", .is_text = true, .text = "fr"};
    static const struct exchange_terms firm = {.is_interruptible = false};
    static const struct said said[] = {
        {"isolation >= 0", "isolation: 0", STRANGER},
        {"isolation >= 1", "isolation: 1", REFEREE},
        {"isolation > 2", "isolation: 3", 0},
        {"region = fr", "region: fr", OWNER},
        {"region in (de, fr)", "region: \"in (de, fr)\"", OWNER},
        {"region not in (fr, de)", "region: \"not in (fr, de)\"", STRANGER},
        {"region != fr", "region: \"!= fr\"", 0}, /* the others say none */
        {"region = de", "region: de", 0},
    };
    sell(STRANGER, 0, &open, &firm);
    sell(REFEREE, 0, &closed, &firm);
    sell(OWNER, 0, &french, &firm);
    check_leased(said, sizeof said / sizeof *said);
}
END_TEST

START_TEST(notice_and_minimum_run_are_the_asks)
{
    static const struct attribute liar = {.name = "notice", .number = 48 * NS_PER_HOUR};
    static const struct attribute silent = {.name = "cores", .number = 4};
    static const struct exchange_terms at_once = {.is_interruptible = true};
    static const struct exchange_terms told = {
        .is_interruptible = true, .notice_ns = 60 * NS_PER_S, .minimum_run_ns = NS_PER_HOUR};
    static const struct exchange_terms firm = {.is_interruptible = false};
    static const struct said said[] = {
        {"notice >= 0s", "notice: 0s", STRANGER},
        {"notice >= 60s", "notice: 1m", REFEREE},
        {"notice > 60s", "notice: 61s", OWNER},
        {"minimum_run >= 30m", "minimum_run: 30m", REFEREE},
        {"minimum_run >= 2h", "minimum_run: 2h", OWNER},
        {"firm = true", "firm: true", OWNER},
        {"firm = false", "firm: false", STRANGER},
        {"notice >= 7d and firm = false", NULL, 0},
    };
    sell(STRANGER, 0, &liar, &at_once);
    sell(REFEREE, 0, &silent, &told);
    sell(OWNER, 0, &silent, &firm);
    check_leased(said, sizeof said / sizeof *said);
}
END_TEST

SUITE("needs of the market", open_market, tear_down, TEST(trust_is_what_the_operator_gives),
      TEST(no_change_asks_for_more_than_any_device_has), TEST(isolation_and_region_are_the_devices),
      TEST(notice_and_minimum_run_are_the_asks))
