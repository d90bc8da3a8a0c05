#include "broker/blob/keeper/job_blobs.h"

#include "base/sha256.h"
#include "base/text.h"
#include "broker/core/release.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "protocol/results.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE_ROWS = 256, PAGE_BYTES = 8 << 20, PATH_SIZE = 4096, HEX_SIZE = 65 };

static bool visit_row(const struct ledger_outcome_row *row, job_blobs_visitor *visit, void *context)
{
    struct hash32 hashes[RESULTS_BLOBS_MAX];
    Bourse__V1__Result *result = NULL;
    if (codec_decode_result(row->result, row->result_length, &result, NULL) != CODEC_OK) {
        return true; /* a result that cannot be decoded names no blobs */
    }
    const unsigned which = release_names(row->status == ATTEMPT_ACCEPTED, result->outcome);
    codec_result_free(&result);
    const size_t count = results_blobs(row->result, row->result_length, which, hashes);
    return visit(context, hashes, count);
}

/* Visits the blobs of one page of a job's results, and frees the results. */
static bool visit_page(struct ledger_outcome_row *rows, size_t count, job_blobs_visitor *visit,
                       void *context)
{
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        good = good && visit_row(&rows[i], visit, context);
        free(rows[i].result);
    }
    return good;
}

bool job_blobs_of_results(struct ledger_reader *reader, const struct id128 *job,
                          job_blobs_visitor *visit, void *context)
{
    struct ledger_outcome_row *rows = calloc(PAGE_ROWS, sizeof *rows);
    bool good = rows != NULL;
    size_t count = 1;
    for (uint32_t from = 0; good && count > 0;) {
        good = ledger_reader_outcomes(reader, job, from, PAGE_ROWS, PAGE_BYTES, rows, &count) ==
                   LEDGER_STORE_OK &&
               visit_page(rows, count, visit, context);
        from = good && count > 0 ? rows[count - 1].index + 1 : from;
    }
    count = 1;
    for (uint64_t from = 0; good && count > 0;) {
        good = ledger_reader_others(reader, job, from, PAGE_ROWS, PAGE_BYTES, rows, &count) ==
                   LEDGER_STORE_OK &&
               visit_page(rows, count, visit, context);
        from = good && count > 0 ? rows[count - 1].entry + 1 : from;
    }
    free(rows);
    return good;
}

/* ---------------------------------------------------------------- the manifest */

static enum job_blobs_status hash_of_entry(sqlite3 *ledger, uint64_t entry, struct hash32 *ret_hash)
{
    sqlite3_stmt *select = NULL;
    enum job_blobs_status status = JOB_BLOBS_FAILED;
    if (sqlite3_prepare_v2(ledger, "SELECT manifest FROM jobs WHERE entry = ?1", -1, &select,
                           NULL) == SQLITE_OK) {
        (void)sqlite3_bind_int64(select, 1, (sqlite3_int64)entry);
        if (sqlite3_step(select) == SQLITE_ROW &&
            sqlite3_column_bytes(select, 0) == (int)sizeof ret_hash->bytes) {
            memcpy(ret_hash->bytes, sqlite3_column_blob(select, 0), sizeof ret_hash->bytes);
            status = JOB_BLOBS_OK;
        }
    }
    (void)sqlite3_finalize(select); /* only read */
    return status;
}

static enum job_blobs_status read_file(const struct job_blobs_store *store,
                                       const struct hash32 *hash, uint8_t *bytes, size_t size)
{
    char path[PATH_SIZE];
    char hex[HEX_SIZE];
    text_hex(hash->bytes, sizeof hash->bytes, hex);
    (void)snprintf(path, sizeof path, "%s/%.2s/%s", store->folder, hex, hex);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT ? JOB_BLOBS_LOST : JOB_BLOBS_FAILED;
    }
    size_t length = 0;
    ssize_t got = 1;
    while (length < size && (got = read(fd, bytes + length, size - length)) > 0) {
        length += (size_t)got;
    }
    (void)close(fd); /* only read */
    return length == size ? JOB_BLOBS_OK : got < 0 ? JOB_BLOBS_FAILED : JOB_BLOBS_LOST;
}

/* Reads the bytes of a blob of at most LIMIT_MANIFEST_BYTES, which the caller frees. */
static enum job_blobs_status read_bytes(const struct job_blobs_store *store,
                                        const struct hash32 *hash, uint8_t **ret_bytes,
                                        size_t *ret_length)
{
    sqlite3_stmt *select = NULL;
    enum job_blobs_status status = JOB_BLOBS_FAILED;
    int code = sqlite3_prepare_v2(store->database, "SELECT size, bytes FROM blob WHERE hash = ?1",
                                  -1, &select, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_bind_blob(select, 1, hash->bytes, sizeof hash->bytes, SQLITE_STATIC);
        code = sqlite3_step(select);
    }
    const sqlite3_int64 size = code == SQLITE_ROW ? sqlite3_column_int64(select, 0) : 0;
    if (code == SQLITE_DONE || size < 0 || size > LIMIT_MANIFEST_BYTES) {
        status = JOB_BLOBS_LOST;
    } else if (code == SQLITE_ROW) {
        uint8_t *bytes = malloc((size_t)size + 1);
        const void *row = sqlite3_column_blob(select, 1);
        if (bytes != NULL && row != NULL) {
            *ret_length = (size_t)sqlite3_column_bytes(select, 1);
            status = *ret_length <= (size_t)size ? JOB_BLOBS_OK : JOB_BLOBS_LOST;
            memcpy(bytes, row, status == JOB_BLOBS_OK ? *ret_length : 0);
        } else if (bytes != NULL) {
            *ret_length = (size_t)size;
            status = read_file(store, hash, bytes, (size_t)size);
        }
        *ret_bytes = bytes;
    }
    (void)sqlite3_finalize(select); /* only read */
    return status;
}

enum job_blobs_status job_blobs_manifest(struct ledger_reader *reader,
                                         const struct job_blobs_store *store, uint64_t entry,
                                         struct hash32 *ret_hash,
                                         Bourse__V1__Manifest **ret_manifest)
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    *ret_manifest = NULL;
    enum job_blobs_status status = hash_of_entry(ledger_reader_database(reader), entry, ret_hash);
    status = status == JOB_BLOBS_OK ? read_bytes(store, ret_hash, &bytes, &length) : status;
    if (status == JOB_BLOBS_OK) {
        const struct hash32 hash = sha256_of(bytes, length);
        switch (!hash32_equal(&hash, ret_hash)
                    ? CODEC_MALFORMED
                    : codec_decode_manifest(bytes, length, ret_manifest, NULL)) {
        case CODEC_OK:
            break;
        case CODEC_OUT_OF_MEMORY:
            status = JOB_BLOBS_FAILED;
            break;
        case CODEC_TOO_LARGE:
        case CODEC_UNKNOWN_TYPE:
        case CODEC_MALFORMED:
            status = JOB_BLOBS_LOST;
            break;
        }
    }
    free(bytes);
    return status;
}
