/* formats/image/image_tree.h puts the layers of a container image on one another, in memory.
 *
 * A layer is a tar archive of what changes against the layers below. An entry ".wh.NAME" removes
 * NAME, and ".wh..wh..opq" removes everything of its folder that the layers below have. For each
 * layer, the caller shows all entries to image_tree_remove first, then all to image_tree_add. So a
 * layer removes only what layers below have, in whichever order its entries stand.
 *
 * The tree holds paths and no content, and nothing is unpacked. Owners, times, devices and the bits
 * setuid, setgid and sticky are dropped, because a jail has one user. Pure. */
#ifndef BOURSE_FORMATS_IMAGE_IMAGE_TREE_H
#define BOURSE_FORMATS_IMAGE_IMAGE_TREE_H

#include "base/problem.h"
#include "formats/tar.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds on all layers together, so that the tree fits in memory. */
struct image_tree_caps {
    uint32_t paths;    /* different paths, removed ones too */
    size_t text_bytes; /* their names and the targets of links */
};

struct image_tree;

/* Returns an empty tree, or NULL when memory is short. */
struct image_tree *image_tree_create(const struct image_tree_caps *caps);
void image_tree_destroy(struct image_tree **self);

/* Begins the next layer, counted from 0. */
void image_tree_next_layer(struct image_tree *tree);
/* Removes what a whiteout names, and does nothing for any other entry. Returns false with the
 * reason for a whiteout of a path that no layer below has. */
bool image_tree_remove(struct image_tree *tree, const struct tar_entry *entry,
                       struct problem *ret_problem);
/* Adds an entry that is no whiteout. Returns false with the reason when a cap is reached, the path
 * lies below a file or link, or a hard link leads to nothing. The tree cannot be used after a
 * failure. */
bool image_tree_add(struct image_tree *tree, const struct tar_entry *entry,
                    struct problem *ret_problem);

/* An image_tree_item describes one path of the root. The texts are valid during the visit. */
struct image_tree_item {
    const char *path; /* relative to the root, without "/" at either end */
    /* Target of a symbolic link; the path, visited before, of the same file for a hard link. */
    const char *link;
    char type; /* '0', '1', '2', '5' or '6', as in tar_entry */
    unsigned mode;
    unsigned layer; /* a file's content lies in this layer, at `offset`, with `size` bytes */
    uint64_t offset, size;
};
typedef bool image_tree_visit(void *context, const struct image_tree_item *item,
                              struct problem *ret_problem);
/* Visits every path, a folder before what is in it, and each folder's names in the order of their
 * bytes. Returns false when a visit did. */
bool image_tree_walk(struct image_tree *tree, image_tree_visit *visit, void *context,
                     struct problem *ret_problem);

/* Returns the type of what is at a path without "/" at its begin, or 0 when there is nothing. */
char image_tree_type(const struct image_tree *tree, const char *path);

#endif
