/* A result is matched to its attempt and paid, and its subtask is decided or tried again. */
#include "base/checked.h"
#include "exchange/command/apply.h"
#include "exchange/lifecycle.h"
#include "exchange/state/effects.h"
#include "exchange/state/held.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lease_lanes.h"
#include "exchange/state/lookup.h"
#include "exchange/state/parts.h"
#include "exchange/state/residency.h"
#include "exchange/state/tracking.h"
#include "exchange/work/attempts.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/check_seeds.h"
#include "exchange/work/checks.h"
#include "exchange/work/choice/lateness.h"
#include "exchange/work/graph.h"
#include "exchange/work/held_results.h"
#include "exchange/work/jobs.h"
#include "exchange/work/lease_endings.h"
#include "exchange/work/lease_records.h"
#include "exchange/work/payment.h"
#include "exchange/work/runtime_stats.h"
#include "exchange/work/subtask_makers.h"
#include "exchange/work/subtasks.h"
#include "exchange/work/work_checkpoint.h"

#include <assert.h>

/* FAULT_STORE means that the broker lacks the subtask's inputs, or has other bytes. Neither
 * provider nor program is to blame, and nothing was computed. */
enum fault { FAULT_NONE, FAULT_PROGRAM, FAULT_PROVIDER, FAULT_STORE, FAULT_NOBODY };

static bool says_missing(uint8_t outcome)
{
    return outcome == XOUTCOME_INPUT_MISSING || outcome == XOUTCOME_IMAGE_MISSING;
}

/* The provider says that an input is missing, and the broker has found all inputs whole. The
 * provider lies, or its own disk or network has failed. */
static bool is_disproved(uint8_t outcome, const struct exchange_result *result)
{
    return says_missing(outcome) && !result->is_missing;
}

static enum fault fault_of(uint8_t outcome, const struct exchange_result *result)
{
    if (says_missing(outcome)) {
        return is_disproved(outcome, result) ? FAULT_PROVIDER : FAULT_STORE;
    }
    switch (outcome) {
    case XOUTCOME_OK:
        return FAULT_NONE;
    case XOUTCOME_PROGRAM_MISSING:
    case XOUTCOME_REFUSED:
    case XOUTCOME_JAIL_FAILED:
        return FAULT_PROVIDER;
    case XOUTCOME_CANCELLED:
    case XOUTCOME_TERM_OVER:
    case XOUTCOME_PREEMPTED:
        return FAULT_NOBODY;
    default: /* exit codes, signals and limits; the codec lets no other number in */
        return FAULT_PROGRAM;
    }
}

static void settle_attempt(struct exchange *exchange, struct lease *lease,
                           const struct attempt *attempt, const struct exchange_result *result,
                           uint8_t status, uint32_t position)
{
    const bool is_paid = status == XATTEMPT_ACCEPTED || status == XATTEMPT_FAILED_PAID;
    const struct settlement settlement = {
        .index = attempt->key.index,
        .attempt = attempt->key.attempt,
        .outcome = result->outcome,
        .status = status,
        .hash = result->hash,
        .bytes = result->bytes,
        .length = result->length,
        .batch_index = exchange->index,
        .position = position,
        .paid_ns = is_paid ? payment_time(exchange, lease, attempt, result->busy_ns) : 0,
        .level = CHECK_NONE,
    };
    payment_settle(exchange, lease, &settlement);
}

/* A subtask counts as decided when it has ended, when a closing job gave it up, and while its
 * result is held. */
static bool is_decided(const struct job *job, const struct subtask *subtask)
{
    return subtask->state >= SUBTASK_CHECKING ||
           (job->is_closing && subtask->state == SUBTASK_WAITING);
}

/* The agent cancels unasked, ends the term early, or claims a preemption that did not happen. It
 * does so by its own choice, so failing on purpose is not paid (D8). */
static bool gives_up(const struct exchange *exchange, const struct lease *lease,
                     const struct attempt *attempt, uint8_t outcome)
{
    return !attempt->is_withdrawn &&
           (outcome == XOUTCOME_CANCELLED ||
            (outcome == XOUTCOME_PREEMPTED && !lease->is_noticed) ||
            (outcome == XOUTCOME_TERM_OVER && exchange->now_ns < lease->term_end_ns));
}

/* A job with checkpoints pays for saved state; an attempt without a new checkpoint lost its
 * time. */
static bool is_lost(const struct job *job, const struct attempt *attempt, uint8_t outcome,
                    const struct exchange_result *result)
{
    return outcome == XOUTCOME_PREEMPTED && job->has_checkpoints &&
           !work_checkpoint_is_new(job, attempt->key.index, result);
}

/* The attempt began before its provider judged the subtask, and no longer counts. */
static bool is_barred(const struct exchange *exchange, const struct attempt *attempt)
{
    const struct lease *lease = attempt->lease;
    return held_for_check(lease->job, attempt->key.index) &&
           !subtask_may_run_on(exchange, lease->job, attempt->key.index, lease->provider);
}

static uint8_t status_of(const struct exchange *exchange, const struct job *job,
                         const struct subtask *subtask, const struct attempt *attempt,
                         uint8_t outcome, const struct exchange_result *result, bool is_given_up)
{
    enum fault fault = is_given_up ? FAULT_PROVIDER : fault_of(outcome, result);
    if (attempt->is_fenced) {
        return XATTEMPT_LATE;
    }
    if (is_decided(job, subtask) && outcome != XOUTCOME_CANCELLED) {
        return XATTEMPT_LATE;
    }
    if (is_barred(exchange, attempt) && outcome != XOUTCOME_CANCELLED) {
        return XATTEMPT_LATE;
    }
    if (part_is_checks(attempt->lease->part) && fault == FAULT_NONE) {
        /* A check without an accept is paid, and has to be made again. */
        return result->verdict == XVERDICT_ACCEPT &&
                       check_counts(exchange, attempt->lease, attempt->key.index)
                   ? XATTEMPT_ACCEPTED
                   : XATTEMPT_FAILED_PAID;
    }
    return fault == FAULT_NONE ? XATTEMPT_ACCEPTED
           : fault == FAULT_PROVIDER || fault == FAULT_STORE ||
                   is_lost(job, attempt, outcome, result)
               ? XATTEMPT_FAILED_UNPAID
               : XATTEMPT_FAILED_PAID;
}

/* Returns true when an accepted result is held; a job that gave up its checks holds none. */
static bool is_held(const struct job *job, uint32_t index)
{
    return held_for_check(job, index) && !job->is_closing;
}

static void decide(struct exchange *exchange, struct lease *lease, const struct attempt *attempt,
                   uint8_t outcome, const struct exchange_result *result)
{
    struct job *job = lease->job;
    const uint32_t index = attempt->key.index;
    struct subtask *subtask = job_subtask(exchange, job, index);
    if (is_decided(job, subtask) || check_decide(exchange, lease, attempt, outcome, result)) {
        return;
    }
    if (is_barred(exchange, attempt)) {
        subtask_try_again(exchange, job, index);
        return;
    }
    switch (fault_of(outcome, result)) {
    case FAULT_NONE:
        lease->failures_in_row = 0;
        if (graph_hands_on(job, index)) {
            const uint64_t bytes = residency_size(exchange, result->output_bytes);
            graph_keep(exchange, job, index, result->given, result->given_length, bytes);
            residency_note(exchange, lease, attempt->lane, index, bytes);
        }
        if (is_held(job, index)) {
            check_begin(exchange, job, index);
        } else {
            runtime_stats_accept(lease);
            subtask_decide(exchange, job, index, SUBTASK_ACCEPTED);
        }
        break;
    case FAULT_PROGRAM:
        lease->failures_in_row = 0;
        if (work_checkpoint_misled(exchange, attempt)) {
            subtask_try_again(exchange, job, index);
            break;
        }
        subtask->failures++;
        if (subtask->failures > job->retries) {
            subtask_decide(exchange, job, index, SUBTASK_FAILED);
        } else {
            subtask_try_again(exchange, job, index);
        }
        break;
    case FAULT_STORE:
        if (outcome == XOUTCOME_INPUT_MISSING && work_checkpoint_missing(exchange, attempt)) {
            subtask_try_again(exchange, job, index);
            break;
        }
        subtask->crashes++;
        if (subtask->crashes > job->crash_limit) {
            subtask->failures = (uint8_t)(job->retries + 1); /* no provider's fault */
            subtask_decide(exchange, job, index, SUBTASK_FAILED);
        } else {
            subtask_try_again(exchange, job, index);
        }
        break;
    case FAULT_PROVIDER:
        lease->failures_in_row++;
        subtask->crashes++;
        if (subtask->crashes > job->crash_limit) {
            subtask_decide(exchange, job, index, SUBTASK_FAILED);
        } else {
            subtask_try_again(exchange, job, index);
        }
        break;
    case FAULT_NOBODY:
        work_checkpoint_keep(exchange, attempt, result);
        subtask_try_again(exchange, job, index);
        break;
    }
}

static int64_t moved(int64_t mean_ns, int64_t sample_ns)
{
    return mean_ns == 0 ? sample_ns : mean_ns + (sample_ns - mean_ns) / 8;
}

/* A claim counts up to the time in its lane. Otherwise a lie would keep a job off all devices like
 * the liar's. */
static void keep_quickest(const struct exchange *exchange, struct lease *lease, int64_t took_ns)
{
    if (lateness_in_force(exchange) && lease->job->deadline_ns != 0 && took_ns > 0 &&
        (lease->quickest_ns == 0 || took_ns < lease->quickest_ns)) {
        lease->quickest_ns = took_ns;
    }
}

/* The means cover results that ran to their end; cancelled or early ones do not tell how long
 * others take. `lane_ns` is the time in its lane, with the wait for inputs. */
static void update_means(const struct exchange *exchange, struct lease *lease, uint32_t index,
                         int64_t busy_ns, int64_t lane_ns)
{
    /* The time is a claim; no subtask takes longer than any lease. */
    int64_t sample = busy_ns > 0 ? busy_ns : 1;
    sample = sample < LEASE_AGE_MOST_NS ? sample : LEASE_AGE_MOST_NS;
    runtime_stats_take(lease);
    lease->mean_ns = moved(lease->mean_ns, sample);
    keep_quickest(exchange, lease, sample < lane_ns ? sample : lane_ns);
    const int64_t said_ns = graph_said_ns(lease->job, index);
    if (said_ns > 0) {
        lease->said_ns = moved(lease->said_ns, said_ns);
        lease->took_ns = moved(lease->took_ns, sample > lane_ns ? sample : lane_ns);
    }
    runtime_stats_put(lease);
}

/* An agent that says that a lease is over, or that refuses its work, would repeat that for more
 * work. An agent that did not store its outputs, or did not get inputs that the broker has, makes
 * way for others, too. */
static void leave(struct exchange *exchange, struct lease *lease, uint8_t outcome, bool is_shunned)
{
    bool stands = lease->state == LEASE_ACTIVE || lease->state == LEASE_SUSPECT;
    if (!stands || (!is_shunned && outcome != XOUTCOME_TERM_OVER)) {
        return;
    }
    if (is_shunned) {
        job_avoid(exchange, lease->job, lease->provider, AVOID_NS);
    }
    lease_wind_down(exchange, lease);
}

/* Returns true when an output of the result is not stored. Checks leave no outputs. */
static bool lacks_outputs(const struct lease *lease, const struct exchange_result *result)
{
    return result->is_missing && !part_is_checks(lease->part) &&
           (result->outcome == XOUTCOME_OK ||
            (result->outcome == XOUTCOME_PREEMPTED && lease->job->has_checkpoints));
}

/* Drops a checkpoint that is not stored. */
static struct exchange_result without_saved(const struct exchange_result *result)
{
    struct exchange_result bare = *result;
    bare.saved = NULL;
    bare.saved_length = 0;
    return bare;
}

/* A result without an attempt is a resend of a decided one, and is dropped without a trace. Returns
 * true when the result does not count because an output is not stored. */
static bool apply_result(struct exchange *exchange, const struct exchange_result *sent,
                         uint32_t position)
{
    struct lease *lease = lookup_lease(exchange, sent->lease);
    if (lease == NULL || lease->provider != exchange->command->account ||
        !id128_equal(&lease->job->id, &sent->job)) {
        return false;
    }
    struct attempt *attempt = attempt_find(exchange, lease, sent->index, sent->attempt);
    if (attempt == NULL) {
        return false;
    }
    const bool lacks = lacks_outputs(lease, sent);
    const struct exchange_result bare = without_saved(sent);
    const struct exchange_result *result = lacks ? &bare : sent;
    struct job *job = lease->job;
    /* A job that has ended keeps no subtasks; later results are late. */
    bool is_open = job->phase == JOB_PHASE_OPEN;
    struct subtask *subtask = is_open ? job_subtask(exchange, job, attempt->key.index) : NULL;
    bool honest = hash32_equal(&result->manifest, &job->manifest) &&
                  id128_equal(&result->device, &lease->device_id) &&
                  result->is_simulated == lease->is_simulated;
    /* A wrong manifest or device, or a wrong word about simulation, counts as a refusal. */
    uint8_t outcome = honest ? result->outcome : XOUTCOME_REFUSED;
    if (lacks && outcome == XOUTCOME_OK) {
        outcome = XOUTCOME_REFUSED;
    }
    if (outcome == XOUTCOME_OK && is_open && graph_hands_on(job, attempt->key.index) &&
        result->given_length > GIVEN_BYTES_MOST) {
        outcome = XOUTCOME_OUTPUT_LIMIT; /* the outputs are more than can be handed on */
    }
    if (outcome == XOUTCOME_OK && is_open && part_is_checks(lease->part)) {
        outcome = check_outcome(job, attempt, result);
    }
    bool is_given_up = gives_up(exchange, lease, attempt, outcome);
    const int64_t seen_ns = lease->lanes[attempt->lane].seen_ns;
    uint8_t status = is_open
                         ? status_of(exchange, job, subtask, attempt, outcome, result, is_given_up)
                         : XATTEMPT_LATE;
    if (status == XATTEMPT_ACCEPTED && is_held(job, attempt->key.index)) {
        held_keep(exchange, lease, attempt, result, position);
    } else {
        settle_attempt(exchange, lease, attempt, result, status, position);
    }

    const struct attempt ended = *attempt;
    attempt_drop(exchange, attempt);
    if (!ended.is_fenced) {
        assert(subtask != NULL); /* a job that ended has fenced all that was under way */
        lease_lane_loses(lease, ended.lane);
        lease->live--;
        subtask->live = (uint8_t)(subtask->live - (ended.is_doubted ? 0 : 1));
        job_subtask_changed(exchange, job, ended.key.index);
        decide(exchange, lease, &ended, outcome, result);
        if (outcome == XOUTCOME_OK) {
            update_means(exchange, lease, ended.key.index, result->busy_ns,
                         lease->lanes[ended.lane].seen_ns - seen_ns);
        }
        leave(exchange, lease, outcome, is_given_up || lacks || is_disproved(outcome, result));
    }
    tracking_touch(exchange, &lease->tracked);
    effect_report_job(exchange, job);
    return lacks && !ended.is_fenced;
}

static void after_results(struct exchange *exchange, struct lease *lease)
{
    struct job *job = lease->job;
    lease_end_if_failing(exchange, lease);
    job_check(exchange, job);
    if (lease->state == LEASE_ACTIVE) {
        lease_refill_later(exchange, lease);
    }
}

void apply_results(struct exchange *exchange, const struct exchange_results *results)
{
    if ((lookup_sender(exchange)->roles & XROLE_PROVIDER) == 0) {
        effect_reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    int64_t lacking = 0;
    uint32_t first = 0;
    for (size_t i = 0; i < results->count; i++) {
        if (apply_result(exchange, &results->results[i], (uint32_t)i)) {
            first = lacking == 0 ? results->results[i].index : first;
            lacking++;
        }
    }
    /* This runs once per lease and batch; most batches have one lease. */
    for (size_t i = 0; i < results->count; i++) {
        struct lease *lease = lookup_lease(exchange, results->results[i].lease);
        bool is_first = i == 0 || results->results[i].lease != results->results[i - 1].lease;
        if (is_first && lease != NULL && lease->provider == exchange->command->account) {
            after_results(exchange, lease);
        }
    }
    if (lacking > 0) { /* The other results count; the sender hears why these do not. */
        effect_reject(exchange, XREJECT_OUTPUT_NOT_STORED, "outputs", first, lacking);
    }
}
