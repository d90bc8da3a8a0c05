/* This file computes the paths of RFC 6962 from a result to the root that its provider signs. The
 * paths judge results_root. */
#ifndef BOURSE_TESTS_SUPPORT_RESULTS_PATH_H
#define BOURSE_TESTS_SUPPORT_RESULTS_PATH_H

#include "protocol/results.h"

#include <stdbool.h>
#include <stddef.h>

enum { RESULTS_PATH_MAX = 8 }; /* log2(LIMIT_RESULTS) */

/* Writes the path of leaf `index`, from the leaf's sibling up, and returns its length. */
size_t results_path(const struct hash32 *leaves, size_t count, size_t index,
                    struct hash32 ret_path[RESULTS_PATH_MAX]);
/* Computes the root from a leaf and its path. Returns false if the path's length does not fit. */
bool results_root_from_path(const struct hash32 *leaf, size_t count, size_t index,
                            const struct hash32 *path, size_t path_length, struct hash32 *ret_root);

#endif
