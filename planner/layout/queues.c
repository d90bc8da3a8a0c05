#include "planner/layout/queues.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* A shorter wait, as a share of the makespan, is rounding. */
#define QUEUE_ROUNDING 1e-9

struct list {
    struct queue *items;
    size_t count;
    double least_s;
};

const char *queue_name(enum queue_for what)
{
    static const char *const names[] = {
        [QUEUE_DEVICE] = "device", [QUEUE_LINK] = "link", [QUEUE_OTHERS] = "others"};
    return names[what];
}

static void add(struct list *list, enum queue_for what, uint32_t row, uint32_t to, double from_s,
                double until_s)
{
    if (until_s - from_s > list->least_s) {
        list->items[list->count++] = (struct queue){what, row, to, from_s, until_s};
    }
}

static int by_row(const void *a, const void *b)
{
    const struct queue *left = a;
    const struct queue *right = b;
    if (left->row != right->row) {
        return left->row < right->row ? -1 : 1;
    }
    return left->from_s < right->from_s ? -1 : left->from_s > right->from_s;
}

/* Raises the time at which all inputs of a row have arrived. */
static void raise(double *ready_s, double there_s)
{
    *ready_s = fmax(*ready_s, there_s);
}

static void add_devices(const struct plan *plan, const struct steps *steps, const uint32_t *row_of,
                        double *ready_s, struct list *list)
{
    for (size_t i = 0; i < steps->edge_count; i++) {
        const uint32_t from = row_of[steps->edges[i].from];
        raise(&ready_s[row_of[steps->edges[i].to]], plan->rows[from].finish_s);
    }
    for (size_t i = 0; i < plan->transfer_count; i++) {
        raise(&ready_s[plan->transfers[i].to], plan->transfers[i].finish_s);
    }
    for (uint32_t i = 0; i < plan->row_count; i++) {
        add(list, QUEUE_DEVICE, i, PLAN_ANYWHERE, ready_s[i], plan->rows[i].start_s);
    }
}

static bool is_by_step(const struct plan *plan, const struct steps *steps)
{
    bool is = plan->row_count == steps->step_count;
    for (size_t i = 0; i < plan->row_count; i++) {
        is = is && plan->rows[i].step_count == 1;
    }
    return is;
}

bool queues_of(const struct plan *plan, const struct steps *steps, struct queue **ret_queues,
               size_t *ret_count)
{
    const size_t most = plan->row_count + plan->transfer_count + plan->wait_count + 1;
    struct list list = {.items = calloc(most, sizeof *list.items),
                        .least_s = QUEUE_ROUNDING * plan->total.makespan_s.value};
    uint32_t *row_of = calloc(steps->step_count, sizeof *row_of);
    double *ready_s = calloc(plan->row_count + 1, sizeof *ready_s);
    const bool has_room = list.items != NULL && row_of != NULL && ready_s != NULL;
    if (has_room && is_by_step(plan, steps)) {
        for (uint32_t i = 0; i < plan->row_count; i++) {
            row_of[plan->rows[i].first_step] = i;
        }
        add_devices(plan, steps, row_of, ready_s, &list);
        for (size_t i = 0; i < plan->transfer_count; i++) {
            const struct plan_transfer *transfer = &plan->transfers[i];
            add(&list, QUEUE_LINK, transfer->from, transfer->to,
                plan->rows[transfer->from].finish_s, transfer->start_s);
        }
    }
    for (size_t i = 0; has_room && i < plan->wait_count; i++) {
        add(&list, QUEUE_OTHERS, plan->waits[i].row, PLAN_ANYWHERE, plan->waits[i].from_s,
            plan->waits[i].until_s);
    }
    free(row_of);
    free(ready_s);
    if (!has_room) {
        free(list.items);
        return false;
    }
    assert(list.count < most);
    qsort(list.items, list.count, sizeof *list.items, by_row);
    *ret_queues = list.items;
    *ret_count = list.count;
    return true;
}
