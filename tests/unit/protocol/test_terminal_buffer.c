/* A direction of a terminal keeps every byte until the other end has taken it. */
#include "protocol/terminal_buffer.h"

#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static struct terminal_sender sender;
static struct terminal_buffer *const buffer = &sender.buffer;

static void begin(void)
{
    memset(&sender, 0, sizeof sender);
}

START_TEST(bytes_are_kept_until_they_are_taken)
{
    size_t size = 0;
    ck_assert_uint_eq(terminal_buffer_add(buffer, "hello", 5), 5);
    ck_assert_uint_eq(terminal_buffer_end(buffer), 5);
    ck_assert(terminal_buffer_drop(buffer, 2));
    ck_assert_mem_eq(terminal_buffer_piece(buffer, 2, &size), "llo", 3);
    ck_assert_uint_eq(size, 3);
    ck_assert_mem_eq(terminal_buffer_piece(buffer, 4, &size), "o", 1);
    ck_assert_ptr_null(terminal_buffer_piece(buffer, 5, &size));
    ck_assert_uint_eq(size, 0);
}
END_TEST

START_TEST(figures_outside_change_nothing)
{
    size_t size = 0;
    (void)terminal_buffer_add(buffer, "hello", 5);
    ck_assert(terminal_buffer_drop(buffer, 3));
    ck_assert(!terminal_buffer_drop(buffer, 2));
    ck_assert(!terminal_buffer_drop(buffer, 6));
    ck_assert(!terminal_buffer_drop(buffer, UINT64_MAX));
    ck_assert_ptr_null(terminal_buffer_piece(buffer, 2, &size));
    ck_assert_ptr_null(terminal_buffer_piece(buffer, UINT64_MAX, &size));
    ck_assert_uint_eq(buffer->first, 3);
    ck_assert_uint_eq(buffer->count, 2);
}
END_TEST

START_TEST(a_full_buffer_takes_what_there_is_room_for)
{
    static uint8_t much[LIMIT_TERMINAL_WINDOW + 10];
    size_t size = 0;
    ck_assert_uint_eq(terminal_buffer_add(buffer, much, sizeof much), LIMIT_TERMINAL_WINDOW);
    ck_assert_uint_eq(terminal_buffer_room(buffer), 0);
    ck_assert_uint_eq(terminal_buffer_add(buffer, much, 1), 0);
    (void)terminal_buffer_piece(buffer, 0, &size);
    ck_assert_uint_eq(size, LIMIT_TERMINAL_BYTES); /* a message has no more */
    ck_assert(terminal_buffer_drop(buffer, 100));
    ck_assert_uint_eq(terminal_buffer_add(buffer, much, 200), 100);
}
END_TEST

START_TEST(a_sender_goes_on_where_the_broker_says)
{
    (void)terminal_buffer_add(buffer, "0123456789", 10);
    ck_assert(terminal_sender_wants(&sender));
    terminal_sender_answered(&sender, 10, 0);
    ck_assert(!terminal_sender_wants(&sender));
    terminal_sender_answered(&sender, 10, 4);
    ck_assert_uint_eq(buffer->first, 4);
    /* A broker that starts anew has what the other end has taken, and nothing else. */
    terminal_sender_answered(&sender, 6, 6);
    ck_assert_uint_eq(sender.sent, 6);
    ck_assert(terminal_sender_wants(&sender));
}
END_TEST

START_TEST(an_answer_with_strange_figures_loses_nothing)
{
    (void)terminal_buffer_add(buffer, "0123456789", 10);
    terminal_sender_answered(&sender, 8, 5);
    terminal_sender_answered(&sender, 0, 0);
    ck_assert_uint_eq(sender.sent, 8);
    terminal_sender_answered(&sender, UINT64_MAX, UINT64_MAX);
    ck_assert_uint_eq(sender.sent, 8);
    ck_assert_uint_eq(buffer->first, 5);
    terminal_sender_answered(&sender, 4, 9); /* taken beyond what was sent: so be it */
    ck_assert_uint_eq(sender.sent, 9);
}
END_TEST

START_TEST(a_full_sender_asks_for_room)
{
    static uint8_t much[LIMIT_TERMINAL_WINDOW];
    (void)terminal_buffer_add(buffer, much, sizeof much);
    terminal_sender_answered(&sender, sizeof much, 0);
    ck_assert(terminal_sender_wants(&sender));
    terminal_sender_answered(&sender, sizeof much, 1);
    ck_assert(!terminal_sender_wants(&sender));
}
END_TEST

SUITE("terminal_buffer", begin, NULL, TEST(bytes_are_kept_until_they_are_taken),
      TEST(figures_outside_change_nothing), TEST(a_full_buffer_takes_what_there_is_room_for),
      TEST(a_sender_goes_on_where_the_broker_says),
      TEST(an_answer_with_strange_figures_loses_nothing), TEST(a_full_sender_asks_for_room))
