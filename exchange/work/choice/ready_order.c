#include "exchange/work/choice/ready_order.h"

#include "exchange/state/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Node k of the tree has the nodes 2 k and 2 k + 1 below it, and 1 is the root. The leaves are the
 * nodes from `leaves` on, in the order of expected times. */
struct ready_order {
    const uint32_t *rank, *expect_ms; /* the graph's; rank NULL: expected times rank */
    uint32_t first, count;            /* the subtasks of the part */
    uint32_t leaves;                  /* a power of two */
    uint32_t *sorted;                 /* subtasks by expected time */
    uint32_t *places;                 /* place of each subtask in `sorted` */
    uint32_t *heap_places;
    uint32_t *tree; /* subtask of the highest rank below each node, or NO_SUBTASK */
};

void ready_order_destroy(struct ready_order **self)
{
    struct ready_order *order = *self;
    if (order != NULL) {
        free(order->sorted);
        free(order->places);
        free(order->heap_places);
        free(order->tree);
        free(order);
        *self = NULL;
    }
}

/* Sorts by one byte of the expected times and keeps the order of equals. */
static void sort_by_byte(const struct ready_order *order, uint32_t shift, const uint32_t *from,
                         uint32_t *ret_to)
{
    uint32_t starts[257] = {0};
    for (uint32_t i = 0; i < order->count; i++) {
        starts[((order->expect_ms[from[i]] >> shift) & 255) + 1]++;
    }
    for (uint32_t value = 0; value < 256; value++) {
        starts[value + 1] += starts[value];
    }
    for (uint32_t i = 0; i < order->count; i++) {
        ret_to[starts[(order->expect_ms[from[i]] >> shift) & 255]++] = from[i];
    }
}

/* Uses `places` as the second list of the sort. The four bytes leave the result in `sorted`. */
static void sort(struct ready_order *order)
{
    for (uint32_t i = 0; i < order->count; i++) {
        order->sorted[i] = order->first + i;
    }
    for (uint32_t shift = 0; shift < 32; shift += 16) {
        sort_by_byte(order, shift, order->sorted, order->places);
        sort_by_byte(order, shift + 8, order->places, order->sorted);
    }
    for (uint32_t i = 0; i < order->count; i++) {
        order->places[order->sorted[i] - order->first] = i;
    }
}

static struct ready_order *create_for(struct exchange *exchange, const struct part *part)
{
    struct ready_order *order = memory_allocate(exchange, sizeof *order);
    if (order == NULL) {
        return NULL;
    }
    order->rank = part->job->graph->rank;
    order->expect_ms = part->job->graph->expect_ms;
    order->first = part->first;
    order->count = part->end - part->first;
    order->leaves = 1;
    while (order->leaves < order->count) {
        order->leaves *= 2;
    }
    order->sorted = memory_allocate(exchange, order->count * sizeof *order->sorted);
    order->places = memory_allocate(exchange, order->count * sizeof *order->places);
    order->heap_places = memory_allocate(exchange, order->count * sizeof *order->heap_places);
    order->tree = memory_allocate(exchange, (size_t)order->leaves * 2 * sizeof *order->tree);
    if (order->sorted == NULL || order->places == NULL || order->heap_places == NULL ||
        order->tree == NULL) {
        ready_order_destroy(&order);
        return NULL;
    }
    for (uint32_t node = 0; node < 2 * order->leaves; node++) {
        order->tree[node] = NO_SUBTASK;
    }
    sort(order);
    return order;
}

bool ready_order_create(struct exchange *exchange, struct job *job)
{
    const bool has_order = job->graph != NULL && job->graph->expect_ms != NULL &&
                           job->deadline_ns != 0 && !job->is_checked;
    for (uint32_t i = 0; i < job->part_count && has_order; i++) {
        struct part *part = &job->parts[i];
        if (part->order != NULL) {
            continue;
        }
        part->order = create_for(exchange, part);
        if (part->order == NULL) {
            return false;
        }
        for (uint32_t place = 0; place < part->ready_count; place++) {
            ready_order_add(part->order, part->ready[place]);
            ready_order_note(part->order, part->ready[place], place);
        }
    }
    return true;
}

/* Returns the one of two subtasks, each of which may be NO_SUBTASK, that goes first. */
static uint32_t first_of(const struct ready_order *order, uint32_t a, uint32_t b)
{
    const uint32_t *rank = order->rank != NULL ? order->rank : order->expect_ms;
    if (a == NO_SUBTASK || b == NO_SUBTASK) {
        return a == NO_SUBTASK ? b : a;
    }
    return online_goes_before((struct online_task){rank[a], a}, (struct online_task){rank[b], b})
               ? a
               : b;
}

static uint32_t leaf_of(const struct ready_order *order, uint32_t index)
{
    assert(index - order->first < order->count);
    return order->leaves + order->places[index - order->first];
}

void ready_order_add(struct ready_order *order, uint32_t index)
{
    for (uint32_t node = leaf_of(order, index);
         node > 0 && first_of(order, order->tree[node], index) == index; node /= 2) {
        order->tree[node] = index;
    }
}

void ready_order_remove(struct ready_order *order, uint32_t index)
{
    uint32_t node = leaf_of(order, index);
    assert(order->tree[node] == index);
    order->tree[node] = NO_SUBTASK;
    for (node /= 2; node > 0 && order->tree[node] == index; node /= 2) {
        order->tree[node] = first_of(order, order->tree[2 * node], order->tree[2 * node + 1]);
    }
}

void ready_order_note(struct ready_order *order, uint32_t index, uint32_t heap_place)
{
    order->heap_places[index - order->first] = heap_place;
}

uint32_t ready_order_place(const struct ready_order *order, uint32_t index)
{
    return order->heap_places[index - order->first];
}

/* Returns how many subtasks of the part take at most `most_ns` at this pace. They are the first of
 * the order, because a longer expectation never takes less time. */
static uint32_t count_within(const struct ready_order *order, struct online_pace pace,
                             int64_t most_ns, uint64_t *steps)
{
    uint32_t within = 0;
    uint32_t beyond = order->count;
    while (within < beyond) {
        const uint32_t middle = within + (beyond - within) / 2;
        const int64_t said_ns = order->expect_ms[order->sorted[middle]] * ONLINE_NS_PER_MS;
        const bool is_within = online_at_pace_ns(said_ns, pace) <= most_ns;
        within = is_within ? middle + 1 : within;
        beyond = is_within ? beyond : middle;
        *steps += 1;
    }
    return within;
}

uint32_t ready_order_first(const struct ready_order *order, struct online_pace pace,
                           int64_t most_ns, uint64_t *steps)
{
    uint32_t found = NO_SUBTASK;
    uint32_t left = order->leaves;
    uint32_t end = left + count_within(order, pace, most_ns, steps);
    for (; left < end; left /= 2, end /= 2) {
        if (left % 2 == 1) {
            found = first_of(order, found, order->tree[left++]);
        }
        if (end % 2 == 1) {
            found = first_of(order, found, order->tree[--end]);
        }
        *steps += 1;
    }
    return found;
}

uint32_t ready_order_shortest(const struct ready_order *order, uint64_t *steps)
{
    uint32_t node = 1;
    while (node < order->leaves && order->tree[node] != NO_SUBTASK) {
        node *= 2;
        node += order->tree[node] == NO_SUBTASK;
        *steps += 1;
    }
    return order->tree[node];
}
