#include "planner/cost/cost.h"

#include "base/checked.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const enum profile_figure peaks[DTYPES] = {
    [DTYPE_FP64] = FIGURE_FP64_MATRIX, [DTYPE_FP32] = FIGURE_FP32, [DTYPE_TF32] = FIGURE_TF32,
    [DTYPE_FP16] = FIGURE_FP16,        [DTYPE_BF16] = FIGURE_BF16, [DTYPE_FP8] = FIGURE_FP8,
    [DTYPE_INT8] = FIGURE_INT8,        [DTYPE_INT4] = FIGURE_INT4,
};

static const struct cost_calibration no_calibration = {
    .compute_efficiency = 1, .bandwidth_efficiency = 1, .p90 = 1};

/* ---------------------------------------------------------------- figures of figures */

static bool is_known(const struct figure *figure)
{
    return figure->source != FIGURE_UNKNOWN;
}

static struct figure worked_out(double value, const struct figure *a, const struct figure *b)
{
    return (struct figure){.value = value,
                           .source = a->source < b->source ? a->source : b->source,
                           .unverified = a->unverified || b->unverified};
}

/* The quotient is unknown when there is nothing to divide, or the divisor is unknown. */
static struct figure quotient(double dividend, const struct figure *divisor)
{
    if (!is_known(divisor) || dividend == 0) {
        return (struct figure){.source = FIGURE_UNKNOWN};
    }
    return worked_out(dividend / divisor->value, divisor, divisor);
}

static struct figure product(const struct figure *a, const struct figure *b)
{
    if (!is_known(a) || !is_known(b)) {
        return (struct figure){.source = FIGURE_UNKNOWN};
    }
    return worked_out(a->value * b->value, a, b);
}

/* ---------------------------------------------------------------- rates */

static const struct figure *peak_of(const struct device_profile *profile, enum dtype dtype)
{
    const struct figure *peak = &profile->figures[peaks[dtype]];
    bool has_vectors_only = dtype == DTYPE_FP64 && !is_known(peak);
    return has_vectors_only ? &profile->figures[FIGURE_FP64] : peak;
}

static bool is_product(enum operation_class class)
{
    return class == OPERATION_MATRIX || class == OPERATION_CONVOLUTION ||
           class == OPERATION_ATTENDING;
}

static int64_t *sparse_flag(struct operation *operation)
{
    switch (operation->kind) {
    case OPERATION_MATMUL:
    case OPERATION_GEMM:
        return &operation->shape.product.sparse;
    case OPERATION_CONV:
        return &operation->shape.conv.sparse;
    default:
        return NULL;
    }
}

static struct figure rate_of(const struct device_profile *profile, enum operation_class class,
                             enum dtype dtype, bool is_sparse)
{
    if (class == OPERATION_LOOKUP) {
        return (struct figure){.source = FIGURE_UNKNOWN};
    }
    if (is_product(class)) {
        const struct figure *peak = peak_of(profile, dtype);
        return is_sparse ? product(peak, &profile->figures[FIGURE_SPARSITY]) : *peak;
    }
    const struct figure *vectors =
        &profile->figures[dtype == DTYPE_FP64 ? FIGURE_FP64 : FIGURE_FP32];
    return is_known(vectors) ? *vectors : *peak_of(profile, dtype);
}

/* Returns the unknown figures that the work would need. */
static unsigned lacks_of(const struct device_profile *profile, enum operation_class class,
                         enum dtype dtype, const struct cost *cost)
{
    const struct figure *figures = profile->figures;
    bool is_by_element = class != OPERATION_LOOKUP && !is_product(class);
    bool has_rate = is_known(&figures[dtype == DTYPE_FP64 ? FIGURE_FP64 : FIGURE_FP32]);
    unsigned lacks = 0;
    if (is_by_element && cost->operations > 0 && !has_rate) {
        lacks |= COST_LACKS_RATE;
    }
    if (cost->bytes > 0 && !is_known(&figures[FIGURE_BANDWIDTH])) {
        lacks |= COST_LACKS_BANDWIDTH;
    }
    if (cost->size.resident_bytes > 0 && !is_known(&figures[FIGURE_MEMORY])) {
        lacks |= COST_LACKS_MEMORY;
    }
    return lacks;
}

/* ---------------------------------------------------------------- the roofline */

static double efficiency(const struct cost_calibration *calibration,
                         const struct operation_size *size)
{
    double reached = calibration->compute_efficiency;
    for (int i = 0; i < OPERATION_EXTENTS; i++) {
        double extent = (double)size->extents[i];
        reached *= extent / (extent + calibration->half[i]);
    }
    return reached;
}

static enum cost_status fit_memory(const struct cost_device *device, struct cost *cost)
{
    const struct figure *memory = &device->profile->figures[FIGURE_MEMORY];
    const struct operation_size *size = &cost->size;
    if (!is_known(memory) || (double)size->resident_bytes <= memory->value) {
        return COST_OK;
    }
    bool can_stream = is_known(&device->stream) && size->weight_bytes > 0 &&
                      (double)(size->resident_bytes - size->weight_bytes) <= memory->value;
    if (!can_stream) {
        return COST_NO_MEMORY;
    }
    cost->terms[COST_STREAM] = quotient((double)size->weight_bytes, &device->stream);
    return COST_OK;
}

/* Checks that every figure is known without which no time can be given. */
static enum cost_status check_known(const struct cost_device *device, enum operation_class class,
                                    const struct cost *cost)
{
    const struct operation_size *size = &cost->size;
    if (size->link_bytes > 0 && !is_known(&cost->terms[COST_LINKS])) {
        return COST_NO_LINK;
    }
    if (size->storage_bytes > 0 && !is_known(&device->storage)) {
        return COST_NO_STORAGE;
    }
    bool needs_rate = is_product(class) || class == OPERATION_LOOKUP;
    if (needs_rate && !is_known(&cost->terms[COST_COMPUTE])) {
        return size->flops > 0 ? COST_NO_RATE : COST_OK;
    }
    bool is_bounded = (cost->lacks & COST_LACKS_RATE) == 0 && is_known(&cost->terms[COST_COMPUTE]);
    for (int i = COST_BANDWIDTH; i < COST_TERMS; i++) {
        is_bounded = is_bounded || is_known(&cost->terms[i]);
    }
    return is_bounded || (cost->lacks & COST_LACKS_BANDWIDTH) == 0 ? COST_OK
                                                                   : COST_UNKNOWN_BANDWIDTH;
}

/* Returns the largest term and its kind. The source is the worst of all known terms, since each
 * might be the largest. */
static struct figure largest_of(const struct figure terms[COST_TERMS], enum cost_term *ret_term)
{
    struct figure all = {.source = FIGURE_MEASURED};
    bool is_any = false;
    for (int i = 0; i < COST_TERMS; i++) {
        if (is_known(&terms[i])) {
            bool is_larger = !is_any || terms[i].value > all.value;
            all = worked_out(is_larger ? terms[i].value : all.value, &all, &terms[i]);
            *ret_term = is_larger ? (enum cost_term)i : *ret_term;
            is_any = true;
        }
    }
    if (!is_any) {
        all.source = FIGURE_DECLARED; /* no work takes no time */
    }
    return all;
}

static void set_times(const struct cost_device *device, const struct cost_calibration *calibration,
                      struct cost *cost)
{
    struct figure taken[COST_TERMS];
    enum cost_term slowest = COST_COMPUTE;
    cost->bound_s = largest_of(cost->terms, &cost->bound);
    cost->time_s = cost->bound_s;
    if (calibration->samples > 0) {
        memcpy(taken, cost->terms, sizeof taken);
        taken[COST_COMPUTE].value /= efficiency(calibration, &cost->size);
        taken[COST_BANDWIDTH].value /= calibration->bandwidth_efficiency;
        if ((cost->lacks & COST_LACKS_BANDWIDTH) != 0 && calibration->reached > 0) {
            taken[COST_BANDWIDTH] = (struct figure){.value = cost->bytes / calibration->reached,
                                                    .source = FIGURE_CALIBRATED};
            cost->lacks &= ~(unsigned)COST_LACKS_BANDWIDTH;
        }
        cost->lacks &= ~(unsigned)COST_LACKS_RATE;
        struct figure largest = largest_of(taken, &slowest);
        cost->bound = slowest;
        cost->time_s = (struct figure){.value = calibration->launch_s + largest.value,
                                       .source = FIGURE_CALIBRATED};
        cost->p90_s = cost->time_s.value * calibration->p90;
        cost->samples = calibration->samples;
    }
    cost->energy_j = product(&cost->time_s, &device->profile->figures[FIGURE_POWER]);
}

/* Computes the cost with `dtype` in `passes`; `operation` gives the stored types. */
static enum cost_status work_out(const struct cost_device *device,
                                 const struct operation *operation, enum dtype dtype,
                                 uint32_t passes, struct cost *ret_cost)
{
    struct operation done = *operation;
    const struct figure *figures = device->profile->figures;
    int64_t *sparse = sparse_flag(&done);
    struct cost cost = {.dtype = dtype, .passes = passes};
    if (sparse != NULL && *sparse == 1 && !(figures[FIGURE_SPARSITY].value > 1)) {
        *sparse = 0;
        cost.is_as_dense = true;
    }
    if (operation_measure(&done, &cost.size, NULL) != OPERATION_OK) {
        return COST_BAD_OPERATION;
    }
    cost.operations = (double)cost.size.flops;
    cost.bytes = (double)cost.size.read_bytes + (double)cost.size.written_bytes;
    *ret_cost = cost;
    enum operation_class class = operation_class_of(done.kind);
    bool computes = cost.size.flops > 0 && operation_has_dtype(done.kind);
    if (computes && !is_known(peak_of(device->profile, dtype))) {
        return COST_NO_DTYPE;
    }
    enum cost_status status = fit_memory(device, &cost);
    if (status != COST_OK) {
        return status;
    }
    struct figure rate = rate_of(device->profile, class, dtype, sparse != NULL && *sparse == 1);
    cost.terms[COST_COMPUTE] = quotient(cost.operations * passes, &rate);
    cost.terms[COST_BANDWIDTH] = quotient(cost.bytes, &figures[FIGURE_BANDWIDTH]);
    cost.terms[COST_LINKS] = quotient((double)cost.size.link_bytes, &figures[FIGURE_INTERCONNECT]);
    cost.terms[COST_STORAGE] = quotient((double)cost.size.storage_bytes, &device->storage);
    cost.lacks = lacks_of(device->profile, class, dtype, &cost);
    status = check_known(device, class, &cost);
    if (status != COST_OK) {
        return status;
    }
    set_times(device, device->calibrations == NULL ? &no_calibration : &device->calibrations[class],
              &cost);
    *ret_cost = cost;
    return COST_OK;
}

/* Returns the stored type of a product's weights, or the operation's own type. */
static enum dtype dtype_of_weights(const struct operation *operation)
{
    bool has_weights = operation->kind == OPERATION_MATMUL || operation->kind == OPERATION_GEMM;
    int64_t weights = has_weights ? operation->shape.product.weights : 0;
    return weights != 0 ? (enum dtype)(weights - 1) : operation->dtype;
}

enum cost_status cost_predict(const struct cost_device *device, const struct operation *operation,
                              struct cost *ret_cost)
{
    enum dtype stored = dtype_of_weights(operation);
    if (stored == operation->dtype) {
        return work_out(device, operation, stored, 1, ret_cost);
    }
    enum cost_status status = work_out(device, operation, stored, 1, ret_cost);
    if (status == COST_NO_DTYPE) {
        status = work_out(device, operation, operation->dtype, 1, ret_cost);
        ret_cost->is_widened = true;
    }
    return status;
}

enum cost_status cost_estimate(const struct device_profile *profile,
                               const struct operation *operation, struct cost *ret_cost)
{
    const struct cost_device device = {.profile = profile};
    return cost_predict(&device, operation, ret_cost);
}

enum cost_status cost_float32(const struct device_profile *profile,
                              const struct operation *operation, struct cost *ret_cost)
{
    static const struct {
        enum dtype dtype;
        uint32_t passes;
    } ways[] = {{DTYPE_TF32, 3}, {DTYPE_BF16, 6}, {DTYPE_FP16, 3}};
    const struct cost_device device = {.profile = profile};
    struct operation stored = *operation;
    assert(operation_class_of(operation->kind) == OPERATION_MATRIX);
    stored.dtype = DTYPE_FP32;
    enum cost_status status = work_out(&device, &stored, DTYPE_FP32, 1, ret_cost);
    if (status != COST_NO_DTYPE) {
        return status;
    }
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct cost cost;
        enum cost_status found = work_out(&device, &stored, ways[i].dtype, ways[i].passes, &cost);
        if (found == COST_NO_MEMORY) {
            *ret_cost = cost;
            return COST_NO_MEMORY;
        }
        if (found == COST_OK && (status != COST_OK || cost.terms[COST_COMPUTE].value <
                                                          ret_cost->terms[COST_COMPUTE].value)) {
            *ret_cost = cost;
            status = COST_OK;
        }
    }
    return status;
}

void cost_learn(const struct history_summary *history, struct cost *cost)
{
    if (history->count == 0 || !is_known(&cost->bound_s)) {
        return;
    }
    double measured = cost->bound_s.value * (double)history->median / HISTORY_BOUND;
    bool has_model = (cost->lacks & COST_LACKS_BANDWIDTH) == 0;
    double weight =
        has_model ? (double)history->count / (history->count + HISTORY_MODEL_WEIGHT) : 1;
    double learnt = weight * measured + (1 - weight) * cost->time_s.value;
    double spread = cost->p90_s > 0 ? cost->p90_s / cost->time_s.value : 0;
    if (history->p90 > 0) {
        spread = (double)history->p90 / (double)history->median;
    }
    if (is_known(&cost->energy_j) && cost->time_s.value > 0) {
        cost->energy_j.value *= learnt / cost->time_s.value;
    }
    cost->time_s = (struct figure){.value = learnt, .source = FIGURE_MEASURED};
    cost->p90_s = learnt * spread;
    cost->samples = history->count;
    cost->lacks &= COST_LACKS_MEMORY;
}

bool cost_price(const struct cost *cost, int64_t price_micro, int64_t *ret_micro)
{
    assert(price_micro >= 0);
    double ns = cost->time_s.value * NS_PER_S;
    if (!is_known(&cost->time_s) || !(ns < (double)INT64_MAX)) {
        return false;
    }
    int64_t whole_ns = (int64_t)ns;
    whole_ns += (double)whole_ns < ns;
    return checked_muldiv_ceil(price_micro, whole_ns, NS_PER_HOUR, ret_micro);
}

/* ---------------------------------------------------------------- for people */

const char *cost_status_name(enum cost_status status)
{
    switch (status) {
    case COST_OK:
        return "OK";
    case COST_BAD_OPERATION:
        return "BAD_OPERATION";
    case COST_NO_DTYPE:
        return "NO_DTYPE";
    case COST_NO_MEMORY:
        return "NO_MEMORY";
    case COST_NO_RATE:
        return "NO_RATE";
    case COST_NO_LINK:
        return "NO_LINK";
    case COST_NO_STORAGE:
        return "NO_STORAGE";
    case COST_UNKNOWN_BANDWIDTH:
        return "UNKNOWN_BANDWIDTH";
    case COST_UNKNOWN_MEMORY:
        return "UNKNOWN_MEMORY";
    }
    return "";
}

void cost_explain(enum cost_status status, const char *name, const struct device_profile *profile,
                  const struct operation *operation, const struct cost *cost, char *ret_text,
                  size_t capacity)
{
    struct operation_size size;
    struct problem problem = {""};
    ret_text[0] = '\0';
    switch (status) {
    case COST_OK:
        break;
    case COST_BAD_OPERATION:
        (void)operation_measure(operation, &size, &problem);
        (void)snprintf(ret_text, capacity, "%s", problem.text);
        break;
    case COST_NO_DTYPE:
        (void)snprintf(ret_text, capacity,
                       "no %s rate of %s is known: it has no such mode, or none is published",
                       dtype_name(operation->dtype), name);
        break;
    case COST_NO_MEMORY:
        (void)snprintf(ret_text, capacity,
                       "operands and result are %.3g GB, and %s has %.3g GB of memory",
                       (double)cost->size.resident_bytes / 1e9, name,
                       profile->figures[FIGURE_MEMORY].value / 1e9);
        break;
    case COST_NO_RATE:
        (void)snprintf(ret_text, capacity,
                       "how fast %s looks up in tables is not published; only a measurement can "
                       "say",
                       name);
        break;
    case COST_NO_LINK:
        (void)snprintf(ret_text, capacity, "how fast %s reaches other devices is not known", name);
        break;
    case COST_NO_STORAGE:
        (void)snprintf(ret_text, capacity, "how fast %s reaches storage is not known", name);
        break;
    case COST_UNKNOWN_BANDWIDTH:
        (void)snprintf(ret_text, capacity, "the bandwidth of %s is not known", name);
        break;
    case COST_UNKNOWN_MEMORY:
        (void)snprintf(ret_text, capacity, "the memory of %s is not known", name);
        break;
    }
}
