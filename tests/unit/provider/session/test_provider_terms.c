/* The term of a lease in an agent's session: a renewal extends the term, and never cuts it. */
#include "tests/support/agent_play.h"
#include "tests/support/suite.h"

START_TEST(a_renewal_that_is_shorter_leaves_the_term)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 2000);
    dispatch(&play, 1, 0, 0);
    (void)actions(&play);
    renew(&play, 1, 500);
    pass_ms(&play, 1500);
    ck_assert_str_eq(actions(&play), "");
    pass_ms(&play, 500);
    ck_assert_str_eq(actions(&play), "cancel 1/0");
}
END_TEST

SUITE("terms of leases", NULL, NULL, TEST(a_renewal_that_is_shorter_leaves_the_term))
