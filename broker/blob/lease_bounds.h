/* This file computes what a provider may store for a job before results name it. The bounds follow
 * from the job's manifest.
 *
 * The bounds are never below what an honest agent may send: its jail collects the same files, and
 * has the same limits. The function is pure. */
#ifndef BOURSE_BROKER_BLOB_LEASE_BOUNDS_H
#define BOURSE_BROKER_BLOB_LEASE_BOUNDS_H

#include "protocol/bourse.pb-c.h"

#include <stdint.h>

enum {
    /* Subtasks of one job that a provider has stored files of, and that no result names yet. */
    LEASE_BOUNDS_SUBTASKS = 4096,
    /* Tries of a subtask that a provider may have stored something of. */
    LEASE_BOUNDS_TRIES = 4,
    LEASE_BOUNDS_STREAMS = 2,              /* standard output and standard error of one try */
    LEASE_BOUNDS_STREAMS_BYTES = 64 << 20, /* both together */
};

/* The broker takes no more from anyone, whatever a manifest declares. */
struct lease_bounds_caps {
    uint64_t file_bytes; /* of one blob, and so of a file without a declared size */
    uint64_t all_bytes;  /* of all blobs of an account */
};

struct lease_bounds {
    uint64_t bytes, blobs;
};

/* Returns the bounds of one provider for all subtasks of the job together. `manifest` may be NULL
 * while the manifest cannot be read. The bounds are then those of one subtask that leaves as much
 * as any subtask may leave. */
struct lease_bounds lease_bounds_of(const Bourse__V1__Manifest *manifest,
                                    const struct lease_bounds_caps *caps);

#endif
