/* A team of devices holds each layer of a stage together. This is tensor parallelism (M. Shoeybi et
 * al., Megatron-LM, arXiv 1909.08053).
 *
 * A team is `width` equal devices of one machine, all connected by a fabric. Each does a part of
 * every matrix, and has a part of the keys and values (templates/transformer.h). Data from the
 * others goes round in a ring:
 *
 *    device 0  |=1/4=|~sum~|==1/4==|~sum~|       time of a step = time of one device's part
 *    device 1  |=1/4=|~sum~|==1/4==|~sum~|           + times x max(device time of a sum,
 *    device 2  |=1/4=|~sum~|==1/4==|~sum~|               2 (g - 1) rounds over the links)
 *    device 3  |=1/4=|~sum~|==1/4==|~sum~|
 *
 * An all-gather, as of the last product, takes g - 1 rounds. All of it counts as work of the
 * devices, which do nothing else meanwhile. A device that is taken away takes all work of the team
 * with it. So a team is interrupted as often as all of its devices together. The files of the
 * planner alone use this header. */
#ifndef BOURSE_PLANNER_LAYOUT_PLAN_TEAM_H
#define BOURSE_PLANNER_LAYOUT_PLAN_TEAM_H

#include "planner/layout/plan_internal.h"

enum {
    TEAM_MOST = 8,   /* devices in a team */
    TEAM_WIDTHS = 4, /* widths 1, 2, 4, 8 */
    TEAM_KNOWN = 16,
};

struct plan_teams {
    const struct plan_input *input;
    uint32_t width;
    uint32_t count;
    uint32_t members[PLAN_DEVICES]; /* team t begins at t * width */
    /* Device of the case that stands for a team: its first member, or one that is the whole
     * team. */
    uint32_t device[PLAN_DEVICES];
    bool is_whole;      /* costs are those of all members together, energy included */
    struct problem why; /* the reason when there are no teams */
    /* Scratch: the last rounds computed. */
    struct team_round {
        uint32_t like;
        double bytes, takes_s;
    } known[TEAM_KNOWN];
    size_t known_count;
};

/* Returns true when both devices take and cost the same, even in different machines. */
bool plan_are_alike(const struct plan_case *of, uint32_t a, uint32_t b);

/* Finds all teams of `width` (2 or more) devices, the first devices first. `why` holds the reason
 * when there are none. */
void plan_teams_find(const struct plan_case *of, uint32_t width, struct plan_teams *ret_teams);

/* Creates the steps of one team member, for the part of the batch in `values`, without columns.
 * Each member gets the input of the work. */
enum steps_status plan_team_steps(const struct plan_input *input, const int64_t *values,
                                  const struct plan_teams *teams, struct steps **ret_steps);

/* Plans shares of the batch for teams of `width`, each team as one device (plan_split). It takes
 * the best result of `search`, as a plan of all their devices. No plan and no outcome with figures
 * means that there is none. */
typedef bool plan_share_search(struct plan_case *whole, const struct plan_input *input,
                               struct layout_found *best);
bool plan_team_split(const struct plan_case *of, uint32_t width, plan_share_search *search,
                     struct layout_found *ret_found);

/* Adds the exchanges of the device's team in a step. `free_links` is the device as if links took no
 * time. */
enum cost_status plan_team_add(struct plan_teams *teams, const struct plan_case *of,
                               const struct cost_device *free_links, const struct step *step,
                               uint32_t device, struct plan_figures *figures);

/* Returns the bytes that each team member gets, and sends, for the exchanges of a step. */
double plan_team_bytes(const struct step *step, uint32_t width);

/* Writes these bytes as transfers, one for each device of the team, whose rows begin at `first`.
 * Each goes from a device to the next, with all bytes between them, for the whole time of the
 * row. */
void plan_team_transfers(const struct plan_input *input, const struct plan_row *rows,
                         uint32_t first, double bytes, struct plan_transfer *ret_transfers);

/* Returns the time to hand on data from the team's first device to all others; devices that have it
 * send it to devices that do not. A single device takes 0. */
double plan_team_spread_s(const struct plan_input *input, const uint32_t *members, uint32_t width,
                          double bytes);
/* Returns the number of devices to which the device with this number hands data on. */
uint32_t plan_team_receivers(uint32_t number, uint32_t width);

#endif
