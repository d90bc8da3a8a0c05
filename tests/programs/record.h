/* tests/programs/record.h - what one client asked for and was told, in a file of its own that
 * outlives the client: a line each, on the disk before anything more is done.
 *
 *     asked job ID SUBTASKS BUDGET NAME      before the request goes out
 *     accepted job ID                        once it is acknowledged
 *     asked mint ID AMOUNT                   amounts are unique, so that the ledger shows each
 *     accepted mint ID
 *     asked cancel ID
 *     accepted cancel ID
 *     shown ID INDEX ATTEMPT STATUS CHARGE LOG_INDEX PROVIDER     a decided result
 *     ended ID STATE ACCEPTED FAILED CANCELLED CHARGED            a job's last word
 *
 * A line that the client's death cut short has no newline, and does not count. */
#ifndef BOURSE_TESTS_RECORD_H
#define BOURSE_TESTS_RECORD_H

#include "consumer/client/bourse.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_NAME_SIZE = 64 };

struct record_job {
    char id[BOURSE_ID_SIZE];
    char name[RECORD_NAME_SIZE];
    uint32_t subtasks;
    int64_t budget_micro;
    bool accepted, cancel_asked, cancelled, ended;
    int state; /* the four that follow count once it has ended */
    uint32_t subtasks_accepted, subtasks_failed, subtasks_cancelled;
    int64_t charged_micro;
};

struct record_mint {
    char id[BOURSE_ID_SIZE];
    int64_t amount_micro;
    bool accepted;
};

struct record_shown {
    size_t job; /* index of jobs */
    uint32_t index, attempt;
    int status;
    int64_t charge_micro;
    uint64_t log_index;
    char provider[BOURSE_HEX32_SIZE];
};

struct record {
    int fd; /* -1: only read */
    struct record_job *jobs;
    struct record_mint *mints;
    struct record_shown *shown;
    size_t job_count, mint_count, shown_count;
    size_t job_capacity, mint_capacity, shown_capacity;
};

/* Reads what there is; with `append`, opens it for more and drops a line that was cut short. A file
 * that makes no sense ends the program. */
void record_open(struct record *self, const char *path, bool append);
void record_fini(struct record *self);
/* Begins anew: the file is empty, nothing is known. */
void record_forget(struct record *self);

/* Each writes its line, syncs it, and takes it up in memory. A failed write ends the program. */
void record_asked_job(struct record *self, const struct record_job *job);
void record_asked_mint(struct record *self, const struct record_mint *mint);
void record_accepted_job(struct record *self, size_t job);
void record_accepted_mint(struct record *self, size_t mint);
void record_asked_cancel(struct record *self, size_t job);
void record_accepted_cancel(struct record *self, size_t job);
void record_shown(struct record *self, const struct record_shown *shown);
void record_ended(struct record *self, size_t job, const struct bourse_job_row *row);

/* The same attempt as shown before, or NULL. */
const struct record_shown *record_find_shown(const struct record *self, size_t job, uint32_t index,
                                             uint32_t attempt);

#endif
