#include "tests/sim/oracle.h"

#include "base/sha256.h"
#include "broker/entry.h"
#include "broker/replay.h"
#include "broker/translate.h"
#include "ledger/accounts.h"
#include "matching/book.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "tests/sim/broker.h"
#include "tests/sim/map.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

enum { ACCOUNTS_HERE = 64, WALK_EVERY = 64, SNAPSHOT_EVERY = 997 };
#define HOUR_NS (INT64_C(3600) * SIM_S)
#define GRACE_NS (5 * SIM_S)  /* after a lease's term results still count */
#define AVOID_NS (10 * SIM_S) /* a provider that failed a job gets no new lease of it */

struct seen_job {
    struct id128 id;
    uint32_t owner, subtasks, width, accepted, at_most;
    uint32_t lanes;                          /* of leases that have not ended */
    struct exchange_job_row row, row_before; /* after this command, and the one before */
    uint32_t lanes_seen, lanes_before;       /* likewise */
    int64_t budget, charged, limit, cap, term_ns;
    uint64_t sequence;
    struct requirement needs;
    bool is_settled, is_cancelled;
};

struct seen_lease {
    uint64_t id;
    uint32_t job, provider, device; /* places in the tables; provider: account */
    uint32_t slots, width;
    int64_t price, granted_ns, term_end_ns, paid_ns, charged;
    int64_t trouble_ns; /* its provider failed the job then: it may be avoided */
    bool has_ended;
};

struct seen_attempt {
    uint32_t lease, index, number, lane;
    int64_t dispatched_ns;
    bool is_decided;
};

struct seen_device {
    struct id128 id;
    uint32_t provider, slots, leased;
    bool is_advertised;
    struct attribute attributes[8];
    size_t attribute_count;
    uint32_t ask; /* place + 1; 0: none */
};

struct seen_ask {
    struct id128 order;
    uint32_t device, slots;
    int64_t price, max_term_ns;
    uint64_t sequence;
    bool stands;
};

#define TABLE(type)                                                                                \
    struct {                                                                                       \
        type *items;                                                                               \
        uint32_t count, capacity;                                                                  \
        struct map map;                                                                            \
    }

static struct {
    struct journal *journal;
    struct journal_log *log;
    const struct exchange_limits *limits;
    struct exchange *exchange;
    struct exchange_effects effects;
    uint64_t entry, command;
    struct hash32 chain;
    struct id128 cluster;
    int64_t log_time_ns;
    int64_t began_ns, began_log_ns; /* the genesis: in the world's time, in log time */
    struct hash32 *states;          /* by command */
    size_t states_capacity;
    struct { /* every entry, for the replay at the end */
        uint8_t *bytes;
        size_t length;
    } * entries;
    size_t entries_capacity;
    uint8_t *snapshot; /* of some moment on the way */
    size_t snapshot_length;
    uint64_t snapshot_entry;
    struct key32 transports[ACCOUNTS_HERE];
    int64_t available[ACCOUNTS_HERE], held[ACCOUNTS_HERE];
    uint32_t sequence, leases_standing, first_new_lease;
    TABLE(struct seen_job) jobs;
    TABLE(struct seen_lease) leases;
    TABLE(struct seen_attempt) attempts;
    TABLE(struct seen_device) devices;
    TABLE(struct seen_ask) asks;
    struct map accepted;          /* (id, account) -> command */
    struct map genuine;           /* digests of what honest peers sent */
    struct map accepted_subtasks; /* (job, index) */
    struct oracle_counts counts;
} oracle;

static uint32_t put_item(void **items, uint32_t *count, uint32_t *capacity, size_t size)
{
    if (*count == *capacity) {
        uint32_t grown = *capacity == 0 ? 64 : 2 * *capacity;
        *items = sim_grow(*items, grown * size);
        *capacity = grown;
    }
    memset((char *)*items + *count * size, 0, size);
    return (*count)++;
}
#define PUT(table)                                                                                 \
    put_item((void **)&(table).items, &(table).count, &(table).capacity, sizeof *(table).items)

/* ---------------------------------------------------------------- what was said */

static struct map_key digest_of(const struct key32 *transport, const struct envelope *envelope)
{
    uint64_t hash = map_hash(transport->bytes, sizeof transport->bytes, 1);
    hash = map_hash(&envelope->type, sizeof envelope->type, hash);
    if (envelope->type != MESSAGE_RESULTS) { /* of which only the body is signed */
        hash = map_hash(envelope->id.bytes, sizeof envelope->id.bytes, hash);
        hash = map_hash(&envelope->created_ms, sizeof envelope->created_ms, hash);
    }
    hash = map_hash(envelope->body, envelope->body_length, hash);
    return map_key_of(&hash, sizeof hash, 0);
}

void oracle_sends(const struct peer *peer, const uint8_t *bytes, size_t length)
{
    struct envelope envelope;
    if (envelope_read(bytes, length, LIMIT_MESSAGE_BYTES, &envelope) == ENVELOPE_OK &&
        translate_is_command((enum message_type)envelope.type)) {
        struct map_key key = digest_of(&peer->transport, &envelope);
        map_put(&oracle.genuine, &key, 0);
    }
}

/* P23: nothing is in the log that its account did not send. */
static void check_genuine(const struct entry_command *command)
{
    struct envelope envelope;
    if (envelope_read(command->payload, command->payload_length, LIMIT_MESSAGE_BYTES, &envelope) !=
        ENVELOPE_OK) {
        sim_fail("command %" PRIu64 " holds no message", oracle.command + 1);
    }
    if (command->account >= ACCOUNTS_HERE) {
        sim_fail("command %" PRIu64 ": who is account %u?", oracle.command + 1, command->account);
    }
    struct map_key key = digest_of(&oracle.transports[command->account], &envelope);
    if (!map_get(&oracle.genuine, &key, NULL)) {
        sim_fail("command %" PRIu64 " (%s) was never sent by account %u", oracle.command + 1,
                 message_name((enum message_type)envelope.type), command->account);
    }
}

/* ---------------------------------------------------------------- money (P1, P2) */

static void move_money(const struct ledger_record *record)
{
    uint32_t debit = record->debit;
    uint32_t credit = record->credit;
    int64_t amount = record->amount_micro;
    assert(debit < ACCOUNTS_HERE && credit < ACCOUNTS_HERE);
    switch (record->kind) {
    case LEDGER_TRANSFER:
        oracle.available[debit] -= amount;
        oracle.available[credit] += amount;
        break;
    case LEDGER_HOLD:
        oracle.available[debit] -= amount;
        oracle.held[debit] += amount;
        break;
    case LEDGER_CAPTURE:
    case LEDGER_FEE:
        oracle.held[debit] -= amount;
        oracle.available[credit] += amount;
        break;
    case LEDGER_RELEASE:
    case LEDGER_EXPIRE:
        oracle.held[debit] -= amount;
        oracle.available[debit] += amount;
        break;
    case LEDGER_ACCOUNT:
    case LEDGER_JOB:
    case LEDGER_ASK:
    case LEDGER_BID:
    case LEDGER_CANCEL:
    case LEDGER_FILL:
    case LEDGER_RESULT:
    case LEDGER_SETTLED:
    case LEDGER_FLAG:
        break;
    }
}

static void check_money(void)
{
    int64_t sum = 0;
    int64_t held_by_jobs[ACCOUNTS_HERE] = {0};
    for (uint32_t i = 0; i < oracle.jobs.count; i++) {
        const struct seen_job *job = &oracle.jobs.items[i];
        held_by_jobs[job->owner] += job->is_settled ? 0 : job->budget - job->charged;
    }
    for (uint32_t i = 0; i < exchange_account_count(oracle.exchange); i++) {
        struct exchange_account_row row;
        if (!exchange_account(oracle.exchange, i, &row)) {
            continue;
        }
        if (row.available_micro != oracle.available[i] || row.held_micro != oracle.held[i]) {
            sim_fail("account %u: the books say %" PRId64 " and %" PRId64
                     " held, the exchange %" PRId64 " and %" PRId64,
                     i, oracle.available[i], oracle.held[i], row.available_micro, row.held_micro);
        }
        if ((i != ACCOUNT_MINT && row.available_micro < 0) || row.held_micro < 0) {
            sim_fail("account %u is in debt", i);
        }
        if (row.held_micro != held_by_jobs[i]) {
            sim_fail("account %u holds %" PRId64 ", its open jobs %" PRId64, i, row.held_micro,
                     held_by_jobs[i]);
        }
        sum += row.available_micro + row.held_micro;
    }
    if (sum != 0) {
        sim_fail("the balances add up to %" PRId64, sum);
    }
}

/* ---------------------------------------------------------------- jobs, asks, devices */

static struct seen_job *job_of(const struct id128 *id)
{
    struct map_key key = map_key_of(id, sizeof *id, 0);
    uint32_t place;
    if (!map_get(&oracle.jobs.map, &key, &place)) {
        sim_fail("command %" PRIu64 " speaks of a job that nobody submitted", oracle.command);
    }
    return &oracle.jobs.items[place];
}

static struct seen_lease *lease_of(uint64_t id)
{
    struct map_key key = map_key_of(&id, sizeof id, 0);
    uint32_t place;
    if (!map_get(&oracle.leases.map, &key, &place)) {
        return NULL;
    }
    return &oracle.leases.items[place];
}

static struct seen_device *device_of(uint32_t provider, const struct id128 *id, bool make)
{
    struct map_key key = map_key_of(id, sizeof *id, provider);
    uint32_t place;
    if (!map_get(&oracle.devices.map, &key, &place)) {
        if (!make) {
            sim_fail("account %u has no such device", provider);
        }
        place = PUT(oracle.devices);
        oracle.devices.items[place].id = *id;
        oracle.devices.items[place].provider = provider;
        map_put(&oracle.devices.map, &key, place);
    }
    return &oracle.devices.items[place];
}

static void on_job(const struct exchange_command *command, const struct ledger_record *record)
{
    uint32_t place = PUT(oracle.jobs);
    struct seen_job *job = &oracle.jobs.items[place];
    job->id = record->job;
    job->owner = record->debit;
    job->subtasks = record->subtasks;
    job->width = record->width;
    job->budget = record->amount_micro;
    job->cap = record->price_micro;
    job->term_ns = command->submit.term_ns;
    job->at_most = command->submit.at_most;
    job->needs = *command->submit.needs;
    struct map_key key = map_key_of(&job->id, sizeof job->id, 0);
    map_put(&oracle.jobs.map, &key, place);
}

static void on_bid(const struct ledger_record *record)
{
    struct seen_job *job = job_of(&record->job);
    job->limit = record->price_micro;
    job->sequence = ++oracle.sequence;
}

static void on_ask(const struct exchange_command *command, const struct ledger_record *record)
{
    struct seen_device *device = device_of(command->account, &record->device, false);
    uint32_t place = PUT(oracle.asks);
    struct seen_ask *ask = &oracle.asks.items[place];
    ask->order = record->order;
    ask->device = (uint32_t)(device - oracle.devices.items);
    ask->slots = record->slots;
    ask->price = record->price_micro;
    ask->max_term_ns = command->ask.max_term_ns;
    ask->sequence = ++oracle.sequence;
    ask->stands = true;
    device->ask = place + 1;
    struct map_key key = map_key_of(&ask->order, sizeof ask->order, 0);
    map_put(&oracle.asks.map, &key, place);
}

static void on_cancel(const struct ledger_record *record)
{
    struct map_key key = map_key_of(&record->order, sizeof record->order, 0);
    uint32_t place;
    if (map_get(&oracle.asks.map, &key, &place)) {
        struct seen_ask *ask = &oracle.asks.items[place];
        ask->stands = false;
        if (oracle.devices.items[ask->device].ask == place + 1) {
            oracle.devices.items[ask->device].ask = 0;
        }
    } else {
        job_of(&record->order)->is_cancelled = true; /* its bid is gone */
    }
}

static void on_advertise(const struct exchange_command *command)
{
    for (uint32_t i = 0; i < oracle.devices.count; i++) {
        if (oracle.devices.items[i].provider == command->account) {
            oracle.devices.items[i].is_advertised = false;
        }
    }
    for (size_t i = 0; i < command->advertise.count; i++) {
        const struct exchange_device *given = &command->advertise.devices[i];
        struct seen_device *device = device_of(command->account, &given->device, true);
        device->slots = given->slots;
        device->is_advertised = true;
        device->attribute_count = given->attribute_count < 8 ? given->attribute_count : 8;
        memcpy(device->attributes, given->attributes,
               device->attribute_count * sizeof *device->attributes);
    }
}

/* ---------------------------------------------------------------- fills (P13, P14) and leases */

/* Everything but room, and what the job thinks of the provider: those are the caller's. */
static bool match(const struct seen_job *job, const struct seen_ask *ask)
{
    const struct seen_device *device = &oracle.devices.items[ask->device];
    return ask->stands && device->provider != job->owner && ask->price <= job->limit &&
           (ask->max_term_ns == 0 || job->term_ns <= ask->max_term_ns) &&
           requirement_satisfied(&job->needs, device->attributes, device->attribute_count);
}

static bool could_fill(const struct seen_job *job, const struct seen_ask *ask)
{
    const struct seen_device *device = &oracle.devices.items[ask->device];
    uint32_t free = device->slots > device->leased ? device->slots - device->leased : 0;
    return (free < ask->slots ? free : ask->slots) >= job->width && match(job, ask);
}

/* A provider that failed the job of late may be passed over. */
static bool may_avoid(uint32_t job, uint32_t provider)
{
    for (uint32_t i = oracle.leases.count; i-- > 0;) {
        const struct seen_lease *lease = &oracle.leases.items[i];
        if (lease->job == job && lease->provider == provider && lease->trouble_ns != 0 &&
            oracle.log_time_ns <= lease->trouble_ns + AVOID_NS) {
            return true;
        }
    }
    return false;
}

/* The maker's price; a donation is one whoever came first. */
static int64_t price_between(const struct seen_job *job, const struct seen_ask *ask)
{
    return ask->price == 0 ? 0 : ask->sequence < job->sequence ? ask->price : job->limit;
}

/* Price first, then time: no ask that would have filled was passed over for a worse one. */
static void check_priority(const struct seen_job *job, const struct seen_ask *chosen)
{
    for (uint32_t i = 0; i < oracle.devices.count; i++) {
        if (oracle.devices.items[i].ask == 0) {
            continue;
        }
        const struct seen_ask *other = &oracle.asks.items[oracle.devices.items[i].ask - 1];
        bool is_better = other->price < chosen->price ||
                         (other->price == chosen->price && other->sequence < chosen->sequence);
        /* What the job could pay for the chosen one, it could pay for another at no higher price. */
        bool is_payable = price_between(job, other) <= price_between(job, chosen);
        if (other != chosen && is_better && is_payable && could_fill(job, other) &&
            !may_avoid((uint32_t)(job - oracle.jobs.items), oracle.devices.items[i].provider)) {
            sim_fail(
                "command %" PRIu64 ": a fill of job %02x%02x at %" PRId64
                " of account %u passes over the ask of account %u at %" PRId64 ", which came %s",
                oracle.command, job->id.bytes[0], job->id.bytes[1], chosen->price,
                oracle.devices.items[chosen->device].provider, oracle.devices.items[i].provider,
                other->price, other->sequence < chosen->sequence ? "earlier" : "later");
        }
    }
}

/* Rounded up, as escrow is. */
static int64_t term_costs(const struct seen_job *job, int64_t price)
{
    __extension__ typedef __int128 wide;
    return (int64_t)(((wide)price * job->width * job->term_ns + HOUR_NS - 1) / HOUR_NS);
}

/* Whether the job would take one more lane at this price, beyond doubt. */
static bool surely_wants(const struct seen_job *job, const struct exchange_job_row *row,
                         uint32_t lanes, int64_t price)
{
    uint32_t most = job->at_most == 0 ? UINT32_MAX : job->at_most / job->width;
    uint32_t useful = row->waiting + row->running;
    return row->waiting > 0 && lanes < (useful < most ? useful : most) &&
           row->budget_micro - row->charged_micro - row->reserved_micro >= term_costs(job, price);
}

static void look_at_jobs(void)
{
    for (uint32_t i = 0; i < oracle.jobs.count; i++) {
        struct seen_job *job = &oracle.jobs.items[i];
        job->row_before = job->row;
        job->lanes_before = job->lanes_seen;
        job->lanes_seen = job->lanes;
        memset(&job->row, 0, sizeof job->row);
        if (!job->is_settled) {
            (void)exchange_job(oracle.exchange, &job->id, &job->row);
        }
    }
}

/* Whether it could buy at all. */
static bool is_buying(const struct seen_job *job)
{
    struct exchange_account_row owner;
    return !job->is_settled && !job->is_cancelled && job->row.waiting > 0 &&
           exchange_account(oracle.exchange, job->owner, &owner) && !owner.frozen;
}

/* The other side of priority: no job that wanted before this command, and still does, would have got the
 * slots of this fill before the one that got them. */
static void check_bids(const struct seen_lease *lease, const struct seen_ask *ask)
{
    const struct seen_job *chosen = &oracle.jobs.items[lease->job];
    for (uint32_t i = 0; i < oracle.jobs.count; i++) {
        const struct seen_job *other = &oracle.jobs.items[i];
        bool is_better = other->limit > chosen->limit ||
                         (other->limit == chosen->limit && other->sequence < chosen->sequence);
        int64_t price = price_between(other, ask);
        if (other != chosen && is_better && other->width <= lease->slots && match(other, ask) &&
            is_buying(other) && surely_wants(other, &other->row, other->lanes, price) &&
            surely_wants(other, &other->row_before, other->lanes_before, price) &&
            !may_avoid(i, lease->provider)) {
            sim_fail("command %" PRIu64 ": job %02x%02x, limit %" PRId64
                     ", got what job %02x%02x, limit %" PRId64 ", waited for",
                     oracle.command, chosen->id.bytes[0], chosen->id.bytes[1], chosen->limit,
                     other->id.bytes[0], other->id.bytes[1], other->limit);
        }
    }
}

static void check_all_bids(void)
{
    for (uint32_t i = oracle.first_new_lease; i < oracle.leases.count; i++) {
        const struct seen_lease *lease = &oracle.leases.items[i];
        const struct seen_device *device = &oracle.devices.items[lease->device];
        if (device->ask != 0) {
            check_bids(lease, &oracle.asks.items[device->ask - 1]);
        }
    }
    oracle.first_new_lease = oracle.leases.count;
}

/* A book at rest is not crossed: no free ask and no job that wants stand beside each other. */
static void check_at_rest(void)
{
    if (exchange_halted(oracle.exchange) || oracle.leases_standing >= oracle.limits->leases) {
        return;
    }
    for (uint32_t i = 0; i < oracle.jobs.count; i++) {
        const struct seen_job *job = &oracle.jobs.items[i];
        if (!is_buying(job)) {
            continue;
        }
        for (uint32_t k = 0; k < oracle.devices.count; k++) {
            const struct seen_device *device = &oracle.devices.items[k];
            const struct seen_ask *ask =
                device->ask == 0 ? NULL : &oracle.asks.items[device->ask - 1];
            if (ask != NULL && could_fill(job, ask) &&
                surely_wants(job, &job->row, job->lanes, price_between(job, ask)) &&
                !may_avoid(i, device->provider)) {
                sim_fail("command %" PRIu64 ": job %02x%02x, limit %" PRId64
                         ", waits beside the free ask of account %u at %" PRId64,
                         oracle.command, job->id.bytes[0], job->id.bytes[1], job->limit,
                         device->provider, ask->price);
            }
        }
    }
}

static void on_fill(const struct ledger_record *record)
{
    struct seen_job *job = job_of(&record->job);
    struct map_key key = map_key_of(&record->order, sizeof record->order, 0);
    uint32_t ask_place;
    if (!map_get(&oracle.asks.map, &key, &ask_place)) {
        sim_fail("command %" PRIu64 " fills an ask that nobody placed", oracle.command);
    }
    const struct seen_ask *ask = &oracle.asks.items[ask_place];
    struct seen_device *device = &oracle.devices.items[ask->device];
    int64_t price = price_between(job, ask);
    oracle.counts.fills++;
    if (!could_fill(job, ask)) {
        sim_fail("command %" PRIu64 ": a fill between orders that do not match", oracle.command);
    }
    if (record->price_micro != price) {
        sim_fail("command %" PRIu64 ": a fill at %" PRId64 ", the maker's price is %" PRId64,
                 oracle.command, record->price_micro, price);
    }
    if (job->is_settled || job->is_cancelled) {
        sim_fail("command %" PRIu64 " fills the bid of a job that has ended", oracle.command);
    }
    check_priority(job, ask);
    if (device->leased + record->slots > device->slots) {
        sim_fail("command %" PRIu64 ": %u slots are let, %u more, of %u", oracle.command,
                 device->leased, record->slots, device->slots);
    }
    device->leased += record->slots;
    job->lanes += record->slots / record->width;
    oracle.leases_standing++;
    uint32_t place = PUT(oracle.leases);
    oracle.leases.items[place] = (struct seen_lease){
        .id = record->lease,
        .job = (uint32_t)(job - oracle.jobs.items),
        .provider = device->provider,
        .device = (uint32_t)(device - oracle.devices.items),
        .slots = record->slots,
        .width = record->width,
        .price = record->price_micro,
        .granted_ns = oracle.log_time_ns,
        .term_end_ns = oracle.log_time_ns + record->term_ns,
    };
    key = map_key_of(&record->lease, sizeof record->lease, 0);
    if (map_get(&oracle.leases.map, &key, NULL)) {
        sim_fail("lease %" PRIu64 " is granted twice", record->lease);
    }
    map_put(&oracle.leases.map, &key, place);
}

static void end_lease(struct seen_lease *lease)
{
    if (!lease->has_ended) {
        lease->has_ended = true;
        oracle.jobs.items[lease->job].lanes -= lease->slots / lease->width;
        oracle.leases_standing--;
        oracle.devices.items[lease->device].leased -= lease->slots;
    }
}

static void on_lease_effect(const struct exchange_effect *effect)
{
    struct seen_lease *lease = lease_of(effect->lease.lease);
    if (lease == NULL) {
        return; /* an agent spoke of one that never was */
    }
    if (effect->type == EFFECT_LEASE_RENEW) {
        lease->term_end_ns = oracle.log_time_ns + effect->lease.term_ns;
    } else if (lease->provider == effect->account) {
        end_lease(lease);
        lease->trouble_ns = oracle.log_time_ns; /* whatever the reason: perhaps avoided */
    }
}

/* ---------------------------------------------------------------- attempts (P3) */

static struct map_key attempt_key(uint64_t lease, uint32_t index, uint32_t number)
{
    return map_key_of(&lease, sizeof lease, (uint64_t)index << 32 | number);
}

static void on_dispatch(const struct exchange_effect *effect)
{
    const struct exchange_work *work = &effect->work;
    struct map_key key = attempt_key(work->lease, work->index, work->attempt);
    const struct seen_lease *lease = lease_of(work->lease);
    if (lease == NULL || lease->has_ended || lease->provider != effect->account) {
        sim_fail("command %" PRIu64 " dispatches on lease %" PRIu64 ", which does not stand",
                 oracle.command, work->lease);
    }
    if (map_get(&oracle.attempts.map, &key, NULL)) {
        return; /* said again, to an agent that forgot */
    }
    uint32_t place = PUT(oracle.attempts);
    oracle.attempts.items[place] =
        (struct seen_attempt){.lease = (uint32_t)(lease - oracle.leases.items),
                              .index = work->index,
                              .number = work->attempt,
                              .lane = work->lane,
                              .dispatched_ns = oracle.log_time_ns};
    map_put(&oracle.attempts.map, &key, place);
}

static void check_charge(struct seen_lease *lease, const struct ledger_record *record)
{
    struct seen_job *job = &oracle.jobs.items[lease->job];
    lease->paid_ns += record->paid_ns;
    __extension__ typedef __int128 wide;
    int64_t total = (int64_t)((wide)lease->price * lease->paid_ns / HOUR_NS);
    if (record->charge_micro != total - lease->charged) {
        sim_fail("command %" PRIu64 ": charged %" PRId64 ", %" PRId64 " is right", oracle.command,
                 record->charge_micro, total - lease->charged);
    }
    lease->charged = total;
    job->charged += record->charge_micro;
    if (job->charged > job->budget) {
        sim_fail("command %" PRIu64 ": a job is over its budget", oracle.command);
    }
    int64_t until_ns =
        oracle.log_time_ns < lease->term_end_ns ? oracle.log_time_ns : lease->term_end_ns;
    if (lease->paid_ns > (until_ns - lease->granted_ns) * lease->slots) {
        sim_fail("command %" PRIu64 ": more time is paid than lease %" PRIu64 " has stood",
                 oracle.command, lease->id);
    }
}

static void on_result(const struct exchange_command *command, const struct ledger_record *record)
{
    struct map_key key = attempt_key(record->lease, record->index, record->attempt);
    uint32_t place;
    oracle.counts.results++;
    if (!map_get(&oracle.attempts.map, &key, &place)) {
        sim_fail("command %" PRIu64 ": a result of an attempt that was never made", oracle.command);
    }
    struct seen_attempt *attempt = &oracle.attempts.items[place];
    struct seen_lease *lease = &oracle.leases.items[attempt->lease];
    if (attempt->is_decided) {
        sim_fail("command %" PRIu64 ": attempt %u of subtask %u is decided twice", oracle.command,
                 record->attempt, record->index);
    }
    attempt->is_decided = true;
    if (command->type != EXCHANGE_RESULTS || command->account != lease->provider) {
        sim_fail("command %" PRIu64 ": a result from somebody else", oracle.command);
    }
    if (record->status == ATTEMPT_LATE || record->status == ATTEMPT_FAILED_UNPAID) {
        oracle.counts.late += record->status == ATTEMPT_LATE;
        lease->trouble_ns = oracle.log_time_ns;
        if (record->charge_micro != 0 || record->paid_ns != 0) {
            sim_fail("command %" PRIu64 ": paid for what is not to be paid", oracle.command);
        }
        return;
    }
    if (lease->has_ended || oracle.log_time_ns > lease->term_end_ns + GRACE_NS) {
        sim_fail("command %" PRIu64 ": work of a lease that is over is taken", oracle.command);
    }
    check_charge(lease, record);
    oracle.counts.paid++;
    if (record->status == ATTEMPT_ACCEPTED) {
        struct map_key subtask = map_key_of(&record->job, sizeof record->job, record->index);
        if (map_get(&oracle.accepted_subtasks, &subtask, NULL)) {
            sim_fail("command %" PRIu64 ": subtask %u is accepted twice", oracle.command,
                     record->index);
        }
        map_put(&oracle.accepted_subtasks, &subtask, 0);
        oracle.jobs.items[lease->job].accepted++;
    }
}

static void on_settled(const struct ledger_record *record)
{
    struct seen_job *job = job_of(&record->job);
    oracle.counts.settled++;
    if (job->is_settled) {
        sim_fail("command %" PRIu64 ": a job ends twice", oracle.command);
    }
    job->is_settled = true;
    if (record->charge_micro != job->charged || record->accepted != job->accepted ||
        record->accepted + record->failed + record->cancelled != job->subtasks) {
        sim_fail("command %" PRIu64 ": the settlement does not say what happened", oracle.command);
    }
}

/* ---------------------------------------------------------------- one command */

static void on_record(const struct exchange_command *command, const struct ledger_record *record)
{
    static const char *const kinds[] = {
        "",    "account", "transfer", "hold",   "capture", "release", "expire",  "fee",
        "job", "ask",     "bid",      "cancel", "fill",    "result",  "settled", "flag"};
    trace("  %s: job %02x%02x, lease %" PRIu64
          ", subtask %u.%u, status %u, outcome %u, price %" PRId64 ", slots %u, amount %" PRId64,
          kinds[record->kind], record->job.bytes[0], record->job.bytes[1], record->lease,
          record->index, record->attempt, record->status, record->outcome, record->price_micro,
          record->slots, record->amount_micro);
    move_money(record);
    switch (record->kind) {
    case LEDGER_JOB:
        on_job(command, record);
        break;
    case LEDGER_BID:
        on_bid(record);
        break;
    case LEDGER_ASK:
        on_ask(command, record);
        break;
    case LEDGER_CANCEL:
        on_cancel(record);
        break;
    case LEDGER_FILL:
        on_fill(record);
        break;
    case LEDGER_RESULT:
        on_result(command, record);
        break;
    case LEDGER_SETTLED:
        on_settled(record);
        break;
    case LEDGER_ACCOUNT:
    case LEDGER_TRANSFER:
    case LEDGER_HOLD:
    case LEDGER_CAPTURE:
    case LEDGER_RELEASE:
    case LEDGER_EXPIRE:
    case LEDGER_FEE:
    case LEDGER_FLAG:
        break;
    }
}

static void on_accept(const struct exchange_effect *effect, const struct exchange_command *command)
{
    struct map_key key = map_key_of(&effect->id, sizeof effect->id, command->account);
    uint32_t first;
    bool known = map_get(&oracle.accepted, &key, &first);
    if (command->type == EXCHANGE_STATEMENT || command->type == EXCHANGE_RESULTS) {
        return; /* safe to repeat by themselves */
    }
    if (known != effect->repeated) {
        sim_fail("command %" PRIu64 ": the same id is %s", oracle.command,
                 known ? "accepted twice" : "called a repetition, and is none");
    }
    if (known && effect->index != first) {
        sim_fail("command %" PRIu64 ": a repetition is answered with command %" PRIu64
                 ", the first was %u",
                 oracle.command, effect->index, first);
    }
    oracle.counts.repeated += known;
    oracle.counts.accepted++;
    if (!known) {
        map_put(&oracle.accepted, &key, (uint32_t)effect->index);
    }
}

static void on_effects(const struct exchange_command *command)
{
    if (command->type == EXCHANGE_GOODBYE) {
        for (uint32_t i = 0; i < oracle.leases.count; i++) {
            if (oracle.leases.items[i].provider == command->provider) {
                end_lease(&oracle.leases.items[i]);
            }
        }
    }
    for (size_t i = 0; i < oracle.effects.count; i++) {
        const struct exchange_effect *effect = &oracle.effects.items[i];
        switch (effect->type) {
        case EFFECT_ACCEPT:
            on_accept(effect, command);
            if (command->type == EXCHANGE_ADVERTISE && !effect->repeated) {
                on_advertise(command);
            }
            break;
        case EFFECT_REJECT:
            oracle.counts.rejected++;
            break;
        case EFFECT_LEDGER:
            on_record(command, &effect->ledger);
            break;
        case EFFECT_LEASE_RENEW:
        case EFFECT_LEASE_END:
            on_lease_effect(effect);
            break;
        case EFFECT_DISPATCH:
            on_dispatch(effect);
            break;
        case EFFECT_LEASE_GRANT:
        case EFFECT_WITHDRAW:
        case EFFECT_ACCOUNT:
        case EFFECT_JOB:
            break;
        }
    }
}

static void check_state(void)
{
    if (oracle.command >= oracle.states_capacity) {
        oracle.states_capacity = oracle.states_capacity == 0 ? 4096 : 2 * oracle.states_capacity;
        oracle.states = sim_grow(oracle.states, oracle.states_capacity * sizeof *oracle.states);
    }
    struct hash32 state = exchange_state_hash(oracle.exchange);
    oracle.states[oracle.command] = state;
    if (oracle.command % WALK_EVERY == 0) {
        struct hash32 walked = exchange_state_hash_walk(oracle.exchange);
        if (!hash32_equal(&state, &walked)) {
            sim_fail("command %" PRIu64 ": the incremental hash differs from the walk",
                     oracle.command);
        }
    }
}

static const char *command_name(const struct entry_command *entry)
{
    static const char *const own[] = {
        [ENTRY_GENESIS] = "genesis",   [ENTRY_TICK] = "tick",       [ENTRY_SUSPECT] = "suspect",
        [ENTRY_RETURNED] = "returned", [ENTRY_GOODBYE] = "goodbye", [ENTRY_LIMITS] = "limits"};
    struct envelope envelope;
    bool is_message = entry->kind == ENTRY_MESSAGE &&
                      envelope_read(entry->payload, entry->payload_length, LIMIT_MESSAGE_BYTES,
                                    &envelope) == ENVELOPE_OK;
    return is_message ? message_name((enum message_type)envelope.type) : own[entry->kind];
}

/* D4: log time goes on from the last command, whoever leads, at the pace of a monotonic clock, give or take
 * one in a hundred. A wall clock that jumps moves it no further. */
static void check_log_time(const struct entry_command *entry)
{
    if (entry->kind == ENTRY_GENESIS) {
        oracle.began_ns = world.now_ns;
        oracle.began_log_ns = entry->log_time_ns;
    }
    int64_t passed_ns = world.now_ns - oracle.began_ns;
    int64_t most_ns = oracle.began_log_ns + passed_ns + passed_ns / 100 + SIM_S;
    if (entry->log_time_ns < oracle.log_time_ns) {
        sim_fail("command %" PRIu64 ": log time goes back", oracle.command + 1);
    }
    if (entry->log_time_ns > most_ns) {
        sim_fail("command %" PRIu64 ": log time is %" PRId64 " ms ahead of time",
                 oracle.command + 1, (entry->log_time_ns - most_ns) / SIM_MS);
    }
}

static void apply(const struct entry_command *entry)
{
    struct translation translation = {0};
    if (entry->kind == ENTRY_MESSAGE) {
        check_genuine(entry);
    }
    if (!translate_entry(entry, oracle.command + 1, &oracle.cluster, &translation)) {
        sim_fail("command %" PRIu64 " cannot be read back", oracle.command + 1);
    }
    check_log_time(entry);
    trace("command %" PRIu64 " of account %d: %s", oracle.command + 1, (int)entry->account,
          command_name(entry));
    exchange_effects_clear(&oracle.effects);
    if (exchange_step(oracle.exchange, &translation.command, &oracle.effects) != EXCHANGE_OK) {
        sim_fail("command %" PRIu64 " cannot be applied", oracle.command + 1);
    }
    oracle.command++;
    oracle.log_time_ns = entry->log_time_ns;
    if (entry->kind == ENTRY_GENESIS) {
        oracle.cluster = exchange_cluster(oracle.exchange);
    }
    on_effects(&translation.command);
    check_money();
    look_at_jobs();
    check_all_bids();
    check_at_rest();
    check_state();
    translation_fini(&translation);
}

static void keep_entry(const struct journal_entry *entry)
{
    if (entry->index >= oracle.entries_capacity) {
        oracle.entries_capacity = oracle.entries_capacity == 0 ? 1024 : 2 * oracle.entries_capacity;
        oracle.entries = sim_grow(oracle.entries, oracle.entries_capacity * sizeof *oracle.entries);
    }
    uint8_t *bytes = sim_alloc(entry->length);
    memcpy(bytes, entry->bytes, entry->length);
    oracle.entries[entry->index].bytes = bytes;
    oracle.entries[entry->index].length = entry->length;
}

static void take_entry(const struct journal_entry *entry)
{
    struct entry_head head;
    struct entry_command command;
    size_t position = 0;
    if (!entry_read_head(entry->bytes, entry->length, &head) ||
        !hash32_equal(&head.previous, &oracle.chain) || head.index != oracle.entry + 1 ||
        head.first_command != oracle.command + 1) {
        sim_fail("entry %" PRIu64 " does not follow the one before", oracle.entry + 1);
    }
    while (entry_next(entry->bytes, entry->length, &position, &command)) {
        apply(&command);
    }
    oracle.entry++;
    oracle.chain = sha256_of(entry->bytes, entry->length);
    keep_entry(entry);
    if (oracle.entry % SNAPSHOT_EVERY == SNAPSHOT_EVERY / 2) {
        free(oracle.snapshot);
        oracle.snapshot = exchange_save(oracle.exchange, &oracle.snapshot_length);
        oracle.snapshot_entry = oracle.entry;
    }
}

void oracle_follow(void)
{
    struct process *before = process_enter(NULL);
    while (journal_log_last(oracle.log) > oracle.entry) {
        struct journal_entry entry;
        enum journal_status status = journal_next(oracle.journal, oracle.entry + 1, &entry, 0);
        if (status == JOURNAL_OK) {
            take_entry(&entry);
        } else if (status != JOURNAL_UNAVAILABLE) {
            sim_fail("the log cannot be read: %s", journal_status_text(status));
        }
    }
    process_leave(before);
}

/* ---------------------------------------------------------------- what brokers say and are */

void oracle_compare(uint64_t command, const struct hash32 *state, const char *what)
{
    oracle_follow();
    if (command > oracle.command) {
        sim_fail("a broker is at command %" PRIu64 ", the log at %" PRIu64, command,
                 oracle.command);
    }
    if (command > 0 && !hash32_equal(&oracle.states[command], state)) {
        sim_fail("the %s state at command %" PRIu64 " differs from the reference", what, command);
    }
}

static void check_accepted(const struct envelope *envelope, const Bourse__V1__Accepted *body)
{
    if (body->index > oracle.command) {
        sim_fail("command %" PRIu64 " is called accepted, the log ends at %" PRIu64, body->index,
                 oracle.command);
    }
    (void)envelope;
}

static void check_dispatched(uint64_t lease, size_t count, Bourse__V1__Work *const *work)
{
    for (size_t i = 0; i < count; i++) {
        struct map_key key = attempt_key(lease, work[i]->index, work[i]->attempt);
        if (!map_get(&oracle.attempts.map, &key, NULL)) {
            sim_fail("work is sent out that the log does not have: lease %" PRIu64, lease);
        }
    }
}

/* Release after commit (D2): nothing leaves before the log has it. */
void oracle_answers(const struct broker *broker, const uint8_t *bytes, size_t length)
{
    struct process *before = process_enter(NULL);
    struct envelope envelope;
    ProtobufCMessage *body = NULL;
    struct codec_error error = {.field = ""};
    (void)broker;
    oracle_follow();
    if (envelope_read(bytes, length, LIMIT_MESSAGE_BYTES, &envelope) != ENVELOPE_OK) {
        sim_fail("a broker sends what nobody can read");
    }
    if (codec_decode((enum message_type)envelope.type, envelope.body, envelope.body_length, &body,
                     &error) != CODEC_OK) {
        sim_fail("a broker sends a %s that nobody can read: field %s, value %" PRId64,
                 message_name((enum message_type)envelope.type), error.field, error.value);
    }
    if (envelope.type == MESSAGE_ACCEPTED) {
        check_accepted(&envelope, (const void *)body);
    } else if (envelope.type == MESSAGE_LEASE_GRANT) {
        const Bourse__V1__LeaseGrant *grant = (const void *)body;
        if (lease_of(grant->lease) == NULL) {
            sim_fail("lease %" PRIu64 " is told of, and the log does not have it", grant->lease);
        }
    } else if (envelope.type == MESSAGE_DISPATCH) {
        const Bourse__V1__Dispatch *dispatch = (const void *)body;
        check_dispatched(dispatch->lease, dispatch->n_work, dispatch->work);
    } else if (envelope.type == MESSAGE_JOBS_REPLY) {
        const Bourse__V1__JobsReply *reply = (const void *)body;
        if (reply->index > oracle.command) {
            sim_fail("a read shows command %" PRIu64 ", the log ends at %" PRIu64, reply->index,
                     oracle.command);
        }
    } else if (envelope.type == MESSAGE_JOB_EVENT) {
        const Bourse__V1__JobEvent *event = (const void *)body;
        if (event->job->index > oracle.command) {
            sim_fail("an event shows command %" PRIu64 ", the log ends at %" PRIu64,
                     event->job->index, oracle.command);
        }
    }
    codec_free(&body);
    process_leave(before);
}

void oracle_delivers(const struct peer *peer, const uint8_t *bytes, size_t length)
{
    (void)peer;
    (void)bytes;
    (void)length;
}

/* ---------------------------------------------------------------- life, reads */

void oracle_start(struct journal_log *log, const struct exchange_limits *limits)
{
    memset(&oracle, 0, sizeof oracle);
    oracle.log = log;
    oracle.journal = journal_memory_open(log);
    oracle.limits = limits;
    oracle.exchange = exchange_create(limits);
    assert(oracle.journal != NULL && oracle.exchange != NULL);
}

void oracle_knows(uint32_t account, const struct key32 *transport)
{
    assert(account < ACCOUNTS_HERE);
    oracle.transports[account] = *transport;
}

void oracle_end(void)
{
    journal_destroy(&oracle.journal);
    exchange_destroy(&oracle.exchange);
    exchange_effects_fini(&oracle.effects);
    free(oracle.snapshot);
    for (uint64_t i = 1; i <= oracle.entry; i++) {
        sim_free(oracle.entries[i].bytes);
    }
    sim_free(oracle.entries);
    sim_free(oracle.states);
    struct map *maps[] = {&oracle.jobs.map,    &oracle.leases.map,       &oracle.attempts.map,
                          &oracle.devices.map, &oracle.asks.map,         &oracle.accepted,
                          &oracle.genuine,     &oracle.accepted_subtasks};
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        map_fini(maps[i]);
    }
    sim_free(oracle.jobs.items);
    sim_free(oracle.leases.items);
    sim_free(oracle.attempts.items);
    sim_free(oracle.devices.items);
    sim_free(oracle.asks.items);
}

uint64_t oracle_commands(void)
{
    return oracle.command;
}

uint64_t oracle_entries(void)
{
    return oracle.entry;
}

const struct exchange *oracle_exchange(void)
{
    return oracle.exchange;
}

bool oracle_accepted(uint32_t account, const struct id128 *id, uint64_t *ret_index)
{
    struct map_key key = map_key_of(id, sizeof *id, account);
    uint32_t index = 0;
    bool known = map_get(&oracle.accepted, &key, &index);
    *ret_index = index;
    return known;
}

bool oracle_some_attempt(struct id128 *ret_job, uint64_t *ret_lease, uint32_t *ret_index,
                         uint32_t *ret_attempt)
{
    if (oracle.attempts.count == 0) {
        return false;
    }
    uint32_t recent = oracle.attempts.count < 200 ? oracle.attempts.count : 200;
    const struct seen_attempt *attempt =
        &oracle.attempts.items[oracle.attempts.count - 1 - draw(DICE_WORK, recent)];
    const struct seen_lease *lease = &oracle.leases.items[attempt->lease];
    *ret_job = oracle.jobs.items[lease->job].id;
    *ret_lease = lease->id;
    *ret_index = attempt->index;
    *ret_attempt = attempt->number;
    return true;
}

struct oracle_counts oracle_counts(void)
{
    return oracle.counts;
}

/* ---------------------------------------------------------------- at the end */

static void replay_from(struct exchange *exchange, uint64_t first, const char *what)
{
    struct problem problem = {.text = ""};
    for (uint64_t i = first; i <= oracle.entry; i++) {
        if (!replay_entry(exchange, oracle.entries[i].bytes, oracle.entries[i].length, NULL, NULL,
                          &problem)) {
            sim_fail("%s: %s", what, problem.text);
        }
    }
    struct hash32 state = exchange_state_hash(exchange);
    oracle_compare(oracle.command, &state, what);
    exchange_destroy(&exchange);
}

void oracle_replay_all(void)
{
    struct process *before = process_enter(NULL);
    replay_from(exchange_create(oracle.limits), 1, "replayed from zero");
    if (oracle.snapshot != NULL) {
        struct exchange *exchange =
            exchange_load(oracle.limits, oracle.snapshot, oracle.snapshot_length);
        if (exchange == NULL) {
            sim_fail("the snapshot after entry %" PRIu64 " does not load", oracle.snapshot_entry);
        }
        replay_from(exchange, oracle.snapshot_entry + 1, "snapshot and tail");
    }
    process_leave(before);
}

/* Whether the reason that the exchange gives for an open job is true, by our own books. */
static bool is_true(const struct seen_job *job, uint32_t reason)
{
    bool fits = false;
    bool asks = false;
    bool affordable = false;
    for (uint32_t i = 0; i < oracle.devices.count; i++) {
        const struct seen_device *device = &oracle.devices.items[i];
        if (!device->is_advertised || device->slots < job->width ||
            !requirement_satisfied(&job->needs, device->attributes, device->attribute_count)) {
            continue;
        }
        fits = true;
        const struct seen_ask *ask = device->ask == 0 ? NULL : &oracle.asks.items[device->ask - 1];
        if (ask == NULL || ask->slots < job->width ||
            (ask->max_term_ns != 0 && ask->max_term_ns < job->term_ns)) {
            continue;
        }
        asks = true;
        affordable = affordable || ask->price <= job->limit;
    }
    switch ((enum job_reason)reason) {
    case JOB_REASON_NO_DEVICE:
        return !fits;
    case JOB_REASON_NO_ASK:
        return fits && !asks;
    case JOB_REASON_PRICE:
        return asks && !affordable;
    case JOB_REASON_BUDGET:
        return affordable;
    case JOB_REASON_NONE:
    case JOB_REASON_BUSY:
    case JOB_REASON_HALTED:
    case JOB_REASON_SUBTASKS_FAILED:
    case JOB_REASON_ERROR_LIMIT:
    case JOB_REASON_CANCELLED:
    case JOB_REASON_RUNNING:
    case JOB_REASON_PROVIDERS_FAILED:
        break;
    }
    return false; /* in a calm market none of these lasts */
}

size_t oracle_stuck_jobs(void)
{
    size_t stuck = 0;
    for (uint32_t i = 0; i < oracle.jobs.count; i++) {
        const struct seen_job *job = &oracle.jobs.items[i];
        struct exchange_job_row row;
        if (job->is_settled || !exchange_job(oracle.exchange, &job->id, &row)) {
            continue;
        }
        if (!is_true(job, row.reason)) {
            stuck++;
            trace("job %02x%02x is open: reason %u, %u wait, %u run", job->id.bytes[0],
                  job->id.bytes[1], row.reason, row.waiting, row.running);
        }
    }
    return stuck;
}
