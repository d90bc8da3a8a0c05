/* bench/exchange_step/samples.h keeps the time of each command by kind, and says what they show. */
#ifndef BOURSE_BENCH_EXCHANGE_STEP_SAMPLES_H
#define BOURSE_BENCH_EXCHANGE_STEP_SAMPLES_H

#include "base/checked.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum kind {
    ASK_PLACE,
    ASK_REPLACE,
    ASK_CANCEL,
    JOB_REST,    /* submitted, and cheaper than any ask */
    JOB_REPLACE, /* its cap */
    JOB_CANCEL,
    JOB_FILL, /* submitted and leased at once */
    RESULT,
    KIND_COUNT,
};

struct samples { /* nanoseconds of each command, by kind */
    uint32_t *each[KIND_COUNT];
    size_t count[KIND_COUNT];
    int64_t whole_ns; /* the round */
};

static inline int64_t wall_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cheaper to read than the thread's own */
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Begins samples with room for so many of each kind. */
void samples_init(struct samples *samples, uint64_t most);
/* Returns the time of one reading of the clock; each timed span has one reading in it. */
double samples_clock_ns(void);
/* Returns figures of each kind of command, and frees the samples. `reading_ns` is the time of a
 * reading of the clock. The caller owns the JSON. */
json_t *samples_profile(struct samples *samples, double reading_ns);

#endif
