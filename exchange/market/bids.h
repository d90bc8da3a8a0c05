/* Each part of a job has one bid, which rests in the book as an order of its own. */
#ifndef BOURSE_EXCHANGE_MARKET_BIDS_H
#define BOURSE_EXCHANGE_MARKET_BIDS_H

#include "exchange/state/records.h"

/* Returns false when a cap of the job's parts is above part_limit_most; the command is then
 * refused. */
bool bid_caps_in_range(struct exchange *exchange, const struct exchange_submit *submit);
/* Creates the parts of a checked submission. Returns false when memory is short. */
bool bids_create_parts(struct exchange *exchange, struct job *job,
                       const struct exchange_submit *submit);
/* Returns the order id of the bid; the first part has the job's. */
struct id128 bid_id(const struct part *part);
void bid_record(struct exchange *exchange, const struct part *part);
/* Returns the bid as the book knows it: the slots it wants now, at its limit and sequence. */
struct book_order bid_order(const struct part *part);
void bid_rest(struct exchange *exchange, const struct part *part);
/* Returns the code that refuses the arriving bid under the free budget, or 0. *ret_micro is the
 * price of the ask that it meets first, or the cost of one subtask's term there. */
uint32_t bid_refusal(const struct exchange *exchange, const struct part *part, int64_t free_micro,
                     int64_t *ret_micro);
/* Cancels the unfilled rest of a bid that does not rest. */
void bid_stand_down(struct exchange *exchange, struct part *part);
/* Gives each part a class and a handle. The bids arrive later. Returns false when refused, for lack
 * of either or a trade with its own owner; then nothing has changed. */
bool bids_place(struct exchange *exchange, struct job *job, const struct exchange_submit *submit);
/* Looks again at the number that the part wants; queues its bid for matching when it wants some. */
void bid_wants(struct exchange *exchange, struct part *part);
void bids_want(struct exchange *exchange, struct job *job); /* all its parts */
/* Does the same, best bid first; bids of one command arrive in that order. */
void bids_arrive(struct exchange *exchange, struct job *job);
void bids_take_away(struct exchange *exchange, struct job *job);

#endif
