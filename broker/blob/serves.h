/* broker/blob/serves.h - which provider may read which job's blobs: the blob port's copy of the
 * leases, and of what was given with the work sent on them.
 *
 * Fed by released grants and ends. A lease that ended still counts for SERVES_GRACE_NS, so that
 * outputs of its last results arrive. A job's manifest is read once, by the caller, and kept as a
 * sorted list of hashes. */
#ifndef BOURSE_BROKER_BLOB_SERVES_H
#define BOURSE_BROKER_BLOB_SERVES_H

#include "base/checked.h"
#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVES_GRACE_NS (60 * NS_PER_S)

struct served_job {
    struct id128 job;
    uint32_t owner;
    struct hash32 manifest;
    bool is_read;          /* `hashes` are those of the manifest */
    struct hash32 *hashes; /* sorted; owned */
    size_t hash_count;
    uint32_t leases; /* that refer to it */
    /* Of all its subtasks together, as the manifest declares them: what they may store. */
    uint64_t bytes_most, blobs_most;
};

struct serves;

struct serves *serves_create(void); /* NULL when out of memory */
void serves_destroy(struct serves **self);

/* The same lease again changes nothing. False when out of memory. */
bool serves_add(struct serves *serves, uint64_t lease, uint32_t provider, const struct id128 *job,
                uint32_t owner, const struct hash32 *manifest);
void serves_end(struct serves *serves, uint64_t lease, int64_t now_ns);
/* Drops what ended more than the grace ago. */
void serves_expire(struct serves *serves, int64_t now_ns);
/* The job, when the provider serves it now; NULL otherwise. Valid until the next add or expire. */
struct served_job *serves_find(struct serves *serves, uint32_t provider, const struct id128 *job,
                               int64_t now_ns);

/* Who has the lease may read these too: outputs of subtasks that his wait for. A lease that is not
 * there changes nothing. False when out of memory. */
bool serves_give(struct serves *serves, uint64_t lease, const struct hash32 *hashes, size_t count);
/* Whether a lease of `job` that the provider has, or had within the grace, was given it. */
bool serves_gave(const struct serves *serves, uint32_t provider, const struct served_job *job,
                 const struct hash32 *hash);

/* Gives the job its hashes (malloc'ed, taken over, sorted here). */
void served_job_set_hashes(struct served_job *job, struct hash32 *hashes, size_t count);
/* The manifest itself, or named by it. */
bool served_job_names(const struct served_job *job, const struct hash32 *hash);

#endif
