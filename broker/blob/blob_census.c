#include "broker/blob/blob_census.h"

#include "base/text.h"
#include "broker/blob/blob_adopt.h"
#include "broker/blob/blob_leftovers.h"
#include "broker/blob/named_blobs.h"
#include "runtime/log.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096, HASH_DIGITS = 64 };

/* Counts, for each first byte, the blobs that are files. */
static bool count_named(const char *folder, uint64_t ret_named[BLOB_FOLDERS])
{
    static const char select[] = "SELECT hash FROM blob WHERE bytes IS NULL";
    char path[PATH_SIZE];
    sqlite3 *database = NULL;
    sqlite3_stmt *rows = NULL;
    int step = SQLITE_ERROR;
    if (snprintf(path, sizeof path, "%s/blobs.db", folder) < PATH_SIZE &&
        sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(database, select, -1, &rows, NULL) == SQLITE_OK) {
        while ((step = sqlite3_step(rows)) == SQLITE_ROW) {
            const uint8_t *hash = sqlite3_column_blob(rows, 0);
            if (hash != NULL) {
                ret_named[hash[0]]++;
            }
        }
    }
    (void)sqlite3_finalize(rows);  /* repeats the step's code */
    (void)sqlite3_close(database); /* nothing was written */
    return step == SQLITE_DONE;
}

/* Counts the names of blobs in one folder; *ret_found says whether the folder is there. Returns
 * false when the folder cannot be read. */
static bool count_files(const char *folder, unsigned byte, uint64_t *ret_files, bool *ret_found)
{
    char path[PATH_SIZE];
    *ret_files = 0;
    if (snprintf(path, sizeof path, "%s/%02x", folder, byte) >= PATH_SIZE) {
        return false;
    }
    DIR *directory = opendir(path);
    *ret_found = directory != NULL;
    if (directory == NULL) {
        return errno == ENOENT;
    }
    errno = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        *ret_files += strlen(entry->d_name) == HASH_DIGITS;
    }
    const bool good = errno == 0;
    (void)closedir(directory); /* nothing was written */
    return good;
}

bool blob_census_take(const char *folder, struct blob_census *ret_census)
{
    uint64_t named[BLOB_FOLDERS] = {0};
    struct blob_census census = {.named = 0};
    if (!count_named(folder, named)) {
        return false;
    }
    for (unsigned byte = 0; byte < BLOB_FOLDERS; byte++) {
        uint64_t files = 0;
        bool found = false;
        if (named[byte] == 0) {
            continue;
        }
        if (!count_files(folder, byte, &files, &found)) {
            return false;
        }
        census.named += named[byte];
        census.missing += files < named[byte] ? named[byte] - files : 0;
        census.folders += !found;
    }
    *ret_census = census;
    return true;
}

static void warn_of_lost_files(const char *folder)
{
    struct blob_census census;
    if (!blob_census_take(folder, &census) || census.missing == 0) {
        return;
    }
    log_warning(
        "blobs/blobs.db names %" PRIu64 " file%s, and %" PRIu64 " of them %s gone (%u of the "
        "folders in blobs/ are not there). Balances and receipts are whole. Stop the broker, "
        "put the files of the newest backup's blobs/ back and start again; jobs that need "
        "a lost file end with `input missing`, and outputs cannot be fetched",
        census.named, text_plural(census.named), census.missing, census.missing == 1 ? "is" : "are",
        census.folders);
}

static const char advice_to_restore[] =
    "Stop the broker, put blobs/ of the newest backup there and start again";
static const char advice_to_merge[] =
    "To have the blobs of the newest backup: stop the broker, keep a copy of blobs/, put the "
    "backup's blobs.db in the place of blobs/blobs.db, without a blobs.db-wal, and add the files "
    "that are not here. Blobs of at most 64 KiB that came since that backup go with the present "
    "blobs.db";

static void warn_of_lost_blobs(struct blob_store *store, const struct named_blobs *named)
{
    if (named->jobs_lost == 0 && named->results_lost == 0) {
        return;
    }
    log_warning("blobs/ lacks the manifests of %" PRIu64 " of %" PRIu64
                " job%s and outputs of %" PRIu64 " of %" PRIu64
                " result%s%s; programs and inputs may be gone with them. Balances and receipts are "
                "whole. %s. Without them open jobs end with `input missing`, and outputs cannot "
                "be fetched",
                named->jobs_lost, named->jobs, text_plural(named->jobs), named->results_lost,
                named->results, text_plural(named->results),
                named->is_sample ? ", in a sample of those in the ledger" : "",
                blob_store_is_empty(store) ? advice_to_restore : advice_to_merge);
}

static void tell_of_adoption(const struct blob_adoption *adoption, bool was_empty)
{
    if (adoption->files == 0) {
        return;
    }
    if (was_empty) {
        log_warning("blobs/blobs.db was missing, and %" PRIu64
                    " file%s of blobs %s there: a new blobs.db names %s. %" PRIu64
                    " of them are outputs, and belong to the owners of their jobs",
                    adoption->files, text_plural(adoption->files),
                    adoption->files == 1 ? "was" : "were", adoption->files == 1 ? "it" : "them",
                    adoption->given);
        return;
    }
    log_warning("%" PRIu64 " file%s of %s that blobs/blobs.db did not name: blobs.db may be of an "
                "old backup. It names %s now, for the owners of the jobs",
                adoption->files, text_plural(adoption->files),
                adoption->files == 1 ? "an output" : "outputs",
                adoption->files == 1 ? "the file" : "the files");
}

bool blob_census(struct blob_store *store, const char *folder, const char *database,
                 struct problem *ret_problem)
{
    struct named_blobs named;
    warn_of_lost_files(folder);
    if (!named_blobs_compare(database, store, &named)) {
        /* Nothing is known. Without rows, the sweep would take all files for leftovers. */
        const bool is_safe = !blob_store_is_empty(store);
        if (!is_safe) {
            problem_set(ret_problem,
                        "%.200s cannot be compared with blobs.db, which names no blob: one of "
                        "the two cannot be read. " PROBLEM_TRY_AGAIN,
                        database);
        }
        return is_safe;
    }
    const bool is_empty = named.jobs_lost > 0 && blob_store_is_empty(store);
    if (is_empty || named.files > 0) {
        struct blob_adoption adoption;
        if (!blob_adopt(store, folder, database, is_empty, &adoption, ret_problem)) {
            return false;
        }
        tell_of_adoption(&adoption, is_empty);
        if (adoption.files > 0 && !named_blobs_compare(database, store, &named)) {
            return true;
        }
    }
    warn_of_lost_blobs(store, &named);
    return true;
}
