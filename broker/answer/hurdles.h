/* broker/answer/hurdles.h writes why no ask takes a bid whose needs the asks' devices meet. The
 * price is too high, leases go on, or the bid itself would be refused. */
#ifndef BOURSE_BROKER_ANSWER_HURDLES_H
#define BOURSE_BROKER_ANSWER_HURDLES_H

#include "exchange/exchange.h"
#include "formats/value.h"

#include <stddef.h>
#include <stdint.h>

/* Writes a limit: 1.90, or 0.002 per bf16 TFLOP-hour. */
void hurdle_limit_text(const struct exchange_explanation *row, int64_t limit_micro,
                       char ret_text[VALUE_TEXT_SIZE]);
/* Writes why no fitting ask takes the bid; "" when one does, or when none fits. */
void hurdle_text(const struct exchange_explanation *row, char *ret_text, size_t capacity);

#endif
