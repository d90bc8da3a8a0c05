/* The text of a predicate is as reports write it. */
#ifndef BOURSE_EXCHANGE_VIEW_PREDICATE_TEXT_H
#define BOURSE_EXCHANGE_VIEW_PREDICATE_TEXT_H

#include "exchange/state/records.h"

/* Writes a predicate as reports do: memory >= 1024, kind = "gpu". */
void predicate_text(const struct requirement_node *node, char *ret_text, size_t size);
/* Writes `region in ("fr", "de")`; values that do not fit are left out, with a mark. */
void predicate_list_text(const struct requirement_node *first, uint32_t count, char *ret_text,
                         size_t size);

#endif
