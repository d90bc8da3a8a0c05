/* tests/programs/decoder/vocabulary.h learns the merges of a byte-level tokenizer from a text, and
 * writes them as a tokenizer.json.
 *
 * Tokens 0 to 255 are the bytes. Then come the merges, the most frequent pair of neighbours first,
 * and last the one special token, <|endoftext|>. */
#ifndef BOURSE_TESTS_PROGRAMS_DECODER_VOCABULARY_H
#define BOURSE_TESTS_PROGRAMS_DECODER_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    VOCABULARY_TOKENS = 512,
    VOCABULARY_END = VOCABULARY_TOKENS - 1, /* the special token */
    VOCABULARY_TOKEN_BYTES = 64,
};

struct vocabulary_token {
    uint8_t bytes[VOCABULARY_TOKEN_BYTES];
    size_t size;
    uint16_t left, right; /* of a merge */
};

struct vocabulary {
    struct vocabulary_token tokens[VOCABULARY_TOKENS];
};

/* Learns from the text. Returns the text's tokens, *ret_count of them, which the caller frees. */
uint16_t *vocabulary_learn(struct vocabulary *vocabulary, const uint8_t *text, size_t size,
                           size_t *ret_count);

/* Writes the tokens of another text by the same merges. The caller frees them. */
uint16_t *vocabulary_encode(const struct vocabulary *vocabulary, const uint8_t *text, size_t size,
                            size_t *ret_count);

/* Writes tokenizer.json. Returns false when the file takes no more. */
bool vocabulary_write(const struct vocabulary *vocabulary, FILE *file);

#endif
