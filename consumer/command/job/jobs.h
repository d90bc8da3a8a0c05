/* consumer/command/job/jobs.h declares the functions that submit and run share with the commands on
 * jobs. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_JOBS_H
#define BOURSE_CONSUMER_COMMAND_JOB_JOBS_H

#include "consumer/command/command.h"
#include "consumer/command/progress.h"

/* Fetches outputs of all subtasks and shows progress; files get the user's own umask. */
bool fetching_all(struct invocation *invocation, const char *id, const char *folder,
                  struct bourse_fetched *ret_fetched, struct bourse_error *ret_error);
/* Prints the leases of a job after an empty line, or nothing without leases to print. Then it names
 * each provider of the job that the market does not hear. */
void jobs_print_leases(FILE *to, const struct bourse_job_row *row, bool also_ended, bool color);
/* Names the silent and the frozen providers of a job on stderr, below the progress, when there are
 * more of them than `*absent`, their number in the row before. Rows without leases say nothing. */
void jobs_say_absent(struct progress *progress, const struct bourse_job_row *row, uint32_t *absent);

/* Makes the job that the options and words of `run` or `shell` describe. Returns NULL after a
 * message; the caller owns the job. */
struct job_file;
struct job_file *job_from_arguments(struct invocation *invocation);

/* Runs `plan FILE|JOB` and returns the exit status. */
int plan_job(struct invocation *invocation);

/* Writes in one line how a job ended: subtasks, cost, and the reason unless the job is done. */
enum { JOB_ENDED_SIZE = 512 };
void job_ended_line(const struct bourse_job_row *row, char ret_text[JOB_ENDED_SIZE]);
void job_say_ended(const struct bourse_job_row *row);
/* Prints why the job ended; the first subtask without success stands for the others. */
void job_say_why(struct invocation *invocation, const struct bourse_job_row *row);
void jobs_print_explanation(FILE *to, const struct bourse_explanation *explanation);
/* Prints when an open job with a deadline would be done, and what helps when that is too late. The
 * explanation has the changes that the market tried; NULL: they are not known. */
void jobs_print_forecast(struct invocation *invocation, FILE *to, const struct bourse_job_row *row,
                         const struct bourse_explanation *explanation);

/* Returns the names of a job's subtasks, or the numbers of an array. Returns NULL when there are
 * none or they cannot be read; the caller then shows indices. */
struct bourse_tasks *tasks_load(struct invocation *invocation, const char *id);
/* Takes the second of the words JOB INDEX, or of JOB/INDEX, and cuts the first at the slash.
 * Returns NULL when no subtask is named. */
const char *tasks_take_word(struct invocation *invocation);
/* Returns true for a job of one subtask, which needs no INDEX; false with the exit status after a
 * message. */
bool tasks_is_single(struct invocation *invocation, const char *id, int *ret_status);
/* Resolves `text` to a subtask: a number, or a name from `tasks`, which may be NULL. A number of an
 * array is the one that the user wrote; elsewhere it is the index. Returns false
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
void failures_print(struct invocation *invocation, const struct bourse_job_row *row,
                    const struct bourse_tasks *tasks);
json_t *failures_json(struct invocation *invocation, const struct bourse_job_row *row,
                      const struct bourse_tasks *tasks, uint32_t *ret_more);
/* Returns true when an ended job failed because no agent can use its image. A resumed job would
 * have the same image. */
bool failures_are_of_image(struct invocation *invocation, const struct bourse_job_row *row);
/* A subtask_end tells how a subtask of an ended job ended. */
struct subtask_end {
    const char *state; /* "accepted", "failed", "cancelled" */
    uint32_t tries;
    char why[BOURSE_WHY_SIZE];        /* "" unless the subtask failed */
    char text[BOURSE_WHY_SIZE + 256]; /* all of this as a sentence */
};
bool failures_find_end(struct invocation *invocation, const char *id,
                       const struct bourse_tasks *tasks, uint32_t index,
                       struct subtask_end *ret_end, struct bourse_error *ret_error);
/* Prints the command that fills the job, and how much of it, when only its bid must change. Returns
 * false, without a word, when more must change or nothing would do. */
bool jobs_print_replace(struct invocation *invocation, FILE *to, const char *id,
                        const struct bourse_explanation *explanation);
/* Explains the order whose id begins with `prefix`, and returns true with the exit status. Returns
 * false, without a message, when no order, several, or a job has such an id. */
bool explain_order(struct invocation *invocation, const char *prefix, int *ret_status);
/* Returns true when a call to the broker got no answer: another call would wait as long again. */
bool explain_is_unanswered(const struct bourse_error *error);
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
