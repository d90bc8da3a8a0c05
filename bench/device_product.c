/* bench/device_product.c multiplies two square matrices on the first OpenCL device, by the kernel
 * that the market's agents use, without a market. It prints one JSON value.
 *
 *     device_product [--size N] [--rounds R]
 *
 * The defaults are 4096 and 3. `cold_s` is the first product, with the device's start and the
 * compiler. `seconds` are the products after it, with the copies to the device and back. */
#include "base/random.h"
#include "provider/kernel/opencl.h"
#include "provider/kernel/product/product.h"
#include "runtime/clock.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MOST = 50 };
#define SIDE_MOST UINT64_C(16384)

static bool read_arguments(int count, char **words, uint64_t *ret_side, int *ret_rounds)
{
    *ret_side = 4096;
    *ret_rounds = 3;
    for (int i = 1; i + 1 < count; i += 2) {
        if (strcmp(words[i], "--size") == 0) {
            *ret_side = strtoull(words[i + 1], NULL, 10);
        } else if (strcmp(words[i], "--rounds") == 0) {
            *ret_rounds = (int)strtol(words[i + 1], NULL, 10);
        } else {
            return false;
        }
    }
    return count % 2 == 1 && *ret_side >= 1 && *ret_side <= SIDE_MOST && *ret_rounds >= 1 &&
           *ret_rounds <= ROUNDS_MOST;
}

/* Returns the seconds of one product, or a negative number with the problem. */
static double multiply(struct engine *engine, const struct gemm *gemm, struct problem *problem)
{
    const int64_t before_ns = clock_monotonic_ns();
    const bool good = product_run(engine, gemm, (struct product_parts){.a = NULL}, UINT64_MAX,
                                  problem) == OPERATION_OK;
    return good ? (double)(clock_monotonic_ns() - before_ns) / 1e9 : -1;
}

static bool measure(const struct gemm *gemm, int rounds, struct problem *problem)
{
    static struct opencl_api api;
    static struct devices devices;
    static struct engine engine;
    const int64_t began_ns = clock_monotonic_ns();
    if (!opencl_api_load(OPENCL_LIBRARY, &api, problem) ||
        !opencl_find_devices(&api, &devices, problem) ||
        !engine_open(&devices.items[0], &engine, problem)) {
        return false;
    }
    bool good = multiply(&engine, gemm, problem) >= 0;
    const double cold_s = (double)(clock_monotonic_ns() - began_ns) / 1e9;
    json_t *seconds = json_array();
    for (int i = 0; good && i < rounds; i++) {
        const double took_s = multiply(&engine, gemm, problem);
        good = took_s >= 0;
        (void)json_array_append_new(seconds, json_real(took_s));
    }
    json_t *value =
        json_pack("{s:s, s:s, s:s, s:I, s:f, s:o}", "platform", devices.items[0].platform_name,
                  "device", devices.items[0].name, "driver", devices.items[0].driver, "size",
                  (json_int_t)gemm->rows, "cold_s", cold_s, "seconds", seconds);
    engine_close(&engine);
    if (good) {
        (void)json_dumpf(value, stdout, JSON_COMPACT);
        (void)putchar('\n');
    }
    json_decref(value);
    return good;
}

int main(int count, char **words)
{
    uint64_t side;
    int rounds;
    struct problem problem = {"no memory"};
    if (!read_arguments(count, words, &side, &rounds)) {
        (void)fputs("usage: device_product [--size N] [--rounds R]\n", stderr);
        return 2;
    }
    const size_t cells = (size_t)(side * side);
    float *values = calloc(3 * cells, sizeof *values);
    struct random random = random_seeded(20261130);
    for (size_t i = 0; values != NULL && i < 2 * cells; i++) {
        values[i] = (float)(random_u64(&random) >> 40) / (1 << 23) - 1.0F;
    }
    const struct gemm gemm = {.rows = side,
                              .inner = side,
                              .columns = side,
                              .alpha = 1,
                              .a = values,
                              .b = values + cells,
                              .c = values + 2 * cells};
    if (values == NULL || !measure(&gemm, rounds, &problem)) {
        (void)fprintf(stderr, "device_product: %s\n", problem.text);
        free(values);
        return 1;
    }
    free(values);
    return 0;
}
