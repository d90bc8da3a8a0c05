/* This file carries out the commands that submit and cancel jobs. */
#include "base/checked.h"
#include "exchange/command/apply.h"
#include "exchange/command/submit_limits.h"
#include "exchange/lifecycle.h"
#include "exchange/market/bids.h"
#include "exchange/state/effects.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/names.h"
#include "exchange/state/timers.h"
#include "exchange/state/tracking.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/choice/ready_order.h"
#include "exchange/work/graph.h"
#include "exchange/work/job_memory.h"
#include "exchange/work/jobs.h"
#include "exchange/work/retention.h"

#include <assert.h>

static bool submit_allowed(struct exchange *exchange, const struct exchange_submit *submit)
{
    const struct member *member = lookup_sender(exchange);
    if ((member->roles & XROLE_CONSUMER) == 0) {
        effect_reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return false;
    }
    if (exchange->is_halted) {
        effect_reject(exchange, XREJECT_HALTED, "market", 0, 0);
        return false;
    }
    if (!submit_in_range(exchange, submit)) {
        return false;
    }
    if (member->open_jobs >= exchange->limits.jobs_per_account) {
        effect_reject(exchange, XREJECT_LIMIT, "jobs_per_account", member->open_jobs,
                      exchange->limits.jobs_per_account);
        return false;
    }
    const uint64_t most = exchange->limits.subtasks_per_account;
    if (most != 0 && member->open_subtasks + submit->subtasks > most) {
        effect_reject(exchange, XREJECT_LIMIT, "subtasks_per_account",
                      (int64_t)(member->open_subtasks + submit->subtasks), (int64_t)most);
        return false;
    }
    if (exchange->subtask_count + submit->subtasks > exchange->limits.subtasks) {
        effect_reject(exchange, XREJECT_LIMIT, "subtasks", (int64_t)exchange->subtask_count,
                      (int64_t)exchange->limits.subtasks);
        return false;
    }
    if (table_find(&exchange->jobs, &exchange->command->id) != NULL) {
        effect_reject(exchange, XREJECT_EXISTS, "id", 0, 0);
        return false;
    }
    int64_t available = accounts_balance(exchange->accounts, member->number).available_micro;
    if (available < submit->budget_micro) {
        effect_reject(exchange, XREJECT_FUNDS, "budget_micro", submit->budget_micro, available);
        return false;
    }
    if (exchange->job_count >= exchange->limits.jobs && retention_oldest(exchange) == NULL) {
        effect_reject(exchange, XREJECT_LIMIT, "jobs", exchange->job_count, exchange->limits.jobs);
        return false;
    }
    return true;
}

static struct job *job_create(struct exchange *exchange, const struct exchange_submit *submit)
{
    struct job *job = memory_allocate(exchange, sizeof *job);
    if (job == NULL) {
        return NULL;
    }
    list_init(&job->leases);
    list_init(&job->report);
    list_init(&job->of_owner);
    job->id = exchange->command->id;
    job->owner = exchange->command->account;
    name_copy(job->name, submit->name);
    job->manifest = submit->manifest;
    job->subtasks = submit->subtasks;
    job->retries = submit->retries;
    job->error_limit = submit->error_limit;
    job->crash_limit = submit->crash_limit;
    job->waiting = submit->subtasks;
    job->submitted_ns = exchange->now_ns;
    job->good_till_ns = submit->good_till_ns;
    job->deadline_ns = submit->deadline_ns;
    job->is_expectation_stated = submit->deadline_ns != 0 && submit->is_expectation_stated;
    job->interruptions_left = submit->has_interruptions ? submit->interruptions : UINT32_MAX;
    job->has_checkpoints = submit->has_checkpoints;
    job->type = (uint8_t)submit->type;
    if (!job_has_pages(exchange, job) || !bids_create_parts(exchange, job, submit)) {
        job_free(job);
        return NULL;
    }
    job->is_checked = submit->verify == EXCHANGE_VERIFY_CHEAP;
    job->graph = submit->graph == NULL ? NULL : graph_create(exchange, job, submit->graph);
    if (exchange->is_out_of_memory || !ready_order_create(exchange, job) ||
        (job->is_checked && !check_queue_create(exchange, job))) {
        job_free(job);
        return NULL;
    }
    return job;
}

/* Emits the ledger's records of a new job: the job, its hold and its bids. */
static void emit_records(struct exchange *exchange, const struct job *job)
{
    const struct key32 owner = lookup_member(exchange, job->owner)->key;
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_JOB);
    record->job = job->id;
    record->owner = owner;
    record->hash = job->manifest;
    record->subtasks = job->subtasks;
    record->amount_micro = job->hold.amount_micro;
    record->price_micro = job->parts[0].cap_micro;
    record->width = job->parts[0].width;
    record->debit = record->credit = job->owner;
    name_copy(record->name, job->name);

    record = effect_emit_ledger(exchange, LEDGER_HOLD);
    record->job = job->id;
    record->debit = record->credit = job->owner;
    record->amount_micro = job->hold.amount_micro;

    for (uint32_t i = 0; i < job->part_count; i++) {
        bid_record(exchange, &job->parts[i]);
    }
}

void apply_submit(struct exchange *exchange, const struct exchange_submit *submit)
{
    if (!submit_allowed(exchange, submit)) {
        return;
    }
    struct job *job = job_create(exchange, submit);
    if (job == NULL) {
        return;
    }
    if (!bids_place(exchange, job, submit)) {
        job_free(job);
        return;
    }
    retention_make_room(exchange);
    struct member *member = lookup_sender(exchange);
    enum accounts_status held =
        hold_open(exchange->accounts, job->owner, submit->budget_micro, &job->hold);
    assert(held == ACCOUNTS_OK); /* funds were checked before */
    if (held != ACCOUNTS_OK || !table_insert(&exchange->jobs, job)) {
        exchange->is_out_of_memory = true;
    }
    job->order = exchange->next_order++;
    list_append(&exchange->job_list, &job->all);
    job_link_owner(exchange, job);
    exchange->job_count++;
    exchange->subtask_count += job->subtasks;
    member->open_subtasks += job->subtasks;
    member->open_jobs++;
    tracking_touch(exchange, &member->tracked);
    tracking_add(exchange, &job->tracked, RECORD_JOB);
    if (job->graph != NULL) {
        tracking_add(exchange, &job->graph->tracked, RECORD_GRAPH);
        graph_start(job);
    }
    if (job->good_till_ns != 0) {
        timer_arm(exchange, TIMER_JOB, &job->id, job->good_till_ns);
    }
    if (job->deadline_ns != 0) {
        timer_arm(exchange, TIMER_JOB, &job->id, job->deadline_ns);
    }
    exchange->wholes += job_waits_for_all(job);
    emit_records(exchange, job);
    bids_arrive(exchange, job);
    effect_report_job(exchange, job);
}

void apply_cancel_job(struct exchange *exchange, const struct exchange_cancel_job *cancel)
{
    struct job *job = table_find(&exchange->jobs, &cancel->job);
    if (job == NULL || job->owner != exchange->command->account) {
        effect_reject(exchange, XREJECT_NOT_FOUND, "job", 0, 0);
        return;
    }
    if (job->phase != JOB_PHASE_OPEN) {
        effect_reject(exchange, XREJECT_STATE, "job", job->phase, JOB_PHASE_OPEN);
        return;
    }
    job_close(exchange, job, JOB_PHASE_CANCELLED, XREASON_CANCELLED);
}
