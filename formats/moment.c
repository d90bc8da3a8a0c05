#include "formats/moment.h"

#include <stddef.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads `digits` digits at *text and moves *text past them, and past `mark` unless that is NUL.
 * Returns -1 when the text has something else there. */
static int read_field(const char **text, size_t digits, char mark)
{
    int value = 0;
    for (size_t i = 0; i < digits; i++, (*text)++) {
        if (!is_digit(**text)) {
            return -1;
        }
        value = 10 * value + (**text - '0');
    }
    if (mark != '\0' && *(*text)++ != mark) {
        return -1;
    }
    return value;
}

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

bool moment_is_meant(const char *text)
{
    return read_field(&text, 4, '-') >= 0 && is_digit(*text);
}

bool moment_read(const char *text, int64_t *ret_ms)
{
    const int year = read_field(&text, 4, '-');
    const int month = year < 0 ? -1 : read_field(&text, 2, '-');
    const int day = month < 0 ? -1 : read_field(&text, 2, 'T');
    const int hour = day < 0 ? -1 : read_field(&text, 2, ':');
    const int minute = hour < 0 ? -1 : read_field(&text, 2, '\0');
    int second = 0;
    if (minute >= 0 && *text == ':') {
        text++;
        second = read_field(&text, 2, '\0');
    }
    if (minute < 0 || second < 0 || strcmp(text, "Z") != 0 || year < 1970 || year > 2199 ||
        month < 1 || month > 12 || day < 1 || day > days_in(year, month) || hour > 23 ||
        minute > 59 || second > 59) {
        return false;
    }
    int64_t days = day - 1;
    for (int before = 1970; before < year; before++) {
        days += is_leap(before) ? 366 : 365;
    }
    for (int before = 1; before < month; before++) {
        days += days_in(year, before);
    }
    *ret_ms = (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000;
    return true;
}
