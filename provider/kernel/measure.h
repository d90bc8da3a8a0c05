/* provider/kernel/measure.h measures how fast a device multiplies and copies. */
#ifndef BOURSE_PROVIDER_KERNEL_MEASURE_H
#define BOURSE_PROVIDER_KERNEL_MEASURE_H

#include "provider/kernel/engine.h"

#include <stdbool.h>
#include <stdint.h>

/* All that is measured of one device takes this time at most, beside the compiler's. Each figure
 * has a phase of its own: the rate, the copy, and for each of three types of products the ones with
 * copies and the ones without. */
#define MEASURE_MOST_NS INT64_C(2000000000)
#define MEASURE_RATE_NS INT64_C(200000000)
#define MEASURE_COPY_NS INT64_C(150000000)
#define MEASURE_PRODUCT_NS INT64_C(250000000) /* products with copies, of one type */
#define MEASURE_HELD_NS INT64_C(150000000)    /* products without copies, of one type */

/* One figure's time. A round begins only where its end is expected within the phase, so that a slow
 * device does not measure for longer. The first round always begins. */
struct measure_phase {
    int64_t began_ns, most_ns;
    int64_t expected_ns; /* of the next round; 0: nothing is known */
};

struct measure_phase measure_phase_begin(int64_t most_ns);
bool measure_phase_goes_on(const struct measure_phase *phase);

/* Returns the time of the clock that never goes back. */
int64_t measure_now_ns(void);

struct measure {
    int64_t mflops;    /* float32: a multiplication and an addition count as two */
    int64_t bandwidth; /* bytes that a copy moves in a second; reading and writing count once */
};

/* Measures the rate and the copy within their phases. Buffers have at most `memory_bytes` together.
 * Returns false with the problem. */
bool measure_run(struct engine *engine, uint64_t memory_bytes, struct measure *ret_measure,
                 struct problem *ret_problem);

#endif
