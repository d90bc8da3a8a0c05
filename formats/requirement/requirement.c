/* The text form of a requirement is parsed here, by the grammar of formats/requirement.h. */
#include "formats/requirement.h"

#include "base/device_kind.h"
#include "base/text.h"
#include "formats/limits.h"
#include "formats/requirement/requirement_internal.h"
#include "formats/units.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { KIND_NAMES_MAX = 64 };

/* ---------------------------------------------------------------- values */

/* Checks `text` as a value of the field and fills the attribute with it. */
static bool read_value(const struct requirement_field *field, const char *text,
                       struct attribute *ret_attribute, struct problem *ret_problem)
{
    struct attribute attribute = {0};
    memcpy(attribute.name, field->name, strlen(field->name) + 1);
    char shown[ATTRIBUTE_TEXT_SIZE];
    text_printable(text, strlen(text), shown, sizeof shown);
    if (field->type == FIELD_TEXT) {
        if (text[0] == '\0' || strcmp(text, shown) != 0) {
            problem_set(ret_problem,
                        "\"%s\" is not a text for %s: 1 to 63 bytes, no control characters and no "
                        "bidirectional marks",
                        shown, field->name);
            return false;
        }
        attribute.is_text = true;
        memcpy(attribute.text, text, strlen(text) + 1);
    } else if (field->type == FIELD_FLAG) {
        attribute.number = strcmp(text, "true") == 0;
        if (attribute.number == 0 && strcmp(text, "false") != 0) {
            problem_set(ret_problem, "%s is true or false, not \"%s\"", field->name, shown);
            return false;
        }
    } else {
        enum units_kind kind = requirement_field_units(field);
        enum units_status status = units_read(kind, text, &attribute.number);
        if (status != UNITS_OK) {
            char what[240];
            units_explain(kind, status, text, what, sizeof what);
            problem_set(ret_problem, "%s: %s", field->name, what);
            return false;
        }
    }
    *ret_attribute = attribute;
    return true;
}

/* Returns true when the text is one of the names; else the problem shows the nearest, or `all`. */
static bool check_name(const char *field, const char *text, const char *const *names, size_t count,
                       const char *all, struct problem *ret_problem)
{
    char folded[ATTRIBUTE_TEXT_SIZE];
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], text) == 0) {
            return true;
        }
    }
    requirement_fold(text, folded);
    const char *nearest = text_nearest(folded, names, count);
    problem_set(ret_problem, "unknown %s \"%s\"; %s%s%s", field, text,
                nearest != NULL ? "did you mean \"" : "known are ", nearest != NULL ? nearest : all,
                nearest != NULL ? "\"?" : "");
    return false;
}

static bool check_figure(const char *text, struct problem *ret_problem)
{
    const char *names[REQUIREMENT_FIELDS];
    size_t count = 0;
    for (size_t i = 0; i < REQUIREMENT_FIELDS; i++) {
        if (requirement_is_figure(requirement_field_table[i].name)) {
            names[count++] = requirement_field_table[i].name;
        }
    }
    return check_name("figure", text, names, count,
                      "memory, bandwidth, gflops, gemm_fp32 and the rates, as bf16", ret_problem);
}

/* Kinds, executors and figures are known beforehand: no device has another. */
static bool check_known(const struct requirement_field *field, const char *text,
                        struct problem *ret_problem)
{
    if (strcmp(field->name, "executor") == 0) {
        size_t count;
        const char *const *executors = requirement_executors(&count);
        return check_name(field->name, text, executors, count,
                          "command, noop, tensor, kernel, plugin, wasm and onnx", ret_problem);
    }
    if (strcmp(field->name, "measured") == 0) {
        return check_figure(text, ret_problem);
    }
    if (strcmp(field->name, "kind") != 0) {
        return true;
    }
    const char *names[KIND_NAMES_MAX];
    size_t count = 0;
    size_t kinds_count;
    const struct device_kind *kinds = device_kinds(&kinds_count);
    for (size_t i = 0; i < kinds_count; i++) {
        assert(count + 1 + KIND_VARIANTS_MAX <= KIND_NAMES_MAX);
        names[count++] = kinds[i].name;
        for (size_t k = 0; k < KIND_VARIANTS_MAX && kinds[i].variants[k] != NULL; k++) {
            names[count++] = kinds[i].variants[k];
        }
    }
    return check_name(field->name, text, names, count, field->meaning, ret_problem);
}

/* A text with other letters stands in quotes; known names have no such letters. */
static bool check_word(const struct parser *parser, struct problem *ret_problem)
{
    if (parser->begin != NULL && parser->token.type == TOKEN_WORD && parser->token.is_beyond) {
        problem_set(ret_problem, "write \"%s\" in quotes: it has letters that words do not have",
                    parser->token.text);
        return false;
    }
    return true;
}

/* Refuses an ordering or value outside the range of its field; every range begins at 0. No
 * device ever has such a value. */
static bool check_range(const struct requirement_field *field, const struct requirement_node *node,
                        struct problem *ret_problem)
{
    const int64_t number = node->attribute.number;
    const int64_t most = requirement_attribute_most(field->name);
    if (requirement_field_is_ordered(field) && node->op == REQUIREMENT_LT && number <= 0) {
        problem_set(ret_problem, "%s is never less than 0", field->name);
        return false;
    }
    if ((number > most && (node->op == REQUIREMENT_EQ || node->op == REQUIREMENT_GE)) ||
        (number >= most && most != INT64_MAX && node->op == REQUIREMENT_GT)) {
        char text[UNITS_TEXT_SIZE];
        units_text(requirement_field_units(field), most, text);
        problem_set(ret_problem, "%s is 0 to %s: no device has more", field->name, text);
        return false;
    }
    return true;
}

static bool push(struct parser *parser, const struct requirement_node *node)
{
    struct requirement *requirement = parser->requirement;
    if (requirement->count == REQUIREMENT_NODES_MAX) {
        char what[96];
        (void)snprintf(what, sizeof what,
                       "more than %d conditions, with each `and`, `or` and `not` counted as one",
                       REQUIREMENT_NODES_MAX);
        requirement_fail(parser, what);
        return false;
    }
    requirement->nodes[requirement->count++] = *node;
    return true;
}

bool requirement_push_predicate(struct parser *parser, const struct requirement_field *field,
                                enum requirement_op op, const char *text)
{
    struct requirement_node node = {.op = op};
    struct problem problem;
    bool ordering = op != REQUIREMENT_EQ && op != REQUIREMENT_NE;
    if (ordering && !requirement_field_is_ordered(field)) {
        problem_set(&problem, "%s is not a number: it takes only =, != and in", field->name);
    } else if (read_value(field, text, &node.attribute, &problem) &&
               check_known(field, text, &problem) && check_word(parser, &problem) &&
               check_range(field, &node, &problem)) {
        return push(parser, &node);
    }
    requirement_fail(parser, problem.text);
    return false;
}

/* ---------------------------------------------------------------- grammar */

static void parse_or(struct parser *parser);

void requirement_push_group(struct parser *parser, enum requirement_op op, uint32_t arity)
{
    if (arity >= 2 && !parser->failed) {
        struct requirement_node node = {.op = op, .arity = arity};
        (void)push(parser, &node);
    }
}

/* Returns the operands that the tree just pushed adds to a group of `op`. A root of the same
 * `op` is removed and its operands count; another tree counts as one. */
static uint32_t absorb(struct parser *parser, enum requirement_op op)
{
    struct requirement *requirement = parser->requirement;
    if (parser->failed || requirement->nodes[requirement->count - 1].op != op) {
        return 1;
    }
    struct requirement_node *root = &requirement->nodes[--requirement->count];
    uint32_t arity = root->arity;
    *root = (struct requirement_node){0};
    return arity;
}

static void parse_in(struct parser *parser, const struct requirement_field *field)
{
    requirement_advance(parser);
    if (!requirement_at_mark(parser, '(')) {
        requirement_fail_at(parser, "`in` needs a list, as in `region in (fr, de)`");
        return;
    }
    uint32_t arity = 0;
    do {
        requirement_advance(parser);
        if (parser->token.type != TOKEN_WORD && parser->token.type != TOKEN_QUOTED) {
            requirement_fail_at(parser, "a value is needed in the list of `in`");
            return;
        }
        if (!requirement_push_predicate(parser, field, REQUIREMENT_EQ, parser->token.text)) {
            return;
        }
        arity++;
        requirement_advance(parser);
    } while (requirement_at_mark(parser, ','));
    if (!requirement_at_mark(parser, ')')) {
        requirement_fail_at(parser, "\",\" or \")\" is needed in the list of `in`");
        return;
    }
    requirement_advance(parser);
    requirement_push_group(parser, REQUIREMENT_OR, arity);
}

void requirement_parse_membership(struct parser *parser, const struct requirement_field *field)
{
    bool negated = requirement_at_word(parser, "not");
    if (negated) {
        requirement_advance(parser);
    }
    if (!requirement_at_word(parser, "in")) {
        requirement_fail_at(parser, "`in` is needed after `not`");
        return;
    }
    parse_in(parser, field);
    if (negated && !parser->failed) {
        struct requirement_node node = {.op = REQUIREMENT_NOT};
        (void)push(parser, &node);
    }
}

/* Refuses `40 GiB`, where the unit of a value follows a blank. */
static void fail_if_unit(struct parser *parser, const struct requirement_field *field,
                         const struct token *value)
{
    char joined[2 * ATTRIBUTE_TEXT_SIZE];
    char what[3 * ATTRIBUTE_TEXT_SIZE];
    int64_t number;
    (void)snprintf(joined, sizeof joined, "%s%s", value->text, parser->token.text);
    if (requirement_field_is_ordered(field) && requirement_field_units(field) != UNITS_COUNT &&
        parser->token.type == TOKEN_WORD &&
        units_read(requirement_field_units(field), joined, &number) == UNITS_OK) {
        (void)snprintf(what, sizeof what, "a value has no blank in it: write %s", joined);
        requirement_fail(parser, what);
    }
}

static void parse_predicate(struct parser *parser)
{
    if (parser->token.type != TOKEN_WORD) {
        requirement_fail_at(parser, "a field is needed here, as in `memory >= 2GiB`");
        return;
    }
    const struct requirement_field *field = requirement_field(parser->token.text);
    if (field == NULL && requirement_keyword_meant(&parser->token) != NULL) {
        requirement_fail_at(parser, "");
        return;
    }
    if (field == NULL) {
        struct problem problem;
        requirement_explain_field(parser->token.text, &problem);
        requirement_fail(parser, problem.text);
        return;
    }
    requirement_advance(parser);
    if (requirement_at_word(parser, "in") || requirement_at_word(parser, "not")) {
        requirement_parse_membership(parser, field);
        return;
    }
    if (parser->token.type != TOKEN_OP) {
        char what[80];
        (void)snprintf(what, sizeof what, "=, !=, <, <=, >, >= or in is needed after %s",
                       field->name);
        requirement_fail_at(parser, what);
        return;
    }
    enum requirement_op op = parser->token.op;
    requirement_advance(parser);
    if (parser->token.type != TOKEN_WORD && parser->token.type != TOKEN_QUOTED) {
        char what[80];
        (void)snprintf(what, sizeof what, "a value is needed for %s", field->name);
        requirement_fail_at(parser, what);
        return;
    }
    const struct token value = parser->token;
    if (requirement_push_predicate(parser, field, op, value.text)) {
        requirement_advance(parser);
        fail_if_unit(parser, field, &value);
    }
}

static bool enter(struct parser *parser)
{
    if (++parser->depth > FORMAT_REQUIREMENT_DEPTH) {
        char what[64];
        (void)snprintf(what, sizeof what, "nested deeper than %d", FORMAT_REQUIREMENT_DEPTH);
        requirement_fail(parser, what);
        return false;
    }
    return true;
}

static void parse_unary(struct parser *parser)
{
    if (requirement_at_word(parser, "not")) {
        if (!enter(parser)) {
            return;
        }
        requirement_advance(parser);
        parse_unary(parser);
        parser->depth--;
        if (!parser->failed) {
            struct requirement_node node = {.op = REQUIREMENT_NOT};
            (void)push(parser, &node);
        }
    } else if (requirement_at_mark(parser, '(')) {
        if (!enter(parser)) {
            return;
        }
        requirement_advance(parser);
        parse_or(parser);
        parser->depth--;
        if (!requirement_at_mark(parser, ')')) {
            requirement_fail_at(parser, "`and`, `or` or \")\" is needed here");
            return;
        }
        requirement_advance(parser);
    } else {
        parse_predicate(parser);
    }
}

static void parse_and(struct parser *parser)
{
    parse_unary(parser);
    if (!requirement_at_word(parser, "and")) {
        return;
    }
    uint32_t arity = absorb(parser, REQUIREMENT_AND);
    while (!parser->failed && requirement_at_word(parser, "and")) {
        requirement_advance(parser);
        parse_unary(parser);
        arity += absorb(parser, REQUIREMENT_AND);
    }
    requirement_push_group(parser, REQUIREMENT_AND, arity);
}

static void parse_or(struct parser *parser)
{
    parse_and(parser);
    if (!requirement_at_word(parser, "or")) {
        return;
    }
    uint32_t arity = absorb(parser, REQUIREMENT_OR);
    while (!parser->failed && requirement_at_word(parser, "or")) {
        requirement_advance(parser);
        parse_and(parser);
        arity += absorb(parser, REQUIREMENT_OR);
    }
    requirement_push_group(parser, REQUIREMENT_OR, arity);
}

bool requirement_parse(const char *text, struct requirement *ret_requirement,
                       struct problem *ret_problem)
{
    if (strnlen(text, FORMAT_REQUIREMENT_BYTES + 1) > FORMAT_REQUIREMENT_BYTES) {
        problem_set(ret_problem, "the requirement has more than %d bytes",
                    FORMAT_REQUIREMENT_BYTES);
        return false;
    }
    struct requirement requirement = {0};
    struct parser parser = {.begin = text,
                            .at = text,
                            .token_at = text,
                            .requirement = &requirement,
                            .problem = ret_problem};
    requirement_advance(&parser);
    if (requirement_at_word(&parser, "any")) {
        requirement_advance(&parser);
    } else {
        parse_or(&parser);
    }
    if (!parser.failed && parser.token.type != TOKEN_END) {
        requirement_fail_at(&parser, "`and`, `or` or the end is needed here");
    }
    if (parser.failed) {
        return false;
    }
    *ret_requirement = requirement;
    return true;
}
