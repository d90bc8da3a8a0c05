/* The tests choose the address that a client tries next, and the wait before it. */
#include "protocol/route/contacts.h"

#include "base/checked.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const struct contact three[] = {
    {"tcp://a:4770", "tcp://a:4771"}, {"tcp://b:4770", "tcp://b:4771"}, {"tcp://c:4770", ""}};

static struct random dice;

static void setup(void)
{
    dice = random_seeded(1);
}

static const char *now(const struct contacts *contacts)
{
    return contacts_now(contacts)->control;
}

static int64_t next(struct contacts *contacts, enum contact_end end, const char *leader)
{
    return contacts_next_ns(contacts, end, leader, 0, &dice);
}

START_TEST(the_addresses_take_turns)
{
    struct contacts contacts;
    contacts_init(&contacts, three, 3);
    ck_assert_str_eq(now(&contacts), "tcp://a:4770");
    (void)next(&contacts, CONTACT_SILENT, "");
    ck_assert_str_eq(now(&contacts), "tcp://b:4770");
    (void)next(&contacts, CONTACT_REFUSED, "");
    ck_assert_str_eq(now(&contacts), "tcp://c:4770");
    (void)next(&contacts, CONTACT_ENDED, "");
    ck_assert_str_eq(now(&contacts), "tcp://a:4770");
}
END_TEST

START_TEST(a_named_leader_comes_first)
{
    struct contacts contacts;
    contacts_init(&contacts, three, 3);
    const int64_t wait = next(&contacts, CONTACT_FOLLOWS, "tcp://c:4770");
    ck_assert_str_eq(now(&contacts), "tcp://c:4770");
    ck_assert(wait <= CONTACTS_REDIRECT_NS);
    (void)next(&contacts, CONTACT_FOLLOWS, ""); /* nobody leads just now */
    ck_assert_str_eq(now(&contacts), "tcp://a:4770");
}
END_TEST

START_TEST(a_leader_outside_the_list_is_used_once)
{
    struct contacts contacts;
    contacts_init(&contacts, three, 2);
    (void)next(&contacts, CONTACT_FOLLOWS, "tcp://d:4770");
    ck_assert_str_eq(now(&contacts), "tcp://d:4770");
    ck_assert_str_eq(contacts_now(&contacts)->blobs, "");
    contacts_stands(&contacts, "tcp://d:4771");
    ck_assert_str_eq(contacts_now(&contacts)->blobs, "tcp://d:4771");
    ck_assert(contacts_has_choice(&contacts));
    (void)next(&contacts, CONTACT_SILENT, "");
    ck_assert_str_eq(now(&contacts), "tcp://b:4770");
    (void)next(&contacts, CONTACT_SILENT, "");
    ck_assert_str_eq(now(&contacts), "tcp://a:4770");
    char text[300];
    contacts_explain(&contacts, text, sizeof text);
    ck_assert_str_eq(text, "tcp://a:4770 (it follows another broker), tcp://b:4770 (no answer), "
                           "tcp://d:4770 (no answer)");
}
END_TEST

START_TEST(a_leader_that_is_no_address_is_passed_over)
{
    static const char *const wrong[] = {"ipc:///tmp/x", "tcp://*:1", "tcp://a:4770", "d:4770"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct contacts contacts;
        contacts_init(&contacts, three, 3);
        const int64_t wait = next(&contacts, CONTACT_FOLLOWS, wrong[i]);
        ck_assert_str_eq(now(&contacts), "tcp://b:4770");
        ck_assert(wait >= CONTACTS_WAIT_FIRST_NS / 2);
    }
}
END_TEST

START_TEST(waits_double_up_to_five_seconds)
{
    struct contacts contacts;
    contacts_init(&contacts, three, 3);
    int64_t most = CONTACTS_WAIT_FIRST_NS;
    for (int i = 0; i < 12; i++) {
        const int64_t wait = next(&contacts, CONTACT_SILENT, "");
        ck_assert(wait >= most / 2 && wait <= most);
        most = 2 * most < CONTACTS_WAIT_MOST_NS ? 2 * most : CONTACTS_WAIT_MOST_NS;
    }
    ck_assert(most == CONTACTS_WAIT_MOST_NS);
    contacts_stands(&contacts, NULL);
    ck_assert(next(&contacts, CONTACT_SILENT, "") <= CONTACTS_WAIT_FIRST_NS);
}
END_TEST

START_TEST(two_followers_that_name_each_other_do_not_keep_a_client_hopping)
{
    struct contacts contacts;
    int64_t spent_ns = 0;
    unsigned attempts = 0;
    contacts_init(&contacts, three, 2);
    while (spent_ns < 10 * NS_PER_S) {
        attempts++;
        contacts_stands(&contacts,
                        NULL); /* each opens a session, and then refuses the first command */
        spent_ns +=
            next(&contacts, CONTACT_FOLLOWS,
                 strcmp(now(&contacts), "tcp://a:4770") == 0 ? "tcp://b:4770" : "tcp://a:4770");
    }
    ck_assert_uint_le(attempts, CONTACTS_REDIRECTS_MAX + CONTACTS_ELECTION_TRIES + 6);
    contacts_leads(&contacts);
    const char *other =
        strcmp(now(&contacts), "tcp://a:4770") == 0 ? "tcp://b:4770" : "tcp://a:4770";
    ck_assert(next(&contacts, CONTACT_FOLLOWS, other) <= CONTACTS_REDIRECT_NS);
}
END_TEST

/* A follower may still name the leader that died. The third broker is asked meanwhile, soon and
 * often, because somebody will lead in a moment. */
START_TEST(a_dead_leader_that_is_named_has_its_turn_like_any_other)
{
    struct contacts contacts;
    int64_t longest = 0;
    contacts_init(&contacts, three, 3);
    contacts_stands(&contacts, NULL);
    contacts_leads(&contacts);
    (void)next(&contacts, CONTACT_CLOSED, "");
    for (int round = 0; round < 3; round++) {
        ck_assert_str_eq(now(&contacts), "tcp://b:4770");
        int64_t wait = next(&contacts, CONTACT_FOLLOWS, "tcp://a:4770");
        longest = wait > longest ? wait : longest;
        ck_assert_str_eq(now(&contacts), "tcp://c:4770");
        wait = next(&contacts, CONTACT_FOLLOWS, "tcp://a:4770");
        longest = wait > longest ? wait : longest;
        ck_assert_str_eq(now(&contacts), "tcp://a:4770");
        wait = next(&contacts, CONTACT_CLOSED, "");
        longest = wait > longest ? wait : longest;
    }
    ck_assert(longest <= CONTACTS_ELECTION_NS);
    (void)next(&contacts, CONTACT_FOLLOWS, "tcp://c:4770"); /* which leads now */
    ck_assert_str_eq(now(&contacts), "tcp://c:4770");
}
END_TEST

START_TEST(a_dead_leader_outside_the_list_is_tried_again)
{
    struct contacts contacts;
    contacts_init(&contacts, three, 1);
    (void)next(&contacts, CONTACT_FOLLOWS, "tcp://d:4770");
    ck_assert_str_eq(now(&contacts), "tcp://d:4770");
    (void)next(&contacts, CONTACT_CLOSED, "");
    (void)next(&contacts, CONTACT_FOLLOWS, "tcp://d:4770");
    ck_assert_str_eq(now(&contacts), "tcp://a:4770");
    (void)next(&contacts, CONTACT_FOLLOWS, "tcp://d:4770");
    ck_assert_str_eq(now(&contacts), "tcp://d:4770");
}
END_TEST

START_TEST(the_clients_of_a_session_spread_their_return)
{
    int64_t longest = 0;
    for (int i = 0; i < 100; i++) {
        struct contacts contacts;
        contacts_init(&contacts, three, 3);
        contacts_stands(&contacts, NULL);
        const int64_t wait =
            contacts_next_ns(&contacts, CONTACT_FOLLOWS, "tcp://b:4770", 4 * NS_PER_S, &dice);
        longest = wait > longest ? wait : longest;
        ck_assert(wait <= 4 * NS_PER_S + CONTACTS_REDIRECT_NS);
    }
    ck_assert(longest > 2 * NS_PER_S);
}
END_TEST

START_TEST(one_address_is_tried_again_and_has_longer)
{
    struct contacts contacts;
    contacts_init(&contacts, three, 1);
    ck_assert(!contacts_has_choice(&contacts));
    ck_assert(contacts_greeting_ns(&contacts) == CONTACTS_ONE_GREETING_NS);
    (void)next(&contacts, CONTACT_SILENT, "");
    ck_assert_str_eq(now(&contacts), "tcp://a:4770");
    (void)next(&contacts, CONTACT_FOLLOWS, "tcp://b:4770");
    ck_assert_str_eq(now(&contacts), "tcp://b:4770");
    ck_assert(contacts_greeting_ns(&contacts) == CONTACTS_GREETING_NS);
}
END_TEST

START_TEST(without_an_address_only_the_waits_count)
{
    struct contacts contacts;
    contacts_init(&contacts, NULL, 0);
    ck_assert_ptr_null(contacts_now(&contacts));
    ck_assert(next(&contacts, CONTACT_FOLLOWS, "tcp://b:4770") >= CONTACTS_WAIT_FIRST_NS / 2);
    ck_assert_ptr_null(contacts_now(&contacts));
    contacts_stands(&contacts, "tcp://b:4771");
    char text[10];
    contacts_explain(&contacts, text, sizeof text);
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(an_explanation_is_cut)
{
    struct contacts contacts;
    char text[20];
    contacts_init(&contacts, three, 3);
    contacts_explain(&contacts, text, sizeof text);
    ck_assert_str_eq(text, "tcp://a:4770 (not t");
}
END_TEST

SUITE("contacts", setup, NULL, TEST(the_addresses_take_turns), TEST(a_named_leader_comes_first),
      TEST(a_leader_outside_the_list_is_used_once),
      TEST(a_leader_that_is_no_address_is_passed_over), TEST(waits_double_up_to_five_seconds),
      TEST(two_followers_that_name_each_other_do_not_keep_a_client_hopping),
      TEST(a_dead_leader_that_is_named_has_its_turn_like_any_other),
      TEST(a_dead_leader_outside_the_list_is_tried_again),
      TEST(the_clients_of_a_session_spread_their_return),
      TEST(one_address_is_tried_again_and_has_longer),
      TEST(without_an_address_only_the_waits_count), TEST(an_explanation_is_cut))
