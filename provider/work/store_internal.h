/* provider/work/store_internal.h declares what store.c, which gives blobs to takers, shares with
 * the table of entries (store_entries.c) and the threads that fetch (store_fetch.c). No other file
 * includes it.
 *
 * Functions that take an entry need the store's mutex, unless they say otherwise. */
#ifndef BOURSE_PROVIDER_WORK_STORE_INTERNAL_H
#define BOURSE_PROVIDER_WORK_STORE_INTERNAL_H

#include "base/list.h"
#include "provider/work/store.h"

#include <limits.h>
#include <pthread.h>

enum { BUCKETS = 8192, HEX = 64 };

enum entry_state {
    ENTRY_WANTED,   /* waits for a thread */
    ENTRY_FETCHING, /* a thread fetches it */
    ENTRY_HERE,     /* a file */
    ENTRY_LENT,     /* an open file of another owner */
    ENTRY_FAILED,   /* `status` and `problem` are for the takers; the last one removes it */
};

struct entry {
    struct list_link bucket;
    struct list_link queue; /* wanted: in the order asked; here, lent: least recently used first */
    struct hash32 hash;
    struct id128 job;
    uint64_t cap;
    enum entry_state state;
    bool verified;       /* the bytes were hashed by this process */
    bool may_lend;       /* wanted: the taker hashes it */
    bool was_read;       /* lent: a reader did not report the file's stamp */
    int lent;            /* lent: the file */
    struct stamp hashed; /* lent: stamp from when the hash was verified */
    unsigned users;      /* takers that wait for it or hold it */
    unsigned tries;      /* fetches that found the disk full and nothing to drop */
    uint64_t size;
    enum store_status status;
    struct problem *problem; /* problem of a failed one; NULL: none, or no memory for it */
};

struct store {
    struct store_config config;
    char folder[PATH_MAX];
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* an entry changed state, or the store stops */
    pthread_cond_t wanted;
    bool stopping;
    struct list_link buckets[BUCKETS];
    struct list_link wants; /* entries to fetch */
    struct list_link here;  /* entries with a file */
    struct list_link lents; /* entries that are lent */
    size_t lent_count;
    size_t want_count;
    size_t here_count;
    uint64_t bytes;
    size_t started;
    struct store_thread {
        struct store *store;
        size_t number;
        pthread_t thread;
    } threads[STORE_THREADS_MAX];
};

/* store_entries.c has the entries by hash, and drops files when there are too many. */

/* Writes the path of an entry's file, which ends with the suffix. No mutex is needed. */
void store_path_of(const struct store *store, const struct hash32 *hash, const char *suffix,
                   char ret_path[PATH_MAX + 80]);
/* Returns NULL when the store has no such entry. */
struct entry *store_find_entry(struct store *store, const struct hash32 *hash);
/* Makes an entry in no queue. Returns NULL when memory is short. */
struct entry *store_new_entry(struct store *store, const struct hash32 *hash);
/* Marks an entry whose file exists. */
void store_shelve(struct store *store, struct entry *entry, uint64_t size);
/* Takes back store_shelve; the file stays. */
void store_unshelve(struct store *store, struct entry *entry);
/* Closes the lent file; its takers have their own descriptors. */
void store_give_back(struct store *store, struct entry *entry);
/* Destroys an entry that nobody uses, with its file. */
void store_drop_entry(struct store *store, struct entry *entry);
/* Drops unused files until the store is within its limits. */
void store_evict(struct store *store);
/* Drops the least recently used lent files until `most` are left. */
void store_evict_lent(struct store *store, size_t most);
/* Returns true when the disk has so many free bytes. */
bool store_is_free(const struct store *store, uint64_t bytes);
/* Drops unused files until the disk has `bytes` free. Returns the number of dropped files. */
size_t store_make_room(struct store *store, uint64_t bytes);
/* Returns true when dropping all unused files would free `bytes`. */
bool store_could_be_free(const struct store *store, uint64_t bytes);
/* Queues an entry, which is in no queue, for a thread. */
void store_queue_want(struct store *store, struct entry *entry, const struct id128 *job,
                      uint64_t cap, bool may_lend);
/* Makes an entry and queues it. Returns NULL when memory is short. */
struct entry *store_want(struct store *store, const struct hash32 *hash, const struct id128 *job,
                         uint64_t cap, bool may_lend);

/* store_fetch.c fetches wanted entries. A thread runs this; `argument` is its store_thread. */
void *store_fetch_loop(void *argument);

#endif
