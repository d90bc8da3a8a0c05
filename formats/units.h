/* formats/units.h - durations, sizes, amounts and counts as people write them, exactly.
 *
 *     duration   1h30m 10m 250ms 1.5h 1d   units d h m s ms us ns, largest first, each once
 *     bytes      40GiB 512MB 1.5GiB 4096     B; KiB MiB GiB TiB PiB (1024); kB MB GB TB PB (1000)
 *     money      2.00 -0.000001 12           credits, at most 6 decimals, held as micro-credits
 *     count      100 10_000                  digits, `_` between digits
 *     bandwidth  100GB/s 1.5TiB/s            a size and /s, which may be left out
 *     flops      300TFLOPS 1.5PFLOPS         FLOPS; kFLOPS MFLOPS GFLOPS TFLOPS PFLOPS EFLOPS (1000)
 *     ops        400TOPS                     OPS; kOPS MOPS GOPS TOPS POPS EOPS (1000)
 *
 * Integers only: a fraction is taken exactly or refused (0.3B is not a size, 1.5ns not a duration,
 * 0.0000001 not an amount). No sign but money's, no blanks, no exponent, no "nan" or "inf", nothing
 * left over. Pure. */
#ifndef BOURSE_FORMATS_UNITS_H
#define BOURSE_FORMATS_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum units_status {
    UNITS_OK,
    UNITS_MALFORMED, /* not of the grammar */
    UNITS_NO_UNIT,   /* a bare number where a unit is needed: 10 for a duration */
    UNITS_UNKNOWN_UNIT,
    UNITS_INEXACT,  /* finer than the smallest unit */
    UNITS_OVERFLOW, /* more than int64 holds */
};

/* A failed call leaves *ret alone. */
enum units_kind {
    UNITS_DURATION,
    UNITS_BYTES,
    UNITS_MONEY,
    UNITS_COUNT,
    UNITS_BANDWIDTH, /* bytes per second */
    UNITS_FLOPS,     /* operations on numbers with a point, per second */
    UNITS_OPS,       /* on whole numbers */
};
enum units_status units_read(enum units_kind kind, const char *text, int64_t *ret);
enum units_status units_duration(const char *text, int64_t *ret_ns); /* 0 needs no unit */
enum units_status units_bytes(const char *text, int64_t *ret_bytes);
enum units_status units_money(const char *text, int64_t *ret_micro);
enum units_status units_count(const char *text, int64_t *ret_count);

/* What is wrong, for people, with what would be right: `"10" has no unit; write for example 10s or
 * 10m`. */
void units_explain(enum units_kind kind, enum units_status status, const char *text, char *ret_text,
                   size_t capacity);

/* Back to text, exact: reading it gives the same number. All of int64 is welcome, INT64_MIN too,
 * though only money reads a sign. */
enum { UNITS_TEXT_SIZE = 48 };
/* In the largest unit that divides it: 2GiB, 512MB, 1000001B. */
void units_text(enum units_kind kind, int64_t value, char ret_text[UNITS_TEXT_SIZE]);
void units_duration_text(int64_t ns, char ret_text[UNITS_TEXT_SIZE]); /* 1h30m, 250ms, 0s */
/* At least 2 decimals: 2.00, 0.000001. */
void units_money_text(int64_t micro, char ret_text[UNITS_TEXT_SIZE]);

/* For reading only, cut to 2 units or 1 decimal: 1h 31m, 2.4s (rounded up); 1.5 GiB, 989.4 TFLOPS
 * (half up). Money and counts as they are. */
void units_short(enum units_kind kind, int64_t value, char ret_text[UNITS_TEXT_SIZE]);
void units_duration_short(int64_t ns, char ret_text[UNITS_TEXT_SIZE]);
/* The same to the nearest: of what is an estimate, or is held against another. */
void units_duration_near(int64_t ns, char ret_text[UNITS_TEXT_SIZE]);
void units_bytes_short(int64_t bytes, char ret_text[UNITS_TEXT_SIZE]);
/* The same, rounded down: of what is left to be used. */
void units_duration_down(int64_t ns, char ret_text[UNITS_TEXT_SIZE]);
/* Slot-time in hours with 2 decimals, rounded down: 1.50. */
void units_slot_hours(int64_t ns, char ret_text[UNITS_TEXT_SIZE]);

#endif
