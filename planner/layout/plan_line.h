/* planner/layout/plan_line.h - a line (templates/steps.h) of which stages are on devices, and when
 * its micro-batches are through.
 *
 * A post is a device with the columns that it does, of all phases or of one. All micro-batches go
 * the same way:
 *
 *     there, around and around           post 0  |0|1|2|    |0|1|2|    |0|1|2|         `rounds` times around; the next round of a
 *                                        post 1    |0|1|2|    |0|1|2|                  micro-batch begins where the last one of it ended
 *
 *     there and back                     post 0  |0|1|   |0|2|1|2|    once              one forward, one backward in turn: back first,
 *                                        post 1    |0|0|1|1|2|2| once                  and no more under way than posts to the end
 *
 *     there on some, around on others    post 0  |0|1|2|                               what there leaves (keys and values) goes over
 *                                        post 1     ~~|0|1|2|0|1|2|0|1|2|              links to where it is needed
 *
 * A post may also be a team (plan_team.h), which does all of that together. What comes to it comes
 * to its first device, and is handed on from there; of what is divided over the devices of both,
 * each part goes from where it is to where it is needed.
 *
 * A round is the mean of all. Some rounds are gone through one by one, with ports as plan.h has
 * them; once they are alike, the rest take as long each as the last: with all posts busy that is
 * the slowest of them times the micro-batches, else the sum of a round. Of the planner's own files.
 * Pure. */
#ifndef BOURSE_PLANNER_LAYOUT_PLAN_LINE_H
#define BOURSE_PLANNER_LAYOUT_PLAN_LINE_H

#include "planner/layout/plan_internal.h"
#include "planner/layout/plan_team.h"
#include "planner/layout/stages.h"

enum {
    LINE_CUTS = 40,       /* candidates that are run: together, and as many apart */
    LINE_DIVIDED = 12,    /* of teams of each width, the same */
    LINE_VARIATIONS = 16, /* ways to make teams of devices of each kind */
    LINE_POSTS = STAGES_DEVICES,
    LINE_LATE = 8,
    LINE_BATCHES = 64,
    LINE_ROUNDS = 4 /* gone through one by one */
};

struct line_post {
    const struct plan_case *one; /* what each of its devices does of a micro-batch; borrowed */
    uint32_t width;
    uint32_t devices[TEAM_MOST];
    uint32_t first_row;    /* of the plan: those of its devices */
    uint32_t first, count; /* columns */
    double takes_s[STEP_PHASES],
        slow_s[STEP_PHASES]; /* of a micro-batch; around: of a round; slow 0: unknown */
    double there_bytes, round_bytes, back_bytes; /* into it, of a micro-batch; round: each */
    double told_bytes; /* into each of a team, of a micro-batch in all, from the others */
    double fixed_bytes, held_bytes, working_bytes; /* held: of each micro-batch that is under way */
    struct figure rests_on;                        /* time of a micro-batch in all */
    struct figure energy_j, once_j; /* of a micro-batch in all; of what is done once */
    uint32_t samples;
    bool is_widened;
};

struct line_late {     /* between columns of different posts, when all micro-batches are through */
    uint32_t from, to; /* posts */
    double bytes;
    bool is_after; /* what is done once, else before it */
};

struct line {
    const struct plan_case *one;  /* of a micro-batch, on devices that are no team */
    int64_t micro_batches, items; /* and of each */
    int64_t rounds;               /* 0: none */
    bool has_back;
    uint32_t row_count, post_count, there_count; /* the first posts are on the way there */
    uint32_t ring;      /* the first post that is gone around: 0, or there_count */
    double start_bytes; /* into the ring, of a micro-batch */
    double *kept_bytes; /* by column: what there leaves for the rounds; borrowed */
    struct line_post posts[LINE_POSTS];
    struct line_late late[LINE_LATE];
    size_t late_count;
};

struct line_gap { /* a post that has begun waits */
    uint32_t post;
    double from_s, until_s;
};

struct line_run {
    const struct line *line;
    struct topology_traffic traffic;
    /* made */
    double makespan_s;
    double first_s[LINE_POSTS], last_s[LINE_POSTS];         /* of work */
    double first_use_s[LINE_POSTS], last_use_s[LINE_POSTS]; /* with transfers */
    int64_t most_held[LINE_POSTS];                          /* micro-batches under way */
    struct plan_transfer transfers[4 * LINE_POSTS];         /* of the first micro-batch */
    size_t transfer_count;
    struct line_gap *gaps;
    size_t gap_count, gap_room;
    /* scratch */
    bool is_slow, is_stuck, is_out_of_memory;
    int64_t running[LINE_POSTS]; /* a micro-batch; -1: none */
    int64_t held[LINE_POSTS];
    double at_s[LINE_BATCHES];    /* when it ends or arrives */
    double ready_s[LINE_BATCHES]; /* when all that was left for its rounds is where it is needed */
    double round_s[LINE_ROUNDS];  /* when each round is over */
    uint32_t hop[LINE_BATCHES];
    uint8_t state[LINE_BATCHES];
};

/* ---------------------------------------------------------------- who does which columns */

struct line_group { /* of devices that are alike, or of teams of them */
    uint32_t count;
    uint32_t width;                 /* of a team; 1: a device */
    uint32_t devices[PLAN_DEVICES]; /* of the i-th team from i * width on */
    double price;                   /* of an hour of one device, or team; 0: unknown */
};

/* How wide the teams of each kind are: 1 << of each. */
struct line_variation {
    uint8_t of[STAGES_GROUPS];
};

/* What columns take of a micro-batch on a device (or team) of each group, and each device has to
 * have. */
struct line_figures {
    double takes_s[STEP_PHASES][STAGES_COLUMNS]
                  [STAGES_GROUPS]; /* around: of all rounds; infinite: it cannot */
    double energy_j[STAGES_COLUMNS][STAGES_GROUPS];
    double fixed_bytes[2][STAGES_COLUMNS][STAGES_GROUPS]; /* weights and the like of what is there;
                                                             and of what is around */
    double all_bytes[STAGES_COLUMNS][STAGES_GROUPS];      /* of both, shared sets once */
    double there_bytes[STAGES_COLUMNS], round_bytes[STAGES_COLUMNS],
        back_bytes[STAGES_COLUMNS];                      /* into it;
                                              round: of each; back: from the column after it */
    double kept_bytes[STAGES_COLUMNS];                   /* what there leaves for around or back */
    double held_bytes[2][STAGES_COLUMNS][STAGES_GROUPS]; /* there with what comes back; around */
    double working_bytes[2][STAGES_COLUMNS][STAGES_GROUPS];
    double start_bytes;
};

/* What crosses a cut takes from a device of a group to one of another; infinite: there is no
 * way. */
struct line_ways {
    double takes_s[STAGES_GROUPS][STAGES_GROUPS];
};

struct line_candidate {
    int64_t micro_batches, items;
    size_t variation;
    uint32_t width; /* of its widest team */
    bool is_apart;
    struct stages there, around;      /* of apart; else `there` is of all */
    uint32_t first_of[STAGES_GROUPS]; /* the first device of each group that is gone around on */
    double time_s, price, energy_j;   /* roughly */
};

struct line_cuts {
    const struct plan_case *whole;
    struct line_group kinds[STAGES_GROUPS]; /* of devices */
    size_t group_count;                     /* and of kinds */
    bool lacks_some;                        /* devices that it does not search among */
    struct plan_teams *teams;               /* by width: 1 << of each */
    struct problem undivided;               /* why there are none; empty: there are */
    struct line_variation variations[LINE_VARIATIONS];
    size_t variation_count;
    /* of the number of micro-batches and the variation at hand */
    size_t variation;
    struct line_group groups[STAGES_GROUPS];
    struct plan_case
        *ones[TEAM_WIDTHS]; /* what a device of a team of each width does; NULL: not made */
    int64_t micro_batches, items, rounds;
    size_t columns;
    bool has_back;
    struct line_figures *figures;
    struct line_ways ways[2]; /* there and back; and around, where less is carried at a time */
    struct line_candidate *kept;
    size_t kept_count;
    struct line_candidate *next; /* the one at hand */
    uint64_t effort;             /* that is left of the number at hand, in figures of stages.h */
};

/* Kinds of devices for which there is room; and the ways to make teams of them, none first, or why
 * there is none but that. False without memory. */
void line_find_kinds(struct line_cuts *cuts);
bool line_find_variations(struct line_cuts *cuts);
/* The devices and teams of the variation at hand. */
void line_set_groups(struct line_cuts *cuts);
/* All that is not beaten by others in time, price and energy, roughly. `whole` is given, all else
 * zeros. False without memory; the cuts are to be ended then, too. */
bool line_cut(struct line_cuts *cuts);
void line_cuts_fini(struct line_cuts *cuts);
/* Makes what is at hand that of `count` micro-batches, or the next fewer that are alike, and of a
 * variation. No ones[0]: it cannot be. False without memory. */
bool line_cut_at(struct line_cuts *cuts, int64_t count, size_t variation);
/* What a device of the group does of a micro-batch. */
const struct plan_case *line_one(const struct line_cuts *cuts, size_t group);
/* Whether a step can be done with its weights there. */
bool line_can_run(const struct plan_case *one, size_t step, uint32_t device);

/* Ways to change stages a little: a column from one to another, those between keeping as many as
 * they have; a device with as many columns as it has to another's place; one that is spare (so many
 * of each group are) in place of one, or for half of its columns; and one left out. How many there
 * are; and the stages after one of them, false: it changes nothing, or cannot be. Sums are not
 * worked out. */
uint32_t line_moves(const struct stages *stages);
bool line_move(const struct stages *stages, uint32_t move, const uint32_t spare[STAGES_GROUPS],
               struct stages *ret_stages);

/* ---------------------------------------------------------------- from post to post */

/* Into how many parts it goes what is divided over the devices of both; and the device that has a
 * part of so many. */
uint32_t line_parts(const struct line *line, uint32_t from, uint32_t to);
uint32_t line_part(const struct line *line, uint32_t post, uint32_t part, uint32_t parts);
/* What a post leaves for those columns of another that it does, too. */
double line_kept(const struct line *line, uint32_t from, uint32_t to);

/* ---------------------------------------------------------------- when they are through */

/* False without memory. */
bool line_run_init(struct line_run *run, const struct plan_input *input);
void line_run_fini(struct line_run *run);
/* False: something cannot be carried, or there is no memory for gaps. `is_slow`: all takes
 * slow_s. */
bool line_run(struct line_run *run, const struct line *line, bool is_slow);

#endif
