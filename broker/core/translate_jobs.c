/* Messages about jobs and bids become commands here. */
#include "broker/core/translate_internal.h"

#include "base/limit.h"
#include "protocol/message.h"

#include <string.h>

/* Returns false when a limit is both a cap and a value. */
static bool from_limit(bool has_cap, int64_t cap_micro, const Bourse__V1__Value *value,
                       int64_t *ret_micro, uint32_t *ret_rate)
{
    *ret_micro = value != NULL ? value->micro : has_cap ? cap_micro : LIMIT_NONE;
    *ret_rate = value != NULL ? value->rate : RATE_NONE;
    return value == NULL || !has_cap;
}

static enum reject_code from_parts(const Bourse__V1__SubmitJob *wire, struct translation *ret,
                                   struct codec_error *error)
{
    struct exchange_part *parts = arena_take(&ret->arena, wire->n_parts, sizeof *parts);
    struct requirement *needs = arena_take(&ret->arena, wire->n_parts, sizeof *needs);
    if (parts == NULL || needs == NULL) {
        return REJECT_BUSY;
    }
    for (size_t i = 0; i < wire->n_parts; i++) {
        const Bourse__V1__Part *from = wire->parts[i];
        if (!codec_requirement_from_wire(from->needs, &needs[i])) {
            return translate_refuse(error, REJECT_REQUIREMENT, "parts.needs", 0,
                                    REQUIREMENT_NODES_MAX);
        }
        parts[i] = (struct exchange_part){
            .subtasks = from->subtasks,
            .needs = &needs[i],
            .slots = from->slots,
            .at_most = from->at_most,
        };
        if (!from_limit(from->has_cap_micro, from->cap_micro, from->value, &parts[i].cap_micro,
                        &parts[i].rate)) {
            return translate_refuse(error, REJECT_PRICE, "parts.cap_micro", from->cap_micro, 0);
        }
        if (!translate_ms_to_ns(from->limit_ms, &parts[i].limit_ns)) {
            return translate_bad_time(error, "parts.limit_ms", from->limit_ms);
        }
        if (!translate_ms_to_ns(from->term_ms, &parts[i].term_ns)) {
            return translate_bad_time(error, "parts.term_ms", from->term_ms);
        }
        parts[i].expect_ns = from->has_expect_ns ? from->expect_ns : 0;
        if (!from->has_expect_ns && from->has_expect_ms &&
            !translate_ms_to_ns(from->expect_ms, &parts[i].expect_ns)) {
            return translate_bad_time(error, "parts.expect_ms", from->expect_ms);
        }
    }
    ret->command.submit.parts = parts;
    ret->command.submit.part_count = wire->n_parts;
    return REJECT_NONE;
}

/* Lists of the graph stay in the body, which the translation owns. */
static bool from_graph(const Bourse__V1__Graph *wire, struct translation *ret)
{
    struct exchange_graph *graph = arena_take(&ret->arena, 1, sizeof *graph);
    if (graph != NULL) {
        *graph = (struct exchange_graph){
            .rank = wire->rank,
            .rank_count = wire->n_rank,
            .expect_ms = wire->expect_ms,
            .expect_count = wire->n_expect_ms,
            .after_count = wire->after_count,
            .after_count_count = wire->n_after_count,
            .after = wire->after,
            .after_length = wire->n_after,
        };
        ret->command.submit.graph = graph;
    }
    return graph != NULL;
}

enum reject_code translate_submit(const Bourse__V1__SubmitJob *wire, struct translation *ret,
                                  struct codec_error *error)
{
    struct exchange_submit *submit = &ret->command.submit;
    struct requirement *needs = arena_take(&ret->arena, 1, sizeof *needs);
    if (needs == NULL) {
        return REJECT_BUSY;
    }
    if (!codec_requirement_from_wire(wire->needs, needs)) {
        return translate_refuse(error, REJECT_REQUIREMENT, "needs", 0, REQUIREMENT_NODES_MAX);
    }
    if (!from_limit(wire->has_cap_micro, wire->cap_micro, wire->value, &submit->cap_micro,
                    &submit->rate)) {
        return translate_refuse(error, REJECT_PRICE, "cap_micro", wire->cap_micro, 0);
    }
    if (!translate_ms_to_ns(wire->limit_ms, &submit->limit_ns)) {
        return translate_bad_time(error, "limit_ms", wire->limit_ms);
    }
    if (!translate_ms_to_ns(wire->term_ms, &submit->term_ns)) {
        return translate_bad_time(error, "term_ms", wire->term_ms);
    }
    submit->expect_ns = wire->has_expect_ns ? wire->expect_ns : 0;
    if (!wire->has_expect_ns && wire->has_expect_ms &&
        !translate_ms_to_ns(wire->expect_ms, &submit->expect_ns)) {
        return translate_bad_time(error, "expect_ms", wire->expect_ms);
    }
    if (wire->has_good_till_ms && !translate_ms_to_ns(wire->good_till_ms, &submit->good_till_ns)) {
        return translate_bad_time(error, "good_till_ms", wire->good_till_ms);
    }
    if (wire->has_deadline_ms && !translate_ms_to_ns(wire->deadline_ms, &submit->deadline_ns)) {
        return translate_bad_time(error, "deadline_ms", wire->deadline_ms);
    }
    submit->type =
        wire->has_order_type ? (enum exchange_order_type)wire->order_type : EXCHANGE_MARKET;
    ret->command.type = EXCHANGE_SUBMIT;
    translate_copy_name(submit->name, wire->name);
    submit->manifest = codec_hash(wire->manifest);
    submit->subtasks = wire->subtasks;
    submit->budget_micro = wire->budget_micro;
    submit->needs = needs;
    submit->slots = wire->slots;
    submit->at_most = wire->at_most;
    submit->retries = wire->has_retries ? wire->retries : 0;
    submit->crash_limit = wire->has_crash_limit ? wire->crash_limit : EXCHANGE_CRASH_LIMIT;
    submit->has_interruptions = wire->has_interruptions;
    submit->interruptions = wire->has_interruptions ? wire->interruptions : 0;
    submit->has_checkpoints = wire->has_checkpoint && wire->checkpoint;
    submit->is_expectation_stated = wire->has_expect_stated && wire->expect_stated;
    /* The wire counts the error that stops the job; the exchange counts those allowed. */
    submit->error_limit =
        wire->has_error_limit && wire->error_limit > 0 ? wire->error_limit - 1 : UINT32_MAX;
    submit->verify = strcmp(wire->verify, "none") == 0    ? EXCHANGE_VERIFY_NONE
                     : strcmp(wire->verify, "cheap") == 0 ? EXCHANGE_VERIFY_CHEAP
                                                          : EXCHANGE_VERIFY_UNKNOWN;
    if (wire->graph != NULL && !from_graph(wire->graph, ret)) {
        return REJECT_BUSY;
    }
    return from_parts(wire, ret, error);
}

enum reject_code translate_replace(const Bourse__V1__OrderReplace *wire,
                                   struct exchange_command *ret_command, struct codec_error *error)
{
    int64_t limit_micro;
    uint32_t rate;
    if (!from_limit(wire->has_price_micro, wire->price_micro, wire->value, &limit_micro, &rate)) {
        return translate_refuse(error, REJECT_PRICE, "price_micro", wire->price_micro, 0);
    }
    int64_t deadline_ns = 0;
    if (wire->has_deadline_ms && !translate_ms_to_ns(wire->deadline_ms, &deadline_ns)) {
        return translate_bad_time(error, "deadline_ms", wire->deadline_ms);
    }
    ret_command->type = EXCHANGE_REPLACE;
    ret_command->replace = (struct exchange_replace){
        .order = codec_id(wire->order),
        .part = wire->has_part ? wire->part : EXCHANGE_ANY_PART,
        .has_slots = wire->has_slots,
        .has_price = wire->has_price_micro || wire->value != NULL,
        .has_budget = wire->has_budget_micro,
        .slots = wire->slots,
        .price_micro = limit_micro,
        .rate = rate,
        .budget_micro = wire->budget_micro,
        .has_deadline = wire->has_deadline_ms,
        .deadline_ns = deadline_ns,
    };
    return REJECT_NONE;
}
