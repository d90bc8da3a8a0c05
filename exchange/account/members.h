/* A member is an account of the market, opened by genesis or by an invitation. */
#ifndef BOURSE_EXCHANGE_ACCOUNT_MEMBERS_H
#define BOURSE_EXCHANGE_ACCOUNT_MEMBERS_H

#include "exchange/state/records.h"

/* Adds a member, who is in no table yet. NULL: memory is short. */
struct member *member_add(struct exchange *exchange, const struct key32 *key, uint32_t roles,
                          const char *name);
bool member_link_name(struct exchange *exchange, struct member *member); /* false: no memory */
/* Tells the outside that the account was opened or changed. */
void account_effect(struct exchange *exchange, const struct member *member);
/* Opens an account, with its record in the ledger. NULL: memory is short. */
struct member *account_open(struct exchange *exchange, const struct key32 *key, uint32_t roles,
                            const char *name);
/* Issues credits to an account; no other call creates credits. */
bool account_mint(struct exchange *exchange, struct member *member, int64_t amount_micro);
/* Returns true when an account has this key or its twin. An Ed25519 key and its twin of the other
 * sign differ in the top bit of the last byte. Both become the same X25519 key (RFC 7748 section
 * 4.1 keeps only y). Two such accounts could not be told apart by their connections. */
bool account_is_taken(const struct exchange *exchange, const struct key32 *key);
/* Records in the ledger what the operator did to the account or the market. */
void account_flag(struct exchange *exchange, uint32_t account, const struct key32 *key,
                  const char *what);

#endif
