/* broker/storage/folder.h names files in a market's folder, and lets one broker at a time use it. */
#ifndef BOURSE_BROKER_STORAGE_FOLDER_H
#define BOURSE_BROKER_STORAGE_FOLDER_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>

/* Writes FOLDER/NAME. False with a problem when `capacity` is too small for the path. */
bool folder_path(const char *folder, const char *name, char *ret_path, size_t capacity,
                 struct problem *ret_problem);

/* Takes the folder's lock; close(*ret_lock) gives the lock back. False with a problem, which begins
 * with "LOCKED" where another broker has the lock; *ret_lock may be open then, too. */
bool folder_lock(const char *folder, int *ret_lock, struct problem *ret_problem);

#endif
