/* consumer/job/report.h - reads what a report is made of: the job, its leases, its manifest and
 * every result. Not installed; planner/picture/report.h says what is made of it. */
#ifndef BOURSE_CONSUMER_JOB_REPORT_H
#define BOURSE_CONSUMER_JOB_REPORT_H

#include "consumer/client/bourse.h"
#include "planner/picture/report.h"

/* The report of a job of this account, whatever its state; of an open one, so far. The caller frees
 * it with report_destroy. */
bool consumer_report(struct bourse *bourse, const char *id, struct report **ret_report,
                     struct bourse_error *ret_error);

#endif
