/* The blob store keeps blobs on disk, content-addressed, owned and within quotas.
 *
 * docs/operator.md lists the files.
 *
 *   blobs/blobs.db        blob(hash, size, bytes NULL when it is a file), owner(account, hash),
 *                         usage(account, bytes)
 *                         pending(provider, job, hash, account, size): broker/blob/blob_pending.h
 *                         lost(hash, looks): broker/blob/blob_damage.h
 *                         condemned(account, hash, since_s), forgotten(job, account, ...):
 *                         broker/blob/blob_forget.h
 *                         copy, copy_meta: broker/copies/copy_log.h
 *   blobs/ab/abcd...      blobs over BLOB_ROW_BYTES, named by their hash
 *   blobs/partial/        uploads in progress; emptied at start, because nothing was promised
 *
 * A blob counts once for each account that stored it, and only these accounts own it: a known hash
 * gives no right to the bytes. Puts between begin and commit become durable together, with the
 * commit. One thread uses the store. */
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
    /* The rows of small blobs lie all over the database: 200 pages take a disk some 8 ms, in which
     * others wait for the same disk, and 1,000 pages take 35 ms. */
    BLOB_STORE_CHECKPOINT_PAGES = 200,
};

enum blob_status {
    BLOB_OK,
    BLOB_NOT_FOUND,
    BLOB_MALFORMED,  /* a chunk beyond its blob's size or without bytes, or an impossible size */
    BLOB_WRONG_HASH, /* the upload is dropped */
    BLOB_TOO_LARGE,
    BLOB_OVER_QUOTA,
    BLOB_OVER_LEASE,   /* more than the subtasks of a provider's leases declare */
    BLOB_WRONG_OFFSET, /* continue from *ret_stored */
    BLOB_TOO_MANY,     /* too many uploads, or open files of this process: later */
    BLOB_DISK_FULL,
    /* The file is missing or too short, or has other bytes, until the blob is sent again. */
    BLOB_LOST,
    /* The blob was lost, and another file is there: hash it, then call blob_store_checked. */
    BLOB_UNCHECKED,
    BLOB_FAILED, /* I/O error: the caller stops */
};

struct blob_store;
struct copy_log;

/* The account that stands for no owner: bytes that another broker sends are stored as they are. */
#define BLOB_NOBODY UINT32_MAX

struct blob_store_config {
    const char *folder;
    int64_t quota_bytes; /* per account */
    int64_t size_bytes;  /* of one blob */
    /* SQLite copies the log of blobs.db into the database once the log has this number of pages. 0
     * stands for BLOB_STORE_CHECKPOINT_PAGES. */
    int checkpoint_pages;
};

bool blob_store_open(const struct blob_store_config *config, struct blob_store **ret_store,
                     struct problem *ret_problem);
void blob_store_close(struct blob_store **self);
/* Returns true when no blob is stored. Returns false, too, when the database cannot be read. */
bool blob_store_is_empty(struct blob_store *store);

enum blob_status blob_store_begin(struct blob_store *store);
/* Commits everything since begin. On DISK_FULL all of it is undone. */
enum blob_status blob_store_commit(struct blob_store *store);

/* Undoes everything since begin. */
void blob_store_undo(struct blob_store *store);

/* A provider stores blobs for the holder. The two caps bound what no result has named yet. */
struct blob_lease {
    struct blob_holder holder;
    uint64_t bytes_most, count_most;
};

struct blob_chunk {
    uint32_t account; /* the future owner */
    /* The lease for which a provider stores the blob, which no account owns until a result names
     * it. NULL: the account stores for itself. */
    const struct blob_lease *lease;
    struct hash32 hash;
    uint64_t size; /* size of the whole blob */
    uint64_t offset;
    const uint8_t *data;
    size_t length;
};
/* Stores a chunk; the chunks of a blob come in order. After OK, the store has *ret_stored bytes,
 * and *ret_complete says whether they are the whole blob. A blob that need not be sent is complete
 * at once (blob_store_has). */
enum blob_status blob_store_put(struct blob_store *store, const struct blob_chunk *chunk,
                                int64_t now_ns, uint64_t *ret_stored, bool *ret_complete);

/* Begins a blob that another thread writes to *ret_fd, until blob_store_take_back(*ret_upload). The
 * store owns *ret_fd. Quota and bounds are those of blob_store_put. TOO_MANY also means that
 * another upload of the account has begun the blob. The store takes no chunk of the blob before the
 * upload is taken back. */
enum blob_status blob_store_lend(struct blob_store *store, uint32_t account,
                                 const struct blob_lease *lease, const struct hash32 *hash,
                                 uint64_t size, size_t *ret_upload, int *ret_fd);
/* Takes the upload back, between begin and commit; the file is no longer written. `is_whole` says
 * that all bytes are there and have the hash: then the blob is stored, like after a last chunk.
 * Otherwise the result is WRONG_HASH, and nothing is kept. */
enum blob_status blob_store_take_back(struct blob_store *store, size_t upload, bool is_whole);

/* Returns OK when the blob has a row, NOT_FOUND, or FAILED. */
enum blob_status blob_store_find(struct blob_store *store, const struct hash32 *hash);
/* Returns true when a file lies where the file of a blob of more than BLOB_ROW_BYTES would be;
 * *ret_size is its size in bytes. The file may be of other bytes. */
bool blob_store_has_file(const struct blob_store *store, const struct hash32 *hash,
                         uint64_t *ret_size);
/* Writes a row for the file of a blob that has none, and leaves the blob without an owner. The file
 * is hashed before it is trusted (BLOB_UNCHECKED). The call comes between begin and commit. */
enum blob_status blob_store_adopt(struct blob_store *store, const struct hash32 *hash,
                                  uint64_t size);
/* Makes the account an owner of a blob that has a row, whose size then counts against the quota.
 * The call comes between begin and commit. */
enum blob_status blob_store_give(struct blob_store *store, uint32_t account,
                                 const struct hash32 *hash);

/* Returns OK or NOT_FOUND, or FAILED when blobs.db cannot be read. A blob that the account has
 * forgotten (broker/blob/blob_forget.h) is no longer its own. */
enum blob_status blob_store_owns(struct blob_store *store, uint32_t account,
                                 const struct hash32 *hash);
/* Returns OK for a blob that providers with a lease of the account's jobs may read. The account
 * owns the blob, or has forgotten it a short while ago, or a provider has stored it for a job of
 * the account. */
enum blob_status blob_store_lends(struct blob_store *store, uint32_t account,
                                  const struct hash32 *hash);
/* Returns OK for a blob that need not be sent. The account owns it, or the provider of the lease
 * has stored it for the lease's job, and the blob is not lost. `lease` is NULL when the account
 * asks for itself. A blob whose file is missing or has another size becomes lost: the first call
 * then returns LOST, and later calls NOT_FOUND. */
enum blob_status blob_store_has(struct blob_store *store, uint32_t account,
                                const struct blob_lease *lease, const struct hash32 *hash);
/* Returns OK when the account owns the blob, or a provider has stored it for a job of the
 * account. */
enum blob_status blob_store_may_read(struct blob_store *store, uint32_t account,
                                     const struct hash32 *hash);
/* Gives a blob that a result names to the job's owner, whose quota it then counts against. The call
 * comes between begin and commit. */
enum blob_status blob_store_name(struct blob_store *store, const struct blob_holder *holder,
                                 const struct hash32 *hash);
/* Removes blobs that the provider stored for the job, at most `most` of them. The call comes
 * between begin and commit, and no other call comes between them. */
enum blob_status blob_store_drop(struct blob_store *store, const struct blob_holder *holder,
                                 size_t most);
/* Removes files that a crash has left without a row, a part of them with each call until the sweep
 * ends (broker/blob/blob_leftovers.h). The call never comes between begin and commit. */
enum blob_sweep blob_store_sweep(struct blob_store *store, size_t *ret_removed);
/* A holding is what one holder has stored and no result has named; `index` counts from 0. */
size_t blob_store_holdings(const struct blob_store *store);
struct blob_holding blob_store_holding(const struct blob_store *store, size_t index);
/* Notes the result of hashing the blob's file; `is_whole` says that the file has the hash. Returns
 * OK when the blob is no longer lost, otherwise LOST or FAILED. */
enum blob_status blob_store_checked(struct blob_store *store, const struct hash32 *hash,
                                    bool is_whole);
/* Reads at most `length` bytes from `offset`; fewer at the end. A blob that is read from its first
 * byte to its last is hashed. When the hash is another, the call for the last bytes returns LOST,
 * and so does every later call. */
enum blob_status blob_store_get(struct blob_store *store, const struct hash32 *hash,
                                uint64_t offset, size_t length, uint8_t *ret_data,
                                size_t *ret_length, uint64_t *ret_size);
/* Opens the file of a blob of more than BLOB_ROW_BYTES for reading; the caller closes it. OK and
 * UNCHECKED come with the open file.
 *
 * *ret_is_hashed says that this store wrote and hashed the file, as one of the last
 * BLOB_HASHED_MAX, and that the file still looks the same (runtime/stamp.h). */
enum blob_status blob_store_file(struct blob_store *store, const struct hash32 *hash, int *ret_fd,
                                 bool *ret_is_hashed);
/* Returns OK with the bytes of the account's blobs, or FAILED. */
enum blob_status blob_store_usage(struct blob_store *store, uint32_t account, int64_t *ret_bytes);
/* Drops uploads that have been idle for BLOB_PARTIAL_IDLE_S. */
void blob_store_expire(struct blob_store *store, int64_t now_ns);
/* These two come between begin and commit. They add and remove one blob that a provider has stored
 * for a job, whatever the caps of its lease. A repeated call changes nothing. */
enum blob_status blob_store_hold(struct blob_store *store, const struct blob_holder *holder,
                                 uint32_t account, const struct hash32 *hash, uint64_t size);
enum blob_status blob_store_release(struct blob_store *store, const struct blob_holder *holder,
                                    const struct hash32 *hash);
/* Returns the log of changes for other brokers (broker/copies/copy_log.h), which the store owns. */
struct copy_log *blob_store_copies(struct blob_store *store);
const char *blob_store_error(const struct blob_store *store);

#endif
