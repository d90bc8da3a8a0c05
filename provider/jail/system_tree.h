/* provider/jail/system_tree.h - how much of the owner's machine a job sees: programs, libraries and
 * what they read when they run.
 *
 * Jails without an image show these folders of the host, read-only, and nothing else of it. The
 * owner can add folders (`visible` in provider.yaml). The rest of /usr is not there: sources,
 * manuals, and what the owner has put into /usr/local. In every jail, with an image too, the files
 * of /proc are masked that tell of the machine and not of the job. Pure but for system_mask, which
 * looks at the host's /proc. */
#ifndef BOURSE_PROVIDER_JAIL_SYSTEM_TREE_H
#define BOURSE_PROVIDER_JAIL_SYSTEM_TREE_H

#include <stdbool.h>
#include <stddef.h>

/* The folders and files shown, absolute, below /usr; NULL ends the list. Some may be missing on a
 * host. */
const char *const *system_shown(void);

/* Whether `path`, absolute and without "..", is one of them, or below one. */
bool system_shows(const char *path);
/* Whether `path` is `folder` or below it. */
bool system_is_below(const char *path, const char *folder);

/* The next file (`is_folder` false) or folder of /proc that is to be masked here, from `index` on,
 * which it moves; NULL when there is none left. What is not there, what only root may read, and
 * folders that are empty need no mask. */
const char *system_mask(size_t *index, bool *ret_is_folder);

#endif
