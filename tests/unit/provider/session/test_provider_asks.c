/* The tests follow what an agent has on offer: its asks over reconnects, refusals and rests. Asks
 * that somebody places by hand are in test_provider_asks_by_hand.c. */
#include "tests/support/agent_play.h"
#include "tests/support/suite.h"

START_TEST(a_welcome_brings_statement_devices_and_then_the_ask)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);

    ck_assert_str_eq(actions(&play), "ready");
    ck_assert_uint_eq(count_seen(&play, MESSAGE_STATEMENT_HELD), 1);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ADVERTISE), 1);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);

    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    ck_assert_uint_eq(agent_session_counts(play.session).asks_standing, 1);
}
END_TEST

START_TEST(another_market_is_offered_nothing)
{
    static const struct id128 other = {{0xee}};
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &other);

    ck_assert_str_eq(actions(&play), "note");
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ADVERTISE), 0);
    grant(&play, 1, 1, 1000);
    ck_assert_str_eq(actions(&play), "");
}
END_TEST

START_TEST(a_reconnect_asks_anew_and_cancels_what_may_stand)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    struct id128 first = find_seen(&play, MESSAGE_ASK_PLACE)->id; /* its answer is lost */

    welcome(&play, &cluster);
    const struct seen *cancel = find_seen(&play, MESSAGE_ORDER_CANCEL);
    ck_assert_ptr_nonnull(cancel);
    const Bourse__V1__OrderCancel *body =
        (const Bourse__V1__OrderCancel *)(const void *)cancel->message;
    ck_assert_int_eq(memcmp(body->order.data, first.bytes, 16), 0);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    const struct seen *second = find_seen(&play, MESSAGE_ASK_PLACE);
    ck_assert_ptr_nonnull(second);
    ck_assert(!id128_equal(&second->id, &first));
}
END_TEST

/* Settled, and then welcomed anew: the order of the ask that stood. */
static struct id128 reconnect(struct play *play)
{
    welcome(play, &cluster);
    accept(play, find_seen(play, MESSAGE_STATEMENT_HELD));
    accept(play, find_seen(play, MESSAGE_ADVERTISE));
    const struct id128 order = find_seen(play, MESSAGE_ASK_PLACE)->id;
    accept(play, find_seen(play, MESSAGE_ASK_PLACE));
    welcome(play, &cluster);
    return order;
}

START_TEST(an_ask_that_still_stands_after_a_reconnect_is_left_where_it_is)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    const struct id128 order = reconnect(&play);
    const struct seen *check = find_seen(&play, MESSAGE_ORDER_REPLACE);
    ck_assert_ptr_nonnull(check);
    const Bourse__V1__OrderReplace *body =
        (const Bourse__V1__OrderReplace *)(const void *)check->message;
    ck_assert_mem_eq(body->order.data, order.bytes, sizeof order.bytes);
    ck_assert(body->has_slots && body->slots == 4); /* what it says already: nothing changes */
    ck_assert(body->has_price_micro && body->price_micro == 100000);
    ck_assert_uint_eq(agent_session_counts(play.session).asks_standing, 0);
    accept(&play, check);
    ck_assert_uint_eq(agent_session_counts(play.session).asks_standing, 1);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 0);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ADVERTISE), 0); /* it would cancel it */
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_STATEMENT_HELD), 1);

    agent_session_pause(play.session, play.now_ns, true);
    const struct seen *cancel = find_seen(&play, MESSAGE_ORDER_CANCEL);
    ck_assert_ptr_nonnull(cancel);
    ck_assert_mem_eq(((const Bourse__V1__OrderCancel *)(const void *)cancel->message)->order.data,
                     order.bytes, sizeof order.bytes);
}
END_TEST

START_TEST(an_ask_that_is_gone_after_a_reconnect_is_placed_anew)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    const struct id128 order = reconnect(&play);
    reject(&play, find_seen(&play, MESSAGE_ORDER_REPLACE), REJECT_NOT_FOUND);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 0);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    const struct seen *second = find_seen(&play, MESSAGE_ASK_PLACE);
    ck_assert_ptr_nonnull(second);
    ck_assert(!id128_equal(&second->id, &order));
}
END_TEST

START_TEST(an_ask_that_was_changed_beyond_what_is_taken_is_cancelled_and_placed_anew)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    (void)reconnect(&play);
    reject(&play, find_seen(&play, MESSAGE_ORDER_REPLACE), REJECT_PRICE);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 1);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ADVERTISE), 1);
}
END_TEST

START_TEST(whether_an_ask_stands_is_asked_again_where_the_broker_could_not_say)
{
    static const enum reject_code codes[] = {REJECT_HALTED, REJECT_BUSY};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        CLEANUP(play_end) struct play play;
        play_start(&play);
        (void)reconnect(&play);
        const struct id128 first = find_seen(&play, MESSAGE_ORDER_REPLACE)->id;
        reject(&play, find_seen(&play, MESSAGE_ORDER_REPLACE), codes[i]);
        ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_REPLACE), 1);
        pass_ms(&play, 2000);
        const struct id128 second = last_seen(&play, MESSAGE_ORDER_REPLACE)->id;
        ck_assert(!id128_equal(&second, &first));
        ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 0);
        ck_assert_uint_eq(count_seen(&play, MESSAGE_ADVERTISE), 0);
        accept(&play, last_seen(&play, MESSAGE_ORDER_REPLACE));
        ck_assert_uint_eq(agent_session_counts(play.session).asks_standing, 1);
    }
}
END_TEST

START_TEST(whether_an_ask_stands_is_asked_again_over_the_next_connection)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    (void)reconnect(&play);
    const struct id128 late = find_seen(&play, MESSAGE_ORDER_REPLACE)->id; /* its answer is lost */
    welcome(&play, &cluster);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_REPLACE), 1);
    ck_assert(!id128_equal(&find_seen(&play, MESSAGE_ORDER_REPLACE)->id, &late));
    accept(&play, find_seen(&play, MESSAGE_ORDER_REPLACE));
    ck_assert_uint_eq(agent_session_counts(play.session).asks_standing, 1);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ADVERTISE), 0);
}
END_TEST

/* Two devices: what stands stays, and what does not is placed beside it. */
START_TEST(of_several_asks_only_those_that_are_gone_are_placed_anew)
{
    static const struct id128 other = {{0xd2}};
    CLEANUP(play_end) struct play play;
    play_start(&play);
    static const struct attribute kind = {.name = "kind", .is_text = true, .text = "cpu"};
    const struct agent_device devices[] = {
        {device, "cpu.x86_64.avx2", "", 4, &kind, 1},
        {other, "cpu.x86_64.avx2", "", 2, &kind, 1},
    };
    const struct agent_ask asks[] = {{.device = device, .slots = 4, .price_micro = 100000},
                                     {.device = other, .slots = 2, .price_micro = 200000}};
    ck_assert_int_eq(agent_session_offer(play.session, play.now_ns, devices, 2, asks, 2), AGENT_OK);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    accept(&play, last_seen(&play, MESSAGE_ASK_PLACE));
    ck_assert_uint_eq(agent_session_counts(play.session).asks_standing, 2);

    welcome(&play, &cluster);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_REPLACE), 2);
    reject(&play, find_seen(&play, MESSAGE_ORDER_REPLACE), REJECT_NOT_FOUND);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ADVERTISE), 0); /* that would end the other */
    accept(&play, last_seen(&play, MESSAGE_ORDER_REPLACE));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ADVERTISE), 0);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
    const Bourse__V1__AskPlace *placed =
        (const Bourse__V1__AskPlace *)(const void *)find_seen(&play, MESSAGE_ASK_PLACE)->message;
    ck_assert_mem_eq(placed->device.data, device.bytes, sizeof device.bytes);
}
END_TEST

START_TEST(at_rest_the_ask_is_withdrawn_and_nothing_is_started)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    ck_assert_str_eq(actions(&play), "ready, begin 1, start 1/0, prepare 1/1");
    ck_assert(!agent_session_withdrawn(play.session));

    agent_session_rest(play.session, play.now_ns, true, false);
    ck_assert_str_eq(actions(&play), ""); /* what runs goes on */
    ck_assert(!agent_session_withdrawn(play.session));
    accept(&play, find_seen(&play, MESSAGE_ORDER_CANCEL));
    ck_assert(!agent_session_withdrawn(play.session)); /* by hand one could still be placed */
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    ck_assert(agent_session_withdrawn(play.session));

    dispatch(&play, 1, 2, 0); /* was on its way: it goes back, too */
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_CANCELLED);
    ck_assert_int_eq(sent_outcome(&play, 2), OUTCOME_CANCELLED);
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_OK);
    ck_assert_str_eq(actions(&play), ""); /* the lease is the broker's to end */
    ck_assert_uint_eq(agent_session_counts(play.session).leases, 1);
    end_lease(&play, 1, LEASE_END_TERM);
    ck_assert_str_eq(actions(&play), "end 1");
}
END_TEST

START_TEST(at_rest_what_runs_is_cancelled_when_asked_for)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    (void)actions(&play);
    agent_session_rest(play.session, play.now_ns, true, false);
    ck_assert_str_eq(actions(&play), "");
    agent_session_rest(play.session, play.now_ns, true, true); /* the owner thought better of it */
    ck_assert_str_eq(actions(&play), "cancel 1/0");
}
END_TEST

START_TEST(after_a_rest_asks_are_placed_and_leases_work_again)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    (void)actions(&play);
    agent_session_rest(play.session, play.now_ns, true, false);
    accept(&play, find_seen(&play, MESSAGE_ORDER_CANCEL));
    forget_seen(&play);

    agent_session_pause(play.session, play.now_ns, true); /* a full disk comes and goes meanwhile */
    agent_session_pause(play.session, play.now_ns, false);
    accept(&play, last_seen(&play, MESSAGE_ADVERTISE));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);

    agent_session_rest(play.session, play.now_ns, false, false);
    accept(&play, last_seen(&play, MESSAGE_ADVERTISE));
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    struct agent_ask_row row;
    ck_assert(agent_session_ask(play.session, 0, &row));
    ck_assert(row.is_standing);
    ck_assert_str_eq(row.instrument, "cpu.x86_64.avx2");
    ck_assert(!agent_session_ask(play.session, 1, &row));
    dispatch(&play, 1, 0, 0);
    ck_assert_str_eq(actions(&play), "start 1/0");
    struct agent_lease_row leases[2];
    ck_assert_uint_eq(agent_session_leases(play.session, leases, 2), 1);
    ck_assert_uint_eq(leases[0].running, 1);
    ck_assert_uint_eq(agent_session_leases(play.session, leases, 0), 0);
}
END_TEST

/* Withdrawn is what the broker has said, not what was sent. */
START_TEST(a_cancel_that_the_broker_could_not_take_is_sent_again)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    agent_session_rest(play.session, play.now_ns, true, false);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    reject(&play, find_seen(&play, MESSAGE_ORDER_CANCEL), REJECT_BUSY);
    forget_seen(&play);
    ck_assert(!agent_session_withdrawn(play.session));
    pass_ms(&play, 2000);
    reject(&play, find_seen(&play, MESSAGE_ORDER_CANCEL), REJECT_NOT_FOUND);
    ck_assert(agent_session_withdrawn(play.session));
}
END_TEST

START_TEST(a_rest_without_a_broker_holds_at_the_next_welcome)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    agent_session_connected(play.session, play.now_ns, 8); /* no Welcome yet */
    agent_session_rest(play.session, play.now_ns, true, false);
    ck_assert(!agent_session_withdrawn(play.session));
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    accept(&play, find_seen(&play, MESSAGE_ORDER_CANCEL));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 1);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
    ck_assert(agent_session_withdrawn(play.session));
}
END_TEST

START_TEST(a_refused_ask_is_tried_again_later)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    struct id128 first = find_seen(&play, MESSAGE_ASK_PLACE)->id;
    reject(&play, find_seen(&play, MESSAGE_ASK_PLACE), REJECT_HALTED);
    forget_seen(&play);

    pass_ms(&play, 500);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
    pass_ms(&play, 1500);
    const struct seen *again = find_seen(&play, MESSAGE_ASK_PLACE);
    ck_assert_ptr_nonnull(again);
    ck_assert(!id128_equal(&again->id, &first));
}
END_TEST

START_TEST(a_refused_statement_is_made_anew_later)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    struct id128 first = find_seen(&play, MESSAGE_STATEMENT_HELD)->id;
    reject(&play, find_seen(&play, MESSAGE_STATEMENT_HELD), REJECT_BUSY);
    forget_seen(&play);

    pass_ms(&play, 500);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_STATEMENT_HELD), 0);
    pass_ms(&play, 1500);
    const struct seen *again = find_seen(&play, MESSAGE_STATEMENT_HELD);
    ck_assert_ptr_nonnull(again);
    ck_assert(!id128_equal(&again->id, &first));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0); /* the one that stands goes on */
    accept(&play, again);
    forget_seen(&play);
    pass_ms(&play, 120000);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_STATEMENT_HELD), 0);
}
END_TEST

START_TEST(a_refused_statement_is_made_anew_though_the_ask_went_out_again_meanwhile)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    reject(&play, find_seen(&play, MESSAGE_STATEMENT_HELD), REJECT_BUSY);
    agent_session_pause(play.session, play.now_ns, true);
    agent_session_pause(play.session, play.now_ns, false);
    forget_seen(&play);

    pass_ms(&play, 2000);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_STATEMENT_HELD), 1);
}
END_TEST

/* Fills the session with as many cancels as it keeps without an answer. */
static void fill_requests(struct play *play)
{
    for (size_t i = 0; i < SEEN_MAX / 4; i++) {
        agent_session_pause(play->session, play->now_ns, true);
        agent_session_pause(play->session, play->now_ns, false);
        accept(play, last_seen(play, MESSAGE_ADVERTISE));
    }
}

START_TEST(a_statement_that_finds_no_place_among_the_requests_is_made_later)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    reject(&play, find_seen(&play, MESSAGE_STATEMENT_HELD), REJECT_BUSY);
    forget_seen(&play);
    fill_requests(&play);
    pass_ms(&play, 2000);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_STATEMENT_HELD), 0);

    ck_assert_uint_gt(count_seen(&play, MESSAGE_ORDER_CANCEL), 10);
    play.now_ns += 60 * NS_PER_S; /* no refusal waits longer */
    for (size_t i = 0; i < play.seen_count; i++) {
        if (play.seen[i].type == MESSAGE_ORDER_CANCEL) {
            accept(&play, &play.seen[i]);
        }
    }
    pass_ms(&play, 0);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_STATEMENT_HELD), 1);
}
END_TEST

START_TEST(pause_cancels_the_ask_and_resume_places_it_again)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);

    agent_session_pause(play.session, play.now_ns, true);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 1);
    ck_assert_uint_eq(agent_session_counts(play.session).asks_standing, 0);
    agent_session_pause(play.session, play.now_ns, false);
    accept(&play, last_seen(&play, MESSAGE_ADVERTISE));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
}
END_TEST

START_TEST(while_it_is_paused_no_device_is_on_offer)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    agent_session_pause(play.session, play.now_ns, true);
    ck_assert_uint_eq(devices_of(last_seen(&play, MESSAGE_ADVERTISE)), 0);
    reject(&play, last_seen(&play, MESSAGE_ADVERTISE), REJECT_BUSY);
    forget_seen(&play);
    pass_ms(&play, 2000);
    ck_assert_uint_eq(devices_of(last_seen(&play, MESSAGE_ADVERTISE)), 0); /* until it is known */

    welcome(&play, &cluster);
    ck_assert_uint_eq(devices_of(last_seen(&play, MESSAGE_ADVERTISE)), 0);
    agent_session_pause(play.session, play.now_ns, false);
    ck_assert_uint_eq(devices_of(last_seen(&play, MESSAGE_ADVERTISE)), 1);
    accept(&play, last_seen(&play, MESSAGE_ADVERTISE));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
}
END_TEST

SUITE("provider asks", NULL, NULL, TEST(a_welcome_brings_statement_devices_and_then_the_ask),
      TEST(another_market_is_offered_nothing),
      TEST(a_reconnect_asks_anew_and_cancels_what_may_stand),
      TEST(an_ask_that_still_stands_after_a_reconnect_is_left_where_it_is),
      TEST(an_ask_that_is_gone_after_a_reconnect_is_placed_anew),
      TEST(an_ask_that_was_changed_beyond_what_is_taken_is_cancelled_and_placed_anew),
      TEST(whether_an_ask_stands_is_asked_again_where_the_broker_could_not_say),
      TEST(whether_an_ask_stands_is_asked_again_over_the_next_connection),
      TEST(of_several_asks_only_those_that_are_gone_are_placed_anew),
      TEST(at_rest_the_ask_is_withdrawn_and_nothing_is_started),
      TEST(at_rest_what_runs_is_cancelled_when_asked_for),
      TEST(after_a_rest_asks_are_placed_and_leases_work_again),
      TEST(a_cancel_that_the_broker_could_not_take_is_sent_again),
      TEST(a_rest_without_a_broker_holds_at_the_next_welcome),
      TEST(a_refused_ask_is_tried_again_later), TEST(a_refused_statement_is_made_anew_later),
      TEST(a_refused_statement_is_made_anew_though_the_ask_went_out_again_meanwhile),
      TEST(a_statement_that_finds_no_place_among_the_requests_is_made_later),
      TEST(pause_cancels_the_ask_and_resume_places_it_again),
      TEST(while_it_is_paused_no_device_is_on_offer))
