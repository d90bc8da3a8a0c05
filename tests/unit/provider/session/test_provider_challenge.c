/* The agent says that it is ready for a challenge, computes one at a time, and believes what the
 * broker found. */
#include "tests/support/agent_play.h"
#include "tests/support/suite.h"

static const struct hash32 seed = {{0x5e}};

/* An agent whose device claims a speed. */
static void start_asking(struct play *play)
{
    static const uint8_t key[32] = {5};
    static const struct attribute attributes[] = {{.name = "kind", .is_text = true, .text = "cpu"},
                                                  {.name = "gemm_fp32", .number = 90000},
                                                  {.name = "gemm_fp32_held", .number = 300000},
                                                  {.name = "fp32", .number = 90000000000},
                                                  {.name = "fp64", .number = 20000000000}};
    ck_assert_int_ge(sodium_init(), 0);
    *play = (struct play){.identity = identity_create(key), .now_ns = NS_PER_S};
    const struct agent_session_config config = {.identity = play->identity,
                                                .program = "test 1",
                                                .cluster = cluster,
                                                .dice = {{9}},
                                                .answers_challenges = true};
    play->session = agent_session_create(&config);
    const struct agent_device offered = {.device = device,
                                         .instrument = "cpu.x86_64.avx2",
                                         .label = "lab",
                                         .slots = 4,
                                         .attributes = attributes,
                                         .attribute_count = 5};
    const struct agent_ask ask = {.device = device, .slots = 4, .price_micro = 100000};
    ck_assert_int_eq(agent_session_offer(play->session, play->now_ns, &offered, 1, &ask, 1),
                     AGENT_OK);
    welcome(play, &cluster);
    accept(play, find_seen(play, MESSAGE_STATEMENT_HELD));
    accept(play, find_seen(play, MESSAGE_ADVERTISE));
}

static void start(struct play *play)
{
    start_asking(play);
    accept(play, find_seen(play, MESSAGE_ASK_PLACE));
}

static void challenge(struct play *play, const struct seen *seen)
{
    Bourse__V1__Challenge body = BOURSE__V1__CHALLENGE__INIT;
    body.device = view(device.bytes, sizeof device.bytes);
    body.seed = view(seed.bytes, sizeof seed.bytes);
    body.side = 64;
    body.rounds = 1;
    const struct id128 id = seen->id;
    say(play, MESSAGE_CHALLENGE, &id, &body.base);
}

/* Returns how many challenges the shell is asked to compute; *ret has the last. */
static size_t challenges(struct play *play, struct agent_challenge *ret)
{
    struct agent_action action;
    size_t count = 0;
    while (agent_session_action(play->session, &action)) {
        if (action.type == AGENT_CHALLENGE) {
            *ret = action.challenge;
            count++;
        }
        agent_session_drop_action(&action);
    }
    return count;
}

START_TEST(an_answer_says_that_the_agent_is_ready_again)
{
    CLEANUP(play_end) struct play play;
    struct agent_challenge asked;
    start(&play);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_CHALLENGE_READY), 1);
    const Bourse__V1__ChallengeReady *ready =
        (const void *)find_seen(&play, MESSAGE_CHALLENGE_READY)->message;
    ck_assert(!ready->has_device);
    challenge(&play, find_seen(&play, MESSAGE_CHALLENGE_READY));
    ck_assert_uint_eq(challenges(&play, &asked), 1);
    ck_assert(id128_equal(&asked.device, &device));
    ck_assert_uint_eq(asked.side, 64);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_CHALLENGE_READY), 1); /* it computes */
    ck_assert_int_eq(agent_session_challenged(play.session, play.now_ns, &asked, "12345678", 8),
                     AGENT_OK);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_CHALLENGE_READY), 2);
    const Bourse__V1__ChallengeReady *answer =
        (const void *)last_seen(&play, MESSAGE_CHALLENGE_READY)->message;
    ck_assert(answer->has_digests);
    ck_assert_uint_eq(answer->digests.len, 8);
    ck_assert_mem_eq(answer->seed.data, seed.bytes, sizeof seed.bytes);
}
END_TEST

START_TEST(what_cannot_be_computed_is_said)
{
    CLEANUP(play_end) struct play play;
    struct agent_challenge asked;
    start(&play);
    challenge(&play, find_seen(&play, MESSAGE_CHALLENGE_READY));
    ck_assert_uint_eq(challenges(&play, &asked), 1);
    (void)agent_session_challenged(play.session, play.now_ns, &asked, NULL, 0);
    const Bourse__V1__ChallengeReady *answer =
        (const void *)last_seen(&play, MESSAGE_CHALLENGE_READY)->message;
    ck_assert(answer->has_device);
    ck_assert(!answer->has_digests);
}
END_TEST

START_TEST(a_new_connection_is_ready_once_what_runs_is_done)
{
    CLEANUP(play_end) struct play play;
    struct agent_challenge asked;
    start(&play);
    challenge(&play, find_seen(&play, MESSAGE_CHALLENGE_READY));
    ck_assert_uint_eq(challenges(&play, &asked), 1);
    agent_session_connected(play.session, play.now_ns, 1);
    forget_seen(&play);
    /* The broker is not there, so the answer is lost, and counts for nothing. */
    ck_assert_int_eq(agent_session_challenged(play.session, play.now_ns, &asked, "12345678", 8),
                     AGENT_UNKNOWN);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_CHALLENGE_READY), 0);
}
END_TEST

START_TEST(an_older_broker_is_not_asked_again)
{
    CLEANUP(play_end) struct play play;
    start(&play);
    reject(&play, find_seen(&play, MESSAGE_CHALLENGE_READY), REJECT_TYPE);
    play.now_ns += 100 * NS_PER_S;
    agent_session_tick(play.session, play.now_ns);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_CHALLENGE_READY), 1);
}
END_TEST

START_TEST(a_busy_broker_is_asked_later)
{
    CLEANUP(play_end) struct play play;
    start(&play);
    reject(&play, find_seen(&play, MESSAGE_CHALLENGE_READY), REJECT_BUSY);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_CHALLENGE_READY), 1);
    play.now_ns += 5 * NS_PER_S / 2; /* short of three heartbeats */
    ck_assert_int_le(agent_session_next_deadline_ns(play.session), play.now_ns);
    agent_session_tick(play.session, play.now_ns);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_CHALLENGE_READY), 2);
}
END_TEST

static int64_t number_of(const Bourse__V1__Device *of, const char *name)
{
    for (size_t i = 0; i < of->n_attributes; i++) {
        if (strcmp(of->attributes[i]->name, name) == 0) {
            return of->attributes[i]->number;
        }
    }
    return -1;
}

/* Refuses the ask for a claim of this figure that is above the limit, and returns what the agent
 * advertises then. */
static const Bourse__V1__Device *refuse(struct play *play, const char *field, int64_t claim,
                                        int64_t limit)
{
    start_asking(play);
    const struct id128 id = last_seen(play, MESSAGE_ASK_PLACE)->id;
    Bourse__V1__Reject body = BOURSE__V1__REJECT__INIT;
    body.code = REJECT_CHALLENGE;
    body.text = (char *)(uintptr_t) "no";
    body.field = (char *)(uintptr_t)field;
    body.has_value = body.has_limit = true;
    body.value = claim;
    body.limit = limit;
    forget_seen(play);
    say(play, MESSAGE_REJECT, &id, &body.base);
    const struct seen *seen = find_seen(play, MESSAGE_ADVERTISE);
    ck_assert_ptr_nonnull(seen);
    const Bourse__V1__Advertise *advertise = (const void *)seen->message;
    ck_assert_uint_eq(advertise->n_devices, 1);
    return advertise->devices[0];
}

START_TEST(a_refused_claim_is_lowered_to_what_was_shown)
{
    CLEANUP(play_end) struct play play;
    const Bourse__V1__Device *offered = refuse(&play, "gemm_fp32", 90000, 9000);
    ck_assert_int_eq(number_of(offered, "gemm_fp32"), 9000);
    ck_assert_int_eq(number_of(offered, "gemm_fp32_held"), 9000);
    ck_assert_int_eq(number_of(offered, "fp32"), 9000000000);
    ck_assert_int_eq(number_of(offered, "fp64"), 20000000000); /* another figure */
}
END_TEST

START_TEST(a_refused_claim_without_copies_leaves_a_lower_one_with_them)
{
    CLEANUP(play_end) struct play play;
    const Bourse__V1__Device *offered = refuse(&play, "gemm_fp32_held", 300000, 120000);
    ck_assert_int_eq(number_of(offered, "gemm_fp32_held"), 120000);
    ck_assert_int_eq(number_of(offered, "gemm_fp32"), 90000);
    ck_assert_int_eq(number_of(offered, "fp32"), 90000000000);
}
END_TEST

START_TEST(the_figures_of_a_chain_reach_the_shell)
{
    CLEANUP(play_end) struct play play;
    struct agent_challenge asked;
    start(&play);
    const struct id128 id = find_seen(&play, MESSAGE_CHALLENGE_READY)->id;
    Bourse__V1__Challenge body = BOURSE__V1__CHALLENGE__INIT;
    body.device = view(device.bytes, sizeof device.bytes);
    body.seed = view(seed.bytes, sizeof seed.bytes);
    body.side = 1024;
    body.rounds = 2;
    body.has_rows = body.has_steps = true;
    body.rows = 65536;
    body.steps = 12;
    say(&play, MESSAGE_CHALLENGE, &id, &body.base);
    ck_assert_uint_eq(challenges(&play, &asked), 1);
    ck_assert(asked.side == 1024 && asked.rounds == 2 && asked.rows == 65536 && asked.steps == 12);
}
END_TEST

SUITE("provider_challenge", NULL, NULL, TEST(an_answer_says_that_the_agent_is_ready_again),
      TEST(what_cannot_be_computed_is_said), TEST(a_new_connection_is_ready_once_what_runs_is_done),
      TEST(an_older_broker_is_not_asked_again), TEST(a_busy_broker_is_asked_later),
      TEST(a_refused_claim_is_lowered_to_what_was_shown),
      TEST(a_refused_claim_without_copies_leaves_a_lower_one_with_them),
      TEST(the_figures_of_a_chain_reach_the_shell))
