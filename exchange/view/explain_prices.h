/* The functions tell at which price or budget a waiting bid would be filled. */
#ifndef BOURSE_EXCHANGE_VIEW_EXPLAIN_PRICES_H
#define BOURSE_EXCHANGE_VIEW_EXPLAIN_PRICES_H

#include "exchange/state/records.h"
#include "exchange/view/search.h"

/* Fills in what a bid costs that is filled all at once. The price of one more slot does not matter
 * to a bid that is filled all at once. */
void explain_whole(const struct search *search, struct exchange_explanation *why);
/* Fills in what a bid costs that is filled lane by lane. */
void explain_lanes(const struct search *search, struct exchange_explanation *why);

#endif
