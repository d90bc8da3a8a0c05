/* The plan says which device does which part of a piece of work, when, at what cost, and how far
 * that is from the optimum.
 *
 * The work is steps (templates/steps.h). The devices are figures (cost.h) at memories of a topology
 * (topology.h). Four forms are computed, all timed by the same rules, and the best by the objective
 * is taken:
 *
 *     single     all steps on one device             h100 1  |=prefill=|=====decode=====|
 *     graph      each step where it does best        h100 1  |=prefill=|        |=prefill=|
 *                                                    tpu 1            ~|==decode==|
 *     split      each device all steps, of a share   h100 1  |= 5 of 8 =|
 *                of the batch; what does not fit     tpu 1   |= 2 =|= 1 =|
 *                at once one part after the other
 *     pipeline   each device some columns of the     h100 1  |0|1|2|3|
 *                work's chain, of all micro-batches  tpu 1     ~|0|1|2|3|
 *
 * Only work with a chain (templates/steps.h) has pipelines. Micro-batches go forward and then
 * decode in rounds, or forward and backward (chain/stage_chain.h). Several devices may hold one
 * stage together (plan_team.h).
 *
 * A device may hold parts of the batch at once, but not the whole batch. Then a single device does
 * one part after the other. A device that may be taken away does so, too, if that lowers the
 * expected time.
 *
 * No plan is worse than the best single device, which is one of the candidates. The objective only
 * chooses; it does not change the candidates. So under the same limits, the plan of one objective
 * is never beaten in its own terms by the plan of another. Subsets of the devices are planned for,
 * too, so that a useless device does no harm (plan_sets in plan_internal.h). Each figure carries
 * its source.
 *
 * These rules hold for all forms:
 *
 * Unknown figures are never taken for large or fast. A device without a known memory does nothing.
 * A device without a known bandwidth does only work that was measured there (cost.h).
 *
 * Weights lie where they are needed before time begins, once on a device whatever steps share them.
 * Bringing weights, input from outside and fetched results do not count. A divided batch lies at
 * one of the devices, its home. Input of other shares comes from there, and their results go there
 * (plan_course.h).
 *
 * Everything a device has at a time fits its memory, or its weights come over `stream` again at
 * each pass; otherwise the work is not planned there. Held bytes of a step are there while it runs.
 * The part of them that uses no edge is there all the time. Data of an edge is at its sender until
 * it is sent. It is at its receiver from the start of the transfer, unless it lies in weights that
 * both have. A memory that several devices share is checked against each of them alone.
 *
 * A transfer holds the ports of its path (topology.h), first come first served. Among transfers of
 * one moment, the earlier sender step goes first, then the earlier receiver.
 *
 * A device is leased as a whole, from its first step or transfer to its last. The price of that
 * time is rounded up to a micro-credit. The energy is that of the steps, at the power that cost.h
 * knows. If `idle_w` is known, the idle time of the lease counts, too. Links use no energy.
 *
 * Times on a device that may be taken away are expected times (spot.h), for each step apart. The
 * results of earlier steps are not lost.
 *
 * Jobs have plans, too (planner/plan/plan_make.h). The exchange gives the subtasks of a job out by
 * rules of its own, so the plan of a job is what these rules lead to. Its form is the graph. Each
 * row is one subtask, and rows stand in the order of subtasks. Devices of a job have lanes, each of
 * which runs one subtask at a time.
 *
 * The same input gives the same plan, since searches are bounded by steps, not by a clock. Times
 * are doubles and enter no log. */
#ifndef BOURSE_PLANNER_LAYOUT_PLAN_H
#define BOURSE_PLANNER_LAYOUT_PLAN_H

#include "base/limit.h"
#include "planner/cost/spot.h"
#include "planner/cost/topology.h"
#include "planner/schedule/portfolio.h"
#include "planner/templates/template.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PLAN_DEVICES = TOPOLOGY_MEMORIES,
    PLAN_NAME_SIZE = 64,
    PLAN_WHAT_SIZE = 72,
};
/* Index without a device: a step may run anywhere, or there is no device. */
#define PLAN_ANYWHERE UINT32_MAX
#define PLAN_UNPRICED INT64_C(-1)
/* The most step times that the searches compute among sixteen devices; fewer devices get a
 * proportional part. All subsets together get twice as much, and searches within limits as much
 * again. */
#define PLAN_EFFORT UINT64_C(2000000)

enum plan_objective {
    PLAN_TIME,   /* the least makespan */
    PLAN_PRICE,  /* the least price of all leases */
    PLAN_ENERGY, /* the least energy */
    /* The least price + worth x makespan: the cost of the plan and of waiting for it. The same plan
     * has the greatest worth of time saved, less the price. It is not the `value` of a bid, which
     * is for a unit of work. */
    PLAN_VALUE,
    PLAN_OBJECTIVES,
};

enum plan_form { PLAN_SINGLE, PLAN_GRAPH, PLAN_SPLIT, PLAN_PIPELINE, PLAN_FORMS };

struct plan_device {
    const char *name;               /* "h100 1", for messages; lives as long as the call */
    const struct cost_device *cost; /* lives as long as the call */
    uint32_t memory;                /* memory of the topology that holds its data */
    int64_t price_micro;            /* price of an hour of the device; PLAN_UNPRICED: unknown */
    struct figure idle_w;           /* watts while leased and idle; may be unknown */
    struct spot_risk risk;          /* all zeros: it is not taken away */
};

/* The caller keeps the input; the plan keeps nothing of it. */
struct plan_input {
    const struct steps *steps;
    /* Template that made the steps from `values`, to make shares of its batch. NULL means that the
     * work cannot be divided. */
    const struct template *template;
    const int64_t *values;
    const struct plan_device *devices;
    size_t device_count;             /* 1 to PLAN_DEVICES */
    const struct topology *topology; /* NULL: no data can be sent */
    enum plan_objective objective;
    double deadline_s;    /* limit of the makespan; 0: none */
    int64_t budget_micro; /* limit of the price, or LIMIT_NONE */
    int64_t worth_micro;  /* worth of an hour saved, above 0: for PLAN_VALUE only */
    /* Required device of each step, or PLAN_ANYWHERE. NULL means that no step has one. With
     * required devices, only the forms single and graph exist. */
    const uint32_t *placed;
    /* Histories of whole steps, [step * device_count + device], in millionths of their bound
     * (cost_learn); count 0 means none. They apply to shares, too. NULL means that there are none
     * at all. */
    const struct history_summary *histories;
    bool may_fall_back; /* a step that cannot run on its required device may run anywhere */
    /* A step whose time is known on no device is left out, and the plan says so. Without this flag,
     * such work is not planned. */
    bool may_leave_out;
    uint64_t effort; /* see PLAN_EFFORT; 0: no search */
};

enum plan_status {
    PLAN_OK,
    PLAN_BAD_INPUT, /* no device or too many, a wrong memory, or a figure out of its range */
    PLAN_TOO_MANY,  /* a job has too many subtasks */
    PLAN_NOWHERE,   /* a step, or a subtask of a job, can run on no device */
    /* A step can run on no device, and an unknown figure of a device might be the reason. */
    PLAN_UNKNOWN,
    PLAN_PLACEMENT, /* a step cannot run on its required device */
    PLAN_NO_ROOM,   /* each step fits somewhere, but not all of them together */
    /* No link carries the data between steps that no one device can all run. */
    PLAN_UNREACHED,
    /* The price is the objective or has a limit, and no suitable device has a price. */
    PLAN_NO_PRICE,
    /* The energy is the objective, and no suitable device has a known energy. */
    PLAN_NO_POWER,
    PLAN_DEADLINE, /* no plan meets the deadline ... */
    PLAN_BUDGET,   /* ... or the budget ... */
    PLAN_LIMITS,   /* ... or both at once, though each alone is met */
    /* The form does not apply: there is no batch, one item, one device, or required devices. */
    PLAN_INDIVISIBLE,
    PLAN_NO_GAIN, /* the form applies, but its plan uses one device */
    PLAN_NO_MEMORY,
};

/* The cause of a failure; for a limit, also the value that could be met. */
struct plan_fault {
    uint32_t step;   /* PLAN_ANYWHERE: no step in particular */
    uint32_t device; /* PLAN_ANYWHERE: no device in particular */
    /* DEADLINE: seconds, BUDGET: micro-credits. It is the least value found that meets the other
     * limit, else 0. */
    double least;
    double bound; /* the value that no plan can beat; 0: unknown */
    struct problem problem;
};

/* One piece of work on a device. */
struct plan_row {
    uint32_t device;
    uint32_t lane; /* of its device, from 0; 0 but for jobs */
    /* Split: all steps. Pipeline: the steps of the stage. Otherwise one step, or one subtask. */
    uint32_t first_step, step_count;
    /* Team of a stage whose layers are divided: the number of devices in its team, whose rows are
     * adjacent, and the index of this one. Otherwise 0 or 1, and 0. */
    uint32_t team_size, team_number;
    int64_t items; /* items of the batch: all, or the share */
    /* Parts of a share, made one after the other because the whole does not fit or may be
     * interrupted. Otherwise 0 or 1. */
    int64_t rounds;
    double start_s, finish_s;
    /* finish - start; a stage also waits between micro-batches, so its busy time is less. */
    double busy_s;
    /* busy_s with its source. An unknown time means that the row is left out and takes no time
     * here. */
    struct figure time_s;
    double p90_s;     /* time that nine of ten runs take at most; 0: unknown */
    uint32_t samples; /* samples behind the time; the fewest of its steps; 0: none */
    bool is_streamed; /* weights are streamed again at each pass */
    bool is_left_out;
    /* Weights are stored in a type that the device does not multiply in; it multiplies in the
     * model's type. */
    bool is_widened;
    double bytes_in; /* bytes from other memories; 0 for jobs */
    struct figure energy_j;
    int64_t price_micro; /* the row's part of the device's price (plan_make); PLAN_UNPRICED */
};

/* Data from one row to another. A pipeline lists the transfers of the first micro-batch. A sum over
 * shares has one transfer for each two neighbours, with all bytes and the whole time. */
struct plan_transfer {
    uint32_t from, to; /* rows */
    double bytes;
    enum topology_kind kind;
    double start_s, finish_s;
    uint32_t links[TOPOLOGY_HOPS]; /* link indexes of the topology */
    uint32_t link_count;
};

/* A time in which a started row waits, for other rows or for data over links. Splits and pipelines
 * have waits. */
struct plan_wait {
    uint32_t row;
    double from_s, until_s;
};

/* One device; all zeros mean that it is not used. */
struct plan_use {
    uint32_t row_count;
    uint32_t lanes;         /* lanes used: 1 but for jobs */
    double first_s, last_s; /* begin and end of the device's lease */
    double busy_s;          /* sum over the device's lanes */
    double share;           /* busy over makespan of its lanes: 0 to 1 */
    double bytes_in, bytes_out;
    double memory_bytes; /* the most that it has at a time */
    struct figure energy_j;
    int64_t price_micro; /* PLAN_UNPRICED */
};

/* The result of a form. */
struct plan_outcome {
    enum plan_status status;  /* OK: a plan exists within the limits */
    struct figure makespan_s; /* unknown: none was found */
    double p90_s;             /* if every row takes its p90_s; 0: unknown */
    /* Energy of the steps, and of idle time when it is known for all devices used. */
    struct figure energy_j;
    bool counts_idle;    /* energy_j contains the idle time */
    int64_t price_micro; /* PLAN_UNPRICED */
    /* Value of the objective: seconds, micro-credits or joules; INFINITY means unknown. */
    double merit;
    uint32_t device_count;  /* devices used */
    struct problem problem; /* the reason when there is no plan */
};

/* The best result of one search method of a form. */
struct plan_variant {
    enum plan_form form;
    const char *found_by; /* lives for ever */
    struct plan_outcome outcome;
};
enum { PLAN_VARIANTS = 12 };

struct plan_slack {      /* all zeros: there was none */
    uint32_t moved;      /* steps on another device */
    int64_t saved_micro; /* 0: none, or no price is known */
    double saved_j;      /* energy saved; below 0: the plan is cheaper but uses more energy */
};

struct plan {
    enum plan_form form;  /* the chosen form */
    const char *found_by; /* "heft", "local search", "water-filling": lives for ever */
    struct plan_outcome total;
    struct plan_outcome forms[PLAN_FORMS]; /* result of each form */
    /* Pipelines list each kind of stages. Shares list: devices, and groups of each size. */
    struct plan_variant variants[PLAN_VARIANTS];
    size_t variant_count;
    uint32_t single;     /* the device of forms[PLAN_SINGLE]; PLAN_ANYWHERE: none */
    double bound;        /* no plan has less merit; 0: unknown */
    double gap;          /* merit / bound - 1; -1: unknown */
    double time_bound_s; /* no plan has a shorter makespan */
    /* Sorted by start, device and step; the rows of a job are indexed by subtask. */
    struct plan_row *rows;
    size_t row_count;
    char (*names)[PLAN_WHAT_SIZE];   /* of rows: "layers 1-10"; NULL: steps name them */
    struct plan_transfer *transfers; /* sorted by start */
    size_t transfer_count;
    struct plan_wait *waits; /* sorted by row, then by start */
    size_t wait_count;
    struct plan_use *uses; /* indexed by device */
    size_t device_count;
    uint32_t lanes;                           /* jobs: lanes of all devices */
    int64_t micro_batches, micro_batch_items; /* 0 unless the form is a pipeline */
    bool sums_behind;                         /* split: sums over links run behind other work */
    uint32_t left_out;                        /* steps left out */
    uint32_t fallen_back;                     /* steps that are not on their required device */
    /* Saving of a plan by time, from moving steps that no other step waits for, without a later
     * end. */
    struct plan_slack slack;
};

/* Searches a plan, which the caller owns; its rows have no prices. Any status but OK gives none,
 * and `ret_fault` says why. INDIVISIBLE and NO_GAIN occur only as the status of a form. */
enum plan_status plan_search(const struct plan_input *input, struct plan **ret_plan,
                             struct plan_fault *ret_fault);
void plan_destroy(struct plan **self);

/* Returns the period at which the whole work can be repeated: the most busy time of any device or
 * link. Memory, and the links of a pipeline, do not count. */
double plan_round_s(const struct plan *plan);

const char *plan_status_name(enum plan_status status);          /* "NOWHERE" */
const char *plan_objective_name(enum plan_objective objective); /* "time" */
const char *plan_form_name(enum plan_form form);                /* "pipeline" */
/* Returns false when no objective has this name. */
bool plan_objective_find(const char *name, enum plan_objective *ret_objective);

#endif
