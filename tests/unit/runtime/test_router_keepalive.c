/* The kernel looks after the TCP connections of a router: a dead one ends without ZMTP pings, which
 * cost libzmq a walk over all connections each. */
#include "runtime/link.h"
#include "runtime/process.h"
#include "runtime/router.h"
#include "runtime/zap.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

enum { WAIT_MS = 60000, MESSAGE_CAP = 4096, LOOKS = 3000, ESTABLISHED = 1, KEEPALIVE_TIMER = 2 };

/* Looks for the connection that was accepted at this port in a table of the kernel. Returns its
 * timer, or -1. */
static int timer_in(const char *path, unsigned port)
{
    char line[512];
    int found = -1;
    FILE *table = fopen(path, "re");
    while (table != NULL && fgets(line, sizeof line, table) != NULL) {
        unsigned local;
        unsigned state;
        unsigned timer;
        if (sscanf(line, " %*[0-9]: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*[0-9A-F]:%*[0-9A-F] %x:",
                   &local, &state, &timer) == 3 &&
            local == port && state == ESTABLISHED) {
            found = (int)timer;
        }
    }
    if (table != NULL) {
        (void)fclose(table);
    }
    return found;
}

static int timer_of(unsigned port)
{
    const int timer = timer_in("/proc/net/tcp", port);
    return timer >= 0 ? timer : timer_in("/proc/net/tcp6", port);
}

START_TEST(the_kernel_keeps_watch_over_an_accepted_connection)
{
    static const uint8_t server_seed[32] = {1};
    static const uint8_t client_seed[32] = {2};
    struct problem problem = {""};
    ck_assert(process_start(&problem));
    void *context = zmq_ctx_new();
    struct identity *server = identity_create(server_seed);
    struct identity *client = identity_create(client_seed);
    struct zap *zap = NULL;
    struct router *router = NULL;
    struct link *link = NULL;
    struct router_message message;
    char endpoint[128];
    const struct router_config config = {.identity = server, .max_message_bytes = MESSAGE_CAP};
    ck_assert_msg(zap_start(context, &zap, &problem), "%s", problem.text);
    ck_assert_msg(router_open(context, &config, &router, &problem), "%s", problem.text);
    ck_assert_msg(
        router_bind(router, "tcp://127.0.0.1:*", false, endpoint, sizeof endpoint, &problem), "%s",
        problem.text);
    ck_assert(link_open(context, endpoint, identity_transport(server), client, MESSAGE_CAP, &link,
                        &problem));
    while (!link_send(link, "x", 1)) { /* until the connection stands */
        ck_assert_int_ge(link_receive(link, WAIT_MS, &(const uint8_t *){NULL}, &(size_t){0}), 0);
    }
    ck_assert_int_eq(router_receive(router, WAIT_MS, &message), 1);

    const unsigned port = (unsigned)strtoul(strrchr(endpoint, ':') + 1, NULL, 10);
    const struct timespec pause = {.tv_nsec = 10000000};
    int timer = timer_of(port);
    for (int i = 0; i < LOOKS && timer != KEEPALIVE_TIMER; i++) {
        (void)nanosleep(&pause, NULL); /* the kernel's table is the only way to see it */
        timer = timer_of(port);
    }
    ck_assert_int_eq(timer, KEEPALIVE_TIMER);

    link_close(&link);
    router_close(&router);
    zap_stop(&zap);
    ck_assert_int_eq(zmq_ctx_term(context), 0);
    identity_destroy(&server);
    identity_destroy(&client);
}
END_TEST

SUITE("router keepalive", NULL, NULL, TEST(the_kernel_keeps_watch_over_an_accepted_connection))
