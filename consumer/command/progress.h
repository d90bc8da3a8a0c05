/* consumer/command/progress.h measures how far a job has come, and draws one line of progress. */
#ifndef BOURSE_CONSUMER_COMMAND_PROGRESS_H
#define BOURSE_CONSUMER_COMMAND_PROGRESS_H

#include "consumer/command/command.h"
#include "consumer/command/grid.h"

/* Returns true when subtasks take so much more or less than expected that the plan no longer holds.
 * `ret_percent` is the difference. */
bool progress_drifts(const struct bourse_job_row *row, int64_t *ret_percent);

/* Writes the known part of "about 3m left, subtasks take 35% longer than expected", or "".
 * `percent` 0: as expected (replan.h). */
void progress_time_remaining(const struct bourse_job_row *row, int64_t percent,
                             char ret_text[CELL_SIZE]);
/* Returns true when an open job with slow subtasks would cost more than its budget, if the rest
 * costs as much as the charged part. `ret_micro` is the total. */
bool progress_outgrows(const struct bourse_job_row *row, int64_t *ret_micro);

/* A pace measures how fast a job goes since it was first seen. */
struct pace {
    bool is_known;
    uint64_t first; /* subtasks done at that time */
    int64_t since_ns;
};
/* Notes the pace; the first row starts it. */
void progress_note_pace(struct pace *pace, const struct bourse_job_row *row);
/* Returns the number of subtasks that ended, in any way. */
uint64_t progress_done(const struct bourse_job_row *row);
/* Returns true and the subtasks per hour, or false while the rate is unknown. */
bool progress_pace(const struct pace *pace, const struct bourse_job_row *row,
                   int64_t *ret_per_hour);

/* Progress is one line on stderr. A terminal redraws the line; other outputs get a new line now and
 * then on request. */
struct progress {
    bool on; /* false: draw nothing */
    bool terminal;
    int64_t drawn_ns;
    bool has_line;
};
struct progress progress_start(const struct invocation *invocation);
void progress_job(struct progress *progress, const struct bourse_job_row *row, int64_t percent);
/* Writes the line of a job: subtasks done, failed, running and waiting, cost, time left, pace, and
 * the reason to wait. Queued subtasks count as waiting. */
enum { JOB_LINE_SIZE = 512 };
void progress_line(const struct bourse_job_row *row, int64_t percent, char ret_text[JOB_LINE_SIZE]);
__attribute__((format(printf, 3, 4))) void progress_text(struct progress *progress, bool force,
                                                         const char *format, ...);
void progress_end(struct progress *progress);

#endif
