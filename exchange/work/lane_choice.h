/* The functions compare lanes, to place a subtask where it ends first. */
#ifndef BOURSE_EXCHANGE_WORK_LANE_CHOICE_H
#define BOURSE_EXCHANGE_WORK_LANE_CHOICE_H

#include "exchange/state/records.h"

struct open_lane {
    struct lease *lease;
    uint32_t lane;
    bool is_busy;
    int64_t finish_ns; /* if it goes before queued work */
    int64_t since_ns;  /* start of what the lane runs, as far as known */
};

/* Returns how many subtasks each lane may have in flight. Idle lanes of the lease take one subtask
 * each before any is queued. A queued subtask wants no slots, and slots that become free would
 * stand idle. */
uint32_t lane_depth(const struct lease *lease);
/* Returns the time that the lane saves because its device holds inputs of the subtask; NO_SUBTASK:
 * 0. */
int64_t lane_saves_ns(const struct lease *lease, uint32_t lane, uint32_t index);
/* Orders open lanes for qsort: the lane that finishes first goes first. */
int lane_compare_open(const void *left, const void *right);
/* Returns true when a subtask may run to its limit within the term. */
bool lane_has_time(const struct exchange *exchange, const struct lease *lease);
/* Returns the subtask that goes next, where subtasks differ. */
uint32_t lane_next(const struct part *part);
/* Fills in the lanes that may take a subtask of the part, and returns their number. Each lane may
 * have one more than its depth: one retry before queued work, and the next when it
 * has started. An idle lease may need renewal first. */
size_t lane_find_open(const struct exchange *exchange, const struct part *part,
                      struct open_lane *ret_lanes);
/* Returns true when an idle lane of the lease is done so soon that no other lane is worth waiting
 * for. Jobs of unlike subtasks are looked at in full, because a device may hold their inputs. */
bool lane_is_soon_done(const struct lease *lease);
/* Returns true when the next subtask is chosen before a lane is idle; short subtasks gain nothing
 * and are many. */
bool lane_is_choosy(const struct lease *lease);
/* Returns a lane of another lease that is worth waiting for: it finishes the next subtask so much
 * sooner than a lane of this lease, and has nothing queued or less urgent work. NULL: none. */
const struct open_lane *lane_is_worth_waiting_for(const struct open_lane *lanes, size_t count,
                                                  const struct lease *lease, uint32_t next);
/* Returns true when the choice of a lane matters. It matters for like subtasks only at the end,
 * with at most one waiting per lane. */
bool lane_matters(const struct part *part);

#endif
