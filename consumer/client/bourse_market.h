/* consumer/client/bourse_market.h reads the order book, the tape, providers and devices, and
 * places orders. Include consumer/client/bourse.h, which states the rules that all of its parts
 * share. */
#ifndef BOURSE_CONSUMER_CLIENT_BOURSE_MARKET_H
#define BOURSE_CONSUMER_CLIENT_BOURSE_MARKET_H

#include "consumer/client/bourse_submission.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bourse_attribute {
    const char *name;
    const char *text; /* NULL: a number */
    int64_t number;
    /* Source of a figure such as memory or a rate. "declared": by the device's owner, perhaps
     * measured by the agent. "catalogue": of a simulated device. NULL: not a figure. */
    const char *source;
};
/* The standing of an account is its record on the market; zeros mean none. */
struct bourse_standing {
    uint32_t refuted;             /* refuted results, less the faded ones */
    uint32_t refuted_ever;        /* all refuted results */
    uint32_t overruled;           /* results that it rejected as a referee and that stood */
    int64_t withdrawn_ms;         /* time for which its asks are closed; 0: open */
    char owner[BOURSE_NAME_SIZE]; /* as the operator named it; "": the account itself */
};

/* The figures of a device at this moment, as its owner's machine says. One below 0 is unknown. */
struct bourse_device_figures {
    int64_t age_ms; /* since the machine read the figures; -1: it said nothing lately */
    int64_t memory_used, memory_total; /* bytes */
    int64_t busy_percent;
    int64_t power_mw;
    int64_t power_limit_mw; /* the device's own */
    int64_t celsius;
    int64_t held_bytes; /* inputs of jobs that stay in its memory */
    /* Inputs that were there already since the agent's start, those that were copied, and the bytes
     * of the first kind. */
    int64_t held_hits, held_copies, saved_bytes;
};

/* The last challenge of a device's speed, by the broker. Figures are Mflop/s of `gemm_fp32`. */
struct bourse_challenge {
    /* "none": the speed is only claimed. "ok", "slow", "wrong", "unanswered": what was found. */
    const char *outcome;
    int64_t at_ms;          /* log time; 0: never challenged */
    int64_t claimed_mflops; /* claim at that time */
    int64_t shown_mflops;   /* what a slow answer showed; 0: nothing */
    int64_t limit_mflops;   /* a device that claims more has no ask; 0: any claim */
    int64_t closed_ms;      /* time for which the device has no ask; 0: open */
};

struct bourse_device {
    char provider[BOURSE_NAME_SIZE];
    char account[BOURSE_HEX32_SIZE]; /* the provider's key, as outcomes name it */
    char state[BOURSE_NAME_SIZE];    /* the provider's: "present", "suspect", "away" */
    char id[BOURSE_ID_SIZE];
    char label[BOURSE_NAME_SIZE];
    char instrument[BOURSE_NAME_SIZE];
    char kind[BOURSE_NAME_SIZE]; /* widest kind: "cpu", "gpu" ...; "" without one */
    bool simulated;
    uint32_t slots, leased;
    uint32_t free;                             /* slots of its ask that are not leased */
    int64_t price_micro;                       /* price of its ask; -1: no ask stands */
    int64_t max_term_ms;                       /* longest lease of its ask; 0: no bound */
    size_t attribute_count;                    /* all but the instrument */
    const struct bourse_attribute *attributes; /* lives as long as the callback */
    struct bourse_standing standing;           /* the provider's */
    struct bourse_device_figures now;
    struct bourse_challenge challenge;
};
/* Visits every device on the market, by provider. The visitor returns false to stop. The market may
 * change between two pages of the answer. */
typedef bool bourse_device_visitor(void *context, const struct bourse_device *device);
bool bourse_devices(struct bourse *bourse, bourse_device_visitor *visitor, void *context,
                    struct bourse_error *ret_error);
/* Visits the devices that satisfy `needs`, a requirement as in a job file: "kind = gpu and memory
 * >= 40GiB". */
bool bourse_devices_fitting(struct bourse *bourse, const char *needs,
                            bourse_device_visitor *visitor, void *context,
                            struct bourse_error *ret_error);

struct bourse_provider {
    char account[BOURSE_HEX32_SIZE];
    char name[BOURSE_NAME_SIZE];
    char state[BOURSE_NAME_SIZE]; /* "present", "suspect", "away" */
    uint32_t devices;
    uint64_t slots, leased; /* slots of its devices */
    uint64_t free;          /* free slots of its asks */
    bool frozen;            /* by the operator: it offers nothing until that is undone */
    struct bourse_standing standing;
};
/* Visits every account that ever offered a device. */
typedef bool bourse_provider_visitor(void *context, const struct bourse_provider *provider);
bool bourse_providers(struct bourse *bourse, bourse_provider_visitor *visitor, void *context,
                      struct bourse_error *ret_error);

struct bourse_ask_level { /* sum of the asks of one instrument, price and conditions */
    char instrument[BOURSE_NAME_SIZE];
    int64_t price_micro;
    uint64_t slots, free; /* `free` ones are not leased */
    uint32_t providers;
    uint32_t to;       /* number of accounts that it is for; 0: everybody */
    bool for_you;      /* this account is among them */
    const char *hours; /* opening hours as text; "": always. Lives as long as the book */
    int64_t daily_ms;  /* slot-time that each ask gives a day; 0: no bound */
    int64_t left_ms;   /* today's slot-time that leases may still get, from all */
};
struct bourse_bid_level { /* sum of the bids with equal needs at one limit */
    const char *needs;    /* text; lives as long as the book */
    int64_t limit_micro;
    const char *rate; /* rate of the limit */
    uint64_t slots;   /* slots wanted now */
    uint32_t bids;
};
struct bourse_book;
/* Returns the resting orders: asks by instrument and price, cheapest first, and bids by needs and
 * limit, dearest first. `needs` leaves out the asks of devices that do not satisfy it; NULL leaves
 * out none. All bids are there. Nobody learns the owners of bids. */
bool bourse_book(struct bourse *bourse, const char *needs, struct bourse_book **ret_book,
                 struct bourse_error *ret_error);
const struct bourse_ask_level *bourse_book_asks(const struct bourse_book *book, size_t *ret_count);
const struct bourse_bid_level *bourse_book_bids(const struct bourse_book *book, size_t *ret_count);
/* The price band bounds the price of an order; 0 is allowed besides. The notional bounds price x
 * slots x time of one order. */
struct bourse_bands {
    int64_t least_micro, most_micro; /* most 0: the broker does not tell */
    int64_t notional_micro;          /* 0: no bound */
};
struct bourse_bands bourse_book_bands(const struct bourse_book *book);
/* Returns the bands without the book. */
bool bourse_bands(struct bourse *bourse, struct bourse_bands *ret_bands,
                  struct bourse_error *ret_error);
void bourse_book_destroy(struct bourse_book **self);

struct bourse_trade { /* a fill, without its accounts */
    uint64_t entry;   /* ledger entry */
    uint64_t index;   /* log index */
    int64_t time_ms;
    char instrument[BOURSE_NAME_SIZE]; /* "" when the device names none */
    uint32_t slots;
    int64_t price_micro;
};
/* Visits the market's last fills, newest first, at most `limit` (0: all). */
typedef bool bourse_trade_visitor(void *context, const struct bourse_trade *trade);
bool bourse_trades(struct bourse *bourse, uint64_t limit, bourse_trade_visitor *visitor,
                   void *context, struct bourse_error *ret_error);

struct bourse_bar {                    /* trades of one instrument in a minute, or longer */
    char instrument[BOURSE_NAME_SIZE]; /* "" when the device names none */
    int64_t start_ms;                  /* log time */
    int64_t open_micro, high_micro, low_micro, close_micro; /* prices */
    uint64_t slots;
    uint32_t trades;
};
typedef bool bourse_bar_visitor(void *context, const struct bourse_bar *bar);
/* Visits the minutes in which the instrument was traded, oldest first. With NULL, visits one bar
 * for each instrument, the last traded first. `since_ms` is log time; 0: as far back as the broker
 * knows, at most 7 days. */
bool bourse_prices(struct bourse *bourse, const char *instrument, int64_t since_ms,
                   bourse_bar_visitor *visitor, void *context, struct bourse_error *ret_error);

/* A row says how long one kind of work took, for one size of inputs, on one class of devices. Times
 * are scaled to the class's fastest device; a device unlike the class has a row of its own. A row
 * with `pace` gives the slowness of one device against its class's fastest, for all work. Only
 * class and device count in such a row. A device without such a row counts as fast as the
 * fastest. */
struct bourse_measured {
    uint32_t index;              /* first subtask of the job with this work */
    char task[BOURSE_NAME_SIZE]; /* name of the task, or "" */
    uint64_t bytes;              /* least input size of the row; others are less than 25 % larger */
    char device_class[BOURSE_NAME_SIZE]; /* instrument; "" when the device names none */
    uint32_t samples, outliers;          /* counted samples, and samples left out */
    int64_t median_ns, p90_ns;           /* p90 -1: too few samples */
    int64_t at_ms;                       /* log time of the newest */
    /* Provider's key of a single device; "", as `device`, for the whole class. */
    char account[BOURSE_HEX32_SIZE];
    char device[BOURSE_ID_SIZE];
    uint32_t pace; /* in thousandths; 0: a row of times */
};
typedef bool bourse_measured_visitor(void *context, const struct bourse_measured *measured);
/* Visits the times that the market measured for the work of a job: a submitted one by `id`, or
 * `job`. */
bool bourse_history(struct bourse *bourse, const char *id, bourse_measured_visitor *visitor,
                    void *context, struct bourse_error *ret_error);
bool bourse_history_of(struct bourse *bourse, const struct bourse_job *job,
                       bourse_measured_visitor *visitor, void *context,
                       struct bourse_error *ret_error);

struct bourse_depth { /* one price of an instrument's asks, or one limit of equal bids */
    bool is_bid;
    const char *of; /* instrument, or needs as text; lives as long as the news */
    int64_t price_micro;
    const char *rate;     /* rate of the bids' limit */
    uint32_t orders;      /* 0: the level is gone */
    uint64_t slots, free; /* asks: offered, and not leased; bids: wanted, and 0 */
    /* Asks for some accounts only, at some hours only, and with a daily slot-time. */
    uint32_t limited, timed, daily;
};
struct bourse_news {
    bool is_lost;   /* the broker does not answer; all else is empty */
    bool is_anew;   /* first news, or some trades were missed: bourse_trades has them */
    uint64_t index; /* log index of the book */
    int64_t log_time_ms;
    /* The book: asks by instrument, cheapest first, then bids by needs, dearest first. */
    const struct bourse_depth *levels;
    size_t level_count;
    const struct bourse_depth *changes; /* levels that changed since the last news */
    size_t change_count;
    const struct bourse_trade *trades; /* trades since the last news, oldest first */
    size_t trade_count;
    struct bourse_bands bands; /* in force now; a highest price of 0: unknown */
    bool has_new_bands;        /* the bands changed since the last news */
};
typedef bool bourse_news_visitor(void *context, const struct bourse_news *news);
/* Follows the market as long as the visitor returns true. News after a lost connection includes
 * missed changes. */
bool bourse_follow(struct bourse *bourse, bourse_news_visitor *visitor, void *context,
                   struct bourse_error *ret_error);

struct bourse_order {
    char id[BOURSE_ID_SIZE];
    char job[BOURSE_ID_SIZE]; /* job of a bid; "" for an ask */
    uint32_t part;            /* part of the job, from 0 on */
    bool is_bid;
    char name[BOURSE_NAME_SIZE];       /* name of the job, or label of the device */
    char device[BOURSE_ID_SIZE];       /* "" for a bid */
    int64_t price_micro;               /* an ask's least price, or a bid's limit */
    const char *rate;                  /* rate of the limit */
    uint32_t slots;                    /* offered, or wanted now */
    uint32_t free;                     /* slots of an ask that are not leased */
    uint32_t place;                    /* 1: first among orders of the instrument or needs */
    int64_t good_till_ms, max_term_ms; /* for an ask; 0: none */
    const char *to;    /* accounts of an ask: "alice, bob", for the call; "": everybody */
    const char *hours; /* an ask's: "mon-fri 22:00-07:00 (UTC+01:00)", for the call; "" */
    /* Higher bids may take the leases of an interruptible ask. A holder is told `notice_ms` before
     * the end, and no bid takes a lease younger than `minimum_run_ms`. */
    bool interruptible;
    int64_t notice_ms, minimum_run_ms;
    int64_t daily_ms, left_ms; /* an ask's slot-time a day, 0: no bound; today's rest */
    const char *type;          /* "market", "limit", "post-only" or "all-or-none" can rest */
};
/* Visits this account's own asks and the bids of its jobs, oldest first. */
typedef bool bourse_order_visitor(void *context, const struct bourse_order *order);
bool bourse_orders(struct bourse *bourse, bourse_order_visitor *visitor, void *context,
                   struct bourse_error *ret_error);
/* Jobs without a `term` ask for leases of this length or longer. */
#define BOURSE_ASK_TERM_MS_LEAST INT64_C(60000)
#define BOURSE_ASK_NOTICE_MS_MOST INT64_C(86400000)  /* a day */
#define BOURSE_ASK_RUN_MS_MOST INT64_C(604800000)    /* a week */
#define BOURSE_ASK_TIME_MS_MOST INT64_C(31622400000) /* 366 days */
enum bourse_ask_type {
    BOURSE_ASK_LIMIT,         /* an unsold part rests */
    BOURSE_ASK_IOC = 1,       /* an unsold part is cancelled */
    BOURSE_ASK_POST_ONLY = 3, /* rests; refused (WOULD_TRADE) if it would sell at once */
};
struct bourse_ask {
    const char *device; /* id, 32 digits, of a device that the agent offers now */
    uint32_t slots;
    int64_t price_micro; /* least price per slot-hour; 0: a donation */
    /* Life from now, at most TIME_MS_MOST; 0: until a cancel or a new offer of the agent. */
    int64_t good_for_ms;
    int64_t max_term_ms; /* longest lease, TERM_MS_LEAST to TIME_MS_MOST; 0: no bound */
    enum bourse_ask_type type;
    /* Names or 64-digit keys of the accounts that may buy; none: everybody. */
    const char *const *to;
    size_t to_count;
    const char *const *hours; /* "22:00-07:00", "mon-fri 18:00-24:00"; none: always */
    size_t hours_count;
    /* Slot-time a day of all leases together, at least TERM_MS_LEAST; 0: no bound. A daily ask
     * without max_term_ms gives leases of an hour at most. */
    int64_t daily_ms;
    const char *utc_offset; /* offset of hours and days: "+01:00"; NULL: "+00:00" */
    /* Higher bids may take its leases after `minimum_run_ms` (0 to a week), with `notice_ms` (0 to
     * a day). */
    bool interruptible;
    int64_t notice_ms, minimum_run_ms;
};
/* Places an ask and replaces the standing ask of the device. Leased slots stay leased. */
bool bourse_place_ask(struct bourse *bourse, const struct bourse_ask *ask,
                      char ret_id[BOURSE_ID_SIZE], struct bourse_error *ret_error);
/* A replacement changes a standing order; NULL or a negative number keeps a field. Fewer slots at
 * the same price keep the order's place; any other change moves it behind all others. Leases stay
 * at their price; above a lowered cap a lease ends with its term. */
struct bourse_replacement {
    const char *order;    /* id of an ask, or of a job */
    int64_t part;         /* part of the job; negative: all parts */
    int64_t price_micro;  /* an ask's least price, or a job's cap */
    const char *value;    /* in place of a cap: "0.02 per bf16 TFLOP-hour" */
    int64_t slots;        /* offered; or wanted at a time, 0: no bound */
    int64_t budget_micro; /* the job's; only larger */
    /* The job's deadline: a time from now, else a moment of the market's time; 0: as it was. */
    int64_t deadline_in_ms, deadline_ms;
};
bool bourse_replace(struct bourse *bourse, const struct bourse_replacement *replacement,
                    struct bourse_error *ret_error);
/* Cancels an ask of this account; its leases continue. A bid ends with its job: bourse_cancel. */
bool bourse_cancel_ask(struct bourse *bourse, const char *id, struct bourse_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
