/* The tape keeps the last trades, a bar for every minute with trades, and the usual price. It is no
 * state: it follows from the fills and is in no hash or snapshot. At its caps the oldest entry
 * goes.
 *
 * A trade and a bar have a place, where they lie, and a number from their reader. The number tells
 * whether a place still holds the same entry. */
#ifndef BOURSE_EXCHANGE_STATE_TAPE_H
#define BOURSE_EXCHANGE_STATE_TAPE_H

#include "base/list.h"
#include "base/requirement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TAPE_TRADES = 1 << 14,    /* last trades, over all instruments */
    TAPE_BARS = 1 << 16,      /* over all instruments */
    TAPE_BARS_EACH = 24 * 60, /* per instrument */
    TAPE_USUAL_TRADES = 1024, /* last trades that make a usual price */
};
#define TAPE_BAR_NS (60 * INT64_C(1000000000))
#define TAPE_BARS_AGE_NS (7 * 24 * 60 * TAPE_BAR_NS)
#define TAPE_USUAL_AGE_NS (24 * 60 * TAPE_BAR_NS)

struct tape;

struct tape_instrument {
    char name[ATTRIBUTE_TEXT_SIZE]; /* padded with zeros */
    struct list_link bars;          /* oldest first */
    struct list_link all;
    uint32_t bar_count;
    uint32_t trade_count; /* among the last trades */
    uint64_t mark;
};

struct tape_trade {
    struct tape_instrument *instrument; /* NULL: the place is empty */
    uint64_t number;
    uint64_t index; /* index of the command */
    uint64_t entry; /* number of the ledger's record */
    int64_t time_ns;
    int64_t price_micro;
    uint32_t slots;
};

struct tape_bar {
    struct list_link of_all, of_instrument; /* sorted by age */
    struct tape_instrument *instrument;     /* NULL: the place is empty */
    uint64_t number;
    int64_t start_ns; /* a whole minute of log time */
    int64_t open_micro, high_micro, low_micro, close_micro;
    uint64_t slots;
    uint32_t trades;
};

struct tape_fill {
    const char *instrument; /* ATTRIBUTE_TEXT_SIZE bytes */
    uint64_t index, entry;
    int64_t time_ns; /* never less than the fill before */
    int64_t price_micro;
    uint32_t slots;
};

struct tape *tape_create(const uint64_t hash_key[2]); /* NULL when memory is short */
void tape_destroy(struct tape **self);

/* Adds a fill; its trade and its bar get the numbers given. Returns false when memory is short;
 * then nothing is kept. */
bool tape_add(struct tape *tape, const struct tape_fill *fill, uint64_t trade_number,
              uint64_t bar_number, uint32_t *ret_trade, uint32_t *ret_bar);

const struct tape_trade *tape_trade(const struct tape *tape, uint32_t place);
const struct tape_bar *tape_bar(const struct tape *tape, uint32_t place);
/* Returns the highest number of a trade or bar that was dropped. */
uint64_t tape_forgotten(const struct tape *tape);

typedef bool tape_visit(void *context, const struct tape_bar *bar); /* false: stop */
/* Visits the instrument's bars that began at `since_ns` or later, oldest first; an unknown name has
 * none. Returns the number of bars looked at, as does tape_sums. */
uint64_t tape_bars(const struct tape *tape, const char name[ATTRIBUTE_TEXT_SIZE], int64_t since_ns,
                   tape_visit *visit, void *context);
/* Visits the sum of each instrument's bars from `since_ns` on, with start and number of its first
 * bar. The last traded instrument comes first. */
uint64_t tape_sums(const struct tape *tape, int64_t since_ns, tape_visit *visit, void *context);

struct tape_usual {
    int64_t price_micro;  /* three quarters of the slots had this price or less */
    int64_t middle_micro; /* half of the slots had this price or less */
    uint32_t trades;      /* trades counted; 0: there is no usual price */
    int64_t since_ns;     /* time of the oldest of them */
    uint32_t looked;      /* trades that were looked at */
};
/* The usual price covers the last trades not older than TAPE_USUAL_AGE_NS at `now_ns`. It covers
 * the instruments chosen since tape_choose_none. */
void tape_choose_none(struct tape *tape);
void tape_choose(struct tape *tape, const char name[ATTRIBUTE_TEXT_SIZE]);
struct tape_usual tape_usual(const struct tape *tape, int64_t now_ns);

#endif
