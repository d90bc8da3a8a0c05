/* consumer/command/jobs.h - what submit and run share with the commands on jobs. */
#ifndef BOURSE_CONSUMER_COMMAND_JOBS_H
#define BOURSE_CONSUMER_COMMAND_JOBS_H

#include "consumer/command/command.h"

/* Fetches with progress, under the user's own umask. */
bool fetch_into(struct invocation *invocation, const char *id, const char *folder,
                struct bourse_fetched *ret_fetched, struct bourse_error *ret_error);
/* The leases of a job, after an empty line; nothing when there is none to print. */
void print_leases(FILE *to, const struct bourse_job_row *row, bool also_ended, bool color);
void print_explanation(FILE *to, const struct bourse_explanation *explanation);

#endif
