/* bench/planner_reality/parts.h declares the parts of planner_reality: work that takes time, a link
 * that is slow, and what runs a plan on two cores.
 *
 * A task is pieces of work one after the other. Each output begins with the hash of what the task's
 * inputs brought, so that bytes that are late, lost or another's show in the output. */
#ifndef BOURSE_BENCH_PLANNER_REALITY_PARTS_H
#define BOURSE_BENCH_PLANNER_REALITY_PARTS_H

#include "base/id.h"
#include "planner/layout/stages.h"
#include "planner/schedule/workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CORES = 2 };

/* Holds this thread to one core. Ends the program where that is refused. */
void pin(int core);

/* ---------------------------------------------------------------- work.c */

enum kind { KIND_COMPRESS, KIND_GEMM, KIND_SORT, KIND_HASH, KINDS };

struct piece {
    enum kind kind;
    uint32_t size; /* KiB of text, rows and columns, numbers of 64 bits, KiB */
};

const char *kind_name(enum kind kind);
uint32_t kind_least(enum kind kind);
uint32_t kind_most(enum kind kind);
/* Returns a figure that the time of the piece is roughly proportional to. */
double piece_units(struct piece piece);

/* The scratch space is the memory and the files of one worker. It is in use from the start, because
 * pages that are new to the machine would be timed with the work. */
struct scratch;
struct scratch *scratch_create(void);
void scratch_destroy(struct scratch **self);

/* Returns the hash of the output. `size` is at most kind_most; `seed` makes the operands. */
struct hash32 piece_run(struct scratch *scratch, struct piece piece, const struct hash32 *seed);
/* Makes what a task sends: bytes that follow from `seed`. The buffer has room for 7 more than
 * `length`. */
void payload_make(uint8_t *ret_bytes, size_t length, const struct hash32 *seed);

/* ---------------------------------------------------------------- calibration.c */

enum { CALIBRATION_POINTS = 5 };

struct calibration {
    uint32_t sizes[KINDS][CALIBRATION_POINTS];
    double seconds[CORES][KINDS][CALIBRATION_POINTS];
    double input_s_per_byte[CORES], output_s_per_byte[CORES]; /* hashed, and made */
    uint32_t outliers;                                        /* samples that were left out */
};

/* Measures each kind at each size `rounds` times, in an order drawn from `seed`, on all cores. */
void calibration_make(const int *cores, struct scratch *const *scratch, uint32_t rounds,
                      uint64_t seed, struct calibration *ret_calibration);
/* Returns the expected time. Between measured sizes it follows straight lines. */
double calibration_seconds(const struct calibration *calibration, uint32_t core,
                           struct piece piece);

/* ---------------------------------------------------------------- wire.c */

struct wire_speed {
    double latency_s, bytes_per_s;
};

struct transfer {
    const uint8_t *from;
    uint8_t *to;
    uint32_t number, bytes;
    int64_t ready_ns, begin_ns, end_ns; /* the link says the last two, by CLOCK_MONOTONIC */
};

/* A wire leads one way from core to core: a socket pair, a thread that sends on one core and a
 * thread that receives on the other. The wire carries one transfer at a time, for latency + bytes /
 * bandwidth, in the order in which transfers were given to it. */
struct wire;

/* `arrived` is called on the receiver's thread when all bytes are there. */
struct wire *wire_create(struct wire_speed speed, const int *from_core, const int *to_core,
                         uint32_t transfers_most, void (*arrived)(void *, const struct transfer *),
                         void *context);
/* The transfer is the caller's, and stays until it has arrived. */
void wire_send(struct wire *wire, struct transfer *transfer);
/* Waits until all transfers have arrived, and frees the wire. */
void wire_destroy(struct wire **self);

/* ---------------------------------------------------------------- cut.c */

/* A line is the layers that all items go through. */
struct line {
    const struct piece *layers;
    uint32_t layer_count, items;
    double item_bytes; /* from stage to stage */
};

struct cut {
    struct stages stages;  /* one on each core; their groups are the cores */
    double stage_s[CORES]; /* of a micro-batch */
    uint32_t items, micro_batches;
    double time_s;
    uint32_t single; /* the core that would be done first alone, and when */
    double single_s;
};

/* Takes the cut and the items of a micro-batch that end first. Returns false when there is none. */
bool cut_line(const struct line *line, const struct calibration *calibration,
              struct wire_speed speed, struct cut *ret_cut);

/* ---------------------------------------------------------------- run.c */

struct work {
    const struct piece *pieces;
    uint32_t count;
};

/* Everything in a plan is borrowed. */
struct plan {
    const struct workload *graph;
    const uint32_t *processor; /* of each task: 0 or 1 */
    const uint32_t *sequence;  /* a topological order: each core runs its tasks in that */
    const struct work *work;   /* of each task */
};

struct run { /* times in seconds from its beginning */
    struct plan plan;
    double *start, *finish;     /* of each task */
    uint32_t *place;            /* how many its core had done before it */
    struct hash32 *output;      /* of each task */
    struct transfer *transfers; /* by graph->in; of what stays on a core bytes and times are 0 */
    int64_t begin_ns;
    double makespan;
    uint8_t **payload, **inbox;
    uint32_t *in_of_out; /* which arc of graph->in each of graph->out is */
};

/* Works out beforehand what lies where and in what order, so that the memory is there when the plan
 * runs. */
struct run *run_create(const struct plan *plan);
void run_destroy(struct run **self);

/* Runs the plan once. The outcome of an earlier run is forgotten. */
void run_once(struct run *run, const int *cores, struct scratch *const *scratch,
              struct wire_speed speed);

/* Returns true when the run kept to the plan. Each core ran its tasks in their order, one at a
 * time, none before its inputs. Each link carried one transfer at a time, none faster than the link
 * is. */
bool run_kept(const struct run *run, struct wire_speed speed);
struct hash32 run_output(const struct run *run); /* of all tasks */

#endif
