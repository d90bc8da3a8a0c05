/* Bytes of single blobs go from one broker to another here, in both directions. */
#ifndef BOURSE_BROKER_COPIES_COPY_FETCH_H
#define BOURSE_BROKER_COPIES_COPY_FETCH_H

#include "base/problem.h"
#include "broker/blob/blob_store.h"
#include "protocol/limits.h"
#include "runtime/blob/blob_client.h"

#include <stddef.h>
#include <stdint.h>

struct copy_hashes {
    struct hash32 list[LIMIT_BLOB_WANTS];
    size_t count;
};

enum copy_fetch {
    COPY_FETCH_DONE,
    COPY_FETCH_REFUSED,   /* who should have the blob does not, or its disk has no room */
    COPY_FETCH_LOST_LINK, /* with a problem: the other broker does not answer */
    COPY_FETCH_FAILED,    /* with a problem: this broker's disk failed */
};

/* Stores a small blob without an owner, between begin and commit. */
enum blob_status copy_fetch_put(struct blob_store *store, const struct hash32 *hash,
                                const uint8_t *bytes, size_t length);
/* Fetches a blob and makes it durable. The call never comes between begin and commit. */
enum copy_fetch copy_fetch(struct blob_store *store, struct blob_client *client,
                           const struct hash32 *hash, uint64_t size, struct problem *ret_problem);
/* Sends a blob of this store. REFUSED: it is not here, or the other broker does not take it. */
enum copy_fetch copy_fetch_send(struct blob_store *store, struct blob_client *client,
                                const struct hash32 *hash, struct problem *ret_problem);

#endif
