/* provider/policy.h - from what the machine has and what its owner allows to what is offered. Decides
 * and computes only: reading is for discover, config, probe and isolation. */
#ifndef BOURSE_PROVIDER_POLICY_H
#define BOURSE_PROVIDER_POLICY_H

#include "provider/config.h"
#include "provider/discover.h"
#include "provider/isolation.h"
#include "provider/probe.h"
#include "provider/session.h"

#include <stdbool.h>

enum { POLICY_ATTRIBUTES_MAX = LIMIT_ATTRIBUTES };

struct offer {
    struct agent_device device; /* its attributes are those below: do not copy the struct */
    struct attribute attributes[POLICY_ATTRIBUTES_MAX];
    struct agent_ask ask;
    uint64_t memory_bytes; /* of one slot */
    uint64_t disk_bytes;   /* of one slot */
    uint32_t processes;    /* of one slot */
};

/* False, with what to change, when nothing can be offered: no isolation, or memory for less than one
 * slot. `account` names the device. */
bool policy_offer(const struct config *config, const struct machine *machine,
                  const struct profile *profile, const struct isolation *isolation,
                  const struct key32 *account, struct offer *ret_offer,
                  struct problem *ret_problem);

/* Bounds of the jail for `width` slots of the offer. A manifest may ask for less: 0 asks for nothing. */
struct jail_limits policy_jail(const struct offer *offer, uint32_t width, int64_t memory_bytes,
                               int64_t disk_bytes, uint32_t processes, bool cpu_enforced);

#endif
