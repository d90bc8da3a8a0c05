/* An invitation lets one new account join, until the invitation expires. */
#ifndef BOURSE_EXCHANGE_ACCOUNT_INVITATIONS_H
#define BOURSE_EXCHANGE_ACCOUNT_INVITATIONS_H

#include "exchange/state/records.h"

/* Ends the invitation and frees its memory. */
void invitation_drop(struct exchange *exchange, struct invitation *invitation);
/* Drops the invitations whose time is over. */
void invitations_expire(struct exchange *exchange);
/* Puts the invitation in its place in the list by expiry. */
void invitation_link(struct exchange *exchange, struct invitation *invitation);

#endif
