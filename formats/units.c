#include "formats/units.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/limits.h"
#include "formats/units_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The value is whole + fraction / 10^decimals, with no trailing zero in the fraction. */
struct decimal {
    uint64_t whole;
    uint64_t fraction;
    unsigned decimals;
    unsigned written; /* decimals as written, zeros included */
};

enum { DECIMALS_MAX = 18 }; /* 10^18 fits 64 bits; times any unit, 128 */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static uint64_t power_of_ten(unsigned exponent)
{
    assert(exponent <= DECIMALS_MAX);
    uint64_t power = 1;
    for (unsigned i = 0; i < exponent; i++) {
        power *= 10;
    }
    return power;
}

/* Reads digits [ "." digits ] from *text on, and moves *text behind them. */
static enum units_status scan_whole(const char **text, uint64_t *ret_whole)
{
    const char *c = *text;
    if (!is_digit(*c)) {
        return UNITS_MALFORMED;
    }
    uint64_t whole = 0;
    bool overflow = false;
    for (; is_digit(*c); c++) {
        overflow = overflow || __builtin_mul_overflow(whole, UINT64_C(10), &whole) ||
                   __builtin_add_overflow(whole, (uint64_t)(*c - '0'), &whole);
    }
    *text = c;
    *ret_whole = whole;
    return overflow ? UNITS_OVERFLOW : UNITS_OK;
}

static enum units_status scan_decimal(const char **text, struct decimal *ret_decimal)
{
    struct decimal decimal = {0};
    const char *c = *text;
    enum units_status status = scan_whole(&c, &decimal.whole);
    if (status == UNITS_MALFORMED) {
        return status;
    }
    if (*c == '.') {
        c++;
        if (!is_digit(*c)) {
            return UNITS_MALFORMED;
        }
        const char *first = c;
        unsigned significant = 0;
        for (; is_digit(*c); c++) {
            decimal.written++;
            significant = *c != '0' ? decimal.written : significant;
        }
        if (significant > DECIMALS_MAX) {
            status = status == UNITS_OK ? UNITS_INEXACT : status;
        } else {
            for (unsigned i = 0; i < significant; i++) {
                decimal.fraction = decimal.fraction * 10 + (uint64_t)(first[i] - '0');
            }
            decimal.decimals = significant;
        }
    }
    *text = c;
    *ret_decimal = decimal;
    return status;
}

/* Computes decimal x unit, when that is a whole number of at most `most`. */
static enum units_status scale(const struct decimal *decimal, uint64_t unit, uint64_t most,
                               uint64_t *ret_value)
{
    uint128 part = (uint128)decimal->fraction * unit;
    uint64_t divisor = power_of_ten(decimal->decimals);
    if (part % divisor != 0) {
        return UNITS_INEXACT;
    }
    uint128 value = (uint128)decimal->whole * unit + part / divisor;
    if (value > most) {
        return UNITS_OVERFLOW;
    }
    *ret_value = (uint64_t)value;
    return UNITS_OK;
}

const struct unit units_durations[] = {
    /* The largest comes first. */
    {"d", UINT64_C(86400000000000)},
    {"h", UINT64_C(3600000000000)},
    {"m", UINT64_C(60000000000)},
    {"s", UINT64_C(1000000000)},
    {"ms", UINT64_C(1000000)},
    {"us", UINT64_C(1000)},
    {"ns", UINT64_C(1)},
};

static const struct unit byte_units[] = {
    /* The largest comes first. */
    {"PiB", UINT64_C(1) << 50}, {"PB", UINT64_C(1000000000000000)},
    {"TiB", UINT64_C(1) << 40}, {"TB", UINT64_C(1000000000000)},
    {"GiB", UINT64_C(1) << 30}, {"GB", UINT64_C(1000000000)},
    {"MiB", UINT64_C(1) << 20}, {"MB", UINT64_C(1000000)},
    {"KiB", UINT64_C(1) << 10}, {"kB", UINT64_C(1000)},
    {"B", UINT64_C(1)},
};
enum { BYTE_UNITS = sizeof byte_units / sizeof byte_units[0] };

static const struct unit flops_units[] = {
    {"EFLOPS", UINT64_C(1000000000000000000)},
    {"PFLOPS", UINT64_C(1000000000000000)},
    {"TFLOPS", UINT64_C(1000000000000)},
    {"GFLOPS", UINT64_C(1000000000)},
    {"MFLOPS", UINT64_C(1000000)},
    {"kFLOPS", UINT64_C(1000)},
    {"FLOPS", UINT64_C(1)},
};
static const struct unit ops_units[] = {
    {"EOPS", UINT64_C(1000000000000000000)},
    {"POPS", UINT64_C(1000000000000000)},
    {"TOPS", UINT64_C(1000000000000)},
    {"GOPS", UINT64_C(1000000000)},
    {"MOPS", UINT64_C(1000000)},
    {"kOPS", UINT64_C(1000)},
    {"OPS", UINT64_C(1)},
};
enum { RATE_UNITS = sizeof ops_units / sizeof ops_units[0] };
static_assert(sizeof flops_units == sizeof ops_units, "the same steps");

struct measure units_measure_of(enum units_kind kind)
{
    if (kind == UNITS_FLOPS || kind == UNITS_OPS) {
        return (struct measure){kind == UNITS_OPS ? ops_units : flops_units, RATE_UNITS, true, ""};
    }
    return (struct measure){byte_units, BYTE_UNITS, false, kind == UNITS_BANDWIDTH ? "/s" : ""};
}

static size_t letters(const char *text)
{
    size_t length = 0;
    while ((text[length] >= 'a' && text[length] <= 'z') ||
           (text[length] >= 'A' && text[length] <= 'Z')) {
        length++;
    }
    return length;
}

/* Returns the index of the unit that `text` begins with, or `count`. */
static size_t find_unit(const struct unit *units, size_t count, const char *text, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(units[i].name) == length && memcmp(units[i].name, text, length) == 0) {
            return i;
        }
    }
    return count;
}

static bool too_long(const char *text)
{
    return strnlen(text, FORMAT_UNIT_BYTES + 1) > FORMAT_UNIT_BYTES;
}

enum units_status units_duration(const char *text, int64_t *ret_ns)
{
    if (too_long(text)) {
        return UNITS_MALFORMED;
    }
    if (strcmp(text, "0") == 0) {
        *ret_ns = 0;
        return UNITS_OK;
    }
    uint64_t total = 0;
    size_t next_unit = 0; /* units only grow smaller */
    bool fraction = false;
    const char *c = text;
    do {
        struct decimal decimal;
        enum units_status status = scan_decimal(&c, &decimal);
        if (status != UNITS_OK) {
            return status;
        }
        size_t length = letters(c);
        if (length == 0) {
            return *c == '\0' ? UNITS_NO_UNIT : UNITS_MALFORMED;
        }
        size_t unit = find_unit(units_durations, DURATION_UNITS, c, length);
        if (unit == DURATION_UNITS) {
            return UNITS_UNKNOWN_UNIT;
        }
        if (unit < next_unit || fraction) {
            return UNITS_MALFORMED; /* 5m1h, 1h1h; 1.5h30m */
        }
        uint64_t value;
        status = scale(&decimal, units_durations[unit].size, (uint64_t)INT64_MAX - total, &value);
        if (status != UNITS_OK) {
            return status;
        }
        total += value;
        next_unit = unit + 1;
        fraction = decimal.written > 0;
        c += length;
    } while (*c != '\0');
    *ret_ns = (int64_t)total;
    return UNITS_OK;
}

static enum units_status read_measure(const struct measure *measure, const char *text, int64_t *ret)
{
    if (too_long(text)) {
        return UNITS_MALFORMED;
    }
    const char *c = text;
    struct decimal decimal;
    enum units_status status = scan_decimal(&c, &decimal);
    if (status != UNITS_OK) {
        return status;
    }
    uint64_t unit_size = 1;
    size_t length = letters(c);
    bool has_suffix = length > 0 && strcmp(c + length, measure->suffix) == 0;
    if (c[length] != '\0' && !has_suffix) {
        return UNITS_MALFORMED;
    }
    if (length == 0 && measure->needs_unit) {
        return UNITS_NO_UNIT;
    }
    if (length > 0) {
        size_t unit = find_unit(measure->units, measure->count, c, length);
        if (unit == measure->count) {
            return UNITS_UNKNOWN_UNIT;
        }
        unit_size = measure->units[unit].size;
    }
    uint64_t value;
    status = scale(&decimal, unit_size, INT64_MAX, &value);
    if (status != UNITS_OK) {
        return status;
    }
    *ret = (int64_t)value;
    return UNITS_OK;
}

enum units_status units_bytes(const char *text, int64_t *ret_bytes)
{
    const struct measure bytes = units_measure_of(UNITS_BYTES);
    return read_measure(&bytes, text, ret_bytes);
}

enum units_status units_read(enum units_kind kind, const char *text, int64_t *ret)
{
    switch (kind) {
    case UNITS_DURATION:
        return units_duration(text, ret);
    case UNITS_MONEY:
        return units_money(text, ret);
    case UNITS_COUNT:
        return units_count(text, ret);
    case UNITS_BYTES:
    case UNITS_BANDWIDTH:
    case UNITS_FLOPS:
    case UNITS_OPS:
        break;
    }
    const struct measure measure = units_measure_of(kind);
    return read_measure(&measure, text, ret);
}

enum units_status units_money(const char *text, int64_t *ret_micro)
{
    if (too_long(text)) {
        return UNITS_MALFORMED;
    }
    bool negative = text[0] == '-';
    const char *c = text + negative;
    struct decimal decimal;
    enum units_status status = scan_decimal(&c, &decimal);
    if (status == UNITS_MALFORMED || *c != '\0') {
        return UNITS_MALFORMED;
    }
    if (status != UNITS_OK) {
        return status;
    }
    if (decimal.written > 6) {
        return UNITS_INEXACT;
    }
    uint64_t most = (uint64_t)INT64_MAX + negative;
    uint64_t value;
    status = scale(&decimal, MICRO_PER_CREDIT, most, &value);
    if (status != UNITS_OK) {
        return status;
    }
    *ret_micro = negative && value > 0 ? -(int64_t)(value - 1) - 1 : (int64_t)value;
    return UNITS_OK;
}

enum units_status units_count(const char *text, int64_t *ret_count)
{
    if (too_long(text) || !is_digit(text[0])) {
        return UNITS_MALFORMED;
    }
    int64_t count = 0;
    bool overflow = false;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '_' && is_digit(c[1]) && c[-1] != '_') {
            continue;
        }
        if (!is_digit(*c)) {
            return UNITS_MALFORMED;
        }
        overflow =
            overflow || !checked_mul(count, 10, &count) || !checked_add(count, *c - '0', &count);
    }
    if (overflow) {
        return UNITS_OVERFLOW;
    }
    *ret_count = count;
    return UNITS_OK;
}

/* ---------------------------------------------------------------- messages */

struct wording {
    const char *what;
    const char *example;
    const char *units;
    const char *finest;
};

static const struct wording wordings[] = {
    [UNITS_DURATION] = {"a duration", "90s, 10m, 1h30m or 7d", "d, h, m, s, ms, us, ns", "1ns"},
    [UNITS_BYTES] = {"a size", "512MB or 1.5GiB", "B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB",
                     "1 byte"},
    [UNITS_MONEY] = {"an amount of credits", "2.00 or 0.000125", "none", "0.000001 (6 decimals)"},
    [UNITS_COUNT] = {"a whole number", "100", "none", "1"},
    [UNITS_BANDWIDTH] = {"a bandwidth", "100GB/s or 1.5TiB/s",
                         "B/s, kB/s, MB/s, GB/s, TB/s, PB/s, KiB/s, MiB/s, GiB/s, TiB/s, PiB/s",
                         "1 byte per second"},
    [UNITS_FLOPS] = {"a speed", "300TFLOPS or 1.5PFLOPS",
                     "FLOPS, kFLOPS, MFLOPS, GFLOPS, TFLOPS, PFLOPS, EFLOPS", "1 FLOPS"},
    [UNITS_OPS] = {"a speed", "400TOPS or 1.5POPS", "OPS, kOPS, MOPS, GOPS, TOPS, POPS, EOPS",
                   "1 OPS"},
};

static bool is_same_but_case(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((a[i] | 0x20) != (b[i] | 0x20)) { /* both are letters */
            return false;
        }
    }
    return true;
}

/* Returns the unit of this kind that equals the text's but for capital letters, or "". */
static const char *meant_unit(enum units_kind kind, const char *text)
{
    if (kind == UNITS_DURATION || kind == UNITS_MONEY || kind == UNITS_COUNT) {
        return "";
    }
    const struct measure measure = units_measure_of(kind);
    const char *unit = text + strspn(text, "0123456789.");
    size_t length = letters(unit);
    for (size_t i = 0; i < measure.count; i++) {
        const char *name = measure.units[i].name;
        if (strlen(name) == length && is_same_but_case(name, unit, length)) {
            return name;
        }
    }
    return "";
}

void units_explain(enum units_kind kind, enum units_status status, const char *text, char *ret_text,
                   size_t capacity)
{
    const struct wording *say = &wordings[kind];
    char shown[FORMAT_UNIT_BYTES + 1];
    text_printable(text, strlen(text), shown, sizeof shown);
    switch (status) {
    case UNITS_OK:
        (void)snprintf(ret_text, capacity, "\"%s\" is %s", shown, say->what);
        break;
    case UNITS_MALFORMED:
        (void)snprintf(ret_text, capacity, "\"%s\" is not %s; write for example %s", shown,
                       say->what, say->example);
        break;
    case UNITS_NO_UNIT:
        (void)snprintf(ret_text, capacity, "\"%s\" has no unit; write for example %s", shown,
                       say->example);
        break;
    case UNITS_UNKNOWN_UNIT: {
        const char *meant = meant_unit(kind, text);
        (void)snprintf(ret_text, capacity, "\"%s\" has an unknown unit; %s%s%sknown are %s", shown,
                       meant[0] != '\0' ? "did you mean " : "", meant, meant[0] != '\0' ? "? " : "",
                       say->units);
        break;
    }
    case UNITS_INEXACT:
        (void)snprintf(ret_text, capacity, "\"%s\" is finer than the smallest step, %s", shown,
                       say->finest);
        break;
    case UNITS_OVERFLOW:
        (void)snprintf(ret_text, capacity, "\"%s\" is too large", shown);
        break;
    }
}
