/* provider/jail/jail_freeze.c lets the programs of a jail stand still, and counts for how long. */
#include "provider/jail/jail_internal.h"

#include "runtime/clock.h"

void jail_freeze_restart(struct jail *jail)
{
    jail->frozen_ns = 0;
    jail->frozen_since_ns = jail->frozen_since_ns != 0 ? clock_monotonic_ns() : 0;
}

void jail_freeze_end(struct jail *jail)
{
    if (jail->frozen_since_ns != 0) {
        jail->frozen_ns += clock_monotonic_ns() - jail->frozen_since_ns;
        jail->frozen_since_ns = 0;
    }
}

int64_t jail_freeze_total_ns(struct jail *jail)
{
    (void)pthread_mutex_lock(&jail->lock);
    const int64_t since_ns = jail->frozen_since_ns;
    const int64_t total_ns =
        jail->frozen_ns + (since_ns != 0 ? clock_monotonic_ns() - since_ns : 0);
    (void)pthread_mutex_unlock(&jail->lock);
    return total_ns;
}

void jail_freeze(struct jail *jail, bool is_frozen)
{
    (void)pthread_mutex_lock(&jail->lock);
    if (is_frozen != (jail->frozen_since_ns != 0)) {
        if (is_frozen) {
            jail->frozen_since_ns = clock_monotonic_ns();
        } else {
            jail_freeze_end(jail);
        }
        if (jail->running) {
            const unsigned kind = is_frozen ? WIRE_FREEZE : WIRE_THAW;
            (void)jail_wire_send(jail->socket, kind, jail->number); /* a broken jail ends */
        }
    }
    (void)pthread_mutex_unlock(&jail->lock);
}
