/* A replacement gives a standing order other terms; the order keeps its id. A refused replacement
 * changes nothing. */
#include "base/limit.h"
#include "exchange/command/apply.h"
#include "exchange/command/submit_limits.h"
#include "exchange/lifecycle.h"
#include "exchange/market/asks.h"
#include "exchange/market/bands.h"
#include "exchange/market/bids.h"
#include "exchange/market/escrow.h"
#include "exchange/market/part_limits.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/effects.h"
#include "exchange/state/feed_upkeep.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lookup.h"
#include "exchange/state/timers.h"
#include "exchange/state/tracking.h"
#include "exchange/work/choice/ready_order.h"
#include "exchange/work/lease_records.h"

#include <assert.h>

/* A rebid is a bid's new terms. */
struct rebid {
    int64_t cap_micro, bid_micro;
    uint32_t at_most;
};

static bool slots_reduced(uint32_t from, uint32_t to)
{
    return to == from || (to != 0 && (from == 0 || to < from)); /* 0: as many as can be used */
}

/* ---------------------------------------------------------------- asks */

static bool ask_in_range(struct exchange *exchange, const struct ask *ask,
                         const struct exchange_replace *replace)
{
    const uint32_t slots = replace->has_slots ? replace->slots : ask->slots;
    const int64_t price_micro = replace->has_price ? replace->price_micro : ask->price_micro;
    if (replace->has_budget) {
        effect_reject(exchange, XREJECT_BUDGET, "budget_micro", replace->budget_micro, 0);
    } else if (replace->has_deadline) {
        effect_reject(exchange, XREJECT_QUANTITY, "deadline_ms", replace->deadline_ns / NS_PER_MS,
                      0);
    } else if (replace->has_price && replace->rate != RATE_NONE) {
        effect_reject(exchange, XREJECT_PRICE, "value.rate", replace->rate, RATE_NONE);
    } else if (replace->has_slots && (replace->slots == 0 || replace->slots > ask->device->slots)) {
        effect_reject(exchange, XREJECT_QUANTITY, "slots", replace->slots, ask->device->slots);
    } else if (price_micro != ask->price_micro &&
               !band_allows_price(exchange, "price_micro", price_micro)) {
        return false;
    } else if (price_micro > INT64_MAX / slots) {
        effect_reject(exchange, XREJECT_PRICE, "price_micro", price_micro, INT64_MAX / slots);
    }
    return !exchange->is_rejected;
}

/* Checks the bands for an ask that loses its place. An ask that only offers fewer slots keeps its
 * place, whatever the band is now. */
static bool ask_is_admitted(struct exchange *exchange, const struct ask *wanted)
{
    return band_allows_price(exchange, "price_micro", wanted->price_micro) &&
           band_allows_notional(
               exchange, "notional_micro",
               band_ask_notional(wanted->price_micro, wanted->slots, wanted->max_term_ns));
}

static void replace_ask(struct exchange *exchange, struct ask *ask,
                        const struct exchange_replace *replace)
{
    if (!ask_in_range(exchange, ask, replace)) {
        return;
    }
    struct ask wanted = *ask;
    wanted.slots = replace->has_slots ? replace->slots : ask->slots;
    wanted.price_micro = replace->has_price ? replace->price_micro : ask->price_micro;
    if (wanted.slots == ask->slots && wanted.price_micro == ask->price_micro) {
        return;
    }
    const bool keeps_place = wanted.slots < ask->slots && wanted.price_micro == ask->price_micro;
    if (!keeps_place && !ask_is_admitted(exchange, &wanted)) {
        return;
    }
    int64_t bid_micro = 0;
    const uint32_t code = keeps_place ? 0 : ask_refusal(exchange, &wanted, &bid_micro);
    if (code != 0) {
        effect_reject(exchange, code, "price_micro", wanted.price_micro, bid_micro);
        return;
    }
    ask->slots = wanted.slots;
    ask->price_micro = wanted.price_micro;
    feed_note(exchange, ask->handle);
    if (keeps_place) {
        book_set_slots(exchange->book, ask->handle, ask_order(exchange, ask).slots);
    } else {
        ask->sequence = exchange->sequence++;
        book_remove(exchange->book, ask->handle); /* ask_placed() adds the ask again */
    }
    tracking_touch(exchange, &ask->tracked);
    ask_placed(exchange, ask);
}

/* ---------------------------------------------------------------- bids */

static bool keeps_place(const struct part *part, const struct rebid *wanted)
{
    return wanted->bid_micro == part->bid_micro && slots_reduced(part->at_most, wanted->at_most);
}

static bool is_meant(const struct exchange_replace *replace, const struct part *part)
{
    return replace->part == EXCHANGE_ANY_PART || replace->part == part->number;
}

static bool part_in_range(struct exchange *exchange, const struct part *part,
                          const struct exchange_replace *replace)
{
    const uint32_t at_most = replace->has_slots ? replace->slots : part->at_most;
    const int64_t cap_micro = replace->has_price ? replace->price_micro : part->cap_micro;
    if (at_most != 0 && at_most < part->width) {
        effect_reject(exchange, XREJECT_QUANTITY, "slots", at_most, part->width);
        return false;
    }
    if (replace->has_price && replace->rate != part->rate) {
        effect_reject(exchange, XREJECT_PRICE, "value.rate", replace->rate, part->rate);
        return false;
    }
    const int64_t most_micro =
        part_limit_most(part->end - part->first, at_most, part->width, part->term_ns);
    if (part->rate == RATE_NONE && cap_micro > most_micro) {
        effect_reject(exchange, XREJECT_PRICE, "price_micro", cap_micro, most_micro);
        return false;
    }
    return true;
}

static bool bids_in_range(struct exchange *exchange, const struct job *job,
                          const struct exchange_replace *replace)
{
    const int64_t budget_micro =
        replace->has_budget ? replace->budget_micro : job->hold.amount_micro;
    const int64_t available_micro =
        accounts_balance(exchange->accounts, job->owner).available_micro;
    if (replace->part != EXCHANGE_ANY_PART && replace->part >= job->part_count) {
        effect_reject(exchange, XREJECT_NOT_FOUND, "part", replace->part, job->part_count - 1);
        return false;
    }
    const bool is_by_value = replace->rate != RATE_NONE;
    if (replace->has_price && is_by_value && replace->price_micro < 0) {
        effect_reject(exchange, XREJECT_PRICE, "value.micro", replace->price_micro, 0);
        return false;
    }
    if (replace->has_price && !is_by_value &&
        !band_allows_price(exchange, "price_micro", replace->price_micro)) {
        return false;
    }
    if (job_waits_for_all(job) && replace->has_slots) {
        effect_reject(exchange, XREJECT_STATE, "slots", replace->slots, 0);
        return false;
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        if (is_meant(replace, &job->parts[i]) &&
            !part_in_range(exchange, &job->parts[i], replace)) {
            return false;
        }
    }
    if (budget_micro < job->hold.amount_micro) {
        effect_reject(exchange, XREJECT_BUDGET, "budget_micro", budget_micro,
                      job->hold.amount_micro);
        return false;
    }
    const int64_t more_micro = budget_micro - job->hold.amount_micro;
    if (more_micro > available_micro) {
        effect_reject(exchange, XREJECT_FUNDS, "budget_micro", more_micro, available_micro);
        return false;
    }
    return true;
}

/* Returns the new terms of a part's bid. The limit of a bid at market price follows from the new
 * budget. */
static struct rebid rebid_of(const struct exchange *exchange, const struct part *part,
                             const struct exchange_replace *replace)
{
    struct rebid wanted = {part->cap_micro, part->bid_micro, part->at_most};
    if (is_meant(replace, part)) {
        wanted.at_most = replace->has_slots ? replace->slots : wanted.at_most;
        wanted.cap_micro = replace->has_price ? replace->price_micro : wanted.cap_micro;
    }
    wanted.bid_micro = wanted.cap_micro == part->cap_micro && !replace->has_budget
                           ? part->bid_micro
                           : part_limit(exchange, part, wanted.cap_micro,
                                        replace->has_budget ? replace->budget_micro
                                                            : part->job->hold.amount_micro);
    /* A bid at market price follows the band, unless it keeps its place. */
    if (part->rate == RATE_NONE && !limit_is_set(wanted.cap_micro) &&
        !slots_reduced(part->at_most, wanted.at_most)) {
        wanted.bid_micro = wanted.bid_micro < exchange->price_band_micro
                               ? wanted.bid_micro
                               : exchange->price_band_micro;
    }
    return wanted;
}

static void set_bid(struct part *part, const struct rebid *bid)
{
    part->cap_micro = bid->cap_micro;
    part->bid_micro = bid->bid_micro;
    part->at_most = bid->at_most;
}

static bool is_changed(const struct part *part, const struct rebid *wanted)
{
    return wanted->bid_micro != part->bid_micro || wanted->at_most != part->at_most;
}

/* Checks the bands for a bid that loses its place. The limit of a bid at market price follows the
 * band by itself. */
static bool bid_is_admitted(struct exchange *exchange, const struct part *wanted,
                            int64_t budget_micro)
{
    const bool has_price = wanted->rate == RATE_NONE && limit_is_set(wanted->cap_micro);
    return (!has_price || band_allows_price(exchange, "price_micro", wanted->cap_micro)) &&
           band_allows_notional(exchange, "notional_micro",
                                band_part_notional(exchange, wanted, budget_micro));
}

/* Finds the new terms of each part. Returns false when the replacement is refused, for example
 * because a bid would trade with its own owner. */
static bool find_rebids(struct exchange *exchange, const struct job *job,
                        const struct exchange_replace *replace, struct rebid ret_wanted[PARTS_MOST])
{
    const int64_t budget_micro =
        replace->has_budget ? replace->budget_micro : job->hold.amount_micro;
    const int64_t free_micro = escrow_free_micro(job) + budget_micro - job->hold.amount_micro;
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct part tried = job->parts[i];
        ret_wanted[i] = rebid_of(exchange, &tried, replace);
        const bool is_new = !keeps_place(&tried, &ret_wanted[i]);
        set_bid(&tried, &ret_wanted[i]);
        if (is_new && !bid_is_admitted(exchange, &tried, budget_micro)) {
            return false;
        }
        int64_t ask_micro = 0;
        const uint32_t code = is_new ? bid_refusal(exchange, &tried, free_micro, &ask_micro) : 0;
        if (code == XREJECT_BUDGET) {
            effect_reject(exchange, code, "budget_micro", free_micro, ask_micro);
            return false;
        }
        if (code != 0) {
            effect_reject(exchange, code, "price_micro", tried.bid_micro, ask_micro);
            return false;
        }
    }
    return true;
}

static void raise_budget(struct exchange *exchange, struct job *job, int64_t budget_micro)
{
    const int64_t more_micro = budget_micro - job->hold.amount_micro;
    if (more_micro == 0) {
        return;
    }
    enum accounts_status raised = hold_raise(exchange->accounts, &job->hold, more_micro);
    assert(raised == ACCOUNTS_OK); /* funds were checked before, and all money fits */
    (void)raised;
    tracking_touch(exchange, &lookup_member(exchange, job->owner)->tracked);
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_HOLD);
    record->job = job->id;
    record->debit = record->credit = job->owner;
    record->amount_micro = more_micro;
}

/* Work that waits because it would have been late may begin, also on the leases that the job
 * has. */
static void set_deadline(struct exchange *exchange, struct job *job, int64_t deadline_ns)
{
    job->deadline_ns = deadline_ns;
    if (!ready_order_create(exchange, job)) {
        return; /* memory is short, so the exchange stops */
    }
    timer_arm(exchange, TIMER_JOB, &job->id, deadline_ns);
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        lease_refill_later(exchange, LIST_ELEMENT(at, struct lease, of_job));
    }
    tracking_touch(exchange, &job->tracked);
    effect_report_job(exchange, job);
}

static void replace_bids(struct exchange *exchange, struct job *job,
                         const struct exchange_replace *replace)
{
    struct rebid wanted[PARTS_MOST];
    const uint32_t count = job->part_count;
    assert(count > 0);
    if (!bids_in_range(exchange, job, replace) || !find_rebids(exchange, job, replace, wanted)) {
        return;
    }
    if (replace->has_budget) {
        raise_budget(exchange, job, replace->budget_micro);
    }
    if (replace->has_deadline) {
        set_deadline(exchange, job, replace->deadline_ns);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct part *part = &job->parts[i];
        const bool is_told = is_changed(part, &wanted[i]);
        if (!keeps_place(part, &wanted[i])) {
            part->sequence = exchange->sequence++;
            book_remove(exchange->book, part->handle); /* bids_arrive() adds the bid again */
            feed_note(exchange, part->handle);
        }
        set_bid(part, &wanted[i]);
        if (is_told) {
            bid_record(exchange, part);
        }
    }
    spot_expose_job(exchange, job); /* the job's leases rank by its bids */
    tracking_touch(exchange, &job->tracked);
    bids_arrive(exchange, job);
    effect_report_job(exchange, job);
}

/* ---------------------------------------------------------------- an ask or the bids of a job */

static bool is_deadline_alone(const struct exchange_replace *replace)
{
    return replace->has_deadline && !replace->has_slots && !replace->has_price &&
           !replace->has_budget;
}

static bool deadline_in_range(struct exchange *exchange, const struct exchange_replace *replace)
{
    if (replace->has_deadline && replace->deadline_ns == 0) {
        effect_reject(exchange, XREJECT_QUANTITY, "deadline_ms", 0, exchange->now_ns / NS_PER_MS);
        return false;
    }
    return !replace->has_deadline ||
           submit_moment_in_range(exchange, "deadline_ms", replace->deadline_ns);
}

static void replace_job(struct exchange *exchange, struct job *job,
                        const struct exchange_replace *replace)
{
    const bool has_bids = !job_lives_off_leases(job);
    if (job->phase != JOB_PHASE_OPEN || job->is_closing ||
        (!has_bids && !is_deadline_alone(replace))) {
        effect_reject(exchange, XREJECT_STATE, "order", job->phase, JOB_PHASE_OPEN);
    } else if (!deadline_in_range(exchange, replace)) {
        return;
    } else if (has_bids) {
        replace_bids(exchange, job, replace);
    } else {
        set_deadline(exchange, job, replace->deadline_ns);
    }
}

void apply_replace(struct exchange *exchange, const struct exchange_replace *replace)
{
    const uint32_t account = exchange->command->account;
    struct ask *ask = table_find(&exchange->asks, &replace->order);
    struct job *job = table_find(&exchange->jobs, &replace->order);
    const bool is_ask = ask != NULL && ask->device->key.provider == account;
    if (!is_ask && (job == NULL || job->owner != account)) {
        effect_reject(exchange, XREJECT_NOT_FOUND, "order", 0, 0);
    } else if (exchange->is_halted) {
        effect_reject(exchange, XREJECT_HALTED, "market", 0, 0);
    } else if (is_ask) {
        replace_ask(exchange, ask, replace);
    } else {
        replace_job(exchange, job, replace);
    }
}
