/* exchange/view/search.h - what a bid would meet, as the market stands: its asks, one's own among
 * them, and the leases that may be taken from their holders. One search for a bid that waits and
 * for one that nobody has placed yet: the second is looked at as the part of a job that it would
 * be. Pure. */
#ifndef BOURSE_EXCHANGE_VIEW_SEARCH_H
#define BOURSE_EXCHANGE_VIEW_SEARCH_H

#include "exchange/state.h"

struct explained { /* a device that is advertised, or a lease on one, seen from a requirement */
    const struct device *device;
    const struct lease *lease; /* that stands to be taken; NULL: the device, with its ask */
    uint64_t truth;            /* the predicates that hold of it */
    struct effort effort;
    bool is_passed_over; /* simulated, and not asked for; or without the rate of a bid by value */
};

struct search {
    const struct exchange *exchange;
    const struct exchange_need *need;
    const struct part *part; /* as it stands, or as it would */
    bool is_filed;
    const struct explained *seen; /* all devices, then all leases that stand to be taken */
    size_t count;
};

/* The only part of a job of that need, as it would be when it comes: in no table and no list.
 * `ret_job` is the caller's. */
const struct part *search_asked(const struct exchange *exchange, const struct exchange_need *need,
                                struct job *ret_job);
/* Whether the bid is filled all at once or not at all. */
bool search_is_whole(const struct search *search);

/* Something that a bid can be filled from. */
struct offer {
    const struct explained *from;
    int64_t price_micro, max_term_ns; /* 0: any */
    int64_t day_ns;                   /* slot-time that its device may still give today */
    uint64_t sequence;
    uint32_t slots;
    bool is_own;   /* it is of the bid's account: who meets it first is refused */
    bool is_taken; /* it is a lease */
};
/* False: it has none, or none for this account. */
bool search_offer(const struct search *search, const struct explained *seen,
                  struct offer *ret_offer);
/* But for the account, what keeps the bid from what fits it: one that is avoided, or has nothing
 * for it to do. */
bool search_may_take(const struct search *search, const struct offer *offer);
/* What a bid of that cap gives for a slot-hour in that cell. */
int64_t search_limit_in(const struct search *search, int64_t cap_micro, uint32_t cell);
/* The cap with which it gives so much there; false: none is that an order may have. */
bool search_cap_for(const struct search *search, int64_t price_micro, uint32_t cell,
                    int64_t *ret_cap_micro);

/* The bid with other terms. */
struct altered {
    uint32_t slots;
    int64_t cap_micro, term_ns; /* cap -1: none */
    int64_t more_micro;         /* of budget */
    uint8_t type;               /* enum exchange_order_type */
    bool turns; /* some of the requirement turns over: then `satisfies` says whether a device has
                   the rest */
    bool (*satisfies)(const void *context, const struct explained *seen);
    const void *context;
};
struct altered search_unaltered(const struct search *search);

struct meeting {
    bool is_own; /* it meets one of its own first, and is refused */
    bool meets;  /* there is an ask for it, whether it can pay for that or not: */
    const struct explained *first;
    int64_t first_micro;
    const struct explained *from; /* what it is filled from first; NULL: nothing */
    int64_t price_micro;          /* then */
};
/* Of a bid that is not filled all at once: search_whole. */
struct meeting search_meet(const struct search *search, const struct altered *altered);

/* INT64_MAX: not said. */
int64_t search_budget(const struct exchange_need *need, int64_t budget_micro);

/* The least limit with which it would take a lease, and the least budget, at the limit that it has;
 * -1: there is none. */
void search_takes(const struct search *search, int64_t *ret_limit_micro, int64_t *ret_budget_micro);

/* Of a bid that is filled all at once, alone. */
struct whole {
    uint32_t wanted, free; /* slots, and those of them at its limit */
    bool fills;            /* so it does now, */
    int64_t price_micro;   /* at that, the dearest of them */
    bool is_there;         /* so many slots are, whatever they cost; and to have them takes */
    int64_t limit_micro;   /* such a limit */
    int64_t dearest_micro; /* of what it would take then, */
    int64_t escrow_micro;  /* which comes to that for a term */
};
/* False: memory is short. */
bool search_whole(const struct search *search, struct whole *ret_whole);

/* ---- queue.c: what comes before it, where all that it could have is leased, or asks more; nothing
 * when memory is short */
void queue_find(const struct search *search, struct exchange_explanation *why);

#endif
