/* Attempts (P3): dispatched on a lease that stands, decided once, by their provider, within term
 * and grace; and that a job's end says what happened to it. */
#include "tests/sim/oracle_models.h"

#include "protocol/message.h"

#include <inttypes.h>

#define GRACE_NS (5 * SIM_S)         /* after a lease's term results still count */
#define REFUTED_MORE_NS (50 * SIM_S) /* that who was refuted is avoided, beyond what others are */

struct map_key oracle_attempt_key(uint64_t lease, uint32_t index, uint32_t number)
{
    return map_key_of(&lease, sizeof lease, (uint64_t)index << 32 | number);
}

/* Returns the least time that the exchange may have counted for the claim. The lane was busy with
 * the attempt since the last result of the lease at least, and no longer than the term. */
static int64_t least_of(const struct seen_lease *lease, const struct exchange_result *result)
{
    const struct seen_attempt *attempt =
        oracle_find_attempt(result->lease, result->index, result->attempt);
    int64_t until_ns =
        oracle.log_time_ns < lease->term_end_ns ? oracle.log_time_ns : lease->term_end_ns;
    int64_t from_ns = attempt == NULL ? until_ns : attempt->dispatched_ns;
    from_ns = from_ns > lease->result_ns ? from_ns : lease->result_ns;
    const int64_t least_ns =
        result->busy_ns < until_ns - from_ns ? result->busy_ns : until_ns - from_ns;
    return least_ns > 0 ? least_ns : 1;
}

/* More results count here than the exchange believes, so the least time is at most its own. */
void oracle_note_claims(const struct exchange_command *command)
{
    for (size_t i = 0; command->type == EXCHANGE_RESULTS && i < command->results.count; i++) {
        const struct exchange_result *result = &command->results.results[i];
        struct seen_lease *lease = oracle_lease_of(result->lease);
        if (lease == NULL) {
            continue;
        }
        if (result->outcome == OUTCOME_OK) {
            const int64_t least_ns = least_of(lease, result);
            lease->quickest_ns = lease->quickest_ns == 0 || least_ns < lease->quickest_ns
                                     ? least_ns
                                     : lease->quickest_ns;
            oracle.bids.items[lease->bid].is_timed = true;
        }
        lease->result_ns = oracle.log_time_ns;
    }
}

/* The subtasks of a job without a graph are alike. */
static void check_can_be_in_time(const struct seen_lease *lease)
{
    const struct seen_bid *bid = &oracle.bids.items[lease->bid];
    const struct seen_job *job = &oracle.jobs.items[bid->job];
    if (job->deadline_ns != 0 && job->graph == NULL && !bid->is_checks &&
        lease->quickest_ns > job->deadline_ns - oracle.log_time_ns) {
        sim_fail("command %" PRIu64 " starts on lease %" PRIu64 " what takes %" PRId64
                 " ms there at least, and %" PRId64 " ms are left",
                 oracle.command, lease->id, lease->quickest_ns / SIM_MS,
                 (job->deadline_ns - oracle.log_time_ns) / SIM_MS);
    }
}

void oracle_on_dispatch(const struct exchange_effect *effect)
{
    const struct exchange_work *work = &effect->work;
    struct map_key key = oracle_attempt_key(work->lease, work->index, work->attempt);
    const struct seen_lease *lease = oracle_lease_of(work->lease);
    if (lease == NULL || lease->has_ended || lease->provider != effect->account) {
        sim_fail("command %" PRIu64 " dispatches on lease %" PRIu64 ", which does not stand",
                 oracle.command, work->lease);
    }
    if (map_get(&oracle.attempts.map, &key, NULL)) {
        return; /* said again, to an agent that forgot */
    }
    const struct seen_job *job = &oracle.jobs.items[oracle.bids.items[lease->bid].job];
    if (job->deadline_ns != 0 && oracle.log_time_ns >= job->deadline_ns) {
        sim_fail("command %" PRIu64 " starts work of a job past its deadline", oracle.command);
    }
    check_can_be_in_time(lease);
    oracle_check_start(lease, work);
    uint32_t place = PUT(oracle.attempts);
    oracle.attempts.items[place] =
        (struct seen_attempt){.lease = (uint32_t)(lease - oracle.leases.items),
                              .index = work->index,
                              .number = work->attempt,
                              .lane = work->lane,
                              .dispatched_ns = oracle.log_time_ns};
    map_put(&oracle.attempts.map, &key, place);
}

struct seen_attempt *oracle_find_attempt(uint64_t lease, uint32_t index, uint32_t number)
{
    struct map_key key = oracle_attempt_key(lease, index, number);
    uint32_t place;
    return map_get(&oracle.attempts.map, &key, &place) ? &oracle.attempts.items[place] : NULL;
}

struct seen_attempt *oracle_attempt_of(const struct ledger_record *record)
{
    struct seen_attempt *attempt =
        oracle_find_attempt(record->lease, record->index, record->attempt);
    if (attempt == NULL) {
        sim_fail("command %" PRIu64 ": a result of an attempt that was never made", oracle.command);
    }
    if (attempt->is_decided) {
        sim_fail("command %" PRIu64 ": attempt %u of subtask %u is decided twice", oracle.command,
                 record->attempt, record->index);
    }
    return attempt;
}

void oracle_check_in_time(const struct seen_lease *lease)
{
    if (lease->has_ended || oracle.log_time_ns > lease->term_end_ns + GRACE_NS + lease->outage_ns) {
        sim_fail("command %" PRIu64 ": work of a lease that is over is taken", oracle.command);
    }
}

void oracle_note_trouble(struct seen_lease *lease, int64_t for_ns)
{
    int64_t trouble_ns = oracle.log_time_ns + for_ns;
    lease->trouble_ns = trouble_ns > lease->trouble_ns ? trouble_ns : lease->trouble_ns;
}

static void on_accepted(const struct seen_attempt *attempt, const struct ledger_record *record)
{
    struct map_key subtask = map_key_of(&record->job, sizeof record->job, record->index);
    if (map_get(&oracle.accepted_subtasks, &subtask, NULL)) {
        sim_fail("command %" PRIu64 ": subtask %u is accepted twice", oracle.command,
                 record->index);
    }
    map_put(&oracle.accepted_subtasks, &subtask, 0);
    struct seen_job *job = oracle_job_of(&record->job);
    job->accepted++;
    if (!attempt->is_held) {
        oracle_keep_left(job, record);
    }
    if (job->graph != NULL) {
        job->graph->subtasks[record->index].is_accepted = true;
    }
}

void oracle_on_result(const struct exchange_command *command, const struct ledger_record *record)
{
    struct seen_attempt *attempt = oracle_attempt_of(record);
    struct seen_lease *lease = &oracle.leases.items[attempt->lease];
    oracle.counts.results++;
    oracle_check_stored(record);
    attempt->is_decided = true;
    if (!attempt->is_held &&
        (command->type != EXCHANGE_RESULTS || command->account != lease->provider)) {
        sim_fail("command %" PRIu64 ": a result from somebody else", oracle.command);
    }
    if (attempt->is_held) {
        oracle_check_verdict(record);
    }
    if (record->status == ATTEMPT_LATE || record->status == ATTEMPT_FAILED_UNPAID ||
        record->status == ATTEMPT_REFUTED) {
        oracle.counts.late += record->status == ATTEMPT_LATE;
        oracle_note_trouble(lease, record->status == ATTEMPT_REFUTED ? REFUTED_MORE_NS : 0);
        if (record->charge_micro != 0 || record->paid_ns != 0) {
            sim_fail("command %" PRIu64 ": paid for what is not to be paid", oracle.command);
        }
        return;
    }
    if (!attempt->is_held) {
        oracle_check_in_time(lease);
    } else if (record->status ==
               ATTEMPT_FAILED_PAID) { /* nobody could judge it: another is to do it */
        oracle_note_trouble(lease, 0);
    }
    oracle_check_charge(lease, record);
    oracle.counts.paid++;
    if (record->status == ATTEMPT_ACCEPTED) {
        on_accepted(attempt, record);
    }
}

void oracle_on_settled(const struct ledger_record *record)
{
    struct seen_job *job = oracle_job_of(&record->job);
    oracle.counts.settled++;
    if (job->is_settled) {
        sim_fail("command %" PRIu64 ": a job ends twice", oracle.command);
    }
    job->is_settled = true;
    if (record->charge_micro != job->charged || record->accepted != job->accepted ||
        record->accepted + record->failed + record->cancelled != job->subtasks) {
        sim_fail("command %" PRIu64 ": the settlement does not say what happened", oracle.command);
    }
}

bool oracle_some_attempt(struct id128 *ret_job, uint64_t *ret_lease, uint32_t *ret_index,
                         uint32_t *ret_attempt)
{
    if (oracle.attempts.count == 0) {
        return false;
    }
    uint32_t recent = oracle.attempts.count < 200 ? oracle.attempts.count : 200;
    const struct seen_attempt *attempt =
        &oracle.attempts.items[oracle.attempts.count - 1 - draw(DICE_WORK, recent)];
    const struct seen_lease *lease = &oracle.leases.items[attempt->lease];
    *ret_job = oracle.jobs.items[oracle.bids.items[lease->bid].job].id;
    *ret_lease = lease->id;
    *ret_index = attempt->index;
    *ret_attempt = attempt->number;
    return true;
}
