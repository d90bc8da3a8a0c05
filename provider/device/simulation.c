#include "provider/device/simulation.h"

#include "base/checked.h"
#include "formats/npy.h"
#include "planner/cost/cost.h"
#include "protocol/limits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BUSY_MOST_S 1e9

static uint64_t elements(uint64_t bytes)
{
    return bytes > NPY_MATRIX_BYTES ? (bytes - NPY_MATRIX_BYTES) / sizeof(float) : 0;
}

/* Returns floor(sqrt(a b / c)), at most OPERATION_DIMENSION_MOST. */
static uint64_t mean(uint64_t a, uint64_t b, uint64_t c)
{
    uint128 square = (uint128)a * b / c;
    uint64_t low = 0;
    uint64_t high = OPERATION_DIMENSION_MOST;
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if ((uint128)middle * middle <= square) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Returns false when there is nothing to compute. */
static bool shape_of(const struct tensor_op *operation, const struct simulation_files *files,
                     struct operation *ret_operation)
{
    uint64_t a = elements(files->a);
    uint64_t b = elements(files->b);
    uint64_t c = elements(files->result);
    if (a == 0 || b == 0 || c == 0) {
        return false;
    }
    *ret_operation = operation_of(
        operation->verb == TENSOR_GEMM ? OPERATION_GEMM : OPERATION_MATMUL, DTYPE_FP32);
    struct product_shape *shape = &ret_operation->shape.product;
    shape->m = (int64_t)mean(a, c, b);
    shape->n = (int64_t)mean(b, c, a);
    shape->k = (int64_t)mean(a, b, c);
    return shape->m > 0 && shape->n > 0 && shape->k > 0;
}

static bool refuse(enum cost_status status, const struct catalogue_device *device,
                   const struct operation *operation, const struct cost *cost,
                   struct problem *problem)
{
    char why[sizeof problem->text];
    if (status == COST_NO_DTYPE) {
        problem_set(problem,
                    "the simulated %s cannot multiply float32 matrices: no rate of it is known for "
                    "fp32, tf32, bf16 or fp16",
                    device->id);
        return false;
    }
    cost_explain(status, device->id, &device->profile, operation, cost, why, sizeof why);
    problem_set(problem, "the simulated device %s: %s",
                status == COST_NO_MEMORY ? "has not the memory" : "cannot do it", why);
    return false;
}

bool simulation_begin(const struct catalogue_device *device, const struct tensor_op *operation,
                      const struct simulation_files *files, struct problem *ret_problem)
{
    const struct figure *memory = &device->profile.figures[FIGURE_MEMORY];
    const struct operation least = operation_of(OPERATION_MATMUL, DTYPE_FP32);
    struct cost cost;
    if (operation->verb == TENSOR_FREIVALDS) {
        problem_set(ret_problem, "the simulated %s computes matmul and gemm, nothing else",
                    device->id);
        return false;
    }
    enum cost_status status = cost_float32(&device->profile, &least, &cost);
    if (status != COST_OK) {
        return refuse(status, device, &least, &cost, ret_problem);
    }
    double bytes = ((double)elements(files->a) + (double)elements(files->b)) * sizeof(float);
    if (memory->source != FIGURE_UNKNOWN && bytes > memory->value) {
        problem_set(ret_problem,
                    "the simulated device has not the memory: the operands are %.3g GB, and %s has "
                    "%.3g GB",
                    bytes / 1e9, device->id, memory->value / 1e9);
        return false;
    }
    return true;
}

bool simulation_end(const struct catalogue_device *device, const struct tensor_op *operation,
                    const struct simulation_files *files, struct simulation *ret_simulation,
                    struct problem *ret_problem)
{
    struct operation shape;
    struct cost cost = {.passes = 1, .dtype = DTYPE_FP32};
    if (shape_of(operation, files, &shape)) {
        enum cost_status status = cost_float32(&device->profile, &shape, &cost);
        if (status != COST_OK) {
            return refuse(status, device, &shape, &cost, ret_problem);
        }
    }
    double seconds = cost.time_s.value < BUSY_MOST_S ? cost.time_s.value : BUSY_MOST_S;
    int64_t busy_ns = (int64_t)(seconds * NS_PER_S);
    bool has_energy = cost.energy_j.source != FIGURE_UNKNOWN &&
                      cost.energy_j.value < (double)(LIMIT_ENERGY_UJ / 1000000);
    *ret_simulation = (struct simulation){
        .busy_ns = busy_ns > SIMULATION_LEAST_NS ? busy_ns : SIMULATION_LEAST_NS,
        .energy_uj = has_energy ? llround(cost.energy_j.value * 1e6) : -1,
    };
    bool is_long = ret_simulation->busy_ns >= NS_PER_MS;
    int length =
        snprintf(ret_simulation->detail, sizeof ret_simulation->detail,
                 "simulated %s: %.4g %s by the roofline", device->id,
                 (double)ret_simulation->busy_ns / (is_long ? 1e6 : 1e3), is_long ? "ms" : "us");
    if (cost.passes > 1 && length > 0 && (size_t)length < sizeof ret_simulation->detail) {
        (void)snprintf(ret_simulation->detail + length,
                       sizeof ret_simulation->detail - (size_t)length, ", fp32 in %u passes of %s",
                       cost.passes, dtype_name(cost.dtype));
    }
    return true;
}

int64_t simulation_mflops(const struct catalogue_device *device)
{
    const struct operation one = operation_of(OPERATION_MATMUL, DTYPE_FP32);
    struct cost cost;
    if (cost_float32(&device->profile, &one, &cost) != COST_OK) {
        return 0;
    }
    return (int64_t)(cost.operations / cost.terms[COST_COMPUTE].value / 1e6);
}
