#include "base/precision.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SIDE = PRECISION_SIDE };

#define EVIDENCE 4.5 /* the least evidence of a clear trace (precision.h) */

typedef double table[SIDE][SIDE]; /* one value for each entry of the sample */

static const struct format {
    uint32_t dropped; /* how many of the 24 bits of the mantissa */
    bool is_nearest;
} formats[PRECISION_FORMATS] = {{16, true}, {16, false}, {13, true}, {13, false}};

/* Returns the change that rounding makes to a value, or 0 when rounding would yield infinity. */
static double change_of(float value, const struct format *format)
{
    uint32_t bits;
    float rounded;
    memcpy(&bits, &value, sizeof bits);
    bits += format->is_nearest ? UINT32_C(1) << (format->dropped - 1) : 0;
    bits &= UINT32_MAX << format->dropped;
    memcpy(&rounded, &bits, sizeof rounded);
    return isfinite(rounded) ? (double)rounded - (double)value : 0;
}

void precision_add(struct precision_sample *sample, const float a[SIDE], const float b[SIDE])
{
    double lost_b[SIDE][PRECISION_FORMATS];
    for (size_t j = 0; j < SIDE; j++) {
        for (size_t f = 0; f < PRECISION_FORMATS; f++) {
            lost_b[j][f] = change_of(b[j], &formats[f]);
        }
    }
    for (size_t i = 0; i < SIDE; i++) {
        const double factor = (double)a[i];
        double lost_a[PRECISION_FORMATS];
        for (size_t f = 0; f < PRECISION_FORMATS; f++) {
            lost_a[f] = change_of(a[i], &formats[f]);
        }
        for (size_t j = 0; j < SIDE; j++) {
            struct precision_entry *entry = &sample->entries[i][j];
            const double other = (double)b[j];
            entry->product += factor * other;
            entry->magnitude += fabs(factor * other);
            for (size_t f = 0; f < PRECISION_FORMATS; f++) {
                entry->lost_a[f] += lost_a[f] * other;
                entry->lost_b[f] += factor * lost_b[j][f];
            }
        }
    }
}

/* Subtracts the means of rows and of columns. An error that a whole row or column has in common
 * is one observation, not many. */
static void centre(table values)
{
    for (size_t i = 0; i < SIDE; i++) {
        double mean = 0;
        for (size_t j = 0; j < SIDE; j++) {
            mean += values[i][j] / SIDE;
        }
        for (size_t j = 0; j < SIDE; j++) {
            values[i][j] -= mean;
        }
    }
    for (size_t j = 0; j < SIDE; j++) {
        double mean = 0;
        for (size_t i = 0; i < SIDE; i++) {
            mean += values[i][j] / SIDE;
        }
        for (size_t i = 0; i < SIDE; i++) {
            values[i][j] -= mean;
        }
    }
}

/* Returns the sum of the values, divided by the root of the sum of their squares. */
static double evidence(const double sums[SIDE])
{
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < SIDE; i++) {
        sum += sums[i];
        squares += sums[i] * sums[i];
    }
    return squares > 0 ? sum / sqrt(squares) : 0;
}

/* The trace says whether the errors show that a factor was rounded. TRACE_IMPOSSIBLE means that
 * rounding to the format changes nothing of the factor. */
enum trace { TRACE_NONE, TRACE_CLEAR, TRACE_IMPOSSIBLE };

static enum trace trace_of(table errors, table losses)
{
    double rows[SIDE] = {0};
    double columns[SIDE] = {0};
    double together = 0;
    double squares = 0;
    for (size_t i = 0; i < SIDE; i++) {
        for (size_t j = 0; j < SIDE; j++) {
            double both = errors[i][j] * losses[i][j];
            rows[i] += both;
            columns[j] += both;
            together += both;
            squares += losses[i][j] * losses[i][j];
        }
    }
    if (squares == 0) {
        return TRACE_IMPOSSIBLE;
    }
    double slope = together / squares;
    bool is_clear =
        slope >= 0.5 && slope <= 2.5 && evidence(rows) >= EVIDENCE && evidence(columns) >= EVIDENCE;
    return is_clear ? TRACE_CLEAR : TRACE_NONE;
}

static enum precision judge_format(const struct precision_sample *sample, table errors, size_t f)
{
    table a;
    table b;
    for (size_t i = 0; i < SIDE; i++) {
        for (size_t j = 0; j < SIDE; j++) {
            const struct precision_entry *entry = &sample->entries[i][j];
            const bool is_there = entry->magnitude > 0;
            a[i][j] = is_there ? entry->lost_a[f] / entry->magnitude : 0;
            b[i][j] = is_there ? entry->lost_b[f] / entry->magnitude : 0;
        }
    }
    centre(a);
    centre(b);
    enum trace of_a = trace_of(errors, a);
    enum trace of_b = trace_of(errors, b);
    if (of_a == TRACE_CLEAR && of_b == TRACE_CLEAR) {
        return PRECISION_REDUCED;
    }
    return (of_a == TRACE_CLEAR && of_b == TRACE_IMPOSSIBLE) ||
                   (of_a == TRACE_IMPOSSIBLE && of_b == TRACE_CLEAR)
               ? PRECISION_DOUBTFUL
               : PRECISION_FULL;
}

enum precision precision_judge(const struct precision_sample *sample, float (*found)[SIDE])
{
    enum precision worst = PRECISION_FULL;
    table errors;
    for (size_t i = 0; i < SIDE; i++) {
        for (size_t j = 0; j < SIDE; j++) {
            const struct precision_entry *entry = &sample->entries[i][j];
            double error = (double)found[i][j] - entry->product;
            errors[i][j] = entry->magnitude > 0 ? error / entry->magnitude : 0;
        }
    }
    for (size_t f = 0; f < PRECISION_FORMATS; f++) {
        enum precision precision = judge_format(sample, errors, f);
        worst = precision > worst ? precision : worst;
    }
    return worst;
}
