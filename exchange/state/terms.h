/* The terms of leases are written as attributes of a cell. */
#ifndef BOURSE_EXCHANGE_STATE_TERMS_H
#define BOURSE_EXCHANGE_STATE_TERMS_H

#include "exchange/state/records.h"

/* The terms are written as TERMS_ATTRIBUTES attributes; terms_is_attribute tells whether one is of
 * them. */
void terms_attributes(const struct exchange_terms *terms, struct attribute *ret_attributes);
bool terms_is_attribute(const struct attribute *attribute);
/* Returns the terms that the attributes of the cell say. */
struct exchange_terms terms_read(const struct exchange *exchange, uint32_t cell);

#endif
