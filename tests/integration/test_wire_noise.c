/* Bytes that are no ZMTP with CURVE, on both ports of a real broker: each ends its own connection
 * and changes nothing. Half a greeting ends when the time for a handshake is over, so the test
 * waits most of the time. */
#include "tests/support/arena.h"

#include "runtime/entropy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char listen_yaml[] = "listen: tcp://127.0.0.1:*\nblob_listen: tcp://127.0.0.1:*\n";

/* Sends it, and reads until the broker closes. */
static void send_until_closed(const char *endpoint, const void *bytes, size_t length,
                              const char *what)
{
    int descriptor = arena_connect_raw(endpoint);
    (void)send(descriptor, bytes, length, MSG_NOSIGNAL); /* it may have closed already */
    struct pollfd item = {.fd = descriptor, .events = POLLIN};
    char answer[512];
    ssize_t got = 1;
    while (got > 0) {
        ck_assert_msg(poll(&item, 1, 3 * ARENA_WAIT_MS) == 1, "%s: still open", what);
        got = recv(descriptor, answer, sizeof answer, 0);
    }
    (void)close(descriptor);
}

START_TEST(bytes_that_are_no_curve_end_their_connection_only)
{
    static uint8_t noise[4096];
    static uint8_t greeting[64] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1};
    static const uint8_t zmtp1[] = {1, 0, 5, 0, 'h', 'e', 'l', 'l'};
    static const uint8_t zmtp2[] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 1, 5, 0, 0};
    static const char http[] = "GET / HTTP/1.1\r\nHost: broker\r\n\r\n";
    static const char *const mechanisms[] = {"NULL", "PLAIN", "GSSAPI", "CURVE"};
    struct arena arena;
    arena_open(&arena, listen_yaml);
    struct arena_state before = arena_state_of(&arena);
    struct hash32 hash = arena_hash(&arena);
    entropy_bytes(noise, sizeof noise);
    noise[0] = 0x41; /* surely no greeting */
    const char *endpoints[] = {arena.broker.market.control, arena.broker.market.blobs};
    for (size_t i = 0; i < 2; i++) {
        send_until_closed(endpoints[i], noise, sizeof noise, "noise");
        send_until_closed(endpoints[i], http, sizeof http - 1, "HTTP");
        send_until_closed(endpoints[i], zmtp1, sizeof zmtp1, "ZMTP 1");
        send_until_closed(endpoints[i], zmtp2, sizeof zmtp2, "ZMTP 2");
        send_until_closed(endpoints[i], greeting, 11, "half a greeting");
        for (size_t k = 0; k < 4; k++) {
            memset(greeting + 12, 0, 20);
            memcpy(greeting + 12, mechanisms[k], strlen(mechanisms[k]));
            send_until_closed(endpoints[i], greeting, sizeof greeting, mechanisms[k]);
        }
    }
    struct hash32 after = arena_hash(&arena);
    ck_assert(hash32_equal(&hash, &after));
    arena_check_unchanged(&arena, before);
    arena_close(&arena);
}
END_TEST

static void begin(void)
{
    ck_assert_int_ge(sodium_init(), 0);
}

SUITE("wire noise", begin, NULL, TEST(bytes_that_are_no_curve_end_their_connection_only))
