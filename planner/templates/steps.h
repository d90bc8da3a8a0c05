/* planner/templates/steps.h - work as steps: what each does and needs, and what flows from one to
 * another.
 *
 *     step "prefill 1"                        edge 2 -> 3, bytes         step "decode"
 *       matmul 1000x6144x4096:bf16, 32 times  ------------------------>    ...
 *       attention ..., 32 times
 *
 * A step is a list of operations (operations.h), each done so many times, one after the other on
 * one device. Templates make such graphs (template.h); nothing here knows what they stand for.
 * Edges lead from earlier steps to later ones: the order of the steps is a topological one.
 *
 * Weights are in sets: several steps may need the same, and one device that does them all has it
 * once. What a step needs of them is a row of sets,
 *
 *     sets      | 0 | 1 | 2 | 3 |
 *     prefill 1  ===                     first_set 0, set_count 1
 *     prefill 2      ===
 *     decode     ===============         first_set 0, set_count 4
 *
 * and its weight_bytes are their sum.
 *
 * A line is the same work cut as finely as stages of a pipeline can be: each step is of a column,
 * and columns that follow one another on one device are a stage. What a column has to have
 * (weights, keys and values, activations) stays with it.
 *
 *     columns        0        1          2               3
 *     there        embed  prefill 1  prefill 2                       once for each micro-batch, from left to right. Column 0 may
 *                                                                    have more, such as all that is looked up before a prompt
 *     around       embed  decode 1   decode 2     head -> embed      `rounds` times; or
 *     back         embed  backward 1 backward 2   loss               once, from right to left
 *     once         optimiser ...                                     when all micro-batches are through
 *
 * A line may be divided: then each step is what one of `ways` alike devices does of it, which hold
 * each layer together. Steps, columns and edges are those of the whole line; what flows from column
 * to column is whole at each of the devices.
 *
 * Pure. */
#ifndef BOURSE_PLANNER_TEMPLATES_STEPS_H
#define BOURSE_PLANNER_TEMPLATES_STEPS_H

#include "planner/cost/cost.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STEPS_MOST = 1024, /* steps of a graph, and sets of weights */
    STEPS_EDGES = 8192,
    STEPS_PARTS = 4096, /* of a step */
    STEP_NAME_SIZE = 24,
};

struct step_part {
    struct operation operation;
    int64_t times; /* >= 1 */
};

enum { STEP_TOLD = 2 }; /* kinds of what a step tells others */

/* When a step of a line is done, of each micro-batch: on the way there through all columns, around
 * and around through all of them, on the way back, or once, when all micro-batches are back. */
enum step_phase { STEP_THERE, STEP_AROUND, STEP_BACK, STEP_ONCE, STEP_PHASES };

struct step {
    char name[STEP_NAME_SIZE]; /* "prefill 2": no other step's */
    uint16_t column;           /* of a line */
    uint8_t phase;             /* of a line: step_phase */
    struct step_part *parts;
    size_t part_count;
    int64_t weight_bytes; /* of all its operations: what must be there */
    int64_t held_bytes;   /* stays beside the weights when it is done: keys and values, activations,
                              an optimiser's figures */
    int64_t working_bytes; /* the most that any of its operations takes besides these two */
    int64_t passes;        /* times that it goes through its weights; >= 1 */
    int64_t brought_bytes,
        fetched_bytes; /* of what the whole work is given and what it is for: what this step takes
                          of the one, and makes of the other. From storage and to it is neither */
    uint32_t first_set, set_count;
    struct step_part
        told[STEP_TOLD]; /* of a line that is divided: what the devices of a layer tell one another,
                            each so many times. An all-reduce, or a copy of what all of them then
                            have, of which each brings its part */
    size_t told_count;
    uint32_t renewed_by;   /* a later step that changes weights of this one; 0: none does */
    int64_t renewed_bytes; /* of those: where the two are apart, they come from there before all of
                              it can begin anew */
};

struct step_edge {
    uint32_t from, to; /* from < to; no two edges are between the same two steps */
    int64_t bytes;     /* >= 0 */
    int64_t set_bytes; /* of these, what lies in sets that both need: weights that change, and so
                          have to come from one device to the other, but take no more room than the
                          sets do */
};

struct steps {
    struct step *steps;
    size_t step_count; /* >= 1 */
    struct step_edge *edges;
    size_t edge_count;
    int64_t *sets; /* bytes of each set of weights */
    size_t set_count;
    int64_t parameters; /* of the models in it; 0: there is none */
    double period_s;  /* after which all of it begins anew, whether or not it is done: real time; 0:
                         it is  done once */
    bool sums_behind; /* what is summed over parts of the batch goes over links while the steps
                         after it are done, until one needs it */
    uint32_t column_count;    /* of a line; 0: it is none */
    const char *first_column; /* of a line: what its first column is called; lives for ever. NULL:
                                 "embed" */
    int64_t rounds; /* of a line: how often what goes around does; its steps say what all rounds
                       take. 0: nothing */
    int64_t round_bytes; /* from the last column to the first, before each round */
};

enum steps_status {
    STEPS_OK,
    STEPS_BAD_VALUE, /* outside what it may be */
    STEPS_CONFLICT, /* values that do not go together, or a type that an operation is not done in */
    STEPS_OVERFLOW, /* a figure does not fit */
    STEPS_TOO_LARGE, /* more steps, edges or operations than a graph may have */
    STEPS_NO_MEMORY,
};

/* "CONFLICT"; docs/errors.md lists them. */
const char *steps_status_name(enum steps_status status);

void steps_destroy(struct steps **self);

/* The step of that name, or steps->step_count. */
size_t steps_find(const struct steps *steps, const char *name);

struct step_cost {
    double operations, bytes; /* read and written in the device's memory */
    struct figure bound_s, time_s;
    double p90_s;           /* if all of its operations take theirs; 0: unknown */
    struct figure energy_j; /* unknown when the power is */
    bool is_streamed;       /* its weights do not fit */
    bool is_widened;        /* of some operation, as in cost.h */
    unsigned lacks;         /* of any, and of the step's own room */
};

/* What a step takes on a device, one operation after the other. NO_MEMORY: weights, what is held
 * and working memory together are more than the device has, whether or not each operation by itself
 * would fit; with `device->stream` known, and if all but the weights fits, all of them come over it
 * at each pass. Any other refusal is that of part `ret_part` (may be NULL); it and NO_MEMORY leave
 * `ret_cost` alone. */
enum cost_status steps_cost(const struct cost_device *device, const struct step *step,
                            struct step_cost *ret_cost, size_t *ret_part);

#endif
