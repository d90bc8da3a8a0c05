/* matching/book_internal.h - the book's parts, shared by book.c and cells.c only. */
#ifndef BOURSE_MATCHING_BOOK_INTERNAL_H
#define BOURSE_MATCHING_BOOK_INTERNAL_H

#include "matching/book.h"
#include "matching/ladder.h"

enum side { ASKS, BIDS, SIDES };
enum { GROUP = 64 };

/* What rests in one cell (asks) or one class (bids), and which classes or cells it meets: bits by number. An order whose
 * slots are 0 keeps its place on its own ladder, where nothing that fills looks. Whether a class accepts a cell is found
 * out when both have orders, and kept on both shelves; not known yet counts as perhaps. */
struct shelf { /* as long as a line of the cache */
    struct ladder filled, idle;
    uint64_t *perhaps; /* bits by number, and as many behind them that say whether it is known */
    uint64_t groups;   /* bits by group (of each 64th, where there are more): perhaps one of it */
};
static_assert(sizeof(struct shelf) == 64, "as long as a line");

struct cell {
    uint32_t references; /* 0: the number is free */
    uint64_t fingerprint;
    size_t count;
    struct attribute *attributes; /* in canonical order */
};

struct class_entry {
    uint32_t references; /* 0: the number is free */
    struct requirement *requirement;
};

/* All cells, or all classes. A search over many of them goes by groups of 64 numbers, which it passes over when nothing in
 * one can be better than what it has. */
struct shelves {
    struct shelf *items;
    size_t other_groups; /* of the other side: words of `perhaps` */
    uint32_t bound;      /* numbers in use are below */
    uint64_t *filled;    /* bits by number: something can be filled from there */
    uint64_t *best_keys; /* by number, where filled */
    uint64_t *floors;    /* by group: no best key in it is lower */
};

struct book {
    struct book_limits limits;
    struct ladder_pool pool; /* of the orders, and of all shelves */
    struct cell *cells;
    struct class_entry *classes;
    struct shelves shelves[SIDES];
    uint32_t *cursors; /* scratch for book_walk_asks: two per cell */
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

/* False: out of memory. */
bool shelves_init(struct shelves *shelves, uint32_t count, uint32_t others);
void shelves_fini(struct shelves *shelves);

#endif
