#include "matching/compiled_requirement.h"

#include <assert.h>
#include <string.h>

/* Returns the first eight bytes as a big-endian number; a shorter text is filled up with zeros. */
static uint64_t head_of(const char *text)
{
    uint64_t head = 0;
    for (unsigned i = 0; i < 8; i++) {
        head = head << 8 | (uint8_t)*text;
        text += *text != '\0';
    }
    return head;
}

/* The hash is FNV-1a; its last byte is never 0. */
static uint64_t long_text_hash(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text != '\0'; text++) {
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    }
    return hash | 1;
}

/* Returns true when the word holds the whole text, and not its hash. */
static bool is_whole(uint64_t digest)
{
    return (digest & UINT8_MAX) == 0;
}

struct attribute_digest compiled_digest(const struct attribute *attribute)
{
    const uint64_t head = head_of(attribute->text);
    return (struct attribute_digest){.name = head_of(attribute->name),
                                     .value = !attribute->is_text ? (uint64_t)attribute->number
                                              : is_whole(head)    ? head
                                                                  : long_text_hash(attribute->text),
                                     .is_text = attribute->is_text};
}

/* Returns true when the predicate holds for `values`, the attributes of its name. The digests
 * decide. Strings are compared only where the words are equal and are hashes. */
static bool digests_hold(const struct requirement_node *node, const struct attribute_digest *wanted,
                         const struct attribute *values, const struct attribute_digest *digests,
                         size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count && !any; i++) {
        if (digests[i].is_text != wanted->is_text) {
            continue;
        }
        any = !wanted->is_text ? requirement_number_holds(node->op, (int64_t)digests[i].value,
                                                          (int64_t)wanted->value)
                               : digests[i].value == wanted->value &&
                                     (is_whole(wanted->value) ||
                                      strcmp(values[i].text, node->attribute.text) == 0);
    }
    return node->op == REQUIREMENT_NE ? count > 0 && !any : any;
}

struct compiled_requirement compiled_requirement(const struct requirement *needs)
{
    struct compiled_requirement compiled = {.needs = needs};
    for (uint32_t i = 0; i < needs->count; i++) {
        uint32_t at = compiled.count;
        if (!requirement_is_predicate(needs->nodes[i].op)) {
            continue;
        }
        for (; at > 0 && strcmp(needs->nodes[i].attribute.name,
                                needs->nodes[compiled.order[at - 1]].attribute.name) < 0;
             at--) {
            compiled.order[at] = compiled.order[at - 1];
        }
        compiled.order[at] = i;
        compiled.count++;
    }
    for (uint32_t i = 0; i < compiled.count; i++) {
        const struct attribute *wanted = &needs->nodes[compiled.order[i]].attribute;
        compiled.digests[i] = compiled_digest(wanted);
        compiled.is_repeated[i] =
            i > 0 && strcmp(wanted->name, needs->nodes[compiled.order[i - 1]].attribute.name) == 0;
    }
    return compiled;
}

/* Returns true when the digest's name comes before the wanted one. The digests decide for most
 * names, without a look at the strings. */
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

/* Predicates and attributes are sorted by name, so one walk is enough. */
uint64_t compiled_truth(const struct compiled_requirement *compiled,
                        const struct attribute *attributes, const struct attribute_digest *digests,
                        size_t count, size_t ret_first[REQUIREMENT_NODES_MAX])
{
    uint64_t truth = 0;
    size_t first = 0;
    size_t end = 0; /* the attributes first .. end - 1 have the name of the last predicate */
    for (uint32_t i = 0; i < compiled->count; i++) {
        const struct requirement_node *node = &compiled->needs->nodes[compiled->order[i]];
        const struct attribute_digest *wanted = &compiled->digests[i];
        if (!compiled->is_repeated[i]) {
            first = end;
            while (first < count && is_before(&digests[first], &attributes[first], wanted, node)) {
                first++;
            }
            end = first;
            while (end < count && is_same(&digests[end], &attributes[end], wanted, node)) {
                end++;
            }
        }
        bool holds = digests_hold(node, wanted, &attributes[first], &digests[first], end - first);
        truth |= (uint64_t)holds << compiled->order[i];
        if (ret_first != NULL) {
            ret_first[compiled->order[i]] = first < end ? first : count;
        }
    }
    return truth;
}
