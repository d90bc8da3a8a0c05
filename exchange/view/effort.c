#include "exchange/view/effort.h"

#include "exchange/lifecycle.h"

#include <assert.h>

static struct effort of_predicate(bool holds, uint32_t index)
{
    uint64_t one = UINT64_C(1) << index;
    return holds ? (struct effort){0, 1, 0, one} : (struct effort){1, 0, one, 0};
}

static struct effort turned(struct effort effort)
{
    return (struct effort){effort.fail, effort.hold, effort.fail_set, effort.hold_set};
}

/* A conjunction holds when all parts hold (the sum), and fails when one fails (the least). */
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
