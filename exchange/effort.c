#include "exchange/effort.h"

#include "matching/book.h"

#include <assert.h>
#include <string.h>

static struct effort of_predicate(bool holds, uint32_t index)
{
    uint64_t one = UINT64_C(1) << index;
    return holds ? (struct effort){0, 1, 0, one} : (struct effort){1, 0, one, 0};
}

static struct effort turned(struct effort effort)
{
    return (struct effort){effort.fail, effort.hold, effort.fail_set, effort.hold_set};
}

/* All must hold: the sum; one fails: the least. */
static struct effort of_all(const struct effort *parts, uint32_t count)
{
    struct effort all = {0, UINT32_MAX, 0, 0};
    for (uint32_t i = 0; i < count; i++) {
        all.hold += parts[i].hold;
        all.hold_set |= parts[i].hold_set;
        if (parts[i].fail < all.fail) {
            all.fail = parts[i].fail;
            all.fail_set = parts[i].fail_set;
        }
    }
    return all;
}

static struct effort of_any(struct effort *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = turned(parts[i]); /* de Morgan; the operands are not needed again */
    }
    return turned(of_all(parts, count));
}

struct effort_plan effort_plan(const struct requirement *needs)
{
    struct effort_plan plan = {.needs = needs};
    for (uint32_t i = 0; i < needs->count; i++) {
        uint32_t at = plan.count;
        if (needs->nodes[i].op < REQUIREMENT_EQ) {
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

/* Whether the name that has this digest comes before the wanted one, or is it: most need not be looked at. */
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
uint64_t effort_truth(const struct effort_plan *plan, const struct attribute *attributes,
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

struct effort effort_of(const struct requirement *needs, uint64_t truth)
{
    struct effort stack[REQUIREMENT_NODES_MAX];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < needs->count; i++) {
        const struct requirement_node *node = &needs->nodes[i];
        if (node->op == REQUIREMENT_NOT) {
            stack[depth - 1] = turned(stack[depth - 1]);
        } else if (node->op == REQUIREMENT_AND || node->op == REQUIREMENT_OR) {
            depth -= node->arity;
            stack[depth] = node->op == REQUIREMENT_AND ? of_all(&stack[depth], node->arity)
                                                       : of_any(&stack[depth], node->arity);
            depth++;
        } else {
            stack[depth++] = of_predicate((truth >> i & 1) != 0, i);
        }
    }
    assert(depth <= 1);
    return depth == 0 ? (struct effort){0, UINT32_MAX, 0, 0} : stack[0];
}
