/* One dialogue with a broker: greeting, requests, answers, time, silence, and what is wrong. */
#include "tests/support/dialogue_play.h"
#include "tests/support/suite.h"

START_TEST(hello_opens_and_welcome_answers)
{
    struct play play = setup();
    struct heard heard;
    ck_assert(!hear(&play, &heard));
    dialogue_connected(play.dialogue, play.now_ns, 1);
    ck_assert(hear(&play, &heard));
    ck_assert_uint_eq(heard.envelope.type, MESSAGE_HELLO);
    ck_assert_uint_eq(heard.envelope.session, 0);
    ck_assert_uint_eq(heard.envelope.sequence, 1);
    ck_assert(!heard.envelope.is_signed);
    ck_assert(!id128_is_zero(&heard.envelope.id));
    ck_assert(!hear(&play, &heard));

    ProtobufCMessage *body;
    dialogue_connected(play.dialogue, play.now_ns, 1);
    ck_assert(hear(&play, &heard));
    ck_assert_int_eq(
        codec_decode(MESSAGE_HELLO, heard.envelope.body, heard.envelope.body_length, &body, NULL),
        CODEC_OK);
    const Bourse__V1__Hello *hello = (const Bourse__V1__Hello *)(const void *)body;
    ck_assert_uint_eq(hello->version, 1);
    ck_assert_str_eq(hello->program, "test 1");
    ck_assert_uint_eq(hello->role, SESSION_CONSUMER);
    codec_free(&body);

    struct dialogue_event event = connect_as_session(&play, 100, &heard);
    ck_assert_int_eq(event.type, DIALOGUE_READY);
    ck_assert_ptr_eq(event.welcome, dialogue_welcome(play.dialogue));
    ck_assert(dialogue_ready(play.dialogue));
    ck_assert_int_eq(dialogue_log_time_ms(play.dialogue, play.now_ns + 250 * NS_PER_MS), 5000250);
    teardown(&play);
}
END_TEST

START_TEST(requests_wait_for_welcome_and_then_go_out_in_order)
{
    struct play play = setup();
    struct heard heard;
    ask_cancel(&play, &first_id);
    ask_balance(&play, &second_id);
    ck_assert(!hear(&play, &heard));
    connect(&play, 100);

    ck_assert(hear(&play, &heard));
    ck_assert_uint_eq(heard.envelope.type, MESSAGE_JOB_CANCEL);
    ck_assert_uint_eq(heard.envelope.session, 100);
    ck_assert_uint_eq(heard.envelope.sequence, 1);
    ck_assert(id128_equal(&heard.envelope.id, &first_id));
    ck_assert_int_eq(heard.envelope.created_ms, 5000000);
    ck_assert(identity_verify_envelope(identity_key(play.identity), &cluster, &heard.envelope));

    ck_assert(hear(&play, &heard));
    ck_assert_uint_eq(heard.envelope.type, MESSAGE_BALANCE_REQUEST);
    ck_assert_uint_eq(heard.envelope.sequence, 2);
    ck_assert(!heard.envelope.is_signed);
    ck_assert(!hear(&play, &heard));
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 2);
    teardown(&play);
}
END_TEST

START_TEST(answers_end_requests)
{
    struct play play = setup();
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    ask_balance(&play, &second_id);
    struct heard heard;
    while (hear(&play, &heard)) {
    }

    Bourse__V1__Accepted accepted = BOURSE__V1__ACCEPTED__INIT;
    accepted.index = 77;
    struct dialogue_event event = say(&play, MESSAGE_ACCEPTED, &first_id, &accepted.base);
    ck_assert_int_eq(event.type, DIALOGUE_ACCEPTED);
    ck_assert(id128_equal(&event.id, &first_id));
    ck_assert_int_eq(event.request_type, MESSAGE_JOB_CANCEL);
    ck_assert_uint_eq(event.index, 77);

    uint8_t key[32] = {1};
    Bourse__V1__BalanceReply balance = BOURSE__V1__BALANCE_REPLY__INIT;
    balance.account = (ProtobufCBinaryData){32, key};
    balance.name = "ann";
    balance.available_micro = 42;
    event = say(&play, MESSAGE_BALANCE_REPLY, &second_id, &balance.base);
    ck_assert_int_eq(event.type, DIALOGUE_REPLY);
    ck_assert_int_eq(event.message_type, MESSAGE_BALANCE_REPLY);
    ck_assert_int_eq(((Bourse__V1__BalanceReply *)(void *)event.body)->available_micro, 42);
    codec_free(&event.body);
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 0);
    teardown(&play);
}
END_TEST

START_TEST(a_refusal_carries_code_text_and_numbers)
{
    struct play play = setup();
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    Bourse__V1__Reject reject = BOURSE__V1__REJECT__INIT;
    reject.code = REJECT_FUNDS;
    reject.text = "need 5, have 3";
    reject.field = (char *)(uintptr_t) "budget_micro";
    reject.has_value = 1;
    reject.value = 5;
    reject.has_limit = 1;
    reject.limit = 3;
    struct dialogue_event event = say(&play, MESSAGE_REJECT, &first_id, &reject.base);
    ck_assert_int_eq(event.type, DIALOGUE_REJECTED);
    ck_assert_int_eq(event.reject, REJECT_FUNDS);
    ck_assert_str_eq(event.text, "need 5, have 3");
    ck_assert_str_eq(event.field, "budget_micro");
    ck_assert_int_eq(event.value, 5);
    ck_assert_int_eq(event.limit, 3);
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 0);
    teardown(&play);
}
END_TEST

START_TEST(a_resend_repeats_id_time_signature_and_body)
{
    struct play play = setup();
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    ask_cancel(&play, &second_id);
    struct heard before;
    struct heard after;
    ck_assert(hear(&play, &before));

    play.now_ns += 60 * NS_PER_S;
    connect(&play, 200);
    ck_assert(hear(&play, &after));
    ck_assert_uint_eq(after.length, before.length);
    ck_assert_uint_eq(after.envelope.session, 200);
    ck_assert_uint_eq(after.envelope.sequence, 1);
    ck_assert_mem_eq(after.bytes, before.bytes, 8); /* magic, version, type */
    ck_assert_mem_eq(after.bytes + 24, before.bytes + 24, before.length - 24); /* id to the end */
    ck_assert(hear(&play, &after));
    ck_assert(id128_equal(&after.envelope.id, &second_id));
    ck_assert(!hear(&play, &after));
    teardown(&play);
}
END_TEST

static int64_t stamp_of_next(struct play *play, const struct id128 *id)
{
    struct heard heard;
    ask_cancel(play, id);
    ck_assert(hear(play, &heard));
    dialogue_forget(play->dialogue, id);
    return heard.envelope.created_ms;
}

START_TEST(time_is_the_brokers_whatever_our_clock_says)
{
    struct play play = setup();
    connect(&play, 100);
    ck_assert_int_eq(stamp_of_next(&play, &first_id), 5000000);

    /* A day in one session: the broker's clock leaned back by a quarter of an hour meanwhile, and
     * says so. */
    Bourse__V1__Heartbeat heartbeat = BOURSE__V1__HEARTBEAT__INIT;
    static const struct id128 no_id;
    play.now_ns += 86400 * NS_PER_S;
    play.log_time_ms = 5000000 + 85500 * 1000;
    ck_assert_int_eq(say(&play, MESSAGE_HEARTBEAT, &no_id, &heartbeat.base).type, DIALOGUE_NOTHING);
    play.now_ns += 2 * NS_PER_S;
    ck_assert_int_eq(stamp_of_next(&play, &first_id), play.log_time_ms + 2000);
    teardown(&play);
}
END_TEST

START_TEST(what_would_be_from_the_future_is_stamped_anew_under_its_id)
{
    struct play play = setup();
    struct heard before;
    struct heard after;
    play.log_time_ms = 5000000;
    connect(&play, 100);

    /* The broker is killed and away for an hour, in which its log time stands still and ours goes
     * on. */
    play.now_ns += 3500 * NS_PER_S;
    ask_cancel(&play, &first_id);
    play.now_ns += 100 * NS_PER_S;
    ask_cancel(&play, &second_id);
    play.log_time_ms += 1000;
    connect(&play, 101);
    ck_assert(hear(&play, &before));
    ck_assert(hear(&play, &after));
    ck_assert(id128_equal(&before.envelope.id, &first_id));
    ck_assert_int_eq(before.envelope.created_ms, play.log_time_ms);
    ck_assert_int_eq(after.envelope.created_ms, play.log_time_ms);
    ck_assert(identity_verify_envelope(identity_key(play.identity), &cluster, &before.envelope));
    teardown(&play);
}
END_TEST

START_TEST(what_was_answered_is_not_sent_again)
{
    struct play play = setup();
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    ask_cancel(&play, &second_id);
    struct heard heard;
    while (hear(&play, &heard)) {
    }
    Bourse__V1__Accepted accepted = BOURSE__V1__ACCEPTED__INIT;
    (void)say(&play, MESSAGE_ACCEPTED, &first_id, &accepted.base); /* leaves the second one */
    connect(&play, 200);
    ck_assert(hear(&play, &heard));
    ck_assert(id128_equal(&heard.envelope.id, &second_id));
    ck_assert(!hear(&play, &heard));
    teardown(&play);
}
END_TEST

START_TEST(what_was_dropped_beside_a_rate_is_sent_again)
{
    struct play play = setup();
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    ask_cancel(&play, &second_id);
    struct heard heard;
    while (hear(&play, &heard)) {
    }
    Bourse__V1__Reject reject = BOURSE__V1__REJECT__INIT;
    reject.code = REJECT_RATE;
    reject.text = "slow down";
    struct dialogue_event event = say(&play, MESSAGE_REJECT, &first_id, &reject.base);
    ck_assert_int_eq(event.type, DIALOGUE_REJECTED);
    ck_assert(!hear(&play, &heard));
    int64_t again_ns = play.now_ns + NS_PER_S;
    while (play.now_ns < again_ns) {
        play.now_ns = dialogue_next_deadline_ns(play.dialogue);
        ck_assert_int_le(play.now_ns, again_ns);
        dialogue_tick(play.dialogue, play.now_ns, &event);
        ck_assert_int_eq(event.type, DIALOGUE_NOTHING);
    }
    bool is_again = false;
    while (hear(&play, &heard)) {
        ck_assert(!id128_equal(&heard.envelope.id, &first_id)); /* its caller knows, and decides */
        is_again = is_again || id128_equal(&heard.envelope.id, &second_id);
    }
    ck_assert(is_again);
    teardown(&play);
}
END_TEST

START_TEST(late_and_unknown_answers_are_ignored)
{
    struct play play = setup();
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    dialogue_forget(play.dialogue, &first_id);
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 0);
    Bourse__V1__Accepted accepted = BOURSE__V1__ACCEPTED__INIT;
    struct dialogue_event event = say(&play, MESSAGE_ACCEPTED, &first_id, &accepted.base);
    ck_assert_int_eq(event.type, DIALOGUE_NOTHING);
    event = say(&play, MESSAGE_ACCEPTED, &second_id, &accepted.base);
    ck_assert_int_eq(event.type, DIALOGUE_NOTHING);
    ck_assert(dialogue_ready(play.dialogue));
    teardown(&play);
}
END_TEST

START_TEST(messages_of_an_earlier_session_are_ignored)
{
    struct play play = setup();
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    connect(&play, 200);
    Bourse__V1__Accepted accepted = BOURSE__V1__ACCEPTED__INIT;
    struct dialogue_event event =
        say_raw(&play, 100, 2, MESSAGE_ACCEPTED, &first_id, &accepted.base);
    ck_assert_int_eq(event.type, DIALOGUE_NOTHING);
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 1);

    struct heard hello;
    dialogue_connected(play.dialogue, play.now_ns, 9);
    ck_assert(hear(&play, &hello));
    Bourse__V1__Welcome welcome = welcome_example(&play);
    event =
        say_raw(&play, 300, 1, MESSAGE_WELCOME, &first_id, &welcome.base); /* not this Hello's id */
    ck_assert_int_eq(event.type, DIALOGUE_NOTHING);
    ck_assert(!dialogue_ready(play.dialogue));
    teardown(&play);
}
END_TEST

START_TEST(a_gap_in_the_sequence_ends_the_connection)
{
    struct play play = setup();
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    Bourse__V1__Accepted accepted = BOURSE__V1__ACCEPTED__INIT;
    struct dialogue_event event =
        say_raw(&play, 100, 3, MESSAGE_ACCEPTED, &first_id, &accepted.base);
    ck_assert_int_eq(event.type, DIALOGUE_LOST);
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 1);
    event = say_raw(&play, 100, 2, MESSAGE_ACCEPTED, &first_id, &accepted.base);
    ck_assert_int_eq(event.type, DIALOGUE_NOTHING); /* offline: nothing is heard */
    teardown(&play);
}
END_TEST

START_TEST(pushes_come_with_their_body)
{
    struct play play = setup();
    connect(&play, 100);
    Bourse__V1__LeaseEnd end = BOURSE__V1__LEASE_END__INIT;
    end.lease = 9;
    end.reason = LEASE_END_TERM;
    struct dialogue_event event = say(&play, MESSAGE_LEASE_END, &first_id, &end.base);
    ck_assert_int_eq(event.type, DIALOGUE_PUSH);
    ck_assert_int_eq(event.message_type, MESSAGE_LEASE_END);
    ck_assert_uint_eq(((Bourse__V1__LeaseEnd *)(void *)event.body)->lease, 9);
    codec_free(&event.body);
    teardown(&play);
}
END_TEST

START_TEST(heartbeats_go_out_and_silence_is_noticed)
{
    struct play play = setup();
    connect(&play, 100);
    struct heard heard;
    struct dialogue_event event;
    ck_assert(!hear(&play, &heard));
    ck_assert_int_eq(dialogue_next_deadline_ns(play.dialogue), play.now_ns + NS_PER_S);

    play.now_ns += NS_PER_S - 1;
    dialogue_tick(play.dialogue, play.now_ns, &event);
    ck_assert(!hear(&play, &heard));
    play.now_ns += 1;
    dialogue_tick(play.dialogue, play.now_ns, &event);
    ck_assert_int_eq(event.type, DIALOGUE_NOTHING);
    ck_assert(hear(&play, &heard));
    ck_assert_uint_eq(heard.envelope.type, MESSAGE_HEARTBEAT);

    Bourse__V1__Heartbeat beat = BOURSE__V1__HEARTBEAT__INIT;
    event = say(&play, MESSAGE_HEARTBEAT, &first_id, &beat.base); /* puts silence off */
    ck_assert_int_eq(event.type, DIALOGUE_NOTHING);
    int64_t heard_ns = play.now_ns;
    play.now_ns = heard_ns + 3 * NS_PER_S - 1;
    dialogue_tick(play.dialogue, play.now_ns, &event);
    ck_assert_int_eq(event.type, DIALOGUE_NOTHING);
    play.now_ns += 1;
    dialogue_tick(play.dialogue, play.now_ns, &event);
    ck_assert_int_eq(event.type, DIALOGUE_LOST);
    ck_assert(!dialogue_ready(play.dialogue));
    ck_assert(!hear(&play, &heard));
    ck_assert_int_eq(dialogue_next_deadline_ns(play.dialogue), INT64_MAX);
    teardown(&play);
}
END_TEST

START_TEST(the_wait_grows_with_jitter_and_starts_anew_after_a_welcome)
{
    struct play play = setup();
    int64_t most_ns = 100 * NS_PER_MS;
    bool differs = false;
    int64_t first_wait_ns = 0;
    for (uint64_t i = 0; i < 20; i++) {
        dialogue_connected(play.dialogue, play.now_ns, 1000 + i);
        play.now_ns += 5 * NS_PER_S;
        struct dialogue_event event;
        dialogue_tick(play.dialogue, play.now_ns, &event);
        ck_assert_int_eq(event.type, DIALOGUE_LOST);
        ck_assert_int_ge(event.wait_ns, most_ns / 2);
        ck_assert_int_le(event.wait_ns, most_ns);
        differs = differs || (i > 10 && event.wait_ns != first_wait_ns);
        first_wait_ns = event.wait_ns;
        most_ns = 2 * most_ns < 5 * NS_PER_S ? 2 * most_ns : 5 * NS_PER_S;
    }
    ck_assert(differs);
    connect(&play, 100);
    play.now_ns += 3 * NS_PER_S;
    struct dialogue_event event;
    dialogue_tick(play.dialogue, play.now_ns, &event);
    ck_assert_int_eq(event.type, DIALOGUE_LOST);
    ck_assert_int_le(event.wait_ns, 100 * NS_PER_MS);
    teardown(&play);
}
END_TEST

START_TEST(a_broker_that_forgot_the_session_is_greeted_again)
{
    struct play play = setup();
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    struct heard heard;
    ck_assert(hear(&play, &heard));
    Bourse__V1__Reject reject = BOURSE__V1__REJECT__INIT;
    reject.code = REJECT_SESSION;
    reject.text = "say Hello";
    struct dialogue_event event = say_raw(&play, 0, 0, MESSAGE_REJECT, &first_id, &reject.base);
    ck_assert_int_eq(event.type, DIALOGUE_LOST);
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 1);
    connect(&play, 200);
    ck_assert(hear(&play, &heard));
    ck_assert(id128_equal(&heard.envelope.id, &first_id));
    teardown(&play);
}
END_TEST

START_TEST(a_refused_hello_is_lost_or_broken)
{
    struct play play = setup();
    struct heard hello;
    dialogue_connected(play.dialogue, play.now_ns, 1);
    ck_assert(hear(&play, &hello));
    Bourse__V1__Reject reject = BOURSE__V1__REJECT__INIT;
    reject.code = REJECT_BUSY;
    reject.text = "too many sessions";
    struct dialogue_event event =
        say_raw(&play, 0, 1, MESSAGE_REJECT, &hello.envelope.id, &reject.base);
    ck_assert_int_eq(event.type, DIALOGUE_LOST);
    ck_assert_int_eq(event.reject, REJECT_BUSY);

    dialogue_connected(play.dialogue, play.now_ns, 2);
    ck_assert(hear(&play, &hello));
    reject.code = REJECT_VERSION;
    event = say_raw(&play, 0, 1, MESSAGE_REJECT, &hello.envelope.id, &reject.base);
    ck_assert_int_eq(event.type, DIALOGUE_BROKEN);
    teardown(&play);
}
END_TEST

START_TEST(nonsense_breaks_the_connection_and_loses_nothing)
{
    static const uint8_t nonsense[] =
        "not a message of ours at all, however long it may be; and it is longer than the "
        "head of an envelope, so that the magic decides it";
    struct play play = setup();
    struct dialogue_event event;
    ask_cancel(&play, &first_id);
    for (size_t length = 0; length <= sizeof nonsense; length += sizeof nonsense / 3) {
        connect(&play, 100 + length);
        dialogue_incoming(play.dialogue, play.now_ns, nonsense, length, &event);
        ck_assert_int_eq(event.type, DIALOGUE_BROKEN);
        ck_assert_uint_gt(strlen(event.text), 0);
        ck_assert_uint_eq(dialogue_pending(play.dialogue), 1);
    }
    connect(&play, 1);
    Bourse__V1__LeaseEnd end = BOURSE__V1__LEASE_END__INIT;
    end.lease = 9;
    end.reason = 1000;
    event = say(&play, MESSAGE_LEASE_END, &first_id, &end.base);
    ck_assert_int_eq(event.type, DIALOGUE_BROKEN);
    ck_assert_ptr_nonnull(strstr(event.text, "reason"));
    teardown(&play);
}
END_TEST

START_TEST(a_message_that_is_too_large_is_not_called_malformed)
{
    static uint8_t much[LIMIT_SMALL_BODY_BYTES];
    struct play play = setup();
    connect(&play, 1);
    ProtobufCMessageUnknownField more = {.tag = 100,
                                         .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                         .len = sizeof much,
                                         .data = much};
    much[0] = 0xfe; /* how many follow, as protobuf-c keeps it: 4094 */
    much[1] = 0x1f;
    Bourse__V1__LeaseEnd end = BOURSE__V1__LEASE_END__INIT;
    end.lease = 9;
    end.reason = LEASE_END_RETURNED;
    end.base.n_unknown_fields = 1;
    end.base.unknown_fields = &more;
    struct dialogue_event event = say(&play, MESSAGE_LEASE_END, &first_id, &end.base);
    ck_assert_int_eq(event.type, DIALOGUE_BROKEN);
    ck_assert_str_eq(event.text, "the broker sent a message that is larger, or takes more memory, "
                                 "than it may (lease-end, at most 4096 bytes)");
    teardown(&play);
}
END_TEST

START_TEST(an_answer_of_the_wrong_type_breaks_the_connection)
{
    struct play play = setup();
    connect(&play, 100);
    ask_balance(&play, &first_id);
    Bourse__V1__Accepted accepted = BOURSE__V1__ACCEPTED__INIT;
    struct dialogue_event event = say(&play, MESSAGE_ACCEPTED, &first_id, &accepted.base);
    ck_assert_int_eq(event.type, DIALOGUE_BROKEN);
    ck_assert_uint_eq(dialogue_pending(play.dialogue), 1);
    teardown(&play);
}
END_TEST

START_TEST(another_market_at_the_same_address_is_refused)
{
    struct play play = setup();
    connect(&play, 100);
    struct heard hello;
    dialogue_connected(play.dialogue, play.now_ns, 5);
    ck_assert(hear(&play, &hello));
    Bourse__V1__Welcome welcome = welcome_example(&play);
    uint8_t other[16] = {0xc2};
    welcome.cluster.data = other;
    struct dialogue_event event =
        say_raw(&play, 100, 1, MESSAGE_WELCOME, &hello.envelope.id, &welcome.base);
    ck_assert_int_eq(event.type, DIALOGUE_BROKEN);
    teardown(&play);
}
END_TEST

START_TEST(pending_requests_are_capped_by_count_and_by_bytes)
{
    struct play play = setup();
    connect(&play, 100);
    for (uint8_t i = 1; i <= PENDING_MAX; i++) {
        ask_balance(&play, &(struct id128){{i}});
    }
    Bourse__V1__BalanceRequest balance = BOURSE__V1__BALANCE_REQUEST__INIT;
    struct id128 id = {{99}};
    ck_assert_int_eq(
        dialogue_request(play.dialogue, play.now_ns, MESSAGE_BALANCE_REQUEST, &id, &balance.base),
        DIALOGUE_FULL);
    dialogue_forget(play.dialogue, &(struct id128){{1}});

    char note[LIMIT_SMALL_BODY_BYTES + 1];
    memset(note, 'n', sizeof note);
    note[PENDING_BYTES_MAX] = '\0';
    Bourse__V1__Halt halt = BOURSE__V1__HALT__INIT;
    halt.reason = note;
    ck_assert_int_eq(dialogue_request(play.dialogue, play.now_ns, MESSAGE_HALT, &id, &halt.base),
                     DIALOGUE_FULL);
    note[PENDING_BYTES_MAX] = 'n';
    note[LIMIT_SMALL_BODY_BYTES] = '\0';
    ck_assert_int_eq(dialogue_request(play.dialogue, play.now_ns, MESSAGE_HALT, &id, &halt.base),
                     DIALOGUE_TOO_LARGE);
    ck_assert_uint_eq(dialogue_pending(play.dialogue), PENDING_MAX - 1);
    teardown(&play);
}
END_TEST

START_TEST(what_the_connection_did_not_take_is_given_again)
{
    struct play play = setup();
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    ask_cancel(&play, &second_id);
    struct heard once;
    struct heard again;
    ck_assert(hear(&play, &once));
    dialogue_unsent(play.dialogue);
    ck_assert(hear(&play, &again));
    ck_assert_uint_eq(again.length, once.length);
    ck_assert_mem_eq(again.bytes, once.bytes, once.length);
    ck_assert(hear(&play, &again));
    ck_assert_uint_eq(again.envelope.sequence, once.envelope.sequence + 1);
    dialogue_unsent(play.dialogue);
    connect(&play, 200); /* hears the Hello, not the message given back */
    teardown(&play);
}
END_TEST

START_TEST(a_goodbye_is_the_last_message)
{
    struct play play = setup();
    ck_assert_int_eq(dialogue_goodbye(play.dialogue, play.now_ns, "early"), DIALOGUE_NOT_READY);
    connect(&play, 100);
    ck_assert_int_eq(dialogue_goodbye(play.dialogue, play.now_ns, "going home"), DIALOGUE_OK);
    ask_cancel(&play, &first_id);
    struct heard heard;
    ck_assert(hear(&play, &heard));
    ck_assert_uint_eq(heard.envelope.type, MESSAGE_GOODBYE);
    ck_assert(!hear(&play, &heard));
    teardown(&play);
}
END_TEST

SUITE("dialogue", NULL, NULL, TEST(hello_opens_and_welcome_answers),
      TEST(requests_wait_for_welcome_and_then_go_out_in_order), TEST(answers_end_requests),
      TEST(a_refusal_carries_code_text_and_numbers),
      TEST(a_resend_repeats_id_time_signature_and_body),
      TEST(time_is_the_brokers_whatever_our_clock_says),
      TEST(what_would_be_from_the_future_is_stamped_anew_under_its_id),
      TEST(what_was_answered_is_not_sent_again), TEST(what_was_dropped_beside_a_rate_is_sent_again),
      TEST(late_and_unknown_answers_are_ignored), TEST(messages_of_an_earlier_session_are_ignored),
      TEST(a_gap_in_the_sequence_ends_the_connection), TEST(pushes_come_with_their_body),
      TEST(heartbeats_go_out_and_silence_is_noticed),
      TEST(the_wait_grows_with_jitter_and_starts_anew_after_a_welcome),
      TEST(a_broker_that_forgot_the_session_is_greeted_again),
      TEST(a_refused_hello_is_lost_or_broken),
      TEST(nonsense_breaks_the_connection_and_loses_nothing),
      TEST(a_message_that_is_too_large_is_not_called_malformed),
      TEST(an_answer_of_the_wrong_type_breaks_the_connection),
      TEST(another_market_at_the_same_address_is_refused),
      TEST(pending_requests_are_capped_by_count_and_by_bytes),
      TEST(what_the_connection_did_not_take_is_given_again), TEST(a_goodbye_is_the_last_message))
