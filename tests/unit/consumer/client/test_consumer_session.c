/* The consumer's session against a broker played by hand. */
#include "consumer/client/session.h"

#include "base/checked.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static const struct id128 cluster = {{0xc1}};
static const struct id128 job_id = {{0x77}};
static const struct id128 watch_id = {{1}};
static const struct id128 other_id = {{2}};

struct play {
    struct identity *identity;
    struct consumer_session *session;
    int64_t now_ns;
    uint64_t broker_session, sequence;
};

struct heard { /* a message that the client sent */
    uint8_t bytes[4096];
    struct envelope envelope;
};

static struct play setup(void)
{
    static const uint8_t seed[32] = {5};
    ck_assert_int_ge(sodium_init(), 0);
    struct play play = {.identity = identity_create(seed), .now_ns = NS_PER_S};
    play.session = consumer_session_create(play.identity, "test 1");
    ck_assert_ptr_nonnull(play.session);
    return play;
}

/* A client of a market with two brokers. */
static struct play setup_cluster(void)
{
    static const struct contact brokers[] = {{"tcp://a:4770", "tcp://a:4771"},
                                             {"tcp://b:4770", "tcp://b:4771"}};
    struct play play = setup();
    consumer_session_destroy(&play.session);
    play.session = consumer_session_create_at(play.identity, "test 1", brokers, 2);
    ck_assert_ptr_nonnull(play.session);
    return play;
}

static void teardown(struct play *play)
{
    consumer_session_destroy(&play->session);
    identity_destroy(&play->identity);
}

static bool hear(struct play *play, struct heard *ret_heard)
{
    const uint8_t *message;
    size_t length;
    if (!consumer_session_outgoing(play->session, &message, &length)) {
        return false;
    }
    ck_assert_uint_le(length, sizeof ret_heard->bytes);
    memcpy(ret_heard->bytes, message, length);
    ck_assert_int_eq(
        envelope_read(ret_heard->bytes, length, LIMIT_LARGE_BODY_BYTES, &ret_heard->envelope),
        ENVELOPE_OK);
    return true;
}

static struct consumer_event say(struct play *play, enum message_type type, const struct id128 *id,
                                 const ProtobufCMessage *body)
{
    size_t body_length;
    uint8_t *bytes = codec_encode(body, &body_length);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = (uint16_t)type,
                                .session = play->broker_session,
                                .sequence = ++play->sequence,
                                .id = *id,
                                .body = bytes,
                                .body_length = (uint32_t)body_length};
    size_t length = envelope_size(&envelope);
    uint8_t *message = malloc(length);
    envelope_write(&envelope, message, length);
    struct consumer_event event;
    consumer_session_incoming(play->session, play->now_ns, message, length, &event);
    free(message);
    free(bytes);
    return event;
}

static void connect_as(struct play *play, uint64_t broker_session)
{
    static uint8_t log_key[32];
    struct heard hello;
    consumer_session_connected(play->session, play->now_ns, broker_session);
    ck_assert(hear(play, &hello));
    ck_assert_int_eq(hello.envelope.type, MESSAGE_HELLO);
    play->broker_session = broker_session;
    play->sequence = 0;
    Bourse__V1__Welcome welcome = BOURSE__V1__WELCOME__INIT;
    welcome.version = 1;
    welcome.cluster = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)cluster.bytes};
    welcome.session = broker_session;
    welcome.heartbeat_ms = 1000;
    welcome.log_time_ms = 5000000;
    welcome.log_origin = "example.test/log";
    welcome.log_key = (ProtobufCBinaryData){32, log_key};
    welcome.max_message_bytes = LIMIT_MESSAGE_BYTES;
    struct consumer_event event = say(play, MESSAGE_WELCOME, &hello.envelope.id, &welcome.base);
    ck_assert_int_eq(event.type, CONSUMER_READY);
    consumer_event_clear(&event);
}

static void ask_balance(struct play *play, const struct id128 *id)
{
    Bourse__V1__BalanceRequest body = BOURSE__V1__BALANCE_REQUEST__INIT;
    ck_assert_int_eq(consumer_session_request(play->session, play->now_ns, MESSAGE_BALANCE_REQUEST,
                                              id, &body.base),
                     CONSUMER_OK);
}

static Bourse__V1__JobRow row_of(enum job_state state, uint32_t accepted, uint64_t index)
{
    static uint8_t manifest[32];
    static char name[] = "n";
    Bourse__V1__JobRow row = BOURSE__V1__JOB_ROW__INIT;
    row.job = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)job_id.bytes};
    row.name = name;
    row.state = state;
    row.subtasks = 4;
    row.accepted = accepted;
    row.index = index;
    row.manifest = (ProtobufCBinaryData){32, manifest};
    return row;
}

static struct consumer_event push(struct play *play, enum job_state state, uint32_t accepted,
                                  uint64_t index)
{
    static const struct id128 pushed = {{9}};
    Bourse__V1__JobRow row = row_of(state, accepted, index);
    Bourse__V1__JobEvent body = BOURSE__V1__JOB_EVENT__INIT;
    body.job = &row;
    return say(play, MESSAGE_JOB_EVENT, &pushed, &body.base);
}

static struct consumer_event reply_with_row(struct play *play, uint64_t index)
{
    Bourse__V1__JobRow row = row_of(JOB_OPEN, 0, index);
    Bourse__V1__JobRow *rows[] = {&row};
    Bourse__V1__JobsReply body = BOURSE__V1__JOBS_REPLY__INIT;
    body.n_jobs = 1;
    body.jobs = rows;
    body.index = index;
    return say(play, MESSAGE_JOBS_REPLY, &watch_id, &body.base);
}

/* Watches the job; the first row has come. */
static void watch(struct play *play, uint64_t index)
{
    struct heard request;
    ck_assert_int_eq(consumer_session_watch(play->session, play->now_ns, &watch_id, &job_id),
                     CONSUMER_OK);
    ck_assert(hear(play, &request));
    ck_assert_int_eq(request.envelope.type, MESSAGE_JOBS_REQUEST);
    struct consumer_event event = reply_with_row(play, index);
    ck_assert_int_eq(event.type, CONSUMER_JOB);
    consumer_event_clear(&event);
}

START_TEST(an_answer_carries_the_id_of_its_request)
{
    struct play play = setup();
    struct heard request;
    connect_as(&play, 100);
    ask_balance(&play, &other_id);
    ck_assert(hear(&play, &request));
    ck_assert(id128_equal(&request.envelope.id, &other_id));

    uint8_t key[32] = {3};
    char name[] = "me";
    Bourse__V1__BalanceReply body = BOURSE__V1__BALANCE_REPLY__INIT;
    body.account = (ProtobufCBinaryData){32, key};
    body.name = name;
    body.available_micro = 5;
    struct consumer_event event = say(&play, MESSAGE_BALANCE_REPLY, &other_id, &body.base);
    ck_assert_int_eq(event.type, CONSUMER_ANSWER);
    ck_assert_int_eq(event.answer, CONSUMER_REPLY);
    ck_assert(id128_equal(&event.id, &other_id));
    ck_assert_int_eq(((const Bourse__V1__BalanceReply *)(const void *)event.body)->available_micro,
                     5);
    consumer_event_clear(&event);
    ck_assert_ptr_null(event.body);
    teardown(&play);
}
END_TEST

START_TEST(a_refusal_is_an_answer_too)
{
    struct play play = setup();
    struct heard request;
    connect_as(&play, 100);
    ask_balance(&play, &other_id);
    ck_assert(hear(&play, &request));
    char text[] = "not today";
    Bourse__V1__Reject body = BOURSE__V1__REJECT__INIT;
    body.code = REJECT_ROLE;
    body.text = text;
    struct consumer_event event = say(&play, MESSAGE_REJECT, &other_id, &body.base);
    ck_assert_int_eq(event.type, CONSUMER_ANSWER);
    ck_assert_int_eq(event.answer, CONSUMER_REJECTED);
    ck_assert_int_eq(event.reject, REJECT_ROLE);
    ck_assert_str_eq(event.text, "not today");
    teardown(&play);
}
END_TEST

/* NOT_LEADER is no answer: the caller hears of a move, and the request goes to the next broker. */
START_TEST(a_request_follows_the_leader_and_so_does_a_watch)
{
    struct play play = setup_cluster();
    struct heard request;
    connect_as(&play, 100);
    watch(&play, 10);
    ask_balance(&play, &other_id);
    ck_assert(hear(&play, &request));
    char text[] = "another broker leads";
    char leader[] = "tcp://b:4770";
    Bourse__V1__Reject body = BOURSE__V1__REJECT__INIT;
    body.code = REJECT_NOT_LEADER;
    body.text = text;
    body.leader_address = leader;
    struct consumer_event event = say(&play, MESSAGE_REJECT, &other_id, &body.base);
    ck_assert_int_eq(event.type, CONSUMER_LOST);
    ck_assert_int_eq(event.end, CONTACT_FOLLOWS);
    ck_assert_str_eq(event.address, "tcp://a:4770");
    ck_assert_str_eq(consumer_session_address(play.session)->control, "tcp://b:4770");
    connect_as(&play, 7);
    bool asked = false;
    bool watched = false;
    while (hear(&play, &request)) {
        asked = asked || id128_equal(&request.envelope.id, &other_id);
        watched = watched || id128_equal(&request.envelope.id, &watch_id);
    }
    ck_assert(asked && watched);
    teardown(&play);
}
END_TEST

START_TEST(an_address_without_a_connection_is_passed_over)
{
    struct play play = setup_cluster();
    struct consumer_event event;
    consumer_session_connected(play.session, play.now_ns, 1);
    consumer_session_unreachable(play.session, &event);
    ck_assert_int_eq(event.type, CONSUMER_LOST);
    ck_assert_str_eq(event.address, "tcp://a:4770");
    ck_assert_str_eq(consumer_session_address(play.session)->control, "tcp://b:4770");
    teardown(&play);
}
END_TEST

START_TEST(a_watched_job_tells_of_its_changes)
{
    struct play play = setup();
    connect_as(&play, 100);
    watch(&play, 10);
    struct consumer_event event = push(&play, JOB_OPEN, 2, 11);
    ck_assert_int_eq(event.type, CONSUMER_JOB);
    ck_assert(id128_equal(&event.job, &job_id));
    ck_assert_uint_eq(event.row->accepted, 2);
    consumer_event_clear(&event);
    teardown(&play);
}
END_TEST

START_TEST(a_row_older_than_the_newest_seen_is_dropped)
{
    struct play play = setup();
    connect_as(&play, 100);
    watch(&play, 10);
    struct consumer_event event = push(&play, JOB_OPEN, 1, 9);
    ck_assert_int_eq(event.type, CONSUMER_NOTHING);
    ck_assert_ptr_null(event.body);
    teardown(&play);
}
END_TEST

START_TEST(a_job_that_nobody_watches_is_not_told_of)
{
    struct play play = setup();
    connect_as(&play, 100);
    struct consumer_event event = push(&play, JOB_OPEN, 1, 9);
    ck_assert_int_eq(event.type, CONSUMER_NOTHING);
    teardown(&play);
}
END_TEST

START_TEST(a_watch_is_asked_for_again_after_a_reconnect_and_once)
{
    struct play play = setup();
    struct heard request;
    connect_as(&play, 100);
    watch(&play, 10);
    ck_assert(!hear(&play, &request));
    connect_as(&play, 101);
    ck_assert(hear(&play, &request));
    ck_assert_int_eq(request.envelope.type, MESSAGE_JOBS_REQUEST);
    ck_assert(id128_equal(&request.envelope.id, &watch_id));
    ck_assert(!hear(&play, &request));
    /* Lost again before the answer: still one request. */
    connect_as(&play, 102);
    ck_assert(hear(&play, &request));
    ck_assert(!hear(&play, &request));
    teardown(&play);
}
END_TEST

START_TEST(a_watch_ends_with_its_job)
{
    struct play play = setup();
    struct heard request;
    connect_as(&play, 100);
    watch(&play, 10);
    struct consumer_event event = push(&play, JOB_DONE, 4, 12);
    ck_assert_int_eq(event.type, CONSUMER_JOB);
    ck_assert_uint_eq(event.row->state, JOB_DONE);
    consumer_event_clear(&event);
    connect_as(&play, 101);
    ck_assert(!hear(&play, &request));
    teardown(&play);
}
END_TEST

START_TEST(a_refused_watch_is_gone_and_says_why)
{
    struct play play = setup();
    struct heard request;
    connect_as(&play, 100);
    ck_assert_int_eq(consumer_session_watch(play.session, play.now_ns, &watch_id, &job_id),
                     CONSUMER_OK);
    ck_assert(hear(&play, &request));
    char text[] = "no such job";
    Bourse__V1__Reject body = BOURSE__V1__REJECT__INIT;
    body.code = REJECT_NOT_FOUND;
    body.text = text;
    struct consumer_event event = say(&play, MESSAGE_REJECT, &watch_id, &body.base);
    ck_assert_int_eq(event.type, CONSUMER_GONE);
    ck_assert_int_eq(event.reject, REJECT_NOT_FOUND);
    connect_as(&play, 101); /* the watch is not asked for again */
    ck_assert(!hear(&play, &request));
    teardown(&play);
}
END_TEST

START_TEST(an_empty_answer_to_a_watch_means_no_such_job)
{
    struct play play = setup();
    struct heard request;
    connect_as(&play, 100);
    ck_assert_int_eq(consumer_session_watch(play.session, play.now_ns, &watch_id, &job_id),
                     CONSUMER_OK);
    ck_assert(hear(&play, &request));
    Bourse__V1__JobsReply body = BOURSE__V1__JOBS_REPLY__INIT;
    struct consumer_event event = say(&play, MESSAGE_JOBS_REPLY, &watch_id, &body.base);
    ck_assert_int_eq(event.type, CONSUMER_GONE);
    ck_assert_int_eq(event.reject, REJECT_NOT_FOUND);
    ck_assert_ptr_null(event.body);
    teardown(&play);
}
END_TEST

START_TEST(watches_are_counted_and_capped)
{
    struct play play = setup();
    connect_as(&play, 100);
    struct id128 id = {{0}};
    for (uint8_t i = 0; i < CONSUMER_WATCH_MAX; i++) {
        id.bytes[0] = (uint8_t)(i + 1);
        ck_assert_int_eq(consumer_session_watch(play.session, play.now_ns, &id, &id), CONSUMER_OK);
        ck_assert_int_eq(consumer_session_watch(play.session, play.now_ns, &id, &id), CONSUMER_OK);
    }
    id.bytes[0] = 0xff;
    ck_assert_int_eq(consumer_session_watch(play.session, play.now_ns, &id, &id), CONSUMER_FULL);
    id.bytes[0] = 1;
    consumer_session_unwatch(play.session, &id);
    id.bytes[0] = 0xff;
    ck_assert_int_eq(consumer_session_watch(play.session, play.now_ns, &id, &id), CONSUMER_OK);
    id.bytes[0] = 0xfe;
    ck_assert_int_eq(consumer_session_watch(play.session, play.now_ns, &id, &id), CONSUMER_FULL);
    teardown(&play);
}
END_TEST

START_TEST(an_unanswered_request_goes_out_again_under_its_id)
{
    struct play play = setup();
    struct heard first;
    struct heard again;
    connect_as(&play, 100);
    ask_balance(&play, &other_id);
    ck_assert(hear(&play, &first));
    connect_as(&play, 101);
    ck_assert(hear(&play, &again));
    ck_assert(id128_equal(&again.envelope.id, &other_id));
    consumer_session_forget(play.session, &other_id);
    connect_as(&play, 102);
    ck_assert(!hear(&play, &again));
    teardown(&play);
}
END_TEST

START_TEST(silence_is_noticed_with_a_wait_to_reconnect_after)
{
    struct play play = setup();
    connect_as(&play, 100);
    struct consumer_event event;
    for (int i = 0; i < 10; i++) {
        play.now_ns = consumer_session_deadline_ns(play.session);
        consumer_session_tick(play.session, play.now_ns, &event);
        if (event.type == CONSUMER_LOST) {
            break;
        }
    }
    ck_assert_int_eq(event.type, CONSUMER_LOST);
    ck_assert_int_ge(event.wait_ns, 0);
    teardown(&play);
}
END_TEST

START_TEST(bytes_that_make_no_sense_break_the_session)
{
    struct play play = setup();
    connect_as(&play, 100);
    static const uint8_t noise[200] = {0xff};
    struct consumer_event event;
    consumer_session_incoming(play.session, play.now_ns, noise, sizeof noise, &event);
    ck_assert_int_eq(event.type, CONSUMER_BROKEN);
    ck_assert_int_ne(event.text[0], '\0');
    teardown(&play);
}
END_TEST

START_TEST(a_goodbye_is_the_last_word)
{
    struct play play = setup();
    struct heard last;
    connect_as(&play, 100);
    consumer_session_goodbye(play.session, play.now_ns);
    ck_assert(hear(&play, &last));
    ck_assert_int_eq(last.envelope.type, MESSAGE_GOODBYE);
    ck_assert(!hear(&play, &last));
    teardown(&play);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("consumer session");
    TCase *requests = tcase_create("requests");
    tcase_add_test(requests, an_answer_carries_the_id_of_its_request);
    tcase_add_test(requests, a_refusal_is_an_answer_too);
    tcase_add_test(requests, an_unanswered_request_goes_out_again_under_its_id);
    tcase_add_test(requests, silence_is_noticed_with_a_wait_to_reconnect_after);
    tcase_add_test(requests, bytes_that_make_no_sense_break_the_session);
    tcase_add_test(requests, a_goodbye_is_the_last_word);
    suite_add_tcase(suite, requests);
    TCase *watches = tcase_create("watches");
    tcase_add_test(watches, a_request_follows_the_leader_and_so_does_a_watch);
    tcase_add_test(watches, an_address_without_a_connection_is_passed_over);
    tcase_add_test(watches, a_watched_job_tells_of_its_changes);
    tcase_add_test(watches, a_row_older_than_the_newest_seen_is_dropped);
    tcase_add_test(watches, a_job_that_nobody_watches_is_not_told_of);
    tcase_add_test(watches, a_watch_is_asked_for_again_after_a_reconnect_and_once);
    tcase_add_test(watches, a_watch_ends_with_its_job);
    tcase_add_test(watches, a_refused_watch_is_gone_and_says_why);
    tcase_add_test(watches, an_empty_answer_to_a_watch_means_no_such_job);
    tcase_add_test(watches, watches_are_counted_and_capped);
    suite_add_tcase(suite, watches);
    return suite_run(suite);
}
