/* A candidate is a changed bid. The one with the fewest and smallest changes wins. */
#ifndef BOURSE_EXCHANGE_VIEW_SMALLEST_CHANGE_CANDIDATE_H
#define BOURSE_EXCHANGE_VIEW_SMALLEST_CHANGE_CANDIDATE_H

#include "exchange/state/records.h"
#include "exchange/view/search.h"
#include "exchange/view/smallest_change.h"

struct candidate {
    uint32_t count;     /* number of changes */
    int64_t size_ppm;   /* sum of their sizes */
    struct offer offer; /* offer.from NULL: none yet; effort.hold_set turns over */
    uint8_t type;
    uint32_t slots;
    int64_t cap_micro, term_ns, budget_micro;
};

/* A predicate turns over: to another figure, or away. */
struct turned {
    bool held, has_figure;
    struct requirement_node after;
};

enum { DIVISORS_MOST = 1536 }; /* most divisors of a 32-bit number */

struct divisors {
    uint32_t count; /* 0: no number is given */
    uint32_t found[DIVISORS_MOST];
};

struct seeking { /* The state of one call. */
    const struct search *search;
    uint64_t fixed;           /* predicates that may not change */
    struct divisors divisors; /* divisors of at_most, unless it is 0 */
    struct candidate best;
    /* The changed requirement, and its turned predicates by bit of hold_set. */
    const struct requirement *changed;
    struct turned turned[EXCHANGE_CHANGES_MOST];
};

/* Copies the nodes in use alone. */
void smallest_change_copy(const struct requirement *from, struct requirement *ret_copy);
/* Returns the changed limit per slot-hour; without a cap, term, slots and budget decide it, too. */
int64_t smallest_change_limit(const struct search *search, const struct candidate *candidate);
/* Returns true when the market accepts the cost of the changed order. */
bool smallest_change_within_notional(const struct search *search,
                                     const struct candidate *candidate);
/* Adds a change to the answer. */
void smallest_change_add(struct exchange_smallest_change *smallest_change,
                         const struct exchange_bid_change *change);
/* Adds the change of a figure to the answer, if the figure changes. */
void smallest_change_add_figure(struct exchange_smallest_change *smallest_change,
                                enum exchange_bid_change_kind kind, int64_t from, int64_t to);

#endif
