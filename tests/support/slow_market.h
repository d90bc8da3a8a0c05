/* tests/support/slow_market.h has a market of orders of all types as a slow, obvious matcher: flat
 * lists, looked through anew for every fill. Leases end only with their jobs, and there is as much
 * to do as there are slots. Terms, and what a device gives on a day, are whole half hours here, all
 * of it on one day. */
#ifndef BOURSE_TESTS_SLOW_MARKET_H
#define BOURSE_TESTS_SLOW_MARKET_H

#include "base/rate.h"
#include "exchange/exchange.h"

enum {
    SLOW_DEVICES = 12,
    SLOW_KINDS = 3,
    SLOW_JOBS = 73,
    SLOW_PARTS = 2,
    SLOW_FILLS = 256,
    SLOW_SUBTASKS = 100, /* subtasks of a part, so that a part always has more to do than lanes */
};
#define SLOW_HALF_NS (NS_PER_HOUR / 2)

struct slow_ask {
    bool stands;
    uint32_t owner, kind, slots, leased;
    int64_t price;
    /* Operations per second and slot, in which bids may be by value; 0: not said. */
    int64_t operations;
    uint64_t sequence;
    enum exchange_order_type type;
    struct id128 order;
    bool is_open; /* open by its hours */
    bool is_interruptible;
    uint32_t to;                 /* a bit for each account that the ask is for; 0: for anybody */
    uint32_t from_min, till_min; /* minutes of the day when the ask is open; equal: always */
    uint32_t max_term;           /* 0: no bound */
    uint32_t daily;              /* slot-time that the device gives on a day; 0: any */
    uint32_t promised;           /* slot-time of the day that the leases on its device have */
};

struct slow_part {
    bool stands;
    uint32_t kind; /* the kind that the part needs; SLOW_KINDS: any */
    uint32_t width, wanted;
    uint32_t at_most; /* slots at a time, as the job said */
    uint32_t held;    /* slots that the part has, beside those wanted */
    bool is_valued;   /* the limit is for RATE_UNIT operations */
    int64_t most;     /* the most that the part gives for a slot-hour by value: the band's end */
    uint32_t term;
    uint32_t expect_h; /* hours that one of its subtasks takes; 0: not said */
    int64_t cap;       /* the cap; -1: at market price */
    int64_t limit;     /* the limit that follows from the cap */
    uint64_t sequence;
};

struct slow_job {
    bool is_open;
    bool is_over; /* the job's time to start is over; what runs goes on */
    struct id128 id;
    uint32_t owner, part_count;
    bool is_firm_only;
    int64_t budget;
    int64_t free_micro; /* credits left of the budget */
    enum exchange_order_type type;
    struct slow_part parts[SLOW_PARTS];
    uint32_t held[SLOW_DEVICES];     /* slots leased, by device */
    uint32_t promised[SLOW_DEVICES]; /* slot-time of those slots */
    uint32_t given[SLOW_DEVICES];    /* slot-time of those at 0 */
};

struct slow_fill {
    uint32_t job, device, slots;
    int64_t price;
};

struct slow_market {
    struct slow_ask asks[SLOW_DEVICES]; /* asks by device */
    struct slow_job jobs[SLOW_JOBS];
    uint32_t job_count;
    uint64_t sequence;
    int64_t band;                       /* the highest price of any order, */
    int64_t least;                      /* the lowest price above 0, */
    int64_t notional;                   /* and the most that one order may come to; 0: any */
    struct slow_fill fills[SLOW_FILLS]; /* fills of the last command */
    uint32_t fill_count;
};

/* Fails as ck_assert does, which writes to a file every time. */
void slow_must(bool holds, const char *what);

uint32_t slow_free(const struct slow_ask *ask);
/* The terms of a bid that change. -1, 0 or the former value stands for a term that stays. */
struct slow_terms {
    uint32_t part; /* which part; SLOW_PARTS: each part */
    int64_t cap;
    uint32_t at_most; /* slots at a time, with those that the part holds */
    int64_t budget;
};
/* Sets the bands from here on. Orders that stand stay, and limits by value follow the bands.
 * Nothing is filled yet. */
void slow_set_bands(struct slow_market *slow, int64_t least, int64_t most, int64_t notional);
/* Returns true when an order may name that price. */
bool slow_may_name(const struct slow_market *slow, int64_t price);
/* Sets limits from caps and budget, before the job arrives. */
void slow_set_limits(const struct slow_market *slow, struct slow_job *job);
/* Opens or closes the ask for this time. */
void slow_look_at_hours(struct slow_ask *ask, int64_t now_ns);

/* Gives a bid other terms. Fewer slots at the same limit keep its place. When the terms are
 * refused, all stays as it was. Nothing is filled yet. */
uint32_t slow_rebid(struct slow_market *slow, struct slow_job *job, const struct slow_terms *terms);
/* Ends a job's subtasks that have not started. */
void slow_expire(struct slow_market *slow, struct slow_job *job);
/* Take a job that arrives, or an ask for that device. Return 0, or the code that refuses it. The
 * test tells each fill to slow_take, and then calls slow_stand_down. */
uint32_t slow_admit(struct slow_market *slow, struct slow_job *job);
uint32_t slow_put(struct slow_market *slow, uint32_t device, const struct slow_ask *given);
/* Ends the job: its slots are free again, and nothing is filled from them yet. */
void slow_end(struct slow_market *slow, struct slow_job *job);
/* Fills all of the job. Returns false when that cannot be; then nothing is filled. */
bool slow_buy_whole(struct slow_market *slow, struct slow_job *job);

/* Takes one fill that was made now, of a bid and an ask that are best for each other. A fill at a
 * price goes by price (of bids, what they give for that device; of asks for a bid by value, the
 * price of an operation). A fill at 0 goes by who has the fewest slots for nothing. Then time
 * decides. Returns what is wrong with the fill; NULL: the fill is made here, too. */
const char *slow_take(struct slow_market *slow, struct slow_job *job, struct slow_part *part,
                      struct slow_ask *ask, uint32_t slots, int64_t price);
/* Removes what does not rest of the job. */
void slow_stand_down(struct slow_market *slow, struct slow_job *job);
/* Returns the best ask that the part could have now; NULL: there is none. */
struct slow_ask *slow_best_ask(struct slow_market *slow, const struct slow_job *job,
                               const struct slow_part *part);

#endif
