/* An ask offers the free slots of a device. The functions create, rest and cancel asks. */
#ifndef BOURSE_EXCHANGE_MARKET_ASKS_H
#define BOURSE_EXCHANGE_MARKET_ASKS_H

#include "exchange/state/records.h"

enum {
    CANCEL_BY_OWNER = 0,
    CANCEL_DISCONNECT = 1,
    CANCEL_EXPIRED = 2,
    CANCEL_REPLACED = 3,
    CANCEL_FROZEN = 4,
    CANCEL_JOB_ENDED = 5,
    CANCEL_NOT_RESTING = 6 /* the unfilled rest of an order that does not rest */
};

/* Finds the bid that the ask meets first: the best price; at 0, the first of the donation queue. */
bool ask_match(const struct exchange *exchange, const struct book_order *order, book_skip *skip,
               void *context, struct book_match *ret_match);
void ask_cancel(struct exchange *exchange, struct ask *ask, uint8_t reason);
/* Cancels all asks of the provider. */
void asks_cancel_all(struct exchange *exchange, struct provider *provider, uint8_t reason);
/* Returns the ask as the book knows it: its free slots, at its price and sequence. */
struct book_order ask_order(const struct exchange *exchange, const struct ask *ask);
/* Puts the free slots of the ask into the book. */
void ask_rest(struct exchange *exchange, const struct ask *ask);
/* Returns the code that refuses the ask, or 0. The ask meets a bid of its own account, or it is
 * post-only and would trade. In the second case *ret_price_micro is the price of the bid. */
uint32_t ask_refusal(const struct exchange *exchange, const struct ask *ask,
                     int64_t *ret_price_micro);
/* Creates an ask that does not rest yet. Returns NULL when no handle or memory is left. */
struct ask *ask_create(struct exchange *exchange, const struct ask *fields);
/* Records the ask, tells its provider and queues it for matching. */
void ask_placed(struct exchange *exchange, struct ask *ask);

#endif
