#include "exchange/work/held_results.h"

#include "exchange/account/standing.h"
#include "exchange/lifecycle.h"
#include "exchange/market/withdrawal.h"
#include "exchange/state/effects.h"
#include "exchange/state/held.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/tracking.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/lease_records.h"
#include "exchange/work/payment.h"
#include "exchange/work/runtime_stats.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void hold_record(struct exchange *exchange, const struct held *held,
                        const struct exchange_result *result)
{
    const struct lease *lease = held->lease;
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_HELD);
    record->job = lease->job->id;
    record->index = held->index;
    record->attempt = held->attempt;
    record->lease = lease->id;
    record->provider = lookup_member(exchange, lease->provider)->key;
    record->owner = lookup_member(exchange, lease->job->owner)->key;
    record->device = lease->device_id;
    record->hash = held->hash;
    record->debit = lease->job->owner;
    record->credit = lease->provider;
    record->price_micro = lease->price_micro;
    record->result = result->bytes;
    record->result_length = result->length;
    record->position = held->position;
    record->batch_index = held->batch_index;
}

void held_keep(struct exchange *exchange, struct lease *lease, const struct attempt *attempt,
               const struct exchange_result *result, uint32_t position)
{
    struct held *held = memory_allocate(exchange, sizeof *held + result->length);
    if (held == NULL) {
        return;
    }
    held->lease = lease;
    held->index = attempt->key.index;
    held->attempt = attempt->key.attempt;
    held->batch_index = exchange->index;
    held->position = position;
    held->paid_ns = payment_time(exchange, lease, attempt, result->busy_ns);
    held->hash = result->hash;
    held->dice = exchange->command->results.dice;
    held->shy_of = EXCHANGE_NO_ACCOUNT;
    held->length = result->length;
    if (result->length > 0) {
        memcpy(held->bytes, result->bytes, result->length);
    }
    bool is_linked = held_link(lease->job, held);
    assert(is_linked); /* the subtask was running, so none of its results is held */
    (void)is_linked;
    tracking_add(exchange, &held->tracked, RECORD_HELD);
    hold_record(exchange, held, result);
}

/* Copies to memory of the effects. Returns NULL for no bytes, or when memory is short. */
static const uint8_t *keep_bytes(struct exchange *exchange, const struct held *held)
{
    struct exchange_block *block =
        held->length == 0 ? NULL : memory_allocate(exchange, sizeof *block + held->length);
    if (block == NULL) {
        return NULL;
    }
    block->next = exchange->effects->blocks;
    exchange->effects->blocks = block;
    memcpy(block + 1, held->bytes, held->length);
    return (const uint8_t *)(block + 1);
}

struct decision held_decision(const struct exchange_result *check, uint8_t outcome)
{
    return (struct decision){.level = CHECK_CHEAP,
                             .check = check->hash,
                             .is_missing = outcome == XOUTCOME_INPUT_MISSING};
}

void held_accuse(struct exchange *exchange, struct held *held, const struct accusation *accusation)
{
    held->accusation = *accusation;
    held->accusation.held = held;
    list_append(&held->lease->job->checks->accusations, &held->of_accused);
    tracking_add(exchange, &held->accusation.tracked, RECORD_ACCUSATION);
    held->lease->job->checks->accused++;
}

static void drop_accusation(struct exchange *exchange, struct held *held)
{
    if (held->accusation.tracked.type != 0) {
        tracking_remove(exchange, &held->accusation.tracked);
        list_remove(&held->of_accused);
        held->accusation.tracked.type = 0;
        held->lease->job->checks->accused--;
    }
}

void held_settle(struct exchange *exchange, struct job *job, uint32_t index, uint8_t status,
                 const struct decision *decision)
{
    static const struct decision none;
    struct held *held = job->checks->held[index];
    struct lease *lease = held->lease;
    const struct settlement settlement = {
        .index = held->index,
        .attempt = held->attempt,
        .outcome = XOUTCOME_OK,
        .status = status,
        .hash = held->hash,
        .bytes = keep_bytes(exchange, held),
        .length = held->length,
        .batch_index = held->batch_index,
        .position = held->position,
        .paid_ns = status == XATTEMPT_REFUTED ? 0 : held->paid_ns,
        .level = decision == NULL ? none.level : decision->level,
        .check = decision == NULL ? none.check : decision->check,
    };
    check_dequeue(held);
    job->checks->held[index] = NULL;
    lease->held_count--;
    lease->held_ns -= held->paid_ns;
    if (status == XATTEMPT_ACCEPTED) {
        runtime_stats_accept(lease);
    }
    drop_accusation(exchange, held);
    tracking_remove(exchange, &held->tracked);
    free(held);
    payment_settle(exchange, lease, &settlement);
    if (lease->state == LEASE_ENDED) {
        lease_release_reserve(exchange, lease);
    }
    tracking_touch(exchange, &lease->tracked);
    if (status == XATTEMPT_REFUTED) {
        withdrawal_count_refuted(exchange, lease->provider);
    } else if (status == XATTEMPT_ACCEPTED && decision != NULL) {
        account_proved(exchange, lease->provider, settlement.paid_ns);
    }
}

bool exchange_each_held(const struct exchange *exchange, exchange_on_held *visit, void *context)
{
    for (const struct list_link *at = exchange->job_list.next; at != &exchange->job_list;
         at = at->next) {
        const struct job *job = LIST_ELEMENT(at, struct job, all);
        for (uint32_t i = 0; job->checks != NULL && i < held_first_check(job); i++) {
            const struct held *held = job->checks->held[i];
            if (held != NULL &&
                !visit(context, held->lease->provider, &job->id, held->bytes, held->length)) {
                return false;
            }
        }
    }
    return true;
}
