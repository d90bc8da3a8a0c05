/* consumer/command/job/report_rows.h shows a report in the form of a plan (plan_job.c). A subtask's
 * planned and measured times stand side by side. The bound, the gaps of plan and job, and the best
 * single device follow. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_REPORT_ROWS_H
#define BOURSE_CONSUMER_COMMAND_JOB_REPORT_ROWS_H

#include "consumer/command/command.h"
#include "consumer/command/grid.h"
#include "planner/picture/report.h"

/* Writes the distance of the measured from the predicted time: "+12%", or "-". */
enum { OFF_SIZE = 32 };
const char *report_off(int64_t predicted, int64_t measured, char ret_text[OFF_SIZE]);

/* Prints each subtask that is not a check, then the total. A job with many unnamed subtasks gets
 * one row for each device and part. `tasks` may be NULL. */
void report_print_rows(const struct report *report, const struct bourse_tasks *tasks, bool color);
/* Returns true when the accepted subtasks with a stated or measured time took over a fifth more or
 * less than expected. `ret_percent` is the difference. */
bool report_drifts(const struct report *report, int64_t *ret_percent);
/* Adds the line of energy. `is_whole` means that all planned work was done. */
void report_add_energy(struct grid *table, const struct report *report, bool is_whole);
/* Adds the lines of the bound, the gaps and the best single device to the plan's table. Adds
 * nothing without a plan. */
void report_add_bound(struct grid *table, const struct report *report);

/* Returns the report as JSON, with the keys of report_add_json. */
json_t *report_json(const struct report *report, const struct bourse_tasks *tasks);
/* Adds the keys of `plan --json` for the end of the job to `value`, and those for the plan to
 * `planned`. */
void report_add_json(json_t *value, json_t *planned, const struct report *report,
                     const struct bourse_tasks *tasks);

#endif
