/* The rows are the lines of a timeline, and each row shows lanes of one or more groups. Text and
 * SVG have the same rows. Only files of picture/ use the rows. */
#ifndef BOURSE_PLANNER_PICTURE_PICTURE_ROWS_H
#define BOURSE_PLANNER_PICTURE_PICTURE_ROWS_H

#include "planner/picture/picture.h"

enum { PICTURE_ROWS_MAX = 32 };

struct picture_row {
    char label[PICTURE_LABEL_SIZE]; /* printable */
    uint32_t lanes;                 /* lanes on this line */
    int64_t busy;
    int64_t span; /* time of one lane */
    bool simulated, planned;
};
struct picture_rows {
    struct picture_row rows[PICTURE_ROWS_MAX];
    size_t count;
    uint32_t *first_row; /* by group: the group's row, or the row of its lane 0 */
    bool by_lane;        /* each lane of a group has its own row */
    bool has_waits;
    bool has_plans; /* planned bars stand beside measured bars */
};
/* Returns the ticks in which the bar is busy. */
int64_t picture_busy(const struct picture_bar *bar);
/* Makes the rows. Returns false when memory is short. */
bool picture_rows_make(const struct picture *picture, struct picture_rows *ret_rows);
void picture_rows_fini(struct picture_rows *rows);
/* Returns the row that a bar stands on. */
size_t picture_rows_of(const struct picture_rows *rows, const struct picture_bar *bar);

#endif
