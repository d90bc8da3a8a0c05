/* Following the market of a real broker: what is new comes by itself, to members only, and nobody's
 * slowness is another's. */
#include "tests/support/hand_broker.h"

#include "base/checked.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct follower {
    struct broker_client *client;
    uint64_t feed, after;
    uint32_t place;
    bool has_begun, has_place;
};

/* The next answer, which must follow on the one before; with its levels wanted, not waited for. */
static ProtobufCMessage *follow(struct follower *follower, uint32_t wait_ms)
{
    Bourse__V1__MarketRequest body = BOURSE__V1__MARKET_REQUEST__INIT;
    body.has_feed = body.has_after = follower->has_begun;
    body.feed = follower->feed;
    body.after = follower->after;
    body.has_place = follower->has_place;
    body.place = follower->place;
    body.has_wait_ms = wait_ms > 0;
    body.wait_ms = wait_ms;
    ProtobufCMessage *answer = read_of(follower->client, MESSAGE_MARKET_REQUEST, &body.base);
    const Bourse__V1__MarketReply *reply = (const void *)answer;
    if (!reply->anew) {
        ck_assert_uint_eq(reply->feed, follower->feed);
        ck_assert_uint_eq(reply->after, follower->after);
    }
    ck_assert_uint_ge(reply->through, reply->after);
    follower->has_begun = true;
    follower->feed = reply->feed;
    follower->after = reply->through;
    follower->has_place = reply->has_next;
    follower->place = reply->next;
    return answer;
}

static void begin(struct follower *follower, struct broker_client *client)
{
    *follower = (struct follower){.client = client};
    ProtobufCMessage *answer = follow(follower, 0);
    ck_assert(((const Bourse__V1__MarketReply *)(const void *)answer)->anew);
    codec_free(&answer);
}

START_TEST(members_follow_and_strangers_do_not)
{
    static const uint32_t roles[] = {ROLE_CONSUMER, ROLE_PROVIDER, ROLE_AUDITOR, ROLE_RISK};
    open_market();
    Bourse__V1__MarketRequest market = BOURSE__V1__MARKET_REQUEST__INIT;
    Bourse__V1__PricesRequest prices = BOURSE__V1__PRICES_REQUEST__INIT;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        struct member member;
        member_open(&member, roles[i], SESSION_CONSUMER);
        ProtobufCMessage *answer = read_of(&member.client, MESSAGE_MARKET_REQUEST, &market.base);
        codec_free(&answer);
        answer = read_of(&member.client, MESSAGE_PRICES_REQUEST, &prices.base);
        codec_free(&answer);
        member_close(&member);
    }
    struct member stranger;
    member_open(&stranger, 0, SESSION_CONSUMER);
    expect_refused(&stranger.client, MESSAGE_MARKET_REQUEST, &market.base, REJECT_ROLE);
    expect_refused(&stranger.client, MESSAGE_PRICES_REQUEST, &prices.base, REJECT_ROLE);
    member_close(&stranger);
    market.has_wait_ms = true;
    market.wait_ms = LIMIT_WAIT_MS + 1;
    expect_refused(&owner, MESSAGE_MARKET_REQUEST, &market.base, REJECT_MALFORMED);
    close_market();
}
END_TEST

START_TEST(what_changes_is_told_to_who_waits)
{
    open_market();
    struct member provider;
    struct follower follower;
    member_open(&provider, ROLE_PROVIDER, SESSION_PROVIDER);
    advertise(&provider, 2, NULL, 0);
    begin(&follower, &owner);

    Bourse__V1__MarketRequest body = BOURSE__V1__MARKET_REQUEST__INIT;
    body.has_feed = body.has_after = body.has_wait_ms = true;
    body.feed = follower.feed;
    body.after = follower.after;
    body.wait_ms = LIMIT_WAIT_MS;
    struct id128 id = entropy_id();
    ck_assert_int_eq(dialogue_request(owner.dialogue, clock_monotonic_ns(), MESSAGE_MARKET_REQUEST,
                                      &id, &body.base),
                     DIALOGUE_OK);
    ask(&provider, 0, 900, NULL);
    ProtobufCMessage *answer = follow(&follower, LIMIT_WAIT_MS);
    const Bourse__V1__MarketReply *reply = (const void *)answer;
    ck_assert_uint_eq(reply->n_asks, 1);
    ck_assert_str_eq(reply->asks[0]->instrument, "cpu.test");
    ck_assert_int_eq(reply->asks[0]->price_micro, 900);
    ck_assert_uint_eq(reply->asks[0]->orders, 1);
    ck_assert_uint_eq(reply->asks[0]->slots, 2);
    ck_assert_uint_eq(reply->asks[0]->free, 2);
    ck_assert(!reply->more);
    codec_free(&answer);

    ask(&provider, 0, 800, NULL);
    bid(&owner, NULL);
    answer = follow(&follower, LIMIT_WAIT_MS);
    reply = (const void *)answer;
    ck_assert_uint_eq(reply->n_trades, 1);
    ck_assert_int_eq(reply->trades[0]->price_micro, 800);
    ck_assert_uint_eq(reply->trades[0]->slots, 2);
    ck_assert_uint_eq(reply->n_bars, 1);
    ck_assert_uint_eq(reply->n_asks, 2); /* one price is gone, one has another depth */
    ck_assert_uint_eq(reply->n_bids, 1); /* of three slots one is still wanted */
    ck_assert_uint_eq(reply->bids[0]->slots, 1);
    ck_assert_int_eq(reply->bids[0]->limit_micro, 1000);
    ck_assert_uint_eq(reply->n_needs, 1);
    ck_assert_uint_eq(reply->needs[0]->number, reply->bids[0]->needs);
    codec_free(&answer);
    member_close(&provider);
    close_market();
}
END_TEST

START_TEST(a_wait_in_vain_ends)
{
    open_market();
    struct follower follower;
    begin(&follower, &owner);
    uint64_t after = follower.after;
    ProtobufCMessage *answer = follow(&follower, 50);
    const Bourse__V1__MarketReply *reply = (const void *)answer;
    ck_assert_uint_eq(reply->through, after);
    ck_assert_uint_eq(reply->n_asks + reply->n_bids + reply->n_trades + reply->n_bars, 0);
    codec_free(&answer);
    close_market();
}
END_TEST

START_TEST(whoever_is_elsewhere_begins_anew)
{
    open_market();
    struct member provider;
    struct follower follower;
    member_open(&provider, ROLE_PROVIDER, SESSION_PROVIDER);
    advertise(&provider, 1, NULL, 0);
    ask(&provider, 0, 900, NULL);
    begin(&follower, &owner);
    const uint64_t feed = follower.feed;
    for (int i = 0; i < 3; i++) {
        follower.feed = i == 0 ? feed + 1 : feed;
        follower.after = i == 1 ? follower.after + 1 : i == 2 ? UINT64_MAX : follower.after;
        ProtobufCMessage *answer = follow(&follower, LIMIT_WAIT_MS);
        const Bourse__V1__MarketReply *reply = (const void *)answer;
        ck_assert(reply->anew);
        ck_assert_uint_eq(reply->n_asks, 1);
        codec_free(&answer);
    }
    follower.has_place = true;
    follower.place = UINT32_MAX; /* beyond all levels */
    ProtobufCMessage *answer = follow(&follower, 0);
    ck_assert_uint_eq(((const Bourse__V1__MarketReply *)(const void *)answer)->n_asks, 0);
    codec_free(&answer);
    member_close(&provider);
    close_market();
}
END_TEST

/* It hears once, of all together, when it comes back; and meanwhile nobody waits for it. */
START_TEST(a_follower_that_does_not_read_holds_up_nobody)
{
    enum { CHANGES = 300 };
    open_market();
    struct member provider;
    struct member other;
    struct follower sleeper;
    struct follower awake;
    member_open(&provider, ROLE_PROVIDER, SESSION_PROVIDER);
    member_open(&other, ROLE_AUDITOR, SESSION_CONSUMER);
    advertise(&provider, 1, NULL, 0);
    begin(&sleeper, &owner);
    begin(&awake, &other.client);
    size_t told = 0;
    for (int i = 0; i < CHANGES; i++) {
        ask(&provider, 0, 900 + i, NULL);
        ProtobufCMessage *answer = follow(&awake, 1);
        told += ((const Bourse__V1__MarketReply *)(const void *)answer)->n_asks;
        codec_free(&answer);
    }
    ck_assert_uint_gt(told, CHANGES / 2);
    ProtobufCMessage *answer = follow(&sleeper, LIMIT_WAIT_MS);
    const Bourse__V1__MarketReply *reply = (const void *)answer;
    ck_assert(!reply->anew);
    ck_assert(!reply->more);
    ck_assert_uint_eq(reply->n_asks, CHANGES); /* each price is gone but the last */
    size_t standing = 0;
    for (size_t i = 0; i < reply->n_asks; i++) {
        standing += reply->asks[i]->orders;
    }
    ck_assert_uint_eq(standing, 1);
    codec_free(&answer);
    member_close(&other);
    member_close(&provider);
    close_market();
}
END_TEST

static ProtobufCMessage *prices_of(const char *instrument)
{
    Bourse__V1__PricesRequest body = BOURSE__V1__PRICES_REQUEST__INIT;
    body.instrument = instrument == NULL ? NULL : text_of(instrument);
    return read_of(&owner, MESSAGE_PRICES_REQUEST, &body.base);
}

START_TEST(prices_and_a_suggested_cap_outlive_the_broker)
{
    open_market();
    struct member provider;
    struct follower follower;
    member_open(&provider, ROLE_PROVIDER, SESSION_PROVIDER);
    advertise(&provider, 1, NULL, 0);
    ask(&provider, 0, 900, NULL);
    bid(&owner, NULL);
    begin(&follower, &owner);
    broker_client_close(&owner);
    ck_assert(WIFEXITED(broker_process_stop(&broker, SIGTERM)));
    broker_process_start(&broker);
    broker_client_open(&owner, &broker, broker.owner, SESSION_CONSUMER);

    ProtobufCMessage *answer = prices_of("cpu.test");
    const Bourse__V1__PricesReply *prices = (const void *)answer;
    ck_assert_uint_eq(prices->n_bars, 1);
    ck_assert_int_eq(prices->bars[0]->close_micro, 900);
    ck_assert_uint_eq(prices->bars[0]->slots, 2);
    ck_assert_int_eq(prices->bars[0]->start_ms % 60000, 0);
    codec_free(&answer);
    answer = prices_of(NULL);
    ck_assert_uint_eq(((const Bourse__V1__PricesReply *)(const void *)answer)->n_bars, 1);
    codec_free(&answer);
    answer = prices_of("gpu.none");
    ck_assert_uint_eq(((const Bourse__V1__PricesReply *)(const void *)answer)->n_bars, 0);
    codec_free(&answer);

    Bourse__V1__Requirement anything = BOURSE__V1__REQUIREMENT__INIT;
    Bourse__V1__QuoteRequest quote = BOURSE__V1__QUOTE_REQUEST__INIT;
    quote.needs = &anything;
    quote.subtasks = quote.slots = quote.at_most = 1;
    quote.limit_ms = quote.term_ms = 1000;
    quote.expect_ns = NS_PER_S;
    answer = read_of(&owner, MESSAGE_QUOTE_REQUEST, &quote.base);
    const Bourse__V1__QuoteReply *quoted = (const void *)answer;
    ck_assert_int_eq(quoted->cap_micro, 900);
    ck_assert_uint_eq(quoted->cap_trades, 1);
    ck_assert_int_gt(quoted->cap_since_ms, 0);
    codec_free(&answer);

    follower.client = &owner; /* another start, another feed */
    answer = follow(&follower, LIMIT_WAIT_MS);
    ck_assert(((const Bourse__V1__MarketReply *)(const void *)answer)->anew);
    codec_free(&answer);
    member_close(&provider);
    close_market();
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("market_feed");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, members_follow_and_strangers_do_not);
    tcase_add_test(tests, what_changes_is_told_to_who_waits);
    tcase_add_test(tests, a_wait_in_vain_ends);
    tcase_add_test(tests, whoever_is_elsewhere_begins_anew);
    tcase_add_test(tests, a_follower_that_does_not_read_holds_up_nobody);
    tcase_add_test(tests, prices_and_a_suggested_cap_outlive_the_broker);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
