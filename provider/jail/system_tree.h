/* provider/jail/system_tree.h defines how much of the owner's machine a job sees, which is
 * programs, libraries and what they read when they run.
 *
 * Jails without an image show these folders of the host, read-only, and nothing else of the host.
 * The owner can add folders (`visible` in provider.yaml). The rest of /usr is hidden: sources,
 * manuals, and the owner's files in /usr/local. Every jail, also one with an image, masks the files
 * of /proc that tell about the machine rather than the job. Only system_mask looks at the host. */
#ifndef BOURSE_PROVIDER_JAIL_SYSTEM_TREE_H
#define BOURSE_PROVIDER_JAIL_SYSTEM_TREE_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the folders and files shown, absolute, below /usr; NULL ends the list. Some may be
 * missing on a host. */
const char *const *system_shown(void);

/* Returns true when `path`, absolute and without "..", is one of the shown paths or below one. */
bool system_shows(const char *path);
/* Returns true when `path` is `folder` or below it. */
bool system_is_below(const char *path, const char *folder);

/* Returns the next path of /proc to mask on this host, from `index` on, and advances `index`.
 * *ret_is_folder tells a folder from a file. Returns NULL when none is left. Missing paths, paths
 * that only root may read, and empty folders need no mask. */
const char *system_mask(size_t *index, bool *ret_is_folder);

#endif
