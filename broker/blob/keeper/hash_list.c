#include "broker/blob/keeper/hash_list.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

void hash_list_fini(struct hash_list *list)
{
    free(list->items);
    list->items = NULL;
    list->count = list->capacity = 0;
}

static bool is_of_slice(const struct hash_list *list, const struct hash32 *hash)
{
    const uint64_t start = (uint64_t)hash->bytes[0] << 24 | (uint64_t)hash->bytes[1] << 16 |
                           (uint64_t)hash->bytes[2] << 8 | hash->bytes[3];
    return start * list->slices >> 32 == list->slice;
}

bool hash_list_add(struct hash_list *list, const struct hash32 *hashes, size_t count,
                   uint32_t number)
{
    for (size_t i = 0; i < count && !list->is_over && !list->is_failed; i++) {
        if (!is_of_slice(list, &hashes[i])) {
            continue;
        }
        if (list->count == list->most) {
            hash_list_sort(list); /* removes blobs that were added more than once */
            list->is_over = list->count > list->most / 2;
        }
        struct hash_item *items =
            array_with_room(list->items, list->count, &list->capacity, sizeof *items);
        list->is_failed = items == NULL;
        if (items != NULL) {
            list->items = items;
            items[list->count++] = (struct hash_item){.hash = hashes[i], .number = number};
        }
    }
    return !list->is_over && !list->is_failed;
}

static int compare(const void *one, const void *other)
{
    const struct hash_item *a = one;
    const struct hash_item *b = other;
    const int order = memcmp(a->hash.bytes, b->hash.bytes, sizeof a->hash.bytes);
    return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

void hash_list_sort(struct hash_list *list)
{
    size_t kept = 0;
    if (list->count > 0) {
        qsort(list->items, list->count, sizeof *list->items, compare);
    }
    for (size_t i = 0; i < list->count; i++) {
        if (kept == 0 || !hash32_equal(&list->items[kept - 1].hash, &list->items[i].hash)) {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
}

void hash_list_need(struct hash_list *list, const struct hash32 *hashes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t low = 0;
        for (size_t high = list->count; low < high;) {
            const size_t middle = low + (high - low) / 2;
            const int order =
                memcmp(list->items[middle].hash.bytes, hashes[i].bytes, sizeof hashes[i].bytes);
            low = order < 0 ? middle + 1 : low;
            high = order < 0 ? high : middle;
        }
        if (low < list->count && hash32_equal(&list->items[low].hash, &hashes[i])) {
            list->items[low].is_needed = true;
        }
    }
}
