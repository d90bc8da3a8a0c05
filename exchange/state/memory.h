/* The exchange's records get their memory here. */
#ifndef BOURSE_EXCHANGE_STATE_MEMORY_H
#define BOURSE_EXCHANGE_STATE_MEMORY_H

#include "exchange/state/records.h"

/* Returns zeroed memory, or NULL and sets is_out_of_memory. */
void *memory_allocate(struct exchange *exchange, size_t size);

#endif
