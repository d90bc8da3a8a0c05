/* consumer/command/output.h - tables for people, one JSON value for programs, and one line of
 * progress. Text from others passes text_printable on its way to a table. */
#ifndef BOURSE_CONSUMER_COMMAND_OUTPUT_H
#define BOURSE_CONSUMER_COMMAND_OUTPUT_H

#include "consumer/command/command.h"

enum { GRID_COLUMNS_MAX = 12, CELL_SIZE = 160 };

/* Rows of text, printed with columns as wide as they need. */
struct grid {
    size_t columns;
    const char *titles[GRID_COLUMNS_MAX];
    bool right[GRID_COLUMNS_MAX]; /* numbers */
    char (*cells)[CELL_SIZE];
    size_t rows, capacity;
};
struct grid grid_of(size_t columns, const char *const *titles, const char *right_columns);
/* Appends a row; a row that does not fit in memory is left out. `cells` has one text per column. */
void grid_add(struct grid *table, const char *const *cells);
void grid_print(const struct grid *table, FILE *to, bool color);
void grid_fini(struct grid *table);

/* Columns and lines of the terminal that `fd` is, or 80 and 24. */
unsigned terminal_width(int fd);
unsigned terminal_height(int fd);
/* Whether the locale's characters are UTF-8. */
bool locale_is_utf8(void);

/* Texts in a small ring of buffers, good for the cells of one row. */
const char *money_text(int64_t micro);                   /* 0.10 */
const char *limit_text(int64_t micro, const char *rate); /* 0.10, or 0.02 per bf16 TFLOP-hour */
const char *ask_text(int64_t micro);                     /* what an ask asks: 0.10, or "donated" */
/* What orders may be, as an object; and as a line to stdout. */
/* "3 refuted, asks closed for 2min; 1 of its rejects overruled", or "". */
const char *standing_text(const struct bourse_standing *standing);
json_t *standing_as_json(const struct bourse_standing *standing);
json_t *bands_as_json(struct bourse_bands bands);
void print_bands(FILE *to, struct bourse_bands bands);
/* The key of a limit by value and its rate, beside what stands in an object already; nothing where
 * it is none. */
void json_add_rate(json_t *object, const char *rate);
const char *duration_text(int64_t ms); /* 1.5s, 1h 31m: to the nearest */
const char *left_text(int64_t ms);     /* the same, rounded down: of what is left */
const char *duration_ns_text(int64_t ns);
const char *time_text(int64_t ms); /* 2026-11-20 14:35:00, local; "-" for 0 */
const char *bytes_text(uint64_t bytes);
struct figure;
const char *
joules_text(const struct figure *energy_j); /* 12.5 J, 1.2 kWh; "-" where it is unknown */
const char *count_text(uint64_t count);
const char *short_id(const char *id);     /* its first 8 digits */
const char *plain_text(const char *text); /* made printable */
/* "task split", or "subtask 3"; `tasks` may be NULL. */
const char *subtask_text(const struct bourse_tasks *tasks, uint32_t index);

/* JSON: `value` is taken over, gets "version":1, and is printed as one line. Returns the exit
 * status given. */
int print_json(json_t *value, int status);
json_t *json_job(const struct bourse_job_row *row);
/* What `pace` says of it by the row alone, where it was held against the plan. */
void json_set_drifts(json_t *job, bool drifts);
json_t *json_explanation(const struct bourse_explanation *explanation);
json_t *json_quote(const struct bourse_quote *quote);
json_t *json_outcome(const struct bourse_outcome *outcome);

/* Whether its subtasks take so much more or less than was expected that what was planned with it no
 * longer holds; by how many percent. */
bool job_drifts(const struct bourse_job_row *row, int64_t *ret_percent);

/* "about 3m left, subtasks take 35% longer than expected", as far as that is known; or "".
 * `percent` 0: they do not (replan.h). */
void job_left(const struct bourse_job_row *row, int64_t percent, char ret_text[CELL_SIZE]);
/* Whether an open job, whose subtasks take longer than was expected, would cost more than its
 * budget if the rest cost as much as what it was charged for so far; how much in all. */
bool job_outgrows(const struct bourse_job_row *row, int64_t *ret_micro);

/* How fast a job goes, since it was first seen. */
struct pace {
    bool is_known;
    uint64_t first; /* done then */
    int64_t since_ns;
};
void pace_note(struct pace *pace, const struct bourse_job_row *row); /* of each row: starts it */
uint64_t job_done(const struct bourse_job_row *row);                 /* with any end */
/* Subtasks in an hour; false as long as nobody can tell. */
bool pace_of(const struct pace *pace, const struct bourse_job_row *row, int64_t *ret_per_hour);

/* One line on stderr, redrawn on a terminal, a line of its own now and then elsewhere when asked
 * for. */
struct progress {
    bool on; /* draw at all */
    bool terminal;
    int64_t drawn_ns;
    bool has_line;
};
struct progress progress_start(const struct invocation *invocation);
void progress_job(struct progress *progress, const struct bourse_job_row *row, int64_t percent);
/* What it draws: done, failed, running, waiting (for a device, or behind another one on it), cost,
 * time left, how far subtasks are from what was expected, why it waits. */
enum { JOB_LINE_SIZE = 512 };
void job_line(const struct bourse_job_row *row, int64_t percent, char ret_text[JOB_LINE_SIZE]);
__attribute__((format(printf, 3, 4))) void progress_text(struct progress *progress, bool force,
                                                         const char *format, ...);
void progress_end(struct progress *progress);

/* Lines on the terminal that stdout is, drawn anew over those before. A line that would wrap, or a
 * screen that would scroll, could not be drawn over: what is too wide or too long is cut. */
struct screen {
    size_t lines;
};
void screen_draw(struct screen *screen, const char *text);

/* Asks on the terminal. 1 yes, 0 no, -1 when there is no terminal to ask on. */
int ask_yes_no(const char *question);

enum { CONDITIONS_TEXT = 256 }; /* of an ask, in a row: the whole is in --json */
/* Rows on their way to where they are shown: JSON, ids, or a table. */
struct listing {
    json_t *list; /* NULL: to the table */
    bool quiet;
    struct grid table;
};
/* JSON under that name, or the table; ids were printed as they came. */
int listing_show(struct invocation *invocation, struct listing *listing, const char *name);

#endif
