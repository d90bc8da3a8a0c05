/* consumer/command/job/shares.h - what each device did of a product: its leases of the job in one
 * row. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_SHARES_H
#define BOURSE_CONSUMER_COMMAND_JOB_SHARES_H

#include "consumer/client/bourse.h"

struct device_share {
    const char *provider, *device; /* of the lease that was first */
    uint32_t tiles;                /* in the product */
    uint32_t others;               /* what else it did that was accepted: checks */
    int64_t paid_ns, charged_micro;
};

/* `tiles`: of the product, by lease. `ret_shares` has room for as many as there are leases; devices
 * are in the order of their first ones. Returns how many they are. */
size_t device_shares(const struct bourse_lease *leases, size_t count, const uint32_t *tiles,
                     struct device_share *ret_shares);

/* The providers that made tiles: a referee has made none. */
size_t shares_providers(const struct device_share *shares, size_t count);

#endif
