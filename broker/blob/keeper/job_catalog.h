/* The catalogue lists the jobs of the ledger, with their owners, ends, and times of expiry.
 *
 * The catalogue comes from the ledger's tables `jobs` and `settlements`, which only grow. So a call
 * reads only what was added since the last call. One thread uses the catalogue. */
#ifndef BOURSE_BROKER_BLOB_KEEPER_JOB_CATALOG_H
#define BOURSE_BROKER_BLOB_KEEPER_JOB_CATALOG_H

#include "base/id.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JOB_CATALOG_MAX = 1 << 24 }; /* jobs, about 48 bytes each; further jobs are left out */

struct known_job {
    struct id128 job;
    uint64_t entry;     /* of the ledger's table `jobs` */
    int64_t ended_ms;   /* log time; 0: open */
    int64_t expires_ms; /* log time; 0: not looked up yet. INT64_MAX: never */
    uint32_t account;   /* its owner */
    bool is_forgotten;
};

struct job_catalog;

/* Returns NULL when memory is short. */
struct job_catalog *job_catalog_create(void);
void job_catalog_destroy(struct job_catalog **self);

/* Reads the jobs and the ends of jobs that were added since the last call. Returns false when the
 * ledger cannot be read, or memory is short; a later call goes on from there. */
bool job_catalog_read(struct job_catalog *catalog, sqlite3 *ledger);
size_t job_catalog_count(const struct job_catalog *catalog);
/* Returns job `index`, the oldest first. Valid until the next read. */
struct known_job *job_catalog_at(struct job_catalog *catalog, size_t index);
/* Returns NULL for a job that the ledger does not name. Valid until the next read. */
struct known_job *job_catalog_find(struct job_catalog *catalog, const struct id128 *job);

#endif
