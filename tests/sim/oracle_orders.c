/* What was asked of the market, as the commands said it: jobs and their bids, devices, asks. And whether what
 * the exchange gives as the reason of an open job is true by these. */
#include "tests/sim/oracle_models.h"

#include "matching/book.h"
#include "protocol/message.h"

#include <inttypes.h>

struct seen_job *oracle_job_of(const struct id128 *id)
{
    struct map_key key = map_key_of(id, sizeof *id, 0);
    uint32_t place;
    if (!map_get(&oracle.jobs.map, &key, &place)) {
        sim_fail("command %" PRIu64 " speaks of a job that nobody submitted", oracle.command);
    }
    return &oracle.jobs.items[place];
}

struct seen_device *oracle_device_of(uint32_t provider, const struct id128 *id, bool make)
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

void oracle_on_job(const struct exchange_command *command, const struct ledger_record *record)
{
    uint32_t place = PUT(oracle.jobs);
    struct seen_job *job = &oracle.jobs.items[place];
    job->id = record->job;
    job->owner = record->debit;
    job->subtasks = record->subtasks;
    job->budget = record->amount_micro;
    job->good_till_ns = command->submit.good_till_ns;
    job->type = command->submit.type;
    if (command->submit.graph != NULL) {
        oracle_keep_graph(job, command->submit.graph);
    }
    struct map_key key = map_key_of(&job->id, sizeof job->id, 0);
    map_put(&oracle.jobs.map, &key, place);
}

struct seen_bid *oracle_bid_of(const struct id128 *id)
{
    struct map_key key = map_key_of(id, sizeof *id, 0);
    uint32_t place;
    return map_get(&oracle.bids.map, &key, &place) ? &oracle.bids.items[place] : NULL;
}

static void take_part(struct seen_bid *bid, const struct exchange_part *part)
{
    bid->width = part->slots;
    bid->at_most = part->at_most;
    bid->term_ns = part->term_ns;
    bid->needs = *part->needs;
    bid->end = bid->first + part->subtasks;
}

void oracle_on_hold(const struct exchange_command *command, const struct ledger_record *record)
{
    struct seen_job *job = oracle_job_of(&record->job);
    if (command->type == EXCHANGE_REPLACE) {
        if (job->owner != command->account || !command->replace.has_budget ||
            command->replace.budget_micro != job->budget + record->amount_micro) {
            sim_fail("command %" PRIu64 ": a budget that nobody asked for", oracle.command);
        }
        job->budget = command->replace.budget_micro;
    } else if (record->amount_micro != job->budget) {
        sim_fail("command %" PRIu64 ": what is held is not the budget", oracle.command);
    }
}

/* Less at the same price keeps its place; anything else is behind all that was there. */
static void replace_bid(const struct exchange_command *command, const struct ledger_record *record)
{
    const struct exchange_replace *replace = &command->replace;
    struct seen_bid *bid = oracle_bid_of(&record->order);
    const struct seen_job *job = oracle_job_of(&record->job);
    if (bid == NULL || &oracle.jobs.items[bid->job] != job || job->owner != command->account ||
        !id128_equal(&replace->order, &job->id)) {
        sim_fail("command %" PRIu64 " replaces another bid than was asked", oracle.command);
    }
    const bool is_meant =
        replace->part == EXCHANGE_ANY_PART || &oracle.bids.items[job->bids[replace->part]] == bid;
    const uint32_t at_most = is_meant && replace->has_slots ? replace->slots : bid->at_most;
    if (record->slots != (at_most == 0 ? UINT32_MAX : at_most) ||
        (is_meant && replace->has_price && record->price_micro != replace->price_micro)) {
        sim_fail("command %" PRIu64 ": a bid other than was asked", oracle.command);
    }
    const bool is_less = bid->at_most == 0 || (at_most != 0 && at_most <= bid->at_most);
    if (!is_less || record->price_micro != bid->limit) {
        bid->sequence = ++oracle.sequence;
    }
    bid->at_most = at_most;
    bid->limit = record->price_micro;
}

/* They come part by part. */
void oracle_on_bid(const struct exchange_command *command, const struct ledger_record *record)
{
    if (command->type == EXCHANGE_REPLACE) {
        replace_bid(command, record);
        return;
    }
    const struct exchange_submit *submit = &command->submit;
    struct seen_job *job = oracle_job_of(&record->job);
    uint32_t place = PUT(oracle.bids);
    struct seen_bid *bid = &oracle.bids.items[place];
    if (job->bid_count > submit->part_count) {
        sim_fail("command %" PRIu64 ": more bids than parts", oracle.command);
    }
    bid->id = record->order;
    bid->job = (uint32_t)(job - oracle.jobs.items);
    if (job->bid_count == 0) {
        struct exchange_part first = {.subtasks = submit->subtasks,
                                      .needs = submit->needs,
                                      .slots = submit->slots,
                                      .at_most = submit->at_most,
                                      .term_ns = submit->term_ns};
        for (size_t i = 0; i < submit->part_count; i++) {
            first.subtasks -= submit->parts[i].subtasks;
        }
        take_part(bid, &first);
    } else {
        bid->first = oracle.bids.items[job->bids[job->bid_count - 1]].end;
        take_part(bid, &submit->parts[job->bid_count - 1]);
    }
    if (record->width != bid->width) {
        sim_fail("command %" PRIu64 ": a bid of another width than its part's", oracle.command);
    }
    bid->is_checks =
        submit->verify == EXCHANGE_VERIFY_CHEAP && job->bid_count == submit->part_count;
    bid->limit = record->price_micro;
    bid->sequence = ++oracle.sequence;
    job->bids[job->bid_count++] = place;
    struct map_key key = map_key_of(&bid->id, sizeof bid->id, 0);
    if (map_get(&oracle.bids.map, &key, NULL)) {
        sim_fail("command %" PRIu64 ": two bids have one id", oracle.command);
    }
    map_put(&oracle.bids.map, &key, place);
}

void oracle_on_ask(const struct exchange_command *command, const struct ledger_record *record)
{
    struct seen_device *device = oracle_device_of(command->account, &record->device, false);
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

void oracle_on_cancel(const struct ledger_record *record)
{
    struct map_key key = map_key_of(&record->order, sizeof record->order, 0);
    uint32_t place;
    if (map_get(&oracle.asks.map, &key, &place)) {
        struct seen_ask *ask = &oracle.asks.items[place];
        ask->stands = false;
        if (oracle.devices.items[ask->device].ask == place + 1) {
            oracle.devices.items[ask->device].ask = 0;
        }
    } else if (oracle_bid_of(&record->order) != NULL) {
        oracle_bid_of(&record->order)->is_cancelled = true;
    } else {
        sim_fail("command %" PRIu64 " cancels an order that nobody placed", oracle.command);
    }
}

void oracle_on_advertise(const struct exchange_command *command)
{
    for (uint32_t i = 0; i < oracle.devices.count; i++) {
        if (oracle.devices.items[i].provider == command->account) {
            oracle.devices.items[i].is_advertised = false;
        }
    }
    for (size_t i = 0; i < command->advertise.count; i++) {
        const struct exchange_device *given = &command->advertise.devices[i];
        struct seen_device *device = oracle_device_of(command->account, &given->device, true);
        device->slots = given->slots;
        device->is_advertised = true;
        device->attribute_count = given->attribute_count < 8 ? given->attribute_count : 8;
        memcpy(device->attributes, given->attributes,
               device->attribute_count * sizeof *device->attributes);
    }
}

/* Whether the reason that the exchange gives for an open job is true of this part, by our own books. */
static bool is_true_of(const struct seen_bid *bid, uint32_t reason)
{
    bool fits = false;
    bool asks = false;
    bool affordable = false;
    bool is_own = false; /* one fits that may judge nothing of what waits */
    for (uint32_t i = 0; i < oracle.devices.count; i++) {
        const struct seen_device *device = &oracle.devices.items[i];
        if (!device->is_advertised || device->slots < bid->width ||
            (bid->is_checks && !oracle_is_referee(device->provider)) ||
            !requirement_satisfied(&bid->needs, device->attributes, device->attribute_count)) {
            continue;
        }
        if (oracle_made_all(bid, device->provider)) {
            is_own = true;
            continue;
        }
        fits = true;
        const struct seen_ask *ask = device->ask == 0 ? NULL : &oracle.asks.items[device->ask - 1];
        if (ask == NULL || ask->slots < bid->width ||
            (ask->max_term_ns != 0 && ask->max_term_ns < bid->term_ns)) {
            continue;
        }
        asks = true;
        affordable = affordable || ask->price <= bid->limit;
    }
    switch ((enum job_reason)reason) {
    case JOB_REASON_NO_DEVICE:
        return !fits && !is_own;
    case JOB_REASON_REFEREE:
        return !fits && is_own;
    case JOB_REASON_NO_ASK:
        return fits && !asks;
    case JOB_REASON_PRICE:
        return asks && !affordable;
    case JOB_REASON_BUDGET:
    case JOB_REASON_NOT_WHOLE:
        return affordable;
    case JOB_REASON_NONE:
    case JOB_REASON_BUSY:
    case JOB_REASON_HALTED:
    case JOB_REASON_SUBTASKS_FAILED:
    case JOB_REASON_ERROR_LIMIT:
    case JOB_REASON_CANCELLED:
    case JOB_REASON_RUNNING:
    case JOB_REASON_PROVIDERS_FAILED:
    case JOB_REASON_AVOIDED:
    case JOB_REASON_NO_VERDICT:
    case JOB_REASON_EXPIRED:
    case JOB_REASON_PROMISED:
    case JOB_REASON_NOT_FILLED:
    case JOB_REASON_LEASES_OVER:
        break;
    }
    return false; /* in a calm market none of these lasts */
}

static bool is_true(const struct seen_job *job, uint32_t reason)
{
    for (uint32_t i = 0; i < job->bid_count; i++) {
        const struct seen_bid *bid = &oracle.bids.items[job->bids[i]];
        if (bid->row.waiting > 0 && is_true_of(bid, reason)) {
            return true;
        }
    }
    return false;
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
