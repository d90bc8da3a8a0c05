#include "planner/cost/spot.h"

#include <math.h>

#define SECONDS_PER_HOUR 3600.0
#define PARTS_MOST 1e9

/* (e^x - 1) / x = 1 + x / 2! + x^2 / 3! + ... for 0 <= x <= SPOT_INTERRUPTIONS_MOST. All terms are
 * above 0, so nothing cancels. */
static double growth(double x)
{
    double sum = 1;
    double term = 1;
    for (int k = 2; term > sum * 1e-17; k++) {
        term *= x / k;
        sum += term;
    }
    return sum;
}

static bool is_figure(double value)
{
    return value >= 0 && value <= 1e18;
}

enum spot_status spot_expect(const struct spot_risk *risk, double work_s, double *ret_expected_s)
{
    if (!is_figure(risk->per_hour) || !is_figure(risk->restart_s) || !is_figure(risk->interval_s) ||
        !is_figure(risk->checkpoint_s) || !is_figure(work_s)) {
        return SPOT_BAD_FIGURE;
    }
    double parts = 1;
    double part = work_s;
    if (risk->interval_s > 0 && work_s > risk->interval_s) {
        double wanted = work_s / risk->interval_s;
        if (wanted > PARTS_MOST) {
            return SPOT_BAD_FIGURE;
        }
        parts = (double)(long long)wanted;
        parts += parts < wanted;
        part = work_s / parts + risk->checkpoint_s;
    }
    /* Interruptions expected in a part, if it ran to its end. */
    double interruptions = risk->per_hour / SECONDS_PER_HOUR * part;
    if (interruptions > SPOT_INTERRUPTIONS_MOST) {
        return SPOT_HOPELESS;
    }
    double grown = growth(interruptions);
    *ret_expected_s = parts * (part * grown + risk->restart_s * interruptions * grown);
    return SPOT_OK;
}

double spot_least(const struct spot_risk *risk, double work_s, double part_s)
{
    if (!is_figure(risk->per_hour) || !is_figure(risk->restart_s) || !is_figure(work_s) ||
        !is_figure(part_s)) {
        return work_s;
    }
    /* Parts between checkpoints are at least half an interval. */
    double shortest_s = risk->interval_s > 0 ? fmin(part_s, risk->interval_s / 2) : part_s;
    double per_second = risk->per_hour / SECONDS_PER_HOUR;
    double grown = growth(fmin(per_second * shortest_s, SPOT_INTERRUPTIONS_MOST));
    return work_s * grown * (1 + risk->restart_s * per_second);
}

double spot_interval(const struct spot_risk *risk)
{
    if (!(risk->per_hour > 0) || !(risk->checkpoint_s > 0)) {
        return 0;
    }
    return sqrt(2 * risk->checkpoint_s * SECONDS_PER_HOUR / risk->per_hour);
}
