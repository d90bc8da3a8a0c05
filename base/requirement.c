#include "base/requirement.h"

#include <assert.h>
#include <string.h>

int64_t requirement_attribute_most(const char *name)
{
    static const int64_t week_ns = INT64_C(7) * 24 * 3600 * 1000 * 1000 * 1000;
    static const struct {
        const char *name;
        int64_t most;
    } bounds[] = {{"isolation", 3}, {"trust", 2}, {"notice", week_ns}, {"minimum_run", week_ns}};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        if (strcmp(bounds[i].name, name) == 0) {
            return bounds[i].most;
        }
    }
    return INT64_MAX;
}

bool requirement_is_predicate(enum requirement_op op)
{
    return op >= REQUIREMENT_EQ && op <= REQUIREMENT_GE;
}

/* Returns the operands that a node takes from the stack, or -1 when the node itself is wrong. */
static int operands(const struct requirement_node *node)
{
    if (requirement_is_predicate(node->op)) {
        bool ordering = node->op != REQUIREMENT_EQ && node->op != REQUIREMENT_NE;
        return node->attribute.is_text && ordering ? -1 : 0;
    }
    if (node->op == REQUIREMENT_NOT) {
        return 1;
    }
    bool joins = node->op == REQUIREMENT_AND || node->op == REQUIREMENT_OR;
    return joins && node->arity >= 2 && node->arity <= REQUIREMENT_NODES_MAX ? (int)node->arity
                                                                             : -1;
}

bool requirement_well_formed(const struct requirement *requirement)
{
    if (requirement->count > REQUIREMENT_NODES_MAX) {
        return false;
    }
    int depth = 0;
    for (uint32_t i = 0; i < requirement->count; i++) {
        int taken = operands(&requirement->nodes[i]);
        if (taken < 0 || taken > depth) {
            return false;
        }
        depth += 1 - taken;
    }
    return depth == (requirement->count > 0 ? 1 : 0);
}

bool requirement_number_holds(enum requirement_op op, int64_t number, int64_t wanted)
{
    switch (op) {
    case REQUIREMENT_EQ:
    case REQUIREMENT_NE: /* the caller inverts it, over all values */
        return number == wanted;
    case REQUIREMENT_LT:
        return number < wanted;
    case REQUIREMENT_LE:
        return number <= wanted;
    case REQUIREMENT_GT:
        return number > wanted;
    case REQUIREMENT_GE:
        return number >= wanted;
    case REQUIREMENT_AND:
    case REQUIREMENT_OR:
    case REQUIREMENT_NOT:
        break;
    }
    return false;
}

static bool value_holds(const struct requirement_node *node, const struct attribute *attribute)
{
    const struct attribute *wanted = &node->attribute;
    if (attribute->is_text != wanted->is_text) {
        return false;
    }
    return wanted->is_text ? strcmp(attribute->text, wanted->text) == 0
                           : requirement_number_holds(node->op, attribute->number, wanted->number);
}

/* Compares like strcmp. The first byte decides for most names, which saves the call. */
static int compare_names(const char *a, const char *b)
{
    return a[0] != b[0] ? (unsigned char)a[0] - (unsigned char)b[0] : strcmp(a, b);
}

/* Returns the index of the first attribute whose name is not before `name`. Attributes are
 * sorted by name. */
static size_t first_named(const char *name, const struct attribute *attributes, size_t count)
{
    size_t from = 0;
    size_t to = count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (compare_names(attributes[middle].name, name) < 0) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

/* `values` are exactly the attributes that have the predicate's name. */
static bool values_hold(const struct requirement_node *node, const struct attribute *values,
                        size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        any = any || value_holds(node, &values[i]);
    }
    return node->op == REQUIREMENT_NE ? count > 0 && !any : any;
}

bool requirement_predicate_holds(const struct requirement_node *node,
                                 const struct attribute *attributes, size_t count)
{
    const char *name = node->attribute.name;
    size_t first = first_named(name, attributes, count);
    size_t end = first;
    while (end < count && compare_names(attributes[end].name, name) == 0) {
        end++;
    }
    return values_hold(node, &attributes[first], end - first);
}

/* ---------------------------------------------------------------- simulated devices */

static bool names_simulation(const char *instrument)
{
    return strncmp(instrument, "sim.", 4) == 0;
}

bool requirement_simulated(const struct attribute *attributes, size_t count)
{
    for (size_t i = first_named("instrument", attributes, count);
         i < count && compare_names(attributes[i].name, "instrument") == 0; i++) {
        if (attributes[i].is_text && names_simulation(attributes[i].text)) {
            return true;
        }
    }
    for (size_t i = first_named("simulated", attributes, count);
         i < count && compare_names(attributes[i].name, "simulated") == 0; i++) {
        if (attributes[i].is_text || attributes[i].number != 0) {
            return true;
        }
    }
    return false;
}

/* Returns true when the requirement asks for this simulated device by the predicate `node`. The
 * predicate concerns simulation, and it holds. */
static bool asks(const struct requirement_node *node, const struct attribute *attributes,
                 size_t count)
{
    const struct attribute *wanted = &node->attribute;
    bool by_flag = strcmp(wanted->name, "simulated") == 0;
    bool by_instrument = node->op == REQUIREMENT_EQ && wanted->is_text &&
                         strcmp(wanted->name, "instrument") == 0 && names_simulation(wanted->text);
    return (by_flag || by_instrument) && requirement_predicate_holds(node, attributes, count);
}

uint64_t requirement_negated(const struct requirement *requirement)
{
    static_assert(REQUIREMENT_NODES_MAX <= 64, "a bit for each node");
    /* The loop goes from the root, which stands last, to the leaves. A stack entry says whether
     * its node stands under an odd number of nots. The operands wait on the stack, the last one
     * on top. */
    bool negated[REQUIREMENT_NODES_MAX + 1] = {false};
    uint32_t depth = 1;
    uint64_t set = 0;
    for (uint32_t i = requirement->count; i-- > 0;) {
        const struct requirement_node *node = &requirement->nodes[i];
        bool is_negated = negated[--depth];
        if (requirement_is_predicate(node->op)) {
            set |= (uint64_t)is_negated << i;
            continue;
        }
        uint32_t taken = node->op == REQUIREMENT_NOT ? 1 : node->arity;
        for (uint32_t k = 0; k < taken; k++) {
            negated[depth++] = is_negated != (node->op == REQUIREMENT_NOT);
        }
    }
    return set;
}

static bool is_asked_for(const struct requirement *requirement, const struct attribute *attributes,
                         size_t count)
{
    const uint64_t negated = requirement_negated(requirement);
    for (uint32_t i = 0; i < requirement->count; i++) {
        const struct requirement_node *node = &requirement->nodes[i];
        if (requirement_is_predicate(node->op) && (negated >> i & 1) == 0 &&
            asks(node, attributes, count)) {
            return true;
        }
    }
    return false;
}

bool requirement_passes_over(const struct requirement *requirement,
                             const struct attribute *attributes, size_t count)
{
    return requirement_simulated(attributes, count) &&
           !is_asked_for(requirement, attributes, count);
}

/* The function tests a simulated device that has every instrument that the requirement names. */
bool requirement_asks_simulated(const struct requirement *requirement)
{
    struct attribute attributes[REQUIREMENT_NODES_MAX + 1];
    size_t count = 0;
    for (uint32_t i = 0; i < requirement->count; i++) {
        const struct attribute *wanted = &requirement->nodes[i].attribute;
        if (requirement_is_predicate(requirement->nodes[i].op) &&
            strcmp(wanted->name, "instrument") == 0) {
            attributes[count++] = *wanted;
        }
    }
    attributes[count++] = (struct attribute){.name = "simulated", .number = 1};
    return is_asked_for(requirement, attributes, count);
}

/* ---------------------------------------------------------------- the whole tree */

bool requirement_holds(const struct requirement *requirement, uint64_t truth)
{
    uint64_t stack = 0; /* the last operand is bit 0 */
    for (uint32_t i = 0; i < requirement->count; i++) {
        const struct requirement_node *node = &requirement->nodes[i];
        if (requirement_is_predicate(node->op)) {
            stack = stack << 1 | (truth >> i & 1);
        } else if (node->op == REQUIREMENT_NOT) {
            stack ^= 1;
        } else {
            const uint64_t all = UINT64_MAX >> (64 - node->arity);
            const bool value =
                node->op == REQUIREMENT_AND ? (stack & all) == all : (stack & all) != 0;
            stack = (stack & ~all) >> (node->arity - 1) | value;
        }
    }
    return requirement->count == 0 || (stack & 1) != 0;
}

bool requirement_satisfied(const struct requirement *requirement,
                           const struct attribute *attributes, size_t count)
{
    uint64_t truth = 0;
    for (uint32_t i = 0; i < requirement->count; i++) {
        const struct requirement_node *node = &requirement->nodes[i];
        truth |= (uint64_t)(requirement_is_predicate(node->op) &&
                            requirement_predicate_holds(node, attributes, count))
                 << i;
    }
    return requirement_holds(requirement, truth) &&
           !requirement_passes_over(requirement, attributes, count);
}
