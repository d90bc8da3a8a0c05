/* A line (templates/steps.h) has its stages on devices; this module says when its micro-batches are
 * through.
 *
 * A post is a device with the columns that it runs, in all phases or in one. All micro-batches go
 * the same way:
 *
 *  there, around and around    post 0  |0|1|2|    |0|1|2|    |0|1|2|   `rounds` times around; the
 *                              post 1    |0|1|2|    |0|1|2|            next round begins where
 *                                                                      the last one ended
 *  there and back              post 0  |0|1|   |0|2|1|2|    once       one forward, one backward
 *                              post 1    |0|0|1|1|2|2| once            in turn: back first, no
 *                                                                      more in flight than posts
 *                                                                      to the end
 *  there on some, around       post 0  |0|1|2|                         data left by `there` (keys
 *  on others                   post 1     ~~|0|1|2|0|1|2|0|1|2|        and values) goes over links
 *
 * A post may also be a team (plan_team.h), which works together. Data for a team goes to its first
 * device, which hands it on. For data that is divided over the devices of both posts, each part
 * goes directly to where it is needed.
 *
 * A round is the mean of all rounds. Some rounds are simulated one by one, with ports as in plan.h.
 * Once rounds are equal, the rest take as long as the last one. With all posts busy, a round takes
 * the slowest post times the micro-batches; else it takes the sum of a round. The files of the
 * planner alone use this header. Pure. */
#ifndef BOURSE_PLANNER_LAYOUT_PLAN_LINE_H
#define BOURSE_PLANNER_LAYOUT_PLAN_LINE_H

#include "planner/layout/plan_internal.h"
#include "planner/layout/plan_team.h"
#include "planner/layout/stages.h"

enum {
    LINE_CUTS = 40,       /* candidates that are run; as many again with separate posts */
    LINE_DIVIDED = 12,    /* the same for teams of each width */
    LINE_VARIATIONS = 16, /* ways to form teams from the devices of each kind */
    LINE_POSTS = STAGES_DEVICES,
    LINE_LATE = 8,
    LINE_BATCHES = 64,
    LINE_ROUNDS = 4 /* rounds simulated one by one */
};

struct line_post {
    const struct plan_case *one; /* work of each of its devices for a micro-batch; borrowed */
    uint32_t width;
    uint32_t devices[TEAM_MOST];
    uint32_t first_row;    /* first row of its devices in the plan */
    uint32_t first, count; /* columns */
    /* Times of a micro-batch by phase; `around` is one round. slow_s is the p90 time; 0 means
     * unknown. */
    double takes_s[STEP_PHASES], slow_s[STEP_PHASES];
    /* Input of a micro-batch; round_bytes is for each round. */
    double there_bytes, round_bytes, back_bytes;
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

/* Data between columns of different posts after all micro-batches are through. */
struct line_late {
    uint32_t from, to; /* posts */
    double bytes;
    bool is_after; /* sent after the steps that run once, else before them */
};

struct line {
    const struct plan_case *one;  /* case of a micro-batch, on devices without teams */
    int64_t micro_batches, items; /* number of micro-batches, and items of each */
    int64_t rounds;               /* 0: none */
    bool has_back;
    /* The first `there_count` posts are for the way there. */
    uint32_t row_count, post_count, there_count;
    uint32_t ring;      /* first post of the loop: 0, or there_count */
    double start_bytes; /* bytes of a micro-batch into the loop */
    double *kept_bytes; /* indexed by column: bytes that `there` leaves for the rounds; borrowed */
    struct line_post posts[LINE_POSTS];
    struct line_late late[LINE_LATE];
    size_t late_count;
};

struct line_gap { /* time in which a started post waits */
    uint32_t post;
    double from_s, until_s;
};

struct line_run {
    const struct line *line;
    struct topology_traffic traffic;
    /* Outputs: */
    double makespan_s;
    double first_s[LINE_POSTS], last_s[LINE_POSTS];         /* work */
    double first_use_s[LINE_POSTS], last_use_s[LINE_POSTS]; /* including transfers */
    int64_t most_held[LINE_POSTS];                          /* most micro-batches in flight */
    struct plan_transfer transfers[4 * LINE_POSTS];         /* transfers of the first micro-batch */
    size_t transfer_count;
    struct line_gap *gaps;
    size_t gap_count, gap_room;
    /* Scratch: */
    bool is_slow, is_stuck, is_out_of_memory;
    int64_t running[LINE_POSTS]; /* micro-batch at work; -1: none */
    int64_t held[LINE_POSTS];
    double at_s[LINE_BATCHES];    /* end or arrival time */
    double ready_s[LINE_BATCHES]; /* arrival of all data for its rounds */
    double round_s[LINE_ROUNDS];  /* end of each round */
    uint32_t hop[LINE_BATCHES];
    uint8_t state[LINE_BATCHES];
};

/* ---------------------------------------------------------------- columns of each device */

struct line_group { /* equal devices, or teams of them */
    uint32_t count;
    uint32_t width;                 /* devices in a team; 1: no teams */
    uint32_t devices[PLAN_DEVICES]; /* team i begins at i * width */
    double price;                   /* price of an hour of one device or team; 0: unknown */
};

/* Widths of the teams of each kind: 1 << of each. */
struct line_variation {
    uint8_t of[STAGES_GROUPS];
};

/* Figures of columns for a micro-batch on a device (or team) of each group, and the memory that
 * each device needs. */
struct line_figures {
    /* Times by phase; `around` is all rounds together. Infinite means that the column cannot run
     * there. */
    double takes_s[STEP_PHASES][STAGES_COLUMNS][STAGES_GROUPS];
    double energy_j[STAGES_COLUMNS][STAGES_GROUPS];
    /* Weights and other fixed bytes, of the phase there and of the phase around. */
    double fixed_bytes[2][STAGES_COLUMNS][STAGES_GROUPS];
    double all_bytes[STAGES_COLUMNS][STAGES_GROUPS]; /* both phases, shared sets once */
    /* Input of a column: round_bytes for each round, back_bytes from the column after it. */
    double there_bytes[STAGES_COLUMNS], round_bytes[STAGES_COLUMNS], back_bytes[STAGES_COLUMNS];
    double kept_bytes[STAGES_COLUMNS]; /* bytes that `there` leaves for around or back */
    double held_bytes[2][STAGES_COLUMNS][STAGES_GROUPS]; /* there with what comes back; around */
    double working_bytes[2][STAGES_COLUMNS][STAGES_GROUPS];
    double start_bytes;
};

/* The time of the data at a cut, from a device of one group to a device of another; infinite means
 * no path. */
struct line_ways {
    double takes_s[STAGES_GROUPS][STAGES_GROUPS];
};

struct line_candidate {
    int64_t micro_batches, items;
    size_t variation;
    uint32_t width; /* width of its widest team */
    bool is_apart;
    struct stages there, around; /* separate posts use both; otherwise `there` has all stages */
    uint32_t first_of[STAGES_GROUPS]; /* first device of each group in the loop */
    double time_s, price, energy_j;   /* estimates */
};

struct line_cuts {
    const struct plan_case *whole;
    struct line_group kinds[STAGES_GROUPS]; /* kinds of devices */
    size_t group_count;                     /* number of groups and of kinds */
    bool lacks_some;                        /* there are devices outside the search */
    struct plan_teams *teams;               /* indexed by width: 1 << index */
    struct problem undivided; /* the reason when there are no teams; empty: there are teams */
    struct line_variation variations[LINE_VARIATIONS];
    size_t variation_count;
    /* State for the current number of micro-batches and the current variation: */
    size_t variation;
    struct line_group groups[STAGES_GROUPS];
    /* Work of one member of a team of each width; NULL means that it was not made. */
    struct plan_case *ones[TEAM_WIDTHS];
    int64_t micro_batches, items, rounds;
    size_t columns;
    bool has_back;
    struct line_figures *figures;
    struct line_ways ways[2]; /* there and back, and around, which sends less at a time */
    struct line_candidate *kept;
    size_t kept_count;
    struct line_candidate *next; /* the current candidate */
    uint64_t effort;             /* effort left for the current number, in figures of stages.h */
};

/* line_find_kinds finds the kinds of devices that fit in the search. line_find_variations finds the
 * ways to make teams of them, without teams first, or the reason for no teams. It returns false
 * when memory is short. */
void line_find_kinds(struct line_cuts *cuts);
bool line_find_variations(struct line_cuts *cuts);
/* Sets the devices and teams of the current variation. */
void line_set_groups(struct line_cuts *cuts);
/* Finds all candidates that no other beats in estimated time, price and energy. `whole` is given,
 * all else zeros. Returns false when memory is short; line_cuts_fini ends the cuts then, too. */
bool line_cut(struct line_cuts *cuts);
void line_cuts_fini(struct line_cuts *cuts);
/* Sets the current state to `count` micro-batches, or the next smaller count of equal ones, and to
 * a variation. ones[0] is NULL when that is impossible. Returns false when memory is short. */
bool line_cut_at(struct line_cuts *cuts, int64_t count, size_t variation);
/* Returns the work of a device of the group for a micro-batch. */
const struct plan_case *line_one(const struct line_cuts *cuts, size_t group);
/* Returns true when the step can run with its weights in memory. */
bool line_can_run(const struct plan_case *one, size_t step, uint32_t device);

/* Small changes of stages. One column moves from a stage to another, while those between keep their
 * number. A device with as many columns goes to another place. A spare device (`spare` counts them
 * by group) replaces a device or takes half of its columns. One device is left out. line_moves
 * returns the number of moves. line_move returns false when the move changes nothing or is
 * impossible. Sums are not computed. */
uint32_t line_moves(const struct stages *stages);
bool line_move(const struct stages *stages, uint32_t move, const uint32_t spare[STAGES_GROUPS],
               struct stages *ret_stages);

/* ---------------------------------------------------------------- from post to post */

/* line_parts returns the number of parts that divided data has between two posts. line_part returns
 * the device that holds one of so many parts. */
uint32_t line_parts(const struct line *line, uint32_t from, uint32_t to);
uint32_t line_part(const struct line *line, uint32_t post, uint32_t part, uint32_t parts);
/* Returns the bytes that a post leaves for those columns that the other post runs, too. */
double line_kept(const struct line *line, uint32_t from, uint32_t to);

/* ---------------------------------------------------------------- times */

/* Begins a run. Returns false when memory is short. */
bool line_run_init(struct line_run *run, const struct plan_input *input);
void line_run_fini(struct line_run *run);
/* Runs the line; with `is_slow`, all work takes slow_s. Returns false when some data has no path,
 * or memory for gaps is short. */
bool line_run(struct line_run *run, const struct line *line, bool is_slow);

#endif
