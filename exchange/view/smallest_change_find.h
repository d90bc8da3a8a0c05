/* exchange/view/smallest_change_find.h looks for the smallest change with which a waiting bid would
 * be filled at once (smallest_change.h). Pure reads. */
#ifndef BOURSE_EXCHANGE_VIEW_SMALLEST_CHANGE_FIND_H
#define BOURSE_EXCHANGE_VIEW_SMALLEST_CHANGE_FIND_H

#include "exchange/view/search.h"
#include "exchange/view/smallest_change.h"

/* The bid could be filled lane by lane. */
void smallest_change_find(const struct search *search,
                          struct exchange_smallest_change *ret_smallest);
/* The bid is filled all at once, or not at all. */
void smallest_change_find_whole(const struct search *search, const struct whole *whole,
                                struct exchange_smallest_change *ret_smallest);

#endif
