/* The feed tells members how levels of the book, trades, bars of a minute and the bands change.
 *
 * Every change has a number: 1, 2, 3 ... without a gap, from the opening of the feed on. A level is
 * everything that rests at one price: the asks of one instrument, or the bids with the same needs.
 * A change of a level gives its new state, so a reader needs only the last of several changes of
 * one level. A level changes at the end of a step that left it different. No order and no trade
 * names its account.
 *
 *   book as it stands, page by page, and the number of that moment
 *       ->  changes after that number  ->  changes after ...
 *
 * A member who reads so has the book of the exchange after every step of which all was read. The
 * feed can tell the last FEED_CHANGES numbers, and the trades and bars that the tape keeps. A
 * member further back begins anew.
 *
 * The feed is no state: no hash, snapshot or effect depends on it. Reads are pure. */
#ifndef BOURSE_EXCHANGE_VIEW_FEED_H
#define BOURSE_EXCHANGE_VIEW_FEED_H

#include "exchange/exchange.h"
#include "exchange/view/pages.h"

enum { FEED_CHANGES = 1 << 16 };

enum exchange_change_type {
    CHANGE_ASKS = 1,
    CHANGE_BIDS,
    CHANGE_TRADE,
    CHANGE_BAR,
    CHANGE_BANDS /* exchange_bands_now has the new ones */
};

struct exchange_level {
    char instrument[ATTRIBUTE_TEXT_SIZE]; /* ASKS */
    uint32_t needs_number; /* BIDS: equal numbers are equal needs and rates; never used again */
    const struct requirement *needs; /* BIDS; borrowed until the next step; NULL: no orders */
    enum rate rate;                  /* BIDS: the price is the value of a unit of that work */
    int64_t price_micro;
    uint32_t orders; /* 0: the level is gone; bids that want nothing now do not count */
    uint64_t slots;  /* offered; wanted now */
    uint64_t free;   /* ASKS: not leased */
    /* ASKS: numbers of orders for some accounts, at some hours, or with a daily bound. */
    uint32_t limited, timed, daily;
};
struct exchange_trade {
    char instrument[ATTRIBUTE_TEXT_SIZE];
    uint64_t index; /* index of the command */
    uint64_t entry; /* number of the fill among the ledger's records */
    int64_t time_ns;
    int64_t price_micro;
    uint32_t slots;
};
struct exchange_bar { /* The last bar of an instrument may still change. */
    char instrument[ATTRIBUTE_TEXT_SIZE];
    int64_t start_ns; /* a whole minute of log time */
    int64_t open_micro, high_micro, low_micro, close_micro;
    uint64_t slots;
    uint32_t trades;
};
struct exchange_change {
    enum exchange_change_type type;
    union {
        struct exchange_level level;
        struct exchange_trade trade;
        struct exchange_bar bar;
    };
};
/* Returns false when there is no room for this change; the next page begins with it. */
typedef bool exchange_change_visit(void *context, const struct exchange_change *change);

/* Opens the feed between two steps, with the book as it stands after `records` records of the
 * ledger. Returns false when memory is short; then there is no feed. exchange_step keeps the feed
 * right, or returns OUT_OF_MEMORY. */
bool exchange_feed_open(struct exchange *exchange, uint64_t records);
/* Adds an earlier trade for bars and usual prices, without a change. Trades come oldest first,
 * before the first step. Returns false when memory is short. */
bool exchange_feed_recall(struct exchange *exchange, const struct exchange_trade *trade);

/* The reads of changes need an open feed. */
uint64_t exchange_feed_number(const struct exchange *exchange); /* the last change's */
/* Returns true when all changes after `after` can be told. */
bool exchange_feed_reaches(const struct exchange *exchange, uint64_t after);
/* Visits the changes after `after`, which must be in reach, in order; at most
 * EXCHANGE_LISTING_STEPS numbers a call. LISTING_END or LISTING_MORE: all changes up to
 * *ret_through were told. */
enum exchange_listing exchange_feed_changes(const struct exchange *exchange, uint64_t after,
                                            exchange_change_visit *visit, void *context,
                                            uint64_t *ret_through);
/* Visits the levels of the book, in no meaningful order. `from` is 0, or the end of the page
 * before. A reader of several pages also needs the changes since before the first page. */
enum exchange_listing exchange_feed_book(const struct exchange *exchange, uint32_t from,
                                         exchange_change_visit *visit, void *context,
                                         uint32_t *ret_next);

typedef bool exchange_bar_visit(void *context, const struct exchange_bar *bar); /* false: stop */
/* Visits the bars of one instrument that began at `since_ns` or later, oldest first. NULL visits
 * one bar for each instrument over all that time, the last traded instrument first. Visits nothing
 * without a feed. */
void exchange_bars(const struct exchange *exchange, const char *instrument, int64_t since_ns,
                   exchange_bar_visit *visit, void *context);

struct exchange_usual {
    int64_t price_micro;  /* three quarters of the slots had this price or less */
    int64_t middle_micro; /* half of the slots had this price or less */
    uint32_t trades;      /* trades counted; 0: there is no usual price */
    int64_t since_ns;     /* log time of the oldest of them */
};
/* Returns the usual price of the last 24 hours, from at most the last 1024 trades. The trades are
 * of instruments with a known device that satisfies the well-formed needs. Without a feed there is
 * none. */
struct exchange_usual exchange_usual_price(const struct exchange *exchange,
                                           const struct requirement *needs);
/* Returns the usual price of one instrument. */
struct exchange_usual exchange_usual_of(const struct exchange *exchange,
                                        const char instrument[ATTRIBUTE_TEXT_SIZE]);

#endif
