/* A market's folder holds its files; one broker at a time may use it. */
#ifndef BOURSE_BROKER_STORAGE_FOLDER_H
#define BOURSE_BROKER_STORAGE_FOLDER_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>

/* Writes FOLDER/NAME. Returns false with a problem when `capacity` is too small for the path. */
bool folder_path(const char *folder, const char *name, char *ret_path, size_t capacity,
                 struct problem *ret_problem);

/* Takes the folder's lock; close(*ret_lock) releases it. Returns false with a problem, which begins
 * with "LOCKED" when another broker has the lock; *ret_lock may be open then, too. */
bool folder_lock(const char *folder, int *ret_lock, struct problem *ret_problem);

#endif
