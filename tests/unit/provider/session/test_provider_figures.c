/* The agent tells what devices do only to a broker that takes it, one message at a time. */
#include "tests/support/agent_play.h"
#include "tests/support/suite.h"

static enum agent_status post(struct play *play, uint64_t power_mw)
{
    Bourse__V1__DeviceFigures figures = BOURSE__V1__DEVICE_FIGURES__INIT;
    Bourse__V1__DeviceFigures *pointers[] = {&figures};
    figures.device = view(&device, sizeof device);
    figures.has_power_mw = true;
    figures.power_mw = power_mw;
    const enum agent_status status =
        agent_session_post_figures(play->session, play->now_ns, pointers, 1);
    listen(play);
    return status;
}

static void answer(struct play *play)
{
    Bourse__V1__FiguresTaken body = BOURSE__V1__FIGURES_TAKEN__INIT;
    say(play, MESSAGE_FIGURES_TAKEN, &last_seen(play, MESSAGE_FIGURES_POST)->id, &body.base);
}

START_TEST(the_next_figures_go_after_the_answer)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    ck_assert_int_eq(post(&play, 1), AGENT_UNKNOWN); /* no broker yet */
    settle(&play);
    ck_assert_int_eq(post(&play, 61000), AGENT_OK);
    const Bourse__V1__FiguresPost *sent =
        (const void *)last_seen(&play, MESSAGE_FIGURES_POST)->message;
    ck_assert_uint_eq(sent->n_devices, 1);
    ck_assert(sent->devices[0]->power_mw == 61000 && !sent->devices[0]->has_celsius);
    ck_assert(!agent_session_may_post_figures(play.session));
    ck_assert_int_eq(post(&play, 2), AGENT_UNKNOWN);
    answer(&play);
    ck_assert_int_eq(post(&play, 3), AGENT_OK);
}
END_TEST

START_TEST(an_older_broker_is_told_nothing_more_until_the_next_connection)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    ck_assert_int_eq(post(&play, 1), AGENT_OK);
    reject(&play, last_seen(&play, MESSAGE_FIGURES_POST), REJECT_TYPE);
    ck_assert_int_eq(post(&play, 2), AGENT_UNKNOWN);
    welcome(&play, &cluster);
    ck_assert_int_eq(post(&play, 3), AGENT_OK);
    reject(&play, last_seen(&play, MESSAGE_FIGURES_POST), REJECT_BUSY);
    ck_assert_int_eq(post(&play, 4), AGENT_OK);
}
END_TEST

SUITE("provider_figures", NULL, NULL, TEST(the_next_figures_go_after_the_answer),
      TEST(an_older_broker_is_told_nothing_more_until_the_next_connection))
