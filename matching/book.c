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
    book->orders = calloc(limits.orders, sizeof *book->orders);
    book->pool = ladder_pool_create(limits.orders);
    book->cells = calloc(limits.cells, sizeof *book->cells);
    book->classes = calloc(limits.classes, sizeof *book->classes);
    book->cursors = calloc(limits.cells, 2 * sizeof *book->cursors);
    bool asks = shelves_init(&book->shelves[ASKS], limits.cells);
    bool bids = shelves_init(&book->shelves[BIDS], limits.classes);
    if (book->orders == NULL || book->pool == NULL || book->cells == NULL ||
        book->classes == NULL || book->cursors == NULL || !asks || !bids) {
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
    ladder_pool_destroy(&book->pool);
    free(book->orders);
    free(book->cells);
    free(book->classes);
    free(book->cursors);
    free(book);
    *self = NULL;
}

bool book_grow(struct book *book, uint32_t orders)
{
    assert(orders < BOOK_NONE);
    if (orders <= book->limits.orders) {
        return true;
    }
    if (!ladder_pool_grow(book->pool, orders)) {
        return false;
    }
    struct order *larger = realloc(book->orders, orders * sizeof *larger);
    if (larger == NULL) {
        return false;
    }
    memset(larger + book->limits.orders, 0, (orders - book->limits.orders) * sizeof *larger);
    book->orders = larger;
    book->limits.orders = orders;
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

static uint64_t key_of(const struct order *order)
{
    return order->side == ASKS ? ask_key(order->ask.price_micro) : bid_key(order->bid.limit_micro);
}

static uint64_t sequence_of(const struct order *order)
{
    return order->side == ASKS ? order->ask.sequence : order->bid.sequence;
}

static uint32_t slots_of(const struct order *order)
{
    return order->side == ASKS ? order->ask.slots : order->bid.slots;
}

static uint32_t owner_of(const struct order *order)
{
    return order->side == ASKS ? order->ask.owner : order->bid.owner;
}

static uint32_t shelf_number(const struct order *order)
{
    return order->side == ASKS ? order->ask.cell : order->bid.class_id;
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
    const struct order *order = &book->orders[handle];
    struct shelves *shelves = &book->shelves[order->side];
    uint32_t number = shelf_number(order);
    struct shelf *shelf = &shelves->items[number];
    bool fills = slots_of(order) > 0;
    struct ladder *ladder = fills ? &shelf->filled : &shelf->idle;
    ladder_insert(book->pool, ladder, handle, key_of(order), sequence_of(order));
    if (fills && ladder_first(book->pool, ladder) == handle) {
        follow_best(shelves, number);
    }
}

static void pull(struct book *book, uint32_t handle)
{
    const struct order *order = &book->orders[handle];
    struct shelves *shelves = &book->shelves[order->side];
    uint32_t number = shelf_number(order);
    struct shelf *shelf = &shelves->items[number];
    bool fills = slots_of(order) > 0;
    struct ladder *ladder = fills ? &shelf->filled : &shelf->idle;
    bool was_first = fills && ladder_first(book->pool, ladder) == handle;
    ladder_remove(book->pool, ladder, handle);
    if (was_first) {
        follow_best(shelves, number);
    }
}

enum book_status book_rest_ask(struct book *book, uint32_t handle, const struct book_ask *ask)
{
    assert(book_cell_references(book, ask->cell) > 0);
    if (handle >= book->limits.orders) {
        return BOOK_FULL_ORDERS;
    }
    struct order *order = &book->orders[handle];
    assert(!order->rests);
    order->rests = true;
    order->side = ASKS;
    order->ask = *ask;
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
    struct order *order = &book->orders[handle];
    assert(!order->rests);
    order->rests = true;
    order->side = BIDS;
    order->bid = *bid;
    put(book, handle);
    return BOOK_OK;
}

void book_remove(struct book *book, uint32_t handle)
{
    assert(book_rests(book, handle));
    pull(book, handle);
    book->orders[handle].rests = false;
}

bool book_rests(const struct book *book, uint32_t handle)
{
    return handle < book->limits.orders && book->orders[handle].rests;
}

const struct book_ask *book_ask(const struct book *book, uint32_t handle)
{
    return book_rests(book, handle) && book->orders[handle].side == ASKS ? &book->orders[handle].ask
                                                                         : NULL;
}

const struct book_bid *book_bid(const struct book *book, uint32_t handle)
{
    return book_rests(book, handle) && book->orders[handle].side == BIDS ? &book->orders[handle].bid
                                                                         : NULL;
}

void book_set_slots(struct book *book, uint32_t handle, uint32_t slots)
{
    assert(book_rests(book, handle));
    struct order *order = &book->orders[handle];
    bool moves = (slots_of(order) > 0) != (slots > 0);
    if (moves) {
        pull(book, handle);
    }
    *(order->side == ASKS ? &order->ask.slots : &order->bid.slots) = slots;
    if (moves) {
        put(book, handle);
    }
}

/* ---------------------------------------------------------------- who trades with whom */

static uint32_t common_slots(const struct book_ask *ask, const struct book_bid *bid)
{
    uint32_t slots = ask->slots < bid->slots ? ask->slots : bid->slots;
    return slots < bid->width ? 0 : slots - slots % bid->width;
}

/* All but price, owner, and whether the class accepts the cell. */
static bool fits(const struct book_ask *ask, const struct book_bid *bid)
{
    return (ask->max_term_ns == 0 || bid->term_ns <= ask->max_term_ns) &&
           common_slots(ask, bid) > 0;
}

uint32_t book_fillable(const struct book *book, uint32_t ask, uint32_t bid)
{
    const struct book_ask *a = book_ask(book, ask);
    const struct book_bid *b = book_bid(book, bid);
    assert(a != NULL && b != NULL);
    return a->owner != b->owner && a->price_micro <= b->limit_micro && fits(a, b) &&
                   book_class_accepts(book, b->class_id, a->cell)
               ? common_slots(a, b)
               : 0;
}

int64_t book_price(const struct book *book, uint32_t ask, uint32_t bid)
{
    const struct book_ask *a = book_ask(book, ask);
    const struct book_bid *b = book_bid(book, bid);
    assert(a != NULL && b != NULL);
    if (a->price_micro == 0) {
        return 0; /* a donation is a donation, whoever came first */
    }
    return a->sequence < b->sequence ? a->price_micro : b->limit_micro;
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

/* Whether something of that key and sequence would be better than what was found. */
static bool would_beat(const struct search *search, uint64_t key, uint64_t sequence)
{
    if (key > search->key_most || search->best == BOOK_NONE) {
        return key <= search->key_most;
    }
    const struct ladder_pool *pool = search->book->pool;
    uint64_t best = ladder_key(pool, search->best);
    return key < best || (key == best && sequence < ladder_sequence(pool, search->best));
}

/* The same of a key whose sequence may be any. */
static bool can_beat(const struct search *search, uint64_t key)
{
    return key <= search->key_most &&
           (search->best == BOOK_NONE || key <= ladder_key(search->book->pool, search->best));
}

static bool is_fit(const struct search *search, uint32_t handle)
{
    const struct order *other = &search->book->orders[handle];
    bool is_ask = search->order->side == ASKS;
    const struct book_ask *ask = is_ask ? &search->order->ask : &other->ask;
    const struct book_bid *bid = is_ask ? &other->bid : &search->order->bid;
    return (search->is_own_too || ask->owner != bid->owner) && fits(ask, bid) &&
           (search->skip == NULL || !search->skip(search->context, handle));
}

static bool meets(const struct search *search, uint32_t number)
{
    uint32_t own = shelf_number(search->order);
    return search->order->side == ASKS ? book_class_accepts(search->book, number, own)
                                       : book_class_accepts(search->book, own, number);
}

/* The first of a shelf that fits, if it is better than the best so far. */
static void search_shelf(struct search *search, uint32_t number)
{
    const struct ladder_pool *pool = search->book->pool;
    const struct ladder *ladder = &search->others->items[number].filled;
    for (uint32_t at = ladder_first(pool, ladder);
         at != BOOK_NONE && would_beat(search, ladder_key(pool, at), ladder_sequence(pool, at));
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
        &search->book->shelves[search->order->side].items[shelf_number(search->order)];
    size_t groups = bit_words(others->bound);
    for (size_t group = 0; group < groups; group++) {
        uint64_t candidates = own->perhaps[group] & others->filled[group];
        if (candidates == 0 || !can_beat(search, others->floors[group])) {
            continue;
        }
        if ((candidates & (candidates - 1)) != 0) {
            raise_floor(others, group);
        }
        search_group(search, group, candidates);
    }
    return search->best;
}

static uint32_t best_for(const struct book *book, uint32_t handle, bool is_own_too, book_skip *skip,
                         void *context)
{
    const struct order *order = &book->orders[handle];
    bool is_ask = order->side == ASKS;
    struct search search = {
        .book = book,
        .order = order,
        .others = &book->shelves[is_ask ? BIDS : ASKS],
        .is_own_too = is_own_too,
        .skip = skip,
        .context = context,
        .key_most = is_ask ? bid_key(order->ask.price_micro) : ask_key(order->bid.limit_micro),
        .best = BOOK_NONE,
    };
    return search_all(&search);
}

uint32_t book_best_ask(const struct book *book, uint32_t bid, book_skip *skip, void *context)
{
    assert(book_bid(book, bid) != NULL);
    return best_for(book, bid, false, skip, context);
}

uint32_t book_best_bid(const struct book *book, uint32_t ask, book_skip *skip, void *context)
{
    assert(book_ask(book, ask) != NULL);
    return best_for(book, ask, false, skip, context);
}

bool book_would_self_match(const struct book *book, uint32_t handle)
{
    assert(book_rests(book, handle));
    uint32_t best = best_for(book, handle, true, NULL, NULL);
    return best != BOOK_NONE && owner_of(&book->orders[best]) == owner_of(&book->orders[handle]);
}

uint32_t book_ahead(const struct book *book, uint32_t handle, uint32_t most)
{
    assert(book_rests(book, handle));
    const struct order *order = &book->orders[handle];
    const struct shelf *shelf = &book->shelves[order->side].items[shelf_number(order)];
    const struct ladder *ladder = slots_of(order) > 0 ? &shelf->filled : &shelf->idle;
    uint32_t ahead = 0;
    for (uint32_t at = ladder_previous(book->pool, ladder, handle); at != BOOK_NONE && ahead < most;
         at = ladder_previous(book->pool, ladder, at)) {
        ahead++;
    }
    return ahead;
}

void book_walk_asks(const struct book *book, const struct requirement *requirement,
                    book_visit *visit, void *context)
{
    const struct shelves *shelves = &book->shelves[ASKS];
    const struct ladder_pool *pool = book->pool;
    for (uint32_t cell = 0; cell < shelves->bound; cell++) {
        const struct cell *entry = &book->cells[cell];
        const struct shelf *shelf = &shelves->items[cell];
        bool accepted = entry->references > 0 &&
                        !(ladder_is_empty(&shelf->filled) && ladder_is_empty(&shelf->idle)) &&
                        requirement_satisfied(requirement, entry->attributes, entry->count);
        book->cursors[2 * cell] = accepted ? ladder_first(pool, &shelf->filled) : BOOK_NONE;
        book->cursors[2 * cell + 1] = accepted ? ladder_first(pool, &shelf->idle) : BOOK_NONE;
    }
    for (;;) {
        uint32_t best = BOOK_NONE; /* a cursor */
        for (uint32_t i = 0; i < 2 * shelves->bound; i++) {
            uint32_t at = book->cursors[i];
            uint32_t best_at = best == BOOK_NONE ? BOOK_NONE : book->cursors[best];
            if (at != BOOK_NONE &&
                (best == BOOK_NONE || ladder_key(pool, at) < ladder_key(pool, best_at) ||
                 (ladder_key(pool, at) == ladder_key(pool, best_at) &&
                  ladder_sequence(pool, at) < ladder_sequence(pool, best_at)))) {
                best = i;
            }
        }
        if (best == BOOK_NONE ||
            !visit(context, book->cursors[best], &book->orders[book->cursors[best]].ask)) {
            return;
        }
        const struct shelf *shelf = &shelves->items[best / 2];
        book->cursors[best] =
            ladder_next(pool, best % 2 == 0 ? &shelf->filled : &shelf->idle, book->cursors[best]);
    }
}
