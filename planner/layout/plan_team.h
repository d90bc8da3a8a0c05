/* planner/layout/plan_team.h - devices that hold each layer of a stage together: tensor parallelism
 * (M. Shoeybi et al., Megatron-LM, arXiv 1909.08053).
 *
 * A team is `ways` alike devices of one machine, each linked with each by a fabric. Each does a
 * part of every matrix and has a part of the keys and values (templates/transformer.h); what each
 * has to hear of the others goes round in a ring:
 *
 *     device 0  |=1/4=|~sum~|==1/4==|~sum~|            time of a step = that of one device's part
 *     device 1  |=1/4=|~sum~|==1/4==|~sum~|                + times x max(what the device needs for a sum,
 *     device 2  |=1/4=|~sum~|==1/4==|~sum~|                              2 (g - 1) rounds of a g-th of it over the links)
 *     device 3  |=1/4=|~sum~|==1/4==|~sum~|
 *
 * and g - 1 rounds where each only gets what the others have (of the last product). All of it
 * counts as work of the devices: they do nothing else meanwhile. Whoever may be taken away takes
 * all of the team's work with it, so a team is as often as all of its devices are together.
 *
 * Of the planner's own files. Pure. */
#ifndef BOURSE_PLANNER_LAYOUT_PLAN_TEAM_H
#define BOURSE_PLANNER_LAYOUT_PLAN_TEAM_H

#include "planner/layout/plan_internal.h"

enum {
    TEAM_MOST = 8,   /* devices */
    TEAM_WIDTHS = 4, /* 1, 2, 4, 8 */
    TEAM_KNOWN = 16,
};

struct plan_teams {
    const struct plan_input *input;
    uint32_t ways;
    uint32_t count;
    uint32_t members[PLAN_DEVICES]; /* of team t from t * ways on */
    uint32_t device[PLAN_DEVICES];  /* by team: the device of the case that stands for it: the first
                                       of it, or one that is all of it */
    bool is_whole;                  /* what a step takes is of all of them: energy, too */
    struct problem why;             /* of no teams */
    /* scratch: rounds that were worked out last */
    struct team_round {
        uint32_t like;
        double bytes, takes_s;
    } known[TEAM_KNOWN];
    size_t known_count;
};

/* Devices that take and cost the same, whatever machines they are in. */
bool plan_are_alike(const struct plan_case *of, uint32_t a, uint32_t b);

/* Teams of `ways` (2 or more), as many as there are, each of the devices that come first; `why`
 * says why there are none. */
void plan_teams_find(const struct plan_case *of, uint32_t ways, struct plan_teams *ret_teams);

/* The work, or so much of its batch as `values` say, as what one of a team does of it, undivided
 * into columns. Each of them is brought what the work is given. */
enum steps_status plan_team_steps(const struct plan_input *input, const int64_t *values,
                                  const struct plan_teams *teams, struct steps **ret_steps);

/* Shares of the batch for teams of `ways`, each as one device (plan_split): the best of what
 * `search` finds among them, as a plan of all their devices. No plan and no outcome with figures:
 * there is none. */
typedef bool plan_share_search(struct plan_case *whole, const struct plan_input *input,
                               struct plan_found *best);
bool plan_team_split(const struct plan_case *of, uint32_t ways, plan_share_search *search,
                     struct plan_found *ret_found);

/* Adds what a device's team tells one another in a step. `free_links`: the device as if links took
 * no time. */
enum cost_status plan_team_add(struct plan_teams *teams, const struct plan_case *of,
                               const struct cost_device *free_links, const struct step *step,
                               uint32_t device, struct plan_way *way);

/* Bytes that each device of a team gets, and sends, for what a step tells. */
double plan_team_bytes(const struct step *step, uint32_t ways);

/* That as transfers, of which there are as many as devices in the team whose rows begin at `first`:
 * from each to the next, for all that goes between them, as long as it works. */
void plan_team_transfers(const struct plan_input *input, const struct plan_row *rows,
                         uint32_t first, double bytes, struct plan_transfer *ret_transfers);

/* What comes to a team's first device is handed on within it, from each that has it to one that has
 * not: how long that takes. Of one device: none. */
double plan_team_spread_s(const struct plan_input *input, const uint32_t *members, uint32_t ways,
                          double bytes);
/* To how many others the device of that number hands it on. */
uint32_t plan_team_receivers(uint32_t number, uint32_t ways);

#endif
