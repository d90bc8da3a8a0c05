/* The typed getters of formats/yaml.h are defined here, each over yaml_text, and the writer of
 * quoted texts. */
#include "formats/yaml.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/limits.h"
#include "formats/units.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_SIZE = 48 };

static const char *scalar(struct yaml_value value)
{
    return yaml_text(value, FORMAT_FILE_BYTES, NULL);
}

bool yaml_boolean(struct yaml_value value, bool fallback)
{
    const char *text = scalar(value);
    if (text == NULL) {
        return fallback;
    }
    if (strcmp(text, "true") == 0) {
        return true;
    }
    if (strcmp(text, "false") != 0) {
        char shown[SHOWN_SIZE];
        text_printable(text, strlen(text), shown, sizeof shown);
        yaml_refuse(value, "\"%s\" is neither true nor false", shown);
        return fallback;
    }
    return false;
}

/* ---------------------------------------------------------------- numbers with units */

typedef enum units_status reader_of_units(const char *text, int64_t *ret_number);

static bool is_within(struct yaml_value value, enum units_kind kind, int64_t number, int64_t least,
                      int64_t most)
{
    if (number >= least && number <= most) {
        return true;
    }
    char bound[UNITS_TEXT_SIZE];
    char given[UNITS_TEXT_SIZE];
    units_text(kind, number < least ? least : most, bound);
    units_text(kind, number, given);
    yaml_refuse(value, "%s is too %s; the %s is %s", given, number < least ? "small" : "large",
                number < least ? "least" : "most", bound);
    return false;
}

static bool read_number(struct yaml_value value, enum units_kind kind, int64_t *ret_number)
{
    static reader_of_units *const readers[] = {
        [UNITS_DURATION] = units_duration,
        [UNITS_BYTES] = units_bytes,
        [UNITS_MONEY] = units_money,
        [UNITS_COUNT] = units_count,
    };
    const char *text = scalar(value);
    if (text == NULL) {
        return false;
    }
    /* Money alone has a sign of its own; plain numbers get theirs here. */
    bool negative = kind == UNITS_COUNT && text[0] == '-';
    int64_t number;
    enum units_status status = readers[kind](text + negative, &number);
    if (status != UNITS_OK) {
        char what[160];
        units_explain(kind, status, text, what, sizeof what);
        yaml_refuse(value, "%s", what);
        return false;
    }
    *ret_number = negative ? -number : number;
    return true;
}

static int64_t bounded(struct yaml_value value, enum units_kind kind, int64_t least, int64_t most,
                       int64_t fallback)
{
    int64_t number;
    if (!read_number(value, kind, &number) || !is_within(value, kind, number, least, most)) {
        return fallback;
    }
    return number;
}

int64_t yaml_integer(struct yaml_value value, int64_t least, int64_t most, int64_t fallback)
{
    return bounded(value, UNITS_COUNT, least, most, fallback);
}

int64_t yaml_duration_ns(struct yaml_value value, int64_t least, int64_t most, int64_t fallback)
{
    return bounded(value, UNITS_DURATION, least, most, fallback);
}

int64_t yaml_duration_ms(struct yaml_value value, int64_t least, int64_t most, int64_t fallback)
{
    assert(least >= 0 && most >= least);
    int64_t least_ns = INT64_MAX;
    int64_t most_ns = INT64_MAX;
    (void)checked_mul(least, NS_PER_MS, &least_ns); /* overflow leaves INT64_MAX */
    (void)checked_mul(most, NS_PER_MS, &most_ns);
    int64_t ns;
    if (!read_number(value, UNITS_DURATION, &ns) ||
        !is_within(value, UNITS_DURATION, ns, least_ns, most_ns)) {
        return fallback;
    }
    if (ns % NS_PER_MS != 0) {
        yaml_refuse(value, "\"%s\" is finer than the smallest step here, 1ms", scalar(value));
        return fallback;
    }
    return ns / NS_PER_MS;
}

int64_t yaml_bytes(struct yaml_value value, int64_t least, int64_t most, int64_t fallback)
{
    return bounded(value, UNITS_BYTES, least, most, fallback);
}

int64_t yaml_money(struct yaml_value value, int64_t least, int64_t most, int64_t fallback)
{
    return bounded(value, UNITS_MONEY, least, most, fallback);
}

/* ---------------------------------------------------------------- names and bytes */

static void list_names(const char *const *names, size_t count, char *ret_text, size_t capacity)
{
    size_t length = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        int written =
            snprintf(ret_text + length, capacity - length, "%s%s", i > 0 ? ", " : "", names[i]);
        if (written < 0 || (size_t)written >= capacity - length) {
            return; /* a long list is cut */
        }
        length += (size_t)written;
    }
}

size_t yaml_choice(struct yaml_value value, const char *const *names, size_t count, size_t fallback)
{
    const char *text = scalar(value);
    if (text == NULL) {
        return fallback;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            return i;
        }
    }
    char shown[SHOWN_SIZE];
    text_printable(text, strlen(text), shown, sizeof shown);
    const char *nearest = text_nearest(text, names, count);
    if (nearest != NULL) {
        yaml_refuse(value, "unknown \"%s\"; did you mean \"%s\"?", shown, nearest);
    } else {
        char known[160];
        list_names(names, count, known, sizeof known);
        yaml_refuse(value, "unknown \"%s\"; known are %s", shown, known);
    }
    return fallback;
}

bool yaml_hex(struct yaml_value value, void *ret_bytes, size_t length)
{
    const char *text = scalar(value);
    if (text == NULL) {
        return false;
    }
    if (!text_unhex(text, ret_bytes, length)) {
        yaml_refuse(value, "%zu hexadecimal digits are needed here", 2 * length);
        return false;
    }
    return true;
}

/* Returns true for characters that a reader would refuse, fold, or take for the end. */
static bool needs_escape(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x2028 || point == 0x2029 ||
           point == 0xfeff || point == 0xfffe || point == 0xffff;
}

bool yaml_quote(const char *text, char *ret_text, size_t capacity)
{
    size_t text_length = strlen(text);
    if (capacity < 3 || !text_is_utf8(text, text_length)) {
        return false;
    }
    size_t length = 0;
    ret_text[length++] = '"';
    for (size_t i = 0; i < text_length;) {
        size_t size;
        uint32_t point = text_code_point(text + i, text_length - i, &size);
        if (capacity - length < 9) { /* the longest escape, the quote, the NUL, one more */
            return false;
        }
        if (needs_escape(point)) {
            length += (size_t)snprintf(ret_text + length, 7, "\\u%04x", (unsigned)point);
        } else {
            if (point == '"' || point == '\\') {
                ret_text[length++] = '\\';
            }
            memcpy(ret_text + length, text + i, size);
            length += size;
        }
        i += size;
    }
    ret_text[length++] = '"';
    ret_text[length] = '\0';
    return true;
}
