/* broker/blob/standing_leases.h tells the tables of leases, when the broker starts, which leases
 * stand and what their subtasks were given.
 *
 * The tables say who may read which job's blobs (blob_access.h) and what results may name
 * (outputs.h). Later grants and ends keep both right. */
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
