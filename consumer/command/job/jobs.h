/* consumer/command/job/jobs.h declares the functions that submit and run share with the commands on
 * jobs. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_JOBS_H
#define BOURSE_CONSUMER_COMMAND_JOB_JOBS_H

#include "consumer/command/command.h"
#include "consumer/job/order.h"

/* Fetches outputs and shows progress; files get the user's own umask. */
bool fetch_into(struct invocation *invocation, const char *id, const char *folder,
                struct bourse_fetched *ret_fetched, struct bourse_error *ret_error);
/* Prints the leases of a job after an empty line, or nothing without leases to print. */
void print_leases(FILE *to, const struct bourse_job_row *row, bool also_ended, bool color);

/* An offer is a job with its price. All fields but the job begin as zero. */
struct offer {
    struct bourse_job *job;
    struct bourse_job_summary summary;
    struct bourse_quote quote;
    int64_t limits[ORDER_PARTS_MAX]; /* highest price per slot-hour, by part */
    int64_t budget_micro;
    /* Quotes of the parts, SUBMIT_QUOTES of them; NULL: no caller needs them. */
    struct bourse_quote *parts;
};
/* Each of these functions returns false and the exit status after a message. */
bool offer_make(struct invocation *invocation, struct offer *offer, int *ret_status);
void offer_show(FILE *to, const struct offer *offer);
void offer_show_job(FILE *to, const struct offer *offer);   /* the job alone */
void offer_show_quote(FILE *to, const struct offer *offer); /* the quote alone */
json_t *json_offer(const struct offer *offer);
/* Returns BOURSE_OK, or NO_MATCH when the job would not start. */
int offer_status(const struct offer *offer);
/* Runs `plan FILE|JOB` and returns the exit status. */
int plan_job(struct invocation *invocation);
/* Returns true when devices fit, every ask is above the limit, and no lease can be taken. */
bool offer_is_too_dear(const struct bourse_quote *quote);
/* Returns true when some offered slots are donated and the job needs no credits. */
bool offer_is_given_away(const struct bourse_quote *quote);
/* Names one of several parts, counted from 1: "task a and 2 more". The text is "" for a single
 * part. */
enum { PART_TEXT_SIZE = 128 };
void offer_name_part(const struct bourse_job *job, uint32_t part, char ret_text[PART_TEXT_SIZE]);
bool offer_agree(struct invocation *invocation, const struct offer *offer,
                 int *ret_status); /* asks the user */
bool offer_place(struct invocation *invocation, struct offer *offer, char ret_id[BOURSE_ID_SIZE],
                 int *ret_status);

void say_ended(const struct bourse_job_row *row);
/* Prints why the job ended; the first subtask without success stands for the others. */
void say_why(struct invocation *invocation, const struct bourse_job_row *row);
void print_explanation(FILE *to, const struct bourse_explanation *explanation);

/* Returns the names of a job's subtasks. Returns NULL when there are none or they cannot be read;
 * the caller then shows numbers. */
struct bourse_tasks *load_tasks(struct invocation *invocation, const char *id);
/* Takes the second of the words JOB INDEX, or of JOB/INDEX, and cuts the first at the stroke.
 * Returns NULL when no subtask is named. */
const char *take_subtask_word(struct invocation *invocation);
/* Resolves `text` to a subtask: a number, or a name from `tasks`, which may be NULL. Returns false
 * and the exit status after a message with the valid ones. */
bool resolve_subtask(struct invocation *invocation, const char *id,
                     const struct bourse_tasks *tasks, const char *text, uint32_t *ret_index,
                     int *ret_status);
/* Returns true when subtasks have names: all of them, or all but the checks, which come last. */
bool tasks_are_named(const struct bourse_tasks *tasks);
/* Prints one task a row: its state, its tries, and the tasks that it waits for. */
void print_tasks(struct invocation *invocation, const struct bourse_job_row *row,
                 const struct bourse_tasks *tasks);
enum { BOURSE_WHY_SIZE = BOURSE_TEXT_SIZE + 64 };
/* Writes the end of an attempt, with its detail. */
void outcome_why(const struct bourse_outcome *outcome, char ret_text[BOURSE_WHY_SIZE]);
/* Prints which subtasks failed and why: the first ones, and the number of the rest. The job has no
 * names, has ended and is not done. */
void print_failures(struct invocation *invocation, const struct bourse_job_row *row);
json_t *json_failures(struct invocation *invocation, const struct bourse_job_row *row,
                      uint32_t *ret_more);
/* A subtask_end tells how a subtask of an ended job ended. */
struct subtask_end {
    const char *state; /* "accepted", "failed", "cancelled" */
    uint32_t tries;
    char why[BOURSE_WHY_SIZE];       /* "" unless the subtask failed */
    char text[BOURSE_WHY_SIZE + 96]; /* all of this as a sentence */
};
bool find_end(struct invocation *invocation, const char *id, uint32_t index,
              struct subtask_end *ret_end, struct bourse_error *ret_error);
/* Explains the order whose id begins with `prefix`, and returns true with the exit status. Returns
 * false, without a message, when no order, several, or a job has such an id. */
bool explain_order(struct invocation *invocation, const char *prefix, int *ret_status);
/* Explains one subtask, given as JOB/INDEX, and returns true with the exit status. Returns false,
 * without a message, when the word has another form or names a file. */
bool explain_subtask(struct invocation *invocation, const char *word, int *ret_status);
/* Explains why each task or part of an open job is not done, by name where there is one. `tightest`
 * is the explanation of the whole job. Returns the exit status. */
int explain_parts(struct invocation *invocation, const char *id, const struct bourse_tasks *tasks,
                  const struct bourse_explanation *tightest);
json_t *json_tasks(struct invocation *invocation, const struct bourse_job_row *row,
                   const struct bourse_tasks *tasks);

#endif
