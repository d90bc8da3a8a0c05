/* This file keeps the entries of the store, and drops files when there are too many. */
#include "base/list.h"
#include "base/text.h"
#include "provider/work/store.h"
#include "provider/work/store_internal.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void store_path_of(const struct store *store, const struct hash32 *hash, const char *suffix,
                   char ret_path[PATH_MAX + 80])
{
    char hex[HEX + 1];
    text_hex(hash->bytes, sizeof hash->bytes, hex);
    (void)snprintf(ret_path, PATH_MAX + 80, "%s/%.2s/%s%s", store->folder, hex, hex, suffix);
}

static struct list_link *bucket_of(struct store *store, const struct hash32 *hash)
{
    return &store->buckets[((size_t)hash->bytes[0] << 8 | hash->bytes[1]) % BUCKETS];
}

struct entry *store_find_entry(struct store *store, const struct hash32 *hash)
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

struct entry *store_new_entry(struct store *store, const struct hash32 *hash)
{
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry != NULL) {
        entry->hash = *hash;
        list_init(&entry->queue);
        list_append(bucket_of(store, hash), &entry->bucket);
    }
    return entry;
}

void store_shelve(struct store *store, struct entry *entry, uint64_t size)
{
    entry->state = ENTRY_HERE;
    entry->size = size;
    store->bytes += size;
    store->here_count++;
    list_append(&store->here, &entry->queue);
}

void store_unshelve(struct store *store, struct entry *entry)
{
    store->bytes -= entry->size;
    store->here_count--;
    list_remove(&entry->queue);
}

void store_give_back(struct store *store, struct entry *entry)
{
    (void)close(entry->lent); /* it was only read */
    list_remove(&entry->queue);
    store->lent_count--;
}

void store_drop_entry(struct store *store, struct entry *entry)
{
    assert(entry->users == 0);
    if (entry->state == ENTRY_LENT) {
        store_give_back(store, entry);
    } else if (entry->state == ENTRY_HERE) {
        char path[PATH_MAX + 80];
        store_path_of(store, &entry->hash, "", path);
        (void)unlink(path); /* no matter if it is gone already */
        store_unshelve(store, entry);
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

void store_evict(struct store *store)
{
    for (struct list_link *link = store->here.next; link != &store->here && is_over(store);) {
        struct entry *entry = LIST_ELEMENT(link, struct entry, queue);
        link = link->next;
        if (entry->users == 0) {
            store_drop_entry(store, entry);
        }
    }
}

/* Drops the least recently used ones until `most` are left. */
void store_evict_lent(struct store *store, size_t most)
{
    for (struct list_link *link = store->lents.next;
         link != &store->lents && store->lent_count > most;) {
        struct entry *entry = LIST_ELEMENT(link, struct entry, queue);
        link = link->next;
        if (entry->users == 0) {
            store_drop_entry(store, entry);
        }
    }
}

bool store_is_free(const struct store *store, uint64_t bytes)
{
    return store->config.free_space(store->folder) >= bytes;
}

size_t store_make_room(struct store *store, uint64_t bytes)
{
    size_t dropped = 0;
    for (struct list_link *link = store->here.next;
         link != &store->here && !store_is_free(store, bytes);) {
        struct entry *entry = LIST_ELEMENT(link, struct entry, queue);
        link = link->next;
        if (entry->users == 0) {
            store_drop_entry(store, entry);
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

bool store_could_be_free(const struct store *store, uint64_t bytes)
{
    uint64_t unused = unused_bytes(store);
    return unused >= bytes || store_is_free(store, bytes - unused);
}

void store_queue_want(struct store *store, struct entry *entry, const struct id128 *job,
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

struct entry *store_want(struct store *store, const struct hash32 *hash, const struct id128 *job,
                         uint64_t cap, bool may_lend)
{
    struct entry *entry = store_new_entry(store, hash);
    if (entry != NULL) {
        store_queue_want(store, entry, job, cap, may_lend);
    }
    return entry;
}
