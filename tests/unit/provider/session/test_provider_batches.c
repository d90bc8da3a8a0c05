/* An agent's session sends results in batches, one signature over each. */
#include "tests/support/agent_play.h"
#include "tests/support/suite.h"

START_TEST(a_full_batch_does_not_wait)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    for (uint32_t i = 0; i < AGENT_BATCH_MAX; i++) {
        dispatch(&play, 1, i, 0);
    }
    for (uint32_t i = 0; i < AGENT_BATCH_MAX; i++) {
        ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 0);
        ck_assert_int_eq(finish(&play, 1, i, OUTCOME_OK), AGENT_OK);
    }
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 1);
}
END_TEST

START_TEST(a_session_that_signs_each_result_apart_holds_none_back)
{
    CLEANUP(play_end) struct play play;
    play_start_signing(&play, 1);
    settle(&play);
    grant(&play, 1, 1, 60000);
    for (uint32_t i = 0; i < 3; i++) {
        dispatch(&play, 1, i, 0);
    }
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(finish(&play, 1, i, OUTCOME_OK), AGENT_OK);
        ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), i + 1);
    }
}
END_TEST

SUITE("batches of results", NULL, NULL, TEST(a_full_batch_does_not_wait),
      TEST(a_session_that_signs_each_result_apart_holds_none_back))
