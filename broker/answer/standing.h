/* broker/answer/standing.h - what an account is known for, as listings and `why` say it. */
#ifndef BOURSE_BROKER_ANSWER_STANDING_H
#define BOURSE_BROKER_ANSWER_STANDING_H

#include "exchange/exchange.h"
#include "protocol/codec.h"

struct standing_wire { /* the wire form with what it points to */
    struct exchange_standing row;
    Bourse__V1__Standing wire;
};

/* The wire form, which lives as long as `ret_standing`; NULL: the account is known for nothing. */
Bourse__V1__Standing *standing_to_wire(const struct exchange *exchange, uint32_t account,
                                       struct standing_wire *ret_standing);

#endif
