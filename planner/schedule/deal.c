#include "planner/schedule/deal.h"

#include "base/checked.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define TIME_MOST_NS (INT64_MAX / 4)

/* A heap of subtasks, with the first one on top. */
struct heap {
    uint32_t *items;
    size_t count;
};

struct dealing {
    const struct deal_input *input;
    struct deal *deal;
    struct heap ready[DEAL_PARTS];         /* indexed by part: the highest rank first */
    struct heap running;                   /* sorted by end */
    uint32_t used[DEAL_PARTS];             /* used slots, by part */
    size_t hint[DEAL_PARTS][DEAL_CLASSES]; /* devices before it have no room */
    bool is_full[DEAL_PARTS];              /* indexed by part: no device has room */
    uint32_t *part_of;                     /* indexed by subtask */
    uint32_t *missing;                     /* indexed by subtask: unfinished dependencies */
    uint32_t *next, *next_first;           /* subtasks that wait for each */
    uint32_t *free_slots;                  /* indexed by device */
    uint32_t *lanes_left;                  /* free lanes by device, a stack each */
    size_t *lanes_first;                   /* beginning of each device's stack */
    uint32_t *lanes_idle;                  /* height of each device's stack */
    uint32_t *room;                        /* memory of all heaps */
    int64_t now_ns;
    uint32_t done;
};

static uint32_t classes_of(const struct deal_input *input)
{
    return input->class_count == 0 ? 1 : input->class_count;
}

/* Returns the time of a task on a class; `count` is the number of subtasks. */
static int64_t takes_on(const struct deal_input *input, uint32_t count, uint32_t task,
                        uint32_t of_class)
{
    return input->takes_ns[(size_t)of_class * count + task];
}

/* ---------------------------------------------------------------- heaps */

typedef bool heap_order(const struct dealing *dealing, uint32_t a, uint32_t b);

static bool is_urgent(const struct dealing *dealing, uint32_t a, uint32_t b)
{
    const uint32_t *rank = dealing->input->rank;
    return rank != NULL && rank[a] != rank[b] ? rank[a] > rank[b] : a < b;
}

static bool ends_before(const struct dealing *dealing, uint32_t a, uint32_t b)
{
    const struct deal_run *runs = dealing->deal->runs;
    return runs[a].end_ns != runs[b].end_ns ? runs[a].end_ns < runs[b].end_ns : a < b;
}

static void push(const struct dealing *dealing, struct heap *heap, heap_order *goes_before,
                 uint32_t task)
{
    size_t at = heap->count++;
    for (; at > 0 && goes_before(dealing, task, heap->items[(at - 1) / 2]); at = (at - 1) / 2) {
        heap->items[at] = heap->items[(at - 1) / 2];
    }
    heap->items[at] = task;
}

static uint32_t pop(const struct dealing *dealing, struct heap *heap, heap_order *goes_before)
{
    const uint32_t first = heap->items[0];
    const uint32_t last = heap->items[--heap->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < heap->count; at = child) {
        if (child + 1 < heap->count &&
            goes_before(dealing, heap->items[child + 1], heap->items[child])) {
            child++;
        }
        if (!goes_before(dealing, heap->items[child], last)) {
            break;
        }
        heap->items[at] = heap->items[child];
    }
    heap->items[at] = last;
    return first;
}

/* ---------------------------------------------------------------- the input */

static bool count_tasks(const struct deal_input *input, uint32_t *ret_count)
{
    uint64_t count = 0;
    for (size_t i = 0; i < input->part_count; i++) {
        if (input->parts[i].slots == 0) {
            return false;
        }
        count += input->parts[i].subtasks;
    }
    *ret_count = count <= DEAL_SUBTASKS ? (uint32_t)count : DEAL_SUBTASKS + 1;
    return count > 0;
}

static bool are_times_good(const struct deal_input *input, uint32_t count)
{
    bool are_good = true;
    for (size_t i = 0; i < (size_t)classes_of(input) * count; i++) {
        are_good = are_good && input->takes_ns[i] >= 1;
    }
    return are_good;
}

static bool is_good(const struct deal_input *input, uint32_t *ret_count)
{
    if (input->part_count < 1 || input->part_count > DEAL_PARTS || input->device_count < 1 ||
        input->device_count > DEAL_DEVICES || input->class_count > DEAL_CLASSES ||
        !count_tasks(input, ret_count)) {
        return false;
    }
    for (size_t i = 0; i < input->device_count; i++) {
        if (input->devices[i].price_micro < 0 || input->devices[i].of_class >= classes_of(input)) {
            return false;
        }
    }
    if (*ret_count > DEAL_SUBTASKS) {
        return true; /* too many: times are not read */
    }
    if (!are_times_good(input, *ret_count)) {
        return false;
    }
    size_t edge = 0;
    for (uint32_t i = 0; i < *ret_count; i++) {
        for (uint32_t k = 0; input->after_count != NULL && k < input->after_count[i]; k++) {
            if (input->after[edge++] >= i) {
                return false;
            }
        }
    }
    return true;
}

static uint32_t width_room(const struct deal_part *part, uint32_t slots)
{
    return slots / part->slots;
}

/* Returns how many subtasks of a part may run at once on all its devices. */
static uint64_t lanes_of(const struct deal_input *input, size_t number)
{
    const struct deal_part *part = &input->parts[number];
    const uint64_t most = part->at_most > 0 ? width_room(part, part->at_most) : UINT64_MAX;
    uint64_t lanes = 0;
    for (size_t i = 0; i < input->device_count; i++) {
        const bool fits = (input->devices[i].parts >> number & 1) != 0;
        lanes += fits ? width_room(part, input->devices[i].slots) : 0;
    }
    return lanes < most ? lanes : most;
}

static bool has_place(const struct deal_input *input)
{
    for (size_t i = 0; i < input->part_count; i++) {
        if (input->parts[i].subtasks > 0 && lanes_of(input, i) == 0) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- the bound */

/* Computes the time of each subtask on the class where it takes least. */
static void find_least(const struct deal_input *input, uint32_t count, int64_t *ret_least_ns)
{
    uint32_t task = 0;
    for (size_t i = 0; i < input->part_count; i++) {
        bool is_there[DEAL_CLASSES] = {false};
        for (size_t d = 0; d < input->device_count; d++) {
            const struct deal_device *device = &input->devices[d];
            is_there[device->of_class] =
                is_there[device->of_class] ||
                ((device->parts >> i & 1) != 0 && device->slots >= input->parts[i].slots);
        }
        for (uint32_t k = 0; k < input->parts[i].subtasks; k++, task++) {
            ret_least_ns[task] = INT64_MAX;
            for (uint32_t c = 0; c < classes_of(input); c++) {
                const int64_t takes_ns = takes_on(input, count, task, c);
                ret_least_ns[task] =
                    is_there[c] && takes_ns < ret_least_ns[task] ? takes_ns : ret_least_ns[task];
            }
        }
    }
}

/* Computes the longest path from start to end. Returns false when memory is short, or the path is
 * too long. */
static bool longest_way(const struct deal_input *input, const int64_t *least_ns, uint32_t count,
                        int64_t *ret_longest_ns)
{
    int64_t *way_ns = calloc(count, sizeof *way_ns);
    size_t edge = 0;
    bool ok = way_ns != NULL;
    *ret_longest_ns = 0;
    /* Dependencies have lower numbers, so one pass computes the path to each end. */
    for (uint32_t i = 0; ok && i < count; i++) {
        int64_t before_ns = 0;
        for (uint32_t k = 0; input->after_count != NULL && k < input->after_count[i]; k++) {
            const int64_t other_ns = way_ns[input->after[edge++]];
            before_ns = other_ns > before_ns ? other_ns : before_ns;
        }
        ok = checked_add(before_ns, least_ns[i], &way_ns[i]) && way_ns[i] <= TIME_MOST_NS;
        *ret_longest_ns = ok && way_ns[i] > *ret_longest_ns ? way_ns[i] : *ret_longest_ns;
    }
    free(way_ns);
    return ok;
}

/* Returns the bound of one part alone on its lanes: rounds of the shortest subtask, or all its
 * work. */
static int128 part_alone_ns(const struct deal_input *input, const int64_t *takes_ns, size_t number)
{
    const struct deal_part *part = &input->parts[number];
    const uint64_t lanes = lanes_of(input, number);
    int64_t least_ns = INT64_MAX;
    int128 sum_ns = 0;
    if (part->subtasks == 0) {
        return 0;
    }
    assert(lanes > 0); /* each part has a place */
    for (uint32_t i = 0; i < part->subtasks; i++) {
        least_ns = takes_ns[i] < least_ns ? takes_ns[i] : least_ns;
        sum_ns += takes_ns[i];
    }
    const int128 rounds_ns = (int128)((part->subtasks + lanes - 1) / lanes) * least_ns;
    const int128 work_ns = (sum_ns + lanes - 1) / lanes;
    return rounds_ns > work_ns ? rounds_ns : work_ns;
}

static int128 work_ns(const struct deal_input *input, const int64_t *least_ns)
{
    int128 slot_ns = 0;
    uint64_t slots = 0;
    uint32_t at = 0;
    for (size_t i = 0; i < input->part_count; i++) {
        for (uint32_t k = 0; k < input->parts[i].subtasks; k++) {
            slot_ns += (int128)least_ns[at++] * input->parts[i].slots;
        }
    }
    for (size_t i = 0; i < input->device_count; i++) {
        slots += input->devices[i].parts != 0 ? input->devices[i].slots : 0;
    }
    return slots == 0 ? 0 : (slot_ns + slots - 1) / slots;
}

static bool find_bound(const struct deal_input *input, const int64_t *least_ns, uint32_t count,
                       int64_t *ret_bound_ns)
{
    int64_t longest_ns = 0;
    if (!longest_way(input, least_ns, count, &longest_ns)) {
        return false;
    }
    int128 bound_ns = work_ns(input, least_ns);
    bound_ns = longest_ns > bound_ns ? longest_ns : bound_ns;
    for (size_t i = 0, first = 0; i < input->part_count; i++) {
        const int128 part_ns = part_alone_ns(input, least_ns + first, i);
        bound_ns = part_ns > bound_ns ? part_ns : bound_ns;
        first += input->parts[i].subtasks;
    }
    *ret_bound_ns = bound_ns > TIME_MOST_NS ? TIME_MOST_NS : (int64_t)bound_ns;
    return bound_ns <= TIME_MOST_NS;
}

/* ---------------------------------------------------------------- memory */

void deal_destroy(struct deal **self)
{
    struct deal *deal = *self;
    if (deal != NULL) {
        free(deal->runs);
        free(deal->uses);
        free(deal);
        *self = NULL;
    }
}

static struct deal *deal_create(uint32_t count, size_t device_count)
{
    struct deal *deal = calloc(1, sizeof *deal);
    if (deal == NULL) {
        return NULL;
    }
    deal->subtasks = count;
    deal->device_count = device_count;
    deal->runs = calloc(count, sizeof *deal->runs);
    deal->uses = calloc(device_count, sizeof *deal->uses);
    if (deal->runs == NULL || deal->uses == NULL) {
        deal_destroy(&deal);
    }
    return deal;
}

static void dealing_fini(struct dealing *dealing)
{
    free(dealing->part_of);
    free(dealing->missing);
    free(dealing->next);
    free(dealing->next_first);
    free(dealing->free_slots);
    free(dealing->lanes_left);
    free(dealing->lanes_first);
    free(dealing->lanes_idle);
    free(dealing->room);
}

/* A device has no more lanes than slots or subtasks. */
static size_t lanes_most(const struct dealing *dealing, size_t device)
{
    const uint32_t slots = dealing->input->devices[device].slots;
    return slots < dealing->deal->subtasks ? slots : dealing->deal->subtasks;
}

static bool dealing_alloc(struct dealing *dealing)
{
    const struct deal_input *input = dealing->input;
    const uint32_t count = dealing->deal->subtasks;
    size_t lanes = 0;
    size_t edges = 0;
    for (size_t i = 0; i < input->device_count; i++) {
        lanes += lanes_most(dealing, i);
    }
    for (uint32_t i = 0; input->after_count != NULL && i < count; i++) {
        edges += input->after_count[i];
    }
    dealing->part_of = calloc(count, sizeof *dealing->part_of);
    dealing->missing = calloc(count, sizeof *dealing->missing);
    dealing->next = calloc(edges + 1, sizeof *dealing->next);
    dealing->next_first = calloc((size_t)count + 2, sizeof *dealing->next_first);
    dealing->free_slots = calloc(input->device_count, sizeof *dealing->free_slots);
    dealing->lanes_left = calloc(lanes + 1, sizeof *dealing->lanes_left);
    dealing->lanes_first = calloc(input->device_count, sizeof *dealing->lanes_first);
    dealing->lanes_idle = calloc(input->device_count, sizeof *dealing->lanes_idle);
    dealing->room = calloc(2 * (size_t)count, sizeof *dealing->room);
    return dealing->part_of != NULL && dealing->missing != NULL && dealing->next != NULL &&
           dealing->next_first != NULL && dealing->free_slots != NULL &&
           dealing->lanes_left != NULL && dealing->lanes_first != NULL &&
           dealing->lanes_idle != NULL && dealing->room != NULL;
}

/* Lists the dependents of each subtask, by counting. next_first[i + 1] moves to the end of i. */
static void link_waits(struct dealing *dealing)
{
    const struct deal_input *input = dealing->input;
    const uint32_t count = dealing->deal->subtasks;
    size_t edge = 0;
    if (input->after_count == NULL) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        dealing->missing[i] = input->after_count[i];
        for (uint32_t k = 0; k < input->after_count[i]; k++) {
            dealing->next_first[input->after[edge++] + 2]++;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        dealing->next_first[i + 2] += dealing->next_first[i + 1];
    }
    edge = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < input->after_count[i]; k++) {
            dealing->next[dealing->next_first[input->after[edge++] + 1]++] = i;
        }
    }
}

static void begin(struct dealing *dealing)
{
    const struct deal_input *input = dealing->input;
    uint32_t at = 0;
    size_t lanes = 0;
    for (size_t i = 0; i < input->part_count; i++) {
        dealing->ready[i].items = dealing->room + at;
        for (uint32_t k = 0; k < input->parts[i].subtasks; k++) {
            dealing->part_of[at++] = (uint32_t)i;
        }
    }
    dealing->running.items = dealing->room + at;
    for (size_t i = 0; i < input->device_count; i++) {
        dealing->free_slots[i] = input->devices[i].slots;
        dealing->lanes_first[i] = lanes;
        lanes += lanes_most(dealing, i);
    }
    link_waits(dealing);
    for (uint32_t i = 0; i < dealing->deal->subtasks; i++) {
        if (dealing->missing[i] == 0) {
            push(dealing, &dealing->ready[dealing->part_of[i]], is_urgent, i);
        }
    }
}

/* ---------------------------------------------------------------- dealing out */

/* Returns the cheapest device of a class with room for the part, or device_count. */
static size_t room_of_class(struct dealing *dealing, size_t number, uint32_t of_class)
{
    const struct deal_input *input = dealing->input;
    size_t at = dealing->hint[number][of_class];
    while (at < input->device_count && (input->devices[at].of_class != of_class ||
                                        (input->devices[at].parts >> number & 1) == 0 ||
                                        dealing->free_slots[at] < input->parts[number].slots)) {
        at++;
    }
    dealing->hint[number][of_class] = at;
    return at;
}

/* Returns the device for the next subtask of a part: the idle lane that ends it first, else the
 * cheapest slots with room. Returns device_count when there is none. */
static size_t find_room(struct dealing *dealing, size_t number)
{
    const struct deal_input *input = dealing->input;
    const struct deal_part *part = &input->parts[number];
    const uint32_t task = dealing->ready[number].items[0];
    size_t best = input->device_count;
    int64_t best_ns = 0;
    bool is_idle = false;
    if (part->at_most > 0 && part->at_most - dealing->used[number] < part->slots) {
        return best;
    }
    for (uint32_t c = 0; c < classes_of(input); c++) {
        const size_t at = room_of_class(dealing, number, c);
        if (at == input->device_count) {
            continue;
        }
        const int64_t takes_ns = takes_on(input, dealing->deal->subtasks, task, c);
        const bool has_lane = dealing->lanes_idle[at] > 0;
        const bool is_sooner = takes_ns < best_ns || (takes_ns == best_ns && at < best);
        if (has_lane != is_idle ? has_lane : is_idle ? is_sooner : at < best) {
            best = at;
            best_ns = takes_ns;
            is_idle = has_lane;
        }
    }
    return best;
}

/* Finds the part whose first ready subtask is next, and its device. Returns false if none. */
static bool find_next(struct dealing *dealing, size_t *ret_part, size_t *ret_device)
{
    const size_t parts = dealing->input->part_count;
    size_t best = parts;
    for (size_t i = 0; i < parts; i++) {
        if (dealing->ready[i].count == 0 || dealing->is_full[i] ||
            (best < parts &&
             !is_urgent(dealing, dealing->ready[i].items[0], dealing->ready[best].items[0]))) {
            continue;
        }
        const size_t device = find_room(dealing, i);
        dealing->is_full[i] = device == dealing->input->device_count;
        if (!dealing->is_full[i]) {
            best = i;
            *ret_device = device;
        }
    }
    *ret_part = best;
    return best < parts;
}

static uint32_t take_lane(struct dealing *dealing, size_t device)
{
    return dealing->lanes_idle[device] > 0
               ? dealing->lanes_left[dealing->lanes_first[device] + --dealing->lanes_idle[device]]
               : dealing->deal->uses[device].lanes++;
}

static void start_one(struct dealing *dealing, size_t number, size_t device)
{
    const uint32_t slots = dealing->input->parts[number].slots;
    const uint32_t task = pop(dealing, &dealing->ready[number], is_urgent);
    const int64_t takes_ns = takes_on(dealing->input, dealing->deal->subtasks, task,
                                      dealing->input->devices[device].of_class);
    dealing->deal->runs[task] = (struct deal_run){.device = (uint32_t)device,
                                                  .lane = take_lane(dealing, device),
                                                  .start_ns = dealing->now_ns,
                                                  .end_ns = dealing->now_ns + takes_ns};
    dealing->free_slots[device] -= slots;
    dealing->used[number] += slots;
    push(dealing, &dealing->running, ends_before, task);
}

static void end_one(struct dealing *dealing)
{
    const struct deal_input *input = dealing->input;
    const uint32_t task = pop(dealing, &dealing->running, ends_before);
    const struct deal_run *run = &dealing->deal->runs[task];
    const uint32_t number = dealing->part_of[task];
    dealing->free_slots[run->device] += input->parts[number].slots;
    dealing->used[number] -= input->parts[number].slots;
    dealing->lanes_left[dealing->lanes_first[run->device] + dealing->lanes_idle[run->device]++] =
        run->lane;
    for (size_t i = 0; i < input->part_count; i++) {
        const bool fits = (input->devices[run->device].parts >> i & 1) != 0;
        dealing->is_full[i] = dealing->is_full[i] && !fits && i != number;
        size_t *hint = &dealing->hint[i][input->devices[run->device].of_class];
        *hint = fits && run->device < *hint ? run->device : *hint;
    }
    for (uint32_t k = dealing->next_first[task]; k < dealing->next_first[task + 1]; k++) {
        const uint32_t waiting = dealing->next[k];
        if (--dealing->missing[waiting] == 0) {
            push(dealing, &dealing->ready[dealing->part_of[waiting]], is_urgent, waiting);
        }
    }
    dealing->done++;
}

/* Returns false when it takes too long. */
static bool run_all(struct dealing *dealing)
{
    while (dealing->done < dealing->deal->subtasks) {
        size_t number = 0;
        size_t device = 0;
        while (find_next(dealing, &number, &device)) {
            start_one(dealing, number, device);
        }
        /* Each part has a place, and dependencies have no cycle. */
        assert(dealing->running.count > 0);
        dealing->now_ns = dealing->deal->runs[dealing->running.items[0]].end_ns;
        if (dealing->now_ns > TIME_MOST_NS) {
            return false;
        }
        while (dealing->running.count > 0 &&
               dealing->deal->runs[dealing->running.items[0]].end_ns == dealing->now_ns) {
            end_one(dealing);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- sums */

static bool sum_up(const struct dealing *dealing)
{
    struct deal *deal = dealing->deal;
    bool fits = true;
    for (uint32_t i = 0; fits && i < deal->subtasks; i++) {
        const struct deal_run *run = &deal->runs[i];
        struct deal_use *use = &deal->uses[run->device];
        const int64_t takes_ns = run->end_ns - run->start_ns;
        int64_t slot_ns = 0;
        fits = checked_mul(takes_ns, dealing->input->parts[dealing->part_of[i]].slots, &slot_ns) &&
               checked_add(use->busy_ns, takes_ns, &use->busy_ns) &&
               checked_add(use->slot_ns, slot_ns, &use->slot_ns) &&
               checked_add(deal->busy_ns, takes_ns, &deal->busy_ns);
        use->subtasks++;
    }
    for (size_t i = 0; fits && i < deal->device_count; i++) {
        struct deal_use *use = &deal->uses[i];
        deal->lanes += use->lanes;
        fits = checked_muldiv_ceil(use->slot_ns, dealing->input->devices[i].price_micro,
                                   NS_PER_HOUR, &use->cost_micro) &&
               checked_add(deal->cost_micro, use->cost_micro, &deal->cost_micro);
    }
    deal->makespan_ns = dealing->now_ns;
    return fits;
}

/* Returns false when it takes too long, or memory is short. */
static bool bound_of(const struct deal_input *input, uint32_t count, int64_t *ret_bound_ns)
{
    int64_t *least_ns = calloc(count, sizeof *least_ns);
    bool is_found = false;
    if (least_ns != NULL) {
        find_least(input, count, least_ns);
        is_found = find_bound(input, least_ns, count, ret_bound_ns);
    }
    free(least_ns);
    return is_found;
}

enum deal_status deal_make(const struct deal_input *input, struct deal **ret_deal)
{
    uint32_t count = 0;
    int64_t bound_ns = 0;
    if (!is_good(input, &count)) {
        return DEAL_BAD_INPUT;
    }
    if (count > DEAL_SUBTASKS) {
        return DEAL_TOO_MANY;
    }
    if (!has_place(input)) {
        return DEAL_NOWHERE;
    }
    struct dealing dealing = {.input = input, .deal = deal_create(count, input->device_count)};
    enum deal_status status = DEAL_NO_MEMORY;
    if (dealing.deal != NULL && dealing_alloc(&dealing)) {
        begin(&dealing);
        status = bound_of(input, count, &bound_ns) && run_all(&dealing) && sum_up(&dealing)
                     ? DEAL_OK
                     : DEAL_OVERFLOW;
    }
    dealing_fini(&dealing);
    if (status != DEAL_OK) {
        deal_destroy(&dealing.deal);
        return status;
    }
    dealing.deal->bound_ns = bound_ns;
    *ret_deal = dealing.deal;
    return DEAL_OK;
}

/* Returns INT64_MAX when the time is unknown. */
static int64_t alone_ns(const struct deal_input *input, size_t device)
{
    struct deal *deal = NULL;
    struct deal_input alone = *input;
    alone.devices = &input->devices[device];
    alone.device_count = 1;
    const bool is_made = deal_make(&alone, &deal) == DEAL_OK;
    const int64_t makespan_ns = is_made ? deal->makespan_ns : INT64_MAX;
    deal_destroy(&deal);
    return makespan_ns;
}

/* Equal times make the device with most slots first; among equals, the cheapest. */
bool deal_best_single(const struct deal_input *input, size_t *ret_device, int64_t *ret_makespan_ns)
{
    size_t widest[DEAL_CLASSES];
    uint32_t most[DEAL_CLASSES] = {0};
    int64_t best_ns = INT64_MAX;
    for (size_t i = 0; i < input->device_count; i++) {
        struct deal_input alone = *input;
        const uint32_t of_class = input->devices[i].of_class;
        alone.devices = &input->devices[i];
        alone.device_count = 1;
        if (input->devices[i].slots > most[of_class] && has_place(&alone)) {
            most[of_class] = input->devices[i].slots;
            widest[of_class] = i;
        }
    }
    for (uint32_t c = 0; c < classes_of(input); c++) {
        const int64_t takes_ns = most[c] > 0 ? alone_ns(input, widest[c]) : INT64_MAX;
        if (takes_ns < best_ns ||
            (takes_ns == best_ns && takes_ns < INT64_MAX && widest[c] < *ret_device)) {
            best_ns = takes_ns;
            *ret_device = widest[c];
        }
    }
    *ret_makespan_ns = best_ns < INT64_MAX ? best_ns : 0;
    return best_ns < INT64_MAX;
}

int64_t deal_share_ppm(const struct deal *deal)
{
    const int128 possible_ns = (int128)deal->makespan_ns * deal->lanes;
    return possible_ns == 0 ? 0 : (int64_t)((int128)deal->busy_ns * 1000000 / possible_ns);
}
