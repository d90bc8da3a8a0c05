/* The tests follow asks that somebody places by hand for an agent's device. */
#include "tests/support/agent_play.h"
#include "tests/support/suite.h"

static const struct id128 by_hand = {{0xb4}};

static void note_ask(struct play *play, const struct id128 *order, bool stands)
{
    static const struct id128 none;
    Bourse__V1__AskEvent body = BOURSE__V1__ASK_EVENT__INIT;
    body.device = view(device.bytes, 16);
    body.order = view(order->bytes, 16);
    body.stands = stands;
    body.slots = 2;
    body.price_micro = 7;
    say(play, MESSAGE_ASK_EVENT, &none, &body.base);
}

static struct agent_ask_row ask_row(const struct play *play)
{
    struct agent_ask_row row;
    ck_assert(agent_session_ask(play->session, 0, &row));
    return row;
}

START_TEST(an_ask_by_hand_stands_in_the_place_of_the_agents_until_it_ends)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    note_ask(&play, &by_hand, true);
    ck_assert(ask_row(&play).is_by_hand);
    ck_assert_uint_eq(ask_row(&play).terms.slots, 2);
    ck_assert_int_eq(ask_row(&play).terms.price_micro, 7);
    ck_assert_uint_eq(agent_session_counts(play.session).asks_standing, 1);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);

    note_ask(&play, &by_hand, false);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
    struct id128 own = last_seen(&play, MESSAGE_ASK_PLACE)->id;
    note_ask(&play, &own, true); /* the agent's own is news to nobody */
    accept(&play, last_seen(&play, MESSAGE_ASK_PLACE));
    ck_assert(!ask_row(&play).is_by_hand);
    ck_assert(ask_row(&play).is_standing);
    ck_assert_int_eq(ask_row(&play).terms.price_micro, 100000);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
}
END_TEST

START_TEST(other_terms_by_hand_are_shown_as_such)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    const struct seen *place = find_seen(&play, MESSAGE_ASK_PLACE);
    const struct id128 order = place->id;
    accept(&play, place);
    note_ask(&play, &order, true); /* its own, with terms that it did not ask */
    ck_assert(ask_row(&play).is_by_hand);
    ck_assert_int_eq(ask_row(&play).terms.price_micro, 7);
    forget_seen(&play);
    note_ask(&play, &order, false);
    ck_assert(!ask_row(&play).is_by_hand);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1); /* its own, as its owner says */
}
END_TEST

START_TEST(an_ask_by_hand_is_withdrawn_like_the_agents_own)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    note_ask(&play, &by_hand, true);
    agent_session_rest(play.session, play.now_ns, true, false);
    const struct seen *cancel = last_seen(&play, MESSAGE_ORDER_CANCEL);
    ck_assert_ptr_nonnull(cancel);
    const Bourse__V1__OrderCancel *body = (const void *)cancel->message;
    ck_assert_mem_eq(body->order.data, by_hand.bytes, 16);
    ck_assert_uint_eq(devices_of(last_seen(&play, MESSAGE_ADVERTISE)), 0);
    note_ask(&play, &by_hand, false); /* at rest nothing takes its place */
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
}
END_TEST

START_TEST(an_ask_that_its_owner_cancels_stays_away_until_the_next_offer)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    struct id128 own = find_seen(&play, MESSAGE_ASK_PLACE)->id;
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    forget_seen(&play);
    note_ask(&play, &own, false);
    ck_assert(ask_row(&play).is_taken_back);
    ck_assert(!ask_row(&play).is_standing);
    pass_ms(&play, 2000);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);

    note_ask(&play, &by_hand, true); /* an ask by hand may still come, and go */
    ck_assert(ask_row(&play).is_by_hand);
    note_ask(&play, &own, false); /* of one that is long gone */
    ck_assert(ask_row(&play).is_by_hand);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
    own = find_seen(&play, MESSAGE_ASK_PLACE)->id;
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    forget_seen(&play);

    note_ask(&play, &own, false);
    agent_session_rest(play.session, play.now_ns, false, false); /* the owner has it offer again */
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
}
END_TEST

START_TEST(what_the_agent_has_just_asked_comes_after_an_ask_by_hand)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    note_ask(&play, &by_hand, true);
    ck_assert(!ask_row(&play).is_by_hand);
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    ck_assert(ask_row(&play).is_standing);
    ck_assert(!ask_row(&play).is_by_hand);
}
END_TEST

SUITE("provider asks by hand", NULL, NULL,
      TEST(an_ask_by_hand_stands_in_the_place_of_the_agents_until_it_ends),
      TEST(other_terms_by_hand_are_shown_as_such),
      TEST(an_ask_by_hand_is_withdrawn_like_the_agents_own),
      TEST(an_ask_that_its_owner_cancels_stays_away_until_the_next_offer),
      TEST(what_the_agent_has_just_asked_comes_after_an_ask_by_hand))
