/* provider/work/own_folder.h keeps a folder of the agent's there. Somebody may remove it while the
 * agent runs, for instance who cleans the caches of the machine. */
#ifndef BOURSE_PROVIDER_WORK_OWN_FOLDER_H
#define BOURSE_PROVIDER_WORK_OWN_FOLDER_H

#include "base/problem.h"

#include <stdbool.h>

/* Makes the folder again when it is gone, and says so in the log. Returns false with the problem
 * when that is impossible, or when something else is there. Costs one look at a folder that is
 * there. */
bool own_folder_keep(const char *path, struct problem *ret_problem);
/* Makes a file without a name in the folder, and returns its descriptor. A folder that is gone is
 * made again. Returns -1 with errno, which is ENOENT when the folder cannot be made again. */
int own_folder_file(const char *path);

#endif
