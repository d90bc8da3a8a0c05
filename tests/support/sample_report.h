/* tests/support/sample_report.h makes reports of made-up jobs, the same on every run. */
#ifndef BOURSE_TESTS_SAMPLE_REPORT_H
#define BOURSE_TESTS_SAMPLE_REPORT_H

#include "planner/picture/report.h"

/* Makes a job submitted at 1,000 s and open until `until_ms` later, with `devices` devices of
 * `slots` slots each. Attempts are added to the report; the caller destroys it. */
struct report *sample_report(size_t devices, uint32_t slots, int64_t until_ms, size_t attempts_max);
/* Adds an accepted attempt of the next subtask, `start_ms` after the submission. */
struct report_attempt *sample_attempt(struct report *report, uint32_t device, int64_t start_ms,
                                      int64_t busy_ms);

/* A job of four subtasks on two devices, one of which failed once. */
struct report *sample_small(void);
/* 10,000 subtasks of uneven length over 3 devices, one simulated, with failures here and there. */
/* The same, planned on three slots of two devices. */
struct report *sample_planned(void);
struct report *sample_large(void);
/* A job on 60 devices of 4 lanes. */
struct report *sample_wide(void);

#endif
