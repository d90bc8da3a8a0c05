/* consumer/job/replan.h - a job whose subtasks take more or less than was planned, planned anew:
 * what is left of it, at the pace of its results. Not installed.
 *
 * The plan changes nothing of the job. By itself the market gives it every slot that is free and
 * that its limit, its budget and its `at_most` allow; whatever else could be done changes what was
 * agreed to, and is for whoever did. */
#ifndef BOURSE_CONSUMER_JOB_REPLAN_H
#define BOURSE_CONSUMER_JOB_REPLAN_H

#include "consumer/client/bourse.h"

struct replan {
    int64_t percent;    /* subtasks take so much longer, or less long if below 0, than was expected
                           when it was submitted */
    bool was_guess;     /* which nobody had said or measured */
    int64_t left_ns;    /* until all is done; what runs counts as if it began now */
    int64_t cost_micro; /* of all of it, with what it was charged so far */
    uint32_t lanes;     /* that is on */
    int64_t takes_ms;   /* what the longest subtask that is left takes, and */
    int64_t limit_ms;   /* when such a one is ended */
    uint32_t slots; /* with so many at a time, where fewer are allowed now; 0: they are not in the
                       way; and */
    int64_t budget_micro; /* with such a budget, where its own does not do for their leases; 0: it
                             does */
    int64_t sooner_ns;    /* all would be done by then; 0: more would not help, none is free at the
                             prices it pays, or it will have them anyway */
};

/* Whether the subtasks of an open job take more than a fifth more or less than was planned of just
 * these: `ret_percent` more. Of jobs too large to be laid out, and where no plan is known, than the
 * market expects on average. False also where the broker does not tell. */
bool replan_drifts(struct bourse *bourse, const struct bourse_job_row *row, int64_t *ret_percent);

/* NOT_FOUND: it has ended, or goes as it was planned, or nothing that fits what is left is
 * there. */
bool replan_job(struct bourse *bourse, const char *id, struct replan *ret_replan,
                struct bourse_error *ret_error);

#endif
