/* An instrument is the name by which the devices of a cell are traded. */
#ifndef BOURSE_EXCHANGE_STATE_INSTRUMENTS_H
#define BOURSE_EXCHANGE_STATE_INSTRUMENTS_H

#include "exchange/state/records.h"

/* Gives the instrument of the cell's devices; "" when they name none. */
void instrument_of_cell(const struct exchange *exchange, uint32_t cell,
                        char ret_text[ATTRIBUTE_TEXT_SIZE]);

#endif
