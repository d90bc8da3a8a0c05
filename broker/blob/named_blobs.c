#include "broker/blob/named_blobs.h"

#include "base/array.h"
#include "base/id.h"
#include "protocol/codec.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_MOST = 4 << 20 }; /* hashes in memory: 128 MiB */

struct hashes {
    struct hash32 *items;
    size_t count, capacity;
    bool is_full, failed;
};

static void add(struct hashes *hashes, const uint8_t *bytes)
{
    if (hashes->count == NAMED_MOST) {
        hashes->is_full = true;
        return;
    }
    struct hash32 *items =
        array_with_room(hashes->items, hashes->count, &hashes->capacity, sizeof *items);
    if (items == NULL) {
        hashes->failed = true;
        return;
    }
    hashes->items = items;
    memcpy(hashes->items[hashes->count++].bytes, bytes, sizeof hashes->items->bytes);
}

static void add_output(struct hashes *hashes, const Bourse__V1__Output *output)
{
    if (output != NULL && output->size > 0) {
        add(hashes, output->hash.data);
    }
}

static void add_result(struct hashes *hashes, const void *bytes, size_t length)
{
    Bourse__V1__Result *result = NULL;
    if (codec_decode_result(bytes, length, &result, NULL) != CODEC_OK) {
        return; /* a damaged row names nothing */
    }
    for (size_t i = 0; i < result->n_outputs; i++) {
        add_output(hashes, result->outputs[i]);
    }
    add_output(hashes, result->standard_output);
    add_output(hashes, result->standard_error);
    ProtobufCMessage *message = &result->base;
    codec_free(&message);
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct hash32));
}

static uint64_t different(struct hashes *hashes)
{
    uint64_t count = 0;
    if (hashes->count > 0) {
        qsort(hashes->items, hashes->count, sizeof *hashes->items, by_bytes);
    }
    for (size_t i = 0; i < hashes->count; i++) {
        count += i == 0 || !hash32_equal(&hashes->items[i - 1], &hashes->items[i]);
    }
    return count;
}

static bool count_jobs(sqlite3 *database, struct named_blobs *named)
{
    sqlite3_stmt *select = NULL;
    const bool good =
        sqlite3_prepare_v2(database, "SELECT count(*), count(DISTINCT manifest) FROM jobs", -1,
                           &select, NULL) == SQLITE_OK &&
        sqlite3_step(select) == SQLITE_ROW;
    if (good) {
        named->jobs = (uint64_t)sqlite3_column_int64(select, 0);
        named->manifests = (uint64_t)sqlite3_column_int64(select, 1);
    }
    (void)sqlite3_finalize(select); /* read only */
    return good;
}

static bool count_outputs(sqlite3 *database, struct named_blobs *named)
{
    struct hashes hashes = {.count = 0};
    sqlite3_stmt *select = NULL;
    int code = sqlite3_prepare_v2(database, "SELECT bytes FROM results", -1, &select, NULL);
    while (code == SQLITE_OK && !hashes.is_full && !hashes.failed &&
           sqlite3_step(select) == SQLITE_ROW) {
        const void *bytes = sqlite3_column_blob(select, 0);
        if (bytes != NULL) {
            add_result(&hashes, bytes, (size_t)sqlite3_column_bytes(select, 0));
        }
    }
    (void)sqlite3_finalize(select); /* read only */
    named->outputs = different(&hashes);
    named->is_partial = hashes.is_full;
    free(hashes.items);
    return code == SQLITE_OK && !hashes.failed;
}

bool named_blobs_count(const char *database, struct named_blobs *ret_named)
{
    sqlite3 *ledger = NULL;
    *ret_named = (struct named_blobs){.jobs = 0};
    const bool good = sqlite3_open_v2(database, &ledger, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
                      sqlite3_busy_timeout(ledger, 2000) == SQLITE_OK &&
                      count_jobs(ledger, ret_named) &&
                      (ret_named->jobs == 0 || count_outputs(ledger, ret_named));
    (void)sqlite3_close(ledger); /* read only */
    return good;
}
