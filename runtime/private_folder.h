/* A private folder keeps its files from the other users of the machine. */
#ifndef BOURSE_RUNTIME_PRIVATE_FOLDER_H
#define BOURSE_RUNTIME_PRIVATE_FOLDER_H

#include "base/problem.h"

#include <stdbool.h>
#include <sys/types.h>

/* Checks that `path` is a private folder: mode 0700 (or 0710, where a group must pass), owned by
 * us, no symbolic link. With `create` it makes a missing one, 0700, and its parents, 0700 too. A
 * folder with wider modes is refused, and the problem names the chmod that repairs it. With
 * `create` its name and the names in it are durable afterwards, also if a killed process made
 * them. */
bool private_folder(const char *path, bool create, struct problem *ret_problem);

/* Returns true when the existing `path` is a private folder of user `owner`, who may be another
 * user than ours. */
bool private_folder_fits(const char *path, uid_t owner, struct problem *ret_problem);

#endif
