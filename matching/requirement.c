#include "matching/book.h"

#include <assert.h>
#include <string.h>

static bool is_predicate(enum requirement_op op)
{
    return op >= REQUIREMENT_EQ && op <= REQUIREMENT_GE;
}

/* Operands that a node takes from the stack, or -1 when the node itself is wrong. */
static int operands(const struct requirement_node *node)
{
    if (is_predicate(node->op)) {
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

static bool number_holds(enum requirement_op op, int64_t number, int64_t wanted)
{
    switch (op) {
    case REQUIREMENT_EQ:
    case REQUIREMENT_NE: /* inverted by the caller, over all values */
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
                           : number_holds(node->op, attribute->number, wanted->number);
}

/* As strcmp, which most names do not need. */
static int compare_names(const char *a, const char *b)
{
    return a[0] != b[0] ? (unsigned char)a[0] - (unsigned char)b[0] : strcmp(a, b);
}

/* The first attribute whose name is not before `name`: they are sorted by name. */
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

bool requirement_values_hold(const struct requirement_node *node, const struct attribute *values,
                             size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        any = any || value_holds(node, &values[i]);
    }
    return node->op == REQUIREMENT_NE ? count > 0 && !any : any;
}

static uint64_t head_of(const char *text)
{
    uint64_t head = 0;
    for (unsigned i = 0; i < 8; i++) {
        head = head << 8 | (uint8_t)*text;
        text += *text != '\0';
    }
    return head;
}

/* FNV-1a, and its last byte is not 0. */
static uint64_t long_text_hash(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text != '\0'; text++) {
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    }
    return hash | 1;
}

static bool is_whole(uint64_t digest)
{
    return (digest & UINT8_MAX) == 0;
}

struct attribute_digest attribute_digest_of(const struct attribute *attribute)
{
    const uint64_t head = head_of(attribute->text);
    return (struct attribute_digest){.name = head_of(attribute->name),
                                     .value = !attribute->is_text ? (uint64_t)attribute->number
                                              : is_whole(head)    ? head
                                                                  : long_text_hash(attribute->text),
                                     .is_text = attribute->is_text};
}

bool requirement_digests_hold(const struct requirement_node *node,
                              const struct attribute_digest *wanted, const struct attribute *values,
                              const struct attribute_digest *digests, size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count && !any; i++) {
        if (digests[i].is_text != wanted->is_text) {
            continue;
        }
        any = !wanted->is_text
                  ? number_holds(node->op, (int64_t)digests[i].value, (int64_t)wanted->value)
                  : digests[i].value == wanted->value &&
                        (is_whole(wanted->value) ||
                         strcmp(values[i].text, node->attribute.text) == 0);
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
    return requirement_values_hold(node, &attributes[first], end - first);
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

/* A predicate by which a requirement asks for this simulated device: it speaks of simulation, and
 * holds. */
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
    /* From the root, which stands last, to the leaves: whether each node stands under an odd number
     * of nots. What waits on the stack are operands, the last one first, as they come. */
    bool negated[REQUIREMENT_NODES_MAX + 1] = {false};
    uint32_t depth = 1;
    uint64_t set = 0;
    for (uint32_t i = requirement->count; i-- > 0;) {
        const struct requirement_node *node = &requirement->nodes[i];
        bool is_negated = negated[--depth];
        if (is_predicate(node->op)) {
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
        if (is_predicate(node->op) && (negated >> i & 1) == 0 && asks(node, attributes, count)) {
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

/* Asked about a simulated device that has every instrument that the requirement speaks of. */
bool requirement_asks_simulated(const struct requirement *requirement)
{
    struct attribute attributes[REQUIREMENT_NODES_MAX + 1];
    size_t count = 0;
    for (uint32_t i = 0; i < requirement->count; i++) {
        const struct attribute *wanted = &requirement->nodes[i].attribute;
        if (is_predicate(requirement->nodes[i].op) && strcmp(wanted->name, "instrument") == 0) {
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
        if (is_predicate(node->op)) {
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
        truth |= (uint64_t)(is_predicate(node->op) &&
                            requirement_predicate_holds(node, attributes, count))
                 << i;
    }
    return requirement_holds(requirement, truth) &&
           !requirement_passes_over(requirement, attributes, count);
}

/* ---------------------------------------------------------------- of many devices */

struct requirement_plan requirement_plan(const struct requirement *needs)
{
    struct requirement_plan plan = {.needs = needs};
    for (uint32_t i = 0; i < needs->count; i++) {
        uint32_t at = plan.count;
        if (!is_predicate(needs->nodes[i].op)) {
            continue;
        }
        for (; at > 0 && strcmp(needs->nodes[i].attribute.name,
                                needs->nodes[plan.order[at - 1]].attribute.name) < 0;
             at--) {
            plan.order[at] = plan.order[at - 1];
        }
        plan.order[at] = i;
        plan.count++;
    }
    for (uint32_t i = 0; i < plan.count; i++) {
        const struct attribute *wanted = &needs->nodes[plan.order[i]].attribute;
        plan.digests[i] = attribute_digest_of(wanted);
        plan.is_repeated[i] =
            i > 0 && strcmp(wanted->name, needs->nodes[plan.order[i - 1]].attribute.name) == 0;
    }
    return plan;
}

/* Whether the name that has this digest comes before the wanted one, or is it: most need not be
 * looked at. */
static bool is_before(const struct attribute_digest *digest, const struct attribute *attribute,
                      const struct attribute_digest *wanted, const struct requirement_node *node)
{
    if (digest->name != wanted->name || (wanted->name & UINT8_MAX) == 0) {
        return digest->name < wanted->name;
    }
    return strcmp(attribute->name, node->attribute.name) < 0;
}

static bool is_same(const struct attribute_digest *digest, const struct attribute *attribute,
                    const struct attribute_digest *wanted, const struct requirement_node *node)
{
    return digest->name == wanted->name &&
           ((wanted->name & UINT8_MAX) == 0 || strcmp(attribute->name, node->attribute.name) == 0);
}

/* Both are sorted by name: one walk. */
uint64_t requirement_truth(const struct requirement_plan *plan, const struct attribute *attributes,
                           const struct attribute_digest *digests, size_t count,
                           size_t ret_first[REQUIREMENT_NODES_MAX])
{
    uint64_t truth = 0;
    size_t first = 0;
    size_t end = 0; /* those from `first` on have the name of the predicate before */
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct requirement_node *node = &plan->needs->nodes[plan->order[i]];
        const struct attribute_digest *wanted = &plan->digests[i];
        if (!plan->is_repeated[i]) {
            first = end;
            while (first < count && is_before(&digests[first], &attributes[first], wanted, node)) {
                first++;
            }
            end = first;
            while (end < count && is_same(&digests[end], &attributes[end], wanted, node)) {
                end++;
            }
        }
        bool holds = requirement_digests_hold(node, wanted, &attributes[first], &digests[first],
                                              end - first);
        truth |= (uint64_t)holds << plan->order[i];
        if (ret_first != NULL) {
            ret_first[plan->order[i]] = first < end ? first : count;
        }
    }
    return truth;
}
