/* Which address a client tries next, and after how long. */
#include "protocol/route/route.h"

#include "base/checked.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const struct route_address three[] = {
    {"tcp://a:4770", "tcp://a:4771"}, {"tcp://b:4770", "tcp://b:4771"}, {"tcp://c:4770", ""}};

static struct random dice;

static void setup(void)
{
    dice = random_seeded(1);
}

static const char *now(const struct route *route)
{
    return route_now(route)->control;
}

static int64_t next(struct route *route, enum route_end end, const char *leader)
{
    return route_next_ns(route, end, leader, 0, &dice);
}

START_TEST(the_addresses_take_turns)
{
    struct route route;
    route_init(&route, three, 3);
    ck_assert_str_eq(now(&route), "tcp://a:4770");
    (void)next(&route, ROUTE_SILENT, "");
    ck_assert_str_eq(now(&route), "tcp://b:4770");
    (void)next(&route, ROUTE_REFUSED, "");
    ck_assert_str_eq(now(&route), "tcp://c:4770");
    (void)next(&route, ROUTE_ENDED, "");
    ck_assert_str_eq(now(&route), "tcp://a:4770");
}
END_TEST

START_TEST(a_named_leader_comes_first)
{
    struct route route;
    route_init(&route, three, 3);
    const int64_t wait = next(&route, ROUTE_FOLLOWS, "tcp://c:4770");
    ck_assert_str_eq(now(&route), "tcp://c:4770");
    ck_assert(wait <= ROUTE_REDIRECT_NS);
    (void)next(&route, ROUTE_FOLLOWS, ""); /* nobody leads just now */
    ck_assert_str_eq(now(&route), "tcp://a:4770");
}
END_TEST

START_TEST(a_leader_outside_the_list_is_used_once)
{
    struct route route;
    route_init(&route, three, 2);
    (void)next(&route, ROUTE_FOLLOWS, "tcp://d:4770");
    ck_assert_str_eq(now(&route), "tcp://d:4770");
    ck_assert_str_eq(route_now(&route)->blobs, "");
    route_stands(&route, "tcp://d:4771");
    ck_assert_str_eq(route_now(&route)->blobs, "tcp://d:4771");
    ck_assert(route_has_choice(&route));
    (void)next(&route, ROUTE_SILENT, "");
    ck_assert_str_eq(now(&route), "tcp://b:4770");
    (void)next(&route, ROUTE_SILENT, "");
    ck_assert_str_eq(now(&route), "tcp://a:4770");
    char text[300];
    route_explain(&route, text, sizeof text);
    ck_assert_str_eq(text, "tcp://a:4770 (it follows another broker), tcp://b:4770 (no answer), "
                           "tcp://d:4770 (no answer)");
}
END_TEST

START_TEST(a_leader_that_is_no_address_is_passed_over)
{
    static const char *const wrong[] = {"ipc:///tmp/x", "tcp://*:1", "tcp://a:4770", "d:4770"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct route route;
        route_init(&route, three, 3);
        const int64_t wait = next(&route, ROUTE_FOLLOWS, wrong[i]);
        ck_assert_str_eq(now(&route), "tcp://b:4770");
        ck_assert(wait >= ROUTE_WAIT_FIRST_NS / 2);
    }
}
END_TEST

START_TEST(waits_double_up_to_five_seconds)
{
    struct route route;
    route_init(&route, three, 3);
    int64_t most = ROUTE_WAIT_FIRST_NS;
    for (int i = 0; i < 12; i++) {
        const int64_t wait = next(&route, ROUTE_SILENT, "");
        ck_assert(wait >= most / 2 && wait <= most);
        most = 2 * most < ROUTE_WAIT_MOST_NS ? 2 * most : ROUTE_WAIT_MOST_NS;
    }
    ck_assert(most == ROUTE_WAIT_MOST_NS);
    route_stands(&route, NULL);
    ck_assert(next(&route, ROUTE_SILENT, "") <= ROUTE_WAIT_FIRST_NS);
}
END_TEST

START_TEST(two_followers_that_name_each_other_do_not_keep_a_client_hopping)
{
    struct route route;
    int64_t spent_ns = 0;
    unsigned attempts = 0;
    route_init(&route, three, 2);
    while (spent_ns < 10 * NS_PER_S) {
        attempts++;
        route_stands(&route, NULL); /* each opens a session, and then refuses the first command */
        spent_ns +=
            next(&route, ROUTE_FOLLOWS,
                 strcmp(now(&route), "tcp://a:4770") == 0 ? "tcp://b:4770" : "tcp://a:4770");
    }
    ck_assert_uint_le(attempts, ROUTE_REDIRECTS_MAX + 10);
    route_leads(&route);
    const char *other = strcmp(now(&route), "tcp://a:4770") == 0 ? "tcp://b:4770" : "tcp://a:4770";
    ck_assert(next(&route, ROUTE_FOLLOWS, other) <= ROUTE_REDIRECT_NS);
}
END_TEST

START_TEST(the_clients_of_a_session_spread_their_return)
{
    int64_t longest = 0;
    for (int i = 0; i < 100; i++) {
        struct route route;
        route_init(&route, three, 3);
        route_stands(&route, NULL);
        const int64_t wait =
            route_next_ns(&route, ROUTE_FOLLOWS, "tcp://b:4770", 4 * NS_PER_S, &dice);
        longest = wait > longest ? wait : longest;
        ck_assert(wait <= 4 * NS_PER_S + ROUTE_REDIRECT_NS);
    }
    ck_assert(longest > 2 * NS_PER_S);
}
END_TEST

START_TEST(one_address_is_tried_again_and_has_longer)
{
    struct route route;
    route_init(&route, three, 1);
    ck_assert(!route_has_choice(&route));
    ck_assert(route_greeting_ns(&route) == ROUTE_ONE_GREETING_NS);
    (void)next(&route, ROUTE_SILENT, "");
    ck_assert_str_eq(now(&route), "tcp://a:4770");
    (void)next(&route, ROUTE_FOLLOWS, "tcp://b:4770");
    ck_assert_str_eq(now(&route), "tcp://b:4770");
    ck_assert(route_greeting_ns(&route) == ROUTE_GREETING_NS);
}
END_TEST

START_TEST(without_an_address_only_the_waits_count)
{
    struct route route;
    route_init(&route, NULL, 0);
    ck_assert_ptr_null(route_now(&route));
    ck_assert(next(&route, ROUTE_FOLLOWS, "tcp://b:4770") >= ROUTE_WAIT_FIRST_NS / 2);
    ck_assert_ptr_null(route_now(&route));
    route_stands(&route, "tcp://b:4771");
    char text[10];
    route_explain(&route, text, sizeof text);
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(an_explanation_is_cut)
{
    struct route route;
    char text[20];
    route_init(&route, three, 3);
    route_explain(&route, text, sizeof text);
    ck_assert_str_eq(text, "tcp://a:4770 (not t");
}
END_TEST

SUITE("route", setup, NULL, TEST(the_addresses_take_turns), TEST(a_named_leader_comes_first),
      TEST(a_leader_outside_the_list_is_used_once),
      TEST(a_leader_that_is_no_address_is_passed_over), TEST(waits_double_up_to_five_seconds),
      TEST(two_followers_that_name_each_other_do_not_keep_a_client_hopping),
      TEST(the_clients_of_a_session_spread_their_return),
      TEST(one_address_is_tried_again_and_has_longer),
      TEST(without_an_address_only_the_waits_count), TEST(an_explanation_is_cut))
