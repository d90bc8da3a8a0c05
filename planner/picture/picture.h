/* A picture shows bars over time, as text for a terminal and as SVG; reports and plans are drawn by
 * it.
 *
 * Bars lie on lanes, each of which has one bar at a time. Lanes belong to groups, such as a device
 * or a processor.
 *
 *                  |0ms        |750ms      |1.5s      busy
 *     group 0 #0   ▇███████████████▂▁███████           81%
 *     group 0 #1   ▇██████×███                         44%
 *     group 1      ▂████▂    ▃███████████              59%
 *
 * Three things become a picture: the schedule of a task graph (picture_of_schedule), a plan of work
 * or of a job (picture_plan.h), and the report of a job (report.h).
 *
 * A light shade, `░` or `_` in ASCII, marks the time in which a lane waits.
 *
 * Times are whole ticks: nanoseconds, or the part of a unit that the picture names. All is integers
 * but the labels of the axis. */
#ifndef BOURSE_PLANNER_PICTURE_PICTURE_H
#define BOURSE_PLANNER_PICTURE_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PICTURE_LABEL_SIZE = 300,
    PICTURE_WIDTH_MIN = 40,
    PICTURE_WIDTH_MAX = 400,
};
/* Number of ticks in a picture of a schedule, whatever the unit of its times. */
#define PICTURE_TICKS INT64_C(1000000000000)

struct picture_bar {
    uint32_t group, lane; /* `lane`: lane of its group, from 0 */
    uint32_t number;      /* number of the thing shown */
    bool is_bad;          /* the thing failed */
    /* Nothing is done in this time: the bar is drawn lighter, and does not count as busy. */
    bool is_wait;
    int64_t from, until; /* within the picture's times */
};

struct picture_group {
    char label[PICTURE_LABEL_SIZE]; /* printable */
    uint32_t lanes;                 /* 0: the group is not drawn, and has no bars */
    bool is_simulated;
    bool is_planned; /* the bars were planned, beside groups whose bars happened */
    int64_t span;    /* time of one lane that "busy" refers to; 0: the picture's */
};

/* The words of `report`: names of the thing that a bar shows, of several bars, and of several
 * groups. */
struct picture_words {
    const char *thing;      /* "subtask" */
    const char *things;     /* "subtasks" */
    const char *bars;       /* "attempts"; NULL: each bar is one thing, and is good */
    const char *more_group; /* "devices"; names the other groups on the last line */
};

struct picture {
    /* Texts of the SVG: */
    const char *title, *line, *note; /* heading, text below it, text at the bottom */
    const struct picture_words *words;
    const char *const *names; /* names of things, by number; NULL: their numbers */
    const char **own_names;   /* `names` when picture_destroy frees the array; else NULL */
    double tick;              /* units in a tick; 0: a tick is a nanosecond */
    const char *unit;         /* "ms"; "": none */
    int64_t from, until;      /* the time shown, from <= until */
    int64_t span;             /* time of one lane that "busy" refers to */
    int64_t expected;         /* a mark on the axis; below `from`: none */
    int64_t expected_span;    /* the duration that the mark stands for */
    struct picture_group *groups;
    size_t group_count;
    struct picture_bar *bars; /* sorted by group, then by start */
    size_t bar_count;
};

/* Creates a picture of so many groups and bars, all zeros, without texts. Returns NULL when memory
 * is short. */
struct picture *picture_create(size_t groups, size_t bars);
void picture_destroy(struct picture **self);
/* Makes the picture PICTURE_TICKS long, as long as `makespan`, in units of `unit`. */
void picture_scale(struct picture *picture, double makespan, const char *unit);
/* Returns the tick of a time within the makespan. */
int64_t picture_ticks(double time, double makespan);
/* Sorts bars as struct picture has them; bars with one group and start by number. */
void picture_sort_bars(struct picture_bar *bars, size_t count);

/* The functions below return text that the caller frees, or NULL when memory is short. */

struct picture_style {
    unsigned width; /* columns, kept between the two limits above */
    bool ascii;     /* no character outside ASCII */
    bool color;
};
/* Draws one line per lane. With more than 32 lanes it draws one line per group, and with more than
 * 32 groups only the busiest. A column is a stretch of time. It shows how full the stretch is, or a
 * cross where a bad bar ends. */
char *picture_timeline(const struct picture *picture, const struct picture_style *style);
/* Draws a whole SVG document that loads nothing. It has about 4,000 boxes at most. Neighbours merge
 * if there are more, or if they would be thinner than a line. Each box has a title that says what
 * it holds. */
char *picture_svg(const struct picture *picture);

/* Creates a picture of tasks that processors run one at a time. The caller sets its title, line and
 * note, and may change its words. Each task goes from `start` to
 * `finish` (within [0, makespan]), in units of `unit`. Processors without tasks are not drawn. The
 * texts belong to the caller and outlive the picture. Returns NULL when memory is short. */
struct picture_schedule {
    uint32_t task_count, processor_count;
    const uint32_t *processor; /* indexed by task, as the arrays below */
    const double *start, *finish;
    double makespan;
    const char *unit;
    const char *const *task_names, *const *processor_names; /* any text */
};
struct picture *picture_of_schedule(const struct picture_schedule *schedule);

#endif
