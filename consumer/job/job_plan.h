/* consumer/job/job_plan.h - how a job would run on what is on offer now, and what is left of one on
 * the leases that it has. Not installed; planner/schedule/deal.h says by which rules. */
#ifndef BOURSE_CONSUMER_JOB_JOB_PLAN_H
#define BOURSE_CONSUMER_JOB_JOB_PLAN_H

#include "consumer/job/offered.h"
#include "protocol/codec.h"

struct job_plan {
    struct offered *offered;
    struct deal
        *deal; /* of these places; NULL: a part fits none, it takes longer than can be told, or */
    bool is_too_large; /* it has more subtasks than are laid out one by one: DEAL_SUBTASKS */
    size_t single; /* the place that would be done first alone; offered->count: none can do all of
                      it */
    int64_t single_ns;
    int64_t p90_ns; /* the makespan if all take what nine of ten took at most; -1: that is not known
                       of all */
    Bourse__V1__Manifest *manifest; /* of the job */
    bool is_on_leases;              /* the places are leases that it has */
};

/* `quotes`: of each part of the job, as submit_quote_parts has them. `row`: of a job of which this
 * is what is left, NULL: it is not there yet; the leases of one that is open are its places, if it
 * has any. The caller frees it. */
bool job_plan_make(struct bourse *bourse, const struct bourse_job *job,
                   const struct bourse_quote *quotes, const struct bourse_job_row *row,
                   struct job_plan **ret_plan, struct bourse_error *error);
void job_plan_destroy(struct job_plan **self);

/* NULL: it has none, but a number. */
const char *job_plan_name(const struct job_plan *plan, uint32_t index);

/* What is left of a job, open or not, to be planned and not to be submitted: without the cap or the
 * value that it had. NOT_FOUND: nothing is. */
bool resume_to_plan(struct bourse *bourse, const char *id, struct bourse_job **ret_job,
                    struct bourse_error *error);

#endif
