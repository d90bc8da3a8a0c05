/* The tests play a session whose owner takes one of two devices off the market, and brings it
 * back. */
#include "tests/support/agent_play.h"
#include "tests/support/suite.h"

static const struct id128 other_device = {{0xd2}};

static void offer_both(struct play *play)
{
    static const struct attribute attributes[] = {{.name = "kind", .is_text = true, .text = "cpu"}};
    const struct agent_device offered[] = {{.device = device,
                                            .instrument = "cpu.x86_64.avx2",
                                            .label = "attic",
                                            .slots = 4,
                                            .attributes = attributes,
                                            .attribute_count = 1},
                                           {.device = other_device,
                                            .instrument = "cpu.x86_64.avx2",
                                            .label = "quiet",
                                            .slots = 2,
                                            .attributes = attributes,
                                            .attribute_count = 1}};
    const struct agent_ask asks[] = {{.device = device, .slots = 4, .price_micro = 100000},
                                     {.device = other_device, .slots = 2, .price_micro = 200000}};
    ck_assert_int_eq(agent_session_offer(play->session, play->now_ns, offered, 2, asks, 2),
                     AGENT_OK);
}

/* Returns the number of devices that are advertised, after the broker has taken them. */
static size_t advertised(struct play *play)
{
    const struct seen *advertise = find_seen(play, MESSAGE_ADVERTISE);
    ck_assert_ptr_nonnull(advertise);
    const size_t count = devices_of(advertise);
    accept(play, advertise);
    return count;
}

static void settle_both(struct play *play)
{
    play_start(play);
    offer_both(play);
    welcome(play, &cluster);
    accept(play, find_seen(play, MESSAGE_STATEMENT_HELD));
    ck_assert_uint_eq(advertised(play), 2);
    ck_assert_uint_eq(count_seen(play, MESSAGE_ASK_PLACE), 2);
    const struct seen first = *find_seen(play, MESSAGE_ASK_PLACE);
    const struct seen last = *last_seen(play, MESSAGE_ASK_PLACE);
    accept(play, &first);
    accept(play, &last);
    ck_assert_uint_eq(agent_session_counts(play->session).asks_standing, 2);
    (void)actions(play);
    forget_seen(play);
}

static struct agent_device_row row_of(const struct play *play, size_t index)
{
    struct agent_device_row row;
    ck_assert(agent_session_device(play->session, index, &row));
    return row;
}

START_TEST(one_device_leaves_and_the_other_stays)
{
    CLEANUP(play_end) struct play play;
    struct agent_device_row row;
    settle_both(&play);
    ck_assert_str_eq(row_of(&play, 1).label, "quiet");
    ck_assert(!row_of(&play, 1).is_withheld && !row_of(&play, 1).is_withdrawn);
    ck_assert(!agent_session_device(play.session, 2, &row));

    agent_session_withhold(play.session, play.now_ns, 1, AGENT_WITHHOLD);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 1);
    ck_assert(row_of(&play, 1).is_withheld && !row_of(&play, 1).is_withdrawn);
    ck_assert(!row_of(&play, 1).is_standing && row_of(&play, 0).is_standing);
    accept(&play, find_seen(&play, MESSAGE_ORDER_CANCEL));
    ck_assert(row_of(&play, 1).is_withdrawn);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ADVERTISE), 0);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
    ck_assert_uint_eq(agent_session_counts(play.session).asks_standing, 1);
    forget_seen(&play);

    /* A second call does nothing. */
    agent_session_withhold(play.session, play.now_ns, 1, AGENT_WITHHOLD);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 0);
    agent_session_withhold(play.session, play.now_ns, 1, AGENT_WITHHOLD_NOT);
    ck_assert(!row_of(&play, 1).is_withheld);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ADVERTISE), 0);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
    const Bourse__V1__AskPlace *ask =
        (const Bourse__V1__AskPlace *)(const void *)find_seen(&play, MESSAGE_ASK_PLACE)->message;
    ck_assert_int_eq(memcmp(ask->device.data, other_device.bytes, 16), 0);
}
END_TEST

START_TEST(a_withheld_device_stays_so_over_connections_and_offers)
{
    CLEANUP(play_end) struct play play;
    settle_both(&play);
    agent_session_withhold(play.session, play.now_ns, 1, AGENT_WITHHOLD);
    offer_both(&play);
    ck_assert(row_of(&play, 1).is_withheld && !row_of(&play, 0).is_withheld);
    forget_seen(&play);
    welcome(&play, &cluster);
    ck_assert_uint_eq(advertised(&play), 2);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
    ck_assert(!row_of(&play, 1).is_standing);
}
END_TEST

static void ask_event(struct play *play, const struct id128 *of, const struct id128 *order,
                      bool stands)
{
    static const struct id128 none;
    Bourse__V1__AskEvent body = BOURSE__V1__ASK_EVENT__INIT;
    body.device = view(of->bytes, 16);
    body.order = view(order->bytes, 16);
    body.stands = stands;
    body.slots = 1;
    body.price_micro = 770000;
    say(play, MESSAGE_ASK_EVENT, &none, &body.base);
}

START_TEST(what_the_owner_did_to_other_asks_stays)
{
    static const struct id128 by_hand = {{0x77}};
    CLEANUP(play_end) struct play play;
    struct agent_ask_row row;
    settle_both(&play);
    ask_event(&play, &device, &by_hand, true);
    ck_assert(agent_session_ask(play.session, 0, &row) && row.is_by_hand);
    agent_session_withhold(play.session, play.now_ns, 1, AGENT_WITHHOLD);
    agent_session_withhold(play.session, play.now_ns, 1, AGENT_WITHHOLD_NOT);
    ck_assert(agent_session_ask(play.session, 0, &row) && row.is_by_hand);
    ck_assert_int_eq(row.terms.price_micro, 770000);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 1);
}
END_TEST

START_TEST(an_ask_by_hand_for_a_withheld_device_is_cancelled)
{
    static const struct id128 by_hand = {{0x77}};
    CLEANUP(play_end) struct play play;
    struct agent_ask_row row;
    settle_both(&play);
    agent_session_withhold(play.session, play.now_ns, 1, AGENT_WITHHOLD);
    accept(&play, find_seen(&play, MESSAGE_ORDER_CANCEL));
    forget_seen(&play);
    ask_event(&play, &other_device, &by_hand, true);
    ck_assert(agent_session_ask(play.session, 1, &row) && !row.is_by_hand && row.is_withheld);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 1);
}
END_TEST

START_TEST(work_of_the_device_is_given_back_and_that_of_others_goes_on)
{
    CLEANUP(play_end) struct play play;
    settle_both(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    ck_assert_uint_eq(row_of(&play, 0).running, 1);
    (void)actions(&play);
    agent_session_withhold(play.session, play.now_ns, 1, AGENT_WITHHOLD_CANCEL);
    ck_assert_str_eq(actions(&play), ""); /* the lease is of the other device */
    agent_session_withhold(play.session, play.now_ns, 0, AGENT_WITHHOLD);
    ck_assert_str_eq(actions(&play), "");
    dispatch(&play, 1, 2, 0);
    ck_assert_str_eq(actions(&play), ""); /* no more work is started */
    pass_ms(&play, 1000);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_CANCELLED);
    ck_assert_int_eq(sent_outcome(&play, 2), OUTCOME_CANCELLED);
    ck_assert_uint_eq(row_of(&play, 0).running, 1);
    agent_session_withhold(play.session, play.now_ns, 0, AGENT_WITHHOLD_CANCEL);
    ck_assert_str_eq(actions(&play), "cancel 1/0");
}
END_TEST

START_TEST(a_device_comes_back_when_neither_its_owner_nor_a_rule_withholds_it)
{
    CLEANUP(play_end) struct play play;
    struct agent_ask_row ask;
    settle_both(&play);
    agent_session_hold(play.session, play.now_ns, 1, AGENT_HOLD_USE, AGENT_WITHHOLD);
    ck_assert(row_of(&play, 1).is_withheld && row_of(&play, 1).is_held);
    ck_assert(agent_session_ask(play.session, 1, &ask) && ask.is_withheld && ask.is_held);
    ck_assert(agent_session_holds(play.session, "quiet") && agent_session_holds(play.session, ""));
    ck_assert(!agent_session_holds(play.session, row_of(&play, 0).label));
    accept(&play, find_seen(&play, MESSAGE_ORDER_CANCEL));
    forget_seen(&play);
    agent_session_withhold(play.session, play.now_ns, 1, AGENT_WITHHOLD);
    agent_session_hold(play.session, play.now_ns, 1, AGENT_HOLD_USE, AGENT_WITHHOLD_NOT);
    ck_assert(row_of(&play, 1).is_withheld && !row_of(&play, 1).is_held);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
    agent_session_hold(play.session, play.now_ns, 1, AGENT_HOLD_USE, AGENT_WITHHOLD);
    offer_both(&play);
    ck_assert(row_of(&play, 1).is_held && !row_of(&play, 0).is_withheld);
    forget_seen(&play);
    agent_session_withhold(play.session, play.now_ns, 1, AGENT_WITHHOLD_NOT);
    ck_assert(row_of(&play, 1).is_withheld && row_of(&play, 1).is_held);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
    agent_session_hold(play.session, play.now_ns, 1, AGENT_HOLD_USE, AGENT_WITHHOLD_NOT);
    ck_assert(!row_of(&play, 1).is_withheld && !agent_session_holds(play.session, ""));
}
END_TEST

START_TEST(a_device_that_two_rules_hold_comes_back_when_neither_does)
{
    CLEANUP(play_end) struct play play;
    settle_both(&play);
    agent_session_hold(play.session, play.now_ns, 1, AGENT_HOLD_USE, AGENT_WITHHOLD);
    agent_session_hold(play.session, play.now_ns, 1, AGENT_HOLD_FAULT, AGENT_WITHHOLD);
    accept(&play, find_seen(&play, MESSAGE_ORDER_CANCEL));
    forget_seen(&play);
    agent_session_hold(play.session, play.now_ns, 1, AGENT_HOLD_USE, AGENT_WITHHOLD_NOT);
    ck_assert(row_of(&play, 1).is_withheld && row_of(&play, 1).is_held);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
    offer_both(&play); /* the devices are offered anew, and the rule still holds */
    ck_assert(row_of(&play, 1).is_held && !row_of(&play, 0).is_withheld);
    agent_session_hold(play.session, play.now_ns, 1, AGENT_HOLD_FAULT, AGENT_WITHHOLD_NOT);
    ck_assert(!row_of(&play, 1).is_withheld);
}
END_TEST

SUITE("withheld devices", NULL, NULL, TEST(one_device_leaves_and_the_other_stays),
      TEST(a_withheld_device_stays_so_over_connections_and_offers),
      TEST(what_the_owner_did_to_other_asks_stays),
      TEST(a_device_comes_back_when_neither_its_owner_nor_a_rule_withholds_it),
      TEST(a_device_that_two_rules_hold_comes_back_when_neither_does),
      TEST(an_ask_by_hand_for_a_withheld_device_is_cancelled),
      TEST(work_of_the_device_is_given_back_and_that_of_others_goes_on))
