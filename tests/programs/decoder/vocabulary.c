#include "tests/programs/decoder/vocabulary.h"

#include "formats/generate/word_split.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 256, NO_TOKEN = UINT16_MAX };

/* A text as tokens, with NO_TOKEN between words, over which no pair reaches. */
struct line {
    uint16_t *tokens;
    size_t count;
};

static struct line line_of(const uint8_t *text, size_t size)
{
    struct line line = {malloc((2 * size + 1) * sizeof(uint16_t)), 0};
    if (line.tokens == NULL) {
        abort();
    }
    while (size > 0) {
        const size_t length = word_split_next(text, size);
        for (size_t i = 0; i < length; i++) {
            line.tokens[line.count++] = text[i];
        }
        line.tokens[line.count++] = NO_TOKEN;
        text += length;
        size -= length;
    }
    return line;
}

static void merge(struct line *line, const struct vocabulary_token *token, uint16_t number)
{
    size_t to = 0;
    for (size_t i = 0; i < line->count; i++) {
        const bool is_pair = i + 1 < line->count && line->tokens[i] == token->left &&
                             line->tokens[i + 1] == token->right;
        line->tokens[to++] = is_pair ? number : line->tokens[i];
        i += is_pair;
    }
    line->count = to;
}

/* Finds the most frequent pair, of which the lower one wins a tie. */
static void find_pair(const struct line *line, struct vocabulary_token *token)
{
    static uint32_t counts[VOCABULARY_TOKENS][VOCABULARY_TOKENS];
    memset(counts, 0, sizeof counts);
    uint32_t most = 0;
    for (size_t i = 0; i + 1 < line->count; i++) {
        if (line->tokens[i] != NO_TOKEN && line->tokens[i + 1] != NO_TOKEN) {
            counts[line->tokens[i]][line->tokens[i + 1]]++;
        }
    }
    for (uint16_t left = 0; left < VOCABULARY_TOKENS; left++) {
        for (uint16_t right = 0; right < VOCABULARY_TOKENS; right++) {
            if (counts[left][right] > most) {
                most = counts[left][right];
                token->left = left;
                token->right = right;
            }
        }
    }
}

static void close_line(struct line *line, size_t *ret_count)
{
    size_t to = 0;
    for (size_t i = 0; i < line->count; i++) {
        if (line->tokens[i] != NO_TOKEN) {
            line->tokens[to++] = line->tokens[i];
        }
    }
    *ret_count = to;
}

uint16_t *vocabulary_learn(struct vocabulary *vocabulary, const uint8_t *text, size_t size,
                           size_t *ret_count)
{
    struct line line = line_of(text, size);
    for (uint16_t i = 0; i < BYTES; i++) {
        vocabulary->tokens[i] = (struct vocabulary_token){.bytes = {(uint8_t)i}, .size = 1};
    }
    for (uint16_t i = BYTES; i < VOCABULARY_END; i++) {
        struct vocabulary_token *token = &vocabulary->tokens[i];
        find_pair(&line, token);
        const struct vocabulary_token *left = &vocabulary->tokens[token->left];
        const struct vocabulary_token *right = &vocabulary->tokens[token->right];
        if (left->size + right->size > VOCABULARY_TOKEN_BYTES) {
            abort(); /* the texts have no such words */
        }
        memcpy(token->bytes, left->bytes, left->size);
        memcpy(token->bytes + left->size, right->bytes, right->size);
        token->size = left->size + right->size;
        merge(&line, token, i);
    }
    close_line(&line, ret_count);
    return line.tokens;
}

uint16_t *vocabulary_encode(const struct vocabulary *vocabulary, const uint8_t *text, size_t size,
                            size_t *ret_count)
{
    struct line line = line_of(text, size);
    for (uint16_t i = BYTES; i < VOCABULARY_END; i++) {
        merge(&line, &vocabulary->tokens[i], i);
    }
    close_line(&line, ret_count);
    return line.tokens;
}

/* ---------------------------------------------------------------- tokenizer.json */

/* Writes bytes as the characters that stand for them, one for each byte (GPT-2's table). */
static void put_bytes(const struct vocabulary_token *token, FILE *file)
{
    for (size_t i = 0; i < token->size; i++) {
        const unsigned byte = token->bytes[i];
        unsigned shift = 0;
        const bool is_shown = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
        for (unsigned other = 0; !is_shown && other < byte; other++) {
            shift += !((other >= '!' && other <= '~') || (other >= 0xA1 && other != 0xAD));
        }
        const unsigned character = is_shown ? byte : 256 + shift;
        if (character == '"' || character == '\\') {
            (void)fprintf(file, "\\%c", (int)character);
        } else if (character < 0x80) {
            (void)fputc((int)character, file);
        } else {
            (void)fprintf(file, "\\u%04x", character);
        }
    }
}

bool vocabulary_write(const struct vocabulary *vocabulary, FILE *file)
{
    (void)fputs("{\"version\": \"1.0\", \"truncation\": null, \"padding\": null,\n"
                "\"added_tokens\": [{\"id\": 511, \"content\": \"<|endoftext|>\", "
                "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                "\"normalized\": false, \"special\": true}],\n"
                "\"normalizer\": null,\n"
                "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                "\"trim_offsets\": true, \"use_regex\": true},\n"
                "\"post_processor\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                "\"trim_offsets\": false, \"use_regex\": true},\n"
                "\"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                "\"trim_offsets\": true, \"use_regex\": true},\n"
                "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
                "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, "
                "\"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false,\n"
                "\"vocab\": {",
                file);
    for (size_t i = 0; i < VOCABULARY_END; i++) {
        (void)fputc('"', file);
        put_bytes(&vocabulary->tokens[i], file);
        (void)fprintf(file, "\": %zu,%s", i, i % 8 == 7 ? "\n" : " ");
    }
    (void)fputs("\"<|endoftext|>\": 511},\n\"merges\": [", file);
    for (size_t i = BYTES; i < VOCABULARY_END; i++) {
        (void)fputc('"', file);
        put_bytes(&vocabulary->tokens[vocabulary->tokens[i].left], file);
        (void)fputc(' ', file);
        put_bytes(&vocabulary->tokens[vocabulary->tokens[i].right], file);
        (void)fprintf(file, "\"%s%s", i + 1 < VOCABULARY_END ? "," : "]}}\n",
                      i + 1 == VOCABULARY_END ? ""
                      : i % 8 == 7            ? "\n"
                                              : " ");
    }
    return fflush(file) == 0 && !ferror(file);
}
