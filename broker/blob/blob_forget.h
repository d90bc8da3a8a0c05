/* Forgetting takes blobs of ended jobs from their owner, and removes them after a grace.
 *
 * A client asks which blobs the broker has, sends the others, and then submits. A job may so need
 * a blob that its owner forgets at the same moment. Therefore a blob is first condemned: it counts
 * against no quota, and is not the owner's, but stays on the disk. Whoever stores it again has it
 * back without sending a large file twice in vain. Providers with a lease still read it. After the
 * grace, whoever calls looks once more at what jobs need, and removes or spares the blob.
 *
 * A job is noted as forgotten in the transaction that condemns its first blobs. So no job looks
 * whole while half of its blobs are gone, and a start goes on with a job that is not finished.
 *
 *   condemned(account, hash, since_s)              owners' blobs that wait for the end of the grace
 *   forgotten(job, account, at_ms, reason, state)  jobs whose blobs went
 *
 * All changes come between begin and commit of the store. One thread uses them. */
#ifndef BOURSE_BROKER_BLOB_BLOB_FORGET_H
#define BOURSE_BROKER_BLOB_BLOB_FORGET_H

#include "base/id.h"
#include "broker/blob/blob_store.h"

#include <stdint.h>

enum forget_reason { FORGET_ASKED = 1, FORGET_EXPIRED = 2 };

enum forget_state {
    FORGET_BEGUN,     /* some of its blobs may not be condemned yet */
    FORGET_CONDEMNED, /* all are that the store knew of */
    FORGET_ENDED,     /* those that were named a moment later are, too */
};

struct forgotten_job {
    struct id128 job;
    uint32_t account;
    int64_t at_ms;
    enum forget_reason reason;
    enum forget_state state;
};

/* Notes the job. The state of a job that is noted already only rises. Returns OK, DISK_FULL or
 * FAILED. */
enum blob_status blob_forget_note(struct blob_store *store, const struct forgotten_job *job);
/* Returns true when the job is noted. */
bool blob_forget_has(struct blob_store *store, const struct id128 *job);
/* Condemns a blob that the account owns, since `now_s`. *ret_bytes is what its quota gains: 0 for a
 * blob that it does not own. */
enum blob_status blob_forget_condemn(struct blob_store *store, uint32_t account,
                                     const struct hash32 *hash, int64_t now_s, uint64_t *ret_bytes);
/* Gives a condemned blob back to its account, whatever the quota; another blob stays as it is. */
enum blob_status blob_forget_spare(struct blob_store *store, uint32_t account,
                                   const struct hash32 *hash);
/* Removes a blob that is still condemned. The bytes go when nobody else owns the blob; *ret_bytes
 * is the blob's size then, else 0. */
enum blob_status blob_forget_remove(struct blob_store *store, uint32_t account,
                                    const struct hash32 *hash, uint64_t *ret_bytes);

#endif
