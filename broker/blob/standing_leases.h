/* broker/blob/standing_leases.h enters the leases that stand when the broker starts into the two
 * tables of leases.
 *
 * One table says who may read which job's blobs (blob_access.h). The other says which outputs the
 * results of a lease may name (outputs.h). Later grants and ends of leases keep both tables
 * right. */
#ifndef BOURSE_BROKER_BLOB_STANDING_LEASES_H
#define BOURSE_BROKER_BLOB_STANDING_LEASES_H

#include "broker/blob/outputs.h"
#include "broker/blob/port/blob_access.h"
#include "exchange/exchange.h"

#include <stdbool.h>

/* Fills both tables, which are empty. Returns false when memory is short. */
bool standing_leases_restore(const struct exchange *exchange, struct blob_access *access,
                             struct outputs *outputs);

#endif
