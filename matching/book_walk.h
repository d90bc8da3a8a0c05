/* A walk visits resting orders, the best first. The orders are the asks that a requirement accepts,
 * or the bids that a cell meets. */
#ifndef BOURSE_MATCHING_BOOK_WALK_H
#define BOURSE_MATCHING_BOOK_WALK_H

#include "matching/book.h"

/* A book_visit returns false to stop the walk. book_walk_asks() visits all resting asks of the
 * cells that `requirement` accepts and that have the rate. The best come first: by price, or by
 * price for a unit of work. */
typedef bool book_visit(void *context, uint32_t handle, const struct book_ask *ask);
void book_walk_asks(const struct book *book, const struct requirement *requirement, enum rate rate,
                    book_visit *visit, void *context);

/* book_walk_bids() visits the resting bids with slots whose classes accept the cell, and whose
 * limit there is above `price_micro`. The best come first: by worth in the cell, then by
 * sequence. */
typedef bool book_visit_bid(void *context, uint32_t handle);
void book_walk_bids(const struct book *book, uint32_t cell, int64_t price_micro,
                    book_visit_bid *visit, void *context);

#endif
