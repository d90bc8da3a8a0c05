/* formats/generate/tokenizer.h turns text into tokens and tokens into text, by a tokenizer.json of
 * the kind "byte-level BPE", as GPT-2 has it.
 *
 * A text is cut at its added tokens, then into words (word_split.h). Each word begins as its bytes,
 * and the merge of the lowest rank is carried out until none applies. What of a tokenizer.json is
 * not known here is refused by its name: normalizers, other pre-tokenizers and models, templates of
 * a post-processor, tokens that strip the blanks beside them. Pure. */
#ifndef BOURSE_FORMATS_GENERATE_TOKENIZER_H
#define BOURSE_FORMATS_GENERATE_TOKENIZER_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOKENIZER_BYTES = 32 << 20, /* of the file */
    /* A token's number is below this, and below twice the count of tokens. */
    TOKENIZER_TOKENS = 1 << 20,
    TOKENIZER_ADDED = 4096,           /* added tokens */
    TOKENIZER_TOKEN_BYTES = 4096,     /* of the text of one token */
    TOKENIZER_TEXT_BYTES = 256 << 20, /* of all tokens' texts together */
};

struct tokenizer;

/* Reads a tokenizer.json. The caller owns the result. Returns NULL with a problem that says what is
 * wrong or not known here. */
struct tokenizer *tokenizer_read(const void *bytes, size_t size, struct problem *ret_problem);
void tokenizer_destroy(struct tokenizer **self);

/* Returns the highest number of a token, plus 1. */
uint32_t tokenizer_size(const struct tokenizer *tokenizer);

/* Writes the tokens of a text, of which there are no more than bytes. The caller frees the array.
 * Returns NULL when memory is short. */
uint32_t *tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                           size_t *ret_count);

/* Returns the bytes of a token, which may end within a character. A number without a token has no
 * bytes. */
const uint8_t *tokenizer_text(const struct tokenizer *tokenizer, uint32_t token, size_t *ret_size);

/* Returns true for a special token, which ends a text and is not part of it. */
bool tokenizer_is_special(const struct tokenizer *tokenizer, uint32_t token);

#endif
