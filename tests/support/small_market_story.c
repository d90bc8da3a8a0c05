#include "tests/support/small_market_story.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "broker/core/translate.h"
#include "ledger/accounts.h"
#include "protocol/message.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

void story_rules(struct writer_state *state, uint32_t rules)
{
    const struct exchange_set_limits set = {.rules = rules, .limits = exchange_limits_default()};
    uint8_t *payload = malloc(TRANSLATE_LIMITS_BYTES);
    ck_assert_ptr_nonnull(payload);
    translate_limits(&set, payload);
    writer_add_command(state, ENTRY_LIMITS, EXCHANGE_NO_ACCOUNT, payload, TRANSLATE_LIMITS_BYTES);
    writer_commit(state);
}

void story_hold(struct writer_state *state, const struct story_job *job, int64_t amount_micro)
{
    struct ledger_record *record = writer_add_record(state, LEDGER_HOLD);
    record->job = job->id;
    record->debit = record->credit = job->account;
    record->amount_micro = amount_micro;
}

struct ledger_record *story_bid(struct writer_state *state, const struct story_job *job,
                                uint32_t slots, int64_t limit_micro)
{
    struct ledger_record *record = writer_add_record(state, LEDGER_BID);
    record->order = record->job = job->id;
    record->owner = *identity_key(job->owner);
    record->slots = slots;
    record->width = 1;
    record->price_micro = limit_micro;
    return record;
}

void story_submit(struct writer_state *state, struct story_job *job)
{
    Bourse__V1__Requirement needs = BOURSE__V1__REQUIREMENT__INIT;
    Bourse__V1__Value value = BOURSE__V1__VALUE__INIT;
    Bourse__V1__SubmitJob body = BOURSE__V1__SUBMIT_JOB__INIT;
    body.name = (char *)(uintptr_t)job->name; /* encoded here, never written */
    body.manifest = writer_data(state->manifest.bytes, 32);
    body.subtasks = STORY_SUBTASKS;
    body.budget_micro = STORY_BUDGET;
    value.micro = body.cap_micro = job->cap_micro;
    value.rate = job->rate;
    body.value = job->rate != RATE_NONE ? &value : NULL;
    body.has_cap_micro = job->rate == RATE_NONE;
    body.needs = &needs;
    body.slots = 1;
    body.limit_ms = body.term_ms = STORY_TERM_MS;
    body.verify = "none";
    body.has_checkpoint = body.checkpoint = job->has_checkpoints;
    job->id = writer_add_message(state, MESSAGE_SUBMIT_JOB, job->owner, job->account, &body.base);
    struct ledger_record *record = writer_add_record(state, LEDGER_JOB);
    record->job = job->id;
    record->owner = *identity_key(job->owner);
    record->hash = state->manifest;
    record->subtasks = STORY_SUBTASKS;
    record->amount_micro = STORY_BUDGET;
    (void)snprintf(record->name, sizeof record->name, "%s", job->name);
    record->price_micro = job->cap_micro;
    record->width = 1;
    record->debit = record->credit = job->account;
    story_hold(state, job, STORY_BUDGET);
    story_bid(state, job, UINT32_MAX, job->cap_micro);
}

void story_fill(struct writer_state *state, const struct story_job *job, uint64_t lease,
                uint32_t slots, int64_t price_micro)
{
    struct small_market *market = state->market;
    struct ledger_record *record = writer_add_record(state, LEDGER_FILL);
    record->lease = lease;
    record->order = market->other_ask;
    record->bid = record->job = job->id;
    record->provider = *identity_key(market->provider);
    record->owner = *identity_key(job->owner);
    record->device = market->other_device;
    record->slots = slots;
    record->price_micro = price_micro;
    record->term_ns = STORY_TERM_MS * NS_PER_MS;
    (void)snprintf(record->name, sizeof record->name, "cpu.x86_64.avx2");
}

static uint8_t *encode(const struct writer_state *state, const struct story_result *told,
                       size_t *ret_length)
{
    const struct small_market *market = state->market;
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    result.cluster = writer_data(market->cluster.bytes, 16);
    result.job = writer_data(told->job->id.bytes, 16);
    result.attempt = told->attempt;
    result.lease = told->lease;
    result.provider = writer_data(identity_key(market->provider)->bytes, 32);
    result.device = writer_data(market->other_device.bytes, 16);
    result.manifest = writer_data(state->manifest.bytes, 32);
    result.outcome = told->outcome;
    result.started_ms = 1700000000000;
    result.busy_ns = STORY_BUSY_NS;
    result.saved = told->saved;
    return codec_encode(&result.base, ret_length);
}

static void pay(struct writer_state *state, const struct story_result *told, enum ledger_kind kind,
                uint32_t credit, int64_t amount_micro)
{
    if (amount_micro > 0) {
        struct ledger_record *record = writer_add_record(state, kind);
        record->job = told->job->id;
        record->lease = told->lease;
        record->attempt = told->attempt;
        record->debit = told->job->account;
        record->credit = credit;
        record->amount_micro = amount_micro;
    }
}

void story_settle(struct writer_state *state, const struct story_result *told)
{
    const struct small_market *market = state->market;
    struct batch *batch = &state->batch;
    batch->bytes[0] = encode(state, told, &batch->lengths[0]);
    batch->leaves[0] = results_leaf(batch->bytes[0], batch->lengths[0]);
    batch->count = 1;
    const struct hash32 root = results_root(batch->leaves, 1);
    batch->signature = results_sign(market->provider, &market->cluster, &root);
    ProtobufCBinaryData encoded = writer_data(batch->bytes[0], batch->lengths[0]);
    Bourse__V1__Results body = BOURSE__V1__RESULTS__INIT;
    body.signature = writer_data(batch->signature.bytes, 64);
    body.n_results = 1;
    body.results = &encoded;
    writer_add_message(state, MESSAGE_RESULTS, NULL, SMALL_MARKET_PROVIDER, &body.base);
    if (told->is_missing) {
        struct entry_command *command = &state->group.commands[state->group.command_count - 1];
        command->verdict |= ENTRY_MISSING;
        entry_results_set(&command->missing, 0);
    }

    const bool is_paid = told->status == ATTEMPT_ACCEPTED || told->status == ATTEMPT_FAILED_PAID;
    const int64_t charge_micro =
        is_paid ? (int64_t)((int128)told->price_micro * STORY_BUSY_NS / NS_PER_HOUR) : 0;
    const int64_t fee_micro = charge_micro * FEE_PPM / 1000000;
    struct ledger_record *record = writer_add_record(state, LEDGER_RESULT);
    record->job = told->job->id;
    record->attempt = told->attempt;
    record->lease = told->lease;
    record->provider = *identity_key(market->provider);
    record->owner = *identity_key(told->job->owner);
    record->device = market->other_device;
    record->hash = sha256_of(batch->bytes[0], batch->lengths[0]);
    record->outcome = told->outcome;
    record->status = told->status;
    record->price_micro = told->price_micro;
    record->paid_ns = is_paid ? STORY_BUSY_NS : 0;
    record->charge_micro = charge_micro;
    record->result = batch->bytes[0];
    record->result_length = (uint32_t)batch->lengths[0];
    record->batch_index = record->log_index;
    pay(state, told, LEDGER_CAPTURE, SMALL_MARKET_PROVIDER, charge_micro - fee_micro);
    pay(state, told, LEDGER_FEE, ACCOUNT_FEES, fee_micro);
    writer_commit(state);
}
