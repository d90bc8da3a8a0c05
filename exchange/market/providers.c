/* A provider advertises devices, places asks on them, and comes and goes. */
#include "exchange/market/providers.h"

#include "exchange/lifecycle.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/work/jobs.h"
#include "exchange/work/lease_endings.h"

#include <stdlib.h>

void provider_for_leases(struct exchange *exchange, const struct provider *provider,
                         on_lease *action, const void *context)
{
    size_t count = 0;
    uint64_t *numbers = memory_allocate(exchange, (provider->lease_count + 1) * sizeof *numbers);
    if (numbers == NULL) {
        return;
    }
    for (struct list_link *at = provider->leases.next; at != &provider->leases; at = at->next) {
        numbers[count++] = LIST_ELEMENT(at, struct lease, of_provider)->id;
    }
    for (size_t i = 0; i < count; i++) {
        struct lease *lease = lookup_lease(exchange, numbers[i]);
        if (lease != NULL && lease->state != LEASE_ENDED) {
            action(exchange, lease, context);
        }
    }
    free(numbers);
}

void provider_returned_lease(struct exchange *exchange, struct lease *lease, const void *context)
{
    (void)context;
    lease_returned(exchange, lease);
}

static void revoke(struct exchange *exchange, struct lease *lease, const void *context)
{
    (void)context;
    lease_end(exchange, lease, XEND_REVOKED, true);
    /* The lease may have had the last attempt of the last subtask. */
    job_check(exchange, lease->job);
}

void provider_leases_revoke(struct exchange *exchange, struct provider *provider)
{
    provider_for_leases(exchange, provider, revoke, NULL);
}
