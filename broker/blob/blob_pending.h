/* broker/blob/blob_pending.h - blobs that a provider stored for a job, and that no result names
 * yet.
 *
 * They are nobody's: they count against no quota, and go when the provider's leases of the job are
 * over. A result that names one makes it the job's owner's. The table `pending` of blobs.db keeps
 * them across restarts. What each provider has stored for each job is summed in memory. One thread.
 */
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

struct blob_holder { /* who stores, and for which job */
    uint32_t provider;
    struct id128 job;
};
struct blob_holding { /* what it has stored, and no result names */
    struct blob_holder holder;
    uint32_t account; /* the job's owner */
    uint64_t count, bytes;
};

enum pending_status { PENDING_OK, PENDING_NONE, PENDING_FAILED };

struct blob_pending;

/* NULL: out of memory, or blobs.db cannot be read. `database` is borrowed. */
struct blob_pending *blob_pending_create(sqlite3 *database);
void blob_pending_destroy(struct blob_pending **self);
/* Sums anew, after a transaction was undone. */
enum pending_status blob_pending_reload(struct blob_pending *pending);

/* PENDING_OK: it has stored that. */
enum pending_status blob_pending_has(struct blob_pending *pending, const struct blob_holder *holder,
                                     const struct hash32 *hash);
/* PENDING_OK: somebody has, for a job of the account; of any account for UINT32_MAX. */
enum pending_status blob_pending_for(struct blob_pending *pending, uint32_t account,
                                     const struct hash32 *hash);
/* Zeros where it has stored nothing. */
struct blob_holding blob_pending_of(const struct blob_pending *pending,
                                    const struct blob_holder *holder);
/* All that have stored something, in no order. */
size_t blob_pending_count(const struct blob_pending *pending);
struct blob_holding blob_pending_at(const struct blob_pending *pending, size_t index);

/* Between begin and commit of the store. */
enum pending_status blob_pending_add(struct blob_pending *pending, const struct blob_holder *holder,
                                     uint32_t account, const struct hash32 *hash, uint64_t size);
/* PENDING_NONE: it was not there. */
enum pending_status blob_pending_take(struct blob_pending *pending,
                                      const struct blob_holder *holder, const struct hash32 *hash,
                                      uint32_t *ret_account, uint64_t *ret_size);
/* One of its blobs, whichever. */
enum pending_status blob_pending_any(struct blob_pending *pending, const struct blob_holder *holder,
                                     struct hash32 *ret_hash);

#endif
