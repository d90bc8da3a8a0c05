/* planner/cost/spot.h - what work takes on a device that may be taken away.
 *
 * Interruptions come at random, lambda of them an hour, none remembering the last. Who is
 * interrupted starts again after R, and does anew what was done since the last checkpoint, or all
 * of it. Work w, or each of the n parts between checkpoints, each with what the checkpoint takes,
 * is then expected to take
 *
 *     E(w) = (1 / lambda + R) (e^(lambda w) - 1)            [Daly 2006, but for interruptions while it starts]
 *
 * and checkpoints C long are best sqrt(2 C / lambda) apart [Young 1974]. What is expected is a
 * mean: it is for comparing offers, no promise of a time. Pure. */
#ifndef BOURSE_PLANNER_COST_SPOT_H
#define BOURSE_PLANNER_COST_SPOT_H

#include <stdbool.h>

/* Work of which a part between checkpoints is expected to be interrupted more often than that is
 * not for such a device. */
#define SPOT_INTERRUPTIONS_MOST 20.0

struct spot_risk {
    double per_hour;     /* lambda; 0: never interrupted */
    double restart_s;    /* R: until another device has begun */
    double interval_s;   /* work between two checkpoints; 0: there are none */
    double checkpoint_s; /* what one takes */
};

enum spot_status {
    SPOT_OK,
    SPOT_BAD_FIGURE, /* negative, or no number */
    SPOT_HOPELESS,   /* it is not expected to come to its end */
};

/* Any status but OK leaves `ret_expected_s` alone. At least `work_s`. */
enum spot_status spot_expect(const struct spot_risk *risk, double work_s, double *ret_expected_s);

/* What work is expected to take at the least, however it is divided into parts of at least `part_s`
 * each and whatever `risk` does at checkpoints: the longer a part, the more of it is done anew, so
 * that what a second of the shortest takes is the least. `work_s` itself where a figure is none. */
double spot_least(const struct spot_risk *risk, double work_s, double part_s);

/* The best interval for `risk`, whose own is not looked at; 0 where checkpoints are not worth it:
 * nothing interrupts, or writing one takes nothing, so that any interval is as good. */
double spot_interval(const struct spot_risk *risk);

#endif
