#include "planner/schedule/list_schedule_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A heap of subtasks, with the first one on top. */
struct heap {
    uint32_t *items;
    size_t count;
};

struct scheduling {
    const struct list_schedule_input *input;
    struct list_schedule *schedule;
    struct heap ready[LIST_SCHEDULE_PARTS]; /* indexed by part: the highest rank first */
    struct heap running;                    /* sorted by end */
    uint32_t used[LIST_SCHEDULE_PARTS];     /* used slots, by part */
    size_t hint[LIST_SCHEDULE_PARTS][LIST_SCHEDULE_CLASSES]; /* devices before it have no room */
    bool is_full[LIST_SCHEDULE_PARTS]; /* indexed by part: no device has room */
    uint32_t *part_of;                 /* indexed by subtask */
    uint32_t *missing;                 /* indexed by subtask: unfinished dependencies */
    uint32_t *next, *next_first;       /* subtasks that wait for each */
    uint32_t *free_slots;              /* indexed by device */
    uint32_t *lanes_left;              /* free lanes by device, a stack each */
    size_t *lanes_first;               /* beginning of each device's stack */
    uint32_t *lanes_idle;              /* height of each device's stack */
    uint32_t *room;                    /* memory of all heaps */
    int64_t now_ns;
    uint32_t done;
};

/* ---------------------------------------------------------------- heaps */

typedef bool heap_order(const struct scheduling *scheduling, uint32_t a, uint32_t b);

static bool is_urgent(const struct scheduling *scheduling, uint32_t a, uint32_t b)
{
    const uint32_t *rank = scheduling->input->rank;
    return rank != NULL && rank[a] != rank[b] ? rank[a] > rank[b] : a < b;
}

static bool ends_before(const struct scheduling *scheduling, uint32_t a, uint32_t b)
{
    const struct list_schedule_run *runs = scheduling->schedule->runs;
    return runs[a].end_ns != runs[b].end_ns ? runs[a].end_ns < runs[b].end_ns : a < b;
}

static void push(const struct scheduling *scheduling, struct heap *heap, heap_order *goes_before,
                 uint32_t task)
{
    size_t at = heap->count++;
    for (; at > 0 && goes_before(scheduling, task, heap->items[(at - 1) / 2]); at = (at - 1) / 2) {
        heap->items[at] = heap->items[(at - 1) / 2];
    }
    heap->items[at] = task;
}

static uint32_t pop(const struct scheduling *scheduling, struct heap *heap, heap_order *goes_before)
{
    const uint32_t first = heap->items[0];
    const uint32_t last = heap->items[--heap->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < heap->count; at = child) {
        if (child + 1 < heap->count &&
            goes_before(scheduling, heap->items[child + 1], heap->items[child])) {
            child++;
        }
        if (!goes_before(scheduling, heap->items[child], last)) {
            break;
        }
        heap->items[at] = heap->items[child];
    }
    heap->items[at] = last;
    return first;
}

/* ---------------------------------------------------------------- the input */

static bool count_tasks(const struct list_schedule_input *input, uint32_t *ret_count)
{
    uint64_t count = 0;
    for (size_t i = 0; i < input->part_count; i++) {
        if (input->parts[i].slots == 0) {
            return false;
        }
        count += input->parts[i].subtasks;
    }
    *ret_count = count <= LIST_SCHEDULE_SUBTASKS ? (uint32_t)count : LIST_SCHEDULE_SUBTASKS + 1;
    return count > 0;
}

static bool are_times_good(const struct list_schedule_input *input, uint32_t count)
{
    bool are_good = true;
    for (size_t i = 0; i < (size_t)list_schedule_classes(input) * count; i++) {
        are_good = are_good && input->takes_ns[i] >= 1;
    }
    return are_good;
}

static bool is_good(const struct list_schedule_input *input, uint32_t *ret_count)
{
    if (input->part_count < 1 || input->part_count > LIST_SCHEDULE_PARTS ||
        input->device_count < 1 || input->device_count > LIST_SCHEDULE_DEVICES ||
        input->class_count > LIST_SCHEDULE_CLASSES || !count_tasks(input, ret_count)) {
        return false;
    }
    for (size_t i = 0; i < input->device_count; i++) {
        if (input->devices[i].price_micro < 0 ||
            input->devices[i].of_class >= list_schedule_classes(input)) {
            return false;
        }
    }
    if (*ret_count > LIST_SCHEDULE_SUBTASKS) {
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

static bool has_place(const struct list_schedule_input *input)
{
    for (size_t i = 0; i < input->part_count; i++) {
        if (input->parts[i].subtasks > 0 && list_schedule_lanes(input, i) == 0) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- memory */

void list_schedule_destroy(struct list_schedule **self)
{
    struct list_schedule *schedule = *self;
    if (schedule != NULL) {
        free(schedule->runs);
        free(schedule->lanes);
        free(schedule);
        *self = NULL;
    }
}

static struct list_schedule *list_schedule_create(uint32_t count, size_t device_count)
{
    struct list_schedule *schedule = calloc(1, sizeof *schedule);
    if (schedule == NULL) {
        return NULL;
    }
    schedule->subtasks = count;
    schedule->device_count = device_count;
    schedule->runs = calloc(count, sizeof *schedule->runs);
    schedule->lanes = calloc(device_count, sizeof *schedule->lanes);
    if (schedule->runs == NULL || schedule->lanes == NULL) {
        list_schedule_destroy(&schedule);
    }
    return schedule;
}

static void scheduling_fini(struct scheduling *scheduling)
{
    free(scheduling->part_of);
    free(scheduling->missing);
    free(scheduling->next);
    free(scheduling->next_first);
    free(scheduling->free_slots);
    free(scheduling->lanes_left);
    free(scheduling->lanes_first);
    free(scheduling->lanes_idle);
    free(scheduling->room);
}

/* A device has no more lanes than slots or subtasks. */
static size_t lanes_most(const struct scheduling *scheduling, size_t device)
{
    const uint32_t slots = scheduling->input->devices[device].slots;
    return slots < scheduling->schedule->subtasks ? slots : scheduling->schedule->subtasks;
}

static bool scheduling_alloc(struct scheduling *scheduling)
{
    const struct list_schedule_input *input = scheduling->input;
    const uint32_t count = scheduling->schedule->subtasks;
    size_t lanes = 0;
    size_t edges = 0;
    for (size_t i = 0; i < input->device_count; i++) {
        lanes += lanes_most(scheduling, i);
    }
    for (uint32_t i = 0; input->after_count != NULL && i < count; i++) {
        edges += input->after_count[i];
    }
    scheduling->part_of = calloc(count, sizeof *scheduling->part_of);
    scheduling->missing = calloc(count, sizeof *scheduling->missing);
    scheduling->next = calloc(edges + 1, sizeof *scheduling->next);
    scheduling->next_first = calloc((size_t)count + 2, sizeof *scheduling->next_first);
    scheduling->free_slots = calloc(input->device_count, sizeof *scheduling->free_slots);
    scheduling->lanes_left = calloc(lanes + 1, sizeof *scheduling->lanes_left);
    scheduling->lanes_first = calloc(input->device_count, sizeof *scheduling->lanes_first);
    scheduling->lanes_idle = calloc(input->device_count, sizeof *scheduling->lanes_idle);
    scheduling->room = calloc(2 * (size_t)count, sizeof *scheduling->room);
    return scheduling->part_of != NULL && scheduling->missing != NULL && scheduling->next != NULL &&
           scheduling->next_first != NULL && scheduling->free_slots != NULL &&
           scheduling->lanes_left != NULL && scheduling->lanes_first != NULL &&
           scheduling->lanes_idle != NULL && scheduling->room != NULL;
}

/* Lists the dependents of each subtask, by counting. next_first[i + 1] moves to the end of i. */
static void link_waits(struct scheduling *scheduling)
{
    const struct list_schedule_input *input = scheduling->input;
    const uint32_t count = scheduling->schedule->subtasks;
    size_t edge = 0;
    if (input->after_count == NULL) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        scheduling->missing[i] = input->after_count[i];
        for (uint32_t k = 0; k < input->after_count[i]; k++) {
            scheduling->next_first[input->after[edge++] + 2]++;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        scheduling->next_first[i + 2] += scheduling->next_first[i + 1];
    }
    edge = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < input->after_count[i]; k++) {
            scheduling->next[scheduling->next_first[input->after[edge++] + 1]++] = i;
        }
    }
}

static void begin(struct scheduling *scheduling)
{
    const struct list_schedule_input *input = scheduling->input;
    uint32_t at = 0;
    size_t lanes = 0;
    for (size_t i = 0; i < input->part_count; i++) {
        scheduling->ready[i].items = scheduling->room + at;
        for (uint32_t k = 0; k < input->parts[i].subtasks; k++) {
            scheduling->part_of[at++] = (uint32_t)i;
        }
    }
    scheduling->running.items = scheduling->room + at;
    for (size_t i = 0; i < input->device_count; i++) {
        scheduling->free_slots[i] = input->devices[i].slots;
        scheduling->lanes_first[i] = lanes;
        lanes += lanes_most(scheduling, i);
    }
    link_waits(scheduling);
    for (uint32_t i = 0; i < scheduling->schedule->subtasks; i++) {
        if (scheduling->missing[i] == 0) {
            push(scheduling, &scheduling->ready[scheduling->part_of[i]], is_urgent, i);
        }
    }
}

/* ---------------------------------------------------------------- building the schedule */

/* Returns the cheapest device of a class with room for the part, or device_count. */
static size_t room_of_class(struct scheduling *scheduling, size_t number, uint32_t of_class)
{
    const struct list_schedule_input *input = scheduling->input;
    size_t at = scheduling->hint[number][of_class];
    while (at < input->device_count && (input->devices[at].of_class != of_class ||
                                        (input->devices[at].parts >> number & 1) == 0 ||
                                        scheduling->free_slots[at] < input->parts[number].slots)) {
        at++;
    }
    scheduling->hint[number][of_class] = at;
    return at;
}

/* Returns the device for the next subtask of a part: the idle lane that ends it first, else the
 * cheapest slots with room. Returns device_count when there is none. */
static size_t find_room(struct scheduling *scheduling, size_t number)
{
    const struct list_schedule_input *input = scheduling->input;
    const struct list_schedule_part *part = &input->parts[number];
    const uint32_t task = scheduling->ready[number].items[0];
    size_t best = input->device_count;
    int64_t best_ns = 0;
    bool is_idle = false;
    if (part->at_most > 0 && part->at_most - scheduling->used[number] < part->slots) {
        return best;
    }
    for (uint32_t c = 0; c < list_schedule_classes(input); c++) {
        const size_t at = room_of_class(scheduling, number, c);
        if (at == input->device_count) {
            continue;
        }
        const int64_t takes_ns =
            list_schedule_takes(input, scheduling->schedule->subtasks, task, c);
        const bool has_lane = scheduling->lanes_idle[at] > 0;
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
static bool find_next(struct scheduling *scheduling, size_t *ret_part, size_t *ret_device)
{
    const size_t parts = scheduling->input->part_count;
    size_t best = parts;
    for (size_t i = 0; i < parts; i++) {
        if (scheduling->ready[i].count == 0 || scheduling->is_full[i] ||
            (best < parts && !is_urgent(scheduling, scheduling->ready[i].items[0],
                                        scheduling->ready[best].items[0]))) {
            continue;
        }
        const size_t device = find_room(scheduling, i);
        scheduling->is_full[i] = device == scheduling->input->device_count;
        if (!scheduling->is_full[i]) {
            best = i;
            *ret_device = device;
        }
    }
    *ret_part = best;
    return best < parts;
}

static uint32_t take_lane(struct scheduling *scheduling, size_t device)
{
    return scheduling->lanes_idle[device] > 0
               ? scheduling->lanes_left[scheduling->lanes_first[device] +
                                        --scheduling->lanes_idle[device]]
               : scheduling->schedule->lanes[device]++;
}

static void start_one(struct scheduling *scheduling, size_t number, size_t device)
{
    const uint32_t slots = scheduling->input->parts[number].slots;
    const uint32_t task = pop(scheduling, &scheduling->ready[number], is_urgent);
    const int64_t takes_ns = list_schedule_takes(scheduling->input, scheduling->schedule->subtasks,
                                                 task, scheduling->input->devices[device].of_class);
    scheduling->schedule->runs[task] =
        (struct list_schedule_run){.device = (uint32_t)device,
                                   .lane = take_lane(scheduling, device),
                                   .start_ns = scheduling->now_ns,
                                   .end_ns = scheduling->now_ns + takes_ns};
    scheduling->free_slots[device] -= slots;
    scheduling->used[number] += slots;
    push(scheduling, &scheduling->running, ends_before, task);
}

static void end_one(struct scheduling *scheduling)
{
    const struct list_schedule_input *input = scheduling->input;
    const uint32_t task = pop(scheduling, &scheduling->running, ends_before);
    const struct list_schedule_run *run = &scheduling->schedule->runs[task];
    const uint32_t number = scheduling->part_of[task];
    scheduling->free_slots[run->device] += input->parts[number].slots;
    scheduling->used[number] -= input->parts[number].slots;
    scheduling
        ->lanes_left[scheduling->lanes_first[run->device] + scheduling->lanes_idle[run->device]++] =
        run->lane;
    for (size_t i = 0; i < input->part_count; i++) {
        const bool fits = (input->devices[run->device].parts >> i & 1) != 0;
        scheduling->is_full[i] = scheduling->is_full[i] && !fits && i != number;
        size_t *hint = &scheduling->hint[i][input->devices[run->device].of_class];
        *hint = fits && run->device < *hint ? run->device : *hint;
    }
    for (uint32_t k = scheduling->next_first[task]; k < scheduling->next_first[task + 1]; k++) {
        const uint32_t waiting = scheduling->next[k];
        if (--scheduling->missing[waiting] == 0) {
            push(scheduling, &scheduling->ready[scheduling->part_of[waiting]], is_urgent, waiting);
        }
    }
    scheduling->done++;
}

/* Returns false when it takes too long. */
static bool run_all(struct scheduling *scheduling)
{
    while (scheduling->done < scheduling->schedule->subtasks) {
        size_t number = 0;
        size_t device = 0;
        while (find_next(scheduling, &number, &device)) {
            start_one(scheduling, number, device);
        }
        /* Each part has a place, and dependencies have no cycle. */
        assert(scheduling->running.count > 0);
        scheduling->now_ns = scheduling->schedule->runs[scheduling->running.items[0]].end_ns;
        if (scheduling->now_ns > LIST_SCHEDULE_TIME_MOST_NS) {
            return false;
        }
        while (scheduling->running.count > 0 &&
               scheduling->schedule->runs[scheduling->running.items[0]].end_ns ==
                   scheduling->now_ns) {
            end_one(scheduling);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- the whole */

/* Returns false when it takes too long, or memory is short. */
static bool bound_of(const struct list_schedule_input *input, uint32_t count, int64_t *ret_bound_ns)
{
    int64_t *least_ns = calloc(count, sizeof *least_ns);
    bool is_found = false;
    if (least_ns != NULL) {
        list_schedule_least(input, count, least_ns);
        is_found = list_schedule_bound(input, least_ns, count, ret_bound_ns);
    }
    free(least_ns);
    return is_found;
}

enum list_schedule_status list_schedule_make(const struct list_schedule_input *input,
                                             struct list_schedule **ret_schedule)
{
    uint32_t count = 0;
    int64_t bound_ns = 0;
    if (!is_good(input, &count)) {
        return LIST_SCHEDULE_BAD_INPUT;
    }
    if (count > LIST_SCHEDULE_SUBTASKS) {
        return LIST_SCHEDULE_TOO_MANY;
    }
    if (!has_place(input)) {
        return LIST_SCHEDULE_NOWHERE;
    }
    struct scheduling scheduling = {.input = input,
                                    .schedule = list_schedule_create(count, input->device_count)};
    enum list_schedule_status status = LIST_SCHEDULE_NO_MEMORY;
    if (scheduling.schedule != NULL && scheduling_alloc(&scheduling)) {
        begin(&scheduling);
        status = bound_of(input, count, &bound_ns) && run_all(&scheduling) ? LIST_SCHEDULE_OK
                                                                           : LIST_SCHEDULE_OVERFLOW;
    }
    scheduling_fini(&scheduling);
    if (status != LIST_SCHEDULE_OK) {
        list_schedule_destroy(&scheduling.schedule);
        return status;
    }
    scheduling.schedule->makespan_ns = scheduling.now_ns;
    scheduling.schedule->bound_ns = bound_ns;
    *ret_schedule = scheduling.schedule;
    return LIST_SCHEDULE_OK;
}

/* Returns INT64_MAX when the time is unknown. */
static int64_t single_device_ns(const struct list_schedule_input *input, size_t device)
{
    struct list_schedule *schedule = NULL;
    struct list_schedule_input single = *input;
    single.devices = &input->devices[device];
    single.device_count = 1;
    const bool is_made = list_schedule_make(&single, &schedule) == LIST_SCHEDULE_OK;
    const int64_t makespan_ns = is_made ? schedule->makespan_ns : INT64_MAX;
    list_schedule_destroy(&schedule);
    return makespan_ns;
}

/* Equal times make the device with most slots first; among equals, the cheapest. */
bool list_schedule_best_single(const struct list_schedule_input *input, size_t *ret_device,
                               int64_t *ret_makespan_ns)
{
    size_t widest[LIST_SCHEDULE_CLASSES];
    uint32_t most[LIST_SCHEDULE_CLASSES] = {0};
    int64_t best_ns = INT64_MAX;
    for (size_t i = 0; i < input->device_count; i++) {
        struct list_schedule_input single = *input;
        const uint32_t of_class = input->devices[i].of_class;
        single.devices = &input->devices[i];
        single.device_count = 1;
        if (input->devices[i].slots > most[of_class] && has_place(&single)) {
            most[of_class] = input->devices[i].slots;
            widest[of_class] = i;
        }
    }
    for (uint32_t c = 0; c < list_schedule_classes(input); c++) {
        const int64_t takes_ns = most[c] > 0 ? single_device_ns(input, widest[c]) : INT64_MAX;
        if (takes_ns < best_ns ||
            (takes_ns == best_ns && takes_ns < INT64_MAX && widest[c] < *ret_device)) {
            best_ns = takes_ns;
            *ret_device = widest[c];
        }
    }
    *ret_makespan_ns = best_ns < INT64_MAX ? best_ns : 0;
    return best_ns < INT64_MAX;
}
