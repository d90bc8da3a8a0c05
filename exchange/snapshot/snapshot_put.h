/* The functions write one record of the state as bytes. */
#ifndef BOURSE_EXCHANGE_SNAPSHOT_SNAPSHOT_PUT_H
#define BOURSE_EXCHANGE_SNAPSHOT_SNAPSHOT_PUT_H

#include "base/cursor.h"
#include "exchange/state/records.h"

/* Marks the index of outputs whose size comes next. No index is so high. */
#define SNAPSHOT_GIVEN_SIZE (UINT32_C(1) << 31)

/* Writes the record. `tracked` is the first member of its entity. */
void snapshot_put_entity(struct writer *out, const struct exchange *exchange,
                         const struct tracked *tracked);

#endif
