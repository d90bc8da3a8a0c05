/* The report explains why no work comes to a provider, by the waiting demand that one of its asks
 * sees. A pure read; exchange_explain looks from the bid's side.
 *
 * Demand is every resting bid of another account that wants more slots than it has. Each bid counts
 * at the first hurdle that it fails: requirement and width, term, price, a free slot. The nearest
 * failed requirements come with the one predicate to change. */
#ifndef BOURSE_EXCHANGE_VIEW_WHY_H
#define BOURSE_EXCHANGE_VIEW_WHY_H

#include "exchange/exchange.h"

enum {
    EXCHANGE_WHY_REFUSALS = 16,
    EXCHANGE_WHY_STEPS =
        1 << 18, /* Bids, and predicates on attributes, of one call: milliseconds. */
};

struct exchange_why_refusal { /* A requirement that the device does not satisfy. */
    char predicate[160];      /* first one to change, as `explain` writes it */
    uint32_t changes;         /* least number of changes; a wide enough device counts as one */
    uint32_t bids;            /* bids with this requirement */
    int64_t limit_micro;      /* highest limit among them */
    bool has_have;            /* the device's own figure is a number */
    int64_t have;
};

struct exchange_why {
    /* The first fields describe the provider. */
    bool is_frozen, is_halted;
    const char *frozen_why, *halted_why; /* borrowed until the next step; NULL: no reason */
    uint8_t state;                       /* enum provider_state */
    uint32_t refuted;                    /* refuted results, less the faded ones */
    int64_t withdrawn_ns;                /* the asks stay closed for this long; 0: open */
    uint32_t devices;                    /* advertised; 0: nothing else is filled in */
    /* The next fields describe the device. */
    struct id128 device;
    char label[EXCHANGE_NAME_SIZE];
    const struct attribute *attributes; /* borrowed until the next step */
    size_t attribute_count;
    char instrument[ATTRIBUTE_TEXT_SIZE];
    uint32_t slots, leased;
    uint32_t free; /* slots of the ask that are not leased */
    /* Price of the ask; -1 means that no ask stands, and only the requirement is judged. */
    int64_t price_micro;
    int64_t max_term_ns; /* longest term of the ask; 0: no bound */
    bool is_for_some;    /* the ask is for named accounts; other bids are not counted */
    /* Time until the ask opens, when its hours or its used day close it; else 0. */
    int64_t opens_ns;
    int64_t daily_ns;             /* slot-time that its ask gives a day; 0: any */
    int64_t used_ns, promised_ns; /* slot-time used today, and still usable by leases */
    bool is_spent;                /* the day is used up: no lease fits the rest */
    /* Bids: each figure counts a subset of the one before. */
    uint32_t bids, fitting, lasting, paying;
    int64_t best_limit_micro; /* among bids that fit and last; -1: none */
    int64_t longest_term_ns;  /* among fitting bids; 0: none */
    /* The ask, if it stands and has free slots. */
    int64_t fills_at_micro; /* price at which the ask is filled now; -1: none */
    bool has_ahead;
    uint32_t ahead;  /* free asks that a bid for this one takes first */
    bool is_partial; /* there were too many to look at all */
    uint32_t refusal_count;
    struct exchange_why_refusal refusals[EXCHANGE_WHY_REFUSALS]; /* nearest first */
};

enum exchange_why_status {
    WHY_OK,
    WHY_NO_DEVICE, /* the account advertises fewer */
    WHY_OUT_OF_MEMORY,
};

/* Explains the account's advertised device number `device`, counted by first advertisement. The
 * result is large. */
enum exchange_why_status exchange_explain_ask(const struct exchange *exchange, uint32_t account,
                                              uint32_t device, struct exchange_why *ret_why);

#endif
