/* The listings show the market to its members, page by page, as pure reads without a trace.
 *
 * A market may be larger than a message, and reads run while orders wait. So one call takes at most
 * EXCHANGE_LISTING_STEPS steps, then says where to go on. The market changes between two pages; a
 * thing that stays is listed once. Providers come in the order of their first advertisement, and so
 * do the devices of one. */
#ifndef BOURSE_EXCHANGE_VIEW_LISTINGS_H
#define BOURSE_EXCHANGE_VIEW_LISTINGS_H

#include "exchange/exchange.h"
#include "exchange/view/pages.h"

struct exchange_place { /* place where a listing of devices goes on */
    uint32_t provider;
    uint64_t device; /* age of the device */
};

struct exchange_device_row {
    uint32_t provider;
    uint8_t state; /* enum provider_state */
    struct id128 device;
    char label[EXCHANGE_NAME_SIZE];
    uint32_t slots, leased;
    uint32_t free;                      /* slots of the ask that are not leased */
    int64_t price_micro;                /* price of the ask; -1: no ask stands */
    int64_t max_term_ns;                /* longest term of the ask; 0: no bound */
    const struct attribute *attributes; /* sorted by name; borrowed until the next step */
    size_t attribute_count;
};
/* Returns false when there is no room for this row; the next page begins with it. */
typedef bool exchange_device_visit(void *context, const struct exchange_device_row *row);

/* Lists every advertised device, or the devices that satisfy `needs` unless NULL. `from` is NULL,
 * or the end of the page before. *ret_next is set only with LISTING_MORE. */
enum exchange_listing exchange_list_devices(const struct exchange *exchange,
                                            const struct requirement *needs,
                                            const struct exchange_place *from,
                                            exchange_device_visit *visit, void *context,
                                            struct exchange_place *ret_next);

/* Visits the advertised devices of one account, until `visit` returns false. */
void exchange_visit_devices(const struct exchange *exchange, uint32_t account,
                            exchange_device_visit *visit, void *context);

struct exchange_provider_row {
    uint32_t provider;
    uint8_t state;          /* enum provider_state */
    uint32_t devices;       /* advertised */
    uint64_t slots, leased; /* sums over its devices */
    uint64_t free;          /* sum over its asks */
    bool is_frozen;         /* by the operator */
};
typedef bool exchange_provider_visit(void *context, const struct exchange_provider_row *row);
/* Lists every account that ever advertised. `from` is 0, or the account number that ended the page
 * before. */
enum exchange_listing exchange_list_providers(const struct exchange *exchange, uint32_t from,
                                              exchange_provider_visit *visit, void *context,
                                              uint32_t *ret_next);

/* A row is one resting order, without the account of a bid. Bids that wait to be filled all at once
 * are not shown, because no trade with one of them alone is possible. */
struct exchange_book_row {
    bool is_bid;
    int64_t price_micro;                  /* least price of an ask, limit of a bid */
    uint32_t slots;                       /* offered by an ask; wanted now by a bid, at least 1 */
    uint32_t free;                        /* ASK: not leased */
    uint32_t provider;                    /* ASK */
    char instrument[ATTRIBUTE_TEXT_SIZE]; /* ASK */
    uint32_t to_count;                    /* ASK: entries of `to`; 0: every account */
    const uint32_t *to;                   /* ASK: account numbers; borrowed until the next step */
    const struct hours *hours;            /* ASK; borrowed until the next step */
    int64_t daily_ns;                     /* ASK: slot-time per day; 0: any */
    int64_t left_ns;                      /* ASK with daily_ns: slot-time still to lease today */
    uint32_t class_id; /* BID: equal numbers are equal needs and rates, within one call */
    enum rate rate;    /* BID: its price is the value of a unit of that work */
    const struct requirement *needs; /* BID; borrowed until the next step */
};
typedef bool exchange_book_visit(void *context, const struct exchange_book_row *row);
/* Lists every resting order, in no meaningful order; the depth needs all pages. `needs`, unless
 * NULL, leaves out asks of devices that do not satisfy it. `from` is 0, or the end of the page
 * before. */
enum exchange_listing exchange_list_book(const struct exchange *exchange,
                                         const struct requirement *needs, uint32_t from,
                                         exchange_book_visit *visit, void *context,
                                         uint32_t *ret_next);

struct exchange_order_row {
    bool is_bid;
    struct id128 order;            /* the bid of a job's first part has the job's id */
    struct id128 job;              /* BID */
    uint32_t part;                 /* BID: part of the job */
    char name[EXCHANGE_NAME_SIZE]; /* name of the job; label of the device */
    struct id128 device;           /* ASK */
    int64_t price_micro;
    enum rate rate; /* like the book row's */
    uint32_t slots; /* like the book row's, but 0 for a bid that wants nothing now */
    uint32_t free;  /* ASK */
    int64_t good_till_ns, max_term_ns; /* ASK; 0: none */
    uint32_t to_count;                 /* ASK: entries of `to`; 0: every account */
    uint32_t to[EXCHANGE_ASK_TO_MOST];
    struct hours hours;          /* ASK */
    int64_t daily_ns;            /* ASK: slot-time per day; 0: any */
    int64_t left_ns;             /* ASK with daily_ns: slot-time still to lease today */
    struct exchange_terms terms; /* ASK */
    enum exchange_order_type type;
    /* Orders of its cell or class that come before it, counted up to EXCHANGE_LISTING_STEPS. */
    uint32_t ahead;
};
typedef bool exchange_order_visit(void *context, const struct exchange_order_row *row);
/* Lists the account's own asks and its jobs' bids, one per part, by age of device and job. `from`
 * is 0, or the end of the page before. */
enum exchange_listing exchange_list_orders(const struct exchange *exchange, uint32_t account,
                                           uint64_t from, exchange_order_visit *visit,
                                           void *context, uint64_t *ret_next);

#endif
