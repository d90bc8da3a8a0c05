/* consumer/job/replan.h plans the rest of a job anew, at the pace of its results, when its subtasks
 * leave the plan. The header is not installed.
 *
 * The plan does not change the job. The market by itself gives a job every free slot that its
 * limit, its budget and its `at_most` allow. Every other measure changes what the user agreed to,
 * so the user must decide. */
#ifndef BOURSE_CONSUMER_JOB_REPLAN_H
#define BOURSE_CONSUMER_JOB_REPLAN_H

#include "consumer/client/bourse.h"

struct replan {
    /* Percent that subtasks take longer than expected at submission; negative: shorter. */
    int64_t percent;
    bool was_guess;     /* no person stated and no market measured the expected time */
    int64_t left_ns;    /* time until all is done; running subtasks count from now */
    int64_t late_ns;    /* the rest ends so long after the job's deadline; 0: in time, or none */
    int64_t cost_micro; /* total cost, the charges so far included */
    uint32_t lanes;     /* lanes of the new plan */
    int64_t takes_ms;   /* longest remaining subtask */
    int64_t limit_ms;   /* the limit that ends such a subtask */
    /* More slots at a time that would help, where `at_most` allows fewer; 0: `at_most` is not in
     * the way. */
    uint32_t slots;
    /* Larger budget that such leases need; 0: the present budget suffices. */
    int64_t budget_micro;
    /* Time until all is done with both; 0: more slots would not help, none is free, or the job gets
     * them anyway. */
    int64_t sooner_ns;
};

/* Returns true when the subtasks of an open job take over a fifth more or less than planned.
 * `ret_percent` is the difference for the same subtasks. The market's expected average stands in
 * for an unknown plan or a job too large to lay out. Returns false also when the broker does not
 * answer. */
bool replan_drifts(struct bourse *bourse, const struct bourse_job_row *row, int64_t *ret_percent);

/* Plans the rest of a job anew. Fails with NOT_FOUND when the job has ended, keeps to its plan, or
 * has no fitting offer. */
bool replan_job(struct bourse *bourse, const char *id, struct replan *ret_replan,
                struct bourse_error *ret_error);

#endif
