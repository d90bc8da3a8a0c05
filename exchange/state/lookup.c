#include "exchange/state/lookup.h"

struct provider *lookup_provider(struct exchange *exchange, uint32_t number)
{
    const struct member *member = lookup_member(exchange, number);
    return member != NULL ? member->provider : NULL;
}

struct lease *lookup_lease(const struct exchange *exchange, uint64_t id)
{
    return table_find(&exchange->leases, &id);
}
