/* This module lists the attributes of an offered device, which jobs may ask for. */
#ifndef BOURSE_PROVIDER_DEVICE_DESCRIBE_H
#define BOURSE_PROVIDER_DEVICE_DESCRIBE_H

#include "provider/device/offer.h"
#include "provider/device/probe.h"
#include "provider/jail/isolation.h"

/* Adds all attributes of the device. The offer has its share of the machine and no attribute yet. A
 * fact that is not known becomes no attribute. */
void describe_offer(struct offer *offer, const struct config *config, const struct machine *machine,
                    const struct profile *profile, const struct isolation *isolation);

#endif
