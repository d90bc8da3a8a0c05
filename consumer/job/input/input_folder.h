/* consumer/job/input/input_folder.h turns the names of `files:` and `--file` into files. A name is
 * a file, a folder, or a pattern. The header is not installed.
 *
 * A folder stands for every regular file below it, hidden ones too. A symbolic link in the folder
 * that leads to a regular file of the same folder arrives as a copy of that file. Every other link
 * is refused, because the job would silently lack the link. So are devices, sockets and pipes.
 * Empty folders are left out. */
#ifndef BOURSE_CONSUMER_JOB_INPUT_INPUT_FOLDER_H
#define BOURSE_CONSUMER_JOB_INPUT_INPUT_FOLDER_H

#include "consumer/job/input_list.h"

/* The most bytes of all files that one name stands for. */
#define INPUT_FOLDER_BYTES_MAX (INT64_C(64) << 30)

/* Appends the files that `name` stands for, sorted within a folder or a pattern. A name under which
 * something exists is not taken as a pattern. `folder` is "." or the job file's folder. The call
 * fails for more than `most` files, or for more than INPUT_FOLDER_BYTES_MAX. A failed call may
 * leave files in the list. */
bool input_folder_add(const char *folder, const char *name, size_t most, struct input_list *list,
                      struct problem *ret_problem);

/* The file in a work folder that lists what is not sent (formats/ignore.h). */
#define INPUT_FOLDER_IGNORE ".bourseignore"
/* Appends every file below the folder `work`, under its name relative to `work`. The rules are
 * those of input_folder_add. INPUT_FOLDER_IGNORE at the top of `work` leaves files out, and is left
 * out itself. */
bool input_folder_add_work(const char *work, struct input_list *list, struct problem *ret_problem);

#endif
