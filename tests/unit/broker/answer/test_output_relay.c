/* The tests pass live output on: to whoever follows the job, from whoever runs it, up to the caps.
 */
#include "broker/answer/output_relay.h"

#include "base/checked.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { FEED = 77, AGENT = 10, OTHER_AGENT = 11, FOLLOWER = 20 };

static struct output_relay *relay;
static struct id128 job;
static struct exchange_work work; /* what PROVIDER runs of the job */

static void open_market(void)
{
    set_up();
    relay = output_relay_create(FEED);
    ck_assert_ptr_nonnull(relay);
    offer(PROVIDER, 2, price);
    job = submit(2, 100);
    ck_assert_ptr_nonnull(nth(EFFECT_DISPATCH, 0));
    work = nth(EFFECT_DISPATCH, 0)->work;
}

static void close_market(void)
{
    output_relay_destroy(&relay);
    tear_down();
}

static struct request request_of(uint64_t session, uint32_t account, enum message_type type,
                                 ProtobufCMessage *body, uint8_t id)
{
    struct request request = {.session = session, .account = account};
    request.envelope.type = (uint16_t)type;
    request.envelope.id.bytes[0] = id;
    request.translation.body = body;
    return request;
}

/* Returns the answer at once, or NULL when it waits. */
static struct outgoing *follow(uint32_t account, uint8_t id, uint64_t after, int64_t now_ns)
{
    Bourse__V1__OutputRequest body = BOURSE__V1__OUTPUT_REQUEST__INIT;
    struct outgoing *former;
    body.job = (ProtobufCBinaryData){.len = sizeof job, .data = job.bytes};
    body.has_feed = body.has_after = body.has_wait_ms = true;
    body.feed = FEED;
    body.after = after;
    body.wait_ms = 1000;
    struct request request = request_of(FOLLOWER, account, MESSAGE_OUTPUT_REQUEST, &body.base, id);
    struct outgoing *answer =
        output_relay_follow(relay, market.exchange, &request, now_ns, &former);
    outgoing_destroy(&former);
    return answer;
}

/* Posts `size` bytes at `offset` of the standard output; size 0: nothing. */
static struct outgoing *post(uint32_t account, const struct exchange_work *of, uint64_t offset,
                             size_t size, int64_t now_ns)
{
    static uint8_t bytes[LIMIT_OUTPUT_BYTES];
    Bourse__V1__OutputPiece piece = BOURSE__V1__OUTPUT_PIECE__INIT;
    Bourse__V1__OutputPiece *pieces[] = {&piece};
    Bourse__V1__OutputPost body = BOURSE__V1__OUTPUT_POST__INIT;
    struct outgoing *former;
    piece.lease = of->lease;
    piece.index = of->index;
    piece.attempt = of->attempt;
    piece.stream = OUTPUT_STREAM_OUT;
    piece.offset = offset;
    piece.bytes = (ProtobufCBinaryData){.len = size, .data = bytes};
    body.n_pieces = size > 0;
    body.pieces = pieces;
    static uint8_t id;
    struct request request = request_of(account == PROVIDER ? AGENT : OTHER_AGENT, account,
                                        MESSAGE_OUTPUT_POST, &body.base, ++id);
    struct outgoing *answer = output_relay_post(relay, market.exchange, &request, now_ns, &former);
    outgoing_destroy(&former);
    return answer;
}

struct got {
    size_t pieces;
    uint64_t through, first_offset, bytes;
    bool more;
};

/* Reads a follower's answer and frees it. */
static struct got read_reply(struct outgoing *outgoing)
{
    ProtobufCMessage *decoded = NULL;
    struct codec_error error = {0};
    ck_assert_ptr_nonnull(outgoing);
    ck_assert_int_eq(outgoing->type, MESSAGE_OUTPUT_REPLY);
    ck_assert_uint_eq(outgoing->session, FOLLOWER);
    ck_assert_int_eq(
        codec_decode(MESSAGE_OUTPUT_REPLY, outgoing->body, outgoing->length, &decoded, &error),
        CODEC_OK);
    const Bourse__V1__OutputReply *reply = (const void *)decoded;
    ck_assert_uint_eq(reply->feed, FEED);
    struct got got = {.pieces = reply->n_pieces, .through = reply->through, .more = reply->more};
    for (size_t i = 0; i < reply->n_pieces; i++) {
        got.first_offset = i == 0 ? reply->pieces[i]->offset : got.first_offset;
        got.bytes += reply->pieces[i]->bytes.len;
        ck_assert_uint_eq(reply->pieces[i]->lease, 0); /* a follower hears of no lease */
    }
    codec_free(&decoded);
    outgoing_destroy(&outgoing);
    return got;
}

/* Reads an agent's answer and frees it; returns the number of leases. */
static size_t read_wanted(struct outgoing *outgoing)
{
    ProtobufCMessage *decoded = NULL;
    struct codec_error error = {0};
    ck_assert_ptr_nonnull(outgoing);
    ck_assert_int_eq(outgoing->type, MESSAGE_OUTPUT_WANTED);
    ck_assert_int_eq(
        codec_decode(MESSAGE_OUTPUT_WANTED, outgoing->body, outgoing->length, &decoded, &error),
        CODEC_OK);
    const size_t count = ((const Bourse__V1__OutputWanted *)(const void *)decoded)->n_leases;
    codec_free(&decoded);
    outgoing_destroy(&outgoing);
    return count;
}

static struct outgoing *next(int64_t now_ns)
{
    return output_relay_next(relay, market.exchange, now_ns);
}

START_TEST(an_agent_waits_until_its_job_is_followed)
{
    ck_assert_ptr_null(post(PROVIDER, &work, 0, 0, 1));
    ck_assert_ptr_null(next(2));
    ck_assert_ptr_null(follow(CONSUMER, 1, 0, 3));
    ck_assert_uint_eq(read_wanted(next(4)), 1);
    ck_assert_ptr_null(next(4));
    ck_assert_uint_eq(read_wanted(post(PROVIDER, &work, 0, 100, 5)), 1);
    struct got got = read_reply(next(5 + OUTPUT_RELAY_INTERVAL_NS));
    ck_assert_uint_eq(got.pieces, 1);
    ck_assert_uint_eq(got.bytes, 100);
    ck_assert_uint_eq(got.through, 1);
}
END_TEST

START_TEST(a_new_lease_of_a_followed_job_lets_the_agent_go)
{
    ck_assert_ptr_null(follow(CONSUMER, 1, 0, 1));
    ck_assert_ptr_null(post(OTHER_PROVIDER, &work, 0, 0, 1));
    ck_assert_ptr_null(next(2));
    output_relay_granted(relay, OTHER_PROVIDER, &(struct id128){{9}}); /* of another job */
    ck_assert_ptr_null(next(2));
    output_relay_granted(relay, OTHER_PROVIDER, &job);
    ck_assert_uint_eq(read_wanted(next(2)), 0);
}
END_TEST

START_TEST(only_the_owner_follows)
{
    struct outgoing *answer = follow(PROVIDER, 1, 0, 1);
    ck_assert_ptr_nonnull(answer);
    ck_assert_int_eq(answer->refused, REJECT_NOT_FOUND);
    outgoing_destroy(&answer);
    ck_assert_ptr_null(post(PROVIDER, &work, 0, 100, 2)); /* nobody follows: it waits */
}
END_TEST

START_TEST(lies_about_leases_and_attempts_are_dropped)
{
    ck_assert_ptr_null(follow(CONSUMER, 1, 0, 1));
    ck_assert_ptr_null(post(OTHER_PROVIDER, &work, 0, 100, 2));
    const struct exchange_work lies[] = {
        {.lease = work.lease + 1000, .index = work.index, .attempt = work.attempt},
        {.lease = work.lease, .index = work.index, .attempt = work.attempt + 1},
        {.lease = work.lease, .index = UINT32_MAX, .attempt = work.attempt},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        ck_assert_uint_eq(read_wanted(post(PROVIDER, &lies[i], 0, 100, 3)), 1);
    }
    ck_assert_ptr_null(next(3 + OUTPUT_RELAY_INTERVAL_NS));
    /* Any offset may stand in a true piece: the follower judges it. */
    ck_assert_uint_eq(read_wanted(post(PROVIDER, &work, INT64_MAX, 1, 4)), 1);
    ck_assert_uint_eq(read_reply(next(4 + OUTPUT_RELAY_INTERVAL_NS)).pieces, 1);
}
END_TEST

START_TEST(a_result_ends_the_output_of_its_attempt)
{
    ck_assert_ptr_null(follow(CONSUMER, 1, 0, 1));
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, work, OUTCOME_OK, NS_PER_S / 2);
    struct outgoing *answer = post(PROVIDER, &work, 0, 100, 2);
    outgoing_destroy(&answer);
    ck_assert_ptr_null(next(2 + OUTPUT_RELAY_INTERVAL_NS));
}
END_TEST

/* Posts pieces of the largest size; returns how many. */
static size_t flood(size_t count, int64_t now_ns)
{
    for (size_t i = 0; i < count; i++) {
        (void)read_wanted(
            post(PROVIDER, &work, i * LIMIT_OUTPUT_BYTES, LIMIT_OUTPUT_BYTES, now_ns));
    }
    return count;
}

START_TEST(what_is_above_the_rate_is_dropped)
{
    const size_t most = OUTPUT_RELAY_JOB_RATE / (LIMIT_OUTPUT_BYTES + OUTPUT_RELAY_PIECE_BYTES);
    ck_assert_ptr_null(follow(CONSUMER, 1, 0, NS_PER_S));
    flood(most + 100, NS_PER_S);
    struct got got = read_reply(next(NS_PER_S + OUTPUT_RELAY_INTERVAL_NS));
    ck_assert(got.more);
    ck_assert_uint_gt(got.first_offset, 0); /* the oldest pieces are above what is kept */
    uint64_t kept = 0;
    while (got.more) {
        kept += got.bytes;
        got = read_reply(follow(CONSUMER, 2, got.through, NS_PER_S));
    }
    kept += got.bytes;
    ck_assert_uint_le(kept, OUTPUT_RELAY_KEPT_BYTES);
    ck_assert_uint_ge(kept, OUTPUT_RELAY_KEPT_BYTES - 2 * LIMIT_OUTPUT_BYTES);
    ck_assert_uint_eq(got.through, most);
    /* A second later there is room again. */
    ck_assert_ptr_null(follow(CONSUMER, 3, got.through, 2 * NS_PER_S));
    flood(1, 2 * NS_PER_S);
    ck_assert_uint_eq(read_reply(next(2 * NS_PER_S + OUTPUT_RELAY_INTERVAL_NS)).through, most + 1);
}
END_TEST

START_TEST(a_job_is_forgotten_after_its_last_follower)
{
    ck_assert_ptr_null(follow(CONSUMER, 1, 0, 1));
    output_relay_forget(relay, FOLLOWER); /* a killed follower */
    ck_assert_uint_eq(read_wanted(post(PROVIDER, &work, 0, 100, 2)), 1);
    ck_assert_ptr_null(next(1 + OUTPUT_RELAY_INTERVAL_NS + 1));
    ck_assert_ptr_null(next(2 + OUTPUT_RELAY_TERM_NS));
    ck_assert_ptr_null(post(PROVIDER, &work, 100, 100, 3 + OUTPUT_RELAY_TERM_NS)); /* it waits */
    /* The next follower begins anew. */
    ck_assert_ptr_null(follow(CONSUMER, 2, 1, 4 + OUTPUT_RELAY_TERM_NS));
    ck_assert_uint_eq(read_wanted(next(4 + OUTPUT_RELAY_TERM_NS)), 1);
}
END_TEST

START_TEST(one_account_follows_so_many_jobs)
{
    const struct id128 first = job;
    for (size_t i = 0; i < OUTPUT_RELAY_JOBS_OF_ACCOUNT; i++) {
        job = submit(1, 1);
        ck_assert_ptr_null(follow(CONSUMER, (uint8_t)(i + 1), 0, 1));
    }
    job = first;
    struct outgoing *answer = follow(CONSUMER, 200, 0, 2);
    ck_assert_ptr_nonnull(answer);
    ck_assert_int_eq(answer->refused, REJECT_BUSY);
    outgoing_destroy(&answer);
}
END_TEST

SUITE("output_relay", open_market, close_market, TEST(an_agent_waits_until_its_job_is_followed),
      TEST(a_new_lease_of_a_followed_job_lets_the_agent_go), TEST(only_the_owner_follows),
      TEST(lies_about_leases_and_attempts_are_dropped),
      TEST(a_result_ends_the_output_of_its_attempt), TEST(what_is_above_the_rate_is_dropped),
      TEST(a_job_is_forgotten_after_its_last_follower), TEST(one_account_follows_so_many_jobs))
