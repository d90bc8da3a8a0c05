#include "broker/blob/blob_adopt.h"

#include "broker/blob/blob_leftovers.h"
#include "broker/blob/named_blobs.h"

#include <dirent.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>

enum { PATH_SIZE = 4096 };

static bool adopt(struct blob_store *store, const struct hash32 *hash,
                  struct blob_adoption *adoption)
{
    uint64_t size;
    enum blob_status status = blob_store_find(store, hash);
    if (status == BLOB_NOT_FOUND && blob_store_has_file(store, hash, &size)) {
        status = blob_store_adopt(store, hash, size);
        adoption->files += status == BLOB_OK;
    }
    return status == BLOB_OK || status == BLOB_NOT_FOUND;
}

/* ---------------------------------------------------------------- all files */

static bool adopt_folder(struct blob_store *store, DIR *directory, unsigned byte,
                         struct blob_adoption *adoption)
{
    bool good = true;
    errno = 0;
    for (struct dirent *entry; good && (entry = readdir(directory)) != NULL;) {
        struct hash32 hash;
        good = !blob_leftovers_name(entry->d_name, byte, &hash) || adopt(store, &hash, adoption);
        errno = 0; /* a name that is no file has set it */
    }
    return good && errno == 0;
}

static bool adopt_files(struct blob_store *store, const char *folder,
                        struct blob_adoption *adoption)
{
    bool good = true;
    for (unsigned byte = 0; good && byte < BLOB_FOLDERS; byte++) {
        char path[PATH_SIZE];
        (void)snprintf(path, sizeof path, "%s/%02x", folder, byte);
        DIR *directory = opendir(path);
        if (directory == NULL) {
            good = errno == ENOENT; /* no blob has needed the folder */
            continue;
        }
        good = adopt_folder(store, directory, byte, adoption);
        (void)closedir(directory); /* only read */
    }
    return good;
}

/* ---------------------------------------------------------------- files of results */

static bool give(struct blob_store *store, uint32_t account, const struct hash32 *hash,
                 struct blob_adoption *adoption)
{
    enum blob_status status = blob_store_owns(store, account, hash);
    if (status != BLOB_NOT_FOUND) {
        return status == BLOB_OK;
    }
    if (!adopt(store, hash, adoption)) {
        return false;
    }
    status = blob_store_give(store, account, hash);
    adoption->given += status == BLOB_OK;
    return status == BLOB_OK || status == BLOB_NOT_FOUND; /* the blob is lost */
}

static bool give_row(struct blob_store *store, sqlite3_stmt *row, struct blob_adoption *adoption)
{
    struct hash32 hashes[RESULTS_BLOBS_MAX];
    const void *bytes = sqlite3_column_blob(row, 1);
    const size_t count = named_blobs_of(bytes, (size_t)sqlite3_column_bytes(row, 1),
                                        (unsigned)sqlite3_column_int(row, 2),
                                        (unsigned)sqlite3_column_int(row, 3), hashes);
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        good = give(store, (uint32_t)sqlite3_column_int64(row, 0), &hashes[i], adoption);
    }
    return good;
}

static bool give_results(struct blob_store *store, const char *database,
                         struct blob_adoption *adoption)
{
    static const char text[] = "SELECT accounts.number, results.bytes, results.status, "
                               "results.outcome FROM results CROSS JOIN accounts "
                               "ON accounts.key = results.consumer";
    sqlite3 *ledger = NULL;
    sqlite3_stmt *rows = NULL;
    int step = SQLITE_ERROR;
    bool good = true;
    if (sqlite3_open_v2(database, &ledger, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(ledger, 2000) == SQLITE_OK &&
        sqlite3_prepare_v2(ledger, text, -1, &rows, NULL) == SQLITE_OK) {
        while (good && (step = sqlite3_step(rows)) == SQLITE_ROW) {
            good = give_row(store, rows, adoption);
        }
    }
    (void)sqlite3_finalize(rows); /* repeats the step's code */
    (void)sqlite3_close(ledger);  /* read only */
    return good && step == SQLITE_DONE;
}

bool blob_adopt(struct blob_store *store, const char *folder, const char *database, bool all,
                struct blob_adoption *ret_adoption, struct problem *ret_problem)
{
    struct blob_adoption adoption = {.files = 0};
    if (blob_store_begin(store) != BLOB_OK) {
        problem_set(ret_problem, "blobs.db cannot be written: %s", blob_store_error(store));
        return false;
    }
    const bool is_done =
        (!all || adopt_files(store, folder, &adoption)) && give_results(store, database, &adoption);
    if (!is_done) {
        /* Closing the store undoes the rows. */
        problem_set(ret_problem,
                    "files in %.150s that blobs.db does not name cannot be entered there: "
                    "blobs.db (%.100s), %.150s or a folder of blobs failed; try again",
                    folder, blob_store_error(store), database);
        return false;
    }
    if (blob_store_commit(store) != BLOB_OK) {
        problem_set(ret_problem, "blobs.db cannot be written: %s", blob_store_error(store));
        return false;
    }
    *ret_adoption = adoption;
    return true;
}
