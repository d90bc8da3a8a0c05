#include "exchange/state/feed_upkeep.h"

#include "exchange/lifecycle.h"
#include "exchange/state/handles.h"
#include "exchange/state/instruments.h"
#include "exchange/state/tape.h"
#include "exchange/view/feed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NO_LEVEL UINT32_MAX

/* ---------------------------------------------------------------- instruments */

static void instrument_leave(struct feed *feed, struct instrument *instrument)
{
    if (--instrument->uses == 0) {
        table_remove(&feed->instruments, instrument->name);
        free(instrument);
    }
}

/* Returns NULL when memory is short. */
static struct instrument *instrument_named(struct feed *feed, const char *name)
{
    struct instrument *instrument = table_find(&feed->instruments, name);
    if (instrument != NULL) {
        return instrument;
    }
    instrument = calloc(1, sizeof *instrument);
    if (instrument == NULL) {
        return NULL;
    }
    memcpy(instrument->name, name, sizeof instrument->name);
    if (!table_insert(&feed->instruments, instrument)) {
        free(instrument);
        return NULL;
    }
    instrument->number = ++feed->last_instrument_number;
    return instrument;
}

/* Looks up once per cell, whose attributes never change. NULL: memory is short. */
static struct instrument *instrument_of(const struct exchange *exchange, uint32_t cell)
{
    struct feed *feed = exchange->feed;
    if (feed->of_cell[cell] == NULL) {
        char name[ATTRIBUTE_TEXT_SIZE];
        instrument_of_cell(exchange, cell, name);
        struct instrument *instrument = instrument_named(feed, name);
        if (instrument == NULL) {
            return NULL;
        }
        instrument->uses++;
        feed->of_cell[cell] = instrument;
    }
    return feed->of_cell[cell];
}

void feed_cell_gone(struct exchange *exchange, uint32_t cell)
{
    struct feed *feed = exchange->feed;
    if (feed != NULL && feed->of_cell[cell] != NULL) {
        instrument_leave(feed, feed->of_cell[cell]);
        feed->of_cell[cell] = NULL;
    }
}

/* ---------------------------------------------------------------- the feed */

static bool handles_grow(struct feed *feed, uint32_t capacity)
{
    struct entry *entries = realloc(feed->entries, capacity * sizeof *entries);
    feed->entries = entries != NULL ? entries : feed->entries;
    uint32_t *noted = realloc(feed->noted, capacity * sizeof *noted);
    feed->noted = noted != NULL ? noted : feed->noted;
    if (entries == NULL || noted == NULL) {
        return false;
    }
    for (uint32_t i = feed->handle_capacity; i < capacity; i++) {
        entries[i] = (struct entry){.level = NO_LEVEL};
    }
    feed->handle_capacity = capacity;
    return true;
}

void feed_destroy(struct feed **self)
{
    struct feed *feed = *self;
    if (feed != NULL) {
        for (uint32_t i = 0; i < feed->level_capacity; i++) {
            if (feed->levels[i] != NULL && feed->levels[i]->instrument != NULL) {
                instrument_leave(feed, feed->levels[i]->instrument);
            }
            free(feed->levels[i]);
        }
        for (uint32_t i = 0; feed->of_cell != NULL && i < feed->cell_capacity; i++) {
            if (feed->of_cell[i] != NULL) {
                instrument_leave(feed, feed->of_cell[i]);
            }
        }
        table_fini(&feed->instruments);
        free(feed->of_cell);
        tape_destroy(&feed->tape);
        table_fini(&feed->by_key);
        free(feed->levels);
        free(feed->free_places);
        free(feed->entries);
        free(feed->noted);
        free(feed->needs_numbers);
        free(feed);
        *self = NULL;
    }
}

bool exchange_feed_open(struct exchange *exchange, uint64_t records)
{
    assert(exchange->feed == NULL);
    struct feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL) {
        return false;
    }
    exchange->feed = feed;
    feed->records = records;
    feed->by_key =
        table_of(offsetof(struct level, key), sizeof(struct level_key), exchange->limits.table_key);
    feed->instruments = table_of(offsetof(struct instrument, name), ATTRIBUTE_TEXT_SIZE,
                                 exchange->limits.table_key);
    feed->cell_capacity = exchange->limits.cells;
    feed->of_cell = calloc(feed->cell_capacity, sizeof(struct instrument *));
    feed->tape = tape_create(exchange->limits.table_key);
    feed->needs_numbers = calloc(exchange->limits.classes, sizeof *feed->needs_numbers);
    bool good = feed->tape != NULL && feed->of_cell != NULL && feed->needs_numbers != NULL &&
                handles_grow(feed, exchange->handle_capacity);
    for (uint32_t handle = book_next(exchange->book, 0); good && handle != BOOK_NONE;
         handle = book_next(exchange->book, handle + 1)) {
        feed_note(exchange, handle);
    }
    if (good) {
        feed_settle(exchange);
        good = !exchange->is_out_of_memory;
    }
    if (!good) {
        feed_destroy(&exchange->feed);
    }
    return good;
}

/* ---------------------------------------------------------------- levels */

static bool levels_grow(struct feed *feed)
{
    const uint32_t old = feed->level_capacity;
    const uint32_t capacity = old == 0 ? 64 : 2 * old;
    struct level **levels = realloc(feed->levels, capacity * sizeof(struct level *));
    feed->levels = levels != NULL ? levels : feed->levels;
    uint32_t *places = realloc(feed->free_places, capacity * sizeof *places);
    feed->free_places = places != NULL ? places : feed->free_places;
    if (levels == NULL || places == NULL) {
        return false;
    }
    for (uint32_t i = old; i < capacity; i++) {
        levels[i] = NULL;
        places[feed->free_count++] = capacity - 1 - (i - old);
    }
    feed->level_capacity = capacity;
    return true;
}

/* Returns NULL when memory is short. */
static struct level *level_at(struct feed *feed, const struct level_key *key,
                              struct instrument *instrument)
{
    struct level *level = table_find(&feed->by_key, key);
    if (level != NULL) {
        return level;
    }
    level = calloc(1, sizeof *level);
    if (level == NULL) {
        return NULL;
    }
    level->key = *key;
    if ((feed->free_count == 0 && !levels_grow(feed)) || !table_insert(&feed->by_key, level)) {
        free(level);
        return NULL;
    }
    level->instrument = instrument;
    if (instrument != NULL) {
        instrument->uses++;
    }
    level->place = feed->free_places[--feed->free_count];
    feed->levels[level->place] = level;
    return level;
}

static void level_drop(struct feed *feed, struct level *level)
{
    table_remove(&feed->by_key, &level->key);
    feed->levels[level->place] = NULL;
    feed->free_places[feed->free_count++] = level->place;
    if (level->instrument != NULL) {
        instrument_leave(feed, level->instrument);
    }
    free(level);
}

static void touch_level(struct feed *feed, struct level *level)
{
    if (!level->is_touched) {
        level->is_touched = true;
        level->before = level->now;
        level->next_touched = feed->touched;
        feed->touched = level;
    }
}

/* Takes the next number for a change at that place. */
static uint64_t number_next(struct feed *feed, enum exchange_change_type type, uint32_t place)
{
    const uint64_t number = ++feed->number;
    struct change *change = &feed->changes[number % FEED_CHANGES];
    if (number > FEED_CHANGES && (change->type == CHANGE_ASKS || change->type == CHANGE_BIDS)) {
        struct level *level = feed->levels[change->place];
        if (level != NULL && level->number == number - FEED_CHANGES && level->now.orders == 0 &&
            !level->is_touched) {
            level_drop(feed, level); /* nobody can ask for its end any more */
        }
    }
    *change = (struct change){.type = (uint8_t)type, .place = place};
    return number;
}

static void level_settle(struct feed *feed, struct level *level)
{
    level->is_touched = false;
    if (memcmp(&level->now, &level->before, sizeof level->now) != 0) {
        level->number =
            number_next(feed, level->key.is_bid != 0 ? CHANGE_BIDS : CHANGE_ASKS, level->place);
    } else if (level->now.orders == 0 &&
               (level->number == 0 || feed->number - level->number >= FEED_CHANGES)) {
        level_drop(feed, level);
    }
}

/* ---------------------------------------------------------------- orders */

static uint32_t needs_number(struct feed *feed, uint32_t class_id)
{
    if (feed->needs_numbers[class_id] == 0) {
        feed->needs_numbers[class_id] = ++feed->last_needs_number;
    }
    return feed->needs_numbers[class_id];
}

struct sight { /* A sight is an order's level and its contribution there. */
    struct level_key key;
    struct instrument *instrument; /* ASK */
    uint32_t class_id;             /* BID */
    uint32_t slots, free;
    uint8_t conditions;
};

static uint8_t conditions_of(const struct ask *ask)
{
    return (uint8_t)((ask->to_count > 0 ? 1U << FOR_SOME : 0U) |
                     (ask->hours.count > 0 ? 1U << AT_HOURS : 0U) |
                     (ask->daily_ns > 0 ? 1U << A_DAY : 0U));
}

/* Returns false when the order is not shown, or memory is short. */
static bool see_order(struct exchange *exchange, uint32_t handle, struct sight *ret_sight)
{
    struct book_ask ask;
    struct book_bid bid;
    if (book_ask(exchange->book, handle, &ask)) {
        const struct ask *order = exchange->orders_by_handle[handle];
        struct instrument *instrument = instrument_of(exchange, ask.cell);
        exchange->is_out_of_memory = exchange->is_out_of_memory || instrument == NULL;
        if (instrument == NULL) {
            return false;
        }
        *ret_sight =
            (struct sight){.key = {.price_micro = ask.price_micro, .subject = instrument->number},
                           .instrument = instrument,
                           .slots = order->slots,
                           .free = ask.slots,
                           .conditions = conditions_of(order)};
        return true;
    }
    if (book_bid(exchange->book, handle, &bid) && bid.slots > 0 &&
        !handle_waits_for_all(exchange, handle)) {
        *ret_sight = (struct sight){.key = {.price_micro = bid.limit_micro,
                                            .is_bid = 1,
                                            .subject = needs_number(exchange->feed, bid.class_id)},
                                    .class_id = bid.class_id,
                                    .slots = bid.slots};
        return true;
    }
    return false;
}

static void leave_level(struct feed *feed, const struct entry *entry)
{
    struct level *level = feed->levels[entry->level];
    touch_level(feed, level);
    assert(level->now.orders > 0);
    level->now.orders--;
    level->now.slots -= entry->slots;
    level->now.free -= entry->free;
    for (unsigned i = 0; i < CONDITIONS; i++) {
        level->now.with[i] -= (uint32_t)entry->conditions >> i & 1U;
    }
}

static void order_settle(struct exchange *exchange, uint32_t handle)
{
    struct feed *feed = exchange->feed;
    struct entry *entry = &feed->entries[handle];
    struct sight sight;
    if (entry->level != NO_LEVEL) {
        leave_level(feed, entry);
    }
    *entry = (struct entry){.level = NO_LEVEL};
    if (!see_order(exchange, handle, &sight)) {
        return;
    }
    struct level *level = level_at(feed, &sight.key, sight.instrument);
    if (level == NULL) {
        exchange->is_out_of_memory = true;
        return;
    }
    touch_level(feed, level);
    level->class_id = sight.class_id;
    level->now.orders++;
    level->now.slots += sight.slots;
    level->now.free += sight.free;
    for (unsigned i = 0; i < CONDITIONS; i++) {
        level->now.with[i] += (uint32_t)sight.conditions >> i & 1U;
    }
    *entry = (struct entry){.level = level->place,
                            .slots = sight.slots,
                            .free = sight.free,
                            .conditions = sight.conditions};
}

void feed_note(struct exchange *exchange, uint32_t handle)
{
    struct feed *feed = exchange->feed;
    if (feed == NULL) {
        return;
    }
    if (handle >= feed->handle_capacity && !handles_grow(feed, exchange->handle_capacity)) {
        exchange->is_out_of_memory = true;
        return;
    }
    if (!feed->entries[handle].is_noted) {
        feed->entries[handle].is_noted = true;
        feed->noted[feed->noted_count++] = handle;
    }
}

void feed_class_gone(struct exchange *exchange, uint32_t class_id)
{
    if (exchange->feed != NULL) {
        exchange->feed->needs_numbers[class_id] = 0;
    }
}

void feed_settle(struct exchange *exchange)
{
    struct feed *feed = exchange->feed;
    if (feed == NULL) {
        return;
    }
    for (uint32_t i = 0; i < feed->noted_count; i++) {
        order_settle(exchange, feed->noted[i]);
    }
    feed->noted_count = 0;
    while (feed->touched != NULL) {
        struct level *level = feed->touched;
        feed->touched = level->next_touched;
        level_settle(feed, level);
    }
}

/* ---------------------------------------------------------------- trades */

void feed_record(struct exchange *exchange)
{
    if (exchange->feed != NULL) {
        exchange->feed->records++;
    }
}

void feed_trade(struct exchange *exchange, const struct ledger_record *fill)
{
    struct feed *feed = exchange->feed;
    if (feed == NULL) {
        return;
    }
    const struct tape_fill given = {.instrument = fill->name,
                                    .index = fill->log_index,
                                    .entry = feed->records,
                                    .time_ns = fill->log_time_ns,
                                    .price_micro = fill->price_micro,
                                    .slots = fill->slots};
    uint32_t trade;
    uint32_t bar;
    if (!tape_add(feed->tape, &given, feed->number + 1, feed->number + 2, &trade, &bar)) {
        exchange->is_out_of_memory = true;
        return;
    }
    (void)number_next(feed, CHANGE_TRADE, trade);
    (void)number_next(feed, CHANGE_BAR, bar);
}

void feed_bands(struct exchange *exchange)
{
    struct feed *feed = exchange->feed;
    if (feed != NULL) {
        feed->bands = number_next(feed, CHANGE_BANDS, 0);
    }
}

bool exchange_feed_recall(struct exchange *exchange, const struct exchange_trade *trade)
{
    const struct tape_fill given = {.instrument = trade->instrument,
                                    .index = trade->index,
                                    .entry = trade->entry,
                                    .time_ns = trade->time_ns,
                                    .price_micro = trade->price_micro,
                                    .slots = trade->slots};
    uint32_t place;
    uint32_t bar;
    return tape_add(exchange->feed->tape, &given, 0, 0, &place, &bar);
}
