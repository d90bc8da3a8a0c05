/* The spot model says what work takes on a device that may be taken away.
 *
 * Interruptions come at random, lambda of them an hour, each independent of the last. Interrupted
 * work starts again after R. Then it repeats what was done since the last checkpoint, or all work
 * without checkpoints. w is the whole work, or one of the n parts between checkpoints together with
 * the checkpoint's time. The expected time of w is
 *
 *    E(w) = (1 / lambda + R) (e^(lambda w) - 1)
 *
 * This is the formula of [Daly 2006], without interruptions during a restart. Checkpoints that take
 * C are best sqrt(2 C / lambda) apart [Young 1974]. The expected time is a mean. It serves to
 * compare offers and promises no time. */
#ifndef BOURSE_PLANNER_COST_SPOT_H
#define BOURSE_PLANNER_COST_SPOT_H

#include <stdbool.h>

/* The most interruptions that a part between checkpoints may expect. Work above this limit is
 * unsuitable for such a device. */
#define SPOT_INTERRUPTIONS_MOST 20.0

struct spot_risk {
    double per_hour;     /* lambda; 0: never interrupted */
    double restart_s;    /* R: time until another device has begun */
    double interval_s;   /* work between two checkpoints; 0: there are none */
    double checkpoint_s; /* time of one checkpoint */
};

enum spot_status {
    SPOT_OK,
    SPOT_BAD_FIGURE, /* negative, or no number */
    SPOT_HOPELESS,   /* the work is not expected to finish */
};

/* Computes the expected time, which is at least `work_s`. Any status but OK leaves `ret_expected_s`
 * alone. */
enum spot_status spot_expect(const struct spot_risk *risk, double work_s, double *ret_expected_s);

/* Returns a lower bound of the expected time, for any division into parts of at least `part_s` and
 * any use of checkpoints in `risk`. A longer part repeats more work, so the rate of the shortest
 * part is the least. Returns `work_s` when a figure is not valid. */
double spot_least(const struct spot_risk *risk, double work_s, double part_s);

/* Returns the best interval for `risk`, whose own interval is ignored. Returns 0 when checkpoints
 * are not worth it: nothing interrupts, or writing one takes no time, so that any interval is as
 * good. */
double spot_interval(const struct spot_risk *risk);

#endif
