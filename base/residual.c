#include "base/residual.h"

#include <float.h>
#include <math.h>

#define UNIT 0x1p-24          /* half a last place of float32 */
#define OWN (DBL_EPSILON / 2) /* the same of double, in which residuals are computed */
#define LAMBDA 8.0            /* independent errors add up to LAMBDA sqrt(n) of one */
#define RANGE_END ((double)FLT_MAX * (1 + UNIT / 2)) /* values from here on round to infinity */

/* Returns the most that n roundings can add up to, as a part of the sum of magnitudes. */
static double gamma_of(double roundings)
{
    double sum = roundings * UNIT;
    return sum < 0.5 ? sum / (1 - sum) : INFINITY;
}

/* Returns the amount that independent roundings do add up to. */
static double usual_of(double roundings)
{
    const double most = gamma_of(roundings);
    const double usual = LAMBDA * sqrt(roundings) * UNIT;
    return usual < most ? usual : most;
}

/* The two functions bound the error of sums that fall into the subnormal range. The sums are
 * rounded there, or flushed to zero. */
static double rounded_tiny(double inner)
{
    return inner * (double)FLT_TRUE_MIN;
}

static double flushed_tiny(double inner)
{
    return (2 * inner + 1) * (double)FLT_MIN;
}

/* A part of 0 is 0, even when the part is infinite. */
static double part_of(double part, double whole)
{
    return whole > 0 ? part * whole : 0;
}

struct residual_bounds residual_bounds(const struct residual_row *row)
{
    double inner = (double)row->inner;
    double columns = (double)row->columns;
    double own = (2 * (inner + columns) + 4) * OWN * (row->reach + row->magnitude);
    return (struct residual_bounds){
        .right = (8 * UNIT * sqrt(inner) + 24 * UNIT) * sqrt(row->squares),
        .close = part_of(usual_of(inner), row->reach) + own + columns * rounded_tiny(inner),
        .wrong = part_of(gamma_of(inner), row->reach) + own + columns * flushed_tiny(inner)};
}

enum residual residual_judge(const struct residual_bounds *bounds, double residual)
{
    if (residual <= bounds->right) {
        return RESIDUAL_RIGHT;
    }
    return residual <= bounds->wrong ? RESIDUAL_DOUBTFUL : RESIDUAL_WRONG;
}

void residual_add_terms(float a, const float *b, size_t count, double *plus, double *minus)
{
    const double factor = (double)a;
    /* There is no branch, because the signs of the terms cannot be predicted. */
    for (size_t j = 0; j < count; j++) {
        const double term = factor * (double)b[j];    /* exact */
        const double positive = term <= 0 ? 0 : term; /* NaN enters both sums */
        const double negative = term >= 0 ? 0 : term;
        plus[j] += positive;
        minus[j] -= negative;
    }
}

bool residual_may_overflow(uint64_t inner, double reach)
{
    return reach * (1 + (double)inner * UNIT) >= RANGE_END;
}

/* Judges an entry when some operands are not finite. Terms +inf and -inf make NaN in any order.
 * One infinity among the terms makes the sum infinite, unless the other terms overflow to the
 * opposite infinity first. */
static bool follows(uint64_t inner, double plus, double minus, double found)
{
    if (isnan(plus) || (isinf(plus) && isinf(minus))) {
        return isnan(found);
    }
    const double rest = isinf(plus) ? minus : plus;
    return isnan(found) ? residual_may_overflow(inner, rest)
                        : found == (isinf(plus) ? INFINITY : -INFINITY);
}

/* Returns the error that a right entry may have, our own rounding included. */
static double right_error(double terms, double reach)
{
    return part_of(usual_of(terms), reach) + (2 * terms + 6) * OWN * reach + rounded_tiny(terms);
}

bool residual_agrees(uint64_t inner, double plus, double minus, float found, float other)
{
    return fabs((double)found - (double)other) <= right_error((double)inner, plus + minus);
}

enum residual residual_judge_entry(uint64_t inner, double plus, double minus, float found)
{
    const double given = (double)found;
    bool is_right;
    if (!isfinite(plus) || !isfinite(minus)) {
        is_right = follows(inner, plus, minus, given);
        return is_right ? RESIDUAL_RIGHT : RESIDUAL_WRONG;
    }
    if (!isfinite(given)) {
        /* NaN is right when partial sums may pass both ends of the range. */
        is_right = (given < 0 || residual_may_overflow(inner, plus)) &&
                   (given > 0 || residual_may_overflow(inner, minus));
        return is_right ? RESIDUAL_RIGHT : RESIDUAL_WRONG;
    }
    const double terms = (double)inner;
    const double reach = plus + minus;
    const double own = (2 * terms + 6) * OWN * reach;
    const double error = fabs(given - (plus - minus));
    if (error <= right_error(terms, reach)) {
        return RESIDUAL_RIGHT;
    }
    return error <= part_of(gamma_of(terms), reach) + own + flushed_tiny(terms) ? RESIDUAL_DOUBTFUL
                                                                                : RESIDUAL_WRONG;
}
