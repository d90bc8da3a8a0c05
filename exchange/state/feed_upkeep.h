/* The upkeep of the feed notes what a step changes, and settles the levels at the end of the step.
 *
 * The calls do nothing unless a feed is open. exchange/view/feed.h has the reads of the feed. */
#ifndef BOURSE_EXCHANGE_STATE_FEED_UPKEEP_H
#define BOURSE_EXCHANGE_STATE_FEED_UPKEEP_H

#include "exchange/state/records.h"
#include "exchange/view/feed.h"

/* The key has no padding, since it is compared and hashed as bytes. */
struct level_key {
    int64_t price_micro;
    uint32_t is_bid;
    uint32_t subject; /* number of the instrument, or of the needs */
};

static_assert(sizeof(struct level_key) == 16, "no padding");

/* An instrument lives as long as a cell or level uses it. */
struct instrument {
    char name[ATTRIBUTE_TEXT_SIZE];
    uint32_t number; /* a number is never used for another instrument */
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
    uint64_t number;               /* number of the level's last change; 0: never told */
    /* A level without orders is gone, but kept while its change can be told. */
    struct sums now;
    struct sums before; /* the sums at the start of this step, if touched */
    bool is_touched;
    struct level *next_touched;
};

/* An entry is what an order contributes to its level. */
struct entry {
    uint32_t level;
    uint32_t slots, free;
    uint8_t conditions;
    bool is_noted; /* the order may have changed in this step */
};

/* A change names its subject. Change number n lies at n % FEED_CHANGES, until change n +
 * FEED_CHANGES takes the place. A subject that has changed again has a newer number. */
struct change {
    uint8_t type;
    uint32_t place;
};

struct feed {
    struct tape *tape;
    uint64_t number;
    uint64_t bands;   /* number of the last change of the bands */
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

void feed_cell_gone(struct exchange *exchange, uint32_t cell);
void feed_destroy(struct feed **self);
/* Notes that the order under the handle rests, is gone, or has other slots. */
void feed_note(struct exchange *exchange, uint32_t handle);
void feed_class_gone(struct exchange *exchange, uint32_t class_id);
void feed_settle(struct exchange *exchange); /* runs at the end of a step */
void feed_record(struct exchange *exchange); /* the ledger has one more record */
void feed_trade(struct exchange *exchange, const struct ledger_record *fill);
void feed_bands(struct exchange *exchange); /* the bands changed */

#endif
