/* The standing of an account is its record, as listings and `why` report it. */
#ifndef BOURSE_BROKER_ANSWER_STANDING_H
#define BOURSE_BROKER_ANSWER_STANDING_H

#include "exchange/exchange.h"
#include "protocol/codec.h"

/* This is the wire form of a standing with the row that the form points to. */
struct standing_wire {
    struct exchange_standing row;
    Bourse__V1__Standing wire;
};

/* Returns the wire form, which lives as long as `ret_standing`, or NULL when the account has no
 * record. */
Bourse__V1__Standing *standing_to_wire(const struct exchange *exchange, uint32_t account,
                                       struct standing_wire *ret_standing);

#endif
