/* The tests follow what is kept for sessions that come back: the newest messages, within caps, by
 * number. */
#include "broker/gateway/kept.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct kept kept;
static size_t total;

static void set_up(void)
{
    kept = (struct kept){.items = NULL};
    total = 0;
}

static void tear_down(void)
{
    kept_fini(&kept, &total);
    ck_assert_uint_eq(total, 0);
}

static void add(size_t length)
{
    struct kept_message message = {
        .type = MESSAGE_DISPATCH, .body = calloc(length + 1, 1), .length = length};
    message.id.bytes[0] = (uint8_t)(kept.last + 1);
    kept_add(&kept, &total, &message);
}

START_TEST(what_was_sent_is_found_by_its_number)
{
    for (int i = 0; i < 100; i++) {
        add(10);
    }
    for (uint64_t sequence = 1; sequence <= 100; sequence++) {
        const struct kept_message *message = kept_find(&kept, sequence);
        ck_assert_ptr_nonnull(message);
        ck_assert_uint_eq(message->id.bytes[0], sequence);
    }
    ck_assert_ptr_null(kept_find(&kept, 0));
    ck_assert_ptr_null(kept_find(&kept, 101));
    ck_assert(kept_reaches(&kept, 0) && kept_reaches(&kept, 100));
    ck_assert(!kept_reaches(&kept, 101)); /* nobody can have seen that */
}
END_TEST

START_TEST(what_was_seen_is_kept_no_longer)
{
    for (int i = 0; i < 40; i++) {
        add(10);
    }
    size_t before = total;
    kept_seen(&kept, &total, 30);
    ck_assert_uint_eq(total, before / 4);
    ck_assert_ptr_null(kept_find(&kept, 30));
    ck_assert_uint_eq(kept_find(&kept, 31)->id.bytes[0], 31);
    ck_assert(kept_reaches(&kept, 30) && !kept_reaches(&kept, 29));
    kept_seen(&kept, &total, 7000); /* a client may say anything */
    ck_assert(kept_reaches(&kept, 40) && !kept_reaches(&kept, 39));
    add(10);
    ck_assert_uint_eq(kept_find(&kept, 41)->id.bytes[0], 41);
}
END_TEST

START_TEST(over_the_cap_of_messages_the_oldest_go)
{
    for (int i = 0; i < KEPT_MESSAGES + 5; i++) {
        add(1);
    }
    ck_assert(kept_reaches(&kept, 5) && !kept_reaches(&kept, 4));
    ck_assert_uint_eq(kept.count, KEPT_MESSAGES);
}
END_TEST

START_TEST(over_the_cap_of_bytes_the_oldest_go)
{
    for (int i = 0; i < 100; i++) {
        add(100000);
        ck_assert_uint_le(kept.bytes, KEPT_BYTES);
    }
    ck_assert(kept_reaches(&kept, 90) && !kept_reaches(&kept, 70));
    add(3 * KEPT_BYTES); /* one that never fits leaves nothing behind */
    ck_assert(kept_reaches(&kept, 101) && !kept_reaches(&kept, 100));
    ck_assert_uint_eq(total, 0);
}
END_TEST

START_TEST(all_sessions_share_one_budget)
{
    add(1000);
    size_t elsewhere = KEPT_TOTAL_BYTES - total;
    total += elsewhere;
    add(1000);
    ck_assert_uint_le(total, KEPT_TOTAL_BYTES);
    ck_assert(kept_reaches(&kept, 1) && !kept_reaches(&kept, 0));
    total -= elsewhere;
}
END_TEST

START_TEST(what_is_trimmed_is_the_oldest)
{
    for (int i = 0; i < 10; i++) {
        add(1000);
    }
    size_t before = total;
    kept_trim(&kept, &total, 2500);
    ck_assert_uint_le(total, before - 2500);
    ck_assert(kept_reaches(&kept, 3) && !kept_reaches(&kept, 2));
    kept_trim(&kept, &total, 1 << 20);
    ck_assert_uint_eq(total, 0);
    ck_assert(kept_reaches(&kept, 10) && !kept_reaches(&kept, 9));
}
END_TEST

SUITE("kept", set_up, tear_down, TEST(what_was_sent_is_found_by_its_number),
      TEST(what_was_seen_is_kept_no_longer), TEST(over_the_cap_of_messages_the_oldest_go),
      TEST(over_the_cap_of_bytes_the_oldest_go), TEST(all_sessions_share_one_budget),
      TEST(what_is_trimmed_is_the_oldest))
