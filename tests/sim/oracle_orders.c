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
    job->width = record->width;
    job->budget = record->amount_micro;
    job->cap = record->price_micro;
    job->term_ns = command->submit.term_ns;
    job->at_most = command->submit.at_most;
    job->needs = *command->submit.needs;
    struct map_key key = map_key_of(&job->id, sizeof job->id, 0);
    map_put(&oracle.jobs.map, &key, place);
}

void oracle_on_bid(const struct ledger_record *record)
{
    struct seen_job *job = oracle_job_of(&record->job);
    job->limit = record->price_micro;
    job->sequence = ++oracle.sequence;
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
    } else {
        oracle_job_of(&record->order)->is_cancelled = true; /* its bid is gone */
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
    case JOB_REASON_AVOIDED:
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
