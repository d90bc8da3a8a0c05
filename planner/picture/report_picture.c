/* This file turns a report into a picture. Devices become groups, attempts become bars. */
#include "planner/picture/report.h"

#include "base/checked.h"
#include "base/text.h"
#include "planner/picture/picture_plan.h"
#include "planner/picture/picture_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_group(const struct report_device *device, struct picture_group *group)
{
    char provider[REPORT_NAME_SIZE];
    char name[REPORT_NAME_SIZE];
    text_printable(device->provider, strlen(device->provider), provider, sizeof provider);
    text_printable(device->name, strlen(device->name), name, sizeof name);
    group->is_simulated = device->sum.simulated > 0;
    group->lanes = device->sum.lanes;
    (void)snprintf(group->label, sizeof group->label, "%s%s/%s", group->is_simulated ? "SIM " : "",
                   provider, name);
}

static const struct picture_words words = {
    .thing = "subtask", .things = "subtasks", .bars = "attempts", .more_group = "devices"};

/* ---------------------------------------------------------------- the plan above it */

/* A plan that is longer than the job by more than this factor is shown as figures only. Beside its
 * bars, the job's bars would be too small to see. */
enum { PLAN_TIMES_MOST = 3 };

/* The plan is drawn as if its first subtask began with the first that did. */
static int64_t plan_begin_ns(const struct report *report)
{
    return report->first_ns >= 0 ? report->first_ns : report->submitted_ns;
}

static int64_t sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    return checked_add(a, b, &sum) ? sum : INT64_MAX;
}

static bool plan_is_drawn(const struct report *report)
{
    return report->plan != NULL && plan_makespan_ns(report->plan) / PLAN_TIMES_MOST <=
                                       report->until_ns - report->submitted_ns;
}

static size_t plan_groups(const struct report *report)
{
    return plan_is_drawn(report) ? report->plan->device_count : 0;
}

static void set_plan_groups(const struct report *report, struct picture *picture)
{
    const struct plan *plan = report->plan;
    size_t used = 0;
    size_t number = 0;
    for (size_t i = 0; i < plan->device_count; i++) {
        used += plan->uses[i].lanes > 0;
    }
    for (size_t i = 0; i < plan->device_count; i++) {
        struct picture_group *group = &picture->groups[i];
        *group = (struct picture_group){
            .lanes = plan->uses[i].lanes, .is_planned = true, .span = plan_makespan_ns(plan)};
        number += group->lanes > 0;
        if (used > 1) {
            (void)snprintf(group->label, sizeof group->label, "planned %zu", number);
        } else {
            (void)snprintf(group->label, sizeof group->label, "planned");
        }
    }
}

/* ---------------------------------------------------------------- the picture */

static void set_expected(const struct report *report, struct picture *picture)
{
    const bool is_planned = report->planned_ns > 0 && report->first_ns >= 0;
    picture->expected_span = is_planned ? report->planned_ns : report->expect_span_ns;
    if (picture->expected_span < 0 ||
        !checked_add(report->first_ns, picture->expected_span, &picture->expected)) {
        picture->expected = -1;
    }
}

static bool fill(const struct report *report, struct picture *picture)
{
    const size_t planned = plan_groups(report);
    const size_t planned_bars = planned > 0 ? report->plan->row_count : 0;
    *picture = (struct picture){.words = &words,
                                .from = report->submitted_ns,
                                .until = report->until_ns,
                                .span = report->span_ns,
                                .expected = -1,
                                .group_count = planned + report->device_count,
                                .bar_count = planned_bars + report->attempt_count};
    picture->groups = calloc(picture->group_count + 1, sizeof *picture->groups);
    picture->bars = calloc(picture->bar_count + 1, sizeof *picture->bars);
    if (picture->groups == NULL || picture->bars == NULL) {
        return false;
    }
    if (planned > 0) {
        const int64_t end_ns = sum_of(plan_begin_ns(report), plan_makespan_ns(report->plan));
        picture->until = end_ns > picture->until ? end_ns : picture->until;
        set_plan_groups(report, picture);
        picture_plan_bars(report->plan, plan_begin_ns(report), picture->bars);
    }
    for (size_t i = 0; i < report->device_count; i++) {
        set_group(&report->devices[i], &picture->groups[planned + i]);
    }
    for (size_t i = 0; i < report->attempt_count; i++) {
        const struct report_attempt *attempt = &report->attempts[i];
        picture->bars[planned_bars + i] =
            (struct picture_bar){.group = (uint32_t)planned + attempt->device,
                                 .lane = attempt->lane,
                                 .number = attempt->index,
                                 .is_bad = attempt->fate != REPORT_ACCEPTED,
                                 .from = attempt->started_ns,
                                 .until = attempt->end_ns};
    }
    set_expected(report, picture);
    return true;
}

static void fini(struct picture *picture)
{
    free(picture->groups);
    free(picture->bars);
}

char *report_timeline(const struct report *report, const struct picture_style *style)
{
    struct picture picture;
    char *text = fill(report, &picture) ? picture_timeline(&picture, style) : NULL;
    fini(&picture);
    return text;
}

/* Adds the known part of "; energy: 4.2 J planned, 4.3 J measured". */
static void add_energy(const struct report *report, char *line, size_t size)
{
    const int64_t planned_uj = report_planned_uj(report);
    const int64_t measured_uj = report_measured_uj(report);
    const char *between = "; energy:";
    if (planned_uj >= 0) {
        const size_t length = strlen(line);
        (void)snprintf(line + length, size - length, "%s %.4g J planned", between,
                       (double)planned_uj / 1e6);
        between = ",";
    }
    if (measured_uj >= 0) {
        const size_t length = strlen(line);
        (void)snprintf(line + length, size - length, "%s %.4g J %s", between,
                       (double)measured_uj / 1e6,
                       report->total.energy_estimated == 0 ? "measured" : "estimated");
    }
}

char *report_svg(const struct report *report)
{
    struct picture picture;
    char *text = NULL;
    if (fill(report, &picture)) {
        char title[3 * REPORT_NAME_SIZE];
        char line[300];
        char span[PICTURE_TIME_SIZE];
        char wait[PICTURE_TIME_SIZE];
        (void)snprintf(title, sizeof title, "%s (%.8s), %s", report->name, report->id,
                       report->state);
        picture_time_text(&picture, report->span_ns, span);
        picture_time_text(&picture, report->wait_ns < 0 ? 0 : report->wait_ns, wait);
        (void)snprintf(line, sizeof line,
                       "%u of %u subtasks accepted; failed attempts: %u, late: %u; waited %s, ran "
                       "%s on %u lanes",
                       report->total.accepted, report->subtasks, report->total.failed,
                       report->total.late, wait, span, report->total.lanes);
        add_energy(report, line, sizeof line);
        picture.title = title;
        picture.line = line;
        picture.note = report->total.simulated > 0
                           ? "SIM: simulated, the times are those of a model and were not measured."
                       : plan_is_drawn(report)
                           ? "Times are what providers signed, within what the market saw; above "
                             "them, what was planned when it was submitted."
                           : "Times are what providers signed, within what the market saw.";
        text = picture_svg(&picture);
    }
    fini(&picture);
    return text;
}
