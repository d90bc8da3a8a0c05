/* A tokenizer.json is read here. The file is a stranger's: every number and name in it may lie. */
#include "formats/generate/tokenizer_internal.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "formats/generate/word_split.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_SIZE = 100, FIRST_MOVED = 0x100, MOVED_MOST = 256, GROWTH = 64 };

struct reading {
    struct tokenizer *tokenizer;
    const json_t *vocabulary;
    json_int_t numbers; /* a token's number is below */
    struct problem *problem;
};

/* A text of the file, as it may be shown. */
struct shown {
    char text[SHOWN_SIZE];
};

static struct shown show(const char *text)
{
    struct shown shown;
    text_printable(text, strlen(text), shown.text, sizeof shown.text);
    return shown;
}

static bool out_of_memory(struct reading *reading)
{
    problem_set(reading->problem, "out of memory");
    return false;
}

/* ---------------------------------------------------------------- bytes as characters */

static bool is_shown_byte(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD && byte <= 0xFF);
}

/* Returns the byte for which a character stands, or -1. Bytes that have no glyph are moved to the
 * characters from 256 on, in their order. */
static int byte_of(uint32_t character)
{
    if (character < FIRST_MOVED) {
        return is_shown_byte(character) ? (int)character : -1;
    }
    uint32_t moved = character - FIRST_MOVED;
    for (unsigned byte = 0; byte < MOVED_MOST; byte++) {
        if (!is_shown_byte(byte) && moved-- == 0) {
            return (int)byte;
        }
    }
    return -1;
}

/* Writes the bytes of a text of the vocabulary, no more than the text has. Returns false when one
 * of its characters stands for none. */
static bool write_bytes(const char *text, size_t size, uint8_t *ret_bytes, size_t *ret_size)
{
    const uint8_t *at = (const uint8_t *)text;
    *ret_size = 0;
    while (size > 0) {
        uint32_t character = 0;
        const size_t length = word_split_character(at, size, &character);
        const int byte = byte_of(character);
        if (byte < 0) {
            return false;
        }
        ret_bytes[(*ret_size)++] = (uint8_t)byte;
        at += length;
        size -= length;
    }
    return true;
}

/* ---------------------------------------------------------------- tokens */

/* Makes room for tokens with numbers below `size`. */
static bool grow_tokens(struct reading *reading, uint32_t size)
{
    struct tokenizer *tokenizer = reading->tokenizer;
    if (size <= tokenizer->size) {
        return true;
    }
    struct tokenizer_token *tokens = realloc(tokenizer->tokens, size * sizeof *tokens);
    if (tokens == NULL) {
        return out_of_memory(reading);
    }
    memset(tokens + tokenizer->size, 0, (size - tokenizer->size) * sizeof *tokens);
    tokenizer->tokens = tokens;
    tokenizer->size = size;
    return true;
}

static bool grow_texts(struct reading *reading, size_t more)
{
    struct tokenizer *tokenizer = reading->tokenizer;
    if (tokenizer->text_bytes + more > TOKENIZER_TEXT_BYTES) {
        problem_set(reading->problem, "its tokens have more than %d bytes together",
                    TOKENIZER_TEXT_BYTES);
        return false;
    }
    if (tokenizer->text_bytes + more <= tokenizer->text_capacity) {
        return true;
    }
    const size_t capacity = 2 * (tokenizer->text_bytes + more) + GROWTH;
    uint8_t *texts = realloc(tokenizer->texts, capacity);
    if (texts == NULL) {
        return out_of_memory(reading);
    }
    tokenizer->texts = texts;
    tokenizer->text_capacity = capacity;
    return true;
}

/* Reads the number of a token. */
static bool read_number(struct reading *reading, const char *text, const json_t *value,
                        uint32_t *ret_number)
{
    const json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    if (number < 0 || number >= reading->numbers) {
        problem_set(reading->problem, "the token \"%s\" has no number from 0 to %lld",
                    show(text).text, (long long)reading->numbers - 1);
        return false;
    }
    *ret_number = (uint32_t)number;
    return true;
}

/* Reads one entry of the vocabulary. A text that stands for no bytes may be that of an added token,
 * which comes later. */
static bool read_token(struct reading *reading, const char *text, const json_t *value)
{
    struct tokenizer *tokenizer = reading->tokenizer;
    const size_t length = strlen(text);
    uint32_t number = 0;
    if (length == 0 || length > TOKENIZER_TOKEN_BYTES) {
        problem_set(reading->problem, "a token has %zu bytes; 1 to %d are read", length,
                    TOKENIZER_TOKEN_BYTES);
        return false;
    }
    if (!read_number(reading, text, value, &number) || !grow_tokens(reading, number + 1) ||
        !grow_texts(reading, length)) {
        return false;
    }
    struct tokenizer_token *token = &tokenizer->tokens[number];
    if (token->is_there) {
        problem_set(reading->problem, "the token \"%s\" has the number of another, %u",
                    show(text).text, number);
        return false;
    }
    token->is_there = true;
    token->at = tokenizer->text_bytes;
    if (write_bytes(text, length, tokenizer->texts + token->at, &token->size)) {
        tokenizer->text_bytes += token->size;
        if (token->size == 1) {
            tokenizer->bytes[tokenizer->texts[token->at]] = number;
        }
    } else {
        token->size = 0;
    }
    return true;
}

static bool read_vocabulary(struct reading *reading)
{
    const char *text = NULL;
    json_t *value = NULL;
    memset(reading->tokenizer->bytes, 0xFF, sizeof reading->tokenizer->bytes);
    if (!json_is_object(reading->vocabulary)) {
        problem_set(reading->problem, "its model has no \"vocab\"");
        return false;
    }
    json_object_foreach((json_t *)reading->vocabulary, text, value)
    {
        if (!read_token(reading, text, value)) {
            return false;
        }
    }
    for (unsigned byte = 0; byte < MOVED_MOST; byte++) {
        if (reading->tokenizer->bytes[byte] == TOKENIZER_NONE) {
            problem_set(reading->problem,
                        "its vocabulary has no token for the byte %u, so that it is not byte-level",
                        byte);
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- added tokens */

static bool has_flag(const json_t *token, const char *flag)
{
    return json_is_true(json_object_get(token, flag));
}

static bool read_added_token(struct reading *reading, const json_t *value)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip"};
    struct tokenizer *tokenizer = reading->tokenizer;
    const char *text = json_string_value(json_object_get(value, "content"));
    const size_t length = text != NULL ? strlen(text) : 0;
    uint32_t number = 0;
    if (length == 0 || length > TOKENIZER_TOKEN_BYTES) {
        problem_set(reading->problem, "an added token has no \"content\" of 1 to %d bytes",
                    TOKENIZER_TOKEN_BYTES);
        return false;
    }
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (has_flag(value, flags[i])) {
            problem_set(reading->problem, "the added token \"%s\" is \"%s\", which is not known",
                        show(text).text, flags[i]);
            return false;
        }
    }
    if (!read_number(reading, text, json_object_get(value, "id"), &number) ||
        !grow_tokens(reading, number + 1) || !grow_texts(reading, length)) {
        return false;
    }
    const json_t *other = json_object_get(reading->vocabulary, text);
    struct tokenizer_token *token = &tokenizer->tokens[number];
    if (token->is_there && json_integer_value(other) != (json_int_t)number) {
        problem_set(reading->problem, "the added token \"%s\" has the number of another, %u",
                    show(text).text, number);
        return false;
    }
    *token =
        (struct tokenizer_token){tokenizer->text_bytes, length, true, has_flag(value, "special")};
    memcpy(tokenizer->texts + token->at, text, length);
    tokenizer->text_bytes += length;
    tokenizer->added[tokenizer->added_count++] = number;
    return true;
}

static bool read_added(struct reading *reading, const json_t *list)
{
    const size_t count = json_array_size(list);
    if (count > TOKENIZER_ADDED) {
        problem_set(reading->problem, "it has %zu added tokens; at most %d are read", count,
                    TOKENIZER_ADDED);
        return false;
    }
    reading->tokenizer->added = calloc(count + 1, sizeof(uint32_t));
    if (reading->tokenizer->added == NULL) {
        return out_of_memory(reading);
    }
    for (size_t i = 0; i < count; i++) {
        if (!read_added_token(reading, json_array_get(list, i))) {
            return false;
        }
    }
    for (uint32_t i = 0; i < reading->tokenizer->size; i++) {
        if (reading->tokenizer->tokens[i].is_there && reading->tokenizer->tokens[i].size == 0) {
            problem_set(reading->problem, "the token %u stands for no bytes", i);
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- merges */

/* Returns the number of a text of the vocabulary, or TOKENIZER_NONE. */
static uint32_t number_of(const struct reading *reading, const char *text)
{
    const json_t *value = json_object_get(reading->vocabulary, text);
    return value != NULL ? (uint32_t)json_integer_value(value) : TOKENIZER_NONE;
}

static bool add_merge(struct reading *reading, const char *left, const char *right, uint32_t rank)
{
    char both[2 * TOKENIZER_TOKEN_BYTES + 1];
    (void)snprintf(both, sizeof both, "%s%s", left, right);
    const struct tokenizer_merge merge = {number_of(reading, left), number_of(reading, right),
                                          number_of(reading, both), rank};
    if (merge.left == TOKENIZER_NONE || merge.right == TOKENIZER_NONE ||
        merge.token == TOKENIZER_NONE) {
        problem_set(reading->problem, "its merge %u is of tokens that its vocabulary lacks: \"%s\"",
                    rank, show(both).text);
        return false;
    }
    struct tokenizer_merge *place = tokenizer_place(reading->tokenizer, merge.left, merge.right);
    if (place->rank != TOKENIZER_NONE) {
        problem_set(reading->problem, "its merge %u is there twice: \"%s\"", rank, show(both).text);
        return false;
    }
    *place = merge;
    return true;
}

/* A merge is a text with a blank between both, or a list of two texts. */
static bool read_merge(struct reading *reading, const json_t *value, uint32_t rank)
{
    char left[TOKENIZER_TOKEN_BYTES + 1];
    const char *text = json_string_value(json_is_array(value) ? json_array_get(value, 0) : value);
    const char *right = json_string_value(json_array_get(value, 1));
    size_t length = text != NULL ? strlen(text) : 0;
    if (text != NULL && json_is_string(value)) {
        length = strcspn(text, " ");
        right = text[length] == ' ' ? text + length + 1 : NULL;
    }
    if (text == NULL || right == NULL || length == 0 || length > TOKENIZER_TOKEN_BYTES ||
        strlen(right) > TOKENIZER_TOKEN_BYTES ||
        (json_is_array(value) && json_array_size(value) != 2)) {
        problem_set(reading->problem, "its merge %u is no pair of tokens", rank);
        return false;
    }
    memcpy(left, text, length);
    left[length] = '\0';
    return add_merge(reading, left, right, rank);
}

static bool read_merges(struct reading *reading, const json_t *list)
{
    struct tokenizer *tokenizer = reading->tokenizer;
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count > TOKENIZER_TOKENS) {
        problem_set(reading->problem, "its model has no \"merges\" of at most %d pairs",
                    TOKENIZER_TOKENS);
        return false;
    }
    size_t size = GROWTH;
    while (size < 2 * count) {
        size *= 2;
    }
    tokenizer->table = malloc(size * sizeof *tokenizer->table);
    if (tokenizer->table == NULL) {
        return out_of_memory(reading);
    }
    tokenizer->table_size = size;
    memset(tokenizer->table, 0xFF, size * sizeof *tokenizer->table);
    for (size_t i = 0; i < count; i++) {
        if (!read_merge(reading, json_array_get(list, i), (uint32_t)i)) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- what is not known */

static const char *type_of(const json_t *value)
{
    const char *type = json_string_value(json_object_get(value, "type"));
    return type != NULL ? type : "?";
}

/* Refuses a part that does anything. */
static bool is_absent(struct reading *reading, const json_t *value, const char *part)
{
    const char *type = json_is_object(value) ? type_of(value) : json_string_value(value);
    if (value == NULL || json_is_null(value) || json_is_false(value) ||
        (type != NULL && type[0] == '\0') ||
        (json_is_number(value) && json_number_value(value) == 0)) {
        return true;
    }
    problem_set(reading->problem, "its %s%s%s%s is not known here", part, type != NULL ? " \"" : "",
                type != NULL ? show(type).text : "", type != NULL ? "\"" : "");
    return false;
}

static bool is_byte_level(struct reading *reading, const json_t *value, const char *part)
{
    if (json_is_object(value) && strcmp(type_of(value), "ByteLevel") == 0) {
        return true;
    }
    problem_set(reading->problem, "its %s is %s%s%s; only ByteLevel is known here", part,
                json_is_object(value) ? "\"" : "",
                json_is_object(value) ? show(type_of(value)).text : "missing",
                json_is_object(value) ? "\"" : "");
    return false;
}

static bool check_model(struct reading *reading, const json_t *model)
{
    static const char *const absent[] = {"dropout", "continuing_subword_prefix",
                                         "end_of_word_suffix", "byte_fallback", "ignore_merges"};
    if (!json_is_object(model) || strcmp(type_of(model), "BPE") != 0) {
        problem_set(reading->problem, "its model is \"%s\"; only BPE is known here",
                    show(type_of(model)).text);
        return false;
    }
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        if (!is_absent(reading, json_object_get(model, absent[i]), absent[i])) {
            return false;
        }
    }
    return true;
}

static bool check_parts(struct reading *reading, const json_t *root)
{
    const json_t *before = json_object_get(root, "pre_tokenizer");
    const json_t *after = json_object_get(root, "post_processor");
    const json_t *words = json_object_get(before, "use_regex");
    reading->tokenizer->has_words = words == NULL || json_is_true(words);
    return is_absent(reading, json_object_get(root, "truncation"), "truncation") &&
           is_absent(reading, json_object_get(root, "padding"), "padding") &&
           is_absent(reading, json_object_get(root, "normalizer"), "normalizer") &&
           is_byte_level(reading, before, "pre_tokenizer") &&
           is_absent(reading, json_object_get(before, "add_prefix_space"), "add_prefix_space") &&
           (after == NULL || json_is_null(after) ||
            is_byte_level(reading, after, "post_processor")) &&
           is_byte_level(reading, json_object_get(root, "decoder"), "decoder") &&
           check_model(reading, json_object_get(root, "model"));
}

static void unload(json_t **root)
{
    json_decref(*root);
}

static bool read_all(struct reading *reading, const void *bytes, size_t size)
{
    json_error_t error;
    if (size > TOKENIZER_BYTES) {
        problem_set(reading->problem, "it has %zu bytes; at most %d are read", size,
                    TOKENIZER_BYTES);
        return false;
    }
    CLEANUP(unload) json_t *root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(root)) {
        problem_set(reading->problem, "it is no JSON object: line %d: %s",
                    root == NULL ? error.line : 1,
                    root == NULL ? show(error.text).text : "another value");
        return false;
    }
    const json_t *model = json_object_get(root, "model");
    const json_t *added = json_object_get(root, "added_tokens");
    reading->vocabulary = json_object_get(model, "vocab");
    const size_t tokens = json_object_size(reading->vocabulary) + json_array_size(added);
    reading->numbers = tokens < TOKENIZER_TOKENS / 2 ? (json_int_t)(2 * tokens) : TOKENIZER_TOKENS;
    return check_parts(reading, root) && read_vocabulary(reading) && read_added(reading, added) &&
           read_merges(reading, json_object_get(model, "merges"));
}

struct tokenizer *tokenizer_read(const void *bytes, size_t size, struct problem *ret_problem)
{
    struct tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    struct reading reading = {.tokenizer = tokenizer, .problem = ret_problem};
    if (tokenizer == NULL) {
        problem_set(ret_problem, "out of memory");
        return NULL;
    }
    if (!read_all(&reading, bytes, size)) {
        tokenizer_destroy(&tokenizer);
    }
    return tokenizer;
}
