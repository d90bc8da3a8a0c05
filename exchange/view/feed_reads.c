/* The reads of the feed visit its changes, its levels and its bars. */
#include "exchange/lifecycle.h"
#include "exchange/state/feed_upkeep.h"
#include "exchange/state/instruments.h"
#include "exchange/state/steps.h"
#include "exchange/state/tape.h"
#include "exchange/view/feed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A row that is told is copied, measured and encoded by its visitor. */
enum { TOLD_STEPS = 64 };

uint64_t exchange_feed_number(const struct exchange *exchange)
{
    return exchange->feed->number;
}

bool exchange_feed_reaches(const struct exchange *exchange, uint64_t after)
{
    const struct feed *feed = exchange->feed;
    return after <= feed->number && feed->number - after <= FEED_CHANGES &&
           after >= tape_forgotten(feed->tape);
}

static struct exchange_change tell_level(const struct exchange *exchange, const struct level *level)
{
    struct exchange_change told = {.type = level->key.is_bid != 0 ? CHANGE_BIDS : CHANGE_ASKS};
    told.level = (struct exchange_level){.price_micro = level->key.price_micro,
                                         .orders = level->now.orders,
                                         .slots = level->now.slots,
                                         .free = level->now.free,
                                         .limited = level->now.with[FOR_SOME],
                                         .timed = level->now.with[AT_HOURS],
                                         .daily = level->now.with[A_DAY]};
    if (level->instrument != NULL) {
        memcpy(told.level.instrument, level->instrument->name, sizeof told.level.instrument);
    } else {
        told.level.needs_number = level->key.subject;
    }
    if (level->key.is_bid != 0 && level->now.orders > 0) {
        told.level.needs = book_class_requirement(exchange->book, level->class_id);
        told.level.rate = book_class_rate(exchange->book, level->class_id);
    }
    return told;
}

static struct exchange_change tell_trade(const struct tape_trade *trade)
{
    struct exchange_change told = {.type = CHANGE_TRADE};
    told.trade = (struct exchange_trade){.index = trade->index,
                                         .entry = trade->entry,
                                         .time_ns = trade->time_ns,
                                         .price_micro = trade->price_micro,
                                         .slots = trade->slots};
    memcpy(told.trade.instrument, trade->instrument->name, sizeof told.trade.instrument);
    return told;
}

static struct exchange_bar tell_bar(const struct tape_bar *bar)
{
    struct exchange_bar told = {.start_ns = bar->start_ns,
                                .open_micro = bar->open_micro,
                                .high_micro = bar->high_micro,
                                .low_micro = bar->low_micro,
                                .close_micro = bar->close_micro,
                                .slots = bar->slots,
                                .trades = bar->trades};
    memcpy(told.instrument, bar->instrument->name, sizeof told.instrument);
    return told;
}

/* Gives change `number` as it stands now; returns false when a later number tells it. */
static bool tell_change(const struct exchange *exchange, uint64_t number,
                        struct exchange_change *ret_told)
{
    const struct feed *feed = exchange->feed;
    const struct change *change = &feed->changes[number % FEED_CHANGES];
    if (change->type == CHANGE_TRADE) {
        const struct tape_trade *trade = tape_trade(feed->tape, change->place);
        if (trade->instrument != NULL && trade->number == number) {
            *ret_told = tell_trade(trade);
            return true;
        }
    } else if (change->type == CHANGE_BAR) {
        const struct tape_bar *bar = tape_bar(feed->tape, change->place);
        if (bar->instrument != NULL && bar->number == number) {
            *ret_told = (struct exchange_change){.type = CHANGE_BAR};
            ret_told->bar = tell_bar(bar);
            return true;
        }
    } else if (change->type == CHANGE_BANDS) {
        *ret_told = (struct exchange_change){.type = CHANGE_BANDS};
        return feed->bands == number;
    } else {
        const struct level *level = feed->levels[change->place];
        if (level != NULL && level->number == number) {
            *ret_told = tell_level(exchange, level);
            return true;
        }
    }
    return false;
}

enum exchange_listing exchange_feed_changes(const struct exchange *exchange, uint64_t after,
                                            exchange_change_visit *visit, void *context,
                                            uint64_t *ret_through)
{
    assert(exchange_feed_reaches(exchange, after));
    const uint64_t last = exchange->feed->number;
    uint64_t steps = 0;
    uint64_t number = after + 1;
    for (; number <= last && number - after <= EXCHANGE_LISTING_STEPS; number++) {
        struct exchange_change told;
        const bool is_told = tell_change(exchange, number, &told);
        steps += is_told ? 1 + TOLD_STEPS : 1;
        if (is_told && !visit(context, &told)) {
            break;
        }
    }
    steps_add(exchange, steps);
    *ret_through = number - 1;
    return number <= last ? LISTING_MORE : LISTING_END;
}

enum exchange_listing exchange_feed_book(const struct exchange *exchange, uint32_t from,
                                         exchange_change_visit *visit, void *context,
                                         uint32_t *ret_next)
{
    const struct feed *feed = exchange->feed;
    uint64_t steps = 0;
    uint32_t place = from;
    for (; place < feed->level_capacity && place - from < EXCHANGE_LISTING_STEPS; place++) {
        const struct level *level = feed->levels[place];
        const bool is_told = level != NULL && level->now.orders > 0;
        steps += is_told ? 1 + TOLD_STEPS : 1;
        if (is_told) {
            const struct exchange_change told = tell_level(exchange, level);
            if (!visit(context, &told)) {
                break;
            }
        }
    }
    steps_add(exchange, steps);
    if (place >= feed->level_capacity) {
        return LISTING_END;
    }
    *ret_next = place;
    return LISTING_MORE;
}

struct bar_walk {
    exchange_bar_visit *visit;
    void *context;
};

static bool visit_bar(void *context, const struct tape_bar *bar)
{
    const struct bar_walk *walk = context;
    const struct exchange_bar told = tell_bar(bar);
    return walk->visit(walk->context, &told);
}

void exchange_bars(const struct exchange *exchange, const char *instrument, int64_t since_ns,
                   exchange_bar_visit *visit, void *context)
{
    if (exchange->feed == NULL) {
        return;
    }
    const struct tape *tape = exchange->feed->tape;
    const int64_t oldest_ns = exchange->now_ns - TAPE_BARS_AGE_NS;
    struct bar_walk walk = {visit, context};
    since_ns = since_ns > oldest_ns ? since_ns : oldest_ns;
    if (instrument == NULL) {
        steps_add(exchange, 2 * tape_sums(tape, since_ns, visit_bar, &walk));
        return;
    }
    char name[ATTRIBUTE_TEXT_SIZE] = {0};
    const size_t length = strnlen(instrument, sizeof name);
    if (length < sizeof name) {
        memcpy(name, instrument, length);
        steps_add(exchange, 2 * tape_bars(tape, name, since_ns, visit_bar, &walk));
    }
}

static struct exchange_usual usual_of_chosen(const struct exchange *exchange)
{
    const struct tape_usual usual = tape_usual(exchange->feed->tape, exchange->now_ns);
    steps_add(exchange, 8 + usual.looked);
    return (struct exchange_usual){.price_micro = usual.price_micro,
                                   .middle_micro = usual.middle_micro,
                                   .trades = usual.trades,
                                   .since_ns = usual.since_ns};
}

struct exchange_usual exchange_usual_price(const struct exchange *exchange,
                                           const struct requirement *needs)
{
    if (exchange->feed == NULL) {
        return (struct exchange_usual){0};
    }
    struct tape *tape = exchange->feed->tape;
    tape_choose_none(tape);
    steps_add(exchange, steps_of_needs(needs) * book_cell_bound(exchange->book));
    for (uint32_t cell = 0; cell < book_cell_bound(exchange->book); cell++) {
        size_t count;
        if (book_cell_references(exchange->book, cell) == 0) {
            continue;
        }
        const struct attribute *attributes = book_cell_attributes(exchange->book, cell, &count);
        if (requirement_satisfied(needs, attributes, count)) {
            char name[ATTRIBUTE_TEXT_SIZE];
            instrument_of_cell(exchange, cell, name);
            tape_choose(tape, name);
        }
    }
    return usual_of_chosen(exchange);
}

struct exchange_usual exchange_usual_of(const struct exchange *exchange,
                                        const char instrument[ATTRIBUTE_TEXT_SIZE])
{
    if (exchange->feed == NULL) {
        return (struct exchange_usual){0};
    }
    tape_choose_none(exchange->feed->tape);
    tape_choose(exchange->feed->tape, instrument);
    return usual_of_chosen(exchange);
}
