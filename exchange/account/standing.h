/* The standing of an account holds its owner, its refuted results and its overruled verdicts. */
#ifndef BOURSE_EXCHANGE_ACCOUNT_STANDING_H
#define BOURSE_EXCHANGE_ACCOUNT_STANDING_H

#include "exchange/state/records.h"

/* Returns the standing of the account, perhaps a new one. NULL: memory is short. */
struct standing *standing_of(struct exchange *exchange, uint32_t account);
/* Returns true when the operator grouped both accounts under one owner, or they are the same. */
bool standing_have_one_owner(const struct exchange *exchange, uint32_t a, uint32_t b);
/* Returns the group of that name; a new group takes the number of the command that makes it. */
uint64_t standing_group_named(const struct exchange *exchange, const char *name);
/* Returns false when the command may not group these accounts; the command is then refused, and
 * nothing has changed. */
bool standing_may_group(struct exchange *exchange, const struct exchange_owner *given);
/* Returns the time until which the account's asks are closed; 0: never closed. */
int64_t account_withdrawn_until_ns(const struct exchange *exchange, uint32_t account);
/* account_proved counts slot-time that checks accepted. account_overruled counts a verdict of the
 * account against a result that was accepted. */
void account_proved(struct exchange *exchange, uint32_t account, int64_t slot_ns);
void account_overruled(struct exchange *exchange, uint32_t account);

#endif
