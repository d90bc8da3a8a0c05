/* planner/picture/picture_plan.h draws a plan of work. Pure. */
#ifndef BOURSE_PLANNER_PICTURE_PICTURE_PLAN_H
#define BOURSE_PLANNER_PICTURE_PICTURE_PLAN_H

#include "planner/layout/plan.h"
#include "planner/picture/picture.h"

/* The texts belong to the caller and outlive the picture; any text will do. */
struct picture_plan {
    const struct plan *plan;
    const char *const *labels;  /* of its rows */
    const char *const *devices; /* names of its devices */
    double unit_s;              /* the unit of the axis, in seconds, and its name */
    const char *unit;
};

/* Creates a picture of the rows, cut where they wait. The caller sets title and line. Returns NULL
 * when memory is short, or the plan takes no time. */
struct picture *picture_of_plan(const struct picture_plan *drawn);

#endif
