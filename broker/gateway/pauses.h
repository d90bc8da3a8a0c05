/* A paused connection of a port is not read for a while, so its peer has to wait.
 *
 * The number of pauses is bounded; time is an argument. Only the owner's thread uses them. */
#ifndef BOURSE_BROKER_GATEWAY_PAUSES_H
#define BOURSE_BROKER_GATEWAY_PAUSES_H

#include "runtime/router.h"

#include <stddef.h>
#include <stdint.h>

enum { PAUSES_MAX = 256 };

/* All zeros stand for no pauses. */
struct pauses {
    struct paused_connection {
        int descriptor;
        int64_t until_ns;
    } items[PAUSES_MAX];
    size_t count;
};

/* Pauses the connection of the message received last. The connection is not paused when too many
 * are, or when its descriptor is unknown. */
void pauses_begin(struct pauses *pauses, struct router *router, int64_t until_ns);
/* Ends the pauses whose time is over. */
void pauses_end(struct pauses *pauses, int64_t now_ns);

#endif
