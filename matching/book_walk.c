/* A heap of the next asks merges the cells' ladders (Knuth 5.4.1). */
#include "matching/book_walk.h"

#include "matching/book_internal.h"

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
