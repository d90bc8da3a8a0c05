/* consumer/command/local/household.h keeps the private folder of an embedded market. The folder is
 * made once and checked every time.
 *
 * An ordinary user owns every file, with mode 0700. With root the folder is root's, with mode 02710
 * and the service user's group. The agent then passes through to the sockets and to its own folder
 * (0700, its own), and no other user can. */
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
    bool root; /* the agent runs under another user */
    uid_t agent_uid;
    gid_t agent_gid;
    char user[64];
};

/* The market's broker.yaml has this number as the highest price of an order. */
#define PRICE_BAND_MICRO (INT64_C(1000) * MICRO_PER_CREDIT)

struct household_wishes { /* used only for config files that do not exist yet */
    int64_t price_micro;
    int64_t credits_micro;
    int64_t slots;        /* 0: all slots */
    const char *programs; /* "xz,gzip"; NULL: the agent's own list */
};

/* Resolves the folder and checks it, or makes it with `create`. The problem says what would repair
 * it. */
bool household_open(const char *folder, const char *user, bool create,
                    struct household *ret_household, struct problem *ret_problem);
/* A household_made lists what a start created; the first start creates everything. */
struct household_made {
    bool owner_key, broker_config, agent_key, agent_config;
    char agent[65]; /* the agent's public key in hex; "": none yet */
};
/* Makes the keys and config files that are missing. *ret_made lists the new ones, on failure
 * too. */
bool household_furnish(const struct household *household, const struct household_wishes *wishes,
                       struct household_made *ret_made, struct problem *ret_problem);
/* Removes the files in `made`, and the folders when nothing else is in them. */
void household_clear(const struct household *household, const struct household_made *made);

#endif
