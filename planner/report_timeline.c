#include "planner/report.h"

#include "base/checked.h"
#include "base/text.h"
#include "planner/report_rows.h"
#include "planner/report_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS = 9, SHARE_COLUMNS = 5, TICK_COLUMNS = 12 };

static const char *const blocks[LEVELS] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const marks[LEVELS] = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};

/* What stands in one column of one line. */
struct bucket {
    int64_t busy_ns;
    bool failed;
};

struct timeline {
    const struct report *report;
    const struct report_style *style;
    struct report_rows *rows;
    struct bucket *buckets; /* rows x columns */
    size_t label_columns, columns;
    int64_t from_ns, step_ns; /* of a column, at least 1 */
    struct report_text text;
};

/* ---------------------------------------------------------------- characters */

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

static size_t columns_of(const char *text)
{
    size_t columns = 0;
    for (; *text != '\0'; text++) {
        columns += begins_character(*text);
    }
    return columns;
}

/* Cuts `text` in its middle to fit `columns`, which keeps both provider and lane; ASCII when that is asked for. */
static void fit(const char *text, size_t columns, bool ascii, char *ret_text, size_t capacity)
{
    char plain[REPORT_LABEL_SIZE];
    size_t length = 0;
    for (size_t i = 0; text[i] != '\0' && length + 1 < sizeof plain; i++) {
        if (!ascii || (unsigned char)text[i] < 0x80) {
            plain[length++] = text[i];
        } else if (begins_character(text[i])) {
            plain[length++] = '?';
        }
    }
    plain[length] = '\0';
    size_t all = columns_of(plain);
    if (all <= columns) {
        (void)snprintf(ret_text, capacity, "%s", plain);
        return;
    }
    size_t front = (columns - 2 + 1) / 2;
    size_t back_from = all - (columns - 2 - front);
    size_t used = 0;
    size_t column = 0;
    for (size_t i = 0; i < length && used + 4 < capacity; i++) {
        column += begins_character(plain[i]);
        if (column <= front || column > back_from) {
            ret_text[used++] = plain[i];
        } else if (column == front + 1 && begins_character(plain[i])) {
            ret_text[used++] = '.';
            ret_text[used++] = '.';
        }
    }
    ret_text[used] = '\0';
}

/* ---------------------------------------------------------------- filling */

static void fill_attempt(struct timeline *timeline, const struct report_attempt *attempt)
{
    size_t row = report_rows_of(timeline->rows, attempt);
    struct bucket *line = timeline->buckets + row * timeline->columns;
    int64_t last = (int64_t)timeline->columns - 1;
    int64_t from_ns = attempt->started_ns - timeline->from_ns;
    int64_t end_ns = attempt->end_ns - timeline->from_ns;
    int64_t at = from_ns / timeline->step_ns;
    at = at > last ? last : at;
    for (int64_t column = at; column <= last; column++) {
        int64_t low_ns = column * timeline->step_ns;
        int64_t high_ns = low_ns + timeline->step_ns;
        if (column > at && low_ns >= end_ns) {
            break;
        }
        int64_t first_ns = from_ns > low_ns ? from_ns : low_ns;
        int64_t until_ns = end_ns < high_ns ? end_ns : high_ns;
        int64_t here_ns = until_ns > first_ns ? until_ns - first_ns : 0;
        /* However short, it is seen. */
        line[column].busy_ns += here_ns > 0 ? here_ns : 1;
        if (attempt->fate != REPORT_ACCEPTED && high_ns >= end_ns) {
            line[column].failed = true; /* where it ended */
            break;
        }
    }
}

static size_t level_of(const struct timeline *timeline, const struct bucket *bucket, uint32_t lanes)
{
    if (bucket->busy_ns == 0) {
        return 0;
    }
    int128 full_ns = (int128)timeline->step_ns * (lanes > 0 ? lanes : 1);
    int128 level = ((int128)bucket->busy_ns * (LEVELS - 1) + full_ns / 2) / full_ns;
    return level < 1 ? 1 : level > LEVELS - 1 ? LEVELS - 1 : (size_t)level;
}

/* ---------------------------------------------------------------- printing */

static void print_axis(struct timeline *timeline)
{
    struct report_text *text = &timeline->text;
    report_text_add(text, "%*s  ", (int)timeline->label_columns, "");
    size_t column = 0;
    while (column < timeline->columns) {
        char at[REPORT_TIME_SIZE];
        report_time_text((int64_t)column * timeline->step_ns, at);
        size_t wanted = columns_of(at) + 1;
        bool fits = column + wanted <= timeline->columns;
        size_t next = column + TICK_COLUMNS;
        size_t width = next <= timeline->columns ? TICK_COLUMNS : timeline->columns - column;
        report_text_add(text, "|%-*s", (int)width - 1, fits ? at : "");
        column += width;
    }
    report_text_add(text, " busy\n");
}

static void print_row(struct timeline *timeline, size_t number)
{
    static const char *const green = "\033[32m";
    static const char *const red = "\033[31m";
    const struct report_row *row = &timeline->rows->rows[number];
    struct report_text *text = &timeline->text;
    char label[REPORT_LABEL_SIZE];
    fit(row->label, timeline->label_columns, timeline->style->ascii, label, sizeof label);
    report_text_add(text, "%s%*s  ", label, (int)(timeline->label_columns - columns_of(label)), "");
    const char *pen = "";
    for (size_t i = 0; i < timeline->columns; i++) {
        const struct bucket *bucket = &timeline->buckets[number * timeline->columns + i];
        const char *color = bucket->failed ? red : green;
        if (timeline->style->color && strcmp(pen, color) != 0) {
            pen = color;
            report_text_add(text, "%s", pen);
        }
        size_t level = level_of(timeline, bucket, row->lanes);
        const char *const *glyphs = timeline->style->ascii ? marks : blocks;
        const char *cross = timeline->style->ascii ? "x" : "×";
        report_text_add(text, "%s", bucket->failed ? cross : glyphs[level]);
    }
    int64_t percent = 0;
    int64_t possible_ns = 0;
    if (!checked_mul(timeline->report->span_ns, row->lanes, &possible_ns) || possible_ns == 0 ||
        !checked_muldiv_floor(row->busy_ns, 100, possible_ns, &percent)) {
        percent = 0;
    }
    report_text_add(text, "%s%4d%%\n", timeline->style->color ? "\033[0m" : "",
                    percent > 100 ? 100 : (int)percent);
}

static void lay_out(struct timeline *timeline)
{
    size_t width = timeline->style->width;
    width = width < REPORT_WIDTH_MIN ? REPORT_WIDTH_MIN : width;
    width = width > REPORT_WIDTH_MAX ? REPORT_WIDTH_MAX : width;
    for (size_t i = 0; i < timeline->rows->count; i++) {
        size_t columns = columns_of(timeline->rows->rows[i].label);
        timeline->label_columns =
            columns > timeline->label_columns ? columns : timeline->label_columns;
    }
    if (timeline->label_columns > width / 3) {
        timeline->label_columns = width / 3;
    }
    timeline->columns = width - timeline->label_columns - 2 - SHARE_COLUMNS;
    timeline->from_ns = timeline->report->submitted_ns;
    int64_t whole_ns = timeline->report->until_ns - timeline->from_ns;
    int64_t columns = (int64_t)timeline->columns;
    timeline->step_ns = whole_ns / columns + (whole_ns % columns != 0);
    timeline->step_ns = timeline->step_ns < 1 ? 1 : timeline->step_ns;
}

char *report_timeline(const struct report *report, const struct report_style *style)
{
    struct report_rows rows;
    if (!report_rows_make(report, &rows)) {
        return NULL;
    }
    struct timeline timeline = {.report = report, .style = style, .rows = &rows};
    lay_out(&timeline);
    timeline.buckets = calloc((rows.count + 1) * timeline.columns, sizeof *timeline.buckets);
    if (timeline.buckets == NULL) {
        report_rows_fini(&rows);
        return NULL;
    }
    for (size_t i = 0; i < report->attempt_count; i++) {
        fill_attempt(&timeline, &report->attempts[i]);
    }
    print_axis(&timeline);
    for (size_t i = 0; i < rows.count; i++) {
        print_row(&timeline, i);
    }
    free(timeline.buckets);
    report_rows_fini(&rows);
    return report_text_take(&timeline.text);
}
