#include "runtime/notify.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The tests play the supervisor. Its socket lies in a folder, or has an abstract address. */
static char folder[64];
static char address_text[128];
static int supervisor = -1;
static char heard[256];

static void listen_at(const char *name, bool is_abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    memcpy(address.sun_path, name, length);
    if (is_abstract) {
        address.sun_path[0] = '\0';
    }
    supervisor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(supervisor, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    ck_assert_int_eq(bind(supervisor, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
}

static void set_up(void)
{
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    strcpy(folder, "/tmp/bourse-notify-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(address_text, sizeof address_text, "%s/socket", folder);
    listen_at(address_text, false);
}

static void tear_down(void)
{
    (void)close(supervisor);
    (void)unlink(address_text);
    (void)rmdir(folder);
}

/* Returns the next message, or "" when there is none. */
static const char *next(void)
{
    ssize_t length = recv(supervisor, heard, sizeof heard - 1, 0);
    heard[length > 0 ? length : 0] = '\0';
    return heard;
}

START_TEST(a_service_tells_its_states)
{
    notify_ready();
    notify_alive();
    notify_stopping();
    ck_assert_str_eq(next(), "READY=1");
    ck_assert_str_eq(next(), "WATCHDOG=1");
    ck_assert_str_eq(next(), "STOPPING=1");
    ck_assert_str_eq(next(), "");
}
END_TEST

START_TEST(a_socket_may_be_abstract)
{
    char name[64];
    (void)close(supervisor);
    (void)snprintf(name, sizeof name, "@bourse-notify-%ld", (long)getpid());
    listen_at(name, true);
    notify_ready();
    ck_assert_str_eq(next(), "READY=1");
}
END_TEST

START_TEST(without_a_supervisor_nothing_is_sent)
{
    ck_assert_int_eq(unsetenv("NOTIFY_SOCKET"), 0);
    notify_ready();
    ck_assert_str_eq(next(), "");
}
END_TEST

START_TEST(an_address_that_is_none_is_passed_over)
{
    static const char *const wrong[] = {"", "socket", "/nobody/listens/here"};
    char large[256];
    memset(large, 'x', sizeof large);
    large[0] = '/';
    large[sizeof large - 1] = '\0';
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(setenv("NOTIFY_SOCKET", wrong[i], 1), 0);
        notify_ready();
    }
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", large, 1), 0);
    notify_ready();
    ck_assert_str_eq(next(), "");
}
END_TEST

START_TEST(a_full_socket_does_not_stop_the_service)
{
    for (int i = 0; i < 10000; i++) {
        notify_alive();
    }
    ck_assert_str_eq(next(), "WATCHDOG=1");
}
END_TEST

START_TEST(signs_of_life_are_due_at_half_of_the_watchdog)
{
    ck_assert_int_eq(notify_alive_every_ns(), 0);
    ck_assert_int_eq(setenv("WATCHDOG_USEC", "3000000", 1), 0);
    ck_assert_int_eq(notify_alive_every_ns(), INT64_C(1500000000));
}
END_TEST

START_TEST(a_watchdog_of_another_process_is_not_ours)
{
    char pid[32];
    (void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    ck_assert_int_eq(setenv("WATCHDOG_USEC", "3000000", 1), 0);
    ck_assert_int_eq(setenv("WATCHDOG_PID", pid, 1), 0);
    ck_assert_int_gt(notify_alive_every_ns(), 0);
    ck_assert_int_eq(setenv("WATCHDOG_PID", "1", 1), 0);
    ck_assert_int_eq(notify_alive_every_ns(), 0);
}
END_TEST

START_TEST(a_watchdog_that_is_no_number_is_none)
{
    static const char *const wrong[] = {
        "", "0", "-5", "3s", "99999999999999999999", " 1", "1e300", "9223372036854775807"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(setenv("WATCHDOG_USEC", wrong[i], 1), 0);
        ck_assert_int_eq(notify_alive_every_ns(), 0);
    }
}
END_TEST

START_TEST(a_stop_is_not_taken_for_a_hang)
{
    ck_assert_int_eq(setenv("WATCHDOG_USEC", "3000000", 1), 0);
    notify_stopping();
    ck_assert_str_eq(next(), "STOPPING=1\nWATCHDOG_USEC=600000000");
}
END_TEST

SUITE("notify", set_up, tear_down, TEST(a_service_tells_its_states), TEST(a_socket_may_be_abstract),
      TEST(without_a_supervisor_nothing_is_sent), TEST(an_address_that_is_none_is_passed_over),
      TEST(a_full_socket_does_not_stop_the_service),
      TEST(signs_of_life_are_due_at_half_of_the_watchdog),
      TEST(a_watchdog_of_another_process_is_not_ours), TEST(a_watchdog_that_is_no_number_is_none),
      TEST(a_stop_is_not_taken_for_a_hang))
