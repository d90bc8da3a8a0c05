/* The units files.c, private_folder.c and keyfile.c share these steps. */
#ifndef BOURSE_RUNTIME_FILES_INTERNAL_H
#define BOURSE_RUNTIME_FILES_INTERNAL_H

#include "base/problem.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Sets the problem "PATH: DOING: " and the text of errno. Always returns false. */
bool file_fail(struct problem *ret_problem, const char *path, const char *doing);
/* The same for a step that changes nothing: a disk's error gets the advice to try again. */
bool file_unseen(struct problem *ret_problem, const char *path, const char *doing);
/* Reports a failed read, with errno. Always returns false. */
bool file_unread(struct problem *ret_problem, const char *path);
/* Reports that `path` belongs to `owner` and not to `us`. Always returns false. */
bool file_not_ours(const char *path, uid_t owner, uid_t us, struct problem *ret_problem);
/* Splits a path; the folder of "a" is ".". Returns false with a problem when it names no file. */
bool file_split_path(const char *path, char ret_folder[PATH_MAX], const char **ret_name,
                     struct problem *ret_problem);
/* Fsyncs a folder. Returns false with errno. */
bool file_sync_names(const char *folder);
/* Reads everything up to `capacity`. Returns the number of bytes, or -1 with errno. */
ssize_t file_read_full(int fd, void *ret_bytes, size_t capacity);
/* Writes all bytes. Returns false with errno. */
bool file_write_full(int fd, const void *bytes, size_t length);

/* Returns true when a folder of this status is a private folder of user `us`. Otherwise the problem
 * names the repair. */
bool private_folder_status_fits(const char *path, const struct stat *status, uid_t us,
                                struct problem *ret_problem);

#endif
