/* provider/owner_status.h says, as JSON, what the running agent does. */
#ifndef BOURSE_PROVIDER_OWNER_STATUS_H
#define BOURSE_PROVIDER_OWNER_STATUS_H

#include "provider/config.h"
#include "provider/idle/gpu_watch.h"
#include "provider/idle/idle_watch.h"
#include "provider/pauses.h"
#include "provider/session/agent_session.h"
#include "provider/session/fault_rule.h"
#include "provider/work/lanes.h"
#include "provider/work/network.h"
#include "runtime/market.h"

enum { OWNER_STATUS_VERSION = 1, OWNER_LEASES_MAX = 256 /* leases listed one by one */ };

/* The agent's facts are borrowed during the call; names in _ms are wall-clock times. */
struct owner_facts {
    const struct config *config;
    const struct market *market;
    const char *address; /* of the broker that the agent speaks to */
    int isolation;
    const struct lanes *lanes;
    bool is_crowded, lacks_folder, is_leaving;
    int64_t started_ms;
    int64_t since_ms;       /* time of the last connect or disconnect; 0: never connected */
    const char *last_error; /* "": none */
    int64_t last_error_ms;
    const struct idle_watch *idle;   /* NULL: the devices work at any time */
    const struct gpu_watch *gpus;    /* NULL: no GPU is offered */
    const struct fault_rule *faults; /* of the session's devices, by number */
    const struct energy_tally *energy;
    struct network *network; /* NULL: it has no limits */
};

/* Returns the answer to `status`. `state` is one word, such as "offering". A member for which
 * memory is short is left out; NULL when it is short for all. */
json_t *owner_status(const struct pauses *pauses, const char *state,
                     const struct agent_session *session, int64_t now_ns, int64_t wall_ms,
                     const struct owner_facts *facts);
/* Returns the progress of a pause, a resume or a drain: of the device with that label, or of the
 * whole agent for "". `unkept` says why the pauses are not in their file; "": they are. */
json_t *owner_progress(const struct pauses *pauses, const char *state,
                       const struct agent_session *session, const char *device, const char *unkept);
/* Returns true when an ask is missing that the owner wants to stand. An ask that was cancelled by
 * hand is not waited for, nor one of a paused device. */
bool owner_waits_for_asks(const struct agent_session *session);

#endif
