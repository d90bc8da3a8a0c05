#include "broker/answer/why.h"

#include "base/checked.h"
#include "base/text.h"
#include "broker/answer/explanation.h"
#include "broker/answer/listings.h"
#include "broker/answer/reason.h"
#include "broker/answer/standing.h"
#include "broker/challenge/challenge_wire.h"
#include "exchange/lifecycle.h"
#include "exchange/view/feed.h"
#include "exchange/view/why.h"
#include "formats/units.h"
#include "protocol/codec.h"
#include "protocol/limits.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* This is the answer's wire form with everything that the form points to. */
struct why {
    struct exchange_why row;
    char text[LIMIT_TEXT_BYTES];
    Bourse__V1__WhyReply wire;
    Bourse__V1__PaidLately paid;
    struct standing_wire standing;
    Bourse__V1__ChallengeFact challenge;
    Bourse__V1__WhyRefusal refusals[EXCHANGE_WHY_REFUSALS];
    Bourse__V1__WhyRefusal *pointers[EXCHANGE_WHY_REFUSALS];
};

static const char *money(int64_t micro, char ret_text[UNITS_TEXT_SIZE])
{
    units_money_text(micro, ret_text);
    return ret_text;
}

/* Names the obstacle on the provider's own side. Returns false when there is none. */
static bool own_hurdle(const struct exchange_why *row, char *ret_text, size_t capacity)
{
    char reason[REASON_TEXT_SIZE];
    if (row->is_frozen) {
        reason_text(row->frozen_why, reason);
        (void)snprintf(ret_text, capacity, "the operator froze this account%s",
                       row->frozen_why == NULL ? "; ask the operator why" : reason);
    } else if (row->is_halted) {
        reason_text(row->halted_why, reason);
        (void)snprintf(ret_text, capacity,
                       "the operator halted the market%s: nothing is matched until it is opened "
                       "again",
                       reason);
    } else if (row->devices == 0) {
        (void)snprintf(
            ret_text, capacity,
            "this account offers no device now: its agent is paused, out of disk, or does not run");
    } else if (row->price_micro < 0 && row->state != PROVIDER_PRESENT) {
        (void)snprintf(
            ret_text, capacity,
            "no ask stands for this device: the market does not hear its agent, which has ended, "
            "or cannot reach the broker");
    } else if (row->price_micro < 0) {
        (void)snprintf(
            ret_text, capacity,
            "no ask stands for this device: the ask was cancelled by hand, or the agent's "
            "ask was refused");
    } else if (row->withdrawn_ns > 0) {
        char wait[UNITS_TEXT_SIZE];
        units_duration_short(row->withdrawn_ns, wait);
        (void)snprintf(ret_text, capacity,
                       "%u results of this account were refuted, so its asks are closed for %s; "
                       "the asks open by themselves. An hour of work that checks accept takes one "
                       "off the count of refuted results",
                       row->refuted, wait);
    } else if (row->is_spent) {
        char wait[UNITS_TEXT_SIZE];
        char daily[UNITS_TEXT_SIZE];
        units_duration_short(row->opens_ns, wait);
        units_duration_text(row->daily_ns, daily);
        (void)snprintf(ret_text, capacity,
                       "the ask gives %s of slots a day, and what today has left is less than its "
                       "longest lease; the next day begins in %s",
                       daily, wait);
    } else if (row->opens_ns > 0) {
        char wait[UNITS_TEXT_SIZE];
        units_duration_short(row->opens_ns, wait);
        (void)snprintf(ret_text, capacity, "the time is outside the ask's hours, which begin in %s",
                       wait);
    } else if (row->free == 0) {
        (void)snprintf(ret_text, capacity, "all slots of the ask are leased: %u slot%s", row->slots,
                       text_plural(row->slots));
    } else {
        return false;
    }
    return true;
}

static void nearest_text(const struct exchange_why *row, char *ret_text, size_t capacity)
{
    const struct exchange_why_refusal *nearest = &row->refusals[0];
    char figure[UNITS_TEXT_SIZE] = "";
    if (nearest->has_have) {
        (void)explanation_figure(nearest->predicate, nearest->have, figure);
    }
    (void)snprintf(ret_text, capacity,
                   "none of %u waiting bid%s takes this device; %u ask%s for %s%s%s%s%s", row->bids,
                   text_plural(row->bids), nearest->bids, nearest->bids == 1 ? "s" : "",
                   nearest->predicate, figure[0] == '\0' ? "" : " (this device: ", figure,
                   figure[0] == '\0' ? "" : ")",
                   nearest->changes > 1 ? ", and for more that this device lacks" : "");
}

static void demand_text(const struct exchange_why *row, char *ret_text, size_t capacity)
{
    char price[UNITS_TEXT_SIZE];
    char limit[UNITS_TEXT_SIZE];
    if (row->bids == 0) {
        (void)snprintf(ret_text, capacity,
                       "no job%s waits for a device: all jobs run already, or there are none",
                       row->is_for_some ? " for which the ask is open" : "");
    } else if (row->fitting == 0 && row->refusal_count > 0) {
        nearest_text(row, ret_text, capacity);
    } else if (row->fitting == 0) {
        (void)snprintf(ret_text, capacity, "none of %u waiting bid%s takes this device", row->bids,
                       text_plural(row->bids));
    } else if (row->lasting == 0) {
        char term[UNITS_TEXT_SIZE];
        units_duration_short(row->longest_term_ns, term);
        (void)snprintf(
            ret_text, capacity,
            "%u of %u waiting bid%s fit%s, and all want a longer lease than `term` allows; "
            "a `term` of %s would suffice for all of them",
            row->fitting, row->bids, text_plural(row->bids), text_verb_ending(row->fitting), term);
    } else if (row->paying == 0 && row->fills_at_micro > 0) {
        (void)snprintf(
            ret_text, capacity,
            "%u of %u waiting bid%s fit%s, and none pays %s; at %s per slot-hour the ask "
            "is filled now",
            row->lasting, row->bids, text_plural(row->bids), text_verb_ending(row->lasting),
            money(row->price_micro, price), money(row->fills_at_micro, limit));
    } else if (row->paying == 0) {
        (void)snprintf(
            ret_text, capacity,
            "%u of %u waiting bid%s fit%s, and none pays %s; at %s per slot-hour work comes",
            row->lasting, row->bids, text_plural(row->bids), text_verb_ending(row->lasting),
            money(row->price_micro, price), money(row->best_limit_micro, limit));
    } else {
        (void)snprintf(
            ret_text, capacity,
            "%u of %u waiting bid%s fit%s and pay%s the price; a job avoids a provider for "
            "10 s that failed the job or gave its work back, and a job may have too "
            "little budget left for a lease",
            row->paying, row->bids, text_plural(row->bids), text_verb_ending(row->paying),
            text_verb_ending(row->paying));
    }
}

/* Appends to `text` how many asks come before this one. */
static void place_text(const struct exchange_why *row, char *text, size_t capacity)
{
    const size_t used = strlen(text);
    if (row->ahead > 0) {
        (void)snprintf(text + used, capacity - used, "; %u ask%s before this ask", row->ahead,
                       row->ahead == 1 ? " comes" : "s come");
    }
}

static void paid_to_wire(const struct exchange *exchange, struct why *why)
{
    const struct exchange_usual usual = exchange_usual_of(exchange, why->row.instrument);
    bourse__v1__paid_lately__init(&why->paid);
    why->paid.middle_micro = usual.middle_micro;
    why->paid.trades = usual.trades;
    why->paid.since_ms = usual.since_ns / NS_PER_MS;
    why->wire.paid = usual.trades > 0 ? &why->paid : NULL;
}

static void refusals_to_wire(struct why *why)
{
    assert(why->row.refusal_count <= EXCHANGE_WHY_REFUSALS);
    for (uint32_t i = 0; i < why->row.refusal_count; i++) {
        struct exchange_why_refusal *from = &why->row.refusals[i];
        Bourse__V1__WhyRefusal *to = &why->refusals[i];
        bourse__v1__why_refusal__init(to);
        to->text = from->predicate;
        to->changes = from->changes;
        to->bids = from->bids;
        to->limit_micro = from->limit_micro;
        to->has_have = from->has_have;
        to->have = from->have;
        why->pointers[i] = to;
    }
    why->wire.n_refusals = why->row.refusal_count;
    why->wire.refusals = why->pointers;
}

static void to_wire(const struct exchange *exchange, uint32_t account, struct why *why)
{
    struct exchange_why *row = &why->row;
    Bourse__V1__WhyReply *wire = &why->wire;
    bourse__v1__why_reply__init(wire);
    for (uint32_t i = 0; i < row->refusal_count; i++) {
        explanation_predicate(row->refusals[i].predicate, sizeof row->refusals[i].predicate);
    }
    if (!own_hurdle(row, why->text, sizeof why->text)) {
        demand_text(row, why->text, sizeof why->text);
        place_text(row, why->text, sizeof why->text);
    }
    wire->index = exchange_index(exchange);
    wire->text = why->text;
    /* The word is packed, never written. */
    wire->state = (char *)(uintptr_t)listings_provider_state(row->state);
    wire->frozen = row->is_frozen;
    wire->halted = row->is_halted;
    wire->devices = row->devices;
    wire->has_device = row->devices > 0;
    wire->device =
        (ProtobufCBinaryData){.data = row->device.bytes, .len = sizeof row->device.bytes};
    wire->label = row->devices > 0 ? row->label : NULL;
    wire->slots = row->slots;
    wire->leased = row->leased;
    wire->free = row->free;
    wire->has_price_micro = row->price_micro >= 0;
    wire->price_micro = row->price_micro;
    wire->bids = row->bids;
    wire->fitting = row->fitting;
    wire->lasting = row->lasting;
    wire->paying = row->paying;
    wire->has_best_limit_micro = row->best_limit_micro >= 0;
    wire->best_limit_micro = row->best_limit_micro;
    wire->has_fills_at_micro = row->fills_at_micro >= 0;
    wire->fills_at_micro = row->fills_at_micro;
    wire->has_ahead = row->has_ahead;
    wire->ahead = row->ahead;
    wire->has_daily_ms = wire->has_used_ms = wire->has_promised_ms = row->daily_ns > 0;
    wire->daily_ms = row->daily_ns / NS_PER_MS;
    wire->used_ms = row->used_ns / NS_PER_MS;
    wire->promised_ms = row->promised_ns / NS_PER_MS;
    wire->has_partial = row->is_partial;
    wire->partial = row->is_partial;
    wire->standing = standing_to_wire(exchange, account, &why->standing);
    paid_to_wire(exchange, why);
    refusals_to_wire(why);
}

/* Says that the broker refuses the ask because of a challenge, where that may be the reason. */
static void challenge_text(struct why *why)
{
    const Bourse__V1__ChallengeFact *fact = why->wire.challenge;
    const bool has_no_ask = why->row.price_micro < 0 && why->row.state == PROVIDER_PRESENT;
    if (fact == NULL || !has_no_ask || why->row.is_frozen || why->row.is_halted) {
        return;
    }
    if (fact->has_closed_ms) {
        char wait[UNITS_TEXT_SIZE];
        units_duration_short(fact->closed_ms * NS_PER_MS, wait);
        (void)snprintf(
            why->text, sizeof why->text,
            "no ask stands for this device: the broker challenged its speed, and %s; its "
            "asks are closed for %s",
            fact->outcome == CHALLENGE_WRONG ? "the answers were wrong" : "no answer came", wait);
    } else if (fact->has_limit_mflops) {
        (void)snprintf(
            why->text, sizeof why->text,
            "no ask stands for this device: the broker challenged its speed, and it showed "
            "%" PRId64 " Mflop/s (`gemm_fp32`); no ask of a higher claim is taken",
            fact->limit_mflops);
    }
}

struct outgoing *why_reply(const struct exchange *exchange, const struct challenge_facts *facts,
                           const struct request *request, int64_t log_ns)
{
    const Bourse__V1__WhyRequest *body = (const void *)request->translation.body;
    struct why *why = calloc(1, sizeof *why);
    struct outgoing *outgoing = NULL;
    if (why == NULL) {
        return NULL;
    }
    switch (exchange_explain_ask(exchange, request->account, body->has_device ? body->device : 0,
                                 &why->row)) {
    case WHY_OK:
        to_wire(exchange, request->account, why);
        why->wire.challenge =
            challenge_wire_of(facts, request->account, &why->row.device, log_ns, &why->challenge);
        challenge_text(why);
        outgoing = outgoing_reply(request, MESSAGE_WHY_REPLY, &why->wire.base);
        break;
    case WHY_NO_DEVICE:
        outgoing =
            outgoing_refuse(request, REJECT_NOT_FOUND, "device", body->device, why->row.devices);
        break;
    case WHY_OUT_OF_MEMORY:
        break;
    }
    free(why);
    return outgoing;
}
