#include "broker/copies/copy_fetch.h"

#include <stdlib.h>
#include <unistd.h>

enum blob_status copy_fetch_put(struct blob_store *store, const struct hash32 *hash,
                                const uint8_t *bytes, size_t length)
{
    const struct blob_chunk chunk = {
        .account = BLOB_NOBODY, .hash = *hash, .size = length, .data = bytes, .length = length};
    uint64_t stored = 0;
    bool is_complete = false;
    return blob_store_put(store, &chunk, 0, &stored, &is_complete);
}

/* Ends the transaction. A disk without room refuses; any other failure of it is final. */
static enum copy_fetch end(struct blob_store *store, enum blob_status status,
                           struct problem *ret_problem)
{
    if (status == BLOB_OK) {
        status = blob_store_commit(store);
    }
    if (status == BLOB_OK) {
        return COPY_FETCH_DONE;
    }
    problem_set(ret_problem, "%.300s",
                status == BLOB_WRONG_HASH ? "the bytes do not have the hash"
                                          : blob_store_error(store));
    blob_store_undo(store);
    return status == BLOB_FAILED ? COPY_FETCH_FAILED : COPY_FETCH_REFUSED;
}

static enum copy_fetch refusal_of(enum reject_code reject)
{
    return reject == REJECT_NONE ? COPY_FETCH_LOST_LINK : COPY_FETCH_REFUSED;
}

static enum copy_fetch fetch_small(struct blob_store *store, struct blob_client *client,
                                   const struct hash32 *hash, uint64_t size,
                                   struct problem *ret_problem)
{
    enum reject_code reject = REJECT_NONE;
    uint8_t *bytes = NULL;
    size_t length = 0;
    if (!blob_client_get_bytes(client, hash, NULL, size, &bytes, &length, &reject, ret_problem)) {
        return refusal_of(reject);
    }
    enum blob_status status = blob_store_begin(store);
    status = status == BLOB_OK ? copy_fetch_put(store, hash, bytes, length) : status;
    free(bytes);
    return end(store, status, ret_problem);
}

enum copy_fetch copy_fetch(struct blob_store *store, struct blob_client *client,
                           const struct hash32 *hash, uint64_t size, struct problem *ret_problem)
{
    size_t upload = 0;
    int fd = -1;
    if (size <= BLOB_ROW_BYTES) {
        return fetch_small(store, client, hash, size, ret_problem);
    }
    const enum blob_status lent =
        blob_store_lend(store, BLOB_NOBODY, NULL, hash, size, &upload, &fd);
    if (lent != BLOB_OK) {
        problem_set(ret_problem, "%.300s", blob_store_error(store));
        return lent == BLOB_FAILED ? COPY_FETCH_FAILED : COPY_FETCH_REFUSED;
    }
    enum reject_code reject = REJECT_NONE;
    uint64_t came = 0;
    int error = 0;
    const bool is_here =
        blob_client_get(client, hash, NULL, size, fd, &came, &reject, &error, ret_problem);
    struct problem unused;
    enum blob_status status = blob_store_begin(store);
    status =
        status == BLOB_OK ? blob_store_take_back(store, upload, is_here && came == size) : status;
    const enum copy_fetch ended = end(store, status, is_here ? ret_problem : &unused);
    return is_here || ended == COPY_FETCH_FAILED || error != 0 ? ended : refusal_of(reject);
}

/* Describes a blob as a source. The caller frees *ret_bytes, and closes the descriptor. */
static bool describe(struct blob_store *store, const struct hash32 *hash,
                     struct blob_source *ret_source, uint8_t **ret_bytes)
{
    uint64_t size = 0;
    size_t length = 0;
    bool is_hashed;
    *ret_source = (struct blob_source){.hash = *hash, .fd = -1};
    *ret_bytes = NULL;
    if (blob_store_get(store, hash, 0, 0, NULL, &length, &size) != BLOB_OK) {
        return false;
    }
    ret_source->size = size;
    if (size > BLOB_ROW_BYTES) {
        return blob_store_file(store, hash, &ret_source->fd, &is_hashed) == BLOB_OK;
    }
    *ret_bytes = malloc((size_t)size + 1);
    ret_source->bytes = *ret_bytes;
    return *ret_bytes != NULL &&
           blob_store_get(store, hash, 0, (size_t)size, *ret_bytes, &length, &size) == BLOB_OK;
}

enum copy_fetch copy_fetch_send(struct blob_store *store, struct blob_client *client,
                                const struct hash32 *hash, struct problem *ret_problem)
{
    struct blob_source source;
    uint8_t *bytes;
    enum reject_code reject = REJECT_NONE;
    bool is_unread = false;
    enum copy_fetch result = COPY_FETCH_REFUSED;
    if (describe(store, hash, &source, &bytes)) {
        const bool is_sent =
            blob_client_put(client, &source, 1, NULL, NULL, NULL, &reject, &is_unread, ret_problem);
        result = is_sent ? COPY_FETCH_DONE : is_unread ? COPY_FETCH_REFUSED : refusal_of(reject);
    }
    if (source.fd >= 0) {
        (void)close(source.fd); /* only read */
    }
    free(bytes);
    return result;
}
