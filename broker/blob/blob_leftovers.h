/* A leftover is a file of the blob store that no row of blobs.db names.
 *
 * A file is removed after the commit that forgets its blob, so that no row ever lacks its file. A
 * broker that is killed in between leaves the file. A broker that is killed after naming a new
 * blob's file and before the commit leaves one too. A sweep finds such files, one folder of the 256
 * at a time.
 *
 * A crash leaves few files. If many files have no row, blobs.db is another one, perhaps of an old
 * backup: the sweep then ends and removes no more. One thread uses this. */
#ifndef BOURSE_BROKER_BLOB_BLOB_LEFTOVERS_H
#define BOURSE_BROKER_BLOB_BLOB_LEFTOVERS_H

#include "base/id.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    BLOB_FOLDERS = 256,        /* one for each first byte of a hash */
    BLOB_LEFTOVERS_MAX = 4096, /* files that one sweep removes */
};

struct blob_leftovers;

/* Creates the sweep; the caller keeps `database` and `folder`. Returns NULL when memory is short or
 * the table is missing. */
struct blob_leftovers *blob_leftovers_create(sqlite3 *database, const char *folder);
void blob_leftovers_destroy(struct blob_leftovers **self);

/* Removes the blob's file with the next commit, unless a row names it then. If memory is short, the
 * next sweep finds the file. */
void blob_leftovers_add(struct blob_leftovers *leftovers, const struct hash32 *hash);
void blob_leftovers_committed(struct blob_leftovers *leftovers);
void blob_leftovers_rolled_back(struct blob_leftovers *leftovers);

/* Reads the hash of a blob from the name of its file in folder `folder` (0 to 255). Returns false
 * for a name that is no blob's. */
bool blob_leftovers_name(const char *name, unsigned folder, struct hash32 *ret_hash);

/* Looks through the next folder, outside of a transaction. *ret_removed counts all files removed so
 * far. */
enum blob_sweep {
    BLOB_SWEEP_GOES_ON,
    BLOB_SWEEP_ENDED,
    BLOB_SWEEP_GAVE_UP, /* too many files have no row, or blobs.db cannot be read */
};
enum blob_sweep blob_leftovers_sweep(struct blob_leftovers *leftovers, size_t *ret_removed);

#endif
