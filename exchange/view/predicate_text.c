#include "exchange/view/predicate_text.h"

#include <stdio.h>
#include <string.h>

void predicate_text(const struct requirement_node *node, char *ret_text, size_t size)
{
    static const char *const signs[] = {
        [REQUIREMENT_EQ] = "=",  [REQUIREMENT_NE] = "!=", [REQUIREMENT_LT] = "<",
        [REQUIREMENT_LE] = "<=", [REQUIREMENT_GT] = ">",  [REQUIREMENT_GE] = ">=",
    };
    const struct attribute *value = &node->attribute;
    if (value->is_text) {
        (void)snprintf(ret_text, size, "%s %s \"%s\"", value->name, signs[node->op], value->text);
    } else {
        (void)snprintf(ret_text, size, "%s %s %lld", value->name, signs[node->op],
                       (long long)value->number);
    }
}

void predicate_list_text(const struct requirement_node *first, uint32_t count, char *ret_text,
                         size_t size)
{
    size_t used = (size_t)snprintf(ret_text, size, "%s in (", first->attribute.name);
    for (uint32_t i = 0; i < count; i++) {
        char item[ATTRIBUTE_TEXT_SIZE + 8];
        const struct attribute *value = &first[i].attribute;
        const char *comma = i == 0 ? "" : ", ";
        if (value->is_text) {
            (void)snprintf(item, sizeof item, "%s\"%s\"", comma, value->text);
        } else {
            (void)snprintf(item, sizeof item, "%s%lld", comma, (long long)value->number);
        }
        if (used + strlen(item) + sizeof ", ...)" > size) {
            used += (size_t)snprintf(ret_text + used, size - used, "%s...", comma);
            break;
        }
        used += (size_t)snprintf(ret_text + used, size - used, "%s", item);
    }
    (void)snprintf(ret_text + used, size - used, ")");
}
