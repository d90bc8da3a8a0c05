/* bench/flash1/adapter.c puts our book behind the interface of a public harness for matching
 * engines, as a shared object.
 *
 * The harness (flash1-dev/matching-engine-benchmark; its api/matching_engine_api.h is what this
 * file implements) loads the object, hands over one message after the other and checks every
 * report. The file is built only when FLASH1_DIR names a checkout of the harness (docs/bench.md).
 * The book has one cell and one class, as a market of one kind of device has them. Buyers and
 * sellers are two owners, so that nobody meets himself. No program of ours uses this file. */
#include "api/matching_engine_api.h"
#include "matching/book.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORDERS = 1 << 21, IDS = 1 << 22, BUYER = 1, SELLER = 2 };
#define PRICE_ZERO (INT64_C(1) << 40) /* their price 0: an ask at our 0 would be a donation */
#define FREE INT64_MIN

static struct {
    struct book *book;
    uint32_t cell, class_id;
    uint64_t sequence;
    uint32_t *handles; /* by id; BOOK_NONE: it does not rest */
    uint64_t id_count;
    uint64_t *ids;   /* by handle */
    int64_t *prices; /* by handle, twice the ticks and 1 more for a sell; FREE: nothing rests */
    uint32_t *free;  /* handles that were given back, a stack */
    uint32_t free_count, touched;
    const me_transport_t *transport;
    void *sink;
} engine;

static _Noreturn void die(const char *text)
{
    (void)fprintf(stderr, "adapter: %s\n", text);
    abort();
}

static void *memory(size_t count, size_t size)
{
    void *bytes = malloc(count * size);
    if (bytes == NULL) {
        die("out of memory");
    }
    memset(bytes, 0xff, count * size);
    return bytes;
}

static void report(const me_report_t *said)
{
    while (engine.transport->push(engine.sink, said) == 0) {
        /* full: another thread takes reports out */
    }
}

static void answer(me_report_type_t type, uint64_t sequence, uint64_t id, uint8_t side,
                   int64_t price, uint32_t quantity)
{
    const me_report_t said = {.type = (uint8_t)type,
                              .side = side,
                              .sequence_number = sequence,
                              .order_id = id,
                              .price_ticks = price,
                              .quantity = quantity};
    report(&said);
}

/* ---------------------------------------------------------------- lifecycle */

static void open_book(void)
{
    const struct attribute kind = {.name = "kind", .is_text = true, .text = "share"};
    static const struct requirement any;
    engine.book = book_create((struct book_limits){.orders = ORDERS, .cells = 1, .classes = 1});
    if (engine.book == NULL || book_cell(engine.book, &kind, 1, &engine.cell) != BOOK_OK ||
        book_class(engine.book, &any, RATE_NONE, &engine.class_id) != BOOK_OK) {
        die("no book");
    }
}

void engine_init(uint64_t seed, const me_transport_t *transport, void *report_sink)
{
    (void)seed;
    memset(&engine, 0, sizeof engine);
    engine.transport = transport;
    engine.sink = report_sink;
    open_book();
    engine.id_count = IDS;
    engine.handles = memory(IDS, sizeof *engine.handles);
    engine.ids = memory(ORDERS, sizeof *engine.ids);
    engine.prices = memory(ORDERS, sizeof *engine.prices);
    engine.free = memory(ORDERS, sizeof *engine.free);
}

void engine_shutdown(void)
{
    book_destroy(&engine.book);
    free(engine.handles);
    free(engine.ids);
    free(engine.prices);
    free(engine.free);
}

void engine_flush(void)
{
}

/* ---------------------------------------------------------------- ids and handles */

static uint32_t *handle_slot(uint64_t id)
{
    if (id >= engine.id_count) {
        uint64_t count = 2 * engine.id_count;
        while (count <= id && count < UINT32_MAX) {
            count *= 2;
        }
        uint32_t *more =
            id < count ? realloc(engine.handles, count * sizeof *engine.handles) : NULL;
        if (more == NULL) {
            die("an id is too large");
        }
        memset(more + engine.id_count, 0xff, (count - engine.id_count) * sizeof *more);
        engine.handles = more;
        engine.id_count = count;
    }
    return &engine.handles[id];
}

static uint32_t handle_of(uint64_t id)
{
    return id < engine.id_count ? engine.handles[id] : BOOK_NONE;
}

static void take_handle(uint64_t id, uint8_t side, const struct book_order *order)
{
    uint32_t handle = engine.free_count > 0 ? engine.free[--engine.free_count] : engine.touched++;
    if (handle >= ORDERS || book_rest(engine.book, handle, order) != BOOK_OK) {
        die("more orders rest than there is room for");
    }
    *handle_slot(id) = handle;
    engine.ids[handle] = id;
    engine.prices[handle] = 2 * (order->price_micro - PRICE_ZERO) + side;
}

/* Gives back a handle under which nothing rests any more. */
static void give_handle(uint32_t handle)
{
    engine.handles[engine.ids[handle]] = BOOK_NONE;
    engine.prices[handle] = FREE;
    engine.free[engine.free_count++] = handle;
}

/* ---------------------------------------------------------------- messages */

static struct book_order order_of(uint8_t side, int64_t price_ticks, uint32_t quantity)
{
    return (struct book_order){.is_bid = side == 0,
                               .owner = side == 0 ? BUYER : SELLER,
                               .kind = side == 0 ? engine.class_id : engine.cell,
                               .slots = quantity,
                               .width = 1,
                               .price_micro = price_ticks + PRICE_ZERO,
                               .sequence = engine.sequence++};
}

/* Fills the order from what rests, and reports it. What is left stays in `order`. */
static void match(uint64_t id, uint64_t sequence, struct book_order *order)
{
    struct book_match found;
    while (order->slots > 0 && book_match(engine.book, order, NULL, NULL, &found)) {
        const me_report_t trade = {.type = ME_TRADE,
                                   .sequence_number = sequence,
                                   .price_ticks = found.price_micro - PRICE_ZERO,
                                   .quantity = found.slots,
                                   .maker_order_id = engine.ids[found.handle],
                                   .taker_order_id = id};
        order->slots -= found.slots;
        const uint32_t left = book_slots(engine.book, found.handle) - found.slots;
        if (left > 0) {
            book_set_slots(engine.book, found.handle, left);
        } else {
            book_remove(engine.book, found.handle);
            give_handle(found.handle);
        }
        report(&trade);
    }
}

void engine_on_new_order(const new_order_t *said)
{
    answer(ME_ORDER_ACK, said->sequence_number, said->order_id, said->side, said->price_ticks,
           said->quantity);
    struct book_order order = order_of(said->side, said->price_ticks, said->quantity);
    match(said->order_id, said->sequence_number, &order);
    if (order.slots > 0 && said->ioc != 0) {
        answer(ME_CANCEL_ACK, said->sequence_number, said->order_id, said->side, said->price_ticks,
               order.slots);
    } else if (order.slots > 0) {
        take_handle(said->order_id, said->side, &order);
    }
}

/* Takes an order out of the book. Returns false when the order does not rest. */
static bool withdraw(uint64_t id, int64_t *ret_price)
{
    const uint32_t handle = handle_of(id);
    if (handle == BOOK_NONE) {
        return false;
    }
    *ret_price = engine.prices[handle];
    book_remove(engine.book, handle);
    give_handle(handle);
    return true;
}

void engine_on_cancel(const cancel_t *said)
{
    int64_t price;
    if (withdraw(said->order_id, &price)) {
        const uint8_t side = price & 1;
        answer(ME_CANCEL_ACK, said->sequence_number, said->order_id, side, (price - side) / 2, 0);
    } else {
        answer(ME_CANCEL_REJECT, said->sequence_number, said->order_id, 0, 0, 0);
    }
}

void engine_on_modify(const modify_t *said)
{
    int64_t price;
    if (!withdraw(said->order_id, &price)) {
        answer(ME_MODIFY_REJECT, said->sequence_number, said->order_id, 0, 0, 0);
        return;
    }
    struct book_order order = order_of(said->side, said->new_price_ticks, said->new_quantity);
    match(said->order_id, said->sequence_number, &order);
    if (order.slots > 0) {
        take_handle(said->order_id, said->side, &order);
    }
    answer(ME_MODIFY_ACK, said->sequence_number, said->order_id, said->side, said->new_price_ticks,
           said->new_quantity);
}

/* ---------------------------------------------------------------- what rests */

/* An order that takes any price finds the best of the other side. */
static bool best_for(uint8_t side, int64_t price_micro, int64_t *ret_ticks)
{
    struct book_order anybody = order_of(side, 0, UINT32_MAX);
    struct book_match found;
    anybody.price_micro = price_micro;
    bool is_found = book_match(engine.book, &anybody, NULL, NULL, &found);
    *ret_ticks = is_found ? found.price_micro - PRICE_ZERO : 0;
    return is_found;
}

int64_t engine_query_best_bid(void)
{
    int64_t ticks;
    return best_for(1, 1, &ticks) ? ticks : INT64_MIN;
}

int64_t engine_query_best_ask(void)
{
    int64_t ticks;
    return best_for(0, INT64_MAX, &ticks) ? ticks : INT64_MAX;
}

uint64_t engine_query_depth_at(int64_t price_ticks, uint8_t side)
{
    const int64_t wanted = 2 * price_ticks + side;
    uint64_t depth = 0;
    for (uint32_t handle = 0; handle < engine.touched; handle++) {
        if (engine.prices[handle] == wanted) {
            depth += book_slots(engine.book, handle);
        }
    }
    return depth;
}
