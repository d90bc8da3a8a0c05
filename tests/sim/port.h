/* tests/sim/port.h - the port of a broker, behind runtime/router.h: what arrived waits here until
 * production code receives it. */
#ifndef BOURSE_TESTS_SIM_PORT_H
#define BOURSE_TESTS_SIM_PORT_H

#include "base/id.h"
#include "runtime/router.h"

struct fibre;
struct heard;

struct router { /* lost with its process, but for what waits in it */
    struct heard *first, *last;
    struct heard *received; /* lives until the next one */
    struct fibre *waiter;
};

/* Keeps a message until it is received. */
void port_hears(struct router *port, uint32_t route, const struct key32 *client,
                const uint8_t *bytes, size_t length);
/* Forgets what waits: the process has ended. */
void port_empty(struct router *port);

#endif
