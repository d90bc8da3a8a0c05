/* The units units.c and units_text.c share these tables. */
#ifndef BOURSE_FORMATS_UNITS_INTERNAL_H
#define BOURSE_FORMATS_UNITS_INTERNAL_H

#include "formats/units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unit {
    const char *name;
    uint64_t size;
};

/* The units of one kind of measure. */
struct measure {
    const struct unit *units; /* largest first, 1 last */
    size_t count;
    bool needs_unit;
    const char *suffix; /* may follow the unit */
};

enum { DURATION_UNITS = 7 };
extern const struct unit units_durations[DURATION_UNITS];

/* Returns the units of a kind of figure other than durations, money and counts. */
struct measure units_measure_of(enum units_kind kind);

#endif
