/* A report as a picture: its devices are the groups, its attempts the bars. */
#include "planner/report.h"

#include "base/checked.h"
#include "base/text.h"
#include "planner/picture_text.h"

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

static bool fill(const struct report *report, struct picture *picture)
{
    *picture = (struct picture){.words = &words,
                                .from = report->submitted_ns,
                                .until = report->until_ns,
                                .span = report->span_ns,
                                .expected = -1,
                                .group_count = report->device_count,
                                .bar_count = report->attempt_count};
    picture->groups = calloc(report->device_count + 1, sizeof *picture->groups);
    picture->bars = calloc(report->attempt_count + 1, sizeof *picture->bars);
    if (picture->groups == NULL || picture->bars == NULL) {
        return false;
    }
    for (size_t i = 0; i < report->device_count; i++) {
        set_group(&report->devices[i], &picture->groups[i]);
    }
    for (size_t i = 0; i < report->attempt_count; i++) {
        const struct report_attempt *attempt = &report->attempts[i];
        picture->bars[i] = (struct picture_bar){.group = attempt->device,
                                                .lane = attempt->lane,
                                                .number = attempt->index,
                                                .is_bad = attempt->fate != REPORT_ACCEPTED,
                                                .from = attempt->started_ns,
                                                .until = attempt->end_ns};
    }
    const bool is_planned = report->planned_ns > 0 && report->first_ns >= 0;
    picture->expected_span = is_planned ? report->planned_ns : report->expect_span_ns;
    if (picture->expected_span < 0 ||
        !checked_add(report->first_ns, picture->expected_span, &picture->expected)) {
        picture->expected = -1;
    }
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
        picture.title = title;
        picture.line = line;
        picture.note = report->total.simulated > 0
                           ? "SIM: simulated, the times are those of a model and were not measured."
                           : "Times are what providers signed, within what the market saw.";
        text = picture_svg(&picture);
    }
    fini(&picture);
    return text;
}
