/* formats/generate/tokenizer_internal.h is the inside of a tokenizer, which tokenizer_read.c fills
 * and tokenizer.c uses. */
#ifndef BOURSE_FORMATS_GENERATE_TOKENIZER_INTERNAL_H
#define BOURSE_FORMATS_GENERATE_TOKENIZER_INTERNAL_H

#include "formats/generate/tokenizer.h"

#define TOKENIZER_NONE UINT32_MAX

struct tokenizer_token {
    size_t at, size; /* of its text in `texts` */
    bool is_there, is_special;
};

/* Two neighbours become one token. */
struct tokenizer_merge {
    uint32_t left, right, token, rank; /* rank TOKENIZER_NONE: an empty place */
};

struct tokenizer {
    struct tokenizer_token *tokens; /* by number */
    uint32_t size;
    uint8_t *texts;
    size_t text_bytes, text_capacity;
    uint32_t bytes[256];           /* the token of each byte */
    struct tokenizer_merge *table; /* open addressing by (left, right) */
    size_t table_size;             /* a power of 2, or 0 */
    uint32_t *added;               /* added tokens */
    size_t added_count;
    bool has_words; /* the text is cut into words */
};

/* Returns the merge's place in the table, which may be empty. The table has an empty place. */
struct tokenizer_merge *tokenizer_place(const struct tokenizer *tokenizer, uint32_t left,
                                        uint32_t right);

#endif
