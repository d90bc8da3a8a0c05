/* Named blobs are those that the ledger names, manifests of jobs and outputs of results.
 *
 * Their number matters when blobs/ is lost together with blobs.db. Then only the ledger knows what
 * was there. Images and inputs are named by manifests alone and are not counted. The count reads
 * the whole table of results, which takes seconds for millions of them. */
#ifndef BOURSE_BROKER_BLOB_NAMED_BLOBS_H
#define BOURSE_BROKER_BLOB_NAMED_BLOBS_H

#include <stdbool.h>
#include <stdint.h>

struct named_blobs {
    uint64_t jobs;      /* jobs whose manifests are counted */
    uint64_t manifests; /* different manifests of these jobs */
    uint64_t outputs;   /* different outputs of all results; names may share one */
    bool is_partial;    /* there are more than could be counted */
};

/* Counts in the ledger of the file `database`. Returns false when it cannot be read, or memory is
 * short. */
bool named_blobs_count(const char *database, struct named_blobs *ret_named);

#endif
