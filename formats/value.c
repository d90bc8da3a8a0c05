#include "formats/value.h"

#include "base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WORD_SIZE = 32 };

static const struct measure {
    const char *floats, *integers;
    int decimals; /* decimals of credits, down to a micro-credit for a PFLOP-hour */
} measures[] = {
    {"GFLOP-hour", "GOP-hour", 12}, {"TFLOP-hour", "TOP-hour", 9}, {"PFLOP-hour", "POP-hour", 6}};
enum { MEASURES = sizeof measures / sizeof measures[0], SHOWN = 1 };

static const char *unit_of(const struct measure *measure, enum rate rate)
{
    return rate_is_of_integers(rate) ? measure->integers : measure->floats;
}

/* Reads the next word of the text and moves the text behind it. Returns false when there is
 * none, or it is too long. */
static bool next_word(const char **text, char ret_word[WORD_SIZE])
{
    *text += strspn(*text, " ");
    size_t length = 0;
    while ((*text)[length] > ' ' && (*text)[length] <= '~') {
        length++;
    }
    if (length == 0 || length >= WORD_SIZE) {
        return false;
    }
    memcpy(ret_word, *text, length);
    ret_word[length] = '\0';
    *text += length;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

enum amount { AMOUNT_GOOD, AMOUNT_MALFORMED, AMOUNT_INEXACT, AMOUNT_OVERFLOW };

static bool add_digit(int64_t *value, int digit)
{
    return checked_mul(*value, 10, value) && checked_add(*value, digit, value);
}

/* Reads an amount such as 12 or 0.02 with at most `decimals` decimals, times 10^decimals. */
static enum amount read_amount(const char *text, int decimals, int64_t *ret_value)
{
    int64_t value = 0;
    const char *c = text;
    if (!is_digit(*c)) {
        return AMOUNT_MALFORMED;
    }
    for (; is_digit(*c); c++) {
        if (!add_digit(&value, *c - '0')) {
            return AMOUNT_OVERFLOW;
        }
    }
    if (*c == '.' && !is_digit(*++c)) {
        return AMOUNT_MALFORMED;
    }
    for (; is_digit(*c); c++) {
        if (decimals-- == 0) {
            return AMOUNT_INEXACT;
        }
        if (!add_digit(&value, *c - '0')) {
            return AMOUNT_OVERFLOW;
        }
    }
    for (; decimals > 0; decimals--) {
        if (!add_digit(&value, 0)) {
            return AMOUNT_OVERFLOW;
        }
    }
    if (*c != '\0') {
        return AMOUNT_MALFORMED;
    }
    *ret_value = value;
    return AMOUNT_GOOD;
}

static void explain_rate(const char *word, struct problem *ret_problem)
{
    const char *names[RATES - 1];
    for (unsigned i = RATE_NONE + 1; i < RATES; i++) {
        names[i - 1] = rate_name((enum rate)i);
    }
    const char *nearest = text_nearest(word, names, RATES - 1);
    if (nearest != NULL) {
        problem_set(ret_problem, "\"%s\" is no rate of a device; did you mean %s?", word, nearest);
    } else {
        problem_set(ret_problem,
                    "\"%s\" is no rate of a device; there are fp64, fp32, tf32, bf16, fp16, fp8, "
                    "int8 and int4",
                    word);
    }
}

static const struct measure *measure_named(const char *unit, enum rate rate)
{
    for (size_t i = 0; i < MEASURES; i++) {
        if (strcmp(unit, unit_of(&measures[i], rate)) == 0) {
            return &measures[i];
        }
    }
    return NULL;
}

static void explain_amount(enum amount status, const char *amount, const char *unit, enum rate rate,
                           struct problem *ret_problem)
{
    switch (status) {
    case AMOUNT_GOOD:
        return;
    case AMOUNT_MALFORMED:
        problem_set(ret_problem, "\"%s\" is no amount of credits; write for example 0.02", amount);
        return;
    case AMOUNT_INEXACT:
        problem_set(ret_problem, "%s is too fine: the least step is 0.000001 for a %s", amount,
                    unit_of(&measures[MEASURES - 1], rate));
        return;
    case AMOUNT_OVERFLOW:
        problem_set(ret_problem, "%s credits for a %s is more than there can be", amount, unit);
        return;
    }
}

bool value_parse(const char *text, struct value *ret_value, struct problem *ret_problem)
{
    char amount[WORD_SIZE];
    char per[WORD_SIZE];
    char name[WORD_SIZE];
    char unit[WORD_SIZE];
    char shown[WORD_SIZE + 1];
    const char *rest = text;
    if (!next_word(&rest, amount) || !next_word(&rest, per) || strcmp(per, "per") != 0 ||
        !next_word(&rest, name) || !next_word(&rest, unit) || rest[strspn(rest, " ")] != '\0') {
        text_printable(text, strlen(text), shown, sizeof shown);
        problem_set(ret_problem, "\"%s\" is no value; write for example 0.02 per bf16 TFLOP-hour",
                    shown);
        return false;
    }
    enum rate rate = rate_named(name);
    if (rate == RATE_NONE) {
        explain_rate(name, ret_problem);
        return false;
    }
    const struct measure *measure = measure_named(unit, rate);
    if (measure == NULL) {
        problem_set(ret_problem, "\"%s\" is no unit of %s work; write %s", unit, name,
                    unit_of(&measures[SHOWN], rate));
        return false;
    }
    int64_t micro;
    enum amount status = read_amount(amount, measure->decimals, &micro);
    explain_amount(status, amount, unit, rate, ret_problem);
    if (status == AMOUNT_GOOD) {
        *ret_value = (struct value){micro, rate};
    }
    return status == AMOUNT_GOOD;
}

void value_text(const struct value *value, char ret_text[VALUE_TEXT_SIZE])
{
    const int64_t scale = 1000 * MICRO_PER_CREDIT; /* a credit for a TFLOP-hour */
    assert(value->micro >= 0 && value->rate != RATE_NONE);
    int64_t fraction = value->micro % scale;
    int decimals = measures[SHOWN].decimals;
    while (decimals > 2 && fraction % 10 == 0) {
        fraction /= 10;
        decimals--;
    }
    (void)snprintf(ret_text, VALUE_TEXT_SIZE, "%" PRId64 ".%0*" PRId64 " per %s %s",
                   value->micro / scale, decimals, fraction, rate_name(value->rate),
                   unit_of(&measures[SHOWN], value->rate));
}
