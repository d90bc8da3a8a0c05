/* The table of serves tells which provider may read which job's blobs. It is the blob port's copy
 * of the leases and their inputs.
 *
 * Released grants and ends update the table. An ended lease still counts for SERVES_GRACE_NS, so
 * that outputs of its last results arrive. The caller reads a job's manifest once; the table keeps
 * it as a sorted list of hashes. */
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
    bool is_read;          /* `hashes` are set from the manifest */
    struct hash32 *hashes; /* sorted; owned */
    size_t hash_count;
    uint32_t leases; /* number of leases of this job */
    /* Greatest storage of all its subtasks together, as the manifest declares it. */
    uint64_t bytes_most, blobs_most;
};

struct serves;

/* Returns NULL when memory is short. */
struct serves *serves_create(void);
void serves_destroy(struct serves **self);

/* Adds a lease; the same lease again changes nothing. Returns false when memory is short. */
bool serves_add(struct serves *serves, uint64_t lease, uint32_t provider, const struct id128 *job,
                uint32_t owner, const struct hash32 *manifest);
void serves_end(struct serves *serves, uint64_t lease, int64_t now_ns);
/* Drops leases that ended more than the grace ago. */
void serves_expire(struct serves *serves, int64_t now_ns);
/* Returns the job when the provider serves it now, else NULL. Valid until the next add or
 * expire. */
struct served_job *serves_find(struct serves *serves, uint32_t provider, const struct id128 *job,
                               int64_t now_ns);

/* Lets the holder of the lease read these hashes too: outputs of subtasks that its own wait for. An
 * unknown lease changes nothing. Returns false when memory is short. */
bool serves_give(struct serves *serves, uint64_t lease, const struct hash32 *hashes, size_t count);
/* Returns true when a lease of `job` that the provider has, or had within the grace, was given
 * `hash`. */
bool serves_gave(const struct serves *serves, uint32_t provider, const struct served_job *job,
                 const struct hash32 *hash);

/* Sets the hashes of the job; the array from malloc is taken over and sorted. */
void served_job_set_hashes(struct served_job *job, struct hash32 *hashes, size_t count);
/* Returns true when `hash` is the manifest itself, or the manifest names it. */
bool served_job_names(const struct served_job *job, const struct hash32 *hash);

#endif
