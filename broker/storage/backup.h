/* A backup is a complete copy of a market at one moment; a restore turns it into a market again
 * (P12).
 *
 * A backup is a folder: ledger.db as of one commit, the journal's tail where ledger.db did not have
 * it yet, then blobs.db and the files of blobs/, then broker.yaml, and the secret keys on request.
 * It never has HEAD, LOCK, snapshots or sockets. HEAD is what shows that a backup is old; a backup
 * with its own HEAD would show nothing. Blobs are copied after the ledger, so that no job lacks its
 * blobs. The copy is made beside its place and then moved there.
 *
 * A restore copies the backup beside its place too, and moves the copy after checks. They are the
 * chain of the journal, a replay from the first command, and every blob. An audit by a program that
 * shares no code follows, and a comparison with whatever the operator shows of a later time. */
#ifndef BOURSE_BROKER_STORAGE_BACKUP_H
#define BOURSE_BROKER_STORAGE_BACKUP_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

/* A report says what a backup holds. */
struct backup_report {
    uint64_t entry, command, tree_size;
    /* The log time of the last command tells the age of the backup. */
    int64_t log_time_ns;
    /* Blobs that were checked, their bytes, and the number that is missing or damaged. */
    uint64_t blobs, blob_bytes, blobs_damaged;
    bool has_blobs, has_keys, is_checked;
    /* After a restore with a HEAD: records of the audit log that HEAD had seen and the backup had
     * not. */
    uint64_t acts_lost;
};

struct backup_options {
    const char *folder; /* of the market; its broker may be running */
    const char *target; /* must not exist, or be an empty folder */
    const char *audit;  /* path of bourse-audit */
    bool without_blobs, with_keys;
    bool unchecked; /* skips the checks, to save time */
};
/* Makes a backup, and replays it, audits it and hashes its blobs, unless `unchecked`. The report
 * counts damaged blobs and the log names them: a backup without them still saves the money. Returns
 * false with a problem; then nothing is left at `target`. */
bool backup_make(const struct backup_options *options, struct backup_report *ret_report,
                 struct problem *ret_problem);

struct restore_options {
    const char *backup;
    const char *folder; /* must not exist, or be an empty folder */
    const char *head;   /* a HEAD file of a later time, or NULL */
    /* A signed checkpoint of a later time, or a receipt with one, or NULL. */
    const char *checkpoint;
    const char *audit; /* path of bourse-audit */
    bool without_blobs;
    /* The restore counts damaged blobs and forgets them; otherwise they are a refusal. */
    bool skip_damaged_blobs;
    /* Another broker goes on with the journal, so a HEAD is written without `head`: whether the
     * folder is of the same history is seen when it follows. */
    bool joins;
};
/* Restores a backup. With `head`, whose entry the journal must reach, a HEAD is written and the
 * market may be served. Without `head` its first start needs --adopt-journal.
 *
 * The audit log must have the record that `head` has seen, or end before it. Then the report and
 * the new HEAD count the lost records. Returns false with a problem; then nothing is left at
 * `folder`. *ret_is_wrong is then true when the backup, or what was shown, is the reason. */
bool backup_restore(const struct restore_options *options, struct backup_report *ret_report,
                    bool *ret_is_wrong, struct problem *ret_problem);

/* Replays and audits the copy in `folder`, hashes its blobs, and counts them in `report`; writes
 * nothing. Returns false with a problem, and *ret_is_wrong as above. Damaged blobs are no
 * failure. */
bool backup_check(const char *folder, const char *audit, struct backup_report *report,
                  bool *ret_is_wrong, struct problem *ret_problem);

/* Makes the empty private folder `folder`.partial, for a backup or a restore; its path goes to
 * `ret_beside`. Returns false with a problem, also when `folder` exists and is not empty. */
bool backup_beside(const char *folder, char *ret_beside, size_t capacity,
                   struct problem *ret_problem);
/* Moves the folder to its place and makes the move durable. */
bool backup_publish(const char *beside, const char *folder, struct problem *ret_problem);
/* Removes a folder that backup_beside made, with all its content. */
void backup_discard(const char *beside);

struct backup_parts {
    bool blobs, keys;
};
/* Copies the files of a market from one folder to another: all that `wanted` names and that exist.
 * Returns false when the copy ends before the HEAD in `from`, or is of another history: a damaged
 * WAL looks like one that ends early. *ret_is_wrong is then true when the content of `from` is the
 * reason, and false when an operation failed. */
bool backup_copy(const char *from, const char *to, const struct backup_parts *wanted,
                 struct backup_report *ret_report, bool *ret_is_wrong, struct problem *ret_problem);

#endif
