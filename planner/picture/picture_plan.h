/* planner/picture/picture_plan.h draws a plan, of work or of a job. */
#ifndef BOURSE_PLANNER_PICTURE_PICTURE_PLAN_H
#define BOURSE_PLANNER_PICTURE_PICTURE_PLAN_H

#include "planner/picture/picture.h"
#include "planner/plan/plan_make.h"

struct picture_device {
    char label[PICTURE_LABEL_SIZE]; /* any text will do */
    bool is_simulated;
};

/* The labels of rows belong to the caller and outlive the picture; any text will do. */
struct picture_plan {
    const struct plan *plan;
    const char *const *labels; /* labels of the plan's rows; NULL: the rows have numbers */
    const struct picture_device *devices; /* devices of the plan */
    /* The unit of the axis, in seconds, and its name. The axis of a job has clock times instead. */
    double unit_s;
    const char *unit;
};

/* Creates a picture of the rows, cut where they wait. The caller sets title and line. Returns NULL
 * when memory is short, or the plan takes no time. */
struct picture *picture_of_plan(const struct picture_plan *drawn);

/* Writes one bar for each row of a job's plan, sorted by device and start; `ret_bars` has room for
 * all. Devices are groups, and the plan begins at `begin_ns`. */
void picture_plan_bars(const struct plan *plan, int64_t begin_ns, struct picture_bar *ret_bars);

#endif
