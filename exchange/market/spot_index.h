/* The index of the spot market holds the leases that are exposed to other bids. */
#ifndef BOURSE_EXCHANGE_MARKET_SPOT_INDEX_H
#define BOURSE_EXCHANGE_MARKET_SPOT_INDEX_H

#include "exchange/state/records.h"
#include "matching/book_walk.h"

struct spot {
    struct book *book;
    struct lease **leases; /* indexed by handle */
    uint32_t *free_handles;
    uint32_t free_count, capacity;
};

void spot_destroy(struct spot **self);
void spot_class_gone(struct exchange *exchange, uint32_t class_id);
int64_t spot_exposed_ns(const struct lease *lease); /* start of exposure; INT64_MAX: never */
/* Exposes the lease anew, at its price as of now, or hides it. */
void spot_expose(struct exchange *exchange, struct lease *lease);
void spot_expose_device(struct exchange *exchange, const struct device *device);
void spot_expose_job(struct exchange *exchange, const struct job *job);
/* Exposed leases have handles below the bound; NULL: no lease has this one. */
uint32_t spot_bound(const struct exchange *exchange);
const struct lease *spot_lease(const struct exchange *exchange, uint32_t handle);
/* Visits exposed leases on accepted devices in the order in which bids take them:
 * book_walk_asks. */
void spot_walk(const struct exchange *exchange, const struct requirement *needs, enum rate rate,
               book_visit *visit, void *context);

#endif
