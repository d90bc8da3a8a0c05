/* One dialogue with the brokers of a market of which one leads. */
#include "tests/support/dialogue_play.h"
#include "tests/support/suite.h"

static const struct contact addresses[] = {{"tcp://a:4770", "tcp://a:4771"},
                                           {"tcp://b:4770", "tcp://b:4771"}};

/* A client that knows two addresses. */
static struct play setup_cluster(void)
{
    struct play play = setup();
    struct dialogue_config config = {.identity = play.identity,
                                     .role = SESSION_CONSUMER,
                                     .program = "test 1",
                                     .pending_max = PENDING_MAX,
                                     .pending_bytes_max = PENDING_BYTES_MAX,
                                     .addresses = addresses,
                                     .address_count = 2};
    dialogue_destroy(&play.dialogue);
    play.dialogue = dialogue_create(&config);
    return play;
}

static Bourse__V1__Reject not_leader(const char *leader)
{
    Bourse__V1__Reject reject = BOURSE__V1__REJECT__INIT;
    reject.code = REJECT_NOT_LEADER;
    reject.text = "another broker leads";
    reject.leader_address = (char *)(uintptr_t)leader;
    return reject;
}

static const char *address(const struct play *play)
{
    return dialogue_address(play->dialogue)->control;
}

START_TEST(a_follower_that_refuses_hello_sends_the_client_to_the_leader)
{
    struct play play = setup_cluster();
    struct heard hello;
    Bourse__V1__Reject reject = not_leader("tcp://b:4770");
    dialogue_connected(play.dialogue, play.now_ns, 1);
    ck_assert(hear(&play, &hello));
    struct dialogue_event event =
        say_raw(&play, 0, 0, MESSAGE_REJECT, &hello.envelope.id, &reject.base);
    ck_assert_int_eq(event.type, DIALOGUE_LOST);
    ck_assert_int_eq(event.end, CONTACT_FOLLOWS);
    ck_assert_int_eq(event.reject, REJECT_NOT_LEADER);
    ck_assert_str_eq(event.address, "tcp://a:4770");
    ck_assert_str_eq(address(&play), "tcp://b:4770");
    ck_assert(event.wait_ns <= CONTACTS_REDIRECT_NS);
    teardown(&play);
}
END_TEST

/* The request of a session whose broker no longer leads is no refusal for the caller. */
START_TEST(a_command_goes_to_the_leader_byte_for_byte)
{
    struct play play = setup_cluster();
    struct heard first;
    struct heard again;
    Bourse__V1__Reject reject = not_leader("tcp://b:4770");
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    ck_assert(hear(&play, &first));
    struct dialogue_event event = say(&play, MESSAGE_REJECT, &first_id, &reject.base);
    ck_assert_int_eq(event.type, DIALOGUE_LOST);
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 1);
    ck_assert(!hear(&play, &again));

    struct heard hello;
    event = connect_as_session(&play, 200, &hello);
    ck_assert_int_eq(event.type, DIALOGUE_READY);
    ck_assert(hear(&play, &again));
    ck_assert_uint_eq(again.envelope.session, 200);
    ck_assert_uint_eq(again.length, first.length);
    enum { AFTER_SEQUENCE = 24 };
    ck_assert_mem_eq(again.bytes + AFTER_SEQUENCE, first.bytes + AFTER_SEQUENCE,
                     first.length - AFTER_SEQUENCE);
    Bourse__V1__Accepted accepted = BOURSE__V1__ACCEPTED__INIT;
    accepted.index = 5;
    event = say(&play, MESSAGE_ACCEPTED, &first_id, &accepted.base);
    ck_assert_int_eq(event.type, DIALOGUE_ACCEPTED);
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 0);
    teardown(&play);
}
END_TEST

/* A broker that followed for a while sent nothing to the session meanwhile. To go on after the last
 * number seen would hide what was missed. */
START_TEST(a_session_that_ended_so_is_not_resumed)
{
    struct play play = setup_cluster();
    struct heard hello;
    ProtobufCMessage *body;
    Bourse__V1__Reject reject = not_leader(NULL);
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    (void)say(&play, MESSAGE_REJECT, &first_id, &reject.base);
    dialogue_connected(play.dialogue, play.now_ns, 2);
    ck_assert(hear(&play, &hello));
    ck_assert_int_eq(
        codec_decode(MESSAGE_HELLO, hello.envelope.body, hello.envelope.body_length, &body, NULL),
        CODEC_OK);
    ck_assert(!((const Bourse__V1__Hello *)(const void *)body)->has_resume_session);
    codec_free(&body);
    teardown(&play);
}
END_TEST

START_TEST(an_address_that_is_silent_is_left_after_three_seconds)
{
    struct play play = setup_cluster();
    struct heard hello;
    struct dialogue_event event;
    dialogue_connected(play.dialogue, play.now_ns, 1);
    ck_assert(hear(&play, &hello));
    ck_assert(dialogue_next_deadline_ns(play.dialogue) == play.now_ns + 3 * NS_PER_S);
    dialogue_tick(play.dialogue, play.now_ns + 3 * NS_PER_S, &event);
    ck_assert_int_eq(event.type, DIALOGUE_LOST);
    ck_assert_int_eq(event.end, CONTACT_SILENT);
    ck_assert_str_eq(event.address, "tcp://a:4770");
    ck_assert_str_eq(address(&play), "tcp://b:4770");
    teardown(&play);
}
END_TEST

START_TEST(a_session_that_falls_silent_moves_and_asks_to_resume)
{
    struct play play = setup_cluster();
    struct heard hello;
    ProtobufCMessage *body;
    struct dialogue_event event;
    connect(&play, 100);
    play.now_ns += 3 * HEARTBEAT_MS * NS_PER_MS;
    dialogue_tick(play.dialogue, play.now_ns, &event);
    ck_assert_int_eq(event.type, DIALOGUE_LOST);
    ck_assert_str_eq(address(&play), "tcp://b:4770");
    dialogue_connected(play.dialogue, play.now_ns, 2);
    ck_assert(hear(&play, &hello));
    ck_assert_int_eq(
        codec_decode(MESSAGE_HELLO, hello.envelope.body, hello.envelope.body_length, &body, NULL),
        CODEC_OK);
    ck_assert_uint_eq(((const Bourse__V1__Hello *)(const void *)body)->resume_session, 100);
    codec_free(&body);
    teardown(&play);
}
END_TEST

START_TEST(without_addresses_a_follower_is_a_loss_like_any_other)
{
    struct play play = setup();
    Bourse__V1__Reject reject = not_leader("tcp://b:4770");
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    struct dialogue_event event = say(&play, MESSAGE_REJECT, &first_id, &reject.base);
    ck_assert_int_eq(event.type, DIALOGUE_LOST);
    ck_assert_str_eq(event.address, "");
    ck_assert_ptr_null(dialogue_address(play.dialogue));
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 1);
    teardown(&play);
}
END_TEST

static struct dialogue_event refuse_for_quorum(struct play *play, int64_t since_ms)
{
    Bourse__V1__Reject reject = BOURSE__V1__REJECT__INIT;
    reject.code = REJECT_NO_QUORUM;
    reject.text = "two members do not answer";
    reject.has_value = 1;
    reject.value = since_ms;
    return say(play, MESSAGE_REJECT, &first_id, &reject.base);
}

/* Lets time pass until the dialogue sends something, and returns how long that took. */
static int64_t until_sent_again(struct play *play, struct heard *ret_heard)
{
    const int64_t began_ns = play->now_ns;
    while (!hear(play, ret_heard) || ret_heard->envelope.type == MESSAGE_HEARTBEAT) {
        struct dialogue_event event;
        Bourse__V1__Heartbeat beat = BOURSE__V1__HEARTBEAT__INIT;
        static const struct id128 no_id;
        play->now_ns = dialogue_next_deadline_ns(play->dialogue);
        dialogue_tick(play->dialogue, play->now_ns, &event);
        ck_assert_int_eq(event.type, DIALOGUE_NOTHING);
        (void)say(play, MESSAGE_HEARTBEAT, &no_id, &beat.base); /* the broker lives */
        ck_assert_int_lt(play->now_ns - began_ns, 10 * NS_PER_S);
    }
    return play->now_ns - began_ns;
}

/* The broker can say neither yes nor no without a quorum, so the caller hears no refusal. */
START_TEST(what_no_quorum_refuses_is_sent_again_under_its_id)
{
    struct play play = setup();
    struct heard first;
    struct heard again;
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    ck_assert(hear(&play, &first));
    struct dialogue_event event = refuse_for_quorum(&play, 30000);
    ck_assert_int_eq(event.type, DIALOGUE_NOTHING);
    ck_assert_int_eq(event.reject, REJECT_NO_QUORUM);
    ck_assert_str_eq(event.text, "two members do not answer");
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 1);
    const int64_t took_ns = until_sent_again(&play, &again);
    ck_assert_int_ge(took_ns, NS_PER_S);
    ck_assert_int_le(took_ns, 2 * NS_PER_S);
    enum { AFTER_SEQUENCE = 24 };
    ck_assert_uint_eq(again.length, first.length);
    ck_assert_mem_eq(again.bytes + AFTER_SEQUENCE, first.bytes + AFTER_SEQUENCE,
                     first.length - AFTER_SEQUENCE);
    Bourse__V1__Accepted accepted = BOURSE__V1__ACCEPTED__INIT;
    accepted.index = 5;
    event = say(&play, MESSAGE_ACCEPTED, &first_id, &accepted.base);
    ck_assert_int_eq(event.type, DIALOGUE_ACCEPTED);
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 0);
    teardown(&play);
}
END_TEST

/* The journal may take the first copy while the second one waits to be sent. */
START_TEST(an_answer_after_no_quorum_ends_the_wait)
{
    struct play play = setup();
    struct heard heard;
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    ck_assert(hear(&play, &heard));
    (void)refuse_for_quorum(&play, 1600);
    Bourse__V1__Accepted accepted = BOURSE__V1__ACCEPTED__INIT;
    accepted.index = 5;
    struct dialogue_event event = say(&play, MESSAGE_ACCEPTED, &first_id, &accepted.base);
    ck_assert_int_eq(event.type, DIALOGUE_ACCEPTED);
    play.now_ns += 2 * NS_PER_S;
    dialogue_tick(play.dialogue, play.now_ns, &event);
    while (hear(&play, &heard)) {
        ck_assert_int_eq(heard.envelope.type, MESSAGE_HEARTBEAT);
    }
    teardown(&play);
}
END_TEST

/* A leader that is cut off from its journal does not know that another broker leads. */
START_TEST(a_broker_that_lacks_quorum_for_long_is_left_for_the_next)
{
    struct play play = setup_cluster();
    struct heard heard;
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    ck_assert(hear(&play, &heard));
    struct dialogue_event event = refuse_for_quorum(&play, 3999);
    ck_assert_int_eq(event.type, DIALOGUE_NOTHING);
    event = refuse_for_quorum(&play, 4000);
    ck_assert_int_eq(event.type, DIALOGUE_LOST);
    ck_assert_int_eq(event.reject, REJECT_NO_QUORUM);
    ck_assert_int_eq(event.end, CONTACT_NO_QUORUM);
    ck_assert_str_eq(event.address, "tcp://a:4770");
    ck_assert_str_eq(address(&play), "tcp://b:4770");
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 1);
    teardown(&play);
}
END_TEST

/* Returns the Hello that the client sends on a new connection; the caller frees it. */
static const Bourse__V1__Hello *next_hello(struct play *play, struct heard *ret_heard,
                                           ProtobufCMessage **ret_body)
{
    ck_assert(hear(play, ret_heard));
    ck_assert_int_eq(codec_decode(MESSAGE_HELLO, ret_heard->envelope.body,
                                  ret_heard->envelope.body_length, ret_body, NULL),
                     CODEC_OK);
    return (const void *)*ret_body;
}

START_TEST(who_reads_anywhere_says_so_and_what_it_knows_of)
{
    struct play play = setup_cluster();
    struct heard hello;
    ProtobufCMessage *body = NULL;
    dialogue_connected(play.dialogue, play.now_ns, 1);
    ck_assert(!next_hello(&play, &hello, &body)->reads);
    codec_free(&body);
    dialogue_read_anywhere(play.dialogue, 7);
    dialogue_connected(play.dialogue, play.now_ns, 2);
    const Bourse__V1__Hello *said = next_hello(&play, &hello, &body);
    ck_assert(said->reads && said->has_least_index && said->least_index == 7);
    codec_free(&body);
    teardown(&play);
}
END_TEST

/* A later answer has what the client has written, and what it was shown. */
START_TEST(an_answer_is_not_older_than_what_the_client_knows)
{
    struct play play = setup_cluster();
    struct heard heard;
    ProtobufCMessage *body = NULL;
    dialogue_read_anywhere(play.dialogue, 0);
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    ck_assert(hear(&play, &heard));
    Bourse__V1__Accepted accepted = BOURSE__V1__ACCEPTED__INIT;
    accepted.index = 500;
    (void)say(&play, MESSAGE_ACCEPTED, &first_id, &accepted.base);
    ck_assert_uint_eq(dialogue_state(play.dialogue).newest, 500);
    Bourse__V1__Heartbeat mark = BOURSE__V1__HEARTBEAT__INIT;
    mark.has_state_index = mark.has_state_ns = mark.has_stale_ms = true;
    mark.state_index = 620;
    mark.state_ns = 9;
    mark.stale_ms = 4000;
    static const struct id128 no_id;
    (void)say(&play, MESSAGE_HEARTBEAT, &no_id, &mark.base);
    const struct dialogue_state state = dialogue_state(play.dialogue);
    ck_assert_uint_eq(state.index, 620);
    ck_assert_int_eq(state.log_ns, 9);
    ck_assert_int_eq(state.stale_ms, 4000);
    dialogue_connected(play.dialogue, play.now_ns, 2);
    ck_assert_uint_eq(next_hello(&play, &heard, &body)->least_index, 620);
    codec_free(&body);
    teardown(&play);
}
END_TEST

START_TEST(who_needs_the_leader_leaves_a_follower_with_its_requests)
{
    struct play play = setup_cluster();
    struct heard heard;
    struct dialogue_event event;
    ProtobufCMessage *body = NULL;
    dialogue_read_anywhere(play.dialogue, 0);
    dialogue_connected(play.dialogue, play.now_ns, 1);
    ck_assert(hear(&play, &heard));
    play.sequence_out = 0;
    Bourse__V1__Welcome welcome = welcome_example(&play);
    welcome.has_follows = welcome.follows = true;
    event = say(&play, MESSAGE_WELCOME, &heard.envelope.id, &welcome.base);
    ck_assert_int_eq(event.type, DIALOGUE_READY);
    ask_cancel(&play, &first_id);
    ck_assert(hear(&play, &heard));
    dialogue_require_leader(play.dialogue, &event);
    ck_assert_int_eq(event.type, DIALOGUE_LOST);
    ck_assert_int_eq(event.end, CONTACT_FOLLOWS);
    ck_assert_str_eq(address(&play), "tcp://b:4770");
    dialogue_connected(play.dialogue, play.now_ns, 2);
    const Bourse__V1__Hello *said = next_hello(&play, &heard, &body);
    ck_assert(!said->reads && !said->has_resume_session);
    codec_free(&body);
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 1);
    dialogue_require_leader(play.dialogue, &event);
    ck_assert_int_eq(event.type, DIALOGUE_NOTHING);
    teardown(&play);
}
END_TEST

SUITE("dialogue_leader", NULL, NULL, TEST(what_no_quorum_refuses_is_sent_again_under_its_id),
      TEST(an_answer_after_no_quorum_ends_the_wait),
      TEST(a_broker_that_lacks_quorum_for_long_is_left_for_the_next),
      TEST(a_follower_that_refuses_hello_sends_the_client_to_the_leader),
      TEST(a_command_goes_to_the_leader_byte_for_byte),
      TEST(a_session_that_ended_so_is_not_resumed),
      TEST(an_address_that_is_silent_is_left_after_three_seconds),
      TEST(a_session_that_falls_silent_moves_and_asks_to_resume),
      TEST(without_addresses_a_follower_is_a_loss_like_any_other),
      TEST(who_reads_anywhere_says_so_and_what_it_knows_of),
      TEST(an_answer_is_not_older_than_what_the_client_knows),
      TEST(who_needs_the_leader_leaves_a_follower_with_its_requests))
