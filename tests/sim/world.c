#include "tests/sim/world.h"

#include "tests/sim/market.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world world;

struct event {
    int64_t at_ns;
    uint64_t number; /* events of one moment run in the order made */
    struct process *process;
    uint32_t life;
    event_run *run;
    void *context;
    uint64_t a, b;
};

static struct {
    struct event *heap;
    size_t count, capacity;
    uint64_t made;
} events;

/* ---------------------------------------------------------------- dice */

void world_start(uint64_t seed, bool traces)
{
    memset(&world, 0, sizeof world);
    world.seed = seed;
    world.now_ns = INT64_C(1000) * SIM_S;
    world.traces = traces;
    for (uint64_t i = 0; i < DICE_COUNT; i++) {
        world.dice[i] = random_seeded(seed * 64 + i);
    }
}

uint64_t draw(enum dice dice, uint64_t bound)
{
    return random_below(&world.dice[dice], bound);
}

/* C does not say in which order two draws of one expression happen: each has a statement. */
void flip_bit(enum dice dice, uint8_t *bytes, size_t length)
{
    const uint64_t at = draw(dice, length);
    const uint64_t bit = draw(dice, 8);
    bytes[at] ^= (uint8_t)(1U << bit);
}

bool chance(enum dice dice, uint32_t per_10000)
{
    return per_10000 > 0 && draw(dice, 10000) < per_10000;
}

int64_t draw_time(enum dice dice, int64_t least_ns, int64_t most_ns)
{
    return least_ns + (int64_t)draw(dice, (uint64_t)(most_ns - least_ns) + 1);
}

void fault_happened(enum fault fault)
{
    world.faults[fault]++;
}

uint64_t faults_total(void)
{
    uint64_t total = 0;
    for (size_t i = 0; i < FAULT_COUNT; i++) {
        total += world.faults[i];
    }
    return total;
}

/* ---------------------------------------------------------------- events: a binary heap */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

static void push(const struct event *event)
{
    if (events.count == events.capacity) {
        events.capacity = events.capacity == 0 ? 1024 : 2 * events.capacity;
        events.heap = sim_grow(events.heap, events.capacity * sizeof *events.heap);
    }
    size_t at = events.count++;
    for (; at > 0 && is_before(event, &events.heap[(at - 1) / 2]); at = (at - 1) / 2) {
        events.heap[at] = events.heap[(at - 1) / 2];
    }
    events.heap[at] = *event;
}

static struct event pop(void)
{
    struct event first = events.heap[0];
    struct event last = events.heap[--events.count];
    size_t at = 0;
    for (size_t child = 1; child < events.count; child = 2 * at + 1) {
        if (child + 1 < events.count && is_before(&events.heap[child + 1], &events.heap[child])) {
            child++;
        }
        if (!is_before(&events.heap[child], &last)) {
            break;
        }
        events.heap[at] = events.heap[child];
        at = child;
    }
    events.heap[at] = last;
    return first;
}

void event_in(int64_t delay_ns, struct process *process, event_run *run, void *context, uint64_t a,
              uint64_t b)
{
    assert(delay_ns >= 0);
    struct event event = {.at_ns = world.now_ns + delay_ns,
                          .number = events.made++,
                          .process = process,
                          .life = process == NULL ? 0 : process->life,
                          .run = run,
                          .context = context,
                          .a = a,
                          .b = b};
    push(&event);
}

static bool is_void(const struct event *event)
{
    return event->process != NULL && (!event->process->runs || event->process->life != event->life);
}

bool event_next(int64_t until_ns)
{
    if (events.count == 0 || events.heap[0].at_ns > until_ns) {
        world.now_ns = until_ns;
        return false;
    }
    struct event event = pop();
    world.now_ns = event.at_ns;
    if (is_void(&event)) {
        return true;
    }
    if (event.process != NULL && event.process->stalled_until_ns > world.now_ns) {
        event.at_ns = event.process->stalled_until_ns; /* its number keeps its place in the order */
        push(&event);
        return true;
    }
    struct process *before = process_enter(event.process);
    event.run(event.context, event.a, event.b);
    process_leave(before);
    return true;
}

/* ---------------------------------------------------------------- processes */

struct process *process_enter(struct process *process)
{
    struct process *before = world.current;
    world.current = process;
    return before;
}

void process_leave(struct process *before)
{
    world.current = before;
}

void process_begin(struct process *process)
{
    assert(!process->runs);
    process->runs = true;
    process->life++;
    process->stalled_until_ns = 0;
    process->failing_in = 0;
}

/* ---------------------------------------------------------------- trace */

void trace(const char *format, ...)
{
    if (!world.traces) {
        return;
    }
    char line[512];
    int head = snprintf(line, sizeof line, "%10.6f %-8s ", (double)world.now_ns / (double)SIM_S,
                        world.current == NULL ? "-" : world.current->name);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line + head, sizeof line - (size_t)head, format, arguments); /* cut */
    va_end(arguments);
    (void)puts(line);
}

void sim_fail(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)fflush(stdout);
    (void)fprintf(stderr,
                  "seed %llu failed at %.6f s, in %s: %s\n"
                  "  replay: %s --seed %llu --trace\n",
                  (unsigned long long)world.seed, (double)world.now_ns / (double)SIM_S,
                  world.current == NULL ? "the world" : world.current->name, text, market_command,
                  (unsigned long long)world.seed);
    _Exit(1);
}
