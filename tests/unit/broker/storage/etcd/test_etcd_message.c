/* The bytes that etcd gets and sends are those of its own definition. */
#include "broker/storage/etcd/etcd_message.h"

#include "broker/storage/etcd/proto.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static struct etcd_bytes text(const char *words)
{
    return (struct etcd_bytes){.bytes = (const uint8_t *)words, .length = strlen(words)};
}

START_TEST(a_transaction_has_the_bytes_of_etcds_definition)
{
    const struct etcd_request request = {
        .method = ETCD_TXN,
        .compare_count = 2,
        .compares = {{.condition = ETCD_HAS_VALUE, .key = text("k"), .value = text("L")},
                     {.condition = ETCD_IS_PRESENT, .key = text("p")}},
        .then_count = 2,
        .then = {{.kind = ETCD_PUT, .key = text("a"), .value = text("xy")},
                 {.kind = ETCD_DELETE, .key = text("a"), .end = text("b")}},
        .otherwise_count = 1,
        .otherwise = {{.kind = ETCD_GET, .key = text("k"), .limit = 300}},
    };
    static const uint8_t expected[] = {/* Compare: EQUAL, VALUE, key, value */
                                       0x0a, 10, 0x08, 0, 0x10, 3, 0x1a, 1, 'k', 0x3a, 1, 'L',
                                       /* Compare: GREATER, VERSION, key, version 0 */
                                       0x0a, 9, 0x08, 1, 0x10, 0, 0x1a, 1, 'p', 0x20, 0,
                                       /* then: put */
                                       0x12, 9, 0x12, 7, 0x0a, 1, 'a', 0x12, 2, 'x', 'y',
                                       /* then: delete range */
                                       0x12, 8, 0x1a, 6, 0x0a, 1, 'a', 0x12, 1, 'b',
                                       /* otherwise: range with a limit of 300 */
                                       0x1a, 8, 0x0a, 6, 0x0a, 1, 'k', 0x18, 0xac, 0x02};
    uint8_t bytes[256];
    bool fits;
    const size_t length = etcd_request_write(&request, bytes, sizeof bytes, &fits);
    ck_assert(fits);
    ck_assert_uint_eq(length, sizeof expected);
    ck_assert_mem_eq(bytes, expected, sizeof expected);
}
END_TEST

START_TEST(a_request_that_does_not_fit_says_so)
{
    const struct etcd_request request = {
        .method = ETCD_TXN,
        .then_count = 1,
        .then = {{.kind = ETCD_PUT, .key = text("key"), .value = text("value")}}};
    uint8_t bytes[64];
    bool fits;
    const size_t whole = etcd_request_write(&request, bytes, sizeof bytes, &fits);
    ck_assert(fits);
    for (size_t capacity = 0; capacity < whole; capacity++) {
        (void)etcd_request_write(&request, bytes, capacity, &fits);
        ck_assert(!fits);
    }
}
END_TEST

START_TEST(an_answer_is_read_with_everything_it_has)
{
    static const uint8_t bytes[] = {/* header: cluster 300, member 2, revision 7, term 1 */
                                    0x0a, 9, 0x08, 0xac, 0x02, 0x10, 2, 0x18, 7, 0x20, 1,
                                    /* succeeded */
                                    0x10, 1,
                                    /* response: put, empty */
                                    0x1a, 2, 0x12, 0,
                                    /* response: range with a pair */
                                    0x1a, 13, 0x0a, 11, 0x12, 9, 0x0a, 1, 'k', 0x20, 1, 0x2a, 2,
                                    'v', 'w'};
    struct etcd_answer answer;
    ck_assert(etcd_answer_read(ETCD_TXN, bytes, sizeof bytes, &answer));
    ck_assert_uint_eq(answer.cluster, 300);
    ck_assert_uint_eq(answer.member, 2);
    ck_assert_uint_eq(answer.revision, 7);
    ck_assert(answer.succeeded);
    ck_assert_uint_eq(answer.pair_count, 1);
    const struct etcd_bytes value = etcd_answer_value(&answer, text("k"));
    ck_assert_uint_eq(value.length, 2);
    ck_assert_mem_eq(value.bytes, "vw", 2);
    ck_assert_ptr_null(etcd_answer_value(&answer, text("other")).bytes);
}
END_TEST

START_TEST(a_key_without_bytes_is_there_all_the_same)
{
    static const uint8_t bytes[] = {0x1a, 7, 0x0a, 5, 0x12, 3, 0x0a, 1, 'k'};
    struct etcd_answer answer;
    ck_assert(etcd_answer_read(ETCD_TXN, bytes, sizeof bytes, &answer));
    ck_assert_ptr_nonnull(etcd_answer_value(&answer, text("k")).bytes);
    ck_assert_uint_eq(etcd_answer_value(&answer, text("k")).length, 0);
}
END_TEST

START_TEST(status_and_alarms_are_read)
{
    static const uint8_t status[] = {0x0a, 2,    0x08, 1,    0x12, 6,    '3', '.',  '4', '.',  '2',
                                     '3',  0x18, 99,   0x20, 5,    0x38, 77,  0x48, 44,  0x60, 120};
    static const uint8_t alarms[] = {0x12, 4, 0x08, 9, 0x10, 1, 0x12, 4, 0x08, 9, 0x10, 2};
    static const uint8_t no_space[] = {0x12, 4, 0x08, 9, 0x10, 1};
    struct etcd_answer answer;
    ck_assert(etcd_answer_read(ETCD_STATUS, status, sizeof status, &answer));
    ck_assert_str_eq(answer.version, "3.4.23");
    ck_assert_uint_eq(answer.database_bytes, 99);
    ck_assert_uint_eq(answer.leader, 5);
    ck_assert_uint_eq(answer.applied, 77);
    ck_assert_uint_eq(answer.live_bytes, 44);
    ck_assert_uint_eq(answer.quota_bytes, 120);
    ck_assert(etcd_answer_read(ETCD_ALARMS, alarms, sizeof alarms, &answer));
    ck_assert(answer.alarm_no_space && answer.alarm_is_corrupt);
    ck_assert(etcd_answer_read(ETCD_ALARMS, no_space, sizeof no_space, &answer));
    ck_assert(answer.alarm_no_space && !answer.alarm_is_corrupt);
}
END_TEST

START_TEST(broken_answers_are_refused)
{
    static const uint8_t past_the_end[] = {0x0a, 9, 0x08};
    static const uint8_t endless[] = {0x10, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t no_message[] = {0x08, 1};
    static const uint8_t group[] = {0x0b, 0x0c};
    static const uint8_t field_zero[] = {0x02, 0};
    static const uint8_t long_version[] = {
        0x12, 33,  '3', '.', '4', '.', '2', '3', '3', '3', '3', '3', '3', '3', '3', '3', '3', '3',
        '3',  '3', '3', '3', '3', '3', '3', '3', '3', '3', '3', '3', '3', '3', '3', '3', '3'};
    struct etcd_answer answer;
    ck_assert(!etcd_answer_read(ETCD_TXN, past_the_end, sizeof past_the_end, &answer));
    ck_assert(!etcd_answer_read(ETCD_TXN, endless, sizeof endless, &answer));
    ck_assert(!etcd_answer_read(ETCD_TXN, no_message, sizeof no_message, &answer));
    ck_assert(!etcd_answer_read(ETCD_TXN, group, sizeof group, &answer));
    ck_assert(!etcd_answer_read(ETCD_TXN, field_zero, sizeof field_zero, &answer));
    ck_assert(!etcd_answer_read(ETCD_STATUS, long_version, sizeof long_version, &answer));
    ck_assert(etcd_answer_read(ETCD_TXN, NULL, 0, &answer)); /* all fields are optional */
}
END_TEST

START_TEST(an_answer_has_only_so_many_pairs)
{
    uint8_t bytes[256];
    struct etcd_answer answer;
    for (unsigned count = ETCD_PAIRS_MAX; count <= ETCD_PAIRS_MAX + 1; count++) {
        struct proto_writer out = {.bytes = bytes, .capacity = sizeof bytes};
        const size_t response = proto_begin(&out, 3);
        const size_t range = proto_begin(&out, 1);
        for (unsigned i = 0; i < count; i++) {
            const size_t pair = proto_begin(&out, 2);
            proto_bytes(&out, 1, "k", 1);
            proto_end(&out, pair);
        }
        proto_end(&out, range);
        proto_end(&out, response);
        ck_assert(!out.is_full);
        ck_assert_int_eq(etcd_answer_read(ETCD_TXN, bytes, out.length, &answer),
                         count <= ETCD_PAIRS_MAX);
    }
}
END_TEST

START_TEST(a_lease_is_granted_and_given_to_a_key)
{
    const struct etcd_request grant = {.method = ETCD_LEASE_GRANT, .lease_s = 30};
    const struct etcd_request put = {
        .method = ETCD_TXN,
        .then_count = 1,
        .then = {{.kind = ETCD_PUT, .key = text("a"), .value = text("x"), .lease = 300}}};
    static const uint8_t put_bytes[] = {0x12, 11, 0x12, 9,    0x0a, 1,   'a',
                                        0x12, 1,  'x',  0x18, 0xac, 0x02};
    static const uint8_t granted[] = {0x0a, 2, 0x08, 5, 0x10, 0xac, 0x02, 0x18, 30};
    uint8_t bytes[64];
    struct etcd_answer answer;
    bool fits;
    ck_assert_uint_eq(etcd_request_write(&grant, bytes, sizeof bytes, &fits), 2);
    ck_assert_mem_eq(bytes, "\x08\x1e", 2);
    ck_assert_uint_eq(etcd_request_write(&put, bytes, sizeof bytes, &fits), sizeof put_bytes);
    ck_assert_mem_eq(bytes, put_bytes, sizeof put_bytes);
    ck_assert(etcd_answer_read(ETCD_LEASE_GRANT, granted, sizeof granted, &answer));
    ck_assert_int_eq(answer.lease, 300);
    ck_assert_uint_eq(answer.cluster, 5);
}
END_TEST

START_TEST(the_members_of_etcd_have_ids_and_addresses)
{
    static const uint8_t listed[] = {0x0a, 2,    0x08, 5, /* header */
                                     0x12, 11,   0x08, 0xac, 0x02, 0x12, 1,
                                     'm',  0x22, 1,    'u',  0x1a, 0, /* the first one */
                                     0x12, 2,    0x08, 9};            /* not started yet */
    struct etcd_answer answer;
    uint8_t many[4 * (ETCD_PAIRS_MAX + 1)];
    ck_assert(etcd_answer_read(ETCD_MEMBER_LIST, listed, sizeof listed, &answer));
    ck_assert_uint_eq(answer.pair_count, 2);
    ck_assert_uint_eq(answer.ids[1], 9);
    ck_assert_uint_eq(answer.pairs[1].value.length, 0);
    ck_assert_uint_eq(answer.ids[0], 300);
    ck_assert_uint_eq(answer.pairs[0].value.length, 1);
    ck_assert_mem_eq(answer.pairs[0].value.bytes, "u", 1);
    for (size_t i = 0; i <= ETCD_PAIRS_MAX; i++) {
        memcpy(many + 4 * i, "\x12\x02\x08\x09", 4);
    }
    ck_assert(etcd_answer_read(ETCD_MEMBER_LIST, many, sizeof many - 4, &answer));
    ck_assert(!etcd_answer_read(ETCD_MEMBER_LIST, many, sizeof many, &answer));
}
END_TEST

SUITE("etcd_message", NULL, NULL, TEST(a_transaction_has_the_bytes_of_etcds_definition),
      TEST(a_request_that_does_not_fit_says_so), TEST(an_answer_is_read_with_everything_it_has),
      TEST(a_key_without_bytes_is_there_all_the_same), TEST(status_and_alarms_are_read),
      TEST(broken_answers_are_refused), TEST(an_answer_has_only_so_many_pairs),
      TEST(a_lease_is_granted_and_given_to_a_key), TEST(the_members_of_etcd_have_ids_and_addresses))
