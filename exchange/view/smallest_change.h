/* The smallest change is the least change to a waiting bid that would fill it at once.
 *
 * Every ask with free slots is a candidate, and every lease that may be taken. A candidate costs a
 * number of changes, and for each changed figure the difference over the larger of old and new. A
 * condition that goes counts whole. The smallest change has the fewest changes, then the least sum,
 * then the lowest price.
 *
 * Conditions on `program`, `executor`, `arch`, `image_config`, `api`, `terminal` and `referee`
 * stay, since they are the work itself; a simulated device never replaces a real one. A bid that is
 * submitted again with the change fills at that price or less, unless another comes first. */
#ifndef BOURSE_EXCHANGE_VIEW_SMALLEST_CHANGE_H
#define BOURSE_EXCHANGE_VIEW_SMALLEST_CHANGE_H

#include "base/rate.h"
#include "base/requirement.h"

enum exchange_bid_change_kind {
    BID_CHANGE_CAP = 1, /* micro-credits, or values for a bid by value */
    BID_CHANGE_BUDGET,
    BID_CHANGE_TERM,   /* nanoseconds */
    BID_CHANGE_SLOTS,  /* width of one subtask */
    BID_CHANGE_ORDER,  /* enum exchange_order_type */
    BID_CHANGE_LOOSEN, /* another figure in a condition */
    BID_CHANGE_DROP,   /* a condition less, or a list of alternatives */
};

enum { EXCHANGE_CHANGES_MOST = 4 }; /* more changes would make another job */

struct exchange_bid_change {
    enum exchange_bid_change_kind kind;
    /* The figures are set for all kinds but the last two. The old cap is LIMIT_NONE when the job
     * named none, so that its limit followed from its budget. */
    int64_t from, to;
    bool is_negated;                       /* the one condition was under a `not` */
    uint32_t first, nodes;                 /* DROP: a subtree of `was`, its first node and size */
    struct requirement_node before, after; /* LOOSEN */
};

struct exchange_smallest_change {
    uint32_t count; /* 0: there is none, or none is needed */
    struct exchange_bid_change changes[EXCHANGE_CHANGES_MOST];
    int64_t price_micro; /* price of the fill then */
    bool takes;          /* the fill takes a lease from its holder */
    /* The changed bid gets so many free slots, of those that it wants. Leases that it takes from
     * their holders are not counted. */
    uint32_t fills_slots, wanted_slots;
    /* The next fields are the whole bid after the change. The cap may be LIMIT_NONE. at_most
     * stays, and is a multiple of the slots. */
    struct requirement needs, was;
    uint8_t type; /* enum exchange_order_type */
    uint32_t slots;
    int64_t cap_micro, term_ns;
    enum rate rate;
    int64_t budget_micro; /* 0: unknown */
};

#endif
