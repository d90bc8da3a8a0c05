/* broker/blob/blob_store.h - blobs on disk: content-addressed, owned, within quotas.
 * docs/operator.md lists the files.
 *
 *   blobs/blobs.db        blob(hash, size, bytes NULL when it is a file), owner(account, hash), usage(account, bytes)
*                         pending(provider, job, hash, account, size): broker/blob/blob_pending.h
 *                        lost(hash, looks): broker/blob/blob_damage.h
 *   blobs/ab/abcd...      blobs over BLOB_ROW_BYTES, named by their hash
 *   blobs/partial/        uploads in progress; emptied at start, because nobody was promised them
 *
 * A blob counts once per account that stored it, and only those accounts own it: knowing a hash is
 * not having the bytes. Puts between begin and commit are durable together, after the commit. One
 * thread. */
#ifndef BOURSE_BROKER_BLOB_BLOB_STORE_H
#define BOURSE_BROKER_BLOB_BLOB_STORE_H

#include "base/id.h"
#include "base/problem.h"
#include "broker/blob/blob_leftovers.h"
#include "broker/blob/blob_pending.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BLOB_ROW_BYTES = 64 << 10,
    BLOB_PARTIALS_MAX = 1024,
    BLOB_PARTIALS_PER_ACCOUNT = 64,
    BLOB_PARTIAL_IDLE_S = 600,
    BLOB_HASHED_MAX = 256,
};

enum blob_status {
    BLOB_OK,
    BLOB_NOT_FOUND,
    BLOB_MALFORMED,  /* bytes past the size said before */
    BLOB_WRONG_HASH, /* the upload is dropped */
    BLOB_TOO_LARGE,
    BLOB_OVER_QUOTA,
    BLOB_OVER_LEASE,   /* more than the subtasks of a provider's leases declare */
    BLOB_WRONG_OFFSET, /* continue from *ret_stored */
    BLOB_TOO_MANY,     /* uploads in progress, or files open in this process: later */
    BLOB_DISK_FULL,
    BLOB_LOST,      /* its file is gone or too short, or has other bytes: until it is sent again */
    BLOB_UNCHECKED, /* it was lost, and another file lies there: hash it, and say blob_store_checked
                     */
    BLOB_FAILED,    /* I/O: stop */
};

struct blob_store;

struct blob_store_config {
    const char *folder;
    int64_t quota_bytes; /* per account */
    int64_t size_bytes;  /* of one blob */
};

bool blob_store_open(const struct blob_store_config *config, struct blob_store **ret_store,
                     struct problem *ret_problem);
void blob_store_close(struct blob_store **self);
/* Whether not one blob is stored; false, too, where the database cannot say. */
bool blob_store_is_empty(struct blob_store *store);

enum blob_status blob_store_begin(struct blob_store *store);
/* On DISK_FULL everything since begin is undone. */
enum blob_status blob_store_commit(struct blob_store *store);
/* Copies the log of blobs.db into it when it has so many pages (WAL_CHECKPOINT_PAGES unless
 * said). */
void blob_store_checkpoint_every(struct blob_store *store, int pages);

/* On whose behalf a provider stores, and how much at most until results name it. */
struct blob_lease {
    struct blob_holder holder;
    uint64_t bytes_most, count_most;
};

struct blob_chunk {
    uint32_t account;               /* the future owner */
    const struct blob_lease *lease; /* NULL: the account's own; else nobody's until it is named */
    struct hash32 hash;
    uint64_t size; /* of the whole blob */
    uint64_t offset;
    const uint8_t *data;
    size_t length;
};
/* Stores a chunk; uploads are sequential. OK: *ret_stored bytes are here, all of them when
 * *ret_complete. A blob that the account owns already is complete at once. */
enum blob_status blob_store_put(struct blob_store *store, const struct blob_chunk *chunk,
                                int64_t now_ns, uint64_t *ret_stored, bool *ret_complete);

/* A blob that another thread writes: to *ret_fd, which stays the store's, until
 * blob_store_take_back(*ret_upload). As put has it, within quota and bounds; TOO_MANY also while an
 * upload of the account's has begun it. Until then no chunk of it is taken. */
enum blob_status blob_store_lend(struct blob_store *store, uint32_t account,
                                 const struct blob_lease *lease, const struct hash32 *hash,
                                 uint64_t size, size_t *ret_upload, int *ret_fd);
/* Between begin and commit. The file is no longer written, and `is_whole` says that it has all
 * bytes, and they the hash: then the blob is stored like after a last chunk. Else WRONG_HASH, and
 * nothing is kept. */
enum blob_status blob_store_take_back(struct blob_store *store, size_t upload, bool is_whole);

/* OK, NOT_FOUND, or FAILED where blobs.db cannot be read: nobody knows then. */
enum blob_status blob_store_owns(struct blob_store *store, uint32_t account,
                                 const struct hash32 *hash);
/* The same of what need not be sent: what the account owns, or the provider has stored for the
 * lease's job (NULL: none), but for what is lost. A file that is gone or has another size is lost
 * from now on: LOST the first time, and NOT_FOUND later. */
enum blob_status blob_store_has(struct blob_store *store, uint32_t account,
                                const struct blob_lease *lease, const struct hash32 *hash);
/* OK: it is the account's, or somebody has stored it for a job of the account's. */
enum blob_status blob_store_may_read(struct blob_store *store, uint32_t account,
                                     const struct hash32 *hash);
/* Between begin and commit. A result names it: it is the job's owner's now, and counts. */
enum blob_status blob_store_name(struct blob_store *store, const struct blob_holder *holder,
                                 const struct hash32 *hash);
/* Between begin and commit, with nothing else between them. What the provider stored for the job
 * goes, `most` of it at a time. */
enum blob_status blob_store_drop(struct blob_store *store, const struct blob_holder *holder,
                                 size_t most);
/* Outside of begin and commit. Removes files that a crash has left without a row, a part of them
 * with each call until it has ended: broker/blob/blob_leftovers.h. */
enum blob_sweep blob_store_sweep(struct blob_store *store, size_t *ret_removed);
/* Who has stored what no result names. */
size_t blob_store_holdings(const struct blob_store *store);
struct blob_holding blob_store_holding(const struct blob_store *store, size_t index);
/* Somebody has hashed its file: `is_whole` says whether it has the hash. OK: it is lost no more;
 * LOST; FAILED. */
enum blob_status blob_store_checked(struct blob_store *store, const struct hash32 *hash,
                                    bool is_whole);
/* At most `length` bytes from `offset`; fewer at the end. A blob that is
 * read from its first byte to its last is hashed: LOST instead of the last bytes when it does not
 * have its hash, and from then on. */
enum blob_status blob_store_get(struct blob_store *store, const struct hash32 *hash,
                                uint64_t offset, size_t length, uint8_t *ret_data,
                                size_t *ret_length, uint64_t *ret_size);
/* A blob of more than BLOB_ROW_BYTES, opened anew to be read; the caller closes it. *ret_is_hashed:
 * it is one of the BLOB_HASHED_MAX files that this store wrote and hashed last, and looks as it did
 * then (runtime/stamp.h). LOST: it has no
 * file. UNCHECKED comes with the file. */
enum blob_status blob_store_file(struct blob_store *store, const struct hash32 *hash, int *ret_fd,
                                 bool *ret_is_hashed);
/* OK with the bytes that the account's blobs have, or FAILED. */
enum blob_status blob_store_usage(struct blob_store *store, uint32_t account, int64_t *ret_bytes);
/* Drops uploads that have been idle for BLOB_PARTIAL_IDLE_S. */
void blob_store_expire(struct blob_store *store, int64_t now_ns);
const char *blob_store_error(const struct blob_store *store);

#endif
