/* consumer/command/output.h prints tables for people, one JSON value for programs, and one line of
 * progress. Text of other accounts passes text_printable on its way to a table. */
#ifndef BOURSE_CONSUMER_COMMAND_OUTPUT_H
#define BOURSE_CONSUMER_COMMAND_OUTPUT_H

#include "consumer/command/command.h"

enum { GRID_COLUMNS_MAX = 12, CELL_SIZE = 160 };

/* A grid holds rows of text and prints each column as wide as it needs. */
struct grid {
    size_t columns;
    const char *titles[GRID_COLUMNS_MAX];
    bool right[GRID_COLUMNS_MAX]; /* columns of numbers */
    char (*cells)[CELL_SIZE];
    size_t rows, capacity;
};
struct grid grid_of(size_t columns, const char *const *titles, const char *right_columns);
/* Appends a row; `cells` has one text per column. A row is left out when memory is short. */
void grid_add(struct grid *table, const char *const *cells);
void grid_print(const struct grid *table, FILE *to, bool color);
void grid_fini(struct grid *table);

/* Returns the columns of the terminal behind `fd`, or 80. */
unsigned terminal_width(int fd);
/* Returns true when the locale's characters are UTF-8. */
bool locale_is_utf8(void);

/* These texts stand in a small ring of buffers, which lasts for the cells of one row. */
const char *money_text(int64_t micro);                   /* "0.10" */
const char *limit_text(int64_t micro, const char *rate); /* "0.10", or "0.02 per bf16 TFLOP-hour" */
const char *ask_text(int64_t micro);                     /* price of an ask: "0.10", or "donated" */
/* Returns text such as "3 refuted, asks closed for 2min; 1 of its rejects overruled", or "". */
const char *standing_text(const struct bourse_standing *standing);
json_t *standing_as_json(const struct bourse_standing *standing);
json_t *bands_as_json(struct bourse_bands bands);
void print_bands(FILE *to, struct bourse_bands bands);
/* Adds the rate of a limit by value to an object; adds nothing for a limit per slot-hour. */
void json_add_rate(json_t *object, const char *rate);
const char *duration_text(int64_t ms); /* "1.5s", "1h 31m", rounded to the nearest */
const char *left_text(int64_t ms);     /* like duration_text, rounded down, for time that is left */
const char *duration_ns_text(int64_t ns);
const char *time_text(int64_t ms); /* "2026-11-20 14:35:00", local time; "-" for 0 */
const char *bytes_text(uint64_t bytes);
struct figure;
/* Returns text such as "12.5 J" or "1.2 kWh"; "-" for an unknown figure. */
const char *joules_text(const struct figure *energy_j);
const char *count_text(uint64_t count);
const char *short_id(const char *id);     /* the first 8 digits */
const char *plain_text(const char *text); /* printable form of any text */
/* Returns "task split", or "subtask 3"; `tasks` may be NULL. */
const char *subtask_text(const struct bourse_tasks *tasks, uint32_t index);

/* Takes `value` over, adds "version":1, prints it as one line, and returns `status`. */
int print_json(json_t *value, int status);
json_t *json_job(const struct bourse_job_row *row);
/* Replaces the pace that the row alone shows by the result of the comparison with the plan. */
void json_set_drifts(json_t *job, bool drifts);
json_t *json_explanation(const struct bourse_explanation *explanation);
json_t *json_quote(const struct bourse_quote *quote);
json_t *json_outcome(const struct bourse_outcome *outcome);

/* Returns true when subtasks take so much more or less than expected that the plan no longer holds.
 * `ret_percent` is the difference. */
bool job_drifts(const struct bourse_job_row *row, int64_t *ret_percent);

/* Writes the known part of "about 3m left, subtasks take 35% longer than expected", or "".
 * `percent` 0: as expected (replan.h). */
void job_left(const struct bourse_job_row *row, int64_t percent, char ret_text[CELL_SIZE]);
/* Returns true when an open job with slow subtasks would cost more than its budget, if the rest
 * costs as much as the charged part. `ret_micro` is the total. */
bool job_outgrows(const struct bourse_job_row *row, int64_t *ret_micro);

/* A pace measures how fast a job goes since it was first seen. */
struct pace {
    bool is_known;
    uint64_t first; /* subtasks done at that time */
    int64_t since_ns;
};
void pace_note(struct pace *pace, const struct bourse_job_row *row); /* the first row starts it */
uint64_t job_done(const struct bourse_job_row *row); /* subtasks that ended, in any way */
/* Returns true and the subtasks per hour, or false while the rate is unknown. */
bool pace_of(const struct pace *pace, const struct bourse_job_row *row, int64_t *ret_per_hour);

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
void job_line(const struct bourse_job_row *row, int64_t percent, char ret_text[JOB_LINE_SIZE]);
__attribute__((format(printf, 3, 4))) void progress_text(struct progress *progress, bool force,
                                                         const char *format, ...);
void progress_end(struct progress *progress);

/* A screen draws lines on stdout's terminal over the previous ones. Lines that are too wide or too
 * many are cut, because a wrapped or scrolled line cannot be drawn over. */
struct screen {
    size_t lines;
};
void screen_draw(struct screen *screen, const char *text);

/* Asks on the terminal. Returns 1 for yes, 0 for no, and -1 without a terminal. */
int ask_yes_no(const char *question);

enum { CONDITIONS_TEXT = 256 }; /* conditions of an ask in a row; --json has all of them */
/* A listing collects rows and shows them as JSON, as ids, or as a table. */
struct listing {
    json_t *list; /* NULL: rows go to the table */
    bool quiet;
    struct grid table;
};
/* Shows the rows as JSON under `name`, or as the table. Ids were printed as they came. */
int listing_show(struct invocation *invocation, struct listing *listing, const char *name);

#endif
