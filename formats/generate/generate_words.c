#include "formats/generate/generate_words.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define REFUSE(problem, ...) (problem_set((problem), __VA_ARGS__), false)

#define NEEDS "a language model needs a tokenizer (-g) and a prompt (-q)"

enum { SHOWN_SIZE = 80, DIGITS_MOST = 19, THOUSAND = 1000 };

bool generate_words_are(const char *const *words, size_t count)
{
    return count > 1 && strcmp(words[1], "-g") == 0;
}

bool generate_words_are_many(const struct generate_words *words)
{
    return words->prompt_count > 1 || words->file != NULL;
}

bool generate_words_line(const char **text, size_t *size, const char **ret_line, size_t *ret_length,
                         unsigned *ret_number)
{
    while (*size > 0) {
        const char *line = *text;
        const char *end = memchr(line, '\n', *size);
        size_t length = end != NULL ? (size_t)(end - line) : *size;
        const size_t taken = length + (end != NULL ? 1 : 0);
        *text += taken;
        *size -= taken;
        (*ret_number)++;
        length -= length > 0 && line[length - 1] == '\r' ? 1 : 0;
        if (length > 0) {
            *ret_line = line;
            *ret_length = length;
            return true;
        }
    }
    return false;
}

char *generate_words_literal(const char *text)
{
    char *template = malloc(2 * strlen(text) + 1);
    char *to = template;
    for (; template != NULL && *text != '\0'; text++) {
        *to++ = *text;
        if (*text == '{' || *text == '}') {
            *to++ = *text;
        }
    }
    if (template != NULL) {
        *to = '\0';
    }
    return template;
}

bool generate_words_beside(const char *model, const char *name, char *ret_path, size_t capacity)
{
    const char *slash = strrchr(model, '/');
    const int before = slash != NULL ? (int)(slash - model) + 1 : 0;
    const int length = snprintf(ret_path, capacity, "%.*s%s", before, model, name);
    return length > 0 && (size_t)length < capacity;
}

static bool read_digits(const char *text, size_t size, uint64_t most, uint64_t *ret_number)
{
    uint64_t number = 0;
    if (size == 0 || size > DIGITS_MOST) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        number = 10 * number + (uint64_t)(text[i] - '0');
    }
    *ret_number = number;
    return number <= most;
}

bool generate_temperature(const char *text, uint32_t *ret_milli)
{
    static const uint32_t scale[] = {1000, 100, 10, 1};
    const size_t whole = strcspn(text, ".");
    const char *rest = text[whole] == '.' ? text + whole + 1 : "0";
    const size_t digits = strlen(rest);
    uint64_t high = 0;
    uint64_t low = 0;
    if (!read_digits(text, whole, GENERATE_TEMPERATURE_MOST / THOUSAND, &high) || digits > 3 ||
        !read_digits(rest, digits, THOUSAND, &low)) {
        return false;
    }
    const uint64_t milli = high * THOUSAND + low * scale[digits];
    *ret_milli = (uint32_t)milli;
    return milli <= GENERATE_TEMPERATURE_MOST;
}

static bool read_count(const char *option, const char *value, uint64_t least, uint64_t most,
                       uint64_t *ret_number, struct problem *problem)
{
    char shown[SHOWN_SIZE];
    if (read_digits(value, strlen(value), most, ret_number) && *ret_number >= least) {
        return true;
    }
    text_printable(value, strlen(value), shown, sizeof shown);
    return REFUSE(problem, "%s \"%s\" is no number from %llu to %llu", option, shown,
                  (unsigned long long)least, (unsigned long long)most);
}

static bool read_stop(const char *value, struct generate_words *words, struct problem *problem)
{
    uint64_t number = 0;
    if (words->stop_count == GENERATE_STOPS_MOST) {
        return REFUSE(problem, "at most %d tokens end a text", GENERATE_STOPS_MOST);
    }
    if (!read_count("stop (-e)", value, 0, UINT32_MAX - 1, &number, problem)) {
        return false;
    }
    words->stops[words->stop_count++] = (uint32_t)number;
    return true;
}

static bool read_prompt(const char *value, struct generate_words *words, struct problem *problem)
{
    if (words->prompt_count == GENERATE_PROMPTS_MOST) {
        return REFUSE(problem, "at most %d prompts stand in the words; a file may have more",
                      GENERATE_PROMPTS_MOST);
    }
    if (value[0] == '\0') {
        return REFUSE(problem, NEEDS);
    }
    size_t bytes = strlen(value);
    for (size_t i = 0; i < words->prompt_count; i++) {
        bytes += strlen(words->prompts[i]);
    }
    if (bytes > GENERATE_PROMPT_BYTES) {
        return REFUSE(problem,
                      "the prompts in the words have %zu bytes, of %d together; a file of prompts "
                      "may have more",
                      bytes, GENERATE_PROMPT_BYTES);
    }
    words->prompts[words->prompt_count++] = value;
    return true;
}

static bool read_seed(const char *value, bool has_holes, struct generate_words *words,
                      struct problem *problem)
{
    return (has_holes && strpbrk(value, "{}") != NULL) ||
           read_count("seed (-r)", value, 0, INT64_MAX, &words->seed, problem);
}

static bool read_small(const char *option, const char *value, uint64_t least, uint64_t most,
                       uint32_t *ret_number, struct problem *problem)
{
    uint64_t number = 0;
    const bool good = read_count(option, value, least, most, &number, problem);
    *ret_number = good ? (uint32_t)number : *ret_number;
    return good;
}

/* Reads one option. */
static bool read_option(char letter, const char *value, bool has_holes,
                        struct generate_words *words, struct problem *problem)
{
    switch (letter) {
    case 'g':
        words->tokenizer = value;
        return true;
    case 'q':
        return read_prompt(value, words, problem);
    case 'f':
        words->file = value;
        return value[0] != '\0' || REFUSE(problem, "-f names no file");
    case 'b':
        words->has_rows = true;
        return read_small("batch (-b)", value, 1, GENERATE_ROWS_MOST, &words->rows, problem);
    case 'n':
        return read_small("max_tokens (-n)", value, 1, GENERATE_CONTEXT_MOST, &words->tokens_most,
                          problem);
    case 'c':
        words->has_context = true;
        return read_small("context (-c)", value, 1, GENERATE_CONTEXT_MOST, &words->context,
                          problem);
    case 't':
        return generate_temperature(value, &words->temperature_milli) ||
               REFUSE(problem,
                      "the temperature is a number from 0 to 10, with 3 digits behind the point "
                      "at most, as in 0.8");
    case 'k':
        return read_small("top_k (-k)", value, 0, GENERATE_TOP_MOST, &words->top, problem);
    case 'r':
        return read_seed(value, has_holes, words, problem);
    default:
        return read_stop(value, words, problem);
    }
}

bool generate_words_read(const char *const *words, size_t count, bool has_holes,
                         struct generate_words *ret_words, struct problem *ret_problem)
{
    char shown[SHOWN_SIZE];
    *ret_words = (struct generate_words){.tokens_most = GENERATE_TOKENS_DEFAULT,
                                         .context = GENERATE_CONTEXT_MOST,
                                         .rows = GENERATE_ROWS_DEFAULT};
    if (count == 0 || words[0][0] == '\0' || words[0][0] == '-') {
        return REFUSE(ret_problem, "the first word is a model, as in [m.onnx, -g, tokenizer.json, "
                                   "-q, \"Once upon\"]");
    }
    ret_words->model = words[0];
    for (size_t i = 1; i < count; i += 2) {
        const char *option = words[i];
        if (strlen(option) != 2 || option[0] != '-' || strchr("gqfbnctkre", option[1]) == NULL) {
            text_printable(option, strlen(option), shown, sizeof shown);
            return REFUSE(ret_problem,
                          "\"%s\" is none of -g, -q, -f, -b, -n, -c, -t, -k, -r and -e, which say "
                          "what a language model does",
                          shown);
        }
        if (i + 1 == count) {
            return REFUSE(ret_problem, "%s has no value behind it", option);
        }
        if (!read_option(option[1], words[i + 1], has_holes, ret_words, ret_problem)) {
            return false;
        }
    }
    if (ret_words->file != NULL && ret_words->prompt_count != 1) {
        return REFUSE(ret_problem, "a file of prompts (-f) goes with one -q, such as \"{line}\"");
    }
    if (ret_words->tokenizer == NULL || ret_words->prompt_count == 0 ||
        ret_words->tokenizer[0] == '\0') {
        return REFUSE(ret_problem, NEEDS);
    }
    return true;
}
