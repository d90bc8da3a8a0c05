#include "broker/challenge/challenge_wire.h"

#include "base/checked.h"

Bourse__V1__ChallengeFact *challenge_wire_of(const struct challenge_facts *facts, uint32_t account,
                                             const struct id128 *device, int64_t log_ns,
                                             Bourse__V1__ChallengeFact *ret_wire)
{
    const struct challenge_fact *fact = challenge_facts_find(facts, account, device);
    if (fact == NULL || fact->outcome == CHALLENGE_NONE) {
        return NULL;
    }
    bourse__v1__challenge_fact__init(ret_wire);
    ret_wire->outcome = (uint32_t)fact->outcome;
    ret_wire->at_ms = fact->at_ns / NS_PER_MS;
    ret_wire->claimed_mflops = fact->claimed_mflops;
    ret_wire->has_shown_mflops = fact->shown_mflops > 0;
    ret_wire->shown_mflops = fact->shown_mflops;
    ret_wire->has_limit_mflops = fact->limit_mflops > 0 && log_ns < fact->limit_until_ns;
    ret_wire->limit_mflops = fact->limit_mflops;
    ret_wire->has_closed_ms = log_ns < fact->closed_until_ns;
    ret_wire->closed_ms = (fact->closed_until_ns - log_ns + NS_PER_MS - 1) / NS_PER_MS;
    return ret_wire;
}
