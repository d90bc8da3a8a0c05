/* broker/blob/blob_leftovers.h - files of the blob store that no row of blobs.db names.
 *
 * A file goes after the commit that forgets its blob, so that no row is ever without its file. A
 * broker that is killed in between leaves the file. So does one that is killed after a new blob got
 * its name and before the commit. A sweep finds such files, one folder of the 256 at a time.
 *
 * A crash leaves few files. Where many have no row, blobs.db is another's, perhaps of an old
 * backup: the sweep ends then and removes no more. One thread. */
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

/* NULL: out of memory, or the table is not there. `database` and `folder` are borrowed. */
struct blob_leftovers *blob_leftovers_create(sqlite3 *database, const char *folder);
void blob_leftovers_destroy(struct blob_leftovers **self);

/* The file of the blob goes with the next commit, unless a row names it then. Without memory the
 * next sweep finds the file. */
void blob_leftovers_add(struct blob_leftovers *leftovers, const struct hash32 *hash);
void blob_leftovers_committed(struct blob_leftovers *leftovers);
void blob_leftovers_rolled_back(struct blob_leftovers *leftovers);

/* Outside of a transaction. Looks through the next folder, and counts what it removed so far. */
enum blob_sweep {
    BLOB_SWEEP_GOES_ON,
    BLOB_SWEEP_ENDED,
    BLOB_SWEEP_GAVE_UP, /* too many files have no row, or blobs.db cannot be read */
};
enum blob_sweep blob_leftovers_sweep(struct blob_leftovers *leftovers, size_t *ret_removed);

#endif
