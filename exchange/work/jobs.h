/* A job ends when its work is done, or when its client, its deadline or its budget ends it. */
#ifndef BOURSE_EXCHANGE_WORK_JOBS_H
#define BOURSE_EXCHANGE_WORK_JOBS_H

#include "exchange/lifecycle.h"
#include "exchange/state/records.h"

/* Stops buying and withdraws running work. The job ends as `ends_as` when nothing runs. */
void job_close(struct exchange *exchange, struct job *job, enum job_phase ends_as, uint8_t reason);
/* Ends waiting work at the end of the job's good_till; running work goes on. */
void job_expire(struct exchange *exchange, struct job *job);
/* Ends the job at its deadline: waiting work is cancelled, running work is withdrawn, and accepted
 * results stay. A job that is ending for another reason than good_till keeps that reason. */
void job_meet_deadline(struct exchange *exchange, struct job *job);
/* Ends the job: its leases and records end, and its budget is released. */
void job_settle(struct exchange *exchange, struct job *job);
/* Looks whether the job has ended, lacks budget or wants more. */
void job_check(struct exchange *exchange, struct job *job);

#endif
