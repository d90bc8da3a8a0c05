/* formats/units.h reads and writes durations, sizes, amounts and counts as people write them.
 *
 *     duration   1h30m 10m 250ms 1.5h 1d   units d h m s ms us ns, largest first, each once
 *     bytes      40GiB 512MB 1.5GiB 4096     B; KiB MiB GiB TiB PiB (1024); kB MB GB TB PB (1000)
 *     money      2.00 -0.000001 12           credits, at most 6 decimals, held as micro-credits
 *     count      100 10_000                  digits, `_` between digits
 *     bandwidth  100GB/s 1.5TiB/s            a size and /s, which may be left out
 *     flops      300TFLOPS 1.5PFLOPS        FLOPS; kFLOPS MFLOPS GFLOPS TFLOPS PFLOPS EFLOPS (1000)
 *     ops        400TOPS                     OPS; kOPS MOPS GOPS TOPS POPS EOPS (1000)
 *
 * All figures are integers. A fraction is exact or refused (0.3B is not a size, 1.5ns not a
 * duration, 0.0000001 not an amount). Money alone may have a sign. Blanks, exponents, "nan", "inf"
 * and further text are refused. */
#ifndef BOURSE_FORMATS_UNITS_H
#define BOURSE_FORMATS_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum units_status {
    UNITS_OK,
    UNITS_MALFORMED, /* outside the grammar */
    UNITS_NO_UNIT,   /* a bare number where a unit is needed: 10 for a duration */
    UNITS_UNKNOWN_UNIT,
    UNITS_INEXACT,  /* finer than the smallest unit */
    UNITS_OVERFLOW, /* more than int64 holds */
};

/* The kinds of measures. A failed read leaves *ret alone. */
enum units_kind {
    UNITS_DURATION,
    UNITS_BYTES,
    UNITS_MONEY,
    UNITS_COUNT,
    UNITS_BANDWIDTH, /* bytes per second */
    UNITS_FLOPS,     /* floating-point operations per second */
    UNITS_OPS,       /* integer operations per second */
};
enum units_status units_read(enum units_kind kind, const char *text, int64_t *ret);
enum units_status units_duration(const char *text, int64_t *ret_ns); /* 0 needs no unit */
enum units_status units_bytes(const char *text, int64_t *ret_bytes);
enum units_status units_money(const char *text, int64_t *ret_micro);
enum units_status units_count(const char *text, int64_t *ret_count);

/* Explains a failure to people, and shows what would be right: `"10" has no unit; write for
 * example 10s or 10m`. */
void units_explain(enum units_kind kind, enum units_status status, const char *text, char *ret_text,
                   size_t capacity);

/* The functions below write exact text: reading it gives the same number. All of int64 is
 * allowed, INT64_MIN too, though money alone reads a sign. */
enum { UNITS_TEXT_SIZE = 48 };
/* Writes the value in the largest unit that divides it: 2GiB, 512MB, 1000001B. */
void units_text(enum units_kind kind, int64_t value, char ret_text[UNITS_TEXT_SIZE]);
void units_duration_text(int64_t ns, char ret_text[UNITS_TEXT_SIZE]); /* 1h30m, 250ms, 0s */
/* Writes at least 2 decimals: 2.00, 0.000001. */
void units_money_text(int64_t micro, char ret_text[UNITS_TEXT_SIZE]);

/* The short texts are for reading only, cut to 2 units or 1 decimal. Durations are rounded up
 * (1h 31m, 2.4s), others half up (1.5 GiB, 989.4 TFLOPS). Money and counts stay exact. */
void units_short(enum units_kind kind, int64_t value, char ret_text[UNITS_TEXT_SIZE]);
void units_duration_short(int64_t ns, char ret_text[UNITS_TEXT_SIZE]);
/* Writes the duration rounded to the nearest, for estimates and comparisons. */
void units_duration_near(int64_t ns, char ret_text[UNITS_TEXT_SIZE]);
void units_bytes_short(int64_t bytes, char ret_text[UNITS_TEXT_SIZE]);
/* Writes the duration rounded down, for remaining time. */
void units_duration_down(int64_t ns, char ret_text[UNITS_TEXT_SIZE]);
/* Writes slot-time in hours with 2 decimals, rounded down: 1.50. */
void units_slot_hours(int64_t ns, char ret_text[UNITS_TEXT_SIZE]);

#endif
