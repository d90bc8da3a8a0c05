/* broker/storage/market_key.h opens the keys of a market: files of its folder, or credentials that
 * the supervisor hands to the service (runtime/keyfile.h).
 *
 * The folder of a market whose key is a credential has the public key instead: `log.public` stands
 * for `log.key`. It is 64 hex digits and a newline. By it the audit knows that the key is not
 * lost. */
#ifndef BOURSE_BROKER_STORAGE_MARKET_KEY_H
#define BOURSE_BROKER_STORAGE_MARKET_KEY_H

#include "base/problem.h"
#include "protocol/identity.h"

#include <stdbool.h>

/* Returns true when the key is a credential of the service, even if it cannot be read. */
bool market_key_is_credential(const char *name);
/* Opens the key `name` of the market in `folder`. A key is made only where `may_make` says so and
 * there is none: a new key beside a ledger would belong to another broker. The broker cannot note in
 * a credential that the key of a log has signed. So such a credential founds no market, and must
 * have that note.
 *
 * Returns false with a problem, also when the key is both a file and a credential. */
bool market_key_open(const char *folder, const char *name, bool may_make,
                     struct identity **ret_key, unsigned *ret_notes, struct problem *ret_problem);
/* Returns true when the folder of a market says that this key was a credential at the newest
 * start. */
bool market_key_is_elsewhere(const char *folder, const char *name);
/* Makes the folder tell where the key `name` is. `key` is the public key by which the market knows
 * it. The file of the public key is written for a credential, and removed for a key file. The
 * caller has checked that the key is the market's. */
bool market_key_tell(const char *folder, const char *name, const struct key32 *key,
                     struct problem *ret_problem);

#endif
