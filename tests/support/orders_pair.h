/* tests/support/orders_pair.h is an exchange beside the slow market (tests/support/slow_market.h),
 * and says what must be the same in both after every command. One program includes it once. */
#ifndef BOURSE_TESTS_SUPPORT_ORDERS_PAIR_H
#define BOURSE_TESTS_SUPPORT_ORDERS_PAIR_H

#include "base/checked.h"
#include "base/random.h"
#include "exchange/exchange.h"
#include "exchange/view/listings.h"
#include "tests/support/slow_market.h"

#include <assert.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMMANDS = 36,
    PEOPLE = 4,  /* each trades both ways */
    DEVICES = 3, /* of each */
    FIRST = 3,   /* account */
};
static_assert(PEOPLE * DEVICES == SLOW_DEVICES && 2 * COMMANDS < SLOW_JOBS, "there is room");
static const int64_t start_ns = INT64_C(1700000000) * NS_PER_S; /* 22:13:20 */
static const int64_t band_micro = 40 * 1000;

struct pair {
    struct random random;
    struct slow_market slow;
    struct exchange *exchange;
    struct exchange_effects effects;
    int64_t now_ns;
    uint64_t index;
    uint32_t next_id;
    int64_t good_till_ns[SLOW_DEVICES];     /* of the ask that stands; 0: until it is withdrawn */
    uint64_t filled, refused, whole, given; /* so that the scripts are known to meet all of it */
    int64_t job_good_till_ns[SLOW_JOBS];    /* 0: it waits for ever */
    uint64_t reduced, replaced, expired, rebid, valued, ended;
    uint64_t beyond, too_much; /* orders that the bands of the moment kept out */
    uint64_t at_market, opened, filled_opening, reserved, firm_only, of_day, longer;
    bool has_gifts, has_values;
    uint64_t seed;
};

/* No job is filled whole where asks give slots away or bids are by value: the slow market would
 * have to know whose turn it is. */
static inline bool has_wholes(const struct pair *pair)
{
    return !pair->has_gifts && !pair->has_values;
}

static inline uint32_t draw(struct pair *pair, uint32_t below)
{
    return (uint32_t)random_below(&pair->random, below);
}

static inline struct exchange_command command_of(struct pair *pair, enum exchange_command_type type,
                                                 uint32_t account)
{
    struct exchange_command made = {.type = type,
                                    .index = ++pair->index,
                                    .log_time_ns = pair->now_ns,
                                    .account = account,
                                    .created_ms = pair->now_ns / NS_PER_MS};
    pair->next_id++;
    memcpy(made.id.bytes, &pair->next_id, sizeof pair->next_id);
    made.id.bytes[15] = 1;
    memcpy(made.body.bytes, &pair->next_id, sizeof pair->next_id);
    return made;
}

static inline void apply(struct pair *pair, const struct exchange_command *command)
{
    exchange_effects_clear(&pair->effects);
    pair->slow.fill_count = 0;
    slow_must(exchange_step(pair->exchange, command, &pair->effects) == EXCHANGE_OK, "a step");
}

static inline struct id128 device_id(uint32_t device)
{
    struct id128 id = {{0}};
    id.bytes[0] = (uint8_t)(device + 1);
    return id;
}

static inline struct attribute kind_of(uint32_t kind)
{
    struct attribute made = {.name = "kind", .number = kind};
    return made;
}

/* Each kind is another accelerator: of the last it is not known how fast it is. */
static inline int64_t operations_of(uint32_t kind)
{
    return kind + 1 < SLOW_KINDS ? (int64_t)(kind + 1) * (RATE_UNIT / 2) : 0;
}

/* Sorted by name. How many. */
static inline size_t attributes_of(uint32_t kind, struct attribute made[2])
{
    size_t count = 0;
    if (operations_of(kind) > 0) {
        made[count++] = (struct attribute){.name = "bf16", .number = operations_of(kind)};
    }
    made[count++] = kind_of(kind);
    return count;
}

static inline void open_pair(struct pair *pair, uint64_t seed)
{
    struct exchange_limits limits = exchange_limits_default();
    struct exchange_genesis_account accounts[PEOPLE];
    memset(pair, 0, sizeof *pair);
    memset(accounts, 0, sizeof accounts);
    limits.asks = limits.cells = limits.classes = 64;
    limits.jobs = SLOW_JOBS;
    pair->random = random_seeded(seed);
    pair->seed = seed;
    pair->exchange = exchange_create(&limits);
    pair->now_ns = start_ns;
    pair->slow.sequence = 1;
    pair->slow.band = band_micro;
    for (unsigned i = 0; i < PEOPLE; i++) {
        accounts[i].key.bytes[0] = (uint8_t)(i + 1);
        accounts[i].roles = i == 0 ? 3 | 16 : 3; /* consumer and provider; the first sets bands */
        accounts[i].credits_micro = INT64_C(1) << 40;
        (void)snprintf(accounts[i].name, sizeof accounts[i].name, "trader");
    }
    struct exchange_command genesis = command_of(pair, EXCHANGE_GENESIS, EXCHANGE_NO_ACCOUNT);
    genesis.genesis = (struct exchange_genesis){.cluster = {{7}},
                                                .price_band_micro = band_micro,
                                                .accounts = accounts,
                                                .account_count = PEOPLE};
    apply(pair, &genesis);
    for (uint32_t owner = 0; owner < PEOPLE; owner++) {
        struct attribute attributes[DEVICES][2];
        struct exchange_device devices[DEVICES];
        memset(devices, 0, sizeof devices);
        for (uint32_t i = 0; i < DEVICES; i++) {
            const uint32_t device = owner * DEVICES + i;
            struct slow_ask *ask = &pair->slow.asks[device];
            devices[i].device = device_id(device);
            devices[i].slots = 6;
            devices[i].attributes = attributes[i];
            devices[i].attribute_count = attributes_of(device % SLOW_KINDS, attributes[i]);
            (void)snprintf(devices[i].label, sizeof devices[i].label, "device");
            *ask = (struct slow_ask){.owner = FIRST + owner,
                                     .kind = device % SLOW_KINDS,
                                     .operations = operations_of(device % SLOW_KINDS),
                                     .is_open = true};
        }
        struct exchange_command made = command_of(pair, EXCHANGE_ADVERTISE, FIRST + owner);
        made.advertise = (struct exchange_advertise){.devices = devices, .count = DEVICES};
        apply(pair, &made);
    }
}

static inline void close_pair(struct pair *pair)
{
    exchange_destroy(&pair->exchange);
    exchange_effects_fini(&pair->effects);
}

/* ---------------------------------------------------------------- what must hold */

static inline uint32_t code_of(const struct pair *pair)
{
    for (size_t i = 0; i < pair->effects.count; i++) {
        if (pair->effects.items[i].type == EFFECT_REJECT) {
            return pair->effects.items[i].reject.code;
        }
    }
    return 0;
}

static inline const char *take_fill(struct slow_market *slow, struct slow_job *job,
                                    const struct ledger_record *record)
{
    struct slow_part *part = &job->parts[id128_equal(&record->bid, &job->id) ? 0 : 1];
    struct slow_ask *ask = &slow->asks[record->device.bytes[0] - 1];
    return slow_take(slow, job, part, ask, record->slots, record->price_micro);
}

/* A fill of a job that fills all at once is the next of those that the slow market has made. */
static inline const char *meet_fill(const struct slow_market *slow, uint32_t number,
                                    const struct slow_job *job, const struct ledger_record *record)
{
    const struct slow_fill *fill = &slow->fills[number];
    if (fill->job != (uint32_t)(job - slow->jobs) || fill->device != record->device.bytes[0] - 1u) {
        return "another fill is next of those that fill the job";
    }
    return fill->slots != record->slots         ? "of other slots than fill the job"
           : fill->price != record->price_micro ? "at another price than fills the job"
                                                : NULL;
}

/* Looks at each fill of the last command, in its turn. */
static inline void take_fills(struct pair *pair, const char *what)
{
    struct slow_market *slow = &pair->slow;
    uint32_t met = 0;
    for (size_t i = 0; i < pair->effects.count; i++) {
        const struct ledger_record *record = &pair->effects.items[i].ledger;
        if (pair->effects.items[i].type != EFFECT_LEDGER || record->kind != LEDGER_FILL) {
            continue;
        }
        struct slow_job *job = slow->jobs;
        while (!id128_equal(&job->id, &record->job)) {
            job++;
            slow_must(job < slow->jobs + slow->job_count, "a fill of a job that there is not");
        }
        if (met == slow->fill_count &&
            (job->type == EXCHANGE_ALL_OR_NONE || job->type == EXCHANGE_FOK)) {
            slow_must(slow_buy_whole(slow, job), "a job is filled that cannot be filled whole");
            pair->whole++;
        }
        const char *wrong = met < slow->fill_count ? meet_fill(slow, met, job, record)
                                                   : take_fill(slow, job, record);
        ck_assert_msg(wrong == NULL, "seed %llu, %s: a fill of job %u from device %u: %s",
                      (unsigned long long)pair->seed, what, (unsigned)(job - slow->jobs),
                      record->device.bytes[0] - 1u, wrong);
        met++;
        pair->given += record->price_micro == 0;
        pair->valued += job->parts[0].is_valued;
        pair->filled++;
    }
    slow_must(met == slow->fill_count, "a job is filled in part that is to be filled whole");
}

static inline void expect_no_fill(const struct pair *pair, const char *what)
{
    for (size_t i = 0; i < pair->effects.count; i++) {
        ck_assert_msg(pair->effects.items[i].type != EFFECT_LEDGER ||
                          pair->effects.items[i].ledger.kind != LEDGER_FILL,
                      "seed %llu, %s: an order is filled", (unsigned long long)pair->seed, what);
    }
}

/* Resting orders cannot trade with each other, and an order that waits for all of its size cannot
 * have all of it. */
static inline void check_rest(struct pair *pair)
{
    struct slow_market *slow = &pair->slow;
    for (uint32_t i = 0; i < slow->job_count; i++) {
        struct slow_job *job = &slow->jobs[i];
        for (uint32_t k = 0; job->is_open && k < job->part_count; k++) {
            struct slow_part *part = &job->parts[k];
            slow_must(!part->stands || part->wanted == 0 || job->type == EXCHANGE_ALL_OR_NONE ||
                          slow_best_ask(slow, job, part) == NULL,
                      "what rests could trade");
        }
        slow_must(!job->is_open || !job->parts[0].stands || job->type != EXCHANGE_ALL_OR_NONE ||
                      !slow_buy_whole(slow, job),
                  "what waits for all of it could have all");
    }
}

static inline const struct slow_ask *ask_of(const struct pair *pair, const struct id128 *order)
{
    for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
        if (pair->slow.asks[i].stands && id128_equal(&pair->slow.asks[i].order, order)) {
            return &pair->slow.asks[i];
        }
    }
    return NULL;
}

static inline const struct slow_part *bid_of(const struct pair *pair, const struct id128 *job,
                                             uint32_t number)
{
    for (uint32_t i = 0; i < pair->slow.job_count; i++) {
        const struct slow_job *at = &pair->slow.jobs[i];
        if (at->is_open && id128_equal(&at->id, job) && number < at->part_count &&
            at->parts[number].stands) {
            return &at->parts[number];
        }
    }
    return NULL;
}

struct seen {
    const struct pair *pair;
    uint32_t bids, asks;
};

/* Free slots of the one, wanted slots of the other. */
static inline bool see_order(void *context, const struct exchange_order_row *row)
{
    struct seen *seen = context;
    seen->bids += row->is_bid;
    seen->asks += !row->is_bid;
    slow_must(row->type != EXCHANGE_IOC && row->type != EXCHANGE_FOK, "it does not rest");
    if (row->is_bid) {
        const struct slow_part *part = bid_of(seen->pair, &row->job, row->part);
        slow_must(part != NULL && row->slots == part->wanted, "a bid wants other slots");
        slow_must(row->price_micro == part->limit, "a bid has another limit");
    } else {
        const struct slow_ask *ask = ask_of(seen->pair, &row->order);
        slow_must(ask != NULL && row->slots == ask->slots && row->free == slow_free(ask),
                  "other slots of an ask are free");
        slow_must(row->price_micro == ask->price, "an ask has another price");
    }
    return true;
}

/* Jobs that have ended, their escrow, and orders that stand are the same. */
static inline void check_state(struct pair *pair)
{
    struct slow_market *slow = &pair->slow;
    for (uint32_t i = 0; i < slow->job_count; i++) {
        struct exchange_job_row row;
        slow_must(exchange_job(pair->exchange, &slow->jobs[i].id, &row), "a job is lost");
        slow_must((row.state == 0) == slow->jobs[i].is_open, "a job is open, or not");
        slow_must(row.budget_micro == slow->jobs[i].budget, "a budget is another");
        slow_must(row.budget_micro - row.reserved_micro ==
                      (slow->jobs[i].is_open ? slow->jobs[i].free_micro : row.budget_micro),
                  "escrow is another");
    }
    for (uint32_t owner = FIRST; owner < FIRST + PEOPLE; owner++) {
        struct seen wanted = {0};
        struct seen seen = {.pair = pair};
        uint64_t next;
        for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
            wanted.asks += slow->asks[i].stands && slow->asks[i].owner == owner;
        }
        for (uint32_t i = 0; i < slow->job_count; i++) {
            const struct slow_job *job = &slow->jobs[i];
            for (uint32_t k = 0; job->is_open && job->owner == owner && k < job->part_count; k++) {
                wanted.bids += job->parts[k].stands;
            }
        }
        slow_must(exchange_list_orders(pair->exchange, owner, 0, see_order, &seen, &next) ==
                      LISTING_END,
                  "orders are listed");
        slow_must(seen.asks == wanted.asks && seen.bids == wanted.bids, "other orders stand");
    }
}

/* The market goes on from its own snapshot. */
static inline void reload(struct pair *pair)
{
    size_t length;
    uint8_t *bytes = exchange_save(pair->exchange, &length);
    struct exchange_limits limits = exchange_limits_now(pair->exchange);
    struct exchange *loaded = exchange_load(&limits, bytes, length);
    ck_assert_ptr_nonnull(loaded);
    struct hash32 hash = exchange_state_hash(pair->exchange);
    struct hash32 again = exchange_state_hash(loaded);
    ck_assert(hash32_equal(&hash, &again));
    free(bytes);
    exchange_destroy(&pair->exchange);
    pair->exchange = loaded;
    hash = exchange_state_hash_walk(pair->exchange);
    ck_assert(hash32_equal(&hash, &again));
}

#endif
