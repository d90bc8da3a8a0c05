/* Reasons are the operator's words on a freeze or a halt. They are kept until the freeze or the
 * halt ends. */
#ifndef BOURSE_EXCHANGE_STATE_REASONS_H
#define BOURSE_EXCHANGE_STATE_REASONS_H

#include "exchange/state/records.h"

/* Replaces a reason. NULL and "" leave none. A text of EXCHANGE_REASON_SIZE bytes or more is cut
 * between two characters. */
void reason_set(struct exchange *exchange, char **reason, const char *text);

#endif
