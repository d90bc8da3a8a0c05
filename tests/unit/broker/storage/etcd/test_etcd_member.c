/* The record that a broker has on etcd: what one broker writes, every other one reads. */
#include "broker/storage/etcd/etcd_member.h"

#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static const struct etcd_member whole = {.rank = 2,
                                         .runs = true,
                                         .epoch = 7,
                                         .index = 1234,
                                         .lag_ms = -1,
                                         .seen_ms = 1800000000000,
                                         .state_command = 99,
                                         .state = {{1, 2, 3}},
                                         .rules = 21,
                                         .rules_first = 21,
                                         .rules_last = 22,
                                         .broker = "00ab00ab00ab00ab/77",
                                         .control = "tcp://10.0.0.1:4770",
                                         .blobs = "tcp://10.0.0.1:4771",
                                         .version = "1.2.3"};

static struct etcd_bytes bytes_of(const uint8_t *bytes, size_t length)
{
    return (struct etcd_bytes){.bytes = bytes, .length = length};
}

START_TEST(a_record_is_read_as_it_was_written)
{
    uint8_t bytes[ETCD_MEMBER_BYTES_MAX];
    uint8_t again[ETCD_MEMBER_BYTES_MAX];
    struct etcd_member read;
    const size_t length = etcd_member_write(&whole, bytes);
    ck_assert(etcd_member_read(bytes_of(bytes, length), &read));
    ck_assert_str_eq(read.id, "");
    ck_assert_uint_eq(read.rank, 2);
    ck_assert(read.runs);
    ck_assert_uint_eq(read.index, 1234);
    ck_assert_int_eq(read.lag_ms, -1);
    ck_assert_uint_eq(read.rules, 21);
    ck_assert_uint_eq(read.rules_last, 22);
    ck_assert_str_eq(read.control, whole.control);
    ck_assert_str_eq(read.blobs, whole.blobs);
    ck_assert_str_eq(read.version, whole.version);
    ck_assert_uint_eq(etcd_member_write(&read, again), length);
    ck_assert_mem_eq(again, bytes, length);
}
END_TEST

START_TEST(the_longest_texts_fit)
{
    uint8_t bytes[ETCD_MEMBER_BYTES_MAX];
    struct etcd_member read;
    struct etcd_member longest = whole;
    memset(longest.broker, 'b', sizeof longest.broker - 1);
    memset(longest.control, 'c', sizeof longest.control - 1);
    memset(longest.blobs, 'd', sizeof longest.blobs - 1);
    memset(longest.version, 'v', sizeof longest.version - 1);
    const size_t length = etcd_member_write(&longest, bytes);
    ck_assert(etcd_member_read(bytes_of(bytes, length), &read));
    ck_assert_str_eq(read.version, longest.version);
}
END_TEST

START_TEST(other_bytes_are_refused)
{
    uint8_t bytes[ETCD_MEMBER_BYTES_MAX];
    struct etcd_member read;
    const size_t length = etcd_member_write(&whole, bytes);
    for (size_t cut = 0; cut < length; cut++) {
        ck_assert(!etcd_member_read(bytes_of(bytes, cut), &read));
    }
    bytes[length] = 0;
    ck_assert(!etcd_member_read(bytes_of(bytes, length + 1), &read));
    static const struct {
        size_t at;
        uint8_t byte;
    } changes[] = {{0, 'X'}, {3, '1'}, {5, 2}, {90, 128}, {94, '"'}, {94, '\\'}, {94, 0x1b}};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const uint8_t kept = bytes[changes[i].at];
        bytes[changes[i].at] = changes[i].byte;
        ck_assert_msg(!etcd_member_read(bytes_of(bytes, length), &read), "change %zu", i);
        bytes[changes[i].at] = kept;
    }
    ck_assert(etcd_member_read(bytes_of(bytes, length), &read));
}
END_TEST

START_TEST(an_id_is_sixteen_small_hex_digits)
{
    static const char *const wrong[] = {
        "", "0", "0000000000000000", "00000000000000AB", "00000000000000ab0", "000000000000/0ab"};
    ck_assert(etcd_member_is_id("00000000000000ab"));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!etcd_member_is_id(wrong[i]), "%s", wrong[i]);
    }
}
END_TEST

SUITE("etcd_member", NULL, NULL, TEST(a_record_is_read_as_it_was_written),
      TEST(the_longest_texts_fit), TEST(other_bytes_are_refused),
      TEST(an_id_is_sixteen_small_hex_digits))
