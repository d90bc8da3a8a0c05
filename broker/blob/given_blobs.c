#include "broker/blob/given_blobs.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 256 };

struct given { /* added at once */
    struct given *next;
    uint32_t index;
    size_t count;
    struct hash32 hashes[];
};

struct given_blobs {
    struct given *buckets[BUCKETS]; /* by subtask */
};

bool given_blobs_add(struct given_blobs **self, uint32_t index, const struct hash32 *hashes,
                     size_t count)
{
    if (*self == NULL) {
        *self = calloc(1, sizeof **self);
    }
    struct given *given =
        *self == NULL ? NULL : malloc(sizeof *given + count * sizeof given->hashes[0]);
    if (given == NULL) {
        return false;
    }
    struct given **bucket = &(*self)->buckets[index % BUCKETS];
    given->next = *bucket;
    given->index = index;
    given->count = count;
    memcpy(given->hashes, hashes, count * sizeof given->hashes[0]);
    *bucket = given;
    return true;
}

void given_blobs_destroy(struct given_blobs **self)
{
    for (size_t i = 0; *self != NULL && i < BUCKETS; i++) {
        for (struct given *given = (*self)->buckets[i], *next; given != NULL; given = next) {
            next = given->next;
            free(given);
        }
    }
    free(*self);
    *self = NULL;
}

bool given_blobs_of(const struct given_blobs *given, uint32_t index, struct hash32 **ret_hashes,
                    size_t *ret_count)
{
    const struct given *first = given == NULL ? NULL : given->buckets[index % BUCKETS];
    size_t count = 0;
    for (const struct given *at = first; at != NULL; at = at->next) {
        count += at->index == index ? at->count : 0;
    }
    struct hash32 *hashes = count == 0 ? NULL : calloc(count, sizeof *hashes);
    if (count > 0 && hashes == NULL) {
        return false;
    }
    size_t done = 0;
    for (const struct given *at = first; at != NULL; at = at->next) {
        if (at->index == index) {
            memcpy(&hashes[done], at->hashes, at->count * sizeof *hashes);
            done += at->count;
        }
    }
    *ret_hashes = hashes;
    *ret_count = count;
    return true;
}
