/* broker/blob/named_blobs.h - how many blobs the ledger names: manifests of jobs, and what their
 * results left.
 *
 * For the day when blobs/ is gone, blobs.db with it: the ledger then is the only one that knows
 * what was there. Images and inputs are named by manifests alone and are not counted. Reads the
 * whole table of results: seconds for millions of them. */
#ifndef BOURSE_BROKER_BLOB_NAMED_BLOBS_H
#define BOURSE_BROKER_BLOB_NAMED_BLOBS_H

#include <stdbool.h>
#include <stdint.h>

struct named_blobs {
    uint64_t jobs;      /* whose manifests are counted */
    uint64_t manifests; /* different ones */
    uint64_t outputs;   /* different ones, of all results; more than one name may have one */
    bool is_partial;    /* there are more than could be counted */
};

/* Of the ledger in the file `database`. False: it cannot be read, or memory is short. */
bool named_blobs_count(const char *database, struct named_blobs *ret_named);

#endif
