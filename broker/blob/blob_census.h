/* The census counts the files of the blobs at a start, and compares them with what blobs.db
 * names. */
#ifndef BOURSE_BROKER_BLOB_BLOB_CENSUS_H
#define BOURSE_BROKER_BLOB_BLOB_CENSUS_H

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
/* Warns in the log when files are gone, or when the store has no blob and the ledger at `database`
 * names some. */
void blob_census_warn(struct blob_store *store, const char *folder, const char *database);

#endif
