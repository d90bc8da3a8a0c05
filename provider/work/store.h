/* provider/work/store.h - the agent's blobs: a content-addressed cache folder filled on demand.
 *
 * A blob is fetched once however many threads ask, and only bytes that hash to their name get in:
 * by the fetcher when they arrive, by the store when it first opens a file of an earlier run. When
 * the folder is over its cap of bytes or of files (each costs memory too), or the disk is full, the
 * files least recently used go, never one in use. Fetching happens on threads of the store, so that
 * inputs of the next subtask arrive while one runs.
 *
 * A large blob that is not kept in a jail need not be copied: where the broker is on this machine,
 * its open file serves. Whoever reads it hashes it (store_take_lent), and says how it looked then,
 * so that the next need not; nor need the first where the broker is believed to have done it. Once
 * somebody has read it and does not say, there is a copy of our own.
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
    STORE_FULL,      /* the disk is crowded, though all that nobody uses was dropped */
    STORE_FAILED,    /* the disk: the problem says what; a blob larger than its room, too */
};
/* What a file that could not be written means: FULL or FAILED. */
enum store_status store_unwritten(int error);

/* Gets `hash` for `job` into `fd` (at most `cap` bytes) and verifies it. Called on the store's
 * threads; `thread` is 0 .. threads - 1, so that each may keep a connection of its own. *ret_size
 * is the blob's size with FULL, too; 0 when it is not known. */
typedef enum store_status store_fetch(void *context, size_t thread, const struct hash32 *hash,
                                      const struct id128 *job, uint64_t cap, int fd,
                                      uint64_t *ret_size, struct problem *ret_problem);

/* The blob as an open file of another's, which nobody has hashed, unless *ret_is_hashed (false
 * before): then it has its hash, as it looks now or a moment before. -1: it is to be fetched.
 * Called like fetch; may block. */
typedef int store_lend(void *context, size_t thread, const struct hash32 *hash,
                       const struct id128 *job, uint64_t cap, uint64_t *ret_size,
                       bool *ret_is_hashed);

struct store_config {
    const char *folder; /* private; made when absent */
    uint64_t cap_bytes; /* of files, those in use included: nothing is fetched over it */
    size_t files_max;   /* 0: STORE_FILES_MAX */
    size_t threads;     /* 1 .. STORE_THREADS_MAX */
    store_fetch *fetch;
    store_lend *lend; /* NULL: nobody lends any */
    void *context;
    uint64_t (*room)(const char *folder); /* bytes that its disk has free; NULL: room_of */
};

struct store;
bool store_open(const struct store_config *config, struct store **ret_store,
                struct problem *ret_problem);
/* Ends the threads after what they fetch now (the caller interrupts that); nothing may be taken. */
void store_close(struct store **self);
/* From now on every take and fetch that waits gives up. */
void store_stop(struct store *store);

/* A blob in use: it stays until store_release. */
struct store_blob {
    struct hash32 hash;
    uint64_t size;
    int fd;              /* read-only, the taker's own */
    bool is_lent;        /* it is to be hashed as it is read */
    struct stamp hashed; /* lent: as it looked when it had its hash, for the taker to say: one that
                          * is not known any more when it is released says that it has it no more,
                          * or that he has copied it */
    bool was_hashed;     /* lent: that was known when it was taken */
};
/* Waits for the blob. `give_up` (may be NULL) ends the wait within a tenth of a second. Any status
 * but OK leaves nothing to release. The hash of nothing is at hand without a fetch. */
enum store_status store_take(struct store *store, const struct hash32 *hash,
                             const struct id128 *job, uint64_t cap, const atomic_bool *give_up,
                             struct store_blob *ret_blob, struct problem *ret_problem);
/* The same for who hashes it when it is lent, unless it looks as when somebody else did. */
enum store_status store_take_lent(struct store *store, const struct hash32 *hash,
                                  const struct id128 *job, uint64_t cap, const atomic_bool *give_up,
                                  struct store_blob *ret_blob, struct problem *ret_problem);
/* A blob of which a file of our own is at hand, after it was hashed anew. Nothing is fetched, and
 * nobody waits for others. False: there is none. */
bool store_find(struct store *store, const struct hash32 *hash, struct store_blob *ret_blob);
void store_release(struct store *store, struct store_blob *blob);
/* Asks for a blob without waiting; a hint, dropped when STORE_WANTED_MAX are wanted already. */
void store_prefetch(struct store *store, const struct hash32 *hash, const struct id128 *job,
                    uint64_t cap);
/* The same for store_take_lent. */
void store_prefetch_lent(struct store *store, const struct hash32 *hash, const struct id128 *job,
                         uint64_t cap);
/* Closes what is lent and nobody uses: as long as it is open here, its owner's disk has no room of
 * it that he removes. */
void store_forget_lent(struct store *store);
/* Whether `bytes` are free on the disk, at the price of files that nobody uses; none goes in
 * vain. */
bool store_has_room(struct store *store, uint64_t bytes);
/* Bytes of files at hand. */
uint64_t store_size(struct store *store);

#endif
