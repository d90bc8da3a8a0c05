/* The rights of a sender on the blob port are found here. */
#include "broker/blob/port/blobs_internal.h"

#include "broker/blob/lease_bounds.h"
#include "broker/blob/needed.h"
#include "broker/fatal.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "runtime/clock.h"

#include <stdlib.h>

bool blobs_owner_of(struct blobs *blobs, const struct asked *asked, bool has_job,
                    ProtobufCBinaryData job, uint32_t *ret_owner,
                    struct blob_access_job **ret_served)
{
    *ret_served = NULL;
    *ret_owner = asked->account->number;
    if (!has_job) {
        return true;
    }
    struct id128 id = codec_id(job);
    *ret_served =
        blob_access_find(blobs->config.access, asked->account->number, &id, clock_monotonic_ns());
    if (*ret_served != NULL) {
        *ret_owner = (*ret_served)->owner;
    }
    return *ret_served != NULL;
}

/* Reads the bytes of a blob of at most LIMIT_MANIFEST_BYTES, which the caller frees. A larger blob
 * leaves *ret_bytes unset. */
static enum blob_status read_whole(struct blobs *blobs, const struct hash32 *hash,
                                   uint8_t **ret_bytes, size_t *ret_length)
{
    struct blob_store *store = blobs->config.store;
    uint64_t size = 0;
    *ret_length = 0;
    enum blob_status status = blob_store_get(store, hash, 0, 0, NULL, ret_length, &size);
    if (status != BLOB_OK || size > LIMIT_MANIFEST_BYTES) {
        return status;
    }
    *ret_bytes = malloc((size_t)size + 1);
    if (*ret_bytes == NULL) {
        fatal("out of memory");
    }
    return blob_store_get(store, hash, 0, (size_t)size, *ret_bytes, ret_length, &size);
}

/* Sets what a provider may store for the job. */
static void set_bounds(const struct blobs *blobs, struct blob_access_job *job,
                       const Bourse__V1__Manifest *manifest)
{
    const struct lease_bounds_caps caps = {.file_bytes = (uint64_t)blobs->config.size_bytes,
                                           .all_bytes = (uint64_t)blobs->config.quota_bytes};
    const struct lease_bounds bounds = lease_bounds_of(manifest, &caps);
    job->bytes_most = bounds.bytes;
    job->blobs_most = bounds.blobs;
}

/* Reads the job's manifest once. A manifest that does not parse names nothing, and no agent can run
 * its subtasks, so that nothing may be stored for them. A manifest that is missing, or cannot be
 * read now, is read again at the next request. */
static enum blob_status read_manifest(struct blobs *blobs, struct blob_access_job *job)
{
    size_t length = 0;
    struct hash32 *hashes = NULL;
    size_t count = 0;
    uint8_t *bytes = NULL;
    Bourse__V1__Manifest *manifest = NULL;
    enum blob_status status = blob_store_lends(blobs->config.store, job->owner, &job->manifest);
    if (status == BLOB_OK) {
        status = read_whole(blobs, &job->manifest, &bytes, &length);
    }
    if (status == BLOB_OK) {
        job->bytes_most = job->blobs_most = 0;
    }
    if (status == BLOB_OK && bytes != NULL) {
        switch (codec_decode_manifest(bytes, length, &manifest, NULL)) {
        case CODEC_OK:
            hashes = needed_hashes(manifest, &count);
            if (hashes == NULL) {
                fatal("out of memory");
            }
            set_bounds(blobs, job, manifest);
            codec_manifest_free(&manifest);
            break;
        case CODEC_OUT_OF_MEMORY:
            fatal("out of memory");
        case CODEC_TOO_LARGE:
        case CODEC_UNKNOWN_TYPE:
        case CODEC_MALFORMED:
            break;
        }
    }
    free(bytes);
    if (status == BLOB_OK) {
        blob_access_job_set_hashes(job, hashes, count);
    }
    return status;
}

enum blob_status blobs_may_read(struct blobs *blobs, const struct asked *asked, uint32_t owner,
                                struct blob_access_job *served, const struct hash32 *hash)
{
    enum blob_status status = BLOB_OK;
    if (blobs_is_peer(blobs, asked->account)) {
        return blob_store_find(blobs->config.store, hash);
    }
    if (served != NULL && !served->is_read) {
        status = read_manifest(blobs, served);
    }
    if (status == BLOB_OK && served != NULL && !blob_access_job_names(served, hash) &&
        !blob_access_gave(blobs->config.access, asked->account->number, served, hash)) {
        status = BLOB_NOT_FOUND;
    }
    /* A manifest may name any blob, so the author must own this one. */
    if (status != BLOB_OK) {
        return status;
    }
    return served != NULL ? blob_store_lends(blobs->config.store, owner, hash)
                          : blob_store_may_read(blobs->config.store, owner, hash);
}

const struct blob_lease *blobs_lease_of(struct blobs *blobs, const struct asked *asked,
                                        struct blob_access_job *served, struct blob_lease *lease)
{
    if (served == NULL) {
        return NULL;
    }
    if (!served->is_read) {
        set_bounds(blobs, served, NULL); /* for a manifest that cannot be read now */
        (void)read_manifest(blobs, served);
    }
    *lease = (struct blob_lease){.holder = {.provider = asked->account->number, .job = served->job},
                                 .bytes_most = served->bytes_most,
                                 .count_most = served->blobs_most};
    return lease;
}
