/* consumer/job/input/input_folder.h turns the names of `files:` and `--file` into files. A name is
 * a file, a folder, or a pattern. The header is not installed.
 *
 * A folder stands for everything below it, hidden files too. A program's job has a tree, which
 * keeps the folders, the links and the times. A link of a tree is relative and stays in its folder
 * (formats/staging/staged_link.h); it may lead to nothing. Without a tree there are only files.
 *
 * Another link that leads to a regular file of the same folder arrives as a copy of that file.
 * Every other link is refused, because the job would silently lack the link. So are devices,
 * sockets and pipes. */
#ifndef BOURSE_CONSUMER_JOB_INPUT_INPUT_FOLDER_H
#define BOURSE_CONSUMER_JOB_INPUT_INPUT_FOLDER_H

#include "consumer/job/input/input_tree.h"
#include "consumer/job/input_list.h"

/* The most bytes of all files that one name stands for. */
#define INPUT_FOLDER_BYTES_MAX (INT64_C(64) << 30)

/* Appends the files that `name` stands for, sorted within a folder or a pattern. A name under which
 * something exists is not taken as a pattern. `folder` is "." or the job file's folder. The call
 * fails for more than `most` files, or for more than INPUT_FOLDER_BYTES_MAX. A failed call may
 * leave files in the list, and entries in the tree. `tree` is NULL for a job that has none; then a
 * folder without a file is refused. */
bool input_folder_add(const char *folder, const char *name, size_t most, struct input_list *list,
                      struct input_tree *tree, struct problem *ret_problem);

/* The file in a work folder that lists what is not sent (formats/ignore.h). */
#define INPUT_FOLDER_IGNORE ".bourseignore"
/* Appends every file below the folder `work`, under its name relative to `work`. The rules are
 * those of input_folder_add, but there must be a file. INPUT_FOLDER_IGNORE at the top of `work`
 * leaves files out, and is left out itself. */
bool input_folder_add_work(const char *work, struct input_list *list, struct input_tree *tree,
                           struct problem *ret_problem);

#endif
