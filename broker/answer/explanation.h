/* broker/answer/explanation.h - why a bid waits, or what becomes of one that is not there yet: in
 * one line, and on the wire. */
#ifndef BOURSE_BROKER_ANSWER_EXPLANATION_H
#define BOURSE_BROKER_ANSWER_EXPLANATION_H

#include "broker/answer/smallest_change.h"
#include "exchange/exchange.h"
#include "formats/units.h"

struct explanation { /* the wire form with what it points to */
    struct exchange_explanation row;
    char text[LIMIT_TEXT_BYTES];
    Bourse__V1__Explanation wire;
    Bourse__V1__ExplainPredicate predicates[REQUIREMENT_NODES_MAX];
    Bourse__V1__ExplainPredicate *pointers[REQUIREMENT_NODES_MAX];
    struct smallest_change_wire smallest_change;
};
/* From its `row`, of which the predicates become what people read. False: out of memory. */
bool explanation_to_wire(struct explanation *explanation);
void explanation_free(struct explanation *explanation); /* and what it points to */

/* "memory >= 966367641600" becomes "memory >= 900.0 GiB": the exchange knows numbers, not units. */
void explanation_predicate(char *text, size_t capacity);
/* The figure of such a predicate as people write it. */
const char *explanation_figure(const char *predicate, int64_t value,
                               char ret_text[UNITS_TEXT_SIZE]);

#endif
