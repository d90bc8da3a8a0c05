/* consumer/command/job/jobs.h declares the functions that submit and run share with the commands on
 * jobs. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_JOBS_H
#define BOURSE_CONSUMER_COMMAND_JOB_JOBS_H

#include "consumer/command/command.h"

/* Fetches outputs and shows progress; files get the user's own umask. */
bool jobs_fetch_into(struct invocation *invocation, const char *id, const char *folder,
                     struct bourse_fetched *ret_fetched, struct bourse_error *ret_error);
/* Prints the leases of a job after an empty line, or nothing without leases to print. */
void jobs_print_leases(FILE *to, const struct bourse_job_row *row, bool also_ended, bool color);

/* Runs `plan FILE|JOB` and returns the exit status. */
int plan_job(struct invocation *invocation);

void job_say_ended(const struct bourse_job_row *row);
/* Prints why the job ended; the first subtask without success stands for the others. */
void job_say_why(struct invocation *invocation, const struct bourse_job_row *row);
void jobs_print_explanation(FILE *to, const struct bourse_explanation *explanation);

/* Returns the names of a job's subtasks. Returns NULL when there are none or they cannot be read;
 * the caller then shows numbers. */
struct bourse_tasks *tasks_load(struct invocation *invocation, const char *id);
/* Takes the second of the words JOB INDEX, or of JOB/INDEX, and cuts the first at the slash.
 * Returns NULL when no subtask is named. */
const char *tasks_take_word(struct invocation *invocation);
/* Resolves `text` to a subtask: a number, or a name from `tasks`, which may be NULL. Returns false
 * and the exit status after a message with the valid ones. */
bool tasks_resolve(struct invocation *invocation, const char *id, const struct bourse_tasks *tasks,
                   const char *text, uint32_t *ret_index, int *ret_status);
/* Returns true when subtasks have names: all of them, or all but the checks, which come last. */
bool tasks_are_named(const struct bourse_tasks *tasks);
/* Prints one task a row: its state, its tries, and the tasks that it waits for. */
void tasks_print(struct invocation *invocation, const struct bourse_job_row *row,
                 const struct bourse_tasks *tasks);
enum { BOURSE_WHY_SIZE = BOURSE_TEXT_SIZE + 64 };
/* Writes the end of an attempt, with its detail. */
void failures_why(const struct bourse_outcome *outcome, char ret_text[BOURSE_WHY_SIZE]);
/* Prints which subtasks failed and why: the first ones, and the number of the rest. The job has no
 * names, has ended and is not done. */
void failures_print(struct invocation *invocation, const struct bourse_job_row *row);
json_t *failures_json(struct invocation *invocation, const struct bourse_job_row *row,
                      uint32_t *ret_more);
/* Returns true when an ended job failed because no agent can use its image. A resumed job would
 * have the same image. */
bool failures_are_of_image(struct invocation *invocation, const struct bourse_job_row *row);
/* A subtask_end tells how a subtask of an ended job ended. */
struct subtask_end {
    const char *state; /* "accepted", "failed", "cancelled" */
    uint32_t tries;
    char why[BOURSE_WHY_SIZE];       /* "" unless the subtask failed */
    char text[BOURSE_WHY_SIZE + 96]; /* all of this as a sentence */
};
bool failures_find_end(struct invocation *invocation, const char *id, uint32_t index,
                       struct subtask_end *ret_end, struct bourse_error *ret_error);
/* Explains the order whose id begins with `prefix`, and returns true with the exit status. Returns
 * false, without a message, when no order, several, or a job has such an id. */
bool explain_order(struct invocation *invocation, const char *prefix, int *ret_status);
/* Explains one subtask, given as JOB/INDEX, and returns true with the exit status. Returns false,
 * without a message, when the word has another form or names a file. */
bool explain_subtask(struct invocation *invocation, const char *word, int *ret_status);
/* Explains why each task or part of an open job is not done, by name where there is one. `tightest`
 * is the explanation of the whole job. Returns the exit status. */
int tasks_explain_parts(struct invocation *invocation, const char *id,
                        const struct bourse_tasks *tasks,
                        const struct bourse_explanation *tightest);
json_t *tasks_json(struct invocation *invocation, const struct bourse_job_row *row,
                   const struct bourse_tasks *tasks);

#endif
