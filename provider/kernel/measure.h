/* provider/kernel/measure.h measures how fast a device multiplies and copies. */
#ifndef BOURSE_PROVIDER_KERNEL_MEASURE_H
#define BOURSE_PROVIDER_KERNEL_MEASURE_H

#include "provider/kernel/engine.h"

#include <stdint.h>

struct measure {
    int64_t mflops;    /* float32: a multiplication and an addition count as two */
    int64_t bandwidth; /* bytes that a copy moves in a second; reading and writing count once */
};

/* Measures for two seconds at most, beside the compiler's time. Buffers have at most `memory_bytes`
 * together. Returns false with the problem. */
bool measure_run(struct engine *engine, uint64_t memory_bytes, struct measure *ret_measure,
                 struct problem *ret_problem);

#endif
