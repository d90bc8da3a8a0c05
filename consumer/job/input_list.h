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

/* The struct holds a text for people, because a file's name may hold any bytes. input_shown()
 * copies the start of `text` in a printable form. */
enum { INPUT_SHOWN_BYTES = 256 };
struct input_shown {
    char text[INPUT_SHOWN_BYTES];
};
struct input_shown input_shown(const char *text);

struct input_file {
    char *path; /* path to open */
    char *name; /* name in the manifest; points into the memory of `path` */
    struct hash32 hash;
    uint64_t size;
    bool is_executable; /* somebody may execute the file; known once the file is hashed */
    /* A temporary file without a name, which the list owns; `path` then only serves messages.
     * 0: none. */
    int held_fd;
    bool is_made; /* the job makes its bytes (made_blobs), so that it is never opened */
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

/* Appends one file by its path, under a name of its own in the job. */
bool input_list_add_as(struct input_list *list, const char *path, const char *name,
                       struct problem *ret_problem);
/* Appends a temporary file without a name, and takes the descriptor over, on failure too. `shown`
 * names the file in messages. */
bool input_list_add_held(struct input_list *list, int fd, const char *shown, const char *name,
                         struct problem *ret_problem);
/* Appends a file whose bytes the job makes. `shown` names it in messages. */
bool input_list_add_made(struct input_list *list, const char *shown, const char *name,
                         const struct hash32 *hash, uint64_t size, struct problem *ret_problem);
/* Appends an archive, whose files are to lie in the work folder. The archive is such a temporary
 * file. */
#define INPUT_LIST_ARCHIVE "./" /* its name in the manifest */
bool input_list_add_archive(struct input_list *list, int fd, const char *shown,
                            struct problem *ret_problem);
/* Appends the listing of folders, which is such a temporary file, too. */
#define INPUT_LIST_LISTING "." /* its name in the manifest */
bool input_list_add_listing(struct input_list *list, int fd, struct problem *ret_problem);
/* Moves a file of another list to the end of this one. What is left of it needs no end. */
bool input_list_move(struct input_list *list, struct input_file *file, struct problem *ret_problem);
/* Reports a name that no file of a job can have, and returns false. */
bool input_list_refuse_name(const char *name, struct problem *ret_problem);
/* Drops the last file of a list that has one. */
void input_list_drop_last(struct input_list *list);
/* Makes a temporary file without a name, and returns its descriptor, or -1 with the problem. */
int input_temporary(struct problem *ret_problem);

/* Returns the part of a path that names the file in the work folder. */
const char *input_list_name(const char *path);
/* Writes "FOLDER/", with special characters escaped for glob or unchanged; "" for an absolute
 * pattern. Returns the length of the unescaped form. */
size_t input_list_prefix(const char *folder, const char *pattern, bool escape, char *ret_text,
                         size_t capacity);

/* Opens a file of a list anew, as input_open does. */
int input_file_open(const struct input_file *file, uint64_t *ret_size, struct problem *ret_problem);
/* Opens a regular file and returns its descriptor, or -1 with the problem. A symbolic link as last
 * component is refused. */
int input_open(const char *path, uint64_t *ret_size, struct problem *ret_problem);
/* Returns true when every file from index `from` on is regular and can be opened. Reads no
 * content. */
bool input_list_look(const struct input_list *list, size_t from, struct problem *ret_problem);
/* Reads and hashes every file from index `from` on. */
bool input_list_hash(struct input_list *list, size_t from, struct problem *ret_problem);

#endif
