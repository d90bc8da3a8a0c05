/* Checks decide whether a result counts. A subtask's result is held: nothing is paid, and no
 * subtask that waits for it starts, before its check comes to a verdict. The check is a subtask of
 * the job's last part, with attempts, retries and pay of its own.
 *
 *     subtask k    WAITING -> RUNNING -> CHECKING ------- accept -> ACCEPTED, its result is paid
 *         ^                     |   reject, by two -> refuted: not paid, redone
 *         +---------------------+   no verdict, or no bytes, twice: paid, and redone
 *     check n + k  WAITING, for k -> WAITING, for a lane -> RUNNING -> ACCEPTED, or WAITING again
 *
 * A referee that rejects a result accuses it. The check then goes to a referee of another owner,
 * and the job's client may judge as well. A second reject refutes the result; an accept lets it
 * stand, and the job asks the first referee no more. Nobody judges results of its own owner, so
 * checks wait in queues by maker and accuser. */
#include "exchange/work/checks.h"

#include "exchange/account/standing.h"
#include "exchange/lifecycle.h"
#include "exchange/state/held.h"
#include "exchange/state/job_records.h"
#include "exchange/state/parts.h"
#include "exchange/state/tracking.h"
#include "exchange/work/attempts.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/graph.h"
#include "exchange/work/held_results.h"
#include "exchange/work/juries.h"
#include "exchange/work/lease_endings.h"
#include "exchange/work/runtime_stats.h"
#include "exchange/work/subtasks.h"

void check_begin(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct held *held = job->checks->held[index];
    struct subtask *subtask = job_subtask(exchange, job, index);
    if (held == NULL || job_subtask(exchange, job, held_first_check(job) + index) == NULL) {
        return; /* memory is short */
    }
    subtask_becomes(exchange, job, index, SUBTASK_CHECKING);
    job_subtask_changed(exchange, job, index);
    part_look_if_over(exchange, part_of(job, index));
    if (subtask->attempts > 1) {
        attempts_withdraw_others(exchange, job, index);
    }
    struct part *checks = &job->parts[job->part_count - 1];
    checks->waiting++;
    check_enqueue(exchange, job, held);
    if (list_empty(&checks->spread)) {
        list_append(&exchange->spreads, &checks->spread);
    }
}

/* The check waits for its subtask again; running attempts of it are about a result that is gone. */
static void block_check(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct part *checks = &job->parts[job->part_count - 1];
    struct subtask *check = job_subtask(exchange, job, index);
    lease_give_up_attempts(exchange, job, index);
    if (check->state == SUBTASK_RUNNING) {
        subtask_becomes(exchange, job, index, SUBTASK_WAITING);
    }
    checks->waiting--; /* the check waits for no lane */
    job_subtask_changed(exchange, job, index);
}

/* A provider with a bad result gets no more work of this job for a while. Its running work may end,
 * and is judged in the same way. */
static void step_aside(struct exchange *exchange, struct job *job, uint32_t provider,
                       int64_t for_ns)
{
    job_avoid(exchange, job, provider, for_ns);
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->provider == provider) {
            lease_wind_down(exchange, lease);
        }
    }
}

void check_redo(struct exchange *exchange, struct job *job, uint32_t index, uint8_t status,
                const struct decision *decision)
{
    const uint32_t provider = job->checks->held[index]->lease->provider;
    struct subtask *subtask = job_subtask(exchange, job, index);
    const struct subtask *checked_by = job_subtask(exchange, job, held_first_check(job) + index);
    held_settle(exchange, job, index, status, decision);
    block_check(exchange, job, held_first_check(job) + index);
    graph_forget_given(exchange, job, index);
    subtask->crashes++;
    if (subtask->crashes > job->crash_limit || subtask->attempts >= ATTEMPTS_MOST ||
        checked_by->attempts >= ATTEMPTS_MOST || jury_is_full(job, index)) {
        job->unjudged += status == XATTEMPT_FAILED_PAID;
        subtask_decide(exchange, job, index, SUBTASK_FAILED);
    } else {
        subtask_requeue(exchange, job, index);
    }
    if (!decision->is_missing) {
        step_aside(exchange, job, provider, status == XATTEMPT_REFUTED ? REFUTED_NS : AVOID_NS);
    }
}

/* This referee gave no verdict; another may. */
static void check_again(struct exchange *exchange, struct job *job, struct held *held,
                        uint32_t referee)
{
    bool is_waiting = held->queue != NULL;
    check_dequeue(held);
    held->shy_of = referee;
    tracking_touch(exchange, &held->tracked);
    if (is_waiting) {
        check_enqueue(exchange, job, held);
    }
    subtask_try_again(exchange, job, held_first_check(job) + held->index);
}

void check_accept(struct exchange *exchange, struct job *job, uint32_t index,
                  const struct decision *decision)
{
    const uint32_t accuser = held_accuser(job->checks->held[index]);
    if (accuser != EXCHANGE_NO_ACCOUNT) {
        jury_overrule(exchange, job, accuser);
    }
    subtask_decide(exchange, job, held_first_check(job) + index, SUBTASK_ACCEPTED);
    held_settle(exchange, job, index, XATTEMPT_ACCEPTED, decision);
    subtask_decide(exchange, job, index, SUBTASK_ACCEPTED);
}

/* The first reject accuses; the second, of another owner, refutes. */
static void accuse(struct exchange *exchange, struct job *job, struct held *held,
                   const struct lease *lease, const struct attempt *attempt,
                   const struct decision *decision)
{
    jury_add(exchange, job, held->index, lease->provider);
    if (held_accuser(held) != EXCHANGE_NO_ACCOUNT) {
        check_redo(exchange, job, held->index, XATTEMPT_REFUTED, decision);
        return;
    }
    const bool is_waiting = held->queue != NULL;
    check_dequeue(held);
    const struct accusation accusation = {
        .referee = lease->provider, .attempt = attempt->key.attempt, .check = decision->check};
    held_accuse(exchange, held, &accusation);
    if (is_waiting) {
        check_enqueue(exchange, job, held);
    }
    subtask_try_again(exchange, job, held_first_check(job) + held->index);
}

/* Nobody is accused: the referee is unsure, or the bytes are missing. They were stored when the
 * result came, so the store lost them. */
static void doubt(struct exchange *exchange, struct job *job, struct held *held,
                  const struct lease *lease, const struct decision *decision)
{
    jury_add(exchange, job, held->index, lease->provider);
    if (++held->unsure < CHECKS_UNSURE) {
        check_again(exchange, job, held, lease->provider);
    } else {
        check_redo(exchange, job, held->index, XATTEMPT_FAILED_PAID, decision);
    }
}

bool check_decide(struct exchange *exchange, struct lease *lease, const struct attempt *attempt,
                  uint8_t outcome, const struct exchange_result *result)
{
    struct job *job = lease->job;
    struct held *held = held_of_check(job, attempt->key.index);
    if (held == NULL || (outcome != XOUTCOME_OK && outcome != XOUTCOME_INPUT_MISSING)) {
        return false;
    }
    if (outcome == XOUTCOME_INPUT_MISSING && (result->lacks_factor || !result->is_missing)) {
        return false; /* The product is not blamed; the check is tried again like any subtask. */
    }
    const struct decision decision = held_decision(result, outcome);
    /* The check began before its owner was a party. */
    if (!check_counts(exchange, lease, attempt->key.index)) {
        check_again(exchange, job, held, held->shy_of);
        return true;
    }
    if (decision.is_missing) {
        doubt(exchange, job, held, lease, &decision);
        return true;
    }
    lease->failures_in_row = 0;
    if (result->verdict == XVERDICT_ACCEPT) {
        runtime_stats_accept(lease);
        check_accept(exchange, job, held->index, &decision);
    } else if (result->verdict == XVERDICT_REJECT) {
        accuse(exchange, job, held, lease, attempt, &decision);
    } else {
        doubt(exchange, job, held, lease, &decision);
    }
    return true;
}

void checks_give_up(struct exchange *exchange, struct job *job)
{
    for (uint32_t i = 0; job->checks != NULL && i < held_first_check(job); i++) {
        if (job->checks->held[i] != NULL) {
            held_settle(exchange, job, i, XATTEMPT_ACCEPTED, NULL);
            subtask_decide(exchange, job, i, SUBTASK_ACCEPTED);
        }
    }
}

uint8_t check_status_by_client(const struct exchange *exchange, const struct job *job,
                               const struct held *held, uint8_t verdict)
{
    const uint32_t accuser = held_accuser(held);
    const bool is_second =
        accuser != EXCHANGE_NO_ACCOUNT && !standing_have_one_owner(exchange, accuser, job->owner);
    return verdict == XVERDICT_ACCEPT                ? XATTEMPT_ACCEPTED
           : verdict == XVERDICT_REJECT && is_second ? XATTEMPT_REFUTED
                                                     : XATTEMPT_FAILED_PAID;
}
