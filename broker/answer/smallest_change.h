/* broker/answer/smallest_change.h writes the smallest change that fills a bid, as text and for the
 * wire. */
#ifndef BOURSE_BROKER_ANSWER_SMALLEST_CHANGE_H
#define BOURSE_BROKER_ANSWER_SMALLEST_CHANGE_H

#include "exchange/view/smallest_change.h"
#include "protocol/codec.h"
#include "protocol/limits.h"

#include <stdbool.h>
#include <stddef.h>

/* Writes the end of a sentence: "at 1.90 instead of 1.60 it fills now", or "" when there is no such
 * change. */
void smallest_change_text(const struct exchange_smallest_change *smallest_change, char *ret_text,
                          size_t capacity);

/* The struct holds everything that an Explanation points to. */
struct smallest_change_wire {
    char texts[EXCHANGE_CHANGES_MOST][LIMIT_TEXT_BYTES];
    Bourse__V1__ExplainChange changes[EXCHANGE_CHANGES_MOST];
    Bourse__V1__ExplainChange *pointers[EXCHANGE_CHANGES_MOST];
    Bourse__V1__Requirement *needs; /* NULL: unchanged */
};
/* Makes the wire form. Returns false when memory is short. smallest_change_wire_fini frees the
 * memory after either result. */
bool smallest_change_to_wire(const struct exchange_smallest_change *smallest_change,
                             struct smallest_change_wire *wire,
                             Bourse__V1__Explanation *explanation);
void smallest_change_wire_fini(struct smallest_change_wire *wire);

#endif
