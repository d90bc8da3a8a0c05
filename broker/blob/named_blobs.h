/* Named blobs are those that the ledger names, and the comparison says which the store lacks.
 *
 * The ledger names the manifest of each job, and the files of results. The store never removes
 * them. So a named blob without a row in blobs.db was lost with blobs.db, or blobs.db is of an
 * old backup. Images and inputs are named by manifests alone, which are not read.
 *
 * A market may have millions of results, and each start compares. So a table of more than
 * NAMED_BLOBS_ROWS rows is not read in whole: the newer half of the rows that are looked at are
 * the newest of the table, and the others are spread over the rest. */
#ifndef BOURSE_BROKER_BLOB_NAMED_BLOBS_H
#define BOURSE_BROKER_BLOB_NAMED_BLOBS_H

#include "broker/blob/blob_store.h"
#include "protocol/results.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NAMED_BLOBS_ROWS = 4096,   /* of one table */
    NAMED_BLOBS_LOOKS = 32768, /* blobs of results */
};

struct named_blobs {
    uint64_t jobs;         /* jobs whose manifests were looked for */
    uint64_t jobs_lost;    /* the store lacks their manifests */
    uint64_t results;      /* results whose files were looked for */
    uint64_t results_lost; /* the store lacks one of their files, or more */
    uint64_t files;        /* blobs that blobs.db does not name, and whose files are there */
    bool is_sample;        /* the ledger has more jobs or results */
};

/* Compares the ledger of the file `database` with the store. Returns false when one of them cannot
 * be read: nothing is known then. */
bool named_blobs_compare(const char *database, struct blob_store *store,
                         struct named_blobs *ret_named);

/* Returns the number of blobs that the job's owner owns because of a result (results_blobs). They
 * are the files of an accepted result of outcome `ok`, or of a checkpoint. The broker has seen them
 * stored before it took the result. A result of another kind may name what nobody stored. */
size_t named_blobs_of(const void *result, size_t length, unsigned status, unsigned outcome,
                      struct hash32 ret_hashes[RESULTS_BLOBS_MAX]);

#endif
