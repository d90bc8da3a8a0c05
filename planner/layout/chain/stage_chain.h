/* A chain of stages (templates/steps.h) lies on devices; this module says when its micro-batches
 * are through.
 *
 * A stage is a device with the columns that it runs, in all phases or in one. All micro-batches go
 * the same path:
 *
 *  forward, then decode      stage 0  |0|1|2|    |0|1|2|    |0|1|2|   `rounds` rounds of decode;
 *                            stage 1    |0|1|2|    |0|1|2|            each begins where the last
 *                                                                     one ended
 *  forward and backward      stage 0  |0|1|   |0|2|1|2|    once       one forward, one backward in
 *                            stage 1    |0|0|1|1|2|2| once            turn: backward first, no more
 *                                                                     in flight than stages to the
 *                                                                     end
 *  forward on some, decode   stage 0  |0|1|2|                         data left by forward (keys
 *  on others                 stage 1     ~~|0|1|2|0|1|2|0|1|2|        and values) goes over links
 *
 * The stages of decode are the loop. A stage may also be a team (plan_team.h), which works
 * together. Data for a team goes to its first device, which hands it on. For data that is divided
 * over the devices of both stages, each part goes directly to where it is needed.
 *
 * A round is the mean of all rounds. Some rounds are simulated one by one, with ports as in plan.h.
 * Once rounds are equal, the rest take as long as the last one. With all stages busy, a round takes
 * the slowest stage times the micro-batches; else it takes the sum of a round. The files of the
 * planner alone use this header. */
#ifndef BOURSE_PLANNER_LAYOUT_CHAIN_STAGE_CHAIN_H
#define BOURSE_PLANNER_LAYOUT_CHAIN_STAGE_CHAIN_H

#include "planner/layout/plan_internal.h"
#include "planner/layout/plan_team.h"
#include "planner/layout/stages.h"

enum {
    CHAIN_CUTS = 40,       /* candidates that are run; as many again with separate stages */
    CHAIN_DIVIDED = 12,    /* candidates that are run with teams of each width */
    CHAIN_VARIATIONS = 16, /* ways to form teams from the devices of each kind */
    CHAIN_STAGES = STAGES_DEVICES,
    CHAIN_LATE = 8,
    CHAIN_BATCHES = 64,
    CHAIN_ROUNDS = 4 /* rounds simulated one by one */
};

struct chain_stage {
    const struct plan_case *one; /* work of each of its devices for a micro-batch; borrowed */
    uint32_t width;
    uint32_t devices[TEAM_MOST];
    uint32_t first_row;    /* first row of its devices in the plan */
    uint32_t first, count; /* columns */
    /* Times of a micro-batch by phase; decode is one round. slow_s is the p90 time; 0 means
     * unknown. */
    double takes_s[STEP_PHASES], slow_s[STEP_PHASES];
    /* Input of a micro-batch; round_bytes is for each round. */
    double forward_bytes, round_bytes, backward_bytes;
    /* Bytes that each team member gets from the others for a micro-batch in all. */
    double told_bytes;
    /* Bytes on each device; held_bytes are for each micro-batch in flight. */
    double fixed_bytes, held_bytes, working_bytes;
    struct figure rests_on; /* whole time of a micro-batch, with its source */
    /* Energy of a micro-batch in all, and of the steps that run once. */
    struct figure energy_j, once_j;
    uint32_t samples;
    bool is_widened;
};

/* Data between columns of different stages after all micro-batches are through. */
struct chain_late {
    uint32_t from, to; /* stages */
    double bytes;
    bool is_after; /* sent after the steps that run once, else before them */
};

struct stage_chain {
    const struct plan_case *one;  /* case of a micro-batch, on devices without teams */
    int64_t micro_batches, items; /* number of micro-batches, and items of each */
    int64_t rounds;               /* 0: none */
    bool has_backward;
    /* The first `forward_count` stages run forward. */
    uint32_t row_count, stage_count, forward_count;
    uint32_t loop;      /* first stage of the loop: 0, or forward_count */
    double start_bytes; /* bytes of a micro-batch into the loop */
    double *kv_bytes;   /* indexed by column: bytes that forward leaves for the rounds; borrowed */
    struct chain_stage stages[CHAIN_STAGES];
    struct chain_late late[CHAIN_LATE];
    size_t late_count;
};

struct chain_gap { /* time in which a started stage waits */
    uint32_t stage;
    double from_s, until_s;
};

struct chain_run {
    const struct stage_chain *chain;
    struct topology_traffic traffic;
    /* Outputs: */
    double makespan_s;
    double first_s[CHAIN_STAGES], last_s[CHAIN_STAGES];         /* work */
    double first_use_s[CHAIN_STAGES], last_use_s[CHAIN_STAGES]; /* including transfers */
    int64_t most_held[CHAIN_STAGES];                            /* most micro-batches in flight */
    struct plan_transfer transfers[4 * CHAIN_STAGES]; /* transfers of the first micro-batch */
    size_t transfer_count;
    struct chain_gap *gaps;
    size_t gap_count, gap_room;
    /* Scratch: */
    bool is_slow, is_stuck, is_out_of_memory;
    int64_t running[CHAIN_STAGES]; /* micro-batch at work; -1: none */
    int64_t held[CHAIN_STAGES];
    double at_s[CHAIN_BATCHES];    /* end or arrival time */
    double ready_s[CHAIN_BATCHES]; /* arrival of all data for its rounds */
    double round_s[CHAIN_ROUNDS];  /* end of each round */
    uint32_t hop[CHAIN_BATCHES];
    uint8_t state[CHAIN_BATCHES];
};

/* ---------------------------------------------------------------- columns of each device */

struct chain_group { /* equal devices, or teams of them */
    uint32_t count;
    uint32_t width;                 /* devices in a team; 1: no teams */
    uint32_t devices[PLAN_DEVICES]; /* team i begins at i * width */
    double price;                   /* price of an hour of one device or team; 0: unknown */
};

/* Widths of the teams of each kind: 1 << of each. */
struct chain_variation {
    uint8_t of[STAGES_GROUPS];
};

/* Figures of columns for a micro-batch on a device (or team) of each group, and the memory that
 * each device needs. */
struct chain_figures {
    /* Times by phase; decode is all rounds together. Infinite means that the column cannot run on
     * the group. */
    double takes_s[STEP_PHASES][STAGES_COLUMNS][STAGES_GROUPS];
    double energy_j[STAGES_COLUMNS][STAGES_GROUPS];
    /* Weights and other fixed bytes, of forward and of decode. */
    double fixed_bytes[2][STAGES_COLUMNS][STAGES_GROUPS];
    double all_bytes[STAGES_COLUMNS][STAGES_GROUPS]; /* both phases, shared sets once */
    /* Input of a column: round_bytes for each round, backward_bytes from the column after it. */
    double forward_bytes[STAGES_COLUMNS], round_bytes[STAGES_COLUMNS],
        backward_bytes[STAGES_COLUMNS];
    double kv_bytes[STAGES_COLUMNS]; /* bytes that forward leaves for decode or backward */
    double held_bytes[2][STAGES_COLUMNS][STAGES_GROUPS]; /* forward with what comes back; decode */
    double working_bytes[2][STAGES_COLUMNS][STAGES_GROUPS];
    double start_bytes;
};

/* The time of the data at a cut, from a device of one group to a device of another; infinite means
 * no path. */
struct chain_routes {
    double takes_s[STAGES_GROUPS][STAGES_GROUPS];
};

struct chain_candidate {
    int64_t micro_batches, items;
    size_t variation;
    uint32_t width; /* width of its widest team */
    bool is_apart;
    /* Separate stages use both; otherwise `forward` has all stages. */
    struct stages forward, decode;
    uint32_t first_of[STAGES_GROUPS]; /* first device of each group in the loop */
    double time_s, price, energy_j;   /* estimates */
};

struct chain_cuts {
    const struct plan_case *whole;
    struct chain_group kinds[STAGES_GROUPS]; /* kinds of devices */
    size_t group_count;                      /* number of groups and of kinds */
    bool lacks_some;                         /* there are devices outside the search */
    struct plan_teams *teams;                /* indexed by width: 1 << index */
    struct problem undivided; /* the reason when there are no teams; empty: there are teams */
    struct chain_variation variations[CHAIN_VARIATIONS];
    size_t variation_count;
    /* State for the current number of micro-batches and the current variation: */
    size_t variation;
    struct chain_group groups[STAGES_GROUPS];
    /* Work of one member of a team of each width; NULL means that it was not made. */
    struct plan_case *ones[TEAM_WIDTHS];
    int64_t micro_batches, items, rounds;
    size_t columns;
    bool has_backward;
    struct chain_figures *figures;
    /* Forward and backward, and decode, which sends less at a time. */
    struct chain_routes routes[2];
    struct chain_candidate *candidates;
    size_t candidate_count;
    struct chain_candidate *next; /* the current candidate */
    uint64_t effort;              /* effort left for the current number, in figures of stages.h */
};

/* chain_find_kinds finds the kinds of devices that fit in the search. chain_find_variations finds
 * the ways to make teams of them, without teams first, or the reason for no teams. It returns false
 * when memory is short. */
void chain_find_kinds(struct chain_cuts *cuts);
bool chain_find_variations(struct chain_cuts *cuts);
/* Sets the devices and teams of the current variation. */
void chain_set_groups(struct chain_cuts *cuts);
/* Finds all candidates that no other beats in estimated time, price and energy. `whole` is given,
 * all else zeros. Returns false when memory is short; chain_cuts_fini ends the cuts then, too. */
bool chain_cut(struct chain_cuts *cuts);
void chain_cuts_fini(struct chain_cuts *cuts);
/* Sets the current state to `count` micro-batches, or the next smaller count of equal ones, and to
 * a variation. ones[0] is NULL when that is impossible. Returns false when memory is short. */
bool chain_cut_at(struct chain_cuts *cuts, int64_t count, size_t variation);
/* Makes a single round part of forward, in the steps and in `cuts`. */
void chain_fold(struct chain_cuts *cuts, struct steps *steps);
/* Computes the figures of the columns for the current state. Returns false when memory is short. */
bool chain_fill_figures(struct chain_cuts *cuts);
/* Returns the work of a device of the group for a micro-batch. */
const struct plan_case *chain_one(const struct chain_cuts *cuts, size_t group);
/* Returns true when the step can run with its weights in memory. */
bool chain_can_run(const struct plan_case *one, size_t step, uint32_t device);

/* Small changes of stages. One column moves from a stage to another, while those between keep their
 * number. A device with as many columns goes to another place. A spare device (`spare` counts them
 * by group) replaces a device or takes half of its columns. One device is left out. chain_moves
 * returns the number of moves. chain_move returns false when the move changes nothing or is
 * impossible. Sums are not computed. */
uint32_t chain_moves(const struct stages *stages);
bool chain_move(const struct stages *stages, uint32_t move, const uint32_t spare[STAGES_GROUPS],
                struct stages *ret_stages);

/* ---------------------------------------------------------------- from stage to stage */

/* chain_parts returns the number of parts that divided data has between two stages. chain_part
 * returns the device that holds one of so many parts. */
uint32_t chain_parts(const struct stage_chain *chain, uint32_t from, uint32_t to);
uint32_t chain_part(const struct stage_chain *chain, uint32_t stage, uint32_t part, uint32_t parts);
/* Returns the bytes that a stage leaves for those columns that the other stage runs, too. */
double chain_kv_bytes(const struct stage_chain *chain, uint32_t from, uint32_t to);

/* ---------------------------------------------------------------- times */

/* Begins a run. Returns false when memory is short. */
bool chain_run_init(struct chain_run *run, const struct plan_input *input);
void chain_run_fini(struct chain_run *run);
/* Runs the chain; with `is_slow`, all work takes slow_s. Returns false when some data has no path,
 * or memory for gaps is short. */
bool chain_run(struct chain_run *run, const struct stage_chain *chain, bool is_slow);

/* ---------------------------------------------------------------- outcome */

#define CHAIN_APART "prefill and decode apart"

/* Returns the bytes into a stage from another in a phase; decode: in each round. */
double chain_bytes_into(const struct stage_chain *chain, uint32_t k, enum step_phase phase);
/* Runs the chain. Returns false when it does not fit, or has a missing link or no memory. */
bool chain_time(const struct stage_chain *chain, struct chain_run *run,
                struct plan_use uses[PLAN_DEVICES], struct plan_outcome *ret_outcome);
/* Runs the chain, and keeps it in `found` if it is better. `ret_outcome` is unknown if the chain is
 * impossible. Returns false when memory is short. */
bool chain_weigh(const struct stage_chain *chain, struct chain_run *run, struct layout_found *found,
                 struct plan_outcome *ret_outcome);

#endif
