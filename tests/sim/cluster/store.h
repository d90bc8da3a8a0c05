/* tests/sim/cluster/store.h - what one member of etcd has: keys in order, each with its value, and
 * the execution of a request on them. A slow and obvious model, which fails the run when the bytes
 * of a request are none. Values are borrowed from the requests, which live as long as the run. */
#ifndef BOURSE_TESTS_SIM_CLUSTER_STORE_H
#define BOURSE_TESTS_SIM_CLUSTER_STORE_H

#include "broker/storage/etcd/proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STORE_KEY_SIZE = 80 };

struct store_key {
    char key[STORE_KEY_SIZE];
    const uint8_t *value;
    size_t length;
    uint64_t version;
};

struct store {
    struct store_key *keys; /* in order */
    size_t count, capacity;
    uint64_t revision;
};

/* Told of each put and each deleted key, after it was done. `value` is NULL for a deleted one. */
typedef void store_seen(void *context, const char *key, const uint8_t *value, size_t length,
                        bool was_there);

/* Executes a transaction. Writes the body of the answer, without its header. `seen` may be NULL. */
void store_transact(struct store *store, const uint8_t *request, size_t length,
                    struct proto_writer *out, store_seen *seen, void *context);
/* Returns true when the transaction puts or deletes something, on either branch. */
bool store_changes(const uint8_t *request, size_t length);
const struct store_key *store_find(const struct store *store, const char *key);
/* Forgets everything. */
void store_clear(struct store *store);

#endif
