/* consumer/command/job/job_words.h finds the jobs that the words of a command line name, for
 * commands on several jobs. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_JOB_WORDS_H
#define BOURSE_CONSUMER_COMMAND_JOB_JOB_WORDS_H

#include "consumer/command/command.h"
#include "formats/job.h"

/* One command takes at most this many jobs, because it looks at all of them by turns. */
enum { JOB_WORDS_MAX = 1000 };

struct job_ids {
    size_t count;
    char items[JOB_WORDS_MAX][BOURSE_ID_SIZE]; /* each job once, in the order of the words */
};

/* Finds the jobs of the words. A word is an id, its first digits, `last` for the newest job, or a
 * name. A name stands for every open job of this name, or for the newest one when none is open. On
 * failure it prints a message, sets *ret_status and returns false. */
bool job_words_resolve(struct invocation *invocation, struct job_ids *ret_ids, int *ret_status);
/* Finds the jobs of the values of an option, and of the further words `more`, in the same way. */
bool job_words_of_option(struct invocation *invocation, const char *option,
                         const struct job_strings *more, struct job_ids *ret_ids, int *ret_status);
/* Adds a job, unless the list has it. Returns false when the list is full. */
bool job_ids_add(struct job_ids *ids, const char *id);

#endif
