/* The oracle keeps what the commands asked of the market: jobs and their bids, devices, asks. */
#include "tests/sim/oracle_models.h"

#include <inttypes.h>
#include <stdlib.h>

enum { CANCELLED_UNRESTED = 6 }; /* as the ledger says it */

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

/* ---------------------------------------------------------------- what orders may be */

void oracle_on_bands(const struct exchange_bands *given)
{
    struct exchange_bands *bands = &oracle.bands;
    bands->least_micro = given->has_least ? given->least_micro : bands->least_micro;
    bands->most_micro = given->has_most ? given->most_micro : bands->most_micro;
    bands->notional_micro = given->has_notional ? given->notional_micro : bands->notional_micro;
    oracle.counts.bands++;
}

static void check_price(int64_t price)
{
    if (price != 0 && (price < oracle.bands.least_micro || price > oracle.bands.most_micro)) {
        sim_fail("command %" PRIu64 ": an order at %" PRId64 ", the band is %" PRId64
                 " to %" PRId64,
                 oracle.command, price, oracle.bands.least_micro, oracle.bands.most_micro);
    }
}

static void check_notional(int64_t price, uint64_t slots, int64_t term_ns, int64_t budget)
{
    __extension__ typedef __int128 wide;
    const int64_t most = oracle.bands.notional_micro;
    if (most > 0 && budget > most && (wide)price * slots * term_ns > (wide)most * HOUR_NS) {
        sim_fail("command %" PRIu64 ": an order at %" PRId64 " for %" PRIu64
                 " slots comes to more than %" PRId64,
                 oracle.command, price, slots, most);
    }
}

/* Checks a bid that comes or gets another place; by value it counts with the highest price. */
static void check_bid(const struct seen_bid *bid)
{
    const uint32_t subtasks = bid->end - bid->first;
    const uint32_t most = bid->at_most == 0 ? UINT32_MAX : bid->at_most / bid->width;
    const uint64_t slots = (uint64_t)(subtasks < most ? subtasks : most) * bid->width;
    if (bid->rate == RATE_NONE && bid->limit > oracle.bands.most_micro) {
        check_price(bid->limit);
    }
    check_notional(bid->rate == RATE_NONE ? bid->limit : oracle.bands.most_micro, slots,
                   bid->term_ns, oracle.jobs.items[bid->job].budget);
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
    job->deadline_ns = command->submit.deadline_ns;
    job->is_stated = command->submit.is_expectation_stated;
    job->type = command->submit.type;
    job->submitted_at = oracle.command;
    if (command->submit.rate == RATE_NONE && command->submit.cap_micro >= 0) {
        check_price(command->submit.cap_micro);
    }
    job->interruptions =
        command->submit.has_interruptions ? command->submit.interruptions : UINT32_MAX;
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
    bid->rate = (enum rate)part->rate;
    bid->cap = part->cap_micro;
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
        (is_meant && replace->has_price &&
         (replace->rate != (uint32_t)bid->rate ||
          (oracle.jobs.items[bid->job].type != EXCHANGE_ALL_OR_NONE
               ? record->price_micro != replace->price_micro
               : record->price_micro > replace->price_micro)))) {
        sim_fail("command %" PRIu64 ": a bid other than was asked", oracle.command);
    }
    const bool is_less = bid->at_most == 0 || (at_most != 0 && at_most <= bid->at_most);
    const bool is_new = !is_less || record->price_micro != bid->limit;
    bid->sequence = is_new ? ++oracle.sequence : bid->sequence;
    bid->at_most = at_most;
    bid->limit = record->price_micro;
    bid->cap = is_meant && replace->has_price ? replace->price_micro : bid->cap;
    if (is_new) {
        check_bid(bid);
    }
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
                                      .rate = submit->rate,
                                      .cap_micro = submit->cap_micro,
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
    check_bid(bid);
    bid->sequence = ++oracle.sequence;
    job->bids[job->bid_count++] = place;
    struct map_key key = map_key_of(&bid->id, sizeof bid->id, 0);
    if (map_get(&oracle.bids.map, &key, NULL)) {
        sim_fail("command %" PRIu64 ": two bids have one id", oracle.command);
    }
    map_put(&oracle.bids.map, &key, place);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const struct attribute *)left)->name, ((const struct attribute *)right)->name);
}

/* A lease of a device has the terms of its ask; without one, and where it is firm, the best there
 * are. */
static void set_terms(struct seen_device *device, const struct exchange_terms *terms)
{
    const int64_t most_ns = EXCHANGE_RUN_MOST_NS;
    const struct attribute attributes[] = {
        {.name = "firm", .number = !terms->is_interruptible},
        {.name = "notice", .number = terms->is_interruptible ? terms->notice_ns : most_ns},
        {.name = "minimum_run",
         .number = terms->is_interruptible ? terms->minimum_run_ns : most_ns}};
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        size_t k = 0;
        while (k < device->attribute_count &&
               strcmp(device->attributes[k].name, attributes[i].name) != 0) {
            k++;
        }
        device->attributes[k] = attributes[i];
        device->attribute_count += k == device->attribute_count;
    }
    qsort(device->attributes, device->attribute_count, sizeof *device->attributes, compare_names);
}

int64_t oracle_limit_in(const struct seen_bid *bid, const struct seen_device *device)
{
    __extension__ typedef __int128 wide;
    if (bid->rate == RATE_NONE) {
        return bid->limit;
    }
    const int64_t operations = rate_of(bid->rate, device->attributes, device->attribute_count);
    const wide limit = (wide)bid->limit * operations / RATE_UNIT;
    return limit < oracle.bands.most_micro ? (int64_t)limit : oracle.bands.most_micro;
}

bool oracle_is_for(const struct seen_ask *ask, uint32_t account)
{
    bool is = ask->to_count == 0;
    for (uint32_t i = 0; i < ask->to_count; i++) {
        is = is || ask->to[i] == account;
    }
    return is;
}

bool oracle_is_open(const struct seen_ask *ask)
{
    const uint32_t provider = oracle.devices.items[ask->device].provider;
    return hours_open(&ask->hours, oracle.log_time_ns) &&
           exchange_standing(oracle.exchange, provider).withdrawn_ns == 0;
}

static void take_accounts(struct seen_ask *ask, const struct exchange_ask *given)
{
    for (size_t i = 0; i < given->to_count && i < sizeof ask->to / sizeof *ask->to; i++) {
        for (uint32_t k = 0; k < exchange_account_count(oracle.exchange); k++) {
            struct exchange_account_row row;
            if (exchange_account(oracle.exchange, k, &row) &&
                (given->to[i].has_key ? key32_equal(&row.key, &given->to[i].key)
                                      : strcmp(row.name, given->to[i].name) == 0)) {
                ask->to[ask->to_count++] = k;
            }
        }
    }
    if (given->to_count > 0 && ask->to_count == 0) {
        sim_fail("command %" PRIu64 " places an ask for nobody", oracle.command);
    }
}

static void place_ask(const struct exchange_command *command, const struct ledger_record *record)
{
    struct seen_device *device = oracle_device_of(command->account, &record->device, false);
    uint32_t place = PUT(oracle.asks);
    struct seen_ask *ask = &oracle.asks.items[place];
    ask->order = record->order;
    ask->device = (uint32_t)(device - oracle.devices.items);
    ask->max_term_ns = command->ask.max_term_ns;
    ask->hours = command->ask.hours;
    ask->terms = command->ask.terms;
    ask->type = command->ask.type;
    ask->placed_at = oracle.command;
    ask->stands = true;
    take_accounts(ask, &command->ask);
    set_terms(device, &ask->terms);
    device->ask = place + 1;
    struct map_key key = map_key_of(&ask->order, sizeof ask->order, 0);
    map_put(&oracle.asks.map, &key, place);
}

void oracle_on_ask(const struct exchange_command *command, const struct ledger_record *record)
{
    struct map_key key = map_key_of(&record->order, sizeof record->order, 0);
    uint32_t place;
    if (command->type == EXCHANGE_ASK) {
        place_ask(command, record);
    }
    if (!map_get(&oracle.asks.map, &key, &place)) {
        sim_fail("command %" PRIu64 ": other terms for an ask that nobody placed", oracle.command);
    }
    struct seen_ask *ask = &oracle.asks.items[place];
    const bool is_new = command->type == EXCHANGE_ASK;
    const struct exchange_replace *replace = &command->replace;
    if (!ask->stands || oracle.devices.items[ask->device].provider != command->account ||
        (!is_new &&
         (!id128_equal(&replace->order, &ask->order) ||
          record->slots != (replace->has_slots ? replace->slots : ask->slots) ||
          record->price_micro != (replace->has_price ? replace->price_micro : ask->price)))) {
        sim_fail("command %" PRIu64 ": other terms for an ask than were asked", oracle.command);
    }
    /* Less at the same price keeps its place. */
    if (is_new || record->slots > ask->slots || record->price_micro != ask->price) {
        check_price(record->price_micro);
        check_notional(record->price_micro, record->slots,
                       ask->max_term_ns > 0 ? ask->max_term_ns : HOUR_NS, INT64_MAX);
        ask->sequence = ++oracle.sequence;
        ask->placed_at = oracle.command;
    }
    ask->slots = record->slots;
    ask->price = record->price_micro;
    oracle.counts.other_terms += !is_new;
}

bool oracle_ask_of(uint32_t provider, const struct id128 *device, struct id128 *ret_order)
{
    struct map_key key = map_key_of(device, sizeof *device, provider);
    uint32_t place;
    if (!map_get(&oracle.devices.map, &key, &place) || oracle.devices.items[place].ask == 0) {
        return false;
    }
    *ret_order = oracle.asks.items[oracle.devices.items[place].ask - 1].order;
    return true;
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
        struct seen_bid *bid = oracle_bid_of(&record->order);
        bid->is_unrested = !bid->is_cancelled && record->status == CANCELLED_UNRESTED;
        bid->is_cancelled = true;
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
        set_terms(device, &(const struct exchange_terms){0});
    }
}
