#include "planner/cost.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct dtype_facts {
    const char *name;
    double bytes, result_bytes; /* of an element */
    enum profile_figure peak;
};

static const struct dtype_facts dtypes[COST_DTYPES] = {
    [COST_FP64] = {"fp64", 8, 8, FIGURE_FP64_MATRIX}, [COST_FP32] = {"fp32", 4, 4, FIGURE_FP32},
    [COST_TF32] = {"tf32", 4, 4, FIGURE_TF32},        [COST_FP16] = {"fp16", 2, 2, FIGURE_FP16},
    [COST_BF16] = {"bf16", 2, 2, FIGURE_BF16},        [COST_FP8] = {"fp8", 1, 2, FIGURE_FP8},
    [COST_INT8] = {"int8", 1, 4, FIGURE_INT8},        [COST_INT4] = {"int4", 0.5, 4, FIGURE_INT4},
};

const char *cost_dtype_name(enum cost_dtype dtype)
{
    assert(dtype < COST_DTYPES);
    return dtypes[dtype].name;
}

/* ---------------------------------------------------------------- an operation as text */

static bool read_dimension(const char **at, uint64_t *ret_value)
{
    uint64_t value = 0;
    const char *c = *at;
    while (*c >= '0' && *c <= '9' && value <= COST_DIMENSION_MOST) {
        value = 10 * value + (uint64_t)(*c++ - '0');
    }
    bool good = c != *at && value >= 1 && value <= COST_DIMENSION_MOST;
    *at = c;
    *ret_value = value;
    return good;
}

static bool read_dtype(const char *text, enum cost_dtype *ret_dtype)
{
    for (int i = 0; i < COST_DTYPES; i++) {
        if (strcmp(dtypes[i].name, text) == 0) {
            *ret_dtype = (enum cost_dtype)i;
            return true;
        }
    }
    return false;
}

static bool read_kind(const char **at, enum cost_kind *ret_kind)
{
    static const char *const names[] = {[COST_MATMUL] = "matmul:", [COST_GEMM] = "gemm:"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(*at, names[i], length) == 0) {
            *ret_kind = (enum cost_kind)i;
            *at += length;
            return true;
        }
    }
    return false;
}

static bool take(const char **at, char c)
{
    bool found = **at == c;
    *at += found;
    return found;
}

bool cost_parse(const char *text, struct cost_operation *ret_operation, struct problem *ret_problem)
{
    struct cost_operation operation = {.m = 0};
    const char *at = text;
    if (!read_kind(&at, &operation.kind)) {
        problem_set(ret_problem, "an operation is matmul or gemm with its shape and type, as in "
                                 "matmul:4096x4096x4096:bf16");
        return false;
    }
    if (!read_dimension(&at, &operation.m) || !take(&at, 'x') ||
        !read_dimension(&at, &operation.n) || !take(&at, 'x') ||
        !read_dimension(&at, &operation.k) || !take(&at, ':')) {
        problem_set(ret_problem,
                    "the shape is MxNxK, each from 1 to %llu, and then the type, as in "
                    "matmul:4096x4096x4096:bf16",
                    (unsigned long long)COST_DIMENSION_MOST);
        return false;
    }
    if (!read_dtype(at, &operation.dtype)) {
        problem_set(ret_problem,
                    "the type is one of fp64, fp32, tf32, fp16, bf16, fp8, int8 and int4");
        return false;
    }
    *ret_operation = operation;
    return true;
}

/* ---------------------------------------------------------------- figures of figures */

static struct figure worked_out(double value, const struct figure *a, const struct figure *b)
{
    bool measured = a->source == FIGURE_MEASURED && b->source == FIGURE_MEASURED;
    return (struct figure){.value = value,
                           .source = measured ? FIGURE_MEASURED : FIGURE_DECLARED,
                           .unverified = a->unverified || b->unverified};
}

static struct figure quotient(double dividend, const struct figure *divisor)
{
    if (divisor->source == FIGURE_UNKNOWN) {
        return (struct figure){.source = FIGURE_UNKNOWN};
    }
    return worked_out(dividend / divisor->value, divisor, divisor);
}

static struct figure larger(const struct figure *known, const struct figure *other)
{
    if (other->source == FIGURE_UNKNOWN) {
        return *known;
    }
    return worked_out(known->value > other->value ? known->value : other->value, known, other);
}

static struct figure product(const struct figure *a, const struct figure *b)
{
    if (a->source == FIGURE_UNKNOWN || b->source == FIGURE_UNKNOWN) {
        return (struct figure){.source = FIGURE_UNKNOWN};
    }
    return worked_out(a->value * b->value, a, b);
}

/* ---------------------------------------------------------------- the roofline */

static const struct figure *peak_of(const struct device_profile *profile, enum cost_dtype dtype)
{
    const struct figure *peak = &profile->figures[dtypes[dtype].peak];
    bool has_vectors_only = dtype == COST_FP64 && peak->source == FIGURE_UNKNOWN;
    return has_vectors_only ? &profile->figures[FIGURE_FP64] : peak;
}

static void count(const struct cost_operation *operation, const struct dtype_facts *facts,
                  struct cost *cost)
{
    assert(operation->m >= 1 && operation->m <= COST_DIMENSION_MOST);
    assert(operation->n >= 1 && operation->n <= COST_DIMENSION_MOST);
    assert(operation->k >= 1 && operation->k <= COST_DIMENSION_MOST);
    double m = (double)operation->m;
    double n = (double)operation->n;
    double k = (double)operation->k;
    double results = operation->kind == COST_GEMM ? 2 : 1; /* read and written: moved twice */
    cost->operations = 2 * m * n * k;
    cost->bytes = (m * k + k * n) * facts->bytes + results * m * n * facts->result_bytes;
}

/* What must be there at once: of a gemm C is overwritten in its place. */
static double resident_bytes(const struct cost_operation *operation,
                             const struct dtype_facts *facts, const struct cost *cost)
{
    double again = operation->kind == COST_GEMM
                       ? (double)operation->m * (double)operation->n * facts->result_bytes
                       : 0;
    return cost->bytes - again;
}

static enum cost_status work_out(const struct device_profile *profile,
                                 const struct cost_operation *operation,
                                 const struct dtype_facts *stored, enum cost_dtype dtype,
                                 uint32_t passes, struct cost *cost)
{
    const struct figure *memory = &profile->figures[FIGURE_MEMORY];
    *cost = (struct cost){.dtype = dtype, .passes = passes};
    count(operation, stored, cost);
    if (peak_of(profile, dtype)->source == FIGURE_UNKNOWN) {
        return COST_NO_DTYPE;
    }
    if (memory->source != FIGURE_UNKNOWN &&
        resident_bytes(operation, stored, cost) > memory->value) {
        return COST_NO_MEMORY;
    }
    cost->compute_s = quotient(cost->operations * passes, peak_of(profile, dtype));
    cost->memory_s = quotient(cost->bytes, &profile->figures[FIGURE_BANDWIDTH]);
    cost->time_s = larger(&cost->compute_s, &cost->memory_s);
    cost->energy_j = product(&cost->time_s, &profile->figures[FIGURE_POWER]);
    return COST_OK;
}

enum cost_status cost_estimate(const struct device_profile *profile,
                               const struct cost_operation *operation, struct cost *ret_cost)
{
    assert(operation->dtype < COST_DTYPES);
    return work_out(profile, operation, &dtypes[operation->dtype], operation->dtype, 1, ret_cost);
}

enum cost_status cost_float32(const struct device_profile *profile,
                              const struct cost_operation *operation, struct cost *ret_cost)
{
    static const struct {
        enum cost_dtype dtype;
        uint32_t passes;
    } ways[] = {{COST_TF32, 3}, {COST_BF16, 6}, {COST_FP16, 3}};
    const struct dtype_facts *stored = &dtypes[COST_FP32];
    enum cost_status status = work_out(profile, operation, stored, COST_FP32, 1, ret_cost);
    if (status != COST_NO_DTYPE) {
        return status;
    }
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct cost cost;
        enum cost_status found =
            work_out(profile, operation, stored, ways[i].dtype, ways[i].passes, &cost);
        if (found == COST_NO_MEMORY) {
            *ret_cost = cost;
            return COST_NO_MEMORY;
        }
        if (found == COST_OK &&
            (status != COST_OK || cost.compute_s.value < ret_cost->compute_s.value)) {
            *ret_cost = cost;
            status = COST_OK;
        }
    }
    return status;
}

void cost_explain(enum cost_status status, const char *name, const struct device_profile *profile,
                  const struct cost_operation *operation, char *ret_text, size_t capacity)
{
    struct cost cost = {.operations = 0};
    const struct dtype_facts *facts = &dtypes[operation->dtype];
    ret_text[0] = '\0';
    switch (status) {
    case COST_OK:
        break;
    case COST_NO_DTYPE:
        (void)snprintf(ret_text, capacity,
                       "no %s rate of %s is known: it has no such mode, or none is published",
                       facts->name, name);
        break;
    case COST_NO_MEMORY:
        count(operation, facts, &cost);
        (void)snprintf(ret_text, capacity,
                       "operands and result are %.3g GB, and %s has %.3g GB of memory",
                       resident_bytes(operation, facts, &cost) / 1e9, name,
                       profile->figures[FIGURE_MEMORY].value / 1e9);
        break;
    }
}
