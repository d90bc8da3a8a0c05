/* consumer/job/input_list.h turns patterns and names of a job file into files on this machine. The
 * header is not installed.
 *
 * A pattern is a glob as in the shell (*, ?, [...]); only a dot matches a leading dot. A pattern is
 * absolute or relative to the job's folder. Matches are sorted by their bytes, so that a job is the
 * same on every machine. Only regular files count; folders, devices and symbolic links are skipped
 * and counted.
 *
 * A file's *name* is its name in the job's work folder: the matched path without a leading "/",
 * "./" or "../". A name must be a plain relative UTF-8 path; any other name is refused, not
 * repaired. */
#ifndef BOURSE_CONSUMER_JOB_INPUT_LIST_H
#define BOURSE_CONSUMER_JOB_INPUT_LIST_H

#include "base/id.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input_file {
    char *path; /* path to open */
    char *name; /* name in the manifest; points into `path` */
    struct hash32 hash;
    uint64_t size;
};

struct input_list {
    struct input_file *items;
    size_t count;
    size_t capacity;
    uint64_t skipped; /* matches that are not regular files */
};

void input_list_fini(struct input_list *list);

/* Appends the files that `patterns` match, sorted, each once. A pattern without a match is a
 * problem that names the pattern. `folder` is "." or the job file's folder. A failed call may leave
 * files in the list. */
bool input_list_add_patterns(const char *folder, char *const *patterns, size_t count,
                             struct input_list *list, struct problem *ret_problem);
/* Appends one file by its name, which is not a pattern. */
bool input_list_add_file(const char *folder, const char *name, struct input_list *list,
                         struct problem *ret_problem);

/* Opens a regular file and returns its descriptor, or -1 with the problem. A symbolic link as last
 * component is refused. */
int input_open(const char *path, uint64_t *ret_size, struct problem *ret_problem);
/* Returns true when every file from index `from` on is regular and can be opened. Reads no
 * content. */
bool input_list_look(const struct input_list *list, size_t from, struct problem *ret_problem);
/* Reads and hashes every file from index `from` on. */
bool input_list_hash(struct input_list *list, size_t from, struct problem *ret_problem);

#endif
