#include "broker/blob/needed.h"

#include "protocol/codec.h"

#include <assert.h>
#include <stdlib.h>

struct needed {
    struct hash32 *hashes; /* of all subtasks first, then of each listed one */
    size_t shared_count;
    size_t *ends; /* of the own hashes, by listed subtask */
    size_t listed_count;
};

static size_t count_shared(const Bourse__V1__Manifest *manifest)
{
    return manifest->n_shared + (manifest->has_image ? 1 : 0);
}

static size_t put(struct hash32 *hashes, size_t at, Bourse__V1__ManifestInput *const *inputs,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hashes[at++] = codec_hash(inputs[i]->hash);
    }
    return at;
}

struct hash32 *needed_hashes(const Bourse__V1__Manifest *manifest, size_t *ret_count)
{
    size_t count = count_shared(manifest);
    for (size_t i = 0; i < manifest->n_subtasks; i++) {
        count += manifest->subtasks[i]->n_inputs;
    }
    struct hash32 *hashes = calloc(count + 1, sizeof *hashes);
    if (hashes == NULL) {
        return NULL;
    }
    size_t at = 0;
    if (manifest->has_image) {
        hashes[at++] = codec_hash(manifest->image);
    }
    at = put(hashes, at, manifest->shared, manifest->n_shared);
    for (size_t i = 0; i < manifest->n_subtasks; i++) {
        at = put(hashes, at, manifest->subtasks[i]->inputs, manifest->subtasks[i]->n_inputs);
    }
    *ret_count = count;
    return hashes;
}

struct needed *needed_of(const Bourse__V1__Manifest *manifest)
{
    struct needed *needed = calloc(1, sizeof *needed);
    if (needed == NULL) {
        return NULL;
    }
    size_t end = count_shared(manifest);
    size_t count = 0;
    needed->shared_count = end;
    needed->listed_count = manifest->n_subtasks;
    needed->hashes = needed_hashes(manifest, &count);
    needed->ends = calloc(manifest->n_subtasks + 1, sizeof *needed->ends);
    if (needed->hashes == NULL || needed->ends == NULL) {
        needed_destroy(&needed);
        return NULL;
    }
    for (size_t i = 0; i < manifest->n_subtasks; i++) {
        end += manifest->subtasks[i]->n_inputs;
        needed->ends[i] = end;
    }
    return needed;
}

void needed_destroy(struct needed **self)
{
    if (*self != NULL) {
        free((*self)->hashes);
        free((*self)->ends);
        free(*self);
        *self = NULL;
    }
}

/* Returns the place where the own hashes of a listed subtask begin. */
static size_t begin_of(const struct needed *needed, uint32_t index)
{
    return index == 0 ? needed->shared_count : needed->ends[index - 1];
}

size_t needed_count(const struct needed *needed, uint32_t index)
{
    return index < needed->listed_count
               ? needed->shared_count + needed->ends[index] - begin_of(needed, index)
               : needed->shared_count;
}

const struct hash32 *needed_hash(const struct needed *needed, uint32_t index, size_t number)
{
    assert(number < needed_count(needed, index));
    return number < needed->shared_count
               ? &needed->hashes[number]
               : &needed->hashes[begin_of(needed, index) + number - needed->shared_count];
}
