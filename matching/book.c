#include "matching/book.h"

#include "matching/ladder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum order_kind { ORDER_NONE, ORDER_ASK, ORDER_BID };

struct order {
    enum order_kind kind;
    union {
        struct book_ask ask;
        struct book_bid bid;
    };
};

struct cell {
    uint32_t references; /* 0: the number is free */
    uint64_t fingerprint;
    size_t count;
    struct attribute *attributes; /* in canonical order */
    struct ladder asks;
};

enum { ACCEPTS_UNKNOWN, ACCEPTS, ACCEPTS_NOT };

struct class_entry {
    uint32_t references; /* 0: the number is free */
    struct requirement *requirement;
    uint8_t *accepts; /* what is known of each cell, up to the book's cell limit */
    struct ladder bids;
};

struct book {
    struct book_limits limits;
    struct order *orders;
    struct ladder_pool
        *pool; /* of the ladders of all cells and classes; its handles are the orders' */
    struct cell *cells;
    uint32_t cell_bound; /* numbers in use are below */
    struct class_entry *classes;
    uint32_t class_bound;
    uint32_t *cursors; /* scratch for book_walk_asks: one per cell */
};

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
    book->cursors = calloc(limits.cells, sizeof *book->cursors);
    if (book->orders == NULL || book->pool == NULL || book->cells == NULL ||
        book->classes == NULL || book->cursors == NULL) {
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
    for (uint32_t i = 0; i < book->cell_bound; i++) {
        free(book->cells[i].attributes);
    }
    for (uint32_t i = 0; i < book->class_bound; i++) {
        free(book->classes[i].requirement);
        free(book->classes[i].accepts);
    }
    ladder_pool_destroy(&book->pool);
    free(book->orders);
    free(book->cells);
    free(book->classes);
    free(book->cursors);
    free(book);
    *self = NULL;
}

/* ---------------------------------------------------------------- cells and classes */

static int compare_attributes(const void *left, const void *right)
{
    const struct attribute *a = left;
    const struct attribute *b = right;
    int names = strcmp(a->name, b->name);
    if (names != 0) {
        return names;
    }
    if (a->is_text != b->is_text) {
        return a->is_text ? 1 : -1;
    }
    if (a->is_text) {
        return strcmp(a->text, b->text);
    }
    return (a->number > b->number) - (a->number < b->number);
}

static uint64_t mix(uint64_t state, const char *text)
{
    for (; *text != '\0'; text++) {
        state = (state ^ (uint8_t)*text) *
                UINT64_C(0x100000001b3); /* FNV-1a: a hint, equality decides */
    }
    return state * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t fingerprint(const struct attribute *attributes, size_t count)
{
    uint64_t state = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) {
        state = mix(state, attributes[i].name);
        state = attributes[i].is_text
                    ? mix(state, attributes[i].text)
                    : (state ^ (uint64_t)attributes[i].number) * UINT64_C(0x100000001b3);
    }
    return state;
}

static bool same_attributes(const struct cell *cell, const struct attribute *attributes,
                            size_t count)
{
    if (cell->count != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (compare_attributes(&cell->attributes[i], &attributes[i]) != 0) {
            return false;
        }
    }
    return true;
}

/* The lowest free number, or the limit. */
static uint32_t free_cell(const struct book *book)
{
    uint32_t id = 0;
    while (id < book->cell_bound && book->cells[id].references > 0) {
        id++;
    }
    return id;
}

static uint32_t find_cell(const struct book *book, uint64_t print,
                          const struct attribute *attributes, size_t count)
{
    for (uint32_t i = 0; i < book->cell_bound; i++) {
        if (book->cells[i].references > 0 && book->cells[i].fingerprint == print &&
            same_attributes(&book->cells[i], attributes, count)) {
            return i;
        }
    }
    return BOOK_NONE;
}

/* In canonical order, for the caller to free; NULL: out of memory. */
static struct attribute *sorted_copy(const struct attribute *attributes, size_t count)
{
    struct attribute *sorted = calloc(count + 1, sizeof *sorted);
    if (sorted != NULL && count > 0) {
        memcpy(sorted, attributes, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_attributes);
    }
    return sorted;
}

/* Takes the attributes over. */
static void place_cell(struct book *book, uint32_t id, struct attribute *sorted, size_t count,
                       uint64_t print)
{
    book->cells[id] = (struct cell){.references = 1,
                                    .fingerprint = print,
                                    .count = count,
                                    .attributes = sorted,
                                    .asks = LADDER_EMPTY};
    book->cell_bound = id < book->cell_bound ? book->cell_bound : id + 1;
}

enum book_status book_cell(struct book *book, const struct attribute *attributes, size_t count,
                           uint32_t *ret_cell)
{
    struct attribute *sorted = sorted_copy(attributes, count);
    if (sorted == NULL) {
        return BOOK_OUT_OF_MEMORY;
    }
    uint64_t print = fingerprint(sorted, count);
    uint32_t id = find_cell(book, print, sorted, count);
    if (id != BOOK_NONE) {
        free(sorted);
        book_cell_hold(book, id);
        *ret_cell = id;
        return BOOK_OK;
    }
    id = free_cell(book);
    if (id == book->limits.cells) {
        free(sorted);
        return BOOK_FULL_CELLS;
    }
    place_cell(book, id, sorted, count, print);
    *ret_cell = id;
    return BOOK_OK;
}

enum book_status book_cell_at(struct book *book, uint32_t cell, const struct attribute *attributes,
                              size_t count)
{
    struct attribute *sorted = sorted_copy(attributes, count);
    if (sorted == NULL) {
        return BOOK_OUT_OF_MEMORY;
    }
    uint64_t print = fingerprint(sorted, count);
    if (cell >= book->limits.cells || book_cell_references(book, cell) > 0 ||
        find_cell(book, print, sorted, count) != BOOK_NONE) {
        free(sorted);
        return BOOK_FULL_CELLS;
    }
    place_cell(book, cell, sorted, count, print);
    return BOOK_OK;
}

void book_cell_hold(struct book *book, uint32_t cell)
{
    assert(book_cell_references(book, cell) > 0);
    book->cells[cell].references++;
}

void book_cell_release(struct book *book, uint32_t cell)
{
    assert(book_cell_references(book, cell) > 0);
    struct cell *entry = &book->cells[cell];
    if (--entry->references > 0) {
        return;
    }
    assert(ladder_is_empty(&entry->asks));
    free(entry->attributes);
    *entry = (struct cell){.asks = LADDER_EMPTY};
    for (uint32_t i = 0; i < book->class_bound; i++) {
        if (book->classes[i].references > 0) {
            book->classes[i].accepts[cell] = ACCEPTS_UNKNOWN;
        }
    }
}

uint32_t book_cell_references(const struct book *book, uint32_t cell)
{
    return cell < book->cell_bound ? book->cells[cell].references : 0;
}

static bool same_requirement(const struct requirement *a, const struct requirement *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        const struct requirement_node *left = &a->nodes[i];
        const struct requirement_node *right = &b->nodes[i];
        if (left->op != right->op) {
            return false;
        }
        bool joins = left->op == REQUIREMENT_AND || left->op == REQUIREMENT_OR;
        if (joins ? left->arity != right->arity
                  : left->op != REQUIREMENT_NOT &&
                        compare_attributes(&left->attribute, &right->attribute) != 0) {
            return false;
        }
    }
    return true;
}

static uint32_t find_class(const struct book *book, const struct requirement *requirement)
{
    for (uint32_t i = 0; i < book->class_bound; i++) {
        if (book->classes[i].references > 0 &&
            same_requirement(book->classes[i].requirement, requirement)) {
            return i;
        }
    }
    return BOOK_NONE;
}

static uint32_t free_class(const struct book *book)
{
    uint32_t id = 0;
    while (id < book->class_bound && book->classes[id].references > 0) {
        id++;
    }
    return id;
}

static enum book_status place_class(struct book *book, uint32_t id,
                                    const struct requirement *requirement)
{
    struct class_entry entry = {.references = 1, .bids = LADDER_EMPTY};
    entry.requirement = malloc(sizeof *entry.requirement);
    entry.accepts = calloc(book->limits.cells, 1);
    if (entry.requirement == NULL || entry.accepts == NULL) {
        free(entry.requirement);
        free(entry.accepts);
        return BOOK_OUT_OF_MEMORY;
    }
    *entry.requirement = *requirement;
    book->classes[id] = entry;
    book->class_bound = id < book->class_bound ? book->class_bound : id + 1;
    return BOOK_OK;
}

enum book_status book_class(struct book *book, const struct requirement *requirement,
                            uint32_t *ret_class)
{
    if (!requirement_well_formed(requirement)) {
        return BOOK_BAD_REQUIREMENT;
    }
    uint32_t id = find_class(book, requirement);
    if (id != BOOK_NONE) {
        book_class_hold(book, id);
        *ret_class = id;
        return BOOK_OK;
    }
    id = free_class(book);
    if (id == book->limits.classes) {
        return BOOK_FULL_CLASSES;
    }
    enum book_status status = place_class(book, id, requirement);
    if (status == BOOK_OK) {
        *ret_class = id;
    }
    return status;
}

enum book_status book_class_at(struct book *book, uint32_t class_id,
                               const struct requirement *requirement)
{
    if (!requirement_well_formed(requirement)) {
        return BOOK_BAD_REQUIREMENT;
    }
    if (class_id >= book->limits.classes || book_class_references(book, class_id) > 0 ||
        find_class(book, requirement) != BOOK_NONE) {
        return BOOK_FULL_CLASSES;
    }
    return place_class(book, class_id, requirement);
}

void book_class_hold(struct book *book, uint32_t class_id)
{
    assert(book_class_references(book, class_id) > 0);
    book->classes[class_id].references++;
}

void book_class_release(struct book *book, uint32_t class_id)
{
    assert(book_class_references(book, class_id) > 0);
    struct class_entry *entry = &book->classes[class_id];
    if (--entry->references > 0) {
        return;
    }
    assert(ladder_is_empty(&entry->bids));
    free(entry->requirement);
    free(entry->accepts);
    *entry = (struct class_entry){.bids = LADDER_EMPTY};
}

uint32_t book_class_references(const struct book *book, uint32_t class_id)
{
    return class_id < book->class_bound ? book->classes[class_id].references : 0;
}

bool book_class_accepts(const struct book *book, uint32_t class_id, uint32_t cell)
{
    assert(book_class_references(book, class_id) > 0);
    assert(book_cell_references(book, cell) > 0);
    const struct class_entry *entry = &book->classes[class_id];
    const struct cell *asked = &book->cells[cell];
    if (entry->accepts[cell] == ACCEPTS_UNKNOWN) {
        bool accepted = requirement_satisfied(entry->requirement, asked->attributes, asked->count);
        entry->accepts[cell] = accepted ? ACCEPTS : ACCEPTS_NOT;
    }
    return entry->accepts[cell] == ACCEPTS;
}

uint32_t book_cell_bound(const struct book *book)
{
    return book->cell_bound;
}

uint32_t book_class_bound(const struct book *book)
{
    return book->class_bound;
}

const struct attribute *book_cell_attributes(const struct book *book, uint32_t cell,
                                             size_t *ret_count)
{
    assert(book_cell_references(book, cell) > 0);
    *ret_count = book->cells[cell].count;
    return book->cells[cell].attributes;
}

const struct requirement *book_class_requirement(const struct book *book, uint32_t class_id)
{
    assert(book_class_references(book, class_id) > 0);
    return book->classes[class_id].requirement;
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

static struct ladder *ladder_of(struct book *book, const struct order *order)
{
    return order->kind == ORDER_ASK ? &book->cells[order->ask.cell].asks
                                    : &book->classes[order->bid.class_id].bids;
}

/* True when a comes before b; both of one side. */
static bool ask_precedes(const struct book_ask *a, const struct book_ask *b)
{
    return a->price_micro != b->price_micro ? a->price_micro < b->price_micro
                                            : a->sequence < b->sequence;
}

static bool bid_precedes(const struct book_bid *a, const struct book_bid *b)
{
    return a->limit_micro != b->limit_micro ? a->limit_micro > b->limit_micro
                                            : a->sequence < b->sequence;
}

/* The lowest ask and the highest bid have the least key, negative prices too. */
static uint64_t key_of_price(int64_t price_micro)
{
    return (uint64_t)price_micro ^ UINT64_C(1) << 63;
}

static void link_order(struct book *book, uint32_t handle)
{
    const struct order *order = &book->orders[handle];
    bool is_ask = order->kind == ORDER_ASK;
    uint64_t key =
        is_ask ? key_of_price(order->ask.price_micro) : ~key_of_price(order->bid.limit_micro);
    ladder_insert(book->pool, ladder_of(book, order), handle, key,
                  is_ask ? order->ask.sequence : order->bid.sequence);
}

enum book_status book_rest_ask(struct book *book, uint32_t handle, const struct book_ask *ask)
{
    assert(book_cell_references(book, ask->cell) > 0);
    if (handle >= book->limits.orders) {
        return BOOK_FULL_ORDERS;
    }
    assert(book->orders[handle].kind == ORDER_NONE);
    book->orders[handle] = (struct order){.kind = ORDER_ASK, .ask = *ask};
    link_order(book, handle);
    return BOOK_OK;
}

enum book_status book_rest_bid(struct book *book, uint32_t handle, const struct book_bid *bid)
{
    assert(book_class_references(book, bid->class_id) > 0);
    assert(bid->width > 0);
    if (handle >= book->limits.orders) {
        return BOOK_FULL_ORDERS;
    }
    assert(book->orders[handle].kind == ORDER_NONE);
    book->orders[handle] = (struct order){.kind = ORDER_BID, .bid = *bid};
    link_order(book, handle);
    return BOOK_OK;
}

void book_remove(struct book *book, uint32_t handle)
{
    assert(book_rests(book, handle));
    struct order *order = &book->orders[handle];
    ladder_remove(book->pool, ladder_of(book, order), handle);
    order->kind = ORDER_NONE;
}

bool book_rests(const struct book *book, uint32_t handle)
{
    return handle < book->limits.orders && book->orders[handle].kind != ORDER_NONE;
}

const struct book_ask *book_ask(const struct book *book, uint32_t handle)
{
    return book_rests(book, handle) && book->orders[handle].kind == ORDER_ASK
               ? &book->orders[handle].ask
               : NULL;
}

const struct book_bid *book_bid(const struct book *book, uint32_t handle)
{
    return book_rests(book, handle) && book->orders[handle].kind == ORDER_BID
               ? &book->orders[handle].bid
               : NULL;
}

void book_set_slots(struct book *book, uint32_t handle, uint32_t slots)
{
    assert(book_rests(book, handle));
    struct order *order = &book->orders[handle];
    *(order->kind == ORDER_ASK ? &order->ask.slots : &order->bid.slots) = slots;
}

/* ---------------------------------------------------------------- who trades with whom */

static bool crosses(const struct book *book, const struct book_ask *ask, const struct book_bid *bid)
{
    return ask->price_micro <= bid->limit_micro &&
           book_class_accepts(book, bid->class_id, ask->cell) &&
           (ask->max_term_ns == 0 || bid->term_ns <= ask->max_term_ns);
}

static uint32_t common_slots(const struct book_ask *ask, const struct book_bid *bid)
{
    uint32_t slots = ask->slots < bid->slots ? ask->slots : bid->slots;
    return slots - slots % bid->width;
}

uint32_t book_fillable(const struct book *book, uint32_t ask, uint32_t bid)
{
    const struct book_ask *a = book_ask(book, ask);
    const struct book_bid *b = book_bid(book, bid);
    assert(a != NULL && b != NULL);
    return a->owner != b->owner && crosses(book, a, b) ? common_slots(a, b) : 0;
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

/* Looked at in this order, so that only what may match is ever asked for. */
static bool has_asks_for(const struct book *book, uint32_t class_id, uint32_t cell)
{
    return book->cells[cell].references > 0 && !ladder_is_empty(&book->cells[cell].asks) &&
           book_class_accepts(book, class_id, cell);
}

static bool has_bids_for(const struct book *book, uint32_t class_id, uint32_t cell)
{
    return book->classes[class_id].references > 0 &&
           !ladder_is_empty(&book->classes[class_id].bids) &&
           book_class_accepts(book, class_id, cell);
}

uint32_t book_best_ask(const struct book *book, uint32_t bid_handle, book_skip *skip, void *context)
{
    const struct book_bid *bid = book_bid(book, bid_handle);
    assert(bid != NULL);
    uint32_t best = BOOK_NONE;
    for (uint32_t cell = 0; cell < book->cell_bound; cell++) {
        if (!has_asks_for(book, bid->class_id, cell)) {
            continue;
        }
        const struct ladder *asks = &book->cells[cell].asks;
        for (uint32_t at = ladder_first(book->pool, asks); at != BOOK_NONE;
             at = ladder_next(book->pool, asks, at)) {
            const struct book_ask *ask = &book->orders[at].ask;
            if (ask->price_micro > bid->limit_micro ||
                (best != BOOK_NONE && ask_precedes(&book->orders[best].ask, ask))) {
                break; /* this cell has nothing better */
            }
            if (book_fillable(book, at, bid_handle) > 0 && (skip == NULL || !skip(context, at))) {
                best = at;
                break;
            }
        }
    }
    return best;
}

uint32_t book_best_bid(const struct book *book, uint32_t ask_handle, book_skip *skip, void *context)
{
    const struct book_ask *ask = book_ask(book, ask_handle);
    assert(ask != NULL);
    uint32_t best = BOOK_NONE;
    for (uint32_t class_id = 0; class_id < book->class_bound; class_id++) {
        if (!has_bids_for(book, class_id, ask->cell)) {
            continue;
        }
        const struct ladder *bids = &book->classes[class_id].bids;
        for (uint32_t at = ladder_first(book->pool, bids); at != BOOK_NONE;
             at = ladder_next(book->pool, bids, at)) {
            const struct book_bid *bid = &book->orders[at].bid;
            if (bid->limit_micro < ask->price_micro ||
                (best != BOOK_NONE && bid_precedes(&book->orders[best].bid, bid))) {
                break;
            }
            if (book_fillable(book, ask_handle, at) > 0 && (skip == NULL || !skip(context, at))) {
                best = at;
                break;
            }
        }
    }
    return best;
}

static bool bid_meets_itself(const struct book *book, const struct book_bid *bid)
{
    const struct book_ask *best = NULL;
    for (uint32_t cell = 0; cell < book->cell_bound; cell++) {
        const struct ladder *asks = &book->cells[cell].asks;
        uint32_t at =
            has_asks_for(book, bid->class_id, cell) ? ladder_first(book->pool, asks) : BOOK_NONE;
        for (; at != BOOK_NONE; at = ladder_next(book->pool, asks, at)) {
            const struct book_ask *ask = &book->orders[at].ask;
            if (crosses(book, ask, bid) && common_slots(ask, bid) > 0 &&
                (best == NULL || ask_precedes(ask, best))) {
                best = ask;
            }
        }
    }
    return best != NULL && best->owner == bid->owner;
}

static bool ask_meets_itself(const struct book *book, const struct book_ask *ask)
{
    const struct book_bid *best = NULL;
    for (uint32_t class_id = 0; class_id < book->class_bound; class_id++) {
        const struct ladder *bids = &book->classes[class_id].bids;
        uint32_t at =
            has_bids_for(book, class_id, ask->cell) ? ladder_first(book->pool, bids) : BOOK_NONE;
        for (; at != BOOK_NONE; at = ladder_next(book->pool, bids, at)) {
            const struct book_bid *bid = &book->orders[at].bid;
            if (crosses(book, ask, bid) && common_slots(ask, bid) > 0 &&
                (best == NULL || bid_precedes(bid, best))) {
                best = bid;
            }
        }
    }
    return best != NULL && best->owner == ask->owner;
}

bool book_would_self_match(const struct book *book, uint32_t handle)
{
    const struct book_bid *bid = book_bid(book, handle);
    return bid != NULL ? bid_meets_itself(book, bid)
                       : ask_meets_itself(book, book_ask(book, handle));
}

uint32_t book_ahead(const struct book *book, uint32_t handle, uint32_t most)
{
    assert(book_rests(book, handle));
    const struct order *order = &book->orders[handle];
    const struct ladder *ladder = order->kind == ORDER_ASK
                                      ? &book->cells[order->ask.cell].asks
                                      : &book->classes[order->bid.class_id].bids;
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
    for (uint32_t cell = 0; cell < book->cell_bound; cell++) {
        const struct cell *entry = &book->cells[cell];
        bool accepted = entry->references > 0 && !ladder_is_empty(&entry->asks) &&
                        requirement_satisfied(requirement, entry->attributes, entry->count);
        book->cursors[cell] = accepted ? ladder_first(book->pool, &entry->asks) : BOOK_NONE;
    }
    for (;;) {
        uint32_t best = BOOK_NONE;
        for (uint32_t cell = 0; cell < book->cell_bound; cell++) {
            uint32_t at = book->cursors[cell];
            if (at != BOOK_NONE && (best == BOOK_NONE ||
                                    ask_precedes(&book->orders[at].ask, &book->orders[best].ask))) {
                best = at;
            }
        }
        if (best == BOOK_NONE || !visit(context, best, &book->orders[best].ask)) {
            return;
        }
        uint32_t cell = book->orders[best].ask.cell;
        book->cursors[cell] = ladder_next(book->pool, &book->cells[cell].asks, best);
    }
}
