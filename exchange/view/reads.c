/* Reads return the state of the exchange, its accounts, its jobs and their leases. A read
 * changes nothing. quote.c has the cost of an order, and explain.c the reasons why it waits. */
#include "exchange/view/reads.h"

#include "exchange/lifecycle.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/daily.h"
#include "exchange/market/part_limits.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lookup.h"
#include "exchange/state/names.h"
#include "exchange/state/parts.h"
#include "exchange/state/steps.h"
#include "exchange/work/choice/lateness.h"
#include "exchange/work/part_queues.h"
#include "exchange/work/progress.h"

#include <assert.h>

uint64_t exchange_steps(const struct exchange *exchange)
{
    return *exchange->steps;
}

uint64_t exchange_index(const struct exchange *exchange)
{
    return exchange->index;
}

int64_t exchange_log_time_ns(const struct exchange *exchange)
{
    return exchange->now_ns;
}

struct id128 exchange_cluster(const struct exchange *exchange)
{
    return exchange->cluster;
}

uint32_t exchange_job_count(const struct exchange *exchange)
{
    return exchange->job_count;
}

uint32_t exchange_rules(const struct exchange *exchange)
{
    return exchange->rules;
}

struct exchange_limits exchange_limits_now(const struct exchange *exchange)
{
    return exchange->limits;
}

bool exchange_has_leases(const struct exchange *exchange)
{
    for (const struct list_link *at = exchange->job_list.next; at != &exchange->job_list;
         at = at->next) {
        const struct job *job = LIST_ELEMENT(at, struct job, all);
        for (const struct list_link *link = job->leases.next; link != &job->leases;
             link = link->next) {
            const struct lease *lease = LIST_ELEMENT(link, struct lease, of_job);
            if (lease->state != LEASE_ENDED && lease->state != LEASE_PROMISED) {
                return true;
            }
        }
    }
    return false;
}

bool exchange_holds_limits(const struct exchange *exchange, const struct exchange_set_limits *set)
{
    const struct exchange_limits *held = &exchange->limits;
    const struct exchange_limits *limits = &set->limits;
    return exchange->rules == set->rules && held->accounts == limits->accounts &&
           held->invitations == limits->invitations &&
           held->ids_per_account == limits->ids_per_account &&
           held->devices_per_provider == limits->devices_per_provider &&
           held->asks == limits->asks && held->jobs == limits->jobs &&
           held->jobs_per_account == limits->jobs_per_account && held->leases == limits->leases &&
           held->attempts == limits->attempts && held->subtasks == limits->subtasks &&
           held->subtasks_per_account == limits->subtasks_per_account &&
           held->cells_per_account == limits->cells_per_account &&
           held->classes_per_account == limits->classes_per_account;
}

uint64_t exchange_epochs(const struct exchange *exchange, struct hash32 *ret_commitment)
{
    *ret_commitment = exchange->commitment;
    return exchange->epochs;
}

bool exchange_halted(const struct exchange *exchange)
{
    return exchange->is_halted;
}

const char *exchange_halted_why(const struct exchange *exchange)
{
    return exchange->halted_why;
}

uint32_t exchange_account_count(const struct exchange *exchange)
{
    return exchange->member_count;
}

bool exchange_account(const struct exchange *exchange, uint32_t number,
                      struct exchange_account_row *ret_row)
{
    const struct member *member = lookup_member(exchange, number);
    if (member == NULL) {
        return false;
    }
    struct account_balance balance = accounts_balance(exchange->accounts, number);
    *ret_row = (struct exchange_account_row){
        .number = number,
        .key = member->key,
        .roles = member->roles,
        .frozen = member->is_frozen,
        .frozen_why = member->frozen_why,
        .available_micro = balance.available_micro,
        .held_micro = balance.held_micro,
    };
    name_copy(ret_row->name, member->name);
    steps_add(exchange, 4);
    return true;
}

/* Ranks reasons from far to near. A device that is too slow for the deadline is farther than a busy
 * one, which might be in time. The nearest is a referee's device that the makers of the waiting
 * results own. */
static uint8_t nearness(uint8_t reason)
{
    static const uint8_t ranks[] = {
        [XREASON_NO_DEVICE] = 1, [XREASON_NO_ASK] = 2,  [XREASON_PRICE] = 3,
        [XREASON_FIRM] = 4,      [XREASON_LATE] = 5,    [XREASON_BUSY] = 6,
        [XREASON_BUDGET] = 7,    [XREASON_AVOIDED] = 8, [XREASON_REFEREE] = 9,
    };
    assert(reason < sizeof ranks && ranks[reason] > 0);
    return ranks[reason];
}

/* The devices of one provider follow each other, so the last answer serves all of them. */
struct chosen {
    uint32_t provider; /* EXCHANGE_NO_ACCOUNT: nobody was asked about yet */
    bool may_run;
};

static bool chosen_may_run(const struct exchange *exchange, const struct part *part,
                           uint32_t provider, struct chosen *chosen)
{
    if (chosen->provider != provider) {
        *chosen = (struct chosen){.provider = provider,
                                  .may_run = part_choice(exchange, part, provider) > 0};
    }
    return chosen->may_run;
}

/* Returns the reason apart from the price. *ret_price_micro is the ask's price, where there is an
 * ask. */
static uint8_t reason_but_price(const struct exchange *exchange, const struct part *part,
                                const struct device *device, struct chosen *chosen,
                                int64_t *ret_price_micro)
{
    const struct job *job = part->job;
    if (!device->is_advertised || device->key.provider == job->owner ||
        device->slots < part->width ||
        !book_class_accepts(exchange->book, part->class_id, device->cell) ||
        !chosen_may_run(exchange, part, device->key.provider, chosen)) {
        return XREASON_NO_DEVICE;
    }
    struct book_ask resting;
    const struct book_ask *ask = &resting;
    if (device->ask == NULL || !book_ask(exchange->book, device->ask->handle, &resting) ||
        device->ask->slots < part->width || !device->ask->is_open ||
        daily_is_spent(exchange, device->ask) || !ask_is_for(device->ask, job->owner) ||
        (ask->max_term_ns != 0 && ask->max_term_ns < part->term_ns)) {
        return XREASON_NO_ASK;
    }
    *ret_price_micro = ask->price_micro;
    if (device->ask->terms.is_interruptible && job->interruptions_left == 0) {
        return XREASON_FIRM;
    }
    if (part->waiting > 0 && lateness_rules_out(exchange, part, device)) {
        return XREASON_LATE;
    }
    if (ask->slots < part->width) {
        return XREASON_BUSY;
    }
    return job_avoids(exchange, job, device->key.provider) ? XREASON_AVOIDED : XREASON_BUDGET;
}

/* Returns the reason that keeps the part from the device: the first obstacle, from far to near. */
static uint8_t part_reason_at(const struct exchange *exchange, const struct part *part,
                              const struct device *device)
{
    int64_t price_micro = -1;
    struct chosen chosen = {.provider = EXCHANGE_NO_ACCOUNT};
    const uint8_t reason = reason_but_price(exchange, part, device, &chosen, &price_micro);
    return price_micro >= 0 && price_micro > part_limit_in(exchange, part, device->cell)
               ? XREASON_PRICE
               : reason;
}

bool read_part_is_in_reach(const struct exchange *exchange, const struct part *part,
                           const struct device *device)
{
    return nearness(part_reason_at(exchange, part, device)) >= nearness(XREASON_BUSY);
}

static bool has_only_makers(const struct exchange *exchange, const struct part *part)
{
    for (const struct list_link *at = exchange->provider_list.next;
         part_is_checks(part) && at != &exchange->provider_list; at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        for (const struct list_link *link = provider->devices.next; link != &provider->devices;
             link = link->next) {
            const struct device *device = LIST_ELEMENT(link, struct device, of_provider);
            steps_add(exchange, 1);
            if (device->is_advertised && device->key.provider != part->job->owner &&
                device->slots >= part->width &&
                book_class_accepts(exchange->book, part->class_id, device->cell)) {
                return true;
            }
        }
    }
    return false;
}

/* The reach of all devices for parts with one requirement, width and term, at any limit. It holds
 * the farthest reason of devices without an ask, and for each other reason the least price. */
struct reach {
    uint32_t owner, class_id, width;
    int64_t term_ns;
    bool is_firm_only;
    uint8_t farther;
    int64_t least_micro[XREASON_LATE + 1]; /* INT64_MAX: none */
};

/* Reads of many jobs share results between like jobs. */
struct reasons {
    uint64_t devices, devices_most; /* looked at so far; at the most, no new reach is computed */
    uint32_t count;
    struct reach known[EXCHANGE_REACHES_KNOWN];
};

/* The class knows the fitting cells, so no predicate is evaluated, however many devices there
 * are. */
static struct reach find_reach(const struct exchange *exchange, const struct part *part,
                               uint64_t *devices)
{
    struct reach reach = {.owner = part->job->owner,
                          .class_id = part->class_id,
                          .width = part->width,
                          .term_ns = part->term_ns,
                          .is_firm_only = part->job->interruptions_left == 0,
                          .farther = XREASON_NO_DEVICE};
    for (size_t i = 0; i < sizeof reach.least_micro / sizeof reach.least_micro[0]; i++) {
        reach.least_micro[i] = INT64_MAX;
    }
    for (const struct list_link *at = exchange->provider_list.next; at != &exchange->provider_list;
         at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        struct chosen chosen = {.provider = EXCHANGE_NO_ACCOUNT};
        for (const struct list_link *link = provider->devices.next; link != &provider->devices;
             link = link->next) {
            const struct device *device = LIST_ELEMENT(link, struct device, of_provider);
            int64_t price_micro = -1;
            const uint8_t reason = reason_but_price(exchange, part, device, &chosen, &price_micro);
            steps_add(exchange, 2);
            ++*devices;
            if (price_micro < 0) {
                reach.farther = nearness(reason) > nearness(reach.farther) ? reason : reach.farther;
            } else if (price_micro > part_limit_in(exchange, part, device->cell) &&
                       part->rate != RATE_NONE) {
                /* A limit by value holds in this cell alone, so the reach is not shared. */
                reach.least_micro[XREASON_PRICE] = price_micro;
            } else if (price_micro < reach.least_micro[reason]) {
                reach.least_micro[reason] = price_micro;
            }
        }
    }
    return reach;
}

static uint8_t reason_of_reach(const struct reach *reach, int64_t limit_micro)
{
    uint8_t reason = reach->farther;
    for (uint8_t i = XREASON_PRICE; i <= XREASON_LATE; i++) {
        if (reach->least_micro[i] == INT64_MAX) {
            continue;
        }
        const uint8_t here = reach->least_micro[i] > limit_micro ? XREASON_PRICE : i;
        reason = nearness(here) > nearness(reason) ? here : reason;
    }
    return reason;
}

/* The reach is not shared by bids by value, checks, jobs that avoid a provider, and jobs with a
 * deadline, which pass over slow devices. */
static bool has_reach_of_others(const struct part *part)
{
    return part->rate == RATE_NONE && !part_is_checks(part) && part->job->avoided_count == 0 &&
           part->job->deadline_ns == 0;
}

static const struct reach *known_reach(const struct reasons *reasons, const struct part *part)
{
    for (uint32_t i = 0; has_reach_of_others(part) && i < reasons->count; i++) {
        const struct reach *reach = &reasons->known[i];
        if (reach->owner == part->job->owner && reach->class_id == part->class_id &&
            reach->width == part->width && reach->term_ns == part->term_ns &&
            reach->is_firm_only == (part->job->interruptions_left == 0)) {
            return reach;
        }
    }
    return NULL;
}

/* Returns XREASON_NONE when too many devices were looked at for earlier jobs. */
static uint8_t part_reason(const struct exchange *exchange, const struct part *part,
                           struct reasons *reasons)
{
    const int64_t limit_micro = part->rate == RATE_NONE ? part->bid_micro : INT64_MAX - 1;
    const struct reach *known = known_reach(reasons, part);
    if (known != NULL) {
        return reason_of_reach(known, limit_micro);
    }
    if (reasons->devices >= reasons->devices_most) {
        return XREASON_NONE;
    }
    const struct reach reach = find_reach(exchange, part, &reasons->devices);
    if (has_reach_of_others(part) && reasons->count < EXCHANGE_REACHES_KNOWN) {
        reasons->known[reasons->count++] = reach;
    }
    const uint8_t reason = reason_of_reach(&reach, limit_micro);
    /* A device exists, but its owner made the results that wait for a check. */
    return reason == XREASON_NO_DEVICE && has_only_makers(exchange, part) ? XREASON_REFEREE
                                                                          : reason;
}

static const struct part *tightest_part(const struct exchange *exchange, const struct job *job,
                                        struct reasons *reasons, uint8_t *ret_reason)
{
    const struct part *tightest = NULL;
    *ret_reason = XREASON_BUDGET; /* stays only when no part waits */
    for (uint32_t i = 0; i < job->part_count; i++) {
        const struct part *part = &job->parts[i];
        if (part->waiting == 0) {
            continue;
        }
        uint8_t reason = part_reason(exchange, part, reasons);
        if (reason == XREASON_NONE) {
            *ret_reason = reason;
            return part;
        }
        if (tightest == NULL || nearness(reason) < nearness(*ret_reason)) {
            tightest = part;
            *ret_reason = reason;
        }
    }
    return tightest == NULL ? &job->parts[0] : tightest;
}

const struct part *read_tightest_part(const struct exchange *exchange, const struct job *job,
                                      uint8_t *ret_reason)
{
    struct reasons reasons = {.devices_most = UINT64_MAX};
    return tightest_part(exchange, job, &reasons, ret_reason);
}

static uint8_t job_reason_now(const struct exchange *exchange, const struct job *job,
                              struct reasons *reasons)
{
    if (job->phase != JOB_PHASE_OPEN || job->is_closing) {
        return job->reason;
    }
    if (job->running > 0 || job_lives_off_leases(job)) {
        return XREASON_RUNNING;
    }
    if (exchange->is_halted) {
        return XREASON_HALTED;
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        if (LIST_ELEMENT(at, struct lease, of_job)->state == LEASE_PROMISED) {
            return XREASON_PROMISED;
        }
    }
    uint8_t reason;
    const struct part *tightest = tightest_part(exchange, job, reasons, &reason);
    if (!job_waits_for_all(job)) {
        return reason;
    }
    return reason == XREASON_BUDGET                                       ? XREASON_NOT_WHOLE
           : reason == XREASON_PRICE && part_limit_is_of_budget(tightest) ? XREASON_WHOLE_BUDGET
                                                                          : reason;
}

static void fill_job_row(const struct exchange *exchange, const struct job *job,
                         struct reasons *reasons, struct exchange_job_row *row)
{
    *row = (struct exchange_job_row){
        .job = job->id,
        .owner = job->owner,
        .state = job->phase,
        .reason = job_reason_now(exchange, job, reasons),
        .subtasks = job->subtasks,
        .waiting = job->waiting,
        .running = job->running,
        .queued = progress_queued(job, NULL),
        .checking = job->checking,
        .accepted = job->accepted,
        .failed = job->failed,
        .cancelled = job->cancelled,
        .budget_micro = job->hold.amount_micro,
        .charged_micro = job->hold.captured_micro,
        .reserved_micro = job->reserved_micro,
        .submitted_ns = job->submitted_ns,
        .ended_ns = job->ended_ns,
        .deadline_ns = job->deadline_ns,
        .manifest = job->manifest,
        .accused = job->phase == JOB_PHASE_OPEN ? job_accused(job) : 0,
        .saved = job->saved_count,
    };
    const struct progress_pace pace = progress_of_leases(job);
    row->timed = pace.timed;
    row->foreseen_ns = pace.foreseen_ns;
    row->took_ns = pace.took_ns;
    name_copy(row->name, job->name);
    uint64_t steps = 16;
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        row->lease_count++;
        /* Each lane of the lease is looked at. */
        steps += 8 + LIST_ELEMENT(at, struct lease, of_job)->lane_count;
    }
    steps_add(exchange, steps);
}

bool exchange_job(const struct exchange *exchange, const struct id128 *id,
                  struct exchange_job_row *ret_row)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job != NULL) {
        struct reasons reasons = {.devices_most = UINT64_MAX};
        fill_job_row(exchange, job, &reasons, ret_row);
    }
    return job != NULL;
}

uint32_t exchange_job_owner(const struct exchange *exchange, const struct id128 *id)
{
    const struct job *job = table_find(&exchange->jobs, id);
    return job == NULL ? EXCHANGE_NO_ACCOUNT : job->owner;
}

bool exchange_job_is_open(const struct exchange *exchange, const struct id128 *id)
{
    const struct job *job = table_find(&exchange->jobs, id);
    return job != NULL && job->phase == JOB_PHASE_OPEN;
}

size_t exchange_jobs_from(const struct exchange *exchange, uint32_t owner, uint64_t from,
                          struct exchange_job_row *ret_rows, size_t limit, uint64_t *ret_next)
{
    size_t count = 0;
    const struct member *member = lookup_member(exchange, owner);
    *ret_next = 0;
    if (member == NULL) {
        return 0;
    }
    struct reasons reasons = {.devices_most = EXCHANGE_REASON_DEVICES};
    const struct list_link *head = &member->jobs;
    for (const struct list_link *at = head->previous; at != head; at = at->previous) {
        const struct job *job = LIST_ELEMENT(at, struct job, of_owner);
        if (from != 0 && job->order > from) {
            steps_add(exchange, 1);
        } else if (count == limit) {
            *ret_next = job->order;
            break;
        } else {
            fill_job_row(exchange, job, &reasons, &ret_rows[count++]);
        }
    }
    return count;
}

size_t exchange_parts(const struct exchange *exchange, const struct id128 *id,
                      struct exchange_part_row *ret_rows, size_t limit)
{
    const struct job *job = table_find(&exchange->jobs, id);
    for (uint32_t i = 0; job != NULL && i < job->part_count && i < limit; i++) {
        const struct part *part = &job->parts[i];
        ret_rows[i] = (struct exchange_part_row){.first = part->first,
                                                 .subtasks = part->end - part->first,
                                                 .waiting = part->waiting,
                                                 .running = part->running,
                                                 .queued = progress_queued(job, part),
                                                 .checking = part->checking,
                                                 .lanes = part->lanes};
        uint64_t leases = 0; /* progress_queued looks at each */
        for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
            leases++;
        }
        steps_add(exchange, 4 + 2 * leases);
    }
    return job == NULL ? 0 : job->part_count;
}

/* Returns how long the market has not heard the lease's provider; 0: since before a snapshot. */
static int64_t silent_ns(const struct exchange *exchange, const struct lease *lease)
{
    const struct provider *provider = lookup_member(exchange, lease->provider)->provider;
    return provider->suspect_ns == 0 ? 0 : exchange->now_ns - provider->suspect_ns;
}

bool read_was_revoked(const struct exchange *exchange, const struct lease *lease)
{
    return lease->state == LEASE_ENDED && lease->end_reason == XEND_REVOKED &&
           lookup_member(exchange, lease->provider)->is_frozen;
}

size_t exchange_leases(const struct exchange *exchange, const struct id128 *id,
                       struct exchange_lease_row *ret_rows, size_t limit)
{
    const struct job *job = table_find(&exchange->jobs, id);
    size_t count = 0;
    if (job == NULL) {
        return 0;
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases && count < limit;
         at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        struct exchange_lease_row *row = &ret_rows[count++];
        *row = (struct exchange_lease_row){
            .lease = lease->id,
            .job = job->id,
            .provider = lease->provider,
            .slots = lease->slots,
            .accepted = lease->accepted,
            .state = lease->state,
            .price_micro = lease->price_micro,
            .paid_ns = lease->paid_ns,
            .charged_micro = lease->charged_micro,
            .is_simulated = lease->is_simulated,
            .is_interruptible = lease->terms.is_interruptible,
            .is_taken = lease->is_noticed,
            .silent_ns = lease->state == LEASE_SUSPECT ? silent_ns(exchange, lease) : -1,
            .has_ended = lease->state == LEASE_ENDED,
            .is_frozen = read_was_revoked(exchange, lease),
        };
        row->frozen_why =
            row->is_frozen ? lookup_member(exchange, lease->provider)->frozen_why : NULL;
        name_copy(row->device, lease->label);
    }
    steps_add(exchange, 8 * count);
    return count;
}

bool exchange_provider_serves(const struct exchange *exchange, uint32_t provider,
                              const struct id128 *id)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job == NULL) {
        return false;
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        bool stands = (lease->state != LEASE_ENDED && lease->state != LEASE_PROMISED) ||
                      lease->ended_ns + BLOB_ACCESS_NS > exchange->now_ns;
        if (lease->provider == provider && stands) {
            return true;
        }
    }
    return false;
}

bool exchange_each_lease(const struct exchange *exchange, exchange_on_lease *visit, void *context)
{
    for (const struct list_link *at = exchange->job_list.next; at != &exchange->job_list;
         at = at->next) {
        const struct job *job = LIST_ELEMENT(at, struct job, all);
        for (const struct list_link *link = job->leases.next; link != &job->leases;
             link = link->next) {
            const struct lease *lease = LIST_ELEMENT(link, struct lease, of_job);
            const struct exchange_standing_lease standing = {.lease = lease->id,
                                                             .provider = lease->provider,
                                                             .job = job->id,
                                                             .owner = job->owner,
                                                             .manifest = job->manifest};
            if (lease->state != LEASE_ENDED && !visit(context, &standing)) {
                return false;
            }
        }
    }
    return true;
}
