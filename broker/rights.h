/* broker/rights.h - what a broker may do on its machine beyond its user: next to nothing.
 *
 * A broker opens files that are its own user's, and sockets. Root's broker owns its folder, so that
 * not even root needs a capability for that. What it may keep is one for ports below 1024. */
#ifndef BOURSE_BROKER_RIGHTS_H
#define BOURSE_BROKER_RIGHTS_H

#include "base/problem.h"
#include "broker/config.h"

#include <stdbool.h>
#include <sys/types.h>

/* Gives up every right that serving this config does not need, for good, and logs as whom the
 * broker runs. `group` is the folder's: sockets and files that an agent needs get it, so that root
 * becomes a member of it, and of no other group. Call it before the first thread. */
bool rights_reduce(const struct broker_config *config, gid_t group, struct problem *ret_problem);

#endif
