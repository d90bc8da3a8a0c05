/* matching/compiled_requirement.h prepares a requirement for evaluation against many devices.
 *
 * Digests of one word stand for names and texts, so that a walk over thousands of devices reads few
 * strings. base/requirement.h decides for one device. */
#ifndef BOURSE_MATCHING_COMPILED_REQUIREMENT_H
#define BOURSE_MATCHING_COMPILED_REQUIREMENT_H

#include "base/requirement.h"

/* A digest is an attribute in three words. A head is the first eight bytes as a number, so that
 * heads of different names sort as the names do. A text of eight bytes or more has a hash instead.
 * Two equal digests that end in a byte other than 0 may belong to different texts. */
struct attribute_digest {
    uint64_t name;
    uint64_t value; /* the number, or the digest of the text */
    bool is_text;
};
struct attribute_digest compiled_digest(const struct attribute *attribute);

struct compiled_requirement {
    const struct requirement *needs; /* borrowed, and well formed */
    uint32_t count;
    uint32_t order[REQUIREMENT_NODES_MAX];                  /* the predicates, sorted by name */
    struct attribute_digest digests[REQUIREMENT_NODES_MAX]; /* in the same order */
    bool is_repeated[REQUIREMENT_NODES_MAX];                /* the name equals the one before */
};
struct compiled_requirement compiled_requirement(const struct requirement *needs);
/* Returns the set of predicates that hold for a device, as bits by index of the node. The
 * attributes are sorted by name, and their digests stand beside them. `ret_first`, if not NULL,
 * gets for each predicate the first attribute of its name, or `count` where there is none. */
uint64_t compiled_truth(const struct compiled_requirement *compiled,
                        const struct attribute *attributes, const struct attribute_digest *digests,
                        size_t count, size_t ret_first[REQUIREMENT_NODES_MAX]);

#endif
