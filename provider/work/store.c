#include "provider/work/store.h"

#include "base/list.h"
#include "base/sha256.h"
#include "base/text.h"
#include "provider/work/free_space.h"
#include "provider/work/store_internal.h"
#include "runtime/condition.h"
#include "runtime/private_folder.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16, POLL_NS = 100000000 };

static const struct hash32 HASH_OF_NOTHING = {{0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14,
                                               0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
                                               0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c,
                                               0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55}};

/* ---------------------------------------------------------------- files */

static bool same_bytes(int fd, const struct hash32 *hash)
{
    struct sha256 sum;
    uint8_t chunk[READ_BYTES];
    off_t offset = 0;
    sha256_start(&sum);
    for (;;) {
        ssize_t got = pread(fd, chunk, sizeof chunk, offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return false;
        }
        if (got == 0) {
            break;
        }
        sha256_add(&sum, chunk, (size_t)got);
        offset += got;
    }
    struct hash32 found = sha256_end(&sum);
    return hash32_equal(&found, hash);
}

enum store_status store_unwritten(int error)
{
    return error == ENOSPC || error == EDQUOT ? STORE_FULL : STORE_FAILED;
}

/* ---------------------------------------------------------------- start and end */

static void adopt(struct store *store, const char *folder, const char *name)
{
    char path[PATH_MAX + 80];
    struct hash32 hash;
    struct stat facts;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    bool named = text_unhex(name, hash.bytes, sizeof hash.bytes);
    if (!named || lstat(path, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        (void)unlink(path); /* left by an interrupted fetch */
        return;
    }
    struct entry *entry = store_new_entry(store, &hash);
    if (entry != NULL) {
        store_shelve(store, entry, (uint64_t)facts.st_size);
    }
}

static bool open_folders(struct store *store, struct problem *problem)
{
    if (!private_folder(store->folder, true, problem)) {
        return false;
    }
    for (unsigned i = 0; i < 256; i++) {
        char folder[PATH_MAX + 4];
        (void)snprintf(folder, sizeof folder, "%s/%02x", store->folder, i);
        if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
            problem_set(problem, "cannot make %s: %s", folder, strerror(errno));
            return false;
        }
        DIR *files = opendir(folder);
        if (files == NULL) {
            problem_set(problem, "cannot read %s: %s", folder, strerror(errno));
            return false;
        }
        for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
            if (file->d_name[0] != '.') {
                adopt(store, folder, file->d_name);
            }
        }
        closedir(files);
    }
    store_evict(store);
    return true;
}

bool store_open(const struct store_config *config, struct store **ret_store,
                struct problem *ret_problem)
{
    assert(config->threads >= 1 && config->threads <= STORE_THREADS_MAX);
    struct store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    store->config = *config;
    if (store->config.files_max == 0) {
        store->config.files_max = STORE_FILES_MAX;
    }
    if (config->free_space == NULL) {
        store->config.free_space = free_space_of;
    }
    pthread_mutex_init(&store->mutex, NULL);
    condition_init(&store->changed);
    pthread_cond_init(&store->wanted, NULL);
    list_init(&store->wants);
    list_init(&store->here);
    list_init(&store->lents);
    for (size_t i = 0; i < BUCKETS; i++) {
        list_init(&store->buckets[i]);
    }
    if (strlen(config->folder) >= sizeof store->folder - HEX - 16) {
        problem_set(ret_problem, "%.100s...: the path of the cache folder is too long",
                    config->folder);
        store_close(&store);
        return false;
    }
    (void)snprintf(store->folder, sizeof store->folder, "%s", config->folder);
    if (!open_folders(store, ret_problem)) {
        store_close(&store);
        return false;
    }
    for (size_t i = 0; i < config->threads; i++) {
        store->threads[i] = (struct store_thread){.store = store, .number = i};
        if (pthread_create(&store->threads[i].thread, NULL, store_fetch_loop, &store->threads[i]) !=
            0) {
            problem_set(ret_problem, "cannot start thread %zu of %zu that fetch files", i + 1,
                        config->threads);
            store_close(&store);
            return false;
        }
        store->started++;
    }
    *ret_store = store;
    return true;
}

void store_stop(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->stopping = true;
    pthread_cond_broadcast(&store->wanted);
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->mutex);
}

void store_close(struct store **self)
{
    struct store *store = *self;
    if (store == NULL) {
        return;
    }
    store_stop(store);
    for (size_t i = 0; i < store->started; i++) {
        pthread_join(store->threads[i].thread, NULL);
    }
    for (size_t i = 0; i < BUCKETS; i++) {
        while (!list_empty(&store->buckets[i])) {
            struct entry *entry = LIST_ELEMENT(store->buckets[i].next, struct entry, bucket);
            list_remove(&entry->bucket); /* its file stays for the next run */
            if (entry->state == ENTRY_LENT) {
                store_give_back(store, entry);
            }
            free(entry);
        }
    }
    pthread_cond_destroy(&store->wanted);
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->mutex);
    free(store);
    *self = NULL;
}

/* ---------------------------------------------------------------- taking */

struct taking { /* request of a taker */
    const struct id128 *job;
    uint64_t cap;
    const atomic_bool *give_up; /* may be NULL */
    bool may_lend;
};

static enum store_status take_nothing(struct store_blob *ret_blob, struct problem *ret_problem)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        problem_set(ret_problem, "cannot open /dev/null: %s", strerror(errno));
        return STORE_FAILED;
    }
    *ret_blob = (struct store_blob){.hash = HASH_OF_NOTHING, .size = 0, .fd = fd};
    return STORE_OK;
}

static void leave(struct store *store, struct entry *entry)
{
    assert(entry->users > 0);
    entry->users--;
    if (entry->users == 0 && entry->state == ENTRY_FAILED) {
        store_drop_entry(store, entry);
    }
    store_evict(store);
}

/* Opens the file of an entry that is here, and hashes a file of an earlier run. The mutex is
 * released meanwhile; `users` keeps the entry. */
static enum store_status open_entry(struct store *store, struct entry *entry, int *ret_fd)
{
    char path[PATH_MAX + 80];
    store_path_of(store, &entry->hash, "", path);
    bool check = !entry->verified;
    pthread_mutex_unlock(&store->mutex);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool good = fd >= 0 && (!check || same_bytes(fd, &entry->hash));
    pthread_mutex_lock(&store->mutex);
    if (!good) {
        if (fd >= 0) {
            close(fd);
        }
        return STORE_MISSING;
    }
    entry->verified = true;
    list_remove(&entry->queue);
    list_append(&store->here, &entry->queue); /* most recently used */
    *ret_fd = fd;
    return STORE_OK;
}

/* Fetches a vanished or damaged file again for the waiting takers. */
static void want_again(struct store *store, struct entry *entry, const struct id128 *job,
                       uint64_t cap)
{
    if (entry->state != ENTRY_HERE) {
        return; /* another taker was first */
    }
    store_unshelve(store, entry);
    entry->verified = false;
    store_queue_want(store, entry, job, cap, false);
}

static enum store_status too_large(const struct entry *entry, uint64_t cap,
                                   struct problem *ret_problem)
{
    problem_set(ret_problem, "a blob of %llu bytes is above the cap of %llu",
                (unsigned long long)entry->size, (unsigned long long)cap);
    return STORE_TOO_LARGE;
}

/* Lends the file to a taker that hashes it, until a reader reports no stamp. Returns false when a
 * fetch is queued instead, also when no descriptor is left. */
static bool take_lent(struct store *store, struct entry *entry, const struct taking *taking,
                      struct store_blob *ret_blob)
{
    int fd = -1;
    if (taking->may_lend && !entry->was_read && entry->size <= taking->cap) {
        fd = fcntl(entry->lent, F_DUPFD_CLOEXEC, 3);
    }
    if (fd < 0) {
        store_give_back(store, entry);
        store_queue_want(store, entry, taking->job, taking->cap, false);
        return false;
    }
    list_remove(&entry->queue);
    list_append(&store->lents, &entry->queue);
    *ret_blob = (struct store_blob){.hash = entry->hash,
                                    .size = entry->size,
                                    .fd = fd,
                                    .is_lent = true,
                                    .hashed = entry->hashed,
                                    .was_hashed = entry->hashed.is_known};
    return true;
}

static enum store_status take_entry(struct store *store, struct entry *entry,
                                    const struct taking *taking, struct store_blob *ret_blob,
                                    struct problem *ret_problem)
{
    const atomic_bool *give_up = taking->give_up;
    for (;;) {
        if (store->stopping || (give_up != NULL && atomic_load(give_up))) {
            return STORE_GIVEN_UP;
        }
        if (entry->state == ENTRY_FAILED) {
            problem_set(ret_problem, "%s",
                        entry->problem != NULL ? entry->problem->text : "out of memory");
            return entry->status;
        }
        if (entry->state == ENTRY_LENT && take_lent(store, entry, taking, ret_blob)) {
            return STORE_OK;
        }
        if (entry->state != ENTRY_HERE) {
            condition_wait(&store->changed, &store->mutex, POLL_NS);
            continue;
        }
        if (entry->size > taking->cap) {
            return too_large(entry, taking->cap, ret_problem);
        }
        int fd;
        if (open_entry(store, entry, &fd) == STORE_OK) {
            *ret_blob = (struct store_blob){.hash = entry->hash, .size = entry->size, .fd = fd};
            return STORE_OK;
        }
        want_again(store, entry, taking->job, taking->cap);
    }
}

static enum store_status take(struct store *store, const struct hash32 *hash,
                              const struct taking *taking, struct store_blob *ret_blob,
                              struct problem *ret_problem)
{
    if (hash32_equal(hash, &HASH_OF_NOTHING)) {
        return take_nothing(ret_blob, ret_problem);
    }
    pthread_mutex_lock(&store->mutex);
    struct entry *entry = store_find_entry(store, hash);
    if (entry != NULL && entry->state == ENTRY_FAILED && entry->users == 0) {
        store_drop_entry(store, entry);
        entry = NULL;
    }
    if (entry == NULL) {
        entry = store_want(store, hash, taking->job, taking->cap, taking->may_lend);
    } else if (entry->state == ENTRY_WANTED) { /* a hint becomes a need: to the front */
        list_remove(&entry->queue);
        list_insert_before(store->wants.next, &entry->queue);
    }
    if (entry == NULL) {
        pthread_mutex_unlock(&store->mutex);
        problem_set(ret_problem, "out of memory");
        return STORE_FAILED;
    }
    entry->users++;
    enum store_status status = take_entry(store, entry, taking, ret_blob, ret_problem);
    if (status != STORE_OK) {
        leave(store, entry);
    }
    pthread_mutex_unlock(&store->mutex);
    return status;
}

enum store_status store_take(struct store *store, const struct hash32 *hash,
                             const struct id128 *job, uint64_t cap, const atomic_bool *give_up,
                             struct store_blob *ret_blob, struct problem *ret_problem)
{
    const struct taking taking = {.job = job, .cap = cap, .give_up = give_up};
    return take(store, hash, &taking, ret_blob, ret_problem);
}

enum store_status store_take_lent(struct store *store, const struct hash32 *hash,
                                  const struct id128 *job, uint64_t cap, const atomic_bool *give_up,
                                  struct store_blob *ret_blob, struct problem *ret_problem)
{
    const struct taking taking = {.job = job, .cap = cap, .give_up = give_up, .may_lend = true};
    return take(store, hash, &taking, ret_blob, ret_problem);
}

bool store_find(struct store *store, const struct hash32 *hash, struct store_blob *ret_blob)
{
    bool is_found = false;
    pthread_mutex_lock(&store->mutex);
    struct entry *entry = store_find_entry(store, hash);
    if (entry != NULL && entry->state == ENTRY_HERE && !store->stopping) {
        int fd;
        entry->users++;
        entry->verified = false;
        is_found = open_entry(store, entry, &fd) == STORE_OK;
        if (is_found) {
            *ret_blob = (struct store_blob){.hash = *hash, .size = entry->size, .fd = fd};
        } else {
            leave(store, entry);
        }
    }
    pthread_mutex_unlock(&store->mutex);
    return is_found;
}

/* Takes over the report of a reader of a lent file. */
static void hear(struct entry *entry, const struct store_blob *blob)
{
    if (blob->hashed.is_known) {
        entry->hashed = blob->hashed;
        entry->was_read = false;
    } else if (blob->was_hashed || !entry->hashed.is_known) {
        entry->hashed.is_known = false;
        entry->was_read = true;
    } /* otherwise another reader reported meanwhile */
}

void store_release(struct store *store, struct store_blob *blob)
{
    if (blob->fd < 0) {
        return;
    }
    close(blob->fd);
    blob->fd = -1;
    if (hash32_equal(&blob->hash, &HASH_OF_NOTHING)) {
        return;
    }
    pthread_mutex_lock(&store->mutex);
    struct entry *entry = store_find_entry(store, &blob->hash);
    assert(entry != NULL);
    if (blob->is_lent && entry->state == ENTRY_LENT) {
        hear(entry, blob);
    }
    leave(store, entry);
    pthread_mutex_unlock(&store->mutex);
}

static void prefetch(struct store *store, const struct hash32 *hash, const struct id128 *job,
                     uint64_t cap, bool may_lend)
{
    if (hash32_equal(hash, &HASH_OF_NOTHING)) {
        return;
    }
    pthread_mutex_lock(&store->mutex);
    if (!store->stopping && store->want_count < STORE_WANTED_MAX &&
        store_find_entry(store, hash) == NULL) {
        (void)store_want(store, hash, job, cap, may_lend); /* only a hint */
    }
    pthread_mutex_unlock(&store->mutex);
}

void store_prefetch(struct store *store, const struct hash32 *hash, const struct id128 *job,
                    uint64_t cap)
{
    prefetch(store, hash, job, cap, false);
}

void store_prefetch_lent(struct store *store, const struct hash32 *hash, const struct id128 *job,
                         uint64_t cap)
{
    prefetch(store, hash, job, cap, true);
}

void store_forget_lent(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    store_evict_lent(store, 0);
    pthread_mutex_unlock(&store->mutex);
}

bool store_has_space(struct store *store, uint64_t bytes)
{
    pthread_mutex_lock(&store->mutex);
    bool has_space = store_is_free(store, bytes);
    if (!has_space && store_could_be_free(store, bytes)) {
        (void)store_make_room(store, bytes); /* files may take less space than they are long */
        has_space = store_is_free(store, bytes);
    }
    pthread_mutex_unlock(&store->mutex);
    return has_space;
}
