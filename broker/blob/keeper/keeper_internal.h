/* `struct keeper` is the state of the keeper's thread, which the units keeper*.c share. */
#ifndef BOURSE_BROKER_BLOB_KEEPER_KEEPER_INTERNAL_H
#define BOURSE_BROKER_BLOB_KEEPER_KEEPER_INTERNAL_H

#include "broker/blob/keeper/keeper.h"

#include "broker/blob/blob_forget.h"
#include "broker/blob/keeper/hash_list.h"
#include "broker/blob/keeper/job_blobs.h"
#include "broker/blob/keeper/job_catalog.h"
#include "ledger/store/sqlite.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>

struct keeper {
    struct keeper_config config;
    struct ledger_reader *ledger;
    sqlite3 *blobs; /* read only */
    sqlite3_stmt *owned_size;
    struct job_catalog *catalog;
    int64_t next_expiry_ns, next_removal_ns; /* monotonic */
    /* Accounts take turns. -1: a round begins. */
    int64_t tidied_account, expired_account;
    bool tidy_waits, expiry_waits; /* an account of this round could not go on */
    uint64_t looks;                /* blobs looked up for the request, and what manifests cost */
    pthread_t thread;
};

/* ---------------------------------------------------------------- keeper_reads.c */

/* Opens the databases. Returns false when one cannot be opened or memory is short. */
bool keeper_open(struct keeper *keeper);
void keeper_close(struct keeper *keeper);
/* Reads what is new of the catalogue, and which jobs are forgotten. */
bool keeper_learn(struct keeper *keeper);
/* Adds the blobs of a job to the list, sorted by nothing yet. LOST: those that its manifest names
 * are not in it. */
enum job_blobs_status keeper_collect(struct keeper *keeper, const struct known_job *job,
                                     uint32_t number, struct hash_list *list);
/* Marks the blobs of a sorted list that other jobs of the account need. Other jobs are those that
 * are neither forgotten nor `chosen`. */
enum keeper_status {
    KEEPER_OK,
    KEEPER_WAITS,  /* the blobs that an open job needs cannot be known now */
    KEEPER_GRACE,  /* forgotten blobs of the size of a whole quota still wait for their grace */
    KEEPER_FULL,   /* the broker's disk is full */
    KEEPER_FAILED, /* a database or the disk does not answer, or memory is short */
};
enum keeper_status keeper_mark_needed(struct keeper *keeper, uint32_t account,
                                      const struct known_job *const *chosen, size_t count,
                                      struct hash_list *list);
/* Returns the size of a blob that the account owns; -1: it does not own the blob. */
int64_t keeper_owned_size(struct keeper *keeper, uint32_t account, const struct hash32 *hash);
/* Returns a number that one row of blobs.db has, or `otherwise` when there is no row. `?1` of the
 * statement is `parameter`. */
int64_t keeper_number(struct keeper *keeper, const char *text, int64_t parameter,
                      int64_t otherwise);
/* Sets when the blobs of an ended job expire, in log time; INT64_MAX: they do not. The time stays 0
 * when the manifest cannot be read now; a later call tries again. A job whose manifest is lost has
 * the longest time. */
void keeper_set_expiry(struct keeper *keeper, struct known_job *job);

/* ---------------------------------------------------------------- keeper_forget.c */

enum { KEEPER_JOBS_AT_ONCE = 64 };

/* A share counts what forgetting one job frees. */
struct keeper_share {
    uint64_t blobs, bytes;
};
/* Waits until the store has recorded the blobs that results have named so far. */
bool keeper_settle(struct keeper *keeper);
/* Forgets ended jobs of one account, at most KEEPER_JOBS_AT_ONCE. With `is_dry` the call only
 * counts what would be freed. ret_shares has an element for each job. */
enum keeper_status keeper_forget(struct keeper *keeper, uint32_t account,
                                 struct known_job *const *jobs, size_t count,
                                 enum forget_reason reason, bool is_dry,
                                 struct keeper_share *ret_shares);
/* Goes on with jobs that a former broker had not finished, and removes blobs after the grace. */
void keeper_tidy(struct keeper *keeper);
/* Forgets jobs that expired. */
void keeper_expire(struct keeper *keeper);

#endif
