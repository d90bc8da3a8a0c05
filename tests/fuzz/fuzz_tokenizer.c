/* The target reads any bytes as a tokenizer.json, and cuts the same bytes into tokens by what was
 * read. It reads the words of a run and a config.json from them, too. */
#include "formats/generate/generate_words.h"
#include "formats/generate/model_config.h"
#include "formats/generate/tokenizer.h"
#include "formats/generate/word_split.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 256, WORDS_MOST = 64, VOCABULARY_MOST = 6000 };

/* Stands for the tokens of the 256 bytes, so that inputs are short. */
#define BYTES "\"*\": 0"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct tokenizer *tokenizer, const uint8_t *text, size_t size)
{
    size_t count = 0;
    uint32_t *tokens = tokenizer_encode(tokenizer, (const char *)text, size, &count);
    assert(tokens != NULL && count <= size);
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        assert(tokens[i] < tokenizer_size(tokenizer));
        assert(tokenizer_text(tokenizer, tokens[i], &length) != NULL && length > 0);
    }
    free(tokens);
}

static bool is_shown(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

static size_t write_bytes(char *to)
{
    size_t length = 0;
    unsigned moved = 256;
    for (unsigned byte = 0; byte < 256; byte++) {
        const unsigned character = is_shown(byte) ? byte : moved++;
        length += (size_t)snprintf(to + length, VOCABULARY_MOST - length, "%s\"\\u%04x\":%u",
                                   byte > 0 ? "," : "", character, byte);
    }
    assert(length < VOCABULARY_MOST);
    return length;
}

/* Copies the input, with the tokens of bytes in their place. The caller frees the text. */
static uint8_t *expand(const uint8_t *data, size_t size, size_t *ret_size)
{
    const size_t mark = strlen(BYTES);
    const uint8_t *place = memmem(data, size, BYTES, mark);
    uint8_t *text = malloc(size + VOCABULARY_MOST);
    assert(text != NULL);
    if (place == NULL) {
        memcpy(text, data, size);
        *ret_size = size;
        return text;
    }
    const size_t before = (size_t)(place - data);
    memcpy(text, data, before);
    const size_t length = write_bytes((char *)text + before);
    memcpy(text + before + length, place + mark, size - before - mark);
    *ret_size = size - mark + length;
    return text;
}

static void check_split(const uint8_t *text, size_t size)
{
    while (size > 0) {
        const size_t length = word_split_next(text, size);
        assert(length > 0 && length <= size);
        text += length;
        size -= length;
    }
}

/* Each line of the bytes is a word. */
static void check_words(const uint8_t *data, size_t size)
{
    const char *words[WORDS_MOST];
    size_t count = 0;
    struct generate_words read;
    struct problem problem;
    char *text = calloc(1, size + 1);
    assert(text != NULL);
    memcpy(text, data, size);
    for (char *next = text; count < WORDS_MOST && next != NULL;) {
        words[count++] = strsep(&next, "\n");
    }
    if (generate_words_read(words, count, false, &read, &problem)) {
        assert(read.prompt_count > 0 && read.prompt_count <= GENERATE_PROMPTS_MOST);
        assert(read.file == NULL || read.prompt_count == 1);
        assert(read.rows > 0 && read.rows <= GENERATE_ROWS_MOST);
        assert(read.tokens_most > 0 && read.context > 0);
        assert(read.stop_count <= GENERATE_STOPS_MOST);
        assert(read.temperature_milli <= GENERATE_TEMPERATURE_MOST);
    }
    free(text);
}

/* The lines of a file of prompts are parts of the file, in their order, and have no newline. */
static void check_lines(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *line = text;
    const char *before = text;
    const char *end = text + size;
    size_t length = 0;
    unsigned number = 0;
    while (generate_words_line(&text, &size, &line, &length, &number)) {
        assert(line >= before && length > 0 && line + length <= end);
        assert(memchr(line, '\n', length) == NULL);
        assert(number > 0 && text + size == end);
        before = line + length;
    }
    assert(size == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct problem problem;
    struct model_config config;
    const size_t most = size < TEXT_MOST ? size : TEXT_MOST;
    size_t length = 0;
    uint8_t *text = expand(data, size, &length);
    struct tokenizer *tokenizer = tokenizer_read(text, length, &problem);
    free(text);
    if (tokenizer != NULL) {
        check_text(tokenizer, data, most);
    }
    tokenizer_destroy(&tokenizer);
    if (model_config_read(data, size, &config, &problem)) {
        assert(config.end_count <= GENERATE_STOPS_MOST);
    }
    check_split(data, most);
    check_words(data, size);
    check_lines(data, size);
    return 0;
}
