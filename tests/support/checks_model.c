#include "tests/support/checks_model.h"

#include "base/array.h"
#include "protocol/message.h"

#include <stdlib.h>
#include <string.h>

static void *grown(void *items, size_t count, size_t *capacity, size_t size)
{
    items = array_with_room(items, count, capacity, size);
    if (items == NULL) {
        abort();
    }
    return items;
}

void checks_model_fini(struct checks_model *model)
{
    free(model->jobs);
    free(model->held);
    free(model->judges);
    free(model->lease_jobs);
    *model = (struct checks_model){0};
}

static struct checks_model_job *job_of(const struct checks_model *model, const struct id128 *id)
{
    for (size_t i = model->job_count; i-- > 0;) {
        if (id128_equal(&model->jobs[i].id, id)) {
            return &model->jobs[i];
        }
    }
    return NULL;
}

static struct checks_model_held *held_of(const struct checks_model *model, const struct id128 *job,
                                         uint32_t index)
{
    for (size_t i = 0; i < model->held_count; i++) {
        if (model->held[i].index == index && id128_equal(&model->held[i].job, job)) {
            return &model->held[i];
        }
    }
    return NULL;
}

static bool is_judge(const struct checks_model *model, const struct checks_model_judge *asked,
                     bool of_any_subtask)
{
    for (size_t i = 0; i < model->judge_count; i++) {
        const struct checks_model_judge *judge = &model->judges[i];
        if (judge->account == asked->account && id128_equal(&judge->job, &asked->job) &&
            judge->is_overruled == asked->is_overruled &&
            (of_any_subtask || judge->index == asked->index)) {
            return true;
        }
    }
    return false;
}

static void add_judge(struct checks_model *model, const struct checks_model_judge *judge)
{
    if (!is_judge(model, judge, false)) {
        model->judges =
            grown(model->judges, model->judge_count, &model->judge_capacity, sizeof *model->judges);
        model->judges[model->judge_count++] = *judge;
    }
}

bool checks_model_judged(const struct checks_model *model, const struct id128 *job,
                         uint32_t account)
{
    const struct checks_model_judge asked = {.job = *job, .account = account};
    return is_judge(model, &asked, true);
}

bool checks_model_bars(const struct checks_model *model, const struct id128 *job, uint32_t index,
                       uint32_t account)
{
    const struct checks_model_judge asked = {.job = *job, .index = index, .account = account};
    return is_judge(model, &asked, false);
}

bool checks_model_was_judged(const struct checks_model *model, const struct id128 *job,
                             uint32_t index)
{
    for (size_t i = 0; i < model->judge_count; i++) {
        const struct checks_model_judge *judge = &model->judges[i];
        if (judge->index == index && !judge->is_overruled && id128_equal(&judge->job, job)) {
            return true;
        }
    }
    return false;
}

bool checks_model_may_judge(const struct checks_model *model, const struct id128 *job,
                            uint32_t account)
{
    const struct checks_model_judge asked = {.job = *job, .account = account, .is_overruled = true};
    for (size_t i = 0; i < model->held_count && !is_judge(model, &asked, true); i++) {
        const struct checks_model_held *held = &model->held[i];
        if (id128_equal(&held->job, job) && held->provider != account && held->accuser != account) {
            return true;
        }
    }
    return false;
}

static const char *on_job(struct checks_model *model, const struct exchange_command *command)
{
    const bool has_checks = command->submit.verify == EXCHANGE_VERIFY_CHEAP;
    model->jobs = grown(model->jobs, model->job_count, &model->job_capacity, sizeof *model->jobs);
    model->jobs[model->job_count++] =
        (struct checks_model_job){.id = command->id,
                                  .manifest = command->submit.manifest,
                                  .first = has_checks ? command->submit.subtasks / 2 : 0};
    return NULL;
}

static const char *on_fill(struct checks_model *model, const struct ledger_record *record)
{
    while (model->lease_count <= record->lease) {
        model->lease_jobs = grown(model->lease_jobs, model->lease_count, &model->lease_capacity,
                                  sizeof *model->lease_jobs);
        model->lease_jobs[model->lease_count++] = 0;
    }
    const struct checks_model_job *job = job_of(model, &record->job);
    if (job == NULL) {
        return "a fill of no job";
    }
    model->lease_jobs[record->lease] = (uint32_t)(job - model->jobs);
    return NULL;
}

static const char *on_held(struct checks_model *model, const struct exchange_command *command,
                           const struct ledger_record *record)
{
    const struct checks_model_job *job = job_of(model, &record->job);
    if (job == NULL || record->index >= job->first) {
        return "a result is held that is not to be checked";
    }
    if (command->type != EXCHANGE_RESULTS || record->batch_index != command->index ||
        record->credit != command->account) {
        return "what is held is not of this command";
    }
    if (held_of(model, &record->job, record->index) != NULL) {
        return "two results of one subtask are held";
    }
    if (checks_model_bars(model, &record->job, record->index, record->credit)) {
        return "who judged a subtask makes it";
    }
    model->held = grown(model->held, model->held_count, &model->held_capacity, sizeof *model->held);
    model->held[model->held_count++] = (struct checks_model_held){
        .job = record->job,
        .index = record->index,
        .attempt = record->attempt,
        .position = record->position,
        .provider = record->credit,
        .lease = record->lease,
        .batch_index = record->batch_index,
        .hash = record->hash,
        .dice = command->results.dice,
    };
    return NULL;
}

/* A Result that names another manifest, or another device than its lease's, counts as refused. */
static bool is_honest(const struct checks_model_job *job, const struct ledger_record *record,
                      const struct exchange_result *result)
{
    return hash32_equal(&result->manifest, &job->manifest) &&
           id128_equal(&result->device, &record->device);
}

/* A referee that was in time judges what a subtask left, or does not find bytes that the broker
 * lacks. Such a judgement counts when the result stands, and its maker is another account. */
static void note_verdict(struct checks_model *model, const struct exchange_command *command,
                         const struct ledger_record *record)
{
    const struct exchange_result *result = &command->results.results[record->position];
    const struct checks_model_job *job = job_of(model, &record->job);
    struct checks_model_held *held = held_of(model, &record->job, record->index - job->first);
    const bool is_verdict = record->status == ATTEMPT_FAILED_PAID && result->outcome == OUTCOME_OK;
    const bool is_missing = record->status == ATTEMPT_FAILED_UNPAID &&
                            record->outcome == OUTCOME_INPUT_MISSING && result->is_missing &&
                            is_honest(job, record, result);
    if (held == NULL || held->provider == record->credit || held->accuser == record->credit ||
        (!is_verdict && !is_missing)) {
        return;
    }
    const struct checks_model_judge judge = {
        .job = record->job, .index = held->index, .account = record->credit};
    if (is_verdict && result->verdict == VERDICT_REJECT && held->accuser == 0) {
        held->accuser = record->credit;
    }
    add_judge(model, &judge);
}

static const char *on_check(struct checks_model *model, const struct exchange_command *command,
                            const struct ledger_record *record)
{
    model->check = record->hash;
    model->check_job = record->job;
    model->check_index = record->index;
    model->check_by = record->credit;
    model->check_outcome = record->outcome;
    model->check_command = command->index;
    note_verdict(model, command, record);
    return record->level != CHECK_NONE ? "a check is checked" : NULL;
}

static const char *on_verdict(struct checks_model *model, const struct exchange_command *command,
                              const struct checks_model_job *job,
                              const struct checks_model_held *held,
                              const struct ledger_record *record)
{
    if (!hash32_equal(&record->check, &model->check) || model->check_command != command->index ||
        !id128_equal(&model->check_job, &record->job) ||
        model->check_index != job->first + record->index) {
        return "the check that decided is not the one before";
    }
    if (model->check_by == held->provider) {
        return "a provider has judged its own result";
    }
    if (record->status == ATTEMPT_REFUTED && model->check_outcome != OUTCOME_OK) {
        return "a result is refuted by a check that found no bytes";
    }
    if (record->status == ATTEMPT_REFUTED &&
        (held->accuser == 0 || held->accuser == model->check_by)) {
        return "one referee alone refutes a result";
    }
    model->accepted += record->status == ATTEMPT_ACCEPTED;
    model->refuted += record->status == ATTEMPT_REFUTED;
    model->unsure += record->status == ATTEMPT_FAILED_PAID;
    return NULL;
}

static const char *on_word(struct checks_model *model, const struct exchange_command *command,
                           const struct checks_model_held *held, const struct ledger_record *record)
{
    model->by_client++;
    if (command->type != EXCHANGE_JUDGE || command->account != record->debit) {
        return "a result is judged by who is not its client";
    }
    const uint8_t verdict = command->judge.verdict;
    const uint8_t expected = verdict == VERDICT_ACCEPT ? ATTEMPT_ACCEPTED
                             : verdict == VERDICT_REJECT && held->accuser != 0
                                 ? ATTEMPT_REFUTED
                                 : ATTEMPT_FAILED_PAID;
    model->refuted += record->status == ATTEMPT_REFUTED;
    return record->status == expected ? NULL : "a client's word leads to something else";
}

static const char *on_settled_held(struct checks_model *model,
                                   const struct exchange_command *command,
                                   struct checks_model_job *job, struct checks_model_held *held,
                                   const struct ledger_record *record)
{
    const char *wrong = NULL;
    if (!hash32_equal(&held->hash, &record->hash) || held->lease != record->lease ||
        held->batch_index != record->batch_index || held->position != record->position) {
        return "what is settled is not what was held";
    }
    if (record->status == ATTEMPT_REFUTED && (record->charge_micro != 0 || record->paid_ns != 0)) {
        return "a refuted result is paid";
    }
    if (record->level == CHECK_CHEAP) {
        wrong = on_verdict(model, command, job, held, record);
    } else if (record->level == CHECK_CLIENT) {
        wrong = on_word(model, command, held, record);
    } else if (record->status == ATTEMPT_REFUTED) {
        wrong = "a result is refuted without a check";
    }
    job->is_shortcut =
        job->is_shortcut || (record->level == CHECK_NONE && record->status == ATTEMPT_ACCEPTED);
    if (held->accuser != 0 && record->status == ATTEMPT_ACCEPTED && record->level != CHECK_NONE) {
        add_judge(model, &(struct checks_model_judge){
                             .job = record->job, .account = held->accuser, .is_overruled = true});
    }
    *held = model->held[--model->held_count];
    return wrong;
}

static const char *on_result(struct checks_model *model, const struct exchange_command *command,
                             const struct ledger_record *record)
{
    struct checks_model_job *job = job_of(model, &record->job);
    if (job != NULL && record->index < job->first) {
        struct checks_model_held *held = held_of(model, &record->job, record->index);
        if (held != NULL && held->attempt == record->attempt) {
            return on_settled_held(model, command, job, held, record);
        }
        job->is_shortcut = job->is_shortcut || record->status == ATTEMPT_ACCEPTED;
    }
    if (record->batch_index != command->index || record->level != CHECK_NONE ||
        record->status == ATTEMPT_REFUTED) {
        return "what was never held is settled as if it were";
    }
    bool is_check = job != NULL && job->first > 0 && record->index >= job->first;
    return is_check ? on_check(model, command, record) : NULL;
}

static const char *on_settled(const struct checks_model *model, const struct ledger_record *record)
{
    const struct checks_model_job *job = job_of(model, &record->job);
    for (size_t i = 0; i < model->held_count; i++) {
        if (id128_equal(&model->held[i].job, &record->job)) {
            return "a job ends while a result of it is held";
        }
    }
    bool is_wrong = job != NULL && job->is_shortcut && record->status == JOB_DONE;
    return is_wrong ? "a job is done with a result that was not checked" : NULL;
}

static const char *on_dispatch(const struct checks_model *model,
                               const struct exchange_effect *effect)
{
    const struct exchange_work *work = &effect->work;
    if (work->lease >= model->lease_count) {
        return "a dispatch on no lease";
    }
    const struct checks_model_job *job = &model->jobs[model->lease_jobs[work->lease]];
    if (job->first == 0 || work->index < job->first) {
        if (checks_model_bars(model, &job->id, work->index, effect->account)) {
            return "who judged a subtask is sent it";
        }
        return hash32_is_zero(&work->seed) ? NULL : "a seed for what is no check";
    }
    const struct checks_model_held *held = held_of(model, &job->id, work->index - job->first);
    if (held == NULL) {
        return "a check of nothing";
    }
    if (held->provider == effect->account) {
        return "a check for who made what it is about";
    }
    const struct hash32 seed =
        exchange_check_seed(&held->dice, &held->hash, work->index, work->attempt);
    return hash32_equal(&seed, &work->seed) ? NULL : "a check with another seed than the one drawn";
}

const char *checks_model_read(struct checks_model *model, const struct exchange_command *command,
                              const struct exchange_effect *effect)
{
    if (effect->type == EFFECT_DISPATCH) {
        return on_dispatch(model, effect);
    }
    if (effect->type != EFFECT_LEDGER) {
        return NULL;
    }
    const struct ledger_record *record = &effect->ledger;
    switch ((int)record->kind) {
    case LEDGER_JOB:
        return on_job(model, command);
    case LEDGER_FILL:
        return on_fill(model, record);
    case LEDGER_HELD:
        return on_held(model, command, record);
    case LEDGER_RESULT:
        return on_result(model, command, record);
    case LEDGER_SETTLED:
        return on_settled(model, record);
    default:
        return NULL;
    }
}
