/* This table tells which provider may read which job's blobs. It is the blob port's copy of the
 * leases and their inputs.
 *
 * Released grants and ends update the table. An ended lease still counts for BLOB_ACCESS_GRACE_NS,
 * so that outputs of its last results arrive. The caller reads a job's manifest once; the table
 * keeps it as a sorted list of hashes. */
#ifndef BOURSE_BROKER_BLOB_PORT_BLOB_ACCESS_H
#define BOURSE_BROKER_BLOB_PORT_BLOB_ACCESS_H

#include "base/checked.h"
#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOB_ACCESS_GRACE_NS (60 * NS_PER_S)

struct blob_access_job {
    struct id128 job;
    uint32_t owner;
    struct hash32 manifest;
    bool is_read;          /* `hashes` are set from the manifest */
    struct hash32 *hashes; /* sorted; owned */
    size_t hash_count;
    uint32_t leases; /* number of leases of this job */
    /* One provider may store so much for all subtasks together (broker/blob/lease_bounds.h). */
    uint64_t bytes_most, blobs_most;
};

struct blob_access;

/* Returns NULL when memory is short. */
struct blob_access *blob_access_create(void);
void blob_access_destroy(struct blob_access **self);

/* Adds a lease; the same lease again changes nothing. Returns false when memory is short. */
bool blob_access_add(struct blob_access *access, uint64_t lease, uint32_t provider,
                     const struct id128 *job, uint32_t owner, const struct hash32 *manifest);
void blob_access_end(struct blob_access *access, uint64_t lease, int64_t now_ns);
/* Drops leases that ended more than the grace ago. */
void blob_access_expire(struct blob_access *access, int64_t now_ns);
/* Returns the job when the provider serves it now, else NULL. Valid until the next add or
 * expire. */
struct blob_access_job *blob_access_find(struct blob_access *access, uint32_t provider,
                                         const struct id128 *job, int64_t now_ns);

/* Lets the holder of the lease read these hashes too: outputs of subtasks that its own wait for. An
 * unknown lease changes nothing. Returns false when memory is short. */
bool blob_access_give(struct blob_access *access, uint64_t lease, const struct hash32 *hashes,
                      size_t count);
/* Returns true when a lease of `job` that the provider has, or had within the grace, was given
 * `hash`. */
bool blob_access_gave(const struct blob_access *access, uint32_t provider,
                      const struct blob_access_job *job, const struct hash32 *hash);

/* Sets the hashes of the job; the array from malloc is taken over and sorted. */
void blob_access_job_set_hashes(struct blob_access_job *job, struct hash32 *hashes, size_t count);
/* Returns true when `hash` is the manifest itself, or the manifest names it. */
bool blob_access_job_names(const struct blob_access_job *job, const struct hash32 *hash);

#endif
