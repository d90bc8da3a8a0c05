#include "broker/blob/port/blob_slices.h"

#include <assert.h>

struct blob_chunk blob_slice_chunk(const Bourse__V1__BlobPut *body, uint32_t owner,
                                   const struct blob_lease *lease)
{
    return (struct blob_chunk){.account = owner,
                               .lease = lease,
                               .hash = codec_hash(body->hash),
                               .size = body->size,
                               .offset = body->offset,
                               .data = body->data.data,
                               .length = body->data.len};
}

struct blob_chunk blob_slice(const struct blob_chunk *chunk, size_t done, bool is_shared)
{
    assert(done <= chunk->length);
    const bool is_row = chunk->size <= BLOB_ROW_BYTES;
    const bool fits = chunk->offset <= chunk->size && chunk->length <= chunk->size - chunk->offset;
    const size_t left = chunk->length - done;
    struct blob_chunk slice = *chunk;
    if (done > 0) { /* else there may be no data at all */
        slice.offset += done;
        slice.data += done;
    }
    slice.length =
        is_shared && fits && !is_row && left > BLOB_SLICE_BYTES ? BLOB_SLICE_BYTES : left;
    return slice;
}

uint64_t blob_slice_steps(const struct blob_chunk *slice, bool is_complete)
{
    if (slice->size <= BLOB_ROW_BYTES) {
        return BLOB_ROW_STEPS;
    }
    return (uint64_t)(slice->offset == 0 ? BLOB_UPLOAD_STEPS : 0) +
           (uint64_t)(is_complete ? BLOB_FILE_STEPS : 0);
}
