#include "exchange/view/why.h"

#include "exchange/lifecycle.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/counterparts.h"
#include "exchange/market/daily.h"
#include "exchange/state/handles.h"
#include "exchange/state/instruments.h"
#include "exchange/state/lookup.h"
#include "exchange/state/names.h"
#include "exchange/state/steps.h"
#include "exchange/view/effort.h"
#include "exchange/view/predicate_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- demand, by class */

struct demand { /* The bids of one requirement. */
    uint32_t bids;
    uint32_t narrowest; /* slots of the narrowest subtask */
    int64_t limit_micro;
};

struct asking { /* The state of one call. */
    const struct exchange *exchange;
    struct exchange_why *why;
    const struct device *device;
    struct demand *classes; /* indexed by number */
    uint32_t steps;
};

static bool has_steps(struct asking *asking, size_t steps)
{
    if (asking->steps >= EXCHANGE_WHY_STEPS) {
        asking->why->is_partial = true;
        return false;
    }
    asking->steps += (uint32_t)steps;
    return true;
}

static void take_bid(struct asking *asking, const struct book_bid *bid)
{
    struct exchange_why *why = asking->why;
    const struct book *book = asking->exchange->book;
    const int64_t limit_micro = book_limit(book, book_class_rate(book, bid->class_id),
                                           bid->limit_micro, asking->device->cell);
    why->bids++;
    if (!book_class_accepts(book, bid->class_id, asking->device->cell) ||
        bid->width > asking->device->slots) {
        struct demand *demand = &asking->classes[bid->class_id];
        demand->narrowest =
            demand->bids == 0 || bid->width < demand->narrowest ? bid->width : demand->narrowest;
        demand->bids++;
        demand->limit_micro = limit_micro > demand->limit_micro ? limit_micro : demand->limit_micro;
        return;
    }
    why->fitting++;
    why->longest_term_ns =
        bid->term_ns > why->longest_term_ns ? bid->term_ns : why->longest_term_ns;
    if (why->max_term_ns != 0 && why->max_term_ns < bid->term_ns) {
        return;
    }
    why->lasting++;
    why->best_limit_micro =
        limit_micro > why->best_limit_micro ? limit_micro : why->best_limit_micro;
    why->paying += why->price_micro >= 0 && limit_micro >= why->price_micro;
}

static void take_bids(struct asking *asking)
{
    const struct exchange *exchange = asking->exchange;
    uint64_t looked = 0;
    for (uint32_t handle = book_next(exchange->book, 0); handle != BOOK_NONE;
         handle = book_next(exchange->book, handle + 1)) {
        struct book_bid bid;
        looked++;
        if (!book_bid(exchange->book, handle, &bid) || bid.slots == 0 ||
            bid.owner == asking->device->key.provider || handle_waits_for_all(exchange, handle) ||
            (asking->device->ask != NULL && !ask_is_for(asking->device->ask, bid.owner))) {
            continue;
        }
        if (!has_steps(asking, 1)) {
            break;
        }
        take_bid(asking, &bid);
    }
    steps_add(exchange, 4 * looked);
}

/* ---------------------------------------------------------------- refusals, nearest first */

static void keep_figure(const struct requirement_node *node, const struct attribute *attributes,
                        size_t count, struct exchange_why_refusal *refusal)
{
    bool wants_more = node->op == REQUIREMENT_GT || node->op == REQUIREMENT_GE;
    for (size_t i = 0; i < count; i++) {
        const struct attribute *have = &attributes[i];
        if (have->is_text || node->attribute.is_text ||
            strcmp(have->name, node->attribute.name) != 0) {
            continue;
        }
        bool is_nearer = wants_more ? have->number > refusal->have : have->number < refusal->have;
        if (!refusal->has_have || is_nearer) {
            refusal->has_have = true;
            refusal->have = have->number;
        }
    }
}

/* Returns false when the device satisfies the requirement, has the rate, and is wide enough for a
 * bid. */
static bool describe(const struct asking *asking, const struct requirement *needs, enum rate rate,
                     const struct demand *demand, struct exchange_why_refusal *ret_refusal)
{
    const struct exchange_why *why = asking->why;
    const struct compiled_requirement plan = compiled_requirement(needs);
    uint64_t truth = compiled_truth(&plan, why->attributes,
                                    book_cell_digests(asking->exchange->book, asking->device->cell),
                                    why->attribute_count, NULL);
    struct effort effort = effort_of(needs, truth);
    bool is_wide = demand->narrowest <= why->slots;
    bool is_simulated = requirement_passes_over(needs, why->attributes, why->attribute_count);
    bool has_rate =
        rate == RATE_NONE || book_cell_rate(asking->exchange->book, asking->device->cell, rate) > 0;
    *ret_refusal =
        (struct exchange_why_refusal){.changes = effort.hold + !is_wide + is_simulated + !has_rate,
                                      .bids = demand->bids,
                                      .limit_micro = demand->limit_micro};
    char *text = ret_refusal->predicate;
    size_t size = sizeof ret_refusal->predicate;
    if (is_simulated) {
        (void)snprintf(text, size, "simulated = false");
    } else if (effort.hold > 0) {
        uint32_t first = (uint32_t)__builtin_ctzll(effort.hold_set);
        const struct requirement_node *node = &needs->nodes[first];
        bool holds = (truth >> first & 1) != 0;
        /* A predicate that holds hinders the bid only under a `not`. */
        size_t used = holds ? (size_t)snprintf(text, size, "not ") : 0;
        predicate_text(node, text + used, size - used);
        keep_figure(node, why->attributes, why->attribute_count, ret_refusal);
    } else if (!has_rate) {
        (void)snprintf(text, size, "%s > 0", rate_name(rate));
    } else {
        (void)snprintf(text, size, "slots >= %u", demand->narrowest);
        ret_refusal->has_have = true;
        ret_refusal->have = why->slots;
    }
    return ret_refusal->changes > 0;
}

static bool is_nearer(const struct exchange_why_refusal *a, const struct exchange_why_refusal *b)
{
    return a->changes != b->changes ? a->changes < b->changes : a->bids > b->bids;
}

/* Keeps refusals in order; the farthest goes when there are too many. Equal ones stay in class
 * order. */
static void keep_refusal(struct exchange_why *why, const struct exchange_why_refusal *refusal)
{
    uint32_t at = why->refusal_count;
    while (at > 0 && is_nearer(refusal, &why->refusals[at - 1])) {
        at--;
    }
    if (at == EXCHANGE_WHY_REFUSALS) {
        return;
    }
    uint32_t kept =
        why->refusal_count < EXCHANGE_WHY_REFUSALS ? why->refusal_count : EXCHANGE_WHY_REFUSALS - 1;
    memmove(&why->refusals[at + 1], &why->refusals[at], (kept - at) * sizeof why->refusals[0]);
    why->refusals[at] = *refusal;
    why->refusal_count = kept + 1;
}

static void take_classes(struct asking *asking)
{
    const struct exchange *exchange = asking->exchange;
    uint32_t bound = book_class_bound(exchange->book);
    for (uint32_t class_id = 0; class_id < bound; class_id++) {
        if (asking->classes[class_id].bids == 0) {
            continue;
        }
        const struct requirement *needs = book_class_requirement(exchange->book, class_id);
        if (!has_steps(asking, needs->count * asking->why->attribute_count)) {
            return;
        }
        struct exchange_why_refusal refusal;
        enum rate rate = book_class_rate(exchange->book, class_id);
        if (describe(asking, needs, rate, &asking->classes[class_id], &refusal)) {
            keep_refusal(asking->why, &refusal);
        }
    }
}

/* ---------------------------------------------------------------- the ask */

static const struct device *find_device(const struct exchange *exchange,
                                        const struct provider *provider, uint32_t wanted,
                                        uint32_t *ret_count)
{
    const struct device *found = NULL;
    *ret_count = 0;
    for (const struct list_link *at = provider->devices.next; at != &provider->devices;
         at = at->next) {
        const struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        if (device->is_advertised) {
            found = *ret_count == wanted ? device : found;
            ++*ret_count;
        }
        steps_add(exchange, 1);
    }
    return found;
}

static void fill_day(const struct exchange *exchange, const struct device *device,
                     struct exchange_why *why)
{
    const struct ask *ask = device->ask;
    if (ask->daily_ns == 0) {
        return;
    }
    const int64_t left_ns = daily_left_ns(exchange, ask);
    why->daily_ns = ask->daily_ns;
    why->used_ns = daily_used_ns(exchange, device);
    why->promised_ns =
        why->used_ns < ask->daily_ns - left_ns ? ask->daily_ns - left_ns - why->used_ns : 0;
    why->is_spent = ask->is_open && daily_is_spent(exchange, ask);
}

static void fill_device(const struct exchange *exchange, const struct device *device,
                        struct exchange_why *why)
{
    why->device = device->key.device;
    name_copy(why->label, device->label);
    why->attributes = book_cell_attributes(exchange->book, device->cell, &why->attribute_count);
    instrument_of_cell(exchange, device->cell, why->instrument);
    why->slots = device->slots;
    why->leased = device->leased;
    if (device->ask != NULL) {
        why->free = book_slots(exchange->book, device->ask->handle);
        why->price_micro = device->ask->price_micro;
        why->max_term_ns = device->ask->max_term_ns;
        why->is_for_some = device->ask->to_count > 0;
        why->opens_ns = ask_opens_in_ns(exchange, device->ask);
        fill_day(exchange, device, why);
    }
}

/* Counts the free asks of all cells that bids for this ask would take first, by price or by
 * value. */
static bool find_place(const struct exchange *exchange, const struct ask *ask,
                       struct exchange_why *why)
{
    const struct book *book = exchange->book;
    const size_t words = exchange->limits.cells / 64 + 1;
    uint64_t *beside = calloc(RATES * words, sizeof *beside);
    if (beside == NULL) {
        return false;
    }
    bool some[RATES];
    uint64_t looked = 0;
    for (unsigned rate = RATE_NONE; rate < RATES; rate++) {
        some[rate] =
            book_cells_beside(book, ask->device->cell, (enum rate)rate, beside + rate * words);
    }
    for (uint32_t handle = book_next(book, 0); handle != BOOK_NONE;
         handle = book_next(book, handle + 1)) {
        struct book_ask other;
        looked++;
        if (!book_ask(book, handle, &other) || other.slots == 0) {
            continue;
        }
        bool is_before = false;
        for (unsigned rate = RATE_NONE; rate < RATES && !is_before; rate++) {
            is_before = some[rate] &&
                        (beside[rate * words + other.cell / 64] >> (other.cell % 64) & 1) != 0 &&
                        book_ask_is_before(book, (enum rate)rate, handle, ask->handle);
        }
        why->ahead += is_before;
    }
    steps_add(exchange, 2 * looked);
    why->has_ahead = true;
    free(beside);
    return true;
}

enum exchange_why_status exchange_explain_ask(const struct exchange *exchange, uint32_t account,
                                              uint32_t number, struct exchange_why *ret_why)
{
    const struct member *member = lookup_member(exchange, account);
    const struct provider *provider = member == NULL ? NULL : member->provider;
    *ret_why = (struct exchange_why){.is_frozen = member != NULL && member->is_frozen,
                                     .is_halted = exchange->is_halted,
                                     .frozen_why = member == NULL ? NULL : member->frozen_why,
                                     .halted_why = exchange->halted_why,
                                     .state = provider == NULL ? PROVIDER_AWAY : provider->state,
                                     .price_micro = -1,
                                     .best_limit_micro = -1,
                                     .fills_at_micro = -1};
    const struct exchange_standing standing = exchange_standing(exchange, account);
    ret_why->refuted = standing.refuted;
    ret_why->withdrawn_ns = standing.withdrawn_ns;
    const struct device *device =
        provider == NULL ? NULL : find_device(exchange, provider, number, &ret_why->devices);
    if (device == NULL) {
        return number == 0 ? WHY_OK : WHY_NO_DEVICE; /* nothing advertised is an answer */
    }
    fill_device(exchange, device, ret_why);
    struct asking asking = {.exchange = exchange, .why = ret_why, .device = device};
    asking.classes = calloc(book_class_bound(exchange->book) + 1, sizeof *asking.classes);
    if (asking.classes == NULL) {
        return WHY_OUT_OF_MEMORY;
    }
    take_bids(&asking);
    take_classes(&asking);
    steps_add(exchange, asking.steps + book_class_bound(exchange->book));
    free(asking.classes);
    if (device->ask != NULL && ret_why->free > 0) {
        ret_why->fills_at_micro = counterpart_ask_fills_at(exchange, device->ask);
        return find_place(exchange, device->ask, ret_why) ? WHY_OK : WHY_OUT_OF_MEMORY;
    }
    return WHY_OK;
}
