/* matching/book_internal.h defines the parts of the book, shared by book.c, book_cells.c and
 * book_walk.c only. */
#ifndef BOURSE_MATCHING_BOOK_INTERNAL_H
#define BOURSE_MATCHING_BOOK_INTERNAL_H

#include "matching/book.h"
#include "matching/ladder.h"
#include "matching/resting.h"

enum side { ASKS, BIDS, SIDES };
enum { GROUP = 64 };

/* A shelf holds the orders of one cell (asks) or one class (bids), and the classes or cells that it
 * meets. It fits one cache line. An order whose shelf meets only one other touches the two lines
 * and no more. */
struct shelf {
    alignas(LADDER_LINE) struct ladder filled;
    uint32_t references; /* 0: the number is free */
    uint32_t met;        /* how many shelves of the other side */
    /* The one shelf that this one meets. NONE: there are several, or none, or one of the two is by
     * value. */
    uint32_t only;
    uint32_t rate;   /* enum rate of a class by value, whose keys are values; else NONE */
    uint64_t *meets; /* bits by number of the other side */
    /* Each bit stands for a group of the other side, or for every 64th group where there are more.
     * A set bit means that one of them meets. */
    uint64_t groups;
};
static_assert(sizeof(struct shelf) == LADDER_LINE, "one line");

struct cell {
    size_t count;
    struct attribute *attributes;           /* in canonical order */
    const struct attribute_digest *digests; /* of the attributes, in the same allocation */
    bool is_simulated;
    int64_t rates[RATES]; /* rate of the attributes for each enum rate; 0: none */
};

/* All cells, or all classes. A search over many shelves goes by groups of 64 numbers. It skips a
 * group in which no order can beat the best so far. Classes by value are searched apart, each by
 * the worth of its best in the cell. */
struct shelves {
    struct shelf *items;
    void *memory; /* allocation of the items */
    /* Orders with 0 slots keep their places here, where no match looks. */
    struct ladder *idle;
    size_t other_groups; /* of the other side: words of `meets` */
    uint32_t bound;      /* all numbers in use are below */
    uint32_t full;       /* groups below this have no free number */
    uint64_t *used;      /* bits by number */
    /* A hash table finds the number of attributes or a requirement. A chain links prints with equal
     * low bits. */
    uint64_t *prints;        /* by number */
    uint32_t *heads, *nexts; /* LADDER_NONE: end of the chain */
    uint32_t heads_mask;
    /* Bits by number: the shelf has an order with slots, and its keys are prices. */
    uint64_t *filled;
    uint64_t *valued;      /* bits by number: the shelf has such an order, and keys are values */
    uint32_t valued_count; /* classes by value */
    uint64_t *best_keys;   /* by number, valid where filled */
    uint64_t *floors;      /* by group: no best key in the group is lower */
};

/* The position of a walk over asks is a ladder and its next ask. */
struct cursor {
    int64_t price_micro;
    uint64_t sequence;
    uint32_t handle;
    uint32_t cell : 31;
    uint32_t is_idle : 1; /* true: the ladder of orders with 0 slots */
};

/* The position of a walk over bids is a class and its next bid. */
struct bid_cursor {
    int128 worth; /* in the cell, in parts of RATE_UNIT */
    uint64_t sequence;
    uint32_t handle, class_id;
};

struct book {
    struct book_limits limits;
    struct ladder_pool pool; /* of the orders and all shelves */
    struct resting resting;  /* handles of the resting orders */
    struct cell *cells;
    struct requirement **classes;
    struct shelves shelves[SIDES];
    struct cursor *cursors;         /* scratch of book_walk_asks: two per cell */
    struct bid_cursor *bid_cursors; /* scratch of book_walk_bids: one per class */
    int64_t price_most;             /* no fill at the limit of a bid by value is above it */
};

static inline size_t bit_words(uint32_t bits)
{
    return ((size_t)bits + 63) / 64;
}

static inline bool bit_is(const uint64_t *bits, uint32_t number)
{
    return (bits[number / 64] >> (number % 64) & 1) != 0;
}

static inline void bit_set(uint64_t *bits, uint32_t number, bool is)
{
    uint64_t bit = UINT64_C(1) << (number % 64);
    bits[number / 64] = is ? bits[number / 64] | bit : bits[number / 64] & ~bit;
}

/* The lowest ask and the highest bid have the least key, negative prices too. The conversion is its
 * own inverse. */
static inline uint64_t key_of(int64_t price_micro, bool is_bid)
{
    return (uint64_t)price_micro ^ UINT64_C(1) << 63 ^ (uint64_t) - (int64_t)is_bid;
}

static inline int64_t price_of(uint64_t key, bool is_bid)
{
    return (int64_t)(key ^ UINT64_C(1) << 63 ^ (uint64_t) - (int64_t)is_bid);
}

/* Returns false when memory is short. */
bool book_shelves_init(struct shelves *shelves, uint32_t count, uint32_t others);
void book_shelves_fini(struct shelves *shelves);

#endif
