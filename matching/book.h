/* matching/book.h matches asks and bids by cells, requirement classes, and the orders that rest in
 * them.
 *
 * A *cell* is one kind of device: an interned set of attributes. A *class* is one distinct
 * requirement, compiled once into the set of cells that satisfy it. Asks rest in the book of their
 * cell, bids in the book of their class. A class may be *by value*. Its bids then give no price,
 * but the worth to them of a unit of work at one rate of the device (base/rate.h). Cells without
 * that rate do not satisfy the class.
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
 * Cells and classes live as long as they have references: book_cell and book_class take a
 * reference. The release of the last one frees the number; the lowest free number is used next. The
 * book computes whether a class accepts a cell once, and keeps the answer.
 *
 * The caller names orders by a dense handle that it chooses (0 .. order_capacity - 1) and gives
 * each a sequence. The book never invents one, so a book can be rebuilt in any order of insertion.
 * Only cells and classes allocate after creation. The consequences of a fill (escrow, leases) are
 * the caller's. The caller asks for the best counter order, decides how many slots it can afford,
 * and sets the remaining slots. Pure. */
#ifndef BOURSE_MATCHING_BOOK_H
#define BOURSE_MATCHING_BOOK_H

#include "base/rate.h"
#include "base/requirement.h"
#include "matching/compiled_requirement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct book;

enum {
    BOOK_ORDERS_MAX = (1 << 26) - 2,
    BOOK_KINDS_MAX = 1 << 20, /* cells, or classes */
};

struct book_limits {
    uint32_t orders;
    uint32_t cells;
    uint32_t classes;
};

enum book_status {
    BOOK_OK,
    BOOK_FULL_ORDERS,
    BOOK_FULL_CELLS,
    BOOK_FULL_CLASSES,
    BOOK_BAD_REQUIREMENT,
    BOOK_OUT_OF_MEMORY
};

#define BOOK_NONE UINT32_MAX

struct book *book_create(struct book_limits limits); /* Returns NULL when memory is short. */
void book_destroy(struct book **self);
/* Makes room for `orders` resting orders, never for fewer than before. Returns false when memory is
 * short; the book is then unchanged. */
bool book_grow(struct book *book, uint32_t orders);

/* Finds the cell with exactly these attributes (in any order), or makes it. The caller owns the
 * reference. Any status but BOOK_OK leaves the book unchanged. */
enum book_status book_cell(struct book *book, const struct attribute *attributes, size_t count,
                           uint32_t *ret_cell);
/* Finds or makes the class of exactly this requirement. Its bids are by value in `rate`, or by
 * price for RATE_NONE. The caller owns the reference. BOOK_BAD_REQUIREMENT: the tree is not well
 * formed. */
enum book_status book_class(struct book *book, const struct requirement *requirement,
                            enum rate rate, uint32_t *ret_class);
/* The two functions make a cell or class under a free number that the caller chooses, to rebuild a
 * book. They return BOOK_FULL_CELLS or BOOK_FULL_CLASSES in three cases: the number is in use, it
 * is above the limit, or an equal cell (class) exists. */
enum book_status book_cell_at(struct book *book, uint32_t cell, const struct attribute *attributes,
                              size_t count);
enum book_status book_class_at(struct book *book, uint32_t class_id,
                               const struct requirement *requirement, enum rate rate);
/* The two functions release a reference. The last one ends the cell or class, in which no order may
 * rest any more. */
void book_cell_release(struct book *book, uint32_t cell);
void book_class_release(struct book *book, uint32_t class_id);
/* The two functions add a reference to an existing cell or class. */
void book_cell_hold(struct book *book, uint32_t cell);
void book_class_hold(struct book *book, uint32_t class_id);
uint32_t book_cell_references(const struct book *book, uint32_t cell); /* 0: no such cell */
uint32_t book_class_references(const struct book *book, uint32_t class_id);
bool book_class_accepts(const struct book *book, uint32_t class_id, uint32_t cell);
/* Writes the cells that compete with `cell` for the same bids, which are by value in `rate`, or by
 * price for RATE_NONE. They are all cells of every such class that accepts `cell`; by price, `cell`
 * itself too. There is one bit each, in as many words of 64 as the book's limit of cells needs.
 * Returns false when there are none. */
bool book_cells_beside(const struct book *book, uint32_t cell, enum rate rate, uint64_t *ret_bits);
/* The two functions return a bound: all numbers in use are below it. */
uint32_t book_cell_bound(const struct book *book);
uint32_t book_class_bound(const struct book *book);
const struct attribute *book_cell_attributes(const struct book *book, uint32_t cell,
                                             size_t *ret_count);
/* book_cell_digests() returns the digest of each attribute. book_cell_simulated() returns the
 * answer of requirement_simulated. */
const struct attribute_digest *book_cell_digests(const struct book *book, uint32_t cell);
bool book_cell_simulated(const struct book *book, uint32_t cell);
/* Returns the requirement, borrowed. Its memory ends after its last node, so read it in place and
 * never copy the whole struct. */
const struct requirement *book_class_requirement(const struct book *book, uint32_t class_id);
enum rate book_class_rate(const struct book *book, uint32_t class_id); /* RATE_NONE: not by value */
/* 0: the cell lacks it */
int64_t book_cell_rate(const struct book *book, uint32_t cell, enum rate rate);
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

/* An ask or a bid. */
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

/* A book_visit returns false to stop the walk. book_walk_asks() visits all resting asks of the
 * cells that `requirement` accepts and that have the rate. The best come first: by price, or by
 * price for a unit of work. */
typedef bool book_visit(void *context, uint32_t handle, const struct book_ask *ask);
void book_walk_asks(const struct book *book, const struct requirement *requirement, enum rate rate,
                    book_visit *visit, void *context);

#endif
