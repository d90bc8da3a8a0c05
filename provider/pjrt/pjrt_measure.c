#include "provider/pjrt/pjrt_measure.h"

#include "provider/pjrt/pjrt_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A program of two arrays of one shape, in the sizes that are tried one after another. */
struct trial {
    const char *code; /* MLIR, in which $ stands for the type of every value */
    size_t dimension_count;
    int64_t extents[4]; /* 0 after the last */
    bool is_product;
};

enum { TRIAL_NS = 900000000, SHORT_NS = 5000000, ROUNDS_MOST = 20 };

static const struct trial product = {
    .code = "module @bourse_product {\n"
            "  func.func public @main(%a: $, %b: $) -> $ {\n"
            "    %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], "
            "precision = [HIGHEST, HIGHEST] : ($, $) -> $\n"
            "    return %c : $\n"
            "  }\n"
            "}\n",
    .dimension_count = 2,
    .extents = {256, 1024, 4096},
    .is_product = true};
static const struct trial sum = {.code = "module @bourse_sum {\n"
                                         "  func.func public @main(%a: $, %b: $) -> $ {\n"
                                         "    %c = stablehlo.add %a, %b : $\n"
                                         "    return %c : $\n"
                                         "  }\n"
                                         "}\n",
                                 .dimension_count = 1,
                                 .extents = {1 << 20, 1 << 22, 1 << 24}};

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Writes the trial's program for arrays of this extent, with a NUL. Returns its length. */
static size_t write_code(const struct trial *trial, int64_t extent, char *ret_code, size_t size)
{
    const long long number = extent;
    char type[64];
    size_t length = 0;
    if (trial->is_product) {
        (void)snprintf(type, sizeof type, "tensor<%lldx%lldxf32>", number, number);
    } else {
        (void)snprintf(type, sizeof type, "tensor<%lldxf32>", number);
    }
    for (const char *at = trial->code; *at != '\0' && length + sizeof type < size; at++) {
        if (*at == '$') {
            length += (size_t)snprintf(ret_code + length, size - length, "%s", type);
        } else {
            ret_code[length++] = *at;
        }
    }
    ret_code[length] = '\0';
    return length;
}

/* Compares one number of the result with what the program must give. */
static bool check(const struct pjrt_client *client, const struct trial *trial, int64_t extent,
                  struct PJRT_Buffer *buffer, struct pjrt_failure *failure)
{
    struct pjrt_array array;
    if (!pjrt_program_get(client, buffer, &array, failure)) {
        return false;
    }
    const float wanted = trial->is_product ? (float)extent : 2;
    const bool has_numbers = array.type == PJRT_TYPE_F32 && array.size >= sizeof wanted;
    const float *numbers = array.data;
    const bool good =
        has_numbers && numbers[0] == wanted && numbers[array.size / sizeof wanted - 1] == wanted;
    if (!good) {
        (void)pjrt_api_refuse(failure, "the device's %s is wrong: %g in place of %g",
                              trial->is_product ? "product" : "sum",
                              has_numbers ? (double)numbers[0] : 0.0, (double)wanted);
    }
    free(array.data);
    return good;
}

/* Runs the program once. The least time of all rounds is noted. */
static bool run_once(const struct pjrt_client *client, const struct pjrt_program *program,
                     const struct pjrt_buffers *inputs, const struct trial *trial, int64_t extent,
                     bool is_checked, int64_t *least_ns, struct pjrt_failure *failure)
{
    static struct pjrt_buffers outputs;
    const int64_t began_ns = now_ns();
    if (!pjrt_program_execute(client, program, inputs, &outputs, failure)) {
        return false;
    }
    const int64_t took_ns = now_ns() - began_ns;
    *least_ns = took_ns < *least_ns ? took_ns : *least_ns;
    const bool good = !is_checked || outputs.count == 0 ||
                      check(client, trial, extent, outputs.items[0], failure);
    pjrt_program_free(client, &outputs);
    return good;
}

/* Puts the two arrays of ones to the device. */
static bool put_inputs(const struct pjrt_client *client, const struct trial *trial, int64_t extent,
                       struct pjrt_buffers *inputs, struct pjrt_failure *failure)
{
    struct pjrt_array array = {.type = PJRT_TYPE_F32,
                               .dimension_count = trial->dimension_count,
                               .shape = {extent, extent}};
    const size_t count = (size_t)(trial->is_product ? extent * extent : extent);
    array.size = count * sizeof(float);
    float *numbers = malloc(array.size);
    if (numbers == NULL) {
        return pjrt_api_refuse(failure, "no memory for an array of %zu bytes", array.size);
    }
    for (size_t i = 0; i < count; i++) {
        numbers[i] = 1;
    }
    array.data = numbers;
    bool good = true;
    for (int i = 0; good && i < 2; i++) {
        good = pjrt_program_put(client, &array, inputs, failure);
    }
    free(numbers);
    return good;
}

/* Measures one size of the trial. Returns false with the failure. */
static bool measure_size(const struct pjrt_client *client, const struct trial *trial,
                         int64_t extent, int64_t end_ns, int64_t *ret_least_ns,
                         struct pjrt_failure *failure)
{
    static struct pjrt_buffers inputs;
    char code[1024];
    struct pjrt_program program = {.loaded = NULL};
    const size_t length = write_code(trial, extent, code, sizeof code);
    *ret_least_ns = INT64_MAX;
    bool good = pjrt_program_compile(client, code, length, &program, failure) &&
                put_inputs(client, trial, extent, &inputs, failure);
    for (int i = 0; good && i < ROUNDS_MOST && (i == 0 || now_ns() < end_ns); i++) {
        good = run_once(client, &program, &inputs, trial, extent, i == 0, ret_least_ns, failure);
    }
    pjrt_program_free(client, &inputs);
    pjrt_program_destroy(client, &program);
    return good;
}

/* Measures larger sizes while a run is short, and keeps the best rate. */
static bool measure_trial(const struct pjrt_client *client, const struct trial *trial,
                          double *ret_rate, struct pjrt_failure *failure)
{
    const int64_t end_ns = now_ns() + TRIAL_NS;
    int64_t least_ns = 0;
    *ret_rate = 0;
    for (size_t i = 0; trial->extents[i] != 0 && least_ns < SHORT_NS && now_ns() < end_ns; i++) {
        const double extent = (double)trial->extents[i];
        const double work =
            trial->is_product ? 2 * extent * extent * extent : 3 * extent * (double)sizeof(float);
        if (!measure_size(client, trial, trial->extents[i], end_ns, &least_ns, failure)) {
            return false;
        }
        const double rate = work * 1e9 / (double)(least_ns > 0 ? least_ns : 1);
        *ret_rate = rate > *ret_rate ? rate : *ret_rate;
    }
    return true;
}

bool pjrt_measure(const struct pjrt_client *client, struct pjrt_speed *ret_speed,
                  struct pjrt_failure *ret_failure)
{
    struct pjrt_speed speed;
    if (!measure_trial(client, &product, &speed.fp32, ret_failure) ||
        !measure_trial(client, &sum, &speed.bandwidth, ret_failure)) {
        return false;
    }
    *ret_speed = speed;
    return true;
}
