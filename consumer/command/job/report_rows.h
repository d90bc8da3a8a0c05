/* consumer/command/job/report_rows.h - a report in the form of a plan (plan_job.c): of each subtask
 * what was planned beside what it took, the bound, how far plan and job are from it, and the best
 * single device. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_REPORT_ROWS_H
#define BOURSE_CONSUMER_COMMAND_JOB_REPORT_ROWS_H

#include "consumer/command/output.h"
#include "planner/picture/report.h"

/* How far it is from what was predicted: "+12%", or "-". */
enum { OFF_SIZE = 32 };
const char *off_text(int64_t predicted, int64_t measured, char ret_text[OFF_SIZE]);

/* "4.2 J", "-" for -1: not known. */
const char *energy_uj_text(int64_t energy_uj);

/* Each subtask that is no check, or of many that have no names what each device has done of each
 * part; then all together. `tasks` may be NULL. */
void print_report_rows(const struct report *report, const struct bourse_tasks *tasks, bool color);
/* Whether those that were accepted, of which somebody had said or measured a time, took more than a
 * fifth more or less; by how many percent. */
bool report_drifts(const struct report *report, int64_t *ret_percent);
/* The line of energy. `is_whole`: what was planned was done. */
void add_report_energy(struct grid *table, const struct report *report, bool is_whole);
/* Lines of the table of the plan: the bound, the gaps, the best single device. Nothing where there
 * is no plan. */
void add_report_bound(struct grid *table, const struct report *report);

/* What `plan --json` says of a plan, of what became of the job; and of what was planned, into
 * `planned`. */
void add_report_json(json_t *value, json_t *planned, const struct report *report,
                     const struct bourse_tasks *tasks);

#endif
