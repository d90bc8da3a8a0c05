#include "broker/answer/quotes.h"

#include "base/checked.h"
#include "base/limit.h"
#include "broker/answer/explanation.h"
#include "broker/answer/wire_view.h"
#include "exchange/view/feed.h"
#include "protocol/codec.h"

#include <assert.h>
#include <stdlib.h>

static void quote_to_wire(const struct exchange_quote *quote, bool is_by_value,
                          Bourse__V1__QuoteLevel *levels, Bourse__V1__QuoteLevel **pointers,
                          Bourse__V1__QuoteReply *ret_wire)
{
    assert(quote->level_count <= EXCHANGE_QUOTE_LEVELS);
    bourse__v1__quote_reply__init(ret_wire);
    ret_wire->slots_now = quote->slots_now;
    ret_wire->price_low_micro = quote->price_low_micro;
    ret_wire->price_high_micro = quote->price_high_micro;
    ret_wire->expected_micro = quote->expected_micro;
    ret_wire->minimum_micro = quote->minimum_micro;
    ret_wire->suggested_micro = quote->suggested_micro;
    ret_wire->makespan_ns = quote->makespan_ns;
    for (uint32_t i = 0; i < quote->level_count; i++) {
        bourse__v1__quote_level__init(&levels[i]);
        levels[i].price_micro = quote->levels[i].price_micro;
        levels[i].slots = quote->levels[i].slots;
        levels[i].providers = quote->levels[i].providers;
        if (is_by_value) {
            levels[i].instrument = (char *)(uintptr_t)quote->levels[i].instrument; /* packed only */
            levels[i].has_limit_micro = true;
            levels[i].limit_micro = quote->levels[i].limit_micro;
        }
        pointers[i] = &levels[i];
    }
    ret_wire->has_slots_taken = ret_wire->has_taken_low_micro = ret_wire->has_taken_high_micro =
        quote->slots_taken > 0;
    ret_wire->slots_taken = quote->slots_taken;
    ret_wire->taken_low_micro = quote->taken_low_micro;
    ret_wire->taken_high_micro = quote->taken_high_micro;
    ret_wire->has_elsewhere_micro = ret_wire->has_elsewhere_slots = quote->elsewhere_slots > 0;
    ret_wire->elsewhere_micro = quote->elsewhere_micro;
    ret_wire->elsewhere_slots = quote->elsewhere_slots;
    ret_wire->n_levels = quote->level_count;
    ret_wire->levels = pointers;
    ret_wire->has_first_account = quote->is_asked;
    ret_wire->first_account = wire_view(&quote->first, sizeof quote->first);
    ret_wire->has_second_micro = quote->second_micro >= 0;
    ret_wire->second_micro = quote->second_micro;
}

static bool need_from_wire(const Bourse__V1__QuoteRequest *body, uint32_t account,
                           struct requirement *needs, struct exchange_need *ret_need)
{
    const Bourse__V1__Value *value = body->value;
    *ret_need = (struct exchange_need){
        .needs = needs,
        .account = account,
        .subtasks = body->subtasks,
        .slots = body->slots,
        .at_most = body->at_most,
        .expect_ns = body->expect_ns,
        .cap_micro = value != NULL         ? value->micro
                     : body->has_cap_micro ? body->cap_micro
                                           : LIMIT_NONE,
        .rate = value == NULL ? RATE_NONE : (enum rate)value->rate,
        .apart = body->has_apart && body->apart,
        .type = body->has_order_type ? (uint8_t)body->order_type : EXCHANGE_MARKET,
        .is_firm_only = body->has_interruptions && body->interruptions == 0,
        .budget_micro = body->budget_micro,
        .holds_nothing = body->has_budget_micro && body->budget_micro == 0};
    return codec_requirement_from_wire(body->needs, needs) &&
           checked_mul(body->limit_ms, NS_PER_MS, &ret_need->limit_ns) &&
           checked_mul(body->term_ms, NS_PER_MS, &ret_need->term_ns);
}

/* Suggests the usual price as the cap, but never less than the present offers cost. */
static void suggest_cap(const struct exchange *exchange, const struct requirement *needs,
                        const struct exchange_quote *quote, Bourse__V1__QuoteReply *answer)
{
    const struct exchange_usual usual = exchange_usual_price(exchange, needs);
    if (usual.trades == 0) {
        return;
    }
    const int64_t least = quote->slots_now > 0 ? quote->price_low_micro : 0;
    answer->has_cap_micro = answer->has_cap_trades = answer->has_cap_since_ms = true;
    answer->cap_micro = usual.price_micro > least ? usual.price_micro : least;
    answer->cap_trades = usual.trades;
    answer->cap_since_ms = usual.since_ns / NS_PER_MS;
}

struct outgoing *quotes_reply(const struct exchange *exchange, const struct departures *departures,
                              const struct request *request, int64_t log_ns)
{
    const Bourse__V1__QuoteRequest *body = (const void *)request->translation.body;
    struct requirement needs;
    struct exchange_need need;
    if (body->value != NULL && body->has_cap_micro) {
        return outgoing_refuse(request, REJECT_PRICE, "cap_micro", 0, 0);
    }
    if (body->value != NULL && body->value->rate >= RATES) {
        return outgoing_refuse(request, REJECT_REQUIREMENT, "value.rate", 0, 0);
    }
    if (!need_from_wire(body, request->account, &needs, &need)) {
        return outgoing_refuse(request, REJECT_REQUIREMENT, "needs", 0, 0);
    }
    struct explanation *explanation = calloc(1, sizeof *explanation);
    if (explanation == NULL) {
        return NULL;
    }
    struct exchange_quote row;
    bool good = exchange_quote(exchange, &need, &row);
    exchange_explain(exchange, &need, &explanation->row);
    explanation_age(explanation, exchange, log_ns);
    departures_text(departures, exchange, request->account, &needs, need.slots, log_ns,
                    explanation->departed);
    good = explanation_to_wire(explanation) && good;
    Bourse__V1__QuoteLevel levels[EXCHANGE_QUOTE_LEVELS];
    Bourse__V1__QuoteLevel *pointers[EXCHANGE_QUOTE_LEVELS];
    Bourse__V1__QuoteReply answer;
    quote_to_wire(&row, need.rate != RATE_NONE, levels, pointers, &answer);
    answer.index = exchange_index(exchange);
    const struct exchange_bands bands = exchange_bands_now(exchange);
    answer.has_least_micro = answer.has_most_micro = true;
    answer.least_micro = bands.least_micro;
    answer.most_micro = bands.most_micro;
    answer.explanation = &explanation->wire;
    if (need.rate == RATE_NONE) {
        suggest_cap(exchange, &needs, &row, &answer);
    }
    struct outgoing *outgoing =
        good ? outgoing_reply(request, MESSAGE_QUOTE_REPLY, &answer.base) : NULL;
    explanation_free(explanation);
    return outgoing;
}
