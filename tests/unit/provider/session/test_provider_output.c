/* The agent sends live output only to a broker that takes it, one message at a time. */
#include "tests/support/agent_play.h"
#include "tests/support/suite.h"

static enum agent_status post(struct play *play, size_t count)
{
    static uint8_t bytes[] = "text";
    Bourse__V1__OutputPiece piece = BOURSE__V1__OUTPUT_PIECE__INIT;
    Bourse__V1__OutputPiece *pieces[] = {&piece};
    piece.lease = 1;
    piece.attempt = 1;
    piece.stream = OUTPUT_STREAM_OUT;
    piece.bytes = (ProtobufCBinaryData){.len = 4, .data = bytes};
    const enum agent_status status =
        agent_session_post_output(play->session, play->now_ns, pieces, count);
    listen(play);
    return status;
}

static void answer(struct play *play, const struct seen *seen, size_t count)
{
    Bourse__V1__OutputLease first = BOURSE__V1__OUTPUT_LEASE__INIT;
    Bourse__V1__OutputLease *leases[] = {&first};
    Bourse__V1__OutputWanted body = BOURSE__V1__OUTPUT_WANTED__INIT;
    first.lease = 7;
    body.n_leases = count;
    body.leases = leases;
    say(play, MESSAGE_OUTPUT_WANTED, &seen->id, &body.base);
}

static size_t followed(const struct play *play)
{
    size_t count = 0;
    const uint64_t *leases = agent_session_followed(play->session, &count);
    ck_assert(count == 0 || leases[0] == 7);
    return count;
}

START_TEST(an_answer_says_what_is_followed)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    ck_assert_int_eq(agent_session_output_from_ns(play.session), INT64_MAX); /* no broker yet */
    ck_assert_int_eq(post(&play, 0), AGENT_UNKNOWN);
    settle(&play);
    ck_assert(!agent_session_output_waits(play.session));
    ck_assert_int_eq(post(&play, 0), AGENT_OK);
    ck_assert(agent_session_output_waits(play.session));
    ck_assert_uint_eq(followed(&play), 0);
    answer(&play, find_seen(&play, MESSAGE_OUTPUT_POST), 1);
    ck_assert(!agent_session_output_waits(play.session));
    ck_assert_uint_eq(followed(&play), 1);
    /* A new connection has other followers. */
    agent_session_connected(play.session, play.now_ns, 1);
    ck_assert_uint_eq(followed(&play), 0);
}
END_TEST

START_TEST(the_last_message_counts_when_one_overtakes_another)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    ck_assert_int_eq(post(&play, 0), AGENT_OK);
    const struct seen first = *last_seen(&play, MESSAGE_OUTPUT_POST);
    ck_assert_int_eq(post(&play, 1), AGENT_OK);
    answer(&play, &first, 1);
    ck_assert_uint_eq(followed(&play), 0);
    ck_assert(agent_session_output_waits(play.session));
    answer(&play, last_seen(&play, MESSAGE_OUTPUT_POST), 1);
    ck_assert_uint_eq(followed(&play), 1);
}
END_TEST

START_TEST(an_older_broker_is_not_asked_again)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    ck_assert_int_eq(post(&play, 0), AGENT_OK);
    reject(&play, last_seen(&play, MESSAGE_OUTPUT_POST), REJECT_TYPE);
    ck_assert_int_eq(agent_session_output_from_ns(play.session), INT64_MAX);
    ck_assert_int_eq(post(&play, 0), AGENT_UNKNOWN);
}
END_TEST

START_TEST(a_busy_broker_is_asked_later)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    ck_assert_int_eq(post(&play, 0), AGENT_OK);
    reject(&play, last_seen(&play, MESSAGE_OUTPUT_POST), REJECT_BUSY);
    ck_assert_int_eq(agent_session_output_from_ns(play.session), play.now_ns + 2 * NS_PER_S);
    ck_assert_int_eq(post(&play, 0), AGENT_UNKNOWN);
    play.now_ns += 3 * NS_PER_S;
    ck_assert_int_eq(post(&play, 0), AGENT_OK);
}
END_TEST

SUITE("provider_output", NULL, NULL, TEST(an_answer_says_what_is_followed),
      TEST(the_last_message_counts_when_one_overtakes_another),
      TEST(an_older_broker_is_not_asked_again), TEST(a_busy_broker_is_asked_later))
