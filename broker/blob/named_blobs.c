#include "broker/blob/named_blobs.h"

#include "base/sha256.h"
#include "broker/blob/blob_forget.h"
#include "protocol/message.h"

#include <sqlite3.h>
#include <string.h>

size_t named_blobs_of(const void *result, size_t length, unsigned status, unsigned outcome,
                      struct hash32 ret_hashes[RESULTS_BLOBS_MAX])
{
    const struct hash32 of_nothing = sha256_of("", 0);
    unsigned which = 0;
    if (outcome == OUTCOME_OK && status == ATTEMPT_ACCEPTED) {
        which = RESULTS_OUTPUTS | RESULTS_STREAMS;
    } else if (outcome == OUTCOME_PREEMPTED) {
        which = RESULTS_SAVED;
    }
    const size_t named = result == NULL ? 0 : results_blobs(result, length, which, ret_hashes);
    size_t count = 0;
    for (size_t i = 0; i < named; i++) {
        if (!hash32_equal(&ret_hashes[i], &of_nothing)) { /* nobody sends that */
            ret_hashes[count++] = ret_hashes[i];
        }
    }
    return count;
}

/* ---------------------------------------------------------------- rows that are looked at */

/* One of the two tables of the ledger that name blobs. */
struct source {
    const char *is_large; /* has a row when the table has more than ?1 rows */
    const char *bounds;   /* the first entry, and entry ?1 from the end */
    const char *row;      /* the first row from entry ?1 on; column 0 is its entry */
};

static const struct source of_jobs = {
    "SELECT 1 FROM jobs LIMIT 1 OFFSET ?1",
    "SELECT (SELECT min(entry) FROM jobs), entry FROM jobs ORDER BY entry DESC LIMIT 1 OFFSET ?1",
    "SELECT entry, manifest, job FROM jobs WHERE entry >= ?1 ORDER BY entry LIMIT 1"};
static const struct source of_results = {
    "SELECT 1 FROM results LIMIT 1 OFFSET ?1",
    "SELECT (SELECT min(entry) FROM results), entry FROM results ORDER BY entry DESC LIMIT 1 "
    "OFFSET ?1",
    "SELECT entry, bytes, status, outcome, job FROM results WHERE entry >= ?1 ORDER BY entry LIMIT "
    "1"};

struct comparison {
    sqlite3 *ledger;
    struct blob_store *store;
    struct named_blobs named;
    uint64_t looks;
};

/* Looks at one row. Returns false when the store cannot be read. */
typedef bool look_at_row(struct comparison *comparison, sqlite3_stmt *row);

/* The rows before `tail` are `stride` entries apart or more; from `tail` on, each is looked at. */
struct steps {
    sqlite3_int64 tail, stride;
};

static bool plan_steps(struct comparison *comparison, const struct source *source,
                       struct steps *ret_steps)
{
    enum { TAIL = NAMED_BLOBS_ROWS / 2 };
    sqlite3_stmt *select = NULL;
    *ret_steps = (struct steps){.tail = 0, .stride = 1};
    int code = sqlite3_prepare_v2(comparison->ledger, source->is_large, -1, &select, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_bind_int(select, 1, NAMED_BLOBS_ROWS);
        code = sqlite3_step(select);
    }
    (void)sqlite3_finalize(select); /* repeats the step's code */
    if (code != SQLITE_ROW) {
        return code == SQLITE_DONE;
    }
    code = sqlite3_prepare_v2(comparison->ledger, source->bounds, -1, &select, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_bind_int(select, 1, TAIL - 1);
        code = sqlite3_step(select);
    }
    if (code == SQLITE_ROW) {
        ret_steps->tail = sqlite3_column_int64(select, 1);
        ret_steps->stride = (ret_steps->tail - sqlite3_column_int64(select, 0)) / TAIL + 1;
        comparison->named.is_sample = true;
    }
    (void)sqlite3_finalize(select); /* repeats the step's code */
    return code == SQLITE_ROW;
}

static bool look_at_rows(struct comparison *comparison, const struct source *source,
                         look_at_row *look)
{
    sqlite3_stmt *select = NULL;
    struct steps steps;
    bool good = plan_steps(comparison, source, &steps) &&
                sqlite3_prepare_v2(comparison->ledger, source->row, -1, &select, NULL) == SQLITE_OK;
    int code = SQLITE_ROW;
    for (sqlite3_int64 from = 0; good && code == SQLITE_ROW;) {
        (void)sqlite3_bind_int64(select, 1, from);
        code = sqlite3_step(select);
        if (code == SQLITE_ROW) {
            const sqlite3_int64 entry = sqlite3_column_int64(select, 0);
            good = look(comparison, select);
            from = entry >= steps.tail                 ? entry + 1
                   : entry + steps.stride < steps.tail ? entry + steps.stride
                                                       : steps.tail;
        }
        (void)sqlite3_reset(select); /* repeats the step's code */
    }
    (void)sqlite3_finalize(select); /* only read */
    return good && code == SQLITE_DONE;
}

/* ---------------------------------------------------------------- blobs of a row */

static bool look_for(struct comparison *comparison, const struct hash32 *hash, bool *ret_lacks)
{
    uint64_t size;
    switch (blob_store_find(comparison->store, hash)) {
    case BLOB_OK:
        return true;
    case BLOB_NOT_FOUND:
        *ret_lacks = true;
        comparison->named.files += blob_store_has_file(comparison->store, hash, &size);
        return true;
    default:
        return false;
    }
}

/* Returns true for a job whose blobs are meant to be gone. */
static bool is_forgotten(const struct comparison *comparison, sqlite3_stmt *row, int column)
{
    struct id128 job;
    const void *bytes = sqlite3_column_blob(row, column);
    if (bytes == NULL || sqlite3_column_bytes(row, column) != (int)sizeof job.bytes) {
        return false;
    }
    memcpy(job.bytes, bytes, sizeof job.bytes);
    return blob_forget_has(comparison->store, &job);
}

static bool look_at_job(struct comparison *comparison, sqlite3_stmt *row)
{
    struct hash32 manifest;
    bool lacks = false;
    const void *bytes = sqlite3_column_blob(row, 1);
    if (bytes == NULL || sqlite3_column_bytes(row, 1) != sizeof manifest.bytes) {
        return true; /* a damaged row names nothing */
    }
    if (is_forgotten(comparison, row, 2)) {
        return true;
    }
    memcpy(manifest.bytes, bytes, sizeof manifest.bytes);
    if (!look_for(comparison, &manifest, &lacks)) {
        return false;
    }
    comparison->named.jobs++;
    comparison->named.jobs_lost += lacks;
    return true;
}

static bool look_at_result(struct comparison *comparison, sqlite3_stmt *row)
{
    struct hash32 hashes[RESULTS_BLOBS_MAX];
    bool lacks = false;
    const void *bytes = sqlite3_column_blob(row, 1);
    const size_t count = named_blobs_of(bytes, (size_t)sqlite3_column_bytes(row, 1),
                                        (unsigned)sqlite3_column_int(row, 2),
                                        (unsigned)sqlite3_column_int(row, 3), hashes);
    if (count > 0 && is_forgotten(comparison, row, 4)) {
        return true;
    }
    if (count > NAMED_BLOBS_LOOKS - comparison->looks) {
        comparison->named.is_sample = true;
        return true;
    }
    comparison->looks += count;
    for (size_t i = 0; i < count; i++) {
        if (!look_for(comparison, &hashes[i], &lacks)) {
            return false;
        }
    }
    comparison->named.results += count > 0;
    comparison->named.results_lost += lacks;
    return true;
}

bool named_blobs_compare(const char *database, struct blob_store *store,
                         struct named_blobs *ret_named)
{
    struct comparison comparison = {.store = store};
    const bool good =
        sqlite3_open_v2(database, &comparison.ledger, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(comparison.ledger, 2000) == SQLITE_OK &&
        look_at_rows(&comparison, &of_jobs, look_at_job) &&
        look_at_rows(&comparison, &of_results, look_at_result);
    (void)sqlite3_close(comparison.ledger); /* read only */
    *ret_named = comparison.named;
    return good;
}
