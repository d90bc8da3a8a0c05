#include "exchange/view/smallest_change_needs.h"

#include "exchange/lifecycle.h"
#include "exchange/view/smallest_change_candidate.h"

#include <assert.h>
#include <string.h>

uint64_t smallest_change_fixed(const struct requirement *needs)
{
    /* A program, image or operation asks for the last five by itself, and runs nowhere else. */
    static const char *const names[] = {"program",      "executor", "referee",  "simulated", "arch",
                                        "image_config", "api",      "terminal", "operation"};
    uint64_t fixed = 0;
    for (uint32_t i = 0; i < needs->count; i++) {
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            bool is = needs->nodes[i].op >= REQUIREMENT_EQ &&
                      strcmp(needs->nodes[i].attribute.name, names[k]) == 0;
            fixed |= (uint64_t)is << i;
        }
    }
    return fixed;
}

bool smallest_change_nearest(const struct exchange *exchange, const struct device *device,
                             const struct requirement_node *node, int64_t *ret_figure)
{
    size_t count;
    const struct attribute *attributes = book_cell_attributes(exchange->book, device->cell, &count);
    bool found = false;
    *ret_figure = 0;
    bool wants_more = node->op == REQUIREMENT_GT || node->op == REQUIREMENT_GE;
    if (node->attribute.is_text || node->op < REQUIREMENT_LT) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct attribute *has = &attributes[i];
        if (has->is_text || strcmp(has->name, node->attribute.name) != 0) {
            continue;
        }
        bool is_nearer = wants_more ? has->number > *ret_figure : has->number < *ret_figure;
        if (!found || is_nearer) {
            *ret_figure = has->number;
            found = true;
        }
    }
    return found;
}

/* Rounds the figure to three digits, as people write it, away from the old one. Whole MiB stay. */
static int64_t plain_figure(int64_t figure, bool down)
{
    int64_t scale = 1;
    int64_t more;
    if (figure < 1000 || figure % (1 << 20) == 0) {
        return figure;
    }
    while (figure / scale >= 1000) {
        scale *= 10;
    }
    int64_t rounded = figure / scale * scale;
    if (down || rounded == figure) {
        return rounded;
    }
    return checked_add(rounded, scale, &more) ? more : figure;
}

/* Returns the predicate with another figure, so that it turns over for a device with `figure`. */
static struct requirement_node loosened(const struct requirement_node *node, bool held,
                                        int64_t figure)
{
    struct requirement_node after = *node;
    bool wants_more = node->op == REQUIREMENT_GT || node->op == REQUIREMENT_GE;
    after.op = wants_more ? (held ? REQUIREMENT_GT : REQUIREMENT_GE)
                          : (held ? REQUIREMENT_LT : REQUIREMENT_LE);
    after.attribute.number = plain_figure(figure, wants_more != held);
    return after;
}

/* A bound beyond any device's most would be refused, so a predicate under `not` is dropped then. */
static bool can_hold(const struct requirement_node *node)
{
    return node->op != REQUIREMENT_GT ||
           node->attribute.number < requirement_attribute_most(node->attribute.name);
}

enum truth { TREE, ALWAYS, NEVER };

/* An operand is a subtree of the old requirement. */
struct operand {
    uint32_t first; /* the operand's first node */
    uint32_t out;   /* start of the operand's tree in the new requirement */
    enum truth truth;
};

struct rewriting {
    struct requirement *out;
    struct exchange_smallest_change *smallest_change;
    uint32_t depth;
    struct operand operands[REQUIREMENT_NODES_MAX];
};

/* Drops all of these nodes, as one change. */
static void drop_all(struct rewriting *rewriting, uint32_t first, uint32_t last)
{
    struct exchange_smallest_change *smallest_change = rewriting->smallest_change;
    uint32_t kept = 0;
    bool is_said = false;
    for (uint32_t i = 0; i < smallest_change->count; i++) {
        struct exchange_bid_change *change = &smallest_change->changes[i];
        if (change->kind >= BID_CHANGE_LOOSEN && change->first >= first) {
            if (is_said) {
                continue;
            }
            is_said = true;
            *change = (struct exchange_bid_change){
                .kind = BID_CHANGE_DROP, .first = first, .nodes = last - first + 1};
        }
        smallest_change->changes[kept++] = *change;
    }
    smallest_change->count = kept;
}

/* Joins the last operands; decided operands go, or decide the whole. */
static void join(struct rewriting *rewriting, const struct requirement_node *node, uint32_t index)
{
    const enum truth neutral = node->op == REQUIREMENT_AND ? ALWAYS : NEVER;
    uint32_t trees = 0;
    bool is_decided = false;
    rewriting->depth -= node->arity;
    struct operand *operand = &rewriting->operands[rewriting->depth];
    for (uint32_t k = 0; k < node->arity; k++) {
        const enum truth truth = operand[k].truth;
        trees += truth == TREE;
        is_decided = is_decided || (truth != TREE && truth != neutral);
    }
    struct requirement *out = rewriting->out;
    if (is_decided || trees == 0) {
        out->count = operand->out;
        operand->truth = (neutral == ALWAYS) != is_decided ? ALWAYS : NEVER;
        if (is_decided) {
            drop_all(rewriting, operand->first, index);
        }
    } else {
        if (trees > 1) {
            out->nodes[out->count] = *node;
            out->nodes[out->count++].arity = trees;
        }
        operand->truth = TREE;
    }
    rewriting->depth++;
}

static void turn(struct rewriting *rewriting, const struct requirement_node *node, uint32_t index)
{
    struct operand *last = &rewriting->operands[rewriting->depth - 1];
    if (last->truth == TREE) {
        rewriting->out->nodes[rewriting->out->count++] = *node;
    } else {
        last->truth = last->truth == ALWAYS ? NEVER : ALWAYS;
        drop_all(rewriting, last->first, index);
    }
}

/* Turns a predicate over: it gets another figure, or is decided and goes. */
static void turn_over(struct rewriting *rewriting, uint32_t index,
                      const struct requirement_node *node, const struct turned *turned)
{
    const struct exchange_bid_change change = {
        .kind = turned->has_figure ? BID_CHANGE_LOOSEN : BID_CHANGE_DROP,
        .is_negated = turned->held,
        .first = index,
        .nodes = 1,
        .before = *node,
        .after = turned->after,
    };
    smallest_change_add(rewriting->smallest_change, &change);
    if (turned->has_figure) {
        rewriting->out->nodes[rewriting->out->count++] = turned->after;
    }
    rewriting->operands[rewriting->depth++].truth = turned->has_figure ? TREE
                                                    : turned->held     ? NEVER
                                                                       : ALWAYS;
}

void smallest_change_rewrite(struct seeking *seeking,
                             struct exchange_smallest_change *smallest_change)
{
    const struct search *search = seeking->search;
    const struct requirement *needs = search->need->needs;
    const struct explained *seen = seeking->best.offer.from;
    struct rewriting rewriting = {.out = &smallest_change->needs,
                                  .smallest_change = smallest_change};
    uint32_t turned_count = 0;
    smallest_change->needs.count = 0;
    for (uint32_t i = 0; i < needs->count; i++) {
        const struct requirement_node *node = &needs->nodes[i];
        if (node->op == REQUIREMENT_NOT) {
            turn(&rewriting, node, i);
            continue;
        }
        if (node->op == REQUIREMENT_AND || node->op == REQUIREMENT_OR) {
            join(&rewriting, node, i);
            continue;
        }
        rewriting.operands[rewriting.depth] =
            (struct operand){.first = i, .out = smallest_change->needs.count, .truth = TREE};
        if ((seen->effort.hold_set >> i & 1) == 0) {
            smallest_change->needs.nodes[smallest_change->needs.count++] = *node;
            rewriting.depth++;
            continue;
        }
        int64_t figure = 0;
        struct turned *turned = &seeking->turned[turned_count++];
        turned->held = (seen->truth >> i & 1) != 0;
        turned->has_figure = smallest_change_nearest(search->exchange, seen->device, node, &figure);
        turned->after = loosened(node, turned->held, figure);
        turned->has_figure = turned->has_figure && can_hold(&turned->after);
        turn_over(&rewriting, i, node, turned);
    }
    assert(rewriting.depth <= 1);
    seeking->changed = &smallest_change->needs;
}
