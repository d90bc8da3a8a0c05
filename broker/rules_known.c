#include "broker/rules_known.h"

#include "exchange/exchange.h"

#ifndef BOURSE_RULES_BEHIND
#define BOURSE_RULES_BEHIND 0 /* by how much the numbers of another program are lower */
#endif

struct rules_known rules_known(void)
{
    return (struct rules_known){.first = EXCHANGE_RULES_FIRST - BOURSE_RULES_BEHIND,
                                .last = EXCHANGE_RULES - BOURSE_RULES_BEHIND};
}
