#include "broker/gateway/directory.h"

#include "protocol/identity.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FREE_SLOT = 0, FIRST_CAPACITY = 64 };

/* Open addressing over one key of the accounts: a slot holds position + 1. Keys are points on a
 * curve, as good as random. But a peer may choose among many keys, so the hash takes eight bytes
 * from the middle. */
struct index {
    uint32_t *slots;
    uint32_t mask;
};

struct directory {
    struct directory_account *accounts; /* by number */
    bool *is_known;
    uint32_t count, capacity;
    struct index by_key, by_transport;
};

struct directory *directory_create(void)
{
    return calloc(1, sizeof(struct directory));
}

void directory_destroy(struct directory **self)
{
    struct directory *directory = *self;
    if (directory != NULL) {
        for (uint32_t number = 0; number < directory->count; number++) {
            if (directory->is_known[number]) {
                free((void *)(uintptr_t)directory->accounts[number].frozen_why);
            }
        }
        free(directory->accounts);
        free(directory->is_known);
        free(directory->by_key.slots);
        free(directory->by_transport.slots);
        free(directory);
        *self = NULL;
    }
}

static uint32_t start_of(const struct index *index, const struct key32 *key)
{
    uint64_t bits;
    memcpy(&bits, key->bytes + 12, sizeof bits);
    return (uint32_t)((bits * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & index->mask;
}

static void index_add(struct index *index, const struct key32 *key, uint32_t number)
{
    uint32_t at = start_of(index, key);
    while (index->slots[at] != FREE_SLOT) {
        at = (at + 1) & index->mask;
    }
    index->slots[at] = number + 1;
}

/* Makes room for `count` numbers; the indices stay at most half full. */
static bool grow(struct directory *directory, uint32_t count)
{
    uint32_t capacity = directory->capacity == 0 ? FIRST_CAPACITY : directory->capacity;
    while (capacity < count) {
        capacity *= 2;
    }
    if (capacity == directory->capacity) {
        return true;
    }
    struct directory_account *accounts = realloc(directory->accounts, capacity * sizeof *accounts);
    if (accounts == NULL) {
        return false;
    }
    directory->accounts = accounts;
    bool *is_known = realloc(directory->is_known, capacity * sizeof *is_known);
    if (is_known == NULL) {
        return false;
    }
    directory->is_known = is_known;
    uint32_t *keys = calloc((size_t)capacity * 2, sizeof *keys);
    uint32_t *transports = calloc((size_t)capacity * 2, sizeof *transports);
    if (keys == NULL || transports == NULL) {
        free(keys);
        free(transports);
        return false;
    }
    free(directory->by_key.slots);
    free(directory->by_transport.slots);
    directory->by_key = (struct index){.slots = keys, .mask = capacity * 2 - 1};
    directory->by_transport = (struct index){.slots = transports, .mask = capacity * 2 - 1};
    for (uint32_t number = 0; number < directory->count; number++) {
        if (directory->is_known[number]) {
            index_add(&directory->by_key, &accounts[number].key, number);
            index_add(&directory->by_transport, &accounts[number].transport, number);
        }
    }
    directory->capacity = capacity;
    return true;
}

bool directory_put(struct directory *directory, const struct directory_account *account)
{
    uint32_t number = account->number;
    assert(number < UINT32_MAX / 4);
    char *reason = account->frozen_why == NULL ? NULL : strdup(account->frozen_why);
    if ((account->frozen_why != NULL && reason == NULL) || !grow(directory, number + 1)) {
        free(reason);
        return false;
    }
    for (uint32_t skipped = directory->count; skipped <= number; skipped++) {
        directory->is_known[skipped] = false;
    }
    if (number >= directory->count) {
        directory->count = number + 1;
    }
    if (!directory->is_known[number]) {
        index_add(&directory->by_key, &account->key, number);
        index_add(&directory->by_transport, &account->transport, number);
    } else {
        free((void *)(uintptr_t)directory->accounts[number].frozen_why);
    }
    directory->accounts[number] = *account;
    directory->accounts[number].frozen_why = reason;
    directory->is_known[number] = true;
    return true;
}

const struct directory_account *directory_number(const struct directory *directory, uint32_t number)
{
    bool known = number < directory->count && directory->is_known[number];
    return known ? &directory->accounts[number] : NULL;
}

const struct directory_account *directory_key(const struct directory *directory,
                                              const struct key32 *key)
{
    if (directory->capacity == 0) {
        return NULL;
    }
    const struct index *index = &directory->by_key;
    for (uint32_t at = start_of(index, key); index->slots[at] != FREE_SLOT;
         at = (at + 1) & index->mask) {
        const struct directory_account *account = &directory->accounts[index->slots[at] - 1];
        if (key32_equal(&account->key, key)) {
            return account;
        }
    }
    return NULL;
}

const struct directory_account *directory_transport(const struct directory *directory,
                                                    const struct key32 *transport)
{
    static const struct key32 nobody;
    if (directory->capacity == 0 || key32_equal(transport, &nobody)) {
        return NULL;
    }
    const struct index *index = &directory->by_transport;
    for (uint32_t at = start_of(index, transport); index->slots[at] != FREE_SLOT;
         at = (at + 1) & index->mask) {
        const struct directory_account *account = &directory->accounts[index->slots[at] - 1];
        if (key32_equal(&account->transport, transport)) {
            return account;
        }
    }
    return NULL;
}

uint32_t directory_count(const struct directory *directory)
{
    return directory->count;
}

struct directory *directory_of(const struct exchange *exchange)
{
    struct directory *directory = directory_create();
    for (uint32_t number = 0; directory != NULL && number < exchange_account_count(exchange);
         number++) {
        struct exchange_account_row row;
        if (!exchange_account(exchange, number, &row)) {
            continue;
        }
        struct directory_account account = {.number = row.number,
                                            .key = row.key,
                                            .roles = row.roles,
                                            .frozen = row.frozen,
                                            .frozen_why = row.frozen_why};
        memcpy(account.name, row.name, sizeof account.name);
        /* The system's accounts get zeros. */
        (void)identity_transport_of(&row.key, &account.transport);
        if (!directory_put(directory, &account)) {
            directory_destroy(&directory);
        }
    }
    return directory;
}
