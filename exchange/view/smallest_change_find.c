#include "exchange/view/smallest_change_find.h"

#include "base/limit.h"
#include "exchange/lifecycle.h"
#include "exchange/market/bands.h"
#include "exchange/market/escrow.h"
#include "exchange/state/job_records.h"
#include "exchange/state/parts.h"
#include "exchange/state/steps.h"
#include "exchange/view/effort.h"
#include "exchange/view/smallest_change_candidate.h"
#include "exchange/view/smallest_change_needs.h"

#include <assert.h>

#define WHOLE_PPM 1000000

/* ---------------------------------------------------------------- candidates */

/* Returns the relative size of a change, in millionths. */
static int64_t difference_ppm(int64_t a, int64_t b)
{
    int128 x = a < 0 ? -(int128)a : a;
    int128 y = b < 0 ? -(int128)b : b;
    int128 apart = (int128)a - b;
    apart = apart < 0 ? -apart : apart;
    int128 larger = x > y ? x : y;
    int128 ppm = larger == 0 ? 0 : apart * WHOLE_PPM / larger;
    return ppm > WHOLE_PPM ? WHOLE_PPM : (int64_t)ppm;
}

static void add_change(struct candidate *candidate, int64_t size_ppm)
{
    candidate->count++;
    candidate->size_ppm += size_ppm;
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    if (b->offer.from == NULL || a->count != b->count) {
        return b->offer.from == NULL || a->count < b->count;
    }
    if (a->size_ppm != b->size_ppm) {
        return a->size_ppm < b->size_ppm;
    }
    if (a->cap_micro != b->cap_micro) {
        return a->cap_micro < b->cap_micro; /* changes from 0 are all of the same size */
    }
    if (a->offer.price_micro != b->offer.price_micro) {
        return a->offer.price_micro < b->offer.price_micro;
    }
    return a->offer.is_taken != b->offer.is_taken ? b->offer.is_taken
                                                  : a->offer.sequence < b->offer.sequence;
}

static int64_t escrow_of(const struct candidate *candidate)
{
    return escrow_micro(candidate->offer.price_micro, candidate->slots, candidate->term_ns);
}

/* Returns true when the free budget covers a term. */
static bool is_covered(const struct search *search, const struct candidate *candidate)
{
    return escrow_of(candidate) <= escrow_free_micro(search->part->job);
}

/* Lists the divisors of a number, rising. */
static void find_divisors(uint32_t number, struct divisors *ret_divisors)
{
    uint32_t count = 0;
    uint32_t *found = ret_divisors->found;
    for (uint64_t i = 1; i * i <= number; i++) {
        if (number % i == 0) {
            found[count++] = (uint32_t)i;
        }
    }
    for (uint32_t below = count; below-- > 0;) {
        const uint32_t other = number / found[below];
        if (other != found[below]) {
            found[count++] = other;
        }
    }
    ret_divisors->count = count;
}

/* Returns the most of these slots, at least one, that divides at_most; at_most 0 allows any
 * number. */
static uint32_t in_multiples(const struct divisors *divisors, uint32_t slots)
{
    uint32_t from = 0;
    uint32_t to = divisors->count;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (divisors->found[middle] <= slots) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return divisors->count == 0 ? slots : divisors->found[from - 1];
}

/* Takes the most free slots for a subtask that divide at_most and, if possible, fit the budget. */
static void take_fewer_slots(const struct seeking *seeking, struct candidate *candidate)
{
    const struct offer *offer = &candidate->offer;
    const struct search *search = seeking->search;
    if (offer->slots == 0) {
        candidate->slots = 0;
        return;
    }
    candidate->slots = in_multiples(&seeking->divisors, offer->slots);
    const int128 slot_micro = (int128)offer->price_micro * candidate->term_ns;
    if (!is_covered(search, candidate) && slot_micro > 0) {
        const int128 free_micro = escrow_free_micro(search->part->job);
        const int128 covered = free_micro * NS_PER_HOUR / slot_micro; /* fewer slots */
        if (covered > 0) {
            candidate->slots = in_multiples(&seeking->divisors, (uint32_t)covered);
        }
    }
}

/* Returns the longest term that the budget covers. Returns 0 when the present term is covered, or
 * the covered one is too short for a subtask. */
static int64_t covered_term_ns(const struct search *search, const struct candidate *candidate)
{
    const int128 hourly = (int128)candidate->offer.price_micro * candidate->slots;
    if (is_covered(search, candidate) || hourly <= 0) {
        return 0;
    }
    const int128 covered_ns = (int128)escrow_free_micro(search->part->job) * NS_PER_HOUR / hourly;
    int64_t term_ns = (int64_t)covered_ns; /* less than the present term */
    term_ns -= term_ns % NS_PER_MS;
    const struct exchange_need *need = search->need;
    return term_ns >= part_least_term_ns(need->limit_ns, need->term_ns) ? term_ns : 0;
}

/* Takes the ask's shorter term, or less if the budget covers only less. */
static void take_shorter_term(const struct search *search, struct candidate *candidate)
{
    candidate->term_ns = candidate->offer.max_term_ns;
    const int64_t term_ns = covered_term_ns(search, candidate);
    candidate->term_ns = term_ns > 0 ? term_ns : candidate->term_ns;
}

/* A post-only bid meets nobody, and only a bid that rests takes a lease. */
static void judge_type(const struct search *search, struct candidate *candidate)
{
    candidate->type = search->part->job->type;
    if (candidate->type == EXCHANGE_POST_ONLY ||
        (candidate->offer.is_taken && !job_type_challenges(candidate->type))) {
        candidate->type = EXCHANGE_MARKET;
        add_change(candidate, WHOLE_PPM);
    }
}

/* A budget of 0 without a cap means a limit of 0, which a larger budget raises. INT64_MAX: no
 * budget does. */
static int64_t budget_at(const struct search *search, const struct candidate *candidate)
{
    struct candidate richer = *candidate;
    int64_t low_micro = candidate->budget_micro;
    int64_t high_micro = INT64_MAX;
    while (low_micro < high_micro) {
        richer.budget_micro = low_micro + (high_micro - low_micro) / 2;
        if (smallest_change_limit(search, &richer) >= candidate->offer.price_micro) {
            high_micro = richer.budget_micro;
        } else {
            low_micro = richer.budget_micro + 1;
        }
    }
    return low_micro;
}

/* Returns the budget that covers the changed bid's term; INT64_MAX: none does. */
static int64_t covering_budget(const struct search *search, const struct candidate *candidate)
{
    const int64_t short_micro = escrow_of(candidate) - escrow_free_micro(search->part->job);
    int64_t covers_micro = 0;
    return checked_add(search->need->budget_micro, short_micro, &covers_micro) ? covers_micro
                                                                               : INT64_MAX;
}

/* The limit of a bid without a cap follows from the budget. A budget that must grow anyway raises
 * that limit, too, unless the limit asks for more than the term: then a cap is the smaller change.
 * Returns true when the budget alone does it, and sets the candidate's budget. */
static bool raise_by_budget(const struct search *search, struct candidate *candidate)
{
    const struct exchange_need *need = search->need;
    if (need->rate != RATE_NONE || need->term_ns <= 0 || limit_is_set(search->part->cap_micro) ||
        (!need->holds_nothing && is_covered(search, candidate))) {
        return false;
    }
    const int64_t budget_micro = budget_at(search, candidate);
    if (!need->holds_nothing && budget_micro > covering_budget(search, candidate)) {
        return false;
    }
    candidate->budget_micro = budget_micro;
    return true;
}

/* A new order needs a cap within the band, even if the standing bid's cap is outside. */
static void judge_band(const struct search *search, struct candidate *candidate)
{
    const struct exchange_need *need = search->need;
    if (need->rate == RATE_NONE && limit_is_set(search->part->cap_micro)) {
        candidate->cap_micro = band_price_bound(search->exchange, need->cap_micro);
    }
    if (candidate->cap_micro != need->cap_micro) {
        add_change(candidate, difference_ppm(need->cap_micro, candidate->cap_micro));
    }
}

/* A term must be covered by more money, or by a shorter term if the market refuses such an order.
 * Returns false when neither works. */
static bool judge_budget(const struct search *search, struct candidate *candidate)
{
    const struct exchange_need *need = search->need;
    if (is_covered(search, candidate)) {
        return smallest_change_within_notional(search, candidate);
    }
    struct candidate richer = *candidate;
    const int64_t covers_micro = covering_budget(search, candidate);
    richer.budget_micro =
        covers_micro > candidate->budget_micro ? covers_micro : candidate->budget_micro;
    if (covers_micro < INT64_MAX && smallest_change_within_notional(search, &richer)) {
        add_change(&richer, difference_ppm(need->budget_micro, richer.budget_micro));
        *candidate = richer;
        return true;
    }
    const bool is_shorter = candidate->term_ns != need->term_ns; /* counted already */
    const int64_t term_ns = covered_term_ns(search, candidate);
    if (term_ns <= 0) {
        return false;
    }
    candidate->term_ns = term_ns;
    if (!is_shorter) {
        add_change(candidate, difference_ppm(need->term_ns, term_ns));
    }
    return smallest_change_within_notional(search, candidate);
}

/* Judges all but the requirement. Returns false when no change works. */
static bool judge_terms(const struct seeking *seeking, struct candidate *candidate)
{
    const struct search *search = seeking->search;
    const struct exchange_need *need = search->need;
    const struct offer *offer = &candidate->offer;
    const uint32_t cell = offer->from->device->cell;
    candidate->slots = need->slots;
    candidate->term_ns = need->term_ns;
    candidate->cap_micro = need->cap_micro;
    candidate->budget_micro = need->budget_micro;
    if (offer->price_micro > search->exchange->price_band_micro) {
        return false; /* a standing bid may pay more; a new order may not */
    }
    judge_type(search, candidate);
    judge_band(search, candidate);
    if (offer->max_term_ns != 0 && offer->max_term_ns < need->term_ns) {
        candidate->term_ns = offer->max_term_ns;
    }
    if (offer->slots < need->slots) {
        take_fewer_slots(seeking, candidate);
        add_change(candidate, difference_ppm(need->slots, candidate->slots));
    }
    if (candidate->term_ns != need->term_ns) {
        take_shorter_term(search, candidate);
        add_change(candidate, difference_ppm(need->term_ns, candidate->term_ns));
    }
    if (limit_is_set(need->cap_micro) &&
        offer->price_micro >
            search_limit_in(search, smallest_change_limit(search, candidate), cell)) {
        const bool is_other = candidate->cap_micro != need->cap_micro; /* counted already */
        if (!raise_by_budget(search, candidate) &&
            !search_cap_for(search, offer->price_micro, cell, &candidate->cap_micro)) {
            return false; /* no cap that can be written is worth it */
        }
        if (!is_other && candidate->cap_micro != need->cap_micro) {
            add_change(candidate, difference_ppm(need->cap_micro, candidate->cap_micro));
        }
    }
    return candidate->slots > 0 && judge_budget(search, candidate) &&
           candidate->term_ns >= part_least_term_ns(need->limit_ns, need->term_ns) &&
           (int128)candidate->term_ns * candidate->slots <= offer->day_ns;
}

/* Returns true when the requirement needs few enough changes, and none to fixed predicates. This
 * cheap test comes first. */
static bool is_in_reach(const struct seeking *seeking, const struct explained *seen)
{
    const uint32_t most =
        seeking->best.offer.from == NULL ? EXCHANGE_CHANGES_MOST : seeking->best.count;
    return !seen->is_passed_over && seen->effort.hold <= most &&
           (seen->effort.hold_set & seeking->fixed) == 0;
}

static void judge_needs(const struct seeking *seeking, struct candidate *candidate)
{
    const struct explained *seen = candidate->offer.from;
    const struct requirement *needs = seeking->search->need->needs;
    for (uint64_t left = seen->effort.hold_set; left != 0; left &= left - 1) {
        int64_t figure = 0;
        const struct requirement_node *node = &needs->nodes[__builtin_ctzll(left)];
        add_change(candidate,
                   smallest_change_nearest(seeking->search->exchange, seen->device, node, &figure)
                       ? difference_ppm(node->attribute.number, figure)
                       : WHOLE_PPM);
    }
}

static void consider(struct seeking *seeking, const struct explained *seen)
{
    const struct search *search = seeking->search;
    struct candidate candidate = {.count = 0};
    if (!is_in_reach(seeking, seen) || !search_offer(search, seen, &candidate.offer) ||
        !search_may_take(search, &candidate.offer) || !judge_terms(seeking, &candidate) ||
        (seeking->best.offer.from != NULL &&
         candidate.count + seen->effort.hold > seeking->best.count)) {
        return;
    }
    judge_needs(seeking, &candidate);
    if (candidate.count <= EXCHANGE_CHANGES_MOST && is_better(&candidate, &seeking->best)) {
        seeking->best = candidate;
    }
}

/* ---------------------------------------------------------------- the smallest change */

/* Returns true when the device satisfies the changed requirement. Only changed predicates can
 * differ, and most devices fail even if all of those hold. */
static bool satisfies(const void *context, const struct explained *seen)
{
    const struct seeking *seeking = context;
    const struct search *search = seeking->search;
    const struct explained *best = seeking->best.offer.from;
    size_t count;
    steps_add(search->exchange, steps_of_needs(search->need->needs));
    const struct attribute *attributes =
        book_cell_attributes(search->exchange->book, seen->device->cell, &count);
    const uint64_t changed = best->effort.hold_set;
    uint64_t truth = seen->truth & ~changed;
    const uint64_t at_best = truth | (changed & ~best->truth);
    if (effort_of(search->need->needs, at_best).hold > 0) {
        return false;
    }
    const struct turned *turned = seeking->turned;
    for (uint64_t left = changed; left != 0; left &= left - 1, turned++) {
        const bool holds = turned->has_figure
                               ? requirement_predicate_holds(&turned->after, attributes, count)
                               : !turned->held;
        truth |= holds ? left & (~left + 1) : 0;
    }
    return effort_of(search->need->needs, truth).hold == 0 &&
           !requirement_passes_over(seeking->changed, attributes, count) &&
           (search->need->rate == RATE_NONE || rate_of(search->need->rate, attributes, count) > 0);
}

/* Finds the best offer for the changed bid, which may beat its own candidate. Returns false when an
 * own ask comes first: the order would be refused. */
static bool settle_price(const struct seeking *seeking,
                         struct exchange_smallest_change *smallest_change)
{
    const struct candidate *best = &seeking->best;
    const struct altered altered = {
        .slots = best->slots,
        .cap_micro = smallest_change_limit(seeking->search, best),
        .term_ns = best->term_ns,
        .more_micro = best->budget_micro - seeking->search->need->budget_micro,
        .type = best->type,
        .turns = best->offer.from->effort.hold_set != 0,
        .satisfies = satisfies,
        .context = seeking,
    };
    const struct meeting meeting = search_meet(seeking->search, &altered);
    smallest_change->price_micro = meeting.price_micro;
    smallest_change->takes = meeting.from != NULL && meeting.from->lease != NULL;
    smallest_change->fills_slots =
        search_fills(seeking->search, &altered, &smallest_change->wanted_slots);
    return !meeting.is_own && meeting.from != NULL;
}

void smallest_change_find(const struct search *search,
                          struct exchange_smallest_change *ret_smallest)
{
    const struct exchange_need *need = search->need;
    struct seeking seeking = {.search = search, .fixed = smallest_change_fixed(need->needs)};
    find_divisors(need->at_most, &seeking.divisors);
    ret_smallest->count = 0;
    steps_add(search->exchange, 12 * search->count);
    for (size_t i = 0; i < search->count; i++) {
        consider(&seeking, &search->seen[i]);
    }
    const struct candidate *best = &seeking.best;
    if (best->offer.from == NULL || best->count == 0) {
        return;
    }
    ret_smallest->slots = best->slots;
    ret_smallest->cap_micro = best->cap_micro;
    ret_smallest->rate = need->rate;
    ret_smallest->term_ns = best->term_ns;
    ret_smallest->budget_micro = best->budget_micro;
    ret_smallest->type = best->type;
    smallest_change_add_figure(ret_smallest, BID_CHANGE_ORDER, search->part->job->type, best->type);
    if (best->cap_micro != need->cap_micro) {
        const bool is_named = need->rate != RATE_NONE || limit_is_set(search->part->cap_micro);
        smallest_change_add_figure(ret_smallest, BID_CHANGE_CAP,
                                   is_named ? need->cap_micro : LIMIT_NONE, best->cap_micro);
    }
    smallest_change_add_figure(ret_smallest, BID_CHANGE_BUDGET, need->budget_micro,
                               best->budget_micro);
    smallest_change_add_figure(ret_smallest, BID_CHANGE_TERM, need->term_ns, best->term_ns);
    smallest_change_add_figure(ret_smallest, BID_CHANGE_SLOTS, need->slots, best->slots);
    smallest_change_rewrite(&seeking, ret_smallest);
    assert(ret_smallest->count <= best->count); /* a list goes as one change */
    if (!settle_price(&seeking, ret_smallest)) {
        ret_smallest->count = 0;
    }
    smallest_change_copy(need->needs, &ret_smallest->was);
}
