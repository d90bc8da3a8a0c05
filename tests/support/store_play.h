/* tests/support/store_play.h plays the world around the store of a provider: a source that counts
 * what it is asked, and a disk of a size that the test sets. One program includes it once. */
#ifndef BOURSE_TESTS_SUPPORT_STORE_PLAY_H
#define BOURSE_TESTS_SUPPORT_STORE_PLAY_H

#include "base/sha256.h"
#include "base/text.h"
#include "provider/work/store.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A source of blobs: "blob <n>" repeated to 1000 bytes, under its hash; it counts what it is
 * asked. */
enum { BLOBS = 16, BLOB_BYTES = 1000, TAKERS = 8 };

struct source {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    bool closed; /* fetches wait */
    unsigned fetches;
    bool lends;
    bool has_hashed; /* what it lends */
    unsigned loans;
    unsigned full;      /* so many fetches find the disk full */
    uint64_t full_size; /* of the blob that they fetch; 0: it is not known */
    uint8_t bytes[BLOBS][BLOB_BYTES];
    struct hash32 hashes[BLOBS];
};

struct play {
    char folder[64];
    struct source source;
    struct store *store;
    size_t files_max;
};

static const struct id128 job = {{1}};

static inline enum store_status fetch(void *context, size_t thread, const struct hash32 *hash,
                                      const struct id128 *for_job, uint64_t cap, int fd,
                                      uint64_t *ret_size, struct problem *ret_problem)
{
    struct source *source = context;
    ck_assert_uint_lt(thread, 2);
    ck_assert(id128_equal(for_job, &job));
    pthread_mutex_lock(&source->mutex);
    while (source->closed) {
        pthread_cond_wait(&source->opened, &source->mutex);
    }
    source->fetches++;
    bool is_full = source->full > 0;
    source->full -= is_full;
    uint64_t full_size = source->full_size;
    pthread_mutex_unlock(&source->mutex);
    if (is_full) {
        *ret_size = full_size;
        problem_set(ret_problem, "no space");
        return store_unwritten(ENOSPC);
    }
    for (size_t i = 0; i < BLOBS; i++) {
        if (hash32_equal(&source->hashes[i], hash)) {
            if (cap < BLOB_BYTES) {
                problem_set(ret_problem, "too large");
                return STORE_TOO_LARGE;
            }
            ck_assert_int_eq(pwrite(fd, source->bytes[i], BLOB_BYTES, 0), BLOB_BYTES);
            *ret_size = BLOB_BYTES;
            return STORE_OK;
        }
    }
    problem_set(ret_problem, "no such blob");
    return STORE_MISSING;
}

/* The blob as somebody's open file; of number 15 none is lent. */
static inline int lend(void *context, size_t thread, const struct hash32 *hash,
                       const struct id128 *for_job, uint64_t cap, uint64_t *ret_size,
                       bool *ret_is_hashed)
{
    struct source *source = context;
    ck_assert_uint_lt(thread, 2);
    ck_assert(!*ret_is_hashed);
    ck_assert(id128_equal(for_job, &job));
    for (size_t i = 0; i + 1 < BLOBS; i++) {
        if (source->lends && hash32_equal(&source->hashes[i], hash) && cap >= BLOB_BYTES) {
            int fd = memfd_create("lent", MFD_CLOEXEC);
            ck_assert_int_eq(write(fd, source->bytes[i], BLOB_BYTES), BLOB_BYTES);
            pthread_mutex_lock(&source->mutex);
            source->loans++;
            pthread_mutex_unlock(&source->mutex);
            *ret_size = BLOB_BYTES;
            *ret_is_hashed = source->has_hashed;
            return fd;
        }
    }
    return -1;
}

/* The disk of a play: what its files leave of `disk_bytes`. */
static atomic_ullong disk_bytes;

static inline uint64_t free_space(const char *folder)
{
    uint64_t left = atomic_load(&disk_bytes);
    for (unsigned i = 0; i < 256; i++) {
        char name[96];
        (void)snprintf(name, sizeof name, "%s/%02x", folder, i);
        DIR *files = opendir(name);
        ck_assert_ptr_nonnull(files);
        for (const struct dirent *file; (file = readdir(files)) != NULL;) {
            left -= file->d_name[0] != '.' ? BLOB_BYTES : 0;
        }
        closedir(files);
    }
    return left;
}

static inline void open_store(struct play *play, uint64_t cap)
{
    struct problem problem;
    struct store_config config = {.folder = play->folder,
                                  .cap_bytes = cap,
                                  .files_max = play->files_max,
                                  .threads = 2,
                                  .fetch = fetch,
                                  .lend = lend,
                                  .context = &play->source,
                                  .free_space = free_space};
    ck_assert_msg(store_open(&config, &play->store, &problem), "%s", problem.text);
}

static inline void play_start_with(struct play *play, uint64_t cap, size_t files_max)
{
    memset(play, 0, sizeof *play);
    atomic_store(&disk_bytes, UINT64_C(1) << 40);
    play->files_max = files_max;
    (void)snprintf(play->folder, sizeof play->folder, "/tmp/bourse-store-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(play->folder));
    pthread_mutex_init(&play->source.mutex, NULL);
    pthread_cond_init(&play->source.opened, NULL);
    for (size_t i = 0; i < BLOBS; i++) {
        memset(play->source.bytes[i], (int)('a' + i), BLOB_BYTES);
        play->source.hashes[i] = sha256_of(play->source.bytes[i], BLOB_BYTES);
    }
    open_store(play, cap);
}

static inline void play_start(struct play *play, uint64_t cap)
{
    play_start_with(play, cap, 0);
}

static inline int remove_one(const char *path, const struct stat *facts, int flag, struct FTW *walk)
{
    (void)facts;
    (void)flag;
    (void)walk;
    return remove(path);
}

static inline void play_end(struct play *play)
{
    store_close(&play->store);
    (void)nftw(play->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline unsigned fetches(struct source *source)
{
    pthread_mutex_lock(&source->mutex);
    unsigned count = source->fetches;
    pthread_mutex_unlock(&source->mutex);
    return count;
}

static inline enum store_status take(struct play *play, size_t number, struct store_blob *ret_blob)
{
    struct problem problem;
    return store_take(play->store, &play->source.hashes[number], &job, UINT64_MAX, NULL, ret_blob,
                      &problem);
}

static inline void take_and_release(struct play *play, size_t number)
{
    struct store_blob blob;
    ck_assert_int_eq(take(play, number, &blob), STORE_OK);
    store_release(play->store, &blob);
}

static inline char *path_of(const struct play *play, size_t number)
{
    static char path[256];
    char hex[65];
    text_hex(play->source.hashes[number].bytes, 32, hex);
    (void)snprintf(path, sizeof path, "%s/%.2s/%s", play->folder, hex, hex);
    return path;
}

#endif
