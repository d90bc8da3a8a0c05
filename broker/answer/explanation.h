/* An explanation says why a bid waits, or what would become of a planned bid. It has one line of
 * text and a wire form. */
#ifndef BOURSE_BROKER_ANSWER_EXPLANATION_H
#define BOURSE_BROKER_ANSWER_EXPLANATION_H

#include "broker/answer/departures.h"
#include "broker/answer/smallest_change.h"
#include "exchange/exchange.h"
#include "formats/units.h"

/* The struct holds the wire form, with everything that it points to. */
struct explanation {
    struct exchange_explanation row;
    char departed[DEPARTURES_TEXT_SIZE]; /* of departures_text; "": nobody */
    char text[LIMIT_TEXT_BYTES];
    Bourse__V1__Explanation wire;
    Bourse__V1__ExplainPredicate predicates[REQUIREMENT_NODES_MAX];
    Bourse__V1__ExplainPredicate *pointers[REQUIREMENT_NODES_MAX];
    struct smallest_change_wire smallest_change;
};
/* Counts the silence of providers until `log_ns` of log time. The exchange's own time is that of
 * its newest command, which may be long ago in a quiet market. */
void explanation_age(struct explanation *explanation, const struct exchange *exchange,
                     int64_t log_ns);
/* Makes the wire form from `row` and `departed`, and turns the row's predicates into text for
 * people. Returns false when memory is short. */
bool explanation_to_wire(struct explanation *explanation);
/* Frees `explanation` and everything that it points to. */
void explanation_free(struct explanation *explanation);

/* Rewrites "memory >= 966367641600" as "memory >= 900.0 GiB": the exchange knows numbers, not
 * units. */
void explanation_predicate(char *text, size_t capacity);
/* Writes the number of the predicate in its unit and returns `ret_text`. */
const char *explanation_figure(const char *predicate, int64_t value,
                               char ret_text[UNITS_TEXT_SIZE]);

#endif
