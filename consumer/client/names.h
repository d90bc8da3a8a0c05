/* consumer/client/names.h - the words for the numbers that travel. Not installed. Pure. */
#ifndef BOURSE_CONSUMER_CLIENT_NAMES_H
#define BOURSE_CONSUMER_CLIENT_NAMES_H

#include <stddef.h>

/* Each is never NULL; a number outside its table is "unknown". */
const char *names_rate(unsigned rate); /* of a limit by value; "" where it is per slot-hour */
const char *names_job_state(unsigned state);
const char *names_job_reason(unsigned reason); /* "" for none: a sentence for people */
const char *names_outcome(unsigned outcome);
const char *names_check(unsigned level); /* "none", "cheap" */
const char *names_attempt(unsigned status);
const char *names_verdict(unsigned verdict); /* NULL: none */
const char *names_entry_kind(unsigned kind);
/* "consumer, operator" into `ret_text`; "none" without roles. */
void names_roles(unsigned roles, char *ret_text, size_t capacity);
/* The bit of one role's name, or 0. */
unsigned names_role(const char *name);
const char *names_role_nearest(const char *name); /* NULL: none is near */

#endif
