/* The table of ids holds the accepted and the refused ids of a time, so that commands are
 * idempotent. */
#ifndef BOURSE_EXCHANGE_STATE_IDS_H
#define BOURSE_EXCHANGE_STATE_IDS_H

#include "exchange/state/records.h"

/* Forgets the ids that are too old to be repeated. */
void ids_expire(struct exchange *exchange);
/* Remembers the id of the accepted command under the account. */
void ids_remember(struct exchange *exchange, uint32_t account);
/* Adds a refused id, already in the table and the age list, to its account's list. */
void ids_link_refusal(struct exchange *exchange, struct refused_id *refused);
/* Remembers the id of a refused command, so that no copy on another connection runs later. An
 * expired id is not remembered, because the command may come again with a new stamp. */
void ids_remember_refusal(struct exchange *exchange);
/* Returns true when the table keeps ids of this type. Results and statements are idempotent by
 * content, and frequent, so they stay out of the id table. */
bool ids_keep(enum exchange_command_type type);
/* Returns the entry of the command's id; NULL: the id is new. */
const struct id_entry *ids_find(struct exchange *exchange);
/* Returns true when the id may enter the table; else the command is refused. */
bool ids_let_in(struct exchange *exchange);

#endif
