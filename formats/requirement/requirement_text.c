/* Requirements are written as text here, from postfix nodes, with the fewest parentheses. */
#include "formats/requirement.h"

#include "base/text.h"
#include "formats/units.h"

#include <stdio.h>
#include <string.h>

/* The sink takes text; a full sink stays full. */
struct sink {
    char *text;
    size_t capacity;
    size_t length;
    bool full;
};

static void put(struct sink *sink, const char *text)
{
    size_t length = strlen(text);
    if (sink->full || length >= sink->capacity - sink->length) {
        sink->full = true;
        return;
    }
    memcpy(sink->text + sink->length, text, length + 1);
    sink->length += length;
}

static bool is_bare(const char *text)
{
    return text[0] != '\0' &&
           text[strspn(text,
                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+/:")] ==
               '\0';
}

static void put_text(struct sink *sink, const char *text)
{
    if (is_bare(text)) {
        put(sink, text);
        return;
    }
    char shown[ATTRIBUTE_TEXT_SIZE];
    text_printable(text, strnlen(text, ATTRIBUTE_TEXT_SIZE - 1), shown, sizeof shown);
    put(sink, "\"");
    for (const char *c = shown; *c != '\0'; c++) {
        char piece[3] = {*c, '\0', '\0'};
        if (*c == '"' || *c == '\\') {
            piece[0] = '\\';
            piece[1] = *c;
        }
        put(sink, piece);
    }
    put(sink, "\"");
}

static void put_number(struct sink *sink, const struct attribute *attribute)
{
    const struct requirement_field *field = requirement_field(attribute->name);
    const int64_t number = attribute->number;
    char text[UNITS_TEXT_SIZE];
    if (field != NULL && field->type == FIELD_FLAG && (number == 0 || number == 1)) {
        (void)snprintf(text, sizeof text, "%s", number == 1 ? "true" : "false");
    } else {
        units_text(field == NULL ? UNITS_COUNT : requirement_field_units(field), number, text);
    }
    put(sink, text);
}

static bool is_predicate(const struct requirement_node *node)
{
    return node->op >= REQUIREMENT_EQ && node->op <= REQUIREMENT_GE;
}

static void put_predicate(struct sink *sink, const struct requirement_node *node)
{
    static const char *const ops[] = {
        [REQUIREMENT_EQ] = " = ",  [REQUIREMENT_NE] = " != ", [REQUIREMENT_LT] = " < ",
        [REQUIREMENT_LE] = " <= ", [REQUIREMENT_GT] = " > ",  [REQUIREMENT_GE] = " >= ",
    };
    put_text(sink, node->attribute.name);
    put(sink, ops[node->op]);
    if (node->attribute.is_text) {
        put_text(sink, node->attribute.text);
    } else {
        put_number(sink, &node->attribute);
    }
}

bool requirement_node_text(const struct requirement_node *predicate, char *ret_text,
                           size_t capacity)
{
    struct sink sink = {.text = ret_text, .capacity = capacity};
    if (capacity == 0 || !is_predicate(predicate)) {
        return false;
    }
    put_predicate(&sink, predicate);
    return !sink.full;
}

/* Writes into ret_sizes[i] the nodes of the tree whose root is node i. Returns false unless the
 * nodes are exactly one tree. */
static bool measure(const struct requirement *requirement, uint32_t *ret_sizes)
{
    uint32_t roots[REQUIREMENT_NODES_MAX];
    uint32_t root_count = 0;
    if (requirement->count > REQUIREMENT_NODES_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < requirement->count; i++) {
        const struct requirement_node *node = &requirement->nodes[i];
        uint32_t arity = 0;
        if (node->op == REQUIREMENT_NOT) {
            arity = 1;
        } else if (node->op == REQUIREMENT_AND || node->op == REQUIREMENT_OR) {
            arity = node->arity;
        } else if (!is_predicate(node)) {
            return false;
        }
        bool group = node->op == REQUIREMENT_AND || node->op == REQUIREMENT_OR;
        if (arity > root_count || (group && arity < 2)) {
            return false;
        }
        uint32_t size = 1;
        for (uint32_t k = 0; k < arity; k++) {
            size += ret_sizes[roots[--root_count]];
        }
        ret_sizes[i] = size;
        roots[root_count++] = i;
    }
    return root_count == 1;
}

/* Returns how tightly a node binds: or, and, not, predicate. */
static int binding(const struct requirement_node *node)
{
    return node->op == REQUIREMENT_OR ? 1 : node->op == REQUIREMENT_AND ? 2 : 3;
}

/* Writes the tree at `root`, in parentheses where it binds looser than `least`. The recursion is
 * at most as deep as there are nodes. */
static void put_tree(struct sink *sink, const struct requirement *requirement,
                     const uint32_t *sizes, uint32_t root, int least)
{
    const struct requirement_node *node = &requirement->nodes[root];
    if (is_predicate(node)) {
        put_predicate(sink, node);
        return;
    }
    bool parentheses = binding(node) < least;
    put(sink, parentheses ? "(" : "");
    if (node->op == REQUIREMENT_NOT) {
        put(sink, "not ");
        put_tree(sink, requirement, sizes, root - 1, 3);
    } else {
        uint32_t operand = root - sizes[root] + 1; /* first node of the first operand's tree */
        for (uint32_t k = 0; k < node->arity; k++) {
            /* `end` is the root of the direct operand whose tree begins at `operand`. */
            uint32_t end = operand;
            for (uint32_t i = operand; i < root; i++) {
                end = i - sizes[i] + 1 == operand ? i : end;
            }
            put(sink, k == 0 ? "" : node->op == REQUIREMENT_AND ? " and " : " or ");
            put_tree(sink, requirement, sizes, end, binding(node) + 1);
            operand = end + 1;
        }
    }
    put(sink, parentheses ? ")" : "");
}

bool requirement_text(const struct requirement *requirement, char *ret_text, size_t capacity)
{
    struct sink sink = {.text = ret_text, .capacity = capacity};
    if (capacity == 0) {
        return false;
    }
    ret_text[0] = '\0';
    if (requirement->count == 0) {
        put(&sink, "any");
        return !sink.full;
    }
    uint32_t sizes[REQUIREMENT_NODES_MAX];
    if (!measure(requirement, sizes)) {
        return false;
    }
    put_tree(&sink, requirement, sizes, requirement->count - 1, 0);
    return !sink.full;
}
