/* The tests play a session whose agent stops its work for the owner of the machine, and gives the
 * work back when the owner stays. */
#include "tests/support/agent_play.h"
#include "tests/support/suite.h"

static void grant_saving(struct play *play, uint64_t lease)
{
    static const uint8_t owner[32] = {1};
    static const struct id128 none;
    Bourse__V1__LeaseGrant body = BOURSE__V1__LEASE_GRANT__INIT;
    body.lease = lease;
    body.job = view(job.bytes, 16);
    body.owner = view(owner, 32);
    body.device = view(device.bytes, 16);
    body.slots = 1;
    body.slots_per_subtask = 1;
    body.price_micro = 100000;
    body.term_ms = 60000;
    body.manifest = view(manifest.bytes, 32);
    body.limit_ms = 60000;
    body.has_checkpoint = body.checkpoint = true;
    say(play, MESSAGE_LEASE_GRANT, &none, &body.base);
}

START_TEST(programs_that_save_their_state_are_told_and_others_are_cancelled)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant_saving(&play, 1);
    grant(&play, 2, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 2, 1, 0);
    (void)actions(&play);
    agent_session_rest(play.session, play.now_ns, true, false);
    ck_assert_str_eq(actions(&play), "");
    agent_session_hand_back(play.session, play.now_ns);
    ck_assert_str_eq(actions(&play), "notice 1/0, cancel 2/1");
    agent_session_hand_back(play.session, play.now_ns); /* a second call does nothing */
    ck_assert_str_eq(actions(&play), "");
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_PROGRAM_FAILED), AGENT_OK);
    ck_assert_int_eq(finish(&play, 2, 1, OUTCOME_CANCELLED), AGENT_OK);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_CANCELLED);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_CANCELLED);
}
END_TEST

START_TEST(a_program_that_does_not_end_is_cancelled_later)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant_saving(&play, 1);
    dispatch(&play, 1, 0, 0);
    (void)actions(&play);
    agent_session_rest(play.session, play.now_ns, true, false);
    agent_session_hand_back(play.session, play.now_ns);
    ck_assert_str_eq(actions(&play), "notice 1/0");
    agent_session_rest(play.session, play.now_ns, true, true);
    ck_assert_str_eq(actions(&play), "cancel 1/0");
}
END_TEST

/* The notice is for the program that ran then. A later program of the lease that fails has failed
 * by its own fault. */
START_TEST(a_notice_excuses_no_later_failure)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant_saving(&play, 1);
    dispatch(&play, 1, 0, 0);
    agent_session_rest(play.session, play.now_ns, true, false);
    agent_session_hand_back(play.session, play.now_ns);
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK);
    agent_session_rest(play.session, play.now_ns, false, false);
    dispatch(&play, 1, 1, 0);
    ck_assert_int_eq(finish(&play, 1, 1, OUTCOME_PROGRAM_FAILED), AGENT_OK);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_OK);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_PROGRAM_FAILED);
}
END_TEST

SUITE("an owner at the machine", NULL, NULL,
      TEST(programs_that_save_their_state_are_told_and_others_are_cancelled),
      TEST(a_program_that_does_not_end_is_cancelled_later), TEST(a_notice_excuses_no_later_failure))
