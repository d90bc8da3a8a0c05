/* exchange/view/tape.h - what was paid lately: the last trades, a bar for every minute with trades,
 * and what is usually paid.
 *
 * Not state: it follows from the fills, stands in no hash and no snapshot, and holds no more than
 * its caps: what is oldest goes. A trade and a bar have a place (where they lie) and a number,
 * which their reader gives them; the number tells whether a place still holds what it did. Pure. */
#ifndef BOURSE_EXCHANGE_VIEW_TAPE_H
#define BOURSE_EXCHANGE_VIEW_TAPE_H

#include "base/list.h"
#include "base/requirement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TAPE_TRADES = 1 << 14,    /* the last ones, of all instruments */
    TAPE_BARS = 1 << 16,      /* of all instruments */
    TAPE_BARS_EACH = 24 * 60, /* of one */
    TAPE_USUAL_TRADES = 1024, /* the last ones from which a usual price is found */
};
#define TAPE_BAR_NS (60 * INT64_C(1000000000))
#define TAPE_BARS_AGE_NS (7 * 24 * 60 * TAPE_BAR_NS)
#define TAPE_USUAL_AGE_NS (24 * 60 * TAPE_BAR_NS)

struct tape;

struct tape_instrument {
    char name[ATTRIBUTE_TEXT_SIZE]; /* zeros behind the text */
    struct list_link bars;          /* oldest first */
    struct list_link all;
    uint32_t bar_count;
    uint32_t trade_count; /* of the last ones */
    uint64_t mark;
};

struct tape_trade {
    struct tape_instrument *instrument; /* NULL: nothing lies here yet */
    uint64_t number;
    uint64_t index; /* of the command */
    uint64_t entry; /* of the ledger's record */
    int64_t time_ns;
    int64_t price_micro;
    uint32_t slots;
};

struct tape_bar {
    struct list_link of_all, of_instrument; /* by age */
    struct tape_instrument *instrument;     /* NULL: nothing lies here */
    uint64_t number;
    int64_t start_ns; /* a whole minute of log time */
    int64_t open_micro, high_micro, low_micro, close_micro;
    uint64_t slots;
    uint32_t trades;
};

struct tape_fill {
    const char *instrument; /* ATTRIBUTE_TEXT_SIZE bytes */
    uint64_t index, entry;
    int64_t time_ns; /* never less than that of the one before */
    int64_t price_micro;
    uint32_t slots;
};

struct tape *tape_create(const uint64_t hash_key[2]); /* NULL when out of memory */
void tape_destroy(struct tape **self);

/* Writes a fill down, where its trade and its bar get these numbers. False when out of memory: then
 * nothing is kept. */
bool tape_add(struct tape *tape, const struct tape_fill *fill, uint64_t trade_number,
              uint64_t bar_number, uint32_t *ret_trade, uint32_t *ret_bar);

const struct tape_trade *tape_trade(const struct tape *tape, uint32_t place);
const struct tape_bar *tape_bar(const struct tape *tape, uint32_t place);
/* The highest number of a trade or bar that had to go. */
uint64_t tape_forgotten(const struct tape *tape);

typedef bool tape_visit(void *context, const struct tape_bar *bar); /* false: stop */
/* The bars of that instrument that began at `since_ns` or later, oldest first; nothing where none
 * has that name. Returns how many bars were looked at, as does the next. */
uint64_t tape_bars(const struct tape *tape, const char name[ATTRIBUTE_TEXT_SIZE], int64_t since_ns,
                   tape_visit *visit, void *context);
/* All bars of each instrument from `since_ns` on as one, whose start and number are those of the
 * first of them; what was traded last comes first. */
uint64_t tape_sums(const struct tape *tape, int64_t since_ns, tape_visit *visit, void *context);

struct tape_usual {
    int64_t price_micro;  /* three quarters of the slots were let at this or less */
    int64_t middle_micro; /* and half of them at this */
    uint32_t trades;      /* from so many; 0: there is no usual price */
    int64_t since_ns;     /* the oldest of them */
    uint32_t looked;      /* trades that were looked at */
};
/* Of the last trades that are no older than TAPE_USUAL_AGE_NS at `now_ns`, of the instruments named
 * between: */
void tape_choose_none(struct tape *tape);
void tape_choose(struct tape *tape, const char name[ATTRIBUTE_TEXT_SIZE]);
struct tape_usual tape_usual(const struct tape *tape, int64_t now_ns);

#endif
