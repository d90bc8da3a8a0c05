#include "exchange/work/held.h"

#include "exchange/state.h"

uint32_t held_first_check(const struct job *job)
{
    return job->parts[job->part_count - 1].first;
}

uint32_t held_accuser(const struct held *held)
{
    return held->accusation.tracked.type == 0 ? EXCHANGE_NO_ACCOUNT : held->accusation.referee;
}

bool held_is_party(const struct exchange *exchange, uint32_t maker, uint32_t accuser,
                   uint32_t referee)
{
    return have_one_owner(exchange, maker, referee) ||
           (accuser != EXCHANGE_NO_ACCOUNT && have_one_owner(exchange, accuser, referee));
}

struct hash32 held_seed(const struct job *job, const struct held *held)
{
    const uint32_t attempt = held->accusation.tracked.type == 0 ? 0 : held->accusation.attempt;
    return exchange_check_seed(&held->dice, &held->hash, held_first_check(job) + held->index,
                               attempt);
}
