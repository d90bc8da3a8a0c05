#include "consumer/command/job/shares.h"

#include <string.h>

static struct device_share *share_of(const struct bourse_lease *lease, struct device_share *shares,
                                     size_t *count)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(shares[i].provider, lease->provider) == 0 &&
            strcmp(shares[i].device, lease->device) == 0) {
            return &shares[i];
        }
    }
    struct device_share *share = &shares[(*count)++];
    *share = (struct device_share){.provider = lease->provider, .device = lease->device};
    return share;
}

size_t shares_by_device(const struct bourse_lease *leases, size_t count, const uint32_t *tiles,
                        struct device_share *ret_shares)
{
    size_t devices = 0;
    for (size_t i = 0; i < count; i++) {
        struct device_share *share = share_of(&leases[i], ret_shares, &devices);
        share->tiles += tiles[i];
        share->others += leases[i].accepted > tiles[i] ? leases[i].accepted - tiles[i] : 0;
        share->paid_ns += leases[i].paid_ns;
        share->charged_micro += leases[i].charged_micro;
    }
    return devices;
}

static bool is_first_with_tiles(const struct device_share *shares, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (shares[i].tiles > 0 && strcmp(shares[i].provider, shares[at].provider) == 0) {
            return false;
        }
    }
    return shares[at].tiles > 0;
}

size_t shares_providers(const struct device_share *shares, size_t count)
{
    size_t providers = 0;
    for (size_t i = 0; i < count; i++) {
        providers += is_first_with_tiles(shares, i);
    }
    return providers;
}
