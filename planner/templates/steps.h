/* Steps are parts of some work. Each says what it does and needs; edges carry data between them.
 *
 *     step "prefill 1"                        edge 2 -> 3, bytes         step "decode"
 *       matmul 1000x6144x4096:bf16, 32 times  ------------------------>    ...
 *       attention ..., 32 times
 *
 * A step is a list of operations (operations.h), each repeated a number of times, one after the
 * other on one device. Templates make such graphs (template.h); nothing here depends on the kind of
 * work. Edges lead from earlier steps to later ones, so the order of the steps is a topological
 * one.
 *
 * Weights are in sets. Several steps may need the same set, and a device that runs them all stores
 * it once. Each step needs a run of consecutive sets,
 *
 *     sets      | 0 | 1 | 2 | 3 |
 *     prefill 1  ===                     first_set 0, set_count 1
 *     prefill 2      ===
 *     decode     ===============         first_set 0, set_count 4
 *
 * and its weight_bytes are their sum.
 *
 * A chain is the same work cut as finely as stages of a pipeline can be. Each step belongs to a
 * column, and consecutive columns on one device are a stage. The data of a column (weights, keys
 * and values, activations) stays with it.
 *
 *    columns        0        1          2             3
 *    forward      embed  prefill 1  prefill 2              once for each micro-batch, from left to
 *                                                          right; column 0 may have more steps,
 *                                                          such as the look-ups before a prompt
 *    decode       embed  decode 1   decode 2   head        `rounds` times, from head to embed; or
 *    backward     embed  backward 1 backward 2 loss        once, from right to left
 *    once         optimiser ...                            when all micro-batches are through
 *
 * A chain may be divided. Then each step is the part of one of `ways` equal devices, which hold
 * each layer together. Steps, columns and edges are those of the whole chain. The data from column
 * to column is complete at each of the devices. */
#ifndef BOURSE_PLANNER_TEMPLATES_STEPS_H
#define BOURSE_PLANNER_TEMPLATES_STEPS_H

#include "planner/cost/cost.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STEPS_MOST = 1024, /* steps of a graph, and sets of weights */
    STEPS_EDGES = 8192,
    STEPS_PARTS = 4096, /* parts of a step */
    STEP_NAME_SIZE = 24,
};

struct step_part {
    struct operation operation;
    int64_t times; /* >= 1 */
};

enum { STEP_TOLD = 2 }; /* kinds of exchanges between the devices of a divided step */

/* The phase says when a step of a chain runs for each micro-batch. FORWARD is the first pass
 * through all columns. DECODE repeats the pass, and BACKWARD goes through the columns in reverse.
 * ONCE comes after all micro-batches are back. */
enum step_phase { STEP_FORWARD, STEP_DECODE, STEP_BACKWARD, STEP_ONCE, STEP_PHASES };

struct step {
    char name[STEP_NAME_SIZE]; /* "prefill 2"; unique in the graph */
    uint16_t column;           /* column in a chain */
    uint8_t phase;             /* enum step_phase, in a chain */
    struct step_part *parts;
    size_t part_count;
    int64_t weight_bytes; /* weights that all its operations need */
    /* Memory that stays in use beside the weights after the step: keys and values, activations, the
     * optimiser's figures. */
    int64_t held_bytes;
    /* The most memory that any of its operations takes besides weights and held bytes. */
    int64_t working_bytes;
    int64_t passes; /* passes through its weights; >= 1 */
    /* Input of the whole work that this step takes, and result of the whole work that it makes.
     * Storage counts as neither. */
    int64_t brought_bytes, fetched_bytes;
    uint32_t first_set, set_count;
    /* Exchanges between the devices of a layer, in a divided chain, each repeated a number of
     * times. An exchange is an all-reduce, or an all-gather to which each device brings its
     * part. */
    struct step_part told[STEP_TOLD];
    size_t told_count;
    uint32_t renewed_by; /* a later step that changes this step's weights; 0: none */
    /* Bytes of the changed weights. If the two steps are on different devices, these bytes come
     * back before all of it can begin anew. */
    int64_t renewed_bytes;
};

struct step_edge {
    uint32_t from, to; /* ascending; no two edges are between the same two steps */
    int64_t bytes;     /* >= 0 */
    /* Part of `bytes` that lies in sets of both steps. Such weights change, so they have to be
     * sent, but they take no memory beyond the sets. */
    int64_t set_bytes;
};

struct steps {
    struct step *steps;
    size_t step_count; /* >= 1 */
    struct step_edge *edges;
    size_t edge_count;
    int64_t *sets; /* bytes of each set of weights */
    size_t set_count;
    int64_t parameters; /* parameters of its models; 0: no model */
    /* Period in seconds after which all of it begins anew, done or not (real time). 0 means that it
     * is done once. */
    double period_s;
    /* Sums over parts of the batch go over links while later steps run, until a step needs the
     * sum. */
    bool sums_behind;
    uint32_t column_count; /* columns of a chain; 0: it is no chain */
    /* Name of the first column of a chain; lives for ever. NULL means "embed". */
    const char *first_column;
    /* Rounds of the DECODE phase of a chain. The steps of that phase stand for all rounds together;
     * 0 means that there is none. */
    int64_t rounds;
    int64_t round_bytes; /* bytes from the last column to the first, before each round */
};

enum steps_status {
    STEPS_OK,
    STEPS_BAD_VALUE, /* a value is outside its range */
    /* Values do not go together, or an operation does not support a type. */
    STEPS_CONFLICT,
    STEPS_OVERFLOW,  /* a figure does not fit */
    STEPS_TOO_LARGE, /* more steps, edges or operations than a graph may have */
    STEPS_NO_MEMORY,
};

/* Returns the name of a status, such as "CONFLICT"; docs/errors.md lists the names. */
const char *steps_status_name(enum steps_status status);

void steps_destroy(struct steps **self);

/* Returns the index of the step with this name, or steps->step_count when there is none. */
size_t steps_find(const struct steps *steps, const char *name);

struct step_cost {
    double operations, bytes; /* read and written in the device's memory */
    struct figure bound_s, time_s;
    double p90_s;           /* if each operation takes its own p90; 0: unknown */
    struct figure energy_j; /* unknown when the power is */
    bool is_streamed;       /* the weights do not fit */
    bool is_widened;        /* true for some operation, as in cost.h */
    unsigned lacks;         /* gaps of any operation, and of the step's own memory */
};

/* Computes the cost of a step on a device, one operation after the other. NO_MEMORY means that
 * weights, held bytes and working memory together exceed the device, even if each operation fits
 * alone. If `device->stream` is known and all but the weights fits, the weights are streamed again
 * at each pass. For any other refusal, `ret_part` (may be NULL) is the part refused. A refusal
 * leaves `ret_cost` alone. */
enum cost_status steps_cost(const struct cost_device *device, const struct step *step,
                            struct step_cost *ret_cost, size_t *ret_part);

#endif
