/* exchange/view/smallest_change_find.h looks for the smallest change that fills a waiting bid at
 * once (smallest_change.h). */
#ifndef BOURSE_EXCHANGE_VIEW_SMALLEST_CHANGE_FIND_H
#define BOURSE_EXCHANGE_VIEW_SMALLEST_CHANGE_FIND_H

#include "exchange/view/search.h"
#include "exchange/view/smallest_change.h"

/* Finds the change for a bid that may be filled lane by lane. */
void smallest_change_find(const struct search *search,
                          struct exchange_smallest_change *ret_smallest);
/* Finds the change for a bid that is filled all at once or not at all. */
void smallest_change_find_whole(const struct search *search, const struct whole *whole,
                                struct exchange_smallest_change *ret_smallest);

#endif
