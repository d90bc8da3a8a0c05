#include "planner/picture/picture_plan.h"

#include <stdlib.h>

static const struct picture_words words = {
    .thing = "step", .things = "steps", .more_group = "devices"};

/* The pieces of a row are drawn one after the other: its work, and the waits in between. */
struct pieces {
    size_t count;
    double unit_s;
    uint32_t *devices;
    double *starts, *finishes;
    bool *waits;
    const char **labels;
};

static void add_piece(struct pieces *pieces, const struct plan_row *row, const char *label,
                      double from_s, double until_s, bool is_wait)
{
    size_t at = pieces->count++;
    pieces->devices[at] = row->device;
    pieces->labels[at] = label;
    pieces->starts[at] = from_s / pieces->unit_s;
    pieces->finishes[at] = until_s / pieces->unit_s;
    pieces->waits[at] = is_wait;
}

static void cut_row(const struct plan *plan, uint32_t number, const char *label,
                    struct pieces *pieces)
{
    const struct plan_row *row = &plan->rows[number];
    double at_s = row->start_s;
    for (size_t i = 0; i < plan->wait_count; i++) {
        const struct plan_wait *wait = &plan->waits[i];
        if (wait->row != number) {
            continue;
        }
        if (wait->from_s > at_s) {
            add_piece(pieces, row, label, at_s, wait->from_s, false);
        }
        add_piece(pieces, row, label, wait->from_s, wait->until_s, true);
        at_s = wait->until_s;
    }
    if (row->finish_s > at_s || at_s == row->start_s) { /* a row without duration is drawn too */
        add_piece(pieces, row, label, at_s, row->finish_s, false);
    }
}

static struct picture *draw_pieces(const struct picture_plan *drawn, struct pieces *pieces)
{
    const struct plan *plan = drawn->plan;
    for (uint32_t i = 0; i < plan->row_count; i++) {
        cut_row(plan, i, drawn->labels[i], pieces);
    }
    const struct picture_schedule schedule = {.task_count = (uint32_t)pieces->count,
                                              .processor_count = (uint32_t)plan->device_count,
                                              .processor = pieces->devices,
                                              .start = pieces->starts,
                                              .finish = pieces->finishes,
                                              .makespan =
                                                  plan->total.makespan_s.value / drawn->unit_s,
                                              .unit = drawn->unit,
                                              .waits = pieces->waits,
                                              .task_names = pieces->labels,
                                              .processor_names = drawn->devices};
    struct picture *picture = picture_of_schedule(&schedule);
    if (picture != NULL) {
        picture->words = &words;
        picture->note = "Planned: nothing has run. Times are estimates.";
        picture->own_names = pieces->labels;
        pieces->labels = NULL;
    }
    return picture;
}

struct picture *picture_of_plan(const struct picture_plan *drawn)
{
    const struct plan *plan = drawn->plan;
    const size_t most = plan->row_count + 2 * plan->wait_count + 1;
    struct pieces pieces = {.unit_s = drawn->unit_s,
                            .devices = calloc(most, sizeof *pieces.devices),
                            .starts = calloc(most, sizeof *pieces.starts),
                            .finishes = calloc(most, sizeof *pieces.finishes),
                            .waits = calloc(most, sizeof *pieces.waits),
                            .labels = calloc(most, sizeof *pieces.labels)};
    const bool has_room = pieces.devices != NULL && pieces.starts != NULL &&
                          pieces.finishes != NULL && pieces.waits != NULL && pieces.labels != NULL;
    struct picture *picture =
        has_room && plan->total.makespan_s.value > 0 ? draw_pieces(drawn, &pieces) : NULL;
    free(pieces.devices);
    free(pieces.starts);
    free(pieces.finishes);
    free(pieces.waits);
    free(pieces.labels);
    return picture;
}
