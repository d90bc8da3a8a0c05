/* exchange/view/why.h - why no work comes to a provider: the waiting demand of the market, seen
 * from one of its asks. A pure read; how to fill a bid from the other side is exchange_explain's to
 * say.
 *
 * Demand is every resting bid of another account that wants more slots than it has. Each is counted
 * at the first hurdle that it does not take: requirement and width, term, price, a free slot. Of
 * requirements that the device does not satisfy, the nearest come with the one predicate to change.
 */
#ifndef BOURSE_EXCHANGE_VIEW_WHY_H
#define BOURSE_EXCHANGE_VIEW_WHY_H

#include "exchange/exchange.h"

enum {
    EXCHANGE_WHY_REFUSALS = 16,
    EXCHANGE_WHY_STEPS =
        1 << 18, /* bids, and predicates on attributes, of one call: milliseconds */
};

struct exchange_why_refusal { /* one requirement that the device does not satisfy */
    char predicate[160];      /* to be changed first, as `explain` writes it */
    uint32_t changes;    /* predicates to change, at least; the wide enough device counts as one */
    uint32_t bids;       /* that have this requirement */
    int64_t limit_micro; /* the most that one of them pays */
    bool has_have;       /* the device's own figure, where it is a number */
    int64_t have;
};

struct exchange_why {
    /* The provider. */
    bool is_frozen, is_halted;
    uint8_t state;        /* enum provider_state */
    uint32_t refuted;     /* results of its that were refuted, less those that faded */
    int64_t withdrawn_ns; /* its asks are closed for that for so long; 0: they are not */
    uint32_t devices;     /* advertised: 0: nothing else is filled in */
    /* The device. */
    struct id128 device;
    char label[EXCHANGE_NAME_SIZE];
    const struct attribute *attributes; /* borrowed until the next step */
    size_t attribute_count;
    char instrument[ATTRIBUTE_TEXT_SIZE];
    uint32_t slots, leased;
    uint32_t free; /* slots of its ask that are not leased */
    int64_t
        price_micro; /* of its ask; -1: none stands, and then only the requirement can be judged */
    int64_t max_term_ns; /* of its ask; 0: no bound */
    bool is_for_some;    /* its ask is for named accounts: bids of others are not counted */
    int64_t opens_ns;    /* outside the hours of its ask, or its day is used up: after so long not;
                            else 0 */
    int64_t daily_ns;    /* slot-time that its ask gives a day, 0: any; and */
    int64_t used_ns, promised_ns; /* what was used of that, and leases may use yet */
    bool is_spent;                /* it is its day that is used up: no lease fits what is left */
    /* Bids: each figure of those before. */
    uint32_t bids, fitting, lasting, paying;
    int64_t best_limit_micro; /* of those that fit and last; -1: none */
    int64_t longest_term_ns;  /* that a fitting bid asks for; 0: none */
    /* The ask, if it stands and has free slots. */
    int64_t fills_at_micro; /* replaced to ask that, it is filled now; -1: no price would do */
    bool has_ahead;
    uint32_t ahead;  /* asks with free slots that a bid which may take it would take before it */
    bool is_partial; /* there were too many to look at all */
    uint32_t refusal_count;
    struct exchange_why_refusal refusals[EXCHANGE_WHY_REFUSALS]; /* nearest first */
};

enum exchange_why_status {
    WHY_OK,
    WHY_NO_DEVICE, /* the account advertises fewer */
    WHY_OUT_OF_MEMORY,
};

/* Of the account's advertised device number `device`, in the order of their first advertisement.
 * The result is large. */
enum exchange_why_status exchange_explain_ask(const struct exchange *exchange, uint32_t account,
                                              uint32_t device, struct exchange_why *ret_why);

#endif
