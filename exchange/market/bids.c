/* The parts of a job each have a bid that rests in the book as an order of its own. All bids of a
 * job share one budget. */
#include "exchange/state.h"

#include "base/checked.h"
#include "base/cursor.h"
#include "base/sha256.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- parts */

void part_init(struct part *part, struct job *job, uint32_t number)
{
    part->job = job;
    part->number = number;
    part->retry_head = part->retry_tail = NO_SUBTASK;
    part->class_id = NO_CLASS;
    part->handle = BOOK_NONE;
    part->straggler_ns = INT64_MAX;
    list_init(&part->wanting);
    list_init(&part->spread);
    list_init(&part->back);
    list_init(&part->front);
    list_init(&part->challenge);
}

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

uint32_t lanes_most(uint32_t subtasks, uint32_t at_most, uint32_t width)
{
    const uint32_t most = at_most == 0 ? UINT32_MAX : at_most / width;
    return subtasks < most ? subtasks : most;
}

int64_t limit_most(uint32_t subtasks, uint32_t at_most, uint32_t width, int64_t term_ns)
{
    const uint32_t lanes = at_most == 0 ? 1 : lanes_most(subtasks, at_most, width);
    const int128 whole_ns = (int128)term_ns * width * lanes;
    assert(whole_ns > 0);
    const int128 most = (int128)INT64_MAX * NS_PER_HOUR / whole_ns;
    return most < INT64_MAX ? (int64_t)most : INT64_MAX;
}

bool caps_in_range(struct exchange *exchange, const struct exchange_submit *submit)
{
    for (uint32_t i = 0; i <= submit->part_count; i++) {
        const struct exchange_part part = given_part(submit, i);
        const int64_t most = limit_most(part.subtasks, part.at_most, part.slots, part.term_ns);
        if (part.rate == RATE_NONE && part.cap_micro > most) {
            reject(exchange, XREJECT_PRICE, i == 0 ? "cap_micro" : "parts.cap_micro",
                   part.cap_micro, most);
            return false;
        }
    }
    return true;
}

/* Returns the slot-time that the whole job is expected to take. */
static int128 planned_ns(const struct job *job)
{
    int128 sum = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        const struct part *part = &job->parts[i];
        sum += (int128)part->expect_ns * (part->end - part->first) * part->width;
    }
    return sum;
}

/* Returns the price at which the budget covers one term of all lanes of the job, each lease rounded
 * up. */
static int64_t whole_limit(const struct job *job, int64_t budget_micro)
{
    int128 whole_ns = 0;
    int64_t lanes = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        const struct part *part = &job->parts[i];
        const uint32_t most = lanes_most(part->end - part->first, part->at_most, part->width);
        whole_ns += (int128)part->term_ns * part->width * most;
        lanes += most;
    }
    int128 limit = (int128)budget_micro * NS_PER_HOUR / whole_ns;
    if (limit * whole_ns % NS_PER_HOUR != 0) {
        limit = budget_micro > lanes ? (int128)(budget_micro - lanes) * NS_PER_HOUR / whole_ns : 0;
    }
    return limit < INT64_MAX ? (int64_t)limit : INT64_MAX;
}

static int64_t market_limit(const struct exchange *exchange, const struct part *part,
                            int64_t budget_micro)
{
    int128 whole_ns = planned_ns(part->job);
    int128 one_lease_ns = (int128)part->term_ns * part->width;
    whole_ns = whole_ns > one_lease_ns ? whole_ns : one_lease_ns;
    assert(whole_ns > 0);
    int128 limit = (int128)budget_micro * NS_PER_HOUR / whole_ns;
    return limit < exchange->price_band_micro ? (int64_t)limit : exchange->price_band_micro;
}

int64_t part_limit(const struct exchange *exchange, const struct part *part, int64_t cap_micro,
                   int64_t budget_micro)
{
    const int64_t limit = cap_micro >= 0 ? cap_micro : market_limit(exchange, part, budget_micro);
    const int64_t whole =
        part->job->type == EXCHANGE_ALL_OR_NONE ? whole_limit(part->job, budget_micro) : INT64_MAX;
    return limit < whole ? limit : whole;
}

bool part_limit_is_of_budget(const struct part *part)
{
    return part->cap_micro < 0 || part->bid_micro < part->cap_micro;
}

int64_t part_limit_in(const struct exchange *exchange, const struct part *part, uint32_t cell)
{
    return book_limit(exchange->book, (enum rate)part->rate, part->bid_micro, cell);
}

bool parts_create(struct exchange *exchange, struct job *job, const struct exchange_submit *submit)
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

struct part *part_of(const struct job *job, uint32_t index)
{
    uint32_t number = 0;
    while (index >= job->parts[number].end) {
        number++;
    }
    assert(number < job->part_count);
    return &job->parts[number];
}

/* ---------------------------------------------------------------- bids */

/* The id of a further part is a hash, so nobody can choose an order id that collides with it. */
struct id128 part_bid_id(const struct part *part)
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

void part_bid_record(struct exchange *exchange, const struct part *part)
{
    struct ledger_record *record = emit_ledger(exchange, LEDGER_BID);
    record->order = part_bid_id(part);
    record->owner = member_by_number(exchange, part->job->owner)->key;
    record->job = part->job->id;
    record->slots = part->at_most != 0 ? part->at_most : UINT32_MAX;
    record->width = part->width;
    record->price_micro = part->bid_micro;
}

static uint32_t slots_wanted(const struct part *part)
{
    uint32_t lanes = lanes_most(part->waiting + part->running, part->at_most, part->width);
    uint32_t wanted = part->waiting > 0 && lanes > part->lanes ? lanes - part->lanes : 0;
    return wanted > UINT32_MAX / part->width ? UINT32_MAX - UINT32_MAX % part->width
                                             : wanted * part->width;
}

struct book_order part_order(const struct part *part)
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

void part_rest(struct exchange *exchange, const struct part *part)
{
    const struct book_order order = part_order(part);
    (void)book_rest(exchange->book, part->handle, &order); /* the cap of the book has room */
    feed_note(exchange, part->handle);
}

uint32_t part_refusal(const struct exchange *exchange, const struct part *part, int64_t free_micro,
                      int64_t *ret_micro)
{
    struct book_order order = part_order(part);
    struct book_match match;
    struct suiting suiting = {.exchange = exchange, .part = part};
    order.slots = part->width;
    if (!book_match(exchange->book, &order, is_unsuited, &suiting, &match)) {
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

void part_stand_down(struct exchange *exchange, struct part *part)
{
    give_handle(exchange, part);
    list_remove(&part->wanting);
    struct ledger_record *record = emit_ledger(exchange, LEDGER_CANCEL);
    record->order = part_bid_id(part);
    record->status = CANCEL_NOT_RESTING;
}

static void take_away(struct exchange *exchange, struct part *part)
{
    give_handle(exchange, part);
    if (part->class_id != NO_CLASS) {
        class_give(exchange, part->job->owner, part->class_id);
        part->class_id = NO_CLASS;
    }
    list_remove(&part->wanting);
    list_remove(&part->challenge);
}

static bool bid(struct exchange *exchange, struct part *part, const struct requirement *needs,
                int64_t budget_micro)
{
    if (!class_take(exchange, needs, (enum rate)part->rate, &part->class_id)) {
        return false;
    }
    part->sequence = exchange->sequence;
    part->handle = handle_take(exchange, part);
    if (part->handle == BOOK_NONE) {
        reject(exchange, XREJECT_LIMIT, "orders", 0, exchange->limits.asks + exchange->limits.jobs);
        return false;
    }
    int64_t price_micro;
    const uint32_t code = part_refusal(exchange, part, budget_micro, &price_micro);
    if (code == XREJECT_SELF_MATCH) {
        reject(exchange, code, part->number == 0 ? "needs" : "parts.needs", 0, 0);
    } else if (code == XREJECT_BUDGET) {
        reject(exchange, code, "budget_micro", budget_micro, price_micro);
    } else if (code != 0) {
        reject(exchange, code, part->number == 0 ? "cap_micro" : "parts.cap_micro", part->bid_micro,
               price_micro);
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
    struct requirement *whole = allocate(exchange, sizeof *whole);
    bool fits = whole != NULL && checks_require(needs, whole);
    if (whole != NULL && !fits) {
        reject(exchange, XREJECT_REQUIREMENT, "parts.needs", needs->count,
               REQUIREMENT_NODES_MAX - 2);
    }
    bool good = fits && bid(exchange, part, whole, budget_micro);
    free(whole);
    return good;
}

bool parts_bid(struct exchange *exchange, struct job *job, const struct exchange_submit *submit)
{
    const uint64_t before = exchange->sequence;
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct part *part = &job->parts[i];
        const struct requirement *needs = given_part(submit, i).needs;
        if (!notional_in_bounds(exchange, i == 0 ? "notional_micro" : "parts.notional_micro",
                                part_notional(exchange, part, submit->budget_micro)) ||
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

void part_wants(struct exchange *exchange, struct part *part)
{
    const struct job *job = part->job;
    if (job->phase != JOB_PHASE_OPEN || job->is_closing) {
        return;
    }
    if (part->handle == BOOK_NONE) { /* its last lease may have ended */
        if (part->lanes == 0 && list_empty(&part->wanting)) {
            list_append(&exchange->wanting_parts, &part->wanting);
        }
        return;
    }
    if (!book_rests(exchange->book, part->handle)) {
        return; /* it arrives in this step and counts its slots then */
    }
    const uint32_t slots = slots_wanted(part);
    book_set_slots(exchange->book, part->handle, slots);
    feed_note(exchange, part->handle);
    if (slots > 0 && list_empty(&part->wanting)) {
        list_append(&exchange->wanting_parts, &part->wanting);
    }
}

void job_wants(struct exchange *exchange, struct job *job)
{
    for (uint32_t i = 0; i < job->part_count; i++) {
        part_wants(exchange, &job->parts[i]);
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

void job_bids_arrive(struct exchange *exchange, struct job *job)
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
        part_wants(exchange, best);
        if (!book_rests(exchange->book, best->handle)) {
            list_append(&exchange->wanting_parts, &best->wanting);
        }
    }
}

bool job_lives_off_leases(const struct job *job)
{
    for (uint32_t i = 0; i < job->part_count; i++) {
        if (job->parts[i].handle != BOOK_NONE) {
            return false;
        }
    }
    return true;
}

bool job_waits_for_all(const struct job *job)
{
    return job->type == EXCHANGE_ALL_OR_NONE && job->parts[0].handle != BOOK_NONE;
}

bool bid_waits_for_all(const struct exchange *exchange, uint32_t handle)
{
    const struct part *part = exchange->orders_by_handle[handle];
    return job_waits_for_all(part->job);
}

void job_take_bids_away(struct exchange *exchange, struct job *job)
{
    exchange->wholes -= job_waits_for_all(job);
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct part *part = &job->parts[i];
        const bool stood = part->handle != BOOK_NONE;
        take_away(exchange, part);
        if (!stood) {
            continue;
        }
        struct ledger_record *record = emit_ledger(exchange, LEDGER_CANCEL);
        record->order = part_bid_id(part);
        record->status = CANCEL_JOB_ENDED;
    }
    job_expose_leases(exchange, job); /* leases rank by the bids */
}
