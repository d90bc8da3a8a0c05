/* base/requirement.h - what a device is (attributes) and what a job needs (a requirement): the
 * shapes that formats/ parses, protocol/ carries, matching/ evaluates and reports explain.
 *
 * A requirement is a tree of predicates in postfix order: operands first, then `and`, `or` (with
 * their arity) or `not`. `memory >= 2GiB and kind = cpu` is [memory GE 2147483648] [kind EQ "cpu"]
 * [AND 2]. No nodes at all means "anything". An attribute name may stand several times on one
 * device (it is a set, as with the programs a provider allows): EQ holds if any value is equal, NE
 * if none is, the orderings if any holds. A predicate on a name that the device does not have is
 * false, NE included: unknown is not "different". Pure data. */
#ifndef BOURSE_BASE_REQUIREMENT_H
#define BOURSE_BASE_REQUIREMENT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ATTRIBUTE_NAME_SIZE = 32,  /* with the NUL */
    ATTRIBUTE_TEXT_SIZE = 64,  /* with the NUL */
    ATTRIBUTE_COUNT_MAX = 128, /* per device */
    REQUIREMENT_NODES_MAX = 64,
};

struct attribute {
    char name[ATTRIBUTE_NAME_SIZE];
    bool is_text;
    int64_t number;
    char text[ATTRIBUTE_TEXT_SIZE];
};

enum requirement_op {
    REQUIREMENT_AND = 1,
    REQUIREMENT_OR = 2,
    REQUIREMENT_NOT = 3,
    REQUIREMENT_EQ = 4,
    REQUIREMENT_NE = 5,
    REQUIREMENT_LT = 6,
    REQUIREMENT_LE = 7,
    REQUIREMENT_GT = 8,
    REQUIREMENT_GE = 9,
};

struct requirement_node {
    enum requirement_op op;
    uint32_t arity;             /* AND, OR: operands taken, >= 2 */
    struct attribute attribute; /* predicates: name and value */
};

struct requirement {
    uint32_t count;
    struct requirement_node nodes[REQUIREMENT_NODES_MAX];
};

/* The most that any device has of it, in the attribute's own unit (durations in ns); INT64_MAX:
 * there is no bound. */
int64_t attribute_most(const char *name);

#endif
