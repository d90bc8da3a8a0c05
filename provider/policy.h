/* provider/policy.h computes the offers from what the machine has and what its owner allows. The
 * module only decides and computes; discover, config, probe and isolation read the facts. */
#ifndef BOURSE_PROVIDER_POLICY_H
#define BOURSE_PROVIDER_POLICY_H

#include "provider/config.h"
#include "provider/device/discover.h"
#include "provider/device/offer.h"
#include "provider/device/probe.h"
#include "provider/jail/isolation.h"

#include <stdbool.h>

/* Computes the offers of every device. `account` and the devices' names give the devices their ids.
 * A device for kernels that this machine cannot use is left out, and so is one whose plug-in cannot
 * be used. Returns false with what to change when the others cannot all be offered. Reasons are no
 * isolation, more cores than there are, memory for less than one slot, a device for kernels that is
 * none of those there are, two entries for one GPU, an open device with several slots, or a plug-in
 * that was not asked. */
bool policy_offers(const struct config *config, const struct machine *machine,
                   const struct profile *profile, const struct isolation *isolation,
                   const struct key32 *account, struct offers *ret_offers,
                   struct problem *ret_problem);
/* Checks the part of policy_offers that needs only the config and the machine. */
bool policy_check(const struct config *config, const struct machine *machine,
                  struct problem *ret_problem);
/* Returns the offer of that device, or NULL. */
const struct offer *policy_offer_of(const struct offers *offers, const struct id128 *device);

#endif
