/* planner/layout/plan_internal.h - what the files of plan.h share. A case is a graph of steps with
 * what each takes on each device: the work, or a share of its batch. A trial is a case with a
 * device for each step, and the times that follow. Of the planner's own files. Pure. */
#ifndef BOURSE_PLANNER_LAYOUT_PLAN_INTERNAL_H
#define BOURSE_PLANNER_LAYOUT_PLAN_INTERNAL_H

#include "planner/layout/plan.h"

#define PLAN_HOUR_S 3600.0
#define PLAN_ROUNDING 1e-9 /* so much of a figure may be rounding */
#define PLAN_DIGITS 30     /* bits of a merit that count when two are compared */

struct plan_way {
    struct figure time_s; /* expected where it may be interrupted; at least the floor */
    double p90_s;         /* 0: unknown */
    struct figure energy_j;
};

/* Of a step on a device. */
struct plan_cost {
    enum cost_status status; /* not OK: it cannot run there */
    size_t part;             /* the operation that cannot; part_count: all of it does not fit */
    bool is_barred;          /* it has to be elsewhere */
    bool is_hopeless;        /* it would be interrupted too often */
    bool is_left_out;
    bool is_widened; /* weights are stored in a type that it does not multiply in */
    bool can_stream;
    uint32_t samples;
    struct plan_way
        here; /* with the weights in its memory, or, where they alone do not fit, streamed */
    struct plan_way streamed; /* where it can be */
    bool must_stream;         /* the two are the same */
};

struct plan_arc {
    uint32_t step; /* at the other end */
    double bytes;
    double held; /* of these, what is in no set of weights, and so takes room of its own */
};

struct plan_teams;

struct plan_case {
    const struct plan_input *input;
    const struct steps *steps;
    struct steps *owned; /* the same, when the case made them */
    int64_t items;
    uint32_t like[PLAN_DEVICES]; /* by device: the first on which all steps take the same */
    struct plan_cost *costs;     /* [step * device_count + device] */
    double *kept; /* by step: held bytes that come over no edge and leave over none */
    uint32_t
        *out_first; /* arcs out[out_first[s]] .. leave step s, by the step they lead to: where that
                       is an earlier one, what it has to have before all of it begins anew */
    struct plan_arc *out;
    uint32_t *in_count; /* arcs that enter each step */
    uint32_t *lean; /* the steps in a topological order that frees what edges hold: of those that
                       could be next the one after which least more is held */
    bool has_own_links; /* the parts that hear of one another are those planned for: what that takes
                           on the links between them is no part of the costs */
    struct plan_teams *teams; /* of a line that is divided: who holds each layer together
                                 (plan_team.h); borrowed. NULL: one device does */
    bool has_no_line;         /* for it is a part of what a line was looked for in */
    uint32_t left_out, fallen_back;
    uint32_t nowhere; /* a step that can run on no device: of a batch, all of it at once;
                         PLAN_ANYWHERE: none */
};

enum plan_terms { /* what counts in the costs of a case */
                  PLAN_AS_IT_IS,
                  PLAN_AT_LEAST, /* memories are unbounded and nothing is taken away
                                    (plan_case_interrupt): for bounds */
};

/* From when on each port is free: room for all that there are, at least one. */
static inline size_t plan_ports(const struct plan_input *input)
{
    return input->topology == NULL ? 1 : topology_port_count(input->topology) + 1u;
}

/* How much of a batch there is to divide: 1 if nothing. */
int64_t plan_items(const struct plan_input *input);

/* The work itself. Statuses: PLACEMENT, NO_MEMORY. */
enum plan_status plan_case_create(const struct plan_input *input, struct plan_case **ret_case,
                                  struct plan_fault *ret_fault);
/* The same where each device stands for a team, which lives as long, and the steps of the input are
 * those of one of it (plan_team.h). */
enum plan_status plan_case_of_teams(const struct plan_input *input, struct plan_teams *teams,
                                    struct plan_case **ret_case, struct plan_fault *ret_fault);
/* The work once more (`items` of all) or a share of its batch, on other terms; `parts`: how many
 * shares there are, where they have to hear of one another. `only` not PLAN_ANYWHERE: on that
 * device alone, the others as if barred. NULL: the template makes no such share. False without
 * memory. */
bool plan_case_share(const struct plan_case *whole, int64_t items, int64_t parts, uint32_t only,
                     enum plan_terms terms, struct plan_case **ret_case);
/* Of costs at least: counts interruptions, of parts that are `one` item at least, which has the
 * same steps. */
void plan_case_interrupt(struct plan_case *least, const struct plan_case *one);
/* Whether the work has a line, which may be cut into stages on several devices. */
bool plan_can_line(const struct plan_case *of);
/* The same of the work's line (steps.h). NULL: the template has none, or makes none of these
 * values. With `teams`, which live as long as the case, what one device of a team does of it;
 * `ret_why` (may be NULL): why it is not divided. */
bool plan_case_line(const struct plan_case *whole, int64_t items, struct plan_teams *teams,
                    enum plan_terms terms, struct plan_case **ret_case, struct problem *ret_why);
void plan_case_destroy(struct plan_case **self);

/* Whether all steps take the same on both. */
bool plan_is_same_kind(const struct plan_input *input, uint32_t a, uint32_t b);
bool plan_is_same_figure(const struct figure *a, const struct figure *b);

static inline const struct plan_cost *plan_cost_at(const struct plan_case *of, size_t step,
                                                   size_t device)
{
    return &of->costs[step * of->input->device_count + device];
}

static inline bool plan_can_run(const struct plan_case *of, size_t step, size_t device)
{
    const struct plan_cost *cost = plan_cost_at(of, step, device);
    return cost->status == COST_OK && !cost->is_barred && !cost->is_hopeless;
}

/* The fewest samples that any of `count` steps rests on there; what is left out does not count. */
uint32_t plan_samples(const struct plan_case *of, uint32_t first, size_t count, uint32_t device);

/* Parts of the batch have to hear of one another. */
bool plan_has_replicas(const struct plan_input *input);
/* Whether one device may make parts of it, one after the other. */
bool plan_may_part(const struct plan_input *input);

/* Why `step` cannot run on `device`; and on none of them. */
void plan_explain(const struct plan_case *of, size_t step, size_t device, struct problem *ret_why);
void plan_explain_nowhere(const struct plan_case *of, struct problem *ret_why);
/* Whether a step that can run nowhere might if a figure of a device were known. */
bool plan_lacks_figure(const struct plan_case *of);

/* ---------------------------------------------------------------- trials */

struct plan_hold { /* so many bytes more on a device from then on; or less, below 0 */
    uint32_t device;
    double at_s, bytes;
};

struct plan_trial {
    const struct plan_case *of;
    const struct plan_input
        *aims;          /* what is asked for, and the limits: of the case's input, or others */
    uint32_t *on;       /* by step */
    uint32_t *sequence; /* a topological order; each device does its steps in it */
    bool is_slow;       /* every step takes what nine of ten take at most */
    bool is_exact; /* what memories hold at most is wanted as it is; else it may be more, where that
                      fits */
    /* made */
    double *start, *finish;
    struct plan_transfer *transfers; /* from and to are steps */
    size_t transfer_count;
    bool streams[PLAN_DEVICES];
    struct plan_use uses[PLAN_DEVICES];
    struct plan_outcome outcome;
    double overflow_bytes; /* that do not fit, of all devices together */
    uint32_t overflow_on;  /* a device where they do not; PLAN_ANYWHERE: all fit */
    /* scratch */
    struct topology_traffic traffic;
    struct plan_hold *holds;
    size_t hold_count;
    uint32_t *after, *missing;
    double *arrived;
    bool *has_set; /* of weights */
};

/* With all steps on device 0, in their own order. NULL without memory. */
struct plan_trial *plan_trial_create(const struct plan_case *of);
void plan_trial_destroy(struct plan_trial **self);
/* What was given and what was made; both of one case. */
void plan_trial_copy(struct plan_trial *to, const struct plan_trial *from);

/* Works out the times, and all that follows from them. False: a step cannot run where it is, or an
 * edge has no way; what was made is then without meaning, and the makespan unknown. What does not
 * fit is timed as if it did, and overflows. */
bool plan_try(struct plan_trial *trial);
/* With all steps on one device, in an order in which they fit if one of two does. */
bool plan_try_alone(struct plan_trial *trial, uint32_t device);
/* The makespan with is_slow; 0: not known. */
double plan_try_p90(struct plan_trial *trial);

static inline const struct plan_way *plan_way_of(const struct plan_trial *trial, size_t step)
{
    uint32_t on = trial->on[step];
    const struct plan_cost *cost = plan_cost_at(trial->of, step, on);
    return trial->streams[on] ? &cost->streamed : &cost->here;
}

/* Whether `a` is better: less overflow, then as plan_outcome_is_better. What has no makespan is
 * worst. */
bool plan_is_better(const struct plan_trial *a, const struct plan_trial *b);
/* A merit that is known, nearer to the limits, less merit, price, makespan, fewer devices; merits
 * and makespans that differ by rounding alone are the same. */
bool plan_outcome_is_better(const struct plan_input *input, const struct plan_outcome *a,
                            const struct plan_outcome *b);

/* Of uses whose busy_s, lease, bytes and energy of busy time are known: idle time's energy, prices
 * and shares, and what they come to with `makespan_s`. The status is OK, or which figure or limit
 * fails. */
void plan_sum_up(const struct plan_input *input, struct plan_use *uses,
                 const struct figure *makespan_s, struct plan_outcome *ret_outcome);

enum { PLAN_AIMS = 2 * PLAN_OBJECTIVES };

bool plan_has_limits(const struct plan_input *input);
/* What is searched for, whatever is asked for: each objective without limits, and where there are
 * limits within them; by value with what all devices cost together, which lies between the others.
 * How many. */
size_t plan_aims(const struct plan_input *input, struct plan_input aims[PLAN_AIMS]);

/* Merit and status of an outcome of which the figures are known, by what this input asks for. */
void plan_judge(const struct plan_input *input, struct plan_outcome *outcome);

/* Adds a term to a sum, which is as good as the worst of them. */
void plan_add(struct figure *sum, const struct figure *term);

/* ---------------------------------------------------------------- forms */

struct plan_variants {
    struct plan_variant list[PLAN_VARIANTS];
    size_t count;
};
/* Keeps it, or the better of it and what was found that way before. */
void plan_note(struct plan_variants *variants, const struct plan_input *input,
               const struct plan_variant *variant);

/* What a form came to. Without a plan, the outcome says why; it may have figures all the same, of
 * the nearest that there is. */
struct plan_found {
    struct plan *plan;
    struct plan_outcome outcome;
    struct plan_variants
        variants; /* of a pipeline, and of shares where groups of devices may have them */
};

/* All return false without memory only; what is found is the caller's then, too. */

/* All on one device: the best there is. `ret_device`: PLAN_ANYWHERE where none can do it. */
bool plan_single(const struct plan_case *of, struct plan_found *ret_found, uint32_t *ret_device);
/* What is soonest of all placements of steps, as plans by time: 0 of those that searches without
 * limits come by, whatever the limits are; 1 of all that are within them. plan_reclaim makes them
 * cheaper, which no search for another objective has seen. NULL: none. */
enum { PLAN_SOONEST = 2 };
struct plan_soonest {
    struct plan *plans[PLAN_SOONEST];
};
void plan_soonest_fini(struct plan_soonest *soonest);
/* By what each of them is soonest. */
void plan_soonest_aims(const struct plan_input *input, struct plan_input aims[PLAN_SOONEST]);

/* Each step anywhere. Whatever is asked for, the same placements are tried, those that a search for
 * each objective comes by, and with limits these and more; so none is beaten by what another would
 * have found. `ret_bound_s`: no placement of whole steps ends sooner; 0: not known. `effort`: see
 * PLAN_EFFORT; what is used of it without limits is taken from it. */
bool plan_graph(const struct plan_case *of, uint64_t *effort, struct plan_found *ret_found,
                struct plan_soonest *ret_soonest, double *ret_bound_s);

/* Shares of the batch, each on a device of its own: a search by what the case asks for, and of all
 * that it comes by the best by what is `asked` for. */
bool plan_split(const struct plan_case *of, const struct plan_input *asked,
                struct plan_found *ret_found);
/* Stages of steps, each on a device of its own, for micro-batches of the batch. */
bool plan_pipeline(const struct plan_case *of, struct plan_found *ret_found);
/* Stages of the columns of a line, of work that has one. */
bool plan_line(const struct plan_case *of, struct plan_found *ret_found);
/* Of work that fits nowhere: how many of the largest device its stages would take at least. Leaves
 * the text alone if there is no line. False without memory. */
bool plan_line_explain(const struct plan_case *of, struct problem *ret_why);
/* Whether there are few enough kinds of devices for all of them to be searched among at once. */
bool plan_line_sees_all(const struct plan_case *of);

/* ---------------------------------------------------------------- some of the devices */

enum { PLAN_SETS = 31 };

struct plan_set { /* ascending */
    uint32_t count;
    uint32_t devices[PLAN_DEVICES];
};

/* Sets of two devices or more, but not of all, the largest first: all there are of few devices; of
 * more, those of whole kinds, the first of them. Those that lack a device on which a step has to be
 * are left out. */
size_t plan_sets(const struct plan_input *input, struct plan_set sets[PLAN_SETS]);

struct plan_part { /* the same work on the devices of a set */
    struct plan_input input;
    struct plan_device devices[PLAN_DEVICES];
    uint32_t *placed;
    struct history_summary *histories;
};

/* False without memory; plan_part_fini ends it then, too. */
bool plan_part_init(struct plan_part *part, const struct plan_input *input,
                    const struct plan_set *set);
void plan_part_fini(struct plan_part *part);
/* Makes a plan of a set's devices one of all of them. False without memory: it is as it was. */
bool plan_of_part(struct plan *plan, const struct plan_input *input, const struct plan_set *set);

/* Of a plan by time in which rows are steps: those that nobody waits for go where they cost less,
 * or take less energy, as long as all of it ends no later. False without memory: it is as it
 * was. */
bool plan_reclaim(const struct plan_case *of, struct plan **plan);

struct plan_bounds { /* 0: not known */
    double time_s;
    double merit; /* of the objective */
    double price_micro;
};
/* What no plan whatever can beat. `graph_bound_s`: of plan_graph. */
bool plan_bound(const struct plan_case *of, double graph_bound_s, struct plan_bounds *ret_bounds);

/* Whether there is a batch to divide; if not, the outcome says why. */
bool plan_is_divisible(const struct plan_case *of, struct plan_outcome *ret_outcome);

/* The plan of a trial that was tried. NULL without memory. */
struct plan *plan_of_trial(struct plan_trial *trial, enum plan_form form, const char *found_by);
struct plan *plan_alloc(const struct plan_input *input, size_t rows, size_t transfers);
void plan_sort_transfers(struct plan *plan); /* by their start, then from where to where */

/* The work as a graph for schedulers: costs as they are, and transfers that take at most what they
 * take alone, so that what bounds its schedules bounds those of the case, but for `ret_slack_s`. */
enum workload_status plan_workload(const struct plan_case *of, struct workload **ret_graph,
                                   double *ret_slack_s, struct workload_fault *ret_fault);

#endif
