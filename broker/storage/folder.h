/* A market's folder holds its files; one broker at a time may use it. */
#ifndef BOURSE_BROKER_STORAGE_FOLDER_H
#define BOURSE_BROKER_STORAGE_FOLDER_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>

/* Writes FOLDER/NAME. Returns false with a problem when `capacity` is too small for the path. */
bool folder_path(const char *folder, const char *name, char *ret_path, size_t capacity,
                 struct problem *ret_problem);

/* Takes the folder's lock; folder_unlock releases it. Returns false with a problem, which begins
 * with "LOCKED" when another broker has the lock. *ret_lock is then -1. *ret_made: this call made
 * the file LOCK. */
bool folder_lock(const char *folder, int *ret_lock, bool *ret_made, struct problem *ret_problem);
/* Releases the lock and sets *lock to -1, which the caller may pass as well. With `remove` the file
 * LOCK goes, too: who made it and then refused the folder leaves the folder as it was. */
void folder_unlock(const char *folder, int *lock, bool remove);

#endif
