/* broker/answer/smallest_change.h - the smallest change that has a bid filled, in words and on the wire. */
#ifndef BOURSE_BROKER_ANSWER_SMALLEST_CHANGE_H
#define BOURSE_BROKER_ANSWER_SMALLEST_CHANGE_H

#include "exchange/view/smallest_change.h"
#include "protocol/codec.h"
#include "protocol/limits.h"

#include <stdbool.h>
#include <stddef.h>

/* The end of a sentence: "at 1.90 instead of 1.60 it fills now". "" where there is no smallest change. */
void smallest_change_text(const struct exchange_smallest_change *smallest_change, char *ret_text,
                          size_t capacity);

struct smallest_change_wire { /* what an Explanation points to */
    char texts[EXCHANGE_CHANGES_MOST][LIMIT_TEXT_BYTES];
    Bourse__V1__ExplainChange changes[EXCHANGE_CHANGES_MOST];
    Bourse__V1__ExplainChange *pointers[EXCHANGE_CHANGES_MOST];
    Bourse__V1__Requirement *needs; /* NULL: as they were */
};
/* False: out of memory. Whatever it says, smallest_change_wire_fini frees what it took. */
bool smallest_change_to_wire(const struct exchange_smallest_change *smallest_change,
                             struct smallest_change_wire *wire,
                             Bourse__V1__Explanation *explanation);
void smallest_change_wire_fini(struct smallest_change_wire *wire);

#endif
