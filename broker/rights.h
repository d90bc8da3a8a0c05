/* A broker has next to no rights on its machine beyond those of its user.
 *
 * A broker opens files of its own user, and sockets. Root's broker owns its folder, so not even
 * root needs a capability for that. The only capability that it may keep is the one for ports below
 * 1024. */
#ifndef BOURSE_BROKER_RIGHTS_H
#define BOURSE_BROKER_RIGHTS_H

#include "base/problem.h"
#include "broker/config.h"

#include <stdbool.h>
#include <sys/types.h>

/* Gives up every right that serving this config does not need, for good, and logs the broker's
 * user. `group` is the folder's group. Sockets and files that an agent needs get it, so root
 * becomes a member of this group alone. The caller calls it before the first thread. Returns false
 * with a problem. */
bool rights_reduce(const struct broker_config *config, gid_t group, struct problem *ret_problem);

#endif
