/* Orders of all types against a slow, obvious matcher (tests/support/slow_market.h). Random scripts of asks and jobs, some good
 * for a while, reduced and replaced ones, and cancels from a printed seed; after every command the fills and what stands are
 * the same, and nothing that rests could trade, but for what waits to be filled all at once. Where asks give slots away, or
 * bids are by value, whose turn it is depends on every fill before: there each fill is looked at in its turn. */
#include "base/checked.h"
#include "base/random.h"
#include "exchange/exchange.h"
#include "exchange/listings.h"
#include "ledger/accounts.h"
#include "protocol/reject.h"
#include "tests/support/slow_market.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCRIPTS_A_SEED = 500,
    SEEDS = 21, /* 10,500 scripts */
    TURN_SEEDS = 4,
    COMMANDS = 25,
    PEOPLE = 4,  /* each trades both ways */
    DEVICES = 3, /* of each */
    FIRST = 3,   /* account */
    GOOD_SECONDS_MOST = 8,
};
static_assert(PEOPLE * DEVICES == SLOW_DEVICES && 2 * COMMANDS < SLOW_JOBS, "there is room");
static const int64_t start_ns = INT64_C(1700000000) * NS_PER_S;
static const int64_t unit_micro = 1000; /* prices are small multiples */

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
    limits.asks = limits.jobs = limits.cells = limits.classes = 64;
    pair->random = random_seeded(seed);
    pair->seed = seed;
    pair->exchange = exchange_create(&limits);
    pair->now_ns = start_ns;
    pair->slow.sequence = 1;
    for (unsigned i = 0; i < PEOPLE; i++) {
        accounts[i].key.bytes[0] = (uint8_t)(i + 1);
        accounts[i].roles = 3; /* consumer and provider */
        accounts[i].credits_micro = INT64_C(1) << 40;
        (void)snprintf(accounts[i].name, sizeof accounts[i].name, "trader");
    }
    struct exchange_command genesis = command_of(pair, EXCHANGE_GENESIS, EXCHANGE_NO_ACCOUNT);
    genesis.genesis = (struct exchange_genesis){.cluster = {{7}},
                                                .price_band_micro = 100 * unit_micro,
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
                                     .operations = operations_of(device % SLOW_KINDS)};
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

/* Slots of one job, device and price are one fill here: how they were cut is not the market's matter. */
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

/* What rests can trade with nothing that rests, and what waits for all of it cannot have all of it. */
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

struct seen {
    uint32_t bids, asks;
};

static bool see_order(void *context, const struct exchange_order_row *row)
{
    struct seen *seen = context;
    seen->bids += row->is_bid;
    seen->asks += !row->is_bid;
    slow_must(row->type != EXCHANGE_IOC && row->type != EXCHANGE_FOK, "it does not rest");
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
        slow_must(row.budget_micro - row.reserved_micro ==
                      (slow->jobs[i].is_open ? slow->jobs[i].free_micro : row.budget_micro),
                  "escrow is another");
    }
    for (uint32_t owner = FIRST; owner < FIRST + PEOPLE; owner++) {
        struct seen wanted = {0, 0};
        struct seen seen = {0, 0};
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

static void submit(struct pair *pair)
{
    static const enum exchange_order_type types[] = {
        EXCHANGE_LIMIT, EXCHANGE_LIMIT,     EXCHANGE_LIMIT,       EXCHANGE_IOC,
        EXCHANGE_FOK,   EXCHANGE_POST_ONLY, EXCHANGE_ALL_OR_NONE, EXCHANGE_ALL_OR_NONE};
    struct exchange_command made = command_of(pair, EXCHANGE_SUBMIT, FIRST + draw(pair, PEOPLE));
    struct slow_job *job = &pair->slow.jobs[pair->slow.job_count];
    struct requirement needs[SLOW_PARTS];
    struct exchange_part parts[SLOW_PARTS];
    memset(job, 0, sizeof *job);
    memset(parts, 0, sizeof parts);
    job->is_open = true;
    job->id = made.id;
    job->owner = made.account;
    job->part_count = 1 + (draw(pair, 3) == 0);
    job->type = types[draw(pair, sizeof types / sizeof types[0])];
    if (goes_by_turns(pair) && (job->type == EXCHANGE_FOK || job->type == EXCHANGE_ALL_OR_NONE)) {
        job->type = EXCHANGE_LIMIT;
    }
    job->free_micro = draw(pair, 4) == 0 ? (1 + draw(pair, 30)) * unit_micro : 10000 * unit_micro;
    made.submit = (struct exchange_submit){
        .name = "job", .budget_micro = job->free_micro, .verify = EXCHANGE_VERIFY_NONE};
    const bool is_valued =
        pair->has_values && draw(pair, 2) == 0; /* each: or they arrive by kind */
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct slow_part *part = &job->parts[i];
        const uint32_t subtasks = 100; /* so that it always has more to do than lanes */
        part->kind = draw(pair, SLOW_KINDS + 1);
        part->width = 1 + draw(pair, 3);
        part->limit = draw(pair, 8) * unit_micro;
        part->wanted = (1 + draw(pair, 5)) * part->width;
        part->is_valued = is_valued;
        needs[i] = needs_of(part->kind);
        parts[i] = (struct exchange_part){.subtasks = subtasks,
                                          .needs = &needs[i],
                                          .slots = part->width,
                                          .at_most = part->wanted,
                                          .cap_micro = part->limit,
                                          .rate = part->is_valued ? RATE_BF16 : RATE_NONE,
                                          .limit_ns = NS_PER_S,
                                          .term_ns = NS_PER_HOUR};
        made.submit.subtasks += subtasks;
    }
    uint32_t all = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        all += job->parts[i].wanted;
    }
    for (uint32_t i = 0; i < job->part_count && job->type == EXCHANGE_ALL_OR_NONE; i++) {
        const int64_t most = job->free_micro / all; /* all of it within the budget */
        job->parts[i].limit = job->parts[i].limit < most ? job->parts[i].limit : most;
    }
    made.submit.needs = &needs[0];
    made.submit.slots = parts[0].slots;
    made.submit.at_most = parts[0].at_most;
    made.submit.cap_micro = parts[0].cap_micro;
    made.submit.rate = parts[0].rate;
    made.submit.limit_ns = parts[0].limit_ns;
    made.submit.term_ns = parts[0].term_ns;
    made.submit.parts = &parts[1];
    made.submit.part_count = job->part_count - 1;
    made.submit.type = job->type;
    if (draw(pair, 4) == 0) {
        made.submit.good_till_ns = time_from_now(pair);
    }
    pair->job_good_till_ns[pair->slow.job_count] = made.submit.good_till_ns;
    const bool is_whole = job->type == EXCHANGE_ALL_OR_NONE || job->type == EXCHANGE_FOK;
    apply(pair, &made);
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

static void place(struct pair *pair)
{
    static const enum exchange_order_type types[] = {EXCHANGE_LIMIT, EXCHANGE_LIMIT, EXCHANGE_LIMIT,
                                                     EXCHANGE_IOC, EXCHANGE_POST_ONLY};
    const uint32_t device = draw(pair, SLOW_DEVICES);
    struct slow_ask given = pair->slow.asks[device];
    struct exchange_command made = command_of(pair, EXCHANGE_ASK, given.owner);
    given.stands = true;
    given.slots = 1 + draw(pair, 6);
    given.price = (1 + draw(pair, 5)) * unit_micro;
    given.price = pair->has_gifts && draw(pair, 2) == 0 ? 0 : given.price;
    given.type = types[draw(pair, sizeof types / sizeof types[0])];
    given.order = made.id;
    made.ask = (struct exchange_ask){.device = device_id(device),
                                     .slots = given.slots,
                                     .price_micro = given.price,
                                     .type = given.type};
    if (draw(pair, 3) == 0) {
        made.ask.good_till_ns = time_from_now(pair);
    }
    apply(pair, &made);
    if (code_of(pair) == 0) {
        pair->good_till_ns[device] = made.ask.good_till_ns;
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

/* Asks and bids whose time is over are gone; nothing is filled by that. */
static void expire(struct pair *pair)
{
    struct exchange_command tick = command_of(pair, EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    apply(pair, &tick);
    check_fills(pair, "time that passes");
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
}

/* An ask at another price, or of more slots, arrives anew; with fewer it keeps its place. Refused, it stays as it was. */
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

/* A bid at another limit, or for more slots, arrives anew; for fewer it keeps its place. */
static void rebid(struct pair *pair)
{
    struct slow_market *slow = &pair->slow;
    struct slow_job *job = &slow->jobs[draw(pair, slow->job_count + 1)];
    if (job == &slow->jobs[slow->job_count] || !job->is_open || !job->parts[0].stands ||
        job->type == EXCHANGE_ALL_OR_NONE) {
        return;
    }
    const uint32_t number = job->part_count == 1 || draw(pair, 3) == 0 ? SLOW_PARTS : draw(pair, 2);
    struct exchange_command made = command_of(pair, EXCHANGE_REPLACE, job->owner);
    made.replace = (struct exchange_replace){
        .order = job->id, .part = number == SLOW_PARTS ? EXCHANGE_ANY_PART : number};
    int64_t limit = -1;
    uint32_t at_most = 0;
    if (draw(pair, 2) == 0) {
        made.replace.has_slots = true;
        at_most = made.replace.slots = (1 + draw(pair, 5)) * 6; /* of any width */
    } else {
        made.replace.has_price = true;
        made.replace.rate = job->parts[0].is_valued ? RATE_BF16 : RATE_NONE;
        limit = made.replace.price_micro = draw(pair, 8) * unit_micro;
    }
    apply(pair, &made);
    const uint32_t code = slow_rebid(slow, job, number, limit, at_most);
    ck_assert_uint_eq(code_of(pair), code);
    pair->rebid += code == 0;
    if (goes_by_turns(pair)) {
        take_fills(pair, "a bid on other terms");
        return;
    }
    if (code == 0) {
        slow_settle(slow);
    }
    check_fills(pair, "a bid on other terms");
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
    if (goes_by_turns(pair)) {
        take_fills(pair, "the end of a job");
        return;
    }
    slow_settle(slow);
    check_fills(pair, "the end of a job");
}

static void run_script(struct pair *pair)
{
    for (int i = 0; i < COMMANDS; i++) {
        const uint32_t dice = draw(pair, 18);
        pair->now_ns += NS_PER_S; /* all within the first term */
        pair->slow.fill_count = 0;
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
        } else {
            cancel(pair);
        }
        pair->refused += code_of(pair) == REJECT_WOULD_TRADE;
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

int main(void)
{
    Suite *suite = suite_create("orders of all types");
    TCase *tests = tcase_create("scripts");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, all_types_of_orders_fill_as_the_slow_matcher_says, 0, SEEDS);
    tcase_add_loop_test(tests, what_is_given_away_goes_to_who_has_least_of_it, 0, TURN_SEEDS);
    tcase_add_loop_test(tests, bids_by_value_go_by_what_they_give_for_each_device, 0, TURN_SEEDS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
