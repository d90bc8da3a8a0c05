/* This header holds what the files of plan.h share. A case is a graph of steps with the cost of
 * each on each device: the work, or a share of its batch. A trial is a case with a device for each
 * step, and the times that follow. */
#ifndef BOURSE_PLANNER_LAYOUT_PLAN_INTERNAL_H
#define BOURSE_PLANNER_LAYOUT_PLAN_INTERNAL_H

#include "planner/layout/plan.h"

#define PLAN_HOUR_S 3600.0
#define PLAN_ROUNDING 1e-9 /* relative error that rounding may cause */
#define PLAN_DIGITS 30     /* bits of a merit that count in a comparison */

struct plan_figures {
    struct figure time_s; /* expected time where it may be interrupted; at least the floor */
    double p90_s;         /* 0: unknown */
    struct figure energy_j;
};

/* Cost of a step on a device. */
struct plan_cost {
    enum cost_status status; /* not OK: the step cannot run there */
    size_t part;             /* the part that cannot run; part_count: the whole does not fit */
    bool is_barred;          /* the step is required elsewhere */
    bool is_hopeless;        /* the step would be interrupted too often */
    bool is_left_out;
    bool is_widened; /* weights are stored in a type that the device does not multiply in */
    bool can_stream;
    uint32_t samples;
    /* The weights are in the device's memory, or streamed if they alone do not fit. */
    struct plan_figures here;
    struct plan_figures streamed; /* if it can be streamed */
    bool must_stream;             /* both figures are the same */
};

struct plan_arc {
    uint32_t step; /* step at the other end */
    double bytes;
    /* Part of `bytes` that is in no set of weights, and so needs memory of its own. */
    double held;
};

struct plan_teams;

struct plan_case {
    const struct plan_input *input;
    const struct steps *steps;
    struct steps *owned; /* equals `steps` if the case made the steps, else NULL */
    int64_t items;
    uint32_t like[PLAN_DEVICES]; /* first device with the same cost of every step */
    struct plan_cost *costs;     /* [step * device_count + device] */
    double *own_bytes;           /* indexed by step: held bytes that use no edge */
    /* Arcs out[out_first[s]] .. leave step s, sorted by the step they lead to. An arc to an earlier
     * step carries what that step needs before all begins anew. */
    uint32_t *out_first;
    struct plan_arc *out;
    uint32_t *in_count; /* arcs that enter each step */
    /* The steps in a topological order that frees the data of edges early. Among possible next
     * steps, the one that leaves least more held comes first. */
    uint32_t *lean;
    /* The communicating parts are on the planned devices. The cost of their links is then no part
     * of the costs. */
    bool has_own_links;
    /* Teams that hold each layer of a divided chain (plan_team.h); borrowed. NULL means that one
     * device does. */
    struct plan_teams *teams;
    bool has_no_chain; /* the chain of the whole work was searched already */
    uint32_t left_out, fallen_back;
    /* A step that can run on no device with the whole batch at once; PLAN_ANYWHERE means none. */
    uint32_t nowhere;
};

/* The terms say what counts in the costs of a case. */
enum plan_terms {
    PLAN_AS_IT_IS,
    /* Memories are unbounded and nothing is taken away (plan_case_interrupt), for bounds. */
    PLAN_AT_LEAST,
};

/* Returns the number of port times to allocate: one for each port, at least one. */
static inline size_t plan_ports(const struct plan_input *input)
{
    return input->topology == NULL ? 1 : topology_port_count(input->topology) + 1u;
}

/* Returns the number of items in the batch; 1 if there is no batch to divide. */
int64_t plan_items(const struct plan_input *input);

/* Creates the case of the whole work. Failures are PLACEMENT and NO_MEMORY. */
enum plan_status plan_case_create(const struct plan_input *input, struct plan_case **ret_case,
                                  struct plan_fault *ret_fault);
/* Creates the same case, with each device standing for a team. The steps of the input are those of
 * one team member (plan_team.h). `teams` must live as long as the case. */
enum plan_status plan_case_of_teams(const struct plan_input *input, struct plan_teams *teams,
                                    struct plan_case **ret_case, struct plan_fault *ret_fault);
/* Creates the case of the work (`items` of all) or of a share of its batch, on the given terms.
 * `parts` is the number of shares, for shares that exchange data. If `only` is not PLAN_ANYWHERE,
 * the share is for that device alone, and all others are barred. `ret_case` is NULL when the
 * template makes no such share. Returns false when memory is short. */
bool plan_case_share(const struct plan_case *whole, int64_t items, int64_t parts, uint32_t only,
                     enum plan_terms terms, struct plan_case **ret_case);
/* Adds interruptions to a case of PLAN_AT_LEAST. Its parts are at least as large as `one`, a case
 * of one item with the same steps. */
void plan_case_interrupt(struct plan_case *least, const struct plan_case *one);
/* Returns true when the work has a chain, which may be cut into stages on several devices. */
bool plan_can_chain(const struct plan_case *of);
/* Creates the case of the work's chain (steps.h). `ret_case` is NULL when the template has no
 * chain, or none for these values. With `teams`, which live as long as the case, it is the share of
 * one team member. `ret_why` (may be NULL) says why the chain is not divided. Returns false when
 * memory is short. */
bool plan_case_chain(const struct plan_case *whole, int64_t items, struct plan_teams *teams,
                     enum plan_terms terms, struct plan_case **ret_case, struct problem *ret_why);
void plan_case_destroy(struct plan_case **self);

/* Allocates the case's arrays, and sets what follows from the steps alone: arcs, own bytes and the
 * lean order. The case has input and steps. Returns false when memory is short; the caller destroys
 * the case then, too. */
bool plan_case_shape(struct plan_case *of);
/* Sets the cost of step `s` on device `d`, on the given terms. `history` (may be NULL) is what was
 * measured of the step on the device. */
void plan_case_set_cost(struct plan_case *of, size_t s, size_t d, enum plan_terms terms,
                        const struct history_summary *history);
/* Makes a cost one that counts nothing, for a step at an unknown rate. */
void plan_cost_leave_out(struct plan_cost *cost);

/* Returns true when every step costs the same on both devices. */
bool plan_is_same_kind(const struct plan_input *input, uint32_t a, uint32_t b);
bool plan_is_same_figure(const struct figure *a, const struct figure *b);

/* Returns what was measured of a step on a device; NULL: the input has no measurements. */
static inline const struct history_summary *plan_history_at(const struct plan_input *input,
                                                            size_t step, size_t device)
{
    return input->histories == NULL ? NULL : &input->histories[step * input->device_count + device];
}

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

/* Returns the fewest samples behind any of `count` steps on the device. Left-out steps do not
 * count. */
uint32_t plan_samples(const struct plan_case *of, uint32_t first, size_t count, uint32_t device);

/* Returns true when parts of the batch exchange data. */
bool plan_has_replicas(const struct plan_input *input);
/* Returns true when one device may make parts of the batch, one after the other. */
bool plan_may_part(const struct plan_input *input);

/* Returns the length of a name without its number. */
size_t plan_stem(const char *name);
/* Explain why `step` cannot run on `device`, and why some step can run on no device. */
void plan_explain(const struct plan_case *of, size_t step, size_t device, struct problem *ret_why);
void plan_explain_nowhere(const struct plan_case *of, struct problem *ret_why);
/* Returns true when a step that can run nowhere might run if some figure of a device were known. */
bool plan_lacks_figure(const struct plan_case *of);

/* ---------------------------------------------------------------- trials */

/* A change of the bytes on a device from a time on; below 0, bytes are freed. */
struct plan_hold {
    uint32_t device;
    double at_s, bytes;
};

struct plan_trial {
    const struct plan_case *of;
    /* Objective and limits: those of the case's input, or others. */
    const struct plan_input *aims;
    uint32_t *on;       /* device by step */
    uint32_t *sequence; /* a topological order; each device runs its steps in it */
    bool is_slow;       /* every step takes its p90 time */
    /* The exact peak of memory is wanted. Otherwise an upper estimate is enough where it fits. */
    bool is_exact;
    /* Outputs: */
    double *start, *finish;
    struct plan_transfer *transfers; /* `from` and `to` are steps */
    size_t transfer_count;
    bool streams[PLAN_DEVICES];
    struct plan_use uses[PLAN_DEVICES];
    struct plan_outcome outcome;
    double overflow_bytes; /* bytes that do not fit, over all devices */
    uint32_t overflow_on;  /* a device that overflows; PLAN_ANYWHERE: all fit */
    /* Scratch: */
    struct topology_traffic traffic;
    struct plan_hold *holds;
    size_t hold_count;
    uint32_t *after, *missing;
    double *arrived;
    bool *has_set; /* indexed by set of weights */
};

/* Creates a trial with all steps on device 0, in their own order. Returns NULL when memory is
 * short. */
struct plan_trial *plan_trial_create(const struct plan_case *of);
void plan_trial_destroy(struct plan_trial **self);
/* Copies inputs and outputs; both trials are of one case. */
void plan_trial_copy(struct plan_trial *to, const struct plan_trial *from);

/* Computes the times, and all that follows from them. Returns false when a step cannot run on its
 * device, or an edge has no path. Then the outputs have no meaning, and the makespan is unknown. A
 * step that does not fit is timed as if it did, and counts as overflow. */
bool plan_try(struct plan_trial *trial);
/* Tries all steps on one device, in an order that fits, if one of two orders does. */
bool plan_try_single_device(struct plan_trial *trial, uint32_t device);
/* Tries the trial's order, then the lean order if the steps do not fit. */
bool plan_try_orders(struct plan_trial *trial);
/* Returns the makespan with is_slow, or 0 when it is unknown. */
double plan_try_p90(struct plan_trial *trial);

static inline const struct plan_figures *plan_figures_of(const struct plan_trial *trial,
                                                         size_t step)
{
    uint32_t on = trial->on[step];
    const struct plan_cost *cost = plan_cost_at(trial->of, step, on);
    return trial->streams[on] ? &cost->streamed : &cost->here;
}

/* Returns true when `a` is better: less overflow, then as plan_outcome_is_better. A trial without a
 * makespan is worst. */
bool plan_is_better(const struct plan_trial *a, const struct plan_trial *b);
/* Returns true when `a` is better. The comparison goes by: a known merit, distance from the limits,
 * merit, price, makespan, number of devices. Merits and makespans that differ by rounding alone are
 * equal. */
bool plan_outcome_is_better(const struct plan_input *input, const struct plan_outcome *a,
                            const struct plan_outcome *b);

/* Sums up the uses, whose busy_s, lease, bytes and busy energy are given. It fills in idle energy,
 * prices and shares, and computes the outcome with `makespan_s`. The outcome's status is OK, or
 * names the figure or limit that fails. */
void plan_sum_up(const struct plan_input *input, struct plan_use *uses,
                 const struct figure *makespan_s, struct plan_outcome *ret_outcome);

enum { PLAN_AIMS = 2 * PLAN_OBJECTIVES };

bool plan_has_limits(const struct plan_input *input);
/* Lists the aims that every search follows, whatever the objective; returns their number. They are
 * each objective without limits, and within the limits if there are any. PLAN_VALUE uses the price
 * of all devices together as worth, which lies between the others. */
size_t plan_aims(const struct plan_input *input, struct plan_input aims[PLAN_AIMS]);

/* Sets merit and status of an outcome with known figures, by the objective and limits of the
 * input. */
void plan_judge(const struct plan_input *input, struct plan_outcome *outcome);

/* Adds a term to a sum, whose source is the worst of its terms. */
void plan_add(struct figure *sum, const struct figure *term);

/* ---------------------------------------------------------------- forms */

struct plan_variants {
    struct plan_variant list[PLAN_VARIANTS];
    size_t count;
};
/* Records the variant, or the better of it and the earlier result of the same method. */
void plan_note(struct plan_variants *variants, const struct plan_input *input,
               const struct plan_variant *variant);

/* The result of a form. Without a plan, the outcome says why. It may still have figures, those of
 * the nearest plan. */
struct layout_found {
    struct plan *plan;
    struct plan_outcome outcome;
    struct plan_variants variants; /* variants of pipelines, and of shares on groups of devices */
};

/* Plans all steps on one device, the best one. `ret_device` is PLAN_ANYWHERE when no device can do
 * it. This and the functions below return false only when memory is short; the caller owns what was
 * found then, too. */
bool plan_single(const struct plan_case *of, struct layout_found *ret_found, uint32_t *ret_device);
/* Finds the best device for all steps, into `best`; `now` is scratch. Returns PLAN_ANYWHERE when no
 * device can run all. */
uint32_t plan_best_single(struct plan_trial *now, struct plan_trial *best);
/* Takes the outcome of a trial as the result of a form, with its plan if the outcome is OK. Returns
 * false when memory is short. */
bool plan_take_best(struct plan_trial *trial, enum plan_form form, const char *found_by,
                    struct layout_found *ret_found);
/* The soonest of all placements of steps, as plans by time. Index 0 is the soonest of the searches
 * without limits. Index 1 is the soonest of all that keep to the limits. plan_reclaim makes these
 * plans cheaper, in ways that no other search has tried. NULL means that there is none. */
enum { PLAN_SOONEST = 2 };
struct plan_soonest {
    struct plan *plans[PLAN_SOONEST];
};
void plan_soonest_fini(struct plan_soonest *soonest);
/* Lists the aims by which each of them is soonest. */
void plan_soonest_aims(const struct plan_input *input, struct plan_input aims[PLAN_SOONEST]);

/* Plans each step on any device. Every objective tries the same placements: those from a search for
 * each objective, and with limits these and more. So no objective misses a plan that another would
 * find. `ret_bound_s` is a lower bound for placements of whole steps; 0 means unknown. `effort`
 * (see PLAN_EFFORT) is reduced by what the searches without limits use. */
bool plan_graph(const struct plan_case *of, uint64_t *effort, struct layout_found *ret_found,
                struct plan_soonest *ret_soonest, double *ret_bound_s);

/* Plans shares of the batch, each on a device of its own. The search follows the objective of the
 * case; the best plan by `asked` is taken. */
bool plan_split(const struct plan_case *of, const struct plan_input *asked,
                struct layout_found *ret_found);
/* Plans stages of the columns of a chain, for work with a chain. */
bool plan_stage_chain(const struct plan_case *of, struct layout_found *ret_found);
/* Explains, for work that fits nowhere, how many of the largest device its stages would take at
 * least. Leaves the text alone if there is no chain. Returns false when memory is short. */
bool plan_stage_chain_explain(const struct plan_case *of, struct problem *ret_why);
/* Returns true when there are few enough kinds of devices to search all of them at once. */
bool plan_stage_chain_sees_all(const struct plan_case *of);

/* ---------------------------------------------------------------- some of the devices */

enum { PLAN_SETS = 31 };

struct plan_set { /* devices in ascending order */
    uint32_t count;
    uint32_t devices[PLAN_DEVICES];
};

/* Lists sets of two or more devices, but not of all, the largest first. For few devices it lists
 * all sets, for more it lists sets of whole kinds, up to the limit. Sets without a required device
 * are left out. */
size_t plan_sets(const struct plan_input *input, struct plan_set sets[PLAN_SETS]);

struct plan_part { /* the same work on the devices of a set */
    struct plan_input input;
    struct plan_device devices[PLAN_DEVICES];
    uint32_t *placed;
    struct history_summary *histories;
};

/* Begins the part. Returns false when memory is short; plan_part_fini ends it then, too. */
bool plan_part_init(struct plan_part *part, const struct plan_input *input,
                    const struct plan_set *set);
void plan_part_fini(struct plan_part *part);
/* Renumbers a plan for a set's devices to all devices. Returns false when memory is short; then the
 * plan is unchanged. */
bool plan_of_part(struct plan *plan, const struct plan_input *input, const struct plan_set *set);

/* Makes a plan by time cheaper, where rows are steps. Steps that no other step waits for move to
 * where they cost less, or use less energy, without a later end of the plan. Returns false when
 * memory is short; then the plan is unchanged. */
bool plan_reclaim(const struct plan_case *of, struct plan **plan);

struct plan_bounds { /* 0: unknown */
    double time_s;
    double merit; /* merit of the objective */
    double price_micro;
};
/* Computes bounds that no plan can beat. `graph_bound_s` comes from plan_graph. */
bool plan_bound(const struct plan_case *of, double graph_bound_s, struct plan_bounds *ret_bounds);

/* Returns true when there is a batch to divide; otherwise the outcome says why not. */
bool plan_is_divisible(const struct plan_case *of, struct plan_outcome *ret_outcome);

/* Creates the plan of a trial that plan_try has timed. Returns NULL when memory is short. */
struct plan *plan_of_trial(struct plan_trial *trial, enum plan_form form, const char *found_by);
struct plan *plan_alloc(const struct plan_input *input, size_t rows, size_t transfers);
/* Sorts the transfers by start, then by sender and receiver. */
void plan_sort_transfers(struct plan *plan);

/* Creates the work as a graph for schedulers. Costs are unchanged, and a transfer takes at most its
 * time on idle links. So a bound on its schedules bounds those of the case, apart from
 * `ret_slack_s`. */
enum workload_status plan_workload(const struct plan_case *of, struct workload **ret_graph,
                                   double *ret_slack_s, struct workload_fault *ret_fault);

#endif
