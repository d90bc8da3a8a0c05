#include "formats/requirement.h"

#include "base/kind.h"
#include "base/text.h"
#include "formats/limits.h"
#include "formats/units.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- fields */

static const struct requirement_field fields[] = {
    {"kind", FIELD_TEXT, "cpu, gpu, tpu, lpu, npu, fpga, dsp, webgpu, wasm or custom"},
    {"instrument", FIELD_TEXT, "what the market trades, as in cpu.x86_64.avx512"},
    {"memory", FIELD_BYTES, "memory of one slot"},
    {"disk", FIELD_BYTES, "room of one slot for files"},
    {"image_files", FIELD_NUMBER, "files of an image, where it takes fewer than 131072"},
    {"image_size", FIELD_BYTES, "bytes of an image's files, where its owner set them"},
    {"cores", FIELD_NUMBER, "processor cores of the device"},
    {"isolation", FIELD_NUMBER, "level of the jail, 0 to 3"},
    {"vendor", FIELD_TEXT, "maker of the device, as in intel"},
    {"model", FIELD_TEXT, "the maker's name for it"},
    {"arch", FIELD_TEXT, "machine code it runs, as in x86_64"},
    {"region", FIELD_TEXT, "where it stands, as its owner says"},
    {"program", FIELD_TEXT, "a host program that the owner allows, as in xz"},
    {"label", FIELD_TEXT, "a word that the owner gave it"},
    {"gflops", FIELD_NUMBER, "speed of one slot, in 10^9 operations per second"},
    {"gemm_fp32", FIELD_NUMBER,
     "speed of one slot in float32 matrix products, in 10^6 operations per second"},
    {"executor", FIELD_TEXT, "what it can run: command, noop or tensor"},
    {"bandwidth", FIELD_BANDWIDTH, "memory bandwidth of one slot"},
    {"fp64", FIELD_FLOPS, "peak rate of one slot in float64"},
    {"fp32", FIELD_FLOPS, "peak rate of one slot in float32"},
    {"tf32", FIELD_FLOPS, "peak rate of one slot in tf32"},
    {"bf16", FIELD_FLOPS, "peak rate of one slot in bfloat16"},
    {"fp16", FIELD_FLOPS, "peak rate of one slot in float16"},
    {"fp8", FIELD_FLOPS, "peak rate of one slot in 8 bits with a point"},
    {"int8", FIELD_OPS, "peak rate of one slot in 8-bit integers"},
    {"int4", FIELD_OPS, "peak rate of one slot in 4-bit integers"},
    {"measured", FIELD_TEXT,
     "a field of which its owner says that the agent measured the figure, as in gemm_fp32"},
    {"simulated", FIELD_FLAG, "whether the device is a simulation"},
    {"referee", FIELD_FLAG, "whether its account may judge the results of others"},
    {"trust", FIELD_NUMBER,
     "what the operator trusts its account with: 1 to judge the results of others, 2 the market"},
    {"firm", FIELD_FLAG, "whether nobody may take its leases from their holders"},
    {"notice", FIELD_DURATION,
     "how long before its end the holder of a lease is told that it is taken"},
    {"minimum_run", FIELD_DURATION, "how long nobody may take a lease"},
};
enum { FIELDS = sizeof fields / sizeof fields[0], KIND_NAMES_MAX = 64 };

const struct requirement_field *requirement_fields(size_t *ret_count)
{
    *ret_count = FIELDS;
    return fields;
}

const struct requirement_field *requirement_field(const char *name)
{
    for (size_t i = 0; i < FIELDS; i++) {
        if (strcmp(fields[i].name, name) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

static bool is_ordered(const struct requirement_field *field)
{
    return field->type != FIELD_TEXT && field->type != FIELD_FLAG;
}

enum units_kind requirement_field_units(const struct requirement_field *field)
{
    switch (field->type) {
    case FIELD_BYTES:
        return UNITS_BYTES;
    case FIELD_BANDWIDTH:
        return UNITS_BANDWIDTH;
    case FIELD_FLOPS:
        return UNITS_FLOPS;
    case FIELD_OPS:
        return UNITS_OPS;
    case FIELD_DURATION:
        return UNITS_DURATION;
    case FIELD_TEXT:
    case FIELD_FLAG:
    case FIELD_NUMBER:
        break;
    }
    return UNITS_COUNT;
}

bool requirement_is_figure(const char *name)
{
    const struct requirement_field *field = requirement_field(name);
    return field != NULL && (field->type == FIELD_BYTES || field->type == FIELD_BANDWIDTH ||
                             field->type == FIELD_FLOPS || field->type == FIELD_OPS ||
                             strcmp(name, "gflops") == 0 || strcmp(name, "gemm_fp32") == 0);
}

void requirement_figure(const char *name, int64_t value, char ret_text[UNITS_TEXT_SIZE])
{
    const struct requirement_field *field = requirement_field(name);
    if (field != NULL && field->type == FIELD_FLAG && (value == 0 || value == 1)) {
        (void)snprintf(ret_text, UNITS_TEXT_SIZE, "%s", value == 1 ? "true" : "false");
        return;
    }
    units_short(field != NULL ? requirement_field_units(field) : UNITS_COUNT, value, ret_text);
}

/* Copies a text in small letters, as much of it as fits. */
static void fold(const char *text, char ret_text[ATTRIBUTE_TEXT_SIZE])
{
    size_t length = 0;
    for (; text[length] != '\0' && length + 1 < ATTRIBUTE_TEXT_SIZE; length++) {
        char c = text[length];
        ret_text[length] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    ret_text[length] = '\0';
}

static void explain_field(const char *name, struct problem *ret_problem)
{
    const char *names[FIELDS];
    char folded[ATTRIBUTE_TEXT_SIZE];
    for (size_t i = 0; i < FIELDS; i++) {
        names[i] = fields[i].name;
    }
    fold(name, folded);
    const char *nearest = text_nearest(folded, names, FIELDS);
    if (nearest != NULL) {
        problem_set(ret_problem, "unknown field \"%s\"; did you mean \"%s\"?", name, nearest);
    } else {
        problem_set(ret_problem,
                    "unknown field \"%s\"; `man bourse-job` lists those that are known", name);
    }
}

/* ---------------------------------------------------------------- tokens */

enum token_type { TOKEN_END, TOKEN_WORD, TOKEN_QUOTED, TOKEN_OP, TOKEN_MARK, TOKEN_BAD };

struct token {
    enum token_type type;
    enum requirement_op op; /* for TOKEN_OP */
    bool is_beyond;         /* for TOKEN_WORD: the word has letters that words do not have */
    char text[ATTRIBUTE_TEXT_SIZE];
};

struct parser {
    const char *begin; /* NULL: a map, whose keys tell the place */
    const char *at;
    const char *token_at; /* where the token begins; problems are reported there */
    struct token token;   /* the next token to use */
    struct requirement *requirement;
    unsigned depth;
    bool failed;
    struct problem *problem;
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("._-+/:", c) != NULL);
}

/* Writes the token's place as editors count: "column 7: ", with the line where there are
 * several. Writes "" for a map. */
static void place(const struct parser *parser, char *ret_text, size_t capacity)
{
    unsigned line = 1;
    unsigned column = 1;
    ret_text[0] = '\0';
    if (parser->begin == NULL) {
        return;
    }
    for (const char *c = parser->begin; c < parser->token_at; c++) {
        bool continues = ((unsigned char)*c & 0xc0) == 0x80; /* a character of several bytes */
        line += *c == '\n';
        column = *c == '\n' ? 1 : column + !continues;
    }
    if (strchr(parser->begin, '\n') != NULL) {
        (void)snprintf(ret_text, capacity, "line %u, column %u: ", line, column);
    } else {
        (void)snprintf(ret_text, capacity, "column %u: ", column);
    }
}

static void fail(struct parser *parser, const char *what)
{
    if (!parser->failed) {
        char where[40];
        place(parser, where, sizeof where);
        parser->failed = true;
        problem_set(parser->problem, "%s%s", where, what);
    }
}

/* Spellings of other languages with their counterparts here; longer ones first. */
static const struct {
    const char *text, *ours;
} foreign[] = {
    {"==", "="},  {"&&", "and"}, {"||", "or"}, {"<>", "!="}, {"=>", ">="},
    {"=<", "<="}, {"≥", ">="},   {"≤", "<="},  {"≠", "!="},  {"&", "and"},
    {"|", "or"},  {"!", "not"},  {"'", "\""},  {"“", "\""},  {"”", "\""},
};

#define OPERATORS "=!<>" /* the first characters of operators */
#define ANYTHING OPERATORS "aon\""

/* Refuses foreign spellings whose counterpart begins with one of `first`. */
static bool fail_if_foreign(struct parser *parser, const char *first)
{
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        size_t length = strlen(foreign[i].text);
        if (strncmp(parser->at, foreign[i].text, length) == 0 &&
            strncmp(parser->at, "!=", 2) != 0 && strchr(first, foreign[i].ours[0]) != NULL) {
            char what[64];
            (void)snprintf(what, sizeof what, "%s is written %s here", foreign[i].text,
                           foreign[i].ours);
            fail(parser, what);
            return true;
        }
    }
    return false;
}

/* Returns the keyword that was written with capital letters, or NULL. */
static const char *keyword_meant(const struct token *token)
{
    static const char *const keywords[] = {"and", "or", "not", "in", "any"};
    char folded[ATTRIBUTE_TEXT_SIZE];
    fold(token->text, folded);
    for (size_t i = 0; token->type == TOKEN_WORD && i < sizeof keywords / sizeof keywords[0]; i++) {
        if (strcmp(folded, keywords[i]) == 0 && strcmp(token->text, keywords[i]) != 0) {
            return keywords[i];
        }
    }
    return NULL;
}

static void fail_at(struct parser *parser, const char *what)
{
    static const char *const ops[] = {
        [REQUIREMENT_EQ] = "=",  [REQUIREMENT_NE] = "!=", [REQUIREMENT_LT] = "<",
        [REQUIREMENT_LE] = "<=", [REQUIREMENT_GT] = ">",  [REQUIREMENT_GE] = ">=",
    };
    const struct token *token = &parser->token;
    char text[160];
    const char *shown = token->type == TOKEN_OP ? ops[token->op] : token->text;
    const char *meant = keyword_meant(token);
    if (token->type == TOKEN_END) {
        (void)snprintf(text, sizeof text, "%s, not the end", what);
    } else if (meant != NULL) {
        (void)snprintf(text, sizeof text, "%s is written %s here", shown, meant);
    } else {
        (void)snprintf(text, sizeof text, "%s, not \"%s\"", what, shown);
    }
    fail(parser, text);
}

static bool take_quoted(struct parser *parser, struct token *ret_token)
{
    size_t length = 0;
    for (const char *c = parser->at + 1; *c != '\0'; c++) {
        if (*c == '"') {
            ret_token->text[length] = '\0';
            parser->at = c + 1;
            return true;
        }
        if (*c == '\\') {
            c++;
            if (*c != '"' && *c != '\\') {
                fail(parser, "in quotes \\ stands before \" or \\ only: write \\\\ for one");
                return false;
            }
        }
        if (length + 1 >= sizeof ret_token->text) {
            fail(parser, "a text of more than 63 bytes");
            return false;
        }
        ret_token->text[length++] = *c;
    }
    fail(parser, "a quoted text without its end");
    return false;
}

/* Returns true for a letter that words do not have and that is no foreign spelling. The word is
 * then shown whole. */
static bool is_letter_beyond(const char *at)
{
    bool is = ((unsigned char)*at & 0x80) != 0;
    for (size_t i = 0; is && i < sizeof foreign / sizeof foreign[0]; i++) {
        is = strncmp(at, foreign[i].text, strlen(foreign[i].text)) != 0;
    }
    return is;
}

static bool take_word(struct parser *parser, struct token *ret_token)
{
    size_t length = 0;
    while (is_word(parser->at[length]) || is_letter_beyond(parser->at + length)) {
        ret_token->is_beyond = ret_token->is_beyond || !is_word(parser->at[length]);
        length++;
    }
    if (length >= sizeof ret_token->text) {
        fail(parser, "a word of more than 63 bytes");
        return false;
    }
    memcpy(ret_token->text, parser->at, length);
    parser->at += length;
    return true;
}

static bool take_op(struct parser *parser, struct token *ret_token)
{
    static const struct {
        const char *text;
        enum requirement_op op;
    } ops[] = {
        /* longer ones first */
        {"!=", REQUIREMENT_NE}, {"<=", REQUIREMENT_LE}, {">=", REQUIREMENT_GE},
        {"=", REQUIREMENT_EQ},  {"<", REQUIREMENT_LT},  {">", REQUIREMENT_GT},
    };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        size_t length = strlen(ops[i].text);
        if (strncmp(parser->at, ops[i].text, length) == 0) {
            ret_token->op = ops[i].op;
            parser->at += length;
            return true;
        }
    }
    return false;
}

static struct token next_token(struct parser *parser)
{
    struct token token = {.type = TOKEN_BAD};
    parser->at += strspn(parser->at, " \t\n");
    parser->token_at = parser->at;
    char c = *parser->at;
    if (c == '\0') {
        token.type = TOKEN_END;
    } else if (fail_if_foreign(parser, ANYTHING)) {
        return token;
    } else if (c == '"') {
        token.type = take_quoted(parser, &token) ? TOKEN_QUOTED : TOKEN_BAD;
    } else if (is_word(c)) {
        token.type = take_word(parser, &token) ? TOKEN_WORD : TOKEN_BAD;
    } else if (c == '(' || c == ')' || c == ',') {
        token.type = TOKEN_MARK;
        token.text[0] = c;
        parser->at++;
    } else if (take_op(parser, &token)) {
        token.type = TOKEN_OP;
    } else {
        char shown[16];
        char what[64];
        text_printable(parser->at, strnlen(parser->at, 8), shown, sizeof shown);
        (void)snprintf(what, sizeof what, "nothing begins with \"%s\"", shown);
        fail(parser, what);
    }
    return token;
}

static void advance(struct parser *parser)
{
    parser->token = next_token(parser);
}

static bool at_word(const struct parser *parser, const char *word)
{
    return parser->token.type == TOKEN_WORD && strcmp(parser->token.text, word) == 0;
}

static bool at_mark(const struct parser *parser, char mark)
{
    return parser->token.type == TOKEN_MARK && parser->token.text[0] == mark;
}

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
                        "\"%s\" is not a text for %s: 1 to 63 bytes, no control characters", shown,
                        field->name);
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
    fold(text, folded);
    const char *nearest = text_nearest(folded, names, count);
    problem_set(ret_problem, "unknown %s \"%s\"; %s%s%s", field, text,
                nearest != NULL ? "did you mean \"" : "known are ", nearest != NULL ? nearest : all,
                nearest != NULL ? "\"?" : "");
    return false;
}

static bool check_figure(const char *text, struct problem *ret_problem)
{
    const char *names[FIELDS];
    size_t count = 0;
    for (size_t i = 0; i < FIELDS; i++) {
        if (requirement_is_figure(fields[i].name)) {
            names[count++] = fields[i].name;
        }
    }
    return check_name("figure", text, names, count,
                      "memory, bandwidth, gflops, gemm_fp32 and the rates, as bf16", ret_problem);
}

/* Kinds, executors and figures are known beforehand: no device has another. */
static bool check_known(const struct requirement_field *field, const char *text,
                        struct problem *ret_problem)
{
    static const char *const executors[] = {"command", "noop", "tensor"};
    if (strcmp(field->name, "executor") == 0) {
        return check_name(field->name, text, executors, sizeof executors / sizeof executors[0],
                          "command, noop and tensor", ret_problem);
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
    const int64_t most = attribute_most(field->name);
    if (is_ordered(field) && node->op == REQUIREMENT_LT && number <= 0) {
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
        fail(parser, what);
        return false;
    }
    requirement->nodes[requirement->count++] = *node;
    return true;
}

static bool push_predicate(struct parser *parser, const struct requirement_field *field,
                           enum requirement_op op, const char *text)
{
    struct requirement_node node = {.op = op};
    struct problem problem;
    bool ordering = op != REQUIREMENT_EQ && op != REQUIREMENT_NE;
    if (ordering && !is_ordered(field)) {
        problem_set(&problem, "%s is not a number: it takes only =, != and in", field->name);
    } else if (read_value(field, text, &node.attribute, &problem) &&
               check_known(field, text, &problem) && check_word(parser, &problem) &&
               check_range(field, &node, &problem)) {
        return push(parser, &node);
    }
    fail(parser, problem.text);
    return false;
}

/* ---------------------------------------------------------------- grammar */

static void parse_or(struct parser *parser);

/* Pushes an `and` or `or` behind its operands. */
static void push_group(struct parser *parser, enum requirement_op op, uint32_t arity)
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
    advance(parser);
    if (!at_mark(parser, '(')) {
        fail_at(parser, "`in` needs a list, as in `region in (fr, de)`");
        return;
    }
    uint32_t arity = 0;
    do {
        advance(parser);
        if (parser->token.type != TOKEN_WORD && parser->token.type != TOKEN_QUOTED) {
            fail_at(parser, "a value is needed in the list of `in`");
            return;
        }
        if (!push_predicate(parser, field, REQUIREMENT_EQ, parser->token.text)) {
            return;
        }
        arity++;
        advance(parser);
    } while (at_mark(parser, ','));
    if (!at_mark(parser, ')')) {
        fail_at(parser, "\",\" or \")\" is needed in the list of `in`");
        return;
    }
    advance(parser);
    push_group(parser, REQUIREMENT_OR, arity);
}

static void parse_membership(struct parser *parser, const struct requirement_field *field)
{
    bool negated = at_word(parser, "not");
    if (negated) {
        advance(parser);
    }
    if (!at_word(parser, "in")) {
        fail_at(parser, "`in` is needed after `not`");
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
    if (is_ordered(field) && requirement_field_units(field) != UNITS_COUNT &&
        parser->token.type == TOKEN_WORD &&
        units_read(requirement_field_units(field), joined, &number) == UNITS_OK) {
        (void)snprintf(what, sizeof what, "a value has no blank in it: write %s", joined);
        fail(parser, what);
    }
}

static void parse_predicate(struct parser *parser)
{
    if (parser->token.type != TOKEN_WORD) {
        fail_at(parser, "a field is needed here, as in `memory >= 2GiB`");
        return;
    }
    const struct requirement_field *field = requirement_field(parser->token.text);
    if (field == NULL && keyword_meant(&parser->token) != NULL) {
        fail_at(parser, "");
        return;
    }
    if (field == NULL) {
        struct problem problem;
        explain_field(parser->token.text, &problem);
        fail(parser, problem.text);
        return;
    }
    advance(parser);
    if (at_word(parser, "in") || at_word(parser, "not")) {
        parse_membership(parser, field);
        return;
    }
    if (parser->token.type != TOKEN_OP) {
        char what[80];
        (void)snprintf(what, sizeof what, "=, !=, <, <=, >, >= or in is needed after %s",
                       field->name);
        fail_at(parser, what);
        return;
    }
    enum requirement_op op = parser->token.op;
    advance(parser);
    if (parser->token.type != TOKEN_WORD && parser->token.type != TOKEN_QUOTED) {
        char what[80];
        (void)snprintf(what, sizeof what, "a value is needed for %s", field->name);
        fail_at(parser, what);
        return;
    }
    const struct token value = parser->token;
    if (push_predicate(parser, field, op, value.text)) {
        advance(parser);
        fail_if_unit(parser, field, &value);
    }
}

static bool enter(struct parser *parser)
{
    if (++parser->depth > FORMAT_REQUIREMENT_DEPTH) {
        char what[64];
        (void)snprintf(what, sizeof what, "nested deeper than %d", FORMAT_REQUIREMENT_DEPTH);
        fail(parser, what);
        return false;
    }
    return true;
}

static void parse_unary(struct parser *parser)
{
    if (at_word(parser, "not")) {
        if (!enter(parser)) {
            return;
        }
        advance(parser);
        parse_unary(parser);
        parser->depth--;
        if (!parser->failed) {
            struct requirement_node node = {.op = REQUIREMENT_NOT};
            (void)push(parser, &node);
        }
    } else if (at_mark(parser, '(')) {
        if (!enter(parser)) {
            return;
        }
        advance(parser);
        parse_or(parser);
        parser->depth--;
        if (!at_mark(parser, ')')) {
            fail_at(parser, "`and`, `or` or \")\" is needed here");
            return;
        }
        advance(parser);
    } else {
        parse_predicate(parser);
    }
}

static void parse_and(struct parser *parser)
{
    parse_unary(parser);
    if (!at_word(parser, "and")) {
        return;
    }
    uint32_t arity = absorb(parser, REQUIREMENT_AND);
    while (!parser->failed && at_word(parser, "and")) {
        advance(parser);
        parse_unary(parser);
        arity += absorb(parser, REQUIREMENT_AND);
    }
    push_group(parser, REQUIREMENT_AND, arity);
}

static void parse_or(struct parser *parser)
{
    parse_and(parser);
    if (!at_word(parser, "or")) {
        return;
    }
    uint32_t arity = absorb(parser, REQUIREMENT_OR);
    while (!parser->failed && at_word(parser, "or")) {
        advance(parser);
        parse_and(parser);
        arity += absorb(parser, REQUIREMENT_OR);
    }
    push_group(parser, REQUIREMENT_OR, arity);
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
    advance(&parser);
    if (at_word(&parser, "any")) {
        advance(&parser);
    } else {
        parse_or(&parser);
    }
    if (!parser.failed && parser.token.type != TOKEN_END) {
        fail_at(&parser, "`and`, `or` or the end is needed here");
    }
    if (parser.failed) {
        return false;
    }
    *ret_requirement = requirement;
    return true;
}

/* ---------------------------------------------------------------- the map form */

/* Returns the text after `word` and blanks, or NULL when another word is in front. The case of
 * the letters is ignored. */
static const char *behind(const char *text, const char *word)
{
    const size_t length = strlen(word);
    char folded[ATTRIBUTE_TEXT_SIZE];
    fold(text, folded);
    if (strncmp(folded, word, length) != 0 || is_word(text[length])) {
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
        advance(parser);
        parse_membership(parser, field);
        if (!parser->failed && parser->token.type != TOKEN_END) {
            fail_at(parser, "nothing can follow the list of `in`");
        }
        return true;
    }
    if (negated != NULL && *negated != '\0') {
        fail(parser, "`not` stands before `in` here, as in \"not in (fr, de)\". Before one value "
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
    struct token token = {.op = alone && is_ordered(field) ? REQUIREMENT_GE : REQUIREMENT_EQ};
    if (alone && !fail_if_foreign(parser, OPERATORS) && take_op(parser, &token)) {
        parser->at += strspn(parser->at, " ");
    }
    if (!parser->failed && strlen(parser->at) >= ATTRIBUTE_TEXT_SIZE) {
        fail(parser, "a text of more than 63 bytes");
    }
    if (!parser->failed) {
        (void)push_predicate(parser, field, token.op, parser->at);
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
    const char *names[FIELDS];
    for (size_t i = 0; i < FIELDS; i++) {
        names[i] = fields[i].name;
    }
    yaml_known_keys(map, names, FIELDS);
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
            push_group(parser, REQUIREMENT_OR, (uint32_t)count);
        } else {
            read_entry(parser, field, value, true);
        }
        arity++;
    }
    push_group(parser, REQUIREMENT_AND, arity);
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
