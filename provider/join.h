/* provider/join.h declares `bourse-provider join INVITATION`, which makes a key, a seat in the
 * market, and the files that `run` reads. Repeating the command is safe. An existing account is an
 * answer, not a failure. */
#ifndef BOURSE_PROVIDER_JOIN_H
#define BOURSE_PROVIDER_JOIN_H

#include "base/problem.h"

#include <stdbool.h>

/* ALREADY means that the key was a provider there before; the problem's text says whether it had
 * redeemed this invitation. REFUSED does not undo what the broker did. An invitation for another
 * role is spent, for nobody can tell its role before. */
enum join_status {
    JOIN_OK,
    JOIN_ALREADY,
    JOIN_BAD_INVITATION,
    JOIN_FILES,
    JOIN_UNREACHABLE,
    JOIN_REFUSED
};

/* Is called once when the broker at `endpoint` has not answered for JOIN_SILENCE_MS. The call goes
 * on trying for `left_ms`. */
typedef void join_silence(const char *endpoint, int left_ms);
enum { JOIN_SILENCE_MS = 3000 };

/* Joins the market of the invitation. `folder` is absolute, and is made when absent. `name` may be
 * NULL. */
enum join_status join_market(const char *invitation, const char *folder, const char *name,
                             join_silence *on_silence, struct problem *ret_problem);

#endif
