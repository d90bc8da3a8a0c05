#include "provider/probe.h"

#include "base/checked.h"
#include "runtime/clock.h"
#include "runtime/files.h"
#include "runtime/log.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROFILE_VERSION = 2,
    PROFILE_BYTES = 4096,
    LANES = 32,            /* independent sums: enough to fill the pipelines of wide units */
    STEPS = 20000,         /* per measurement */
    ROUNDS = 12,           /* the best counts: others had company */
    COPY_BYTES = 16 << 20, /* more than the caches of one core */
};

static int64_t measure_mflops(void)
{
    double sums[LANES];
    double best_ns = 0;
    for (int lane = 0; lane < LANES; lane++) {
        sums[lane] = lane;
    }
    for (int round = 0; round < ROUNDS; round++) {
        int64_t before_ns = clock_monotonic_ns();
        for (int step = 0; step < STEPS; step++) {
            for (int lane = 0; lane < LANES; lane++) {
                sums[lane] = sums[lane] * 0.999999 + 0.000001;
            }
        }
        double took_ns = (double)(clock_monotonic_ns() - before_ns);
        if (round == 0 || took_ns < best_ns) {
            best_ns = took_ns;
        }
    }
    double total = 0;
    for (int lane = 0; lane < LANES; lane++) {
        total += sums[lane];
    }
    volatile double sink = total; /* the sums must be worth computing */
    (void)sink;
    double flops = 2.0 * LANES * STEPS;
    return best_ns <= 0 ? 0 : (int64_t)(flops / best_ns * 1000.0);
}

static int64_t measure_bandwidth(void)
{
    char *from = malloc(COPY_BYTES);
    char *to = malloc(COPY_BYTES);
    double best_ns = 0;
    if (from != NULL && to != NULL) {
        memset(from, 1, COPY_BYTES);
        memset(to, 2, COPY_BYTES);
        for (int round = 0; round < ROUNDS; round++) {
            int64_t before_ns = clock_monotonic_ns();
            memcpy(to, from, COPY_BYTES);
            double took_ns = (double)(clock_monotonic_ns() - before_ns);
            from[round] = to[COPY_BYTES - 1 - round]; /* each copy depends on the one before */
            if (round == 0 || took_ns < best_ns) {
                best_ns = took_ns;
            }
        }
    }
    free(from);
    free(to);
    return best_ns <= 0 ? 0 : (int64_t)((double)COPY_BYTES / best_ns * 1e9);
}

int64_t probe_round(int64_t figure)
{
    int64_t scale = 1;
    while (figure / scale >= 100) {
        scale *= 10;
    }
    return figure / scale * scale;
}

void probe_measure(struct profile *ret_profile)
{
    ret_profile->mflops = probe_round(measure_mflops());
    ret_profile->bandwidth_bytes = probe_round(measure_bandwidth());
}

static bool read_profile(const char *file, const char *model, struct profile *ret_profile)
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    if (!file_read(file, PROFILE_BYTES, &bytes, &length, NULL)) {
        return false;
    }
    json_t *root = json_loadb((const char *)bytes, length, JSON_REJECT_DUPLICATES, NULL);
    free(bytes);
    const char *known = json_string_value(json_object_get(root, "model"));
    const char *engine = json_string_value(json_object_get(root, "gemm_engine"));
    json_int_t version = json_integer_value(json_object_get(root, "version"));
    struct profile profile = {
        .mflops = json_integer_value(json_object_get(root, "mflops")),
        .bandwidth_bytes = json_integer_value(json_object_get(root, "bandwidth_bytes")),
        .gemm = {.mflops = json_integer_value(json_object_get(root, "gemm_mflops"))},
    };
    if (engine != NULL) {
        (void)snprintf(profile.gemm.engine, sizeof profile.gemm.engine, "%s", engine);
    }
    bool good = version == PROFILE_VERSION && known != NULL && strcmp(known, model) == 0 &&
                profile.mflops > 0 && profile.bandwidth_bytes > 0;
    json_decref(root);
    if (good) {
        *ret_profile = profile;
    }
    return good;
}

static void write_profile(const char *file, const char *model, const struct profile *profile)
{
    struct problem problem = {""};
    json_t *root = json_pack("{s:i, s:s, s:I, s:I, s:s, s:I}", "version", PROFILE_VERSION, "model",
                             model, "mflops", (json_int_t)profile->mflops, "bandwidth_bytes",
                             (json_int_t)profile->bandwidth_bytes, "gemm_engine",
                             profile->gemm.engine, "gemm_mflops", (json_int_t)profile->gemm.mflops);
    char *text = root == NULL ? NULL : json_dumps(root, JSON_INDENT(2));
    if (text != NULL && !file_write(file, text, strlen(text), 0600, &problem)) {
        log_warning("the measured profile is not kept: %s", problem.text);
    }
    free(text);
    json_decref(root);
}

void probe_profile(const char *file, const char *model, const struct profile_gemm *gemm,
                   struct profile *ret_profile)
{
    bool kept = file != NULL && read_profile(file, model, ret_profile);
    if (kept && strcmp(ret_profile->gemm.engine, gemm->engine) == 0) {
        return;
    }
    if (!kept) {
        probe_measure(ret_profile);
    }
    ret_profile->gemm = *gemm;
    if (file != NULL) {
        write_profile(file, model, ret_profile);
    }
}
