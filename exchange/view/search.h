/* The search finds everything that a bid meets in the market as it stands. It covers all asks,
 * including the bid's own account's, and leases that the bid may take. A bid that waits and a bid
 * that nobody has placed yet share one search; the second is looked at as the part of a job. */
#ifndef BOURSE_EXCHANGE_VIEW_SEARCH_H
#define BOURSE_EXCHANGE_VIEW_SEARCH_H

#include "exchange/market/escrow.h"
#include "exchange/state/records.h"
#include "exchange/view/effort.h"

struct explained { /* A device that is advertised, or a lease on one, seen from a requirement. */
    const struct device *device;
    const struct lease *lease; /* exposed lease; NULL: the device with its ask */
    uint64_t truth;            /* predicates that hold of it */
    struct effort effort;
    bool is_passed_over; /* simulated and not asked for, or without the rate of a bid by value */
};

struct search {
    const struct exchange *exchange;
    const struct exchange_need *need;
    const struct part *part; /* the part of the job, or a model of it */
    bool is_filed;
    const struct explained *seen; /* all devices, then all exposed leases */
    size_t count;
};

/* Returns the only part of a job of that need, as it would arrive: in no table and no list. The
 * caller owns `ret_job`. */
const struct part *search_asked(const struct exchange *exchange, const struct exchange_need *need,
                                struct job *ret_job);
/* Returns true when the bid is filled all at once or not at all. */
bool search_is_whole(const struct search *search);

/* An offer is a thing that a bid can be filled from. */
struct offer {
    const struct explained *from;
    int64_t price_micro, max_term_ns; /* max_term_ns 0: any */
    int64_t day_ns;                   /* slot-time that the device may still give today */
    uint64_t sequence;
    uint32_t slots;
    bool is_own;   /* the bid's account owns the offer; a bid that meets it first is refused */
    bool is_taken; /* the offer is a lease of another holder */
};
/* Returns false when there is no offer, or none for this account. */
bool search_offer(const struct search *search, const struct explained *seen,
                  struct offer *ret_offer);
/* Returns true when the bid may have the offer: not its own, of no avoided provider, and with work
 * for it. */
bool search_may_take(const struct search *search, const struct offer *offer);
/* Returns the price per slot-hour that a bid of that cap gives in the cell. */
int64_t search_limit_in(const struct search *search, int64_t cap_micro, uint32_t cell);
/* Finds the cap with which the bid gives the price there. Returns false when no allowed cap
 * does. */
bool search_cap_for(const struct search *search, int64_t price_micro, uint32_t cell,
                    int64_t *ret_cap_micro);

/* The struct is the bid with other terms. */
struct altered {
    uint32_t slots;
    int64_t cap_micro, term_ns; /* the cap may be LIMIT_NONE */
    int64_t more_micro;         /* added to the budget */
    uint8_t type;               /* enum exchange_order_type */
    /* Part of the requirement turns over; `satisfies` then says whether a device has the rest. */
    bool turns;
    bool (*satisfies)(const void *context, const struct explained *seen);
    const void *context;
};
struct altered search_unaltered(const struct search *search);

struct meeting {
    bool is_own; /* the bid meets an own ask first, and is refused */
    bool meets;  /* an ask fits, affordable or not: `first` */
    const struct explained *first;
    int64_t first_micro;
    const struct explained *from; /* device of the bid's first fill; NULL: none */
    int64_t price_micro;          /* price of that fill */
};
/* Finds the meeting of a bid that may be filled in parts; search_whole is for the others. */
struct meeting search_meet(const struct search *search, const struct altered *altered);

/* Returns how many slots such a bid gets of free slots, and fills in how many it wants. A bid that
 * takes leases may get more. Returns 0 when memory is short. */
uint32_t search_fills(const struct search *search, const struct altered *altered,
                      uint32_t *ret_wanted);

/* Returns the budget to count with; INT64_MAX: unknown. */
int64_t search_budget(const struct exchange_need *need, int64_t budget_micro);

/* Finds the least limit with which the bid takes a lease, and the least budget at its present
 * limit; -1: there is none. */
void search_takes(const struct search *search, int64_t *ret_limit_micro, int64_t *ret_budget_micro);

/* A bid that is filled all at once, and no other bid. */
struct whole {
    uint32_t wanted, free; /* slots, and free ones among them at its limit */
    bool fills;            /* the bid is filled now */
    int64_t price_micro;   /* price of the dearest slot that fills it */
    bool is_there;         /* enough slots exist at some price */
    int64_t limit_micro;   /* limit needed to have them */
    int64_t dearest_micro; /* price of the dearest slot then */
    int64_t escrow_micro;  /* cost of one term of them */
};
/* Returns false when memory is short. */
bool search_whole(const struct search *search, struct whole *ret_whole);

/* ---- queue.c: bids before this one where every slot it could have is leased or asks more; finds
 * nothing when memory is short */
void queue_find(const struct search *search, struct exchange_explanation *why);

/* Returns true when jobs of the part's account lease all leased slots in reach. The cost is a look
 * at each device and at each lease of that account. */
bool search_are_own_leases(const struct search *search);

#endif
