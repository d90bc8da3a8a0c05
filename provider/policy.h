/* provider/policy.h - from what the machine has and what its owner allows to what is offered.
 * Decides and computes only: reading is for discover, config, probe and isolation. */
#ifndef BOURSE_PROVIDER_POLICY_H
#define BOURSE_PROVIDER_POLICY_H

#include "provider/config.h"
#include "provider/device/discover.h"
#include "provider/device/probe.h"
#include "provider/jail/isolation.h"
#include "provider/session/session.h"

#include <stdbool.h>

enum { POLICY_ATTRIBUTES_MAX = LIMIT_ATTRIBUTES };
/* The attribute that names those of the others that were measured on the device. */
#define POLICY_MEASURED "measured"

struct offer {
    struct agent_device device; /* its attributes are those below: do not copy the struct */
    struct attribute attributes[POLICY_ATTRIBUTES_MAX];
    struct agent_ask ask;
    uint64_t memory_bytes; /* of one slot */
    uint64_t disk_bytes;   /* of one slot */
    uint32_t processes;    /* of one slot */
    uint32_t first_core;   /* its cores are machine.cpus[first_core] and on, one for each slot */
    const struct catalogue_device *simulates; /* NULL: it is what it says; else it has no cores */
};

struct offers { /* one for each device: the config's first, then its `devices` */
    struct offer items[1 + CONFIG_DEVICES_MAX];
    size_t count;
};

/* False, with what to change, when not all can be offered: no isolation, more cores than there are,
 * or memory for less than one slot. `account` and their names name the devices. */
bool policy_offers(const struct config *config, const struct machine *machine,
                   const struct profile *profile, const struct isolation *isolation,
                   const struct key32 *account, struct offers *ret_offers,
                   struct problem *ret_problem);
/* The part of it that needs nothing but the config and the machine. */
bool policy_check(const struct config *config, const struct machine *machine,
                  struct problem *ret_problem);
/* The offer of that device, or NULL. */
const struct offer *policy_offer_of(const struct offers *offers, const struct id128 *device);

/* Bounds of the jail for `width` slots of the offer. A manifest may ask for less: 0 asks for
 * nothing. */
struct jail_limits policy_jail(const struct offer *offer, uint32_t width, int64_t memory_bytes,
                               int64_t disk_bytes, uint32_t processes, bool cpu_enforced);

#endif
