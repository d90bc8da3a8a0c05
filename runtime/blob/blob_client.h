/* runtime/blob/blob_client.h - puts and gets blobs over the blob port: chunked, resumable, several
 * in flight.
 *
 * Blocking calls for a thread of their own; each owns its link. A put returns only when the broker
 * has the bytes durably. Hashes are checked at both ends.
 *
 * The blob port has no Hello and no session: every request stands alone, with session 0 and a fresh
 * id, and is answered under that id (BlobMissing, BlobStored, BlobData, or Reject). The sender is
 * the account of the connection's key. A BlobPut that does not start where the stored bytes end is
 * refused with BLOB_OFFSET and the place to go on from in `value` (all of it: the blob is there).
 * The answers to the BlobGets of one blob come in the order asked. The blob of no bytes exists
 * everywhere and is never sent. docs/protocol.md section 8. */
#ifndef BOURSE_RUNTIME_BLOB_BLOB_CLIENT_H
#define BOURSE_RUNTIME_BLOB_BLOB_CLIENT_H

#include "base/id.h"
#include "base/problem.h"
#include "protocol/identity.h"
#include "protocol/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob_client;

bool blob_client_open(void *context, const char *endpoint, const struct key32 *server,
                      const struct identity *identity, struct blob_client **ret_client,
                      struct problem *ret_problem);
void blob_client_close(struct blob_client **self);

/* Writes `length` bytes from `offset` of blob `index` to ret_bytes. */
typedef bool blob_read(void *context, size_t index, uint64_t offset, size_t length,
                       uint8_t *ret_bytes, struct problem *ret_problem);
/* Where the bytes of blob `index` from `offset` on lie as they are, so many of them together.
 * False: in no file. */
struct blob_place {
    int fd;
    uint64_t at, length;
};
typedef bool blob_locate(void *context, size_t index, uint64_t offset,
                         struct blob_place *ret_place);
struct blob_source { /* what to store: a descriptor (read with pread), memory, or what `read` makes
                      */
    struct hash32 hash;
    uint64_t size;
    int fd;               /* -1: memory, or made */
    const uint8_t *bytes; /* NULL: made */
    blob_read *read;
    blob_locate *locate; /* NULL, or for some of what `read` makes: it need not be read by us */
    void *context;
    size_t index;
};
/* Stores `count` blobs, asking first which the broker lacks. `job` (NULL: own) names the job for
 * whose owner a provider stores. `progress` (may be NULL) is told of bytes done. False with the
 * problem and, when the broker refused, *ret_reject (REJECT_NONE when it was something else);
 * *ret_unread (may be NULL) tells whether a source could not be read as far as its size. Safe to
 * repeat. */
typedef void blob_progress(void *context, uint64_t done_bytes, uint64_t total_bytes);
bool blob_client_put(struct blob_client *client, const struct blob_source *sources, size_t count,
                     const struct id128 *job, blob_progress *progress, void *context,
                     enum reject_code *ret_reject, bool *ret_unread, struct problem *ret_problem);

/* Fetches one blob of at most `cap` bytes into `fd` (written from offset 0), verifying the hash.
 * *ret_size is its size, also when false (0: not known). *ret_errno is why `fd` could not be
 * written, 0 when it was not that. */
bool blob_client_get(struct blob_client *client, const struct hash32 *hash, const struct id128 *job,
                     uint64_t cap, int fd, uint64_t *ret_size, enum reject_code *ret_reject,
                     int *ret_errno, struct problem *ret_problem);
/* The blob as an open file of a broker on this machine, to be read only, for the caller to close;
 * *ret_size is its size, `cap` at most. What is read of it is to be hashed as it is read, for it is
 * another's; *ret_is_hashed (may be NULL): unless root or our own user is believed to have done so
 * (runtime/descriptor.h). -1: it is not to be had so, for whatever reason. */
int blob_client_borrow(struct blob_client *client, const struct hash32 *hash,
                       const struct id128 *job, uint64_t cap, uint64_t *ret_size,
                       bool *ret_is_hashed);
/* The same into memory that the caller frees. */
bool blob_client_get_bytes(struct blob_client *client, const struct hash32 *hash,
                           const struct id128 *job, uint64_t cap, uint8_t **ret_bytes,
                           size_t *ret_length, enum reject_code *ret_reject,
                           struct problem *ret_problem);
/* The same, each piece given to `take` as it comes: one at a time and in order, and all from 0
 * again after a lost connection. Two threads may take turns in giving them. The first piece holds a
 * MiB of the blob, or all of it. What was taken is the blob only when the call ends well: the hash
 * is known at the end. False from `take`, with its problem, ends the call. */
typedef bool blob_take(void *context, uint64_t offset, const uint8_t *bytes, size_t length,
                       struct problem *ret_problem);
bool blob_client_get_pieces(struct blob_client *client, const struct hash32 *hash,
                            const struct id128 *job, uint64_t cap, blob_take *take, void *context,
                            enum reject_code *ret_reject, struct problem *ret_problem);
/* The same for several, each of at most `size` bytes, with a context of its own for `take`; small
 * ones are asked for ahead, and come first; large ones of a broker on this machine come two at a
 * time, so that `take` is called for both at once. The first failure ends the call: *ret_failed is
 * whose. Any of the others may have come. */
struct blob_want {
    struct hash32 hash;
    uint64_t size;
    void *context;
};
bool blob_client_get_many(struct blob_client *client, const struct blob_want *wants, size_t count,
                          const struct id128 *job, blob_take *take, size_t *ret_failed,
                          enum reject_code *ret_reject, struct problem *ret_problem);
/* Which blobs the broker has lost while somebody asks for them: `limit` at most, of the sender's
 * own (`job` NULL), or of those that a lease of the job lets it read. Who asks has told the broker
 * that it may send them again. False: no answer to one question. */
enum { BLOB_LOST_MAX = 64 }; /* the broker tells no more at a time */
bool blob_client_lost(struct blob_client *client, const struct id128 *job,
                      struct hash32 *ret_hashes, size_t limit, size_t *ret_count,
                      struct problem *ret_problem);
/* Which of these blobs the sender would have to store: ret_lacks[i] is of hashes[i]. */
bool blob_client_lacks(struct blob_client *client, const struct hash32 *hashes, size_t count,
                       bool *ret_lacks, struct problem *ret_problem);
/* Another thread asks a blocking call to give up soon; it then fails, and so does every later one.
 */
void blob_client_interrupt(struct blob_client *client);

#endif
