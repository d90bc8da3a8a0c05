/* The counterpart of an order is the order that it meets first. */
#ifndef BOURSE_EXCHANGE_MARKET_COUNTERPARTS_H
#define BOURSE_EXCHANGE_MARKET_COUNTERPARTS_H

#include "exchange/state/records.h"

struct found_ask {
    struct ask *ask;
    uint32_t slots; /* slots that the two can trade */
    bool is_short;  /* an ask was passed over for the budget */
};

/* Returns the best resting bid for a resting or arriving ask; NULL: none. */
struct part *counterpart_of_ask(struct exchange *exchange, struct ask *ask, uint32_t *ret_slots);
/* Returns the highest price at which a replaced ask is filled at once; -1: none. A read. */
int64_t counterpart_ask_fills_at(const struct exchange *exchange, const struct ask *ask);
/* Finds the best resting ask for a resting or arriving bid. */
struct found_ask counterpart_of_part(struct exchange *exchange, struct part *part);
/* Returns true when ending this lease at 0 would give its slots to a bid of an account of lower
 * rank. */
bool counterpart_donation_is_due(struct exchange *exchange, struct lease *lease);
/* Returns true when a part of the job finds an ask that the budget covers; then the job goes on. */
bool counterpart_is_there(struct exchange *exchange, struct job *job);

#endif
