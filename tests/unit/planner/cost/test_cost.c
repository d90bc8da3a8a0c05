/* The roofline beyond plain products: what bounds which kind, what is refused, and what
 * calibration, history, streamed weights, and a price make of it. The device is one of round
 * figures, so that each time can be worked out by hand. */
#include "planner/cost/cost.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN(v)                                                                                   \
    {                                                                                              \
        .value = (v), .source = FIGURE_DECLARED                                                    \
    }

/* 100 T of bf16 on matrix units, 10 T of fp32, 1 T of fp64; 1 GB at 1 TB/s, links of 100 GB/s; 500
 * W. */
static const struct device_profile round_device = {.figures = {
                                                       [FIGURE_FP64] = KNOWN(1e12),
                                                       [FIGURE_FP32] = KNOWN(10e12),
                                                       [FIGURE_BF16] = KNOWN(100e12),
                                                       [FIGURE_SPARSITY] = KNOWN(2),
                                                       [FIGURE_MEMORY] = KNOWN(1e9),
                                                       [FIGURE_BANDWIDTH] = KNOWN(1e12),
                                                       [FIGURE_POWER] = KNOWN(500),
                                                       [FIGURE_INTERCONNECT] = KNOWN(100e9),
                                                   }};

static struct operation operation(const char *text)
{
    struct operation read;
    struct problem problem = {""};
    ck_assert_msg(operation_parse(text, &read, &problem) == OPERATION_OK, "%s: %s", text,
                  problem.text);
    return read;
}

static enum cost_status estimate(const struct device_profile *profile, const char *text,
                                 struct cost *ret_cost)
{
    struct operation one = operation(text);
    return cost_estimate(profile, &one, ret_cost);
}

static void assert_near(double value, double wanted)
{
    ck_assert_double_eq_tol(value, wanted, 1e-9 * wanted);
}

/* ---------------------------------------------------------------- what bounds what */

START_TEST(each_kind_is_bound_by_what_it_needs)
{
    struct cost cost;
    /* Decoding: 67,108,864 operations are 0.67 us, 16,793,600 bytes 16.8 us. */
    ck_assert_int_eq(estimate(&round_device, "attention:1x32x1x4096x128,kv=8:bf16", &cost),
                     COST_OK);
    ck_assert_int_eq(cost.bound, COST_BANDWIDTH);
    assert_near(cost.time_s.value, 16793600 / 1e12);
    /* Prefill: 4 x 32 x 4096 x 4096 x 128 operations on the matrix units. */
    ck_assert_int_eq(estimate(&round_device, "attention:1x32x4096x4096x128:bf16", &cost), COST_OK);
    ck_assert_int_eq(cost.bound, COST_COMPUTE);
    assert_near(cost.time_s.value, 4.0 * 32 * 4096 * 4096 * 128 / 100e12);
    /* A norm in bf16 is computed in fp32: 7 x 4096 + 2 operations a row, at 10 T and not at 100. */
    ck_assert_int_eq(estimate(&round_device, "layernorm:1000x4096:bf16", &cost), COST_OK);
    assert_near(cost.terms[COST_COMPUTE].value, 1000 * 28674.0 / 10e12);
    ck_assert_int_eq(cost.bound, COST_BANDWIDTH);
    ck_assert_int_eq(estimate(&round_device, "softmax:1000x4096:fp64", &cost), COST_OK);
    assert_near(cost.terms[COST_COMPUTE].value, 1000 * (5 * 4096 - 2) / 1e12);
    /* A copy has no operations. */
    ck_assert_int_eq(estimate(&round_device, "copy:1000000:int8", &cost), COST_OK);
    ck_assert_int_eq(cost.terms[COST_COMPUTE].source, FIGURE_UNKNOWN);
    assert_near(cost.time_s.value, 2e6 / 1e12);
    /* 4 x 1.5 MB over links: 2 x 3/4 of 2 MB each way. */
    ck_assert_int_eq(estimate(&round_device, "all-reduce:1000000x4:bf16", &cost), COST_OK);
    ck_assert_int_eq(cost.bound, COST_LINKS);
    assert_near(cost.time_s.value, 6e6 / 100e9);
    assert_near(cost.energy_j.value, 6e6 / 100e9 * 500);
    /* Nothing to do. */
    ck_assert_int_eq(estimate(&round_device, "all-reduce:1000000x1:bf16", &cost), COST_OK);
    ck_assert(cost.time_s.value == 0);
}
END_TEST

START_TEST(sparse_operands_are_fast_only_where_the_mode_is)
{
    struct device_profile plain = round_device;
    struct cost dense;
    struct cost cost;
    ck_assert_int_eq(estimate(&round_device, "matmul:4096x4096x4096:bf16", &dense), COST_OK);
    ck_assert_int_eq(estimate(&round_device, "matmul:4096x4096x4096,sparse:bf16", &cost), COST_OK);
    assert_near(cost.time_s.value, dense.time_s.value / 2);
    ck_assert(cost.bytes < dense.bytes && !cost.is_as_dense && !dense.is_as_dense);
    plain.figures[FIGURE_SPARSITY].value = 1;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(estimate(&plain, "matmul:4096x4096x4096,sparse:bf16", &cost), COST_OK);
        ck_assert(cost.is_as_dense && cost.bytes == dense.bytes);
        assert_near(cost.time_s.value, dense.time_s.value);
        plain.figures[FIGURE_SPARSITY] = (struct figure){.source = FIGURE_UNKNOWN};
    }
}
END_TEST

START_TEST(what_is_not_known_is_never_fast)
{
    struct device_profile dark = round_device;
    struct operation one = operation("tokenise:1000");
    struct cost cost;
    char text[200];
    ck_assert_int_eq(cost_estimate(&dark, &one, &cost), COST_NO_RATE);
    cost_explain(COST_NO_RATE, "it", &dark, &one, &cost, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "only a measurement can say"));
    ck_assert_int_eq(estimate(&dark, "load:10x100", &cost), COST_NO_STORAGE);
    ck_assert_int_eq(estimate(&dark, "matmul:8x8x8:fp16", &cost), COST_NO_DTYPE);
    ck_assert_int_eq(estimate(&dark, "rmsnorm:8x8:fp16", &cost), COST_NO_DTYPE);
    ck_assert_int_eq(estimate(&dark, "copy:8:fp16", &cost), COST_OK); /* only bytes */
    ck_assert_int_eq(estimate(&dark, "copy:1000000000:fp16", &cost), COST_NO_MEMORY);
    dark.figures[FIGURE_INTERCONNECT] = (struct figure){.source = FIGURE_UNKNOWN};
    ck_assert_int_eq(estimate(&dark, "all-reduce:100x2:bf16", &cost), COST_NO_LINK);
    ck_assert_int_eq(cost.size.link_bytes, 400); /* what it would need is known */
    ck_assert_int_eq(cost.time_s.source, FIGURE_UNKNOWN);
    dark.figures[FIGURE_FP32] = (struct figure){.source = FIGURE_UNKNOWN};
    ck_assert_int_eq(estimate(&dark, "rmsnorm:8x8:bf16", &cost), COST_OK);
    ck_assert_uint_eq(cost.lacks, COST_LACKS_RATE);
    assert_near(cost.terms[COST_COMPUTE].value, cost.operations / 100e12); /* at most as products */
    assert_near(cost.time_s.value, cost.bytes / 1e12);
    ck_assert_int_eq(estimate(&dark, "rmsnorm:8x8:fp32", &cost), COST_NO_DTYPE);
    dark.figures[FIGURE_BANDWIDTH] = (struct figure){.source = FIGURE_UNKNOWN};
    ck_assert_int_eq(estimate(&dark, "rmsnorm:8x8:bf16", &cost), COST_UNKNOWN_BANDWIDTH);
    ck_assert_int_eq(estimate(&dark, "copy:8:bf16", &cost), COST_UNKNOWN_BANDWIDTH);
    ck_assert_int_eq(estimate(&dark, "matmul:8x8x8:bf16", &cost), COST_OK);
    assert_near(cost.time_s.value, 1024 / 100e12); /* the least, and it says so: */
    ck_assert_uint_eq(cost.lacks, COST_LACKS_BANDWIDTH);
    dark.figures[FIGURE_MEMORY] = (struct figure){.source = FIGURE_UNKNOWN};
    ck_assert_int_eq(estimate(&dark, "matmul:8x8x8:bf16", &cost), COST_OK);
    ck_assert_uint_eq(cost.lacks, COST_LACKS_BANDWIDTH | COST_LACKS_MEMORY);
    one = operation("matmul:8x8x8:bf16");
    one.shape.product.m = 0;
    ck_assert_int_eq(cost_estimate(&dark, &one, &cost), COST_BAD_OPERATION);
    cost_explain(COST_BAD_OPERATION, "it", &dark, &one, &cost, text, sizeof text);
    ck_assert_str_eq(text, "matmul: m is 0; it may be 1 to 1099511627776");
}
END_TEST

/* ---------------------------------------------------------------- memory */

START_TEST(weights_that_do_not_fit_are_refused_or_streamed)
{
    struct operation one = operation("matmul:16x32768x32768:bf16"); /* B: 2.147 GB of 1 GB */
    struct cost_device device = {.profile = &round_device};
    struct cost cost;
    ck_assert_int_eq(cost_predict(&device, &one, &cost), COST_NO_MEMORY);
    device.stream = (struct figure)KNOWN(25e9);
    ck_assert_int_eq(cost_predict(&device, &one, &cost), COST_OK);
    ck_assert_int_eq(cost.bound, COST_STREAM);
    assert_near(cost.time_s.value, 2.0 * 32768 * 32768 / 25e9);
    one = operation("matmul:16x64x64:bf16"); /* what fits is not streamed */
    ck_assert_int_eq(cost_predict(&device, &one, &cost), COST_OK);
    ck_assert_int_eq(cost.terms[COST_STREAM].source, FIGURE_UNKNOWN);
    one = operation("matmul:32768x64x32768:bf16"); /* A does not fit, and A is no weight */
    ck_assert_int_eq(cost_predict(&device, &one, &cost), COST_NO_MEMORY);
    one = operation("copy:1000000000:bf16"); /* there is nothing to stream */
    ck_assert_int_eq(cost_predict(&device, &one, &cost), COST_NO_MEMORY);
}
END_TEST

START_TEST(storage_is_as_fast_as_the_caller_says)
{
    struct operation one = operation("checkpoint:10000000:bf16"); /* 10 bytes each */
    const struct cost_device device = {.profile = &round_device, .storage = KNOWN(2e9)};
    struct cost cost;
    ck_assert_int_eq(cost_predict(&device, &one, &cost), COST_OK);
    ck_assert_int_eq(cost.bound, COST_STORAGE);
    assert_near(cost.time_s.value, 1e8 / 2e9);
}
END_TEST

/* ---------------------------------------------------------------- calibration and history */

START_TEST(a_calibration_says_what_is_reached_of_the_peak)
{
    struct cost_calibration calibrations[OPERATION_CLASSES] = {
        [OPERATION_MATRIX] = {.samples = 12,
                              .launch_s = 5e-6,
                              .compute_efficiency = 0.8,
                              .bandwidth_efficiency = 0.5,
                              .half = {100, 100, 0},
                              .p90 = 1.25}};
    const struct cost_device device = {.profile = &round_device, .calibrations = calibrations};
    struct operation one = operation("matmul:300x900x10000:bf16");
    struct cost cost;
    ck_assert_int_eq(cost_predict(&device, &one, &cost), COST_OK);
    /* 5.4e9 operations at 100 T are 54 us; of the peak 0.8 x 300/400 x 900/1000 = 0.54 are reached:
     * 100 us. Bytes: 6 MB + 18 MB + 0.54 MB = 24.54 us at half of the bandwidth: 49. */
    assert_near(cost.time_s.value, 105e-6);
    assert_near(cost.p90_s, 1.25 * 105e-6);
    assert_near(cost.bound_s.value, 54e-6);
    ck_assert_int_eq(cost.time_s.source, FIGURE_CALIBRATED);
    ck_assert_int_eq(cost.bound_s.source, FIGURE_DECLARED);
    ck_assert_uint_eq(cost.samples, 12);
    assert_near(cost.energy_j.value, 105e-6 * 500);
    /* A thin product: 200 MB + 40 kB, twice as long as the memory allows, or 8.1e-4 of the peak. */
    one = operation("matmul:1x10000x10000:bf16");
    ck_assert_int_eq(cost_predict(&device, &one, &cost), COST_OK);
    double compute = 2e8 / 100e12 / (0.8 / 101 * 10000 / 10100);
    double memory = 2.0 * (10000 + 1e8 + 10000) / 0.5e12;
    assert_near(cost.time_s.value, 5e-6 + (compute > memory ? compute : memory));
    one = operation("conv:1x8x8x8x8x3x3:bf16"); /* of another class: not calibrated */
    ck_assert_int_eq(cost_predict(&device, &one, &cost), COST_OK);
    ck_assert(cost.time_s.value == cost.bound_s.value && cost.samples == 0 && cost.p90_s == 0);
    ck_assert_int_eq(cost.time_s.source, FIGURE_DECLARED);
}
END_TEST

START_TEST(history_outweighs_the_model_as_it_grows)
{
    struct history history = {.count = 0};
    struct history_summary summary;
    struct operation one = operation("matmul:1000x1000x1000:bf16"); /* 20 us */
    struct cost cost;
    ck_assert_int_eq(cost_estimate(&round_device, &one, &cost), COST_OK);
    summary = history_summarise(&history);
    cost_learn(&summary, &cost);
    assert_near(cost.time_s.value, 20e-6);
    ck_assert_int_eq(cost.time_s.source, FIGURE_DECLARED);
    for (int i = 0; i < 4; i++) {
        ck_assert(history_add(&history, 3 * HISTORY_BOUND)); /* took three times the bound */
    }
    summary = history_summarise(&history);
    cost_learn(&summary, &cost);
    assert_near(cost.time_s.value, 40e-6); /* 4 / (4 + 4): halfway from 20 to 60 */
    assert_near(cost.energy_j.value, 40e-6 * 500);
    assert_near(cost.bound_s.value, 20e-6);
    ck_assert_int_eq(cost.time_s.source, FIGURE_MEASURED);
    ck_assert_uint_eq(cost.samples, 4);
    ck_assert(cost.p90_s == 0); /* too few */
    for (int i = 0; i < 8; i++) {
        ck_assert(history_add(&history, (i < 6 ? 3 : 4) * HISTORY_BOUND));
    }
    ck_assert_int_eq(cost_estimate(&round_device, &one, &cost), COST_OK);
    summary = history_summarise(&history);
    cost_learn(&summary, &cost);
    /* MAD is 0, so 2 % of 3 count: 4 is 33 % off, more than 3 x 1.4826 x 2 %. Ten are left: 10/14
     * of 60 us and 4/14 of 20. */
    assert_near(cost.time_s.value, (10 * 60e-6 + 4 * 20e-6) / 14);
    ck_assert_uint_eq(cost.samples, 10);
    assert_near(cost.p90_s, cost.time_s.value);
}
END_TEST

START_TEST(a_price_is_for_the_time_rounded_up)
{
    struct cost cost = {.time_s = KNOWN(1.0)};
    int64_t micro = 0;
    ck_assert(cost_price(&cost, 3600, &micro));
    ck_assert_int_eq(micro, 1);
    ck_assert(cost_price(&cost, 3601, &micro));
    ck_assert_int_eq(micro, 2);
    ck_assert(cost_price(&cost, 0, &micro));
    ck_assert_int_eq(micro, 0);
    cost.time_s.value = 1e-12; /* a nanosecond, a micro-credit */
    ck_assert(cost_price(&cost, 1, &micro));
    ck_assert_int_eq(micro, 1);
    micro = 77;
    cost.time_s.value = 1e12;
    ck_assert(!cost_price(&cost, 1, &micro)); /* more than int64 ns */
    cost.time_s.value = 9e9;
    ck_assert(!cost_price(&cost, INT64_MAX, &micro));
    cost.time_s.source = FIGURE_UNKNOWN;
    ck_assert(!cost_price(&cost, 1, &micro));
    ck_assert_int_eq(micro, 77);
}
END_TEST

START_TEST(the_list_of_errors_has_every_refusal)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/docs/errors.md", BOURSE_SOURCE_DIR);
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    ck_assert(file != NULL && text != NULL);
    ck_assert_uint_gt(fread(text, 1, (1 << 20) - 1, file), 0);
    (void)fclose(file);
    for (int status = COST_NO_DTYPE; status <= COST_UNKNOWN_MEMORY; status++) {
        char row[64];
        (void)snprintf(row, sizeof row, "\n| `%s` |", cost_status_name((enum cost_status)status));
        ck_assert_msg(strstr(text, row) != NULL, "docs/errors.md has no row %s", row + 1);
    }
    free(text);
}
END_TEST

SUITE("cost", NULL, NULL, TEST(each_kind_is_bound_by_what_it_needs),
      TEST(sparse_operands_are_fast_only_where_the_mode_is), TEST(what_is_not_known_is_never_fast),
      TEST(weights_that_do_not_fit_are_refused_or_streamed),
      TEST(storage_is_as_fast_as_the_caller_says),
      TEST(a_calibration_says_what_is_reached_of_the_peak),
      TEST(history_outweighs_the_model_as_it_grows), TEST(a_price_is_for_the_time_rounded_up),
      TEST(the_list_of_errors_has_every_refusal))
