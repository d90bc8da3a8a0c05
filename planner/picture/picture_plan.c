#include "planner/picture/picture_plan.h"

#include "base/checked.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static const struct picture_words work_words = {
    .thing = "step", .things = "steps", .more_group = "devices"};
static const struct picture_words job_words = {
    .thing = "subtask", .things = "subtasks", .more_group = "devices"};

static bool is_job(const struct plan *plan)
{
    return plan->lanes > 0;
}

static int64_t tick_of(const struct picture_plan *drawn, double at_s)
{
    const double makespan_s = drawn->plan->total.makespan_s.value;
    return is_job(drawn->plan) ? plan_ns(at_s)
                               : picture_ticks(at_s / drawn->unit_s, makespan_s / drawn->unit_s);
}

/* The pieces of a row are drawn one after the other: its work, and the waits in between. */
static void add_piece(const struct picture_plan *drawn, uint32_t number, double from_s,
                      double until_s, bool is_wait, struct picture *picture)
{
    const struct plan_row *row = &drawn->plan->rows[number];
    struct picture_group *group = &picture->groups[row->device];
    const size_t at = picture->bar_count++;
    picture->bars[at] = (struct picture_bar){.group = row->device,
                                             .lane = row->lane,
                                             .number = (uint32_t)at,
                                             .is_wait = is_wait,
                                             .from = tick_of(drawn, from_s),
                                             .until = tick_of(drawn, until_s)};
    group->lanes = row->lane < group->lanes ? group->lanes : row->lane + 1;
    if (picture->own_names != NULL) {
        picture->own_names[at] = drawn->labels[number];
    }
}

static void cut_row(const struct picture_plan *drawn, uint32_t number, struct picture *picture)
{
    const struct plan *plan = drawn->plan;
    const struct plan_row *row = &plan->rows[number];
    double at_s = row->start_s;
    for (size_t i = 0; i < plan->wait_count; i++) {
        const struct plan_wait *wait = &plan->waits[i];
        if (wait->row != number) {
            continue;
        }
        if (wait->from_s > at_s) {
            add_piece(drawn, number, at_s, wait->from_s, false, picture);
        }
        add_piece(drawn, number, wait->from_s, wait->until_s, true, picture);
        at_s = wait->until_s;
    }
    if (row->finish_s > at_s || at_s == row->start_s) { /* a row without duration is drawn too */
        add_piece(drawn, number, at_s, row->finish_s, false, picture);
    }
}

static void set_axis(const struct picture_plan *drawn, struct picture *picture)
{
    const double makespan_s = drawn->plan->total.makespan_s.value;
    if (is_job(drawn->plan)) {
        picture->until = picture->span = plan_ns(makespan_s);
        picture->words = &job_words;
    } else {
        picture_scale(picture, makespan_s / drawn->unit_s, drawn->unit);
        picture->words = &work_words;
    }
}

struct picture *picture_of_plan(const struct picture_plan *drawn)
{
    const struct plan *plan = drawn->plan;
    const size_t most = plan->row_count + 2 * plan->wait_count;
    struct picture *picture =
        plan->total.makespan_s.value > 0 ? picture_create(plan->device_count, most) : NULL;
    if (picture == NULL) {
        return NULL;
    }
    picture->note = "Planned: nothing has run. Times are estimates.";
    picture->bar_count = 0;
    if (drawn->labels != NULL) {
        picture->own_names = calloc(most + 1, sizeof *picture->own_names);
        picture->names = picture->own_names;
        if (picture->own_names == NULL) {
            picture_destroy(&picture);
            return NULL;
        }
    }
    for (size_t i = 0; i < plan->device_count; i++) {
        const struct picture_device *device = &drawn->devices[i];
        struct picture_group *group = &picture->groups[i];
        text_printable(device->label, strlen(device->label), group->label, sizeof group->label);
        group->is_simulated = device->is_simulated;
    }
    set_axis(drawn, picture);
    for (uint32_t i = 0; i < plan->row_count; i++) {
        cut_row(drawn, i, picture);
    }
    picture_sort_bars(picture->bars, picture->bar_count);
    return picture;
}

static int64_t added(int64_t a, int64_t b)
{
    int64_t sum;
    return checked_add(a, b, &sum) ? sum : INT64_MAX;
}

void picture_plan_bars(const struct plan *plan, int64_t begin_ns, struct picture_bar *ret_bars)
{
    for (uint32_t i = 0; i < plan->row_count; i++) {
        const struct plan_row *row = &plan->rows[i];
        ret_bars[i] = (struct picture_bar){.group = row->device,
                                           .lane = row->lane,
                                           .number = i,
                                           .from = added(begin_ns, plan_ns(row->start_s)),
                                           .until = added(begin_ns, plan_ns(row->finish_s))};
    }
    picture_sort_bars(ret_bars, plan->row_count);
}
