/* A heap of the next asks merges the cells' ladders (Knuth 5.4.1). */
#include "matching/book_walk.h"

#include "matching/book_internal.h"

#include <assert.h>

struct walk {
    const struct book *book;
    struct cursor *heap; /* no cursor comes before the one at (its place - 1) / 2 */
    uint32_t count;
    enum rate rate;
};

static const struct ladder *ladder_of(const struct book *book, const struct cursor *cursor)
{
    const struct shelves *asks = &book->shelves[ASKS];
    return cursor->is_idle ? &asks->idle[cursor->cell] : &asks->items[cursor->cell].filled;
}

static void look_at(const struct book *book, struct cursor *cursor, uint32_t handle)
{
    cursor->handle = handle;
    cursor->price_micro = price_of(ladder_key(&book->pool, handle), false);
    cursor->sequence = book->pool.orders[handle].sequence;
}

static void enter(struct walk *walk, uint32_t cell, bool is_idle)
{
    struct cursor cursor = {.cell = cell & (BOOK_KINDS_MAX - 1), .is_idle = is_idle};
    const struct ladder *ladder = ladder_of(walk->book, &cursor);
    if (!ladder_is_empty(ladder)) {
        look_at(walk->book, &cursor, ladder->first);
        walk->heap[walk->count++] = cursor;
    }
}

/* Compares like book_ask_is_before. */
static inline bool is_before(const struct walk *walk, const struct cursor *cursor,
                             const struct cursor *other)
{
    int128 here = cursor->price_micro;
    int128 there = other->price_micro;
    if (walk->rate != RATE_NONE) {
        const struct cell *cells = walk->book->cells;
        here = rate_worth(cursor->price_micro, cells[other->cell].rates[walk->rate]);
        there = rate_worth(other->price_micro, cells[cursor->cell].rates[walk->rate]);
    }
    return here != there ? here < there : cursor->sequence < other->sequence;
}

/* Moves the cursor at `place` down to its position. */
static void sink(const struct walk *walk, uint32_t place)
{
    struct cursor *heap = walk->heap;
    const struct cursor sinking = heap[place];
    for (;;) {
        uint32_t below = 2 * place + 1;
        if (below >= walk->count) {
            break;
        }
        below += below + 1 < walk->count && is_before(walk, &heap[below + 1], &heap[below]);
        if (!is_before(walk, &heap[below], &sinking)) {
            break;
        }
        heap[place] = heap[below];
        place = below;
    }
    heap[place] = sinking;
}

/* A simulated device must be asked for, or it is passed over. */
static bool is_accepted(const struct compiled_requirement *plan, const struct cell *cell)
{
    const uint64_t truth = compiled_truth(plan, cell->attributes, cell->digests, cell->count, NULL);
    return requirement_holds(plan->needs, truth) &&
           !(cell->is_simulated &&
             requirement_passes_over(plan->needs, cell->attributes, cell->count));
}

static void open_cells(struct walk *walk, const struct requirement *requirement)
{
    const struct book *book = walk->book;
    const struct shelves *asks = &book->shelves[ASKS];
    const struct compiled_requirement plan = compiled_requirement(requirement);
    for (uint32_t cell = 0; cell < asks->bound; cell++) {
        const struct cell *entry = &book->cells[cell];
        bool is_empty =
            ladder_is_empty(&asks->items[cell].filled) && ladder_is_empty(&asks->idle[cell]);
        if (asks->items[cell].references > 0 && !is_empty &&
            (walk->rate == RATE_NONE || entry->rates[walk->rate] > 0) &&
            is_accepted(&plan, entry)) {
            enter(walk, cell, false);
            enter(walk, cell, true);
        }
    }
    for (uint32_t place = walk->count / 2; place-- > 0;) {
        sink(walk, place);
    }
}

void book_walk_asks(const struct book *book, const struct requirement *requirement, enum rate rate,
                    book_visit *visit, void *context)
{
    struct walk walk = {.book = book, .heap = book->cursors, .rate = rate};
    open_cells(&walk, requirement);
    while (walk.count > 0) {
        struct cursor *first = &walk.heap[0];
        struct book_ask ask;
        if (!book_ask(book, first->handle, &ask) || !visit(context, first->handle, &ask)) {
            return;
        }
        uint32_t next = ladder_next(&book->pool, ladder_of(book, first), first->handle);
        if (next != BOOK_NONE) {
            look_at(book, first, next);
        } else {
            *first = walk.heap[--walk.count];
        }
        sink(&walk, 0);
    }
}

uint32_t book_ahead(const struct book *book, uint32_t handle, uint32_t most)
{
    assert(book_rests(book, handle));
    const struct order *order = &book->pool.orders[handle];
    const struct shelves *shelves = &book->shelves[order->is_bid];
    const struct ladder *ladder =
        order->slots > 0 ? &shelves->items[order->shelf].filled : &shelves->idle[order->shelf];
    uint32_t ahead = 0;
    for (uint32_t at = ladder_previous(&book->pool, ladder, handle);
         at != BOOK_NONE && ahead < most; at = ladder_previous(&book->pool, ladder, at)) {
        ahead++;
    }
    return ahead;
}

/* ---------------------------------------------------------------- bids */

struct bid_walk {
    const struct book *book;
    const int64_t *rates;    /* of the cell */
    int128 least;            /* bids that are worth more are visited */
    struct bid_cursor *heap; /* no cursor comes before the one at (its place - 1) / 2 */
    uint32_t count;
};

/* Points the cursor at a bid. Returns false when the ladder has no further bid above the price. */
static bool look_at_bid(const struct bid_walk *walk, struct bid_cursor *cursor, uint32_t handle)
{
    if (handle == BOOK_NONE) {
        return false;
    }
    const struct ladder_pool *pool = &walk->book->pool;
    const uint32_t rate = walk->book->shelves[BIDS].items[cursor->class_id].rate;
    const int64_t limit = price_of(ladder_key(pool, handle), true);
    cursor->handle = handle;
    cursor->sequence = pool->orders[handle].sequence;
    cursor->worth = rate_worth(limit, rate == RATE_NONE ? RATE_UNIT : walk->rates[rate]);
    return cursor->worth > walk->least;
}

static inline bool bid_is_before(const struct bid_cursor *cursor, const struct bid_cursor *other)
{
    return cursor->worth != other->worth ? cursor->worth > other->worth
                                         : cursor->sequence < other->sequence;
}

static void sink_bid(const struct bid_walk *walk, uint32_t place)
{
    struct bid_cursor *heap = walk->heap;
    const struct bid_cursor sinking = heap[place];
    for (;;) {
        uint32_t below = 2 * place + 1;
        if (below >= walk->count) {
            break;
        }
        below += below + 1 < walk->count && bid_is_before(&heap[below + 1], &heap[below]);
        if (!bid_is_before(&heap[below], &sinking)) {
            break;
        }
        heap[place] = heap[below];
        place = below;
    }
    heap[place] = sinking;
}

static void open_classes(struct bid_walk *walk, uint32_t cell, int64_t price_micro)
{
    const struct shelves *bids = &walk->book->shelves[BIDS];
    const struct shelf *own = &walk->book->shelves[ASKS].items[cell];
    const uint64_t key = key_of(price_micro, true); /* a bid above the price has a lower key */
    for (size_t group = 0; group < bit_words(bids->bound); group++) {
        const bool is_above = bids->floors[group] < key;
        uint64_t some =
            own->meets[group] & ((is_above ? bids->filled[group] : 0) | bids->valued[group]);
        for (; some != 0; some &= some - 1) {
            struct bid_cursor *cursor = &walk->heap[walk->count];
            const uint32_t class_id = (uint32_t)(group * GROUP) + (uint32_t)__builtin_ctzll(some);
            if (bit_is(bids->valued, class_id) || bids->best_keys[class_id] < key) {
                cursor->class_id = class_id;
                walk->count += look_at_bid(walk, cursor, bids->items[class_id].filled.first);
            }
        }
    }
    for (uint32_t place = walk->count / 2; place-- > 0;) {
        sink_bid(walk, place);
    }
}

void book_walk_bids(const struct book *book, uint32_t cell, int64_t price_micro,
                    book_visit_bid *visit, void *context)
{
    struct bid_walk walk = {.book = book,
                            .rates = book->cells[cell].rates,
                            .least = rate_price(price_micro),
                            .heap = book->bid_cursors};
    open_classes(&walk, cell, price_micro);
    while (walk.count > 0) {
        struct bid_cursor *first = &walk.heap[0];
        if (!visit(context, first->handle)) {
            return;
        }
        const struct ladder *ladder = &book->shelves[BIDS].items[first->class_id].filled;
        if (!look_at_bid(&walk, first, ladder_next(&book->pool, ladder, first->handle))) {
            *first = walk.heap[--walk.count];
        }
        sink_bid(&walk, 0);
    }
}
