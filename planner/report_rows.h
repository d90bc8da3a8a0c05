/* planner/report_rows.h - the lines of a timeline: which lanes of which devices stand on each. Both pictures have the
 * same ones. Of the report's own files. Pure. */
#ifndef BOURSE_PLANNER_REPORT_ROWS_H
#define BOURSE_PLANNER_REPORT_ROWS_H

#include "planner/report.h"

enum { REPORT_ROWS_MAX = 32, REPORT_LABEL_SIZE = 300 };

struct report_row {
    char label[REPORT_LABEL_SIZE]; /* printable */
    uint32_t lanes;                /* on this line */
    int64_t busy_ns;
    bool simulated;
};
struct report_rows {
    struct report_row rows[REPORT_ROWS_MAX];
    size_t count;
    uint32_t *first_row; /* by device: its row, or that of its lane 0 */
    bool by_lane;        /* lanes of one device stand on lines of their own */
};
/* False without memory. */
bool report_rows_make(const struct report *report, struct report_rows *ret_rows);
void report_rows_fini(struct report_rows *rows);
/* The line an attempt stands on. */
size_t report_rows_of(const struct report_rows *rows, const struct report_attempt *attempt);

#endif
