#include "broker/answer/measuring.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "base/text.h"
#include "ledger/store/sqlite_code.h"
#include "protocol/codec.h"
#include "runtime/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, SCHEMA = 2, SAMPLE_BYTES = 8, PACES_LATE = 1024 };

/* A known manifest was read before. The one used last is at the end. */
struct known {
    struct hash32 hash;
    Bourse__V1__Manifest *manifest; /* NULL: it cannot be read */
};

struct measuring {
    char path[PATH_SIZE], blobs[PATH_SIZE];
    struct measured *rows, *devices;
    struct paces *paces;
    /* The counts are of samples since the start: all, and those when paces were last found. */
    uint64_t added, paced_at;
    uint64_t entry; /* the last entry that was read from the ledger */
    bool has_begun, is_changed;
    bool is_kept; /* the file could not be opened, or is evidence: until the next start it stays */
    int64_t saved_ns;
    struct known known[MEASURING_JOBS];
    size_t known_count;
};

/* ---------------------------------------------------------------- history.db */

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS measured(name BLOB NOT NULL, size INTEGER NOT NULL, class TEXT NOT "
    "NULL, provider BLOB NOT NULL, device BLOB NOT NULL, age INTEGER NOT NULL, at_ns INTEGER NOT "
    "NULL, samples BLOB NOT NULL, PRIMARY KEY (name, size, class, provider, device)) STRICT, "
    "WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS mark(id INTEGER PRIMARY KEY CHECK (id = 1), entry INTEGER NOT "
    "NULL) STRICT;"
    "PRAGMA user_version = 2;";

/* Opens the file, and makes the tables of a new one. Returns false when this failed, or when the
 * file is no history of ours. The caller closes *ret_database in any case. */
static bool open_file(const char *path, sqlite3 **ret_database)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    bool good = sqlite3_open_v2(path, ret_database, flags, NULL) == SQLITE_OK;
    sqlite3 *database = *ret_database;
    sqlite3_stmt *version = NULL;
    (void)chmod(path, S_IRUSR | S_IWUSR); /* the folder is private, too */
    int number = -1;
    if (good &&
        sqlite3_prepare_v2(database, "PRAGMA user_version", -1, &version, NULL) == SQLITE_OK &&
        sqlite3_step(version) == SQLITE_ROW) {
        number = sqlite3_column_int(version, 0);
    }
    (void)sqlite3_finalize(version);
    /* A full disk does not keep a file from being read, so tables that are there are not written
     * again. */
    return good && (number == SCHEMA ||
                    (number == 0 && sqlite3_exec(database, schema, NULL, NULL, NULL) == SQLITE_OK));
}

static const char *why_not(sqlite3 *database)
{
    if (database == NULL) {
        return "out of memory";
    }
    switch (sqlite3_errcode(database) & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return "the content is not that of measured times";
    case SQLITE_READONLY:
        return "the file could not be opened for writing";
    default:
        return sqlite3_errmsg(database);
    }
}

/* Returns false when the row is invalid. */
static bool read_row(sqlite3_stmt *select, struct measured_row *ret_row)
{
    struct measured_row row = {.at_ns = sqlite3_column_int64(select, 3)};
    const void *name = sqlite3_column_blob(select, 0);
    const sqlite3_int64 size = sqlite3_column_int64(select, 1);
    const unsigned char *text = sqlite3_column_text(select, 2);
    const uint8_t *samples = sqlite3_column_blob(select, 4);
    const size_t length = (size_t)sqlite3_column_bytes(select, 4);
    const void *provider = sqlite3_column_blob(select, 5);
    const void *device = sqlite3_column_blob(select, 6);
    if (name == NULL || sqlite3_column_bytes(select, 0) != (int)sizeof row.work.name || size < 0 ||
        size >= WORK_SIZES || text == NULL ||
        strlen((const char *)text) >= sizeof row.device_class || samples == NULL ||
        provider == NULL || sqlite3_column_bytes(select, 5) != (int)sizeof row.device.provider ||
        device == NULL || sqlite3_column_bytes(select, 6) != (int)sizeof row.device.device ||
        length % SAMPLE_BYTES != 0 || length / SAMPLE_BYTES > HISTORY_SAMPLES) {
        return false;
    }
    memcpy(row.work.name.bytes, name, sizeof row.work.name);
    memcpy(row.device.provider.bytes, provider, sizeof row.device.provider.bytes);
    memcpy(row.device.device.bytes, device, sizeof row.device.device.bytes);
    row.work.size = (uint32_t)size;
    memcpy(row.device_class, text, strlen((const char *)text));
    for (size_t i = 0; i < length; i += SAMPLE_BYTES) {
        uint64_t sample = 0;
        for (size_t k = SAMPLE_BYTES; k-- > 0;) {
            sample = sample << 8 | samples[i + k];
        }
        if (sample > INT64_MAX || !history_add(&row.history, (int64_t)sample)) {
            return false;
        }
    }
    *ret_row = row;
    return true;
}

static bool is_of_class(const struct measured_row *row)
{
    static const struct measured_device all;
    return memcmp(&row->device, &all, sizeof all) == 0;
}

static bool read_rows(sqlite3 *database, struct measuring *measuring)
{
    static const char rows[] =
        "SELECT name, size, class, at_ns, samples, provider, device FROM measured ORDER BY age";
    static const char mark[] = "SELECT entry FROM mark";
    sqlite3_stmt *select = NULL;
    bool good = sqlite3_prepare_v2(database, rows, -1, &select, NULL) == SQLITE_OK;
    int code = SQLITE_DONE;
    while (good && (code = sqlite3_step(select)) == SQLITE_ROW) {
        struct measured_row row;
        good = read_row(select, &row);
        if (good) {
            measured_put(is_of_class(&row) ? measuring->rows : measuring->devices, &row);
        }
    }
    good = good && code == SQLITE_DONE;
    (void)sqlite3_finalize(select);
    select = NULL;
    good = good && sqlite3_prepare_v2(database, mark, -1, &select, NULL) == SQLITE_OK;
    code = good ? sqlite3_step(select) : SQLITE_ERROR;
    if (code == SQLITE_ROW) {
        measuring->entry = (uint64_t)sqlite3_column_int64(select, 0);
        measuring->has_begun = true;
    }
    (void)sqlite3_finalize(select); /* repeats the step's code */
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static bool begin_anew(struct measuring *measuring)
{
    measured_destroy(&measuring->rows);
    measured_destroy(&measuring->devices);
    measuring->rows = measured_create();
    measuring->devices = measured_create();
    paces_destroy(&measuring->paces);
    measuring->entry = 0;
    measuring->has_begun = false;
    return measuring->rows != NULL && measuring->devices != NULL;
}

/* Renames the file, which may be whole and may hold more than the end of the ledger does. The
 * journal of a write that was cut off belongs to the file. Returns false when nothing was renamed:
 * an earlier file of that name stays. */
static bool set_aside(const struct measuring *measuring)
{
    char aside[PATH_SIZE + 80];
    char journal[PATH_SIZE + 80];
    char journal_aside[PATH_SIZE + 160];
    (void)snprintf(aside, sizeof aside, "%s.unread", measuring->path);
    (void)snprintf(journal, sizeof journal, "%s-journal", measuring->path);
    (void)snprintf(journal_aside, sizeof journal_aside, "%s-journal", aside);
    if (access(aside, F_OK) == 0 || rename(measuring->path, aside) != 0) {
        return false;
    }
    (void)rename(journal, journal_aside); /* mostly there is none */
    log_warning("the disk did not give %s: it is now %s, and another is made from the ledger. "
                "To use it again, stop the broker and give it its name back",
                measuring->path, aside);
    return true;
}

static bool holds_bytes(const char *path)
{
    struct stat status;
    return stat(path, &status) != 0 ? errno != ENOENT : status.st_size > 0;
}

/* The start compares the file with the ledger before (storage/history_mark.h), so nobody comes here
 * unless one of them changed since. The file is evidence: neither the file nor an earlier one of
 * that kind is written over. */
static void set_aside_ahead(struct measuring *measuring, uint64_t last)
{
    char aside[PATH_SIZE + 80];
    (void)snprintf(aside, sizeof aside, "%s.ahead", measuring->path);
    measuring->is_kept = access(aside, F_OK) == 0 || rename(measuring->path, aside) != 0;
    log_error("%s has seen record %" PRIu64 ", and the last result of the ledger is record %" PRIu64
              ": entries may be lost. The file is kept as %s. Stop the broker, run "
              "bourse-audit, and put the newer ledger.db and HEAD back if there are any",
              measuring->path, measuring->entry, last,
              measuring->is_kept ? measuring->path : aside);
}

static bool load(struct measuring *measuring)
{
    char why[128];
    sqlite3 *database = NULL;
    const bool had_bytes = holds_bytes(measuring->path);
    const bool good = open_file(measuring->path, &database) && read_rows(database, measuring);
    const bool could_not = !good && sqlite_could_not(database);
    (void)snprintf(why, sizeof why, "%s", why_not(database)); /* cut, never overrun */
    (void)sqlite3_close(database);
    if (good) {
        return true;
    }
    if (had_bytes && sqlite_reads_failed() && set_aside(measuring)) {
        return begin_anew(measuring);
    }
    if (could_not) {
        measuring->is_kept = had_bytes;
        log_warning("%s cannot be opened: %s. The file stays as it is, and the next start tries "
                    "again. Until then, the broker goes by the end of the ledger",
                    measuring->path, why);
    } else {
        log_warning("%s cannot be read, and is made anew from the ledger", measuring->path);
        (void)unlink(measuring->path); /* a failure shows again when the file is written */
    }
    return begin_anew(measuring);
}

struct saving {
    sqlite3_stmt *insert;
    int64_t age;
};

static bool save_row(void *context, const struct measured_row *row)
{
    struct saving *saving = context;
    uint8_t samples[HISTORY_SAMPLES * SAMPLE_BYTES];
    const struct history *history = &row->history;
    const uint32_t oldest = history->count < HISTORY_SAMPLES ? 0 : history->next;
    for (uint32_t i = 0; i < history->count; i++) {
        uint64_t sample = (uint64_t)history->samples[(oldest + i) % HISTORY_SAMPLES];
        for (size_t k = 0; k < SAMPLE_BYTES; k++, sample >>= 8) {
            samples[i * SAMPLE_BYTES + k] = (uint8_t)sample;
        }
    }
    sqlite3_stmt *insert = saving->insert;
    bool good = sqlite3_bind_blob(insert, 1, row->work.name.bytes, sizeof row->work.name,
                                  SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_bind_int64(insert, 2, row->work.size) == SQLITE_OK &&
                sqlite3_bind_text(insert, 3, row->device_class, -1, SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_bind_int64(insert, 4, saving->age++) == SQLITE_OK &&
                sqlite3_bind_int64(insert, 5, row->at_ns) == SQLITE_OK &&
                sqlite3_bind_blob(insert, 7, row->device.provider.bytes,
                                  sizeof row->device.provider.bytes, SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_bind_blob(insert, 8, row->device.device.bytes,
                                  sizeof row->device.device.bytes, SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_bind_blob(insert, 6, samples, (int)(history->count * SAMPLE_BYTES),
                                  SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_step(insert) == SQLITE_DONE;
    return sqlite3_reset(insert) == SQLITE_OK && good;
}

static bool save_all(sqlite3 *database, const struct measuring *measuring)
{
    struct saving saving = {.insert = NULL};
    char mark[96];
    (void)snprintf(mark, sizeof mark, "INSERT OR REPLACE INTO mark VALUES (1, %lld)",
                   (long long)measuring->entry);
    bool good = sqlite3_exec(database, "BEGIN IMMEDIATE; DELETE FROM measured", NULL, NULL, NULL) ==
                    SQLITE_OK &&
                sqlite3_prepare_v2(
                    database,
                    "INSERT INTO measured(name, size, class, age, at_ns, samples, provider, device)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    -1, &saving.insert, NULL) == SQLITE_OK &&
                measured_each(measuring->rows, NULL, save_row, &saving) &&
                measured_each(measuring->devices, NULL, save_row, &saving);
    (void)sqlite3_finalize(saving.insert);
    return good && sqlite3_exec(database, mark, NULL, NULL, NULL) == SQLITE_OK &&
           sqlite3_exec(database, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
}

static void save(struct measuring *measuring)
{
    if (!measuring->is_changed || measuring->is_kept) {
        return;
    }
    sqlite3 *database = NULL;
    if (!open_file(measuring->path, &database) || !save_all(database, measuring)) {
        log_warning("%s was not brought up to date: %s. Nothing is lost: the old content is still "
                    "there, and the ledger has the rest",
                    measuring->path, why_not(database));
    } else {
        measuring->is_changed = false;
    }
    (void)sqlite3_close(database); /* rolls back what was not committed */
}

struct measuring *measuring_open(const char *path, const char *blobs)
{
    struct measuring *measuring = calloc(1, sizeof *measuring);
    if (measuring == NULL) {
        return NULL;
    }
    (void)snprintf(measuring->path, sizeof measuring->path, "%s", path);
    (void)snprintf(measuring->blobs, sizeof measuring->blobs, "%s", blobs);
    if (!begin_anew(measuring) || !load(measuring)) {
        measuring_close(&measuring);
    }
    return measuring;
}

void measuring_close(struct measuring **self)
{
    struct measuring *measuring = *self;
    if (measuring != NULL) {
        if (measuring->rows != NULL && measuring->devices != NULL) {
            save(measuring);
        }
        for (size_t i = 0; i < measuring->known_count; i++) {
            codec_manifest_free(&measuring->known[i].manifest);
        }
        measured_destroy(&measuring->rows);
        measured_destroy(&measuring->devices);
        paces_destroy(&measuring->paces);
        free(measuring);
        *self = NULL;
    }
}

bool measuring_is_due(const struct measuring *measuring, int64_t now_ns)
{
    return now_ns - measuring->saved_ns >= MEASURING_SAVE_S * NS_PER_S;
}

void measuring_save_if_due(struct measuring *measuring, int64_t now_ns)
{
    if (measuring_is_due(measuring, now_ns)) {
        measuring->saved_ns = now_ns;
        save(measuring);
    }
}

const struct measured *measuring_rows(const struct measuring *measuring)
{
    return measuring->rows;
}

const struct measured *measuring_devices(const struct measuring *measuring)
{
    return measuring->devices;
}

/* Paces change little with one more sample, and finding them reads all samples. */
const struct paces *measuring_paces(struct measuring *measuring)
{
    const uint64_t since = measuring->added - measuring->paced_at;
    if (measuring->paces == NULL || since > measuring->paced_at / 16 || since > PACES_LATE) {
        paces_destroy(&measuring->paces);
        measuring->paces = paces_create(measuring->devices);
        measuring->paced_at = measuring->added;
    }
    return measuring->paces;
}

/* ---------------------------------------------------------------- manifests */

static uint8_t *read_file(const char *path, size_t length)
{
    uint8_t *bytes = malloc(length + 1);
    int fd = bytes == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    size_t done = 0;
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && done < length) {
        got = read(fd, bytes + done, length - done);
        done += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (done < length || got < 0) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

/* Returns the bytes of a blob, which the caller frees, or NULL when it is missing or too large. */
static uint8_t *read_blob(const struct measuring *measuring, const struct hash32 *hash,
                          size_t *ret_length)
{
    char path[PATH_SIZE + 80];
    sqlite3 *database = NULL;
    sqlite3_stmt *select = NULL;
    uint8_t *bytes = NULL;
    (void)snprintf(path, sizeof path, "%s/blobs.db", measuring->blobs);
    if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(database, 2000) == SQLITE_OK &&
        sqlite3_prepare_v2(database, "SELECT size, bytes FROM blob WHERE hash = ?", -1, &select,
                           NULL) == SQLITE_OK &&
        sqlite3_bind_blob(select, 1, hash->bytes, sizeof hash->bytes, SQLITE_STATIC) == SQLITE_OK &&
        sqlite3_step(select) == SQLITE_ROW && sqlite3_column_int64(select, 0) > 0 &&
        sqlite3_column_int64(select, 0) <= MEASURING_MANIFEST_BYTES) {
        const size_t size = (size_t)sqlite3_column_int64(select, 0);
        const void *row = sqlite3_column_blob(select, 1);
        if (row != NULL && (size_t)sqlite3_column_bytes(select, 1) == size) {
            bytes = malloc(size);
            if (bytes != NULL) {
                memcpy(bytes, row, size);
            }
        } else if (row == NULL) {
            char hex[2 * sizeof hash->bytes + 1];
            text_hex(hash->bytes, sizeof hash->bytes, hex);
            (void)snprintf(path, sizeof path, "%s/%.2s/%s", measuring->blobs, hex, hex);
            bytes = read_file(path, size);
        }
        *ret_length = size;
    }
    (void)sqlite3_finalize(select);
    (void)sqlite3_close(database);
    return bytes;
}

static Bourse__V1__Manifest *read_manifest(const struct measuring *measuring,
                                           const struct hash32 *hash)
{
    size_t length = 0;
    Bourse__V1__Manifest *manifest = NULL;
    struct codec_error error;
    uint8_t *bytes = read_blob(measuring, hash, &length);
    if (bytes != NULL) {
        const struct hash32 found = sha256_of(bytes, length);
        if (!hash32_equal(&found, hash) ||
            codec_decode_manifest(bytes, length, &manifest, &error) != CODEC_OK) {
            manifest = NULL;
        }
    }
    free(bytes);
    return manifest;
}

static const Bourse__V1__Manifest *manifest_of(struct measuring *measuring,
                                               const struct hash32 *hash)
{
    struct known *known = measuring->known;
    size_t at = 0;
    while (at < measuring->known_count && !hash32_equal(&known[at].hash, hash)) {
        at++;
    }
    struct known found = {.hash = *hash};
    if (at < measuring->known_count) {
        found = known[at];
    } else {
        found.manifest = read_manifest(measuring, hash);
        at = measuring->known_count < MEASURING_JOBS ? measuring->known_count++ : 0;
        if (at == 0 && measuring->known_count == MEASURING_JOBS) {
            codec_manifest_free(&known[0].manifest);
        }
    }
    memmove(&known[at], &known[at + 1], (measuring->known_count - 1 - at) * sizeof *known);
    known[measuring->known_count - 1] = found;
    return found.manifest;
}

/* ---------------------------------------------------------------- the walk */

static void add_result(struct measuring *measuring, const struct ledger_measured_row *row)
{
    Bourse__V1__Result *result = NULL;
    struct codec_error error;
    if (codec_decode_result(row->result, row->result_length, &result, &error) != CODEC_OK) {
        return;
    }
    const bool is_whole = !result->has_verdict && !result->has_restored;
    const struct hash32 hash = codec_hash(result->manifest);
    const Bourse__V1__Manifest *manifest = is_whole ? manifest_of(measuring, &hash) : NULL;
    const int64_t took_ns = result->busy_ns < row->paid_ns ? result->busy_ns : row->paid_ns;
    if (manifest != NULL && row->index < manifest->subtask_count) {
        const struct work work = work_of(manifest, row->index);
        const struct measured_device device = {.provider = row->provider, .device = row->device};
        (void)measured_add(measuring->rows, &work, row->instrument, NULL, took_ns,
                           row->log_time_ns);
        measuring->added++;
        (void)measured_add(measuring->devices, &work, row->instrument, &device, took_ns,
                           row->log_time_ns);
    }
    codec_result_free(&result);
}

bool measuring_look(struct measuring *measuring, struct ledger_reader *ledger)
{
    uint64_t end = 0;
    if (ledger_reader_results_end(ledger, &end) != LEDGER_STORE_OK) {
        return false;
    }
    const uint64_t last = end - 1; /* 0 when there are no results */
    if (measuring->has_begun && measuring->entry > last) {
        set_aside_ahead(measuring, last);
        if (!begin_anew(measuring)) {
            return false;
        }
    }
    if (last > MEASURING_BEHIND && measuring->entry < last - MEASURING_BEHIND) {
        measuring->entry = last - MEASURING_BEHIND;
    }
    measuring->has_begun = true;
    if (measuring->entry == last) {
        return false;
    }
    struct ledger_measured_row *rows = calloc(MEASURING_PAGE, sizeof *rows);
    size_t count = 0;
    if (rows == NULL || ledger_reader_measured(ledger, measuring->entry, MEASURING_PAGE, rows,
                                               &count) != LEDGER_STORE_OK) {
        free(rows);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        add_result(measuring, &rows[i]);
        free(rows[i].result);
    }
    if (count > 0 && (count == MEASURING_PAGE || rows[count - 1].entry > last)) {
        measuring->entry = rows[count - 1].entry;
    } else {
        measuring->entry = last;
    }
    measuring->is_changed = true;
    free(rows);
    return measuring->entry < last;
}
