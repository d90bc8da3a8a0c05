/* Fills and the leases they are (P13, P14): between orders that match, at a price that is due, by
 * price and time seen from both sides, no slot let twice, nothing left unmatched. */
#include "tests/sim/oracle_models.h"

#include "base/limit.h"
#include "exchange/state/records.h"
#include "exchange/state/table.h"
#include "matching/book.h"

#include <inttypes.h>

__extension__ typedef __int128 wide;
#define AVOIDED_FOR_NS (10 * SIM_S) /* a provider that failed a job gets no new lease of it */

struct seen_lease *oracle_lease_of(uint64_t id)
{
    struct map_key key = map_key_of(&id, sizeof id, 0);
    uint32_t place;
    if (!map_get(&oracle.leases.map, &key, &place)) {
        return NULL;
    }
    return &oracle.leases.items[place];
}

static int64_t rate_on(const struct seen_bid *bid, const struct seen_device *device)
{
    return bid->rate == RATE_NONE ? 1
                                  : rate_of(bid->rate, device->attributes, device->attribute_count);
}

bool oracle_match(const struct seen_bid *bid, const struct seen_ask *ask)
{
    const struct seen_device *device = &oracle.devices.items[ask->device];
    const struct seen_job *job = &oracle.jobs.items[bid->job];
    return ask->stands && (!bid->is_checks || oracle_is_referee(device->provider)) &&
           device->provider != job->owner && oracle_is_for(ask, job->owner) &&
           (!ask->terms.is_interruptible || job->interrupted < job->interruptions) &&
           rate_on(bid, device) > 0 && ask->price <= oracle_limit_in(bid, device) &&
           (ask->max_term_ns == 0 || bid->term_ns <= ask->max_term_ns) &&
           requirement_satisfied(&bid->needs, device->attributes, device->attribute_count);
}

bool oracle_could_fill(const struct seen_bid *bid, const struct seen_ask *ask)
{
    const struct seen_device *device = &oracle.devices.items[ask->device];
    const uint32_t offered = ask->slots < device->slots ? ask->slots : device->slots;
    const uint32_t free = offered > device->leased ? offered - device->leased : 0;
    return free >= bid->width && oracle_is_open(ask) && oracle_match(bid, ask);
}

/* A provider that failed the job of late may be passed over. */
static bool may_avoid(uint32_t job, uint32_t provider)
{
    for (uint32_t i = oracle.leases.count; i-- > 0;) {
        const struct seen_lease *lease = &oracle.leases.items[i];
        if (oracle.bids.items[lease->bid].job == job && lease->provider == provider &&
            lease->trouble_ns != 0 && oracle.log_time_ns <= lease->trouble_ns + AVOIDED_FOR_NS) {
            return true;
        }
    }
    return false;
}

/* A job with a deadline may pass over a device that is too slow, once something is known of it. */
static bool may_be_late(const struct seen_bid *bid)
{
    const struct seen_job *job = &oracle.jobs.items[bid->job];
    return job->deadline_ns != 0 && (bid->is_timed || job->is_stated);
}

bool oracle_may_pass_over(const struct seen_bid *bid, uint32_t provider)
{
    return may_avoid(bid->job, provider) || oracle_may_not_check(bid, provider) || may_be_late(bid);
}

static bool has_named_limit(const struct seen_bid *bid)
{
    return limit_is_set(bid->cap) && bid->limit >= bid->cap;
}

static bool pays_clearing_price(const struct seen_bid *bid)
{
    const enum exchange_order_type type = oracle.jobs.items[bid->job].type;
    return !has_named_limit(bid) || (type != EXCHANGE_LIMIT && type != EXCHANGE_POST_ONLY);
}

/* Returns true when the other's limit may be the clearing price of a fill of the bid: somebody else
 * named the limit, and it is above the ask's price. */
static bool may_set_price(const struct seen_bid *other, const struct seen_bid *bid,
                          const struct seen_ask *ask)
{
    const struct seen_device *device = &oracle.devices.items[ask->device];
    const uint32_t owner = oracle.jobs.items[other->job].owner;
    return has_named_limit(other) && !other->is_cancelled &&
           owner != oracle.jobs.items[bid->job].owner && owner != device->provider &&
           oracle_limit_in(other, device) > ask->price;
}

static int64_t lesser(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

int64_t oracle_price_most(const struct seen_bid *bid, const struct seen_ask *ask)
{
    const struct seen_device *device = &oracle.devices.items[ask->device];
    const int64_t limit = oracle_limit_in(bid, device);
    int64_t most = ask->price;
    if (ask->price == 0) {
        return 0;
    }
    if (!pays_clearing_price(bid)) {
        return ask->sequence < bid->sequence ? ask->price : limit;
    }
    for (uint32_t i = 0; i < oracle.bids.count; i++) {
        const struct seen_bid *other = &oracle.bids.items[i];
        if (may_set_price(other, bid, ask) && oracle_limit_in(other, device) > most) {
            most = oracle_limit_in(other, device);
        }
    }
    return lesser(most, limit);
}

/* The oracle does not know which bids the ask would have left unfilled in the midst of the command:
 * tests/property/prop_orders.c does. */
static bool is_due_price(const struct seen_bid *bid, const struct seen_ask *ask, int64_t price)
{
    const struct seen_device *device = &oracle.devices.items[ask->device];
    if (ask->price == 0 || !pays_clearing_price(bid)) {
        return price == oracle_price_most(bid, ask);
    }
    bool is_due = price == ask->price;
    for (uint32_t i = 0; !is_due && i < oracle.bids.count; i++) {
        const struct seen_bid *other = &oracle.bids.items[i];
        is_due = may_set_price(other, bid, ask) &&
                 price == lesser(oracle_limit_in(other, device), oracle_limit_in(bid, device));
    }
    return is_due;
}

/* The better ask has the better price (by value: for a unit of work), then the earlier time. */
static bool is_better_ask(const struct seen_bid *bid, const struct seen_ask *ask,
                          const struct seen_ask *than)
{
    const wide price = (wide)ask->price * rate_on(bid, &oracle.devices.items[than->device]);
    const wide other = (wide)than->price * rate_on(bid, &oracle.devices.items[ask->device]);
    return price < other || (price == other && ask->sequence < than->sequence);
}

/* The better bid gives more for a slot-hour of the device, before rounding; then the earlier one is
 * better. */
static bool is_better_bid(const struct seen_device *device, const struct seen_bid *bid,
                          const struct seen_bid *than)
{
    const wide unit = RATE_UNIT;
    const wide worth =
        (wide)bid->limit * (bid->rate == RATE_NONE ? unit : (wide)rate_on(bid, device));
    const wide other =
        (wide)than->limit * (than->rate == RATE_NONE ? unit : (wide)rate_on(than, device));
    return worth > other || (worth == other && bid->sequence < than->sequence);
}

/* Price first, then time: no ask that would have filled was passed over for a worse one. */
static void check_priority(const struct seen_bid *bid, const struct seen_ask *chosen, int64_t price)
{
    const struct seen_job *job = &oracle.jobs.items[bid->job];
    for (uint32_t i = 0; i < oracle.devices.count; i++) {
        if (oracle.devices.items[i].ask == 0) {
            continue;
        }
        const struct seen_ask *other = &oracle.asks.items[oracle.devices.items[i].ask - 1];
        /* A job that could pay for the chosen ask could pay for another at no higher price. */
        bool is_payable = oracle_price_most(bid, other) <= price;
        if (other != chosen && is_payable && oracle_could_fill(bid, other) &&
            is_better_ask(bid, other, chosen) &&
            !oracle_may_pass_over(bid, oracle.devices.items[i].provider)) {
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
static int64_t term_costs(const struct seen_bid *bid, int64_t price)
{
    return (int64_t)(((wide)price * bid->width * bid->term_ns + HOUR_NS - 1) / HOUR_NS);
}

/* Returns true when the part would take one more lane at this price, beyond doubt. */
static bool surely_wants(const struct seen_bid *bid, int64_t unspent,
                         const struct exchange_part_row *part, uint32_t lanes, int64_t price)
{
    uint32_t most = bid->at_most == 0 ? UINT32_MAX : bid->at_most / bid->width;
    uint32_t useful = part->waiting + part->running;
    return part->waiting > 0 && lanes < (useful < most ? useful : most) &&
           unspent >= term_costs(bid, price);
}

static void look_at_parts(const struct seen_job *job)
{
    struct exchange_part_row rows[PARTS_HERE] = {{0}};
    if (!job->is_settled) {
        (void)exchange_parts(oracle.exchange, &job->id, rows, PARTS_HERE);
    }
    for (uint32_t i = 0; i < job->bid_count; i++) {
        struct seen_bid *bid = &oracle.bids.items[job->bids[i]];
        bid->row_before = bid->row;
        bid->row = rows[i];
        bid->lanes_before = bid->lanes_seen;
        bid->lanes_seen = bid->lanes;
    }
}

/* Returns what the job's budget has left for further leases. The record is read, because
 * exchange_job also finds out why the job waits, which takes long. */
static int64_t unspent_of(const struct seen_job *job)
{
    const struct job *record = table_find(&oracle.exchange->jobs, &job->id);
    return record == NULL
               ? 0
               : record->hold.amount_micro - record->hold.captured_micro - record->reserved_micro;
}

void oracle_look_at_jobs(void)
{
    for (uint32_t i = 0; i < oracle.jobs.count; i++) {
        struct seen_job *job = &oracle.jobs.items[i];
        if (job->looks_when_settled == 2) { /* both looks saw nothing left */
            continue;
        }
        job->looks_when_settled += job->is_settled ? 1 : 0;
        job->unspent_before = job->unspent;
        job->unspent = job->is_settled ? 0 : unspent_of(job);
        look_at_parts(job);
    }
}

/* Returns true when the part could buy at all, lane by lane. */
static bool is_buying(const struct seen_bid *bid)
{
    const struct seen_job *job = &oracle.jobs.items[bid->job];
    struct exchange_account_row owner;
    return !job->is_settled && (job->type != EXCHANGE_ALL_OR_NONE || job->whole_at != 0) &&
           !bid->is_cancelled && bid->row.waiting > 0 &&
           exchange_account(oracle.exchange, job->owner, &owner) && !owner.frozen;
}

static bool wants_now(const struct seen_bid *bid, int64_t price)
{
    const struct seen_job *job = &oracle.jobs.items[bid->job];
    return surely_wants(bid, job->unspent, &bid->row, bid->lanes, price);
}

static bool wanted_before(const struct seen_bid *bid, int64_t price)
{
    const struct seen_job *job = &oracle.jobs.items[bid->job];
    return surely_wants(bid, job->unspent_before, &bid->row_before, bid->lanes_before, price);
}

/* Returns true when checks had their turn in this command and gave it back: when their lanes came
 * to choose, others had taken all that this referee may judge. */
static bool gave_back(const struct seen_bid *bid)
{
    for (uint32_t i = oracle.first_new_lease; bid->is_checks && i < oracle.leases.count; i++) {
        const struct seen_lease *lease = &oracle.leases.items[i];
        if (lease->has_ended && &oracle.bids.items[lease->bid] == bid) {
            return true;
        }
    }
    return false;
}

static const struct seen_lease *former_of(const struct seen_lease *lease)
{
    return &oracle.leases.items[lease->former - 1];
}

static uint32_t owner_of(const struct seen_lease *lease)
{
    return oracle.jobs.items[oracle.bids.items[lease->bid].job].owner;
}

/* The other side of priority: no part that wanted before this command, and still does, would have
 * got the slots of this fill before the one that got them. */
static void check_bids(const struct seen_lease *lease, const struct seen_ask *ask)
{
    const struct seen_bid *chosen = &oracle.bids.items[lease->bid];
    const struct seen_device *device = &oracle.devices.items[lease->device];
    if (ask->price == 0) {
        return; /* goes by another rank than the limit: tests/property/prop_donations.c */
    }
    for (uint32_t i = 0; i < oracle.bids.count; i++) {
        const struct seen_bid *other = &oracle.bids.items[i];
        if (other == chosen || !is_buying(other) || other->width > lease->slots ||
            !oracle_match(other, ask) || !is_better_bid(device, other, chosen)) {
            continue;
        }
        const int64_t price = lease->former != 0 ? lease->price : oracle_price_most(other, ask);
        /* Nobody takes a lease from himself, and no post-only bid takes one at all. */
        const bool may_not_take =
            lease->former != 0 &&
            (owner_of(former_of(lease)) == oracle.jobs.items[other->job].owner ||
             oracle.jobs.items[other->job].type == EXCHANGE_POST_ONLY);
        if (!may_not_take && wants_now(other, price) && wanted_before(other, price) &&
            !oracle_may_pass_over(other, lease->provider) && !gave_back(other)) {
            sim_fail("command %" PRIu64 ": job %02x%02x, limit %" PRId64 ", got lease %" PRIu64
                     ", what job %02x%02x, limit %" PRId64 ", waited for",
                     oracle.command, chosen->id.bytes[0], chosen->id.bytes[1], chosen->limit,
                     lease->id, other->id.bytes[0], other->id.bytes[1], other->limit);
        }
    }
}

void oracle_check_all_bids(void)
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
void oracle_check_at_rest(void)
{
    if (exchange_halted(oracle.exchange) || oracle.leases_standing >= oracle.limits->leases) {
        return;
    }
    for (uint32_t i = 0; i < oracle.bids.count; i++) {
        const struct seen_bid *bid = &oracle.bids.items[i];
        if (!is_buying(bid)) {
            continue;
        }
        for (uint32_t k = 0; k < oracle.devices.count; k++) {
            const struct seen_device *device = &oracle.devices.items[k];
            const struct seen_ask *ask =
                device->ask == 0 ? NULL : &oracle.asks.items[device->ask - 1];
            if (ask != NULL && oracle_could_fill(bid, ask) &&
                wants_now(bid, oracle_price_most(bid, ask)) &&
                !oracle_may_pass_over(bid, device->provider)) {
                sim_fail("command %" PRIu64 ": job %02x%02x, limit %" PRId64
                         ", waits beside the free ask of account %u at %" PRId64,
                         oracle.command, bid->id.bytes[0], bid->id.bytes[1], bid->limit,
                         device->provider, ask->price);
            }
        }
    }
}

static void check_plain_fill(const struct seen_bid *bid, const struct seen_ask *ask,
                             const struct ledger_record *record)
{
    const struct seen_device *device = &oracle.devices.items[ask->device];
    const int64_t price = record->price_micro;
    if (!oracle_could_fill(bid, ask)) {
        sim_fail("command %" PRIu64 ": a fill between orders that do not match", oracle.command);
    }
    if (!is_due_price(bid, ask, price)) {
        sim_fail("command %" PRIu64 ": a fill at %" PRId64 " is not due; at most %" PRId64 " is",
                 oracle.command, price, oracle_price_most(bid, ask));
    }
    if (device->leased + record->slots > device->slots) {
        sim_fail("command %" PRIu64 ": %u slots are let, %u more, of %u", oracle.command,
                 device->leased, record->slots, device->slots);
    }
    if (oracle.jobs.items[bid->job].whole_at != oracle.command) {
        check_priority(bid, ask,
                       price); /* filled whole, it leaves alone what a better bid is to have */
    }
    oracle.counts.by_value += bid->rate != RATE_NONE;
    oracle.counts.gifts += price == 0;
}

void oracle_on_fill(const struct ledger_record *record, const struct exchange_effect *next)
{
    struct seen_job *job = oracle_job_of(&record->job);
    struct seen_bid *bid = oracle_bid_of(&record->bid);
    if (bid == NULL || &oracle.jobs.items[bid->job] != job) {
        sim_fail("command %" PRIu64 " fills a bid that is not its job's", oracle.command);
    }
    struct map_key key = map_key_of(&record->order, sizeof record->order, 0);
    uint32_t ask_place;
    if (!map_get(&oracle.asks.map, &key, &ask_place)) {
        sim_fail("command %" PRIu64 " fills an ask that nobody placed", oracle.command);
    }
    const struct seen_ask *ask = &oracle.asks.items[ask_place];
    struct seen_device *device = &oracle.devices.items[ask->device];
    oracle.counts.fills++;
    if (job->is_settled || bid->is_cancelled) {
        sim_fail("command %" PRIu64 " fills the bid of a job that has ended", oracle.command);
    }
    if ((job->good_till_ns != 0 && oracle.log_time_ns >= job->good_till_ns) ||
        (job->deadline_ns != 0 && oracle.log_time_ns >= job->deadline_ns)) {
        sim_fail("command %" PRIu64 " fills a bid whose time is up", oracle.command);
    }
    struct seen_lease *former = oracle_taken_by(record, next);
    oracle_check_fill_of_type(job, bid, former == NULL ? ask : NULL, record->slots / record->width);
    if (former != NULL) {
        oracle_check_taken(bid, ask, record, former);
        former->is_taken = true;
    } else {
        check_plain_fill(bid, ask, record);
        device->leased += record->slots;
    }
    bid->lanes += record->slots / record->width;
    oracle.leases_standing++;
    const uint32_t former_place = former == NULL ? 0 : 1 + (uint32_t)(former - oracle.leases.items);
    uint32_t place = PUT(oracle.leases);
    oracle.leases.items[place] = (struct seen_lease){
        .id = record->lease,
        .bid = (uint32_t)(bid - oracle.bids.items),
        .provider = device->provider,
        .device = (uint32_t)(device - oracle.devices.items),
        .slots = record->slots,
        .width = record->width,
        .price = record->price_micro,
        .granted_ns = oracle.log_time_ns,
        .term_end_ns = oracle.log_time_ns + record->term_ns,
        .terms = ask->terms,
        .is_promised = former != NULL,
        .former = former_place,
    };
    key = map_key_of(&record->lease, sizeof record->lease, 0);
    if (map_get(&oracle.leases.map, &key, NULL)) {
        sim_fail("lease %" PRIu64 " is granted twice", record->lease);
    }
    map_put(&oracle.leases.map, &key, place);
}

void oracle_end_lease(struct seen_lease *lease)
{
    if (!lease->has_ended) {
        lease->has_ended = true;
        oracle.bids.items[lease->bid].lanes -= lease->slots / lease->width;
        oracle.leases_standing--;
        oracle.devices.items[lease->device].freed_at = oracle.command;
        oracle.devices.items[lease->device].leased -= lease->is_promised ? 0 : lease->slots;
    }
}

/* While its ask stands, is open and for its owner, and its job would still pay as much. */
static void check_renewal(const struct seen_lease *lease)
{
    const struct seen_device *device = &oracle.devices.items[lease->device];
    const struct seen_ask *ask = device->ask == 0 ? NULL : &oracle.asks.items[device->ask - 1];
    if (lease->has_ended || lease->is_promised || lease->is_taken || ask == NULL ||
        !oracle_is_open(ask) || !oracle_is_for(ask, owner_of(lease)) ||
        lease->price > oracle_limit_in(&oracle.bids.items[lease->bid], device)) {
        sim_fail("command %" PRIu64 ": lease %" PRIu64 " is renewed, and may not be",
                 oracle.command, lease->id);
    }
    oracle.counts.renewed++;
}

/* No broker ran: log time stood still, and the terms of leases went on. */
void oracle_on_outage(int64_t time_ns)
{
    for (uint32_t i = 0; i < oracle.leases.count; i++) {
        struct seen_lease *lease = &oracle.leases.items[i];
        const int64_t left_ns = lease->term_end_ns - oracle.log_time_ns;
        if (!lease->has_ended && !lease->is_promised && left_ns > 0 && time_ns > 0) {
            const int64_t spent_ns = time_ns < left_ns ? time_ns : left_ns;
            lease->term_end_ns -= spent_ns;
            lease->outage_ns += spent_ns;
            lease->outages_ns += spent_ns;
            oracle.counts.outages++;
        }
    }
}

void oracle_on_lease_effect(const struct exchange_effect *effect)
{
    struct seen_lease *lease = oracle_lease_of(effect->lease.lease);
    if (lease == NULL) {
        return; /* an agent spoke of one that never was */
    }
    if (effect->type == EFFECT_LEASE_RENEW) {
        check_renewal(lease);
        lease->term_end_ns = oracle.log_time_ns + effect->lease.term_ns;
        lease->outage_ns = 0;
    } else if (lease->provider == effect->account) {
        trace("  ends: lease %" PRIu64 ", reason %u", lease->id, effect->lease.reason);
        oracle_check_notice(lease, effect->lease.reason);
        oracle_end_lease(lease);
        oracle_note_trouble(lease, 0); /* whatever the reason: perhaps avoided */
    }
}

void oracle_on_goodbye(uint32_t provider)
{
    oracle.stated_ns[provider] = oracle.log_time_ns;
    for (uint32_t i = 0; i < oracle.leases.count; i++) {
        struct seen_lease *lease = &oracle.leases.items[i];
        if (lease->provider == provider && !lease->has_ended) {
            oracle_end_lease(lease);
            oracle_note_trouble(lease, 0); /* perhaps in the middle of its work */
        }
    }
}
