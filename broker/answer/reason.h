/* A reason is what the operator gave with a freeze or a halt. */
#ifndef BOURSE_BROKER_ANSWER_REASON_H
#define BOURSE_BROKER_ANSWER_REASON_H

#include "exchange/exchange.h"

/* A byte that is not printable is shown as four characters. */
enum { REASON_TEXT_SIZE = 4 * EXCHANGE_REASON_SIZE + 16 };

/* Writes ` ("the disk is replaced")`, or nothing for NULL. */
void reason_text(const char *reason, char ret_text[REASON_TEXT_SIZE]);

#endif
