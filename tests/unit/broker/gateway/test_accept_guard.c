/* Connections when no descriptor is left: on the accept and accept4 of this program, as of a
 * broker. */
#include "broker/gateway/accept_guard.h"
#include "tests/support/suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un address = {.sun_family = AF_UNIX};

/* A listener without a name in any file system, and one caller at it. */
static int listen_at(int flags)
{
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    ck_assert_int_ge(listener, 0);
    (void)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "bourse-guard-%ld",
                   (long)getpid());
    ck_assert_int_eq(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 8), 0);
    return listener;
}

static int call(void)
{
    int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(caller, 0);
    ck_assert_int_eq(connect(caller, (const struct sockaddr *)&address, sizeof address), 0);
    return caller;
}

/* Bounds the descriptors: no more than there are, or as many as before. */
static void crowd(bool on)
{
    static struct rlimit before;
    struct rlimit limit;
    if (!on) {
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        return;
    }
    int last = dup(STDIN_FILENO);
    ck_assert_int_ge(last, 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = (struct rlimit){.rlim_cur = (rlim_t)last + 1, .rlim_max = before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

START_TEST(a_caller_for_whom_there_is_no_descriptor_is_hung_up_on)
{
    int listener =
        listen_at(_i == 0 ? SOCK_NONBLOCK : 0); /* those of libzmq at local ports block */
    int caller = call();
    char byte;
    ck_assert(accept_guard_prepare());
    crowd(true);
    for (int i = 0; i < 2; i++) { /* the place is kept again for the next one */
        ck_assert_int_eq(accept4(listener, NULL, NULL, SOCK_CLOEXEC), -1);
        ck_assert_int_eq(errno, ECONNABORTED);
    }
    ck_assert_int_eq(read(caller, &byte, 1), 0);
    crowd(false);
}
END_TEST

/* Nobody calls: who accepts on the kept descriptor here would wait for ever, and everybody else for
 * the lock. */
START_TEST(a_listener_that_blocks_is_not_waited_at)
{
    int listener = listen_at(0);
    ck_assert(accept_guard_prepare());
    crowd(true);
    ck_assert_int_eq(accept(listener, NULL, NULL), -1);
    ck_assert_int_eq(errno, ECONNABORTED);
    crowd(false);
}
END_TEST

SUITE("accept_guard", NULL, NULL,
      LOOP(a_caller_for_whom_there_is_no_descriptor_is_hung_up_on, 0, 2),
      TEST(a_listener_that_blocks_is_not_waited_at))
