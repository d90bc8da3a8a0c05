/* provider/jail/keeper.h starts a process that outlives the agent and removes its control groups.
 *
 * Root makes the top groups, so an agent that dropped to its user cannot remove them, and an agent
 * may be killed at any time. The keeper is a child of root that waits for the agent's end. Until
 * then it acts as the agent's user, without an effective capability. As that user it also removes
 * the groups of the jails, because the agent names them and fills them. The top groups it removes
 * as root with CAP_DAC_OVERRIDE, because the root of a hierarchy has mode 0555. A filter of system
 * calls leaves the keeper what the removal needs. */
#ifndef BOURSE_PROVIDER_JAIL_KEEPER_H
#define BOURSE_PROVIDER_JAIL_KEEPER_H

#include "base/problem.h"

#include <stdbool.h>
#include <sys/types.h>

/* The keeper does this work after the agent's end. */
struct keeper_work {
    void (*empty)(const void *subject);  /* The keeper calls it first, as `owner`. */
    void (*remove)(const void *subject); /* The keeper calls it then, as root. */
    const void *subject;
    /* The user and group of the agent, never root's. */
    uid_t owner;
    gid_t group;
    /* The keeper holds this descriptor until the work is done; -1: none. */
    int lock;
};

struct keeper {
    pid_t pid;
    int socket; /* The keeper's work starts when it is closed; -1 without a keeper. */
};

/* Forks the keeper and waits until it has given up its rights. Call it as root, before threads
 * exist. On failure no keeper runs, and *ret_problem says why. */
bool keeper_start(const struct keeper_work *work, struct keeper *ret_keeper,
                  struct problem *ret_problem);

/* Starts the keeper's work and waits until it is done. */
void keeper_finish(struct keeper *keeper);

#endif
