#include "broker/gateway/sessions.h"

#include "base/checked.h"
#include "exchange/exchange.h"
#include "tests/support/open_sessions.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

#define BEAT NS_PER_S

START_TEST(a_session_is_found_by_number_on_its_own_route_and_key_only)
{
    struct session *session = open_session(1, 1, 3);
    struct route other_route = {{9}};
    struct key32 other_key = {{9}};

    ck_assert_ptr_eq(sessions_of(sessions, session->number, &session->route, &session->transport),
                     session);
    ck_assert_ptr_null(sessions_of(sessions, session->number, &other_route, &session->transport));
    ck_assert_ptr_null(sessions_of(sessions, session->number, &session->route, &other_key));
    ck_assert_ptr_null(
        sessions_of(sessions, session->number + 1, &session->route, &session->transport));
    ck_assert_ptr_null(sessions_number(sessions, 0));
}
END_TEST

START_TEST(a_second_hello_on_a_route_ends_the_first_session)
{
    struct session *first = open_session(1, 1, 3);
    uint64_t number = first->number;
    struct session *second = open_session(1, 1, 3);

    ck_assert_ptr_nonnull(second);
    ck_assert_uint_ne(second->number, number);
    ck_assert_ptr_null(sessions_number(sessions, number));
    ck_assert(first->is_closing); /* until the core knows */
    sessions_forget(sessions, first);
    ck_assert_ptr_nonnull(sessions_number(sessions, second->number));
}
END_TEST

START_TEST(anonymous_keys_and_single_keys_have_their_caps)
{
    for (uint32_t i = 0; i < SESSIONS_PER_KEY; i++) {
        ck_assert_ptr_nonnull(open_session(i, 1, 3));
    }
    ck_assert_ptr_null(open_session(1000, 1, 3));
    for (uint32_t i = 0; i < SESSIONS_ANONYMOUS; i++) {
        ck_assert_ptr_nonnull(open_session(2000 + i, (uint8_t)(10 + i % 8), EXCHANGE_NO_ACCOUNT));
    }
    ck_assert_ptr_null(open_session(5000, 30, EXCHANGE_NO_ACCOUNT));
    ck_assert_ptr_nonnull(open_session(5001, 31, 4));
}
END_TEST

START_TEST(a_full_house_has_room_again_once_a_session_that_ended_is_forgotten)
{
    struct session *last = NULL;
    for (uint32_t i = 0; i < SESSIONS_MAX; i++) {
        last = open_session(i, (uint8_t)(i / SESSIONS_PER_KEY), i / SESSIONS_PER_KEY);
        ck_assert_ptr_nonnull(last);
    }
    ck_assert_ptr_null(open_session(SESSIONS_MAX, 200, 200));
    last->heard_sequence = 7;
    last->allowance.told_ns = 7;
    last->is_welcome_due = true;
    struct resend_message message = {.type = MESSAGE_DISPATCH, .body = calloc(1, 8), .length = 8};
    sessions_keep(sessions, last, &message);
    uint64_t number = last->number;
    sessions_close(last);
    ck_assert_ptr_null(open_session(SESSIONS_MAX, 200, 200)); /* the core does not know yet */
    sessions_forget(sessions, last);
    struct session *next = open_session(SESSIONS_MAX, 200, 200);
    ck_assert_ptr_eq(next, last);
    ck_assert_uint_ne(next->number, number);
    ck_assert_ptr_null(sessions_number(sessions, number));
    ck_assert_uint_eq(next->heard_sequence + next->resend.last + next->resend.bytes, 0);
    ck_assert(next->allowance.told_ns == 0 && !next->is_welcome_due && !next->is_closing);
}
END_TEST

/* ---- resuming (P15) */

static void send_one(struct session *session, bool is_taken)
{
    struct resend_message message = {.type = MESSAGE_DISPATCH, .body = calloc(1, 8), .length = 8};
    session->wire_sequence += is_taken;
    sessions_keep(sessions, session, &message);
}

static const struct route elsewhere = {{77}};

static struct session *resume(const struct session *session, uint64_t seen)
{
    return sessions_resume(sessions, session->number, seen, &elsewhere, &session->transport,
                           session->account, session->role, BEAT);
}

START_TEST(a_session_goes_on_over_another_connection)
{
    struct session *session = open_session(1, 1, 3);
    for (int i = 0; i < 5; i++) {
        send_one(session, true);
    }
    sessions_detach(session);
    send_one(session, false);
    struct route former = session->route;
    ck_assert_ptr_eq(resume(session, 3), session);
    ck_assert_uint_eq(session->wire_sequence, 3); /* 4 to 6 are sent again */
    ck_assert_uint_eq(session->resend.last, 6);
    ck_assert_ptr_nonnull(resend_buffer_find(&session->resend, 4));
    ck_assert_ptr_null(resend_buffer_find(&session->resend, 3));
    ck_assert_ptr_null(sessions_of(sessions, session->number, &former, &session->transport));
    ck_assert_ptr_eq(sessions_of(sessions, session->number, &elsewhere, &session->transport),
                     session);
}
END_TEST

START_TEST(only_its_own_client_goes_on_with_a_session)
{
    struct session *session = open_session(1, 1, 3);
    struct key32 other_key = {{9}};
    send_one(session, true);
    ck_assert_ptr_null(sessions_resume(sessions, session->number, 1, &elsewhere, &other_key, 3,
                                       SESSION_CONSUMER, 0));
    ck_assert_ptr_null(sessions_resume(sessions, session->number, 1, &elsewhere,
                                       &session->transport, 4, SESSION_CONSUMER, 0));
    ck_assert_ptr_null(sessions_resume(sessions, session->number, 1, &elsewhere,
                                       &session->transport, 3, SESSION_PROVIDER, 0));
    ck_assert_ptr_null(sessions_resume(sessions, session->number + SESSIONS_MAX, 1, &elsewhere,
                                       &session->transport, 3, SESSION_CONSUMER, 0));
    ck_assert_ptr_null(resume(session, 0)); /* not even its Welcome */
    ck_assert_ptr_null(resume(session, 2)); /* that was never sent */
    ck_assert_ptr_eq(resume(session, 1), session);
    struct session *stranger = open_session(3, 5, EXCHANGE_NO_ACCOUNT);
    send_one(stranger, true);
    ck_assert_ptr_null(resume(stranger, 1));
}
END_TEST

START_TEST(what_is_not_kept_any_more_cannot_be_resumed)
{
    struct session *session = open_session(1, 1, 3);
    for (int i = 0; i < RESEND_BUFFER_MESSAGES + 10; i++) {
        send_one(session, true);
    }
    ck_assert_ptr_null(resume(session, 9));
    ck_assert_ptr_eq(resume(session, 10), session);
    sessions_close(session);
    ck_assert_ptr_null(resume(session, 10));
}
END_TEST

START_TEST(a_session_that_falls_behind_its_cap_is_over)
{
    struct session *session = open_session(1, 1, 3);
    send_one(session, true);
    for (int i = 0; i < RESEND_BUFFER_MESSAGES; i++) {
        ck_assert(!session->is_closing);
        send_one(session, false); /* its connection takes nothing */
    }
    ck_assert(!session->is_closing);
    send_one(session, false);
    ck_assert(session->is_closing);
}
END_TEST

START_TEST(a_heartbeat_frees_what_it_names_and_no_more_than_was_sent)
{
    struct session *session = open_session(1, 1, 3);
    for (int i = 0; i < 5; i++) {
        send_one(session, true);
    }
    send_one(session, false);
    sessions_seen(sessions, session, 3);
    ck_assert_uint_eq(session->resend.count, 3);
    sessions_seen(sessions, session, 1000);
    ck_assert_uint_eq(session->resend.count, 1); /* the one not sent yet stays */
    ck_assert_ptr_nonnull(resend_buffer_find(&session->resend, 6));
}
END_TEST

START_TEST(a_lost_session_makes_room_for_a_new_one_of_its_key)
{
    struct session *lost = open_session(0, 1, 3);
    sessions_detach(lost);
    for (uint32_t i = 1; i < SESSIONS_PER_KEY; i++) {
        ck_assert_ptr_nonnull(open_session(i, 1, 3));
    }
    ck_assert(!lost->is_closing);
    ck_assert_ptr_nonnull(open_session(1000, 1, 3));
    ck_assert(lost->is_closing);
    ck_assert_ptr_null(open_session(1001, 1, 3));
}
END_TEST

static void send_large(struct session *session, size_t count, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        struct resend_message message = {
            .type = MESSAGE_DISPATCH, .body = calloc(1, length), .length = length};
        session->wire_sequence++;
        sessions_keep(sessions, session, &message);
    }
}

static size_t kept_of(uint32_t account)
{
    size_t bytes = 0, position = 0;
    for (struct session *session; (session = sessions_next(sessions, &position)) != NULL;) {
        bytes += session->account == account ? session->resend.bytes : 0;
    }
    return bytes;
}

START_TEST(one_account_takes_nothing_of_what_is_kept_for_others)
{
    struct session *honest = open_session(1000, 2, 4);
    send_large(honest, 1, 8);
    for (uint32_t i = 0; i < SESSIONS_PER_KEY; i++) {
        send_large(open_session(i, 1, 3), 16, 128 << 10); /* reads all, names nothing as seen */
    }
    ck_assert_uint_le(kept_of(3), RESEND_BUFFER_ACCOUNT_BYTES);
    ck_assert_uint_gt(kept_of(3), RESEND_BUFFER_ACCOUNT_BYTES / 2);
    sessions_detach(honest);
    send_one(honest, false);
    ck_assert(!honest->is_closing);
    ck_assert_ptr_eq(resume(honest, 1), honest);
}
END_TEST

START_TEST(short_of_room_the_largest_account_pays)
{
    struct session *honest = open_session(1000, 200, 4);
    send_large(honest, 4, 1000);
    for (uint32_t i = 0; i < 40; i++) { /* 40 accounts with 4 MiB each */
        for (uint32_t k = 0; k < 4; k++) {
            send_large(open_session(4 * i + k, (uint8_t)(1 + i), 10 + i), 8, 100 << 10);
            send_large(open_session(400 + 4 * i + k, (uint8_t)(1 + i), 10 + i), 8, 100 << 10);
        }
    }
    size_t whole = 0;
    for (uint32_t i = 0; i < 40; i++) {
        whole += kept_of(10 + i);
        ck_assert_uint_gt(kept_of(10 + i), 1 << 20);
    }
    ck_assert_uint_le(whole, RESEND_BUFFER_TOTAL_BYTES);
    ck_assert_ptr_eq(resume(honest, 1), honest);
}
END_TEST

START_TEST(what_is_kept_goes_with_its_session_to_another_account)
{
    struct session *session = open_session(1, 1, EXCHANGE_NO_ACCOUNT);
    send_large(session, 10, 128 << 10);
    ck_assert(sessions_know(sessions, session, 100));
    for (uint32_t i = 0; i < 10; i++) { /* what strangers have is theirs alone */
        send_large(open_session(10 + i, (uint8_t)(10 + i), EXCHANGE_NO_ACCOUNT), 15, 128 << 10);
    }
    ck_assert_uint_eq(session->resend.count, 10);
    ck_assert_uint_le(kept_of(EXCHANGE_NO_ACCOUNT), RESEND_BUFFER_ACCOUNT_BYTES);
    sessions_close(session);
    sessions_forget(sessions, session);
    send_large(open_session(1, 1, 100), 10, 128 << 10);
    ck_assert_uint_gt(kept_of(100), 1 << 20);
}
END_TEST

SUITE("sessions", setup, teardown, TEST(a_session_is_found_by_number_on_its_own_route_and_key_only),
      TEST(a_second_hello_on_a_route_ends_the_first_session),
      TEST(anonymous_keys_and_single_keys_have_their_caps),
      TEST(a_full_house_has_room_again_once_a_session_that_ended_is_forgotten),
      TEST(a_session_goes_on_over_another_connection),
      TEST(only_its_own_client_goes_on_with_a_session),
      TEST(what_is_not_kept_any_more_cannot_be_resumed),
      TEST(a_session_that_falls_behind_its_cap_is_over),
      TEST(a_heartbeat_frees_what_it_names_and_no_more_than_was_sent),
      TEST(a_lost_session_makes_room_for_a_new_one_of_its_key),
      TEST(one_account_takes_nothing_of_what_is_kept_for_others),
      TEST(short_of_room_the_largest_account_pays),
      TEST(what_is_kept_goes_with_its_session_to_another_account))
