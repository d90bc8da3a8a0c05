#include "tests/support/book_sound.h"

#include "matching/book_internal.h"

/* Returns true when every order of the ladder belongs to the shelf and side, and stands by key,
 * then sequence. The ladder decides whether its orders have slots. */
static bool orders_are_sound(const struct book *book, const struct ladder *ladder, uint32_t shelf,
                             bool is_bid, bool is_filled, uint32_t *ret_count)
{
    uint32_t before = LADDER_NONE;
    for (uint32_t at = ladder->first; at != LADDER_NONE;
         at = ladder_next(&book->pool, ladder, at)) {
        const struct order *order = &book->pool.orders[at];
        if (order->place == 0 || order->shelf != shelf || order->is_bid != is_bid ||
            (order->slots > 0) != is_filled) {
            return false;
        }
        if (before != LADDER_NONE) {
            const uint64_t last_key = ladder_key(&book->pool, before);
            const uint64_t key = ladder_key(&book->pool, at);
            if (last_key > key ||
                (last_key == key && book->pool.orders[before].sequence > order->sequence)) {
                return false;
            }
        }
        before = at;
        ++*ret_count;
    }
    return true;
}

/* Returns true when the data kept beside a shelf agree with its best order. */
static bool best_is_true(const struct shelves *shelves, uint32_t number)
{
    const struct shelf *shelf = &shelves->items[number];
    const bool is_filled = !ladder_is_empty(&shelf->filled);
    const bool is_valued = shelf->rate != RATE_NONE;
    if (bit_is(shelves->filled, number) != (is_filled && !is_valued) ||
        bit_is(shelves->valued, number) != (is_filled && is_valued)) {
        return false;
    }
    return !is_filled || is_valued ||
           (shelves->best_keys[number] == shelf->filled.best_key &&
            shelves->floors[number / GROUP] <= shelf->filled.best_key);
}

/* Returns true when the walk over handles meets each resting order once, and no other handle. */
static bool handles_are_known(const struct book *book, uint32_t resting)
{
    uint32_t met = 0;
    for (uint32_t handle = book_next(book, 0); handle != BOOK_NONE;
         handle = book_next(book, handle + 1)) {
        if (!book_rests(book, handle)) {
            return false;
        }
        met++;
    }
    return met == resting;
}

bool book_is_sound(const struct book *book)
{
    uint32_t resting = 0;
    uint32_t found = 0;
    for (uint32_t i = 0; i < book->pool.capacity; i++) {
        resting += book->pool.orders[i].place != 0;
    }
    for (int side = ASKS; side < SIDES; side++) {
        const struct shelves *shelves = &book->shelves[side];
        for (uint32_t i = 0; i < shelves->bound; i++) {
            const struct shelf *shelf = &shelves->items[i];
            if (shelf->references > 0 &&
                !(ladder_is_sound(&book->pool, &shelf->filled) &&
                  ladder_is_sound(&book->pool, &shelves->idle[i]) &&
                  orders_are_sound(book, &shelf->filled, i, side == BIDS, true, &found) &&
                  orders_are_sound(book, &shelves->idle[i], i, side == BIDS, false, &found) &&
                  best_is_true(shelves, i))) {
                return false;
            }
        }
    }
    return found == resting && handles_are_known(book, resting);
}
