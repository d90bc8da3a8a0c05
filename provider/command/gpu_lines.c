#include "provider/command/gpu_lines.h"

#include "base/text.h"
#include "formats/units.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FIGURE_SIZE = 64 };

/* Returns -1 for a figure that is not known. */
static int64_t figure(const json_t *gpu, const char *name)
{
    const json_t *value = json_object_get(gpu, name);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static const char *text(const json_t *gpu, const char *name)
{
    const char *value = json_string_value(json_object_get(gpu, name));
    return value == NULL ? "" : value;
}

static const char *memory(const json_t *gpu, char ret_text[FIGURE_SIZE])
{
    char used[UNITS_TEXT_SIZE];
    char total[UNITS_TEXT_SIZE];
    if (figure(gpu, "memory_used") < 0 || figure(gpu, "memory_total") < 0) {
        return "-";
    }
    units_bytes_short(figure(gpu, "memory_used"), used);
    units_bytes_short(figure(gpu, "memory_total"), total);
    (void)snprintf(ret_text, FIGURE_SIZE, "%s of %s", used, total);
    return ret_text;
}

static const char *power(const json_t *gpu, char ret_text[FIGURE_SIZE])
{
    const int64_t power_mw = figure(gpu, "power_mw");
    const int64_t limit_mw = figure(gpu, "power_limit_mw");
    if (power_mw < 0) {
        return "-";
    }
    int length = snprintf(ret_text, FIGURE_SIZE, "%lld W", (long long)(power_mw / 1000));
    if (limit_mw >= 0) {
        (void)snprintf(ret_text + length, FIGURE_SIZE - (size_t)length, " of %lld W",
                       (long long)(limit_mw / 1000));
    }
    return ret_text;
}

static const char *plain(const json_t *gpu, const char *name, const char *unit,
                         char ret_text[FIGURE_SIZE])
{
    const int64_t value = figure(gpu, name);
    if (value < 0) {
        return "-";
    }
    (void)snprintf(ret_text, FIGURE_SIZE, "%lld %s", (long long)value, unit);
    return ret_text;
}

void gpu_lines_print(const json_t *gpus)
{
    size_t i;
    const json_t *gpu;
    json_array_foreach(gpus, i, gpu)
    {
        char a[FIGURE_SIZE];
        char b[FIGURE_SIZE];
        char c[FIGURE_SIZE];
        char d[FIGURE_SIZE];
        const int64_t age_ms = figure(gpu, "age_ms");
        printf("%-12s %s: memory %s, busy %s, power %s, temperature %s", i == 0 ? "gpu" : "",
               text(gpu, "device"), memory(gpu, a), plain(gpu, "busy_percent", "%", b),
               power(gpu, c), plain(gpu, "celsius", "C", d));
        if (age_ms >= 0) {
            printf("; read %lld s ago", (long long)(age_ms / 1000));
        }
        printf("\n");
        if (text(gpu, "reason")[0] != '\0') {
            const bool is_lost = json_is_true(json_object_get(gpu, "lost"));
            printf("%-12s withheld: %s%s\n", "", text(gpu, "reason"),
                   is_lost ? ""
                   : strcmp(text(gpu, "order"), "hold") == 0
                       ? "; its work stands still"
                       : "; its work went back to the market");
        }
        if (text(gpu, "why")[0] != '\0') {
            printf("%-12s not known: %s\n", "", text(gpu, "why"));
        }
    }
}

void gpu_lines_print_failing(const json_t *failing, int width)
{
    size_t i;
    const json_t *device;
    json_array_foreach(failing, i, device)
    {
        const int64_t trials = figure(device, "trials");
        printf("%-*s %s: withheld after %lld failures in a row (%s): %s\n", width,
               i == 0 ? "failing" : "", text(device, "device"),
               (long long)figure(device, "failures"), text(device, "fault"), text(device, "cause"));
        printf("%-*s %s; ", width, "", text(device, "advice"));
        if (trials > 0) {
            printf("%lld trial%s failed; ", (long long)trials, text_plural((uint64_t)trials));
        }
        if (json_is_true(json_object_get(device, "trying"))) {
            printf("it is tried now\n");
        } else {
            printf("it is tried again in %lld s\n",
                   (long long)(figure(device, "next_trial_ms") / 1000));
        }
    }
}
