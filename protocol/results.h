/* protocol/results.h - many results under one signature, each provable alone (docs/protocol.md).
 *
 * The leaf of a result is SHA-256(0x00 || encoded Result); the root is RFC 6962's over the leaves
 * in the order sent; the provider signs "bourse/results/v1" NUL, cluster id, root. A result, its
 * path, and the signature prove it without the others. Pure. */
#ifndef BOURSE_PROTOCOL_RESULTS_H
#define BOURSE_PROTOCOL_RESULTS_H

#include "base/id.h"
#include "protocol/identity.h"
#include "protocol/limits.h"

enum { RESULTS_PATH_MAX = 8 }; /* log2(LIMIT_RESULTS) */

struct hash32 results_leaf(const void *result, size_t length);
/* Root of `count` (1 .. LIMIT_RESULTS) leaves. */
struct hash32 results_root(const struct hash32 *leaves, size_t count);
/* Path of leaf `index`, from the leaf's sibling up; returns its length. */
size_t results_path(const struct hash32 *leaves, size_t count, size_t index,
                    struct hash32 ret_path[RESULTS_PATH_MAX]);
/* The root that a leaf and its path lead to; false if the path's length does not fit. */
bool results_root_from_path(const struct hash32 *leaf, size_t count, size_t index,
                            const struct hash32 *path, size_t path_length, struct hash32 *ret_root);

struct signature64 results_sign(const struct identity *identity, const struct id128 *cluster,
                                const struct hash32 *root);
bool results_verify(const struct key32 *provider, const struct id128 *cluster,
                    const struct hash32 *root, const struct signature64 *signature);

#endif
