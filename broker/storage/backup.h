/* broker/storage/backup.h - a copy of a market that is whole and of one moment, and the way back
 * (P12).
 *
 * A backup is a folder: ledger.db as of one commit, then blobs.db and the files of blobs/, then
 * broker.yaml; the secret keys only where asked for. Never HEAD, LOCK, snapshots or sockets: HEAD
 * is what shows that a backup is old, and one that came back with it would show nothing. Blobs are
 * copied after the ledger, so that no job lacks its own. It is made beside its place and moved
 * there whole.
 *
 * A restore copies it back, also beside its place, and moves it there only when the chain of the
 * journal, a replay from the first command, an audit by a program that shares no code, every blob,
 * and whatever the operator has to show of a later time have been held against it. */
#ifndef BOURSE_BROKER_STORAGE_BACKUP_H
#define BOURSE_BROKER_STORAGE_BACKUP_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

struct backup_report { /* what is in it */
    uint64_t entry, command, tree_size;
    int64_t log_time_ns;                       /* of the last command: how old it is */
    uint64_t blobs, blob_bytes, blobs_damaged; /* that were looked at; those missing or damaged */
    bool has_blobs, has_keys, is_checked;
    uint64_t acts_lost; /* of a restore with a HEAD: records of the audit log that it had seen, and
                           the backup had not */
};

struct backup_options {
    const char *folder; /* of the market; a broker may be running on it */
    const char *target; /* must not be there yet, or be an empty folder */
    const char *audit;  /* path of bourse-audit */
    bool without_blobs, with_keys;
    bool unchecked; /* believed as it is, in a hurry */
};
/* The copy is replayed, audited and its blobs are hashed, unless `unchecked`. Damaged blobs are
 * counted in the report and named in the log: money is worth a backup without them. False with a
 * problem; nothing is left at `target` then. */
bool backup_make(const struct backup_options *options, struct backup_report *ret_report,
                 struct problem *ret_problem);

struct restore_options {
    const char *backup;
    const char *folder; /* must not be there yet, or be an empty folder */
    const char *head;   /* a HEAD file of a later time, or NULL */
    const char
        *checkpoint;   /* a signed checkpoint of a later time, or a receipt with one, or NULL */
    const char *audit; /* path of bourse-audit */
    bool without_blobs;
    bool skip_damaged_blobs; /* counted, and as if they had never been stored; otherwise they are a
                                refusal */
};
/* With `head`, whose entry the journal must reach, a HEAD is written and the market may be served;
 * without, its start needs --adopt-journal. The audit log must have the record that `head` has
 * seen, or end before it: then what it lacks is counted, there and in the new HEAD. False with a
 * problem; nothing is left at `folder` then, and *ret_is_wrong says whether the backup itself, or
 * what was shown, is why. */
bool backup_restore(const struct restore_options *options, struct backup_report *ret_report,
                    bool *ret_is_wrong, struct problem *ret_problem);

/* Replays and audits the copy in `folder`, hashes its blobs, and counts them in `report`; writes
 * nothing. False with a problem, and *ret_is_wrong as above; damaged blobs are not one. */
bool backup_check(const char *folder, const char *audit, struct backup_report *report,
                  bool *ret_is_wrong, struct problem *ret_problem);

/* For both: `folder` or a folder that is not there yet, made empty and private, as `ret_beside`. */
bool backup_beside(const char *folder, char *ret_beside, size_t capacity,
                   struct problem *ret_problem);
/* Moves it to its place and makes that durable. */
bool backup_publish(const char *beside, const char *folder, struct problem *ret_problem);
/* Removes a folder that backup_beside made, with all that is in it. */
void backup_discard(const char *beside);

struct backup_parts {
    bool blobs, keys;
};
/* Copies a market's files from one folder to another, all that `wanted` names and that are there.
 * False when the copy ends short of the HEAD in `from`, or is of another history: a damaged WAL
 * looks like one that ends early. *ret_is_wrong says then whether what is in `from` is why, or
 * something that could not be done. */
bool backup_copy(const char *from, const char *to, const struct backup_parts *wanted,
                 struct backup_report *ret_report, bool *ret_is_wrong, struct problem *ret_problem);

#endif
