/* Adoption writes rows for files of blobs that blobs.db does not name.
 *
 * It is for a blobs.db that was missing, or is of an old backup. Without rows nobody gets the
 * files, and the sweep would remove them (broker/blob/blob_leftovers.h). A file's name says which
 * blob the file should be. The file is hashed before it is trusted, as any file that somebody put
 * in the place of a lost one. The bytes of small blobs were in blobs.db and do not come back. */
#ifndef BOURSE_BROKER_BLOB_BLOB_ADOPT_H
#define BOURSE_BROKER_BLOB_BLOB_ADOPT_H

#include "base/problem.h"
#include "broker/blob/blob_store.h"

#include <stdbool.h>
#include <stdint.h>

struct blob_adoption {
    uint64_t files; /* files that have a row now */
    uint64_t given; /* files of results that the owner of the job owns now */
};

/* Adopts files in `folder`, which is the store's, in one transaction of the store. With `all`,
 * every file that bears the name of a blob is adopted. Otherwise only files are that results in the
 * ledger `database` name. The owner of the job gets each file that a result names. The cost is one
 * walk over the results, and one over the files with `all`. Returns false with a problem when
 * something cannot be read or written. The caller then closes the store, which undoes all. */
bool blob_adopt(struct blob_store *store, const char *folder, const char *database, bool all,
                struct blob_adoption *ret_adoption, struct problem *ret_problem);

#endif
