/* matching/book.h matches asks and bids that rest in cells and requirement classes.
 *
 * Asks rest in the book of their cell, bids in the book of their class (matching/book_cells.h).
 * book_walk.h visits asks in order.
 *
 * Price-time priority among mutually eligible orders holds exactly across cells and classes. An
 * arriving bid takes the best ask (price, then sequence) of any eligible cell. An arriving ask
 * takes the best bid of any class that accepts its cell. A fill is at the maker's price, except
 * that an ask at 0 always fills at 0. A market of gifts may rank bids otherwise than by price
 * (book_match_by_rank).
 *
 * A bid by value is worth value x rate in a cell, which is its limit there. It takes the ask with
 * the lowest price for a unit of work. An ask takes the bid that is worth most in its cell. Both
 * compare whole products. Only the price of a fill at such a limit is rounded: down, and to at most
 * the price given to book_set_price_most.
 *
 * The caller names orders by a dense handle that it chooses (0 .. order_capacity - 1) and gives
 * each a sequence. The book never invents one, so a book can be rebuilt in any order of insertion.
 * Only cells and classes allocate after creation. The consequences of a fill (escrow, leases) are
 * the caller's. The caller asks for the best counter order, decides how many slots it can afford,
 * and sets the remaining slots. */
#ifndef BOURSE_MATCHING_BOOK_H
#define BOURSE_MATCHING_BOOK_H

#include "matching/book_cells.h"

enum {
    BOOK_ORDERS_MAX = (1 << 26) - 2,
    BOOK_KINDS_MAX = 1 << 20, /* cells, or classes */
};

struct book_limits {
    uint32_t orders;
    uint32_t cells;
    uint32_t classes;
};

struct book *book_create(struct book_limits limits); /* Returns NULL when memory is short. */
void book_destroy(struct book **self);
/* Makes room for `orders` resting orders, never for fewer than before. Returns false when memory is
 * short; the book is then unchanged. */
bool book_grow(struct book *book, uint32_t orders);

/* Returns the price that a bid gives for a slot-hour in a cell. Its limit is by value in `rate`, or
 * a price for RATE_NONE. Returns 0 where the cell lacks the rate. */
int64_t book_limit(const struct book *book, enum rate rate, int64_t limit_micro, uint32_t cell);
/* Sets the highest price of a fill at the limit of a bid by value; INT64_MAX until set. */
void book_set_price_most(struct book *book, int64_t price_micro);

struct book_ask {
    /* The account number of the owner: an order never trades with one of the same owner (P14). */
    uint32_t owner;
    uint32_t cell;
    uint32_t slots; /* free now; an ask with 0 keeps its place but fills nothing */
    int64_t price_micro;
    int64_t max_term_ns;
    uint64_t sequence;
};

struct book_bid {
    uint32_t owner;
    uint32_t class_id;
    uint32_t slots; /* wanted now */
    /* The width is slots_per_device: a fill on one device is a multiple of it. */
    uint32_t width;
    int64_t limit_micro; /* the value, in a class by value */
    int64_t term_ns;
    uint64_t sequence;
};

/* An order is an ask or a bid. */
struct book_order {
    bool is_bid;
    uint32_t owner;
    uint32_t kind; /* cell of an ask, class of a bid */
    uint32_t slots;
    uint32_t width;      /* 1 for an ask */
    int64_t price_micro; /* the value, for a bid by value */
    int64_t term_ns;
    uint64_t sequence;
};

/* Rests an order under a free handle. */
enum book_status book_rest(struct book *book, uint32_t handle, const struct book_order *order);
void book_remove(struct book *book, uint32_t handle);
bool book_rests(const struct book *book, uint32_t handle);
/* Returns the lowest handle >= `from` of a resting order, or BOOK_NONE. */
uint32_t book_next(const struct book *book, uint32_t from);
/* The two functions read the resting order. They return false when no order of that side rests
 * under the handle. */
bool book_ask(const struct book *book, uint32_t handle, struct book_ask *ret_ask);
bool book_bid(const struct book *book, uint32_t handle, struct book_bid *ret_bid);
uint64_t book_sequence(const struct book *book, uint32_t handle);
uint32_t book_owner(const struct book *book, uint32_t handle); /* of a resting order */
/* Returns the free or wanted slots of a resting order. */
uint32_t book_slots(const struct book *book, uint32_t handle);
/* Sets the free or wanted slots. Price and sequence stay, and with them the priority. */
void book_set_slots(struct book *book, uint32_t handle, uint32_t slots);

/* A book_skip returns true to refuse a candidate, for the caller's own reasons. */
typedef bool book_skip(void *context, uint32_t handle);
struct book_match {
    uint32_t handle; /* the resting order */
    uint32_t slots;  /* slots that the two could trade */
    /* The owners are the same: the rest of the arriving order is refused (P14). */
    bool is_own;
    int64_t price_micro; /* of the fill */
    uint64_t sequence;   /* of the resting order */
};
bool book_match(const struct book *book, const struct book_order *order, book_skip *skip,
                void *context, struct book_match *ret_match);
/* Does the same for an ask at 0, where no price decides. Finds the bid whose owner has the least
 * rank; among equal ranks, the lowest sequence. The call examines every bid that the cell meets,
 * and calls `skip` for those that would be first. */
struct book_ranking {
    int64_t (*rank)(const void *context, uint32_t owner);
    const void *context;
};
bool book_match_by_rank(const struct book *book, const struct book_order *ask,
                        const struct book_ranking *ranking, book_skip *skip, void *context,
                        struct book_match *ret_match);
/* The two functions prefetch memory, because the next messages are known while they wait. Neither
 * waits or changes anything, and any handle is allowed. book_expect() is for an order that will be
 * filled or removed. book_expect_match() is for an arriving order: it prefetches the first order it
 * meets. */
void book_expect(const struct book *book, uint32_t handle);
void book_expect_match(const struct book *book, bool is_bid, uint32_t kind);

/* Returns how many orders of its cell or class come before a resting order, counted up to
 * `most`. */
uint32_t book_ahead(const struct book *book, uint32_t handle, uint32_t most);

/* Returns true when a bid takes `ask` before `other`. The bid is by value in `rate`, or by price
 * for RATE_NONE; the asks' cells have the rate. */
bool book_ask_is_before(const struct book *book, enum rate rate, uint32_t ask, uint32_t other);

#endif
