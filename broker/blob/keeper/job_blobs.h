/* This unit finds the blobs that a job uses. They are its manifest, the blobs that the manifest
 * names, and the blobs that the job's results name.
 *
 * The ledger and the bytes of the manifest say it, so the broker keeps no table for this. The cost
 * is one walk over the job's results. */
#ifndef BOURSE_BROKER_BLOB_KEEPER_JOB_BLOBS_H
#define BOURSE_BROKER_BLOB_KEEPER_JOB_BLOBS_H

#include "base/id.h"
#include "ledger/store/sqlite.h"
#include "protocol/bourse.pb-c.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes blobs that a result of the job names. Returns false to stop the visit. */
typedef bool job_blobs_visitor(void *context, const struct hash32 *hashes, size_t count);

/* Visits the blobs that the ledger's results of the job name. These are the blobs that the blob
 * port gives to the job's owner (release_names). Returns false when the ledger cannot be read,
 * memory is short, or the visitor stops. */
bool job_blobs_of_results(struct ledger_reader *reader, const struct id128 *job,
                          job_blobs_visitor *visit, void *context);

enum job_blobs_status {
    JOB_BLOBS_OK,
    JOB_BLOBS_LOST,   /* the manifest is missing or damaged, so the blobs it names are unknown */
    JOB_BLOBS_FAILED, /* a database or the disk failed, memory is short, or the visitor stopped */
};

/* The store as a reader sees it: blobs.db, open, and the folder of the blobs. Borrowed. */
struct job_blobs_store {
    sqlite3 *database;
    const char *folder;
};
/* Reads the manifest of a job. `entry` is the job's row in the ledger's table `jobs`. The caller
 * frees *ret_manifest with codec_manifest_free; *ret_manifest is NULL unless the status is OK. */
enum job_blobs_status job_blobs_manifest(struct ledger_reader *reader,
                                         const struct job_blobs_store *store, uint64_t entry,
                                         struct hash32 *ret_hash,
                                         Bourse__V1__Manifest **ret_manifest);

#endif
