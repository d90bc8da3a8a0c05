#include "tests/sim/port.h"

#include "tests/sim/fibre.h"
#include "tests/sim/process.h"
#include "tests/sim/world.h"

#include <assert.h>
#include <string.h>

struct heard { /* at the port, not received yet */
    struct heard *next;
    struct router_message message;
    uint8_t bytes[];
};

void port_hears(struct router *port, uint32_t route, const struct key32 *client,
                const uint8_t *bytes, size_t length)
{
    struct heard *heard = sim_alloc(sizeof *heard + length);
    memcpy(heard->bytes, bytes, length);
    heard->message.client = *client;
    heard->message.bytes = heard->bytes;
    heard->message.length = length;
    memcpy(heard->message.route.bytes, &route, sizeof route);
    if (port->last != NULL) {
        port->last->next = heard;
    } else {
        port->first = heard;
    }
    port->last = heard;
    fibre_wake(port->waiter);
}

bool port_is_readable(const void *port)
{
    return ((const struct router *)port)->first != NULL;
}

void port_waits(void *port, struct fibre *fibre)
{
    ((struct router *)port)->waiter = fibre;
}

void *router_socket(struct router *router)
{
    return router;
}

/* Connections of this world have none, and nothing is paused. */
int router_descriptor(struct router *router)
{
    (void)router;
    return -1;
}

void router_pause(int descriptor, bool is_paused)
{
    (void)descriptor;
    (void)is_paused;
}

int router_receive(struct router *router, int timeout_ms, struct router_message *ret_message)
{
    const int64_t until_ns = world.now_ns + timeout_ms * SIM_MS;
    assert(timeout_ms >= 0);
    while (router->first == NULL && world.now_ns < until_ns) {
        router->waiter = fibre_current();
        fibre_wait(until_ns - world.now_ns);
    }
    sim_free(router->received);
    router->received = router->first;
    if (router->first == NULL) {
        return 0;
    }
    router->first = router->first->next;
    if (router->first == NULL) {
        router->last = NULL;
    }
    *ret_message = router->received->message;
    return 1;
}

void port_empty(struct router *port)
{
    struct router_message message;
    while (router_receive(port, 0, &message) == 1) {
    }
}
