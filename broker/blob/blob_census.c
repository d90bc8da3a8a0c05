#include "broker/blob/blob_census.h"

#include "base/text.h"
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

/* Each job has a manifest: a store without any blob has lost all blobs that the ledger names. */
void blob_census_warn(struct blob_store *store, const char *folder, const char *database)
{
    struct named_blobs named;
    warn_of_lost_files(folder);
    if (!blob_store_is_empty(store) || !named_blobs_count(database, &named) || named.jobs == 0) {
        return;
    }
    log_warning("blobs/ has no blobs, and the ledger names %s%" PRIu64 ": %" PRIu64
                " manifest%s of %" PRIu64 " job%s and %" PRIu64
                " output%s; programs and inputs are gone with them. Balances and receipts are "
                "whole. Stop the broker, put blobs/ of the newest backup there and start again; "
                "without it open jobs end with `input missing`, and outputs cannot be fetched",
                named.is_partial ? "at least " : "", named.manifests + named.outputs,
                named.manifests, text_plural(named.manifests), named.jobs, text_plural(named.jobs),
                named.outputs, text_plural(named.outputs));
}
