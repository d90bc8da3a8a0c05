/* The text of a requirement is cut into tokens here, and faults get their place. */
#include "formats/requirement/requirement_internal.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

bool requirement_is_word(char c)
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

void requirement_fail(struct parser *parser, const char *what)
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

#define ANYTHING REQUIREMENT_OPERATORS "aon\""

bool requirement_fail_if_foreign(struct parser *parser, const char *first)
{
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        size_t length = strlen(foreign[i].text);
        if (strncmp(parser->at, foreign[i].text, length) == 0 &&
            strncmp(parser->at, "!=", 2) != 0 && strchr(first, foreign[i].ours[0]) != NULL) {
            char what[64];
            (void)snprintf(what, sizeof what, "%s is written %s here", foreign[i].text,
                           foreign[i].ours);
            requirement_fail(parser, what);
            return true;
        }
    }
    return false;
}

const char *requirement_keyword_meant(const struct token *token)
{
    static const char *const keywords[] = {"and", "or", "not", "in", "any"};
    char folded[ATTRIBUTE_TEXT_SIZE];
    requirement_fold(token->text, folded);
    for (size_t i = 0; token->type == TOKEN_WORD && i < sizeof keywords / sizeof keywords[0]; i++) {
        if (strcmp(folded, keywords[i]) == 0 && strcmp(token->text, keywords[i]) != 0) {
            return keywords[i];
        }
    }
    return NULL;
}

void requirement_fail_at(struct parser *parser, const char *what)
{
    static const char *const ops[] = {
        [REQUIREMENT_EQ] = "=",  [REQUIREMENT_NE] = "!=", [REQUIREMENT_LT] = "<",
        [REQUIREMENT_LE] = "<=", [REQUIREMENT_GT] = ">",  [REQUIREMENT_GE] = ">=",
    };
    const struct token *token = &parser->token;
    char text[160];
    const char *shown = token->type == TOKEN_OP ? ops[token->op] : token->text;
    const char *meant = requirement_keyword_meant(token);
    if (token->type == TOKEN_END) {
        (void)snprintf(text, sizeof text, "%s, not the end", what);
    } else if (meant != NULL) {
        (void)snprintf(text, sizeof text, "%s is written %s here", shown, meant);
    } else {
        (void)snprintf(text, sizeof text, "%s, not \"%s\"", what, shown);
    }
    requirement_fail(parser, text);
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
                requirement_fail(parser,
                                 "in quotes \\ stands before \" or \\ only: write \\\\ for one");
                return false;
            }
        }
        if (length + 1 >= sizeof ret_token->text) {
            requirement_fail(parser,
                             "the quoted text has more than 63 bytes, the most that it may have");
            return false;
        }
        ret_token->text[length++] = *c;
    }
    requirement_fail(parser, "the quoted text has no closing quote");
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
    while (requirement_is_word(parser->at[length]) || is_letter_beyond(parser->at + length)) {
        ret_token->is_beyond = ret_token->is_beyond || !requirement_is_word(parser->at[length]);
        length++;
    }
    if (length >= sizeof ret_token->text) {
        requirement_fail(parser, "the word has more than 63 bytes, the most that it may have");
        return false;
    }
    memcpy(ret_token->text, parser->at, length);
    parser->at += length;
    return true;
}

bool requirement_take_op(struct parser *parser, struct token *ret_token)
{
    static const struct {
        const char *text;
        enum requirement_op op;
    } ops[] = {
        /* Longer operators come first. */
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
    } else if (requirement_fail_if_foreign(parser, ANYTHING)) {
        return token;
    } else if (c == '"') {
        token.type = take_quoted(parser, &token) ? TOKEN_QUOTED : TOKEN_BAD;
    } else if (requirement_is_word(c)) {
        token.type = take_word(parser, &token) ? TOKEN_WORD : TOKEN_BAD;
    } else if (c == '(' || c == ')' || c == ',') {
        token.type = TOKEN_MARK;
        token.text[0] = c;
        parser->at++;
    } else if (requirement_take_op(parser, &token)) {
        token.type = TOKEN_OP;
    } else {
        char shown[16];
        char what[64];
        text_printable(parser->at, strnlen(parser->at, 8), shown, sizeof shown);
        (void)snprintf(what, sizeof what, "nothing begins with \"%s\"", shown);
        requirement_fail(parser, what);
    }
    return token;
}

void requirement_advance(struct parser *parser)
{
    parser->token = next_token(parser);
}

bool requirement_at_word(const struct parser *parser, const char *word)
{
    return parser->token.type == TOKEN_WORD && strcmp(parser->token.text, word) == 0;
}

bool requirement_at_mark(const struct parser *parser, char mark)
{
    return parser->token.type == TOKEN_MARK && parser->token.text[0] == mark;
}
