/* tests/sim/world.h - the world of the simulator: a virtual clock, events, dice, processes that
 * end, memory that fails, and the trace.
 *
 * Everything in it comes from one seed: the same seed gives the same events in the same order, so
 * the same trace, byte for byte. One event runs at a time; whatever production code runs in it
 * belongs to one *process* (a broker, an agent, a client), whose clocks it reads and whose memory
 * it takes. A process that crashes loses all its memory at once, like a real one. Only the
 * simulator's own files include this. */
#ifndef BOURSE_TESTS_SIM_WORLD_H
#define BOURSE_TESTS_SIM_WORLD_H

#include "base/random.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_US INT64_C(1000)
#define SIM_MS INT64_C(1000000)
#define SIM_S INT64_C(1000000000)

enum dice { DICE_ORDER, DICE_NETWORK, DICE_FAULTS, DICE_WORK, DICE_ENTROPY, DICE_COUNT };

enum fault { /* what the world did to its inhabitants, counted; sim_main.c names them */
             FAULT_LOST,
             FAULT_REPEATED,
             FAULT_REORDERED,
             FAULT_GARBLED,
             FAULT_DELAYED,
             FAULT_CUT,
             FAULT_UNSENT,
             FAULT_BROKER_CRASH,
             FAULT_AGENT_CRASH,
             FAULT_CLIENT_CRASH,
             FAULT_STALL,
             FAULT_MEMORY,
             FAULT_JOURNAL,
             FAULT_TAKEOVER,
             FAULT_NONSENSE,
             FAULT_LIE,
             FAULT_CLOCK,
             FAULT_MEMBER,
             FAULT_LATE,
             FAULT_COUNT
};
extern const char *const fault_names[FAULT_COUNT];

/* ---------------------------------------------------------------- processes */

struct block; /* of memory */

struct process {
    char name[24];
    uint32_t life; /* counts starts: events of an earlier life are void */
    bool runs;
    int64_t monotonic_offset_ns, wall_offset_ns;
    int64_t stalled_until_ns; /* nothing of it runs before (SIGSTOP) */
    struct block *blocks;
    uint32_t failing_in; /* allocations until one fails; 0: none will */
    uint64_t failed;     /* allocations that did */
};

struct world {
    uint64_t seed;
    int64_t now_ns;
    struct random dice[DICE_COUNT];
    uint64_t faults[FAULT_COUNT];
    struct process *current; /* whose code runs; NULL: the world's own */
    bool traces;
    bool calm;              /* faults have stopped */
    bool reads_are_current; /* no answer is older than what was acknowledged before the question */
};
extern struct world world;

void world_start(uint64_t seed, bool traces);

uint64_t draw(enum dice dice, uint64_t bound);   /* 0 .. bound - 1 */
bool chance(enum dice dice, uint32_t per_10000); /* true so many times in 10,000 */
int64_t draw_time(enum dice dice, int64_t least_ns, int64_t most_ns);
/* Flips one drawn bit of the `length` (> 0) bytes. */
void flip_bit(enum dice dice, uint8_t *bytes, size_t length);
void fault_happened(enum fault fault);
uint64_t faults_total(void);

/* ---------------------------------------------------------------- events */

typedef void event_run(void *context, uint64_t a, uint64_t b);
/* `run` after `delay_ns`, unless `process` (NULL: the world) has ended by then; a stalled one gets
 * it when it goes on. */
void event_in(int64_t delay_ns, struct process *process, event_run *run, void *context, uint64_t a,
              uint64_t b);
/* Runs the next event; false when there is none before `until_ns`. */
bool event_next(int64_t until_ns);

/* Production code of `process` is about to run; returns who was before, for process_leave. */
struct process *process_enter(struct process *process);
void process_leave(struct process *before);
void process_begin(struct process *process);
/* All its memory is gone, and what was to happen in it never will. */
void process_end(struct process *process);

/* --------------------------------------------------------------- memory of the simulator itself */

void *sim_alloc(size_t size); /* zeroed; never fails */
void *sim_grow(void *old, size_t size);
void sim_free(void *memory);

/* ---------------------------------------------------------------- trace, and the end */

__attribute__((format(printf, 1, 2))) void trace(const char *format, ...);
/* A promise is broken: prints seed, time and what, and ends the program with status 1. */
__attribute__((format(printf, 1, 2))) _Noreturn void sim_fail(const char *format, ...);

#endif
