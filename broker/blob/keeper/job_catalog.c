#include "broker/blob/keeper/job_catalog.h"

#include "base/array.h"
#include "base/checked.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_LEAST = 1024 };

struct job_catalog {
    struct known_job *jobs;
    size_t count, capacity;
    /* The slots are a hash table of ids. A slot has the index of a job in `jobs`, plus 1; 0: the
     * slot is free. Their number is a power of two, and at most half of them are used. */
    uint32_t *slots;
    size_t slot_count;
    sqlite3_int64 last_job, last_end; /* entries that were read */
    /* Clients choose the ids, so a secret key decides which slot an id gets. */
    uint8_t slot_key[crypto_shorthash_KEYBYTES];
};

struct job_catalog *job_catalog_create(void)
{
    struct job_catalog *catalog = calloc(1, sizeof *catalog);
    if (catalog != NULL) {
        crypto_shorthash_keygen(catalog->slot_key);
    }
    return catalog;
}

void job_catalog_destroy(struct job_catalog **self)
{
    struct job_catalog *catalog = *self;
    if (catalog != NULL) {
        free(catalog->jobs);
        free(catalog->slots);
        free(catalog);
        *self = NULL;
    }
}

/* Returns the slot of the job, or the free slot where it would be. */
static uint32_t *slot_of(const struct job_catalog *catalog, const struct id128 *job)
{
    uint8_t hash[crypto_shorthash_BYTES];
    uint64_t start;
    static_assert(sizeof hash == sizeof start, "a short hash has 64 bits");
    (void)crypto_shorthash(hash, job->bytes, sizeof job->bytes, catalog->slot_key);
    memcpy(&start, hash, sizeof start);
    for (size_t at = (size_t)start;; at++) {
        uint32_t *slot = &catalog->slots[at & (catalog->slot_count - 1)];
        if (*slot == 0 || id128_equal(&catalog->jobs[*slot - 1].job, job)) {
            return slot;
        }
    }
}

static bool has_slots(struct job_catalog *catalog)
{
    if (2 * (catalog->count + 1) <= catalog->slot_count) {
        return true;
    }
    const size_t larger = catalog->slot_count == 0 ? SLOTS_LEAST : 2 * catalog->slot_count;
    uint32_t *slots = calloc(larger, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    free(catalog->slots);
    catalog->slots = slots;
    catalog->slot_count = larger;
    for (size_t i = 0; i < catalog->count; i++) {
        *slot_of(catalog, &catalog->jobs[i].job) = (uint32_t)i + 1;
    }
    return true;
}

static bool add(struct job_catalog *catalog, const struct known_job *job)
{
    struct known_job *jobs =
        array_with_room(catalog->jobs, catalog->count, &catalog->capacity, sizeof *jobs);
    if (jobs == NULL) {
        return false;
    }
    catalog->jobs = jobs;
    if (!has_slots(catalog)) {
        return false;
    }
    uint32_t *slot = slot_of(catalog, &job->job);
    if (*slot == 0) {
        jobs[catalog->count++] = *job;
        *slot = (uint32_t)catalog->count;
    }
    return true;
}

/* Reads a job's id from a row. Returns false when the row is damaged. */
static bool read_id(sqlite3_stmt *row, int column, struct id128 *ret_id)
{
    const void *bytes = sqlite3_column_blob(row, column);
    if (bytes == NULL || sqlite3_column_bytes(row, column) != (int)sizeof ret_id->bytes) {
        return false;
    }
    memcpy(ret_id->bytes, bytes, sizeof ret_id->bytes);
    return true;
}

static bool take_job(struct job_catalog *catalog, sqlite3_stmt *row)
{
    struct known_job job = {.entry = (uint64_t)sqlite3_column_int64(row, 0),
                            .account = (uint32_t)sqlite3_column_int64(row, 2)};
    if (catalog->count < JOB_CATALOG_MAX && read_id(row, 1, &job.job) && !add(catalog, &job)) {
        return false;
    }
    catalog->last_job = sqlite3_column_int64(row, 0);
    return true;
}

static bool take_end(struct job_catalog *catalog, sqlite3_stmt *row)
{
    struct id128 id;
    struct known_job *job = read_id(row, 1, &id) ? job_catalog_find(catalog, &id) : NULL;
    if (job != NULL) {
        job->ended_ms = sqlite3_column_int64(row, 2) / NS_PER_MS;
    }
    catalog->last_end = sqlite3_column_int64(row, 0);
    return true;
}

static bool read_rows(struct job_catalog *catalog, sqlite3 *ledger, const char *text,
                      sqlite3_int64 after, bool (*take)(struct job_catalog *, sqlite3_stmt *))
{
    sqlite3_stmt *select = NULL;
    int code = sqlite3_prepare_v2(ledger, text, -1, &select, NULL);
    bool good = code == SQLITE_OK;
    if (good) {
        (void)sqlite3_bind_int64(select, 1, after);
        while (good && (code = sqlite3_step(select)) == SQLITE_ROW) {
            good = take(catalog, select);
        }
    }
    (void)sqlite3_finalize(select); /* only read */
    return good && code == SQLITE_DONE;
}

bool job_catalog_read(struct job_catalog *catalog, sqlite3 *ledger)
{
    /* The tables are read as of one commit, so no end is read without its job. */
    if (sqlite3_exec(ledger, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        return false;
    }
    const bool good = read_rows(catalog, ledger,
                                "SELECT j.entry, j.job, a.number FROM jobs j JOIN accounts a "
                                "ON a.key = j.owner WHERE j.entry > ?1 ORDER BY j.entry",
                                catalog->last_job, take_job) &&
                      read_rows(catalog, ledger,
                                "SELECT entry, job, log_time_ns FROM settlements WHERE entry > ?1 "
                                "ORDER BY entry",
                                catalog->last_end, take_end);
    (void)sqlite3_exec(ledger, "COMMIT", NULL, NULL, NULL); /* only read */
    return good;
}

size_t job_catalog_count(const struct job_catalog *catalog)
{
    return catalog->count;
}

struct known_job *job_catalog_at(struct job_catalog *catalog, size_t index)
{
    return &catalog->jobs[index];
}

struct known_job *job_catalog_find(struct job_catalog *catalog, const struct id128 *job)
{
    const uint32_t *slot = catalog->slot_count == 0 ? NULL : slot_of(catalog, job);
    return slot == NULL || *slot == 0 ? NULL : &catalog->jobs[*slot - 1];
}
