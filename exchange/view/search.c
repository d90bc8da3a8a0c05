#include "exchange/view/search.h"

#include "base/limit.h"
#include "exchange/lifecycle.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/bands.h"
#include "exchange/market/bids.h"
#include "exchange/market/daily.h"
#include "exchange/market/escrow.h"
#include "exchange/market/part_eligibility.h"
#include "exchange/market/part_limits.h"
#include "exchange/market/spot.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lookup.h"
#include "exchange/state/parts.h"
#include "exchange/state/steps.h"
#include "exchange/view/reads.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- who asks */

int64_t search_budget(const struct exchange_need *need, int64_t budget_micro)
{
    return budget_micro > 0 || need->holds_nothing ? budget_micro : INT64_MAX;
}

const struct part *search_asked(const struct exchange *exchange, const struct exchange_need *need,
                                struct job *ret_job)
{
    struct job *job = ret_job;
    struct part *part = &job->only_part;
    *job = (struct job){
        .owner = need->account,
        .type = need->type,
        .phase = JOB_PHASE_OPEN,
        .parts = part,
        .part_count = 1,
        .hold = {.account = need->account,
                 .amount_micro = search_budget(need, need->budget_micro),
                 .is_open = true},
        .interruptions_left = need->is_firm_only ? 0 : UINT32_MAX,
    };
    list_init(&job->leases);
    part_init(part, job, 0);
    part->end = part->waiting = need->subtasks > 0 ? need->subtasks : 1;
    part->width = need->slots;
    part->at_most = need->at_most;
    part->cap_micro = need->cap_micro;
    part->rate = (uint8_t)need->rate;
    part->limit_ns = need->limit_ns;
    part->term_ns = need->term_ns;
    part->expect_ns = need->expect_ns > 0 ? need->expect_ns : 0;
    part->sequence = exchange->sequence;
    const bool is_bounded = (need->budget_micro > 0 || need->holds_nothing) && need->term_ns > 0;
    part->bid_micro = is_bounded ? part_limit(exchange, part, need->cap_micro, need->budget_micro)
                      : limit_is_set(need->cap_micro) ? need->cap_micro
                                                      : exchange->price_band_micro;
    return part;
}

bool search_is_whole(const struct search *search)
{
    const struct job *job = search->part->job;
    return search->is_filed ? job_waits_for_all(job)
                            : job->type == EXCHANGE_FOK || job->type == EXCHANGE_ALL_OR_NONE;
}

/* ---------------------------------------------------------------- what is offered */

bool search_offer(const struct search *search, const struct explained *seen,
                  struct offer *ret_offer)
{
    const struct exchange *exchange = search->exchange;
    const struct device *device = seen->device;
    const struct ask *ask = device->ask;
    struct book_ask resting;
    if (ask == NULL || !ask_suits(ask, search->part->job)) {
        return false;
    }
    if (seen->lease != NULL) {
        *ret_offer = (struct offer){
            .from = seen,
            .price_micro = seen->lease->exposed_micro,
            .max_term_ns = ask->max_term_ns,
            .day_ns = ask->daily_ns == 0 ? INT64_MAX : daily_left_ns(exchange, ask),
            .sequence = seen->lease->id,
            .slots = seen->lease->slots,
            .is_taken = true,
        };
        return spot_may_be_taken(exchange, search->part, seen->lease);
    }
    if (!book_ask(exchange->book, ask->handle, &resting) || resting.slots == 0) {
        return false;
    }
    *ret_offer = (struct offer){
        .from = seen,
        .price_micro = resting.price_micro,
        .max_term_ns = resting.max_term_ns,
        .day_ns = INT64_MAX, /* the free slots respect the day */
        .sequence = resting.sequence,
        .slots = resting.slots,
        .is_own = device->key.provider == search->part->job->owner,
    };
    return true;
}

bool search_may_take(const struct search *search, const struct offer *offer)
{
    return !offer->is_own &&
           part_may_take(search->exchange, search->part, offer->from->device->ask);
}

int64_t search_limit_in(const struct search *search, int64_t cap_micro, uint32_t cell)
{
    return book_limit(search->exchange->book, search->need->rate, cap_micro, cell);
}

bool search_cap_for(const struct search *search, int64_t price_micro, uint32_t cell,
                    int64_t *ret_cap_micro)
{
    const enum rate rate = search->need->rate;
    *ret_cap_micro = band_price_bound(search->exchange, price_micro);
    if (*ret_cap_micro < price_micro) {
        return false; /* the band has no price that high any more */
    }
    if (rate == RATE_NONE) {
        return true;
    }
    const int64_t operations = book_cell_rate(search->exchange->book, cell, rate);
    return operations > 0 && rate_value_for(price_micro, operations, ret_cap_micro);
}

/* ---------------------------------------------------------------- what it meets first */

struct altered search_unaltered(const struct search *search)
{
    const int64_t cap_micro = search->need->cap_micro;
    return (struct altered){.slots = search->need->slots,
                            .cap_micro =
                                limit_is_set(cap_micro) ? cap_micro : search->part->bid_micro,
                            .term_ns = search->need->term_ns,
                            .type = search->part->job->type};
}

/* Orders two offers as the bid would take them: free slots before taken leases; then by price, or
 * price per work, then time. */
static bool comes_first(const struct search *search, const struct offer *a, const struct offer *b)
{
    const struct book *book = search->exchange->book;
    const enum rate rate = search->need->rate;
    if (a->is_taken != b->is_taken) {
        return b->is_taken;
    }
    const int64_t in_a = rate == RATE_NONE ? 1 : book_cell_rate(book, a->from->device->cell, rate);
    const int64_t in_b = rate == RATE_NONE ? 1 : book_cell_rate(book, b->from->device->cell, rate);
    const int128 here = rate_worth(a->price_micro, in_b);
    const int128 there = rate_worth(b->price_micro, in_a);
    return here != there ? here < there : a->sequence < b->sequence;
}

static bool is_met(const struct search *search, const struct altered *altered,
                   const struct offer *offer)
{
    const struct explained *seen = offer->from;
    return offer->slots >= altered->slots &&
           (!limit_is_set(altered->cap_micro) ||
            offer->price_micro <=
                search_limit_in(search, altered->cap_micro, seen->device->cell)) &&
           (offer->max_term_ns == 0 || offer->max_term_ns >= altered->term_ns) &&
           (int128)altered->term_ns * altered->slots <= offer->day_ns &&
           (altered->turns ? altered->satisfies(altered->context, seen)
                           : seen->effort.hold == 0 && !seen->is_passed_over);
}

/* The first offer of a bid by value may cost more than later ones. */
static bool is_covered(const struct search *search, const struct altered *altered,
                       int64_t price_micro)
{
    return escrow_micro(price_micro, altered->slots, altered->term_ns) - altered->more_micro <=
           escrow_free_micro(search->part->job);
}

struct meeting search_meet(const struct search *search, const struct altered *altered)
{
    /* Own asks count for the first offer too; the budget does not matter there. */
    struct offer first = {.from = NULL};
    struct offer best = {.from = NULL};
    steps_add(search->exchange, 4 * search->count);
    for (size_t i = 0; i < search->count; i++) {
        struct offer offer;
        if (!search_offer(search, &search->seen[i], &offer) ||
            (offer.is_taken && !job_type_challenges(altered->type))) {
            continue;
        }
        const bool is_first =
            !offer.is_taken && (first.from == NULL || comes_first(search, &offer, &first));
        const bool is_best = (best.from == NULL || comes_first(search, &offer, &best)) &&
                             is_covered(search, altered, offer.price_micro) &&
                             search_may_take(search, &offer);
        if ((!is_first && !is_best) || !is_met(search, altered, &offer)) {
            continue;
        }
        first = is_first ? offer : first;
        best = is_best ? offer : best;
    }
    const bool fills = best.from != NULL && altered->type != EXCHANGE_POST_ONLY;
    return (struct meeting){.is_own = first.from != NULL && first.is_own,
                            .meets = first.from != NULL,
                            .first = first.from,
                            .first_micro = first.price_micro,
                            .from = fills ? best.from : NULL,
                            .price_micro = best.price_micro};
}

struct ranked { /* an offer of free slots */
    struct offer offer;
    int64_t operations; /* of a slot a second; 1: the bid is not by value */
};

/* Orders as comes_first does. */
static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    const int128 here = rate_worth(a->offer.price_micro, b->operations);
    const int128 there = rate_worth(b->offer.price_micro, a->operations);
    if (here != there) {
        return here < there ? -1 : 1;
    }
    return (a->offer.sequence > b->offer.sequence) - (a->offer.sequence < b->offer.sequence);
}

/* Lists the free slots that the bid may have, best first. */
static size_t find_ranked(const struct search *search, const struct altered *altered,
                          struct ranked *ret_ranked)
{
    const struct book *book = search->exchange->book;
    const enum rate rate = search->need->rate;
    size_t count = 0;
    steps_add(search->exchange, 8 * search->count);
    for (size_t i = 0; i < search->count; i++) {
        struct offer offer;
        const struct explained *seen = &search->seen[i];
        if (seen->lease == NULL && search_offer(search, seen, &offer) &&
            search_may_take(search, &offer) && is_met(search, altered, &offer)) {
            ret_ranked[count++] = (struct ranked){
                offer, rate == RATE_NONE ? 1 : book_cell_rate(book, seen->device->cell, rate)};
        }
    }
    if (count > 0) {
        qsort(ret_ranked, count, sizeof *ret_ranked, compare_ranked);
    }
    return count;
}

uint32_t search_fills(const struct search *search, const struct altered *altered,
                      uint32_t *ret_wanted)
{
    const struct part *part = search->part;
    const uint32_t width = altered->slots;
    const uint32_t most = part_lanes_most(part->waiting + part->running, part->at_most, width);
    const uint32_t wanted = most > part->lanes ? most - part->lanes : 0;
    struct ranked *ranked = calloc(search->count + 1, sizeof *ranked);
    uint32_t lanes = 0;
    *ret_wanted = wanted > UINT32_MAX / width ? UINT32_MAX : wanted * width;
    if (ranked == NULL) {
        return 0;
    }
    int64_t free_micro;
    if (!checked_add(escrow_free_micro(part->job), altered->more_micro, &free_micro)) {
        free_micro = INT64_MAX;
    }
    const size_t count = find_ranked(search, altered, ranked);
    for (size_t i = 0; i < count && lanes < wanted; i++) {
        const struct offer *offer = &ranked[i].offer;
        const int64_t one_micro = escrow_micro(offer->price_micro, width, altered->term_ns);
        const int64_t affordable = one_micro == 0 ? UINT32_MAX : free_micro / one_micro;
        uint32_t taken = offer->slots / width;
        taken = taken < wanted - lanes ? taken : wanted - lanes;
        taken = taken < affordable ? taken : (uint32_t)affordable;
        free_micro -= escrow_micro(offer->price_micro, taken * width, altered->term_ns);
        lanes += taken;
    }
    free(ranked);
    return lanes * width;
}

/* ---------------------------------------------------------------- leases that may be taken */

static int64_t lesser(int64_t figure, int64_t so_far)
{
    return figure >= 0 && (so_far < 0 || figure < so_far) ? figure : so_far;
}

/* Returns the job's budget that covers a term of one lane at that price. Returns -1 when no budget
 * can, or the present one does. */
static int64_t budget_to_take(const struct part *part, int64_t price_micro)
{
    const int64_t escrow = escrow_micro(price_micro, part->width, part->term_ns);
    const int64_t short_micro = escrow - escrow_free_micro(part->job);
    int64_t budget_micro;
    return short_micro > 0 && checked_add(part->job->hold.amount_micro, short_micro, &budget_micro)
               ? budget_micro
               : -1;
}

void search_takes(const struct search *search, int64_t *ret_limit_micro, int64_t *ret_budget_micro)
{
    const struct part *part = search->part;
    struct altered any = search_unaltered(search);
    any.cap_micro = LIMIT_NONE;
    *ret_limit_micro = *ret_budget_micro = -1;
    if (!job_type_challenges(part->job->type) || bid_order(part).slots == 0) {
        return; /* a part without ordered slots has all the lanes that it can use */
    }
    steps_add(search->exchange, 4 * search->count);
    for (size_t i = 0; i < search->count; i++) {
        struct offer offer;
        int64_t limit_micro;
        const struct explained *seen = &search->seen[i];
        if (seen->lease == NULL || !search_offer(search, seen, &offer) ||
            !is_met(search, &any, &offer) ||
            !search_cap_for(search, offer.price_micro, seen->device->cell, &limit_micro)) {
            continue;
        }
        if (is_covered(search, &any, offer.price_micro)) {
            *ret_limit_micro = lesser(limit_micro, *ret_limit_micro);
        } else if (limit_micro <= part->bid_micro) {
            *ret_budget_micro = lesser(budget_to_take(part, offer.price_micro), *ret_budget_micro);
        }
    }
}

/* ---------------------------------------------------------------- all at once */

struct choice { /* an ask, with the cap needed to have it */
    struct offer offer;
    int64_t cap_micro;
    uint32_t lanes;
};

static int compare_choices(const void *left, const void *right)
{
    const struct choice *a = left;
    const struct choice *b = right;
    if (a->cap_micro != b->cap_micro) { /* the price, or the price for the same work */
        return a->cap_micro < b->cap_micro ? -1 : 1;
    }
    return (a->offer.sequence > b->offer.sequence) - (a->offer.sequence < b->offer.sequence);
}

/* Finds the cap for the choice; within the present limit, the cap is the price itself. */
static bool cap_for_choice(const struct search *search, struct choice *choice)
{
    const uint32_t cell = choice->offer.from->device->cell;
    const int64_t price_micro = choice->offer.price_micro;
    choice->cap_micro = price_micro;
    return (search->need->rate == RATE_NONE && price_micro <= search->part->bid_micro) ||
           search_cap_for(search, price_micro, cell, &choice->cap_micro);
}

/* Lists the asks at any price, best first. */
static size_t find_choices(const struct search *search, struct choice *ret_choices)
{
    size_t count = 0;
    struct altered any = search_unaltered(search);
    any.cap_micro = LIMIT_NONE;
    steps_add(search->exchange, 8 * search->count);
    for (size_t i = 0; i < search->count; i++) {
        struct choice choice = {.lanes = 0};
        if (search->seen[i].lease != NULL ||
            !search_offer(search, &search->seen[i], &choice.offer) ||
            !is_met(search, &any, &choice.offer) || !search_may_take(search, &choice.offer) ||
            !cap_for_choice(search, &choice)) {
            continue;
        }
        choice.lanes = choice.offer.slots / search->need->slots;
        ret_choices[count++] = choice;
    }
    if (count > 0) {
        qsort(ret_choices, count, sizeof *ret_choices, compare_choices);
    }
    return count;
}

/* Goes from ask to ask like plan_part of all_or_none.c, at the present limit and budget or at
 * any. */
static uint32_t fill_from(const struct search *search, const struct choice *choices, size_t count,
                          bool at_any, struct whole *whole)
{
    const uint32_t width = search->need->slots;
    const int64_t free_micro = at_any ? INT64_MAX : escrow_free_micro(search->part->job);
    uint32_t slots = 0;
    int64_t spent_micro = 0;
    bool is_short = false;
    for (size_t i = 0; i < count && slots < whole->wanted; i++) {
        const struct choice *choice = &choices[i];
        const int64_t price_micro = choice->offer.price_micro;
        const int64_t left_micro = free_micro - spent_micro;
        if (!at_any && (price_micro > search_limit_in(search, search->part->bid_micro,
                                                      choice->offer.from->device->cell) ||
                        escrow_micro(price_micro, width, search->need->term_ns) > left_micro)) {
            continue;
        }
        const uint32_t wanted = whole->wanted - slots;
        const uint32_t taken = choice->lanes * width < wanted ? choice->lanes * width : wanted;
        const int64_t escrow = escrow_micro(price_micro, taken, search->need->term_ns);
        is_short = is_short || escrow > left_micro;
        spent_micro = escrow > left_micro ? free_micro : spent_micro + escrow;
        slots += taken;
        int64_t *dearest = at_any ? &whole->dearest_micro : &whole->price_micro;
        *dearest = price_micro > *dearest ? price_micro : *dearest;
        if (at_any) {
            whole->limit_micro = choice->cap_micro;
            whole->escrow_micro = spent_micro;
        }
    }
    if (!at_any) {
        whole->fills = slots >= whole->wanted && !is_short;
    }
    return slots;
}

bool search_whole(const struct search *search, struct whole *ret_whole)
{
    struct choice *choices = calloc(search->count + 1, sizeof *choices);
    *ret_whole = (struct whole){.wanted = bid_order(search->part).slots};
    if (choices == NULL) {
        return false;
    }
    const size_t count = find_choices(search, choices);
    ret_whole->free = fill_from(search, choices, count, false, ret_whole);
    ret_whole->is_there = fill_from(search, choices, count, true, ret_whole) >= ret_whole->wanted;
    free(choices);
    return true;
}

bool search_are_own_leases(const struct search *search)
{
    const struct exchange *exchange = search->exchange;
    const struct part *part = search->part;
    uint64_t leased = 0;
    uint64_t own = 0;
    for (struct list_link *at = exchange->provider_list.next; at != &exchange->provider_list;
         at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        for (struct list_link *link = provider->devices.next; link != &provider->devices;
             link = link->next) {
            const struct device *device = LIST_ELEMENT(link, struct device, of_provider);
            steps_add(exchange, 2);
            leased += read_part_is_in_reach(exchange, part, device) ? device->leased : 0;
        }
    }
    const struct member *owner = lookup_member(exchange, part->job->owner);
    for (const struct list_link *at = owner->jobs.next; at != &owner->jobs; at = at->next) {
        const struct job *job = LIST_ELEMENT(at, struct job, of_owner);
        for (const struct list_link *link = job->leases.next; link != &job->leases;
             link = link->next) {
            const struct lease *lease = LIST_ELEMENT(link, struct lease, of_job);
            steps_add(exchange, 2);
            own += lease->device != NULL && lease->state != LEASE_ENDED &&
                           lease->state != LEASE_PROMISED &&
                           read_part_is_in_reach(exchange, part, lease->device)
                       ? lease->slots
                       : 0;
        }
    }
    return own > 0 && own == leased;
}
