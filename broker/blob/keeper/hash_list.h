/* A hash list is a sorted set of blobs, each with the number of the job that it was found for.
 *
 * A set of more than `most` blobs is looked at in slices. The space of hashes is cut into n equal
 * ranges, and slice k holds the blobs whose hash lies in range k. The code is pure. */
#ifndef BOURSE_BROKER_BLOB_KEEPER_HASH_LIST_H
#define BOURSE_BROKER_BLOB_KEEPER_HASH_LIST_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_item {
    struct hash32 hash;
    uint32_t number; /* of the first job that it was added for */
    bool is_needed;
};

struct hash_list {
    struct hash_item *items;
    size_t count, capacity, most;
    uint32_t slice, slices; /* slices > 0 */
    bool is_over;           /* more than `most` were added: the list is not complete */
    bool is_failed;         /* memory was short: the list is not complete */
};

/* Frees the items and leaves an empty list. */
void hash_list_fini(struct hash_list *list);
/* Adds blobs of this slice. Returns false once the list is over or failed. */
bool hash_list_add(struct hash_list *list, const struct hash32 *hashes, size_t count,
                   uint32_t number);
/* Sorts the list. Of each blob, only the entry with the lowest number stays. */
void hash_list_sort(struct hash_list *list);
/* Marks those of the blobs that a sorted list holds as needed. */
void hash_list_need(struct hash_list *list, const struct hash32 *hashes, size_t count);

#endif
