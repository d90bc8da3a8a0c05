/* Names are text of a fixed size. */
#ifndef BOURSE_EXCHANGE_STATE_NAMES_H
#define BOURSE_EXCHANGE_STATE_NAMES_H

#include "exchange/state/records.h"

/* Copies at most EXCHANGE_NAME_SIZE - 1 bytes and fills the rest with zeros. */
void name_copy(char ret_name[EXCHANGE_NAME_SIZE], const char *name);

#endif
