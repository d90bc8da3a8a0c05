/* consumer/command/job/shares.h sums up the share of each device in a product. One row has all
 * leases of a device in the job. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_SHARES_H
#define BOURSE_CONSUMER_COMMAND_JOB_SHARES_H

#include "consumer/client/bourse.h"

struct device_share {
    const char *provider, *device; /* names from its first lease */
    uint32_t tiles;                /* tiles in the product */
    uint32_t others;               /* other accepted subtasks: checks */
    int64_t paid_ns, charged_micro;
};

/* Sums up the leases by device, in the order of their first leases, and returns the number of
 * devices. `tiles` has the number of tiles by lease. `ret_shares` has room for one row a lease. */
size_t shares_by_device(const struct bourse_lease *leases, size_t count, const uint32_t *tiles,
                        struct device_share *ret_shares);

/* Returns the number of providers that made tiles. A referee makes none. */
size_t shares_providers(const struct device_share *shares, size_t count);

#endif
