/* Requirements and attributes are converted here between the wire and base/requirement.h. */
#include "protocol/codec.h"
#include "protocol/limits.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)LIMIT_REQUIREMENT_NODES == (int)REQUIREMENT_NODES_MAX, "one cap, two names");
_Static_assert((int)LIMIT_ATTRIBUTES == (int)ATTRIBUTE_COUNT_MAX, "one cap, two names");

/* `text` is NULL for a number. The codec has checked the lengths. */
static struct attribute attribute_of(const char *name, const char *text, int64_t number)
{
    struct attribute attribute = {.is_text = text != NULL, .number = text == NULL ? number : 0};
    assert(strlen(name) < sizeof attribute.name);
    memcpy(attribute.name, name, strlen(name) + 1);
    if (text != NULL) {
        assert(strlen(text) < sizeof attribute.text);
        memcpy(attribute.text, text, strlen(text) + 1);
    }
    return attribute;
}

void codec_attribute_from_wire(const Bourse__V1__Attribute *wire, struct attribute *ret_attribute)
{
    *ret_attribute = attribute_of(wire->name, wire->text, wire->number);
}

/* Returns the operands that the node takes from the stack. Every node leaves one. */
static uint32_t operands_of(const struct requirement_node *node)
{
    switch (node->op) {
    case REQUIREMENT_AND:
    case REQUIREMENT_OR:
        return node->arity;
    case REQUIREMENT_NOT:
        return 1;
    case REQUIREMENT_EQ:
    case REQUIREMENT_NE:
    case REQUIREMENT_LT:
    case REQUIREMENT_LE:
    case REQUIREMENT_GT:
    case REQUIREMENT_GE:
        return 0;
    }
    return UINT32_MAX; /* never well formed */
}

static bool is_postfix_tree(const struct requirement *requirement)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < requirement->count; i++) {
        uint32_t operands = operands_of(&requirement->nodes[i]);
        if (operands > depth) {
            return false;
        }
        depth = depth - operands + 1;
    }
    return depth == 1 || requirement->count == 0;
}

bool codec_requirement_from_wire(const Bourse__V1__Requirement *wire,
                                 struct requirement *ret_requirement)
{
    assert(wire->n_nodes <= REQUIREMENT_NODES_MAX);
    struct requirement requirement = {.count = (uint32_t)wire->n_nodes};
    for (size_t i = 0; i < wire->n_nodes; i++) {
        const Bourse__V1__RequirementNode *node = wire->nodes[i];
        requirement.nodes[i].op = (enum requirement_op)node->op;
        requirement.nodes[i].arity = node->has_arity ? node->arity : 0;
        if (node->op >= REQUIREMENT_EQ) {
            requirement.nodes[i].attribute = attribute_of(node->name, node->text, node->number);
        }
    }
    if (!is_postfix_tree(&requirement)) {
        return false;
    }
    *ret_requirement = requirement;
    return true;
}

/* One allocation holds the message, the pointers to its nodes, the nodes, and a copy of the
 * requirement. The nodes point to names and texts in the copy. */
struct requirement_wire {
    Bourse__V1__Requirement message;
    Bourse__V1__RequirementNode *pointers[REQUIREMENT_NODES_MAX];
    Bourse__V1__RequirementNode nodes[REQUIREMENT_NODES_MAX];
    struct requirement copy;
};

static void node_to_wire(struct requirement_node *from, Bourse__V1__RequirementNode *ret_node)
{
    bourse__v1__requirement_node__init(ret_node);
    ret_node->op = (uint32_t)from->op;
    if (from->op == REQUIREMENT_AND || from->op == REQUIREMENT_OR) {
        ret_node->has_arity = 1;
        ret_node->arity = from->arity;
    } else if (from->op >= REQUIREMENT_EQ) {
        ret_node->name = from->attribute.name;
        ret_node->text = from->attribute.is_text ? from->attribute.text : NULL;
        ret_node->has_number = !from->attribute.is_text;
        ret_node->number = from->attribute.is_text ? 0 : from->attribute.number;
    }
}

Bourse__V1__Requirement *codec_requirement_to_wire(const struct requirement *requirement)
{
    assert(requirement->count <= REQUIREMENT_NODES_MAX);
    struct requirement_wire *wire = malloc(sizeof *wire);
    if (wire == NULL) {
        return NULL;
    }
    wire->copy.count = requirement->count; /* there may be no further nodes */
    memcpy(wire->copy.nodes, requirement->nodes, requirement->count * sizeof requirement->nodes[0]);
    bourse__v1__requirement__init(&wire->message);
    wire->message.n_nodes = requirement->count;
    wire->message.nodes = wire->pointers;
    for (uint32_t i = 0; i < requirement->count; i++) {
        node_to_wire(&wire->copy.nodes[i], &wire->nodes[i]);
        wire->pointers[i] = &wire->nodes[i];
    }
    return &wire->message;
}

void codec_requirement_free(Bourse__V1__Requirement **self)
{
    free(*self); /* the message is the first member of the one allocation */
    *self = NULL;
}
