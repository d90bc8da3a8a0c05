/* The blobs of a day: they are stored, found again and counted here. */
#include "tests/crash/day_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/random.h"
#include "base/sha256.h"
#include "tests/crash/disk.h"

static void blob_bytes(uint32_t number, size_t size, uint8_t *ret_bytes)
{
    struct random random = random_seeded(number);
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        const uint64_t drawn = random_u64(&random);
        memcpy(ret_bytes + i, &drawn, size - i < sizeof drawn ? size - i : sizeof drawn);
    }
}

static void blobs_failed(struct day *day, const char *doing)
{
    MUST(disk_has_failed(), "%s: %s", doing, blob_store_error(day->blobs));
    day_end(DAY_STOPPED, "stopped: %s: %s", doing, blob_store_error(day->blobs));
}

/* One batch, as broker/blob/port/blobs.c makes them. Returns false without room or descriptor. */
static bool try_put(struct day *day, uint32_t account, const struct hash32 *hash,
                    const uint8_t *bytes, size_t size)
{
    if (blob_store_begin(day->blobs) != BLOB_OK) {
        blobs_failed(day, "blobs.db cannot be written");
    }
    bool is_complete = false;
    enum blob_status status = BLOB_OK;
    uint64_t stored = 0;
    size_t chunk_size = size <= BLOB_ROW_BYTES ? size : BLOB_CHUNK;
    while (!is_complete && status == BLOB_OK) {
        size_t left = size - (size_t)stored;
        struct blob_chunk chunk = {.account = account,
                                   .hash = *hash,
                                   .size = size,
                                   .offset = stored,
                                   .data = bytes + stored,
                                   .length = left < chunk_size ? left : chunk_size};
        status = blob_store_put(day->blobs, &chunk, 0, &stored, &is_complete);
    }
    MUST(status == BLOB_OK || status == BLOB_DISK_FULL || status == BLOB_TOO_MANY ||
             status == BLOB_FAILED,
         "a put was refused: %d", (int)status);
    if (status == BLOB_FAILED) {
        blobs_failed(day, "a blob could not be stored");
    }
    enum blob_status committed = blob_store_commit(day->blobs);
    if (committed == BLOB_FAILED) {
        blobs_failed(day, "blobs could not be committed");
    }
    return status == BLOB_OK && committed == BLOB_OK;
}

struct hash32 day_put(struct day *day, uint32_t account, uint32_t number, size_t size)
{
    static uint8_t bytes[BLOB_LARGE];
    MUST(size <= sizeof bytes, "a blob is too large");
    blob_bytes(number, size, bytes);
    struct hash32 hash = sha256_of(bytes, size);
    int tries = 0;
    while (!try_put(day, account, &hash, bytes, size)) {
        MUST(disk_has_failed(), "a put was put off without a reason");
        if (++tries == FULL_TRIES) {
            day_end(DAY_STOPPED, "stopped: no room or no descriptor for a blob");
        }
    }
    struct diary *diary = day->diary;
    MUST(diary->blob_count < DIARY_BLOBS_MAX, "the diary is full");
    diary->blobs[diary->blob_count] = (struct diary_blob){
        .changes = disk_change_count(), .account = account, .number = number, .size = size};
    diary->blob_count++;
    return hash;
}

void day_check_blob(struct day *day, const struct diary_blob *blob)
{
    static uint8_t expected[BLOB_LARGE];
    static uint8_t found[BLOB_LARGE];
    blob_bytes(blob->number, blob->size, expected);
    struct hash32 hash = sha256_of(expected, blob->size);
    size_t length = 0;
    uint64_t size = 0;
    enum blob_status status = BLOB_TOO_MANY;
    for (int tries = 0; status == BLOB_TOO_MANY && tries < FULL_TRIES; tries++) {
        status = blob_store_get(day->blobs, &hash, 0, blob->size, found, &length, &size);
        MUST(status != BLOB_TOO_MANY || disk_has_failed(), "a get was put off without a reason");
    }
    if (status == BLOB_TOO_MANY) {
        day_end(DAY_STOPPED, "stopped: no descriptor for a blob");
    }
    if (status == BLOB_FAILED) {
        blobs_failed(day, "a blob could not be read");
    }
    MUST(status == BLOB_OK, "blob %u is not there: %d", blob->number, (int)status);
    MUST(size == blob->size && length == size && memcmp(found, expected, length) == 0,
         "blob %u is not what was stored", blob->number);
    status = blob_store_owns(day->blobs, blob->account, &hash);
    if (status == BLOB_FAILED) {
        blobs_failed(day, "the owners of blobs could not be read");
    }
    MUST(status == BLOB_OK, "account %u lost its blob %u", blob->account, blob->number);
}

void day_check_usage(struct day *day, uint32_t account)
{
    int64_t owned = 0;
    static uint8_t bytes[BLOB_LARGE];
    for (uint32_t number = 1; number < 8; number++) {
        size_t sizes[] = {BLOB_SMALL, BLOB_LARGE};
        for (size_t i = 0; i < 2; i++) {
            blob_bytes(number, sizes[i], bytes);
            struct hash32 hash = sha256_of(bytes, sizes[i]);
            enum blob_status status = blob_store_owns(day->blobs, account, &hash);
            MUST(status != BLOB_FAILED, "the owners of blobs could not be read");
            owned += status == BLOB_OK ? (int64_t)sizes[i] : 0;
        }
    }
    int64_t usage = 0;
    MUST(blob_store_usage(day->blobs, account, &usage) == BLOB_OK && usage == owned,
         "account %u owns %" PRId64 " bytes and is charged for %" PRId64, account, owned, usage);
}

/* ---- the diary */

struct diary *diary_create(void)
{
    struct diary *diary =
        mmap(NULL, sizeof *diary, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (diary == MAP_FAILED) {
        day_end(DAY_WRONG, "no memory for a diary");
    }
    return diary;
}
