/* The tests follow who waits for the market: one place a session, answers when they are due, and a
 * bound. */
#include "broker/answer/follow.h"

#include "exchange/view/feed.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { FEED = 77 };

static struct follow *follow;
static Bourse__V1__MarketRequest body;

static void open_market(void)
{
    set_up();
    ck_assert(exchange_feed_open(market.exchange, 0));
    follow = follow_create(FEED);
    ck_assert_ptr_nonnull(follow);
    bourse__v1__market_request__init(&body);
    body.has_feed = body.has_after = body.has_wait_ms = true;
    body.feed = FEED;
    body.wait_ms = 1000;
}

static void close_market(void)
{
    follow_destroy(&follow);
    tear_down();
}

/* Returns the answer to `body` at once, or NULL when it waits. */
static struct outgoing *ask_for(uint64_t session, uint8_t id, int64_t now_ns,
                                struct outgoing **ret_former)
{
    struct request request = {.session = session};
    request.envelope.type = MESSAGE_MARKET_REQUEST;
    request.envelope.id.bytes[0] = id;
    request.translation.body = &body.base;
    return follow_answer(follow, market.exchange, &request, now_ns, ret_former);
}

static void wait_for(uint64_t session, uint8_t id, int64_t now_ns)
{
    struct outgoing *former;
    ck_assert_ptr_null(ask_for(session, id, now_ns, &former));
    ck_assert_ptr_null(former);
}

static uint64_t through_of(const struct outgoing *outgoing)
{
    ProtobufCMessage *decoded = NULL;
    struct codec_error error = {0};
    ck_assert_int_eq(outgoing->type, MESSAGE_MARKET_REPLY);
    ck_assert_int_eq(
        codec_decode(MESSAGE_MARKET_REPLY, outgoing->body, outgoing->length, &decoded, &error),
        CODEC_OK);
    uint64_t through = ((const Bourse__V1__MarketReply *)(const void *)decoded)->through;
    codec_free(&decoded);
    return through;
}

/* The next answer is that session's, under that id. */
static void expect_answer(uint64_t session, uint8_t id, int64_t now_ns)
{
    struct outgoing *answer = follow_next(follow, market.exchange, now_ns);
    ck_assert_ptr_nonnull(answer);
    ck_assert_uint_eq(answer->session, session);
    ck_assert_uint_eq(answer->id.bytes[0], id);
    ck_assert_uint_eq(through_of(answer), exchange_feed_number(market.exchange));
    outgoing_destroy(&answer);
}

static void expect_none(int64_t now_ns)
{
    ck_assert_ptr_null(follow_next(follow, market.exchange, now_ns));
}

START_TEST(changes_of_a_moment_come_together)
{
    body.after = exchange_feed_number(market.exchange);
    wait_for(5, 1, 100);
    wait_for(6, 2, 100);
    ck_assert_int_eq(follow_due_ns(follow), 100 + 1000 * NS_PER_MS);
    offer(PROVIDER, 4, price);
    follow_notice(follow, market.exchange, 200);
    offer(OTHER_PROVIDER, 4, 2 * price);
    follow_notice(follow, market.exchange, 300);
    ck_assert_int_eq(follow_due_ns(follow), 200 + FOLLOW_INTERVAL_NS);
    expect_none(199 + FOLLOW_INTERVAL_NS);
    expect_answer(5, 1, 200 + FOLLOW_INTERVAL_NS);
    expect_answer(6, 2, 200 + FOLLOW_INTERVAL_NS);
    expect_none(200 + FOLLOW_INTERVAL_NS);
    ck_assert_int_eq(follow_due_ns(follow), INT64_MAX);
}
END_TEST

START_TEST(who_comes_back_at_once_waits_for_more)
{
    offer(PROVIDER, 4, price);
    body.after = 0;
    wait_for(5, 1, 100);
    ck_assert_int_eq(follow_due_ns(follow), 100 + FOLLOW_INTERVAL_NS);
    expect_answer(5, 1, 100 + FOLLOW_INTERVAL_NS);
    expect_none(100 + FOLLOW_INTERVAL_NS);
}
END_TEST

START_TEST(a_wait_ends_by_itself)
{
    body.after = exchange_feed_number(market.exchange);
    wait_for(5, 1, 0);
    expect_none(1000 * NS_PER_MS - 1);
    expect_answer(5, 1, 1000 * NS_PER_MS);
}
END_TEST

START_TEST(a_session_has_one_place)
{
    struct outgoing *former;
    body.after = exchange_feed_number(market.exchange);
    wait_for(5, 1, 0);
    wait_for(5, 1, 1); /* sent again on another connection: one answer */
    ck_assert_ptr_null(ask_for(5, 2, 2, &former));
    ck_assert_ptr_nonnull(former);
    ck_assert_uint_eq(former->id.bytes[0], 1);
    outgoing_destroy(&former);
    wait_for(6, 3, 3);
    follow_forget(follow, 5);
    follow_forget(follow, 5);
    expect_answer(6, 3, 2000 * NS_PER_MS);
    expect_none(2000 * NS_PER_MS);
}
END_TEST

START_TEST(places_have_an_end)
{
    struct outgoing *former;
    body.after = exchange_feed_number(market.exchange);
    for (uint64_t session = 1; session <= FOLLOW_WAITING_MAX; session++) {
        wait_for(session, 1, 0);
    }
    struct outgoing *refusal = ask_for(FOLLOW_WAITING_MAX + 1, 1, 0, &former);
    ck_assert_ptr_nonnull(refusal);
    ck_assert_int_eq(refusal->refused, REJECT_BUSY);
    outgoing_destroy(&refusal);
    /* The place of one that went in the middle of a round is taken by the last, who is answered
     * too. */
    offer(PROVIDER, 4, price);
    follow_notice(follow, market.exchange, 0);
    size_t answered = 0;
    struct outgoing *answer;
    while ((answer = follow_next(follow, market.exchange, FOLLOW_INTERVAL_NS)) != NULL) {
        answered++;
        if (answered == 10) {
            follow_forget(follow, 2 == answer->session ? 3 : 500);
        }
        outgoing_destroy(&answer);
    }
    ck_assert_uint_eq(answered, FOLLOW_WAITING_MAX - 1);
}
END_TEST

/* ---------------------------------------------------------------- further back than is kept */

static void ask_at(int64_t price_micro)
{
    struct exchange_command made = command(EXCHANGE_ASK, PROVIDER);
    made.ask =
        (struct exchange_ask){.device = {{PROVIDER}}, .slots = 1, .price_micro = price_micro};
    apply(&made);
}

/* It begins anew, with the one ask that stands, at that price, and nothing of what went. */
static void expect_anew(struct outgoing *answer, int64_t price_micro)
{
    ProtobufCMessage *decoded = NULL;
    struct codec_error error = {0};
    ck_assert_ptr_nonnull(answer);
    ck_assert_int_eq(
        codec_decode(MESSAGE_MARKET_REPLY, answer->body, answer->length, &decoded, &error),
        CODEC_OK);
    const Bourse__V1__MarketReply *reply = (const void *)decoded;
    ck_assert(reply->has_anew && reply->anew);
    ck_assert(!reply->has_next);
    ck_assert_uint_eq(reply->through, exchange_feed_number(market.exchange));
    ck_assert_uint_eq(reply->n_asks, 1);
    ck_assert_int_eq(reply->asks[0]->price_micro, price_micro);
    ck_assert_uint_eq(reply->asks[0]->orders, 1);
    codec_free(&decoded);
    outgoing_destroy(&answer);
}

START_TEST(whoever_missed_more_than_is_kept_is_given_the_book)
{
    struct outgoing *former;
    offer(PROVIDER, 1, 1);
    const uint64_t before = exchange_feed_number(market.exchange);
    int64_t at = 1;
    body.after = before;
    wait_for(5, 1, 0);
    while (exchange_feed_number(market.exchange) < before + FEED_CHANGES - 1) {
        ask_at(++at); /* one level goes, another comes */
    }
    body.has_wait_ms = false;
    struct outgoing *still = ask_for(6, 1, 0, &former); /* all of it can be told yet */
    ck_assert_ptr_nonnull(still);
    ck_assert_uint_le(through_of(still), exchange_feed_number(market.exchange));
    outgoing_destroy(&still);
    while (exchange_feed_number(market.exchange) <= before + FEED_CHANGES) {
        ask_at(++at);
    }
    expect_anew(ask_for(6, 2, 0, &former), at);
    follow_notice(follow, market.exchange, 1); /* and one that waited all the time */
    expect_anew(follow_next(follow, market.exchange, 1 + FOLLOW_INTERVAL_NS), at);
    expect_none(1 + FOLLOW_INTERVAL_NS);
    body.after = exchange_feed_number(market.exchange); /* from there on it is told what changes */
    ask_at(at + 1);
    struct outgoing *next = ask_for(6, 3, 2, &former);
    ck_assert_ptr_nonnull(next);
    ck_assert_uint_eq(through_of(next), exchange_feed_number(market.exchange));
    outgoing_destroy(&next);
}
END_TEST

/* ---------------------------------------------------------------- many of them */

enum { FOLLOWERS = 500, SLOW = 7, ROUNDS = 36, SLOW_ROUNDS = 9, PRICES = 8 };

struct follower {
    uint64_t after;
    bool waits;
    uint32_t answers;       /* of this round */
    uint64_t slots[PRICES]; /* asked for at each price, as it was told */
};
static struct follower followers[FOLLOWERS];

static bool is_slow(size_t at)
{
    return at % SLOW == 0;
}

static void take_answer(struct outgoing *answer)
{
    ProtobufCMessage *decoded = NULL;
    struct codec_error error = {0};
    struct follower *follower = &followers[answer->session];
    ck_assert_int_eq(
        codec_decode(MESSAGE_MARKET_REPLY, answer->body, answer->length, &decoded, &error),
        CODEC_OK);
    const Bourse__V1__MarketReply *reply = (const void *)decoded;
    ck_assert(follower->waits); /* nobody is told what he did not ask for */
    ck_assert_uint_eq(++follower->answers, 1);
    ck_assert_uint_eq(reply->after, follower->after);
    ck_assert_uint_ge(reply->through, follower->after);
    ck_assert(!reply->has_next && !(reply->has_more && reply->more));
    for (size_t i = 0; i < reply->n_asks; i++) {
        const Bourse__V1__MarketAsks *asks = reply->asks[i];
        ck_assert_int_le(asks->price_micro, PRICES * price);
        follower->slots[asks->price_micro / price - 1] = asks->orders == 0 ? 0 : asks->slots;
    }
    follower->after = reply->through;
    follower->waits = false;
    codec_free(&decoded);
    outgoing_destroy(&answer);
}

static void ask_all(bool slow_too, int64_t now_ns)
{
    struct outgoing *former;
    for (size_t i = 0; i < FOLLOWERS; i++) {
        followers[i].answers = 0;
        if (!followers[i].waits && (slow_too || !is_slow(i))) {
            body.after = followers[i].after;
            followers[i].waits = true;
            struct outgoing *at_once = ask_for(i, 1, now_ns, &former);
            ck_assert_ptr_null(former);
            if (at_once != NULL) {
                take_answer(at_once);
            }
        }
    }
}

/* Checks the views of the market as it stands: one ask of each provider. */
static void check_views(const uint64_t slots[PRICES])
{
    for (size_t i = 0; i < FOLLOWERS; i++) {
        ck_assert_uint_eq(followers[i].after, exchange_feed_number(market.exchange));
        for (size_t at = 0; at < PRICES; at++) {
            ck_assert_msg(followers[i].slots[at] == slots[at], "follower %zu, price %zu", i, at);
        }
    }
}

START_TEST(many_follow_a_busy_market_and_all_know_it)
{
    memset(followers, 0, sizeof followers);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        followers[i].after = exchange_feed_number(market.exchange);
    }
    uint64_t slots[PRICES];
    size_t told = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        const int64_t now_ns = 10 * round * FOLLOW_INTERVAL_NS;
        const bool slow_too = round % SLOW_ROUNDS == 0;
        ask_all(slow_too, now_ns);
        for (int change = 0; change < 5; change++) { /* several in one answer */
            const int first = (round + change) % PRICES;
            const int second = (3 * round + change) % PRICES;
            memset(slots, 0, sizeof slots);
            offer(PROVIDER, 1 + (uint32_t)first, (1 + first) * price);
            slots[first] += 1 + (uint64_t)first;
            offer(OTHER_PROVIDER, 2, (1 + second) * price);
            slots[second] += 2;
            follow_notice(follow, market.exchange, now_ns + change);
        }
        struct outgoing *answer;
        while ((answer = follow_next(follow, market.exchange, now_ns + FOLLOW_INTERVAL_NS)) !=
               NULL) {
            take_answer(answer);
            told++;
        }
        if (slow_too) {
            check_views(slots);
        }
    }
    ck_assert_uint_ge(told, (size_t)ROUNDS * (FOLLOWERS - FOLLOWERS / SLOW - 1));
    ck_assert_uint_le(told, (size_t)ROUNDS * FOLLOWERS);
}
END_TEST

SUITE("follow", open_market, close_market, TEST(changes_of_a_moment_come_together),
      TEST(who_comes_back_at_once_waits_for_more), TEST(a_wait_ends_by_itself),
      TEST(a_session_has_one_place), TEST(places_have_an_end),
      TEST(whoever_missed_more_than_is_kept_is_given_the_book),
      TEST(many_follow_a_busy_market_and_all_know_it))
