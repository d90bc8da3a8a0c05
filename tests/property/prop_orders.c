/* Orders of all types against a slow, obvious matcher (tests/support/slow_market.h). Random scripts
 * of asks and jobs, of several terms, at a cap and at market price, while bands come and go, some
 * good for a while, for some accounts, at some minutes, for so much a day, or with leases that may
 * be taken; reduced and replaced ones, and cancels, from a printed seed. After every command the
 * fills and what stands are the same, with its limits and slots, and nothing that rests could
 * trade, but for what waits to be filled all at once. Where asks give slots away, or bids are by
 * value, whose turn it is depends on every fill before: there each fill is looked at in its
 * turn. */
#include "base/checked.h"
#include "base/random.h"
#include "exchange/exchange.h"
#include "exchange/view/listings.h"
#include "ledger/accounts.h"
#include "protocol/reject.h"
#include "tests/support/slow_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCRIPTS_A_SEED = 500,
    SEEDS = 21, /* 10,500 scripts */
    TURN_SEEDS = 4,
    COMMANDS = 36,
    PEOPLE = 4,  /* each trades both ways */
    DEVICES = 3, /* of each */
    FIRST = 3,   /* account */
    GOOD_SECONDS_MOST = 8,
    LONG_PAUSE_SECONDS = 60,
    TERM_MOST = 3, /* half hours */
};
static_assert(PEOPLE * DEVICES == SLOW_DEVICES && 2 * COMMANDS < SLOW_JOBS, "there is room");
static const int64_t start_ns = INT64_C(1700000000) * NS_PER_S; /* 22:13:20 */
enum { START_MIN = 22 * 60 + 13 };
static const int64_t unit_micro = 1000; /* prices are small multiples, but those of the market */
static const int64_t band_micro = 40 * 1000;

/* ---------------------------------------------------------------- the exchange beside it */

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

static bool goes_by_turns(const struct pair *pair)
{
    return pair->has_gifts || pair->has_values;
}

static uint32_t draw(struct pair *pair, uint32_t below)
{
    return (uint32_t)random_below(&pair->random, below);
}

static struct exchange_command command_of(struct pair *pair, enum exchange_command_type type,
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

static void apply(struct pair *pair, const struct exchange_command *command)
{
    exchange_effects_clear(&pair->effects);
    pair->slow.fill_count = 0;
    slow_must(exchange_step(pair->exchange, command, &pair->effects) == EXCHANGE_OK, "a step");
}

static struct id128 device_id(uint32_t device)
{
    struct id128 id = {{0}};
    id.bytes[0] = (uint8_t)(device + 1);
    return id;
}

static struct attribute kind_of(uint32_t kind)
{
    struct attribute made = {.name = "kind", .number = kind};
    return made;
}

/* Each kind is another accelerator: of the last it is not known how fast it is. */
static int64_t operations_of(uint32_t kind)
{
    return kind + 1 < SLOW_KINDS ? (int64_t)(kind + 1) * (RATE_UNIT / 2) : 0;
}

/* Sorted by name. How many. */
static size_t attributes_of(uint32_t kind, struct attribute made[2])
{
    size_t count = 0;
    if (operations_of(kind) > 0) {
        made[count++] = (struct attribute){.name = "bf16", .number = operations_of(kind)};
    }
    made[count++] = kind_of(kind);
    return count;
}

static void open_pair(struct pair *pair, uint64_t seed)
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

static void close_pair(struct pair *pair)
{
    exchange_destroy(&pair->exchange);
    exchange_effects_fini(&pair->effects);
}

/* ---------------------------------------------------------------- what must hold */

static uint32_t code_of(const struct pair *pair)
{
    for (size_t i = 0; i < pair->effects.count; i++) {
        if (pair->effects.items[i].type == EFFECT_REJECT) {
            return pair->effects.items[i].reject.code;
        }
    }
    return 0;
}

/* Slots of one job, device and price are one fill here: how they were cut is not the market's
 * matter. */
static void add_fill(struct slow_fill *fills, uint32_t *count, const struct slow_fill *fill)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (fills[i].job == fill->job && fills[i].device == fill->device &&
            fills[i].price == fill->price) {
            fills[i].slots += fill->slots;
            return;
        }
    }
    fills[(*count)++] = *fill;
}

static bool has_fill(const struct slow_fill *fills, uint32_t count, const struct slow_fill *wanted)
{
    for (uint32_t i = 0; i < count; i++) {
        if (fills[i].job == wanted->job && fills[i].device == wanted->device &&
            fills[i].price == wanted->price) {
            return fills[i].slots == wanted->slots;
        }
    }
    return false;
}

static void check_fills(struct pair *pair, const char *what)
{
    struct slow_fill found[SLOW_FILLS];
    struct slow_fill wanted[SLOW_FILLS];
    uint32_t found_count = 0;
    uint32_t wanted_count = 0;
    for (size_t i = 0; i < pair->effects.count; i++) {
        const struct exchange_grant *grant = &pair->effects.items[i].grant;
        if (pair->effects.items[i].type != EFFECT_LEASE_GRANT) {
            continue;
        }
        uint32_t job = 0;
        while (!id128_equal(&pair->slow.jobs[job].id, &grant->job)) {
            job++;
            ck_assert_uint_lt(job, pair->slow.job_count);
        }
        const struct slow_fill fill = {job, grant->device.bytes[0] - 1u, grant->slots,
                                       grant->price_micro};
        add_fill(found, &found_count, &fill);
    }
    for (uint32_t i = 0; i < pair->slow.fill_count; i++) {
        add_fill(wanted, &wanted_count, &pair->slow.fills[i]);
    }
    for (uint32_t i = 0; i < wanted_count; i++) {
        ck_assert_msg(has_fill(found, found_count, &wanted[i]),
                      "seed %llu, %s: job %u should get %u slots of device %u at %lld",
                      (unsigned long long)pair->seed, what, wanted[i].job, wanted[i].slots,
                      wanted[i].device, (long long)wanted[i].price);
    }
    ck_assert_msg(found_count == wanted_count, "seed %llu, %s: %u fills, not %u",
                  (unsigned long long)pair->seed, what, found_count, wanted_count);
    pair->filled += found_count;
}

/* Each fill of the last command, in its turn. */
static void take_fills(struct pair *pair, const char *what)
{
    struct slow_market *slow = &pair->slow;
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
        struct slow_part *part = &job->parts[id128_equal(&record->bid, &job->id) ? 0 : 1];
        const char *wrong = slow_take(slow, job, part, &slow->asks[record->device.bytes[0] - 1],
                                      record->slots, record->price_micro);
        ck_assert_msg(wrong == NULL, "seed %llu, %s: a fill of job %u from device %u: %s",
                      (unsigned long long)pair->seed, what, (unsigned)(job - slow->jobs),
                      record->device.bytes[0] - 1u, wrong);
        pair->given += record->price_micro == 0;
        pair->valued += part->is_valued;
        pair->filled++;
    }
}

/* Resting orders cannot trade with each other, and an order that waits for all of its size cannot
 * have all of it. */
static void check_rest(struct pair *pair)
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
    }
}

static const struct slow_ask *ask_of(const struct pair *pair, const struct id128 *order)
{
    for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
        if (pair->slow.asks[i].stands && id128_equal(&pair->slow.asks[i].order, order)) {
            return &pair->slow.asks[i];
        }
    }
    return NULL;
}

static const struct slow_part *bid_of(const struct pair *pair, const struct id128 *job,
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
static bool see_order(void *context, const struct exchange_order_row *row)
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
static void check_state(struct pair *pair)
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
static void reload(struct pair *pair)
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

/* ---------------------------------------------------------------- commands */

static struct requirement needs_of(uint32_t kind)
{
    struct requirement needs;
    memset(&needs, 0, sizeof needs);
    if (kind < SLOW_KINDS) {
        needs.count = 1;
        needs.nodes[0].op = REQUIREMENT_EQ;
        needs.nodes[0].attribute = kind_of(kind);
    }
    return needs;
}

static int64_t time_from_now(struct pair *pair)
{
    return pair->now_ns + (int64_t)(1 + draw(pair, GOOD_SECONDS_MOST)) * NS_PER_S;
}

static enum exchange_order_type draw_job_type(struct pair *pair)
{
    static const enum exchange_order_type types[] = {
        EXCHANGE_LIMIT, EXCHANGE_LIMIT,     EXCHANGE_LIMIT,       EXCHANGE_IOC,
        EXCHANGE_FOK,   EXCHANGE_POST_ONLY, EXCHANGE_ALL_OR_NONE, EXCHANGE_ALL_OR_NONE};
    const enum exchange_order_type type = types[draw(pair, sizeof types / sizeof types[0])];
    const bool is_whole = type == EXCHANGE_FOK || type == EXCHANGE_ALL_OR_NONE;
    return goes_by_turns(pair) && is_whole ? EXCHANGE_LIMIT : type;
}

static struct slow_part draw_part(struct pair *pair, bool is_valued)
{
    struct slow_part part = {.kind = draw(pair, SLOW_KINDS + 1),
                             .width = 1 + draw(pair, 3),
                             .is_valued = is_valued,
                             .term = draw(pair, 3) == 0 ? 1 + draw(pair, TERM_MOST) : 1,
                             .expect_h = draw(pair, 3) * (1 + draw(pair, 30))};
    part.wanted = part.at_most = (1 + draw(pair, 5)) * part.width;
    part.cap = !is_valued && draw(pair, 4) == 0 ? -1 : draw(pair, 8) * unit_micro;
    return part;
}

static struct slow_job draw_job(struct pair *pair)
{
    struct slow_job job = {.is_open = true,
                           .part_count = 1 + (draw(pair, 3) == 0),
                           .type = draw_job_type(pair),
                           .is_firm_only = draw(pair, 4) == 0};
    const bool is_valued =
        pair->has_values && draw(pair, 2) == 0; /* each: or they arrive by kind */
    job.budget = draw(pair, 4) == 0 ? draw(pair, 31) * unit_micro : 10000 * unit_micro;
    job.free_micro = job.budget;
    for (uint32_t i = 0; i < job.part_count; i++) {
        job.parts[i] = draw_part(pair, is_valued);
        pair->at_market += job.parts[i].cap < 0;
        pair->longer += job.parts[i].term > 1;
    }
    pair->firm_only += job.is_firm_only;
    slow_set_limits(&pair->slow, &job);
    return job;
}

static struct exchange_part given_part(const struct slow_part *part,
                                       const struct requirement *needs)
{
    return (struct exchange_part){.subtasks = SLOW_SUBTASKS,
                                  .needs = needs,
                                  .slots = part->width,
                                  .at_most = part->wanted,
                                  .cap_micro = part->cap,
                                  .rate = part->is_valued ? RATE_BF16 : RATE_NONE,
                                  .limit_ns = NS_PER_S,
                                  .term_ns = part->term * SLOW_HALF_NS,
                                  .expect_ns = part->expect_h * NS_PER_HOUR};
}

static void apply_job(struct pair *pair, const struct slow_job *job,
                      struct exchange_command *command, int64_t good_till_ns)
{
    struct requirement needs[SLOW_PARTS];
    struct exchange_part parts[SLOW_PARTS];
    for (uint32_t i = 0; i < job->part_count; i++) {
        needs[i] = needs_of(job->parts[i].kind);
        parts[i] = given_part(&job->parts[i], &needs[i]);
    }
    command->submit = (struct exchange_submit){.name = "job",
                                               .budget_micro = job->budget,
                                               .verify = EXCHANGE_VERIFY_NONE,
                                               .subtasks = job->part_count * SLOW_SUBTASKS,
                                               .needs = parts[0].needs,
                                               .slots = parts[0].slots,
                                               .at_most = parts[0].at_most,
                                               .cap_micro = parts[0].cap_micro,
                                               .rate = parts[0].rate,
                                               .limit_ns = parts[0].limit_ns,
                                               .term_ns = parts[0].term_ns,
                                               .expect_ns = parts[0].expect_ns,
                                               .parts = &parts[1],
                                               .part_count = job->part_count - 1,
                                               .good_till_ns = good_till_ns,
                                               .has_interruptions = job->is_firm_only,
                                               .type = job->type};
    apply(pair, command);
}

static void submit(struct pair *pair)
{
    struct exchange_command made = command_of(pair, EXCHANGE_SUBMIT, FIRST + draw(pair, PEOPLE));
    struct slow_job *job = &pair->slow.jobs[pair->slow.job_count];
    const int64_t good_till_ns = draw(pair, 4) == 0 ? time_from_now(pair) : 0;
    *job = draw_job(pair);
    job->id = made.id;
    job->owner = made.account;
    pair->job_good_till_ns[pair->slow.job_count] = good_till_ns;
    const bool is_whole = job->type == EXCHANGE_ALL_OR_NONE || job->type == EXCHANGE_FOK;
    apply_job(pair, job, &made, good_till_ns);
    if (goes_by_turns(pair)) {
        const uint32_t code = slow_admit(&pair->slow, job);
        ck_assert_uint_eq(code_of(pair), code);
        take_fills(pair, "a job");
        slow_stand_down(&pair->slow, job);
        return;
    }
    ck_assert_uint_eq(code_of(pair), slow_submit(&pair->slow, job));
    check_fills(pair, "a job");
    pair->whole += is_whole && pair->slow.fill_count > 0;
}

/* Each condition by itself, and most asks without any. */
static void draw_conditions(struct pair *pair, struct slow_ask *ask)
{
    ask->is_interruptible = draw(pair, 4) == 0;
    ask->to = 0;
    for (uint32_t i = 0; draw(pair, 6) == 0 && i < 2; i++) {
        ask->to |= 1u << (FIRST + draw(pair, PEOPLE));
    }
    ask->from_min = ask->till_min = 0;
    if (draw(pair, 3) == 0) {
        ask->from_min = START_MIN + draw(pair, 7);
        ask->till_min = ask->from_min + 1 + draw(pair, 3);
    }
    ask->max_term = draw(pair, 3) == 0 ? 1 + draw(pair, TERM_MOST) : 0;
    ask->daily = 0;
    if (draw(pair, 5) == 0) {
        ask->max_term = ask->max_term == 0 ? 2 : ask->max_term; /* an hour, where none is said */
        ask->daily = ask->max_term + draw(pair, 8);
    }
    slow_look_at_hours(ask, pair->now_ns);
    pair->reserved += ask->to != 0;
    pair->of_day += ask->daily > 0;
}

static size_t accounts_of(const struct slow_ask *ask, struct exchange_ask_account to[PEOPLE])
{
    size_t count = 0;
    memset(to, 0, PEOPLE * sizeof *to);
    for (uint32_t i = 0; i < PEOPLE; i++) {
        if ((ask->to >> (FIRST + i) & 1) != 0) {
            to[count].has_key = true;
            to[count++].key.bytes[0] = (uint8_t)(i + 1);
        }
    }
    return count;
}

static void apply_place(struct pair *pair, uint32_t device, const struct slow_ask *ask,
                        struct exchange_command *command, int64_t good_till_ns)
{
    /* Nobody takes a lease from its holder before it ends. */
    const struct exchange_terms interruptible = {.is_interruptible = true,
                                                 .minimum_run_ns = EXCHANGE_RUN_MOST_NS};
    const bool is_max_said = ask->daily == 0 || ask->max_term != 2 || ask->daily < 2;
    struct exchange_ask_account to[PEOPLE];
    command->ask =
        (struct exchange_ask){.device = device_id(device),
                              .slots = ask->slots,
                              .price_micro = ask->price,
                              .type = ask->type,
                              .to = to,
                              .to_count = accounts_of(ask, to),
                              .max_term_ns = is_max_said ? ask->max_term * SLOW_HALF_NS : 0,
                              .daily_ns = ask->daily * SLOW_HALF_NS,
                              .good_till_ns = good_till_ns};
    if (ask->is_interruptible) {
        command->ask.terms = interruptible;
    }
    if (ask->from_min != ask->till_min) {
        command->ask.hours.count = 1;
        command->ask.hours.windows[0] = (struct hours_window){.days = HOURS_ALL_DAYS,
                                                              .from_min = (uint16_t)ask->from_min,
                                                              .till_min = (uint16_t)ask->till_min};
    }
    apply(pair, command);
}

static void place(struct pair *pair)
{
    static const enum exchange_order_type types[] = {EXCHANGE_LIMIT, EXCHANGE_LIMIT, EXCHANGE_LIMIT,
                                                     EXCHANGE_IOC, EXCHANGE_POST_ONLY};
    const uint32_t device = draw(pair, SLOW_DEVICES);
    struct slow_ask given = pair->slow.asks[device];
    struct exchange_command made = command_of(pair, EXCHANGE_ASK, given.owner);
    const int64_t good_till_ns = draw(pair, 3) == 0 ? time_from_now(pair) : 0;
    given.stands = true;
    given.slots = 1 + draw(pair, 6);
    given.price = (1 + draw(pair, 5)) * unit_micro;
    given.price = pair->has_gifts && draw(pair, 2) == 0 ? 0 : given.price;
    given.type = types[draw(pair, sizeof types / sizeof types[0])];
    given.order = made.id;
    draw_conditions(pair, &given);
    apply_place(pair, device, &given, &made, good_till_ns);
    if (code_of(pair) == 0) {
        pair->good_till_ns[device] = good_till_ns;
    }
    if (goes_by_turns(pair)) {
        const uint32_t code = slow_put(&pair->slow, device, &given);
        ck_assert_uint_eq(code_of(pair), code);
        take_fills(pair, "an ask");
        pair->slow.asks[device].stands &= code != 0 || given.type != EXCHANGE_IOC;
        return;
    }
    ck_assert_uint_eq(code_of(pair), slow_place(&pair->slow, device, &given));
    check_fills(pair, "an ask");
}

/* Compares the fills of the last command when the slow market has settled. */
static void settle(struct pair *pair, const char *what)
{
    if (goes_by_turns(pair)) {
        take_fills(pair, what);
        return;
    }
    slow_settle(&pair->slow);
    check_fills(pair, what);
}

static bool look_at_hours(struct pair *pair)
{
    bool opens = false;
    for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
        struct slow_ask *ask = &pair->slow.asks[i];
        const bool was_open = ask->is_open;
        slow_look_at_hours(ask, pair->now_ns);
        opens = opens || (ask->stands && ask->is_open && !was_open);
    }
    return opens;
}

/* Asks and bids whose time is over are gone; nothing is filled but by asks whose hours begin. */
static void expire(struct pair *pair)
{
    struct exchange_command tick = command_of(pair, EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    apply(pair, &tick);
    for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
        struct slow_ask *ask = &pair->slow.asks[i];
        if (ask->stands && pair->good_till_ns[i] != 0 && pair->good_till_ns[i] <= pair->now_ns) {
            ask->stands = false;
            pair->expired++;
        }
    }
    for (uint32_t i = 0; i < pair->slow.job_count; i++) {
        struct slow_job *job = &pair->slow.jobs[i];
        const int64_t till_ns = pair->job_good_till_ns[i];
        if (job->is_open && !job->is_over && till_ns != 0 && till_ns <= pair->now_ns) {
            slow_expire(&pair->slow, job);
            pair->ended++;
        }
    }
    const uint64_t filled = pair->filled;
    if (look_at_hours(pair)) {
        settle(pair, "hours that begin");
        pair->opened++;
        pair->filled_opening += pair->filled - filled;
    } else {
        check_fills(pair, "time that passes");
    }
}

/* An ask at another price, or of more slots, arrives anew; with fewer, or as it is, it keeps its
 * place. Refused, it stays as it was. */
static void replace(struct pair *pair)
{
    const uint32_t device = draw(pair, SLOW_DEVICES);
    struct slow_ask given = pair->slow.asks[device];
    if (!given.stands) {
        return;
    }
    struct exchange_command made = command_of(pair, EXCHANGE_REPLACE, given.owner);
    made.replace = (struct exchange_replace){.order = given.order};
    if (draw(pair, 2) == 0) {
        made.replace.has_slots = true;
        given.slots = made.replace.slots = 1 + draw(pair, 6);
    } else {
        made.replace.has_price = true;
        given.price = made.replace.price_micro = (1 + draw(pair, 5)) * unit_micro;
    }
    const struct slow_ask before = pair->slow.asks[device];
    const bool keeps_place = given.price == before.price && given.slots <= before.slots;
    apply(pair, &made);
    if (keeps_place) {
        ck_assert_uint_eq(code_of(pair), 0);
        pair->slow.asks[device].slots = given.slots;
        pair->reduced += given.slots < before.slots;
        check_fills(pair, "an ask of fewer slots");
        return;
    }
    pair->slow.asks[device].stands = false; /* it is not in its own way */
    const uint32_t code = slow_place(&pair->slow, device, &given);
    if (code != 0) {
        pair->slow.asks[device] = before;
    }
    ck_assert_uint_eq(code_of(pair), code);
    pair->replaced += code == 0;
    check_fills(pair, "an ask on other terms");
}

static struct slow_terms draw_terms(struct pair *pair, const struct slow_job *job)
{
    struct slow_terms terms = {.part = SLOW_PARTS, .cap = -1};
    if (job->part_count > 1 && draw(pair, 3) > 0) {
        terms.part = draw(pair, 2);
    }
    const uint32_t dice = draw(pair, 5);
    if (dice < 2 && job->type != EXCHANGE_ALL_OR_NONE) {
        terms.at_most = (1 + draw(pair, 5)) * 6; /* of any width */
    } else if (dice < 4) {
        terms.cap = draw(pair, 8) * unit_micro;
    } else {
        terms.budget = job->budget + draw(pair, 20) * unit_micro;
    }
    return terms;
}

/* A bid at another limit, or for more slots, arrives anew; for fewer it keeps its place. */
static void rebid(struct pair *pair)
{
    struct slow_market *slow = &pair->slow;
    struct slow_job *job = &slow->jobs[draw(pair, slow->job_count + 1)];
    if (job == &slow->jobs[slow->job_count] || !job->is_open || !job->parts[0].stands) {
        return;
    }
    const struct slow_terms terms = draw_terms(pair, job);
    struct exchange_command made = command_of(pair, EXCHANGE_REPLACE, job->owner);
    made.replace = (struct exchange_replace){
        .order = job->id,
        .part = terms.part == SLOW_PARTS ? EXCHANGE_ANY_PART : terms.part,
        .has_slots = terms.at_most > 0,
        .slots = terms.at_most,
        .has_price = terms.cap >= 0,
        .price_micro = terms.cap >= 0 ? terms.cap : 0,
        .rate = terms.cap >= 0 && job->parts[0].is_valued ? RATE_BF16 : RATE_NONE,
        .has_budget = terms.budget > 0,
        .budget_micro = terms.budget};
    apply(pair, &made);
    const uint32_t code = slow_rebid(slow, job, &terms);
    ck_assert_uint_eq(code_of(pair), code);
    pair->rebid += code == 0;
    if (code == 0) {
        settle(pair, "a bid on other terms");
    } else {
        check_fills(pair, "a bid on other terms, refused");
    }
}

static void withdraw(struct pair *pair)
{
    struct slow_ask *ask = &pair->slow.asks[draw(pair, SLOW_DEVICES)];
    if (!ask->stands) {
        return;
    }
    struct exchange_command made = command_of(pair, EXCHANGE_CANCEL_ORDER, ask->owner);
    made.cancel_order.order = ask->order;
    apply(pair, &made);
    ck_assert_uint_eq(code_of(pair), 0);
    ask->stands = false;
    check_fills(pair, "a withdrawn ask");
}

/* Nobody answers for what its leases run: they end when it has waited for that, all at once. */
static void cancel(struct pair *pair)
{
    struct slow_market *slow = &pair->slow;
    struct slow_job *job = &slow->jobs[draw(pair, slow->job_count + 1)];
    if (job == &slow->jobs[slow->job_count] || !job->is_open || job->is_over) {
        return;
    }
    pair->now_ns += GOOD_SECONDS_MOST * NS_PER_S; /* so that no ask's time is over while it waits */
    expire(pair);
    if (!job->is_open || job->is_over) {
        return;
    }
    struct exchange_command made = command_of(pair, EXCHANGE_CANCEL_JOB, job->owner);
    made.cancel_job.job = job->id;
    apply(pair, &made);
    ck_assert_uint_eq(code_of(pair), 0);
    check_fills(pair, "a cancelled job");
    pair->now_ns += 30 * NS_PER_S;
    struct exchange_command tick = command_of(pair, EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    apply(pair, &tick);
    slow_end(slow, job);
    (void)look_at_hours(pair);
    settle(pair, "the end of a job");
}

/* Narrow ones and wide ones in turns: what rests outside of one stays. */
static void set_bands(struct pair *pair)
{
    struct exchange_command made = command_of(pair, EXCHANGE_BANDS, FIRST);
    const int64_t least = draw(pair, 4) > 0 ? 0 : draw(pair, 4) * unit_micro;
    const int64_t most = draw(pair, 3) > 0 ? band_micro : (3 + draw(pair, 5)) * unit_micro;
    const int64_t notional = draw(pair, 4) > 0 ? 0 : (10 + draw(pair, 60)) * unit_micro;
    made.bands = (struct exchange_bands){.has_least = true,
                                         .has_most = true,
                                         .has_notional = true,
                                         .least_micro = least,
                                         .most_micro = most,
                                         .notional_micro = notional};
    apply(pair, &made);
    ck_assert_uint_eq(code_of(pair), 0);
    slow_set_bands(&pair->slow, least, most, notional);
    settle(pair, "other bands");
}

static void run_script(struct pair *pair)
{
    for (int i = 0; i < COMMANDS; i++) {
        const uint32_t dice = draw(pair, 19);
        pair->now_ns += (draw(pair, 12) == 0 ? LONG_PAUSE_SECONDS : 1) *
                        NS_PER_S; /* all within the first term */
        expire(pair);
        if (dice < 7) {
            submit(pair);
        } else if (dice < 12) {
            place(pair);
        } else if (dice < 14 && !goes_by_turns(pair)) {
            replace(pair);
        } else if (dice < 14) {
            place(pair);
        } else if (dice < 16) {
            rebid(pair);
        } else if (dice < 17) {
            withdraw(pair);
        } else if (dice < 18) {
            set_bands(pair);
        } else {
            cancel(pair);
        }
        pair->refused += code_of(pair) == REJECT_WOULD_TRADE;
        pair->beyond += code_of(pair) == REJECT_PRICE;
        pair->too_much += code_of(pair) == REJECT_NOTIONAL;
        check_rest(pair);
        check_state(pair);
    }
}

START_TEST(all_types_of_orders_fill_as_the_slow_matcher_says)
{
    static struct pair pair;
    uint64_t filled = 0;
    uint64_t refused = 0;
    uint64_t whole = 0;
    uint64_t reduced = 0;
    uint64_t replaced = 0;
    uint64_t expired = 0;
    uint64_t rebid = 0;
    uint64_t ended = 0;
    uint64_t at_market = 0;
    uint64_t opened = 0;
    uint64_t filled_opening = 0;
    uint64_t reserved = 0;
    uint64_t firm_only = 0;
    uint64_t of_day = 0;
    uint64_t longer = 0;
    uint64_t beyond = 0;
    uint64_t too_much = 0;
    for (uint64_t i = 0; i < SCRIPTS_A_SEED; i++) {
        const uint64_t seed = (uint64_t)_i * SCRIPTS_A_SEED + i;
        open_pair(&pair, seed);
        run_script(&pair);
        if (i % 16 == 0) {
            reload(&pair);
            run_script(&pair);
        }
        filled += pair.filled;
        refused += pair.refused;
        whole += pair.whole;
        reduced += pair.reduced;
        replaced += pair.replaced;
        expired += pair.expired;
        rebid += pair.rebid;
        ended += pair.ended;
        at_market += pair.at_market;
        opened += pair.opened;
        filled_opening += pair.filled_opening;
        reserved += pair.reserved;
        firm_only += pair.firm_only;
        of_day += pair.of_day;
        longer += pair.longer;
        beyond += pair.beyond;
        too_much += pair.too_much;
        close_pair(&pair);
    }
    ck_assert_uint_gt(filled, 2 * SCRIPTS_A_SEED);
    ck_assert_uint_gt(refused, SCRIPTS_A_SEED / 10);
    ck_assert_uint_gt(whole, SCRIPTS_A_SEED / 10);
    ck_assert_uint_gt(reduced, SCRIPTS_A_SEED / 25);
    ck_assert_uint_gt(replaced, SCRIPTS_A_SEED / 10);
    ck_assert_uint_gt(expired, SCRIPTS_A_SEED / 10);
    ck_assert_uint_gt(rebid, SCRIPTS_A_SEED / 10);
    ck_assert_uint_gt(ended, SCRIPTS_A_SEED / 10);
    ck_assert_uint_gt(at_market, SCRIPTS_A_SEED);
    ck_assert_uint_gt(opened, SCRIPTS_A_SEED / 25);
    ck_assert_uint_gt(filled_opening, SCRIPTS_A_SEED / 25);
    ck_assert_uint_gt(reserved, SCRIPTS_A_SEED / 2);
    ck_assert_uint_gt(firm_only, SCRIPTS_A_SEED / 2);
    ck_assert_uint_gt(of_day, SCRIPTS_A_SEED / 2);
    ck_assert_uint_gt(longer, SCRIPTS_A_SEED / 2);
    ck_assert_uint_gt(beyond, SCRIPTS_A_SEED / 5);
    ck_assert_uint_gt(too_much, SCRIPTS_A_SEED / 10);
}
END_TEST

START_TEST(what_is_given_away_goes_to_who_has_least_of_it)
{
    static struct pair pair;
    uint64_t filled = 0;
    uint64_t given = 0;
    for (uint64_t i = 0; i < SCRIPTS_A_SEED; i++) {
        open_pair(&pair, (uint64_t)_i * SCRIPTS_A_SEED + i);
        pair.has_gifts = true;
        run_script(&pair);
        if (i % 16 == 0) {
            reload(&pair);
            run_script(&pair);
        }
        filled += pair.filled;
        given += pair.given;
        close_pair(&pair);
    }
    ck_assert_uint_gt(given, SCRIPTS_A_SEED);
    ck_assert_uint_gt(filled - given, SCRIPTS_A_SEED);
}
END_TEST

START_TEST(bids_by_value_go_by_what_they_give_for_each_device)
{
    static struct pair pair;
    uint64_t filled = 0;
    uint64_t valued = 0;
    for (uint64_t i = 0; i < SCRIPTS_A_SEED; i++) {
        open_pair(&pair, (uint64_t)_i * SCRIPTS_A_SEED + i);
        pair.has_values = true;
        run_script(&pair);
        if (i % 16 == 0) {
            reload(&pair);
            run_script(&pair);
        }
        filled += pair.filled;
        valued += pair.valued;
        close_pair(&pair);
    }
    ck_assert_uint_gt(valued, SCRIPTS_A_SEED);
    ck_assert_uint_gt(filled - valued, SCRIPTS_A_SEED);
}
END_TEST

SUITE("orders of all types", NULL, NULL,
      LOOP(all_types_of_orders_fill_as_the_slow_matcher_says, 0, SEEDS),
      LOOP(what_is_given_away_goes_to_who_has_least_of_it, 0, TURN_SEEDS),
      LOOP(bids_by_value_go_by_what_they_give_for_each_device, 0, TURN_SEEDS))
