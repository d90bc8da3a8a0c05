#include "consumer/client/rows.h"

#include "base/cleanup.h"
#include "base/limit.h"
#include "base/text.h"
#include "consumer/client/client.h"
#include "consumer/client/names.h"
#include "formats/requirement.h"
#include "ledger/record.h"
#include "protocol/reject.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void copy(char *ret_text, size_t capacity, const char *text)
{
    (void)snprintf(ret_text, capacity, "%s", text != NULL ? text : ""); /* cut, never overrun */
}

static void changes(const Bourse__V1__Explanation *wire, struct bourse_explanation *explanation)
{
    struct requirement needs;
    for (size_t i = 0; i < wire->n_changes && i < BOURSE_CHANGES_MAX; i++) {
        const Bourse__V1__ExplainChange *from = wire->changes[i];
        struct bourse_change *to = &explanation->changes[explanation->change_count++];
        copy(to->text, sizeof to->text, from->text);
        copy(to->field, sizeof to->field, from->field);
        to->has_figures = from->has_to;
        to->from = from->has_from ? from->from : LIMIT_NONE;
        to->to = from->to;
    }
    explanation->changed_price_micro = wire->changed_price_micro;
    explanation->changed_slots = wire->has_changed_slots ? wire->changed_slots : 0;
    explanation->changed_wanted = wire->has_changed_wanted ? wire->changed_wanted : 0;
    if (wire->changed_needs != NULL && (!codec_requirement_from_wire(wire->changed_needs, &needs) ||
                                        !requirement_text(&needs, explanation->changed_needs,
                                                          sizeof explanation->changed_needs))) {
        explanation->changed_needs[0] = '\0';
    }
}

void rows_explanation(const Bourse__V1__Explanation *wire,
                      struct bourse_explanation *ret_explanation)
{
    *ret_explanation = (struct bourse_explanation){
        .devices = wire->devices,
        .fitting = wire->fitting,
        .asking = wire->asking,
        .affordable = wire->affordable,
        .free = wire->free,
        .has_fills_at = wire->has_fills_at_micro,
        .fills_at_micro = wire->fills_at_micro,
        .rate = names_rate(wire->rate),
        .ahead = wire->has_ahead ? (int64_t)wire->ahead : -1,
        .ahead_partial = wire->has_ahead_partial && wire->ahead_partial,
        .takes_at_micro = wire->has_takes_at_micro ? wire->takes_at_micro : -1,
        .starts_at_micro = wire->has_starts_at_micro ? wire->starts_at_micro : -1,
        .starts_with_lease = wire->has_starts_with_lease && wire->starts_with_lease,
        .own_devices = wire->own_devices};
    if (wire->has_refusal) {
        copy(ret_explanation->refusal, sizeof ret_explanation->refusal,
             reject_name((enum reject_code)wire->refusal));
    }
    changes(wire, ret_explanation);
    copy(ret_explanation->text, sizeof ret_explanation->text, wire->text);
    for (size_t i = 0; i < wire->n_predicates && i < BOURSE_PREDICATES_MAX; i++) {
        const Bourse__V1__ExplainPredicate *from = wire->predicates[i];
        struct bourse_predicate *to =
            &ret_explanation->predicates[ret_explanation->predicate_count++];
        copy(to->text, sizeof to->text, from->text);
        to->failing = from->failing;
        to->has_best = from->has_best;
        to->best = from->best;
    }
}

void rows_quote(const Bourse__V1__QuoteReply *wire, struct bourse_quote *ret_quote)
{
    *ret_quote = (struct bourse_quote){
        .slots_now = wire->slots_now,
        .slots_taken = wire->slots_taken,
        .taken_low_micro = wire->taken_low_micro,
        .taken_high_micro = wire->taken_high_micro,
        .price_low_micro = wire->price_low_micro,
        .price_high_micro = wire->price_high_micro,
        .expected_micro = wire->expected_micro,
        .minimum_micro = wire->minimum_micro,
        .suggested_micro = wire->suggested_micro,
        .makespan_ns = wire->makespan_ns,
        .has_explanation = wire->explanation != NULL,
        .elsewhere_micro = wire->elsewhere_micro,
        .elsewhere_slots = wire->elsewhere_slots,
        .index = wire->index,
        .band_least_micro = wire->has_least_micro ? wire->least_micro : 0,
        .band_most_micro = wire->has_most_micro ? wire->most_micro : INT64_MAX,
        .rests_at_micro = -1,
        .second_micro = wire->has_second_micro ? wire->second_micro : -1,
        .suggested_cap_micro = wire->has_cap_micro ? wire->cap_micro : -1,
        .suggested_cap_trades = wire->cap_trades,
        .suggested_cap_since_ms = wire->cap_since_ms};
    if (wire->has_first_account) {
        text_hex(wire->first_account.data, wire->first_account.len, ret_quote->first_account);
    }
    for (size_t i = 0; i < wire->n_levels && i < BOURSE_LEVELS_MAX; i++) {
        const Bourse__V1__QuoteLevel *from = wire->levels[i];
        struct bourse_level *to = &ret_quote->levels[ret_quote->level_count++];
        *to = (struct bourse_level){.price_micro = from->price_micro,
                                    .slots = from->slots,
                                    .providers = from->providers,
                                    .worth_micro = from->has_limit_micro ? from->limit_micro : -1};
        copy(to->instrument, sizeof to->instrument,
             from->instrument != NULL ? from->instrument : "");
    }
    if (wire->explanation != NULL) {
        rows_explanation(wire->explanation, &ret_quote->explanation);
    }
}

/* A halt ends no job, and a job that only waits for the end of a halt runs nothing. A freeze of the
 * account cancels its jobs, and they stay open while their programs are told. */
static const char *reason_of(const Bourse__V1__JobRow *wire)
{
    const bool is_closed = wire->state != JOB_OPEN || wire->running > 0;
    return wire->reason == JOB_REASON_HALTED && is_closed ? names_job_frozen()
                                                          : names_job_reason(wire->reason);
}

void rows_job(const Bourse__V1__JobRow *wire, struct bourse_job_row *ret_row)
{
    const uint32_t queued = wire->queued < wire->running ? wire->queued : wire->running;
    *ret_row = (struct bourse_job_row){.state = (enum bourse_job_state)wire->state,
                                       .state_text = names_job_state(wire->state),
                                       .reason = (int)wire->reason,
                                       .is_expired = wire->reason == JOB_REASON_EXPIRED,
                                       .is_late = wire->reason == JOB_REASON_DEADLINE,
                                       .deadline_ms = wire->has_deadline_ms ? wire->deadline_ms : 0,
                                       .is_unfilled = wire->reason == JOB_REASON_NOT_FILLED ||
                                                      wire->reason == JOB_REASON_LEASES_OVER,
                                       .reason_text = reason_of(wire),
                                       .subtasks = wire->subtasks,
                                       .waiting = wire->waiting,
                                       .running = wire->running,
                                       .queued = queued,
                                       .accepted = wire->accepted,
                                       .failed = wire->failed,
                                       .cancelled = wire->cancelled,
                                       .checking = wire->checking,
                                       .accused = wire->has_accused ? wire->accused : 0,
                                       .saved = wire->has_saved ? wire->saved : 0,
                                       .left_ms = wire->has_left_ms ? wire->left_ms : -1,
                                       .timed = wire->timed,
                                       .foreseen_ms = wire->foreseen_ms,
                                       .took_ms = wire->took_ms,
                                       .budget_micro = wire->budget_micro,
                                       .charged_micro = wire->charged_micro,
                                       .reserved_micro = wire->reserved_micro,
                                       .submitted_ms = wire->submitted_ms,
                                       .ended_ms = wire->has_ended_ms ? wire->ended_ms : 0,
                                       .index = wire->index};
    text_hex(wire->job.data, 16, ret_row->id);
    text_hex(wire->manifest.data, 32, ret_row->manifest);
    copy(ret_row->name, sizeof ret_row->name, wire->name);
}

void rows_lease(const Bourse__V1__LeaseRow *wire, struct bourse_lease *ret_lease)
{
    *ret_lease =
        (struct bourse_lease){.lease = wire->lease,
                              .slots = wire->slots,
                              .price_micro = wire->price_micro,
                              .accepted = wire->accepted,
                              .paid_ns = wire->paid_ns,
                              .charged_micro = wire->charged_micro,
                              .simulated = wire->has_simulated && wire->simulated,
                              .interruptible = wire->has_interruptible && wire->interruptible,
                              .taken = wire->has_taken && wire->taken,
                              .silent_ms = wire->has_silent_ms ? wire->silent_ms : -1,
                              .frozen = wire->has_frozen && wire->frozen};
    copy(ret_lease->frozen_why, sizeof ret_lease->frozen_why, wire->frozen_why);
    copy(ret_lease->provider, sizeof ret_lease->provider, wire->provider);
    copy(ret_lease->device, sizeof ret_lease->device, wire->device);
    copy(ret_lease->state, sizeof ret_lease->state, wire->state);
}

static struct bourse_output output_from_wire(const Bourse__V1__Output *wire)
{
    struct bourse_output output = {.size = wire->size};
    copy(output.name, sizeof output.name, wire->name);
    text_hex(wire->hash.data, 32, output.hash);
    return output;
}

static void result_free(Bourse__V1__Result **self)
{
    ProtobufCMessage *message = *self != NULL ? &(*self)->base : NULL;
    codec_free(&message);
    *self = NULL;
}

int rows_isolation(const Bourse__V1__Result *result)
{
    return result->has_isolation && result->isolation < BOURSE_ISOLATION_LEVELS
               ? (int)result->isolation
               : -1;
}

static void fill_from_result(const Bourse__V1__Result *result, struct bourse_outcome *outcome)
{
    outcome->outcome = (int)result->outcome;
    outcome->outcome_text = names_outcome(result->outcome);
    outcome->has_exit_code = result->has_exit_code;
    outcome->exit_code = result->has_exit_code ? result->exit_code : 0;
    outcome->signal = result->has_signal ? result->signal : 0;
    outcome->simulated = result->has_simulated && result->simulated;
    outcome->started_ms = result->started_ms;
    outcome->busy_ns = result->busy_ns;
    copy(outcome->detail, sizeof outcome->detail, result->detail);
    text_hex(result->provider.data, 32, outcome->provider);
    outcome->lease = result->lease;
    text_hex(result->device.data, 16, outcome->device);
    outcome->verdict_text = result->has_verdict ? names_verdict(result->verdict) : NULL;
    outcome->has_energy = result->has_energy_uj || result->has_energy_mj;
    outcome->energy_uj = result->has_energy_uj                  ? result->energy_uj
                         : result->energy_mj < INT64_MAX / 1000 ? result->energy_mj * 1000
                                                                : INT64_MAX;
    outcome->peak_memory_bytes = result->has_peak_memory_bytes ? result->peak_memory_bytes : 0;
    outcome->peak_power_mw = result->has_peak_power_mw ? result->peak_power_mw : 0;
    outcome->energy_source = result->has_energy_source ? (int)result->energy_source : 0;
    outcome->energy_source_text = names_energy((unsigned)outcome->energy_source);
    outcome->isolation = rows_isolation(result);
    outcome->held_bytes = result->has_held_bytes ? result->held_bytes : 0;
    outcome->copied_bytes = result->has_copied_bytes ? result->copied_bytes : 0;
    if (result->standard_output != NULL) {
        outcome->has_standard_output = true;
        outcome->standard_output = output_from_wire(result->standard_output);
    }
    if (result->standard_error != NULL) {
        outcome->has_standard_error = true;
        outcome->standard_error = output_from_wire(result->standard_error);
    }
    outcome->restored = result->has_restored ? result->restored : 0;
    for (size_t i = 0; result->saved != NULL && i < result->saved->n_files; i++) {
        outcome->saved_files++;
        outcome->saved_bytes += result->saved->files[i]->size;
    }
    static_assert(BOURSE_OUTPUTS_MAX <= 64, "a bit for each output");
    for (size_t i = 0; i < result->n_outputs && i < BOURSE_OUTPUTS_MAX; i++) {
        const Bourse__V1__Output *output = result->outputs[i];
        outcome->executable |= output->has_executable && output->executable ? UINT64_C(1) << i : 0;
        outcome->outputs[outcome->output_count++] = output_from_wire(output);
    }
}

bool rows_outcome(const Bourse__V1__OutcomeRow *wire, const struct id128 *job,
                  struct bourse_outcome *ret_outcome)
{
    CLEANUP(result_free) Bourse__V1__Result *result = NULL;
    if (codec_decode_result(wire->result.data, wire->result.len, &result, NULL) != CODEC_OK) {
        return false;
    }
    struct id128 of = codec_id(result->job);
    if (!id128_equal(&of, job) || result->index != wire->index ||
        result->attempt != wire->attempt) {
        return false;
    }
    *ret_outcome = (struct bourse_outcome){.index = wire->index,
                                           .attempt = wire->attempt,
                                           .status = (int)wire->status,
                                           .status_text = names_attempt(wire->status),
                                           .paid_ns = wire->paid_ns,
                                           .charge_micro = wire->charge_micro,
                                           .log_index = wire->log_index,
                                           .checked = wire->has_level && wire->level != CHECK_NONE};
    fill_from_result(result, ret_outcome);
    return true;
}

void rows_outcome_free(struct bourse_outcome **self)
{
    free(*self);
    *self = NULL;
}

void rows_standing(const Bourse__V1__Standing *wire, struct bourse_standing *ret_standing)
{
    *ret_standing = (struct bourse_standing){.refuted = 0};
    if (wire != NULL) {
        ret_standing->refuted = wire->has_refuted ? wire->refuted : 0;
        ret_standing->refuted_ever = wire->has_refuted_ever ? wire->refuted_ever : 0;
        ret_standing->overruled = wire->has_overruled ? wire->overruled : 0;
        ret_standing->withdrawn_ms = wire->has_withdrawn_ms ? wire->withdrawn_ms : 0;
        client_copy(ret_standing->owner, sizeof ret_standing->owner, wire->owner);
    }
}

void rows_challenge(const Bourse__V1__ChallengeFact *wire, struct bourse_challenge *ret_challenge)
{
    static const char *const outcomes[] = {"none", "ok", "slow", "wrong", "unanswered"};
    *ret_challenge = (struct bourse_challenge){.outcome = outcomes[0]};
    if (wire != NULL && wire->outcome < sizeof outcomes / sizeof outcomes[0]) {
        ret_challenge->outcome = outcomes[wire->outcome];
        ret_challenge->at_ms = wire->at_ms;
        ret_challenge->claimed_mflops = wire->claimed_mflops;
        ret_challenge->shown_mflops = wire->has_shown_mflops ? wire->shown_mflops : 0;
        ret_challenge->limit_mflops = wire->has_limit_mflops ? wire->limit_mflops : 0;
        ret_challenge->closed_ms = wire->has_closed_ms ? wire->closed_ms : 0;
    }
}
