/* consumer/command/local/household.h - the private folder of an embedded market: made once, checked
 * every time.
 *
 * As an ordinary user everything is 0700 and yours. As root the folder is root's, 02710, with the
 * service user's group, so that the agent may pass through to the sockets and to its own folder
 * (0700, its own) and nobody else may. */
#ifndef BOURSE_CONSUMER_COMMAND_LOCAL_HOUSEHOLD_H
#define BOURSE_CONSUMER_COMMAND_LOCAL_HOUSEHOLD_H

#include "base/checked.h"
#include "base/problem.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct household {
    char folder[PATH_MAX - 64];
    bool root; /* the agent runs as somebody else */
    uid_t agent_uid;
    gid_t agent_gid;
    char user[64];
};

/* Written into the market's broker.yaml: no order's price is higher. */
#define PRICE_BAND_MICRO (INT64_C(1000) * MICRO_PER_CREDIT)

struct household_wishes { /* count only where the config files are not there yet */
    int64_t price_micro;
    int64_t credits_micro;
    int64_t slots;        /* 0: all */
    const char *programs; /* "xz,gzip"; NULL: the agent's own list */
};

/* Resolves and checks (or makes) the folder. The problem says what would mend it. */
bool household_open(const char *folder, const char *user, bool create,
                    struct household *ret_household, struct problem *ret_problem);
/* What a start made: at first all of it. */
struct household_made {
    bool owner_key, broker_config, agent_key, agent_config;
    char agent[65]; /* its public key, in hex, made or not; "": it has none yet */
};
/* Makes keys and config files that are not there yet; what it made is in *ret_made also when it
 * failed. */
bool household_furnish(const struct household *household, const struct household_wishes *wishes,
                       struct household_made *ret_made, struct problem *ret_problem);
/* Removes what was made, and the folders if nothing else is in them. */
void household_clear(const struct household *household, const struct household_made *made);

#endif
