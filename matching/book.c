#include "matching/book_internal.h"

#include "base/ahead.h"
#include "base/apart.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct book *book_create(struct book_limits limits)
{
    assert(limits.orders > 0 && limits.orders <= BOOK_ORDERS_MAX);
    assert(limits.cells > 0 && limits.cells <= BOOK_KINDS_MAX);
    assert(limits.classes > 0 && limits.classes <= BOOK_KINDS_MAX);
    static_assert((int)BOOK_ORDERS_MAX == LADDER_ORDERS_MAX, "as many as there can be in ladders");
    static_assert((int)BOOK_KINDS_MAX <= LADDER_SHELVES_MAX, "an order has a place for the number");

    struct book *book = calloc(1, sizeof *book);
    if (book == NULL) {
        return NULL;
    }
    book->limits = limits;
    book->price_most = INT64_MAX;
    bool pool =
        ladder_pool_init(&book->pool, limits.orders) && resting_grow(&book->resting, limits.orders);
    book->cells = calloc(limits.cells, sizeof *book->cells);
    book->classes = calloc(limits.classes, sizeof *book->classes);
    book->cursors = calloc(limits.cells, 2 * sizeof *book->cursors);
    book->bid_cursors = calloc(limits.classes, sizeof *book->bid_cursors);
    if (!pool || book->cells == NULL || book->classes == NULL || book->cursors == NULL ||
        book->bid_cursors == NULL ||
        !book_shelves_init(&book->shelves[ASKS], limits.cells, limits.classes) ||
        !book_shelves_init(&book->shelves[BIDS], limits.classes, limits.cells)) {
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
        free(book->classes[i]);
    }
    book_shelves_fini(&book->shelves[ASKS]);
    book_shelves_fini(&book->shelves[BIDS]);
    ladder_pool_fini(&book->pool);
    resting_fini(&book->resting);
    free(book->cells);
    free(book->classes);
    free(book->cursors);
    free(book->bid_cursors);
    free(book);
    *self = NULL;
}

bool book_grow(struct book *book, uint32_t orders)
{
    assert(orders <= BOOK_ORDERS_MAX);
    if (orders <= book->limits.orders) {
        return true;
    }
    if (!resting_grow(&book->resting, orders) || !ladder_pool_grow(&book->pool, orders)) {
        return false;
    }
    book->limits.orders = book->pool.capacity;
    return true;
}

/* ---------------------------------------------------------------- resting orders */

/* Records a new best key of a shelf. The floor of a group only sinks here; a search that looks into
 * the group raises it. */
static void follow_best(struct shelves *shelves, uint32_t number)
{
    const struct ladder *ladder = &shelves->items[number].filled;
    bool is_filled = !ladder_is_empty(ladder);
    if (shelves->items[number].rate != RATE_NONE) {
        bit_set(shelves->valued, number, is_filled);
        return;
    }
    bit_set(shelves->filled, number, is_filled);
    if (is_filled) {
        uint64_t *floor = &shelves->floors[number / GROUP];
        shelves->best_keys[number] = ladder->best_key;
        *floor = ladder->best_key < *floor ? ladder->best_key : *floor;
    }
}

/* Orders with slots stand where matches look; orders without slots keep their places apart. */
static inline struct ladder *ladder_of(struct shelves *shelves, const struct order *order)
{
    return order->slots == 0 ? &shelves->idle[order->shelf] : &shelves->items[order->shelf].filled;
}

static inline void put(struct book *book, uint32_t handle, uint64_t key)
{
    const struct order *order = &book->pool.orders[handle];
    struct shelves *shelves = &book->shelves[order->is_bid];
    if (ladder_insert(&book->pool, ladder_of(shelves, order), handle, key) && order->slots > 0) {
        follow_best(shelves, order->shelf);
    }
}

static inline void pull(struct book *book, uint32_t handle)
{
    const struct order *order = &book->pool.orders[handle];
    struct shelves *shelves = &book->shelves[order->is_bid];
    if (ladder_remove(&book->pool, ladder_of(shelves, order), handle) && order->slots > 0) {
        follow_best(shelves, order->shelf);
    }
}

enum book_status book_rest(struct book *book, uint32_t handle, const struct book_order *order)
{
    assert(book->shelves[order->is_bid].items[order->kind].references > 0);
    assert(order->width > 0);
    if (handle >= book->limits.orders) {
        return BOOK_FULL_ORDERS;
    }
    struct order *resting = &book->pool.orders[handle];
    assert(resting->place == 0);
    *resting = (struct order){.sequence = order->sequence,
                              .slots = order->slots,
                              .owner = order->owner,
                              .shelf = order->kind & (LADDER_SHELVES_MAX - 1),
                              .is_bid = order->is_bid,
                              .width = order->width,
                              .term_ns = order->term_ns};
    put(book, handle, key_of(order->price_micro, order->is_bid));
    resting_set(&book->resting, handle);
    return BOOK_OK;
}

void book_remove(struct book *book, uint32_t handle)
{
    assert(book_rests(book, handle));
    pull(book, handle);
    resting_clear(&book->resting, handle);
}

uint32_t book_next(const struct book *book, uint32_t from)
{
    static_assert(BOOK_NONE == RESTING_NONE, "one word for none");
    return resting_next(&book->resting, from);
}

bool book_rests(const struct book *book, uint32_t handle)
{
    return handle < book->limits.orders && book->pool.orders[handle].place != 0;
}

static struct book_order order_of(const struct book *book, uint32_t handle)
{
    assert(book_rests(book, handle));
    const struct order *order = &book->pool.orders[handle];
    return (struct book_order){.is_bid = order->is_bid,
                               .owner = order->owner,
                               .kind = order->shelf,
                               .slots = order->slots,
                               .width = order->width,
                               .price_micro =
                                   price_of(ladder_key(&book->pool, handle), order->is_bid),
                               .term_ns = order->term_ns,
                               .sequence = order->sequence};
}

bool book_ask(const struct book *book, uint32_t handle, struct book_ask *ret_ask)
{
    if (!book_rests(book, handle) || book->pool.orders[handle].is_bid) {
        return false;
    }
    const struct book_order order = order_of(book, handle);
    *ret_ask = (struct book_ask){.owner = order.owner,
                                 .cell = order.kind,
                                 .slots = order.slots,
                                 .price_micro = order.price_micro,
                                 .max_term_ns = order.term_ns,
                                 .sequence = order.sequence};
    return true;
}

bool book_bid(const struct book *book, uint32_t handle, struct book_bid *ret_bid)
{
    if (!book_rests(book, handle) || !book->pool.orders[handle].is_bid) {
        return false;
    }
    const struct book_order order = order_of(book, handle);
    *ret_bid = (struct book_bid){.owner = order.owner,
                                 .class_id = order.kind,
                                 .slots = order.slots,
                                 .width = order.width,
                                 .limit_micro = order.price_micro,
                                 .term_ns = order.term_ns,
                                 .sequence = order.sequence};
    return true;
}

uint64_t book_sequence(const struct book *book, uint32_t handle)
{
    assert(book_rests(book, handle));
    return book->pool.orders[handle].sequence;
}

uint32_t book_owner(const struct book *book, uint32_t handle)
{
    assert(book_rests(book, handle));
    return book->pool.orders[handle].owner;
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
    if ((order->slots > 0) == (slots > 0)) {
        order->slots = slots;
        return;
    }
    uint64_t key = ladder_key(&book->pool, handle);
    pull(book, handle);
    order->slots = slots;
    put(book, handle, key);
}

/* ---------------------------------------------------------------- matching */

/* Returns the slots that two orders could trade, if their prices cross and class and cell meet. The
 * result is a multiple of the bid's width. */
static inline uint32_t slots_between(const struct book *book, const struct book_order *order,
                                     uint32_t handle)
{
    const struct order *other = &book->pool.orders[handle];
    const uint32_t slots = order->slots < other->slots ? order->slots : other->slots;
    const uint32_t width = order->is_bid ? order->width : other->width;
    const int64_t most_ns = order->is_bid ? other->term_ns : order->term_ns;
    const int64_t term_ns = order->is_bid ? order->term_ns : other->term_ns;
    const uint32_t whole = width == 1 ? slots : slots - slots % width;
    return most_ns == 0 || term_ns <= most_ns ? whole : 0;
}

int64_t book_limit(const struct book *book, enum rate rate, int64_t limit_micro, uint32_t cell)
{
    if (rate == RATE_NONE) {
        return limit_micro;
    }
    int64_t limit = rate_limit(limit_micro, book_cell_rate(book, cell, rate));
    return limit < book->price_most ? limit : book->price_most;
}

/* Returns the limit of a bid of the class. */
static int64_t limit_in(const struct book *book, uint32_t class_id, int64_t limit_micro,
                        uint32_t cell)
{
    return book_limit(book, (enum rate)book->shelves[BIDS].items[class_id].rate, limit_micro, cell);
}

void book_set_price_most(struct book *book, int64_t price_micro)
{
    book->price_most = price_micro;
}

/* Returns true when the order may trade with a crossing order of a shelf that it meets. */
static inline bool is_fit(const struct book *book, const struct book_order *order, book_skip *skip,
                          void *context, uint32_t handle)
{
    return slots_between(book, order, handle) > 0 && (skip == NULL || !skip(context, handle));
}

/* Returns the first fitting order after the best of a ladder, which does not fit. */
static APART uint32_t next_fit(const struct book *book, const struct book_order *order,
                               book_skip *skip, void *context, const struct ladder *ladder)
{
    uint64_t key_most = key_of(order->price_micro, !order->is_bid);
    uint32_t at = ladder->first;
    do {
        at = ladder_next(&book->pool, ladder, at);
        if (at == BOOK_NONE || ladder_key(&book->pool, at) > key_most) {
            return BOOK_NONE;
        }
    } while (!is_fit(book, order, skip, context, at));
    return at;
}

/* The struct holds a search over many shelves. */
struct search {
    const struct book *book;
    const struct shelves *others;
    const struct book_order *order; /* the arriving order */
    book_skip *skip;
    void *context;
    uint64_t key_most; /* only keys up to here cross and can beat the best */
    uint32_t best;
};

/* Searches a shelf for its first fitting order, if that crosses and beats the best so far. */
static void search_shelf(struct search *search, uint32_t number)
{
    const struct ladder_pool *pool = &search->book->pool;
    const struct ladder *ladder = &search->others->items[number].filled;
    for (uint32_t at = ladder->first; at != BOOK_NONE; at = ladder_next(pool, ladder, at)) {
        uint64_t key = ladder_key(pool, at);
        if (key > search->key_most ||
            (key == search->key_most && search->best != BOOK_NONE &&
             pool->orders[at].sequence >= pool->orders[search->best].sequence)) {
            return;
        }
        if (is_fit(search->book, search->order, search->skip, search->context, at)) {
            search->best = at;
            search->key_most = key;
            return;
        }
    }
}

/* Searches the candidates of a group. */
static void search_group(struct search *search, size_t group, uint64_t candidates)
{
    const struct shelves *others = search->others;
    for (; candidates != 0; candidates &= candidates - 1) {
        uint32_t number = (uint32_t)(group * GROUP) + (uint32_t)__builtin_ctzll(candidates);
        if (others->best_keys[number] <= search->key_most) {
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

/* Searches bids by their worth in the ask's cell: classes by value, and the best of the other
 * classes, if there is one. */
static APART uint32_t search_values(struct search *search, const struct shelf *own)
{
    const struct book *book = search->book;
    const struct ladder_pool *pool = &book->pool;
    const int64_t *rates = book->cells[search->order->kind].rates;
    int128 least = rate_price(price_of(search->key_most, true));
    for (size_t group = 0; group < bit_words(search->others->bound); group++) {
        uint64_t some = own->meets[group] & search->others->valued[group];
        for (; some != 0; some &= some - 1) {
            size_t number = group * GROUP + (unsigned)__builtin_ctzll(some);
            const struct shelf *shelf = &search->others->items[number];
            for (uint32_t at = shelf->filled.first; at != BOOK_NONE;
                 at = ladder_next(pool, &shelf->filled, at)) {
                int128 worth = rate_worth(price_of(ladder_key(pool, at), true), rates[shelf->rate]);
                if (worth < least ||
                    (worth == least && search->best != BOOK_NONE &&
                     pool->orders[at].sequence >= pool->orders[search->best].sequence)) {
                    break;
                }
                if (is_fit(book, search->order, search->skip, search->context, at)) {
                    search->best = at;
                    least = worth;
                    break;
                }
            }
        }
    }
    return search->best;
}

/* An offer is the price of an ask, and the work of one of its slot-hours. */
struct offer {
    int64_t price_micro, operations;
    uint64_t sequence;
};

/* Returns true when the offer asks less for a unit of work, or came first among equals. */
static bool offers_more(const struct offer *offer, const struct offer *other)
{
    int128 here = rate_worth(offer->price_micro, other->operations);
    int128 there = rate_worth(other->price_micro, offer->operations);
    return here != there ? here < there : offer->sequence < other->sequence;
}

/* Finds the ask for a bid by value: the most work for its price, among asks that the bid's worth
 * covers. */
static APART uint32_t search_offers(struct search *search, const struct shelf *own)
{
    const struct book *book = search->book;
    const struct ladder_pool *pool = &book->pool;
    struct offer best = {0};
    for (size_t group = 0; group < bit_words(search->others->bound); group++) {
        uint64_t some = own->meets[group] & search->others->filled[group];
        for (; some != 0; some &= some - 1) {
            size_t number = group * GROUP + (unsigned)__builtin_ctzll(some);
            const struct ladder *ladder = &search->others->items[number].filled;
            struct offer offer = {.operations = book->cells[number].rates[own->rate]};
            int128 most = rate_worth(search->order->price_micro, offer.operations);
            for (uint32_t at = ladder->first; at != BOOK_NONE; at = ladder_next(pool, ladder, at)) {
                offer.price_micro = price_of(ladder_key(pool, at), false);
                offer.sequence = pool->orders[at].sequence;
                if (rate_price(offer.price_micro) > most ||
                    (search->best != BOOK_NONE && !offers_more(&offer, &best))) {
                    break;
                }
                if (is_fit(book, search->order, search->skip, search->context, at)) {
                    search->best = at;
                    best = offer;
                    break;
                }
            }
        }
    }
    return search->best;
}

static APART uint32_t search_groups(const struct book *book, const struct book_order *order,
                                    book_skip *skip, void *context, const struct shelf *own)
{
    const struct shelves *others = &book->shelves[!order->is_bid];
    struct search search = {.book = book,
                            .others = others,
                            .order = order,
                            .skip = skip,
                            .context = context,
                            .key_most = key_of(order->price_micro, !order->is_bid),
                            .best = BOOK_NONE};
    if (own->rate != RATE_NONE) {
        return search_offers(&search, own);
    }
    size_t groups = bit_words(others->bound);
    uint64_t there = groups < GROUP ? (UINT64_C(1) << groups) - 1 : UINT64_MAX;
    for (uint64_t some = own->groups & there; some != 0; some &= some - 1) {
        for (size_t group = (unsigned)__builtin_ctzll(some); group < groups; group += GROUP) {
            uint64_t candidates = own->meets[group] & others->filled[group];
            if (candidates == 0 || others->floors[group] > search.key_most) {
                continue;
            }
            if ((candidates & (candidates - 1)) != 0) {
                raise_floor(others, group);
            }
            search_group(&search, group, candidates);
        }
    }
    return others->valued_count == 0 ? search.best : search_values(&search, own);
}

static inline void say_match(const struct book *book, const struct book_order *order,
                             uint32_t handle, int64_t price_micro, struct book_match *ret_match)
{
    const struct order *maker = &book->pool.orders[handle];
    const int64_t ask_micro = order->is_bid ? price_micro : order->price_micro;
    ret_match->handle = handle;
    ret_match->slots = slots_between(book, order, handle);
    ret_match->is_own = order->owner == maker->owner;
    ret_match->price_micro = ask_micro == 0 ? 0 : price_micro;
    ret_match->sequence = maker->sequence;
}

/* Matches an order that meets several shelves. */
static APART bool match_among(const struct book *book, const struct book_order *order,
                              book_skip *skip, void *context, const struct shelf *own,
                              struct book_match *ret_match)
{
    const uint32_t best = search_groups(book, order, skip, context, own);
    if (best == BOOK_NONE) {
        return false;
    }
    int64_t price_micro = price_of(ladder_key(&book->pool, best), !order->is_bid);
    if (!order->is_bid) {
        price_micro = limit_in(book, book->pool.orders[best].shelf, price_micro, order->kind);
    }
    say_match(book, order, best, price_micro, ret_match);
    return true;
}

bool book_match(const struct book *book, const struct book_order *order, book_skip *skip,
                void *context, struct book_match *ret_match)
{
    const struct shelf *own = &book->shelves[order->is_bid].items[order->kind];
    assert(own->references > 0);
    if (own->only == BOOK_NONE) {
        return match_among(book, order, skip, context, own, ret_match);
    }
    const struct ladder *ladder = &book->shelves[!order->is_bid].items[own->only].filled;
    if (ladder_is_empty(ladder) || ladder->best_key > key_of(order->price_micro, !order->is_bid)) {
        return false; /* no order is read */
    }
    uint32_t best = ladder->first;
    uint64_t key = ladder->best_key;
    if (!is_fit(book, order, skip, context, best)) {
        best = next_fit(book, order, skip, context, ladder);
        if (best == BOOK_NONE) {
            return false;
        }
        key = ladder_key(&book->pool, best);
    }
    say_match(book, order, best, price_of(key, !order->is_bid), ret_match);
    return true;
}

/* Prefetches the order's line, or another line when the handle names none. A branch on the order
 * would wait for the very memory that the call prefetches. */
void book_expect(const struct book *book, uint32_t handle)
{
    line_ahead(&book->pool.orders[handle < book->limits.orders ? handle : 0]);
}

void book_expect_match(const struct book *book, bool is_bid, uint32_t kind)
{
    const uint32_t only = book->shelves[is_bid].items[kind].only;
    if (only != BOOK_NONE) {
        book_expect(book, book->shelves[!is_bid].items[only].filled.first);
    }
}

/* The struct holds the first candidate so far, with its rank. */
struct first {
    uint32_t handle;
    int64_t rank;
    uint64_t sequence;
};

static void rank_shelf(const struct book *book, const struct book_order *ask,
                       const struct book_ranking *ranking, book_skip *skip, void *context,
                       const struct ladder *ladder, struct first *first)
{
    for (uint32_t at = ladder->first; at != BOOK_NONE; at = ladder_next(&book->pool, ladder, at)) {
        const struct order *order = &book->pool.orders[at];
        const int64_t rank = ranking->rank(ranking->context, order->owner);
        bool is_before = first->handle == BOOK_NONE || rank < first->rank ||
                         (rank == first->rank && order->sequence < first->sequence);
        if (is_before && is_fit(book, ask, skip, context, at)) {
            *first = (struct first){at, rank, order->sequence};
        }
    }
}

bool book_match_by_rank(const struct book *book, const struct book_order *ask,
                        const struct book_ranking *ranking, book_skip *skip, void *context,
                        struct book_match *ret_match)
{
    assert(!ask->is_bid && ask->price_micro == 0); /* no limit is lower */
    const struct shelves *bids = &book->shelves[BIDS];
    const struct shelf *own = &book->shelves[ASKS].items[ask->kind];
    struct first first = {.handle = BOOK_NONE};
    for (size_t group = 0; group < bit_words(bids->bound); group++) {
        uint64_t some = own->meets[group] & (bids->filled[group] | bids->valued[group]);
        for (; some != 0; some &= some - 1) {
            size_t number = group * GROUP + (unsigned)__builtin_ctzll(some);
            rank_shelf(book, ask, ranking, skip, context, &bids->items[number].filled, &first);
        }
    }
    if (first.handle == BOOK_NONE) {
        return false;
    }
    *ret_match = (struct book_match){.handle = first.handle,
                                     .slots = slots_between(book, ask, first.handle),
                                     .is_own = ask->owner == book->pool.orders[first.handle].owner,
                                     .sequence = first.sequence};
    return true;
}

static struct offer offer_of(const struct book *book, enum rate rate, uint32_t ask)
{
    const struct order *order = &book->pool.orders[ask];
    return (struct offer){price_of(ladder_key(&book->pool, ask), false),
                          rate == RATE_NONE ? 1 : book->cells[order->shelf].rates[rate],
                          order->sequence};
}

bool book_ask_is_before(const struct book *book, enum rate rate, uint32_t ask, uint32_t other)
{
    assert(book_rests(book, ask) && book_rests(book, other));
    const struct offer offer = offer_of(book, rate, ask);
    const struct offer than = offer_of(book, rate, other);
    return offers_more(&offer, &than);
}
