/* runtime/blob/blob_client.h puts and gets blobs over the blob port in resumable chunks, several in
 * flight.
 *
 * The calls block, so they belong on a thread of their own; each client owns its link. A put
 * returns only when the broker has stored the bytes durably. Both ends check hashes.
 *
 * The blob port has no Hello and no session. Every request stands alone, with session 0 and a fresh
 * id, and is answered under that id (BlobMissing, BlobStored, BlobData, or Reject). The sender is
 * the account of the connection's key. A BlobPut must start where the stored bytes end. Otherwise
 * it is refused with BLOB_OFFSET, and `value` gives the place to go on from (the whole size: the
 * blob is stored). The answers to the BlobGets of one blob come in the order asked. The blob of no
 * bytes exists everywhere and is never sent. docs/protocol.md section 8. */
#ifndef BOURSE_RUNTIME_BLOB_BLOB_CLIENT_H
#define BOURSE_RUNTIME_BLOB_BLOB_CLIENT_H

#include "base/id.h"
#include "base/problem.h"
#include "protocol/identity.h"
#include "protocol/limits.h"
#include "protocol/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob_client;

bool blob_client_open(void *context, const char *endpoint, const struct key32 *server,
                      const struct identity *identity, struct blob_client **ret_client,
                      struct problem *ret_problem);
void blob_client_close(struct blob_client **self);

/* Writes the endpoint of the blob port that the client is to use now, of a market with several
 * brokers; "" when it is not known. The function may wait for some seconds, on the thread of a
 * call. */
typedef void blob_where(void *context, char ret_endpoint[LIMIT_ENDPOINT_BYTES + 1]);
/* Asks `where` after every lost connection, and opens the next one there. The server's key stays
 * the same. A call in progress goes on at the new port, which may lack what the former had. */
void blob_client_follow(struct blob_client *client, blob_where *where, void *context);
/* Returns the endpoint of the connection. */
const char *blob_client_endpoint(const struct blob_client *client);

/* Calls `meter` with the bytes of each message that was sent or has come, on the thread of the
 * call. The meter may wait, and slows the client down so. `context` lives as long as the client. */
typedef void blob_meter(void *context, uint64_t bytes);
void blob_client_measure(struct blob_client *client, blob_meter *meter, void *context);

/* A blob_read writes `length` bytes from `offset` of blob `index` to ret_bytes. */
typedef bool blob_read(void *context, size_t index, uint64_t offset, size_t length,
                       uint8_t *ret_bytes, struct problem *ret_problem);
/* A place is where a file holds bytes of a blob: `length` bytes together at `at`. A blob_locate
 * finds the place of blob `index` from `offset` on. The function returns false when the bytes are
 * in no file. */
struct blob_place {
    int fd;
    uint64_t at, length;
};
typedef bool blob_locate(void *context, size_t index, uint64_t offset,
                         struct blob_place *ret_place);
/* A blob to store, from a descriptor (read with pread), from memory, or made by `read`. */
struct blob_source {
    struct hash32 hash;
    uint64_t size;
    int fd;               /* -1: from memory, or made */
    const uint8_t *bytes; /* NULL: made */
    blob_read *read;
    /* NULL, or finds bytes that `read` would make in a file, so that the client need not read
     * them. */
    blob_locate *locate;
    void *context;
    size_t index;
};
/* Stores `count` blobs, after it has asked which ones the broker lacks. `job` names the job for
 * whose owner a provider stores; NULL: the sender's own blobs. `progress` (may be NULL) is called
 * with the bytes done. Returns false with a problem. *ret_reject is the broker's refusal, or
 * REJECT_NONE for another failure. *ret_unread (may be NULL) tells whether a source could not be
 * read to its size. A repeated call is safe. */
typedef void blob_progress(void *context, uint64_t done_bytes, uint64_t total_bytes);
bool blob_client_put(struct blob_client *client, const struct blob_source *sources, size_t count,
                     const struct id128 *job, blob_progress *progress, void *context,
                     enum reject_code *ret_reject, bool *ret_unread, struct problem *ret_problem);

/* Fetches one blob of at most `cap` bytes into `fd` (written from offset 0) and verifies the hash.
 * *ret_size is the blob's size, also on failure (0: unknown). *ret_errno tells why `fd` could not
 * be written; 0: another failure. */
bool blob_client_get(struct blob_client *client, const struct hash32 *hash, const struct id128 *job,
                     uint64_t cap, int fd, uint64_t *ret_size, enum reject_code *ret_reject,
                     int *ret_errno, struct problem *ret_problem);
/* Returns the blob as an open file of a broker on this machine. The caller only reads it, and
 * closes it. *ret_size is its size, at most `cap`. The file belongs to another program, so the
 * caller hashes the bytes as it reads them. *ret_is_hashed (may be NULL) tells whether root or our
 * own user has hashed it (runtime/descriptor.h); no hash is needed then. Returns -1 when no file
 * can be had, for any reason. */
int blob_client_borrow(struct blob_client *client, const struct hash32 *hash,
                       const struct id128 *job, uint64_t cap, uint64_t *ret_size,
                       bool *ret_is_hashed);
/* Fetches a blob into memory that the caller frees. */
bool blob_client_get_bytes(struct blob_client *client, const struct hash32 *hash,
                           const struct id128 *job, uint64_t cap, uint8_t **ret_bytes,
                           size_t *ret_length, enum reject_code *ret_reject,
                           struct problem *ret_problem);
/* Fetches a blob in pieces and passes each to `take`, one at a time and in order. After a lost
 * connection the pieces start from 0 again. Two threads may take turns in calling it. The first
 * piece holds a MiB of the blob, or all of it. The pieces are the blob only if the call
 * succeeds, because the hash is known at the end. The call ends when `take` returns false with
 * its problem. */
typedef bool blob_take(void *context, uint64_t offset, const uint8_t *bytes, size_t length,
                       struct problem *ret_problem);
bool blob_client_get_pieces(struct blob_client *client, const struct hash32 *hash,
                            const struct id128 *job, uint64_t cap, blob_take *take, void *context,
                            enum reject_code *ret_reject, struct problem *ret_problem);
/* Fetches several blobs in pieces, each of at most `size` bytes. Each has its own context for
 * `take`. Small blobs are requested ahead and come first. Large ones of a broker on this machine
 * come two at a time, so `take` may run for both at once. The first failure ends the call, and
 * *ret_failed is its index. Any of the others may have arrived. */
struct blob_want {
    struct hash32 hash;
    uint64_t size;
    void *context;
};
bool blob_client_get_many(struct blob_client *client, const struct blob_want *wants, size_t count,
                          const struct id128 *job, blob_take *take, size_t *ret_failed,
                          enum reject_code *ret_reject, struct problem *ret_problem);
/* Asks which blobs the broker has lost while they are wanted, at most `limit`. They are the
 * sender's own (`job` NULL), or those that a lease of the job lets it read. The question also tells
 * the broker that the sender may send them again. Returns false when no answer came. */
enum { BLOB_LOST_MAX = 64 }; /* the broker names no more at a time */
bool blob_client_lost(struct blob_client *client, const struct id128 *job,
                      struct hash32 *ret_hashes, size_t limit, size_t *ret_count,
                      struct problem *ret_problem);
/* Asks which of these blobs the sender would have to store; ret_lacks[i] belongs to hashes[i]. */
bool blob_client_lacks(struct blob_client *client, const struct hash32 *hashes, size_t count,
                       bool *ret_lacks, struct problem *ret_problem);
/* Lets another thread interrupt a blocking call: the call fails soon, and so does every later
 * one. */
void blob_client_interrupt(struct blob_client *client);

#endif
