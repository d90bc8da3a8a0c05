/* Which texts are addresses that a broker may name. */
#include "protocol/route/endpoint.h"

#include "protocol/limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

START_TEST(a_name_an_address_and_brackets_pass)
{
    static const char *const good[] = {
        "tcp://h:1",          "tcp://127.0.0.1:4770",     "tcp://b.exchange.example:65535",
        "tcp://[::1]:4770",   "tcp://[2001:db8::2]:4770", "tcp://[fe80::1%eth0]:4770",
        "tcp://node_2-a:4770"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(endpoint_is_tcp(good[i], strlen(good[i])), "%s", good[i]);
    }
}
END_TEST

START_TEST(other_texts_do_not)
{
    static const char *const bad[] = {"",
                                      "tcp://",
                                      "tcp://h",
                                      "tcp://h:",
                                      "tcp://:4770",
                                      "tcp://h:0",
                                      "tcp://h:04770",
                                      "tcp://h:65536",
                                      "tcp://h:655360",
                                      "tcp://h:47x",
                                      "tcp://h:*",
                                      "tcp://*:4770",
                                      "tcp://a;b:4770",
                                      "tcp://h h:4770",
                                      "tcp://::1:4770",
                                      "tcp://[]:4770",
                                      "tcp://[::1:4770",
                                      "tcp://h\n:4770",
                                      "tcp://b\xc3\xb6rse:4770",
                                      "TCP://h:4770",
                                      "udp://h:4770",
                                      "ipc:///run/bourse/broker.sock"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!endpoint_is_tcp(bad[i], strlen(bad[i])), "%s", bad[i]);
    }
    ck_assert(!endpoint_is_tcp("tcp://h\0h:1", 11));
}
END_TEST

START_TEST(the_longest_address_passes_and_one_byte_more_does_not)
{
    char text[LIMIT_ENDPOINT_BYTES + 2];
    (void)snprintf(text, sizeof text, "tcp://%0*d:4770", LIMIT_ENDPOINT_BYTES - 11, 0);
    ck_assert_uint_eq(strlen(text), LIMIT_ENDPOINT_BYTES);
    ck_assert(endpoint_is_tcp(text, strlen(text)));
    (void)snprintf(text, sizeof text, "tcp://%0*d:4770", LIMIT_ENDPOINT_BYTES - 10, 0);
    ck_assert(!endpoint_is_tcp(text, strlen(text)));
}
END_TEST

SUITE("endpoint", NULL, NULL, TEST(a_name_an_address_and_brackets_pass), TEST(other_texts_do_not),
      TEST(the_longest_address_passes_and_one_byte_more_does_not))
