/* matching/compiled_requirement.h prepares a requirement for evaluation against many devices.
 *
 * Digests of one word stand for names and texts, so that a walk over thousands of devices reads few
 * strings. base/requirement.h decides for one device. */
#ifndef BOURSE_MATCHING_COMPILED_REQUIREMENT_H
#define BOURSE_MATCHING_COMPILED_REQUIREMENT_H

#include "base/requirement.h"

/* A digest stands for an attribute. The name's word is its first eight bytes as a big-endian
 * number, so that the words of different names sort as the names do. A text shorter than eight
 * bytes has the same kind of word; the word of a longer text is a hash whose last byte is not 0.
 * Equal words mean equal texts if the last byte is 0; other equal words may belong to different
 * texts. */
struct attribute_digest {
    uint64_t name;  /* the name's word */
    uint64_t value; /* the number, or the text's word */
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
 * attributes are sorted by name, and digests[i] is that of attributes[i]. `ret_first`, if not NULL,
 * gets for each predicate the first attribute of its name, or `count` where there is none. */
uint64_t compiled_truth(const struct compiled_requirement *compiled,
                        const struct attribute *attributes, const struct attribute_digest *digests,
                        size_t count, size_t ret_first[REQUIREMENT_NODES_MAX]);

#endif
