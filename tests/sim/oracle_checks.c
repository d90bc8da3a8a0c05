/* Results that a referee judges: what is held, who may look at it, that no result that is wrong is
 * accepted after a check, and that none is refuted because its bytes are lost. Which results are
 * wrong the agents of this world say by a byte of their outputs, which referees see and brokers do
 * not understand. */
#include "tests/sim/oracle_models.h"

#include "protocol/codec.h"
#include "protocol/message.h"

#include <inttypes.h>

static bool is_wrong(const struct ledger_record *record)
{
    Bourse__V1__Result *result = NULL;
    if (codec_decode_result(record->result, record->result_length, &result, NULL) != CODEC_OK) {
        sim_fail("command %" PRIu64 " settles a result that cannot be read", oracle.command);
    }
    bool wrong = result->n_outputs == 1 && result->outputs[0]->hash.data[3] != 0;
    codec_result_free(&result);
    return wrong;
}

void oracle_check_stored(const struct ledger_record *record)
{
    Bourse__V1__Result *result = NULL;
    if (codec_decode_result(record->result, record->result_length, &result, NULL) != CODEC_OK) {
        sim_fail("command %" PRIu64 " settles a result that cannot be read", oracle.command);
    }
    const bool is_unsent = !result->has_verdict && result->outcome == OUTCOME_OK &&
                           result->n_outputs == 1 && result->outputs[0]->hash.data[4] != 0;
    codec_result_free(&result);
    oracle.counts.unsent += is_unsent;
    if (is_unsent && (record->kind == LEDGER_HELD || record->status == ATTEMPT_ACCEPTED ||
                      record->status == ATTEMPT_FAILED_PAID)) {
        sim_fail("command %" PRIu64 ": a result of subtask %u counts, and its output is not stored",
                 oracle.command, record->index);
    }
}

void oracle_on_held(const struct exchange_command *command, const struct ledger_record *record)
{
    struct seen_attempt *attempt = oracle_attempt_of(record);
    const struct seen_lease *lease = &oracle.leases.items[attempt->lease];
    if (attempt->is_held || command->account != lease->provider) {
        sim_fail("command %" PRIu64 ": attempt %u of subtask %u cannot be held", oracle.command,
                 record->attempt, record->index);
    }
    attempt->is_held = true;
    oracle_check_stored(record);
    oracle_check_in_time(lease);
    oracle_keep_left(oracle_job_of(&record->job), record);
    oracle_subtask_of(record)->is_held = true;
}

void oracle_check_verdict(const struct ledger_record *record)
{
    struct seen_subtask *subtask = oracle_subtask_of(record);
    bool is_accepted = record->status == ATTEMPT_ACCEPTED;
    subtask->is_held = false;
    if (record->level == CHECK_NONE) {
        return; /* its job did not wait for the check, or had none made */
    }
    oracle.counts.checked++;
    oracle.counts.refuted += record->status == ATTEMPT_REFUTED;
    oracle.counts.words += record->level == CHECK_CLIENT;
    if (record->status == ATTEMPT_REFUTED && !is_wrong(record)) {
        sim_fail("command %" PRIu64 ": a right result of subtask %u is refuted", oracle.command,
                 record->index);
    }
    if (is_accepted && is_wrong(record)) {
        sim_fail("command %" PRIu64 ": a wrong result of subtask %u is found right", oracle.command,
                 record->index);
    }
}

bool oracle_is_referee(uint32_t account)
{
    struct exchange_account_row row;
    return exchange_account(oracle.exchange, account, &row) && (row.roles & ROLE_REFEREE) != 0;
}

static bool has_made(uint32_t job, uint32_t provider, bool made)
{
    const struct id128 *id = &oracle.jobs.items[job].id;
    for (size_t i = 0; i < oracle.checks.held_count; i++) {
        const struct checks_model_held *held = &oracle.checks.held[i];
        if (id128_equal(&held->job, id) && (held->provider == provider) == made) {
            return true;
        }
    }
    return false;
}

bool oracle_made_all(const struct seen_bid *bid, uint32_t provider)
{
    const struct id128 *job = &oracle.jobs.items[bid->job].id;
    return bid->is_checks &&
           (has_made(bid->job, provider, true) || has_made(bid->job, provider, false)) &&
           !checks_model_may_judge(&oracle.checks, job, provider);
}

/* One whose check came to nothing comes after others, as long as there are any. */
static bool had_trouble(const struct seen_bid *bid, uint32_t provider)
{
    for (uint32_t i = 0; i < oracle.leases.count; i++) {
        const struct seen_lease *lease = &oracle.leases.items[i];
        if (&oracle.bids.items[lease->bid] == bid && lease->provider == provider) {
            return true;
        }
    }
    return false;
}

bool oracle_may_not_check(const struct seen_bid *bid, uint32_t provider)
{
    const struct id128 *job = &oracle.jobs.items[bid->job].id;
    return bid->is_checks ? has_made(bid->job, provider, true) || had_trouble(bid, provider) ||
                                !checks_model_may_judge(&oracle.checks, job, provider)
                          : checks_model_judged(&oracle.checks, job, provider);
}
