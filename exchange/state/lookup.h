/* The functions find a record by its number. */
#ifndef BOURSE_EXCHANGE_STATE_LOOKUP_H
#define BOURSE_EXCHANGE_STATE_LOOKUP_H

#include "exchange/state/records.h"

/* Returns the member, or NULL. */
static inline struct member *lookup_member(const struct exchange *exchange, uint32_t number)
{
    return number < exchange->member_count ? exchange->members[number] : NULL;
}

/* Returns the sender of the present command, or NULL. */
static inline struct member *lookup_sender(const struct exchange *exchange)
{
    return lookup_member(exchange, exchange->command->account);
}

/* The two functions return NULL when there is none. */
struct provider *lookup_provider(struct exchange *exchange, uint32_t number);
struct lease *lookup_lease(const struct exchange *exchange, uint64_t id);

#endif
