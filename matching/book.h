/* matching/book.h - who trades with whom: cells, requirement classes, and the orders that rest in
 * them.
 *
 * A *cell* is one kind of device: an interned set of attributes. A *class* is one distinct
 * requirement, compiled once into the set of cells that satisfy it. Asks rest in the book of their
 * cell, bids in the book of their class. A class may be *by value*: its bids say what a unit of
 * work of one rate of the device is worth to them (base/rate.h) instead of a price, and cells
 * without that rate do not satisfy it. Price-time priority among mutually eligible orders holds
 * exactly across them: an arriving bid takes the best (price, then sequence) ask of any eligible
 * cell, an arriving ask the best bid of any class that accepts its cell. A fill is at the maker's
 * price, except that an ask at 0 fills at 0 whoever is maker; and that whoever makes a market of
 * gifts may go by another rank than the price (book_match_by_rank).
 *
 * A bid by value is worth value x rate in a cell, which is its limit there, and takes the ask with
 * the lowest price for a unit of work; an ask takes the bid that is worth most in its cell. Both
 * compare whole products, so that nothing is rounded but the price of a fill at such a limit: down,
 * and to no more than book_set_price_most says.
 *
 * Cells and classes live as long as somebody refers to them: book_cell and book_class take a
 * reference, and the last one given back frees the number, the lowest of which is the next to be
 * used. Whether a class accepts a cell is found out when it is first asked, and kept.
 *
 * The caller names orders by a dense handle that it chooses (0 .. order_capacity - 1) and gives
 * each a sequence; the book never invents one, so a book can be rebuilt in any order of insertion.
 * Only cells and classes allocate after creation. What a fill means (escrow, leases) is the
 * caller's: it asks for the best counter order, decides how many slots it can afford, and says what
 * is left of it. Pure. */
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

struct book *book_create(struct book_limits limits); /* NULL when out of memory */
void book_destroy(struct book **self);
/* Room for `orders` at once from now on, never fewer than before. False when out of memory: the
 * book is as it was. */
bool book_grow(struct book *book, uint32_t orders);

/* The cell with exactly these attributes (in any order), made when it is new; the reference is the
 * caller's. Any status but OK leaves the book as it was. */
enum book_status book_cell(struct book *book, const struct attribute *attributes, size_t count,
                           uint32_t *ret_cell);
/* The class of exactly this requirement whose bids are by value in that rate, or NONE: by price,
 * likewise. BAD_REQUIREMENT: not a well-formed tree. */
enum book_status book_class(struct book *book, const struct requirement *requirement,
                            enum rate rate, uint32_t *ret_class);
/* The same under a number of the caller's choice, which is free: for a book that is made again.
 * FULL when the number is in use or above the limit, or when another cell (class) is like it. */
enum book_status book_cell_at(struct book *book, uint32_t cell, const struct attribute *attributes,
                              size_t count);
enum book_status book_class_at(struct book *book, uint32_t class_id,
                               const struct requirement *requirement, enum rate rate);
/* Gives a reference back. With the last one go cell or class, in whose book nothing rests any
 * more. */
void book_cell_release(struct book *book, uint32_t cell);
void book_class_release(struct book *book, uint32_t class_id);
/* One reference more to what is there. */
void book_cell_hold(struct book *book, uint32_t cell);
void book_class_hold(struct book *book, uint32_t class_id);
uint32_t book_cell_references(const struct book *book,
                              uint32_t cell); /* 0: there is no such cell */
uint32_t book_class_references(const struct book *book, uint32_t class_id);
bool book_class_accepts(const struct book *book, uint32_t class_id, uint32_t cell);
/* The cells that compete for the same bids by value in that rate, or NONE: by price: all that some
 * such class accepts which accepts this one; by price itself, too. A bit each, in as many words of
 * 64 as cells of the book's limit need. False: none. */
bool book_cells_beside(const struct book *book, uint32_t cell, enum rate rate, uint64_t *ret_bits);
/* Numbers in use are below these. */
uint32_t book_cell_bound(const struct book *book);
uint32_t book_class_bound(const struct book *book);
const struct attribute *book_cell_attributes(const struct book *book, uint32_t cell,
                                             size_t *ret_count);
/* Of these, the digest of each; and what requirement_simulated says. */
const struct attribute_digest *book_cell_digests(const struct book *book, uint32_t cell);
bool book_cell_simulated(const struct book *book, uint32_t cell);
/* There are as many nodes as it counts, and no more: to be read, not copied whole. */
const struct requirement *book_class_requirement(const struct book *book, uint32_t class_id);
enum rate book_class_rate(const struct book *book, uint32_t class_id); /* NONE: not by value */
int64_t book_cell_rate(const struct book *book, uint32_t cell, enum rate rate); /* 0: it has none */
/* What a bid of that limit, by value in that rate or NONE, gives for a slot-hour in a cell; 0 where
 * the cell has no such rate. */
int64_t book_limit(const struct book *book, enum rate rate, int64_t limit_micro, uint32_t cell);
/* INT64_MAX until it is said. */
void book_set_price_most(struct book *book, int64_t price_micro);
struct book_ask {
    uint32_t owner; /* account number: an order never meets one of the same owner (P14) */
    uint32_t cell;
    uint32_t slots; /* free now; 0 keeps its place but fills nothing */
    int64_t price_micro;
    int64_t max_term_ns;
    uint64_t sequence;
};

struct book_bid {
    uint32_t owner;
    uint32_t class_id;
    uint32_t slots;      /* wanted now */
    uint32_t width;      /* slots_per_device: a fill is a multiple of it on one device */
    int64_t limit_micro; /* its value, in a class by value */
    int64_t term_ns;
    uint64_t sequence;
};

/* Either of them. */
struct book_order {
    bool is_bid;
    uint32_t owner;
    uint32_t kind; /* cell of an ask, class of a bid */
    uint32_t slots;
    uint32_t width;      /* 1 for an ask */
    int64_t price_micro; /* the value of a bid by value */
    int64_t term_ns;
    uint64_t sequence;
};

/* Rest an order under a free handle. */
enum book_status book_rest(struct book *book, uint32_t handle, const struct book_order *order);
void book_remove(struct book *book, uint32_t handle);
bool book_rests(const struct book *book, uint32_t handle);
/* The lowest handle of an order that rests, from this one on; BOOK_NONE: there is none. */
uint32_t book_next(const struct book *book, uint32_t from);
/* The resting order; false: there is none of that side under the handle. */
bool book_ask(const struct book *book, uint32_t handle, struct book_ask *ret_ask);
bool book_bid(const struct book *book, uint32_t handle, struct book_bid *ret_bid);
uint64_t book_sequence(const struct book *book, uint32_t handle);
uint32_t book_owner(const struct book *book, uint32_t handle); /* of what rests */
/* Free or wanted slots of what rests. */
uint32_t book_slots(const struct book *book, uint32_t handle);
/* Sets the free or wanted slots; price and sequence, and so priority, stay. */
void book_set_slots(struct book *book, uint32_t handle, uint32_t slots);

/* What an order that arrives meets first, in price-time order: the best one that can fill at least
 * one width; orders of its own owner are not passed over. `skip` may refuse a candidate (its reason
 * is the caller's); NULL refuses none. The order need not rest for what fills at once. False: there
 * is none. */
typedef bool book_skip(void *context, uint32_t handle);
struct book_match {
    uint32_t handle;     /* of the one that rests */
    uint32_t slots;      /* that the two could trade */
    bool is_own;         /* of the same owner: what is left of the newcomer is refused (P14) */
    int64_t price_micro; /* of the fill */
    uint64_t sequence;   /* of the one that rests */
};
bool book_match(const struct book *book, const struct book_order *order, book_skip *skip,
                void *context, struct book_match *ret_match);
/* The same for an ask at 0, which no price decides: the bid whose owner has the least rank, of
 * those of equal rank the one with the lowest sequence. It looks at every bid that its cell meets,
 * and calls `skip` for those that would be first. */
struct book_ranking {
    int64_t (*rank)(const void *context, uint32_t owner);
    const void *context;
};
bool book_match_by_rank(const struct book *book, const struct book_order *ask,
                        const struct book_ranking *ranking, book_skip *skip, void *context,
                        struct book_match *ret_match);
/* What the book will be asked for soon is known while messages wait: memory that it takes is
 * brought closer to the processor; nothing waits for that, nothing changes, and any handle may be
 * named. An order that is filled or goes; of one that will arrive, whom it meets first. */
void book_expect(const struct book *book, uint32_t handle);
void book_expect_match(const struct book *book, bool is_bid, uint32_t kind);

/* How many orders of its cell or class come before a resting one, counted up to `most`. */
uint32_t book_ahead(const struct book *book, uint32_t handle, uint32_t most);

/* Whether a bid by value in that rate, or NONE: by price, takes the one ask before the other; their
 * cells have the rate. */
bool book_ask_is_before(const struct book *book, enum rate rate, uint32_t ask, uint32_t other);

/* Walks all resting asks of the cells that `requirement` accepts and that have the rate, best
 * first: by price, or by price for a unit of work. */
typedef bool book_visit(void *context, uint32_t handle,
                        const struct book_ask *ask); /* false: stop */
void book_walk_asks(const struct book *book, const struct requirement *requirement, enum rate rate,
                    book_visit *visit, void *context);

/* For tests: every invariant of the book, by a full walk: each order is where its price, sequence
 * and slots say, no level is empty, and what is kept of the best of each cell and class is true. */
bool book_is_sound(const struct book *book);

#endif
