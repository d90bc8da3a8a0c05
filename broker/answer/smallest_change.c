#include "broker/answer/smallest_change.h"

#include "base/limit.h"
#include "formats/job.h"
#include "formats/requirement.h"
#include "formats/units.h"
#include "formats/value.h"

#include <stdio.h>
#include <string.h>

enum { CHANGE_SIZE = 256 };

static const struct {
    const char *field; /* the field of a job file that is changed */
    const char *words;
    enum units_kind units;
} kinds[] = {
    [BID_CHANGE_CAP] = {"cap", "a cap of ", UNITS_MONEY},
    [BID_CHANGE_BUDGET] = {"budget", "a budget of ", UNITS_MONEY},
    [BID_CHANGE_TERM] = {"term", "a term of ", UNITS_DURATION},
    [BID_CHANGE_SLOTS] = {"slots", "slots: ", UNITS_COUNT},
    [BID_CHANGE_ORDER] = {"order", "", UNITS_COUNT},
    [BID_CHANGE_LOOSEN] = {"needs", "", UNITS_COUNT},
    [BID_CHANGE_DROP] = {"needs", "", UNITS_COUNT},
};

/* Writes the condition, or only its name if it is too long. */
static void condition_text(const struct requirement_node *node, char ret_text[CHANGE_SIZE / 2])
{
    if (!requirement_node_text(node, ret_text, CHANGE_SIZE / 2)) {
        (void)snprintf(ret_text, CHANGE_SIZE / 2, "%s", node->attribute.name);
    }
}

/* Writes a condition on a list as people do: region in (fr, de). Returns false when the condition
 * is not of this kind, or its text is too long. */
static bool list_text(const struct requirement_node *nodes, uint32_t count,
                      char ret_text[CHANGE_SIZE / 2])
{
    const char *name = nodes[0].attribute.name;
    int used = snprintf(ret_text, CHANGE_SIZE / 2, "%s in (", name);
    for (uint32_t i = 0; i + 1 < count; i++) {
        char one[CHANGE_SIZE / 2];
        if (nodes[i].op != REQUIREMENT_EQ || strcmp(nodes[i].attribute.name, name) != 0 ||
            !requirement_node_text(&nodes[i], one, sizeof one)) {
            return false;
        }
        const char *value = one + strlen(name) + strlen(" = ");
        used += snprintf(ret_text + used, (size_t)(CHANGE_SIZE / 2 - used), "%s%s",
                         i == 0 ? "" : ", ", value);
        if (used >= CHANGE_SIZE / 2 - 1) {
            return false;
        }
    }
    (void)snprintf(ret_text + used, (size_t)(CHANGE_SIZE / 2 - used), ")");
    return nodes[count - 1].op == REQUIREMENT_OR;
}

/* Writes the dropped condition, in parentheses where they are needed. */
static void dropped_text(const struct exchange_smallest_change *smallest_change,
                         const struct exchange_bid_change *change, char ret_text[CHANGE_SIZE / 2])
{
    const struct requirement_node *nodes = &smallest_change->was.nodes[change->first];
    struct requirement tree = {.count = change->nodes};
    char text[CHANGE_SIZE / 2 - 2];
    if (change->nodes == 1) {
        condition_text(nodes, ret_text);
        return;
    }
    memcpy(tree.nodes, nodes, change->nodes * sizeof *nodes);
    if (list_text(nodes, change->nodes, ret_text)) {
        return;
    }
    if (!requirement_text(&tree, text, sizeof text)) {
        (void)snprintf(ret_text, CHANGE_SIZE / 2, "%u conditions from %s on", change->nodes,
                       nodes[0].attribute.name);
        return;
    }
    const bool is_group = nodes[change->nodes - 1].op != REQUIREMENT_NOT;
    (void)snprintf(ret_text, CHANGE_SIZE / 2, "%s%s%s", is_group ? "(" : "", text,
                   is_group ? ")" : "");
}

/* Writes a change of the image. The program adds conditions on `image_files` and `image_size` to a
 * job with an image (`not image_files < 201`); its user can only change the image. Returns false
 * when the change is about another condition. */
static bool image_text(const struct exchange_smallest_change *smallest_change,
                       const struct exchange_bid_change *change, char ret_text[CHANGE_SIZE])
{
    if (change->kind != BID_CHANGE_LOOSEN &&
        (change->kind != BID_CHANGE_DROP || change->nodes != 1)) {
        return false;
    }
    const struct requirement_node *was = change->kind == BID_CHANGE_LOOSEN
                                             ? &change->before
                                             : &smallest_change->was.nodes[change->first];
    const char *name = was->attribute.name;
    const bool is_files = strcmp(name, "image_files") == 0;
    const bool is_least =
        change->is_negated ? was->op == REQUIREMENT_LT : was->op == REQUIREMENT_GE;
    char before[UNITS_TEXT_SIZE];
    char after[UNITS_TEXT_SIZE];
    if ((!is_files && strcmp(name, "image_size") != 0) || !is_least || was->attribute.is_text) {
        return false;
    }
    requirement_figure(name, was->attribute.number, before);
    if (change->kind == BID_CHANGE_DROP) {
        (void)snprintf(ret_text, CHANGE_SIZE, "with an image of less than %s%s", before,
                       is_files ? " files" : "");
        return true;
    }
    requirement_figure(name, change->after.attribute.number, after);
    (void)snprintf(ret_text, CHANGE_SIZE, "with an image of at most %s%s instead of %s", after,
                   is_files ? " files" : "", before);
    return true;
}

/* Returns false for a cap where the job named none. */
static bool has_from(const struct exchange_bid_change *change)
{
    return change->kind != BID_CHANGE_CAP || limit_is_set(change->from);
}

/* Writes "a cap of 1.90 instead of 1.60". */
static void change_text(const struct exchange_smallest_change *smallest_change,
                        const struct exchange_bid_change *change, char ret_text[CHANGE_SIZE])
{
    const enum rate rate = smallest_change->rate;
    char before[CHANGE_SIZE / 2];
    char after[CHANGE_SIZE / 2];
    const char *no = change->is_negated ? "not " : "";
    if (image_text(smallest_change, change, ret_text)) {
        return;
    }
    switch (change->kind) {
    case BID_CHANGE_CAP:
        if (rate != RATE_NONE) {
            value_text(&(struct value){change->from, rate}, before);
            value_text(&(struct value){change->to, rate}, after);
            (void)snprintf(ret_text, CHANGE_SIZE, "with a value of %s instead of %.48s", after,
                           before);
            return;
        }
        /* fall through */
    case BID_CHANGE_BUDGET:
    case BID_CHANGE_TERM:
    case BID_CHANGE_SLOTS:
        units_text(kinds[change->kind].units, change->to, after);
        if (!has_from(change)) {
            (void)snprintf(ret_text, CHANGE_SIZE, "with %s%.48s", kinds[change->kind].words, after);
            return;
        }
        units_text(kinds[change->kind].units, change->from, before);
        (void)snprintf(ret_text, CHANGE_SIZE, "with %s%.48s instead of %.48s",
                       kinds[change->kind].words, after, before);
        return;
    case BID_CHANGE_ORDER:
        (void)snprintf(ret_text, CHANGE_SIZE, "without order: %s", job_order_names[change->from]);
        return;
    case BID_CHANGE_LOOSEN:
        condition_text(&change->before, before);
        condition_text(&change->after, after);
        (void)snprintf(ret_text, CHANGE_SIZE, "with %s%.100s instead of %s%.100s", no, after, no,
                       before);
        return;
    case BID_CHANGE_DROP:
        dropped_text(smallest_change, change, before);
        (void)snprintf(ret_text, CHANGE_SIZE, "without %s%s", no, before);
        return;
    }
}

/* Writes ", 2 of the 8 slots" when the changed bid gets only some of the slots that it wants. */
static void partly_text(const struct exchange_smallest_change *smallest_change,
                        char ret_text[CHANGE_SIZE])
{
    ret_text[0] = '\0';
    if (!smallest_change->takes && smallest_change->fills_slots > 0 &&
        smallest_change->fills_slots < smallest_change->wanted_slots) {
        (void)snprintf(ret_text, CHANGE_SIZE, ", %u of the %u slots", smallest_change->fills_slots,
                       smallest_change->wanted_slots);
    }
}

void smallest_change_text(const struct exchange_smallest_change *smallest_change, char *ret_text,
                          size_t capacity)
{
    char price[UNITS_TEXT_SIZE];
    char change[CHANGE_SIZE];
    size_t used = 0;
    ret_text[0] = '\0';
    if (smallest_change->count == 0) {
        return;
    }
    char partly[CHANGE_SIZE];
    units_money_text(smallest_change->price_micro, price);
    partly_text(smallest_change, partly);
    const char *fills =
        smallest_change->takes ? "it takes a lease from its holder" : "it fills now";
    if (smallest_change->count == 1 && smallest_change->changes[0].kind == BID_CHANGE_CAP &&
        smallest_change->rate == RATE_NONE && has_from(&smallest_change->changes[0]) &&
        smallest_change->changes[0].to == smallest_change->price_micro) {
        units_money_text(smallest_change->changes[0].from, change);
        (void)snprintf(ret_text, capacity, "at %s instead of %s %s%s", price, change, fills,
                       partly);
        return;
    }
    for (uint32_t i = 0; i < smallest_change->count; i++) {
        change_text(smallest_change, &smallest_change->changes[i], change);
        int length = snprintf(ret_text + used, capacity - used, "%s%s",
                              i == 0                            ? ""
                              : i + 1 == smallest_change->count ? " and "
                                                                : ", ",
                              change);
        if (length < 0 || (size_t)length >= capacity - used) {
            return; /* the text is cut; the wire has the changes one by one */
        }
        used += (size_t)length;
    }
    (void)snprintf(ret_text + used, capacity - used, " %s at %s%s", fills, price, partly);
}

bool smallest_change_to_wire(const struct exchange_smallest_change *smallest_change,
                             struct smallest_change_wire *wire,
                             Bourse__V1__Explanation *explanation)
{
    bool has_needs = false;
    wire->needs = NULL;
    if (smallest_change->count == 0) {
        return true;
    }
    for (uint32_t i = 0; i < smallest_change->count; i++) {
        const struct exchange_bid_change *change = &smallest_change->changes[i];
        Bourse__V1__ExplainChange *to = &wire->changes[i];
        bool has_figures = kinds[change->kind].words[0] != '\0';
        bourse__v1__explain_change__init(to);
        change_text(smallest_change, change, wire->texts[i]);
        to->text = wire->texts[i];
        bool is_value = change->kind == BID_CHANGE_CAP && smallest_change->rate != RATE_NONE;
        char image[CHANGE_SIZE];
        const bool is_image = image_text(smallest_change, change, image);
        const char *field = is_value ? "value" : is_image ? "image" : kinds[change->kind].field;
        to->field = (char *)(uintptr_t)field; /* packing only reads it */
        to->has_from = has_figures && has_from(change);
        to->has_to = has_figures;
        to->from = change->from;
        to->to = change->to;
        /* Other `needs` do not help a job whose image is too large. */
        has_needs = has_needs || (change->kind >= BID_CHANGE_LOOSEN && !is_image);
        wire->pointers[i] = to;
    }
    explanation->n_changes = smallest_change->count;
    explanation->changes = wire->pointers;
    explanation->has_changed_price_micro = true;
    explanation->changed_price_micro = smallest_change->price_micro;
    explanation->has_changed_slots = explanation->has_changed_wanted =
        smallest_change->fills_slots > 0;
    explanation->changed_slots = smallest_change->fills_slots;
    explanation->changed_wanted = smallest_change->wanted_slots;
    wire->needs = has_needs ? codec_requirement_to_wire(&smallest_change->needs) : NULL;
    explanation->changed_needs = wire->needs;
    return !has_needs || wire->needs != NULL;
}

void smallest_change_wire_fini(struct smallest_change_wire *wire)
{
    if (wire->needs != NULL) {
        codec_requirement_free(&wire->needs);
    }
}
