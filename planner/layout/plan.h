/* planner/layout/plan.h - which of some devices does which part of a piece of work, when, at what
 * cost, and how far that is from the best possible.
 *
 * The work is steps (templates/steps.h), the devices are figures (cost.h) that lie at memories of a
 * topology (topology.h). Four forms are worked out, each with the times that the same rules give
 * it, and the best by the objective is taken:
 *
 *     single     all steps on one device             h100 1  |=prefill=|=====decode=====|
 *     graph      each step where it does best        h100 1  |=prefill=|        |=prefill=|
 *                                                    tpu 1            ~|==decode==|
 *     split      each device all steps, of a share   h100 1  |= 5 of 8 =|
 *                of the batch; what does not fit     tpu 1   |= 2 =|= 1 =|
 *                at once one part after the other
 *     pipeline   each device some steps that follow  h100 1  |0|1|2|3|
 *                one another, of all micro-batches   tpu 1     ~|0|1|2|3|
 *
 * Of work that has a line (templates/steps.h) a pipeline may also be of stages of its columns,
 * there and around again and again, or there and back (plan_line.h), and a stage, also the only
 * one, be held by several devices (plan_team.h).
 *
 * On a device that holds parts of the batch at once, but not all of it, a single does one part
 * after the other; on one that may be taken away also where it holds all of it, if less is expected
 * so.
 *
 * None is worse than the best single device, for that is one of them. What is worked out does not
 * depend on the objective, which only chooses: none is beaten in its own terms by the plan of
 * another under the same limits. Some of the devices are planned for as if there were no others, so
 * that what does not help does no harm (plan_sets in plan_inner.h). What a figure rests on goes
 * with it.
 *
 * What holds of all forms:
 *  - What is not known of a device is never taken for large or fast: without a memory it does
 * nothing, without a bandwidth nothing
 *    that was not measured there (cost.h).
 *  - Weights lie where they are needed before time begins, once on a device whatever steps share
 * them. What brings them
 *    there, input that is brought and results that are fetched do not count. But a batch that is divided lies at one of
 *    the devices, its home: other shares' input comes from there, and their results go there (plan_course.h).
 *  - All that a device has at a time fits its memory, or its weights come over its `stream` again
 * at each pass, or
 *    it is not planned. A step's held bytes are there while it runs; what of them comes over no edge and leaves over none, all
 *    the time. What an edge carries is at its sender until it is carried, and at its receiver from when it begins to be, but for
 *    what lies in their weights. A memory that several devices share is held against each of them alone.
 *  - A transfer holds the ports of its path (topology.h), first come first served; of those of one
 * moment that of the step
 *    that comes first, then to that which does.
 *  - A device is leased whole, from when the first step or transfer of it begins to when the last
 * one ends; its price
 *    for that time is rounded up to a micro-credit. Its energy is that of the steps at the power that cost.h knows, and where
 *    `idle_w` is known that for the rest of its lease. Links use none.
 *  - Of a device that may be taken away, times are those expected (spot.h), for each step apart:
 * what earlier steps made is
 *    not lost.
 *
 * The same input gives the same plan: searches are bounded by steps, not by a clock. Times are
 * doubles and enter no log. Pure. */
#ifndef BOURSE_PLANNER_LAYOUT_PLAN_H
#define BOURSE_PLANNER_LAYOUT_PLAN_H

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
#define PLAN_ANYWHERE UINT32_MAX /* of a step: no device in particular. Of a device: none */
#define PLAN_UNPRICED INT64_C(-1)
#define PLAN_UNLIMITED INT64_C(-1)
/* So many steps' times are worked out, at most, by the searches among sixteen devices, among fewer
 * in proportion; for all sets of them together twice as many, and within limits as many again. */
#define PLAN_EFFORT UINT64_C(2000000)

enum plan_objective {
    PLAN_TIME,   /* the least makespan */
    PLAN_PRICE,  /* the least price of all leases */
    PLAN_ENERGY, /* the least energy */
    PLAN_VALUE,  /* the least of price + worth x makespan: what it costs, and what waiting for it
                    costs. The same  plan is best by what an hour sooner is worth, less the price.
                    Not  the `value` of a bid, which is  for a unit of work */
    PLAN_OBJECTIVES,
};

enum plan_form { PLAN_SINGLE, PLAN_GRAPH, PLAN_SPLIT, PLAN_PIPELINE, PLAN_FORMS };

struct plan_device {
    const char *name;               /* "h100 1", for messages; lives as long as the call */
    const struct cost_device *cost; /* as long as the call, too */
    uint32_t memory;                /* of the topology: where its data lies */
    int64_t price_micro;            /* per hour of all of it; PLAN_UNPRICED: unknown */
    struct figure idle_w;           /* watts while it is leased and does nothing; may be unknown */
    struct spot_risk risk;          /* all zeros: it is not taken away */
};

/* The caller's; nothing of it is kept. */
struct plan_input {
    const struct steps *steps;
    const struct template
        *template;         /* what made them, from `values`: to make shares of its batch. NULL: */
    const int64_t *values; /* the work cannot be divided */
    const struct plan_device *devices;
    size_t device_count;             /* 1 to PLAN_DEVICES */
    const struct topology *topology; /* NULL: nothing can be carried */
    enum plan_objective objective;
    double deadline_s;      /* the makespan may be; 0: as long as it likes */
    int64_t budget_micro;   /* the price may be; PLAN_UNLIMITED */
    int64_t worth_micro;    /* of an hour sooner, above 0: for PLAN_VALUE only */
    const uint32_t *placed; /* by step: the device that it has to be on, or PLAN_ANYWHERE. NULL:
                               none has to. Then there are only the forms single and graph */
    const struct history_summary
        *histories;     /* [step * device_count + device], each of a whole step in millionths of its
                               bound (cost_learn), count 0: none. NULL: none at all. They speak of
                           shares, too */
    bool may_fall_back; /* a step that cannot run where it has to be may be anywhere */
    bool may_leave_out; /* a step of which the time is known on no device does not count, and is
                           said so; without it such work is not planned */
    uint64_t effort;    /* see PLAN_EFFORT; 0: no search */
};

enum plan_status {
    PLAN_OK,
    PLAN_BAD_INPUT, /* no device or too many, a memory that is not, a figure out of its range */
    PLAN_NOWHERE,   /* a step that can run on no device */
    PLAN_UNKNOWN,   /* the same, and a figure of a device that might do it is not known */
    PLAN_PLACEMENT, /* a step cannot run where it has to be */
    PLAN_NO_ROOM,   /* each step fits somewhere, and not all of them together */
    PLAN_UNREACHED, /* no link carries what flows between steps that no one device can all run */
    PLAN_NO_PRICE,  /* the price is asked for or limited, and no device that could do it has one */
    PLAN_NO_POWER,  /* the same of energy */
    PLAN_DEADLINE,  /* nothing found keeps to the deadline ... */
    PLAN_BUDGET,    /* ... the budget ... */
    PLAN_LIMITS,    /* ... both at once, though each alone */
    PLAN_INDIVISIBLE, /* of a form only: no batch, a batch of one, one device, or steps that are
                         placed */
    PLAN_NO_GAIN,     /* of a form only: it comes to one device */
    PLAN_NO_MEMORY,
};

/* What is wrong. Of a limit also what could be met. */
struct plan_fault {
    uint32_t step;   /* PLAN_ANYWHERE: none in particular */
    uint32_t device; /* the same */
    double least;    /* DEADLINE: seconds, BUDGET: micro-credits: the least found that keeps to the
                        other limit; else 0 */
    double bound;    /* and what no plan whatever can beat; 0: not known */
    struct problem problem;
};

/* One thing that a device does. */
struct plan_row {
    uint32_t device;
    uint32_t first_step,
        step_count; /* split: all of them; pipeline: those of the stage; else one */
    uint32_t team_size,
        team_number; /* of a stage whose layers are divided: how many devices hold it, whose rows
                        are next to one another, and which of them this is; else 0 or 1, and 0 */
    int64_t items;   /* of the batch: all, or the share */
    int64_t rounds;  /* of a share: it is made in so many parts, one after the other, for all of it
                        does not fit, or may be taken away; else 0 or 1 */
    double start_s, finish_s;
    double busy_s; /* finish - start, but for a stage, which waits between micro-batches */
    struct figure
        time_s;   /* busy_s, and what it rests on; unknown: it is left out and takes no time here */
    double p90_s; /* nine of ten take at most; 0: unknown */
    uint32_t samples; /* of a history that it rests on, of several steps the fewest; 0: of none */
    double bytes_in;  /* that come from other memories */
    struct figure energy_j;
    bool is_streamed; /* weights come again at each pass */
    bool is_left_out;
    bool is_widened; /* weights are stored in a type that the device does not multiply in: it does
                        so in the model's */
    char what[PLAN_WHAT_SIZE]; /* of stages of a line: "layers 1-10"; empty: its steps say so */
};

/* From one row to another. Of a pipeline those of the first micro-batch; of a sum over shares one
 * for each two neighbours, for all that goes between them, in the time of all of it. */
struct plan_transfer {
    uint32_t from, to; /* rows */
    double bytes;
    enum topology_kind kind;
    double start_s, finish_s;
    uint32_t links[TOPOLOGY_HOPS]; /* of the topology */
    uint32_t link_count;
};

/* From when to when a row that has begun does nothing: it waits for others, or for what comes over
 * links. Of splits and pipelines. */
struct plan_wait {
    uint32_t row;
    double from_s, until_s;
};

struct plan_use { /* of a device; all zeros: it is not used */
    uint32_t row_count;
    double first_s, last_s; /* its lease */
    double busy_s;
    double share; /* busy over makespan: 0 to 1 */
    double bytes_in, bytes_out;
    double memory_bytes; /* the most that it has at a time */
    struct figure energy_j;
    int64_t price_micro; /* PLAN_UNPRICED */
};

/* What a form comes to. */
struct plan_outcome {
    enum plan_status status;  /* OK: it can be done, within the limits */
    struct figure makespan_s; /* unknown: none was found */
    double p90_s;             /* if every row takes its p90_s; 0: unknown */
    struct figure
        energy_j;     /* of the steps, and of idle time where that is known of all devices used */
    bool counts_idle; /* it is */
    int64_t price_micro; /* PLAN_UNPRICED */
    double
        merit; /* what the objective is about: seconds, micro-credits, joules; INFINITY: unknown */
    uint32_t device_count;  /* used */
    struct problem problem; /* why not */
};

/* A way by which plans of a form are looked for, at its best. */
struct plan_variant {
    enum plan_form form;
    const char *found_by; /* lives for ever */
    struct plan_outcome outcome;
};
enum { PLAN_VARIANTS = 12 };

struct plan_slack {      /* all zeros: there was none to use */
    uint32_t moved;      /* steps that are elsewhere */
    int64_t saved_micro; /* 0: nothing, or no price is known */
    double saved_j;      /* the same of energy; below 0: it costs less, and takes more */
};

struct plan {
    enum plan_form form;  /* the one taken */
    const char *found_by; /* "heft", "local search", "water-filling": lives for ever */
    struct plan_outcome total;
    struct plan_outcome forms[PLAN_FORMS];       /* what each would have given */
    struct plan_variant variants[PLAN_VARIANTS]; /* of a pipeline: each kind of stages; of shares:
                                                    devices, and groups of each size */
    size_t variant_count;
    uint32_t single;       /* the device of forms[PLAN_SINGLE]; PLAN_ANYWHERE: none */
    double bound;          /* no plan whatever has less merit; 0: no bound is known */
    double gap;            /* merit / bound - 1; -1: not known */
    double time_bound_s;   /* no plan whatever has a shorter makespan */
    struct plan_row *rows; /* by start, device and step */
    size_t row_count;
    struct plan_transfer *transfers; /* by start */
    size_t transfer_count;
    struct plan_wait *waits; /* of each row by start */
    size_t wait_count;
    struct plan_use *uses; /* by device */
    size_t device_count;
    int64_t micro_batches, micro_batch_items; /* of a pipeline; else 0 */
    bool sums_behind;        /* of a split: what is summed over links goes on behind other work */
    uint32_t left_out;       /* steps that do not count */
    uint32_t fallen_back;    /* steps that are not where they had to be */
    struct plan_slack slack; /* of a plan by time: what steps that nobody waits for take less
                                elsewhere, while all of it ends no later */
};

/* The caller owns the plan. Any status but OK gives none, and says why in `ret_fault`; INDIVISIBLE
 * and NO_GAIN are of forms only. */
enum plan_status plan_make(const struct plan_input *input, struct plan **ret_plan,
                           struct plan_fault *ret_fault);
void plan_destroy(struct plan **self);

/* How soon after one another all of it can begin, again and again, by what its devices and links
 * have to do: the most that any of them is busy. What that takes of memory, and a pipeline's links,
 * do not count. */
double plan_round_s(const struct plan *plan);

const char *plan_status_name(enum plan_status status);          /* "NOWHERE" */
const char *plan_objective_name(enum plan_objective objective); /* "time" */
const char *plan_form_name(enum plan_form form);                /* "pipeline" */
/* False: no objective is called so. */
bool plan_objective_find(const char *name, enum plan_objective *ret_objective);

#endif
