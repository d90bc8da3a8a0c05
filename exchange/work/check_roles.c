#include "exchange/work/check_roles.h"

#include <string.h>

static const char attribute_name[] = "referee";

void check_role_attribute(struct attribute *ret_attribute)
{
    memset(ret_attribute, 0, sizeof *ret_attribute);
    memcpy(ret_attribute->name, attribute_name, sizeof attribute_name);
    ret_attribute->number = 1;
}

bool check_role_is_attribute(const struct attribute *attribute)
{
    return strcmp(attribute->name, attribute_name) == 0;
}

static bool is_demand(const struct requirement_node *node)
{
    struct attribute referee;
    check_role_attribute(&referee);
    return node->op == REQUIREMENT_EQ && check_role_is_attribute(&node->attribute) &&
           !node->attribute.is_text && node->attribute.number == referee.number;
}

/* check_role_require leaves the demand alone, or as the last of a conjunction. */
static bool has_demand(const struct requirement *needs)
{
    const struct requirement_node *nodes = needs->nodes;
    return (needs->count == 1 && is_demand(&nodes[0])) ||
           (needs->count > 2 && nodes[needs->count - 1].op == REQUIREMENT_AND &&
            is_demand(&nodes[needs->count - 2]));
}

bool check_role_require(const struct requirement *needs, struct requirement *ret_needs)
{
    const bool has_more = needs->count > 0;
    if (has_demand(needs)) {
        *ret_needs = *needs;
        return true;
    }
    if (needs->count + 1 + has_more > REQUIREMENT_NODES_MAX) {
        return false;
    }
    *ret_needs = *needs;
    struct requirement_node *node = &ret_needs->nodes[ret_needs->count++];
    *node = (struct requirement_node){.op = REQUIREMENT_EQ};
    check_role_attribute(&node->attribute);
    if (has_more) {
        ret_needs->nodes[ret_needs->count++] =
            (struct requirement_node){.op = REQUIREMENT_AND, .arity = 2};
    }
    return true;
}
