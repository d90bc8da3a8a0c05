#include "matching/book_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct book *book_create(struct book_limits limits)
{
    assert(limits.orders > 0 && limits.orders < BOOK_NONE);
    assert(limits.cells > 0 && limits.classes > 0);

    struct book *book = calloc(1, sizeof *book);
    if (book == NULL) {
        return NULL;
    }
    book->limits = limits;
    bool pool = ladder_pool_init(&book->pool, limits.orders);
    book->cells = calloc(limits.cells, sizeof *book->cells);
    book->classes = calloc(limits.classes, sizeof *book->classes);
    book->cursors = calloc(limits.cells, 2 * sizeof *book->cursors);
    bool asks = shelves_init(&book->shelves[ASKS], limits.cells, limits.classes);
    bool bids = shelves_init(&book->shelves[BIDS], limits.classes, limits.cells);
    if (!pool || book->cells == NULL || book->classes == NULL || book->cursors == NULL || !asks ||
        !bids) {
        book_destroy(&book);
    }
    return book;
}

void book_destroy(struct book **self)
{
    struct book *book = *self;
    if (book == NULL) {
        return;
    }
    for (uint32_t i = 0; i < book->shelves[ASKS].bound; i++) {
        free(book->cells[i].attributes);
    }
    for (uint32_t i = 0; i < book->shelves[BIDS].bound; i++) {
        free(book->classes[i].requirement);
    }
    shelves_fini(&book->shelves[ASKS]);
    shelves_fini(&book->shelves[BIDS]);
    ladder_pool_fini(&book->pool);
    free(book->cells);
    free(book->classes);
    free(book->cursors);
    free(book);
    *self = NULL;
}

bool book_grow(struct book *book, uint32_t orders)
{
    assert(orders < BOOK_NONE);
    if (!ladder_pool_grow(&book->pool, orders)) {
        return false;
    }
    book->limits.orders = book->pool.capacity;
    return true;
}

/* ---------------------------------------------------------------- resting orders */

/* The lowest ask and the highest bid have the least key, negative prices too. */
static uint64_t ask_key(int64_t price_micro)
{
    return (uint64_t)price_micro ^ UINT64_C(1) << 63;
}

static uint64_t bid_key(int64_t limit_micro)
{
    return ~ask_key(limit_micro);
}

static int64_t price_of(const struct order *order)
{
    uint64_t key = order->is_bid ? ~order->key : order->key;
    return (int64_t)(key ^ UINT64_C(1) << 63);
}

/* The best order of a shelf has come or gone. The floor of its group only sinks here: a search that looks into the group
 * finds out how high it is. */
static void follow_best(struct shelves *shelves, uint32_t number)
{
    const struct ladder *ladder = &shelves->items[number].filled;
    bool is_filled = !ladder_is_empty(ladder);
    bit_set(shelves->filled, number, is_filled);
    if (is_filled) {
        uint64_t *floor = &shelves->floors[number / GROUP];
        shelves->best_keys[number] = ladder->best_key;
        *floor = ladder->best_key < *floor ? ladder->best_key : *floor;
    }
}

static void put(struct book *book, uint32_t handle)
{
    const struct order *order = &book->pool.orders[handle];
    struct shelves *shelves = &book->shelves[order->is_bid];
    struct shelf *shelf = &shelves->items[order->shelf];
    if (order->slots == 0) {
        ladder_insert(&book->pool, &shelf->idle, handle);
        return;
    }
    ladder_insert(&book->pool, &shelf->filled, handle);
    if (shelf->filled.first == handle) {
        follow_best(shelves, order->shelf);
    }
}

static void pull(struct book *book, uint32_t handle)
{
    const struct order *order = &book->pool.orders[handle];
    struct shelves *shelves = &book->shelves[order->is_bid];
    struct shelf *shelf = &shelves->items[order->shelf];
    if (order->slots == 0) {
        ladder_remove(&book->pool, &shelf->idle, handle);
        return;
    }
    bool was_first = shelf->filled.first == handle;
    ladder_remove(&book->pool, &shelf->filled, handle);
    if (was_first) {
        follow_best(shelves, order->shelf);
    }
}

enum book_status book_rest_ask(struct book *book, uint32_t handle, const struct book_ask *ask)
{
    assert(book_cell_references(book, ask->cell) > 0);
    if (handle >= book->limits.orders) {
        return BOOK_FULL_ORDERS;
    }
    struct order *order = &book->pool.orders[handle];
    assert(!order->rests);
    order->key = ask_key(ask->price_micro);
    order->sequence = ask->sequence;
    order->owner = ask->owner;
    order->shelf = ask->cell;
    order->slots = ask->slots;
    order->width = 1;
    order->term_ns = ask->max_term_ns;
    order->rests = true;
    order->is_bid = false;
    put(book, handle);
    return BOOK_OK;
}

enum book_status book_rest_bid(struct book *book, uint32_t handle, const struct book_bid *bid)
{
    assert(book_class_references(book, bid->class_id) > 0);
    assert(bid->width > 0);
    if (handle >= book->limits.orders) {
        return BOOK_FULL_ORDERS;
    }
    struct order *order = &book->pool.orders[handle];
    assert(!order->rests);
    order->key = bid_key(bid->limit_micro);
    order->sequence = bid->sequence;
    order->owner = bid->owner;
    order->shelf = bid->class_id;
    order->slots = bid->slots;
    order->width = bid->width;
    order->term_ns = bid->term_ns;
    order->rests = true;
    order->is_bid = true;
    put(book, handle);
    return BOOK_OK;
}

void book_remove(struct book *book, uint32_t handle)
{
    assert(book_rests(book, handle));
    pull(book, handle);
    book->pool.orders[handle].rests = false;
}

bool book_rests(const struct book *book, uint32_t handle)
{
    return handle < book->limits.orders && book->pool.orders[handle].rests;
}

bool book_ask(const struct book *book, uint32_t handle, struct book_ask *ret_ask)
{
    if (!book_rests(book, handle) || book->pool.orders[handle].is_bid) {
        return false;
    }
    const struct order *order = &book->pool.orders[handle];
    *ret_ask = (struct book_ask){.owner = order->owner,
                                 .cell = order->shelf,
                                 .slots = order->slots,
                                 .price_micro = price_of(order),
                                 .max_term_ns = order->term_ns,
                                 .sequence = order->sequence};
    return true;
}

bool book_bid(const struct book *book, uint32_t handle, struct book_bid *ret_bid)
{
    if (!book_rests(book, handle) || !book->pool.orders[handle].is_bid) {
        return false;
    }
    const struct order *order = &book->pool.orders[handle];
    *ret_bid = (struct book_bid){.owner = order->owner,
                                 .class_id = order->shelf,
                                 .slots = order->slots,
                                 .width = order->width,
                                 .limit_micro = price_of(order),
                                 .term_ns = order->term_ns,
                                 .sequence = order->sequence};
    return true;
}

uint32_t book_slots(const struct book *book, uint32_t handle)
{
    assert(book_rests(book, handle));
    return book->pool.orders[handle].slots;
}

void book_set_slots(struct book *book, uint32_t handle, uint32_t slots)
{
    assert(book_rests(book, handle));
    struct order *order = &book->pool.orders[handle];
    bool moves = (order->slots > 0) != (slots > 0);
    if (moves) {
        pull(book, handle);
    }
    order->slots = slots;
    if (moves) {
        put(book, handle);
    }
}

/* ---------------------------------------------------------------- who trades with whom */

static uint32_t common_slots(const struct order *ask, const struct order *bid)
{
    uint32_t slots = ask->slots < bid->slots ? ask->slots : bid->slots;
    return bid->width == 1 ? slots : slots < bid->width ? 0 : slots - slots % bid->width;
}

/* All but price, owner, and whether the class accepts the cell. */
static bool fits(const struct order *ask, const struct order *bid)
{
    return (ask->term_ns == 0 || bid->term_ns <= ask->term_ns) && common_slots(ask, bid) > 0;
}

uint32_t book_fillable(const struct book *book, uint32_t ask, uint32_t bid)
{
    assert(book_rests(book, ask) && book_rests(book, bid));
    const struct order *a = &book->pool.orders[ask];
    const struct order *b = &book->pool.orders[bid];
    assert(!a->is_bid && b->is_bid);
    return a->owner != b->owner && a->key <= ~b->key && fits(a, b) &&
                   book_class_accepts(book, b->shelf, a->shelf)
               ? common_slots(a, b)
               : 0;
}

int64_t book_price(const struct book *book, uint32_t ask, uint32_t bid)
{
    assert(book_rests(book, ask) && book_rests(book, bid));
    const struct order *a = &book->pool.orders[ask];
    const struct order *b = &book->pool.orders[bid];
    int64_t price_micro = price_of(a);
    if (price_micro == 0) {
        return 0; /* a donation is a donation, whoever came first */
    }
    return a->sequence < b->sequence ? price_micro : price_of(b);
}

struct search {
    const struct book *book;
    const struct order *order; /* for whom */
    const struct shelves *others;
    bool is_own_too; /* of the same owner as well */
    book_skip *skip;
    void *context;
    uint64_t key_most; /* none above it crosses */
    uint32_t best;
};

/* Whether it would be better than what was found, and crosses. */
static bool would_beat(const struct search *search, const struct order *other)
{
    if (other->key > search->key_most || search->best == BOOK_NONE) {
        return other->key <= search->key_most;
    }
    const struct order *best = &search->book->pool.orders[search->best];
    return other->key < best->key || (other->key == best->key && other->sequence < best->sequence);
}

/* The same of a key whose sequence may be any. */
static bool can_beat(const struct search *search, uint64_t key)
{
    return key <= search->key_most &&
           (search->best == BOOK_NONE || key <= search->book->pool.orders[search->best].key);
}

static bool is_fit(const struct search *search, uint32_t handle)
{
    const struct order *other = &search->book->pool.orders[handle];
    const struct order *ask = other->is_bid ? search->order : other;
    const struct order *bid = other->is_bid ? other : search->order;
    return (search->is_own_too || ask->owner != bid->owner) && fits(ask, bid) &&
           (search->skip == NULL || !search->skip(search->context, handle));
}

static bool meets(const struct search *search, uint32_t number)
{
    uint32_t own = search->order->shelf;
    return search->order->is_bid ? book_class_accepts(search->book, own, number)
                                 : book_class_accepts(search->book, number, own);
}

/* The first of a shelf that fits, if it is better than the best so far. */
static void search_shelf(struct search *search, uint32_t number)
{
    const struct ladder_pool *pool = &search->book->pool;
    const struct ladder *ladder = &search->others->items[number].filled;
    for (uint32_t at = ladder->first; at != BOOK_NONE && would_beat(search, &pool->orders[at]);
         at = ladder_next(pool, ladder, at)) {
        if (is_fit(search, at)) {
            search->best = at;
            return;
        }
    }
}

/* Those of a group that come into question. */
static void search_group(struct search *search, size_t group, uint64_t candidates)
{
    const struct shelves *others = search->others;
    for (; candidates != 0; candidates &= candidates - 1) {
        uint32_t number = (uint32_t)(group * GROUP) + (uint32_t)__builtin_ctzll(candidates);
        if (can_beat(search, others->best_keys[number]) && meets(search, number)) {
            search_shelf(search, number);
        }
    }
}

static void raise_floor(const struct shelves *shelves, size_t group)
{
    uint64_t floor = UINT64_MAX;
    for (uint64_t left = shelves->filled[group]; left != 0; left &= left - 1) {
        uint64_t key = shelves->best_keys[group * GROUP + (unsigned)__builtin_ctzll(left)];
        floor = key < floor ? key : floor;
    }
    shelves->floors[group] = floor;
}

static uint32_t search_all(struct search *search)
{
    const struct shelves *others = search->others;
    const struct shelf *own =
        &search->book->shelves[search->order->is_bid].items[search->order->shelf];
    size_t groups = bit_words(others->bound);
    uint64_t there = groups < GROUP ? (UINT64_C(1) << groups) - 1 : UINT64_MAX;
    for (uint64_t some = own->groups & there; some != 0; some &= some - 1) {
        for (size_t group = (unsigned)__builtin_ctzll(some); group < groups; group += GROUP) {
            uint64_t candidates = own->perhaps[group] & others->filled[group];
            if (candidates == 0 || !can_beat(search, others->floors[group])) {
                continue;
            }
            if ((candidates & (candidates - 1)) != 0) {
                raise_floor(others, group);
            }
            search_group(search, group, candidates);
        }
    }
    return search->best;
}

static uint32_t best_for(const struct book *book, uint32_t handle, bool is_own_too, book_skip *skip,
                         void *context)
{
    assert(book_rests(book, handle));
    const struct order *order = &book->pool.orders[handle];
    struct search search = {
        .book = book,
        .order = order,
        .others = &book->shelves[order->is_bid ? ASKS : BIDS],
        .is_own_too = is_own_too,
        .skip = skip,
        .context = context,
        .key_most = ~order->key, /* the other side's key of the same price */
        .best = BOOK_NONE,
    };
    return search_all(&search);
}

uint32_t book_best_ask(const struct book *book, uint32_t bid, book_skip *skip, void *context)
{
    assert(book->pool.orders[bid].is_bid);
    return best_for(book, bid, false, skip, context);
}

uint32_t book_best_bid(const struct book *book, uint32_t ask, book_skip *skip, void *context)
{
    assert(!book->pool.orders[ask].is_bid);
    return best_for(book, ask, false, skip, context);
}

bool book_would_self_match(const struct book *book, uint32_t handle)
{
    uint32_t best = best_for(book, handle, true, NULL, NULL);
    return best != BOOK_NONE && book->pool.orders[best].owner == book->pool.orders[handle].owner;
}

uint32_t book_ahead(const struct book *book, uint32_t handle, uint32_t most)
{
    assert(book_rests(book, handle));
    const struct order *order = &book->pool.orders[handle];
    const struct shelf *shelf = &book->shelves[order->is_bid].items[order->shelf];
    const struct ladder *ladder = order->slots > 0 ? &shelf->filled : &shelf->idle;
    uint32_t ahead = 0;
    for (uint32_t at = ladder_previous(&book->pool, ladder, handle);
         at != BOOK_NONE && ahead < most; at = ladder_previous(&book->pool, ladder, at)) {
        ahead++;
    }
    return ahead;
}

static bool precedes(const struct order *a, const struct order *b)
{
    return a->key != b->key ? a->key < b->key : a->sequence < b->sequence;
}

void book_walk_asks(const struct book *book, const struct requirement *requirement,
                    book_visit *visit, void *context)
{
    const struct shelves *shelves = &book->shelves[ASKS];
    const struct ladder_pool *pool = &book->pool;
    uint32_t *cursors = book->cursors;
    for (uint32_t cell = 0; cell < shelves->bound; cell++) {
        const struct cell *entry = &book->cells[cell];
        const struct shelf *shelf = &shelves->items[cell];
        bool accepted = entry->references > 0 &&
                        !(ladder_is_empty(&shelf->filled) && ladder_is_empty(&shelf->idle)) &&
                        requirement_satisfied(requirement, entry->attributes, entry->count);
        cursors[2 * cell] = accepted ? shelf->filled.first : BOOK_NONE;
        cursors[2 * cell + 1] = accepted ? shelf->idle.first : BOOK_NONE;
    }
    for (;;) {
        uint32_t best = BOOK_NONE; /* a cursor */
        for (uint32_t i = 0; i < 2 * shelves->bound; i++) {
            if (cursors[i] != BOOK_NONE &&
                (best == BOOK_NONE ||
                 precedes(&pool->orders[cursors[i]], &pool->orders[cursors[best]]))) {
                best = i;
            }
        }
        struct book_ask ask;
        if (best == BOOK_NONE || !book_ask(book, cursors[best], &ask) ||
            !visit(context, cursors[best], &ask)) {
            return;
        }
        const struct shelf *shelf = &shelves->items[best / 2];
        cursors[best] =
            ladder_next(pool, best % 2 == 0 ? &shelf->filled : &shelf->idle, cursors[best]);
    }
}
