/* An explanation tells why a need, or a part of a job, is not filled. It counts the devices that
 * fail each predicate, the prices of the others, and the bids that come first.
 * smallest_change_find.c finds the change that would fill it. A read: pure, no trace. */
#include "base/limit.h"
#include "exchange/account/standing.h"
#include "exchange/lifecycle.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/bands.h"
#include "exchange/market/bids.h"
#include "exchange/market/escrow.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lookup.h"
#include "exchange/state/parts.h"
#include "exchange/state/steps.h"
#include "exchange/view/effort.h"
#include "exchange/view/explain_absent.h"
#include "exchange/view/explain_prices.h"
#include "exchange/view/predicate_text.h"
#include "exchange/view/reads.h"
#include "exchange/view/search.h"
#include "exchange/work/choice/lateness.h"
#include "exchange/work/part_queues.h"
#include "exchange/work/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds nodes that are lists: an `or` of equalities on one attribute. A device does not fail on one
 * value of a list. */
static uint64_t find_lists(const struct requirement *needs, uint64_t negated, uint64_t *ret_items)
{
    uint64_t lists = 0;
    *ret_items = 0;
    for (uint32_t i = 0; i < needs->count; i++) {
        const uint32_t arity = needs->nodes[i].arity;
        bool is_list = needs->nodes[i].op == REQUIREMENT_OR && arity <= i;
        for (uint32_t k = is_list ? i - arity : i; k < i && is_list; k++) {
            const struct requirement_node *node = &needs->nodes[k];
            is_list = node->op == REQUIREMENT_EQ && (negated >> k & 1) == 0 &&
                      strcmp(node->attribute.name, needs->nodes[i - arity].attribute.name) == 0;
        }
        if (is_list) {
            lists |= UINT64_C(1) << i;
            *ret_items |= ((UINT64_C(1) << arity) - 1) << (i - arity);
        }
    }
    return lists;
}

/* Returns the predicate that must hold when this one stands under `not`. */
static struct requirement_node turned_over(const struct requirement_node *node)
{
    static const enum requirement_op opposites[] = {
        [REQUIREMENT_EQ] = REQUIREMENT_NE, [REQUIREMENT_NE] = REQUIREMENT_EQ,
        [REQUIREMENT_LT] = REQUIREMENT_GE, [REQUIREMENT_LE] = REQUIREMENT_GT,
        [REQUIREMENT_GT] = REQUIREMENT_LE, [REQUIREMENT_GE] = REQUIREMENT_LT,
    };
    struct requirement_node turned = *node;
    turned.op = opposites[node->op];
    return turned;
}

/* The struct holds the state of one call. */
struct explaining {
    struct search search; /* search over `seen` */
    const struct exchange *exchange;
    const struct exchange_need *need;
    const struct part *part;
    struct compiled_requirement plan;
    uint64_t negated;       /* predicates under a `not` */
    uint64_t lists, items;  /* nodes that are lists, and predicates in them */
    struct explained *seen; /* NULL: memory is short, and no smallest change is found */
    struct exchange_explanation *why;
    uint32_t unrated; /* devices without the rate of a need by value */
    /* The devices of one provider follow each other, so the last answer serves all of them. */
    uint32_t asked;
    bool asked_may_run;
};

/* Keeps the best value of a numeric attribute, from the first of its name on: the largest for > and
 * >=, the smallest for < and <=. */
static void keep_best(const struct requirement_node *node, const struct attribute *attributes,
                      const struct attribute_digest *digests, size_t first, size_t count,
                      bool *has_best, int64_t *best)
{
    bool wants_more = node->op == REQUIREMENT_GT || node->op == REQUIREMENT_GE;
    for (size_t i = first;
         i < count && (i == first || (digests[i].name == digests[first].name &&
                                      strcmp(attributes[i].name, node->attribute.name) == 0));
         i++) {
        const int64_t have = (int64_t)digests[i].value;
        if (!digests[i].is_text && (!*has_best || (wants_more ? have > *best : have < *best))) {
            *has_best = true;
            *best = have;
        }
    }
}

static bool is_name(const struct requirement_node *node)
{
    static const char *const names[] = {"instrument", "kind", "label", "simulated"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(node->attribute.name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Counts a device by the predicates that it fails, one bit for each. */
static void count_named(struct exchange_explanation *why, uint64_t failing)
{
    for (uint32_t i = 0; i < why->predicate_count; i++) {
        if (why->predicates[i].is_name && (failing >> i & 1) != 0) {
            return;
        }
    }
    why->named++;
    for (uint32_t i = 0; i < why->predicate_count; i++) {
        why->predicates[i].named_failing += (failing >> i & 1) != 0;
    }
}

/* A simulated device that is passed over is counted apart: it fails no predicate and is no best. */
static uint32_t explain_predicates(const struct explaining *explaining,
                                   const struct attribute *attributes,
                                   const struct attribute_digest *digests, size_t count,
                                   bool is_simulated, uint64_t *ret_truth)
{
    size_t first[REQUIREMENT_NODES_MAX];
    const struct requirement *needs = explaining->need->needs;
    struct exchange_explanation *why = explaining->why;
    uint32_t at = 0; /* every device meets the same predicates in the same order */
    uint64_t failing = 0;
    *ret_truth = compiled_truth(&explaining->plan, attributes, digests, count, first);
    for (uint32_t i = 0; i < needs->count; i++) {
        if ((explaining->lists >> i & 1) != 0) {
            const uint32_t arity = needs->nodes[i].arity;
            const uint64_t items = ((UINT64_C(1) << arity) - 1) << (i - arity);
            if (at == why->predicate_count) {
                why->predicate_count++;
                predicate_list_text(&needs->nodes[i - arity], arity, why->predicates[at].text,
                                    sizeof why->predicates[at].text);
                why->predicates[at].is_name = is_name(&needs->nodes[i - arity]);
            }
            failing |= (uint64_t)((*ret_truth & items) == 0) << at;
            at++;
        }
        if (needs->nodes[i].op < REQUIREMENT_EQ || (explaining->items >> i & 1) != 0) {
            continue;
        }
        const uint64_t is_negated = explaining->negated >> i & 1;
        const struct requirement_node asked =
            is_negated ? turned_over(&needs->nodes[i]) : needs->nodes[i];
        if (at == why->predicate_count) {
            why->predicate_count++;
            predicate_text(&asked, why->predicates[at].text, sizeof why->predicates[at].text);
            why->predicates[at].is_name = is_name(&asked);
        }
        failing |= (uint64_t)((*ret_truth >> i & 1) == is_negated) << at;
        if (!is_simulated && !asked.attribute.is_text && asked.op != REQUIREMENT_EQ &&
            asked.op != REQUIREMENT_NE) {
            keep_best(&asked, attributes, digests, first[i], count, &why->predicates[at].has_best,
                      &why->predicates[at].best);
        }
        at++;
    }
    for (uint32_t i = 0; i < at && !is_simulated; i++) {
        why->predicates[i].failing += (failing >> i & 1) != 0;
    }
    if (!is_simulated) {
        count_named(why, failing);
    }
    return at;
}

/* All slots of a subtask are on one device, so a narrower device never fits, however idle. */
static bool is_wide_enough(const struct exchange_need *need, const struct device *device,
                           bool is_simulated, struct exchange_explanation *why, uint32_t at)
{
    bool fits = device->slots >= need->slots;
    if (need->slots > 1 && at < REQUIREMENT_NODES_MAX) {
        why->predicate_count = at + 1;
        (void)snprintf(why->predicates[at].text, sizeof why->predicates[at].text, "slots >= %u",
                       need->slots);
        why->predicates[at].failing += !is_simulated && !fits;
        if (!is_simulated &&
            (!why->predicates[at].has_best || device->slots > why->predicates[at].best)) {
            why->predicates[at].has_best = true;
            why->predicates[at].best = device->slots;
        }
    }
    return fits;
}

/* An ask for others, or at other hours, is not open now. */
static bool is_conditional(const struct exchange *exchange, const struct exchange_need *need,
                           const struct ask *ask, struct exchange_explanation *why)
{
    bool is_for_it = ask_is_for(ask, need->account);
    why->for_others += !is_for_it;
    const int64_t opens_ns = ask_opens_in_ns(exchange, ask);
    if (is_for_it && opens_ns > 0) {
        why->spent += ask->is_open;
        why->withdrawn +=
            account_withdrawn_until_ns(exchange, ask->device->key.provider) > exchange->now_ns;
        why->opens_ns = why->closed == 0 || opens_ns < why->opens_ns ? opens_ns : why->opens_ns;
        why->closed++;
    }
    return !is_for_it || opens_ns > 0;
}

static bool is_brief(const struct exchange_need *need, const struct book_ask *ask,
                     struct exchange_explanation *why)
{
    const bool is = ask->max_term_ns != 0 && ask->max_term_ns < need->term_ns;
    if (is) {
        why->brief++;
        why->brief_term_ns =
            ask->max_term_ns > why->brief_term_ns ? ask->max_term_ns : why->brief_term_ns;
    }
    return is;
}

static void see(struct explaining *explaining, const struct explained *seen)
{
    if (explaining->seen != NULL) {
        explaining->seen[explaining->search.count++] = *seen;
    }
}

/* Counts a device that is free to the part but whose escrow for a term exceeds the budget. */
static void count_uncovered(const struct part *part, int64_t escrow,
                            struct exchange_explanation *why)
{
    if (escrow > escrow_free_micro(part->job)) {
        why->cover_micro =
            why->uncovered == 0 || escrow < why->cover_micro ? escrow : why->cover_micro;
        why->uncovered++;
    }
}

/* Returns true when work of the part waits that the device's provider may run. */
static bool may_run(struct explaining *explaining, const struct device *device)
{
    if (explaining->asked != device->key.provider) {
        explaining->asked = device->key.provider;
        explaining->asked_may_run =
            part_choice(explaining->exchange, explaining->part, device->key.provider) > 0;
    }
    return explaining->asked_may_run;
}

/* Returns true when the device cannot end any waiting work of the part before the deadline. Counts
 * such a device when it is affordable. */
static bool is_too_late(const struct exchange *exchange, const struct part *part,
                        const struct device *device, bool is_affordable,
                        struct exchange_explanation *why)
{
    const struct lateness late = lateness_on(exchange, part, device);
    if (part->waiting == 0 || lateness_leaves_work(&late, part)) {
        return false;
    }
    const int64_t takes_ns = lateness_least_ns(&late, part);
    if (is_affordable && (why->late == 0 || takes_ns < why->late_takes_ns)) {
        why->late_takes_ns = takes_ns;
    }
    why->late_left_ns = late.left_ns;
    why->late += is_affordable;
    return true;
}

/* Counts a resting ask of a device that fits, and keeps the lowest limit that fills from it. A
 * slot of the device does `operations` a second; 1 when the need has no rate. */
static void explain_ask(struct explaining *explaining, const struct device *device,
                        const struct book_ask *ask, int64_t operations)
{
    const struct exchange *exchange = explaining->exchange;
    const struct exchange_need *need = explaining->need;
    const struct part *part = explaining->part;
    struct exchange_explanation *why = explaining->why;
    why->asking++;
    const int64_t limit_micro =
        limit_is_set(need->cap_micro)
            ? book_limit(exchange->book, need->rate, need->cap_micro, device->cell)
            : exchange->price_band_micro;
    const bool is_affordable = ask->price_micro <= limit_micro;
    const bool is_beyond = !is_affordable && ask->price_micro > exchange->price_band_micro;
    why->beyond += is_beyond;
    const int64_t avoided_ns = job_avoids_for_ns(exchange, part->job, device->key.provider);
    bool is_own = part->waiting > 0 && !may_run(explaining, device);
    const bool is_unsteady =
        device->ask->terms.is_interruptible && part->job->interruptions_left == 0;
    const bool is_late = is_too_late(exchange, part, device, is_affordable, why);
    bool is_free =
        ask->slots >= need->slots && avoided_ns <= 0 && !is_own && !is_unsteady && !is_late;
    why->interruptible += is_affordable && is_unsteady;
    why->own += is_affordable && is_own && part_is_checks(part);
    why->judges += is_affordable && is_own && !part_is_checks(part);
    if (is_affordable && avoided_ns > 0) {
        why->avoided_ns =
            why->avoided == 0 || avoided_ns < why->avoided_ns ? avoided_ns : why->avoided_ns;
        why->avoided++;
    }
    why->affordable += is_affordable;
    why->donated += is_affordable && ask->price_micro == 0;
    why->free += is_affordable && is_free;
    if (is_affordable && is_free) {
        count_uncovered(part, escrow_micro(ask->price_micro, need->slots, need->term_ns), why);
    }
    int64_t fills_micro =
        is_affordable ? ask->price_micro : band_price_bound(exchange, ask->price_micro);
    bool has_limit = !is_beyond && (need->rate == RATE_NONE ||
                                    rate_value_for(ask->price_micro, operations, &fills_micro));
    if (is_free && has_limit && (why->fills_at_micro < 0 || fills_micro < why->fills_at_micro)) {
        why->fills_at_micro = fills_micro;
    }
}

static void explain_device(struct explaining *explaining, const struct device *device)
{
    const struct exchange *exchange = explaining->exchange;
    const struct exchange_need *need = explaining->need;
    struct exchange_explanation *why = explaining->why;
    size_t count;
    const struct attribute *attributes = book_cell_attributes(exchange->book, device->cell, &count);
    why->devices++;
    steps_add(exchange, 8 + 2 * steps_of_needs(need->needs));
    struct explained seen = {.device = device};
    bool is_simulated = book_cell_simulated(exchange->book, device->cell) &&
                        requirement_passes_over(need->needs, attributes, count);
    uint32_t at =
        explain_predicates(explaining, attributes, book_cell_digests(exchange->book, device->cell),
                           count, is_simulated, &seen.truth);
    bool is_wide = is_wide_enough(need, device, is_simulated, why, at);
    int64_t operations =
        need->rate == RATE_NONE ? 1 : book_cell_rate(exchange->book, device->cell, need->rate);
    seen.is_passed_over = is_simulated || operations == 0;
    seen.effort = effort_of(need->needs, seen.truth);
    see(explaining, &seen);
    why->simulated += is_simulated;
    why->simulated_fitting += is_simulated && is_wide && operations > 0 && seen.effort.hold == 0 &&
                              device->key.provider != need->account;
    explaining->unrated += !is_simulated && operations == 0;
    if (!is_wide || seen.is_passed_over || seen.effort.hold > 0) {
        return;
    }
    if (device->key.provider == need->account) {
        why->own_devices++;
        return;
    }
    why->fitting++;
    explain_absent(exchange, explaining->part->job, device, why);
    struct book_ask ask;
    if (device->ask == NULL || !book_ask(exchange->book, device->ask->handle, &ask) ||
        device->ask->slots < need->slots || is_conditional(exchange, need, device->ask, why) ||
        is_brief(need, &ask, why)) {
        return;
    }
    explain_ask(explaining, device, &ask, operations);
}

/* Adds the predicate that a need by value implies, when some device fails it. */
static void explain_rate(struct exchange_explanation *why, uint32_t unrated)
{
    uint32_t at = why->predicate_count;
    if (unrated > 0 && at < REQUIREMENT_NODES_MAX) {
        why->predicate_count++;
        (void)snprintf(why->predicates[at].text, sizeof why->predicates[at].text, "%s > 0",
                       rate_name(why->rate));
        why->predicates[at].failing = unrated;
    }
}

static size_t count_devices(const struct exchange *exchange)
{
    size_t count = 0;
    for (struct list_link *at = exchange->provider_list.next; at != &exchange->provider_list;
         at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        for (struct list_link *link = provider->devices.next; link != &provider->devices;
             link = link->next) {
            count++;
        }
    }
    return count;
}

/* An exposed lease satisfies the same predicates as its device. */
static void see_leases(struct explaining *explaining)
{
    const struct exchange *exchange = explaining->exchange;
    const struct requirement *needs = explaining->need->needs;
    for (uint32_t handle = 0; handle < spot_bound(exchange); handle++) {
        size_t count;
        const struct lease *lease = spot_lease(exchange, handle);
        if (lease == NULL) {
            continue;
        }
        const uint32_t cell = lease->device->cell;
        const struct attribute *attributes = book_cell_attributes(exchange->book, cell, &count);
        struct explained seen = {.device = lease->device, .lease = lease};
        steps_add(exchange, 4 + steps_of_needs(needs));
        seen.truth = compiled_truth(&explaining->plan, attributes,
                                    book_cell_digests(exchange->book, cell), count, NULL);
        seen.effort = effort_of(needs, seen.truth);
        seen.is_passed_over = requirement_passes_over(needs, attributes, count) ||
                              (explaining->need->rate != RATE_NONE &&
                               book_cell_rate(exchange->book, cell, explaining->need->rate) == 0);
        see(explaining, &seen);
    }
}

static void see_devices(struct explaining *explaining)
{
    const struct exchange *exchange = explaining->exchange;
    for (struct list_link *at = exchange->provider_list.next; at != &exchange->provider_list;
         at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        for (struct list_link *link = provider->devices.next; link != &provider->devices;
             link = link->next) {
            const struct device *device = LIST_ELEMENT(link, struct device, of_provider);
            if (device->is_advertised) {
                explain_device(explaining, device);
            }
        }
    }
    see_leases(explaining);
}

static uint32_t count_quiet(const struct exchange *exchange)
{
    uint32_t count = 0;
    for (struct list_link *at = exchange->provider_list.next; at != &exchange->provider_list;
         at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        steps_add(exchange, 1);
        count += provider->state == PROVIDER_PRESENT && list_empty(&provider->devices);
    }
    return count;
}

static void explain_work(const struct part *part, struct exchange_explanation *why)
{
    const struct job *job = part->job;
    const uint32_t open = part->end - part->first - part->decided;
    const uint32_t known = part->waiting + part->running + part->checking;
    why->work.is_filed = true;
    why->work.is_all = job->part_count == 1;
    why->work.is_closing = job->is_closing;
    why->work.has_order = part->handle != BOOK_NONE;
    why->work.running = part->running;
    why->work.queued = progress_queued(job, part);
    why->work.waiting = part->waiting;
    why->work.checking = part->checking;
    why->work.blocked = open > known ? open - known : 0;
    why->work.lanes = part->lanes;
    why->work.is_sated = job->is_closing || part->handle == BOOK_NONE || bid_order(part).slots == 0;
}

/* The market refuses every job of a frozen account. */
static bool foretell_frozen(const struct exchange *exchange, const struct exchange_need *need,
                            struct exchange_explanation *why)
{
    const struct member *owner = lookup_member(exchange, need->account);
    if (owner == NULL || !owner->is_frozen) {
        return false;
    }
    why->is_asked = true;
    why->refusal = XREJECT_FROZEN;
    why->refused_why = owner->frozen_why;
    return true;
}

/* `part` is NULL when the need is not placed yet. */
static void explain(const struct exchange *exchange, const struct exchange_need *need,
                    const struct part *part, struct exchange_explanation *ret_explanation)
{
    struct job asked;
    memset(ret_explanation, 0, sizeof *ret_explanation);
    ret_explanation->fills_at_micro = ret_explanation->takes_at_micro =
        ret_explanation->takes_budget_micro = ret_explanation->starts_at_micro =
            ret_explanation->past_own_micro = -1;
    ret_explanation->rate = need->rate;
    ret_explanation->holds_nothing = need->holds_nothing;
    ret_explanation->is_halted = exchange->is_halted;
    ret_explanation->halted_why = exchange->halted_why;
    ret_explanation->band_most_micro = exchange->price_band_micro;
    ret_explanation->quiet_agents = count_quiet(exchange);
    if (!requirement_well_formed(need->needs)) {
        return;
    }
    const bool is_filed = part != NULL;
    struct exchange_need bidding = *need;
    part = is_filed ? part : search_asked(exchange, need, &asked);
    if (need->budget_micro > 0 || need->holds_nothing || !limit_is_set(need->cap_micro)) {
        bidding.cap_micro = part->bid_micro; /* set by the budget or the band */
    }
    need = &bidding;
    ret_explanation->type = part->job->type;
    struct explained *seen =
        calloc(count_devices(exchange) + spot_bound(exchange) + 1, sizeof *seen);
    struct explaining explaining = {
        .search =
            {.exchange = exchange, .need = need, .part = part, .is_filed = is_filed, .seen = seen},
        .exchange = exchange,
        .need = need,
        .part = part,
        .plan = compiled_requirement(need->needs),
        .negated = requirement_negated(need->needs),
        .seen = seen,
        .why = ret_explanation,
        .asked = EXCHANGE_NO_ACCOUNT,
    };
    explaining.lists = find_lists(need->needs, explaining.negated, &explaining.items);
    see_devices(&explaining);
    explain_rate(ret_explanation, explaining.unrated);
    if (is_filed) {
        explain_work(part, ret_explanation);
    }
    if (seen == NULL || ret_explanation->work.is_sated ||
        (!is_filed && foretell_frozen(exchange, need, ret_explanation))) {
        ret_explanation->fills_at_micro = -1;
    } else if (search_is_whole(&explaining.search)) {
        explain_whole(&explaining.search, ret_explanation);
    } else {
        explain_lanes(&explaining.search, ret_explanation);
    }
    steps_add(exchange, count_devices(exchange) + spot_bound(exchange));
    free(seen);
}

void exchange_explain(const struct exchange *exchange, const struct exchange_need *need,
                      struct exchange_explanation *ret_explanation)
{
    explain(exchange, need, NULL, ret_explanation);
}

static const struct part *part_to_explain(const struct exchange *exchange, const struct job *job,
                                          uint32_t number)
{
    uint8_t reason;
    if (number != EXCHANGE_ANY_PART) {
        return &job->parts[number];
    }
    return job->is_closing ? &job->parts[0] : read_tightest_part(exchange, job, &reason);
}

bool exchange_explain_job(const struct exchange *exchange, const struct id128 *id, uint32_t number,
                          struct exchange_explanation *ret_explanation)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job == NULL || (number != EXCHANGE_ANY_PART && number >= job->part_count)) {
        return false;
    }
    if (job->phase != JOB_PHASE_OPEN) { /* nothing would start it */
        *ret_explanation = (struct exchange_explanation){
            .has_ended = true,
            .fills_at_micro = -1,
            .takes_at_micro = -1,
            .takes_budget_micro = -1,
            .starts_at_micro = -1,
            .past_own_micro = -1,
        };
        return true;
    }
    static const struct requirement anything; /* a job without a bid has no requirement left */
    const struct part *part = part_to_explain(exchange, job, number);
    const struct exchange_need need = {
        .needs = part->class_id == NO_CLASS
                     ? &anything
                     : book_class_requirement(exchange->book, part->class_id),
        .account = job->owner,
        .subtasks = part->end - part->first,
        .slots = part->width,
        .at_most = part->at_most,
        .cap_micro = part->bid_micro,
        .rate = (enum rate)part->rate,
        .limit_ns = part->limit_ns,
        .term_ns = part->term_ns,
        .budget_micro = job->hold.amount_micro,
        .holds_nothing = job->hold.amount_micro == 0,
    };
    explain(exchange, &need, part, ret_explanation);
    ret_explanation->part = part->number;
    return true;
}
