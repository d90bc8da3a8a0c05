/* The blob store keeps blobs on disk, content-addressed, owned and within quotas.
 *
 * docs/operator.md lists the files.
 *
 *   blobs/blobs.db        blob(hash, size, bytes NULL when it is a file), owner(account, hash),
 *                         usage(account, bytes)
 *                         pending(provider, job, hash, account, size): broker/blob/blob_pending.h
 *                         lost(hash, looks): broker/blob/blob_damage.h
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
};

enum blob_status {
    BLOB_OK,
    BLOB_NOT_FOUND,
    BLOB_MALFORMED,  /* bytes beyond the size given before */
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

struct blob_store_config {
    const char *folder;
    int64_t quota_bytes; /* per account */
    int64_t size_bytes;  /* of one blob */
    /* The log of blobs.db is copied into the database from so many pages on; 0:
     * WAL_CHECKPOINT_PAGES. */
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

/* A provider stores for this holder, at most so much until results name it. */
struct blob_lease {
    struct blob_holder holder;
    uint64_t bytes_most, count_most;
};

struct blob_chunk {
    uint32_t account; /* the future owner */
    /* The lease for which a provider stores; then no account owns the blob until a result names it.
     * NULL: the account stores for itself. */
    const struct blob_lease *lease;
    struct hash32 hash;
    uint64_t size; /* size of the whole blob */
    uint64_t offset;
    const uint8_t *data;
    size_t length;
};
/* Stores a chunk; uploads are sequential. OK: *ret_stored bytes are here, all of them when
 * *ret_complete. A blob that the account owns already is complete at once. */
enum blob_status blob_store_put(struct blob_store *store, const struct blob_chunk *chunk,
                                int64_t now_ns, uint64_t *ret_stored, bool *ret_complete);

/* Begins a blob that another thread writes to *ret_fd, until blob_store_take_back(*ret_upload). The
 * store owns *ret_fd. Quota and bounds are those of put. TOO_MANY also means that an upload of the
 * account has begun the blob. No chunk of the blob is accepted until it is taken back. */
enum blob_status blob_store_lend(struct blob_store *store, uint32_t account,
                                 const struct blob_lease *lease, const struct hash32 *hash,
                                 uint64_t size, size_t *ret_upload, int *ret_fd);
/* Takes the upload back, between begin and commit; the file is no longer written. `is_whole` says
 * that all bytes are there and have the hash: then the blob is stored, like after a last chunk.
 * Otherwise the result is WRONG_HASH, and nothing is kept. */
enum blob_status blob_store_take_back(struct blob_store *store, size_t upload, bool is_whole);

/* Returns OK or NOT_FOUND, or FAILED when blobs.db cannot be read. */
enum blob_status blob_store_owns(struct blob_store *store, uint32_t account,
                                 const struct hash32 *hash);
/* Returns OK for a blob that need not be sent: the account owns it, or the provider has stored it
 * for the job of the lease (NULL: none), and it is not lost. A file that is missing or has another
 * size is lost from now on: LOST the first time, and NOT_FOUND later. */
enum blob_status blob_store_has(struct blob_store *store, uint32_t account,
                                const struct blob_lease *lease, const struct hash32 *hash);
/* Returns OK when the account owns the blob, or a provider has stored it for a job of the
 * account. */
enum blob_status blob_store_may_read(struct blob_store *store, uint32_t account,
                                     const struct hash32 *hash);
/* Gives a blob that a result names to the job's owner, whose quota it then counts against. Between
 * begin and commit. */
enum blob_status blob_store_name(struct blob_store *store, const struct blob_holder *holder,
                                 const struct hash32 *hash);
/* Removes blobs that the provider stored for the job, at most `most` of them. Between begin and
 * commit, with nothing else between them. */
enum blob_status blob_store_drop(struct blob_store *store, const struct blob_holder *holder,
                                 size_t most);
/* Removes files that a crash has left without a row, a part of them with each call until the sweep
 * ends (broker/blob/blob_leftovers.h). Outside of begin and commit. */
enum blob_sweep blob_store_sweep(struct blob_store *store, size_t *ret_removed);
/* These two walk the holders with blobs that no result names. */
size_t blob_store_holdings(const struct blob_store *store);
struct blob_holding blob_store_holding(const struct blob_store *store, size_t index);
/* Notes the result of hashing the blob's file: `is_whole` says that it has the hash. OK: the blob
 * is no longer lost. Otherwise LOST or FAILED. */
enum blob_status blob_store_checked(struct blob_store *store, const struct hash32 *hash,
                                    bool is_whole);
/* Reads at most `length` bytes from `offset`; fewer at the end. A blob that is read from its first
 * byte to its last is hashed. If it does not have its hash, LOST comes instead of the last bytes,
 * and from then on. */
enum blob_status blob_store_get(struct blob_store *store, const struct hash32 *hash,
                                uint64_t offset, size_t length, uint8_t *ret_data,
                                size_t *ret_length, uint64_t *ret_size);
/* Opens the file of a blob of more than BLOB_ROW_BYTES for reading; the caller closes it. LOST:
 * there is no file. UNCHECKED comes with the file.
 *
 * *ret_is_hashed: it is one of the BLOB_HASHED_MAX files that this store wrote and hashed last, and
 * still looks the same (runtime/stamp.h). */
enum blob_status blob_store_file(struct blob_store *store, const struct hash32 *hash, int *ret_fd,
                                 bool *ret_is_hashed);
/* Returns OK with the bytes of the account's blobs, or FAILED. */
enum blob_status blob_store_usage(struct blob_store *store, uint32_t account, int64_t *ret_bytes);
/* Drops uploads that have been idle for BLOB_PARTIAL_IDLE_S. */
void blob_store_expire(struct blob_store *store, int64_t now_ns);
const char *blob_store_error(const struct blob_store *store);

#endif
