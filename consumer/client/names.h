/* consumer/client/names.h gives words for the numbers in messages. The header is not installed, and
 * the code is pure. */
#ifndef BOURSE_CONSUMER_CLIENT_NAMES_H
#define BOURSE_CONSUMER_CLIENT_NAMES_H

#include <stddef.h>

/* Each function returns text, never NULL. A number outside the table is "unknown". */
const char *names_rate(unsigned rate); /* rate of a limit by value; "" for a limit per slot-hour */
const char *names_job_state(unsigned state);
const char *names_job_reason(unsigned reason); /* a sentence for people; "" for none */
/* JOB_REASON_HALTED of a job that the freeze of its account ended, or is ending. */
const char *names_job_frozen(void);
const char *names_outcome(unsigned outcome);
const char *names_check(unsigned level); /* "none", "cheap" */
const char *names_attempt(unsigned status);
const char *names_verdict(unsigned verdict); /* NULL: none */
/* Returns the source of an attempt's energy; NULL: the result does not say. */
const char *names_energy(unsigned source);
const char *names_entry_kind(unsigned kind);

#endif
