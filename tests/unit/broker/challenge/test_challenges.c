/* The broker challenges a device that is due, on offer and idle, and judges what comes back. */
#include "broker/challenge/challenges.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { SESSION = 10, SIDE = CHALLENGE_SIDE_LEAST, CLAIM = 1 };
/* The products of the smallest challenge take 524 ms at 1 Mflop/s. */
#define IN_TIME_NS (500 * NS_PER_MS)
#define TOO_LATE_NS (2 * NS_PER_S)
#define TRIP_NS (20 * NS_PER_MS)
#define DAY (24 * NS_PER_HOUR)

static struct challenges *challenges;
static struct id128 device;
static int64_t monotonic_ns, log_ns;
static uint8_t rolls, next_id;

static void advertise(uint32_t provider, int64_t claim, bool is_simulated)
{
    const struct attribute attributes[] = {
        {.name = "gemm_fp32", .number = claim},
        {.name = "kind", .is_text = true, .text = "cpu"},
        {.name = "simulated", .number = is_simulated},
    };
    device = (struct id128){{(uint8_t)provider}};
    const struct exchange_device offered = {.device = device,
                                            .slots = 2,
                                            .attributes = attributes,
                                            .attribute_count = 3,
                                            .label = "a cpu"};
    struct exchange_command given = command(EXCHANGE_ADVERTISE, provider);
    given.advertise = (struct exchange_advertise){&offered, 1};
    apply(&given);
}

/* Offers a device that is no core, as this word and its text say. An agent that answers for the
 * device says `challenge`. */
static void advertise_attached(const char *word, const char *text, bool is_answered)
{
    struct attribute attributes[] = {
        {.name = "", .is_text = true},
        {.name = "challenge", .is_text = true, .text = "gemm_fp32"},
        {.name = "gemm_fp32", .number = CLAIM},
        {.name = "kind", .is_text = true, .text = "gpu"},
    };
    (void)snprintf(attributes[0].name, sizeof attributes[0].name, "%s", word);
    (void)snprintf(attributes[0].text, sizeof attributes[0].text, "%s", text);
    const struct attribute older[] = {attributes[0], attributes[2], attributes[3]};
    device = (struct id128){{PROVIDER}};
    const struct exchange_device offered = {.device = device,
                                            .slots = 2,
                                            .attributes = is_answered ? attributes : older,
                                            .attribute_count = is_answered ? 4 : 3,
                                            .label = "a gpu"};
    struct exchange_command given = command(EXCHANGE_ADVERTISE, PROVIDER);
    given.advertise = (struct exchange_advertise){&offered, 1};
    apply(&given);
}

static void place_ask(uint32_t provider)
{
    struct exchange_command ask = command(EXCHANGE_ASK, provider);
    ask.ask = (struct exchange_ask){.device = device, .slots = 2, .price_micro = price};
    apply(&ask);
}

static void begin_every(int64_t every_ns)
{
    set_up();
    challenges = challenges_create(
        &(struct challenges_config){.every_ns = every_ns, .heartbeat_ns = NS_PER_S});
    ck_assert_ptr_nonnull(challenges);
    monotonic_ns = 1000 * NS_PER_S;
    log_ns = start_ns;
    rolls = next_id = 0;
    advertise(PROVIDER, CLAIM, false);
    place_ask(PROVIDER);
}

static void begin(void)
{
    begin_every(DAY);
}

static void finish(void)
{
    challenges_destroy(&challenges);
    tear_down();
}

static void pass(int64_t ns)
{
    monotonic_ns += ns;
    log_ns += ns;
}

static struct challenges_now now(void)
{
    return (struct challenges_now){
        .monotonic_ns = monotonic_ns, .log_ns = log_ns, .dice = {{++rolls}}};
}

static struct request request_of(enum message_type type, const ProtobufCMessage *body)
{
    struct request request = {.session = SESSION, .account = PROVIDER, .arrived_ns = monotonic_ns};
    request.envelope.type = (uint16_t)type;
    request.envelope.id.bytes[0] = ++next_id;
    request.translation.body = (ProtobufCMessage *)(uintptr_t)body;
    return request;
}

/* Returns the answer at once, or NULL when it waits. */
static struct outgoing *ready(const Bourse__V1__ChallengeReady *body)
{
    const struct request request = request_of(MESSAGE_CHALLENGE_READY, &body->base);
    const struct challenges_now at = now();
    struct outgoing *former = NULL;
    struct outgoing *answer = challenges_ready(challenges, market.exchange, &request, &at, &former);
    outgoing_destroy(&former);
    return answer;
}

static struct outgoing *begin_ready(void)
{
    const Bourse__V1__ChallengeReady body = BOURSE__V1__CHALLENGE_READY__INIT;
    return ready(&body);
}

static struct outgoing *next(void)
{
    const struct challenges_now at = now();
    return challenges_next(challenges, market.exchange, &at);
}

/* Waits until a challenge or a note is due, for `most_ns` at most; NULL: none is. The agent asks
 * again when its message has waited long enough. */
static struct outgoing *await(int64_t most_ns)
{
    const int64_t end_ns = monotonic_ns + most_ns;
    struct outgoing *outgoing = next();
    while (outgoing == NULL && monotonic_ns < end_ns) {
        const int64_t due_ns = challenges_due_ns(challenges);
        pass(due_ns > monotonic_ns ? (due_ns < end_ns ? due_ns : end_ns) - monotonic_ns
                                   : NS_PER_MS);
        outgoing = next();
        if (outgoing != NULL && outgoing->type == MESSAGE_REJECT) {
            outgoing_destroy(&outgoing);
            ck_assert_ptr_null(begin_ready());
        }
    }
    return outgoing;
}

static const struct challenge_fact *fact(void)
{
    return challenge_facts_find(challenges_facts(challenges), PROVIDER, &device);
}

/* Answers a challenge after `took_ns`, rightly or not, and destroys it. */
static struct outgoing *answer(struct outgoing *challenge, int64_t took_ns, bool is_right)
{
    static uint8_t digests[SIDE * CHALLENGE_DIGEST_BYTES];
    ProtobufCMessage *decoded = NULL;
    ck_assert_ptr_nonnull(challenge);
    ck_assert_int_eq(challenge->type, MESSAGE_CHALLENGE);
    ck_assert_uint_eq(challenge->session, SESSION);
    ck_assert_int_eq(
        codec_decode(MESSAGE_CHALLENGE, challenge->body, challenge->length, &decoded, NULL),
        CODEC_OK);
    const Bourse__V1__Challenge *said = (const void *)decoded;
    struct challenge_product product = {.side = said->side, .rounds = said->rounds};
    ck_assert_uint_eq(said->side, SIDE);
    ck_assert_uint_eq(said->rounds, 1);
    memcpy(product.seed.bytes, said->seed.data, sizeof product.seed.bytes);
    for (uint32_t row = 0; row < SIDE; row++) {
        int32_t sums[SIDE] = {0};
        int16_t left[SIDE];
        int16_t right[SIDE];
        challenge_product_left(&product, 0, row, left);
        for (uint32_t k = 0; k < SIDE; k++) {
            challenge_product_right(&product, 0, k, right);
            for (uint32_t j = 0; j < SIDE; j++) {
                sums[j] += left[k] * right[j];
            }
        }
        sums[0] += !is_right;
        challenge_product_digest(sums, SIDE, digests + (size_t)row * CHALLENGE_DIGEST_BYTES);
    }
    Bourse__V1__ChallengeReady body = BOURSE__V1__CHALLENGE_READY__INIT;
    body.has_device = body.has_seed = body.has_digests = true;
    body.device = said->device;
    body.seed = said->seed;
    body.digests = (ProtobufCBinaryData){.len = sizeof digests, .data = digests};
    pass(took_ns);
    struct outgoing *reply = ready(&body);
    codec_free(&decoded);
    outgoing_destroy(&challenge);
    return reply;
}

/* Writes the digests of the rows that the broker looks at with the next dice, and of no others: the
 * products of all rows would take a fast device. */
static void answer_rows(const struct challenge_product *product, bool is_right, uint8_t *digests)
{
    static int16_t factor[CHALLENGE_CHAIN_SIDE_MOST * CHALLENGE_CHAIN_SIDE_MOST];
    const struct hash32 roll = {{(uint8_t)(rolls + 1)}};
    const uint8_t use = 3;
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, roll.bytes, sizeof roll.bytes);
    sha256_add(&hash, &use, sizeof use);
    const struct hash32 dice = sha256_end(&hash);
    challenge_chain_factor(product, factor);
    for (size_t i = 0; i < CHALLENGE_ROWS_CHECKED; i++) {
        uint64_t number;
        memcpy(&number, dice.bytes + i * sizeof number, sizeof number);
        number %= challenge_product_digests(product);
        uint8_t *digest = digests + number * CHALLENGE_CHAIN_DIGEST_BYTES;
        challenge_chain_row(product, factor, (uint32_t)(number / product->rows),
                            (uint32_t)(number % product->rows), digest);
        digest[0] ^= !is_right;
    }
}

/* Answers a challenge that is a chain after `took_ns`, and destroys it. */
static struct outgoing *answer_chain(struct outgoing *challenge, int64_t took_ns, bool is_right)
{
    static uint8_t digests[CHALLENGE_ANSWER_MOST];
    ProtobufCMessage *decoded = NULL;
    ck_assert_ptr_nonnull(challenge);
    ck_assert_int_eq(
        codec_decode(MESSAGE_CHALLENGE, challenge->body, challenge->length, &decoded, NULL),
        CODEC_OK);
    const Bourse__V1__Challenge *said = (const void *)decoded;
    ck_assert(said->has_rows && said->has_steps);
    struct challenge_product product = {
        .side = said->side, .rounds = said->rounds, .rows = said->rows, .steps = said->steps};
    memcpy(product.seed.bytes, said->seed.data, sizeof product.seed.bytes);
    ck_assert(challenge_product_is_valid(&product));
    memset(digests, 0, sizeof digests);
    answer_rows(&product, is_right, digests);
    Bourse__V1__ChallengeReady body = BOURSE__V1__CHALLENGE_READY__INIT;
    body.has_device = body.has_seed = body.has_digests = true;
    body.device = said->device;
    body.seed = said->seed;
    body.digests =
        (ProtobufCBinaryData){.len = challenge_product_answer_bytes(&product), .data = digests};
    pass(took_ns);
    struct outgoing *reply = ready(&body);
    codec_free(&decoded);
    outgoing_destroy(&challenge);
    return reply;
}

/* Says that the challenge cannot be computed now, and destroys it. */
static struct outgoing *decline(struct outgoing *challenge)
{
    ProtobufCMessage *decoded = NULL;
    ck_assert_ptr_nonnull(challenge);
    ck_assert_int_eq(
        codec_decode(MESSAGE_CHALLENGE, challenge->body, challenge->length, &decoded, NULL),
        CODEC_OK);
    const Bourse__V1__Challenge *said = (const void *)decoded;
    Bourse__V1__ChallengeReady body = BOURSE__V1__CHALLENGE_READY__INIT;
    body.has_device = body.has_seed = true;
    body.device = said->device;
    body.seed = said->seed;
    struct outgoing *reply = ready(&body);
    codec_free(&decoded);
    outgoing_destroy(&challenge);
    return reply;
}

/* Goes through a whole challenge. */
static void play(int64_t took_ns, bool is_right)
{
    struct outgoing *work = answer(await(2 * DAY), TRIP_NS, true);
    ck_assert_ptr_null(answer(work, TRIP_NS + took_ns, is_right));
}

static enum reject_code refusal_of_ask(void)
{
    const struct request request = {.account = PROVIDER,
                                    .envelope = {.type = MESSAGE_ASK_PLACE},
                                    .translation = {.command = {.ask = {.device = device}}}};
    struct outgoing *refusal = challenges_refuse(challenges, market.exchange, &request, log_ns);
    const enum reject_code code = refusal == NULL ? REJECT_NONE : refusal->refused;
    outgoing_destroy(&refusal);
    return code;
}

/* Returns true when the gateway is told within a minute that the asks may not stand. */
static bool is_doubted(void)
{
    struct outgoing *note = await(60 * NS_PER_S);
    const bool is_note = note != NULL && note->kind == OUTGOING_DOUBT && note->account == PROVIDER;
    outgoing_destroy(&note);
    return is_note;
}

START_TEST(an_answer_in_time_is_noted_and_nothing_else_happens)
{
    ck_assert_ptr_null(begin_ready());
    ck_assert_ptr_null(next()); /* the dice say when */
    play(IN_TIME_NS, true);
    ck_assert_int_eq(fact()->outcome, CHALLENGE_OK);
    ck_assert_int_eq(fact()->claimed_mflops, CLAIM);
    ck_assert_int_eq(refusal_of_ask(), REJECT_NONE);
    ck_assert_ptr_null(await(DAY / 2 - NS_PER_S)); /* not again so soon */
    bool is_urgent;
    ck_assert(challenges_changed(challenges, &is_urgent));
    ck_assert(!is_urgent);
    ck_assert(!challenges_changed(challenges, &is_urgent));
}
END_TEST

START_TEST(the_way_there_and_back_is_taken_off)
{
    ck_assert_ptr_null(begin_ready());
    const int64_t trip_ns = 400 * NS_PER_MS;
    struct outgoing *work = answer(await(DAY), trip_ns, true);
    ck_assert_ptr_null(answer(work, trip_ns + 1200 * NS_PER_MS, true));
    ck_assert_int_eq(fact()->outcome, CHALLENGE_OK);
}
END_TEST

START_TEST(three_slow_answers_take_the_ask_until_the_claim_is_lower)
{
    finish();
    begin();
    advertise(PROVIDER, 4, false); /* the smallest challenge takes 131 ms at that speed */
    place_ask(PROVIDER);
    ck_assert_ptr_null(begin_ready());
    for (int i = 0; i < CHALLENGE_TRIES; i++) {
        ck_assert_int_eq(refusal_of_ask(), REJECT_NONE);
        play(NS_PER_S * (1 + (i != 1)), true);
    }
    ck_assert_int_eq(fact()->outcome, CHALLENGE_SLOW);
    ck_assert_int_eq(fact()->limit_mflops, 1);
    bool is_urgent;
    ck_assert(challenges_changed(challenges, &is_urgent));
    ck_assert(is_urgent);
    ck_assert_int_eq(refusal_of_ask(), REJECT_CHALLENGE);
    ck_assert(is_doubted());
    advertise(PROVIDER, 1, false);
    ck_assert_int_eq(refusal_of_ask(), REJECT_NONE);
    place_ask(PROVIDER);
    ck_assert(!is_doubted());
}
END_TEST

START_TEST(wrong_answers_close_the_ask)
{
    ck_assert_ptr_null(begin_ready());
    play(IN_TIME_NS, false);
    ck_assert_int_eq(fact()->outcome, CHALLENGE_WRONG);
    ck_assert_int_eq(refusal_of_ask(), REJECT_NONE);
    play(IN_TIME_NS, false);
    ck_assert_int_eq(refusal_of_ask(), REJECT_CHALLENGE);
    ck_assert(is_doubted());
    pass(CHALLENGE_CLOSED_NS);
    ck_assert_int_eq(refusal_of_ask(), REJECT_NONE);
}
END_TEST

START_TEST(silence_counts_while_the_agent_is_connected)
{
    ck_assert_ptr_null(begin_ready());
    struct outgoing *first = await(DAY);
    ck_assert_ptr_nonnull(first);
    outgoing_destroy(&first);
    ck_assert(is_doubted()); /* the second missing answer follows the first */
    ck_assert_int_eq(fact()->outcome, CHALLENGE_UNANSWERED);
    ck_assert_int_eq(refusal_of_ask(), REJECT_CHALLENGE);
}
END_TEST

START_TEST(who_always_declines_does_not_answer)
{
    ck_assert_ptr_null(begin_ready());
    for (int times = 0; times < 2; times++) {
        for (int i = 0; i < CHALLENGE_DECLINED_MOST; i++) {
            ck_assert_ptr_null(decline(await(2 * DAY)));
        }
        ck_assert_int_eq(fact()->outcome, CHALLENGE_NONE);
        if (times == 0) { /* an answer forgets what was declined before */
            play(TOO_LATE_NS, true);
        }
    }
    ck_assert_ptr_null(decline(await(2 * DAY)));
    ck_assert_int_eq(fact()->outcome, CHALLENGE_UNANSWERED);
    ck_assert_int_eq(refusal_of_ask(), REJECT_NONE);
    for (int i = 0; i <= CHALLENGE_DECLINED_MOST; i++) {
        /* The tiny one is computed, and the one that counts is not. */
        ck_assert_ptr_null(decline(answer(await(2 * DAY), TRIP_NS, true)));
    }
    ck_assert_int_eq(refusal_of_ask(), REJECT_CHALLENGE);
}
END_TEST

START_TEST(a_lost_connection_counts_for_nothing)
{
    for (int way = 0; way < 3; way++) {
        ck_assert_ptr_null(begin_ready());
        struct outgoing *first = await(DAY);
        ck_assert_ptr_nonnull(first);
        outgoing_destroy(&first);
        if (way == 0) {
            challenges_forget(challenges, SESSION);
        } else if (way == 1) {
            challenges_silent(challenges, PROVIDER);
        } else {
            ck_assert_ptr_null(begin_ready()); /* the agent began anew */
            continue;
        }
        ck_assert_ptr_null(await(NS_PER_HOUR));
    }
    ck_assert_int_eq(fact()->outcome, CHALLENGE_NONE);
}
END_TEST

START_TEST(a_device_that_is_let_is_not_challenged)
{
    (void)submit(2, 100);
    ck_assert_ptr_null(begin_ready());
    ck_assert_ptr_null(await(NS_PER_HOUR));
}
END_TEST

START_TEST(what_began_before_a_lease_is_not_judged)
{
    ck_assert_ptr_null(begin_ready());
    struct outgoing *first = await(DAY);
    (void)submit(2, 100);
    ck_assert_ptr_null(answer(answer(first, TRIP_NS, true), TOO_LATE_NS, true));
    ck_assert_int_eq(fact()->outcome, CHALLENGE_NONE);
    ck_assert_uint_eq(fact()->slow, 0);
}
END_TEST

START_TEST(simulated_devices_and_silent_agents_are_not_challenged)
{
    ck_assert_ptr_null(await(NS_PER_HOUR)); /* nobody is ready */
    advertise(PROVIDER, CLAIM, true);
    place_ask(PROVIDER);
    ck_assert_ptr_null(begin_ready());
    ck_assert_ptr_null(await(NS_PER_HOUR));
    ck_assert_ptr_null(fact());
}
END_TEST

START_TEST(a_market_without_challenges_sends_none)
{
    finish();
    begin_every(0);
    ck_assert_ptr_null(begin_ready());
    ck_assert_ptr_null(await(NS_PER_HOUR));
    pass(LIMIT_WAIT_MS * NS_PER_MS);
    ck_assert_int_le(challenges_due_ns(challenges), monotonic_ns);
    struct outgoing *gone = next(); /* nobody waits for ever */
    ck_assert_ptr_nonnull(gone);
    ck_assert_int_eq(gone->type, MESSAGE_REJECT);
    outgoing_destroy(&gone);
    ck_assert_int_eq(challenges_due_ns(challenges), INT64_MAX);
}
END_TEST

START_TEST(a_second_message_answers_the_first)
{
    const Bourse__V1__ChallengeReady body = BOURSE__V1__CHALLENGE_READY__INIT;
    ck_assert_ptr_null(begin_ready());
    const struct request request = request_of(MESSAGE_CHALLENGE_READY, &body.base);
    const struct challenges_now at = now();
    struct outgoing *former = NULL;
    ck_assert_ptr_null(challenges_ready(challenges, market.exchange, &request, &at, &former));
    ck_assert_ptr_nonnull(former);
    ck_assert_int_eq(former->type, MESSAGE_REJECT);
    outgoing_destroy(&former);
}
END_TEST

static void challenge_attached(const char *word, const char *text)
{
    ck_assert_ptr_null(begin_ready());
    advertise_attached(word, text, false);
    place_ask(PROVIDER);
    ck_assert_ptr_null(await(2 * DAY));
    ck_assert_ptr_null(fact());
    advertise_attached(word, text, true);
    place_ask(PROVIDER);
    struct outgoing *outgoing = await(2 * CHALLENGE_SOON_NS);
    ck_assert_ptr_nonnull(outgoing);
    outgoing = answer(outgoing, TRIP_NS, true);
    outgoing = answer(outgoing, TRIP_NS + IN_TIME_NS, true);
    outgoing_destroy(&outgoing);
    ck_assert_ptr_nonnull(fact());
    ck_assert_int_eq(fact()->outcome, CHALLENGE_OK);
}

START_TEST(a_device_for_kernels_is_challenged_where_its_agent_answers)
{
    challenge_attached("api", "cuda");
}
END_TEST

START_TEST(a_plugins_device_is_challenged_where_the_plugin_multiplies)
{
    challenge_attached("executor", "plugin");
}
END_TEST

/* Offers a GPU that claims this without copies, and a tenth of that with them. */
static void advertise_fast(int64_t held)
{
    const struct attribute attributes[] = {
        {.name = "api", .is_text = true, .text = "cuda"},
        {.name = "challenge", .is_text = true, .text = "gemm_fp32"},
        {.name = "challenge", .is_text = true, .text = "gemm_fp32_held"},
        {.name = "gemm_fp32", .number = held / 10},
        {.name = "gemm_fp32_held", .number = held},
        {.name = "kind", .is_text = true, .text = "gpu"},
    };
    device = (struct id128){{PROVIDER}};
    const struct exchange_device offered = {.device = device,
                                            .slots = 2,
                                            .attributes = attributes,
                                            .attribute_count = 6,
                                            .label = "a gpu"};
    struct exchange_command given = command(EXCHANGE_ADVERTISE, PROVIDER);
    given.advertise = (struct exchange_advertise){&offered, 1};
    apply(&given);
    place_ask(PROVIDER);
}

static void play_chain(int64_t took_ns, bool is_right)
{
    struct outgoing *work = answer_chain(await(2 * DAY), TRIP_NS, true);
    ck_assert_ptr_null(answer_chain(work, TRIP_NS + took_ns, is_right));
}

/* A GPU of 6 Tflop/s computes its chain in 0.6 s. One that does 1.5 Tflop/s takes 2.4 s, and
 * hides nothing behind the making of factors. */
START_TEST(a_fast_device_that_claims_four_times_its_speed_is_lowered)
{
    advertise_fast(6000000);
    ck_assert_ptr_null(begin_ready());
    play_chain(650 * NS_PER_MS, true);
    ck_assert_int_eq(fact()->outcome, CHALLENGE_OK);
    ck_assert_int_eq(fact()->claimed_mflops, 6000000);
    for (int i = 0; i < CHALLENGE_TRIES; i++) {
        play_chain(2400 * NS_PER_MS, true);
    }
    ck_assert_int_eq(fact()->outcome, CHALLENGE_SLOW);
    ck_assert_int_ge(fact()->limit_mflops, 1400000);
    ck_assert_int_le(fact()->limit_mflops, 1500000);
    ck_assert_int_eq(refusal_of_ask(), REJECT_CHALLENGE);
    ck_assert(is_doubted());
    advertise_fast(1400000);
    ck_assert_int_eq(refusal_of_ask(), REJECT_NONE);
}
END_TEST

/* A fast result that the device did not compute is wrong. */
START_TEST(a_wrong_chain_closes_the_ask)
{
    advertise_fast(6000000);
    ck_assert_ptr_null(begin_ready());
    play_chain(10 * NS_PER_MS, false);
    ck_assert_int_eq(refusal_of_ask(), REJECT_NONE);
    play_chain(10 * NS_PER_MS, false);
    ck_assert_int_eq(fact()->outcome, CHALLENGE_WRONG);
    ck_assert_int_eq(refusal_of_ask(), REJECT_CHALLENGE);
}
END_TEST

SUITE("challenges", begin, finish, TEST(an_answer_in_time_is_noted_and_nothing_else_happens),
      TEST(the_way_there_and_back_is_taken_off),
      TEST(three_slow_answers_take_the_ask_until_the_claim_is_lower),
      TEST(wrong_answers_close_the_ask), TEST(silence_counts_while_the_agent_is_connected),
      TEST(who_always_declines_does_not_answer), TEST(a_lost_connection_counts_for_nothing),
      TEST(a_device_that_is_let_is_not_challenged), TEST(what_began_before_a_lease_is_not_judged),
      TEST(simulated_devices_and_silent_agents_are_not_challenged),
      TEST(a_market_without_challenges_sends_none), TEST(a_second_message_answers_the_first),
      TEST(a_device_for_kernels_is_challenged_where_its_agent_answers),
      TEST(a_plugins_device_is_challenged_where_the_plugin_multiplies),
      TEST(a_fast_device_that_claims_four_times_its_speed_is_lowered),
      TEST(a_wrong_chain_closes_the_ask))
