/* broker/blob/outputs.h - whether the outputs of a result are stored, found before the result is
 * sequenced (docs/decisions.md D5).
 *
 * A result of outcome `ok` has to leave every output that its job's manifest declares for its
 * subtask, and every file that the result names. Each has the hash and the size that the result
 * says. The job's owner has it, or the provider has stored it for the job; a lost blob is unstored.
 * A preempted result that names a checkpoint has to leave that. No bytes are read: the blob store
 * has checked their hash. A file that is gone or has another size is unstored, too.
 *
 * The committer says which lease is of which job before an agent hears of the lease, and never
 * waits for a look. The first result of a lease reads the manifest once, whatever the manifest
 * holds. What the manifest declares is kept while a lease of it stands. Thread-safe. */
#ifndef BOURSE_BROKER_BLOB_OUTPUTS_H
#define BOURSE_BROKER_BLOB_OUTPUTS_H

#include "base/id.h"
#include "broker/blob/blob_pending.h"
#include "protocol/bourse.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

enum outputs_verdict {
    OUTPUTS_STORED,
    OUTPUTS_MISSING,  /* storing again does not mend the result */
    OUTPUTS_UNSTORED, /* a file that the result names is not there: it may be stored again */
    OUTPUTS_UNREAD,   /* nobody can tell now: later */
};

struct outputs;

/* `blobs`: the folder of blob_store.h, which is open. NULL: out of memory. */
struct outputs *outputs_open(const char *blobs);
void outputs_close(struct outputs **self);

struct outputs_lease {
    uint64_t lease;
    struct blob_holder holder; /* whose lease, of which job */
    uint32_t owner;            /* of the job */
    struct hash32 manifest;
};
/* The lease stands; the same lease again changes nothing. False: out of memory. */
bool outputs_serve(struct outputs *outputs, const struct outputs_lease *lease);
void outputs_end(struct outputs *outputs, uint64_t lease);

/* A result of a lease that is unknown, or is not that of account `sender`, is MISSING: the exchange
 * does not accept it either. `context`: struct outputs. */
enum outputs_verdict outputs_look(void *context, uint32_t sender, const Bourse__V1__Result *result);

#endif
