/* broker/answer/remedy.h - the smallest change that has a bid filled, in words and on the wire. */
#ifndef BOURSE_BROKER_ANSWER_REMEDY_H
#define BOURSE_BROKER_ANSWER_REMEDY_H

#include "exchange/view/remedy.h"
#include "protocol/codec.h"
#include "protocol/limits.h"

#include <stdbool.h>
#include <stddef.h>

/* The end of a sentence: "at 1.90 instead of 1.60 it fills now". "" where there is no remedy. */
void remedy_text(const struct exchange_remedy *remedy, char *ret_text, size_t capacity);

struct remedy_wire { /* what an Explanation points to */
    char texts[EXCHANGE_CHANGES_MOST][LIMIT_TEXT_BYTES];
    Bourse__V1__ExplainChange changes[EXCHANGE_CHANGES_MOST];
    Bourse__V1__ExplainChange *pointers[EXCHANGE_CHANGES_MOST];
    Bourse__V1__Requirement *needs; /* NULL: as they were */
};
/* False: out of memory. Whatever it says, remedy_wire_fini frees what it took. */
bool remedy_to_wire(const struct exchange_remedy *remedy, struct remedy_wire *wire,
                    Bourse__V1__Explanation *explanation);
void remedy_wire_fini(struct remedy_wire *wire);

#endif
