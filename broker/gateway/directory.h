/* The directory knows accounts by number, by identity (Ed25519) and by connection key (X25519).
 *
 * Every thread that needs names has its own directory and shares nothing. The exchange fills the
 * directory at start, and released account effects update it. The exchange is the authority. */
#ifndef BOURSE_BROKER_GATEWAY_DIRECTORY_H
#define BOURSE_BROKER_GATEWAY_DIRECTORY_H

#include "base/id.h"
#include "exchange/exchange.h"

#include <stdbool.h>
#include <stdint.h>

enum { DIRECTORY_NAME_SIZE = 64 };

struct directory_account {
    uint32_t number;
    struct key32 key; /* Ed25519 */
    /* X25519; zeros for the system's accounts, which have no connections. */
    struct key32 transport;
    uint32_t roles;
    bool frozen;
    const char *frozen_why; /* the operator's reason; NULL: none was given */
    char name[DIRECTORY_NAME_SIZE];
};

struct directory;

/* Returns NULL when memory is short. */
struct directory *directory_create(void);
/* Returns a directory of all present accounts of the exchange, or NULL when memory is short. */
struct directory *directory_of(const struct exchange *exchange);
void directory_destroy(struct directory **self);

/* Adds or replaces an account by number; key and transport of a number never change. The directory
 * has its own copy of the reason. Returns false when memory is short. */
bool directory_put(struct directory *directory, const struct directory_account *account);
/* These functions return an account that stays valid until the next put, or NULL when it is
 * unknown. */
const struct directory_account *directory_number(const struct directory *directory,
                                                 uint32_t number);
const struct directory_account *directory_key(const struct directory *directory,
                                              const struct key32 *key);
const struct directory_account *directory_transport(const struct directory *directory,
                                                    const struct key32 *transport);
/* Returns a bound: every known number is below it. */
uint32_t directory_count(const struct directory *directory);

#endif
