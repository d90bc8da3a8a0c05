/* consumer/client/bourse_jobs.h lists jobs on the market, and reads their state, leases and
 * subtasks. Include consumer/client/bourse.h, which states the rules that all of its parts
 * share. */
#ifndef BOURSE_CONSUMER_CLIENT_BOURSE_JOBS_H
#define BOURSE_CONSUMER_CLIENT_BOURSE_JOBS_H

#include "consumer/client/bourse_submission.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bourse_job_state {
    BOURSE_OPEN = 0,
    BOURSE_DONE = 1,
    BOURSE_FAILED = 2,
    BOURSE_WAS_CANCELLED = 3
};

struct bourse_lease {
    uint64_t lease;
    char provider[BOURSE_NAME_SIZE];
    char device[BOURSE_NAME_SIZE];
    char state[BOURSE_NAME_SIZE];
    uint32_t slots;
    int64_t price_micro;
    uint32_t accepted;
    int64_t paid_ns;
    int64_t charged_micro;
    bool simulated;     /* the device is simulated, and a model made its times */
    bool interruptible; /* a higher bid may take the lease */
    bool taken;         /* a higher bid took it: the lease ends with the notice */
    int64_t silent_ms;  /* its provider is silent for so long; 0: unknown; -1: it is not */
    bool frozen;        /* it ended when the operator froze its provider, which still is so */
    char frozen_why[BOURSE_TEXT_SIZE]; /* the operator's reason; "": none was given */
};
struct bourse_job_row {
    char id[BOURSE_ID_SIZE];
    char name[BOURSE_NAME_SIZE];
    enum bourse_job_state state;
    const char *state_text; /* "open", "done", "failed", "cancelled" */
    int reason;
    bool is_expired; /* the time was up: the job ended, or waits for running subtasks */
    /* The job ended: its order asked for all slots at once and did not get or keep them. */
    bool is_unfilled;
    const char *reason_text; /* why the job waits or why it ended, or "" */
    uint32_t subtasks, waiting, running, accepted, failed, cancelled;
    uint32_t checking; /* results that are held for a referee's check */
    uint32_t accused;  /* held results that one referee rejects and no other has judged */
    int64_t budget_micro, charged_micro, reserved_micro;
    int64_t submitted_ms, ended_ms; /* ended_ms is 0 while the job is open */
    char manifest[BOURSE_HEX32_SIZE];
    uint64_t index; /* journal index of this row */
    size_t lease_count;
    const struct bourse_lease *leases; /* lives as long as the row's list, or the callback */
    uint32_t queued; /* running subtasks that stand behind another in their lane */
    /* Subtasks with a checkpoint, from which their next attempt continues. */
    uint32_t saved;
    /* Time until the job is done, at the measured pace and on the lanes that it has; -1:
     * unknown. */
    int64_t left_ms;
    /* Sums over `timed` results, checks left out: the time expected at submission, perhaps a guess,
     * and the time taken. */
    uint32_t timed;
    int64_t foreseen_ms, took_ms;
    int64_t deadline_ms; /* moment at which the market ends the job; 0: none */
    bool is_late;        /* the deadline passed: the job ended, or its programs are told to end */
    int64_t seen_ms;     /* the market's time when the row came */
};

/* Finds a job by `text`: a whole id, a unique prefix of one, a name, or "last" for the newest. A
 * name means the one open job of that name, or the newest ended one when none is open. Fails with
 * NOT_FOUND when there is no such job, with USAGE when there are several. */
bool bourse_find_job(struct bourse *bourse, const char *text, char ret_id[BOURSE_ID_SIZE],
                     struct bourse_error *ret_error);

struct bourse_jobs;
/* Returns the newest jobs of this account, newest first, or one with its leases; the caller
 * destroys the list. One answer of the broker has at most 1,000 jobs. */
bool bourse_jobs(struct bourse *bourse, const char *id, struct bourse_jobs **ret_jobs,
                 struct bourse_error *ret_error);
/* Returns the newest `most` jobs of this account, from as many answers as that takes. A list never
 * has more than BOURSE_JOBS_MOST jobs. */
enum { BOURSE_JOBS_MOST = 100000 };
bool bourse_all_jobs(struct bourse *bourse, size_t most, struct bourse_jobs **ret_jobs,
                     struct bourse_error *ret_error);
size_t bourse_jobs_count(const struct bourse_jobs *jobs);
const struct bourse_job_row *bourse_jobs_row(const struct bourse_jobs *jobs, size_t index);
void bourse_jobs_destroy(struct bourse_jobs **self);

enum bourse_subtask_state {
    BOURSE_SUBTASK_WAITING,
    BOURSE_SUBTASK_RUNNING,
    BOURSE_SUBTASK_CHECKING, /* the result waits for a referee's verdict */
    BOURSE_SUBTASK_ACCEPTED,
    BOURSE_SUBTASK_FAILED,
    BOURSE_SUBTASK_CANCELLED,
    BOURSE_SUBTASK_QUEUED /* on a device, behind another subtask in its lane */
};
struct bourse_subtask {
    enum bourse_subtask_state state;
    uint32_t tries; /* attempts that were started */
};
/* Returns the state of each subtask of an open job; the caller frees the array with bourse_free.
 * The array is empty when the job has ended or has more than 65536 subtasks. */
bool bourse_subtasks(struct bourse *bourse, const char *id, struct bourse_subtask **ret_subtasks,
                     uint32_t *ret_count, struct bourse_error *ret_error);

struct bourse_judged { /* held results whose checks the client computed */
    uint32_t accepted, rejected, unsure;
    uint32_t left; /* left to a referee of another owner */
};
/* Computes the checks of results that a referee rejects and no referee of another owner can judge.
 * The market then gets the verdicts. bourse_wait does so by itself. The call takes memory for three
 * matrices. */
bool bourse_judge(struct bourse *bourse, const char *id, struct bourse_judged *ret_judged,
                  struct bourse_error *ret_error);

/* Waits until the job has ended, at most `timeout_ms` (0: for ever). `watcher`, which may be NULL,
 * hears of each change, and gets a NULL `row` while the broker is unreachable. Every ten seconds a
 * row comes with the leases of the job. The wait ends early, with true, when `watcher` says false.
 * `ret_row` is the last row, with `leases` NULL. */
typedef bool bourse_watcher(void *context, const struct bourse_job_row *row);
bool bourse_wait(struct bourse *bourse, const char *id, int64_t timeout_ms, bourse_watcher *watcher,
                 void *context, struct bourse_job_row *ret_row, struct bourse_error *ret_error);

/* A piece of what a running subtask prints. The bytes of a stream are numbered from 0 in each
 * attempt. A piece may come twice. Bytes between two pieces were left out: they are in the result
 * of the subtask, as far as the result keeps them. */
struct bourse_piece {
    uint32_t index, attempt;
    bool is_standard_error;
    uint64_t offset; /* of the first byte in its stream */
    const void *bytes;
    size_t size;
};
/* Lets each bourse_wait for this job hand over what its subtasks print meanwhile, until
 * bourse_unlisten. A connection listens to one job. `listener` borrows the piece, and calls no
 * function of the connection. A broker that passes no output on is no failure: nothing comes. */
typedef void bourse_listener(void *context, const struct bourse_piece *piece);
bool bourse_listen(struct bourse *bourse, const char *id, bourse_listener *listener, void *context,
                   struct bourse_error *ret_error);
void bourse_unlisten(struct bourse *bourse);

bool bourse_cancel(struct bourse *bourse, const char *id, struct bourse_error *ret_error);
bool bourse_explain(struct bourse *bourse, const char *id,
                    struct bourse_explanation *ret_explanation, struct bourse_error *ret_error);
/* Explains one subtask, by its index, and its part. Fails with NOT_FOUND when the job has fewer. */
bool bourse_explain_subtask(struct bourse *bourse, const char *id, uint32_t index,
                            struct bourse_explanation *ret_explanation,
                            struct bourse_error *ret_error);
/* Explains one part, from 0 on. Fails with NOT_FOUND when the job has fewer. */
bool bourse_explain_part(struct bourse *bourse, const char *id, uint32_t part,
                         struct bourse_explanation *ret_explanation,
                         struct bourse_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
