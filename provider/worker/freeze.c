/* provider/worker/freeze.c stops and continues the processes of the jail with signals that no
 * process can refuse.
 *
 * The kernel sends SIGSTOP to all processes but this one in one step. A job could still have
 * processes that continue one another faster than they stop. So the worker looks at the frozen
 * processes, stops them again, and says when that does not help. */
#include "provider/worker/worker.h"

#include <signal.h>

#define PATIENCE_NS UINT64_C(1000000000)

uint64_t freeze_total_ns(const struct freeze *freeze, uint64_t now_ns)
{
    return freeze->total_ns + (freeze->since_ns != 0 ? now_ns - freeze->since_ns : 0);
}

static bool still_stands(struct freeze *freeze, uint64_t now_ns)
{
    if (watch_stopped()) {
        freeze->stood_ns = now_ns;
        return true;
    }
    (void)kill(-1, SIGSTOP);
    return now_ns - freeze->stood_ns < PATIENCE_NS;
}

bool freeze_obey(struct freeze *freeze, bool is_wanted, bool looks, uint64_t now_ns)
{
    if (is_wanted && freeze->since_ns != 0) {
        return !looks || still_stands(freeze, now_ns);
    }
    if (is_wanted) {
        freeze->since_ns = freeze->stood_ns = now_ns;
        (void)kill(-1, SIGSTOP); /* without a process there is nothing to stop */
    } else if (freeze->since_ns != 0) {
        freeze->total_ns = freeze_total_ns(freeze, now_ns);
        freeze->since_ns = 0;
        (void)kill(-1, SIGCONT);
    }
    return true;
}
