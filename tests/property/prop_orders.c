/* Orders of all types against a slow, obvious matcher: flat lists, looked through anew for every fill. Random scripts of
 * asks, jobs, other terms and cancels from a printed seed; after every command the fills are the same, nothing that
 * rests could trade, but for what waits to be filled all at once, and no slot is let twice. */
#include "base/checked.h"
#include "base/random.h"
#include "exchange/exchange.h"
#include "exchange/listings.h"
#include "ledger/accounts.h"
#include "protocol/reject.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCRIPTS_A_SEED = 500,
    SEEDS = 21, /* 10,500 scripts */
    COMMANDS = 20,
    PEOPLE = 4,  /* each trades both ways */
    DEVICES = 3, /* of each */
    KINDS = 3,
    JOBS = 2 * COMMANDS + 1,
    PARTS = 2,
    FILLS = 256,
    FIRST = 3, /* account */
};
static const int64_t start_ns = INT64_C(1700000000) * NS_PER_S;
static const int64_t unit_micro = 1000; /* prices are small multiples */

/* ---------------------------------------------------------------- the slow market */

struct slow_ask {
    bool stands;
    uint32_t owner, kind, slots, leased;
    int64_t price;
    uint64_t sequence;
    enum exchange_order_type type;
    struct id128 order;
};

struct slow_part {
    bool stands;
    uint32_t kind; /* KINDS: any */
    uint32_t width, wanted;
    int64_t limit;
    uint64_t sequence;
};

struct slow_job {
    bool is_open;
    struct id128 id;
    uint32_t owner, part_count;
    int64_t free_micro; /* of the budget */
    enum exchange_order_type type;
    struct slow_part parts[PARTS];
    uint32_t held[PEOPLE * DEVICES]; /* slots, by device */
};

struct fill {
    uint32_t job, device, slots;
    int64_t price;
};

struct slow {
    struct slow_ask asks[PEOPLE * DEVICES]; /* by device */
    struct slow_job jobs[JOBS];
    uint32_t job_count;
    uint64_t sequence;
    struct fill fills[FILLS]; /* of the last command */
    uint32_t fill_count;
};

/* As ck_assert, which writes to a file every time. */
static void must(bool holds, const char *what)
{
    if (!holds) {
        ck_abort_msg("%s", what);
    }
}

static int64_t price_between(const struct slow_part *part, const struct slow_ask *ask)
{
    return ask->price == 0 || ask->sequence < part->sequence ? ask->price : part->limit;
}

static uint32_t free_of(const struct slow_ask *ask)
{
    return ask->slots > ask->leased ? ask->slots - ask->leased : 0;
}

static uint32_t in_widths(uint32_t slots, const struct slow_part *part)
{
    return slots - slots % part->width;
}

/* Slots that the two could trade of those, whatever the budget. */
static uint32_t tradable(const struct slow_part *part, const struct slow_ask *ask, uint32_t slots)
{
    const bool meets = ask->stands && part->limit >= ask->price &&
                       (part->kind == KINDS || part->kind == ask->kind);
    const uint32_t most = slots < part->wanted ? slots : part->wanted;
    return meets ? in_widths(most, part) : 0;
}

static uint32_t payable(const struct slow_job *job, const struct slow_part *part,
                        const struct slow_ask *ask, uint32_t slots)
{
    const int64_t price = price_between(part, ask);
    const int64_t most = price == 0 ? slots : job->free_micro / price;
    return in_widths(most < slots ? (uint32_t)most : slots, part);
}

static bool is_better_ask(const struct slow_ask *a, const struct slow_ask *b)
{
    return b == NULL || a->price < b->price || (a->price == b->price && a->sequence < b->sequence);
}

static bool is_before(const struct slow_part *a, const struct slow_part *b)
{
    return a->limit > b->limit || (a->limit == b->limit && a->sequence < b->sequence);
}

/* Whether a better bid, which need not be filled whole, takes the ask. */
static bool is_spoken_for(const struct slow *slow, const struct slow_job *whole,
                          const struct slow_part *part, const struct slow_ask *ask)
{
    for (uint32_t i = 0; i < slow->job_count; i++) {
        const struct slow_job *job = &slow->jobs[i];
        const bool is_single = job != whole && job->is_open && job->type != EXCHANGE_ALL_OR_NONE;
        for (uint32_t k = 0; is_single && k < job->part_count; k++) {
            const struct slow_part *other = &job->parts[k];
            const uint32_t slots = tradable(other, ask, free_of(ask));
            if (other->stands && is_before(other, part) && ask->owner != job->owner && slots > 0 &&
                payable(job, other, ask, slots) > 0) {
                return true;
            }
        }
    }
    return false;
}

static struct slow_ask *best_ask(struct slow *slow, const struct slow_job *job,
                                 const struct slow_part *part)
{
    struct slow_ask *best = NULL;
    for (uint32_t i = 0; i < PEOPLE * DEVICES; i++) {
        struct slow_ask *ask = &slow->asks[i];
        const uint32_t slots = tradable(part, ask, free_of(ask));
        if (ask->owner != job->owner && slots > 0 && payable(job, part, ask, slots) > 0 &&
            is_better_ask(ask, best) &&
            !(job->type == EXCHANGE_ALL_OR_NONE && is_spoken_for(slow, job, part, ask))) {
            best = ask;
        }
    }
    return best;
}

static void trade(struct slow *slow, struct slow_job *job, struct slow_part *part,
                  struct slow_ask *ask, uint32_t slots)
{
    const int64_t price = price_between(part, ask);
    must(slow->fill_count < FILLS, "too many fills");
    slow->fills[slow->fill_count++] =
        (struct fill){(uint32_t)(job - slow->jobs), (uint32_t)(ask - slow->asks), slots, price};
    job->free_micro -= price * slots;
    ask->leased += slots;
    job->held[ask - slow->asks] += slots;
    part->wanted -= slots;
}

/* All that the part can have now, one ask after the other. */
static void buy(struct slow *slow, struct slow_job *job, struct slow_part *part)
{
    struct slow_ask *ask;
    while (part->wanted > 0 && (ask = best_ask(slow, job, part)) != NULL) {
        trade(slow, job, part, ask, payable(job, part, ask, tradable(part, ask, free_of(ask))));
    }
}

/* Slots for the part alone; what it lacks in place of it decides who chooses first. */
static uint32_t supply_of(struct slow *slow, const struct slow_job *job,
                          const struct slow_part *part, uint32_t plenty)
{
    bool is_counted[PEOPLE * DEVICES] = {false};
    struct slow_part greedy = *part;
    uint32_t supply = 0;
    greedy.wanted = UINT32_MAX;
    while (supply < plenty) {
        struct slow_ask *best = NULL;
        for (uint32_t i = 0; i < PEOPLE * DEVICES; i++) {
            struct slow_ask *ask = &slow->asks[i];
            if (!is_counted[i] && ask->owner != job->owner &&
                tradable(&greedy, ask, free_of(ask)) > 0 &&
                payable(job, part, ask, part->width) > 0 && is_better_ask(ask, best) &&
                !is_spoken_for(slow, job, part, ask)) {
                best = ask;
            }
        }
        if (best == NULL) {
            break;
        }
        is_counted[best - slow->asks] = true;
        supply += tradable(&greedy, best, free_of(best));
    }
    return supply;
}

/* All of the job, on a copy first: false, and nothing was filled. */
static bool buy_whole(struct slow *slow, struct slow_job *job)
{
    struct slow_ask asks[PEOPLE * DEVICES]; /* as they were */
    const struct slow_job before = *job;
    const uint32_t fill_count = slow->fill_count;
    uint32_t plenty = 0;
    uint32_t over[PARTS];
    memcpy(asks, slow->asks, sizeof asks);
    for (uint32_t i = 0; i < job->part_count; i++) {
        plenty += job->parts[i].wanted;
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        const uint32_t supply = supply_of(slow, job, &job->parts[i], plenty);
        if (supply < job->parts[i].wanted) {
            return false;
        }
        over[i] = supply - job->parts[i].wanted;
    }
    const uint32_t first = job->part_count > 1 && over[1] < over[0] ? 1 : 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct slow_part *part = &job->parts[i == 0 ? first : 1 - first];
        while (part->wanted > 0) {
            struct slow_ask *ask = best_ask(slow, job, part);
            const uint32_t slots = ask == NULL ? 0 : tradable(part, ask, free_of(ask));
            if (slots == 0 || payable(job, part, ask, slots) < slots) {
                memcpy(slow->asks, asks, sizeof asks);
                *job = before;
                slow->fill_count = fill_count;
                return false;
            }
            trade(slow, job, part, ask, slots);
        }
    }
    if (job->type == EXCHANGE_ALL_OR_NONE) {
        job->type = EXCHANGE_LIMIT;
    }
    return true;
}

struct place {
    struct slow_job *job;
    struct slow_part *part;
};

/* The best bid behind `last` (NULL: of all). */
static struct place next_bid(struct slow *slow, const struct slow_part *last)
{
    struct place best = {NULL, NULL};
    for (uint32_t i = 0; i < slow->job_count; i++) {
        struct slow_job *job = &slow->jobs[i];
        for (uint32_t k = 0; k < job->part_count; k++) {
            struct slow_part *part = &job->parts[k];
            const bool is_behind = last == NULL || is_before(last, part);
            if (job->is_open && part->stands && is_behind &&
                (best.part == NULL || is_before(part, best.part))) {
                best = (struct place){job, part};
            }
        }
    }
    return best;
}

/* Bids from the best on take what they can have; what waits to be filled whole is passed over while it cannot be. */
static void settle(struct slow *slow)
{
    for (struct place at = next_bid(slow, NULL); at.part != NULL; at = next_bid(slow, at.part)) {
        if (at.job->type == EXCHANGE_ALL_OR_NONE) {
            (void)buy_whole(slow, at.job);
        } else {
            buy(slow, at.job, at.part);
        }
    }
}

static bool crosses(struct slow *slow, const struct slow_part *part, uint32_t owner,
                    bool *ret_is_own)
{
    const struct slow_ask *best = NULL;
    struct slow_part narrow = *part;
    narrow.wanted = part->width;
    for (uint32_t i = 0; i < PEOPLE * DEVICES; i++) {
        const struct slow_ask *ask = &slow->asks[i];
        best = tradable(&narrow, ask, free_of(ask)) > 0 && is_better_ask(ask, best) ? ask : best;
    }
    *ret_is_own = best != NULL && best->owner == owner;
    return best != NULL;
}

/* What its bids come to when they arrive; 0, or the code that refuses it. */
static uint32_t slow_submit(struct slow *slow, struct slow_job *job)
{
    for (uint32_t i = 0; i < job->part_count; i++) {
        bool is_own;
        if (crosses(slow, &job->parts[i], job->owner, &is_own) &&
            (is_own || job->type == EXCHANGE_POST_ONLY)) {
            return is_own ? REJECT_SELF_MATCH : REJECT_WOULD_TRADE;
        }
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        job->parts[i].sequence = slow->sequence++;
        job->parts[i].stands = true;
    }
    slow->job_count++;
    if (job->type == EXCHANGE_FOK) {
        job->is_open = buy_whole(slow, job);
    } else {
        settle(slow);
    }
    if (job->type == EXCHANGE_IOC) {
        job->is_open = slow->fill_count > 0;
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        job->parts[i].stands = job->type != EXCHANGE_IOC && job->type != EXCHANGE_FOK;
    }
    return 0;
}

static uint32_t slow_place(struct slow *slow, uint32_t device, const struct slow_ask *given)
{
    const struct slow_part *best = NULL;
    uint32_t best_owner = 0;
    bool meets_single = false;
    for (uint32_t i = 0; i < slow->job_count; i++) {
        const struct slow_job *job = &slow->jobs[i];
        for (uint32_t k = 0; job->is_open && k < job->part_count; k++) {
            const struct slow_part *part = &job->parts[k];
            if (!part->stands || tradable(part, given, free_of(given)) == 0) {
                continue;
            }
            meets_single = meets_single || job->type != EXCHANGE_ALL_OR_NONE;
            if (best == NULL || part->limit > best->limit ||
                (part->limit == best->limit && part->sequence < best->sequence)) {
                best = part;
                best_owner = job->owner;
            }
        }
    }
    if (best != NULL && best_owner == given->owner) {
        return REJECT_SELF_MATCH;
    }
    if (meets_single && given->type == EXCHANGE_POST_ONLY) {
        return REJECT_WOULD_TRADE;
    }
    slow->asks[device] = *given;
    slow->asks[device].sequence = slow->sequence++;
    settle(slow);
    slow->asks[device].stands = given->type != EXCHANGE_IOC;
    return 0;
}

/* ---------------------------------------------------------------- the exchange beside it */

struct pair {
    struct random random;
    struct slow slow;
    struct exchange *exchange;
    struct exchange_effects effects;
    int64_t now_ns;
    uint64_t index;
    uint32_t next_id;
    uint64_t filled, refused, whole; /* so that the scripts are known to meet all of it */
    uint64_t seed;
};

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
    must(exchange_step(pair->exchange, command, &pair->effects) == EXCHANGE_OK, "a step");
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
        struct attribute kinds[DEVICES];
        struct exchange_device devices[DEVICES];
        memset(devices, 0, sizeof devices);
        for (uint32_t i = 0; i < DEVICES; i++) {
            const uint32_t device = owner * DEVICES + i;
            struct slow_ask *ask = &pair->slow.asks[device];
            kinds[i] = kind_of(device % KINDS);
            devices[i].device = device_id(device);
            devices[i].slots = 6;
            devices[i].attributes = &kinds[i];
            devices[i].attribute_count = 1;
            (void)snprintf(devices[i].label, sizeof devices[i].label, "device");
            *ask = (struct slow_ask){.owner = FIRST + owner, .kind = device % KINDS};
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
static void add_fill(struct fill *fills, uint32_t *count, const struct fill *fill)
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

static bool has_fill(const struct fill *fills, uint32_t count, const struct fill *wanted)
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
    struct fill found[FILLS];
    struct fill wanted[FILLS];
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
        const struct fill fill = {job, grant->device.bytes[0] - 1u, grant->slots,
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

/* What rests can trade with nothing that rests, and what waits for all of it cannot have all of it. */
static void check_rest(struct pair *pair)
{
    struct slow *slow = &pair->slow;
    for (uint32_t i = 0; i < slow->job_count; i++) {
        struct slow_job *job = &slow->jobs[i];
        for (uint32_t k = 0; job->is_open && k < job->part_count; k++) {
            struct slow_part *part = &job->parts[k];
            must(!part->stands || part->wanted == 0 || job->type == EXCHANGE_ALL_OR_NONE ||
                     best_ask(slow, job, part) == NULL,
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
    must(row->type != EXCHANGE_IOC && row->type != EXCHANGE_FOK, "it does not rest");
    return true;
}

/* Jobs that have ended, orders that stand and free slots are the same. */
static void check_state(struct pair *pair)
{
    struct slow *slow = &pair->slow;
    for (uint32_t i = 0; i < slow->job_count; i++) {
        struct exchange_job_row row;
        must(exchange_job(pair->exchange, &slow->jobs[i].id, &row), "a job is lost");
        must((row.state == 0) == slow->jobs[i].is_open, "a job is open, or not");
        must(row.budget_micro - row.reserved_micro == slow->jobs[i].is_open
                 ? slow->jobs[i].free_micro
                 : row.budget_micro,
             "escrow is another");
    }
    for (uint32_t owner = FIRST; owner < FIRST + PEOPLE; owner++) {
        struct seen wanted = {0, 0};
        struct seen seen = {0, 0};
        uint64_t next;
        for (uint32_t i = 0; i < PEOPLE * DEVICES; i++) {
            wanted.asks += slow->asks[i].stands && slow->asks[i].owner == owner;
        }
        for (uint32_t i = 0; i < slow->job_count; i++) {
            const struct slow_job *job = &slow->jobs[i];
            for (uint32_t k = 0; job->is_open && job->owner == owner && k < job->part_count; k++) {
                wanted.bids += job->parts[k].stands;
            }
        }
        must(exchange_list_orders(pair->exchange, owner, 0, see_order, &seen, &next) == LISTING_END,
             "orders are listed");
        must(seen.asks == wanted.asks && seen.bids == wanted.bids, "other orders stand");
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
    if (kind < KINDS) {
        needs.count = 1;
        needs.nodes[0].op = REQUIREMENT_EQ;
        needs.nodes[0].attribute = kind_of(kind);
    }
    return needs;
}

static void submit(struct pair *pair)
{
    static const enum exchange_order_type types[] = {
        EXCHANGE_LIMIT, EXCHANGE_LIMIT,     EXCHANGE_LIMIT,       EXCHANGE_IOC,
        EXCHANGE_FOK,   EXCHANGE_POST_ONLY, EXCHANGE_ALL_OR_NONE, EXCHANGE_ALL_OR_NONE};
    struct exchange_command made = command_of(pair, EXCHANGE_SUBMIT, FIRST + draw(pair, PEOPLE));
    struct slow_job *job = &pair->slow.jobs[pair->slow.job_count];
    struct requirement needs[PARTS];
    struct exchange_part parts[PARTS];
    memset(job, 0, sizeof *job);
    memset(parts, 0, sizeof parts);
    job->is_open = true;
    job->id = made.id;
    job->owner = made.account;
    job->part_count = 1 + (draw(pair, 3) == 0);
    job->type = types[draw(pair, sizeof types / sizeof types[0])];
    job->free_micro = draw(pair, 4) == 0 ? (1 + draw(pair, 30)) * unit_micro : 10000 * unit_micro;
    made.submit = (struct exchange_submit){
        .name = "job", .budget_micro = job->free_micro, .verify = EXCHANGE_VERIFY_NONE};
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct slow_part *part = &job->parts[i];
        const uint32_t subtasks = 100; /* so that it always has more to do than lanes */
        part->kind = draw(pair, KINDS + 1);
        part->width = 1 + draw(pair, 3);
        part->limit = draw(pair, 8) * unit_micro;
        part->wanted = (1 + draw(pair, 5)) * part->width;
        needs[i] = needs_of(part->kind);
        parts[i] = (struct exchange_part){.subtasks = subtasks,
                                          .needs = &needs[i],
                                          .slots = part->width,
                                          .at_most = part->wanted,
                                          .cap_micro = part->limit,
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
    made.submit.limit_ns = parts[0].limit_ns;
    made.submit.term_ns = parts[0].term_ns;
    made.submit.parts = &parts[1];
    made.submit.part_count = job->part_count - 1;
    made.submit.type = job->type;
    const bool is_whole = job->type == EXCHANGE_ALL_OR_NONE || job->type == EXCHANGE_FOK;
    apply(pair, &made);
    ck_assert_uint_eq(code_of(pair), slow_submit(&pair->slow, job));
    check_fills(pair, "a job");
    pair->whole += is_whole && pair->slow.fill_count > 0;
}

static void place(struct pair *pair)
{
    static const enum exchange_order_type types[] = {EXCHANGE_LIMIT, EXCHANGE_LIMIT, EXCHANGE_LIMIT,
                                                     EXCHANGE_IOC, EXCHANGE_POST_ONLY};
    const uint32_t device = draw(pair, PEOPLE * DEVICES);
    struct slow_ask given = pair->slow.asks[device];
    struct exchange_command made = command_of(pair, EXCHANGE_ASK, given.owner);
    given.stands = true;
    given.slots = 1 + draw(pair, 6);
    given.price = (1 + draw(pair, 5)) * unit_micro; /* donations go by another queue */
    given.type = types[draw(pair, sizeof types / sizeof types[0])];
    given.order = made.id;
    made.ask = (struct exchange_ask){.device = device_id(device),
                                     .slots = given.slots,
                                     .price_micro = given.price,
                                     .type = given.type};
    apply(pair, &made);
    ck_assert_uint_eq(code_of(pair), slow_place(&pair->slow, device, &given));
    check_fills(pair, "an ask");
}

static void withdraw(struct pair *pair)
{
    struct slow_ask *ask = &pair->slow.asks[draw(pair, PEOPLE * DEVICES)];
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
    struct slow *slow = &pair->slow;
    struct slow_job *job = &slow->jobs[draw(pair, slow->job_count + 1)];
    if (job == &slow->jobs[slow->job_count] || !job->is_open) {
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
    job->is_open = false;
    for (uint32_t i = 0; i < PEOPLE * DEVICES; i++) {
        slow->asks[i].leased -= job->held[i];
    }
    settle(slow);
    check_fills(pair, "the end of a job");
}

static void run_script(struct pair *pair)
{
    for (int i = 0; i < COMMANDS; i++) {
        const uint32_t dice = draw(pair, 16);
        pair->now_ns += NS_PER_S; /* all within the first term */
        pair->slow.fill_count = 0;
        if (dice < 7) {
            submit(pair);
        } else if (dice < 14) {
            place(pair);
        } else if (dice < 15) {
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
        close_pair(&pair);
    }
    ck_assert_uint_gt(filled, 3 * SCRIPTS_A_SEED);
    ck_assert_uint_gt(refused, SCRIPTS_A_SEED / 10);
    ck_assert_uint_gt(whole, SCRIPTS_A_SEED / 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("orders of all types");
    TCase *tests = tcase_create("scripts");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, all_types_of_orders_fill_as_the_slow_matcher_says, 0, SEEDS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
