#include "planner/picture/picture_rows.h"

#include "base/checked.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ranked {
    uint32_t group;
    int64_t busy;
};

static int busiest_first(const void *a, const void *b)
{
    const struct ranked *left = a;
    const struct ranked *right = b;
    if (left->busy != right->busy) {
        return left->busy > right->busy ? -1 : 1;
    }
    return left->group < right->group ? -1 : left->group > right->group;
}

static int by_group(const void *a, const void *b)
{
    const struct ranked *left = a;
    const struct ranked *right = b;
    return left->group < right->group ? -1 : left->group > right->group;
}

static void label_row(const struct picture *picture, const struct picture_group *group,
                      struct picture_row *row)
{
    row->simulated = group->is_simulated;
    row->planned = group->is_planned;
    row->span = group->span > 0 ? group->span : picture->span;
    (void)snprintf(row->label, sizeof row->label, "%s", group->label);
}

static struct picture_row *add_row(struct picture_rows *rows)
{
    assert(rows->count < PICTURE_ROWS_MAX);
    return &rows->rows[rows->count++];
}

static void add_group(const struct picture *picture, uint32_t number, struct picture_rows *rows)
{
    const struct picture_group *group = &picture->groups[number];
    rows->first_row[number] = (uint32_t)rows->count;
    if (!rows->by_lane) {
        struct picture_row *row = add_row(rows);
        label_row(picture, group, row);
        row->lanes = group->lanes;
        return;
    }
    for (uint32_t lane = 0; lane < group->lanes; lane++) {
        struct picture_row *row = add_row(rows);
        label_row(picture, group, row);
        row->lanes = 1;
        size_t length = strlen(row->label);
        if (group->lanes > 1) {
            (void)snprintf(row->label + length, sizeof row->label - length, " #%u", lane);
        }
    }
}

/* The last line collects all groups that have no line of their own. */
static void add_rest(const struct picture *picture, const struct ranked *ranked, size_t count,
                     struct picture_rows *rows)
{
    if (count == 0) {
        return;
    }
    size_t at = rows->count;
    struct picture_row *row = add_row(rows);
    row->span = picture->span;
    (void)snprintf(row->label, sizeof row->label, "%zu more %s", count, picture->words->more_group);
    for (size_t i = 0; i < count; i++) {
        rows->first_row[ranked[i].group] = (uint32_t)at;
        row->lanes += picture->groups[ranked[i].group].lanes;
    }
}

int64_t picture_busy(const struct picture_bar *bar)
{
    return bar->is_wait ? 0 : bar->until - bar->from;
}

static int64_t sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    return checked_add(a, b, &sum) ? sum : INT64_MAX;
}

/* Lists the groups that are drawn, and counts the lanes of all. */
static size_t rank_groups(const struct picture *picture, struct ranked *ranked, uint32_t *ret_lanes)
{
    size_t used = 0;
    size_t at = 0;
    *ret_lanes = 0;
    for (uint32_t i = 0; i < picture->group_count; i++) {
        int64_t busy = 0;
        for (; at < picture->bar_count && picture->bars[at].group == i; at++) {
            busy = sum_of(busy, picture_busy(&picture->bars[at]));
        }
        if (picture->groups[i].lanes > 0) {
            ranked[used++] = (struct ranked){.group = i, .busy = busy};
        }
        *ret_lanes += picture->groups[i].lanes;
    }
    assert(at == picture->bar_count);
    return used;
}

bool picture_rows_make(const struct picture *picture, struct picture_rows *ret_rows)
{
    *ret_rows = (struct picture_rows){.count = 0};
    ret_rows->first_row = calloc(picture->group_count + 1, sizeof *ret_rows->first_row);
    struct ranked *ranked = calloc(picture->group_count + 1, sizeof *ranked);
    if (ret_rows->first_row == NULL || ranked == NULL) {
        free(ranked);
        picture_rows_fini(ret_rows);
        return false;
    }
    uint32_t lanes = 0;
    size_t used = rank_groups(picture, ranked, &lanes);
    ret_rows->by_lane = lanes <= PICTURE_ROWS_MAX;
    qsort(ranked, used, sizeof *ranked, busiest_first);
    size_t shown = used <= PICTURE_ROWS_MAX ? used : PICTURE_ROWS_MAX - 1;
    qsort(ranked, shown, sizeof *ranked, by_group);
    for (size_t i = 0; i < shown; i++) {
        add_group(picture, ranked[i].group, ret_rows);
    }
    add_rest(picture, ranked + shown, used - shown, ret_rows);
    free(ranked);
    for (size_t i = 0; i < picture->bar_count; i++) {
        const struct picture_bar *bar = &picture->bars[i];
        struct picture_row *row = &ret_rows->rows[picture_rows_of(ret_rows, bar)];
        row->busy = sum_of(row->busy, picture_busy(bar));
        ret_rows->has_waits = ret_rows->has_waits || bar->is_wait;
        ret_rows->has_plans = ret_rows->has_plans || row->planned;
    }
    return true;
}

void picture_rows_fini(struct picture_rows *rows)
{
    free(rows->first_row);
    rows->first_row = NULL;
}

size_t picture_rows_of(const struct picture_rows *rows, const struct picture_bar *bar)
{
    return rows->first_row[bar->group] + (rows->by_lane ? bar->lane : 0);
}
