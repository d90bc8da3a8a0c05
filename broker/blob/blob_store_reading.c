/* Blobs are read from their rows or files here, and damage is noticed. */
#include "broker/blob/blob_store_internal.h"

#include "base/sha256.h"
#include "broker/blob/blob_damage.h"
#include "runtime/stamp.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

static bool looks_as_hashed(const struct blob_store *store, const struct hash32 *hash, int fd)
{
    bool found = false;
    for (size_t i = 0; i < BLOB_HASHED_MAX && !found; i++) {
        const struct hashed_file *file = &store->hashed[i];
        found = file->stamp.is_known && hash32_equal(&file->hash, hash) &&
                !stamp_has_changed(&file->stamp, fd);
    }
    return found;
}

static enum blob_status read_file(struct blob_store *store, const struct hash32 *hash,
                                  uint64_t offset, size_t length, uint8_t *ret_data)
{
    char path[PATH_SIZE];
    blob_store_path(store, hash, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT ? blob_store_lose(store, hash, strerror(ENOENT))
                               : blob_store_failed(store, path);
    }
    enum blob_status status = BLOB_OK;
    while (length > 0 && status == BLOB_OK) {
        ssize_t got = pread(fd, ret_data, length, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            status = got == 0 ? blob_store_lose(store, hash, "shorter than it was")
                              : blob_store_failed(store, path);
            break;
        }
        ret_data += got;
        length -= (size_t)got;
        offset += (uint64_t)got;
    }
    (void)close(fd); /* only read */
    return status;
}

enum blob_status blob_store_file(struct blob_store *store, const struct hash32 *hash, int *ret_fd,
                                 bool *ret_is_hashed)
{
    char path[PATH_SIZE];
    *ret_fd = -1;
    *ret_is_hashed = false;
    enum blob_status status = blob_store_look_for_damage(store, hash);
    if (status != BLOB_OK && status != BLOB_UNCHECKED) {
        return status;
    }
    blob_store_path(store, hash, path);
    *ret_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (*ret_fd < 0) {
        return errno == ENOENT ? blob_store_lose(store, hash, strerror(ENOENT))
                               : blob_store_failed(store, path);
    }
    *ret_is_hashed = looks_as_hashed(store, hash, *ret_fd);
    return status;
}

/* Hashes all bytes of a row, also when only some of them are wanted. */
static bool copy_row(sqlite3_stmt *row, const struct hash32 *hash, uint64_t size, uint64_t offset,
                     size_t length, uint8_t *ret_data)
{
    const uint8_t *bytes = sqlite3_column_blob(row, 1);
    const size_t count = (size_t)sqlite3_column_bytes(row, 1);
    const struct hash32 found = sha256_of(bytes, count);
    if (count != size || !hash32_equal(&found, hash)) {
        return false;
    }
    memcpy(ret_data, bytes + offset, length);
    return true;
}

static enum blob_status get_from_file(struct blob_store *store, const struct hash32 *hash,
                                      uint64_t offset, size_t length, uint64_t size,
                                      uint8_t *ret_data)
{
    enum blob_status status = read_file(store, hash, offset, length, ret_data);
    if (status == BLOB_OK &&
        !blob_damage_read(store->damage, hash, offset, ret_data, length, size)) {
        status = blob_store_lose(store, hash, blob_store_wrong_bytes);
    }
    return status;
}

enum blob_status blob_store_get(struct blob_store *store, const struct hash32 *hash,
                                uint64_t offset, size_t length, uint8_t *ret_data,
                                size_t *ret_length, uint64_t *ret_size)
{
    sqlite3_stmt *statement = blob_store_fresh(store, FIND);
    blob_store_bind_hash(statement, 1, hash);
    enum blob_status status = blob_store_look_up(store, statement);
    if (status != BLOB_OK) {
        (void)sqlite3_reset(statement); /* repeats the step's code */
        return status;
    }
    const uint64_t size = (uint64_t)sqlite3_column_int64(statement, 0);
    const bool is_file = sqlite3_column_type(statement, 1) == SQLITE_NULL;
    const size_t count = offset > size            ? 0
                         : length < size - offset ? length
                                                  : (size_t)(size - offset);
    const bool is_right =
        count == 0 || is_file || copy_row(statement, hash, size, offset, count, ret_data);
    (void)sqlite3_reset(statement);
    *ret_length = count;
    *ret_size = size;
    status = is_right ? blob_store_look_for_damage(store, hash)
                      : blob_store_lose(store, hash, blob_store_wrong_bytes);
    if (status == BLOB_OK && offset > size) {
        return BLOB_WRONG_OFFSET;
    }
    return status == BLOB_OK && count > 0 && is_file
               ? get_from_file(store, hash, offset, count, size, ret_data)
               : status;
}
