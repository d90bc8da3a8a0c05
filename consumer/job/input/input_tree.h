/* consumer/job/input/input_tree.h keeps folders, links, permissions and times of a job's files.
 * The header is not installed.
 *
 * A job whose files come out of a folder has one listing (formats/staging/work_tree.h) among its
 * inputs. The agent makes the work folder look like the folder here with it. */
#ifndef BOURSE_CONSUMER_JOB_INPUT_INPUT_TREE_H
#define BOURSE_CONSUMER_JOB_INPUT_INPUT_TREE_H

#include "base/problem.h"
#include "consumer/job/input_list.h"
#include "formats/staging/work_tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* All bytes 0: nothing was found yet. */
struct input_tree {
    struct work_tree_entry *items; /* with texts of their own */
    size_t count, capacity;
    size_t folders, links; /* of these */
};

void input_tree_fini(struct input_tree *tree);

/* Each call adds one entry, with permissions and time of `status`. The name may be "" for the work
 * folder itself, which is left out. Returns false with the problem when the name cannot be used, or
 * there are too many. */
bool input_tree_add_file(struct input_tree *tree, const char *name, const struct stat *status,
                         struct problem *ret_problem);
bool input_tree_add_folder(struct input_tree *tree, const char *name, const struct stat *status,
                           struct problem *ret_problem);
bool input_tree_add_link(struct input_tree *tree, const char *name, const char *target,
                         const struct stat *status, struct problem *ret_problem);

/* Returns true when a link has this name, or is on the way to it. The entries may have any
 * order. */
bool input_tree_has_link_to(const struct input_tree *tree, const char *name);

/* Appends the listing to the files of the list, if a folder is among its entries. The listing is a
 * temporary file without a name. Sorts the entries. Returns false with the problem when two entries
 * have one name, or one lies below a file or a link. */
bool input_tree_list(struct input_tree *tree, struct input_list *list, struct problem *ret_problem);

#endif
