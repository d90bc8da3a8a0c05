/* protocol/results.h signs many results at once, so that each is provable alone
 * (docs/protocol.md).
 *
 * The leaf of a result is SHA-256(0x00 || encoded Result). The root is RFC 6962's over the leaves
 * in the order sent. The provider signs "bourse/results/v1" NUL, cluster id, root. A result, its
 * path, and the signature prove it without the others. */
#ifndef BOURSE_PROTOCOL_RESULTS_H
#define BOURSE_PROTOCOL_RESULTS_H

#include "base/id.h"
#include "protocol/identity.h"
#include "protocol/limits.h"

struct hash32 results_leaf(const void *result, size_t length);
/* Returns the root of `count` (1 .. LIMIT_RESULTS) leaves. */
struct hash32 results_root(const struct hash32 *leaves, size_t count);

/* results_blobs() collects the hashes of the blobs that an encoded Result names, up to
 * RESULTS_BLOBS_MAX, and returns their number. A Result that does not decode gives the hashes
 * before its fault. */
enum results_blobs {
    RESULTS_STREAMS = 1, /* standard output and standard error */
    RESULTS_OUTPUTS = 2,
    RESULTS_SAVED = 4, /* the files of its checkpoint */
};
enum { RESULTS_BLOBS_MAX = 2 + LIMIT_OUTPUTS + LIMIT_CHECKPOINT_FILES };
size_t results_blobs(const uint8_t *result, size_t length, unsigned which,
                     struct hash32 ret_hashes[RESULTS_BLOBS_MAX]);

struct signature64 results_sign(const struct identity *identity, const struct id128 *cluster,
                                const struct hash32 *root);
bool results_verify(const struct key32 *provider, const struct id128 *cluster,
                    const struct hash32 *root, const struct signature64 *signature);

#endif
