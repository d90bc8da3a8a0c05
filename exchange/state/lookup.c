#include "exchange/state/lookup.h"

struct member *lookup_member(const struct exchange *exchange, uint32_t number)
{
    return number < exchange->member_count ? exchange->members[number] : NULL;
}

struct member *lookup_sender(const struct exchange *exchange)
{
    return lookup_member(exchange, exchange->command->account);
}

struct provider *lookup_provider(struct exchange *exchange, uint32_t number)
{
    const struct member *member = lookup_member(exchange, number);
    return member != NULL ? member->provider : NULL;
}

struct lease *lookup_lease(const struct exchange *exchange, uint64_t id)
{
    return table_find(&exchange->leases, &id);
}
