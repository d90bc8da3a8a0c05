/* The outcome of a call of gRPC follows from its status, and nothing else. */
#include "broker/storage/etcd/grpc.h"

#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static struct grpc_status status_of(const char *code, const char *message)
{
    struct grpc_status status = {.is_known = false};
    grpc_status_note(&status, code, strlen(code));
    grpc_status_note(&status, message, strlen(message));
    return status;
}

static enum grpc_outcome outcome_of(const char *code, const char *message)
{
    const struct grpc_status status = status_of(code, message);
    return grpc_status_outcome(&status);
}

START_TEST(a_message_is_framed_and_found)
{
    uint8_t bytes[GRPC_PREFIX_BYTES + 3] = {9, 9, 9, 9, 9, 'a', 'b', 'c'};
    const uint8_t *message = NULL;
    size_t length = 0;
    grpc_prefix_write(3, bytes);
    ck_assert(grpc_message_find(bytes, sizeof bytes, &message, &length));
    ck_assert_ptr_eq(message, bytes + GRPC_PREFIX_BYTES);
    ck_assert_uint_eq(length, 3);
    ck_assert(!grpc_message_find(bytes, sizeof bytes - 1, &message, &length));
    ck_assert(!grpc_message_find(bytes, 4, &message, &length));
    bytes[0] = 1; /* compressed */
    ck_assert(!grpc_message_find(bytes, sizeof bytes, &message, &length));
    grpc_prefix_write(0x01020304, bytes);
    ck_assert_mem_eq(bytes, "\0\1\2\3\4", GRPC_PREFIX_BYTES);
}
END_TEST

START_TEST(each_status_of_etcd_has_its_outcome)
{
    ck_assert_int_eq(outcome_of("grpc-status: 0\r\n", ""), GRPC_ANSWERED);
    ck_assert_int_eq(outcome_of("grpc-status: 8\r\n",
                                "grpc-message: etcdserver: mvcc: database space exceeded\r\n"),
                     GRPC_NO_SPACE);
    ck_assert_int_eq(
        outcome_of("grpc-status: 8\r\n", "grpc-message: etcdserver: too many requests\r\n"),
        GRPC_LOST);
    ck_assert_int_eq(
        outcome_of("grpc-status: 8\r\n",
                   "grpc-message: grpc: received message larger than max (9 vs. 2)\r\n"),
        GRPC_TOO_LARGE);
    ck_assert_int_eq(
        outcome_of("grpc-status: 3\r\n", "grpc-message: etcdserver: request is too large"),
        GRPC_TOO_LARGE);
    ck_assert_int_eq(
        outcome_of("grpc-status: 14\r\n", "grpc-message: etcdserver: request timed out"),
        GRPC_LOST);
    ck_assert_int_eq(outcome_of("grpc-status: 4\r\n", ""), GRPC_LOST);
    ck_assert_int_eq(outcome_of("grpc-status: 16\r\n", ""), GRPC_REFUSED);
    ck_assert_int_eq(outcome_of("grpc-status: 11\r\n", "grpc-message: compacted"), GRPC_REFUSED);
    ck_assert_int_eq(outcome_of("content-type: application/grpc\r\n", ""), GRPC_LOST);
    ck_assert_int_eq(outcome_of("grpc-status: 4x\r\n", ""), GRPC_LOST);
    ck_assert_int_eq(outcome_of("grpc-status: 99\r\n", ""), GRPC_LOST);
}
END_TEST

START_TEST(the_text_is_decoded_and_harmless)
{
    struct grpc_status status =
        status_of("grpc-status:2", "grpc-message: a%20b%0Ac%1b[31m%zz%4\r\n");
    ck_assert_str_eq(status.text, "a b?c?[31m%zz%4");
    char line[2 * GRPC_TEXT_SIZE] = "grpc-message: ";
    memset(line + 14, 'x', sizeof line - 15);
    status = status_of("grpc-status: 2", line);
    ck_assert_uint_eq(strlen(status.text), GRPC_TEXT_SIZE - 1);
}
END_TEST

SUITE("grpc", NULL, NULL, TEST(a_message_is_framed_and_found),
      TEST(each_status_of_etcd_has_its_outcome), TEST(the_text_is_decoded_and_harmless))
