#include "bench/exchange_step/samples.h"

#include "bench/give_up.h"

#include <stdlib.h>

static const char *const names[KIND_COUNT] = {
    "ask_place",   "ask_replace", "ask_cancel", "job_rest",
    "job_replace", "job_cancel",  "job_fill",   "result",
};

void samples_init(struct samples *samples, uint64_t most)
{
    *samples = (struct samples){0};
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        samples->each[kind] = memory(most, sizeof *samples->each[kind]);
    }
}

static int compare_samples(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

double samples_clock_ns(void)
{
    enum { READINGS = 100000 };
    const int64_t before_ns = wall_ns();
    for (int i = 0; i < READINGS; i++) {
        (void)wall_ns();
    }
    return (double)(wall_ns() - before_ns) / READINGS;
}

json_t *samples_profile(struct samples *samples, double reading_ns)
{
    json_t *kinds = json_object();
    double counted = 0;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        uint32_t *each = samples->each[kind];
        const size_t count = samples->count[kind];
        double sum_ns = 0;
        for (size_t i = 0; i < count; i++) {
            sum_ns += (double)each[i] - reading_ns;
        }
        qsort(each, count, sizeof *each, compare_samples);
        if (count > 0) {
            const double share = sum_ns / (double)samples->whole_ns;
            counted += share;
            (void)json_object_set_new(
                kinds, names[kind],
                json_pack("{s:I, s:f, s:I, s:I, s:f}", "commands", (json_int_t)count, "mean_ns",
                          sum_ns / (double)count, "p50_ns", (json_int_t)each[count / 2], "p99_ns",
                          (json_int_t)each[count - 1 - count / 100], "share", share));
        }
        free(each);
    }
    return json_pack("{s:o, s:f, s:f}", "commands", kinds, "making", 1 - counted, "clock_ns",
                     reading_ns);
}
