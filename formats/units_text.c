/* Figures become text again here, exact or short. */
#include "formats/units_internal.h"

#include "base/checked.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Returns |value| and the sign to write; INT64_MIN has a magnitude too. */
static uint64_t magnitude(int64_t value, const char **ret_sign)
{
    *ret_sign = value < 0 ? "-" : "";
    return value < 0 ? (uint64_t) - (value + 1) + 1 : (uint64_t)value;
}

/* Appends to a text that is known to fit UNITS_TEXT_SIZE. */
static void append(char text[UNITS_TEXT_SIZE], size_t *length, uint64_t number, const char *unit)
{
    int written =
        snprintf(text + *length, UNITS_TEXT_SIZE - *length, "%" PRIu64 "%s", number, unit);
    assert(written > 0 && (size_t)written < UNITS_TEXT_SIZE - *length);
    *length += (size_t)written;
}

void units_duration_text(int64_t ns, char ret_text[UNITS_TEXT_SIZE])
{
    const char *sign;
    uint64_t left = magnitude(ns, &sign);
    size_t length = strlen(sign);
    memcpy(ret_text, sign, length + 1);
    for (size_t i = 0; i < DURATION_UNITS; i++) {
        uint64_t number = left / units_durations[i].size;
        left %= units_durations[i].size;
        if (number > 0) {
            append(ret_text, &length, number, units_durations[i].name);
        }
    }
    if (ns == 0) {
        append(ret_text, &length, 0, "s");
    }
}

static void measure_text(const struct measure *measure, int64_t number,
                         char ret_text[UNITS_TEXT_SIZE])
{
    const char *sign;
    uint64_t value = magnitude(number, &sign);
    size_t length = strlen(sign);
    memcpy(ret_text, sign, length + 1);
    size_t unit = value == 0 ? measure->count - 1 : 0;
    while (value % measure->units[unit].size != 0) {
        unit++; /* ends at 1, which divides everything */
    }
    append(ret_text, &length, value / measure->units[unit].size, measure->units[unit].name);
    (void)snprintf(ret_text + length, UNITS_TEXT_SIZE - length, "%s", measure->suffix);
}

void units_text(enum units_kind kind, int64_t value, char ret_text[UNITS_TEXT_SIZE])
{
    const struct measure measure = units_measure_of(kind);
    switch (kind) {
    case UNITS_DURATION:
        units_duration_text(value, ret_text);
        return;
    case UNITS_MONEY:
        units_money_text(value, ret_text);
        return;
    case UNITS_COUNT:
        (void)snprintf(ret_text, UNITS_TEXT_SIZE, "%" PRId64, value);
        return;
    case UNITS_BYTES:
    case UNITS_BANDWIDTH:
    case UNITS_FLOPS:
    case UNITS_OPS:
        measure_text(&measure, value, ret_text);
        return;
    }
}

void units_money_text(int64_t micro, char ret_text[UNITS_TEXT_SIZE])
{
    const char *sign;
    uint64_t value = magnitude(micro, &sign);
    uint64_t fraction = value % MICRO_PER_CREDIT;
    int decimals = 6;
    while (decimals > 2 && fraction % 10 == 0) {
        fraction /= 10;
        decimals--;
    }
    (void)snprintf(ret_text, UNITS_TEXT_SIZE, "%s%" PRIu64 ".%0*" PRIu64, sign,
                   value / MICRO_PER_CREDIT, decimals, fraction);
}

static uint64_t round_up(uint64_t value, uint64_t step)
{
    uint64_t over = value % step;
    return over == 0 ? value : value - over + step; /* no overflow: magnitudes end at 2^63 */
}

/* Returns the step in which a duration of this length is shown. */
static uint64_t shown_step(uint64_t ns)
{
    static const uint64_t steps[DURATION_UNITS] = {
        /* Days step by hours, hours by minutes, minutes by seconds and seconds by 100 ms. */
        UINT64_C(3600000000000), UINT64_C(60000000000), UINT64_C(1000000000), UINT64_C(100000000),
        UINT64_C(1000000),       UINT64_C(1000),        UINT64_C(1),
    };
    size_t unit = 0;
    while (unit + 1 < DURATION_UNITS && ns < units_durations[unit].size) {
        unit++;
    }
    return steps[unit];
}

/* Writes a duration that is a multiple of its shown step. */
static void write_duration(uint64_t value, const char *sign, char ret_text[UNITS_TEXT_SIZE])
{
    size_t unit = 0;
    while (unit + 1 < DURATION_UNITS && value < units_durations[unit].size) {
        unit++;
    }
    uint64_t number = value / units_durations[unit].size;
    uint64_t rest = value % units_durations[unit].size;
    const char *name = units_durations[unit].name;
    if (value == 0) {
        (void)snprintf(ret_text, UNITS_TEXT_SIZE, "0s");
    } else if (unit < 3 && rest >= units_durations[unit + 1].size) {
        (void)snprintf(ret_text, UNITS_TEXT_SIZE, "%s%" PRIu64 "%s %" PRIu64 "%s", sign, number,
                       name, rest / units_durations[unit + 1].size, units_durations[unit + 1].name);
    } else if (unit == 3) {
        (void)snprintf(ret_text, UNITS_TEXT_SIZE, "%s%" PRIu64 ".%" PRIu64 "s", sign, number,
                       rest / UINT64_C(100000000));
    } else {
        (void)snprintf(ret_text, UNITS_TEXT_SIZE, "%s%" PRIu64 "%s", sign, number, name);
    }
}

void units_duration_short(int64_t ns, char ret_text[UNITS_TEXT_SIZE])
{
    const char *sign;
    const uint64_t value = magnitude(ns, &sign);
    write_duration(round_up(value, shown_step(value)), sign, ret_text);
}

void units_duration_near(int64_t ns, char ret_text[UNITS_TEXT_SIZE])
{
    const char *sign;
    const uint64_t value = magnitude(ns, &sign);
    const uint64_t step = shown_step(value);
    const uint64_t near = value + step / 2; /* no overflow: magnitudes end at 2^63 */
    write_duration(near - near % step, sign, ret_text);
}

void units_duration_down(int64_t ns, char ret_text[UNITS_TEXT_SIZE])
{
    const char *sign;
    const uint64_t value = magnitude(ns, &sign);
    write_duration(value - value % shown_step(value), sign, ret_text);
}

void units_slot_hours(int64_t ns, char ret_text[UNITS_TEXT_SIZE])
{
    const char *sign;
    const uint64_t hundredths = magnitude(ns, &sign) / (UINT64_C(3600000000000) / 100);
    (void)snprintf(ret_text, UNITS_TEXT_SIZE, "%s%" PRIu64 ".%02" PRIu64, sign, hundredths / 100,
                   hundredths % 100);
}

void units_bytes_short(int64_t bytes, char ret_text[UNITS_TEXT_SIZE])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    const char *sign;
    uint64_t value = magnitude(bytes, &sign);
    if (value < 1024) {
        (void)snprintf(ret_text, UNITS_TEXT_SIZE, "%s%" PRIu64 " B", sign, value);
        return;
    }
    size_t unit = 0;
    uint64_t tenths;
    do {
        unit++;
        uint64_t size = UINT64_C(1) << (10 * unit);
        tenths = (uint64_t)(((uint128)value * 10 + size / 2) / size);
    } while (tenths >= 10240 && unit < 6);
    (void)snprintf(ret_text, UNITS_TEXT_SIZE, "%s%" PRIu64 ".%" PRIu64 " %s", sign, tenths / 10,
                   tenths % 10, names[unit]);
}

/* Writes one decimal of the largest unit that fits, rounded half up. */
static void rate_short(const struct measure *measure, int64_t number,
                       char ret_text[UNITS_TEXT_SIZE])
{
    const char *sign;
    uint64_t value = magnitude(number, &sign);
    size_t unit = 0;
    while (unit + 1 < measure->count && value < measure->units[unit].size) {
        unit++;
    }
    uint64_t size = measure->units[unit].size;
    uint64_t tenths = (uint64_t)(((uint128)value * 10 + size / 2) / size);
    if (tenths >= 10000 && unit > 0) { /* rounded up to a thousand: one of the next unit */
        unit--;
        tenths = 10;
    }
    (void)snprintf(ret_text, UNITS_TEXT_SIZE, "%s%" PRIu64 ".%" PRIu64 " %s", sign, tenths / 10,
                   tenths % 10, measure->units[unit].name);
}

void units_short(enum units_kind kind, int64_t value, char ret_text[UNITS_TEXT_SIZE])
{
    const struct measure measure = units_measure_of(kind);
    size_t length;
    switch (kind) {
    case UNITS_DURATION:
        units_duration_short(value, ret_text);
        return;
    case UNITS_BYTES:
        units_bytes_short(value, ret_text);
        return;
    case UNITS_BANDWIDTH:
        units_bytes_short(value, ret_text);
        length = strlen(ret_text);
        (void)snprintf(ret_text + length, UNITS_TEXT_SIZE - length, "%s", measure.suffix);
        return;
    case UNITS_FLOPS:
    case UNITS_OPS:
        rate_short(&measure, value, ret_text);
        return;
    case UNITS_MONEY:
    case UNITS_COUNT:
        units_text(kind, value, ret_text);
        return;
    }
}
