/* The queue of a bid is the bids that come before it, where all its slots are leased or ask more. A
 * read: pure, no trace. */
#include "exchange/view/search.h"

#include "base/limit.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/daily.h"
#include "exchange/market/donations.h"
#include "exchange/state/handles.h"
#include "exchange/state/steps.h"

#include <stdlib.h>

enum { QUEUE_STEPS = 1 << 13 }; /* per call, about two milliseconds when no answer is cached */

struct queue {
    const struct exchange *exchange;
    const struct exchange_need *need;
    uint64_t sequence;
    uint32_t *ahead; /* bids by class */
    uint32_t *cells; /* cells of the devices that it could have */
    int64_t *least;  /* lowest ask of each cell */
    uint32_t cell_count, cell_room;
    uint32_t steps;
    bool is_partial;
    bool goes_by_rank; /* all devices that it could have are donated */
    bool is_any_price; /* no device is within its limit, even when it becomes free */
    int64_t rank;      /* rank of its account, for goes_by_rank */
};

/* Returns true when the bid comes first in the donation queue. */
static bool is_ahead_by_rank(const struct queue *queue, const struct book_bid *bid,
                             uint64_t sequence)
{
    const int64_t rank = donation_rank(queue->exchange, bid->owner);
    return rank < queue->rank || (rank == queue->rank && bid->sequence < sequence);
}

static void count_bids(struct queue *queue)
{
    const struct exchange *exchange = queue->exchange;
    const int64_t limit = limit_is_set(queue->need->cap_micro) ? queue->need->cap_micro : INT64_MAX;
    const uint64_t sequence = queue->sequence;
    for (uint32_t handle = book_next(exchange->book, 0); handle != BOOK_NONE;
         handle = book_next(exchange->book, handle + 1)) {
        struct book_bid bid;
        steps_add(exchange, 2);
        if (book_bid(exchange->book, handle, &bid) && bid.slots > 0 &&
            !handle_waits_for_all(exchange, handle) &&
            (queue->goes_by_rank
                 ? is_ahead_by_rank(queue, &bid, sequence)
                 : book_class_rate(exchange->book, bid.class_id) == queue->need->rate &&
                       (bid.limit_micro > limit ||
                        (bid.limit_micro == limit && bid.sequence < sequence)))) {
            queue->ahead[bid.class_id]++;
        }
    }
}

static void add_cell(struct queue *queue, uint32_t cell, int64_t price_micro)
{
    for (uint32_t i = queue->cell_count; i-- > 0 && i + 8 > queue->cell_count;) {
        if (queue->cells[i] == cell) {
            queue->least[i] = price_micro < queue->least[i] ? price_micro : queue->least[i];
            return; /* like devices often stand together; one too many does no harm */
        }
    }
    if (queue->cell_count < queue->cell_room) {
        queue->least[queue->cell_count] = price_micro;
        queue->cells[queue->cell_count++] = cell;
    }
}

/* Collects the cells of fitting devices whose price is within the limit, if they were free. */
static void find_cells(struct queue *queue, const struct search *search)
{
    const struct exchange_need *need = queue->need;
    const struct explained *seen = search->seen;
    for (size_t i = 0; i < search->count; i++) {
        const struct device *device = seen[i].device;
        struct book_ask ask;
        if (seen[i].lease == NULL && seen[i].effort.hold == 0 && !seen[i].is_passed_over &&
            device->key.provider != need->account && device->ask != NULL && device->ask->is_open &&
            !daily_is_spent(queue->exchange, device->ask) &&
            ask_is_for(device->ask, need->account) &&
            book_ask(queue->exchange->book, device->ask->handle, &ask) &&
            (queue->is_any_price || !limit_is_set(need->cap_micro) ||
             ask.price_micro <=
                 book_limit(queue->exchange->book, need->rate, need->cap_micro, ask.cell)) &&
            (ask.max_term_ns == 0 || ask.max_term_ns >= need->term_ns) &&
            device->slots >= need->slots && device->ask->slots >= need->slots) {
            add_cell(queue, device->cell, ask.price_micro);
        }
    }
}

/* Returns a bid's worth in a cell, comparable within that cell. */
static int128 worth_in(const struct book *book, enum rate rate, int64_t limit_micro, uint32_t cell)
{
    return rate == RATE_NONE ? rate_price(limit_micro)
                             : rate_worth(limit_micro, book_cell_rate(book, cell, rate));
}

/* Returns true when a bid with another rate comes first in a cell that this one could have. */
static bool is_ahead_somewhere(struct queue *queue, const struct book_bid *bid)
{
    const struct book *book = queue->exchange->book;
    const struct exchange_need *need = queue->need;
    const int64_t limit = limit_is_set(need->cap_micro) ? need->cap_micro : INT64_MAX;
    const uint64_t sequence = queue->sequence;
    const enum rate rate = book_class_rate(book, bid->class_id);
    for (uint32_t i = 0; i < queue->cell_count; i++) {
        const uint32_t cell = queue->cells[i];
        if (++queue->steps > QUEUE_STEPS) {
            queue->is_partial = true;
            return false;
        }
        /* The price band holds the bid back, so it has no turn there. */
        const bool is_held = !queue->is_any_price &&
                             book_limit(book, rate, bid->limit_micro, cell) < queue->least[i];
        if (!is_held && book_class_accepts(book, bid->class_id, cell)) {
            int128 here = worth_in(book, need->rate, limit, cell);
            int128 there = worth_in(book, rate, bid->limit_micro, cell);
            if (there > here || (there == here && bid->sequence < sequence)) {
                return true;
            }
        }
    }
    return false;
}

/* Counts bids with another rate, whose order differs from cell to cell. */
static uint32_t count_unlike(struct queue *queue)
{
    const struct exchange *exchange = queue->exchange;
    uint32_t ahead = 0;
    for (uint32_t handle = book_next(exchange->book, 0); !queue->is_partial && handle != BOOK_NONE;
         handle = book_next(exchange->book, handle + 1)) {
        struct book_bid bid;
        steps_add(exchange, 2);
        if (book_bid(exchange->book, handle, &bid) && bid.slots > 0 &&
            book_class_rate(exchange->book, bid.class_id) != queue->need->rate) {
            ahead += is_ahead_somewhere(queue, &bid);
        }
    }
    return ahead;
}

static uint32_t count_ahead(struct queue *queue)
{
    const struct book *book = queue->exchange->book;
    uint32_t ahead = 0;
    for (uint32_t class_id = 0; class_id < book_class_bound(book); class_id++) {
        if (queue->ahead[class_id] == 0) {
            continue;
        }
        for (uint32_t i = 0; i < queue->cell_count; i++) {
            if (++queue->steps > QUEUE_STEPS) {
                queue->is_partial = true;
                return ahead;
            }
            if (book_class_accepts(book, class_id, queue->cells[i])) {
                ahead += queue->ahead[class_id];
                break;
            }
        }
    }
    return ahead;
}

void queue_find(const struct search *search, struct exchange_explanation *why)
{
    const struct exchange *exchange = search->exchange;
    const struct exchange_need *need = search->need;
    struct queue queue = {.exchange = exchange,
                          .need = need,
                          .sequence = search->is_filed ? search->part->sequence : UINT64_MAX,
                          .cell_room = why->affordable > 0 ? why->affordable : why->asking,
                          .is_any_price = why->affordable == 0,
                          .goes_by_rank = why->affordable > 0 && why->donated == why->affordable &&
                                          need->account < exchange->member_count};
    queue.rank = queue.goes_by_rank ? donation_rank(exchange, need->account) : 0;
    queue.ahead = calloc((size_t)book_class_bound(exchange->book) + 1, sizeof *queue.ahead);
    queue.cells = calloc((size_t)queue.cell_room + 1, sizeof *queue.cells);
    queue.least = calloc((size_t)queue.cell_room + 1, sizeof *queue.least);
    if (queue.ahead != NULL && queue.cells != NULL && queue.least != NULL && search->count > 0) {
        count_bids(&queue);
        find_cells(&queue, search);
        why->ahead = count_ahead(&queue);
        why->ahead += queue.goes_by_rank ? 0 : count_unlike(&queue);
        why->has_ahead = true;
        why->is_ahead_partial = queue.is_partial;
        steps_add(exchange,
                  16 * (uint64_t)queue.steps + book_class_bound(exchange->book) + search->count);
    }
    free(queue.ahead);
    free(queue.cells);
    free(queue.least);
}
