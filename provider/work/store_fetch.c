/* This file fetches the blobs that the store wants, in threads of its own. */
#include "base/list.h"
#include "provider/work/free_space.h"
#include "provider/work/own_folder.h"
#include "provider/work/store.h"
#include "provider/work/store_internal.h"
#include "runtime/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES_MOST = 3 };

bool store_keep_folder(struct store *store, struct problem *ret_problem)
{
    return own_folder_keep(store->folder, ret_problem);
}

/* Makes the folder of the blob's file again. */
static bool make_shelf(struct store *store, const struct entry *entry, struct problem *problem)
{
    char shelf[PATH_MAX + 80];
    store_path_of(store, &entry->hash, "", shelf);
    *strrchr(shelf, '/') = '\0';
    if (!store_keep_folder(store, problem)) {
        return false;
    }
    if (mkdir(shelf, 0700) != 0 && errno != EEXIST) {
        problem_set(problem, "cannot make %s: %s", shelf, strerror(errno));
        return false;
    }
    return true;
}

/* Fetches the blob into NAME.part and renames the file, so a file without a suffix is always
 * complete. Sets *ret_is_gone when somebody removed the folder meanwhile. */
static enum store_status fetch_once(struct store *store, size_t thread, struct entry *entry,
                                    uint64_t *ret_size, bool *ret_is_gone, struct problem *problem)
{
    char part[PATH_MAX + 80];
    char whole[PATH_MAX + 80];
    store_path_of(store, &entry->hash, ".part", part);
    store_path_of(store, &entry->hash, "", whole);
    int fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        if (!make_shelf(store, entry, problem)) {
            return STORE_NO_FOLDER;
        }
        fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
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
        *ret_is_gone = error == ENOENT;
        problem_set(problem, "cannot rename %s: %s", part, strerror(error));
        status = store_unwritten(error);
    }
    if (status != STORE_OK) {
        (void)unlink(part); /* the file may not exist */
    }
    return status;
}

static enum store_status fetch_file(struct store *store, size_t thread, struct entry *entry,
                                    uint64_t *ret_size, struct problem *problem)
{
    bool is_gone = false;
    const enum store_status status = fetch_once(store, thread, entry, ret_size, &is_gone, problem);
    return is_gone ? fetch_once(store, thread, entry, ret_size, &is_gone, problem) : status;
}

/* Makes space for a blob of `size` bytes (0: unknown) for which the disk had none. Returns true
 * when another try may succeed. Drops no more files than needed, and none when dropping all would
 * not suffice. */
static bool may_fit_now(struct store *store, struct entry *entry, uint64_t size)
{
    if (size == 0) {
        return store_make_room(store, UINT64_MAX) > 0;
    }
    if (!store_could_be_free(store, size)) {
        return false;
    }
    uint64_t spare = size / 64 + FREE_SPACE_LEAST; /* spare for disk blocks and other fetches */
    if (store_make_room(store, size + spare) > 0) {
        return true;
    }
    /* Others may have made room meanwhile. */
    return entry->tries++ < TRIES_MOST && store_is_free(store, size);
}

/* Returns FULL when the disk is crowded, so that the work is given back. A blob that is too large
 * for an uncrowded disk fails, because giving the work back would repeat for ever. */
static enum store_status status_of_no_space(const struct store *store, uint64_t size,
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

static void finish_fetch(struct store *store, struct entry *entry, enum store_status status,
                         uint64_t size, const struct problem *problem)
{
    if (status == STORE_OK) {
        entry->verified = true;
        store_shelve(store, entry, size);
        entry->users++; /* a use, so that the entry does not evict itself */
        store_evict(store);
        entry->users--;
    } else {
        entry->state = ENTRY_FAILED;
        entry->status = status;
        entry->problem = malloc(sizeof *entry->problem);
        if (entry->problem != NULL) {
            *entry->problem = *problem;
        }
        if (entry->users == 0) {
            store_drop_entry(store, entry); /* nobody waits for the blob */
        }
    }
    pthread_cond_broadcast(&store->changed);
}

/* Borrows the broker's own file of the blob, if broker and agent share a machine. Returns true with
 * the mutex held, or false with the mutex free. */
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
        (void)stamp_take(fd, &hashed); /* without a stamp the file is hashed again */
    }
    pthread_mutex_lock(&store->mutex);
    entry->state = ENTRY_LENT;
    entry->lent = fd;
    entry->size = size;
    entry->was_read = false;
    entry->hashed = hashed;
    list_append(&store->lents, &entry->queue);
    store->lent_count++;
    entry->users++; /* a use, so that the entry does not evict itself */
    store_evict_lent(store, STORE_LENT_MAX);
    entry->users--;
    pthread_cond_broadcast(&store->changed);
    return true;
}

void *store_fetch_loop(void *argument)
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
            list_insert_before(store->wants.next, &entry->queue); /* the next try comes first */
            store->want_count++;
            entry->state = ENTRY_WANTED;
            continue;
        }
        if (status == STORE_FULL) {
            status = status_of_no_space(store, size, &problem);
        }
        finish_fetch(store, entry, status, size, &problem);
    }
    pthread_mutex_unlock(&store->mutex);
    return NULL;
}
