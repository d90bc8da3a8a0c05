#include "provider/kernel/product/product.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

enum operation_status product_on_device(struct engine *engine,
                                        const struct kernel_multiplication *terms, void **kernel,
                                        struct problem *ret_problem)
{
    const struct gemm gemm = {.rows = terms->rows,
                              .inner = terms->inner,
                              .columns = terms->columns,
                              .alpha = terms->alpha,
                              .beta = terms->beta,
                              .compute = terms->compute};
    struct product product = {.engine = engine,
                              .interface = engine->device->interface,
                              .gemm = &gemm,
                              .kernel = *kernel,
                              .b = terms->b,
                              .problem = ret_problem};
    engine->device->interface->product(engine, &product.plan);
    const enum operation_status status = compute(&product, terms->rows, terms->a, terms->c);
    *kernel = product.kernel;
    return status;
}
