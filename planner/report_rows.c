#include "planner/report_rows.h"

#include "base/checked.h"
#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ranked {
    uint32_t device;
    int64_t busy_ns;
};

static int busiest_first(const void *a, const void *b)
{
    const struct ranked *left = a;
    const struct ranked *right = b;
    if (left->busy_ns != right->busy_ns) {
        return left->busy_ns > right->busy_ns ? -1 : 1;
    }
    return left->device < right->device ? -1 : left->device > right->device;
}

static int by_device(const void *a, const void *b)
{
    const struct ranked *left = a;
    const struct ranked *right = b;
    return left->device < right->device ? -1 : left->device > right->device;
}

static void label_device(const struct report_device *device, struct report_row *row)
{
    char provider[REPORT_NAME_SIZE];
    char name[REPORT_NAME_SIZE];
    text_printable(device->provider, strlen(device->provider), provider, sizeof provider);
    text_printable(device->name, strlen(device->name), name, sizeof name);
    row->simulated = device->sum.simulated > 0;
    (void)snprintf(row->label, sizeof row->label, "%s%s/%s", row->simulated ? "SIM " : "", provider,
                   name);
}

static struct report_row *add_row(struct report_rows *rows)
{
    assert(rows->count < REPORT_ROWS_MAX);
    return &rows->rows[rows->count++];
}

static void add_device(const struct report *report, uint32_t number, struct report_rows *rows)
{
    const struct report_device *device = &report->devices[number];
    rows->first_row[number] = (uint32_t)rows->count;
    if (!rows->by_lane) {
        struct report_row *row = add_row(rows);
        label_device(device, row);
        row->lanes = device->sum.lanes;
        return;
    }
    for (uint32_t lane = 0; lane < device->sum.lanes; lane++) {
        struct report_row *row = add_row(rows);
        label_device(device, row);
        row->lanes = 1;
        size_t length = strlen(row->label);
        if (device->sum.lanes > 1) {
            (void)snprintf(row->label + length, sizeof row->label - length, " #%u", lane);
        }
    }
}

/* Where there are more than lines, the last line has all the rest together. */
static void add_rest(const struct report *report, const struct ranked *ranked, size_t count,
                     struct report_rows *rows)
{
    if (count == 0) {
        return;
    }
    size_t at = rows->count;
    struct report_row *row = add_row(rows);
    (void)snprintf(row->label, sizeof row->label, "%zu more devices", count);
    for (size_t i = 0; i < count; i++) {
        rows->first_row[ranked[i].device] = (uint32_t)at;
        row->lanes += report->devices[ranked[i].device].sum.lanes;
    }
}

bool report_rows_make(const struct report *report, struct report_rows *ret_rows)
{
    *ret_rows = (struct report_rows){.by_lane = report->total.lanes <= REPORT_ROWS_MAX};
    ret_rows->first_row = calloc(report->device_count + 1, sizeof *ret_rows->first_row);
    struct ranked *ranked = calloc(report->device_count + 1, sizeof *ranked);
    if (ret_rows->first_row == NULL || ranked == NULL) {
        free(ranked);
        report_rows_fini(ret_rows);
        return false;
    }
    size_t used = 0;
    for (uint32_t i = 0; i < report->device_count; i++) {
        if (report->devices[i].sum.lanes > 0) {
            ranked[used++] =
                (struct ranked){.device = i, .busy_ns = report->devices[i].sum.busy_ns};
        }
    }
    qsort(ranked, used, sizeof *ranked, busiest_first);
    size_t shown = used <= REPORT_ROWS_MAX ? used : REPORT_ROWS_MAX - 1;
    qsort(ranked, shown, sizeof *ranked, by_device);
    for (size_t i = 0; i < shown; i++) {
        add_device(report, ranked[i].device, ret_rows);
    }
    add_rest(report, ranked + shown, used - shown, ret_rows);
    free(ranked);
    for (size_t i = 0; i < report->attempt_count; i++) {
        const struct report_attempt *attempt = &report->attempts[i];
        struct report_row *row = &ret_rows->rows[report_rows_of(ret_rows, attempt)];
        int64_t shown_ns = attempt->end_ns - attempt->started_ns;
        row->busy_ns =
            checked_add(row->busy_ns, shown_ns, &row->busy_ns) ? row->busy_ns : INT64_MAX;
    }
    return true;
}

void report_rows_fini(struct report_rows *rows)
{
    free(rows->first_row);
    rows->first_row = NULL;
}

size_t report_rows_of(const struct report_rows *rows, const struct report_attempt *attempt)
{
    return rows->first_row[attempt->device] + (rows->by_lane ? attempt->lane : 0);
}
