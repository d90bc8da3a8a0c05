/* `struct parser` reads one requirement; the units requirement*.c share it. */
#ifndef BOURSE_FORMATS_REQUIREMENT_REQUIREMENT_INTERNAL_H
#define BOURSE_FORMATS_REQUIREMENT_REQUIREMENT_INTERNAL_H

#include "formats/requirement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- requirement_fields.c */

enum { REQUIREMENT_FIELDS = 49 };
extern const struct requirement_field requirement_field_table[REQUIREMENT_FIELDS];

/* Returns true when values of the field have an order. */
bool requirement_field_is_ordered(const struct requirement_field *field);
/* Copies a text in small letters, as much of it as fits. */
void requirement_fold(const char *text, char ret_text[ATTRIBUTE_TEXT_SIZE]);
/* Names the field that an unknown one is nearest to. */
void requirement_explain_field(const char *name, struct problem *ret_problem);

/* ---- requirement_tokens.c */

/* Operators begin with these characters. */
#define REQUIREMENT_OPERATORS "=!<>"

enum token_type { TOKEN_END, TOKEN_WORD, TOKEN_QUOTED, TOKEN_OP, TOKEN_MARK, TOKEN_BAD };

struct token {
    enum token_type type;
    enum requirement_op op; /* of TOKEN_OP */
    bool is_beyond;         /* of TOKEN_WORD: it has letters that words do not have */
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

/* Returns true for a character that words have. */
bool requirement_is_word(char c);
/* Notes the first fault, with the token's place. */
void requirement_fail(struct parser *parser, const char *what);
/* Notes that `what` is needed, and which token stands there. */
void requirement_fail_at(struct parser *parser, const char *what);
/* Refuses foreign spellings whose counterpart begins with one of `first`. */
bool requirement_fail_if_foreign(struct parser *parser, const char *first);
/* Takes an operator. Returns false when none is in front. */
bool requirement_take_op(struct parser *parser, struct token *ret_token);
/* Takes the next token into parser->token. */
void requirement_advance(struct parser *parser);
/* Returns the keyword that was written with capital letters, or NULL. */
const char *requirement_keyword_meant(const struct token *token);
bool requirement_at_word(const struct parser *parser, const char *word);
bool requirement_at_mark(const struct parser *parser, char mark);

/* ---- requirement.c */

/* Checks the value and pushes a predicate. Returns false after a fault. */
bool requirement_push_predicate(struct parser *parser, const struct requirement_field *field,
                                enum requirement_op op, const char *text);
/* Pushes an `and` or `or` behind its operands. */
void requirement_push_group(struct parser *parser, enum requirement_op op, uint32_t arity);
/* Parses `in (...)` and `not in (...)`. */
void requirement_parse_membership(struct parser *parser, const struct requirement_field *field);

#endif
