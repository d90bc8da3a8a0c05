/* An invitation lets one new account join, until the invitation expires. */
#ifndef BOURSE_EXCHANGE_ACCOUNT_INVITATIONS_H
#define BOURSE_EXCHANGE_ACCOUNT_INVITATIONS_H

#include "exchange/state/records.h"

void invitation_drop(struct exchange *exchange, struct invitation *invitation);
void invitations_expire(struct exchange *exchange);
void invitation_link(struct exchange *exchange, struct invitation *invitation);

#endif
