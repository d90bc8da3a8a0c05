/* Needed blobs are those that a manifest names for each subtask.
 *
 * They are the image, the inputs of all subtasks, and the subtask's own. What other subtasks give
 * to a subtask is not here, since no manifest names it. The code is pure. */
#ifndef BOURSE_BROKER_BLOB_NEEDED_H
#define BOURSE_BROKER_BLOB_NEEDED_H

#include "base/id.h"
#include "protocol/bourse.pb-c.h"

#include <stddef.h>
#include <stdint.h>

struct needed;

/* Returns all blobs that a manifest names, in an array of *ret_count hashes that the caller frees:
 * the image, the inputs of all subtasks, then the own inputs of each subtask. Returns NULL when
 * memory is short. Borrows nothing. */
struct hash32 *needed_hashes(const Bourse__V1__Manifest *manifest, size_t *ret_count);

/* Returns the blobs that a manifest names, or NULL when memory is short. Borrows nothing. */
struct needed *needed_of(const Bourse__V1__Manifest *manifest);
void needed_destroy(struct needed **self);

/* Returns the number of blobs that subtask `index` needs. */
size_t needed_count(const struct needed *needed, uint32_t index);
/* Returns the hash of blob `number`, which is lower than the count. Valid as long as `needed`. */
const struct hash32 *needed_hash(const struct needed *needed, uint32_t index, size_t number);

#endif
