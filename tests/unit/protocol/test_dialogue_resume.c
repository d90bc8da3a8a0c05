/* A dialogue that is broken off: gone on with where it was (P15), and begun again by many at
 * once. */
#include "tests/support/dialogue_play.h"
#include "tests/support/suite.h"

/* ---- resuming (P15) */

struct resuming { /* what a Hello asks to go on with; zeros: nothing */
    uint64_t session, sequence;
};

static struct resuming resuming_of(const struct heard *heard)
{
    ProtobufCMessage *body;
    ck_assert_int_eq(
        codec_decode(MESSAGE_HELLO, heard->envelope.body, heard->envelope.body_length, &body, NULL),
        CODEC_OK);
    const Bourse__V1__Hello *hello = (const void *)body;
    ck_assert_int_eq(hello->has_resume_session, hello->has_resume_sequence);
    struct resuming resuming = {hello->resume_session, hello->resume_sequence};
    codec_free(&body);
    return resuming;
}

static void push_event(struct play *play, enum dialogue_event_type expected)
{
    static const struct id128 none;
    Bourse__V1__LeaseEnd end = BOURSE__V1__LEASE_END__INIT;
    end.lease = 1;
    struct dialogue_event event = say(play, MESSAGE_LEASE_END, &none, &end.base);
    ck_assert_int_eq(event.type, expected);
    codec_free(&event.body);
}

/* Connected once, with three messages seen; then the connection is lost and made anew. */
static void lose_connection(struct play *play, struct heard *ret_hello)
{
    connect(play, 100);
    push_event(play, DIALOGUE_PUSH);
    push_event(play, DIALOGUE_PUSH);
    dialogue_connected(play->dialogue, play->now_ns, 9);
    ck_assert(hear(play, ret_hello));
}

static struct dialogue_event resume(struct play *play, const struct heard *hello, uint64_t session,
                                    uint64_t sequence, uint32_t missed)
{
    play->session = session;
    play->sequence_out = sequence;
    Bourse__V1__Welcome welcome = welcome_example(play);
    welcome.has_resumed = welcome.has_missed = 1;
    welcome.resumed = 1;
    welcome.missed = missed;
    return say_raw(play, session, sequence, MESSAGE_WELCOME, &hello->envelope.id, &welcome.base);
}

START_TEST(a_new_connection_asks_to_go_on_after_the_last_number_seen)
{
    struct play play = setup();
    struct heard hello;
    lose_connection(&play, &hello);
    ck_assert_uint_eq(resuming_of(&hello).session, 100);
    ck_assert_uint_eq(resuming_of(&hello).sequence, 3);

    /* No Welcome comes: the next connection asks for the same. */
    dialogue_connected(play.dialogue, play.now_ns, 10);
    ck_assert(hear(&play, &hello));
    ck_assert_uint_eq(resuming_of(&hello).session, 100);
    ck_assert_uint_eq(resuming_of(&hello).sequence, 3);
    teardown(&play);
}
END_TEST

START_TEST(what_was_missed_comes_first_and_requests_wait_for_it)
{
    struct play play = setup();
    struct heard heard;
    struct heard hello;
    connect(&play, 100);
    ask_cancel(&play, &first_id);
    ask_balance(&play, &second_id);
    ck_assert(hear(&play, &heard) && hear(&play, &heard));
    dialogue_connected(play.dialogue, play.now_ns, 9);
    ck_assert(hear(&play, &hello));
    ck_assert_int_eq(resume(&play, &hello, 100, 1, 2).type, DIALOGUE_READY);
    ck_assert(dialogue_catching_up(play.dialogue));
    ck_assert(!hear(&play, &heard));

    push_event(&play, DIALOGUE_PUSH);
    ck_assert(!hear(&play, &heard));
    Bourse__V1__Accepted accepted = BOURSE__V1__ACCEPTED__INIT;
    accepted.index = 7;
    ck_assert_int_eq(say(&play, MESSAGE_ACCEPTED, &first_id, &accepted.base).type,
                     DIALOGUE_ACCEPTED);
    ck_assert(!dialogue_catching_up(play.dialogue));
    ck_assert(hear(&play, &heard)); /* only what has no answer is sent again */
    ck_assert(id128_equal(&heard.envelope.id, &second_id));
    ck_assert_uint_eq(heard.envelope.session, 100);
    ck_assert_uint_eq(heard.envelope.sequence, 1);
    ck_assert(!hear(&play, &heard));
    teardown(&play);
}
END_TEST

START_TEST(a_session_that_cannot_go_on_is_a_new_one)
{
    struct play play = setup();
    struct heard hello;
    lose_connection(&play, &hello);
    play.session = 555;
    play.sequence_out = 0;
    Bourse__V1__Welcome welcome = welcome_example(&play);
    welcome.has_gap = 1;
    welcome.gap = REJECT_GAP_TOO_OLD;
    struct dialogue_event event = say(&play, MESSAGE_WELCOME, &hello.envelope.id, &welcome.base);
    ck_assert_int_eq(event.type, DIALOGUE_READY);
    ck_assert(!dialogue_catching_up(play.dialogue));
    push_event(&play, DIALOGUE_PUSH);
    teardown(&play);
}
END_TEST

START_TEST(a_welcome_to_a_session_or_number_not_asked_for_is_refused)
{
    static const struct {
        uint64_t session, sequence;
    } wrong[] = {{101, 3}, {100, 2}, {100, 4}, {100, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct play play = setup();
        struct heard hello;
        lose_connection(&play, &hello);
        struct dialogue_event event = resume(&play, &hello, wrong[i].session, wrong[i].sequence, 0);
        ck_assert_int_eq(event.type, DIALOGUE_BROKEN);
        /* The request that broke the connection once is not asked for again. */
        dialogue_connected(play.dialogue, play.now_ns, 10);
        ck_assert(hear(&play, &hello));
        ck_assert_uint_eq(resuming_of(&hello).session, 0);
        teardown(&play);
    }
}
END_TEST

START_TEST(a_first_connection_resumes_nothing)
{
    struct play play = setup();
    struct heard hello;
    dialogue_connected(play.dialogue, play.now_ns, 9);
    ck_assert(hear(&play, &hello));
    ck_assert_int_eq(resume(&play, &hello, 0, 0, 0).type, DIALOGUE_BROKEN);
    teardown(&play);
}
END_TEST

/* ---- coming back together */

START_TEST(a_thousand_clients_do_not_come_back_in_one_second)
{
    enum { CLIENTS = 1000, SPREAD_MS = 5000 };
    unsigned in_second[8] = {0};
    int64_t least_ns = INT64_MAX;
    struct play play = setup();
    for (uint64_t i = 0; i < CLIENTS; i++) {
        struct heard hello;
        static const struct id128 none;
        dialogue_connected(play.dialogue, play.now_ns, i);
        ck_assert(hear(&play, &hello));
        play.session = 1000 + i;
        play.sequence_out = 0;
        Bourse__V1__Welcome welcome = welcome_example(&play);
        ck_assert_int_eq(say(&play, MESSAGE_WELCOME, &hello.envelope.id, &welcome.base).type,
                         DIALOGUE_READY);
        Bourse__V1__Heartbeat beat = BOURSE__V1__HEARTBEAT__INIT;
        beat.has_spread_ms = 1;
        beat.spread_ms = SPREAD_MS; /* what a broker with a thousand sessions says */
        (void)say(&play, MESSAGE_HEARTBEAT, &none, &beat.base);
        struct dialogue_event event;
        play.now_ns += 4 * HEARTBEAT_MS * NS_PER_MS;
        dialogue_tick(play.dialogue, play.now_ns, &event);
        ck_assert_int_eq(event.type, DIALOGUE_LOST);
        ck_assert_int_lt(event.wait_ns, (SPREAD_MS + 100) * NS_PER_MS + 1);
        in_second[event.wait_ns / NS_PER_S]++;
        least_ns = event.wait_ns < least_ns ? event.wait_ns : least_ns;
    }
    for (size_t i = 0; i < 8; i++) {
        ck_assert_uint_lt(in_second[i], CLIENTS / 3);
    }
    ck_assert_int_ge(least_ns, 50 * NS_PER_MS); /* and none is back without a pause */
    teardown(&play);
}
END_TEST

START_TEST(without_a_broker_the_waits_grow_and_stay_within_their_bound)
{
    struct play play = setup();
    int64_t longest_ns = 0;
    for (uint64_t i = 0; i < 40; i++) {
        struct heard hello;
        struct dialogue_event event;
        dialogue_connected(play.dialogue, play.now_ns, i);
        (void)hear(&play, &hello);
        play.now_ns += 6 * NS_PER_S; /* no Welcome in that time */
        dialogue_tick(play.dialogue, play.now_ns, &event);
        ck_assert_int_eq(event.type, DIALOGUE_LOST);
        ck_assert_int_ge(event.wait_ns, i < 6 ? 50 * NS_PER_MS : 2500 * NS_PER_MS);
        longest_ns = event.wait_ns > longest_ns ? event.wait_ns : longest_ns;
    }
    ck_assert_int_le(longest_ns, 5 * NS_PER_S);
    teardown(&play);
}
END_TEST

START_TEST(a_message_that_comes_twice_counts_once)
{
    struct play play = setup();
    static const struct id128 none;
    Bourse__V1__LeaseEnd end = BOURSE__V1__LEASE_END__INIT;
    end.lease = 1;
    connect(&play, 100);
    struct dialogue_event event = say_raw(&play, 100, 2, MESSAGE_LEASE_END, &none, &end.base);
    ck_assert_int_eq(event.type, DIALOGUE_PUSH);
    codec_free(&event.body);
    event = say_raw(&play, 100, 2, MESSAGE_LEASE_END, &none, &end.base);
    ck_assert_int_eq(event.type, DIALOGUE_NOTHING);
    event = say_raw(&play, 100, 3, MESSAGE_LEASE_END, &none, &end.base);
    ck_assert_int_eq(event.type, DIALOGUE_PUSH);
    codec_free(&event.body);
    teardown(&play);
}
END_TEST

SUITE("dialogue resume", NULL, NULL, TEST(a_message_that_comes_twice_counts_once),
      TEST(a_new_connection_asks_to_go_on_after_the_last_number_seen),
      TEST(what_was_missed_comes_first_and_requests_wait_for_it),
      TEST(a_session_that_cannot_go_on_is_a_new_one),
      TEST(a_welcome_to_a_session_or_number_not_asked_for_is_refused),
      TEST(a_first_connection_resumes_nothing),
      TEST(a_thousand_clients_do_not_come_back_in_one_second),
      TEST(without_a_broker_the_waits_grow_and_stay_within_their_bound))
