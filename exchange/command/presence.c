/* The broker tells that a provider is silent, has returned or has left. */
#include "exchange/command/apply.h"
#include "exchange/lifecycle.h"
#include "exchange/market/asks.h"
#include "exchange/market/devices.h"
#include "exchange/market/providers.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lookup.h"
#include "exchange/state/tracking.h"
#include "exchange/work/jobs.h"
#include "exchange/work/lease_endings.h"

static void suspect(struct exchange *exchange, struct lease *lease, const void *context)
{
    (void)context;
    lease_suspect(exchange, lease);
}

/* A provider that left hears nothing. A job that loses work avoids it for a while; otherwise a
 * provider that comes and goes could use up all attempts of a subtask. */
static void leave(struct exchange *exchange, struct lease *lease, const void *context)
{
    (void)context;
    if (lease->live > 0 && !job_avoids(exchange, lease->job, lease->provider)) {
        job_avoid(exchange, lease->job, lease->provider, AVOID_NS);
    }
    lease_end(exchange, lease, XEND_TERM, false);
    job_check(exchange, lease->job);
}

void apply_suspect(struct exchange *exchange, uint32_t number)
{
    struct provider *provider = lookup_provider(exchange, number);
    if (provider == NULL || provider->state != PROVIDER_PRESENT) {
        return;
    }
    provider_move(&provider->state, PROVIDER_SUSPECT);
    provider->suspect_ns = exchange->now_ns;
    tracking_touch(exchange, &provider->tracked);
    asks_cancel_all(exchange, provider, CANCEL_DISCONNECT);
    provider_for_leases(exchange, provider, suspect, NULL);
}

void apply_returned(struct exchange *exchange, uint32_t number)
{
    struct provider *provider = lookup_provider(exchange, number);
    if (provider == NULL || provider->state != PROVIDER_SUSPECT) {
        return;
    }
    provider_move(&provider->state, PROVIDER_PRESENT);
    tracking_touch(exchange, &provider->tracked);
    provider_for_leases(exchange, provider, provider_returned_lease, NULL);
}

void apply_goodbye(struct exchange *exchange, uint32_t number)
{
    struct provider *provider = lookup_provider(exchange, number);
    if (provider == NULL || provider->state == PROVIDER_AWAY) {
        return;
    }
    provider_move(&provider->state, PROVIDER_AWAY);
    tracking_touch(exchange, &provider->tracked);
    asks_cancel_all(exchange, provider, CANCEL_DISCONNECT);
    provider_for_leases(exchange, provider, leave, NULL);
    for (struct list_link *at = provider->devices.next; at != &provider->devices;) {
        struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        at = at->next;
        device->is_advertised = false;
        tracking_touch(exchange, &device->tracked);
        device_drop_if_gone(exchange, device);
    }
}
