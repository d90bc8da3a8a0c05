/* base/requirement.h defines attributes, which describe a device, and requirements, which a job
 * asks of a device.
 *
 * formats/ parses these structs, protocol/ carries them, matching/ evaluates them, and reports
 * explain them. A requirement is a tree of predicates in postfix order: operands first, then
 * `and`, `or` (with their arity) or `not`. `memory >= 2GiB and kind = cpu` is [memory GE
 * 2147483648] [kind EQ "cpu"] [AND 2]. A requirement without nodes accepts any device.
 *
 * An attribute name may stand several times on one device, as with the programs a provider
 * allows. EQ holds if any value is equal, NE if none is, the orderings if any holds. A predicate
 * on a name that the device does not have is false, NE included: unknown is not "different".
 * Every evaluation of a requirement goes through the functions below;
 * matching/compiled_requirement.h does so for many devices. */
#ifndef BOURSE_BASE_REQUIREMENT_H
#define BOURSE_BASE_REQUIREMENT_H

#include <stdbool.h>
#include <stddef.h>
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

/* Returns the greatest value that any device has of the attribute, in its own unit (durations in
 * ns). Returns INT64_MAX when there is no bound. */
int64_t requirement_attribute_most(const char *name);

/* Returns true when the tree is well formed: no node takes more operands than stand before it,
 * and one operand is left. */
bool requirement_well_formed(const struct requirement *requirement);
/* Returns true for a predicate: a leaf that compares one attribute with a value. */
bool requirement_is_predicate(enum requirement_op op);

/* The functions below take attributes that are sorted by name, and well-formed requirements. */

/* Returns true when the device satisfies the requirement. The tree holds, and a device that is
 * simulated is one that the requirement asks for. Every decision whether a device fits calls this
 * function. */
bool requirement_satisfied(const struct requirement *requirement,
                           const struct attribute *attributes, size_t count);
/* Returns true when the tree holds, given the predicates that hold. `truth` has one bit per
 * node, by its index. */
bool requirement_holds(const struct requirement *requirement, uint64_t truth);
/* Returns true when the one predicate `node` holds for the device. */
bool requirement_predicate_holds(const struct requirement_node *node,
                                 const struct attribute *attributes, size_t count);
/* Compares two numbers. NE compares like EQ: the caller inverts it over all values of a name. */
bool requirement_number_holds(enum requirement_op op, int64_t number, int64_t wanted);
/* Returns the set of predicates that stand under an odd number of nots: they must not hold. */
uint64_t requirement_negated(const struct requirement *requirement);

/* Returns true when the device is a simulation. Its attribute `simulated` is not 0, or its
 * instrument begins with "sim.". */
bool requirement_simulated(const struct attribute *attributes, size_t count);
/* Returns true when the device is a simulation that the requirement does not ask for. The device
 * is then passed over, even if the tree holds. A requirement asks by a predicate on `simulated`,
 * or by one that an instrument equals a "sim." one. The predicate holds for the device and
 * stands under an even number of nots. */
bool requirement_passes_over(const struct requirement *requirement,
                             const struct attribute *attributes, size_t count);
/* Returns true when the requirement can ask for some simulated device. */
bool requirement_asks_simulated(const struct requirement *requirement);

#endif
