/* broker/gateway/directory.h - who is who: accounts by number, by identity (Ed25519), by connection
 * (X25519).
 *
 * Every thread that needs names keeps a directory of its own, filled at start from the exchange and
 * fed by the released account effects: nothing is shared. Not the authority: that is the exchange.
 */
#ifndef BOURSE_BROKER_GATEWAY_DIRECTORY_H
#define BOURSE_BROKER_GATEWAY_DIRECTORY_H

#include "base/id.h"
#include "exchange/exchange.h"

#include <stdbool.h>
#include <stdint.h>

enum { DIRECTORY_NAME_SIZE = 64 };

struct directory_account {
    uint32_t number;
    struct key32 key;       /* Ed25519 */
    struct key32 transport; /* X25519; zeros for the system's accounts, which nobody connects as */
    uint32_t roles;
    bool frozen;
    char name[DIRECTORY_NAME_SIZE];
};

struct directory;

struct directory *directory_create(void); /* NULL when out of memory */
/* One of all accounts that the exchange has now; NULL when out of memory. */
struct directory *directory_of(const struct exchange *exchange);
void directory_destroy(struct directory **self);

/* Adds or replaces by number; key and transport of a number never change. False when out of
 * memory. */
bool directory_put(struct directory *directory, const struct directory_account *account);
/* Borrowed until the next put; NULL when unknown. */
const struct directory_account *directory_number(const struct directory *directory,
                                                 uint32_t number);
const struct directory_account *directory_key(const struct directory *directory,
                                              const struct key32 *key);
const struct directory_account *directory_transport(const struct directory *directory,
                                                    const struct key32 *transport);
uint32_t directory_count(const struct directory *directory); /* numbers below it may be known */

#endif
