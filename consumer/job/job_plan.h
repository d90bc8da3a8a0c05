/* consumer/job/job_plan.h plans a job on the present offers, or the rest of a job on its leases.
 * planner/schedule/list_schedule.h has the rules. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_JOB_PLAN_H
#define BOURSE_CONSUMER_JOB_JOB_PLAN_H

#include "consumer/job/supply.h"
#include "protocol/codec.h"

struct job_plan {
    struct supply *supply;
    /* The schedule on the offered places. NULL: the job is too large, a part fits no place, or the
     * job takes longer than can be told. */
    struct list_schedule *schedule;
    bool is_too_large; /* more than LIST_SCHEDULE_SUBTASKS subtasks */
    /* The place that would be done first on its own; supply->count: no place can do everything. */
    size_t single;
    int64_t single_ns;
    /* Makespan if every subtask takes its p90; -1: some p90 is unknown. */
    int64_t p90_ns;
    Bourse__V1__Manifest *manifest; /* the job's manifest */
    bool is_on_leases;              /* the places are leases of the job */
};

/* Makes a plan; the caller destroys it. `quotes` has one quote for each part, as submit_quote_parts
 * fills them. `row` is the submitted job of which `job` is the rest, or NULL. An open job's leases
 * are the places, if it has any. */
bool job_plan_make(struct bourse *bourse, const struct bourse_job *job,
                   const struct bourse_quote *quotes, const struct bourse_job_row *row,
                   struct job_plan **ret_plan, struct bourse_error *error);
void job_plan_destroy(struct job_plan **self);

/* Returns the name of a subtask, or NULL when it has only a number. */
const char *job_plan_name(const struct job_plan *plan, uint32_t index);

/* Makes a job of the rest of another one, open or not, to plan and never to submit. The new job has
 * no cap and no value. Fails with NOT_FOUND when nothing is left. */
bool resume_to_plan(struct bourse *bourse, const char *id, struct bourse_job **ret_job,
                    struct bourse_error *error);

#endif
