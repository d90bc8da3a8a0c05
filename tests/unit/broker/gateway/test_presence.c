/* The tests follow providers that fall silent, return, say goodbye, or were there before. */
#include "broker/gateway/presence.h"

#include "base/checked.h"
#include "tests/support/open_sessions.h"
#include "tests/support/suite.h"

#include <check.h>

enum { AGENT = 7 };
#define BEAT NS_PER_S

static enum entry_command_kind notice_at(int64_t now_ns)
{
    uint32_t position = 0;
    uint32_t account;
    enum entry_command_kind kind;
    if (!presence_next_notice(sessions, now_ns, BEAT, &position, &account, &kind)) {
        return ENTRY_TICK;
    }
    ck_assert_uint_eq(account, AGENT);
    presence_told(sessions, account, kind);
    return kind;
}

START_TEST(a_silent_provider_is_suspect_after_three_heartbeats_and_returns_by_speaking)
{
    ck_assert(presence_hello(sessions, AGENT, 99, 0));
    ck_assert_uint_eq(presence_session(sessions, AGENT), 99);
    ck_assert_int_eq(notice_at(3 * BEAT), ENTRY_TICK);
    ck_assert_int_eq(notice_at(3 * BEAT + 1), ENTRY_SUSPECT);
    ck_assert_int_eq(notice_at(9 * BEAT), ENTRY_TICK); /* told once */
    presence_heard(sessions, AGENT, 10 * BEAT);
    ck_assert_int_eq(notice_at(10 * BEAT), ENTRY_RETURNED);
    ck_assert_int_eq(notice_at(10 * BEAT), ENTRY_TICK);
}
END_TEST

START_TEST(a_suspect_provider_must_greet_anew)
{
    struct session *session = open_session(1, 1, AGENT);
    uint64_t number = session->number;
    ck_assert(presence_hello(sessions, AGENT, number, 0));
    ck_assert_ptr_nonnull(sessions_number(sessions, number));
    ck_assert_int_eq(notice_at(4 * BEAT), ENTRY_SUSPECT);
    ck_assert_ptr_null(sessions_of(sessions, number, &session->route, &session->transport));
    ck_assert_ptr_nonnull(sessions_number(sessions, number)); /* what it is sent is kept */

    session = open_session(1, 1, AGENT);
    ck_assert(presence_hello(sessions, AGENT, session->number, 5 * BEAT));
    ck_assert_int_eq(notice_at(5 * BEAT), ENTRY_RETURNED);
    ck_assert_ptr_nonnull(sessions_number(sessions, session->number));
}
END_TEST

static struct session *session_as(uint32_t route, uint8_t key, uint32_t account,
                                  enum session_role role)
{
    struct session *session = open_session(route, key, account);
    ck_assert_ptr_nonnull(session);
    session->role = role;
    return session;
}

static bool is_heard(const struct session *session)
{
    return sessions_of(sessions, session->number, &session->route, &session->transport) != NULL;
}

START_TEST(another_agent_with_the_key_greets_anew_when_the_last_one_is_gone)
{
    struct session *client = session_as(1, 1, AGENT, SESSION_CONSUMER);
    struct session *first = session_as(2, 1, AGENT, SESSION_PROVIDER);
    struct session *second = session_as(3, 1, AGENT, SESSION_PROVIDER);
    struct session *other = session_as(4, 2, AGENT + 1, SESSION_PROVIDER);
    ck_assert(presence_hello(sessions, AGENT, first->number, 0));
    ck_assert(presence_hello(sessions, AGENT + 1, other->number, 0));
    ck_assert(presence_hello(sessions, AGENT, second->number, 0));
    presence_lost(sessions, first); /* the pushes go elsewhere */
    ck_assert(is_heard(first) && is_heard(second));
    presence_goodbye(sessions, AGENT);
    ck_assert(!is_heard(first));
    ck_assert(is_heard(client) && is_heard(other));
    ck_assert_ptr_nonnull(sessions_number(sessions, first->number)); /* what it is sent is kept */
    ck_assert_int_eq(notice_at(0), ENTRY_GOODBYE);

    first = session_as(5, 1, AGENT, SESSION_PROVIDER);
    second = session_as(6, 1, AGENT, SESSION_PROVIDER);
    ck_assert(presence_hello(sessions, AGENT, second->number, 0));
    presence_lost(sessions, second); /* without a goodbye */
    ck_assert(!is_heard(first));
}
END_TEST

START_TEST(a_new_session_of_a_present_provider_says_nothing_and_a_goodbye_does)
{
    ck_assert(presence_hello(sessions, AGENT, 99, 0));
    ck_assert(presence_hello(sessions, AGENT, 100, BEAT)); /* cut off and back: no work is lost */
    ck_assert_int_eq(notice_at(BEAT), ENTRY_TICK);
    ck_assert_uint_eq(presence_session(sessions, AGENT), 100);
    presence_goodbye(sessions, AGENT);
    ck_assert_int_eq(notice_at(BEAT), ENTRY_GOODBYE);
    ck_assert_int_eq(notice_at(90 * BEAT), ENTRY_TICK); /* away is not silent */
    ck_assert(presence_hello(sessions, AGENT, 101, 100 * BEAT));
    ck_assert_int_eq(notice_at(104 * BEAT), ENTRY_SUSPECT);
}
END_TEST

START_TEST(a_provider_from_before_the_start_gets_the_usual_grace)
{
    ck_assert(presence_expect(sessions, AGENT, 50 * BEAT));
    ck_assert_int_eq(notice_at(53 * BEAT), ENTRY_TICK);
    ck_assert_int_eq(notice_at(54 * BEAT), ENTRY_SUSPECT);
}
END_TEST

SUITE("presence", setup, teardown,
      TEST(a_silent_provider_is_suspect_after_three_heartbeats_and_returns_by_speaking),
      TEST(a_suspect_provider_must_greet_anew),
      TEST(another_agent_with_the_key_greets_anew_when_the_last_one_is_gone),
      TEST(a_new_session_of_a_present_provider_says_nothing_and_a_goodbye_does),
      TEST(a_provider_from_before_the_start_gets_the_usual_grace))
