#include "tests/support/slow_market.h"

#include "protocol/reject.h"

#include <check.h>
#include <string.h>

void slow_must(bool holds, const char *what)
{
    if (!holds) {
        ck_abort_msg("%s", what);
    }
}

/* What it gives for a slot of that device, in parts of RATE_UNIT. */
static int128 worth(const struct slow_part *part, const struct slow_ask *ask)
{
    return (int128)part->limit * (part->is_valued ? ask->operations : RATE_UNIT);
}

static int64_t price_between(const struct slow_part *part, const struct slow_ask *ask)
{
    const int64_t limit = (int64_t)(worth(part, ask) / RATE_UNIT);
    return ask->price == 0 || ask->sequence < part->sequence ? ask->price : limit;
}

static uint32_t free_of(const struct slow_ask *ask)
{
    return ask->slots > ask->leased ? ask->slots - ask->leased : 0;
}

static uint32_t in_widths(uint32_t slots, const struct slow_part *part)
{
    return slots - slots % part->width;
}

/* Slots that the two could trade of those, whatever the budget. */
static uint32_t tradable(const struct slow_part *part, const struct slow_ask *ask, uint32_t slots)
{
    const bool meets = ask->stands && worth(part, ask) >= (int128)ask->price * RATE_UNIT &&
                       (!part->is_valued || ask->operations > 0) &&
                       (part->kind == SLOW_KINDS || part->kind == ask->kind);
    const uint32_t most = slots < part->wanted ? slots : part->wanted;
    return meets ? in_widths(most, part) : 0;
}

static uint32_t payable(const struct slow_job *job, const struct slow_part *part,
                        const struct slow_ask *ask, uint32_t slots)
{
    const int64_t price = price_between(part, ask);
    const int64_t most = price == 0 ? slots : job->free_micro / price;
    return in_widths(most < slots ? (uint32_t)most : slots, part);
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

/* Likewise on one device. */
static bool is_before_on(const struct slow_ask *ask, const struct slow_part *a,
                         const struct slow_part *b)
{
    const int128 of_a = worth(a, ask);
    const int128 of_b = worth(b, ask);
    return of_a > of_b || (of_a == of_b && a->sequence < b->sequence);
}

/* Whether a better bid, which need not be filled whole, takes the ask. */
static bool is_spoken_for(const struct slow_market *slow, const struct slow_job *whole,
                          const struct slow_part *part, const struct slow_ask *ask)
{
    for (uint32_t i = 0; i < slow->job_count; i++) {
        const struct slow_job *job = &slow->jobs[i];
        const bool is_single = job != whole && job->is_open && job->type != EXCHANGE_ALL_OR_NONE;
        for (uint32_t k = 0; is_single && k < job->part_count; k++) {
            const struct slow_part *other = &job->parts[k];
            const uint32_t slots = tradable(other, ask, free_of(ask));
            if (other->stands && is_before(other, part) && ask->owner != job->owner && slots > 0 &&
                payable(job, other, ask, slots) > 0) {
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
        const uint32_t slots = tradable(part, ask, free_of(ask));
        if (ask->owner != job->owner && slots > 0 && payable(job, part, ask, slots) > 0 &&
            is_better_ask(part, ask, best) &&
            !(job->type == EXCHANGE_ALL_OR_NONE && is_spoken_for(slow, job, part, ask))) {
            best = ask;
        }
    }
    return best;
}

static void trade(struct slow_market *slow, struct slow_job *job, struct slow_part *part,
                  struct slow_ask *ask, uint32_t slots)
{
    const int64_t price = price_between(part, ask);
    slow_must(slow->fill_count < SLOW_FILLS, "too many fills");
    slow->fills[slow->fill_count++] = (struct slow_fill){
        (uint32_t)(job - slow->jobs), (uint32_t)(ask - slow->asks), slots, price};
    job->free_micro -= price * slots;
    ask->leased += slots;
    job->held[ask - slow->asks] += slots;
    job->given[ask - slow->asks] += price == 0 ? slots : 0;
    part->wanted -= slots;
    part->held += slots;
}

/* All that the part can have now, one ask after the other. */
static void buy(struct slow_market *slow, struct slow_job *job, struct slow_part *part)
{
    struct slow_ask *ask;
    while (part->wanted > 0 && (ask = slow_best_ask(slow, job, part)) != NULL) {
        trade(slow, job, part, ask, payable(job, part, ask, tradable(part, ask, free_of(ask))));
    }
}

/* Slots for the part alone; what it lacks in place of it decides who chooses first. */
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
            if (!is_counted[i] && ask->owner != job->owner &&
                tradable(&greedy, ask, free_of(ask)) > 0 &&
                payable(job, part, ask, part->width) > 0 && is_better_ask(part, ask, best) &&
                !is_spoken_for(slow, job, part, ask)) {
                best = ask;
            }
        }
        if (best == NULL) {
            break;
        }
        is_counted[best - slow->asks] = true;
        supply += tradable(&greedy, best, free_of(best));
    }
    return supply;
}

/* All of the job, on a copy first: false, and nothing was filled. */
static bool buy_whole(struct slow_market *slow, struct slow_job *job)
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
            const uint32_t slots = ask == NULL ? 0 : tradable(part, ask, free_of(ask));
            if (slots == 0 || payable(job, part, ask, slots) < slots) {
                memcpy(slow->asks, asks, sizeof asks);
                *job = before;
                slow->fill_count = fill_count;
                return false;
            }
            trade(slow, job, part, ask, slots);
        }
    }
    if (job->type == EXCHANGE_ALL_OR_NONE) {
        job->type = EXCHANGE_LIMIT;
    }
    return true;
}

struct place { /* of a bid */
    struct slow_job *job;
    struct slow_part *part;
};

/* The best bid behind `last` (NULL: of all). */
static struct place next_bid(struct slow_market *slow, const struct slow_part *last)
{
    struct place best = {NULL, NULL};
    for (uint32_t i = 0; i < slow->job_count; i++) {
        struct slow_job *job = &slow->jobs[i];
        for (uint32_t k = 0; k < job->part_count; k++) {
            struct slow_part *part = &job->parts[k];
            const bool is_behind = last == NULL || is_before(last, part);
            if (job->is_open && part->stands && is_behind &&
                (best.part == NULL || is_before(part, best.part))) {
                best = (struct place){job, part};
            }
        }
    }
    return best;
}

/* Bids from the best on take what they can have; what waits to be filled whole is passed over while it cannot be. */
void slow_settle(struct slow_market *slow)
{
    for (struct place at = next_bid(slow, NULL); at.part != NULL; at = next_bid(slow, at.part)) {
        if (at.job->type == EXCHANGE_ALL_OR_NONE) {
            (void)buy_whole(slow, at.job);
        } else {
            buy(slow, at.job, at.part);
        }
    }
}

static bool crosses(struct slow_market *slow, const struct slow_part *part, uint32_t owner,
                    bool *ret_is_own)
{
    const struct slow_ask *best = NULL;
    struct slow_part narrow = *part;
    narrow.wanted = part->width;
    for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
        const struct slow_ask *ask = &slow->asks[i];
        best =
            tradable(&narrow, ask, free_of(ask)) > 0 && is_better_ask(part, ask, best) ? ask : best;
    }
    *ret_is_own = best != NULL && best->owner == owner;
    return best != NULL;
}

uint32_t slow_admit(struct slow_market *slow, struct slow_job *job)
{
    for (uint32_t i = 0; i < job->part_count; i++) {
        bool is_own;
        if (crosses(slow, &job->parts[i], job->owner, &is_own) &&
            (is_own || job->type == EXCHANGE_POST_ONLY)) {
            return is_own ? REJECT_SELF_MATCH : REJECT_WOULD_TRADE;
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

uint32_t slow_submit(struct slow_market *slow, struct slow_job *job)
{
    const uint32_t code = slow_admit(slow, job);
    if (code != 0) {
        return code;
    }
    if (job->type == EXCHANGE_FOK) {
        job->is_open = buy_whole(slow, job);
    } else {
        slow_settle(slow);
    }
    slow_stand_down(slow, job);
    return 0;
}

uint32_t slow_rebid(struct slow_market *slow, struct slow_job *job, uint32_t number, int64_t limit,
                    uint32_t at_most)
{
    struct slow_part wanted[SLOW_PARTS];
    bool is_new[SLOW_PARTS] = {false};
    for (uint32_t i = 0; i < job->part_count; i++) {
        const struct slow_part *part = &job->parts[i];
        const bool is_meant = number == SLOW_PARTS || number == i;
        wanted[i] = *part;
        if (is_meant && limit >= 0) {
            wanted[i].limit = limit;
        }
        if (is_meant && at_most > 0) {
            wanted[i].wanted = at_most > part->held ? at_most - part->held : 0;
        }
        is_new[i] = wanted[i].limit != part->limit ||
                    wanted[i].wanted + wanted[i].held > part->wanted + part->held;
        bool is_own;
        if (is_new[i] && crosses(slow, &wanted[i], job->owner, &is_own) &&
            (is_own || job->type == EXCHANGE_POST_ONLY)) {
            return is_own ? REJECT_SELF_MATCH : REJECT_WOULD_TRADE;
        }
    }
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

/* Slots that the account has for nothing. */
static uint32_t rank_of(const struct slow_market *slow, uint32_t owner)
{
    uint32_t slots = 0;
    for (uint32_t i = 0; i < slow->job_count; i++) {
        const struct slow_job *job = &slow->jobs[i];
        for (uint32_t k = 0; job->is_open && job->owner == owner && k < SLOW_DEVICES; k++) {
            slots += job->given[k];
        }
    }
    return slots;
}

/* Which of the two bids the ask takes first. */
static bool goes_first(const struct slow_market *slow, const struct slow_ask *ask, struct place one,
                       struct place other)
{
    const uint32_t rank = rank_of(slow, one.job->owner);
    const uint32_t than = rank_of(slow, other.job->owner);
    if (ask->price > 0) {
        return is_before_on(ask, one.part, other.part);
    }
    return rank < than || (rank == than && one.part->sequence < other.part->sequence);
}

uint32_t slow_put(struct slow_market *slow, uint32_t device, const struct slow_ask *given)
{
    struct place best = {NULL, NULL};
    bool meets_single = false;
    for (uint32_t i = 0; i < slow->job_count; i++) {
        struct slow_job *job = &slow->jobs[i];
        for (uint32_t k = 0; job->is_open && k < job->part_count; k++) {
            const struct place at = {job, &job->parts[k]};
            if (!at.part->stands || tradable(at.part, given, free_of(given)) == 0) {
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

uint32_t slow_place(struct slow_market *slow, uint32_t device, const struct slow_ask *given)
{
    const uint32_t code = slow_put(slow, device, given);
    if (code == 0) {
        slow_settle(slow);
        slow->asks[device].stands = given->type != EXCHANGE_IOC;
    }
    return code;
}

void slow_end(struct slow_market *slow, struct slow_job *job)
{
    job->is_open = false;
    for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
        slow->asks[i].leased -= job->held[i];
    }
}

/* The parts of one job share what is given to it. */
static bool is_passed_over(struct slow_market *slow, const struct slow_ask *ask,
                           struct place chosen)
{
    for (uint32_t i = 0; i < slow->job_count; i++) {
        struct slow_job *job = &slow->jobs[i];
        for (uint32_t k = 0; job->is_open && k < job->part_count; k++) {
            const struct place at = {job, &job->parts[k]};
            const uint32_t slots = tradable(at.part, ask, free_of(ask));
            const bool is_other = ask->price > 0 ? at.part != chosen.part : job != chosen.job;
            if (at.part->stands && is_other && job->owner != ask->owner && slots > 0 &&
                payable(job, at.part, ask, slots) > 0 && goes_first(slow, ask, at, chosen)) {
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
    if (slots != payable(job, part, ask, tradable(part, ask, free_of(ask)))) {
        return "of other slots than the two could trade";
    }
    if (price != price_between(part, ask)) {
        return "at another price than the maker's, or 0";
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
