/* Requirements against a slow, obvious reader of trees, and the rule of simulated devices: nothing
 * that does not ask for one ever meets one. And their texts: what a tree prints reads back as that
 * tree, or as one that means the same. */
#include "base/checked.h"
#include "base/random.h"
#include "formats/requirement.h"
#include "matching/book.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { TREES = 4000, SEEDS = 20, NAMES = 4 };

/* ---------------------------------------------------------------- random devices and trees */

static struct attribute text(const char *name, const char *value)
{
    struct attribute attribute = {.is_text = true};
    (void)snprintf(attribute.name, sizeof attribute.name, "%s", name);
    (void)snprintf(attribute.text, sizeof attribute.text, "%s", value);
    return attribute;
}

static struct attribute number(const char *name, int64_t value)
{
    struct attribute attribute = {.number = value};
    (void)snprintf(attribute.name, sizeof attribute.name, "%s", name);
    return attribute;
}

static const char *one_of(struct random *random, const char *const *values, size_t count)
{
    return values[random_below(random, count)];
}

static struct attribute any_fact(struct random *random, uint64_t which)
{
    static const char *const instruments[] = {"gpu.a.x", "sim.gpu.a.x", "simgpu.a", "sim.lpu.b"};
    static const char *const kinds[] = {"cpu", "gpu"};
    switch (which) { /* in the order of their names */
    case 0:
        return text("instrument", one_of(random, instruments, 4));
    case 1:
        return text("kind", one_of(random, kinds, 2));
    case 2:
        return number("memory", (int64_t)random_below(random, 3));
    default:
        return number("simulated", (int64_t)random_below(random, 2));
    }
}

static size_t any_device(struct random *random, struct attribute ret_attributes[NAMES])
{
    size_t count = 0;
    for (uint64_t which = 0; which < NAMES; which++) {
        if (random_below(random, 3) > 0) {
            ret_attributes[count++] = any_fact(random, which);
        }
    }
    return count;
}

static enum requirement_op any_op(struct random *random, bool is_text)
{
    return (enum requirement_op)(REQUIREMENT_EQ + random_below(random, is_text ? 2 : 6));
}

static void any_tree(struct random *random, struct requirement *tree, unsigned depth)
{
    uint64_t choice = depth == 0 ? 0 : random_below(random, 4);
    struct requirement_node node = {.op = REQUIREMENT_NOT};
    if (choice <= 1) {
        node.attribute = any_fact(random, random_below(random, NAMES));
        node.op = any_op(random, node.attribute.is_text);
    } else if (choice == 2) {
        any_tree(random, tree, depth - 1);
    } else {
        node.op = random_below(random, 2) == 0 ? REQUIREMENT_AND : REQUIREMENT_OR;
        node.arity = 2 + (uint32_t)random_below(random, 2);
        for (uint32_t i = 0; i < node.arity; i++) {
            any_tree(random, tree, depth - 1);
        }
    }
    tree->nodes[tree->count++] = node;
}

/* ---------------------------------------------------------------- the slow reader */

struct reading {
    const struct requirement *tree;
    const struct attribute *attributes;
    size_t count;
    uint32_t at;  /* nodes not read yet: the next one is below it */
    bool is_even; /* number of nots above */
    bool has_asked, has_named;
};

static bool leaf(struct reading *reading, const struct requirement_node *node)
{
    const struct attribute *wanted = &node->attribute;
    bool known = false;
    bool holds = false;
    for (size_t i = 0; i < reading->count; i++) {
        const struct attribute *have = &reading->attributes[i];
        if (strcmp(have->name, wanted->name) != 0) {
            continue;
        }
        known = true;
        int order = have->is_text
                        ? strcmp(have->text, wanted->text)
                        : (have->number > wanted->number) - (have->number < wanted->number);
        holds = holds || (node->op == REQUIREMENT_EQ && order == 0) ||
                (node->op == REQUIREMENT_NE && order != 0) ||
                (node->op == REQUIREMENT_LT && order < 0) ||
                (node->op == REQUIREMENT_LE && order <= 0) ||
                (node->op == REQUIREMENT_GT && order > 0) ||
                (node->op == REQUIREMENT_GE && order >= 0);
    }
    bool speaks = strcmp(wanted->name, "simulated") == 0 ||
                  (strcmp(wanted->name, "instrument") == 0 && node->op == REQUIREMENT_EQ &&
                   strncmp(wanted->text, "sim.", 4) == 0);
    reading->has_named = reading->has_named || speaks;
    reading->has_asked = reading->has_asked || (speaks && reading->is_even && known && holds);
    return known && holds;
}

static bool read_node(struct reading *reading)
{
    const struct requirement_node *node = &reading->tree->nodes[--reading->at];
    if (node->op == REQUIREMENT_NOT) {
        reading->is_even = !reading->is_even;
        bool inner = read_node(reading);
        reading->is_even = !reading->is_even;
        return !inner;
    }
    if (node->op != REQUIREMENT_AND && node->op != REQUIREMENT_OR) {
        return leaf(reading, node);
    }
    bool all = true;
    bool any = false;
    for (uint32_t i = 0; i < node->arity; i++) {
        bool operand = read_node(reading);
        all = all && operand;
        any = any || operand;
    }
    return node->op == REQUIREMENT_AND ? all : any;
}

static bool is_simulated(const struct attribute *attributes, size_t count)
{
    bool simulated = false;
    for (size_t i = 0; i < count; i++) {
        simulated = simulated ||
                    (strcmp(attributes[i].name, "simulated") == 0 && attributes[i].number != 0) ||
                    strncmp(attributes[i].text, "sim.", 4) == 0;
    }
    return simulated;
}

/* ---------------------------------------------------------------- properties */

START_TEST(a_requirement_and_the_slow_reader_agree)
{
    printf("seed %d\n", _i);
    struct random random = random_seeded((uint64_t)_i);
    size_t met = 0;
    size_t met_simulated = 0;
    for (int i = 0; i < TREES; i++) {
        static struct requirement tree;
        struct attribute device[NAMES];
        memset(&tree, 0, sizeof tree);
        size_t count = any_device(&random, device);
        if (random_below(&random, 20) > 0) { /* else none at all: anything will do */
            any_tree(&random, &tree, 3);
        }
        ck_assert(requirement_well_formed(&tree));
        struct reading reading = {
            .tree = &tree, .attributes = device, .count = count, .at = tree.count, .is_even = true};
        bool holds = tree.count == 0 || read_node(&reading);
        ck_assert_uint_eq(reading.at, 0);
        bool simulated = is_simulated(device, count);
        bool satisfied = requirement_satisfied(&tree, device, count);
        ck_assert(requirement_simulated(device, count) == simulated);
        ck_assert(requirement_passes_over(&tree, device, count) ==
                  (simulated && !reading.has_asked));
        ck_assert(satisfied == (holds && (!simulated || reading.has_asked)));
        ck_assert(!satisfied || !simulated || reading.has_named);
        met += satisfied;
        met_simulated += satisfied && simulated;
    }
    ck_assert_uint_gt(met, TREES / 10);
    ck_assert_uint_gt(met_simulated, TREES / 100);
}
END_TEST

/* ---------------------------------------------------------------- texts */

enum { TEXT_SIZE = 8192, TEXTS = 1000 };

static bool is_group(enum requirement_op op)
{
    return op == REQUIREMENT_AND || op == REQUIREMENT_OR;
}

/* Draws a number of any length such that a device may have more, and less: a value that no device
 * ever has is refused. */
static int64_t any_number(struct random *random, const char *field)
{
    if (strcmp(field, "isolation") == 0 || strcmp(field, "trust") == 0) {
        return 1;
    }
    const bool is_up_to_7d = strcmp(field, "notice") == 0 || strcmp(field, "minimum_run") == 0;
    const uint64_t largest = is_up_to_7d ? 7 * 24 * (uint64_t)NS_PER_HOUR - 1 : INT64_MAX;
    const uint64_t drawn = random_u64(random) >> (1 + random_below(random, 63));
    return (int64_t)(1 + drawn % largest);
}

/* Makes a predicate of any field and a value of its type, as a reader makes it. */
static struct requirement_node any_predicate(struct random *random)
{
    static const char *const texts[] = {"eu west", "a\"b\\", "x86_64", "and", "\xc3\xa4", "not"};
    size_t count;
    const struct requirement_field *field = requirement_fields(&count);
    field += random_below(random, count);
    struct requirement_node node = {
        .op = any_op(random, field->type == FIELD_TEXT || field->type == FIELD_FLAG)};
    if (field->type == FIELD_TEXT) {
        const char *value = strcmp(field->name, "kind") == 0       ? "gpu"
                            : strcmp(field->name, "executor") == 0 ? "tensor"
                            : strcmp(field->name, "measured") == 0 ? "bandwidth"
                                                                   : one_of(random, texts, 6);
        node.attribute = text(field->name, value);
    } else if (field->type == FIELD_FLAG) {
        node.attribute = number(field->name, (int64_t)random_below(random, 2));
    } else {
        node.attribute = number(field->name, any_number(random, field->name));
    }
    return node;
}

/* False: it would be more nodes than there may be. */
static bool any_need(struct random *random, struct requirement *tree, unsigned depth,
                     enum requirement_op above)
{
    struct requirement_node node;
    uint64_t choice = depth == 0 ? 0 : random_below(random, 4);
    if (tree->count >= 40) {
        return false;
    }
    if (choice <= 1) {
        node = any_predicate(random);
    } else if (choice == 2) {
        node = (struct requirement_node){.op = REQUIREMENT_NOT};
        if (!any_need(random, tree, depth - 1, REQUIREMENT_NOT)) {
            return false;
        }
    } else { /* never one in another of its kind: those are one node */
        bool all = above == REQUIREMENT_OR || (!is_group(above) && random_below(random, 2) == 0);
        node = (struct requirement_node){.op = all ? REQUIREMENT_AND : REQUIREMENT_OR,
                                         .arity = 2 + (uint32_t)random_below(random, 3)};
        for (uint32_t i = 0; i < node.arity; i++) {
            if (!any_need(random, tree, depth - 1, node.op)) {
                return false;
            }
        }
    }
    tree->nodes[tree->count++] = node;
    return true;
}

START_TEST(a_tree_prints_as_a_text_that_reads_back_as_it)
{
    printf("seed %d\n", _i);
    struct random random = random_seeded((uint64_t)_i);
    uint32_t largest = 0;
    for (int i = 0; i < TEXTS; i++) {
        static struct requirement tree;
        static struct requirement again;
        char canonical[TEXT_SIZE];
        struct problem problem = {""};
        memset(&tree, 0, sizeof tree);
        if (!any_need(&random, &tree, 4, REQUIREMENT_NOT)) {
            continue;
        }
        ck_assert(requirement_text(&tree, canonical, sizeof canonical));
        ck_assert_msg(requirement_parse(canonical, &again, &problem), "%s\n%s", problem.text,
                      canonical);
        ck_assert_msg(memcmp(&tree, &again, sizeof tree) == 0, "%s", canonical);
        largest = tree.count > largest ? tree.count : largest;
    }
    ck_assert_uint_ge(largest, 20);
}
END_TEST

/* A character more, less or another: refused with where and why, or read as a tree that is well
 * formed. */
START_TEST(a_broken_text_is_refused_with_its_place)
{
    static const char signs[] = "()\"',=<>!&|%a3. \n\\\xc3";
    struct random random = random_seeded((uint64_t)_i);
    int refused = 0;
    for (int i = 0; i < TEXTS; i++) {
        static struct requirement tree;
        char broken[TEXT_SIZE];
        struct problem problem = {""};
        memset(&tree, 0, sizeof tree);
        if (!any_need(&random, &tree, 3, REQUIREMENT_NOT) ||
            !requirement_text(&tree, broken, sizeof broken - 1)) {
            continue;
        }
        size_t length = strlen(broken);
        size_t at = (size_t)random_below(&random, length);
        char sign = signs[random_below(&random, sizeof signs - 1)];
        switch (random_below(&random, 3)) {
        case 0:
            broken[at] = sign;
            break;
        case 1:
            memmove(&broken[at], &broken[at + 1], length - at);
            break;
        default:
            memmove(&broken[at + 1], &broken[at], length - at + 1);
            broken[at] = sign;
            break;
        }
        if (requirement_parse(broken, &tree, &problem)) {
            ck_assert(requirement_well_formed(&tree));
            continue;
        }
        ck_assert_msg(strstr(problem.text, "column ") != NULL, "%s: %s", broken, problem.text);
        refused++;
    }
    ck_assert_int_gt(refused, TEXTS / 10);
}
END_TEST

SUITE("requirement properties", NULL, NULL,
      LOOP(a_requirement_and_the_slow_reader_agree, 1, SEEDS + 1),
      LOOP(a_tree_prints_as_a_text_that_reads_back_as_it, 1, SEEDS + 1),
      LOOP(a_broken_text_is_refused_with_its_place, 1, SEEDS + 1))
