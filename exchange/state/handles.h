/* An order has a handle, by which the book of matching/ names the order. */
#ifndef BOURSE_EXCHANGE_STATE_HANDLES_H
#define BOURSE_EXCHANGE_STATE_HANDLES_H

#include "exchange/state/records.h"

/* Returns true when the order is the bid of a job that waits to be filled all at once. */
bool handle_waits_for_all(const struct exchange *exchange, uint32_t handle);
uint32_t handle_take(struct exchange *exchange, void *order); /* BOOK_NONE: none left */
void handle_give(struct exchange *exchange, uint32_t handle);

#endif
