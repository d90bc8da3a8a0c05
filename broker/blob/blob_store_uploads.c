/* Uploads to the blob store are written in partial/ and moved in when they are whole. */
#include "broker/blob/blob_store_internal.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "base/text.h"
#include "broker/blob/blob_damage.h"
#include "runtime/files.h"
#include "runtime/hasher.h"
#include "runtime/stamp.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITEBACK_BYTES = 8 << 20 };

/* The path fits: the store's folder leaves 256 bytes of PATH_SIZE. */
static void partial_path(const struct blob_store *store, const struct partial *partial,
                         char ret_path[PATH_SIZE])
{
    char hex[HEX_SIZE];
    text_hex(partial->hash.bytes, sizeof partial->hash.bytes, hex);
    if (partial->is_for_lease) {
        char job[2 * sizeof partial->lease.holder.job.bytes + 1];
        text_hex(partial->lease.holder.job.bytes, sizeof partial->lease.holder.job.bytes, job);
        (void)snprintf(ret_path, PATH_SIZE, "%s/partial/%u-%s-%s", store->folder,
                       partial->lease.holder.provider, job, hex);
        return;
    }
    (void)snprintf(ret_path, PATH_SIZE, "%s/partial/%u-%s", store->folder, partial->account, hex);
}

static void blob_folder(const struct blob_store *store, const struct hash32 *hash,
                        char ret_path[PATH_SIZE])
{
    (void)snprintf(ret_path, PATH_SIZE, "%s/%02x", store->folder, hash->bytes[0]);
}

void blob_store_drop_partial(struct blob_store *store, struct partial *partial)
{
    char path[PATH_SIZE];
    partial_path(store, partial, path);
    (void)close(partial->fd);
    (void)unlink(path); /* the next start removes a file that stays */
    *partial = (struct partial){0};
}

static bool is_same_holder(const struct blob_holder *one, const struct blob_holder *other)
{
    return one->provider == other->provider && id128_equal(&one->job, &other->job);
}

/* Returns true for an upload by the account for itself. With a lease, returns true for an upload by
 * the lease's provider for the lease's job. */
static bool is_upload_of(const struct partial *partial, uint32_t account,
                         const struct blob_lease *lease)
{
    return partial->is_used && partial->account == account &&
           partial->is_for_lease == (lease != NULL) &&
           (lease == NULL || is_same_holder(&partial->lease.holder, &lease->holder));
}

/* Returns true for an upload by the same sender: the account itself, or a provider for any job. */
static bool is_of_sender(const struct partial *partial, uint32_t account,
                         const struct blob_lease *lease)
{
    return partial->is_used && partial->is_for_lease == (lease != NULL) &&
           (lease == NULL ? partial->account == account
                          : partial->lease.holder.provider == lease->holder.provider);
}

static struct partial *find_partial(struct blob_store *store, uint32_t account,
                                    const struct blob_lease *lease, const struct hash32 *hash)
{
    for (size_t i = 0; i < BLOB_PARTIALS_MAX; i++) {
        struct partial *partial = &store->partials[i];
        if (is_upload_of(partial, account, lease) && hash32_equal(&partial->hash, hash)) {
            return partial;
        }
    }
    return NULL;
}

/* Returns the bytes promised to unfinished uploads, which are those of is_upload_of; *ret_count is
 * their number. */
static uint64_t reserved(const struct blob_store *store, uint32_t account,
                         const struct blob_lease *lease, unsigned *ret_count)
{
    uint64_t bytes = 0;
    *ret_count = 0;
    for (size_t i = 0; i < BLOB_PARTIALS_MAX; i++) {
        if (is_upload_of(&store->partials[i], account, lease)) {
            bytes += store->partials[i].size;
            (*ret_count)++;
        }
    }
    return bytes;
}

/* Returns OK when the blob keeps the caps of the lease. Until a result names the blob, it counts
 * against the lease and against no quota. */
static enum blob_status may_hold(const struct blob_store *store, uint32_t account,
                                 const struct blob_lease *lease, uint64_t size)
{
    unsigned count = 0;
    const struct blob_holding held = blob_pending_of(store->pending, &lease->holder);
    const uint64_t bytes = held.bytes + reserved(store, account, lease, &count);
    if (held.count + count >= lease->count_most || bytes > lease->bytes_most ||
        size > lease->bytes_most - bytes) {
        return BLOB_OVER_LEASE;
    }
    return BLOB_OK;
}

/* Returns OK when the blob fits. A blob that is stored already, also a lost one, counts already. A
 * provider stores nothing for an owner whose quota is full. */
static enum blob_status may_store(struct blob_store *store, uint32_t account,
                                  const struct blob_lease *lease, const struct hash32 *hash,
                                  uint64_t size)
{
    unsigned count = 0;
    int64_t usage = 0;
    if (account == BLOB_NOBODY) {
        return BLOB_OK; /* the broker that sends it has kept the bounds */
    }
    if (size > (uint64_t)store->size_bytes) {
        return BLOB_TOO_LARGE;
    }
    enum blob_status status = blob_store_is_stored_by(store, account, lease, hash);
    if (status != BLOB_NOT_FOUND) {
        return status;
    }
    status = blob_store_usage(store, account, &usage);
    if (status != BLOB_OK) {
        return status;
    }
    uint64_t taken = (uint64_t)usage + reserved(store, account, NULL, &count);
    if (taken > (uint64_t)store->quota_bytes || size > (uint64_t)store->quota_bytes - taken) {
        return BLOB_OVER_QUOTA;
    }
    return lease == NULL ? BLOB_OK : may_hold(store, account, lease, size);
}

static enum blob_status open_partial(struct blob_store *store, uint32_t account,
                                     const struct blob_lease *lease, const struct hash32 *hash,
                                     uint64_t size, struct partial **ret_partial)
{
    unsigned count = 0;
    struct partial *place = NULL;
    for (size_t i = 0; i < BLOB_PARTIALS_MAX; i++) {
        place = store->partials[i].is_used ? place : &store->partials[i];
        count += is_of_sender(&store->partials[i], account, lease);
    }
    if (place == NULL || count >= BLOB_PARTIALS_PER_ACCOUNT) {
        return BLOB_TOO_MANY;
    }
    struct partial partial = {
        .is_used = true, .account = account, .hash = *hash, .size = size, .fd = -1};
    if (lease != NULL) {
        partial.is_for_lease = true;
        partial.lease = *lease;
    }
    char path[PATH_SIZE];
    partial_path(store, &partial, path);
    partial.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (partial.fd < 0) {
        return blob_store_failed(store, path);
    }
    sha256_start(&partial.hasher);
    *place = partial;
    *ret_partial = place;
    return BLOB_OK;
}

/* Starts to write to the disk while the rest is still on its way, so that fsync has little to wait
 * for at the end. */
static void begin_writeback(const struct partial *partial, size_t length)
{
    uint64_t before = partial->stored - partial->stored % WRITEBACK_BYTES;
    uint64_t after = partial->stored + length;
    after -= after % WRITEBACK_BYTES;
    if (after > before) { /* this is a hint, and fsync reports failures */
        (void)sync_file_range(partial->fd, (off_t)before, (off_t)(after - before),
                              SYNC_FILE_RANGE_WRITE);
    }
}

/* Every failed fsync ends the broker, whatever its reason (P11). */
static enum blob_status sync_failed(struct blob_store *store, const char *path)
{
    (void)blob_store_failed(store, path);
    return BLOB_FAILED;
}

static enum blob_status sync_folder(struct blob_store *store, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return blob_store_failed(store, path);
    }
    enum blob_status status = fsync(fd) == 0 ? BLOB_OK : sync_failed(store, path);
    (void)close(fd);
    return status;
}

/* Makes the folder of a blob. Its name is durable before a file is in it. */
static enum blob_status make_folder(struct blob_store *store, const char *path)
{
    if (mkdir(path, 0700) != 0) {
        return errno == EEXIST ? BLOB_OK : blob_store_failed(store, path);
    }
    enum blob_status status = sync_folder(store, store->folder);
    if (status != BLOB_OK) {
        (void)rmdir(path); /* the next upload would take the folder for durable */
    }
    return status;
}

/* Notes how the file looks under its own name; nothing changes the file after that. */
static void note_hashed(struct blob_store *store, const struct partial *partial)
{
    struct hashed_file *file = &store->hashed[store->hashed_next];
    store->hashed_next = (store->hashed_next + 1) % BLOB_HASHED_MAX;
    file->hash = partial->hash;
    (void)stamp_take(partial->fd, &file->stamp); /* a stamp that failed is not known */
}

/* Moves a file from partial/ to its own name: bytes, then name, then folder become durable. */
static enum blob_status move_in(struct blob_store *store, const struct partial *partial)
{
    char from[PATH_SIZE];
    char to[PATH_SIZE];
    char folder[PATH_SIZE];
    partial_path(store, partial, from);
    blob_store_path(store, &partial->hash, to);
    blob_folder(store, &partial->hash, folder);
    enum blob_status status = make_folder(store, folder);
    if (status != BLOB_OK) {
        return status;
    }
    if (fsync(partial->fd) != 0) {
        return sync_failed(store, from);
    }
    if (rename(from, to) != 0) {
        return blob_store_failed(store, to);
    }
    note_hashed(store, partial);
    return sync_folder(store, folder);
}

static bool is_right(struct partial *partial)
{
    struct hash32 hash = sha256_end(&partial->hasher);
    return hash32_equal(&hash, &partial->hash);
}

static enum blob_status finish(struct blob_store *store, struct partial *partial, bool has_hash)
{
    enum blob_status status = has_hash ? blob_store_find(store, &partial->hash) : BLOB_WRONG_HASH;
    if (status == BLOB_OK && blob_store_health(store, &partial->hash) != BLOB_HEALTH_GOOD) {
        status = BLOB_NOT_FOUND; /* the new file takes the place of the lost one */
    }
    status = status == BLOB_NOT_FOUND ? move_in(store, partial) : status;
    if (status == BLOB_OK) {
        status = blob_store_insert(store, partial->account,
                                   partial->is_for_lease ? &partial->lease : NULL, &partial->hash,
                                   partial->size, NULL);
    }
    blob_store_drop_partial(store, partial); /* its file was moved in, or is not wanted */
    return status;
}

/* Hashes the chunk while it is written. */
static enum blob_status take_chunk(struct blob_store *store, struct partial *partial,
                                   const struct blob_chunk *chunk)
{
    if (store->hasher == NULL && chunk->length >= HASHER_LEAST_BYTES) {
        store->hasher = hasher_create();
    }
    hasher_begin(store->hasher, &partial->hasher, chunk->data, chunk->length);
    bool is_written = file_write_at(partial->fd, chunk->data, chunk->length, chunk->offset);
    int error = errno;
    hasher_finish(store->hasher);
    errno = error;
    return is_written ? BLOB_OK : blob_store_failed(store, "an upload could not be written");
}

static enum blob_status append(struct blob_store *store, const struct blob_chunk *chunk,
                               int64_t now_ns, uint64_t *ret_stored, bool *ret_complete)
{
    struct partial *partial = find_partial(store, chunk->account, chunk->lease, &chunk->hash);
    uint64_t stored = partial == NULL ? 0 : partial->stored;
    if (partial != NULL && partial->is_lent) {
        return BLOB_TOO_MANY; /* the stream will bring the blob or give the upload back */
    }
    if (chunk->offset != stored || (partial != NULL && partial->size != chunk->size)) {
        *ret_stored = stored;
        return BLOB_WRONG_OFFSET;
    }
    if (partial == NULL) {
        enum blob_status status =
            may_store(store, chunk->account, chunk->lease, &chunk->hash, chunk->size);
        status = status == BLOB_OK ? open_partial(store, chunk->account, chunk->lease, &chunk->hash,
                                                  chunk->size, &partial)
                                   : status;
        if (status != BLOB_OK) {
            return status;
        }
    }
    enum blob_status status = take_chunk(store, partial, chunk);
    if (status != BLOB_OK) {
        blob_store_drop_partial(store, partial);
        return status;
    }
    begin_writeback(partial, chunk->length);
    partial->stored += chunk->length;
    partial->touched_ns = now_ns;
    *ret_stored = partial->stored;
    *ret_complete = partial->stored == partial->size;
    return *ret_complete ? finish(store, partial, is_right(partial)) : BLOB_OK;
}

static enum blob_status put_whole(struct blob_store *store, const struct blob_chunk *chunk)
{
    struct hash32 hash = sha256_of(chunk->data, chunk->length);
    if (!hash32_equal(&hash, &chunk->hash)) {
        return BLOB_WRONG_HASH;
    }
    enum blob_status status =
        may_store(store, chunk->account, chunk->lease, &chunk->hash, chunk->size);
    static const uint8_t nothing;
    return status == BLOB_OK
               ? blob_store_insert(store, chunk->account, chunk->lease, &hash, chunk->size,
                                   chunk->length == 0 ? &nothing : chunk->data)
               : status;
}

enum blob_status blob_store_put(struct blob_store *store, const struct blob_chunk *chunk,
                                int64_t now_ns, uint64_t *ret_stored, bool *ret_complete)
{
    *ret_stored = 0;
    *ret_complete = false;
    if (chunk->size > INT64_MAX || chunk->offset > chunk->size ||
        chunk->length > chunk->size - chunk->offset) {
        return BLOB_MALFORMED;
    }
    enum blob_status owned = blob_store_has(store, chunk->account, chunk->lease, &chunk->hash);
    if (owned == BLOB_FAILED) {
        return owned;
    }
    if (owned == BLOB_OK) {
        *ret_stored = chunk->size;
        *ret_complete = true;
        return BLOB_OK;
    }
    bool is_whole = chunk->offset == 0 && chunk->length == chunk->size;
    if (is_whole && chunk->size <= BLOB_ROW_BYTES) {
        enum blob_status status = put_whole(store, chunk);
        *ret_complete = status == BLOB_OK;
        *ret_stored = *ret_complete ? chunk->size : 0;
        return status;
    }
    if (chunk->length == 0) {
        return BLOB_MALFORMED; /* an upload of empty chunks would never end */
    }
    return append(store, chunk, now_ns, ret_stored, ret_complete);
}

enum blob_status blob_store_lend(struct blob_store *store, uint32_t account,
                                 const struct blob_lease *lease, const struct hash32 *hash,
                                 uint64_t size, size_t *ret_upload, int *ret_fd)
{
    struct partial *partial = NULL;
    if (find_partial(store, account, lease, hash) != NULL) {
        return BLOB_TOO_MANY;
    }
    enum blob_status status =
        size > INT64_MAX ? BLOB_MALFORMED : may_store(store, account, lease, hash, size);
    status = status == BLOB_OK ? open_partial(store, account, lease, hash, size, &partial) : status;
    if (status == BLOB_OK) {
        partial->is_lent = true;
        *ret_upload = (size_t)(partial - store->partials);
        *ret_fd = partial->fd;
    }
    return status;
}

enum blob_status blob_store_take_back(struct blob_store *store, size_t upload, bool is_whole)
{
    assert(upload < BLOB_PARTIALS_MAX);
    struct partial *partial = &store->partials[upload];
    assert(partial->is_lent);
    return finish(store, partial, is_whole);
}

void blob_store_expire(struct blob_store *store, int64_t now_ns)
{
    for (size_t i = 0; i < BLOB_PARTIALS_MAX; i++) {
        struct partial *partial = &store->partials[i];
        if (partial->is_used && !partial->is_lent &&
            now_ns - partial->touched_ns > BLOB_PARTIAL_IDLE_S * NS_PER_S) {
            blob_store_drop_partial(store, partial);
        }
    }
}
