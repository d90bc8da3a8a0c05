/* consumer/job/report.h reads the parts of a report. They are the job, its leases, its manifest and
 * every result. planner/picture/report.h makes the report. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_REPORT_H
#define BOURSE_CONSUMER_JOB_REPORT_H

#include "consumer/client/bourse.h"
#include "planner/picture/report.h"
#include "protocol/codec.h"

/* Makes the report of a job of this account, in any state; an open job's report goes up to now. The
 * caller frees it with report_destroy. */
bool consumer_report(struct bourse *bourse, const char *id, struct report **ret_report,
                     struct bourse_error *ret_error);

/* Lays the job out on the offers that its manifest lists, as `report->plan`. A manifest that
 * contradicts itself gives no plan. Returns false when memory is short. */
bool report_read_schedule(const Bourse__V1__Manifest *manifest, struct report *report);

#endif
