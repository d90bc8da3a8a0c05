/* broker/blob/outputs.h checks what a result says of the blob store, before the result is sequenced
 * (docs/decisions.md D5). The result says that its outputs are stored, or that an input is missing.
 *
 * A result of outcome `ok` must leave every output that its job's manifest declares for its
 * subtask, and every file that the result names. Each file must have the hash and the size that the
 * result gives. The job's owner must own the file, or the provider must have stored it for the job.
 * A preempted result that names a checkpoint must leave the checkpoint. No bytes are read: the blob
 * store has checked their hash. A lost blob, a missing file, or one of another size counts as
 * unstored.
 *
 * A result of outcome `input missing` or `image missing` is right when the store lacks the manifest
 * or a blob that its subtask needs: one that the manifest names for the subtask, or that the
 * subtask was given. No bytes are read here either. An agent asks for the bytes before it says that
 * they are missing or wrong. The blob port has then marked a damaged blob as lost. A blob that the
 * disk does not give is not lost. So the blob port also notes each blob that it could not give out,
 * and such a blob counts as missing for OUTPUTS_UNGIVEN_S.
 *
 * The committer adds a lease before an agent hears of the lease, and never waits for a look. The
 * first result of a lease reads the manifest once. Its declarations are kept while a lease of the
 * job is there. All functions are thread-safe. */
#ifndef BOURSE_BROKER_BLOB_OUTPUTS_H
#define BOURSE_BROKER_BLOB_OUTPUTS_H

#include "base/id.h"
#include "broker/blob/blob_pending.h"
#include "protocol/bourse.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTPUTS_UNGIVEN_S = 60, OUTPUTS_UNGIVEN_MAX = 64 };

enum outputs_verdict {
    OUTPUTS_STORED,
    OUTPUTS_MISSING,  /* storing again does not mend the result */
    OUTPUTS_UNSTORED, /* a named file is missing: it may be stored again */
    OUTPUTS_UNREAD,   /* unknown at present: later */
};

struct outputs;

/* Opens the check; `blobs` is the folder of blob_store.h, which is open. Returns NULL when memory
 * is short. */
struct outputs *outputs_open(const char *blobs);
void outputs_close(struct outputs **self);

struct outputs_lease {
    uint64_t lease;
    struct blob_holder holder; /* the account with the lease, and the job */
    uint32_t owner;            /* owner of the job */
    struct hash32 manifest;
};
/* Adds a lease; the same lease again changes nothing. Returns false when memory is short. */
bool outputs_serve(struct outputs *outputs, const struct outputs_lease *lease);
void outputs_end(struct outputs *outputs, uint64_t lease);
/* Adds blobs that subtask `index` is given on that lease: outputs of other subtasks, files of a
 * checkpoint. They count until the lease ends. An unknown lease changes nothing. Returns false when
 * memory is short. */
bool outputs_give(struct outputs *outputs, uint64_t lease, uint32_t index,
                  const struct hash32 *hashes, size_t count);

/* Notes that the blob port could not give out this blob to somebody who may read it. The newest
 * OUTPUTS_UNGIVEN_MAX blobs count. */
void outputs_ungiven(struct outputs *outputs, const struct hash32 *hash);

/* Looks for the outputs of a result; `context` is struct outputs. Returns MISSING for a lease that
 * is unknown or does not belong to `sender`: the exchange does not accept such a result either. Of
 * a result that says that an input is missing: MISSING when it is, STORED when all is there. Such a
 * result may name hundreds of inputs, and adds the number of look-ups to *looks. */
enum outputs_verdict outputs_look(void *context, uint32_t sender, const Bourse__V1__Result *result,
                                  uint64_t *looks);

#endif
