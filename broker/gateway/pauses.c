#include "broker/gateway/pauses.h"

void pauses_begin(struct pauses *pauses, struct router *router, int64_t until_ns)
{
    const int descriptor = router_descriptor(router);
    if (descriptor < 0 || pauses->count == PAUSES_MAX) {
        return;
    }
    for (size_t i = 0; i < pauses->count; i++) {
        if (pauses->items[i].descriptor == descriptor) {
            return; /* an earlier message has paused it */
        }
    }
    router_pause(descriptor, true);
    pauses->items[pauses->count++] =
        (struct paused_connection){.descriptor = descriptor, .until_ns = until_ns};
}

void pauses_end(struct pauses *pauses, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < pauses->count; i++) {
        if (pauses->items[i].until_ns <= now_ns) {
            router_pause(pauses->items[i].descriptor, false);
        } else {
            pauses->items[kept++] = pauses->items[i];
        }
    }
    pauses->count = kept;
}
