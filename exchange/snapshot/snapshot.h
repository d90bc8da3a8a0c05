/* A snapshot is the whole state as bytes. */
#ifndef BOURSE_EXCHANGE_SNAPSHOT_SNAPSHOT_H
#define BOURSE_EXCHANGE_SNAPSHOT_SNAPSHOT_H

#include "exchange/state/records.h"

#define SNAPSHOT_MAGIC "BS12" /* snapshot.c describes the format */

/* Returns true when exchange_save would write these bytes; false also when memory is short. */
bool exchange_saves_as(const struct exchange *exchange, const uint8_t *bytes, size_t length);

#endif
