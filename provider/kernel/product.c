#include "provider/kernel/product.h"

#include "base/text.h"
#include "provider/kernel/measure.h"

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

/* One product on its way. */
struct product {
    struct engine *engine;
    const struct kernel_interface *interface;
    const struct gemm *gemm;
    struct kernel_product plan;
    struct product_parts parts;
    uint64_t memory_bytes;
    uint64_t band;       /* rows of A that go at a time */
    uint64_t left_bytes; /* of the memory, beside the buffers that are made */
    void *kernel;
    struct kernel_buffer b;
    struct problem *problem;
};

static bool find_kernel(struct product *product)
{
    static const char name[] = "the program of products";
    const struct kernel_product *plan = &product->plan;
    void *program;
    return engine_build(product->engine, name, plan->source, strlen(plan->source), plan->options,
                        &program, product->problem) == OPERATION_OK &&
           product->interface->find(product->engine, program, name, plan->entry, &product->kernel,
                                    product->problem) == OPERATION_OK;
}

/* ---------------------------------------------------------------- memory */

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Chooses how many rows of A and C go at a time beside B: as many as the memory and one launch
 * take. Returns false when not one row fits. */
static bool choose_band(struct product *product)
{
    const struct gemm *gemm = product->gemm;
    const uint64_t memory_bytes = product->memory_bytes;
    const uint64_t told = product->engine->device->buffer_bytes;
    const uint64_t buffer_bytes = lesser(told > 0 ? told : memory_bytes, memory_bytes);
    const uint64_t row_bytes = (gemm->inner + gemm->columns) * sizeof(float);
    const uint64_t longer = gemm->inner > gemm->columns ? gemm->inner : gemm->columns;
    uint64_t b_bytes;
    product->band = 0;
    if (!__builtin_mul_overflow(gemm->inner * sizeof(float), gemm->columns, &b_bytes) &&
        b_bytes <= buffer_bytes) {
        const uint64_t rows =
            lesser((memory_bytes - b_bytes) / row_bytes, buffer_bytes / (longer * sizeof(float)));
        product->band = lesser(rows, gemm->rows);
        if (product->plan.row_blocks_most > 0) {
            product->band =
                lesser(product->band, (uint64_t)product->plan.row_blocks_most * product->plan.rows);
        }
    }
    if (product->band == 0) {
        problem_set(product->problem,
                    "a factor of %llu x %llu float32 numbers is too large beside one row of the "
                    "others: buffers have at most %s, and %s together; cut the product into tiles "
                    "(`bourse run matmul`)",
                    (unsigned long long)gemm->inner, (unsigned long long)gemm->columns,
                    text_size(buffer_bytes).text, text_size(memory_bytes).text);
    }
    return product->band > 0;
}

/* ---------------------------------------------------------------- the launches */

/* Sets the parameters that are the same for every band. All kernels have these parameters: rows,
 * inner, columns, alpha, beta, A, B, C. */
enum { PARAMETER_ROWS, PARAMETER_INNER, PARAMETER_COLUMNS, PARAMETER_ALPHA, PARAMETER_BETA };
enum { PARAMETER_A = PARAMETER_BETA + 1, PARAMETER_B, PARAMETER_C };

static enum operation_status set(const struct product *product, size_t parameter, const void *value)
{
    return product->interface->set(product->engine, product->kernel, parameter, value, 4,
                                   "the program of products", product->problem);
}

static enum operation_status set_buffer(const struct product *product, size_t parameter,
                                        struct kernel_buffer buffer)
{
    return product->interface->set_buffer(product->engine, product->kernel, parameter, buffer,
                                          "the program of products", product->problem);
}

static bool set_all(const struct product *product)
{
    const struct gemm *gemm = product->gemm;
    const uint32_t inner = (uint32_t)gemm->inner;
    const uint32_t columns = (uint32_t)gemm->columns;
    return set(product, PARAMETER_INNER, &inner) == OPERATION_OK &&
           set(product, PARAMETER_COLUMNS, &columns) == OPERATION_OK &&
           set(product, PARAMETER_ALPHA, &gemm->alpha) == OPERATION_OK &&
           set(product, PARAMETER_BETA, &gemm->beta) == OPERATION_OK &&
           set_buffer(product, PARAMETER_B, product->b) == OPERATION_OK;
}

/* Computes the band by the kernel of bourse. */
static enum operation_status launch(struct product *product, uint32_t rows, struct kernel_buffer a,
                                    struct kernel_buffer c)
{
    if (product->kernel == NULL && !find_kernel(product)) {
        return OPERATION_DEVICE; /* the program is ours, not the job's */
    }
    if (!set_all(product)) {
        return OPERATION_FAILED;
    }
    const struct kernel_product *plan = &product->plan;
    const uint64_t row_groups = rows / plan->rows + (rows % plan->rows != 0);
    const uint64_t columns = product->gemm->columns;
    const uint64_t column_groups = columns / plan->columns + (columns % plan->columns != 0);
    const bool rows_first = plan->row_dimension == 0;
    const struct kernel_op op = {
        .dimensions = 2,
        .global = {(rows_first ? row_groups : column_groups) * plan->group[0],
                   (rows_first ? column_groups : row_groups) * plan->group[1]},
        .has_group = true,
        .group = {plan->group[0], plan->group[1]}};
    enum operation_status status = set(product, PARAMETER_ROWS, &rows);
    status = status == OPERATION_OK ? set_buffer(product, PARAMETER_A, a) : status;
    status = status == OPERATION_OK ? set_buffer(product, PARAMETER_C, c) : status;
    return status == OPERATION_OK
               ? product->interface->run(product->engine, product->kernel, &op, product->problem)
               : status;
}

/* Computes the band by the library of the device's maker where there is one, else by the kernel.
 * The kernel computes in float32 what the library refuses. */
static enum operation_status compute(struct product *product, uint64_t rows, struct kernel_buffer a,
                                     struct kernel_buffer c)
{
    const struct gemm *gemm = product->gemm;
    const struct kernel_multiplication by_library = {.rows = rows,
                                                     .inner = gemm->inner,
                                                     .columns = gemm->columns,
                                                     .alpha = gemm->alpha,
                                                     .beta = gemm->beta,
                                                     .compute = gemm->compute,
                                                     .a = a,
                                                     .b = product->b,
                                                     .c = c};
    bool is_refused = true;
    enum operation_status status = OPERATION_OK;
    engine_ahead_allow(product->engine);
    if (product->engine->has_library && !product->engine->shuns_library) {
        status = product->interface->multiply(product->engine, &by_library, &is_refused,
                                              product->problem);
    }
    return is_refused && status == OPERATION_OK ? launch(product, (uint32_t)rows, a, c) : status;
}

/* Makes a buffer of the product, and counts its bytes until give(). The band is chosen so that all
 * buffers fit the memory. */
static enum operation_status take(struct product *product, uint64_t size, const void *bytes,
                                  const struct held_part *part, const char *what,
                                  struct engine_buffer *ret_buffer)
{
    struct engine_want want = {.bytes = bytes, .size = size, .part = part, .what = what};
    want.spare_bytes =
        engine_idle_most(product->engine, product->memory_bytes, product->left_bytes - size);
    const enum operation_status status =
        engine_buffers_take(product->engine, &want, ret_buffer, product->problem);
    product->left_bytes -= status == OPERATION_OK ? size : 0;
    return status;
}

static void give(struct product *product, uint64_t size, const struct engine_buffer *buffer)
{
    engine_buffers_give(product->engine, buffer);
    product->left_bytes += size;
}

/* Computes the rows [first, first + rows) of C. The kernel reads C only when beta is not 0. */
static enum operation_status run_band(struct product *product, uint64_t first, uint64_t rows)
{
    static const char result[] = "the result on the device";
    const struct gemm *gemm = product->gemm;
    const uint64_t a_bytes = rows * gemm->inner * sizeof(float);
    const uint64_t c_bytes = rows * gemm->columns * sizeof(float);
    float *c_values = gemm->c + first * gemm->columns;
    struct engine_buffer a;
    struct engine_buffer c;
    enum operation_status status =
        take(product, a_bytes, gemm->a + first * gemm->inner,
             rows == gemm->rows ? product->parts.a : NULL, "the first factor on the device", &a);
    if (status != OPERATION_OK) {
        return status;
    }
    status = take(product, c_bytes, gemm->beta != 0 ? c_values : NULL, NULL, result, &c);
    if (status == OPERATION_OK) {
        status = compute(product, rows, a.buffer, c.buffer);
        status = status == OPERATION_OK
                     ? product->interface->read(product->engine, c.buffer, 0, (size_t)c_bytes,
                                                c_values, result, product->problem)
                     : status;
        if (status == OPERATION_OK && rows == gemm->rows && product->parts.result_name != NULL) {
            engine_buffers_leave(product->engine, &c, product->parts.result_name,
                                 &product->parts.result);
        } else {
            engine_buffers_give(product->engine, &c);
        }
        product->left_bytes += c_bytes;
    }
    give(product, a_bytes, &a);
    return status;
}

static enum operation_status run_bands(struct product *product)
{
    const struct gemm *gemm = product->gemm;
    const uint64_t b_bytes = gemm->inner * gemm->columns * sizeof(float);
    struct engine_buffer b;
    enum operation_status status =
        take(product, b_bytes, gemm->b, product->parts.b, "the second factor on the device", &b);
    if (status != OPERATION_OK) {
        return status;
    }
    product->b = b.buffer;
    for (uint64_t first = 0; status == OPERATION_OK && first < gemm->rows; first += product->band) {
        status = run_band(product, first, lesser(product->band, gemm->rows - first));
    }
    give(product, b_bytes, &b);
    return status;
}

enum operation_status product_run(struct engine *engine, const struct gemm *gemm,
                                  struct product_parts parts, uint64_t memory_bytes,
                                  struct problem *ret_problem)
{
    struct product product = {.engine = engine,
                              .interface = engine->device->interface,
                              .gemm = gemm,
                              .parts = parts,
                              .memory_bytes = memory_bytes,
                              .left_bytes = memory_bytes,
                              .problem = ret_problem};
    if (gemm->rows == 0 || gemm->inner == 0 || gemm->columns == 0 || gemm->alpha == 0) {
        struct gemm rest = *gemm; /* beta C: no value of A and B matters, not even NaN */
        rest.inner = 0;
        gemm_reference(&rest);
        return OPERATION_OK;
    }
    if (gemm->rows > PRODUCT_SIDE_MOST || gemm->inner > PRODUCT_SIDE_MOST ||
        gemm->columns > PRODUCT_SIDE_MOST) {
        problem_set(ret_problem, "a matrix on a device has at most %llu rows and columns",
                    (unsigned long long)PRODUCT_SIDE_MOST);
        return OPERATION_FAILED;
    }
    engine->device->interface->product(engine, &product.plan);
    if (!choose_band(&product)) {
        return OPERATION_MEMORY;
    }
    if (!engine->has_library && !find_kernel(&product)) {
        return OPERATION_DEVICE;
    }
    const enum operation_status status = run_bands(&product);
    if (product.kernel != NULL) {
        product.interface->drop_kernel(engine, product.kernel);
    }
    return status == OPERATION_FAILED ? OPERATION_DEVICE : status;
}

/* ---------------------------------------------------------------- the trial */

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
static bool repeat_held(struct product *product, struct kernel_buffer a, struct kernel_buffer c,
                        int64_t *ret_mflops)
{
    const uint64_t side = product->gemm->rows;
    double best = 0;
    struct measure_phase phase = measure_phase_begin(MEASURE_HELD_NS);
    for (int round = 0; round < ROUNDS_MOST && measure_phase_goes_on(&phase); round++) {
        const int64_t before_ns = measure_now_ns();
        if (compute(product, side, a, c) != OPERATION_OK) {
            return false;
        }
        const int64_t elapsed_ns = measure_now_ns() - before_ns;
        phase.expected_ns = elapsed_ns > 0 ? elapsed_ns : 1;
        best = rate_of(side, phase.expected_ns) > best ? rate_of(side, phase.expected_ns) : best;
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
    struct product product = {.engine = timing->engine,
                              .interface = interface,
                              .gemm = &gemm,
                              .memory_bytes = timing->memory_bytes,
                              .problem = timing->problem};
    struct kernel_buffer buffers[3]; /* A, B and C */
    const float *const contents[] = {gemm.a, gemm.b, NULL};
    size_t count = 0;
    bool good = true;
    interface->product(timing->engine, &product.plan);
    while (good && count < 3) {
        good = interface->make(timing->engine, side * side * sizeof(float), contents[count], what,
                               &buffers[count], timing->problem) == OPERATION_OK;
        count += good;
    }
    product.b = buffers[1];
    good = good && repeat_held(&product, buffers[0], buffers[2], ret_mflops);
    for (size_t i = 0; i < count; i++) {
        interface->drop_buffer(timing->engine, buffers[i]);
    }
    if (product.kernel != NULL) {
        interface->drop_kernel(timing->engine, product.kernel);
    }
    return good;
}

bool product_measure(struct engine *engine, enum tensor_compute compute, uint64_t memory_bytes,
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
