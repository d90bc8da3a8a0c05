/* This file creates pictures, and turns a schedule into one. Processors become groups of one lane,
 * tasks become bars. */
#include "planner/picture/picture.h"

#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT_MOST = 4 };

static const struct picture_words words = {
    .thing = "task", .things = "tasks", .more_group = "processors"};

static int by_group_and_start(const void *a, const void *b)
{
    const struct picture_bar *left = a;
    const struct picture_bar *right = b;
    if (left->group != right->group) {
        return left->group < right->group ? -1 : 1;
    }
    if (left->from != right->from) {
        return left->from < right->from ? -1 : 1;
    }
    return left->number < right->number ? -1 : left->number > right->number;
}

void picture_sort_bars(struct picture_bar *bars, size_t count)
{
    if (count > 0) {
        qsort(bars, count, sizeof *bars, by_group_and_start);
    }
}

/* A unit that does not fit between two marks of the axis is left out there. */
static bool is_short_unit(const char *unit)
{
    size_t length = strlen(unit);
    for (size_t i = 0; i < length; i++) {
        if ((unit[i] | 0x20) < 'a' || (unit[i] | 0x20) > 'z') {
            return false;
        }
    }
    return length <= UNIT_MOST;
}

int64_t picture_ticks(double time, double makespan)
{
    double ticks = time / makespan * (double)PICTURE_TICKS;
    return ticks >= (double)PICTURE_TICKS ? PICTURE_TICKS : ticks > 0 ? (int64_t)ticks : 0;
}

struct picture *picture_create(size_t groups, size_t bars)
{
    struct picture *picture = calloc(1, sizeof *picture);
    if (picture == NULL) {
        return NULL;
    }
    *picture = (struct picture){.title = "",
                                .line = "",
                                .note = "",
                                .words = &words,
                                .unit = "",
                                .expected = -1,
                                .group_count = groups,
                                .bar_count = bars};
    picture->groups = calloc(groups + 1, sizeof *picture->groups);
    picture->bars = calloc(bars + 1, sizeof *picture->bars);
    if (picture->groups == NULL || picture->bars == NULL) {
        picture_destroy(&picture);
    }
    return picture;
}

void picture_scale(struct picture *picture, double makespan, const char *unit)
{
    picture->tick = makespan / (double)PICTURE_TICKS;
    picture->unit = is_short_unit(unit) ? unit : "";
    picture->until = PICTURE_TICKS;
    picture->span = PICTURE_TICKS;
}

struct picture *picture_of_schedule(const struct picture_schedule *schedule)
{
    assert(schedule->makespan > 0);
    struct picture *picture = picture_create(schedule->processor_count, schedule->task_count);
    if (picture == NULL) {
        return NULL;
    }
    picture->names = schedule->task_names;
    picture_scale(picture, schedule->makespan, schedule->unit);
    for (uint32_t i = 0; i < schedule->processor_count; i++) {
        const char *name = schedule->processor_names[i];
        text_printable(name, strlen(name), picture->groups[i].label,
                       sizeof picture->groups[i].label);
    }
    for (uint32_t i = 0; i < schedule->task_count; i++) {
        assert(schedule->processor[i] < schedule->processor_count);
        picture->bars[i] =
            (struct picture_bar){.group = schedule->processor[i],
                                 .number = i,
                                 .from = picture_ticks(schedule->start[i], schedule->makespan),
                                 .until = picture_ticks(schedule->finish[i], schedule->makespan)};
        picture->groups[schedule->processor[i]].lanes = 1;
    }
    picture_sort_bars(picture->bars, picture->bar_count);
    return picture;
}

void picture_destroy(struct picture **self)
{
    if (*self != NULL) {
        free((*self)->groups);
        free((*self)->bars);
        free((*self)->own_names);
        free(*self);
        *self = NULL;
    }
}
