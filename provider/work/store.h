/* The store holds the agent's blobs in a content-addressed cache folder, which is filled on demand.
 *
 * A blob is fetched once however many threads ask. Only bytes that hash to their name get in. The
 * fetcher hashes them on arrival; the store hashes a file of an earlier run when it first opens the
 * file. The least recently used files go when the disk is full, or when the folder is over its cap
 * of bytes or of files. Each file costs memory too. A file in use never goes. Fetching happens on
 * threads of the store, so that inputs of the next subtask arrive while one runs.
 *
 * A large blob that is not kept in a jail need not be copied. With a broker on this machine, the
 * broker's open file is lent. A reader of a lent file hashes it (store_take_lent). The reader then
 * reports the file's stamp, so that the next reader need not hash. The first reader need not hash
 * either if the broker is believed to have done so. If a reader reports nothing, the store fetches
 * a copy of its own.
 *
 *     FOLDER/ab/abcdef...   64 hex digits; a name that ends in .part is being written
 *
 * Thread-safe. */
#ifndef BOURSE_PROVIDER_WORK_STORE_H
#define BOURSE_PROVIDER_WORK_STORE_H

#include "base/id.h"
#include "base/problem.h"
#include "runtime/stamp.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STORE_THREADS_MAX = 8,
    STORE_WANTED_MAX = 65536,
    STORE_FILES_MAX = 32768,
    STORE_LENT_MAX = 64
};

enum store_status {
    STORE_OK,
    STORE_MISSING,   /* the broker does not have it, or not for us */
    STORE_TOO_LARGE, /* above the caller's cap */
    STORE_GIVEN_UP,  /* *give_up became true, or the store closes */
    STORE_FULL,      /* the disk is crowded even after unused files were dropped */
    STORE_NO_FOLDER, /* the cache folder is gone and cannot be made again; see the problem */
    STORE_FAILED,    /* a disk error, or a blob larger than the disk's room; see the problem */
};
/* Returns the status for a file that could not be written: STORE_FULL or STORE_FAILED. */
enum store_status store_unwritten(int error);

/* Fetches `hash` for `job` into `fd` (at most `cap` bytes) and verifies it. The store's threads
 * call it; `thread` is 0 .. threads - 1, so that each may keep a connection of its own. *ret_size
 * is the blob's size, with STORE_FULL too; 0 when it is not known. */
typedef enum store_status store_fetch(void *context, size_t thread, const struct hash32 *hash,
                                      const struct id128 *job, uint64_t cap, int fd,
                                      uint64_t *ret_size, struct problem *ret_problem);

/* Returns the blob as an open file of another owner, or -1 when the blob is to be fetched. Nobody
 * has hashed the file unless *ret_is_hashed, which is false before the call. If that is set, the
 * file has its hash, as it looks now or looked a moment before. Called like a fetch; may block. */
typedef int store_lend(void *context, size_t thread, const struct hash32 *hash,
                       const struct id128 *job, uint64_t cap, uint64_t *ret_size,
                       bool *ret_is_hashed);

struct store_config {
    const char *folder; /* private; made when absent */
    uint64_t cap_bytes; /* cap of the files, also those in use; fetches keep to it */
    size_t files_max;   /* 0: STORE_FILES_MAX */
    size_t threads;     /* 1 .. STORE_THREADS_MAX */
    store_fetch *fetch;
    store_lend *lend; /* NULL: nobody lends any */
    void *context;
    /* Returns the free bytes on the folder's disk; NULL: free_space_of does. */
    uint64_t (*free_space)(const char *folder);
};

struct store;
bool store_open(const struct store_config *config, struct store **ret_store,
                struct problem *ret_problem);
/* Ends the threads after their current fetches, which the caller interrupts. No blob may be
 * taken. */
void store_close(struct store **self);
/* Makes every take and fetch that waits give up, now and later. */
void store_stop(struct store *store);

/* A blob in use stays until store_release. */
struct store_blob {
    struct hash32 hash;
    uint64_t size;
    int fd;       /* read-only, the taker's own */
    bool is_lent; /* the taker must hash it while reading */
    /* Lent only: the stamp of the file when its hash was verified, for the taker to report. A stamp
     * that was known at the take and is unknown at the release is a report, too. The file lost its
     * hash, or the taker has copied it. */
    struct stamp hashed;
    bool was_hashed; /* lent only: `hashed` was known at the take */
};
/* Waits for the blob. `give_up` (may be NULL) ends the wait within a tenth of a second. Any status
 * but OK leaves nothing to release. The blob of no bytes needs no fetch. */
enum store_status store_take(struct store *store, const struct hash32 *hash,
                             const struct id128 *job, uint64_t cap, const atomic_bool *give_up,
                             struct store_blob *ret_blob, struct problem *ret_problem);
/* Takes a blob like store_take, for a caller that hashes a lent file. A file with the stamp of an
 * earlier verification needs no hashing. */
enum store_status store_take_lent(struct store *store, const struct hash32 *hash,
                                  const struct id128 *job, uint64_t cap, const atomic_bool *give_up,
                                  struct store_blob *ret_blob, struct problem *ret_problem);
/* Takes a blob if the store has a file of its own, after hashing the file anew. Nothing is fetched,
 * and nobody waits for others. Returns false when there is none. */
bool store_find(struct store *store, const struct hash32 *hash, struct store_blob *ret_blob);
void store_release(struct store *store, struct store_blob *blob);
/* Asks for a blob without waiting. This is a hint, dropped when STORE_WANTED_MAX are wanted
 * already. */
void store_prefetch(struct store *store, const struct hash32 *hash, const struct id128 *job,
                    uint64_t cap);
/* Asks likewise for store_take_lent. */
void store_prefetch_lent(struct store *store, const struct hash32 *hash, const struct id128 *job,
                         uint64_t cap);
/* Makes the cache folder again when somebody removed it. Returns false with the problem when that
 * is impossible. Its blobs are fetched again when they are wanted. */
bool store_keep_folder(struct store *store, struct problem *ret_problem);
/* Closes lent files that nobody uses. The disk space of a file that its owner removes stays
 * occupied as long as the file is open here. */
void store_forget_lent(struct store *store);
/* Returns true when `bytes` are free on the disk, if need be after removing files that nobody uses.
 * No file is removed in vain. */
bool store_has_space(struct store *store, uint64_t bytes);

#endif
