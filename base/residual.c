#include "base/residual.h"

#include <float.h>
#include <math.h>

#define UNIT 0x1p-24          /* half a last place of float32 */
#define OWN (DBL_EPSILON / 2) /* of double, in which residuals are computed */

/* What n roundings can add up to, as a part of the sum of magnitudes. */
static double gamma_of(double roundings)
{
    double sum = roundings * UNIT;
    return sum < 0.5 ? sum / (1 - sum) : INFINITY;
}

struct residual_bounds residual_bounds(const struct residual_row *row)
{
    double inner = (double)row->inner;
    double columns = (double)row->columns;
    double own = (2 * (inner + columns) + 4) * OWN * (row->reach + row->magnitude);
    double underflow = (2 * inner + 1) * columns * (double)FLT_MIN;
    return (struct residual_bounds){.right = (8 * UNIT * sqrt(inner) + 12 * (UNIT + UNIT)) *
                                             sqrt(row->squares),
                                    .wrong = gamma_of(inner) * row->reach + own + underflow};
}

enum residual residual_judge(const struct residual_bounds *bounds, double residual)
{
    if (residual <= bounds->right) {
        return RESIDUAL_RIGHT;
    }
    return residual <= bounds->wrong ? RESIDUAL_DOUBTFUL : RESIDUAL_WRONG;
}
