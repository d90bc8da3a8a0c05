/* A pending blob was stored by a provider for a job, and no result names it yet.
 *
 * Pending blobs have no owner and count against no quota. They are removed when the provider's
 * leases of the job are over. A result that names one gives it to the job's owner. The table
 * `pending` of blobs.db keeps them across restarts. Memory has the sums for each provider and job.
 * One thread uses this. */
#ifndef BOURSE_BROKER_BLOB_BLOB_PENDING_H
#define BOURSE_BROKER_BLOB_BLOB_PENDING_H

#include "base/id.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOB_PENDING_SCHEMA                                                                        \
    "CREATE TABLE IF NOT EXISTS pending (provider INTEGER NOT NULL, job BLOB NOT NULL, "           \
    "hash BLOB NOT NULL, account INTEGER NOT NULL, size INTEGER NOT NULL, "                        \
    "PRIMARY KEY (provider, job, hash)) STRICT, WITHOUT ROWID;"                                    \
    "CREATE INDEX IF NOT EXISTS pending_hash ON pending (hash, account);"

/* A holder is a provider that stores, and the job that it stores for. */
struct blob_holder {
    uint32_t provider;
    struct id128 job;
};
/* The blobs that a holder has stored and no result names. */
struct blob_holding {
    struct blob_holder holder;
    uint32_t account; /* the job's owner */
    uint64_t count, bytes;
};

enum pending_status { PENDING_OK, PENDING_NONE, PENDING_FAILED };

struct blob_pending;

/* Creates the table's reader; the caller keeps `database` open. Returns NULL when memory is short
 * or blobs.db cannot be read. */
struct blob_pending *blob_pending_create(sqlite3 *database);
void blob_pending_destroy(struct blob_pending **self);
/* Makes the sums again after a transaction was undone. */
enum pending_status blob_pending_reload(struct blob_pending *pending);

/* Returns PENDING_OK when the holder has stored the blob. */
enum pending_status blob_pending_has(struct blob_pending *pending, const struct blob_holder *holder,
                                     const struct hash32 *hash);
/* Returns PENDING_OK when a provider has stored the blob for a job of the account, or of any
 * account for UINT32_MAX. */
enum pending_status blob_pending_for(struct blob_pending *pending, uint32_t account,
                                     const struct hash32 *hash);
/* Returns the holder's sums, zeros when it has stored nothing. */
struct blob_holding blob_pending_of(const struct blob_pending *pending,
                                    const struct blob_holder *holder);
/* These two walk all holders that have stored something, in no order. */
size_t blob_pending_count(const struct blob_pending *pending);
struct blob_holding blob_pending_at(const struct blob_pending *pending, size_t index);

/* Adds a blob, between begin and commit of the store. */
enum pending_status blob_pending_add(struct blob_pending *pending, const struct blob_holder *holder,
                                     uint32_t account, const struct hash32 *hash, uint64_t size);
/* Removes a blob and returns its account and size. PENDING_NONE: it was not there. */
enum pending_status blob_pending_take(struct blob_pending *pending,
                                      const struct blob_holder *holder, const struct hash32 *hash,
                                      uint32_t *ret_account, uint64_t *ret_size);
/* Returns any one of the holder's blobs. */
enum pending_status blob_pending_any(struct blob_pending *pending, const struct blob_holder *holder,
                                     struct hash32 *ret_hash);

#endif
