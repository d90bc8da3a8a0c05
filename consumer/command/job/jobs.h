/* consumer/command/job/jobs.h - what submit and run share with the commands on jobs. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_JOBS_H
#define BOURSE_CONSUMER_COMMAND_JOB_JOBS_H

#include "consumer/command/command.h"
#include "consumer/job/order.h"

/* Fetches with progress, under the user's own umask. */
bool fetch_into(struct invocation *invocation, const char *id, const char *folder,
                struct bourse_fetched *ret_fetched, struct bourse_error *ret_error);
/* The leases of a job, after an empty line; nothing when there is none to print. */
void print_leases(FILE *to, const struct bourse_job_row *row, bool also_ended, bool color);

/* A job with its price; zero but for the job to begin with. */
struct offer {
    struct bourse_job *job;
    struct bourse_job_summary summary;
    struct bourse_quote quote;
    int64_t limits[ORDER_PARTS_MAX]; /* the most to pay per slot-hour, part by part */
    int64_t budget_micro;
    struct bourse_quote
        *parts; /* SUBMIT_QUOTES, for the quote of each part; NULL: nobody asks for them */
};
/* Each false after having said why, with the exit status. */
bool offer_make(struct invocation *invocation, struct offer *offer, int *ret_status);
void offer_show(FILE *to, const struct offer *offer);
void offer_show_job(FILE *to, const struct offer *offer);   /* the one half of it, */
void offer_show_quote(FILE *to, const struct offer *offer); /* and the other */
json_t *json_offer(const struct offer *offer);
/* BOURSE_OK, or NO_MATCH: it would not start. */
int offer_status(const struct offer *offer);
/* `plan FILE|JOB`: returns the exit status. */
int plan_job(struct invocation *invocation);
/* Devices fit, and every ask for one is above the limit; nor does it take a lease. */
bool offer_is_too_dear(const struct bourse_quote *quote);
/* Something that it would get is, and it needs no credits. */
bool offer_is_given_away(const struct bourse_quote *quote);
/* One of several parts, from 1 on: "task a and 2 more"; "" where there is one part. */
enum { PART_TEXT_SIZE = 128 };
void offer_name_part(const struct bourse_job *job, uint32_t part, char ret_text[PART_TEXT_SIZE]);
bool offer_agree(struct invocation *invocation, const struct offer *offer,
                 int *ret_status); /* asks */
bool offer_place(struct invocation *invocation, struct offer *offer, char ret_id[BOURSE_ID_SIZE],
                 int *ret_status);

void say_ended(const struct bourse_job_row *row);
/* Why the job ended as it did: the first subtask that did not succeed stands for the others. */
void say_why(struct invocation *invocation, const struct bourse_job_row *row);
void print_explanation(FILE *to, const struct bourse_explanation *explanation);

/* The names of a job's subtasks; NULL when they have none, or cannot be had: then they are
 * numbers. */
struct bourse_tasks *load_tasks(struct invocation *invocation, const char *id);
/* Of the words JOB INDEX, or JOB/INDEX, the second: the first is cut at the stroke. NULL: no
 * subtask is named. */
const char *take_subtask_word(struct invocation *invocation);
/* The subtask that `text` means: a number, or the name of one of `tasks`, which may be NULL. False
 * after having said which ones there are, with the exit status. */
bool resolve_subtask(struct invocation *invocation, const char *id,
                     const struct bourse_tasks *tasks, const char *text, uint32_t *ret_index,
                     int *ret_status);
/* Whether subtasks have names: all of them, or the checks, which come last. */
bool tasks_are_named(const struct bourse_tasks *tasks);
/* One task a row: its state, its tries, and what it waits for. */
void print_tasks(struct invocation *invocation, const struct bourse_job_row *row,
                 const struct bourse_tasks *tasks);
enum { BOURSE_WHY_SIZE = BOURSE_TEXT_SIZE + 64 };
/* What became of an attempt, with its detail. */
void outcome_why(const struct bourse_outcome *outcome, char ret_text[BOURSE_WHY_SIZE]);
/* Of a job without names that has ended and is not done: which of its subtasks failed, and why; the
 * first ones, and how many more. */
void print_failures(struct invocation *invocation, const struct bourse_job_row *row);
json_t *json_failures(struct invocation *invocation, const struct bourse_job_row *row,
                      uint32_t *ret_more);
/* How a subtask of a job that has ended did. */
struct subtask_end {
    const char *state; /* "accepted", "failed", "cancelled" */
    uint32_t tries;
    char why[BOURSE_WHY_SIZE];       /* empty unless it failed */
    char text[BOURSE_WHY_SIZE + 96]; /* all that in a sentence */
};
bool find_end(struct invocation *invocation, const char *id, uint32_t index,
              struct subtask_end *ret_end, struct bourse_error *ret_error);
/* Of the order whose id begins so, with the exit status. False, and nothing was said: there is
 * none, or several, or its id is that of a job. */
bool explain_order(struct invocation *invocation, const char *prefix, int *ret_status);
/* Of JOB/INDEX, one subtask, with the exit status. False, and nothing was said: it is no such word,
 * or there is a file of that name. */
bool explain_subtask(struct invocation *invocation, const char *word, int *ret_status);
/* Why each of an open job's tasks, or parts, is not done: by name where they have one. Returns the
 * exit status; `tightest` is what explains the job as a whole. */
int explain_parts(struct invocation *invocation, const char *id, const struct bourse_tasks *tasks,
                  const struct bourse_explanation *tightest);
json_t *json_tasks(struct invocation *invocation, const struct bourse_job_row *row,
                   const struct bourse_tasks *tasks);

#endif
