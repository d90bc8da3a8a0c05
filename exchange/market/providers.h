/* The functions act on all leases of a provider. */
#ifndef BOURSE_EXCHANGE_MARKET_PROVIDERS_H
#define BOURSE_EXCHANGE_MARKET_PROVIDERS_H

#include "exchange/state/records.h"

typedef void on_lease(struct exchange *exchange, struct lease *lease, const void *context);

/* Visits leases oldest first. An action may end further leases, so each is looked up again. */
void provider_for_leases(struct exchange *exchange, const struct provider *provider,
                         on_lease *action, const void *context);
/* This on_lease acts when the provider of the lease is back. */
void provider_returned_lease(struct exchange *exchange, struct lease *lease, const void *context);
/* Ends all leases of the provider; the operator froze its account. */
void provider_leases_revoke(struct exchange *exchange, struct provider *provider);

#endif
