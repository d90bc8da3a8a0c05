/* After a stop the command says what happened meanwhile, and blames no broker. */
#include "consumer/command/shell/shell_away.h"

#include "base/checked.h"
#include "tests/support/suite.h"

#include <check.h>

#define S NS_PER_S
enum { WALL_MS = 1000000 };

/* Turns once a second from `from_s` on, `count` times. */
static void turn(struct shell_away *away, int64_t from_s, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        shell_away_turn(away, (from_s + i) * S, WALL_MS + (from_s + i) * 1000);
    }
}

START_TEST(a_loss_without_a_stop_is_told_at_once_and_once)
{
    struct shell_away away = {0};
    turn(&away, 100, 60);
    ck_assert(!shell_away_tells(&away, 159 * S));
    shell_away_lost(&away);
    ck_assert(shell_away_tells(&away, 159 * S));
    ck_assert(!shell_away_tells(&away, 160 * S));
    ck_assert(shell_away_found(&away));
    ck_assert(!shell_away_found(&away));
    shell_away_lost(&away);
    ck_assert(shell_away_tells(&away, 161 * S));
}
END_TEST

START_TEST(a_loss_after_a_stop_is_told_when_it_lasts)
{
    struct shell_away away = {0};
    turn(&away, 100, 10);
    turn(&away, 200, 1); /* after 91 s */
    shell_away_lost(&away);
    ck_assert(!shell_away_tells(&away, 200 * S));
    ck_assert(!shell_away_found(&away)); /* nobody was told of the loss */
    shell_away_lost(&away);
    ck_assert(!shell_away_tells(&away, 209 * S));
    ck_assert(shell_away_tells(&away, 210 * S));
    ck_assert(shell_away_found(&away));
}
END_TEST

START_TEST(what_ended_before_the_stop_was_over_was_missed)
{
    struct shell_away away = {0};
    turn(&away, 100, 10);
    ck_assert(!shell_away_missed(&away, WALL_MS)); /* no stop */
    turn(&away, 200, 5);
    ck_assert(away.stopped_ns == 91 * S);
    ck_assert(shell_away_missed(&away, WALL_MS + 150 * 1000));
    ck_assert(!shell_away_missed(&away, WALL_MS + 201 * 1000)); /* the user was there */
    ck_assert(!shell_away_missed(&away, 0));                    /* the job is open */
}
END_TEST

SUITE("shell_away", NULL, NULL, TEST(a_loss_without_a_stop_is_told_at_once_and_once),
      TEST(a_loss_after_a_stop_is_told_when_it_lasts),
      TEST(what_ended_before_the_stop_was_over_was_missed))
