/* The census looks at a start for blobs that are lost, and adopts files that blobs.db lacks.
 *
 * It compares the files with what blobs.db names, and blobs.db with what the ledger names. */
#ifndef BOURSE_BROKER_BLOB_BLOB_CENSUS_H
#define BOURSE_BROKER_BLOB_BLOB_CENSUS_H

#include "base/problem.h"
#include "broker/blob/blob_store.h"

#include <stdbool.h>
#include <stdint.h>

struct blob_census {
    uint64_t named;   /* blobs that blobs.db says are files */
    uint64_t missing; /* so many of their files are not there, or more */
    unsigned folders; /* folders of such blobs that are not there */
};

/* Counts names in the 256 folders of `folder`, and looks into no file. The census costs one walk
 * over the rows of blobs.db, and one over the names. Returns false when the database or a folder
 * cannot be read: nothing is known then. */
bool blob_census_take(const char *folder, struct blob_census *ret_census);
/* Warns in the log when files are gone, or when the store lacks blobs that the ledger at `database`
 * names (broker/blob/named_blobs.h). If blobs.db is new or old, the census adopts the files that
 * blobs.db lacks first (broker/blob/blob_adopt.h). Returns false with a problem when adoption
 * fails, or when nothing is known and no blob has a row. The broker must not start then, because
 * the sweep would remove the files. */
bool blob_census(struct blob_store *store, const char *folder, const char *database,
                 struct problem *ret_problem);

#endif
