/* provider/join.h - `bourse-provider join INVITE`: a key, a seat in the market, and the files that
 * `run` then reads. Safe to repeat: an account that stands is an answer, not a failure. */
#ifndef BOURSE_PROVIDER_JOIN_H
#define BOURSE_PROVIDER_JOIN_H

#include "base/problem.h"

#include <stdbool.h>

/* ALREADY: the key was a provider there before; the invitation was not used. REFUSED leaves what
 * the broker did: an invitation for another role is spent, for nobody can tell before. */
enum join_status {
    JOIN_OK,
    JOIN_ALREADY,
    JOIN_BAD_INVITATION,
    JOIN_FILES,
    JOIN_UNREACHABLE,
    JOIN_REFUSED
};

/* `folder` is absolute; made when absent. `name` may be NULL. */
enum join_status join_market(const char *invitation, const char *folder, const char *name,
                             struct problem *ret_problem);

#endif
