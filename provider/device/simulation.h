/* provider/device/simulation.h - a device of the catalogue as if it stood here: products are
 * computed by this machine's cores, and what they take is what planner/cost/cost.h says of the
 * device.
 *
 * The agent never opens a matrix. Its shape follows from the lengths of the operands' and the
 * result's files: of A, B and C with a, b and c elements it is m x k, k x n and m x n, so m =
 * sqrt(a c / b), and so on. Headers are taken to have the usual length; a longer one counts as
 * data. Computes only. */
#ifndef BOURSE_PROVIDER_DEVICE_SIMULATION_H
#define BOURSE_PROVIDER_DEVICE_SIMULATION_H

#include "base/problem.h"
#include "formats/tensor_op.h"
#include "planner/cost/catalogue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIMULATION_LEAST_NS INT64_C(1000)

struct simulation_files { /* bytes; 0: not there */
    uint64_t a, b, result;
};

struct simulation {
    int64_t busy_ns;   /* at least SIMULATION_LEAST_NS */
    int64_t energy_uj; /* -1: unknown */
    char detail[160];  /* what it rests on, for people */
};

/* What the device could never do is refused before anything is computed: an operation that is no
 * product, a type that it has no rate for, operands that are more than its memory. */
bool simulation_begin(const struct catalogue_device *device, const struct tensor_op *operation,
                      const struct simulation_files *files, struct problem *ret_problem);
/* Once the result is there. False: with it, it is more than the memory. */
bool simulation_end(const struct catalogue_device *device, const struct tensor_op *operation,
                    const struct simulation_files *files, struct simulation *ret_simulation,
                    struct problem *ret_problem);

/* Mflop/s in large products of float32 arrays; 0: it cannot. */
int64_t simulation_mflops(const struct catalogue_device *device);

#endif
