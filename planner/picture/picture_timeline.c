/* This file draws a picture as text. */
#include "planner/picture/picture.h"

#include "base/checked.h"
#include "planner/picture/picture_rows.h"
#include "planner/picture/picture_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS = 9, SHARE_COLUMNS = 5, TICK_COLUMNS = 12 };

static const char *const blocks[LEVELS] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const marks[LEVELS] = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};

/* The content of one column in one line. */
struct bucket {
    int64_t busy;
    bool failed;
    bool waits; /* a wait in some of the time */
};

struct timeline {
    const struct picture *picture;
    const struct picture_style *style;
    struct picture_rows *rows;
    struct bucket *buckets; /* rows x columns */
    size_t label_columns, columns;
    int64_t step; /* time of a column, at least 1 */
    struct picture_text text;
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

/* Cuts `text` in its middle to fit `columns`, which keeps its beginning and its lane. `ascii`
 * replaces all other characters. */
static void fit(const char *text, size_t columns, bool ascii, char *ret_text, size_t capacity)
{
    char plain[PICTURE_LABEL_SIZE];
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

static void fill_bar(struct timeline *timeline, const struct picture_bar *bar)
{
    size_t row = picture_rows_of(timeline->rows, bar);
    struct bucket *line = timeline->buckets + row * timeline->columns;
    int64_t last = (int64_t)timeline->columns - 1;
    int64_t from = bar->from - timeline->picture->from;
    int64_t until = bar->until - timeline->picture->from;
    int64_t at = from / timeline->step;
    at = at > last ? last : at;
    for (int64_t column = at; column <= last; column++) {
        int64_t low = column * timeline->step;
        int64_t high = low + timeline->step;
        if (column > at && low >= until) {
            break;
        }
        int64_t first = from > low ? from : low;
        int64_t end = until < high ? until : high;
        if (bar->is_wait) {
            line[column].waits = true;
            continue;
        }
        /* A bar stays visible, however short. */
        line[column].busy += end > first ? end - first : 1;
        if (bar->is_bad && high >= until) {
            line[column].failed = true; /* a failure shows where the bar ends */
            break;
        }
    }
}

static size_t level_of(const struct timeline *timeline, const struct bucket *bucket, uint32_t lanes)
{
    if (bucket->busy == 0) {
        return 0;
    }
    int128 full = (int128)timeline->step * (lanes > 0 ? lanes : 1);
    int128 level = ((int128)bucket->busy * (LEVELS - 1) + full / 2) / full;
    return level < 1 ? 1 : level > LEVELS - 1 ? LEVELS - 1 : (size_t)level;
}

/* ---------------------------------------------------------------- printing */

static void print_axis(struct timeline *timeline)
{
    struct picture_text *text = &timeline->text;
    picture_text_add(text, "%*s  ", (int)timeline->label_columns, "");
    size_t column = 0;
    while (column < timeline->columns) {
        char at[PICTURE_TIME_SIZE];
        picture_time_text(timeline->picture, (int64_t)column * timeline->step, at);
        size_t wanted = columns_of(at) + 1;
        size_t next = column + TICK_COLUMNS;
        size_t width = next <= timeline->columns ? TICK_COLUMNS : timeline->columns - column;
        bool fits = wanted <= width;
        picture_text_add(text, "|%-*s", (int)width - 1, fits ? at : "");
        column += width;
    }
    picture_text_add(text, " busy\n");
}

static void print_row(struct timeline *timeline, size_t number)
{
    static const char *const green = "\033[32m";
    static const char *const red = "\033[31m";
    static const char *const blue = "\033[34m";
    const struct picture_row *row = &timeline->rows->rows[number];
    struct picture_text *text = &timeline->text;
    char label[PICTURE_LABEL_SIZE];
    fit(row->label, timeline->label_columns, timeline->style->ascii, label, sizeof label);
    picture_text_add(text, "%s%*s  ", label, (int)(timeline->label_columns - columns_of(label)),
                     "");
    const char *pen = "";
    for (size_t i = 0; i < timeline->columns; i++) {
        const struct bucket *bucket = &timeline->buckets[number * timeline->columns + i];
        const char *color = bucket->failed ? red : row->planned ? blue : green;
        if (timeline->style->color && strcmp(pen, color) != 0) {
            pen = color;
            picture_text_add(text, "%s", pen);
        }
        size_t level = level_of(timeline, bucket, row->lanes);
        const char *const *glyphs = timeline->style->ascii ? marks : blocks;
        const char *cross = timeline->style->ascii ? "x" : "×";
        const char *shade = timeline->style->ascii ? "_" : "░";
        bool is_wait = level == 0 && bucket->waits;
        picture_text_add(text, "%s", bucket->failed ? cross : is_wait ? shade : glyphs[level]);
    }
    int64_t percent = 0;
    int64_t possible = 0;
    if (!checked_mul(row->span, row->lanes, &possible) || possible == 0 ||
        !checked_muldiv_floor(row->busy, 100, possible, &percent)) {
        percent = 0;
    }
    picture_text_add(text, "%s%4d%%\n", timeline->style->color ? "\033[0m" : "",
                     percent > 100 ? 100 : (int)percent);
}

static void lay_out(struct timeline *timeline)
{
    size_t width = timeline->style->width;
    width = width < PICTURE_WIDTH_MIN ? PICTURE_WIDTH_MIN : width;
    width = width > PICTURE_WIDTH_MAX ? PICTURE_WIDTH_MAX : width;
    for (size_t i = 0; i < timeline->rows->count; i++) {
        size_t columns = columns_of(timeline->rows->rows[i].label);
        timeline->label_columns =
            columns > timeline->label_columns ? columns : timeline->label_columns;
    }
    if (timeline->label_columns > width / 3) {
        timeline->label_columns = width / 3;
    }
    timeline->columns = width - timeline->label_columns - 2 - SHARE_COLUMNS;
    int64_t whole = timeline->picture->until - timeline->picture->from;
    int64_t columns = (int64_t)timeline->columns;
    timeline->step = whole / columns + (whole % columns != 0);
    timeline->step = timeline->step < 1 ? 1 : timeline->step;
}

char *picture_timeline(const struct picture *picture, const struct picture_style *style)
{
    struct picture_rows rows;
    if (!picture_rows_make(picture, &rows)) {
        return NULL;
    }
    struct timeline timeline = {.picture = picture, .style = style, .rows = &rows};
    lay_out(&timeline);
    timeline.buckets = calloc((rows.count + 1) * timeline.columns, sizeof *timeline.buckets);
    if (timeline.buckets == NULL) {
        picture_rows_fini(&rows);
        return NULL;
    }
    for (size_t i = 0; i < picture->bar_count; i++) {
        fill_bar(&timeline, &picture->bars[i]);
    }
    print_axis(&timeline);
    for (size_t i = 0; i < rows.count; i++) {
        print_row(&timeline, i);
    }
    if (rows.has_waits) {
        picture_text_add(&timeline.text, "%*s  %s waits for others or for a link\n",
                         (int)timeline.label_columns, "", style->ascii ? "_" : "░");
    }
    free(timeline.buckets);
    picture_rows_fini(&rows);
    return picture_text_take(&timeline.text);
}
