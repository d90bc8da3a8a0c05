#include "exchange/work/choice/ready.h"

#include "base/checked.h"
#include "exchange/policy.h"
#include "exchange/state/residency.h"
#include "exchange/work/choice/ready_order.h"

#include <assert.h>

/* A job without ranks uses the expected times: the longest subtasks go first, so that none ends
 * long after all others. */
static struct online_task task_of(const struct graph *graph, uint32_t index)
{
    const uint32_t *rank = graph->rank != NULL ? graph->rank : graph->expect_ms;
    return (struct online_task){rank == NULL ? 0 : rank[index], index};
}

uint32_t ready_rank(const struct graph *graph, uint32_t index)
{
    return task_of(graph, index).rank;
}

static bool goes_before(const struct graph *graph, uint32_t a, uint32_t b)
{
    return online_goes_before(task_of(graph, a), task_of(graph, b));
}

static void put(struct part *part, uint32_t at, uint32_t index)
{
    part->ready[at] = index;
    if (part->order != NULL) {
        ready_order_note(part->order, index, at);
    }
}

/* Puts `index` at the place `at` of the heap or below it. */
static void sift_down(struct part *part, uint32_t at, uint32_t index)
{
    const struct graph *graph = part->job->graph;
    for (uint32_t child = 2 * at + 1; child < part->ready_count; child = 2 * at + 1) {
        bool takes_right = child + 1 < part->ready_count &&
                           goes_before(graph, part->ready[child + 1], part->ready[child]);
        child += takes_right;
        if (!goes_before(graph, part->ready[child], index)) {
            break;
        }
        put(part, at, part->ready[child]);
        at = child;
    }
    put(part, at, index);
}

static void sift_up(struct part *part, uint32_t at, uint32_t index)
{
    const struct graph *graph = part->job->graph;
    while (at > 0 && goes_before(graph, index, part->ready[(at - 1) / 2])) {
        put(part, at, part->ready[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(part, at, index);
}

void ready_push(struct part *part, uint32_t index)
{
    part->ready_count++;
    assert(part->ready_count <= part->end - part->first);
    sift_up(part, part->ready_count - 1, index);
    if (part->order != NULL) {
        ready_order_add(part->order, index);
    }
}

/* Takes the subtask at a place of the heap out. */
static uint32_t take_ready_at(struct part *part, uint32_t at)
{
    const uint32_t taken = part->ready[at];
    const uint32_t last = part->ready[--part->ready_count];
    if (part->order != NULL) {
        ready_order_remove(part->order, taken);
    }
    if (at == part->ready_count) {
        return taken;
    }
    if (at > 0 && goes_before(part->job->graph, last, part->ready[(at - 1) / 2])) {
        sift_up(part, at, last);
    } else {
        sift_down(part, at, last);
    }
    return taken;
}

/* Subtasks of a job with a bound have expectations of their own. */
static bool is_within(const struct ready_bound *bound, const struct job *job, uint32_t index)
{
    return !bound->is_set || online_at_pace_ns(job->graph->expect_ms[index] * NS_PER_MS,
                                               bound->pace) <= bound->most_ns;
}

/* Returns the place of the highest rank within the bound, or ready_count. Only near a deadline is
 * this not the first place. */
static uint32_t find_within(const struct part *part, const struct ready_bound *bound)
{
    if (part->ready_count == 0 || is_within(bound, part->job, part->ready[0])) {
        return 0;
    }
    assert(part->order != NULL);
    const uint32_t first =
        ready_order_first(part->order, bound->pace, bound->most_ns, bound->exchange->steps);
    return first == NO_SUBTASK ? part->ready_count : ready_order_place(part->order, first);
}

/* Places of the heap whose parents were seen. The first of them in the order of the heap comes
 * next, so that the heap's subtasks are seen in order and stay where they are. */
struct heap_walk {
    uint32_t open[RESIDENT_READY_MOST + 2];
    uint32_t count;
};

static uint32_t walk_next(const struct part *part, struct heap_walk *walk)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < walk->count; i++) {
        if (goes_before(part->job->graph, part->ready[walk->open[i]],
                        part->ready[walk->open[first]])) {
            first = i;
        }
    }
    const uint32_t place = walk->open[first];
    walk->open[first] = walk->open[--walk->count];
    for (uint32_t child = 2 * place + 1; child <= 2 * place + 2; child++) {
        if (child < part->ready_count) {
            walk->open[walk->count++] = child;
        }
    }
    return place;
}

/* Returns true when a subtask with so many bytes among the residents may go before the first one.
 * Its rank is level with that of the first, or the copy takes longer than the difference. */
static bool may_go_before(uint64_t first_rank, uint64_t rank, uint64_t bytes)
{
    const uint64_t behind = first_rank - rank;
    return behind * 100 <= first_rank * ONLINE_SLACK_PERCENT ||
           behind <= (uint64_t)(residency_saves_ns(bytes) / NS_PER_MS);
}

/* Returns the place of the ready subtask within the bound that goes first with these residents, and
 * its bytes; ready_count: none is within it. Near a deadline only the bound decides. */
static uint32_t find_ready(const struct part *part, const struct residents *residents,
                           const struct ready_bound *bound, uint64_t *ret_bytes)
{
    const struct graph *graph = part->job->graph;
    uint32_t best = find_within(part, bound);
    *ret_bytes = 0;
    if (best != 0 || part->ready_count == 0 || residents == NULL) {
        return best;
    }
    const uint32_t first_rank = task_of(graph, part->ready[0]).rank;
    struct heap_walk walk = {.count = 1};
    for (uint32_t seen = 0; seen < RESIDENT_READY_MOST && walk.count > 0; seen++) {
        const uint32_t place = walk_next(part, &walk);
        const uint32_t index = part->ready[place];
        const uint64_t bytes = residency_bytes(residents, graph, index);
        if (bytes > *ret_bytes && is_within(bound, part->job, index) &&
            may_go_before(first_rank, task_of(graph, index).rank, bytes)) {
            best = place;
            *ret_bytes = bytes;
        }
    }
    return best;
}

uint32_t ready_take(struct part *part, const struct residents *residents,
                    const struct ready_bound *bound)
{
    uint64_t bytes;
    const uint32_t at = find_ready(part, residents, bound, &bytes);
    return at == part->ready_count ? NO_SUBTASK : take_ready_at(part, at);
}

bool ready_has_resident(const struct part *part, const struct residents *residents,
                        const struct ready_bound *bound)
{
    uint64_t bytes = 0;
    (void)find_ready(part, residents, bound, &bytes);
    return bytes > 0;
}
