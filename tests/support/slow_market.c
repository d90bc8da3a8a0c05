#include "tests/support/slow_market.h"

#include "protocol/reject.h"
#include "tests/support/slow_prices.h"

#include <check.h>
#include <string.h>

void slow_must(bool holds, const char *what)
{
    if (!holds) {
        ck_abort_msg("%s", what);
    }
}

uint32_t slow_free(const struct slow_ask *ask)
{
    const uint32_t left = ask->slots > ask->leased ? ask->slots - ask->leased : 0;
    const uint32_t of_day = ask->daily > ask->promised ? ask->daily - ask->promised : 0;
    const uint32_t most = ask->daily == 0 ? left : of_day / ask->max_term;
    if (!ask->is_open) {
        return 0;
    }
    return left < most ? left : most;
}

void slow_look_at_hours(struct slow_ask *ask, int64_t now_ns)
{
    const int64_t minute = now_ns / (60 * NS_PER_S) % (24 * 60);
    ask->is_open = ask->from_min == ask->till_min ||
                   (minute >= ask->from_min && minute < (int64_t)ask->till_min);
}

/* Returns the limit at market price: the budget over an hour of all that the job is expected to
 * take, or over at least one lease. */
static int64_t market_limit(const struct slow_market *slow, const struct slow_job *job,
                            const struct slow_part *part)
{
    int64_t halves = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        halves += (int64_t)2 * job->parts[i].expect_h * SLOW_SUBTASKS * job->parts[i].width;
    }
    const int64_t least = (int64_t)part->term * part->width;
    const int64_t limit = 2 * job->budget / (halves > least ? halves : least);
    return limit < slow->band ? limit : slow->band;
}

/* Returns the price at which the budget covers a term of all slots, with each lease rounded up. */
static int64_t whole_limit(const struct slow_job *job)
{
    int64_t halves = 0;
    int64_t leases = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        halves += (int64_t)job->parts[i].wanted * job->parts[i].term;
        leases += job->parts[i].wanted / job->parts[i].width;
    }
    const int64_t exact = 2 * job->budget / halves;
    const int64_t left = job->budget > leases ? job->budget - leases : 0;
    return exact * halves % 2 == 0 ? exact : 2 * left / halves;
}

static int64_t limit_of(const struct slow_market *slow, const struct slow_job *job,
                        const struct slow_part *part)
{
    const int64_t limit = part->cap >= 0 ? part->cap : market_limit(slow, job, part);
    const int64_t whole = job->type == EXCHANGE_ALL_OR_NONE ? whole_limit(job) : limit;
    return limit < whole ? limit : whole;
}

void slow_set_bands(struct slow_market *slow, int64_t least, int64_t most, int64_t notional)
{
    slow->least = least;
    slow->band = most;
    slow->notional = notional;
    for (uint32_t i = 0; i < slow->job_count; i++) {
        for (uint32_t k = 0; k < SLOW_PARTS; k++) {
            slow->jobs[i].parts[k].most = most;
        }
    }
}

bool slow_may_name(const struct slow_market *slow, int64_t price)
{
    return price == 0 || (price >= slow->least && price <= slow->band);
}

/* Returns the code that keeps an order out: by its price, and by the slot-time that it comes to, in
 * half hours. */
static uint32_t bands_against(const struct slow_market *slow, int64_t price, uint64_t halves,
                              int64_t budget)
{
    const int64_t notional = (price * (int64_t)halves + 1) / 2;
    return slow->notional > 0 && notional > slow->notional && budget > slow->notional
               ? REJECT_NOTIONAL
               : 0;
}

static uint32_t bands_against_part(const struct slow_market *slow, const struct slow_part *part,
                                   int64_t budget)
{
    return bands_against(slow, part->is_valued ? slow->band : part->limit,
                         (uint64_t)part->at_most * part->term, budget);
}

static uint32_t bands_against_ask(const struct slow_market *slow, const struct slow_ask *ask)
{
    const uint32_t term = ask->max_term > 0 ? ask->max_term : 2;
    return !slow_may_name(slow, ask->price)
               ? REJECT_PRICE
               : bands_against(slow, ask->price, (uint64_t)ask->slots * term, INT64_MAX);
}

static bool has_cap_outside(const struct slow_market *slow, const struct slow_part *part)
{
    return !part->is_valued && part->cap >= 0 && !slow_may_name(slow, part->cap);
}

void slow_set_limits(const struct slow_market *slow, struct slow_job *job)
{
    for (uint32_t i = 0; i < job->part_count; i++) {
        job->parts[i].most = slow->band;
        job->parts[i].limit = limit_of(slow, job, &job->parts[i]);
    }
}

static bool is_better_ask(const struct slow_part *part, const struct slow_ask *a,
                          const struct slow_ask *b)
{
    if (b == NULL) {
        return true;
    }
    const int128 in_a = (int128)a->price * (part->is_valued ? b->operations : 1);
    const int128 in_b = (int128)b->price * (part->is_valued ? a->operations : 1);
    return in_a < in_b || (in_a == in_b && a->sequence < b->sequence);
}

static bool is_before(const struct slow_part *a, const struct slow_part *b)
{
    return a->limit > b->limit || (a->limit == b->limit && a->sequence < b->sequence);
}

/* Returns true when a better bid, which need not be filled whole, takes the ask. */
static bool is_spoken_for(const struct slow_market *slow, const struct slow_job *whole,
                          const struct slow_part *part, const struct slow_ask *ask)
{
    for (uint32_t i = 0; i < slow->job_count; i++) {
        const struct slow_job *job = &slow->jobs[i];
        const bool is_single = job != whole && job->is_open && job->type != EXCHANGE_ALL_OR_NONE;
        for (uint32_t k = 0; is_single && k < job->part_count; k++) {
            const struct slow_part *other = &job->parts[k];
            const uint32_t slots = slow_tradable(other, ask, slow_free(ask));
            if (other->stands && is_before(other, part) && slow_may_trade(job, ask) && slots > 0 &&
                slow_payable(slow, job, other, ask, slots) > 0) {
                return true;
            }
        }
    }
    return false;
}

struct slow_ask *slow_best_ask(struct slow_market *slow, const struct slow_job *job,
                               const struct slow_part *part)
{
    struct slow_ask *best = NULL;
    for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
        struct slow_ask *ask = &slow->asks[i];
        const uint32_t slots = slow_tradable(part, ask, slow_free(ask));
        if (slow_may_trade(job, ask) && slots > 0 &&
            slow_payable(slow, job, part, ask, slots) > 0 && is_better_ask(part, ask, best) &&
            !(job->type == EXCHANGE_ALL_OR_NONE && is_spoken_for(slow, job, part, ask))) {
            best = ask;
        }
    }
    return best;
}

static void trade(struct slow_market *slow, struct slow_job *job, struct slow_part *part,
                  struct slow_ask *ask, uint32_t slots)
{
    const int64_t price = slow_price_between(slow, job, part, ask);
    slow_must(slow->fill_count < SLOW_FILLS, "too many fills");
    slow->fills[slow->fill_count++] = (struct slow_fill){
        (uint32_t)(job - slow->jobs), (uint32_t)(ask - slow->asks), slots, price};
    job->free_micro -= slow_cost(part, price, slots);
    ask->leased += slots;
    ask->promised += slots * part->term;
    job->held[ask - slow->asks] += slots;
    job->promised[ask - slow->asks] += slots * part->term;
    job->given[ask - slow->asks] += price == 0 ? slots * part->term : 0;
    part->wanted -= slots;
    part->held += slots;
}

/* Returns the slots that the part could have alone. What it lacks decides which chooses first. */
static uint32_t supply_of(struct slow_market *slow, const struct slow_job *job,
                          const struct slow_part *part, uint32_t plenty)
{
    bool is_counted[SLOW_DEVICES] = {false};
    struct slow_part greedy = *part;
    uint32_t supply = 0;
    greedy.wanted = UINT32_MAX;
    while (supply < plenty) {
        struct slow_ask *best = NULL;
        for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
            struct slow_ask *ask = &slow->asks[i];
            if (!is_counted[i] && slow_may_trade(job, ask) &&
                slow_tradable(&greedy, ask, slow_free(ask)) > 0 &&
                slow_payable(slow, job, part, ask, part->width) > 0 &&
                is_better_ask(part, ask, best) && !is_spoken_for(slow, job, part, ask)) {
                best = ask;
            }
        }
        if (best == NULL) {
            break;
        }
        is_counted[best - slow->asks] = true;
        supply += slow_tradable(&greedy, best, slow_free(best));
    }
    return supply;
}

/* Counts anew what each device has promised for the day. */
static void count_promises(struct slow_market *slow)
{
    for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
        slow->asks[i].promised = 0;
        for (uint32_t k = 0; k < slow->job_count; k++) {
            slow->asks[i].promised += slow->jobs[k].is_open ? slow->jobs[k].promised[i] : 0;
        }
    }
}

/* Fills all of the job, on a copy first. Returns false when nothing was filled. The plan is on the
 * slots that are free before, each as good as one for the longest term. */
bool slow_buy_whole(struct slow_market *slow, struct slow_job *job)
{
    struct slow_ask asks[SLOW_DEVICES]; /* as they were */
    const struct slow_job before = *job;
    const uint32_t fill_count = slow->fill_count;
    uint32_t plenty = 0;
    uint32_t over[SLOW_PARTS];
    memcpy(asks, slow->asks, sizeof asks);
    for (uint32_t i = 0; i < job->part_count; i++) {
        plenty += job->parts[i].wanted;
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        const uint32_t supply = supply_of(slow, job, &job->parts[i], plenty);
        if (supply < job->parts[i].wanted) {
            return false;
        }
        over[i] = supply - job->parts[i].wanted;
    }
    const uint32_t first = job->part_count > 1 && over[1] < over[0] ? 1 : 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct slow_part *part = &job->parts[i == 0 ? first : 1 - first];
        while (part->wanted > 0) {
            struct slow_ask *ask = slow_best_ask(slow, job, part);
            const uint32_t slots = ask == NULL ? 0 : slow_tradable(part, ask, slow_free(ask));
            if (slots == 0 || slow_cost(part, slow_price_between(slow, job, part, ask), slots) >
                                  job->free_micro) {
                memcpy(slow->asks, asks, sizeof asks);
                *job = before;
                slow->fill_count = fill_count;
                return false;
            }
            trade(slow, job, part, ask, slots);
            ask->promised += ask->daily == 0 ? 0 : slots * (ask->max_term - part->term);
        }
    }
    count_promises(slow);
    if (job->type == EXCHANGE_ALL_OR_NONE) {
        job->type = EXCHANGE_MARKET;
    }
    return true;
}

struct place { /* the place of a bid */
    struct slow_job *job;
    struct slow_part *part;
};

/* Returns the ask that the bid would meet first; NULL: none. */
static const struct slow_ask *crosses(struct slow_market *slow, const struct slow_job *job,
                                      const struct slow_part *part, bool *ret_is_own)
{
    const struct slow_ask *best = NULL;
    struct slow_part narrow = *part;
    narrow.wanted = part->width;
    for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
        const struct slow_ask *ask = &slow->asks[i];
        if (slow_is_for(ask, job) && slow_tradable(&narrow, ask, slow_free(ask)) > 0 &&
            is_better_ask(part, ask, best)) {
            best = ask;
        }
    }
    *ret_is_own = best != NULL && best->owner == job->owner;
    return best;
}

/* Returns the code that refuses an arriving bid, with this much of its budget left, for what it
 * meets; 0: the bid is not refused. */
static uint32_t met_against(struct slow_market *slow, const struct slow_job *job,
                            const struct slow_part *part, int64_t free_micro)
{
    bool is_own;
    const struct slow_ask *met = crosses(slow, job, part, &is_own);
    if (met == NULL || is_own || job->type != EXCHANGE_POST_ONLY) {
        return is_own ? REJECT_SELF_MATCH : 0;
    }
    return slow_cost(part, met->price, part->width) > free_micro ? REJECT_BUDGET
                                                                 : REJECT_WOULD_TRADE;
}

uint32_t slow_admit(struct slow_market *slow, struct slow_job *job)
{
    const bool is_maker = job->type == EXCHANGE_LIMIT || job->type == EXCHANGE_POST_ONLY;
    for (uint32_t i = 0; is_maker && i < job->part_count; i++) {
        if (job->parts[i].cap < 0) {
            return REJECT_PRICE;
        }
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        if (has_cap_outside(slow, &job->parts[i])) {
            return REJECT_PRICE;
        }
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        uint32_t code = bands_against_part(slow, &job->parts[i], job->budget);
        code = code != 0 ? code : met_against(slow, job, &job->parts[i], job->budget);
        if (code != 0) {
            return code;
        }
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        job->parts[i].sequence = slow->sequence++;
        job->parts[i].stands = true;
    }
    slow->job_count++;
    return 0;
}

void slow_stand_down(struct slow_market *slow, struct slow_job *job)
{
    if (job->type == EXCHANGE_IOC) {
        job->is_open = slow->fill_count > 0;
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        job->parts[i].stands = job->type != EXCHANGE_IOC && job->type != EXCHANGE_FOK;
    }
}

static struct slow_part on_terms(const struct slow_market *slow, const struct slow_job *job,
                                 const struct slow_part *part, const struct slow_terms *terms)
{
    struct slow_part wanted = *part;
    struct slow_job funded = *job;
    const bool is_meant = terms->part == SLOW_PARTS || terms->part == (uint32_t)(part - job->parts);
    funded.budget = terms->budget > 0 ? terms->budget : job->budget;
    if (is_meant && terms->cap >= 0) {
        wanted.cap = terms->cap;
    }
    if (is_meant && terms->at_most > 0) {
        wanted.at_most = terms->at_most;
        wanted.wanted = terms->at_most > part->held ? terms->at_most - part->held : 0;
    }
    if (wanted.cap != part->cap || terms->budget > 0) {
        wanted.limit = limit_of(slow, &funded, &wanted);
    }
    const bool has_more = wanted.wanted + wanted.held > part->wanted + part->held;
    if (has_more && !part->is_valued && wanted.cap < 0 && wanted.limit > slow->band) {
        wanted.limit = slow->band;
    }
    return wanted;
}

uint32_t slow_rebid(struct slow_market *slow, struct slow_job *job, const struct slow_terms *terms)
{
    struct slow_part wanted[SLOW_PARTS];
    bool is_new[SLOW_PARTS] = {false};
    const int64_t budget = terms->budget > 0 ? terms->budget : job->budget;
    if (terms->cap >= 0 && !job->parts[0].is_valued && !slow_may_name(slow, terms->cap)) {
        return REJECT_PRICE;
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        const struct slow_part *part = &job->parts[i];
        wanted[i] = on_terms(slow, job, part, terms);
        is_new[i] = wanted[i].limit != part->limit ||
                    wanted[i].wanted + wanted[i].held > part->wanted + part->held;
        const uint32_t code = !is_new[i] ? 0
                              : has_cap_outside(slow, &wanted[i])
                                  ? REJECT_PRICE
                                  : bands_against_part(slow, &wanted[i], budget);
        if (code != 0) {
            return code;
        }
        const uint32_t met =
            is_new[i] ? met_against(slow, job, &wanted[i], job->free_micro + budget - job->budget)
                      : 0;
        if (met != 0) {
            return met;
        }
    }
    job->free_micro += terms->budget > 0 ? terms->budget - job->budget : 0;
    job->budget = terms->budget > 0 ? terms->budget : job->budget;
    for (uint32_t i = 0; i < job->part_count; i++) {
        job->parts[i] = wanted[i];
        job->parts[i].sequence = is_new[i] ? slow->sequence++ : wanted[i].sequence;
    }
    return 0;
}

void slow_expire(struct slow_market *slow, struct slow_job *job)
{
    bool runs = false;
    for (uint32_t i = 0; i < job->part_count; i++) {
        job->parts[i].stands = false;
        runs = runs || job->parts[i].held > 0;
    }
    job->is_over = true;
    if (!runs) {
        slow_end(slow, job);
    }
}

/* Returns the slot-time that the account has for nothing. */
static uint32_t rank_of(const struct slow_market *slow, uint32_t owner)
{
    uint32_t given = 0;
    for (uint32_t i = 0; i < slow->job_count; i++) {
        const struct slow_job *job = &slow->jobs[i];
        for (uint32_t k = 0; job->is_open && job->owner == owner && k < SLOW_DEVICES; k++) {
            given += job->given[k];
        }
    }
    return given;
}

/* Returns which of the two bids the ask takes first. */
static bool goes_first(const struct slow_market *slow, const struct slow_ask *ask, struct place one,
                       struct place other)
{
    const uint32_t rank = rank_of(slow, one.job->owner);
    const uint32_t than = rank_of(slow, other.job->owner);
    if (ask->price > 0) {
        return slow_is_before_on(ask, one.part, other.part);
    }
    return rank < than || (rank == than && one.part->sequence < other.part->sequence);
}

uint32_t slow_put(struct slow_market *slow, uint32_t device, const struct slow_ask *given)
{
    struct place best = {NULL, NULL};
    bool meets_single = false;
    const uint32_t code = bands_against_ask(slow, given);
    if (code != 0) {
        return code;
    }
    for (uint32_t i = 0; i < slow->job_count; i++) {
        struct slow_job *job = &slow->jobs[i];
        for (uint32_t k = 0; job->is_open && k < job->part_count; k++) {
            const struct place at = {job, &job->parts[k]};
            if (!at.part->stands || !slow_is_for(given, job) ||
                slow_tradable(at.part, given, slow_free(given)) == 0) {
                continue;
            }
            meets_single = meets_single || job->type != EXCHANGE_ALL_OR_NONE;
            best = best.part == NULL || goes_first(slow, given, at, best) ? at : best;
        }
    }
    if (best.part != NULL && best.job->owner == given->owner) {
        return REJECT_SELF_MATCH;
    }
    if (meets_single && given->type == EXCHANGE_POST_ONLY) {
        return REJECT_WOULD_TRADE;
    }
    slow->asks[device] = *given;
    slow->asks[device].sequence = slow->sequence++;
    return 0;
}

void slow_end(struct slow_market *slow, struct slow_job *job)
{
    job->is_open = false;
    for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
        slow->asks[i].leased -= job->held[i];
        slow->asks[i].promised -= job->promised[i];
    }
}

/* The parts of one job share what is given to the job. */
static bool is_passed_over(struct slow_market *slow, const struct slow_ask *ask,
                           struct place chosen)
{
    for (uint32_t i = 0; i < slow->job_count; i++) {
        struct slow_job *job = &slow->jobs[i];
        const bool is_single = job->is_open && job->type != EXCHANGE_ALL_OR_NONE;
        for (uint32_t k = 0; is_single && k < job->part_count; k++) {
            const struct place at = {job, &job->parts[k]};
            const uint32_t slots = slow_tradable(at.part, ask, slow_free(ask));
            const bool is_other = ask->price > 0 ? at.part != chosen.part : job != chosen.job;
            if (at.part->stands && is_other && slow_may_trade(job, ask) && slots > 0 &&
                slow_payable(slow, job, at.part, ask, slots) > 0 &&
                goes_first(slow, ask, at, chosen)) {
                return true;
            }
        }
    }
    return false;
}

const char *slow_take(struct slow_market *slow, struct slow_job *job, struct slow_part *part,
                      struct slow_ask *ask, uint32_t slots, int64_t price)
{
    const struct place chosen = {job, part};
    if (!job->is_open || !part->stands) {
        return "the bid does not stand";
    }
    if (slots != slow_payable(slow, job, part, ask, slow_tradable(part, ask, slow_free(ask)))) {
        return "of other slots than the two could trade";
    }
    if (price != slow_price_between(slow, job, part, ask)) {
        return "at another price than the rules give";
    }
    if (slow_best_ask(slow, job, part) != ask) {
        return "from another ask than the best";
    }
    if (is_passed_over(slow, ask, chosen)) {
        return "by another bid than whose turn it is";
    }
    trade(slow, job, part, ask, slots);
    return NULL;
}
