/* consumer/job/job_plan.h plans a job on the present offers, or the rest of a job on its leases.
 * planner/plan/plan_make.h makes the plan. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_JOB_PLAN_H
#define BOURSE_CONSUMER_JOB_JOB_PLAN_H

#include "consumer/job/supply.h"
#include "planner/plan/plan_make.h"
#include "protocol/codec.h"

/* Figures of a plan that cost more schedules. */
enum { JOB_PLAN_SINGLE = 1 << 0, JOB_PLAN_P90 = 1 << 1 };

/* Plans the job on the places of a supply, which are the devices of the plan. Each subtask takes
 * its expected time. Returns PLAN_NOWHERE also when nothing is on offer. `figures` says what the
 * plan knows besides: the place that would be done first alone, and the p90 if that of all work is
 * known. The caller owns the plan. */
enum plan_status job_plan_on(const struct bourse_job *job, const struct supply *supply,
                             unsigned figures, struct plan **ret_plan);

struct job_plan {
    struct supply *supply;
    /* The plan on the offered places, which are its devices. NULL: the job is too large, a part
     * fits no place, or the job takes longer than can be told. */
    struct plan *plan;
    bool is_too_large;              /* more than LIST_SCHEDULE_SUBTASKS subtasks */
    Bourse__V1__Manifest *manifest; /* the job's manifest */
    bool is_array;                  /* the manifest lists the numbers of an array */
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

/* Returns the number of a subtask as the user wrote it in `array:`, else its index. */
uint64_t job_plan_number(const struct job_plan *plan, uint32_t index);

/* Makes a job of the rest of another one, open or not, to plan and never to submit. The new job has
 * no cap and no value. Fails with NOT_FOUND when nothing is left. */
bool resume_to_plan(struct bourse *bourse, const char *id, struct bourse_job **ret_job,
                    struct bourse_error *error);

#endif
