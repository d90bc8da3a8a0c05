/* exchange/view/feed.h - the market as it changes, for members who follow it: levels of the book,
 * trades, bars of a minute and the bands.
 *
 * Every change has a number: 1, 2, 3 ... without a gap, from the moment the feed was opened. A
 * level is all that rests at one price: of asks, those of one instrument; of bids, those with the
 * same needs. A change of a level says how it stands now, so that of several changes of one level
 * only the last has to be told. At the end of a step those levels change that stand otherwise than
 * before it. Nothing says whose an order or a trade is.
 *
 *   book as it stands, page by page, and the number of that moment  ->  changes after that number  ->  changes after ...
 *
 * Whoever does so has the book of the exchange after every step of which all was read. The last
 * FEED_CHANGES numbers can be told, and of trades and bars what the tape keeps; who is further back
 * begins anew.
 *
 * The feed is no state: in no hash, in no snapshot, and no effect depends on it. Reads are pure. */
#ifndef BOURSE_EXCHANGE_VIEW_FEED_H
#define BOURSE_EXCHANGE_VIEW_FEED_H

#include "exchange/exchange.h"
#include "exchange/view/listings.h"

enum { FEED_CHANGES = 1 << 16 };

enum exchange_change_type {
    CHANGE_ASKS = 1,
    CHANGE_BIDS,
    CHANGE_TRADE,
    CHANGE_BAR,
    CHANGE_BANDS /* exchange_bands_now says what they are */
};

struct exchange_level {
    char instrument[ATTRIBUTE_TEXT_SIZE]; /* ASKS */
    uint32_t needs_number; /* BIDS: equal numbers are equal needs and rates; never used again */
    const struct requirement *needs; /* BIDS; borrowed until the next step. NULL: no orders */
    enum rate rate;                  /* BIDS: the price is the value of a unit of that work */
    int64_t price_micro;
    uint32_t orders; /* 0: the level is gone. Bids that want nothing now are not counted */
    uint64_t slots;  /* offered; wanted now */
    uint64_t free;   /* ASKS: of those, not leased */
    uint32_t limited, timed,
        daily; /* ASKS: orders for some accounts, at some hours, for so long a day only */
};
struct exchange_trade {
    char instrument[ATTRIBUTE_TEXT_SIZE];
    uint64_t index; /* of the command */
    uint64_t entry; /* number of the fill among the ledger's records */
    int64_t time_ns;
    int64_t price_micro;
    uint32_t slots;
};
struct exchange_bar { /* as far as it is known: the last one of an instrument may still change */
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
/* False: there is no room for this one; the next page begins with it. */
typedef bool exchange_change_visit(void *context, const struct exchange_change *change);

/* Opens the feed of an exchange between two steps, with the book as it stands, which has led to so
 * many `records` of the ledger so far. False: out of memory, and no feed. Tested by nobody:
 * exchange_step keeps it right, and returns OUT_OF_MEMORY when it cannot. */
bool exchange_feed_open(struct exchange *exchange, uint64_t records);
/* A trade of before, for bars and usual prices; no change. Oldest first, before the first step.
 * False: out of memory. */
bool exchange_feed_recall(struct exchange *exchange, const struct exchange_trade *trade);

/* Those of changes want an open feed. */
uint64_t exchange_feed_number(const struct exchange *exchange); /* of the last change */
/* Whether all changes after that one can be told. */
bool exchange_feed_reaches(const struct exchange *exchange, uint64_t after);
/* The changes after that one, which it reaches, in order; at most EXCHANGE_LISTING_STEPS numbers
 * are looked at. END or MORE: all up to *ret_through are told. */
enum exchange_listing exchange_feed_changes(const struct exchange *exchange, uint64_t after,
                                            exchange_change_visit *visit, void *context,
                                            uint64_t *ret_through);
/* The levels of the book that stand, in no order that means anything. `from`: 0, or where the page
 * before ended. Who reads several pages has the book when it has read the changes since before the
 * first, too. */
enum exchange_listing exchange_feed_book(const struct exchange *exchange, uint32_t from,
                                         exchange_change_visit *visit, void *context,
                                         uint32_t *ret_next);

typedef bool exchange_bar_visit(void *context, const struct exchange_bar *bar); /* false: stop */
/* The bars of one instrument that began at `since_ns` or later, oldest first; or with NULL for each
 * instrument one bar over all of these, what was traded last first. Nothing without a feed. */
void exchange_bars(const struct exchange *exchange, const char *instrument, int64_t since_ns,
                   exchange_bar_visit *visit, void *context);

struct exchange_usual {
    int64_t price_micro;  /* three quarters of the slots were let at this or less */
    int64_t middle_micro; /* and half of them at this */
    uint32_t trades;      /* from so many; 0: there is no usual price */
    int64_t since_ns;     /* log time of the oldest of them */
};
/* What was paid in the last 24 hours, by the last 1024 trades at most, for instruments of which a
 * known device satisfies the needs (well formed). None without a feed. */
struct exchange_usual exchange_usual_price(const struct exchange *exchange,
                                           const struct requirement *needs);
/* The same of one instrument. */
struct exchange_usual exchange_usual_of(const struct exchange *exchange,
                                        const char instrument[ATTRIBUTE_TEXT_SIZE]);

#endif
