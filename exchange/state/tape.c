#include "exchange/state/tape.h"

#include "exchange/lifecycle.h"
#include "exchange/state/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct tape {
    struct table instruments;
    struct list_link instrument_list; /* the last traded instrument comes last */
    struct tape_trade trades[TAPE_TRADES];
    uint64_t trade_count; /* trades ever */
    struct tape_bar *bars;
    struct list_link bar_list;
    uint32_t free_bars[TAPE_BARS];
    uint32_t free_bar_count;
    uint64_t forgotten, mark;
};

struct tape *tape_create(const uint64_t hash_key[2])
{
    struct tape *tape = calloc(1, sizeof *tape);
    if (tape == NULL) {
        return NULL;
    }
    tape->instruments =
        table_of(offsetof(struct tape_instrument, name), ATTRIBUTE_TEXT_SIZE, hash_key);
    list_init(&tape->instrument_list);
    list_init(&tape->bar_list);
    tape->bars = calloc(TAPE_BARS, sizeof *tape->bars);
    if (tape->bars == NULL) {
        tape_destroy(&tape);
        return NULL;
    }
    tape->free_bar_count = TAPE_BARS;
    for (uint32_t i = 0; i < TAPE_BARS; i++) {
        tape->free_bars[i] = TAPE_BARS - 1 - i;
    }
    return tape;
}

void tape_destroy(struct tape **self)
{
    struct tape *tape = *self;
    if (tape != NULL) {
        while (!list_empty(&tape->instrument_list)) {
            struct tape_instrument *instrument =
                LIST_ELEMENT(tape->instrument_list.next, struct tape_instrument, all);
            list_remove(&instrument->all);
            free(instrument);
        }
        table_fini(&tape->instruments);
        free(tape->bars);
        free(tape);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- instruments */

static void forget(struct tape *tape, uint64_t number)
{
    tape->forgotten = number > tape->forgotten ? number : tape->forgotten;
}

static void drop_if_unused(struct tape *tape, struct tape_instrument *instrument)
{
    if (instrument->bar_count == 0 && instrument->trade_count == 0) {
        table_remove(&tape->instruments, instrument->name);
        list_remove(&instrument->all);
        free(instrument);
    }
}

static struct tape_instrument *instrument_of(struct tape *tape, const char *name)
{
    struct tape_instrument *instrument = table_find(&tape->instruments, name);
    if (instrument == NULL) {
        instrument = calloc(1, sizeof *instrument);
        if (instrument == NULL) {
            return NULL;
        }
        memcpy(instrument->name, name, sizeof instrument->name);
        list_init(&instrument->bars);
        list_init(&instrument->all);
        if (!table_insert(&tape->instruments, instrument)) {
            free(instrument);
            return NULL;
        }
    }
    list_remove(&instrument->all);
    list_append(&tape->instrument_list, &instrument->all);
    return instrument;
}

/* ---------------------------------------------------------------- bars */

static struct tape_bar *oldest_of(const struct tape_instrument *instrument)
{
    return LIST_ELEMENT(instrument->bars.next, struct tape_bar, of_instrument);
}

static void drop_bar(struct tape *tape, struct tape_bar *bar)
{
    struct tape_instrument *instrument = bar->instrument;
    assert(instrument != NULL); /* the place holds a bar */
    forget(tape, bar->number);
    list_remove(&bar->of_all);
    list_remove(&bar->of_instrument);
    instrument->bar_count--;
    bar->instrument = NULL;
    tape->free_bars[tape->free_bar_count++] = (uint32_t)(bar - tape->bars);
    drop_if_unused(tape, instrument);
}

/* Makes room for one more bar of `instrument`, which stays in use. */
static void make_room(struct tape *tape, const struct tape_instrument *instrument, int64_t now_ns)
{
    if (instrument->bar_count == TAPE_BARS_EACH) {
        drop_bar(tape, oldest_of(instrument));
    }
    while (!list_empty(&tape->bar_list)) {
        struct tape_bar *oldest = LIST_ELEMENT(tape->bar_list.next, struct tape_bar, of_all);
        if (tape->free_bar_count > 0 && oldest->start_ns >= now_ns - TAPE_BARS_AGE_NS) {
            return;
        }
        drop_bar(tape, oldest);
    }
}

static struct tape_bar *bar_of(struct tape *tape, struct tape_instrument *instrument,
                               const struct tape_fill *fill)
{
    const int64_t start_ns = fill->time_ns - fill->time_ns % TAPE_BAR_NS;
    if (instrument->bar_count > 0) {
        struct tape_bar *last =
            LIST_ELEMENT(instrument->bars.previous, struct tape_bar, of_instrument);
        if (last->start_ns == start_ns) {
            return last;
        }
    }
    make_room(tape, instrument, fill->time_ns);
    struct tape_bar *bar = &tape->bars[tape->free_bars[--tape->free_bar_count]];
    *bar = (struct tape_bar){.instrument = instrument,
                             .start_ns = start_ns,
                             .open_micro = fill->price_micro,
                             .high_micro = fill->price_micro,
                             .low_micro = fill->price_micro};
    list_init(&bar->of_all);
    list_append(&instrument->bars, &bar->of_instrument);
    instrument->bar_count++;
    return bar;
}

static uint32_t add_to_bar(struct tape *tape, struct tape_bar *bar, const struct tape_fill *fill,
                           uint64_t number)
{
    const int64_t price = fill->price_micro;
    bar->number = number;
    bar->high_micro = price > bar->high_micro ? price : bar->high_micro;
    bar->low_micro = price < bar->low_micro ? price : bar->low_micro;
    bar->close_micro = price;
    bar->slots += fill->slots;
    bar->trades++;
    list_remove(&bar->of_all);
    list_append(&tape->bar_list, &bar->of_all);
    return (uint32_t)(bar - tape->bars);
}

/* ---------------------------------------------------------------- adding */

bool tape_add(struct tape *tape, const struct tape_fill *fill, uint64_t trade_number,
              uint64_t bar_number, uint32_t *ret_trade, uint32_t *ret_bar)
{
    assert(fill->time_ns >= 0);
    struct tape_instrument *instrument = instrument_of(tape, fill->instrument);
    if (instrument == NULL) {
        return false;
    }
    instrument->trade_count++; /* counted first, so the instrument stays */
    const uint32_t place = (uint32_t)(tape->trade_count++ % TAPE_TRADES);
    struct tape_trade *trade = &tape->trades[place];
    if (trade->instrument != NULL) {
        forget(tape, trade->number);
        trade->instrument->trade_count--;
        drop_if_unused(tape, trade->instrument);
    }
    *trade = (struct tape_trade){.instrument = instrument,
                                 .number = trade_number,
                                 .index = fill->index,
                                 .entry = fill->entry,
                                 .time_ns = fill->time_ns,
                                 .price_micro = fill->price_micro,
                                 .slots = fill->slots};
    *ret_trade = place;
    *ret_bar = add_to_bar(tape, bar_of(tape, instrument, fill), fill, bar_number);
    return true;
}

/* ---------------------------------------------------------------- reading */

const struct tape_trade *tape_trade(const struct tape *tape, uint32_t place)
{
    assert(place < TAPE_TRADES);
    return &tape->trades[place];
}

const struct tape_bar *tape_bar(const struct tape *tape, uint32_t place)
{
    assert(place < TAPE_BARS);
    return &tape->bars[place];
}

uint64_t tape_forgotten(const struct tape *tape)
{
    return tape->forgotten;
}

uint64_t tape_bars(const struct tape *tape, const char name[ATTRIBUTE_TEXT_SIZE], int64_t since_ns,
                   tape_visit *visit, void *context)
{
    uint64_t looked = 0;
    const struct tape_instrument *instrument = table_find(&tape->instruments, name);
    if (instrument == NULL) {
        return looked;
    }
    for (const struct list_link *at = instrument->bars.next; at != &instrument->bars;
         at = at->next) {
        const struct tape_bar *bar = LIST_ELEMENT(at, struct tape_bar, of_instrument);
        looked++;
        if (bar->start_ns >= since_ns && !visit(context, bar)) {
            break;
        }
    }
    return looked;
}

static bool add_up(void *context, const struct tape_bar *bar)
{
    struct tape_bar *sum = context;
    if (sum->trades == 0) {
        *sum = *bar;
        return true;
    }
    sum->high_micro = bar->high_micro > sum->high_micro ? bar->high_micro : sum->high_micro;
    sum->low_micro = bar->low_micro < sum->low_micro ? bar->low_micro : sum->low_micro;
    sum->close_micro = bar->close_micro;
    sum->slots += bar->slots;
    sum->trades += bar->trades;
    return true;
}

uint64_t tape_sums(const struct tape *tape, int64_t since_ns, tape_visit *visit, void *context)
{
    uint64_t looked = 0;
    for (const struct list_link *at = tape->instrument_list.previous; at != &tape->instrument_list;
         at = at->previous) {
        const struct tape_instrument *instrument = LIST_ELEMENT(at, struct tape_instrument, all);
        struct tape_bar sum = {0};
        looked += 1 + tape_bars(tape, instrument->name, since_ns, add_up, &sum);
        if (sum.trades > 0 && !visit(context, &sum)) {
            break;
        }
    }
    return looked;
}

/* ---------------------------------------------------------------- the usual price */

void tape_choose_none(struct tape *tape)
{
    tape->mark++;
}

void tape_choose(struct tape *tape, const char name[ATTRIBUTE_TEXT_SIZE])
{
    struct tape_instrument *instrument = table_find(&tape->instruments, name);
    if (instrument != NULL) {
        instrument->mark = tape->mark;
    }
}

struct lot {
    int64_t price_micro;
    uint32_t slots;
};

static int by_price(const void *left, const void *right)
{
    const struct lot *a = left;
    const struct lot *b = right;
    return (a->price_micro > b->price_micro) - (a->price_micro < b->price_micro);
}

/* Returns the price at or below which this many quarters of the slots were let. The lots are sorted
 * by price. */
static int64_t price_of_share(const struct lot *lots, uint32_t count, uint64_t slots,
                              unsigned quarters)
{
    uint64_t below = 0;
    uint32_t i = 0;
    for (; i < count; i++) {
        below += lots[i].slots;
        if (4 * below >= quarters * slots) {
            break;
        }
    }
    return i < count ? lots[i].price_micro : 0;
}

struct tape_usual tape_usual(const struct tape *tape, int64_t now_ns)
{
    struct lot lots[TAPE_USUAL_TRADES];
    struct tape_usual usual = {0};
    uint64_t slots = 0;
    const uint64_t kept = tape->trade_count < TAPE_TRADES ? tape->trade_count : TAPE_TRADES;
    for (uint64_t i = 1; i <= kept && usual.trades < TAPE_USUAL_TRADES; i++) {
        const struct tape_trade *trade = &tape->trades[(tape->trade_count - i) % TAPE_TRADES];
        usual.looked++;
        if (trade->time_ns < now_ns - TAPE_USUAL_AGE_NS) {
            break;
        }
        if (trade->instrument->mark == tape->mark) {
            lots[usual.trades++] = (struct lot){trade->price_micro, trade->slots};
            usual.since_ns = trade->time_ns;
            slots += trade->slots;
        }
    }
    qsort(lots, usual.trades, sizeof *lots, by_price);
    usual.middle_micro = price_of_share(lots, usual.trades, slots, 2);
    usual.price_micro = price_of_share(lots, usual.trades, slots, 3);
    return usual;
}
