/* Who waits for the market: one place a session, answers when they are due, and a bound. */
#include "broker/follow.h"

#include "exchange/feed.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "tests/support/hand_market.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { FEED = 77 };

static struct follow *follow;
static Bourse__V1__MarketRequest body;

static void open_market(void)
{
    set_up();
    ck_assert(exchange_feed_open(market.exchange));
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

/* What comes of `body` at once; NULL: it waits. */
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
    /* The place of one that went in the middle of a round is taken by the last, who is answered too. */
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

int main(void)
{
    Suite *suite = suite_create("follow");
    TCase *tests = tcase_create("follow");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, open_market, close_market);
    tcase_add_test(tests, changes_of_a_moment_come_together);
    tcase_add_test(tests, who_comes_back_at_once_waits_for_more);
    tcase_add_test(tests, a_wait_ends_by_itself);
    tcase_add_test(tests, a_session_has_one_place);
    tcase_add_test(tests, places_have_an_end);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
