/* The conditions of an ask limit the accounts, the hours and the daily time that it serves. */
#ifndef BOURSE_EXCHANGE_MARKET_ASK_CONDITIONS_H
#define BOURSE_EXCHANGE_MARKET_ASK_CONDITIONS_H

#include "exchange/state/records.h"

/* ask_is_unsuited tells book_match to pass over an ask that does not suit the job, or is above its
 * reach. */
struct suiting {
    const struct exchange *exchange;
    const struct ask *ask; /* matched with bids; NULL: `part` is matched with asks */
    const struct part *part;
};

/* Reads the command's conditions into an ask without any. Returns false when refused. */
bool ask_read_conditions(struct exchange *exchange, const struct exchange_ask *given,
                         struct ask *ask);
bool ask_is_for(const struct ask *ask, uint32_t account);
/* Returns true when the ask is for the job's owner and the job accepts its kind of lease. */
bool ask_suits(const struct ask *ask, const struct job *job);
/* Sets is_open and turns_ns by the hours, the day and a withdrawal. */
void ask_look_at_hours(const struct exchange *exchange, struct ask *ask);
/* Returns the longest time until the ask has free slots by its hours and day; 0: both allow it
 * now. */
int64_t ask_opens_in_ns(const struct exchange *exchange, const struct ask *ask);
/* Applies the start or end of a window or a day of the ask. */
void ask_turn(struct exchange *exchange, struct ask *ask);
void ask_arm(struct exchange *exchange, const struct ask *ask);
bool ask_is_unsuited(void *context, uint32_t handle);

#endif
