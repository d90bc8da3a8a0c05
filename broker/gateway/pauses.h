/* broker/gateway/pauses.h - connections of a port that nothing is read from for a while: their peers have
 * to wait. A bounded number; time is an argument. The owner's thread alone. */
#ifndef BOURSE_BROKER_GATEWAY_PAUSES_H
#define BOURSE_BROKER_GATEWAY_PAUSES_H

#include "runtime/router.h"

#include <stddef.h>
#include <stdint.h>

enum { PAUSES_MAX = 256 };

struct pauses { /* all zeros: none */
    struct paused_connection {
        int descriptor;
        int64_t until_ns;
    } items[PAUSES_MAX];
    size_t count;
};

/* Pauses the connection of the message received last. Where too many are paused, or nothing is
 * known of it, it goes on. */
void pauses_begin(struct pauses *pauses, struct router *router, int64_t until_ns);
/* Those whose time is over go on. */
void pauses_end(struct pauses *pauses, int64_t now_ns);

#endif
