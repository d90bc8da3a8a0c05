#include "provider/device/probe.h"

#include "base/checked.h"
#include "base/text.h"
#include "runtime/clock.h"
#include "runtime/files.h"
#include "runtime/log.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PROFILE_VERSION = 3,
    PROFILE_BYTES = 4096,
    LANES = 32,            /* independent sums, enough for the pipelines of wide units */
    STEPS = 20000,         /* per measurement */
    ROUNDS = 12,           /* the best round counts; other load slows the rest */
    COPY_BYTES = 16 << 20, /* more than the caches of one core */
};

/* No figure of any kind comes near this bound. */
#define FIGURE_MOST INT64_C(1000000000000000000)

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
    volatile double sink = total; /* keeps the compiler from dropping the sums */
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

struct probe_figure probe_settle(const struct probe_figure *kept, int64_t measured, int64_t now_s)
{
    bool is_old = kept->at_s > now_s || now_s - kept->at_s > PROBE_KEPT_S;
    bool is_faster = measured / 11 >= kept->value / 10;
    bool is_slower = measured / 9 < kept->value / 10;
    if (kept->value <= 0 || is_faster || (is_slower && is_old)) {
        return (struct probe_figure){.value = measured, .at_s = now_s, .latest = measured};
    }
    return (struct probe_figure){
        .value = kept->value, .at_s = is_slower ? kept->at_s : now_s, .latest = measured};
}

bool probe_doubtful(const struct probe_figure *figure)
{
    return figure->latest < figure->value / 2;
}

void probe_day(int64_t at_s, char ret_text[PROBE_DAY_SIZE])
{
    struct tm day;
    time_t at = (time_t)at_s;
    if (gmtime_r(&at, &day) == NULL || strftime(ret_text, PROBE_DAY_SIZE, "%Y-%m-%d", &day) == 0) {
        (void)snprintf(ret_text, PROBE_DAY_SIZE, "-");
    }
}

/* A figure out of all proportion, or without a time, counts as none. */
static struct probe_figure read_figure(const json_t *root, const char *name, const char *at)
{
    const struct probe_figure figure = {.value = json_integer_value(json_object_get(root, name)),
                                        .at_s = json_integer_value(json_object_get(root, at))};
    const bool is_sane = figure.value > 0 && figure.value <= FIGURE_MOST && figure.at_s >= 0;
    return is_sane ? figure : (struct probe_figure){.value = 0};
}

struct profile probe_read(const char *file, const char *model)
{
    struct profile profile = {.engine = ""};
    uint8_t *bytes = NULL;
    size_t length = 0;
    if (!file_read(file, PROFILE_BYTES, &bytes, &length, NULL)) {
        return profile;
    }
    json_t *root = json_loadb((const char *)bytes, length, JSON_REJECT_DUPLICATES, NULL);
    free(bytes);
    const char *known = json_string_value(json_object_get(root, "model"));
    const char *engine = json_string_value(json_object_get(root, "gemm_engine"));
    json_int_t version = json_integer_value(json_object_get(root, "version"));
    if (version == PROFILE_VERSION && known != NULL && strcmp(known, model) == 0) {
        profile.mflops = read_figure(root, "mflops", "mflops_at_s");
        profile.bandwidth_bytes = read_figure(root, "bandwidth_bytes", "bandwidth_at_s");
        profile.gemm_mflops = read_figure(root, "gemm_mflops", "gemm_at_s");
        text_printable(engine != NULL ? engine : "", engine != NULL ? strlen(engine) : 0,
                       profile.engine, sizeof profile.engine);
    }
    json_decref(root);
    return profile;
}

static void write_profile(const char *file, const char *model, const struct profile *profile)
{
    struct problem problem = {""};
    json_t *root = json_pack(
        "{s:i, s:s, s:I, s:I, s:I, s:I, s:s, s:I, s:I}", "version", PROFILE_VERSION, "model", model,
        "mflops", (json_int_t)profile->mflops.value, "mflops_at_s",
        (json_int_t)profile->mflops.at_s, "bandwidth_bytes",
        (json_int_t)profile->bandwidth_bytes.value, "bandwidth_at_s",
        (json_int_t)profile->bandwidth_bytes.at_s, "gemm_engine", profile->engine, "gemm_mflops",
        (json_int_t)profile->gemm_mflops.value, "gemm_at_s", (json_int_t)profile->gemm_mflops.at_s);
    char *text = root == NULL ? NULL : json_dumps(root, JSON_INDENT(2));
    if (text != NULL && !file_write(file, text, strlen(text), 0600, &problem)) {
        log_warning("the measured profile is not kept: %s", problem.text);
    }
    free(text);
    json_decref(root);
}

void probe_profile(const char *file, const char *model, const struct profile_gemm *gemm,
                   int64_t now_s, struct profile *ret_profile)
{
    static const struct probe_figure none = {.value = 0};
    const struct profile kept = probe_read(file, model);
    bool is_same = strcmp(kept.engine, gemm->engine) == 0;
    *ret_profile = (struct profile){
        .mflops = probe_settle(&kept.mflops, probe_round(measure_mflops()), now_s),
        .bandwidth_bytes =
            probe_settle(&kept.bandwidth_bytes, probe_round(measure_bandwidth()), now_s),
        .gemm_mflops = probe_settle(is_same ? &kept.gemm_mflops : &none, gemm->mflops, now_s),
    };
    (void)snprintf(ret_profile->engine, sizeof ret_profile->engine, "%s", gemm->engine);
    write_profile(file, model, ret_profile);
}
