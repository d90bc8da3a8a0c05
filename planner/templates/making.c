#include "planner/templates/making.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- beginning and end */

bool making_begin(struct making *making, struct problem *problem)
{
    struct steps *steps = calloc(1, sizeof *steps);
    *making = (struct making){.steps = steps, .problem = problem};
    if (steps != NULL) {
        steps->steps = calloc(STEPS_MOST, sizeof *steps->steps);
        steps->edges = calloc(STEPS_EDGES, sizeof *steps->edges);
        steps->sets = calloc(STEPS_MOST, sizeof *steps->sets);
    }
    if (steps == NULL || steps->steps == NULL || steps->edges == NULL || steps->sets == NULL) {
        making_refuse(making, STEPS_NO_MEMORY, "there is not enough memory");
        return false;
    }
    return true;
}

static void check_sets(const struct steps *steps)
{
    for (size_t i = 0; i < steps->step_count; i++) {
        const struct step *step = &steps->steps[i];
        int64_t bytes = 0;
        assert(step->first_set + step->set_count <= steps->set_count);
        for (uint32_t k = 0; k < step->set_count; k++) {
            bytes += steps->sets[step->first_set + k];
        }
        assert(bytes == step->weight_bytes);
    }
}

enum steps_status making_end(struct making *making, struct steps **ret_steps)
{
    if (making->status != STEPS_OK) {
        if (making->steps != NULL) {
            steps_destroy(&making->steps);
        }
        return making->status;
    }
    check_sets(making->steps);
    *ret_steps = making->steps;
    return STEPS_OK;
}

void making_refuse(struct making *making, enum steps_status status, const char *format, ...)
{
    char text[sizeof making->problem->text];
    if (making->status != STEPS_OK) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    problem_set(making->problem, "%s", text);
    making->status = status;
}

void making_check(struct making *making, const char *name, int64_t value, int64_t least,
                  int64_t most)
{
    if (value < least || value > most) {
        making_refuse(making, STEPS_BAD_VALUE, "%s is %lld; it may be %lld to %lld", name,
                      (long long)value, (long long)least, (long long)most);
    }
}

int64_t making_narrow(struct making *making, uint128 value, const char *what)
{
    if (value <= (uint128)INT64_MAX) {
        return (int64_t)value;
    }
    making_refuse(making, STEPS_OVERFLOW, "%s is more than 2^63 - 1", what);
    return 0;
}

uint128 making_times(uint128 a, int64_t b)
{
    uint128 product;
    assert(b >= 0);
    return __builtin_mul_overflow(a, (uint128)b, &product) ? ~(uint128)0 : product;
}

int64_t making_many(int64_t a, int64_t b)
{
    int64_t product = INT64_MAX;
    return checked_mul(a, b, &product) ? product : INT64_MAX;
}

int64_t making_count_of(int64_t a, int64_t b)
{
    assert(a >= 0 && a <= INT64_C(1) << 31 && b >= 0 && b <= INT64_C(1) << 31);
    return a * b;
}

uint128 making_bytes(uint128 elements, enum dtype dtype)
{
    uint128 bits = making_times(elements, dtype_bits(dtype));
    return bits / 8 + (bits % 8 != 0);
}

/* ---------------------------------------------------------------- the graph */

struct step *making_step(struct making *making, const char *name)
{
    struct steps *steps = making->steps;
    if (steps->step_count == STEPS_MOST) {
        making_refuse(making, STEPS_TOO_LARGE, "there are more than %d steps", STEPS_MOST);
        return &steps->steps[STEPS_MOST - 1];
    }
    struct step *step = &steps->steps[steps->step_count++];
    int length = snprintf(step->name, sizeof step->name, "%s", name);
    assert(length > 0 && (size_t)length < sizeof step->name);
    step->passes = 1;
    return step;
}

struct step *making_named_step(struct making *making, const char *name, const char *of)
{
    char text[2 * STEP_NAME_SIZE];
    (void)snprintf(text, sizeof text, "%s %s", name, of);
    return making_step(making, text);
}

struct step *making_numbered_step(struct making *making, const char *name, int64_t number)
{
    char text[2 * STEP_NAME_SIZE];
    (void)snprintf(text, sizeof text, "%s %d", name, (int)number);
    return making_step(making, text);
}

void making_edge(struct making *making, const struct step *from, const struct step *to,
                 uint128 bytes)
{
    making_set_edge(making, from, to, bytes, 0);
}

void making_set_edge(struct making *making, const struct step *from, const struct step *to,
                     uint128 bytes, uint128 set_bytes)
{
    struct steps *steps = making->steps;
    if (making->status != STEPS_OK) {
        return;
    }
    if (steps->edge_count == STEPS_EDGES) {
        making_refuse(making, STEPS_TOO_LARGE, "there are more than %d edges", STEPS_EDGES);
        return;
    }
    assert(from < to);
    int64_t all = making_narrow(making, bytes + set_bytes, "what flows between two steps");
    steps->edges[steps->edge_count++] =
        (struct step_edge){.from = (uint32_t)(from - steps->steps),
                           .to = (uint32_t)(to - steps->steps),
                           .bytes = all,
                           .set_bytes = all == 0 ? 0 : (int64_t)set_bytes};
}

/* Grows the parts of a step by doubling. */
static bool grow(struct making *making, struct step *step)
{
    bool is_full = (step->part_count & (step->part_count - 1)) == 0; /* 0, or a power of two */
    if (step->part_count == STEPS_PARTS) {
        making_refuse(making, STEPS_TOO_LARGE, "%s: there are more than %d operations", step->name,
                      STEPS_PARTS);
        return false;
    }
    if (is_full) {
        size_t room = step->part_count == 0 ? 1 : 2 * step->part_count;
        struct step_part *parts = realloc(step->parts, room * sizeof *parts);
        if (parts == NULL) {
            making_refuse(making, STEPS_NO_MEMORY, "there is not enough memory");
            return false;
        }
        step->parts = parts;
    }
    return true;
}

void making_part(struct making *making, struct step *step, const struct operation *operation,
                 int64_t count, int64_t copies, uint128 held)
{
    struct operation_size size;
    struct problem why = {""};
    assert(count >= 0);
    if (count == 0 || making->status != STEPS_OK) {
        return;
    }
    enum operation_status status = operation_measure(operation, &size, &why);
    if (status != OPERATION_OK) {
        bool is_conflict = status == OPERATION_DTYPE || status == OPERATION_CONFLICT;
        making_refuse(making, is_conflict ? STEPS_CONFLICT : STEPS_OVERFLOW, "%s: %s", step->name,
                      why.text);
        return;
    }
    if (!grow(making, step)) {
        return;
    }
    step->parts[step->part_count++] = (struct step_part){.operation = *operation, .times = count};
    step->weight_bytes = making_narrow(
        making, (uint128)step->weight_bytes + making_times((uint128)size.weight_bytes, copies),
        "the weights of a step");
    uint128 working = (uint128)(size.resident_bytes - (copies > 0 ? size.weight_bytes : 0));
    working = working > held ? working - held : 0;
    step->working_bytes =
        working > (uint128)step->working_bytes ? (int64_t)working : step->working_bytes;
}

static bool is_same_told(const struct operation *a, const struct operation *b)
{
    return a->kind == b->kind && a->dtype == b->dtype &&
           (a->kind == OPERATION_ALL_REDUCE
                ? a->shape.all_reduce.elements == b->shape.all_reduce.elements
                : a->shape.elements.elements == b->shape.elements.elements);
}

void making_told(struct making *making, struct step *step, const struct operation *operation,
                 int64_t count)
{
    struct operation_size size;
    struct problem why = {""};
    assert(operation->kind == OPERATION_ALL_REDUCE || operation->kind == OPERATION_COPY);
    if (count == 0 || making->status != STEPS_OK) {
        return;
    }
    if (operation_measure(operation, &size, &why) != OPERATION_OK) {
        making_refuse(making, STEPS_OVERFLOW, "%s: %s", step->name, why.text);
        return;
    }
    size_t at = 0;
    while (at < step->told_count && !is_same_told(&step->told[at].operation, operation)) {
        at++;
    }
    assert(at < STEP_TOLD);
    step->told_count += at == step->told_count;
    step->told[at].operation = *operation;
    step->told[at].times += count;
    step->working_bytes =
        size.resident_bytes > step->working_bytes ? size.resident_bytes : step->working_bytes;
}

void making_outside(struct making *making, struct step *step, uint128 brought, uint128 fetched)
{
    step->brought_bytes = making_narrow(making, brought, "the input");
    step->fetched_bytes = making_narrow(making, fetched, "the result");
}

void making_own(struct making *making, struct step *step, uint32_t first, uint32_t count)
{
    struct steps *steps = making->steps;
    if (making->status != STEPS_OK) {
        return;
    }
    if (steps->set_count == STEPS_MOST) {
        making_refuse(making, STEPS_TOO_LARGE, "there are more than %d sets of weights",
                      STEPS_MOST);
        return;
    }
    int64_t others = 0;
    assert(first + count == steps->set_count); /* the new set follows them */
    for (uint32_t i = first; i < first + count; i++) {
        others += steps->sets[i];
    }
    assert(others <= step->weight_bytes);
    steps->sets[steps->set_count++] = step->weight_bytes - others;
    step->first_set = first;
    step->set_count = count + 1;
}

void making_renew(struct making *making, struct step *step, const struct step *by, uint128 bytes)
{
    if (making->status == STEPS_OK) {
        assert(step < by);
        step->renewed_by = (uint32_t)(by - making->steps->steps);
        step->renewed_bytes = making_narrow(making, bytes, "weights");
    }
}

uint32_t making_set(struct making *making, uint128 bytes)
{
    struct steps *steps = making->steps;
    if (steps->set_count == STEPS_MOST) {
        making_refuse(making, STEPS_TOO_LARGE, "there are more than %d sets of weights",
                      STEPS_MOST);
        return STEPS_MOST - 1;
    }
    steps->sets[steps->set_count] = making_narrow(making, bytes, "a set of weights");
    return (uint32_t)steps->set_count++;
}

void making_need(struct making *making, struct step *step, uint32_t first, uint32_t count)
{
    uint128 bytes = 0;
    for (uint32_t i = first; i < first + count && i < STEPS_MOST; i++) {
        uint128 set = (uint128)making->steps->sets[i];
        bytes += set;
    }
    step->weight_bytes = making_narrow(making, bytes, "the weights of a step");
    step->first_set = first;
    step->set_count = count;
}

void making_place(struct making *making, struct step *step, int64_t column, enum step_phase phase)
{
    assert(column >= 0 && column < STEPS_MOST);
    step->column = (uint16_t)column;
    step->phase = (uint8_t)phase;
    if (column >= (int64_t)making->steps->column_count) {
        making->steps->column_count = (uint32_t)column + 1;
    }
}

void making_count(struct making *making, uint128 parameters)
{
    uint128 all = (uint128)making->steps->parameters + parameters;
    making->steps->parameters =
        making_narrow(making, all < parameters ? parameters : all, "the number of parameters");
}

/* ---------------------------------------------------------------- operations */

struct operation making_product(enum dtype dtype, int64_t m, int64_t n, int64_t k)
{
    struct operation operation = operation_of(OPERATION_MATMUL, dtype);
    operation.shape.product.m = m;
    operation.shape.product.n = n;
    operation.shape.product.k = k;
    return operation;
}

struct operation making_rows(enum operation_kind kind, enum dtype dtype, int64_t rows,
                             int64_t width)
{
    struct operation operation = operation_of(kind, dtype);
    operation.shape.rows.rows = rows;
    operation.shape.rows.width = width;
    return operation;
}

struct operation making_each(enum operation_kind kind, enum dtype dtype, int64_t rows,
                             int64_t width)
{
    struct operation operation = operation_of(kind, dtype);
    operation.shape.elements.elements = making_many(rows, width);
    return operation;
}

/* ---------------------------------------------------------------- choices */

const char *const making_floats[MAKING_FLOATS] = {"fp64", "fp32", "fp16", "bf16"};
const char *const making_types[DTYPES] = {"fp64", "fp32", "tf32", "fp16",
                                          "bf16", "fp8",  "int8", "int4"};
const char *const making_answers[2] = {"no", "yes"};

enum dtype making_float(int64_t value)
{
    static const enum dtype floats[MAKING_FLOATS] = {DTYPE_FP64, DTYPE_FP32, DTYPE_FP16,
                                                     DTYPE_BF16};
    assert(value >= 0 && value < MAKING_FLOATS);
    return floats[value];
}
