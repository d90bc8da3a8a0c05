/* matching/book_internal.h - the book's parts, shared by book.c, cells.c and walk.c only. */
#ifndef BOURSE_MATCHING_BOOK_INTERNAL_H
#define BOURSE_MATCHING_BOOK_INTERNAL_H

#include "matching/book.h"
#include "matching/ladder.h"
#include "matching/resting.h"

enum side { ASKS, BIDS, SIDES };
enum { GROUP = 64 };

/* What rests in one cell (asks) or one class (bids), and which classes or cells it meets, on one
 * line of the cache: an order for whose shelf there is but one other touches no more than the
 * two. */
struct shelf {
    alignas(LADDER_LINE) struct ladder filled;
    uint32_t references; /* 0: the number is free */
    uint32_t met;        /* how many of the others */
    uint32_t only; /* the one that is met; NONE: there are several, or none, or one of the two is by
                      value */
    uint32_t rate; /* of a class by value, whose keys are values: enum rate; else NONE */
    uint64_t *meets; /* bits by number of the others */
    uint64_t groups; /* bits by group (of each 64th, where there are more): one of it is met */
};
static_assert(sizeof(struct shelf) == LADDER_LINE, "one line");

struct cell {
    size_t count;
    struct attribute *attributes;           /* in canonical order */
    const struct attribute_digest *digests; /* of these, in the same memory */
    bool is_simulated;
    int64_t rates[RATES]; /* what they say of each; 0: nothing */
};

/* All cells, or all classes. A search over many of them goes by groups of 64 numbers, which it
 * passes over when nothing in one can be better than what it has. Classes by value are looked at
 * apart, each for what its best is worth in the cell. */
struct shelves {
    struct shelf *items;
    void *memory; /* of the items */
    struct ladder
        *idle; /* orders whose slots are 0: they keep their places where nothing that fills looks */
    size_t other_groups; /* of the other side: words of `meets` */
    uint32_t bound;      /* numbers in use are below */
    uint32_t full;       /* groups below this have no free number */
    uint64_t *used;      /* bits by number */
    /* Finding a number by what it stands for: chains of those whose prints end alike. */
    uint64_t *prints;        /* by number */
    uint32_t *heads, *nexts; /* LADDER_NONE: the end */
    uint32_t heads_mask;
    uint64_t *filled; /* bits by number: something can be filled from there, and keys are prices */
    uint64_t *valued; /* likewise where keys are values */
    uint32_t valued_count; /* classes by value */
    uint64_t *best_keys;   /* by number, where filled */
    uint64_t *floors;      /* by group: no best key in it is lower */
};

/* A ladder that a walk over asks is in, and the ask of it that comes next. */
struct cursor {
    int64_t price_micro;
    uint64_t sequence;
    uint32_t handle;
    uint32_t cell : 31;
    uint32_t is_idle : 1; /* of those whose slots are 0 */
};

struct book {
    struct book_limits limits;
    struct ladder_pool pool; /* of the orders, and of all shelves */
    struct resting resting;  /* the handles of those that rest */
    struct cell *cells;
    struct requirement **classes;
    struct shelves shelves[SIDES];
    struct cursor *cursors; /* scratch for book_walk_asks: two per cell */
    int64_t price_most;     /* no fill at the limit of a bid by value is above it */
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

/* The lowest ask and the highest bid have the least key, negative prices too. The other way it is
 * the same. */
static inline uint64_t key_of(int64_t price_micro, bool is_bid)
{
    return (uint64_t)price_micro ^ UINT64_C(1) << 63 ^ (uint64_t) - (int64_t)is_bid;
}

static inline int64_t price_of(uint64_t key, bool is_bid)
{
    return (int64_t)(key ^ UINT64_C(1) << 63 ^ (uint64_t) - (int64_t)is_bid);
}

/* False: out of memory. */
bool shelves_init(struct shelves *shelves, uint32_t count, uint32_t others);
void shelves_fini(struct shelves *shelves);

#endif
