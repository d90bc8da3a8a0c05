#include "provider/kernel/product/product_trial.h"

#include "provider/kernel/measure.h"
#include "provider/kernel/product/product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* The product that is compared with plain C has no side that fits a kernel's tiles. */
    TRIED_ROWS = 67,
    TRIED_INNER = 37,
    TRIED_COLUMNS = 129,
    LONG_EVERY = 11,  /* one number of so many needs 13 bits */
    SIDE_FIRST = 256, /* of the first product that is timed */
    SIDE_MOST = 4096,
    ROUNDS_MOST = 40,
    FILL_PERIOD = 13, /* values that matrices repeat */
    FILL_BLOCK = 1024 * FILL_PERIOD,
};
#define LONG_NUMBER 4097.0F
#define ROUND_NS INT64_C(25000000) /* a product that takes this time can be measured */

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static const struct product_parts nothing = {.a = NULL};

/* The values are small whole numbers, so that float32 holds every sum exactly, in any order. */
static void fill(float *values, size_t count, size_t factor)
{
    const size_t block = count < FILL_BLOCK ? count : FILL_BLOCK;
    for (size_t i = 0; i < block; i++) {
        values[i] = (float)(i * factor % FILL_PERIOD) - 6.0F;
    }
    for (size_t i = block; i < count; i += block) {
        memcpy(values + i, values, lesser(block, count - i) * sizeof *values);
    }
}

/* The matrices of the trial, and what the sums of their magnitudes are. */
static struct {
    float a[TRIED_ROWS * TRIED_INNER];
    float b[TRIED_INNER * TRIED_COLUMNS];
    float found[TRIED_ROWS * TRIED_COLUMNS];
    float wanted[TRIED_ROWS * TRIED_COLUMNS];
    float magnitudes[TRIED_ROWS * TRIED_COLUMNS];
} tried;
enum { TRIED_CELLS = TRIED_ROWS * TRIED_COLUMNS };

/* Computes a product on the device and in plain C, and compares each element. An element may differ
 * by `tolerance` of the sum of its magnitudes. */
static bool compare(struct engine *engine, const struct gemm *terms, float tolerance,
                    uint64_t memory_bytes, struct problem *ret_problem)
{
    struct gemm gemm = *terms;
    gemm.c = tried.found;
    memcpy(tried.wanted, tried.found, sizeof tried.found);
    if (product_run(engine, &gemm, nothing, memory_bytes, ret_problem) != OPERATION_OK) {
        return false;
    }
    gemm.c = tried.wanted;
    gemm_reference(&gemm);
    for (size_t i = 0; i < TRIED_CELLS; i++) {
        if (!(fabsf(tried.found[i] - tried.wanted[i]) <= tolerance * tried.magnitudes[i])) {
            problem_set(ret_problem, "a product of the device is wrong: %g instead of %g in %s",
                        (double)tried.found[i], (double)tried.wanted[i],
                        tensor_op_compute_word(terms->compute));
            return false;
        }
    }
    return true;
}

/* Compares a product of whole numbers. Any other bit is a wrong device. In float32, some numbers
 * have more bits than TF32 and bfloat16 hold, so that a device which rounds to these is found. */
static bool is_exact(struct engine *engine, enum tensor_compute compute, uint64_t memory_bytes,
                     struct problem *ret_problem)
{
    const struct gemm gemm = {.rows = TRIED_ROWS,
                              .inner = TRIED_INNER,
                              .columns = TRIED_COLUMNS,
                              .alpha = 2,
                              .beta = -1,
                              .a = tried.a,
                              .b = tried.b,
                              .compute = compute};
    fill(tried.a, sizeof tried.a / sizeof *tried.a, 7);
    for (size_t i = 0; compute == TENSOR_FP32 && i < sizeof tried.a / sizeof *tried.a;
         i += LONG_EVERY) {
        tried.a[i] = LONG_NUMBER;
    }
    fill(tried.b, sizeof tried.b / sizeof *tried.b, 5);
    fill(tried.found, TRIED_CELLS, 3);
    return compare(engine, &gemm, 0, memory_bytes, ret_problem);
}

/* Fills the values with fractions from -1/2 to 1/2 that need all bits of float32. */
static void fill_fractions(float *values, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525U + 1013904223U;
        values[i] = (float)(seed >> 8) * 0x1p-24F - 0.5F;
    }
}

static void take_magnitudes(const float *from, size_t count, float *ret_magnitudes)
{
    for (size_t i = 0; i < count; i++) {
        ret_magnitudes[i] = fabsf(from[i]);
    }
}

/* Compares a product of fractions whose factors may be rounded. */
static bool is_near(struct engine *engine, enum tensor_compute compute, uint64_t memory_bytes,
                    struct problem *ret_problem)
{
    static const float tolerances[TENSOR_COMPUTES] = {
        [TENSOR_TF32] = PRODUCT_TF32_TOLERANCE, [TENSOR_BF16] = PRODUCT_BF16_TOLERANCE};
    static float a[TRIED_ROWS * TRIED_INNER];
    static float b[TRIED_INNER * TRIED_COLUMNS];
    struct gemm gemm = {.rows = TRIED_ROWS,
                        .inner = TRIED_INNER,
                        .columns = TRIED_COLUMNS,
                        .alpha = 1,
                        .a = a,
                        .b = b,
                        .c = tried.magnitudes};
    fill_fractions(tried.a, sizeof tried.a / sizeof *tried.a, 1);
    fill_fractions(tried.b, sizeof tried.b / sizeof *tried.b, 2);
    take_magnitudes(tried.a, sizeof a / sizeof *a, a);
    take_magnitudes(tried.b, sizeof b / sizeof *b, b);
    gemm_reference(&gemm);
    gemm.a = tried.a;
    gemm.b = tried.b;
    gemm.compute = compute;
    return compare(engine, &gemm, tolerances[compute], memory_bytes, ret_problem);
}

/* The products that are timed. */
struct timing {
    struct engine *engine;
    float *values; /* A, B and C, one after another */
    uint64_t most; /* the longest side that fits the memory */
    uint64_t memory_bytes;
    enum tensor_compute compute;
    struct problem *problem;
};

static struct gemm square_of(const struct timing *timing, uint64_t side)
{
    const uint64_t cells = side * side;
    return (struct gemm){.rows = side,
                         .inner = side,
                         .columns = side,
                         .alpha = 1,
                         .a = timing->values,
                         .b = timing->values + cells,
                         .c = timing->values + 2 * cells,
                         .compute = timing->compute};
}

/* Returns the time of one product with its copies, or -1 with the problem. */
static int64_t time_product(const struct timing *timing, uint64_t side)
{
    const struct gemm gemm = square_of(timing, side);
    const int64_t before_ns = measure_now_ns();
    const bool good = product_run(timing->engine, &gemm, nothing, timing->memory_bytes,
                                  timing->problem) == OPERATION_OK;
    const int64_t took_ns = measure_now_ns() - before_ns;
    return !good ? -1 : took_ns > 0 ? took_ns : 1;
}

static double rate_of(uint64_t side, int64_t took_ns)
{
    return 2.0 * (double)side * (double)side * (double)side * 1e3 / (double)took_ns;
}

/* Returns the largest side of a product that fits the memory twice: here, and on the device. */
static uint64_t side_most(uint64_t memory_bytes)
{
    uint64_t side = SIDE_MOST;
    while (side > 1 && 6 * side * side * sizeof(float) > memory_bytes) {
        side /= 2;
    }
    return side;
}

/* The best of several products counts, because other load slows the rest. *ret_side is the side of
 * the last and longest ones. */
static bool time_products(const struct timing *timing, int64_t *ret_mflops, uint64_t *ret_side)
{
    uint64_t side = lesser(SIDE_FIRST, timing->most);
    double best = 0;
    struct measure_phase phase = measure_phase_begin(MEASURE_PRODUCT_NS);
    for (int round = 0; round < ROUNDS_MOST && measure_phase_goes_on(&phase); round++) {
        const int64_t took_ns = time_product(timing, side);
        if (took_ns < 0) {
            return false;
        }
        best = rate_of(side, took_ns) > best ? rate_of(side, took_ns) : best;
        *ret_side = side;
        phase.expected_ns = took_ns;
        /* Twice the side is eight times the work. */
        if (took_ns < ROUND_NS && 2 * side <= timing->most &&
            measure_now_ns() - phase.began_ns + 8 * took_ns <= phase.most_ns) {
            side *= 2;
            phase.expected_ns = 8 * took_ns;
        }
    }
    *ret_mflops = (int64_t)best;
    return true;
}

/* Computes products of buffers that are on the device, until the phase ends. */
static bool repeat_held(const struct timing *timing, const struct kernel_multiplication *terms,
                        void **kernel, int64_t *ret_mflops)
{
    double best = 0;
    struct measure_phase phase = measure_phase_begin(MEASURE_HELD_NS);
    for (int round = 0; round < ROUNDS_MOST && measure_phase_goes_on(&phase); round++) {
        const int64_t before_ns = measure_now_ns();
        if (product_on_device(timing->engine, terms, kernel, timing->problem) != OPERATION_OK) {
            return false;
        }
        const int64_t elapsed_ns = measure_now_ns() - before_ns;
        phase.expected_ns = elapsed_ns > 0 ? elapsed_ns : 1;
        const double rate = rate_of(terms->rows, phase.expected_ns);
        best = rate > best ? rate : best;
    }
    *ret_mflops = (int64_t)best;
    return true;
}

/* Times products of this side without any copy. */
static bool time_held(const struct timing *timing, uint64_t side, int64_t *ret_mflops)
{
    static const char what[] = "a matrix to measure with";
    const struct gemm gemm = square_of(timing, side);
    const struct kernel_interface *interface = timing->engine->device->interface;
    struct kernel_buffer buffers[3]; /* A, B and C */
    const float *const contents[] = {gemm.a, gemm.b, NULL};
    void *kernel = NULL;
    size_t count = 0;
    bool good = true;
    while (good && count < 3) {
        good = interface->make(timing->engine, side * side * sizeof(float), contents[count], what,
                               &buffers[count], timing->problem) == OPERATION_OK;
        count += good;
    }
    if (good) {
        const struct kernel_multiplication terms = {.rows = side,
                                                    .inner = side,
                                                    .columns = side,
                                                    .alpha = 1,
                                                    .compute = timing->compute,
                                                    .a = buffers[0],
                                                    .b = buffers[1],
                                                    .c = buffers[2]};
        good = repeat_held(timing, &terms, &kernel, ret_mflops);
    }
    for (size_t i = 0; i < count; i++) {
        interface->drop_buffer(timing->engine, buffers[i]);
    }
    if (kernel != NULL) {
        interface->drop_kernel(timing->engine, kernel);
    }
    return good;
}

bool product_trial(struct engine *engine, enum tensor_compute compute, uint64_t memory_bytes,
                   struct product_figures *ret_figures, struct problem *ret_problem)
{
    struct timing timing = {.engine = engine,
                            .most = side_most(memory_bytes),
                            .memory_bytes = memory_bytes,
                            .compute = compute,
                            .problem = ret_problem};
    struct product_figures figures = {.mflops = 0};
    uint64_t side = 0;
    /* The first product also makes the code. */
    if (!is_exact(engine, compute, memory_bytes, ret_problem) ||
        (compute != TENSOR_FP32 && !is_near(engine, compute, memory_bytes, ret_problem))) {
        return false;
    }
    timing.values = calloc(3 * timing.most * timing.most, sizeof *timing.values);
    if (timing.values == NULL) {
        problem_set(ret_problem, "no memory to measure with");
        return false;
    }
    fill(timing.values, 2 * timing.most * timing.most, 7);
    const bool good = time_products(&timing, &figures.mflops, &side) &&
                      time_held(&timing, side, &figures.held_mflops);
    free(timing.values);
    if (good) {
        /* The second kind does less than the first, so a lower figure is other load. */
        figures.held_mflops =
            figures.held_mflops > figures.mflops ? figures.held_mflops : figures.mflops;
        *ret_figures = figures;
    }
    return good;
}
