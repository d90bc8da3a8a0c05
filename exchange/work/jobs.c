/* Jobs come, give work to their parts, and end; this file counts their subtasks and money. */
#include "exchange/work/jobs.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/market/bids.h"
#include "exchange/state/effects.h"
#include "exchange/state/lookup.h"
#include "exchange/state/timers.h"
#include "exchange/state/tracking.h"
#include "exchange/work/attempts.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/checks.h"
#include "exchange/work/graph.h"
#include "exchange/work/job_memory.h"
#include "exchange/work/juries.h"
#include "exchange/work/lease_endings.h"
#include "exchange/work/lease_records.h"
#include "exchange/work/retention.h"
#include "exchange/work/work_checkpoint.h"

#include <assert.h>

/* Stops buying and cancels waiting subtasks. */
static void stop_buying(struct exchange *exchange, struct job *job, enum job_phase ends_as,
                        uint8_t reason)
{
    job->is_closing = true;
    job->ends_as = (uint8_t)ends_as;
    job->reason = reason;
    bids_take_away(exchange, job);
    checks_give_up(exchange, job);
    job->cancelled += job->waiting;
    job->waiting = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        job->parts[i].waiting = 0;
    }
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->state == LEASE_PROMISED) {
            lease_end(exchange, lease, XEND_RETURNED, false);
        }
    }
    tracking_touch(exchange, &job->tracked);
    effect_report_job(exchange, job);
}

/* A job that has expired only waits for running work, so the function may still close the job. */
void job_close(struct exchange *exchange, struct job *job, enum job_phase ends_as, uint8_t reason)
{
    if (job->phase != JOB_PHASE_OPEN || (job->is_closing && job->reason != XREASON_EXPIRED)) {
        return;
    }
    job->closing_ns = exchange->now_ns + CLOSING_NS;
    stop_buying(exchange, job, ends_as, reason);
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        attempts_withdraw_all(exchange, LIST_ELEMENT(at, struct lease, of_job));
    }
    if (job->running == 0) {
        job_settle(exchange, job);
    } else {
        timer_arm(exchange, TIMER_JOB, &job->id, job->closing_ns);
    }
}

void job_expire(struct exchange *exchange, struct job *job)
{
    assert(job->phase == JOB_PHASE_OPEN && !job->is_closing);
    job->closing_ns = INT64_MAX;
    stop_buying(exchange, job, JOB_PHASE_CANCELLED, XREASON_EXPIRED);
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        lease_refill_later(exchange, LIST_ELEMENT(at, struct lease, of_job));
    }
    if (job->running == 0) {
        job_settle(exchange, job);
    }
}

void job_meet_deadline(struct exchange *exchange, struct job *job)
{
    job_close(exchange, job, JOB_PHASE_CANCELLED, XREASON_DEADLINE);
}

/* Returns true when a subtask failed because its program failed too often. Checks do not count,
 * because the market made them. */
static bool a_program_failed(const struct job *job)
{
    const uint32_t end = job->is_checked ? job->parts[job->part_count - 1].first : job->subtasks;
    for (uint32_t index = 0; index < end; index++) {
        const struct page *page = job->pages[index / PAGE_SUBTASKS];
        const struct subtask *subtask =
            page == NULL ? NULL : &page->subtasks[index % PAGE_SUBTASKS];
        if (subtask != NULL && subtask->state == SUBTASK_FAILED &&
            subtask->failures > job->retries) {
            return true;
        }
    }
    return false;
}

/* Returns `otherwise` when a program failed. Else all tries were used up, by providers or because
 * nobody could judge the results. */
static uint8_t reason_of_failure(const struct job *job, uint8_t otherwise)
{
    if (job->failed == 0 || a_program_failed(job)) {
        return otherwise;
    }
    return jury_lacks_maker(job) ? XREASON_NO_MAKER
           : job->unjudged > 0   ? XREASON_NO_VERDICT
                                 : XREASON_PROVIDERS_FAILED;
}

/* Returns true when good_till or the deadline closed the job and yet cancelled nothing. Every
 * subtask ran to its end then. A checked job takes held results unchecked at its deadline, so a
 * checked job is never done late. */
static bool all_ran_to_the_end(const struct job *job)
{
    const bool is_waited_for =
        job->reason == XREASON_EXPIRED || (job->reason == XREASON_DEADLINE && !job->is_checked);
    return is_waited_for && job->cancelled == 0;
}

void job_settle(struct exchange *exchange, struct job *job)
{
    bids_take_away(exchange, job);
    if (!job->is_closing || all_ran_to_the_end(job)) {
        bool all = job->accepted == job->subtasks;
        job->ends_as = all ? JOB_PHASE_DONE : JOB_PHASE_FAILED;
        job->reason = all ? XREASON_NONE : reason_of_failure(job, XREASON_SUBTASKS_FAILED);
    }
    job->is_closing = true; /* whatever its leases still give back is not queued again */
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->state != LEASE_ENDED) {
            lease_end(exchange, lease,
                      job->ends_as == JOB_PHASE_CANCELLED ? XEND_CANCELLED : XEND_RETURNED, true);
        }
    }
    assert(job->reserved_micro == 0);
    assert(job->running == 0 && job->waiting == 0 && job->checking == 0);
    job->phase = job->ends_as;
    job->ended_ns = exchange->now_ns;
    retention_add(exchange, job);

    struct member *owner = lookup_member(exchange, job->owner);
    int64_t charged = job->hold.captured_micro;
    int64_t released = hold_release(exchange->accounts, &job->hold);
    if (released > 0) {
        struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_RELEASE);
        record->job = job->id;
        record->debit = record->credit = job->owner;
        record->amount_micro = released;
    }
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_SETTLED);
    record->job = job->id;
    record->debit = record->credit = job->owner;
    record->status = job->phase;
    record->accepted = job->accepted;
    record->failed = job->failed;
    record->cancelled = job->cancelled;
    record->charge_micro = charged;
    record->amount_micro = released;

    juries_drop(exchange, job);
    check_queue_destroy(job);
    graph_drop(exchange, job);
    work_checkpoint_drop_all(exchange, job);
    job_drop_pages(exchange, job);
    exchange->subtask_count -= job->subtasks;
    owner->open_subtasks -= job->subtasks;
    owner->open_jobs--;
    tracking_touch(exchange, &owner->tracked);
    tracking_touch(exchange, &job->tracked);
    effect_report_job(exchange, job);
}

void job_check(struct exchange *exchange, struct job *job)
{
    if (job->phase != JOB_PHASE_OPEN) {
        return;
    }
    if (job->waiting == 0 && job->running == 0 && job->checking == 0) {
        job_settle(exchange, job);
        return;
    }
    if (!job->is_closing && job->failed > job->error_limit) {
        job_close(exchange, job, JOB_PHASE_FAILED, reason_of_failure(job, XREASON_ERROR_LIMIT));
        return;
    }
    bids_want(exchange, job);
}
