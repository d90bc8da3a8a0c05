/* The parts of a job each have a bid that rests in the book as an order of its own. All bids of a
 * job share one budget. */
#include "exchange/market/bids.h"

#include "base/checked.h"
#include "base/cursor.h"
#include "base/sha256.h"
#include "exchange/lifecycle.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/asks.h"
#include "exchange/market/bands.h"
#include "exchange/market/escrow.h"
#include "exchange/market/interning.h"
#include "exchange/market/part_limits.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/effects.h"
#include "exchange/state/feed_upkeep.h"
#include "exchange/state/handles.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/parts.h"
#include "exchange/work/check_roles.h"
#include "exchange/work/job_memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- parts */

/* Returns part `number` of the command. The first part is in SubmitJob itself and has the subtasks
 * that the others leave. */
static struct exchange_part given_part(const struct exchange_submit *submit, uint32_t number)
{
    if (number > 0) {
        return submit->parts[number - 1];
    }
    struct exchange_part first = {
        .subtasks = submit->subtasks,
        .needs = submit->needs,
        .slots = submit->slots,
        .at_most = submit->at_most,
        .cap_micro = submit->cap_micro,
        .limit_ns = submit->limit_ns,
        .term_ns = submit->term_ns,
        .expect_ns = submit->expect_ns,
        .rate = submit->rate,
    };
    for (size_t i = 0; i < submit->part_count; i++) {
        first.subtasks -= submit->parts[i].subtasks;
    }
    return first;
}

bool bid_caps_in_range(struct exchange *exchange, const struct exchange_submit *submit)
{
    for (uint32_t i = 0; i <= submit->part_count; i++) {
        const struct exchange_part part = given_part(submit, i);
        const int64_t most = part_limit_most(part.subtasks, part.at_most, part.slots, part.term_ns);
        if (part.rate == RATE_NONE && part.cap_micro > most) {
            effect_reject(exchange, XREJECT_PRICE, i == 0 ? "cap_micro" : "parts.cap_micro",
                          part.cap_micro, most);
            return false;
        }
    }
    return true;
}

bool bids_create_parts(struct exchange *exchange, struct job *job,
                       const struct exchange_submit *submit)
{
    uint32_t count = (uint32_t)submit->part_count + 1;
    if (!job_has_parts(exchange, job, count)) {
        return false;
    }
    job->part_count = count;
    uint32_t first = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct exchange_part given = given_part(submit, i);
        struct part *part = &job->parts[i];
        part_init(part, job, i);
        part->first = part->fresh = first;
        part->end = first = first + given.subtasks;
        part->waiting = submit->graph == NULL ? given.subtasks : 0; /* graph_start counts them */
        part->width = given.slots;
        part->at_most = given.at_most;
        part->cap_micro = given.cap_micro;
        part->rate = (uint8_t)given.rate;
        part->limit_ns = given.limit_ns;
        part->term_ns = given.term_ns;
        part->expect_ns = given.expect_ns > 0 ? given.expect_ns : 0;
    }
    assert(first == job->subtasks);
    for (uint32_t i = 0; i < count; i++) {
        struct part *part = &job->parts[i];
        part->bid_micro = part_limit(exchange, part, part->cap_micro, submit->budget_micro);
    }
    return true;
}

/* ---------------------------------------------------------------- bids */

/* The id of a further part is a hash, so nobody can choose an order id that collides with it. */
struct id128 bid_id(const struct part *part)
{
    static const char domain[] = "bourse/part/v1"; /* includes the NUL */
    uint8_t bytes[sizeof domain + sizeof(struct id128) + 4];
    struct id128 id = part->job->id;
    if (part->number > 0) {
        struct writer out = writer_over(bytes, sizeof bytes);
        writer_bytes(&out, domain, sizeof domain);
        writer_bytes(&out, id.bytes, sizeof id.bytes);
        writer_u32(&out, part->number);
        struct hash32 hash = sha256_of(bytes, sizeof bytes);
        memcpy(id.bytes, hash.bytes, sizeof id.bytes);
    }
    return id;
}

void bid_record(struct exchange *exchange, const struct part *part)
{
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_BID);
    record->order = bid_id(part);
    record->owner = lookup_member(exchange, part->job->owner)->key;
    record->job = part->job->id;
    record->slots = part->at_most != 0 ? part->at_most : UINT32_MAX;
    record->width = part->width;
    record->price_micro = part->bid_micro;
}

static uint32_t slots_wanted(const struct part *part)
{
    uint32_t lanes = part_lanes_most(part->waiting + part->running, part->at_most, part->width);
    uint32_t wanted = part->waiting > 0 && lanes > part->lanes ? lanes - part->lanes : 0;
    return wanted > UINT32_MAX / part->width ? UINT32_MAX - UINT32_MAX % part->width
                                             : wanted * part->width;
}

struct book_order bid_order(const struct part *part)
{
    return (struct book_order){
        .is_bid = true,
        .owner = part->job->owner,
        .kind = part->class_id,
        .slots = slots_wanted(part),
        .width = part->width,
        .price_micro = part->bid_micro,
        .term_ns = part->term_ns,
        .sequence = part->sequence,
    };
}

void bid_rest(struct exchange *exchange, const struct part *part)
{
    const struct book_order order = bid_order(part);
    (void)book_rest(exchange->book, part->handle, &order); /* the cap of the book has room */
    feed_note(exchange, part->handle);
}

uint32_t bid_refusal(const struct exchange *exchange, const struct part *part, int64_t free_micro,
                     int64_t *ret_micro)
{
    struct book_order order = bid_order(part);
    struct book_match match;
    struct suiting suiting = {.exchange = exchange, .part = part};
    order.slots = part->width;
    if (!book_match(exchange->book, &order, ask_is_unsuited, &suiting, &match)) {
        return 0;
    }
    *ret_micro = match.is_own ? 0 : match.price_micro;
    if (match.is_own || part->job->type != EXCHANGE_POST_ONLY) {
        return match.is_own ? XREJECT_SELF_MATCH : 0;
    }
    /* An order beyond the budget would not trade at this price; nor would it, at its own limit,
     * with later asks. */
    const int64_t escrow = escrow_micro(match.price_micro, part->width, part->term_ns);
    *ret_micro = escrow > free_micro ? escrow : match.price_micro;
    return escrow > free_micro ? XREJECT_BUDGET : XREJECT_WOULD_TRADE;
}

static void give_handle(struct exchange *exchange, struct part *part)
{
    if (part->handle == BOOK_NONE) {
        return;
    }
    if (book_rests(exchange->book, part->handle)) {
        assert(book_sequence(exchange->book, part->handle) == part->sequence);
        book_remove(exchange->book, part->handle);
        feed_note(exchange, part->handle);
    }
    handle_give(exchange, part->handle);
    part->handle = BOOK_NONE;
}

void bid_stand_down(struct exchange *exchange, struct part *part)
{
    give_handle(exchange, part);
    list_remove(&part->wanting);
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_CANCEL);
    record->order = bid_id(part);
    record->status = CANCEL_NOT_RESTING;
}

static void take_away(struct exchange *exchange, struct part *part)
{
    give_handle(exchange, part);
    if (part->class_id != NO_CLASS) {
        interning_give_class(exchange, part->job->owner, part->class_id);
        part->class_id = NO_CLASS;
    }
    list_remove(&part->wanting);
    list_remove(&part->challenge);
}

static bool bid(struct exchange *exchange, struct part *part, const struct requirement *needs,
                int64_t budget_micro)
{
    if (!interning_take_class(exchange, needs, (enum rate)part->rate, &part->class_id)) {
        return false;
    }
    part->sequence = exchange->sequence;
    part->handle = handle_take(exchange, part);
    if (part->handle == BOOK_NONE) {
        effect_reject(exchange, XREJECT_LIMIT, "orders", 0,
                      exchange->limits.asks + exchange->limits.jobs);
        return false;
    }
    int64_t price_micro;
    const uint32_t code = bid_refusal(exchange, part, budget_micro, &price_micro);
    if (code == XREJECT_SELF_MATCH) {
        effect_reject(exchange, code, part->number == 0 ? "needs" : "parts.needs", 0, 0);
    } else if (code == XREJECT_BUDGET) {
        effect_reject(exchange, code, "budget_micro", budget_micro, price_micro);
    } else if (code != 0) {
        effect_reject(exchange, code, part->number == 0 ? "cap_micro" : "parts.cap_micro",
                      part->bid_micro, price_micro);
    }
    if (code != 0) {
        return false;
    }
    exchange->sequence++;
    return true;
}

/* The checks of a job are for referees alone. */
static bool bid_for_checks(struct exchange *exchange, struct part *part,
                           const struct requirement *needs, int64_t budget_micro)
{
    struct requirement *whole = memory_allocate(exchange, sizeof *whole);
    bool fits = whole != NULL && check_role_require(needs, whole);
    if (whole != NULL && !fits) {
        effect_reject(exchange, XREJECT_REQUIREMENT, "parts.needs", needs->count,
                      REQUIREMENT_NODES_MAX - 2);
    }
    bool good = fits && bid(exchange, part, whole, budget_micro);
    free(whole);
    return good;
}

bool bids_place(struct exchange *exchange, struct job *job, const struct exchange_submit *submit)
{
    const uint64_t before = exchange->sequence;
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct part *part = &job->parts[i];
        const struct requirement *needs = given_part(submit, i).needs;
        if (!band_allows_notional(exchange, i == 0 ? "notional_micro" : "parts.notional_micro",
                                  band_part_notional(exchange, part, submit->budget_micro)) ||
            !(part_is_checks(part) ? bid_for_checks(exchange, part, needs, submit->budget_micro)
                                   : bid(exchange, part, needs, submit->budget_micro))) {
            for (uint32_t k = 0; k <= i; k++) {
                take_away(exchange, &job->parts[k]);
            }
            exchange->sequence = before;
            return false;
        }
    }
    return true;
}

void bid_wants(struct exchange *exchange, struct part *part)
{
    const struct job *job = part->job;
    if (job->phase != JOB_PHASE_OPEN || job->is_closing) {
        return;
    }
    if (part->handle == BOOK_NONE) { /* the part's last lease may have ended */
        if (part->lanes == 0 && list_empty(&part->wanting)) {
            list_append(&exchange->wanting_parts, &part->wanting);
        }
        return;
    }
    if (!book_rests(exchange->book, part->handle)) {
        return; /* the bid arrives in this step, and its slots are counted then */
    }
    const uint32_t slots = slots_wanted(part);
    book_set_slots(exchange->book, part->handle, slots);
    feed_note(exchange, part->handle);
    if (slots > 0 && list_empty(&part->wanting)) {
        list_append(&exchange->wanting_parts, &part->wanting);
    }
}

void bids_want(struct exchange *exchange, struct job *job)
{
    for (uint32_t i = 0; i < job->part_count; i++) {
        bid_wants(exchange, &job->parts[i]);
    }
}

/* Bids arrive by limit, then time. Limits in different units cannot be compared without a cell, so
 * one rate goes after the other. */
static bool arrives_before(const struct part *part, const struct part *other)
{
    if (part->rate != other->rate) {
        return part->rate < other->rate;
    }
    return part->bid_micro != other->bid_micro ? part->bid_micro > other->bid_micro
                                               : part->sequence < other->sequence;
}

void bids_arrive(struct exchange *exchange, struct job *job)
{
    bool has_come[PARTS_MOST] = {false};
    for (uint32_t k = 0; k < job->part_count; k++) {
        struct part *best = NULL;
        for (uint32_t i = 0; i < job->part_count; i++) {
            struct part *part = &job->parts[i];
            if (!has_come[i] && (best == NULL || arrives_before(part, best))) {
                best = part;
            }
        }
        assert(best != NULL); /* there are as many turns as parts */
        has_come[best->number] = true;
        bid_wants(exchange, best);
        if (!book_rests(exchange->book, best->handle)) {
            list_append(&exchange->wanting_parts, &best->wanting);
        }
    }
}

void bids_take_away(struct exchange *exchange, struct job *job)
{
    exchange->wholes -= job_waits_for_all(job);
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct part *part = &job->parts[i];
        const bool stood = part->handle != BOOK_NONE;
        take_away(exchange, part);
        if (!stood) {
            continue;
        }
        struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_CANCEL);
        record->order = bid_id(part);
        record->status = CANCEL_JOB_ENDED;
    }
    spot_expose_job(exchange, job); /* leases rank by the bids */
}
