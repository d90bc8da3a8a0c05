#include "provider/work/store.h"

#include "base/list.h"
#include "base/sha256.h"
#include "base/text.h"
#include "provider/work/free_space.h"
#include "runtime/condition.h"
#include "runtime/private_folder.h"
#include "runtime/process.h"

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
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 8192, READ_BYTES = 1 << 16, POLL_NS = 100000000, HEX = 64, TRIES_MOST = 3 };

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
    bool verified;       /* its bytes were hashed by this process */
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

static const struct hash32 HASH_OF_NOTHING = {{0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14,
                                               0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
                                               0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c,
                                               0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55}};

/* ---------------------------------------------------------------- files */

static void path_of(const struct store *store, const struct hash32 *hash, const char *suffix,
                    char ret_path[PATH_MAX + 80])
{
    char hex[HEX + 1];
    text_hex(hash->bytes, sizeof hash->bytes, hex);
    (void)snprintf(ret_path, PATH_MAX + 80, "%s/%.2s/%s%s", store->folder, hex, hex, suffix);
}

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

/* Fetches into NAME.part and renames, so a file without a suffix is always complete. */
static enum store_status fetch_file(struct store *store, size_t thread, struct entry *entry,
                                    uint64_t *ret_size, struct problem *problem)
{
    char part[PATH_MAX + 80];
    char whole[PATH_MAX + 80];
    path_of(store, &entry->hash, ".part", part);
    path_of(store, &entry->hash, "", whole);
    int fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        int error = errno;
        problem_set(problem, "cannot write %s: %s", part, strerror(error));
        return store_unwritten(error);
    }
    enum store_status status = store->config.fetch(store->config.context, thread, &entry->hash,
                                                   &entry->job, entry->cap, fd, ret_size, problem);
    if (close(fd) != 0 && status == STORE_OK) {
        int error = errno;
        problem_set(problem, "cannot write %s: %s", part, strerror(error));
        status = store_unwritten(error);
    }
    if (status == STORE_OK && rename(part, whole) != 0) {
        int error = errno;
        problem_set(problem, "cannot rename %s: %s", part, strerror(error));
        status = store_unwritten(error);
    }
    if (status != STORE_OK) {
        (void)unlink(part); /* it may not exist */
    }
    return status;
}

/* ---------------------------------------------------------------- entries; the mutex is held */

static struct list_link *bucket_of(struct store *store, const struct hash32 *hash)
{
    return &store->buckets[((size_t)hash->bytes[0] << 8 | hash->bytes[1]) % BUCKETS];
}

static struct entry *find_entry(struct store *store, const struct hash32 *hash)
{
    struct list_link *head = bucket_of(store, hash);
    for (struct list_link *link = head->next; link != head; link = link->next) {
        struct entry *entry = LIST_ELEMENT(link, struct entry, bucket);
        if (hash32_equal(&entry->hash, hash)) {
            return entry;
        }
    }
    return NULL;
}

static struct entry *new_entry(struct store *store, const struct hash32 *hash)
{
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry != NULL) {
        entry->hash = *hash;
        list_init(&entry->queue);
        list_append(bucket_of(store, hash), &entry->bucket);
    }
    return entry;
}

/* Marks an entry whose file exists. */
static void shelve(struct store *store, struct entry *entry, uint64_t size)
{
    entry->state = ENTRY_HERE;
    entry->size = size;
    store->bytes += size;
    store->here_count++;
    list_append(&store->here, &entry->queue);
}

static void unshelve(struct store *store, struct entry *entry)
{
    store->bytes -= entry->size;
    store->here_count--;
    list_remove(&entry->queue);
}

/* Closes the lent file; its takers have their own descriptors. */
static void give_back(struct store *store, struct entry *entry)
{
    (void)close(entry->lent); /* it was only read */
    list_remove(&entry->queue);
    store->lent_count--;
}

static void drop_entry(struct store *store, struct entry *entry)
{
    assert(entry->users == 0);
    if (entry->state == ENTRY_LENT) {
        give_back(store, entry);
    } else if (entry->state == ENTRY_HERE) {
        char path[PATH_MAX + 80];
        path_of(store, &entry->hash, "", path);
        (void)unlink(path); /* no matter if it is gone already */
        unshelve(store, entry);
    } else if (entry->state == ENTRY_WANTED) {
        store->want_count--;
    }
    list_remove(&entry->bucket);
    list_remove(&entry->queue);
    free(entry->problem);
    free(entry);
}

static bool is_over(const struct store *store)
{
    return store->bytes > store->config.cap_bytes || store->here_count > store->config.files_max;
}

static void evict(struct store *store)
{
    for (struct list_link *link = store->here.next; link != &store->here && is_over(store);) {
        struct entry *entry = LIST_ELEMENT(link, struct entry, queue);
        link = link->next;
        if (entry->users == 0) {
            drop_entry(store, entry);
        }
    }
}

/* Drops the least recently used ones until `most` are left. */
static void evict_lent(struct store *store, size_t most)
{
    for (struct list_link *link = store->lents.next;
         link != &store->lents && store->lent_count > most;) {
        struct entry *entry = LIST_ELEMENT(link, struct entry, queue);
        link = link->next;
        if (entry->users == 0) {
            drop_entry(store, entry);
        }
    }
}

static bool is_free(const struct store *store, uint64_t bytes)
{
    return store->config.free_space(store->folder) >= bytes;
}

/* Drops unused files until the disk has `bytes` free. Returns the number of dropped files. */
static size_t make_room(struct store *store, uint64_t bytes)
{
    size_t dropped = 0;
    for (struct list_link *link = store->here.next;
         link != &store->here && !is_free(store, bytes);) {
        struct entry *entry = LIST_ELEMENT(link, struct entry, queue);
        link = link->next;
        if (entry->users == 0) {
            drop_entry(store, entry);
            dropped++;
        }
    }
    return dropped;
}

static uint64_t unused_bytes(const struct store *store)
{
    uint64_t bytes = 0;
    for (const struct list_link *link = store->here.next; link != &store->here; link = link->next) {
        const struct entry *entry = LIST_ELEMENT(link, struct entry, queue);
        bytes += entry->users == 0 ? entry->size : 0;
    }
    return bytes;
}

/* Returns true when dropping all unused files would free `bytes`. */
static bool could_be_free(const struct store *store, uint64_t bytes)
{
    uint64_t unused = unused_bytes(store);
    return unused >= bytes || is_free(store, bytes - unused);
}

/* Returns true when another try may succeed after the disk had no room for `size` bytes (0:
 * unknown). Drops no more files than needed, and none in vain. */
static bool may_fit_now(struct store *store, struct entry *entry, uint64_t size)
{
    if (size == 0) {
        return make_room(store, UINT64_MAX) > 0;
    }
    if (!could_be_free(store, size)) {
        return false;
    }
    uint64_t spare = size / 64 + FREE_SPACE_LEAST; /* spare for disk blocks and other fetches */
    if (make_room(store, size + spare) > 0) {
        return true;
    }
    return entry->tries++ < TRIES_MOST && is_free(store, size); /* others made room meanwhile */
}

/* A blob too large for an uncrowded disk fails: giving the work back would repeat forever. */
static enum store_status unfitting(const struct store *store, uint64_t size,
                                   struct problem *problem)
{
    uint64_t free_bytes = store->config.free_space(store->folder);
    if (free_bytes < FREE_SPACE_LEAST) {
        return STORE_FULL;
    }
    if (size > 0) {
        problem_set(problem, "a blob of %llu bytes does not fit: the disk of %s has %llu free",
                    (unsigned long long)size, store->folder, (unsigned long long)free_bytes);
    }
    return STORE_FAILED;
}

/* Queues an entry, which is in no queue, for a thread. */
static void queue_want(struct store *store, struct entry *entry, const struct id128 *job,
                       uint64_t cap, bool may_lend)
{
    entry->state = ENTRY_WANTED;
    entry->job = *job;
    entry->cap = cap < store->config.cap_bytes ? cap : store->config.cap_bytes;
    entry->may_lend = may_lend && store->config.lend != NULL;
    list_append(&store->wants, &entry->queue);
    store->want_count++;
    pthread_cond_signal(&store->wanted);
}

static struct entry *want(struct store *store, const struct hash32 *hash, const struct id128 *job,
                          uint64_t cap, bool may_lend)
{
    struct entry *entry = new_entry(store, hash);
    if (entry != NULL) {
        queue_want(store, entry, job, cap, may_lend);
    }
    return entry;
}

/* ---------------------------------------------------------------- the fetching threads */

static void finish_fetch(struct store *store, struct entry *entry, enum store_status status,
                         uint64_t size, const struct problem *problem)
{
    if (status == STORE_OK) {
        entry->verified = true;
        shelve(store, entry, size);
        entry->users++; /* its own arrival must not evict it */
        evict(store);
        entry->users--;
    } else {
        entry->state = ENTRY_FAILED;
        entry->status = status;
        entry->problem = malloc(sizeof *entry->problem);
        if (entry->problem != NULL) {
            *entry->problem = *problem;
        }
        if (entry->users == 0) {
            drop_entry(store, entry); /* an unused hint */
        }
    }
    pthread_cond_broadcast(&store->changed);
}

/* Returns true, with the mutex held, when the entry is lent; otherwise the mutex is free. */
static bool borrow(struct store *store, size_t thread, struct entry *entry)
{
    uint64_t size = 0;
    int fd = -1;
    bool is_hashed = false;
    struct stamp hashed = {.is_known = false};
    if (entry->may_lend) {
        fd = store->config.lend(store->config.context, thread, &entry->hash, &entry->job,
                                entry->cap, &size, &is_hashed);
    }
    if (fd < 0) {
        return false;
    }
    if (is_hashed) {
        (void)stamp_take(fd, &hashed); /* on failure it is hashed again */
    }
    pthread_mutex_lock(&store->mutex);
    entry->state = ENTRY_LENT;
    entry->lent = fd;
    entry->size = size;
    entry->was_read = false;
    entry->hashed = hashed;
    list_append(&store->lents, &entry->queue);
    store->lent_count++;
    entry->users++; /* its own arrival must not evict it */
    evict_lent(store, STORE_LENT_MAX);
    entry->users--;
    pthread_cond_broadcast(&store->changed);
    return true;
}

static void *fetch_loop(void *argument)
{
    struct store_thread *self = argument;
    process_name_thread("fetcher");
    struct store *store = self->store;
    pthread_mutex_lock(&store->mutex);
    while (!store->stopping) {
        if (list_empty(&store->wants)) {
            pthread_cond_wait(&store->wanted, &store->mutex);
            continue;
        }
        struct entry *entry = LIST_ELEMENT(store->wants.next, struct entry, queue);
        list_remove(&entry->queue);
        store->want_count--;
        entry->state = ENTRY_FETCHING;
        pthread_mutex_unlock(&store->mutex);
        uint64_t size = 0;
        struct problem problem = {""};
        if (borrow(store, self->number, entry)) {
            continue; /* the mutex is held */
        }
        enum store_status status = fetch_file(store, self->number, entry, &size, &problem);
        pthread_mutex_lock(&store->mutex);
        if (status == STORE_FULL && !store->stopping && may_fit_now(store, entry, size)) {
            list_insert_before(store->wants.next, &entry->queue); /* once more, at once */
            store->want_count++;
            entry->state = ENTRY_WANTED;
            continue;
        }
        if (status == STORE_FULL) {
            status = unfitting(store, size, &problem);
        }
        finish_fetch(store, entry, status, size, &problem);
    }
    pthread_mutex_unlock(&store->mutex);
    return NULL;
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
    struct entry *entry = new_entry(store, &hash);
    if (entry != NULL) {
        shelve(store, entry, (uint64_t)facts.st_size);
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
    evict(store);
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
        problem_set(ret_problem, "the name of the cache folder is too long");
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
        if (pthread_create(&store->threads[i].thread, NULL, fetch_loop, &store->threads[i]) != 0) {
            problem_set(ret_problem, "cannot start a thread");
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
                give_back(store, entry);
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

static void wait_changed(struct store *store)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until); /* the condition's clock */
    until.tv_nsec += POLL_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&store->changed, &store->mutex, &until); /* the caller loops */
}

static void leave(struct store *store, struct entry *entry)
{
    assert(entry->users > 0);
    entry->users--;
    if (entry->users == 0 && entry->state == ENTRY_FAILED) {
        drop_entry(store, entry);
    }
    evict(store);
}

/* Opens the file of an entry that is here, and hashes a file of an earlier run. The mutex is
 * released meanwhile; `users` keeps the entry. */
static enum store_status open_entry(struct store *store, struct entry *entry, int *ret_fd)
{
    char path[PATH_MAX + 80];
    path_of(store, &entry->hash, "", path);
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
    unshelve(store, entry);
    entry->verified = false;
    queue_want(store, entry, job, cap, false);
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
        give_back(store, entry);
        queue_want(store, entry, taking->job, taking->cap, false);
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
            wait_changed(store);
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
    struct entry *entry = find_entry(store, hash);
    if (entry != NULL && entry->state == ENTRY_FAILED && entry->users == 0) {
        drop_entry(store, entry);
        entry = NULL;
    }
    if (entry == NULL) {
        entry = want(store, hash, taking->job, taking->cap, taking->may_lend);
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
    struct entry *entry = find_entry(store, hash);
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
    struct entry *entry = find_entry(store, &blob->hash);
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
        find_entry(store, hash) == NULL) {
        (void)want(store, hash, job, cap, may_lend); /* only a hint */
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
    evict_lent(store, 0);
    pthread_mutex_unlock(&store->mutex);
}

bool store_has_space(struct store *store, uint64_t bytes)
{
    pthread_mutex_lock(&store->mutex);
    bool has_space = is_free(store, bytes);
    if (!has_space && could_be_free(store, bytes)) {
        (void)make_room(store, bytes); /* files may take less space than they are long */
        has_space = is_free(store, bytes);
    }
    pthread_mutex_unlock(&store->mutex);
    return has_space;
}
