/* A simulated device is a device of the catalogue as if it stood here. This machine's cores compute
 * its products, and planner/cost/cost.h says how long the device would take.
 *
 * The agent never opens a matrix. The shape follows from the lengths of the operands' and the
 * result's files. Let A, B and C have a, b and c elements. Then A is m x k, B is k x n and C is m x
 * n; so m = sqrt(a c / b), and so on. Headers are taken to have the usual length; a longer header
 * counts as data. The module only computes. */
#ifndef BOURSE_PROVIDER_DEVICE_SIMULATION_H
#define BOURSE_PROVIDER_DEVICE_SIMULATION_H

#include "base/problem.h"
#include "formats/tensor_op.h"
#include "planner/cost/catalogue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIMULATION_LEAST_NS INT64_C(1000)

/* Sizes are in bytes; 0: the file is not there. */
struct simulation_files {
    uint64_t a, b, result;
};

struct simulation {
    int64_t busy_ns;   /* at least SIMULATION_LEAST_NS */
    int64_t energy_uj; /* -1: unknown */
    char detail[160];  /* basis of the figures, for people */
};

/* Refuses an operation that the device could never do, before anything is computed. Examples are an
 * operation that is no product, a type without a rate, and operands larger than its memory. Returns
 * false with the problem then. */
bool simulation_begin(const struct catalogue_device *device, const struct tensor_op *operation,
                      const struct simulation_files *files, struct problem *ret_problem);
/* Fills the simulation once the result is there. Returns false when operands and result together
 * exceed the memory. */
bool simulation_end(const struct catalogue_device *device, const struct tensor_op *operation,
                    const struct simulation_files *files, struct simulation *ret_simulation,
                    struct problem *ret_problem);

/* Returns Mflop/s in large products of float32 arrays; 0: the device cannot compute them. */
int64_t simulation_mflops(const struct catalogue_device *device);

#endif
