/* Operations and their times over random shapes: more of anything never needs less, nothing is
 * below the roofline, and no text does more than be refused. */
#include "base/random.h"
#include "planner/cost/catalogue.h"
#include "planner/cost/cost.h"
#include "planner/cost/operations.h"
#include "tests/support/property_seed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 1000, DIMENSIONS = 8 };

/* An operation as its text has it: dimensions in order, options and type. */
struct sample {
    const char *name;
    int dimensions;
    int64_t values[DIMENSIONS];
    char options[64];
    const char *dtype;
};

/* Dimensions are as many as the form has parts. */
static int dimensions_of(enum operation_kind kind)
{
    char form[OPERATION_TEXT_SIZE];
    int count = 1;
    operation_form(kind, form);
    for (const char *c = form; *c != '\0' && *c != '['; c++) {
        count += *c == 'x';
    }
    return count;
}

static int64_t any_size(struct random *random)
{
    return 1 + (int64_t)random_below(random, UINT64_C(1) << (1 + random_below(random, 11)));
}

static struct sample any_sample(struct random *random, enum operation_kind kind)
{
    struct sample sample = {.name = operation_name(kind), .dimensions = dimensions_of(kind)};
    ck_assert_int_le(sample.dimensions, DIMENSIONS);
    for (int i = 0; i < sample.dimensions; i++) {
        sample.values[i] = any_size(random);
    }
    char form[OPERATION_TEXT_SIZE];
    operation_form(kind, form);
    static const char *const flags[] = {"training", "causal", "backward", "gradient",
                                        "momentum", "master", "async"};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (strstr(form, flags[i]) != NULL && random_below(random, 2) == 0) {
            (void)snprintf(sample.options + strlen(sample.options),
                           sizeof sample.options - strlen(sample.options), ",%s", flags[i]);
        }
    }
    while (operation_has_dtype(kind) && sample.dtype == NULL) {
        enum dtype dtype = (enum dtype)random_below(random, DTYPES);
        sample.dtype = operation_takes(kind, dtype) ? dtype_name(dtype) : NULL;
    }
    return sample;
}

static enum operation_status read_sample(const struct sample *sample, struct operation *ret,
                                         struct operation_size *ret_size)
{
    char text[OPERATION_TEXT_SIZE];
    size_t length = (size_t)snprintf(text, sizeof text, "%s:", sample->name);
    for (int i = 0; i < sample->dimensions; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%" PRId64,
                                   i == 0 ? "" : "x", sample->values[i]);
    }
    (void)snprintf(text + length, sizeof text - length, "%s%s%s", sample->options,
                   sample->dtype != NULL ? ":" : "", sample->dtype != NULL ? sample->dtype : "");
    enum operation_status status = operation_parse(text, ret, NULL);
    return status == OPERATION_OK ? operation_measure(ret, ret_size, NULL) : status;
}

/* A larger kernel has fewer places to lie at; in a larger ring the parts that devices keep are
 * smaller. */
static bool may_shrink(enum operation_kind kind, int dimension, bool *ret_memory_only)
{
    *ret_memory_only = kind == OPERATION_ALL_REDUCE && dimension == 1;
    return *ret_memory_only || (kind == OPERATION_CONV && dimension >= 5);
}

START_TEST(more_of_anything_needs_no_less)
{
    enum operation_kind kind = (enum operation_kind)_i;
    struct random random = random_seeded(property_seed(20261122) + (uint64_t)kind);
    unsigned compared = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct sample sample = any_sample(&random, kind);
        struct operation operation;
        struct operation_size small;
        struct operation_size large;
        bool memory_only = false;
        if (read_sample(&sample, &operation, &small) != OPERATION_OK) {
            continue;
        }
        ck_assert(small.read_bytes >= 0 && small.written_bytes >= 0 && small.working_bytes >= 0);
        ck_assert(small.weight_bytes >= 0 && small.link_bytes >= 0 && small.storage_bytes >= 0);
        ck_assert(small.resident_bytes >= small.working_bytes + small.weight_bytes);
        int grown = (int)random_below(&random, (uint64_t)sample.dimensions);
        bool shrinks = may_shrink(kind, grown, &memory_only);
        sample.values[grown] += any_size(&random);
        if ((shrinks && !memory_only) || read_sample(&sample, &operation, &large) != OPERATION_OK) {
            continue;
        }
        compared++;
        ck_assert(large.flops >= small.flops);
        ck_assert(large.read_bytes >= small.read_bytes);
        ck_assert(large.written_bytes >= small.written_bytes);
        ck_assert(large.link_bytes >= small.link_bytes);
        ck_assert(large.storage_bytes >= small.storage_bytes);
        ck_assert(memory_only || large.resident_bytes >= small.resident_bytes);
    }
    ck_assert_msg(compared > ROUNDS / 20, "%s: %u compared", operation_name(kind), compared);
}
END_TEST

static double rate(const struct device_profile *profile, enum profile_figure figure)
{
    return profile->figures[figure].value;
}

START_TEST(nothing_is_faster_than_the_roofline)
{
    static const enum profile_figure peaks[DTYPES] = {FIGURE_FP64_MATRIX, FIGURE_FP32, FIGURE_TF32,
                                                      FIGURE_FP16,        FIGURE_BF16, FIGURE_FP8,
                                                      FIGURE_INT8,        FIGURE_INT4};
    struct random random = random_seeded(property_seed(20261122) + 1000);
    unsigned timed = 0;
    for (int round = 0; round < 10 * ROUNDS; round++) {
        enum operation_kind kind = (enum operation_kind)random_below(&random, OPERATION_KINDS);
        const struct device_profile *profile =
            &catalogue_at(random_below(&random, catalogue_count()))->profile;
        struct sample sample = any_sample(&random, kind);
        struct operation operation;
        struct operation_size size;
        struct cost_calibration calibrations[OPERATION_CLASSES];
        for (int i = 0; i < OPERATION_CLASSES; i++) {
            calibrations[i] = (struct cost_calibration){
                .samples = (uint32_t)random_below(&random, 2),
                .launch_s = (double)random_below(&random, 100) * 1e-6,
                .compute_efficiency = (double)(1 + random_below(&random, 100)) / 100,
                .bandwidth_efficiency = (double)(1 + random_below(&random, 100)) / 100,
                .half = {(double)random_below(&random, 500), (double)random_below(&random, 500),
                         (double)random_below(&random, 500)},
                .p90 = 1 + (double)random_below(&random, 100) / 100,
            };
        }
        const struct cost_device device = {.profile = profile, .calibrations = calibrations};
        struct cost bound;
        struct cost cost;
        if (read_sample(&sample, &operation, &size) != OPERATION_OK) {
            continue;
        }
        enum cost_status status = cost_estimate(profile, &operation, &bound);
        ck_assert_int_eq(cost_predict(&device, &operation, &cost), status);
        if (status != COST_OK) {
            ck_assert_int_eq(bound.time_s.source, FIGURE_UNKNOWN);
            continue;
        }
        timed++;
        double least = cost.time_s.value * (1 + 1e-12);
        double bandwidth = rate(profile, FIGURE_BANDWIDTH);
        double peak = rate(profile, peaks[operation.dtype]);
        double vectors = rate(profile, FIGURE_FP64);
        peak = operation.dtype == DTYPE_FP64 && vectors > peak ? vectors : peak;
        ck_assert(cost.time_s.value >= 0 && cost.bound_s.value == bound.time_s.value);
        ck_assert(least >= bound.time_s.value);
        ck_assert(bandwidth == 0 ||
                  least >= ((double)size.read_bytes + (double)size.written_bytes) / bandwidth);
        ck_assert(size.link_bytes == 0 ||
                  least >= (double)size.link_bytes / rate(profile, FIGURE_INTERCONNECT));
        enum operation_class class = operation_class_of(kind);
        bool is_product = class == OPERATION_MATRIX || class == OPERATION_CONVOLUTION ||
                          class == OPERATION_ATTENDING;
        ck_assert(!is_product || least >= (double)size.flops / peak);
        ck_assert(cost.p90_s == 0 || cost.p90_s >= cost.time_s.value);
        ck_assert((double)size.resident_bytes <= rate(profile, FIGURE_MEMORY) ||
                  profile->figures[FIGURE_MEMORY].source == FIGURE_UNKNOWN);
    }
    ck_assert_uint_gt(timed, ROUNDS);
}
END_TEST

START_TEST(any_text_is_read_or_refused)
{
    static const char alphabet[] = "0123456789x:,=-abcdefghiklmnoprstuvw";
    struct random random = random_seeded(property_seed(20261122) + 2000);
    unsigned read = 0;
    for (int round = 0; round < 25 * ROUNDS; round++) {
        char text[OPERATION_TEXT_SIZE];
        char again[OPERATION_TEXT_SIZE];
        struct operation operation;
        struct operation second;
        struct operation_size size;
        struct sample sample =
            any_sample(&random, (enum operation_kind)random_below(&random, OPERATION_KINDS));
        if (read_sample(&sample, &operation, &size) != OPERATION_OK) {
            continue;
        }
        operation_write(&operation, text);
        size_t length = strlen(text);
        for (uint64_t changes = random_below(&random, 4); changes > 0; changes--) {
            text[random_below(&random, length)] =
                alphabet[random_below(&random, sizeof alphabet - 1)];
        }
        struct problem problem = {""};
        if (operation_parse(text, &operation, &problem) != OPERATION_OK) {
            ck_assert_msg(problem.text[0] != '\0', "%s", text);
            continue;
        }
        read++;
        operation_write(&operation, again);
        ck_assert_int_eq(operation_parse(again, &second, NULL), OPERATION_OK);
        ck_assert_int_eq(second.kind, operation.kind);
        struct operation_size same;
        ck_assert_int_eq(operation_measure(&operation, &size, NULL), OPERATION_OK);
        ck_assert_int_eq(operation_measure(&second, &same, NULL), OPERATION_OK);
        ck_assert(same.flops == size.flops && same.resident_bytes == size.resident_bytes);
    }
    ck_assert_uint_gt(read, ROUNDS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("operations");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, more_of_anything_needs_no_less, 0, OPERATION_KINDS);
    tcase_add_test(tests, nothing_is_faster_than_the_roofline);
    tcase_add_test(tests, any_text_is_read_or_refused);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
