/* broker/blob/port/blob_slices.h says how much of a large chunk the blob port stores before others
 * have their turn.
 *
 * The chunk of an account that is alone is stored at once. While others ask, a chunk is stored
 * slice after slice, and the others have their turns between two slices. The functions
 * here read no clock, file or socket. */
#ifndef BOURSE_BROKER_BLOB_PORT_BLOB_SLICES_H
#define BOURSE_BROKER_BLOB_PORT_BLOB_SLICES_H

#include "broker/blob/blob_store.h"
#include "protocol/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* The blob thread writes and hashes so many bytes in one turn. */
    BLOB_SLICE_BYTES = 256 << 10,
    /* These are steps of BLOBS_MESSAGE_STEPS' kind: what the disk has to do beside its bytes. */
    BLOB_ROW_STEPS = 20000,   /* A small blob costs pages all over the database. */
    BLOB_UPLOAD_STEPS = 8000, /* A file is made. */
    BLOB_FILE_STEPS = 500000, /* A file is made durable. */
};

/* Reads the chunk that a BlobPut carries; its data stays the message's. `owner` and `lease` are as
 * in struct blob_chunk. */
struct blob_chunk blob_slice_chunk(const Bourse__V1__BlobPut *body, uint32_t owner,
                                   const struct blob_lease *lease);
/* Cuts the next slice out of a chunk, of which `done` bytes are stored already. `is_shared` says
 * that others ask. A blob that becomes a row is never cut, nor is a chunk that reaches beyond its
 * blob: the store refuses it before anything is kept. */
struct blob_chunk blob_slice(const struct blob_chunk *chunk, size_t done, bool is_shared);
/* Returns the steps of a slice that was stored. */
uint64_t blob_slice_steps(const struct blob_chunk *slice, bool is_complete);

#endif
