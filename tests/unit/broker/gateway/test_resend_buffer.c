/* The tests follow what is kept for sessions that come back: the newest messages, within caps, by
 * number. */
#include "broker/gateway/resend_buffer.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct resend_buffer buffer;
static size_t total;

static void set_up(void)
{
    buffer = (struct resend_buffer){.items = NULL};
    total = 0;
}

static void tear_down(void)
{
    resend_buffer_fini(&buffer, &total);
    ck_assert_uint_eq(total, 0);
}

static void add(size_t length)
{
    struct resend_message message = {
        .type = MESSAGE_DISPATCH, .body = calloc(length + 1, 1), .length = length};
    message.id.bytes[0] = (uint8_t)(buffer.last + 1);
    resend_buffer_add(&buffer, &total, &message);
}

START_TEST(what_was_sent_is_found_by_its_number)
{
    for (int i = 0; i < 100; i++) {
        add(10);
    }
    for (uint64_t sequence = 1; sequence <= 100; sequence++) {
        const struct resend_message *message = resend_buffer_find(&buffer, sequence);
        ck_assert_ptr_nonnull(message);
        ck_assert_uint_eq(message->id.bytes[0], sequence);
    }
    ck_assert_ptr_null(resend_buffer_find(&buffer, 0));
    ck_assert_ptr_null(resend_buffer_find(&buffer, 101));
    ck_assert(resend_buffer_reaches(&buffer, 0) && resend_buffer_reaches(&buffer, 100));
    ck_assert(!resend_buffer_reaches(&buffer, 101)); /* nobody can have seen that */
}
END_TEST

START_TEST(what_was_seen_is_kept_no_longer)
{
    for (int i = 0; i < 40; i++) {
        add(10);
    }
    size_t before = total;
    resend_buffer_seen(&buffer, &total, 30);
    ck_assert_uint_eq(total, before / 4);
    ck_assert_ptr_null(resend_buffer_find(&buffer, 30));
    ck_assert_uint_eq(resend_buffer_find(&buffer, 31)->id.bytes[0], 31);
    ck_assert(resend_buffer_reaches(&buffer, 30) && !resend_buffer_reaches(&buffer, 29));
    resend_buffer_seen(&buffer, &total, 7000); /* a client may say anything */
    ck_assert(resend_buffer_reaches(&buffer, 40) && !resend_buffer_reaches(&buffer, 39));
    add(10);
    ck_assert_uint_eq(resend_buffer_find(&buffer, 41)->id.bytes[0], 41);
}
END_TEST

START_TEST(over_the_cap_of_messages_the_oldest_go)
{
    for (int i = 0; i < RESEND_BUFFER_MESSAGES + 5; i++) {
        add(1);
    }
    ck_assert(resend_buffer_reaches(&buffer, 5) && !resend_buffer_reaches(&buffer, 4));
    ck_assert_uint_eq(buffer.count, RESEND_BUFFER_MESSAGES);
}
END_TEST

START_TEST(over_the_cap_of_bytes_the_oldest_go)
{
    for (int i = 0; i < 100; i++) {
        add(100000);
        ck_assert_uint_le(buffer.bytes, RESEND_BUFFER_BYTES);
    }
    ck_assert(resend_buffer_reaches(&buffer, 90) && !resend_buffer_reaches(&buffer, 70));
    add(3 * RESEND_BUFFER_BYTES); /* one that never fits leaves nothing behind */
    ck_assert(resend_buffer_reaches(&buffer, 101) && !resend_buffer_reaches(&buffer, 100));
    ck_assert_uint_eq(total, 0);
}
END_TEST

START_TEST(all_sessions_share_one_budget)
{
    add(1000);
    size_t elsewhere = RESEND_BUFFER_TOTAL_BYTES - total;
    total += elsewhere;
    add(1000);
    ck_assert_uint_le(total, RESEND_BUFFER_TOTAL_BYTES);
    ck_assert(resend_buffer_reaches(&buffer, 1) && !resend_buffer_reaches(&buffer, 0));
    total -= elsewhere;
}
END_TEST

START_TEST(what_is_trimmed_is_the_oldest)
{
    for (int i = 0; i < 10; i++) {
        add(1000);
    }
    size_t before = total;
    resend_buffer_trim(&buffer, &total, 2500);
    ck_assert_uint_le(total, before - 2500);
    ck_assert(resend_buffer_reaches(&buffer, 3) && !resend_buffer_reaches(&buffer, 2));
    resend_buffer_trim(&buffer, &total, 1 << 20);
    ck_assert_uint_eq(total, 0);
    ck_assert(resend_buffer_reaches(&buffer, 10) && !resend_buffer_reaches(&buffer, 9));
}
END_TEST

SUITE("resend_buffer", set_up, tear_down, TEST(what_was_sent_is_found_by_its_number),
      TEST(what_was_seen_is_kept_no_longer), TEST(over_the_cap_of_messages_the_oldest_go),
      TEST(over_the_cap_of_bytes_the_oldest_go), TEST(all_sessions_share_one_budget),
      TEST(what_is_trimmed_is_the_oldest))
