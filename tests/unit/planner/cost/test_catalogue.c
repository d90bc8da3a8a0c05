/* The catalogue, row by row, and the roofline over it. */
#include "planner/cost/catalogue.h"
#include "planner/cost/cost.h"

#include "base/device_kind.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct figure *figure(const char *id, enum profile_figure which)
{
    const struct catalogue_device *device = catalogue_find(id);
    ck_assert_msg(device != NULL, "%s", id);
    return &device->profile.figures[which];
}

static bool near_to(double value, double wanted)
{
    double difference = value - wanted;
    return difference < 1e-9 * wanted && difference > -1e-9 * wanted;
}

/* ---------------------------------------------------------------- rows */

/* Returns the kind with this name, or NULL. */
static const struct device_kind *kind_named(const char *name)
{
    size_t count = 0;
    const struct device_kind *kinds = device_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

static bool has_variant(const struct device_kind *kind, const char *name)
{
    bool has = false;
    for (size_t i = 0; i < KIND_VARIANTS_MAX && kind->variants[i] != NULL; i++) {
        has = has || strcmp(kind->variants[i], name) == 0;
    }
    return has;
}

START_TEST(every_row_has_a_name_of_its_own_and_a_known_kind)
{
    ck_assert_uint_eq(catalogue_count(), 43);
    for (size_t i = 0; i < catalogue_count(); i++) {
        const struct catalogue_device *device = catalogue_at(i);
        ck_assert_ptr_eq(catalogue_find(device->id), device);
        const struct device_kind *kind = kind_named(device->kind);
        ck_assert_msg(kind != NULL, "%s", device->id);
        ck_assert_msg(device->variant[0] == '\0' || has_variant(kind, device->variant), "%s",
                      device->id);
        ck_assert_msg(device->vendor[0] != '\0' && device->model[0] != '\0', "%s", device->id);
        ck_assert_msg(device->sources[0] != '\0', "%s: no source", device->id);
        size_t length = strlen(device->kind);
        ck_assert_msg(strncmp(device->instrument, device->kind, length) == 0, "%s", device->id);
        ck_assert_msg(device->instrument[length] == '.', "%s", device->id);
        ck_assert_msg(strlen(device->instrument) + strlen("sim.") < 64, "%s", device->id);
        for (size_t k = 0; k < i; k++) {
            ck_assert_str_ne(device->instrument, catalogue_at(k)->instrument);
        }
    }
    ck_assert_ptr_null(catalogue_find("nvidia-h100"));
    ck_assert_ptr_null(catalogue_find(""));
}
END_TEST

START_TEST(every_figure_is_declared_or_unknown_and_of_a_size_that_can_be)
{
    static const struct {
        double least, most;
    } bounds[PROFILE_FIGURES] = {
        [FIGURE_FP64] = {1e11, 1e15},  [FIGURE_FP64_MATRIX] = {1e12, 1e15},
        [FIGURE_FP32] = {1e10, 1e15},  [FIGURE_TF32] = {1e13, 1e16},
        [FIGURE_FP16] = {1e11, 1e16},  [FIGURE_BF16] = {1e12, 1e16},
        [FIGURE_FP8] = {1e13, 1e16},   [FIGURE_INT8] = {1e12, 1e16},
        [FIGURE_INT4] = {1e13, 1e16},  [FIGURE_SPARSITY] = {1, 2},
        [FIGURE_MEMORY] = {1e6, 1e13}, [FIGURE_BANDWIDTH] = {1e10, 1e14},
        [FIGURE_POWER] = {1, 2000},    [FIGURE_INTERCONNECT] = {1e8, 1e13},
    };
    for (size_t i = 0; i < catalogue_count(); i++) {
        const struct catalogue_device *device = catalogue_at(i);
        for (int k = 0; k < PROFILE_FIGURES; k++) {
            const struct figure *one = &device->profile.figures[k];
            ck_assert_msg(one->source == FIGURE_UNKNOWN || one->source == FIGURE_DECLARED, "%s, %d",
                          device->id, k);
            if (one->source == FIGURE_UNKNOWN) {
                ck_assert_msg(one->value == 0 && !one->unverified, "%s, %d", device->id, k);
            } else {
                ck_assert_msg(one->value >= bounds[k].least && one->value <= bounds[k].most,
                              "%s, %d: %g", device->id, k, one->value);
            }
        }
    }
}
END_TEST

/* A sparse figure among dense ones would be out of step with its neighbours: halving the bits at
 * most doubles the rate, but for units that only one type has. */
START_TEST(peaks_are_dense)
{
    for (size_t i = 0; i < catalogue_count(); i++) {
        const struct catalogue_device *device = catalogue_at(i);
        const struct figure *figures = device->profile.figures;
        bool has_both = figures[FIGURE_FP8].source != FIGURE_UNKNOWN &&
                        figures[FIGURE_BF16].source != FIGURE_UNKNOWN;
        ck_assert_msg(!has_both || figures[FIGURE_FP8].value <= 2.05 * figures[FIGURE_BF16].value,
                      "%s: fp8", device->id);
        bool has_int = figures[FIGURE_INT4].source != FIGURE_UNKNOWN;
        ck_assert_msg(!has_int || figures[FIGURE_INT4].value <= 2.05 * figures[FIGURE_INT8].value,
                      "%s: int4", device->id);
        bool has_tf32 = figures[FIGURE_TF32].source != FIGURE_UNKNOWN;
        ck_assert_msg(!has_tf32 || figures[FIGURE_TF32].value <= 0.51 * figures[FIGURE_FP16].value,
                      "%s: tf32", device->id);
    }
    ck_assert(figure("nvidia-h100-sxm5", FIGURE_BF16)->value == 989.4e12);
    ck_assert(figure("nvidia-h100-sxm5", FIGURE_SPARSITY)->value == 2);
    ck_assert(figure("nvidia-l4", FIGURE_FP8)->value == 242.5e12);
    ck_assert(figure("google-tpu-v5p", FIGURE_BF16)->value == 459e12);
}
END_TEST

START_TEST(a_blank_is_unknown_and_doubts_are_kept)
{
    ck_assert_int_eq(figure("google-tpu-v5p", FIGURE_POWER)->source, FIGURE_UNKNOWN);
    ck_assert_int_eq(figure("google-tpu-v5p", FIGURE_FP32)->source, FIGURE_UNKNOWN);
    ck_assert(figure("google-tpu-v5p", FIGURE_INT8)->unverified);
    ck_assert(!figure("google-tpu-v5p", FIGURE_BF16)->unverified);
    ck_assert(figure("groq-lpu-v1", FIGURE_POWER)->unverified);
    ck_assert(figure("groq-lpu-v1", FIGURE_MEMORY)->value == 0.23e9);
    ck_assert(figure("amd-rx580", FIGURE_FP32)->unverified); /* its row says: all of them */
    ck_assert(figure("amd-rx580", FIGURE_POWER)->unverified);
    for (int k = 0; k < PROFILE_FIGURES; k++) {
        ck_assert_int_eq(figure("adi-sharc-sc598", (enum profile_figure)k)->source, FIGURE_UNKNOWN);
    }
    ck_assert_str_eq(catalogue_find("nvidia-b200-hgx")->model, "B200 (HGX, 1000 W)");
    ck_assert_ptr_nonnull(strstr(catalogue_find("qualcomm-hexagon-8g3")->notes, "\"98% faster\""));
    ck_assert_str_eq(catalogue_find("groq-lpu-v1")->instrument, "lpu.groq.v1");
    ck_assert_str_eq(catalogue_find("google-edge-tpu")->instrument, "tpu.google.edge");
    ck_assert_str_eq(catalogue_find("google-edge-tpu")->variant, "tpu-edge");
    ck_assert_str_eq(catalogue_find("intel-gaudi3")->kind, "npu");
}
END_TEST

/* ---------------------------------------------------------------- the roofline */

static struct operation operation(const char *text)
{
    struct operation read;
    struct problem problem = {""};
    ck_assert_msg(operation_parse(text, &read, &problem) == OPERATION_OK, "%s: %s", text,
                  problem.text);
    return read;
}

static enum cost_status estimate(const char *id, const char *text, struct cost *ret_cost)
{
    struct operation one = operation(text);
    return cost_estimate(&catalogue_find(id)->profile, &one, ret_cost);
}

START_TEST(a_large_product_is_bound_by_operations_and_a_thin_one_by_bytes)
{
    struct cost cost;
    ck_assert_int_eq(estimate("nvidia-h100-sxm5", "matmul:8192x8192x8192:bf16", &cost), COST_OK);
    ck_assert(near_to(cost.operations, 2.0 * 8192 * 8192 * 8192));
    ck_assert(near_to(cost.bytes, 3.0 * 8192 * 8192 * 2));
    ck_assert(near_to(cost.time_s.value, cost.operations / 989.4e12));
    ck_assert(near_to(cost.energy_j.value, cost.time_s.value * 700));
    ck_assert_int_eq(cost.time_s.source, FIGURE_DECLARED);
    ck_assert(!cost.time_s.unverified);

    ck_assert_int_eq(estimate("nvidia-h100-sxm5", "matmul:1x8192x8192:bf16", &cost), COST_OK);
    ck_assert(cost.terms[COST_BANDWIDTH].value > cost.terms[COST_COMPUTE].value);
    ck_assert(near_to(cost.time_s.value, cost.bytes / 3350e9));

    ck_assert_int_eq(estimate("nvidia-h100-sxm5", "gemm:1x8192x8192:bf16", &cost), COST_OK);
    ck_assert(near_to(cost.bytes, (8192.0 + 8192.0 * 8192 + 2 * 8192) * 2)); /* C comes and goes */
    ck_assert_int_eq(estimate("nvidia-h100-sxm5", "matmul:4x4x4:int8", &cost), COST_OK);
    ck_assert(near_to(cost.bytes, 2 * 16 + 16 * 4)); /* sums need more bits */
    ck_assert_int_eq(estimate("nvidia-v100-sxm2-32", "matmul:64x64x64:fp64", &cost), COST_OK);
    ck_assert(near_to(cost.terms[COST_COMPUTE].value,
                      cost.operations / 7.8e12)); /* no matrix unit for it */
    ck_assert(cost.terms[COST_COMPUTE].unverified);
}
END_TEST

START_TEST(what_a_device_cannot_do_is_said_by_name)
{
    struct cost cost;
    char text[200];
    struct operation one = operation("matmul:512x512x512:bf16");
    const struct catalogue_device *edge = catalogue_find("google-edge-tpu");
    ck_assert_int_eq(cost_estimate(&edge->profile, &one, &cost), COST_NO_DTYPE);
    ck_assert_int_eq(cost.time_s.source, FIGURE_UNKNOWN);
    cost_explain(COST_NO_DTYPE, edge->id, &edge->profile, &one, &cost, text, sizeof text);
    ck_assert_str_eq(text, "no bf16 rate of google-edge-tpu is known: it has no such mode, or none "
                           "is published");
    ck_assert_int_eq(estimate("nvidia-h100-sxm5", "matmul:64x64x64:int4", &cost), COST_NO_DTYPE);
    ck_assert_int_eq(estimate("google-tpu-v5p", "matmul:64x64x64:fp32", &cost), COST_NO_DTYPE);

    const struct catalogue_device *lpu = catalogue_find("groq-lpu-v1");
    one = operation("matmul:8192x8192x8192:fp16");
    ck_assert_int_eq(cost_estimate(&lpu->profile, &one, &cost), COST_NO_MEMORY);
    cost_explain(COST_NO_MEMORY, lpu->id, &lpu->profile, &one, &cost, text, sizeof text);
    ck_assert_str_eq(text,
                     "operands and result are 0.403 GB, and groq-lpu-v1 has 0.23 GB of memory");
    ck_assert_int_eq(estimate("groq-lpu-v1", "matmul:1024x1024x1024:fp16", &cost), COST_OK);
    ck_assert_int_eq(estimate("nvidia-b200-hgx", "matmul:1048576x1048576x1048576:fp32", &cost),
                     COST_NO_MEMORY);
}
END_TEST

START_TEST(what_is_unknown_stays_unknown)
{
    struct cost cost;
    ck_assert_int_eq(estimate("google-tpu-v5p", "matmul:512x512x512:bf16", &cost), COST_OK);
    ck_assert_int_eq(cost.energy_j.source, FIGURE_UNKNOWN); /* no power is published */
    ck_assert_int_eq(estimate("intel-npu-mtl", "matmul:512x512x512:int8", &cost), COST_OK);
    ck_assert_int_eq(cost.terms[COST_BANDWIDTH].source, FIGURE_UNKNOWN);
    ck_assert(near_to(cost.time_s.value, cost.terms[COST_COMPUTE].value));
    ck_assert(cost.time_s.unverified);
}
END_TEST

START_TEST(float32_takes_as_many_passes_as_keep_its_bits)
{
    struct cost cost;
    struct operation one = operation("matmul:1024x1024x1024:fp32");
    ck_assert_int_eq(cost_float32(&catalogue_find("nvidia-h100-sxm5")->profile, &one, &cost),
                     COST_OK);
    ck_assert_int_eq(cost.dtype, DTYPE_FP32);
    ck_assert_uint_eq(cost.passes, 1);
    ck_assert_int_eq(cost_float32(&catalogue_find("google-tpu-v5p")->profile, &one, &cost),
                     COST_OK);
    ck_assert_int_eq(cost.dtype, DTYPE_BF16);
    ck_assert_uint_eq(cost.passes, 6);
    ck_assert(near_to(cost.terms[COST_COMPUTE].value, 6 * cost.operations / 459e12));
    ck_assert(near_to(cost.bytes, 3.0 * 1024 * 1024 * 4));
    ck_assert_int_eq(cost_float32(&catalogue_find("huawei-ascend-910b")->profile, &one, &cost),
                     COST_OK);
    ck_assert_int_eq(cost.dtype, DTYPE_FP16); /* both are there, and this one is the faster */
    ck_assert_uint_eq(cost.passes, 3);
    ck_assert_int_eq(cost_float32(&catalogue_find("google-edge-tpu")->profile, &one, &cost),
                     COST_NO_DTYPE);
    one = operation("matmul:8192x8192x8192:fp32");
    ck_assert_int_eq(cost_float32(&catalogue_find("groq-lpu-v1")->profile, &one, &cost),
                     COST_NO_MEMORY);
}
END_TEST

START_TEST(a_measured_profile_gives_measured_figures)
{
    struct device_profile profile = {.figures = {
                                         [FIGURE_FP32] = {1e10, FIGURE_MEASURED, false},
                                         [FIGURE_BANDWIDTH] = {1e10, FIGURE_MEASURED, false},
                                         [FIGURE_POWER] = {65, FIGURE_DECLARED, true},
                                     }};
    struct cost cost;
    struct operation one = operation("matmul:100x100x100:fp32");
    ck_assert_int_eq(cost_estimate(&profile, &one, &cost), COST_OK);
    ck_assert_int_eq(cost.time_s.source, FIGURE_MEASURED);
    ck_assert(near_to(cost.time_s.value, 2e6 / 1e10));
    ck_assert_int_eq(cost.energy_j.source, FIGURE_DECLARED); /* as good as the worst */
    ck_assert(cost.energy_j.unverified);
}
END_TEST

SUITE("catalogue", NULL, NULL, TEST(every_row_has_a_name_of_its_own_and_a_known_kind),
      TEST(every_figure_is_declared_or_unknown_and_of_a_size_that_can_be), TEST(peaks_are_dense),
      TEST(a_blank_is_unknown_and_doubts_are_kept),
      TEST(a_large_product_is_bound_by_operations_and_a_thin_one_by_bytes),
      TEST(what_a_device_cannot_do_is_said_by_name), TEST(what_is_unknown_stays_unknown),
      TEST(float32_takes_as_many_passes_as_keep_its_bits),
      TEST(a_measured_profile_gives_measured_figures))
