/* consumer/job/expand.h - patterns and names of a job file to files on this machine. Not installed.
 *
 * A pattern is a glob as in the shell (*, ?, [...]; a leading dot is matched only by a dot),
 * relative to the job's folder or absolute. Matches are sorted by their bytes, so that a job is the
 * same wherever it is prepared. Only regular files count: folders, devices and symbolic links are
 * skipped, and counted.
 *
 * A file's *name* is what the job calls it in its work folder: the path as matched, without a
 * leading "/",
 * "./" or "../". Names must be plain relative UTF-8 paths; an odd one is refused, not repaired. */
#ifndef BOURSE_CONSUMER_JOB_EXPAND_H
#define BOURSE_CONSUMER_JOB_EXPAND_H

#include "base/id.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input_file {
    char *path; /* to open */
    char *name; /* in the manifest: a part of `path`, not freed apart */
    struct hash32 hash;
    uint64_t size;
};

struct input_list {
    struct input_file *items;
    size_t count;
    size_t capacity;
    uint64_t skipped; /* matches that were no regular files */
};

void input_list_fini(struct input_list *list);

/* Appends the files that `patterns` match, sorted, each once. A pattern without a file is a problem
 * that names it. `folder` is "." or the job file's. A failed call may leave files in the list. */
bool expand_patterns(const char *folder, char *const *patterns, size_t count,
                     struct input_list *list, struct problem *ret_problem);
/* Appends one file by its name, no pattern. */
bool expand_file(const char *folder, const char *name, struct input_list *list,
                 struct problem *ret_problem);

/* Opens a regular file, never through a symbolic link at its end; -1 with the problem. */
int input_open(const char *path, uint64_t *ret_size, struct problem *ret_problem);
/* Whether every file of the list from index `from` on can be opened and is a regular one. Reads
 * nothing of them. */
bool input_list_look(const struct input_list *list, size_t from, struct problem *ret_problem);
/* Reads and hashes every file of the list from index `from` on. */
bool input_list_hash(struct input_list *list, size_t from, struct problem *ret_problem);

#endif
