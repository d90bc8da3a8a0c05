#include "matching/book.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Orders of one cell or class form a list in priority order, linked by handle. Insertion walks from the
 * tail, where a new order usually belongs. */
struct queue {
    uint32_t head, tail;
};

enum order_kind { ORDER_NONE, ORDER_ASK, ORDER_BID };

struct order {
    enum order_kind kind;
    uint32_t previous, next;
    union {
        struct book_ask ask;
        struct book_bid bid;
    };
};

struct cell {
    uint64_t fingerprint;
    size_t count;
    struct attribute *attributes; /* in canonical order */
    struct queue asks;
};

struct class_entry {
    struct requirement *requirement;
    uint8_t *accepts; /* one byte per cell, up to the book's cell limit */
    struct queue bids;
};

struct book {
    struct book_limits limits;
    struct order *orders;
    struct cell *cells;
    uint32_t cell_count;
    struct class_entry *classes;
    uint32_t class_count;
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
    book->cells = calloc(limits.cells, sizeof *book->cells);
    book->classes = calloc(limits.classes, sizeof *book->classes);
    book->cursors = calloc(limits.cells, sizeof *book->cursors);
    if (book->orders == NULL || book->cells == NULL || book->classes == NULL ||
        book->cursors == NULL) {
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
    for (uint32_t i = 0; i < book->cell_count; i++) {
        free(book->cells[i].attributes);
    }
    for (uint32_t i = 0; i < book->class_count; i++) {
        free(book->classes[i].requirement);
        free(book->classes[i].accepts);
    }
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

enum book_status book_cell(struct book *book, const struct attribute *attributes, size_t count,
                           uint32_t *ret_cell)
{
    struct attribute *sorted = calloc(count + 1, sizeof *sorted);
    if (sorted == NULL) {
        return BOOK_FULL_CELLS;
    }
    if (count > 0) {
        memcpy(sorted, attributes, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_attributes);
    }
    uint64_t print = fingerprint(sorted, count);
    for (uint32_t i = 0; i < book->cell_count; i++) {
        if (book->cells[i].fingerprint == print &&
            same_attributes(&book->cells[i], sorted, count)) {
            free(sorted);
            *ret_cell = i;
            return BOOK_OK;
        }
    }
    if (book->cell_count == book->limits.cells) {
        free(sorted);
        return BOOK_FULL_CELLS;
    }
    uint32_t id = book->cell_count++;
    book->cells[id] = (struct cell){
        .fingerprint = print, .count = count, .attributes = sorted, .asks = {BOOK_NONE, BOOK_NONE}};
    for (uint32_t i = 0; i < book->class_count; i++) {
        book->classes[i].accepts[id] =
            requirement_satisfied(book->classes[i].requirement, sorted, count);
    }
    *ret_cell = id;
    return BOOK_OK;
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

enum book_status book_class(struct book *book, const struct requirement *requirement,
                            uint32_t *ret_class)
{
    if (!requirement_well_formed(requirement)) {
        return BOOK_BAD_REQUIREMENT;
    }
    for (uint32_t i = 0; i < book->class_count; i++) {
        if (same_requirement(book->classes[i].requirement, requirement)) {
            *ret_class = i;
            return BOOK_OK;
        }
    }
    if (book->class_count == book->limits.classes) {
        return BOOK_FULL_CLASSES;
    }
    struct class_entry entry = {.bids = {BOOK_NONE, BOOK_NONE}};
    entry.requirement = malloc(sizeof *entry.requirement);
    entry.accepts = calloc(book->limits.cells, 1);
    if (entry.requirement == NULL || entry.accepts == NULL) {
        free(entry.requirement);
        free(entry.accepts);
        return BOOK_FULL_CLASSES;
    }
    *entry.requirement = *requirement;
    for (uint32_t i = 0; i < book->cell_count; i++) {
        entry.accepts[i] =
            requirement_satisfied(requirement, book->cells[i].attributes, book->cells[i].count);
    }
    *ret_class = book->class_count;
    book->classes[book->class_count++] = entry;
    return BOOK_OK;
}

bool book_class_accepts(const struct book *book, uint32_t class_id, uint32_t cell)
{
    assert(class_id < book->class_count);
    assert(cell < book->cell_count);
    return book->classes[class_id].accepts[cell] != 0;
}

uint32_t book_cell_count(const struct book *book)
{
    return book->cell_count;
}

uint32_t book_class_count(const struct book *book)
{
    return book->class_count;
}

const struct attribute *book_cell_attributes(const struct book *book, uint32_t cell,
                                             size_t *ret_count)
{
    assert(cell < book->cell_count);
    *ret_count = book->cells[cell].count;
    return book->cells[cell].attributes;
}

const struct requirement *book_class_requirement(const struct book *book, uint32_t class_id)
{
    assert(class_id < book->class_count);
    return book->classes[class_id].requirement;
}

/* ---------------------------------------------------------------- resting orders */

static struct queue *queue_of(struct book *book, const struct order *order)
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

static bool precedes(const struct order *a, const struct order *b)
{
    return a->kind == ORDER_ASK ? ask_precedes(&a->ask, &b->ask) : bid_precedes(&a->bid, &b->bid);
}

static void link_order(struct book *book, uint32_t handle)
{
    struct order *order = &book->orders[handle];
    struct queue *queue = queue_of(book, order);
    uint32_t after = queue->tail;
    while (after != BOOK_NONE && precedes(order, &book->orders[after])) {
        after = book->orders[after].previous;
    }
    order->previous = after;
    order->next = after == BOOK_NONE ? queue->head : book->orders[after].next;
    *(after == BOOK_NONE ? &queue->head : &book->orders[after].next) = handle;
    *(order->next == BOOK_NONE ? &queue->tail : &book->orders[order->next].previous) = handle;
}

enum book_status book_rest_ask(struct book *book, uint32_t handle, const struct book_ask *ask)
{
    assert(ask->cell < book->cell_count);
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
    assert(bid->class_id < book->class_count);
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
    struct queue *queue = queue_of(book, order);
    *(order->previous == BOOK_NONE ? &queue->head : &book->orders[order->previous].next) =
        order->next;
    *(order->next == BOOK_NONE ? &queue->tail : &book->orders[order->next].previous) =
        order->previous;
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

uint32_t book_best_ask(const struct book *book, uint32_t bid_handle, book_skip *skip, void *context)
{
    const struct book_bid *bid = book_bid(book, bid_handle);
    assert(bid != NULL);
    uint32_t best = BOOK_NONE;
    for (uint32_t cell = 0; cell < book->cell_count; cell++) {
        if (!book_class_accepts(book, bid->class_id, cell)) {
            continue;
        }
        for (uint32_t at = book->cells[cell].asks.head; at != BOOK_NONE;
             at = book->orders[at].next) {
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
    for (uint32_t class_id = 0; class_id < book->class_count; class_id++) {
        if (!book_class_accepts(book, class_id, ask->cell)) {
            continue;
        }
        for (uint32_t at = book->classes[class_id].bids.head; at != BOOK_NONE;
             at = book->orders[at].next) {
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
    for (uint32_t cell = 0; cell < book->cell_count; cell++) {
        uint32_t at =
            book_class_accepts(book, bid->class_id, cell) ? book->cells[cell].asks.head : BOOK_NONE;
        for (; at != BOOK_NONE; at = book->orders[at].next) {
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
    for (uint32_t class_id = 0; class_id < book->class_count; class_id++) {
        uint32_t at = book_class_accepts(book, class_id, ask->cell)
                          ? book->classes[class_id].bids.head
                          : BOOK_NONE;
        for (; at != BOOK_NONE; at = book->orders[at].next) {
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

void book_walk_asks(const struct book *book, const struct requirement *requirement,
                    book_visit *visit, void *context)
{
    for (uint32_t cell = 0; cell < book->cell_count; cell++) {
        const struct cell *entry = &book->cells[cell];
        bool accepted = requirement_satisfied(requirement, entry->attributes, entry->count);
        book->cursors[cell] = accepted ? entry->asks.head : BOOK_NONE;
    }
    for (;;) {
        uint32_t best = BOOK_NONE;
        for (uint32_t cell = 0; cell < book->cell_count; cell++) {
            uint32_t at = book->cursors[cell];
            if (at != BOOK_NONE && (best == BOOK_NONE ||
                                    ask_precedes(&book->orders[at].ask, &book->orders[best].ask))) {
                best = at;
            }
        }
        if (best == BOOK_NONE || !visit(context, best, &book->orders[best].ask)) {
            return;
        }
        book->cursors[book->orders[best].ask.cell] = book->orders[best].next;
    }
}
