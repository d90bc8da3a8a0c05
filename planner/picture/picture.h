/* planner/picture/picture.h - bars over time, as text for a terminal and as SVG: what reports and
 * plans are drawn by.
 *
 * Bars lie on lanes, each of which has one at a time; lanes belong to groups: to a device, a
 * processor.
 *
 *                  |0ms        |750ms      |1.5s      busy
 *     group 0 #0   ▇███████████████▂▁███████           81%
 *     group 0 #1   ▇██████×███                         44%
 *     group 1      ▂████▂    ▃███████████              59%
 *
 * Where a lane waits, there is a light shade: `░`, or `_` in ASCII.
 *
 * Times are whole ticks: nanoseconds, or whatever part of a unit the picture says. Integers, but
 * for what stands at the axis. Pure. */
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
/* What a picture of a schedule is cut into, whatever its times are in. */
#define PICTURE_TICKS INT64_C(1000000000000)

struct picture_bar {
    uint32_t group, lane; /* lane: of its group, from 0 */
    uint32_t number;      /* of the thing that it is */
    bool is_bad;          /* came to nothing */
    bool is_wait;         /* nothing is done then: it is drawn lighter, and not busy */
    int64_t from, until;  /* within the picture's */
};

struct picture_group {
    char label[PICTURE_LABEL_SIZE]; /* printable */
    uint32_t lanes;                 /* 0: it stands nowhere, and has no bars */
    bool is_simulated;
    bool is_planned; /* its bars were to be, beside others that were */
    int64_t span;    /* against which "busy" is: of one lane; 0: the picture's */
};

/* The words of `report`: what bars are of, and what several of them and several groups are
 * called. */
struct picture_words {
    const char *thing;      /* "subtask" */
    const char *things;     /* "subtasks" */
    const char *bars;       /* "attempts"; NULL: each bar is a thing, and is good */
    const char *more_group; /* "devices", of which others are on the last line */
};

struct picture {
    /* Of the SVG, any text: */
    const char *title, *line, *note; /* the heading, what stands below it, and at the bottom */
    const struct picture_words *words;
    const char *const *names; /* of things, by number; NULL: their numbers */
    double tick;              /* so much of a unit is a tick; 0: a nanosecond */
    const char *unit;         /* "ms"; "": none */
    int64_t from, until;      /* what is shown, from <= until */
    int64_t span;             /* against which "busy" is: of one lane */
    int64_t expected;         /* a mark on the axis; below `from`: none */
    int64_t expected_span;    /* that it stands for */
    struct picture_group *groups;
    size_t group_count;
    struct picture_bar *bars; /* by group, then by start */
    size_t bar_count;
};

/* Below: text that the caller frees, NULL without memory. */

struct picture_style {
    unsigned width; /* columns, kept between the two limits above */
    bool ascii;     /* no character outside ASCII */
    bool color;
};
/* One line per lane; per group where there are more than 32 lanes, and only the busiest of more
 * than 32 groups. A column is a stretch of time: how full it is, or a cross where a bad bar
 * ends. */
char *picture_timeline(const struct picture *picture, const struct picture_style *style);
/* A whole SVG document that loads nothing. At most some 4,000 boxes: neighbours become one where
 * there are more or where they would be thinner than a line; each has a title that says what it
 * holds. */
char *picture_svg(const struct picture *picture);

/* A picture of tasks that processors run one at a time, each from `start` to `finish` (of [0,
 * makespan]), in units of `unit`. Processors that run none stand nowhere. Texts are the caller's
 * and outlive it. NULL without memory. */
struct picture_schedule {
    uint32_t task_count, processor_count;
    const uint32_t *processor; /* of each task, as below */
    const double *start, *finish;
    double makespan;
    const char *unit;
    const bool *waits; /* of each task: it is none, but the waiting of one. NULL: none is */
    const char *const *task_names, *const *processor_names; /* any text */
};
struct picture *picture_of_schedule(const struct picture_schedule *schedule);
void picture_destroy(struct picture **self);

#endif
