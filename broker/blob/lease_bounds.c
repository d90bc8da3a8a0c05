#include "broker/blob/lease_bounds.h"

#include "protocol/limits.h"
#include "protocol/subtask.h"

#include <stdbool.h>

/* A bound that would be larger than an uint64_t stays at the largest uint64_t. */
static uint64_t sum_of(uint64_t a, uint64_t b)
{
    return a <= UINT64_MAX - b ? a + b : UINT64_MAX;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    return a == 0 || b <= UINT64_MAX / a ? a * b : UINT64_MAX;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns how many bytes the files of one try may have together. An agent counts them against
 * `output_bytes`, or else against the disk of its jail, which `disk_bytes` caps. */
static uint64_t declared_bytes(const Bourse__V1__ManifestLimits *limits)
{
    if (limits != NULL && limits->has_output_bytes && limits->output_bytes > 0) {
        return (uint64_t)limits->output_bytes;
    }
    if (limits != NULL && limits->has_disk_bytes && limits->disk_bytes > 0) {
        return (uint64_t)limits->disk_bytes;
    }
    return UINT64_MAX;
}

/* Returns what one try may leave. A try leaves its outputs or a checkpoint, and not both, so the
 * larger of the two counts for the bytes. */
static struct lease_bounds try_of(uint64_t outputs, bool has_checkpoint,
                                  const Bourse__V1__ManifestLimits *limits,
                                  const struct lease_bounds_caps *caps)
{
    const uint64_t saved = has_checkpoint ? LIMIT_CHECKPOINT_FILES : 0;
    const uint64_t most = times(greater(outputs, saved), caps->file_bytes);
    return (struct lease_bounds){
        .bytes = sum_of(lesser(declared_bytes(limits), most), LEASE_BOUNDS_STREAMS_BYTES),
        .blobs = outputs + saved + LEASE_BOUNDS_STREAMS};
}

static struct lease_bounds subtask_of(const Bourse__V1__Manifest *manifest, uint32_t index,
                                      const struct lease_bounds_caps *caps)
{
    const struct subtask_terms terms = subtask_terms(manifest, index);
    return try_of(terms.output_count, terms.checkpoint != NULL, terms.limits, caps);
}

static void add(struct lease_bounds *all, struct lease_bounds *largest,
                const struct lease_bounds *one, uint64_t count)
{
    all->bytes = sum_of(all->bytes, times(one->bytes, count));
    all->blobs = sum_of(all->blobs, times(one->blobs, count));
    largest->bytes = greater(largest->bytes, one->bytes);
    largest->blobs = greater(largest->blobs, one->blobs);
}

struct lease_bounds lease_bounds_of(const Bourse__V1__Manifest *manifest,
                                    const struct lease_bounds_caps *caps)
{
    struct lease_bounds all = {.bytes = 0};
    struct lease_bounds largest = {.bytes = 0};
    if (manifest == NULL) {
        const struct lease_bounds any = try_of(LIMIT_OUTPUTS, true, NULL, caps);
        add(&all, &largest, &any, 1);
    } else {
        const uint32_t listed = (uint32_t)manifest->n_subtasks; /* at most LIMIT_SUBTASKS */
        for (uint32_t i = 0; i < listed; i++) {
            const struct lease_bounds one = subtask_of(manifest, i, caps);
            add(&all, &largest, &one, 1);
        }
        if (manifest->subtask_count > listed) { /* the subtasks that are not listed are alike */
            const struct lease_bounds one = subtask_of(manifest, listed, caps);
            add(&all, &largest, &one, manifest->subtask_count - listed);
        }
    }
    /* A large job counts by so many of its largest subtasks: no more wait for their results. */
    const uint64_t bytes = lesser(all.bytes, times(largest.bytes, LEASE_BOUNDS_SUBTASKS));
    const uint64_t blobs = lesser(all.blobs, times(largest.blobs, LEASE_BOUNDS_SUBTASKS));
    return (struct lease_bounds){.bytes = lesser(times(bytes, LEASE_BOUNDS_TRIES), caps->all_bytes),
                                 .blobs = times(blobs, LEASE_BOUNDS_TRIES)};
}
