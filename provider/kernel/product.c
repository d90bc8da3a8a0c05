#include "provider/kernel/product.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    /* The product that is compared with plain C has no side that fits a kernel's tiles. */
    TRIED_ROWS = 67,
    TRIED_INNER = 37,
    TRIED_COLUMNS = 129,
    LONG_EVERY = 11,  /* one number of so many needs 13 bits */
    SIDE_FIRST = 256, /* of the first product that is timed */
    SIDE_MOST = 4096,
    ROUNDS_MOST = 40,
};
#define LONG_NUMBER 4097.0F
#define ROUND_NS INT64_C(50000000)  /* a product that takes this time can be measured */
#define PHASE_NS INT64_C(900000000) /* no product begins later */

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

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The values are small whole numbers, so that float32 holds every sum exactly, in any order. */
static void fill(float *values, size_t count, size_t factor)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(i * factor % 13) - 6.0F;
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

/* Returns the time of one product, or -1 with the problem. */
static int64_t time_product(struct engine *engine, float *values, uint64_t side,
                            enum tensor_compute compute, uint64_t memory_bytes,
                            struct problem *ret_problem)
{
    const uint64_t cells = side * side;
    const struct gemm gemm = {.rows = side,
                              .inner = side,
                              .columns = side,
                              .alpha = 1,
                              .a = values,
                              .b = values + cells,
                              .c = values + 2 * cells,
                              .compute = compute};
    const int64_t before_ns = now_ns();
    const bool good =
        product_run(engine, &gemm, nothing, memory_bytes, ret_problem) == OPERATION_OK;
    const int64_t took_ns = now_ns() - before_ns;
    return !good ? -1 : took_ns > 0 ? took_ns : 1;
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

/* The best of several products counts, because other load slows the rest. */
static bool time_products(struct engine *engine, float *values, uint64_t most,
                          enum tensor_compute compute, uint64_t memory_bytes, int64_t *ret_mflops,
                          struct problem *ret_problem)
{
    uint64_t side = lesser(SIDE_FIRST, most);
    double best = 0;
    const int64_t began_ns = now_ns();
    for (int round = 0; round < ROUNDS_MOST && (round == 0 || now_ns() - began_ns < PHASE_NS);
         round++) {
        const int64_t took_ns =
            time_product(engine, values, side, compute, memory_bytes, ret_problem);
        if (took_ns < 0) {
            return false;
        }
        const double rate = 2.0 * (double)side * (double)side * (double)side * 1e3;
        best = rate / (double)took_ns > best ? rate / (double)took_ns : best;
        side = took_ns < ROUND_NS && 2 * side <= most ? 2 * side : side;
    }
    *ret_mflops = (int64_t)best;
    return true;
}

bool product_measure(struct engine *engine, enum tensor_compute compute, uint64_t memory_bytes,
                     int64_t *ret_mflops, struct problem *ret_problem)
{
    const uint64_t most = side_most(memory_bytes);
    /* The first product also makes the code. */
    if (!is_exact(engine, compute, memory_bytes, ret_problem) ||
        (compute != TENSOR_FP32 && !is_near(engine, compute, memory_bytes, ret_problem))) {
        return false;
    }
    float *values = calloc(3 * most * most, sizeof *values);
    if (values == NULL) {
        problem_set(ret_problem, "no memory to measure with");
        return false;
    }
    fill(values, 2 * most * most, 7);
    const bool good =
        time_products(engine, values, most, compute, memory_bytes, ret_mflops, ret_problem);
    free(values);
    return good;
}
