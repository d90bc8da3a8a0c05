#include "formats/generate/tokenizer.h"

#include "formats/generate/tokenizer_internal.h"
#include "formats/generate/word_split.h"

#include <stdlib.h>
#include <string.h>

void tokenizer_destroy(struct tokenizer **self)
{
    struct tokenizer *tokenizer = *self;
    if (tokenizer != NULL) {
        free(tokenizer->tokens);
        free(tokenizer->texts);
        free(tokenizer->table);
        free(tokenizer->added);
        free(tokenizer);
        *self = NULL;
    }
}

uint32_t tokenizer_size(const struct tokenizer *tokenizer)
{
    return tokenizer->size;
}

const uint8_t *tokenizer_text(const struct tokenizer *tokenizer, uint32_t token, size_t *ret_size)
{
    *ret_size = token < tokenizer->size ? tokenizer->tokens[token].size : 0;
    return *ret_size > 0 ? tokenizer->texts + tokenizer->tokens[token].at : NULL;
}

bool tokenizer_is_special(const struct tokenizer *tokenizer, uint32_t token)
{
    return token < tokenizer->size && tokenizer->tokens[token].is_special;
}

struct tokenizer_merge *tokenizer_place(const struct tokenizer *tokenizer, uint32_t left,
                                        uint32_t right)
{
    const uint64_t key = ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15);
    const size_t mask = tokenizer->table_size - 1;
    size_t at = (size_t)(key >> 20) & mask;
    while (tokenizer->table[at].rank != TOKENIZER_NONE &&
           (tokenizer->table[at].left != left || tokenizer->table[at].right != right)) {
        at = (at + 1) & mask;
    }
    return &tokenizer->table[at];
}

/* ---------------------------------------------------------------- one word */

static uint32_t rank_of(const struct tokenizer *tokenizer, uint32_t left, uint32_t right)
{
    return tokenizer_place(tokenizer, left, right)->rank;
}

/* Carries out the merge of this rank wherever it applies, from left to right. Returns the new count
 * of tokens. */
static size_t merge_all(const struct tokenizer *tokenizer, uint32_t *tokens, size_t count,
                        uint32_t rank)
{
    size_t to = 0;
    for (size_t i = 0; i < count; i++) {
        const struct tokenizer_merge *merge =
            i + 1 < count ? tokenizer_place(tokenizer, tokens[i], tokens[i + 1]) : NULL;
        if (merge != NULL && merge->rank == rank) {
            tokens[to++] = merge->token;
            i++;
        } else {
            tokens[to++] = tokens[i];
        }
    }
    return to;
}

/* Merges the tokens of a word until no merge applies. */
static size_t merge_word(const struct tokenizer *tokenizer, uint32_t *tokens, size_t count)
{
    uint32_t best = 0;
    while (count > 1 && best != TOKENIZER_NONE) {
        best = TOKENIZER_NONE;
        for (size_t i = 0; i + 1 < count; i++) {
            const uint32_t rank = rank_of(tokenizer, tokens[i], tokens[i + 1]);
            best = rank < best ? rank : best;
        }
        if (best != TOKENIZER_NONE) {
            count = merge_all(tokenizer, tokens, count, best);
        }
    }
    return count;
}

/* Writes the tokens of a part of the text that has no added token. Returns their count. */
static size_t encode_part(const struct tokenizer *tokenizer, const uint8_t *text, size_t size,
                          uint32_t *tokens)
{
    size_t count = 0;
    while (size > 0) {
        const size_t length = tokenizer->has_words ? word_split_next(text, size) : size;
        for (size_t i = 0; i < length; i++) {
            tokens[count + i] = tokenizer->bytes[text[i]];
        }
        count += tokenizer->table_size > 0 ? merge_word(tokenizer, tokens + count, length) : length;
        text += length;
        size -= length;
    }
    return count;
}

/* ---------------------------------------------------------------- the whole text */

/* Returns the longest added token that the text begins with, or TOKENIZER_NONE. */
static uint32_t added_at(const struct tokenizer *tokenizer, const uint8_t *text, size_t size)
{
    uint32_t found = TOKENIZER_NONE;
    size_t longest = 0;
    for (size_t i = 0; i < tokenizer->added_count; i++) {
        size_t length = 0;
        const uint8_t *own = tokenizer_text(tokenizer, tokenizer->added[i], &length);
        if (length > longest && length <= size && own[0] == text[0] &&
            memcmp(own, text, length) == 0) {
            longest = length;
            found = tokenizer->added[i];
        }
    }
    return found;
}

uint32_t *tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                           size_t *ret_count)
{
    const uint8_t *bytes = (const uint8_t *)text;
    uint32_t *tokens = malloc((size + 1) * sizeof *tokens);
    size_t count = 0;
    size_t first = 0;
    size_t at = 0;
    while (tokens != NULL && at < size) {
        const uint32_t added = added_at(tokenizer, bytes + at, size - at);
        if (added == TOKENIZER_NONE) {
            at++;
            continue;
        }
        count += encode_part(tokenizer, bytes + first, at - first, tokens + count);
        tokens[count++] = added;
        at += tokenizer->tokens[added].size;
        first = at;
    }
    if (tokens != NULL) {
        count += encode_part(tokenizer, bytes + first, size - first, tokens + count);
    }
    *ret_count = count;
    return tokens;
}
