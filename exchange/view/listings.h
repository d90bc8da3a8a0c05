/* exchange/view/listings.h - what the market looks like to its members, page by page: pure reads,
 * no trace.
 *
 * The market may be larger than a message, and a read runs where orders wait. So one call looks at
 * no more than EXCHANGE_LISTING_STEPS allows, then says where to go on; between two pages the
 * market moves on. What stays is listed once: providers come in the order of their first
 * advertisement, the devices of one in that of theirs. */
#ifndef BOURSE_EXCHANGE_VIEW_LISTINGS_H
#define BOURSE_EXCHANGE_VIEW_LISTINGS_H

#include "exchange/exchange.h"

/* Steps of one call. Each thing looked at is a step, and each predicate of a requirement on each of
 * its attributes is one more: a millisecond of a processor's time. */
enum { EXCHANGE_LISTING_STEPS = 1 << 16 };

enum exchange_listing {
    LISTING_END,      /* that was all */
    LISTING_MORE,     /* go on from *ret_next */
    LISTING_NO_PLACE, /* `from` is none that a listing gave */
    LISTING_BAD_NEEDS /* not a well-formed requirement */
};

struct exchange_place { /* where a listing of devices goes on */
    uint32_t provider;
    uint64_t device; /* by age */
};

struct exchange_device_row {
    uint32_t provider;
    uint8_t state; /* of the provider: enum provider_state */
    struct id128 device;
    char label[EXCHANGE_NAME_SIZE];
    uint32_t slots, leased;
    uint32_t free;                      /* slots of its ask that are not leased */
    int64_t price_micro;                /* of its ask; -1: none stands */
    int64_t max_term_ns;                /* of its ask; 0: no bound */
    const struct attribute *attributes; /* sorted by name; borrowed until the next step */
    size_t attribute_count;
};
/* False: there is no room for this row; the next page begins with it. */
typedef bool exchange_device_visit(void *context, const struct exchange_device_row *row);

/* Every device that is advertised, or with `needs` (NULL: none) those that satisfy it. `from`:
 * NULL, or where the page before ended; *ret_next is written with LISTING_MORE only. */
enum exchange_listing exchange_list_devices(const struct exchange *exchange,
                                            const struct requirement *needs,
                                            const struct exchange_place *from,
                                            exchange_device_visit *visit, void *context,
                                            struct exchange_place *ret_next);

struct exchange_provider_row {
    uint32_t provider;
    uint8_t state;          /* enum provider_state */
    uint32_t devices;       /* advertised */
    uint64_t slots, leased; /* of those */
    uint64_t free;          /* of their asks */
};
typedef bool exchange_provider_visit(void *context, const struct exchange_provider_row *row);
/* Everybody who ever advertised. `from`: 0, or the account number at which the page before
 * ended. */
enum exchange_listing exchange_list_providers(const struct exchange *exchange, uint32_t from,
                                              exchange_provider_visit *visit, void *context,
                                              uint32_t *ret_next);

/* One order that rests, and not whose it is where it is a bid. Bids that wait to be filled all at
 * once are not shown: nobody trades with one of them alone. */
struct exchange_book_row {
    bool is_bid;
    int64_t price_micro;                  /* least of an ask, limit of a bid */
    uint32_t slots;                       /* offered; or wanted now, at least 1 */
    uint32_t free;                        /* ASK: not leased */
    uint32_t provider;                    /* ASK */
    char instrument[ATTRIBUTE_TEXT_SIZE]; /* ASK */
    uint32_t to_count;                    /* ASK: account numbers; 0: for anybody */
    const uint32_t *to;                   /* ASK; borrowed until the next step, */
    const struct hours *hours;            /* like these */
    int64_t daily_ns;                     /* ASK: 0, any; else */
    int64_t left_ns;                      /* ASK: what leases may still be granted of today */
    uint32_t class_id; /* BID: equal numbers are equal needs and rates, within one call */
    enum rate rate;    /* BID: its price is the value of a unit of that work */
    const struct requirement *needs; /* BID; borrowed until the next step */
};
typedef bool exchange_book_visit(void *context, const struct exchange_book_row *row);
/* Every order that rests, in no order that means anything: a page is not a depth, all of them
 * together are. `needs` (NULL: none) leaves out the asks of devices that do not satisfy it. `from`:
 * 0, or where the page before ended. */
enum exchange_listing exchange_list_book(const struct exchange *exchange,
                                         const struct requirement *needs, uint32_t from,
                                         exchange_book_visit *visit, void *context,
                                         uint32_t *ret_next);

struct exchange_order_row {
    bool is_bid;
    struct id128 order;            /* that of the first part of a job is the job's */
    struct id128 job;              /* BID */
    uint32_t part;                 /* BID: of which part of the job */
    char name[EXCHANGE_NAME_SIZE]; /* of the job; label of the device */
    struct id128 device;           /* ASK */
    int64_t price_micro;
    enum rate rate;                    /* as in the book */
    uint32_t slots;                    /* as in the book, but a bid that wants nothing now has 0 */
    uint32_t free;                     /* ASK */
    int64_t good_till_ns, max_term_ns; /* ASK; 0: none */
    uint32_t to_count;                 /* ASK: account numbers; 0: for anybody */
    uint32_t to[EXCHANGE_ASK_TO_MOST];
    struct hours hours;          /* ASK */
    int64_t daily_ns;            /* ASK: 0, any; else */
    int64_t left_ns;             /* ASK: what leases may still be granted of today */
    struct exchange_terms terms; /* ASK */
    enum exchange_order_type type;
    uint32_t ahead; /* orders of its cell or class that come before it, counted up to
                       EXCHANGE_LISTING_STEPS */
};
typedef bool exchange_order_visit(void *context, const struct exchange_order_row *row);
/* The account's own asks and its jobs' bids, one for each part, by the age of device and job.
 * `from`: 0, or where the page before ended. */
enum exchange_listing exchange_list_orders(const struct exchange *exchange, uint32_t account,
                                           uint64_t from, exchange_order_visit *visit,
                                           void *context, uint64_t *ret_next);

#endif
