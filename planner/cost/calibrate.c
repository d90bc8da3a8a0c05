#include "planner/cost/calibrate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    LAUNCH,
    COMPUTE,   /* 1 / efficiency, >= 1 */
    BANDWIDTH, /* 1 / efficiency, >= 1 */
    HALF,
    FIGURES = HALF + OPERATION_EXTENTS,
    ROUNDS_MOST = 200, /* rounds for one step size */
};

#define INVERSE_MOST 1e6
#define HALF_LEAST 0.25 /* a smaller half counts as none */
#define HALF_MOST 1e9
#define LAUNCH_LEAST 1e-9
#define LAUNCH_MOST 1e3
/* A fit without a figure is as good below this multiple of the misfit, plus SEEN_LEAST for each
 * sample. */
#define AS_GOOD 1.02
#define SEEN_LEAST 1e-5 /* the square of an error of 0.3 % */

/* The parts of a sample that the model needs. The struct is small because the search reads it
 * thousands of times. */
struct point {
    double compute_s, memory_s, rest_s; /* parts of the bound */
    double bytes;
    double extents[OPERATION_EXTENTS];
    double seconds;
};

struct fit {
    struct point points[CALIBRATE_MOST];
    size_t count;
    bool is_free[FIGURES];
    bool is_shared; /* all extents that differ share one half */
};

static double modelled(const double figures[FIGURES], const struct point *point)
{
    double compute = point->compute_s * figures[COMPUTE];
    for (int i = 0; i < OPERATION_EXTENTS; i++) {
        compute *= 1 + figures[HALF + i] / point->extents[i];
    }
    double memory = point->memory_s * figures[BANDWIDTH];
    double longest = compute > memory ? compute : memory;
    return figures[LAUNCH] + (longest > point->rest_s ? longest : point->rest_s);
}

static double misfit(const struct fit *fit, const double figures[FIGURES])
{
    double sum = 0;
    for (size_t i = 0; i < fit->count; i++) {
        double ratio = fit->points[i].seconds / modelled(figures, &fit->points[i]);
        double off = (ratio > 1 ? ratio : 1 / ratio) - 1;
        sum += off * off;
    }
    return sum;
}

/* ---------------------------------------------------------------- the search */

static double moved(int figure, double value, double factor)
{
    double least = figure == LAUNCH ? LAUNCH_LEAST : HALF_LEAST;
    double most = figure == LAUNCH ? LAUNCH_MOST : HALF_MOST;
    if (figure == COMPUTE || figure == BANDWIDTH) {
        value *= factor;
        return value < 1 ? 1 : value > INVERSE_MOST ? INVERSE_MOST : value;
    }
    if (value == 0) {
        return factor > 1 ? least : 0;
    }
    value *= factor;
    return value < least ? 0 : value > most ? most : value;
}

static void move(const struct fit *fit, double figures[FIGURES], int figure, double factor)
{
    double value = moved(figure, figures[figure], factor);
    figures[figure] = value;
    for (int i = HALF; i < FIGURES && figure >= HALF && fit->is_shared; i++) {
        figures[i] = fit->is_free[i] ? value : 0;
    }
}

/* Returns true when a figure may be moved by itself. The first of several shared halves stands for
 * all of them. */
static bool leads(const struct fit *fit, int figure)
{
    if (!fit->is_free[figure]) {
        return false;
    }
    for (int i = HALF; i < figure && fit->is_shared; i++) {
        if (fit->is_free[i]) {
            return false;
        }
    }
    return true;
}

static bool try_move(const struct fit *fit, double figures[FIGURES], double *best, int first,
                     double first_factor, int second, double second_factor)
{
    double tried[FIGURES];
    memcpy(tried, figures, sizeof tried);
    move(fit, tried, first, first_factor);
    if (second != first) {
        move(fit, tried, second, second_factor);
    }
    double result = misfit(fit, tried);
    if (!(result < *best)) {
        return false;
    }
    *best = result;
    memcpy(figures, tried, sizeof tried);
    return true;
}

/* Tries all moves of one size. A figure paired with itself moves alone. */
static bool try_all(const struct fit *fit, double figures[FIGURES], double *best, double step)
{
    bool has_helped = false;
    for (int first = 0; first < FIGURES; first++) {
        for (int second = first; second < FIGURES; second++) {
            if (!leads(fit, first) || !leads(fit, second)) {
                continue;
            }
            for (int direction = 0; direction < 4; direction++) {
                double first_factor = (direction & 1) != 0 ? step : 1 / step;
                double second_factor = (direction & 2) != 0 ? step : 1 / step;
                has_helped |=
                    try_move(fit, figures, best, first, first_factor, second, second_factor);
            }
        }
    }
    return has_helped;
}

static double search(const struct fit *fit, double figures[FIGURES])
{
    static const double steps[] = {4, 2, 1.5, 1.2, 1.1, 1.05, 1.02, 1.01, 1.005, 1.002, 1.001};
    double best = misfit(fit, figures);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        for (int round = 0; round < ROUNDS_MOST && try_all(fit, figures, &best, steps[i]);
             round++) {
        }
    }
    return best;
}

/* ---------------------------------------------------------------- samples */

static bool take_sample(const struct device_profile *profile, enum operation_class of,
                        const struct calibrate_sample *sample, struct point *ret_point)
{
    const struct cost_device device = {.profile = profile};
    struct cost cost;
    if (sample->operation.kind >= OPERATION_KINDS ||
        operation_class_of(sample->operation.kind) != of || !(sample->seconds > 0) ||
        !(sample->seconds < LAUNCH_MOST * INVERSE_MOST) ||
        cost_predict(&device, &sample->operation, &cost) != COST_OK) {
        return false;
    }
    *ret_point = (struct point){.compute_s = cost.terms[COST_COMPUTE].value,
                                .memory_s = cost.terms[COST_BANDWIDTH].value,
                                .rest_s = cost.terms[COST_LINKS].value,
                                .bytes = cost.bytes,
                                .seconds = sample->seconds};
    for (int i = 0; i < OPERATION_EXTENTS; i++) {
        ret_point->extents[i] = (double)cost.size.extents[i];
    }
    return true;
}

/* A figure can be fitted only if it differs between samples. */
static void find_free(struct fit *fit)
{
    size_t differing = 0;
    fit->is_free[LAUNCH] = true;
    for (size_t i = 0; i < fit->count; i++) {
        fit->is_free[COMPUTE] |= fit->points[i].compute_s > 0;
        fit->is_free[BANDWIDTH] |= fit->points[i].memory_s > 0;
    }
    for (int k = 0; k < OPERATION_EXTENTS && fit->is_free[COMPUTE]; k++) {
        bool differs = false;
        for (size_t i = 1; i < fit->count; i++) {
            differs |= fit->points[i].extents[k] != fit->points[0].extents[k];
        }
        fit->is_free[HALF + k] = differs;
        differing += differs;
    }
    fit->is_shared = fit->count < CALIBRATE_HALVES * (differing + HALF);
}

/* Returns the least time of any sample over its roof, at least 1. */
static double best_inverse(const struct fit *fit, bool is_compute)
{
    double least = INVERSE_MOST;
    for (size_t i = 0; i < fit->count; i++) {
        double roof = is_compute ? fit->points[i].compute_s : fit->points[i].memory_s;
        double inverse = roof > 0 ? fit->points[i].seconds / roof : INVERSE_MOST;
        least = inverse < least ? inverse : least;
    }
    return least > 1 ? least : 1;
}

/* Returns the most bytes per second of any sample. */
static double most_moved(const struct fit *fit)
{
    double most = 0;
    for (size_t i = 0; i < fit->count; i++) {
        double moved_s = fit->points[i].bytes / fit->points[i].seconds;
        most = moved_s > most ? moved_s : most;
    }
    return most;
}

static double shortest(const struct fit *fit)
{
    double least = fit->points[0].seconds;
    for (size_t i = 1; i < fit->count; i++) {
        least = fit->points[i].seconds < least ? fit->points[i].seconds : least;
    }
    return least;
}

static double search_from_all(const struct fit *fit, double ret_figures[FIGURES])
{
    static const double launches[] = {0, 0.5, 0.95}; /* shares of the shortest sample */
    static const double halves[] = {0, 16, 256};
    double best = -1;
    for (size_t l = 0; l < sizeof launches / sizeof launches[0]; l++) {
        for (size_t h = 0; h < sizeof halves / sizeof halves[0]; h++) {
            double figures[FIGURES] = {
                [LAUNCH] = fit->is_free[LAUNCH] ? launches[l] * shortest(fit) : 0,
                [COMPUTE] = fit->is_free[COMPUTE] ? best_inverse(fit, true) : 1,
                [BANDWIDTH] = fit->is_free[BANDWIDTH] ? best_inverse(fit, false) : 1,
            };
            for (int i = HALF; i < FIGURES; i++) {
                figures[i] = fit->is_free[i] ? halves[h] : 0;
            }
            double found = search(fit, figures);
            if (best < 0 || found < best) {
                best = found;
                memcpy(ret_figures, figures, sizeof figures);
            }
        }
    }
    return best;
}

/* Fits all figures. Then it leaves out, one by one, those without which the fit is as good, since
 * the samples do not show them. */
static void explain(struct fit *fit, double figures[FIGURES])
{
    static const int doubted[] = {BANDWIDTH, HALF + 2, HALF + 1, HALF, COMPUTE, LAUNCH};
    double best = search_from_all(fit, figures);
    for (size_t i = 0; i < sizeof doubted / sizeof doubted[0]; i++) {
        int figure = doubted[i];
        double without[FIGURES];
        if (!fit->is_free[figure] || (fit->is_shared && figure >= HALF)) {
            continue;
        }
        fit->is_free[figure] = false;
        double found = search_from_all(fit, without);
        if (found <= best * AS_GOOD + SEEN_LEAST * (double)fit->count) {
            memcpy(figures, without, sizeof without);
            best = found < best ? found : best;
        } else {
            fit->is_free[figure] = true;
        }
    }
}

/* Returns the ratio of measured to modelled time that nine of ten samples do not exceed. */
static double p90_of(const struct fit *fit, const double figures[FIGURES])
{
    double ratios[CALIBRATE_MOST];
    assert(fit->count >= CALIBRATE_LEAST && fit->count <= CALIBRATE_MOST);
    for (size_t i = 0; i < fit->count; i++) {
        double ratio = fit->points[i].seconds / modelled(figures, &fit->points[i]);
        size_t at = i;
        for (; at > 0 && ratios[at - 1] > ratio; at--) {
            ratios[at] = ratios[at - 1];
        }
        ratios[at] = ratio;
    }
    double p90 = ratios[(9 * fit->count + 9) / 10 - 1];
    return p90 > 1 ? p90 : 1;
}

/* ---------------------------------------------------------------- outliers */

/* Samples with the same bound and extents are one operation for the model. */
static bool is_alike(const struct point *a, const struct point *b)
{
    bool is_alike =
        a->compute_s == b->compute_s && a->memory_s == b->memory_s && a->rest_s == b->rest_s;
    for (int i = 0; i < OPERATION_EXTENTS; i++) {
        is_alike = is_alike && a->extents[i] == b->extents[i];
    }
    return is_alike;
}

static int by_value(const void *left, const void *right)
{
    const int64_t *a = left;
    const int64_t *b = right;
    return *a < *b ? -1 : *a > *b;
}

/* Histories judge integers. Times of months and more saturate at one value. */
static int64_t in_picoseconds(const struct point *point)
{
    double value = point->seconds * 1e12;
    return value < 9e18 ? (int64_t)value : INT64_MAX;
}

/* The samples of one operation are judged as a history is. */
static void leave_out_outliers(struct fit *fit)
{
    static_assert((int)CALIBRATE_MOST <= (int)HISTORY_KEEP_MOST,
                  "all samples may be of one operation");
    struct point kept[CALIBRATE_MOST];
    size_t count = 0;
    for (size_t i = 0; i < fit->count; i++) {
        int64_t values[CALIBRATE_MOST];
        uint32_t alike = 0;
        uint32_t first = 0;
        for (size_t k = 0; k < fit->count; k++) {
            if (is_alike(&fit->points[i], &fit->points[k])) {
                values[alike++] = in_picoseconds(&fit->points[k]);
            }
        }
        qsort(values, alike, sizeof values[0], by_value);
        uint32_t good = history_keep(values, alike, &first);
        int64_t own = in_picoseconds(&fit->points[i]);
        if (own >= values[first] && own <= values[first + good - 1]) {
            kept[count++] = fit->points[i];
        }
    }
    memcpy(fit->points, kept, count * sizeof kept[0]);
    fit->count = count;
}

enum calibrate_status calibrate(const struct device_profile *profile, enum operation_class of,
                                const struct calibrate_sample *samples, size_t count,
                                struct cost_calibration *ret_calibration, size_t *ret_sample)
{
    struct fit fit = {.count = count};
    double figures[FIGURES];
    if (count < CALIBRATE_LEAST || count > CALIBRATE_MOST) {
        return CALIBRATE_FEW;
    }
    for (size_t i = 0; i < count; i++) {
        if (!take_sample(profile, of, &samples[i], &fit.points[i])) {
            if (ret_sample != NULL) {
                *ret_sample = i;
            }
            return CALIBRATE_BAD_SAMPLE;
        }
    }
    leave_out_outliers(&fit);
    find_free(&fit);
    explain(&fit, figures);
    *ret_calibration = (struct cost_calibration){
        .samples = (uint32_t)fit.count,
        .outliers = (uint32_t)(count - fit.count),
        .launch_s = figures[LAUNCH],
        .compute_efficiency = 1 / figures[COMPUTE],
        .bandwidth_efficiency = 1 / figures[BANDWIDTH],
        .p90 = p90_of(&fit, figures),
        .reached = most_moved(&fit),
    };
    memcpy(ret_calibration->half, figures + HALF, sizeof ret_calibration->half);
    return CALIBRATE_OK;
}
