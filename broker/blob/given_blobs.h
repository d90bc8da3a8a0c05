/* Given blobs are those that the subtasks of one lease were given.
 *
 * They are outputs of other subtasks, and files of checkpoints. The caller locks. The code is
 * pure. */
#ifndef BOURSE_BROKER_BLOB_GIVEN_BLOBS_H
#define BOURSE_BROKER_BLOB_GIVEN_BLOBS_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct given_blobs;

/* Adds blobs of subtask `index`. `*self` may be NULL, and is created then. Returns false when
 * memory is short. */
bool given_blobs_add(struct given_blobs **self, uint32_t index, const struct hash32 *hashes,
                     size_t count);
void given_blobs_destroy(struct given_blobs **self);

/* Returns a copy of the hashes of subtask `index`, which the caller frees; NULL where there are
 * none, as for a `given` of NULL. Returns false when memory is short. */
bool given_blobs_of(const struct given_blobs *given, uint32_t index, struct hash32 **ret_hashes,
                    size_t *ret_count);

#endif
