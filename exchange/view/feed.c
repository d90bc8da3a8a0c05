#include "exchange/view/feed.h"

#include "exchange/state.h"
#include "exchange/view/tape.h"

#include <stdlib.h>
#include <string.h>

/* The key has no padding, since it is compared and hashed as bytes. */
struct level_key {
    int64_t price_micro;
    uint32_t is_bid;
    uint32_t of; /* number of the instrument, or of the needs */
};
static_assert(sizeof(struct level_key) == 16, "no padding");

struct instrument { /* An instrument lives as long as a cell or level uses it. */
    char name[ATTRIBUTE_TEXT_SIZE];
    uint32_t number; /* never used again */
    uint32_t uses;
};

/* Conditions of an ask, as bits of one order and as counts of a level. */
enum { FOR_SOME, AT_HOURS, A_DAY, CONDITIONS };

struct sums {
    uint32_t orders;
    uint32_t with[CONDITIONS]; /* orders with each condition */
    uint64_t slots, free;
};
static_assert(sizeof(struct sums) == 32, "no padding: compared as bytes");

struct level {
    struct level_key key;
    struct instrument *instrument; /* ASKS */
    uint32_t place;                /* index in feed->levels */
    uint32_t class_id;             /* class of the bids' needs, while there is a bid */
    uint64_t number;               /* its last change; 0: none was told */
    struct sums now;    /* A level without orders is gone, but kept while its change can be told. */
    struct sums before; /* start of this step, if touched */
    bool is_touched;
    struct level *next_touched;
};

struct entry { /* An entry is an order's contribution to its level. */
    uint32_t level;
    uint32_t slots, free;
    uint8_t conditions;
    bool is_noted; /* it may have changed in this step */
};
#define NO_LEVEL UINT32_MAX

/* The subject of number n lies at n % FEED_CHANGES, if it still has that number. */
struct change {
    uint8_t type;
    uint32_t place;
};

struct feed {
    struct tape *tape;
    uint64_t number;
    uint64_t bands;   /* number of their last change */
    uint64_t records; /* records of the ledger so far */
    struct change changes[FEED_CHANGES];
    struct table by_key;
    struct level **levels; /* indexed by place; NULL: free */
    uint32_t *free_places;
    uint32_t level_capacity, free_count;
    struct level *touched;
    struct entry *entries; /* indexed by handle */
    uint32_t *noted;       /* handles */
    uint32_t noted_count, handle_capacity;
    uint32_t *needs_numbers; /* indexed by class; 0: none yet */
    uint32_t last_needs_number;
    struct table instruments;    /* keyed by name */
    struct instrument **of_cell; /* indexed by cell; NULL: not yet */
    uint32_t cell_capacity;
    uint32_t last_instrument_number;
};

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
        cell_instrument(exchange, cell, name);
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
            (struct sight){.key = {.price_micro = ask.price_micro, .of = instrument->number},
                           .instrument = instrument,
                           .slots = order->slots,
                           .free = ask.slots,
                           .conditions = conditions_of(order)};
        return true;
    }
    if (book_bid(exchange->book, handle, &bid) && bid.slots > 0 &&
        !bid_waits_for_all(exchange, handle)) {
        *ret_sight = (struct sight){.key = {.price_micro = bid.limit_micro,
                                            .is_bid = 1,
                                            .of = needs_number(exchange->feed, bid.class_id)},
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

/* ---------------------------------------------------------------- reads */

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
        told.level.needs_number = level->key.of;
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
    for (uint64_t number = after + 1; number <= last; number++) {
        struct exchange_change told;
        if (number - after > EXCHANGE_LISTING_STEPS ||
            (tell_change(exchange, number, &told) && !visit(context, &told))) {
            *ret_through = number - 1;
            steps_add(exchange, number - after);
            return LISTING_MORE;
        }
    }
    *ret_through = last;
    steps_add(exchange, last - after);
    return LISTING_END;
}

enum exchange_listing exchange_feed_book(const struct exchange *exchange, uint32_t from,
                                         exchange_change_visit *visit, void *context,
                                         uint32_t *ret_next)
{
    const struct feed *feed = exchange->feed;
    for (uint32_t place = from; place < feed->level_capacity; place++) {
        const struct level *level = feed->levels[place];
        bool is_over = place - from == EXCHANGE_LISTING_STEPS;
        if (!is_over && level != NULL && level->now.orders > 0) {
            const struct exchange_change told = tell_level(exchange, level);
            is_over = !visit(context, &told);
        }
        if (is_over) {
            *ret_next = place;
            steps_add(exchange, place - from + 1);
            return LISTING_MORE;
        }
    }
    steps_add(exchange, feed->level_capacity > from ? feed->level_capacity - from : 0);
    return LISTING_END;
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
            cell_instrument(exchange, cell, name);
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
