/* This file explains to a provider why no work comes to one of its devices. */
#include "consumer/client/client.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/client/rows.h"

static void from_wire(const Bourse__V1__WhyReply *reply, struct bourse_why *ret_why)
{
    *ret_why = (struct bourse_why){
        .frozen = reply->frozen,
        .halted = reply->halted,
        .devices = reply->devices,
        .slots = reply->slots,
        .leased = reply->leased,
        .free = reply->free,
        .price_micro = reply->has_price_micro ? reply->price_micro : -1,
        .bids = reply->bids,
        .fitting = reply->fitting,
        .lasting = reply->lasting,
        .paying = reply->paying,
        .best_limit_micro = reply->has_best_limit_micro ? reply->best_limit_micro : -1,
        .fills_at_micro = reply->has_fills_at_micro ? reply->fills_at_micro : -1,
        .ahead = reply->has_ahead ? (int64_t)reply->ahead : -1,
        .partial = reply->has_partial && reply->partial,
        .daily_ms = reply->has_daily_ms ? reply->daily_ms : 0,
        .used_ms = reply->has_used_ms ? reply->used_ms : 0,
        .promised_ms = reply->has_promised_ms ? reply->promised_ms : 0,
        .index = reply->index};
    ret_why->paid_micro = -1;
    if (reply->paid != NULL) {
        ret_why->paid_micro = reply->paid->middle_micro;
        ret_why->paid_trades = reply->paid->trades;
        ret_why->paid_since_ms = reply->paid->since_ms;
    }
    rows_standing(reply->standing, &ret_why->standing);
    rows_challenge(reply->challenge, &ret_why->challenge);
    client_copy(ret_why->text, sizeof ret_why->text, reply->text);
    client_copy(ret_why->state, sizeof ret_why->state, reply->state);
    client_copy(ret_why->label, sizeof ret_why->label, reply->label);
    if (reply->has_device) {
        text_hex(reply->device.data, 16, ret_why->device);
    }
    for (size_t i = 0; i < reply->n_refusals && i < BOURSE_PREDICATES_MAX; i++) {
        const Bourse__V1__WhyRefusal *from = reply->refusals[i];
        struct bourse_why_refusal *to = &ret_why->refusals[ret_why->refusal_count++];
        client_copy(to->predicate, sizeof to->predicate, from->text);
        to->changes = from->changes;
        to->bids = from->bids;
        to->limit_micro = from->limit_micro;
        to->has_have = from->has_have;
        to->have = from->have;
    }
}

bool bourse_why(struct bourse *bourse, uint32_t device, struct bourse_why *ret_why,
                struct bourse_error *ret_error)
{
    Bourse__V1__WhyRequest body = BOURSE__V1__WHY_REQUEST__INIT;
    body.has_device = 1;
    body.device = device;
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    if (!client_call(bourse, MESSAGE_WHY_REQUEST, &body.base, MESSAGE_WHY_REPLY, &answer,
                     ret_error)) {
        return false;
    }
    from_wire((const Bourse__V1__WhyReply *)(const void *)answer, ret_why);
    return true;
}
