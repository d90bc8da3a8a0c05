/* provider/privilege.h changes the process from root to the service user, for good. */
#ifndef BOURSE_PROVIDER_PRIVILEGE_H
#define BOURSE_PROVIDER_PRIVILEGE_H

#include "base/problem.h"

#include <stdbool.h>
#include <sys/types.h>

/* Looks a user up by name (or digits); refuses uid 0. */
bool privilege_user(const char *name, uid_t *ret_uid, gid_t *ret_gid, struct problem *ret_problem);

/* Becomes uid:gid with no other group and no capability. The function makes sure that there is no
 * way back, not even through a setuid program. uid 0 is refused. A process that is not root passes
 * when it already is that user. Call it after cgroups and folders are prepared, before threads. */
bool privilege_drop(uid_t uid, gid_t gid, struct problem *ret_problem);

#endif
