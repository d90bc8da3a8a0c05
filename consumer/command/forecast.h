/* A forecast says when an open job with a deadline is done at its present speed. */
#ifndef BOURSE_CONSUMER_COMMAND_FORECAST_H
#define BOURSE_CONSUMER_COMMAND_FORECAST_H

#include "consumer/client/bourse.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { FORECAST_TEXT_SIZE = 256 };

/* Times are the market's, in milliseconds. */
struct forecast {
    bool is_known; /* false: nothing was measured, no lane runs, or there is no deadline */
    int64_t ends_ms;
    int64_t late_ms; /* time after the deadline; 0: in time */
    uint32_t slots;  /* slots that the job has; 0: the row does not say */
};

enum { FORECAST_LATE_SIZE = 2 * FORECAST_TEXT_SIZE + 64 };

/* Returns the forecast of a job row. The time left rests on measured results alone: while these are
 * few, the market's figure is scaled by the time that they took, over the time expected of them. */
struct forecast forecast_of(const struct bourse_job_row *row);
/* Returns the forecast with so many more slots, which speed the job up in proportion. */
struct forecast forecast_with(const struct bourse_job_row *row, uint32_t more_slots);
/* Writes "at the present speed (3 of 10 done, 2 running on 2 slots) the rest is done about ...". */
void forecast_text(const struct bourse_job_row *row, const struct forecast *forecast,
                   char ret_text[FORECAST_TEXT_SIZE]);
/* Writes "about 2026-11-20 14:35:00, 12m after the deadline". */
void forecast_end_text(const struct bourse_job_row *row, const struct forecast *forecast,
                       char ret_text[FORECAST_TEXT_SIZE]);
/* Writes the command that gives the job a later deadline, which is enough at this speed. */
void forecast_remedy(const struct bourse_job_row *row, const struct forecast *forecast,
                     char ret_text[FORECAST_TEXT_SIZE]);
/* Writes the forecast of a late job, with this command and one that tries what else helps. */
void forecast_late_text(const struct bourse_job_row *row, const struct forecast *forecast,
                        char ret_text[FORECAST_LATE_SIZE]);
/* Returns true when the job is so late that its user is told unasked: by a second at least, and by
 * a twentieth of the time left. */
bool forecast_is_news(const struct bourse_job_row *row, const struct forecast *forecast);
/* Returns the figures of the forecast, or NULL when there is none. */
json_t *forecast_json(const struct bourse_job_row *row);

#endif
