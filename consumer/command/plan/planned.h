/* consumer/command/plan/planned.h holds a job with its quote and its plan, for `plan FILE|JOB`.
 * plan_job.c shows it as tables and a timeline, plan_job_json.c as JSON. Unknown figures stay
 * unknown. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_PLANNED_H
#define BOURSE_CONSUMER_COMMAND_PLAN_PLANNED_H

#include "consumer/command/command.h"
#include "consumer/command/job/offer.h"
#include "consumer/job/job_plan.h"
#include "planner/cost/profile.h"

enum { PLANNED_CELL = 96 };

struct planned { /* everything that is shown */
    struct invocation *invocation;
    struct bourse_job *job;
    struct offer offer;
    struct bourse_jobs *jobs; /* the job's row; NULL: a job file */
    struct job_plan *plan;
};

/* Basis of a subtask's time. */
enum planned_source {
    /* on devices of the same instrument, or any if unknown */
    PLANNED_MEASURED,
    /* on other devices */
    PLANNED_ELSEWHERE,
    PLANNED_DECLARED,
    PLANNED_GUESS,
    PLANNED_SOURCES,
};
extern const char *const planned_source_names[PLANNED_SOURCES];

/* Returns the job's row, or NULL for a job file. */
const struct bourse_job_row *planned_row(const struct planned *planned);
/* Returns the part of a subtask. */
size_t planned_part(const struct bourse_job *job, uint32_t index);

/* Writes "box/cpu", or the price of a place without a name. */
void planned_write_place(const struct supply_place *place, char ret_text[PLANNED_CELL]);
void planned_write_subtask(const struct planned *planned, uint32_t index,
                           char ret_text[PLANNED_CELL]);
void planned_write_source(const struct planned *planned, uint32_t index,
                          char ret_text[PLANNED_CELL]);

struct history_figure planned_figure(const struct planned *planned, uint32_t index);
/* `ret_samples` counts the measured samples. */
enum planned_source planned_source(const struct planned *planned, uint32_t index,
                                   uint64_t *ret_samples);
/* Counts the subtasks by the source of their time. */
void planned_count_sources(const struct planned *planned, uint32_t ret_counts[PLANNED_SOURCES]);
/* The weakest source of all subtasks counts. */
const char *planned_whole_source(const struct planned *planned);

/* Returns the bytes that come to a place: each subtask's own inputs, and the shared files once.
 * Files between subtasks have no known size. */
uint64_t planned_bytes_to(const struct planned *planned, size_t place);
/* Returns true when subtasks take files of one another. */
bool planned_hands_on(const struct planned *planned);

/* Prints the plan as JSON, and returns the exit status. */
int planned_show_json(const struct planned *planned, int status);

#endif
