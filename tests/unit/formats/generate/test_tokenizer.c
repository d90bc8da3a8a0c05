/* The tests read small tokenizers and cut texts by them: into words, into tokens, and back. What is
 * not known of a tokenizer.json is refused by its name. */
#include "formats/generate/model_config.h"
#include "formats/generate/tokenizer.h"
#include "formats/generate/unicode_class.h"
#include "formats/generate/word_split.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 1 << 16 };

static struct problem problem;

/* ---------------------------------------------------------------- a tokenizer.json */

#define PARTS                                                                                      \
    "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}, "                  \
    "\"decoder\": {\"type\": \"ByteLevel\"}, "
#define MODEL "\"model\": {\"type\": \"BPE\", \"vocab\": {%s}, \"merges\": [%s]}"
#define PLAIN "{" PARTS MODEL "}"

static bool is_shown(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

/* Writes the 256 bytes as tokens 0 to 255, as GPT-2's table has them. */
static const char *bytes_vocabulary(void)
{
    static char text[8192];
    size_t length = 0;
    unsigned moved = 256;
    for (unsigned byte = 0; byte < 256; byte++) {
        const unsigned character = is_shown(byte) ? byte : moved++;
        length += (size_t)snprintf(text + length, sizeof text - length, "%s\"\\u%04x\": %u",
                                   byte > 0 ? ", " : "", character, byte);
    }
    return text;
}

/* Fills in the vocabulary, of bytes and `more`, and the merges. */
static struct tokenizer *make(const char *format, const char *more, const char *merges)
{
    static char vocabulary[TEXT_SIZE / 2];
    static char text[TEXT_SIZE];
    (void)snprintf(vocabulary, sizeof vocabulary, "%s%s", bytes_vocabulary(), more);
    (void)snprintf(text, sizeof text, format, vocabulary, merges);
    problem.text[0] = '\0';
    return tokenizer_read(text, strlen(text), &problem);
}

#define MORE ", \"ab\": 256, \"abc\": 257, \"\\u0120ab\": 258, \"bc\": 259"
#define MERGES "\"b c\", \"a b\", [\"\\u0120\", \"ab\"], \"ab c\""
#define ADDED                                                                                      \
    "{\"added_tokens\": [{\"id\": 260, \"content\": \"<e>\", \"special\": true}, {\"id\": 261, "   \
    "\"content\": \"<e>x\"}], " PARTS MODEL "}"

static void check_tokens(const struct tokenizer *tokenizer, const char *text, const char *wanted)
{
    char said[256] = "";
    size_t count = 0;
    uint32_t *tokens = tokenizer_encode(tokenizer, text, strlen(text), &count);
    ck_assert_ptr_nonnull(tokens);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(said + strlen(said), sizeof said - strlen(said), "%s%u", i > 0 ? " " : "",
                       tokens[i]);
    }
    ck_assert_str_eq(said, wanted);
    free(tokens);
}

/* The lowest rank is merged first, wherever it stands: "bc" before "ab". */
START_TEST(merges_are_carried_out_by_their_rank)
{
    struct tokenizer *tokenizer = make(PLAIN, MORE, MERGES);
    ck_assert_msg(tokenizer != NULL, "%s", problem.text);
    ck_assert_uint_eq(tokenizer_size(tokenizer), 260);
    check_tokens(tokenizer, "", "");
    check_tokens(tokenizer, "ab", "256");
    check_tokens(tokenizer, "abc", "97 259");
    check_tokens(tokenizer, "ab ab", "256 258");
    check_tokens(tokenizer, "abab", "256 256");
    check_tokens(tokenizer, "a\nb\n", "97 10 98 10");
    check_tokens(tokenizer, "\xC3\xA9\xFF", "195 169 255");
    tokenizer_destroy(&tokenizer);
}
END_TEST

/* The longer one of two added tokens is taken. Their texts never meet a merge. */
START_TEST(added_tokens_stand_for_themselves)
{
    struct tokenizer *tokenizer = make(ADDED, MORE, MERGES);
    size_t size = 0;
    ck_assert_msg(tokenizer != NULL, "%s", problem.text);
    ck_assert_uint_eq(tokenizer_size(tokenizer), 262);
    check_tokens(tokenizer, "ab<e>ab<e>xab<", "256 260 256 261 256 60");
    ck_assert(tokenizer_is_special(tokenizer, 260));
    ck_assert(!tokenizer_is_special(tokenizer, 261));
    ck_assert(!tokenizer_is_special(tokenizer, 1000));
    ck_assert_mem_eq(tokenizer_text(tokenizer, 258, &size), " ab", 3);
    ck_assert_uint_eq(size, 3);
    ck_assert_mem_eq(tokenizer_text(tokenizer, 261, &size), "<e>x", 4);
    ck_assert_ptr_null(tokenizer_text(tokenizer, 262, &size));
    ck_assert_uint_eq(size, 0);
    tokenizer_destroy(&tokenizer);
}
END_TEST

START_TEST(what_is_not_known_of_a_tokenizer_is_refused_by_its_name)
{
#define WITH(extra) "{" extra PARTS MODEL "}"
#define LEVEL "{\"type\": \"ByteLevel\"}"
    static const struct {
        const char *format, *more, *merges, *said;
    } wrong[] = {
        {"[%s%s", "", "", "it is no JSON object"},
        {"[1] %.0s%.0s", "", "", "it is no JSON object"},
        {WITH("\"normalizer\": {\"type\": \"NFC\"}, "), "", "", "normalizer \"NFC\" is not known"},
        {WITH("\"truncation\": {\"max_length\": 5}, "), "", "", "truncation"},
        {WITH("\"padding\": {\"strategy\": \"BatchLongest\"}, "), "", "", "padding"},
        {WITH("\"post_processor\": {\"type\": \"TemplateProcessing\"}, "), "", "",
         "post_processor is \"TemplateProcessing\""},
        {"{\"decoder\": " LEVEL ", " MODEL "}", "", "", "pre_tokenizer is missing"},
        {"{\"pre_tokenizer\": {\"type\": \"Sequence\"}, \"decoder\": " LEVEL ", " MODEL "}", "", "",
         "pre_tokenizer is \"Sequence\""},
        {"{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true}, "
         "\"decoder\": " LEVEL ", " MODEL "}",
         "", "", "add_prefix_space"},
        {"{\"pre_tokenizer\": " LEVEL ", \"decoder\": {\"type\": \"WordPiece\"}, " MODEL "}", "",
         "", "decoder is \"WordPiece\""},
        {"{" PARTS "\"model\": {\"type\": \"Unigram\", \"a\": \"%.0s%.0s\"}}", "", "",
         "model is \"Unigram\""},
        {"{" PARTS "\"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"a\": \"%.0s%.0s\"}}",
         "", "", "byte_fallback"},
        {"{" PARTS "\"model\": {\"type\": \"BPE\", \"dropout\": 0.1, \"a\": \"%.0s%.0s\"}}", "", "",
         "dropout"},
        {"{" PARTS "\"model\": {\"type\": \"BPE\", \"a\": \"%.0s%.0s\"}}", "", "", "no \"vocab\""},
        {"{" PARTS "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"a\": \"%.0s%.0s\"}}",
         "", "", "no token for the byte 0"},
        {"{" PARTS "\"model\": {\"type\": \"BPE\", \"vocab\": {%s}, \"a\": \"%.0s\"}}", "", "",
         "no \"merges\""},
        {PLAIN, ", \"ab\": -1", "", "\"ab\" has no number"},
        {PLAIN, ", \"ab\": 1048576", "", "\"ab\" has no number"},
        {PLAIN, ", \"ab\": 97", "", "has the number of another, 97"},
        {PLAIN, ", \"\": 300", "", "a token has 0 bytes"},
        {PLAIN, ", \"\\u4e00\": 300", "", "the token 300 stands for no bytes"},
        {PLAIN, "", "\"a b\"", "its merge 0 is of tokens that its vocabulary lacks"},
        {PLAIN, ", \"ab\": 256", "\"a b\", \"a b\"", "its merge 1 is there twice"},
        {PLAIN, "", "\"ab\"", "its merge 0 is no pair"},
        {PLAIN, "", "[\"a\"]", "its merge 0 is no pair"},
        {PLAIN, "", "7", "its merge 0 is no pair"},
        {WITH("\"added_tokens\": [{\"id\": 300}], "), "", "", "has no \"content\""},
        {WITH("\"added_tokens\": [{\"id\": 97, \"content\": \"<e>\"}], "), "", "",
         "has the number of another, 97"},
        {WITH("\"added_tokens\": [{\"id\": 300, \"content\": \"<e>\", \"lstrip\": true}], "), "",
         "", "\"lstrip\""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct tokenizer *tokenizer = make(wrong[i].format, wrong[i].more, wrong[i].merges);
        ck_assert_msg(tokenizer == NULL, "taken: %s", wrong[i].said);
        ck_assert_msg(strstr(problem.text, wrong[i].said) != NULL, "%s: %s", wrong[i].said,
                      problem.text);
    }
}
END_TEST

/* ---------------------------------------------------------------- words */

/* The words were cut by the pattern itself, in a regular expression of JavaScript. */
START_TEST(a_text_is_cut_as_the_pattern_cuts_it)
{
    static const struct {
        const char *text, *words; /* "|" between the words */
    } texts[] = {
        {"Hello world", "Hello| world"},
        {"  two  blanks ", " | two| | blanks| "},
        {"a\n\nb", "a|\n|\n|b"},
        {"a\n b", "a|\n| b"},
        {"it's we'll I'D", "it|'s| we|'ll| I|'|D"},
        {"x1y22 33", "x|1|y|22| 33"},
        {"n\xC3\xA4he \xE4\xB8\xAD\xE6\x96\x87!?", "n\xC3\xA4he| \xE4\xB8\xAD\xE6\x96\x87|!?"},
        {"\xC2\xA0\xC2\xA0z", "\xC2\xA0|\xC2\xA0|z"},
        {" \t\xE3\x80\x80q", " \t|\xE3\x80\x80|q"},
        {"...  'quoted'", "...| | '|quoted|'"},
        {"\xD9\xA3\xE2\x85\xA7", "\xD9\xA3\xE2\x85\xA7"},
        {"end\n", "end|\n"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char said[256] = "";
        const uint8_t *at = (const uint8_t *)texts[i].text;
        size_t rest = strlen(texts[i].text);
        while (rest > 0) {
            const size_t length = word_split_next(at, rest);
            ck_assert(length > 0 && length <= rest);
            (void)snprintf(said + strlen(said), sizeof said - strlen(said), "%s%.*s",
                           said[0] != '\0' ? "|" : "", (int)length, (const char *)at);
            at += length;
            rest -= length;
        }
        ck_assert_str_eq(said, texts[i].words);
    }
}
END_TEST

START_TEST(a_byte_that_is_no_character_stands_alone)
{
    static const char *const wrong[] = {
        "\x80", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE4\xB8"};
    uint32_t character = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_uint_eq(
            word_split_character((const uint8_t *)wrong[i], strlen(wrong[i]), &character), 1);
        ck_assert_uint_eq(character, UINT32_MAX);
    }
    ck_assert_uint_eq(word_split_character((const uint8_t *)"\xF0\x9F\x98\x80", 4, &character), 4);
    ck_assert_uint_eq(character, 0x1F600);
    ck_assert_uint_eq(word_split_next((const uint8_t *)"", 0), 0);
}
END_TEST

START_TEST(characters_have_their_class)
{
    static const struct {
        uint32_t character;
        enum unicode_class class;
    } known[] = {{'a', UNICODE_LETTER},      {'Z', UNICODE_LETTER},    {'0', UNICODE_NUMBER},
                 {' ', UNICODE_SPACE},       {0x85, UNICODE_SPACE},    {0x3000, UNICODE_SPACE},
                 {0x200B, UNICODE_OTHER},    {'_', UNICODE_OTHER},     {0xAA, UNICODE_LETTER},
                 {0xB2, UNICODE_NUMBER},     {0x4E00, UNICODE_LETTER}, {0x3134A, UNICODE_LETTER},
                 {0x3134B, UNICODE_OTHER},   {0x2167, UNICODE_NUMBER}, {0x10FFFF, UNICODE_OTHER},
                 {UINT32_MAX, UNICODE_OTHER}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        ck_assert_msg(unicode_class(known[i].character) == known[i].class, "U+%04X",
                      known[i].character);
    }
}
END_TEST

/* ---------------------------------------------------------------- config.json */

START_TEST(a_config_says_the_context_and_what_ends_a_text)
{
    static const char *const wrong[] = {"",
                                        "{\"n_ctx\": 0}",
                                        "{\"n_positions\": \"many\"}",
                                        "{\"eos_token_id\": -1}",
                                        "{\"eos_token_id\": [1, true]}",
                                        ("{\"eos_token_id\": "
                                         "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}")};
    struct model_config config;
    const char *text = "{\"max_position_embeddings\": 2048, \"eos_token_id\": [2, 7]}";
    ck_assert(model_config_read(text, strlen(text), &config, &problem));
    ck_assert_uint_eq(config.context, 2048);
    ck_assert_uint_eq(config.end_count, 2);
    ck_assert_uint_eq(config.ends[1], 7);
    text = "{\"n_positions\": 99999999999, \"eos_token_id\": 3, \"x\": null}";
    ck_assert(model_config_read(text, strlen(text), &config, &problem));
    ck_assert_uint_eq(config.context, GENERATE_CONTEXT_MOST);
    ck_assert_uint_eq(config.ends[0], 3);
    ck_assert(model_config_read("{}", 2, &config, &problem));
    ck_assert_uint_eq(config.context + config.end_count, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!model_config_read(wrong[i], strlen(wrong[i]), &config, &problem), "%s",
                      wrong[i]);
    }
}
END_TEST

SUITE("tokenizer", NULL, NULL, TEST(merges_are_carried_out_by_their_rank),
      TEST(added_tokens_stand_for_themselves),
      TEST(what_is_not_known_of_a_tokenizer_is_refused_by_its_name),
      TEST(a_text_is_cut_as_the_pattern_cuts_it), TEST(a_byte_that_is_no_character_stands_alone),
      TEST(characters_have_their_class), TEST(a_config_says_the_context_and_what_ends_a_text))
