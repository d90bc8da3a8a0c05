/* The map form of a requirement, `needs:` of a job file, is read here. */
#include "formats/requirement/requirement_internal.h"

#include "formats/limits.h"

#include <string.h>

/* Returns the text after `word` and blanks, or NULL when another word is in front. The case of
 * the letters is ignored. */
static const char *behind(const char *text, const char *word)
{
    const size_t length = strlen(word);
    char folded[ATTRIBUTE_TEXT_SIZE];
    requirement_fold(text, folded);
    if (strncmp(folded, word, length) != 0 || requirement_is_word(text[length])) {
        return NULL;
    }
    return text + length + strspn(text + length, " ");
}

/* Reads `in (fr, de)` and `not in (fr, de)`, as in the text form. Returns true when the text is
 * one of them, or was refused. A text in a list may begin with `not`. */
static bool read_membership(struct parser *parser, const struct requirement_field *field)
{
    const char *negated = behind(parser->at, "not");
    const char *list = behind(negated != NULL ? negated : parser->at, "in");
    if (list != NULL && *list == '(') {
        requirement_advance(parser);
        requirement_parse_membership(parser, field);
        if (!parser->failed && parser->token.type != TOKEN_END) {
            requirement_fail_at(parser, "nothing can follow the list of `in`");
        }
        return true;
    }
    if (negated != NULL && *negated != '\0') {
        requirement_fail(
            parser, "`not` stands before `in` here, as in \"not in (fr, de)\". Before one value "
                    "write !=; put a text that begins with `not` in brackets, as in [\"not so\"]");
        return true;
    }
    return false;
}

/* Reports a fault of a value; the key shows the field already. */
static void refuse_entry(const struct parser *parser, const struct requirement_field *field,
                         struct yaml_value value)
{
    const char *what = parser->problem->text;
    size_t length = strlen(field->name);
    bool named = strncmp(what, field->name, length) == 0 && what[length] == ':';
    yaml_refuse(value, "%s", named ? what + length + 2 : what);
}

static void read_predicate(struct parser *parser, const struct requirement_field *field, bool alone)
{
    struct token token = {.op = alone && requirement_field_is_ordered(field) ? REQUIREMENT_GE
                                                                             : REQUIREMENT_EQ};
    if (alone && !requirement_fail_if_foreign(parser, REQUIREMENT_OPERATORS) &&
        requirement_take_op(parser, &token)) {
        parser->at += strspn(parser->at, " ");
    }
    if (!parser->failed && strlen(parser->at) >= ATTRIBUTE_TEXT_SIZE) {
        requirement_fail(parser, "the text has more than 63 bytes, the most that it may have");
    }
    if (!parser->failed) {
        (void)requirement_push_predicate(parser, field, token.op, parser->at);
    }
}

/* Reads one value of an entry; an operator may lead a value that stands alone. */
static void read_entry(struct parser *parser, const struct requirement_field *field,
                       struct yaml_value value, bool alone)
{
    const char *text =
        yaml_text(value, alone ? FORMAT_REQUIREMENT_BYTES : ATTRIBUTE_TEXT_SIZE + 3, NULL);
    if (text == NULL) {
        return; /* refused by yaml_text */
    }
    parser->at = text;
    if (!alone || !read_membership(parser, field)) {
        read_predicate(parser, field, alone);
    }
    if (parser->failed) {
        refuse_entry(parser, field, value);
    }
}

static void read_map(struct yaml_value map, struct parser *parser)
{
    const char *names[REQUIREMENT_FIELDS];
    for (size_t i = 0; i < REQUIREMENT_FIELDS; i++) {
        names[i] = requirement_field_table[i].name;
    }
    yaml_known_keys(map, names, REQUIREMENT_FIELDS);
    uint32_t arity = 0;
    for (size_t i = 0; i < yaml_count(map) && !parser->failed; i++) {
        const struct requirement_field *field = requirement_field(yaml_entry_key(map, i));
        struct yaml_value value = yaml_entry(map, i);
        if (field == NULL) {
            return; /* refused as an unknown key */
        }
        if (yaml_kind(value) == YAML_KIND_LIST) {
            size_t count = yaml_count(value);
            if (count == 0) {
                yaml_refuse(value, "an empty list: nothing could ever fit");
                return;
            }
            for (size_t k = 0; k < count && !parser->failed; k++) {
                read_entry(parser, field, yaml_item(value, k), false);
            }
            requirement_push_group(parser, REQUIREMENT_OR, (uint32_t)count);
        } else {
            read_entry(parser, field, value, true);
        }
        arity++;
    }
    requirement_push_group(parser, REQUIREMENT_AND, arity);
    if (parser->failed) {
        yaml_refuse(map, "%s", parser->problem->text);
    }
}

void requirement_read(struct yaml_value value, struct requirement *ret_requirement)
{
    struct requirement requirement = {0};
    struct problem problem;
    *ret_requirement = requirement;
    if (yaml_kind(value) == YAML_KIND_MAP) {
        struct parser parser = {.requirement = &requirement, .problem = &problem};
        read_map(value, &parser);
    } else {
        const char *text = yaml_text(value, FORMAT_REQUIREMENT_BYTES, NULL);
        if (text != NULL && !requirement_parse(text, &requirement, &problem)) {
            yaml_refuse(value, "%s", problem.text);
        }
    }
    if (yaml_finished(value.file, NULL)) {
        *ret_requirement = requirement;
    }
}
