#include "planner/schedule/slots.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define NIL 0u /* no node; its longest is below any length */

struct gap {
    double start, end;
    double longest; /* longest gap in this node and all below */
    uint32_t left, right;
    uint32_t priority;
};

struct slots {
    uint32_t processor_count, capacity;
    uint32_t used; /* nodes, from 1 on; all are freed together */
    uint32_t *roots;
    double *ends;
    struct gap *gaps;
};

/* Taking time splits a gap into two at most, so each task needs one node more. */
struct slots *slots_create(uint32_t processor_count, uint32_t task_count)
{
    assert(processor_count > 0);
    struct slots *slots = calloc(1, sizeof *slots);
    if (slots == NULL) {
        return NULL;
    }
    slots->processor_count = processor_count;
    slots->capacity = processor_count + task_count + 1;
    slots->roots = calloc(processor_count, sizeof *slots->roots);
    slots->ends = calloc(processor_count, sizeof *slots->ends);
    slots->gaps = calloc(slots->capacity, sizeof *slots->gaps);
    if (slots->roots == NULL || slots->ends == NULL || slots->gaps == NULL) {
        slots_destroy(&slots);
        return NULL;
    }
    slots_clear(slots);
    return slots;
}

void slots_destroy(struct slots **self)
{
    struct slots *slots = *self;
    if (slots != NULL) {
        free(slots->roots);
        free(slots->ends);
        free(slots->gaps);
        free(slots);
        *self = NULL;
    }
}

static uint32_t add_gap(struct slots *slots, double start, double end)
{
    assert(slots->used + 1 < slots->capacity);
    uint32_t at = ++slots->used;
    uint32_t mixed = at * UINT32_C(2654435761);
    mixed = (mixed ^ (mixed >> 15)) * UINT32_C(2246822519);
    slots->gaps[at] = (struct gap){
        .start = start, .end = end, .longest = end - start, .priority = mixed ^ (mixed >> 13)};
    return at;
}

void slots_clear(struct slots *slots)
{
    slots->used = 0;
    slots->gaps[NIL] = (struct gap){.longest = -INFINITY};
    for (uint32_t p = 0; p < slots->processor_count; p++) {
        slots->ends[p] = 0;
        slots->roots[p] = add_gap(slots, 0, INFINITY);
    }
}

static bool fits(const struct gap *gap, double ready, double length)
{
    return fmax(gap->start, ready) + length <= gap->end;
}

/* Returns the first gap below `at` that starts after `after` and has room for `length`, or NIL. */
static uint32_t first_long(const struct gap *gaps, uint32_t at, double after, double length)
{
    if (at == NIL || gaps[at].longest < length) {
        return NIL;
    }
    if (gaps[at].start > after) {
        uint32_t found = first_long(gaps, gaps[at].left, after, length);
        if (found != NIL) {
            return found;
        }
        if (fits(&gaps[at], gaps[at].start, length)) {
            return at;
        }
    }
    return first_long(gaps, gaps[at].right, after, length);
}

static uint32_t last_from(const struct gap *gaps, uint32_t at, double ready)
{
    uint32_t found = NIL;
    while (at != NIL) {
        bool is_before = gaps[at].start <= ready;
        found = is_before ? at : found;
        at = is_before ? gaps[at].right : gaps[at].left;
    }
    return found;
}

double slots_find(const struct slots *slots, uint32_t processor, double ready, double length)
{
    assert(processor < slots->processor_count);
    assert(length > 0);
    if (ready >= slots->ends[processor]) { /* most often: nothing comes after it */
        return ready;
    }
    uint32_t root = slots->roots[processor];
    uint32_t within = last_from(slots->gaps, root, ready);
    if (within != NIL && fits(&slots->gaps[within], ready, length)) {
        return ready;
    }
    uint32_t found = first_long(slots->gaps, root, ready, length);
    assert(found != NIL); /* the last gap has no end */
    return slots->gaps[found].start;
}

static void refresh(struct gap *gaps, uint32_t at)
{
    gaps[at].longest = fmax(gaps[at].end - gaps[at].start,
                            fmax(gaps[gaps[at].left].longest, gaps[gaps[at].right].longest));
}

static uint32_t rotate(struct gap *gaps, uint32_t at, bool to_right)
{
    uint32_t *inner = to_right ? &gaps[at].left : &gaps[at].right;
    uint32_t up = *inner;
    uint32_t *across = to_right ? &gaps[up].right : &gaps[up].left;
    *inner = *across;
    *across = at;
    refresh(gaps, at);
    refresh(gaps, up);
    return up;
}

static uint32_t insert(struct gap *gaps, uint32_t at, uint32_t node)
{
    if (at == NIL) {
        return node;
    }
    bool is_left = gaps[node].start < gaps[at].start;
    uint32_t *child = is_left ? &gaps[at].left : &gaps[at].right;
    *child = insert(gaps, *child, node);
    refresh(gaps, at);
    return gaps[*child].priority > gaps[at].priority ? rotate(gaps, at, is_left) : at;
}

/* Shrinks the gap that begins at `from` to `start` to `end`. The new gap lies within the old one,
 * so the order stays. */
static void shrink(struct gap *gaps, uint32_t at, double from, double start, double end)
{
    assert(at != NIL);
    if (gaps[at].start == from) {
        gaps[at].start = start;
        gaps[at].end = end;
    } else {
        shrink(gaps, from < gaps[at].start ? gaps[at].left : gaps[at].right, from, start, end);
    }
    refresh(gaps, at);
}

void slots_take(struct slots *slots, uint32_t processor, double start, double length)
{
    assert(processor < slots->processor_count);
    uint32_t *root = &slots->roots[processor];
    uint32_t within = last_from(slots->gaps, *root, start);
    double finish = start + length;
    assert(within != NIL);
    struct gap gap = slots->gaps[within];
    assert(start >= gap.start);
    assert(finish <= gap.end);
    if (gap.start < start) {
        shrink(slots->gaps, *root, gap.start, gap.start, start);
        if (finish < gap.end) {
            *root = insert(slots->gaps, *root, add_gap(slots, finish, gap.end));
        }
    } else { /* an empty gap fits nothing, and stays */
        shrink(slots->gaps, *root, gap.start, finish, gap.end);
    }
    slots->ends[processor] = fmax(slots->ends[processor], finish);
}
