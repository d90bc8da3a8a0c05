/* A walk visits the resting asks that a requirement accepts, the best first. */
#ifndef BOURSE_MATCHING_BOOK_WALK_H
#define BOURSE_MATCHING_BOOK_WALK_H

#include "matching/book.h"

/* A book_visit returns false to stop the walk. book_walk_asks() visits all resting asks of the
 * cells that `requirement` accepts and that have the rate. The best come first: by price, or by
 * price for a unit of work. */
typedef bool book_visit(void *context, uint32_t handle, const struct book_ask *ask);
void book_walk_asks(const struct book *book, const struct requirement *requirement, enum rate rate,
                    book_visit *visit, void *context);

#endif
