/* exchange/view/smallest_change.h - the smallest change with which a bid that waits would be filled at once.
 *
 * Every ask with free slots is a candidate, and every lease that may be taken: what has to change
 * for it is counted, and how much of each figure: the difference over the larger of old and new. A
 * condition that goes, not only a figure in it, counts whole. The smallest change is the fewest
 * changes, of those the least sum, then the lowest price. Conditions on `program`, `executor` and
 * `referee` stay, they are what the work is; a simulated device is nobody's substitute. Whoever
 * submits anew what stands here is filled at that price or less, if nobody comes first. Pure. */
#ifndef BOURSE_EXCHANGE_VIEW_SMALLEST_CHANGE_H
#define BOURSE_EXCHANGE_VIEW_SMALLEST_CHANGE_H

#include "base/rate.h"
#include "base/requirement.h"

enum exchange_bid_change_kind {
    BID_CHANGE_CAP = 1, /* from and to in micro-credits; or values, of a bid by value */
    BID_CHANGE_BUDGET,
    BID_CHANGE_TERM,   /* in nanoseconds */
    BID_CHANGE_SLOTS,  /* of one subtask */
    BID_CHANGE_ORDER,  /* enum exchange_order_type */
    BID_CHANGE_LOOSEN, /* another figure in a condition */
    BID_CHANGE_DROP,   /* a condition less, or a list of which one would have been enough */
};

enum { EXCHANGE_CHANGES_MOST = 4 }; /* more is another job */

struct exchange_bid_change {
    enum exchange_bid_change_kind kind;
    int64_t from, to;                      /* of all but the last two */
    bool is_negated;                       /* of one condition: it was `not` that */
    uint32_t first, nodes;                 /* DROP: so many nodes of `was`, one tree */
    struct requirement_node before, after; /* LOOSEN */
};

struct exchange_smallest_change {
    uint32_t count; /* 0: there is none, or none is needed */
    struct exchange_bid_change changes[EXCHANGE_CHANGES_MOST];
    int64_t price_micro; /* at which it fills then */
    bool takes;          /* a lease from its holder */
    /* The whole bid as it would be. Cap -1: none; at_most as it was, a multiple of the slots. */
    struct requirement needs, was;
    uint8_t type; /* enum exchange_order_type */
    uint32_t slots;
    int64_t cap_micro, term_ns;
    enum rate rate;
    int64_t budget_micro; /* 0: not said */
};

#endif
