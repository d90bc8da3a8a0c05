/* Changes of another broker's blobs are applied to this broker's store here.
 *
 * A change is applied when its stamp is above that of the same key here. So changes that come
 * twice, late or in another order end in the same rows. The bytes of a blob come before the change
 * that names it. A blob whose bytes nobody could give gets a row, and is lost until it comes. */
#ifndef BOURSE_BROKER_COPIES_COPY_STORE_H
#define BOURSE_BROKER_COPIES_COPY_STORE_H

#include "broker/blob/blob_store.h"
#include "broker/copies/copy_change.h"

#include <stdbool.h>

/* Opens the log for a role: a leader of `epoch`, a follower (UINT64_MAX), or a broker without a
 * cluster (0). Returns OK, DISK_FULL or FAILED. */
enum blob_status copy_store_begin(struct blob_store *store, uint64_t epoch);

/* Returns true when the change names a blob whose bytes have to be here. *ret_facts is set. */
bool copy_store_names_blob(const struct copy_change *change, struct copy_facts *ret_facts);
/* Returns true when the bytes of the blob are not here, or are damaged. */
bool copy_store_lacks(struct blob_store *store, const struct hash32 *hash);

/* These calls come between begin and commit of the store. They return OK, DISK_FULL or FAILED.
 *
 * Applies a change of the leader, under its version. */
enum blob_status copy_store_take(struct blob_store *store, const struct copy_change *change);
/* Applies a change that a follower offers to this leader, and notes it under a version of its own.
 * A change that is no offer, or older than what is here, changes nothing; *ret_is_news says so. */
enum blob_status copy_store_accept(struct blob_store *store, const struct copy_change *offer,
                                   bool *ret_is_news);
/* Removes what is known of owners, jobs and versions. The blobs themselves stay. */
enum blob_status copy_store_begin_anew(struct blob_store *store);
/* Removes up to `most` blobs without an owner; *ret_removed says how many. */
enum blob_status copy_store_sweep(struct blob_store *store, size_t most, size_t *ret_removed);

#endif
