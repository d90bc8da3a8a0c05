#include "broker/blob/blob_leftovers.h"

#include "base/array.h"
#include "base/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, HEX_SIZE = 65 };

struct blob_leftovers {
    sqlite3 *database;     /* borrowed */
    const char *folder;    /* borrowed */
    sqlite3_stmt *is_file; /* finds the row of a blob that is a file */
    struct hash32 *hashes; /* blobs whose files go after the commit */
    size_t count, capacity;
    unsigned next; /* the folder that the sweep comes to next */
    size_t removed;
};

struct blob_leftovers *blob_leftovers_create(sqlite3 *database, const char *folder)
{
    static const char select[] = "SELECT 1 FROM blob WHERE hash = ?1 AND bytes IS NULL";
    struct blob_leftovers *leftovers = calloc(1, sizeof *leftovers);
    if (leftovers == NULL) {
        return NULL;
    }
    leftovers->database = database;
    leftovers->folder = folder;
    if (sqlite3_prepare_v2(database, select, -1, &leftovers->is_file, NULL) != SQLITE_OK) {
        blob_leftovers_destroy(&leftovers);
    }
    return leftovers;
}

void blob_leftovers_destroy(struct blob_leftovers **self)
{
    struct blob_leftovers *leftovers = *self;
    if (leftovers != NULL) {
        (void)sqlite3_finalize(leftovers->is_file); /* repeats the last step's code */
        free(leftovers->hashes);
        free(leftovers);
        *self = NULL;
    }
}

void blob_leftovers_add(struct blob_leftovers *leftovers, const struct hash32 *hash)
{
    struct hash32 *hashes =
        array_with_room(leftovers->hashes, leftovers->count, &leftovers->capacity, sizeof *hashes);
    if (hashes == NULL) {
        return;
    }
    leftovers->hashes = hashes;
    leftovers->hashes[leftovers->count++] = *hash;
}

/* Returns SQLITE_ROW when a row names the file, and SQLITE_DONE when none does. Any other code is
 * an error: nobody knows. */
static int look(struct blob_leftovers *leftovers, const struct hash32 *hash)
{
    (void)sqlite3_bind_blob(leftovers->is_file, 1, hash->bytes, sizeof hash->bytes, SQLITE_STATIC);
    const int code = sqlite3_step(leftovers->is_file);
    (void)sqlite3_reset(leftovers->is_file); /* repeats the step's code */
    return code;
}

void blob_leftovers_committed(struct blob_leftovers *leftovers)
{
    for (size_t i = 0; i < leftovers->count; i++) {
        const struct hash32 *hash = &leftovers->hashes[i];
        char path[PATH_SIZE];
        char hex[HEX_SIZE];
        text_hex(hash->bytes, sizeof hash->bytes, hex);
        (void)snprintf(path, sizeof path, "%s/%.2s/%s", leftovers->folder, hex, hex);
        if (look(leftovers, hash) == SQLITE_DONE) {
            /* A small blob has no file. A file that stays is found by a sweep. */
            (void)unlink(path);
        }
    }
    leftovers->count = 0;
}

void blob_leftovers_rolled_back(struct blob_leftovers *leftovers)
{
    leftovers->count = 0;
}

bool blob_leftovers_name(const char *name, unsigned folder, struct hash32 *ret_hash)
{
    return strlen(name) == HEX_SIZE - 1 &&
           text_unhex(name, ret_hash->bytes, sizeof ret_hash->bytes) &&
           ret_hash->bytes[0] == folder;
}

/* Returns false when the sweep gives up. */
static bool sweep_folder(struct blob_leftovers *leftovers, DIR *directory)
{
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        struct hash32 hash;
        if (!blob_leftovers_name(entry->d_name, leftovers->next, &hash)) {
            continue; /* the name is no blob's */
        }
        const int code = look(leftovers, &hash);
        if (code == SQLITE_ROW) {
            continue;
        }
        if (code != SQLITE_DONE || leftovers->removed == BLOB_LEFTOVERS_MAX) {
            return false;
        }
        leftovers->removed += unlinkat(dirfd(directory), entry->d_name, 0) == 0;
    }
    return true;
}

enum blob_sweep blob_leftovers_sweep(struct blob_leftovers *leftovers, size_t *ret_removed)
{
    char path[PATH_SIZE];
    bool good = true;
    if (leftovers->next < BLOB_FOLDERS) {
        (void)snprintf(path, sizeof path, "%s/%02x", leftovers->folder, leftovers->next);
        DIR *directory = opendir(path);
        /* A folder that no blob has needed yet is not there. */
        good = directory == NULL || sweep_folder(leftovers, directory);
        if (directory != NULL) {
            (void)closedir(directory); /* nothing was written */
        }
        leftovers->next = good ? leftovers->next + 1 : BLOB_FOLDERS;
    }
    *ret_removed = leftovers->removed;
    return !good                            ? BLOB_SWEEP_GAVE_UP
           : leftovers->next < BLOB_FOLDERS ? BLOB_SWEEP_GOES_ON
                                            : BLOB_SWEEP_ENDED;
}
