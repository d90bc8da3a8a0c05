/* The audit checks results, their payments, and settlements. docs/ledger.md section 7 has the
 * rules. */
#include "audit/audit_internal.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "protocol/limits.h"

#include <stdlib.h>
#include <string.h>

enum { LEVEL_CLIENT = 2 };

/* ---- the sent batch */

static struct audit_sent *check_sent(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    if (!audit_expect(audit,
                      command->type == MESSAGE_RESULTS && row->position < command->sent_count,
                      "the result came in a signed batch")) {
        return NULL;
    }
    struct audit_sent *sent = &command->sent[row->position];
    if (!audit_expect(audit, !sent->is_used, "a result is recorded once") ||
        !audit_expect_bytes(audit, "the result's hash is the hash of the bytes sent",
                            sent->hash.bytes, row->hash.bytes, 32)) {
        return NULL;
    }
    sent->is_used = true;
    return sent;
}

static bool check_bytes(struct audit *audit, const struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    ProtobufCBinaryData bytes =
        ((const Bourse__V1__Results *)command->body)->results[row->position];
    return audit_expect(audit,
                        row->length == bytes.len && memcmp(row->bytes, bytes.data, bytes.len) == 0,
                        "the row's bytes are the bytes sent");
}

static bool check_attempt(struct audit *audit, const Bourse__V1__Result *result)
{
    const struct audit_row *row = &audit->rows.row;
    struct id128 cluster = codec_id(result->cluster);
    struct id128 job = codec_id(result->job);
    struct key32 provider = codec_key(result->provider);
    return audit_expect_bytes(audit, "the result was made for this market",
                              audit->genesis.cluster.bytes, cluster.bytes, 16) &&
           audit_expect_bytes(audit, "the row's job is the one in the signed result", job.bytes,
                              row->job.bytes, 16) &&
           audit_expect_i64(audit, "the row's subtask is the one in the signed result",
                            result->index, row->index) &&
           audit_expect_i64(audit, "the row's attempt is the one in the signed result",
                            result->attempt, row->attempt) &&
           audit_expect_i64(audit, "the row's lease is the one in the signed result",
                            (int64_t)result->lease, (int64_t)row->lease) &&
           audit_expect_bytes(audit, "the row's provider is the one in the signed result",
                              provider.bytes, row->provider.bytes, 32);
}

static bool check_signer(struct audit *audit, const struct audit_command *command)
{
    return audit_expect_bytes(audit, "the result's provider signed the batch",
                              audit->accounts[command->account].key.bytes,
                              audit->rows.row.provider.bytes, 32);
}

/* The stored batch, from which receipts are made, must be the sent one. The check runs once per
 * command. */
static bool check_batch(struct audit *audit, struct audit_command *command)
{
    sqlite3_stmt *select;
    if (command->batch_checked) {
        return true;
    }
    command->batch_checked = true;
    if (sqlite3_prepare_v2(audit->database,
                           "SELECT signature, leaves FROM batches WHERE log_index = ?1", -1,
                           &select, NULL) != SQLITE_OK) {
        return audit_unreadable(audit, "table batches: %s", sqlite3_errmsg(audit->database));
    }
    /* A failed bind finds nothing. */
    (void)sqlite3_bind_int64(select, 1, (sqlite3_int64)command->index);
    const Bourse__V1__Results *body = (const Bourse__V1__Results *)command->body;
    size_t length = command->sent_count * sizeof command->sent_leaves[0];
    bool good = sqlite3_step(select) == SQLITE_ROW && sqlite3_column_bytes(select, 0) == 64 &&
                memcmp(sqlite3_column_blob(select, 0), body->signature.data, 64) == 0 &&
                (size_t)sqlite3_column_bytes(select, 1) == length &&
                memcmp(sqlite3_column_blob(select, 1), command->sent_leaves, length) == 0;
    (void)sqlite3_finalize(select); /* read only */
    return good || audit_finding(audit, "batches", command->index,
                                 "the stored batch is not the batch that was sent");
}

/* ---- outcomes and payments */

static bool check_lease(struct audit *audit, const struct audit_lease *lease)
{
    const struct audit_row *row = &audit->rows.row;
    return audit_expect(audit, lease != NULL, "the result's lease exists") &&
           audit_expect_bytes(audit, "the result's job is the lease's", lease->job->id.bytes,
                              row->job.bytes, 16) &&
           audit_expect_bytes(audit, "the result's provider is the lease's", lease->provider.bytes,
                              row->provider.bytes, 32) &&
           audit_expect_bytes(audit, "the result's consumer is the job's owner",
                              lease->job->owner.bytes, row->owner.bytes, 32) &&
           audit_expect(audit, row->index < lease->job->subtasks, "the result's subtask exists") &&
           audit_expect(audit, row->attempt > 0, "attempts count from 1");
}

/* Counts the check of the row's result as accepted. The client computed this check itself, so no
 * Result of the check was accepted. */
static bool accept_check(struct audit *audit, struct audit_job *job)
{
    const uint32_t index = job->checked + audit->rows.row.index;
    uint8_t *byte = &job->accepted_bits[index / 8];
    const uint8_t bit = (uint8_t)(1u << index % 8);
    if (!audit_expect(audit, (*byte & bit) == 0, "a check is accepted once")) {
        return false;
    }
    *byte = (uint8_t)(*byte | bit);
    job->accepted++;
    job->accepted_checks++;
    return true;
}

static bool check_accepted(struct audit *audit, const struct audit_lease *lease,
                           const Bourse__V1__Result *result)
{
    const struct audit_row *row = &audit->rows.row;
    struct audit_job *job = lease->job;
    struct hash32 manifest = codec_hash(result->manifest);
    struct id128 device = codec_id(result->device);
    uint8_t *byte = &job->accepted_bits[row->index / 8];
    uint8_t bit = (uint8_t)(1u << row->index % 8);
    if (!audit_expect(audit, !job->is_settled, "nothing is accepted after the job was settled") ||
        !audit_expect(audit, row->outcome == OUTCOME_OK,
                      "only a result with outcome ok is accepted") ||
        !audit_expect_bytes(audit, "the result ran the job's manifest", job->manifest.bytes,
                            manifest.bytes, 32) ||
        !audit_expect_bytes(audit, "the result ran on the lease's device", lease->device.bytes,
                            device.bytes, 16) ||
        !audit_expect(audit, !lease->is_simulated || (result->has_simulated && result->simulated),
                      "the result says that its device is simulated") ||
        !audit_expect(audit, (*byte & bit) == 0, "a subtask is accepted once")) {
        return false;
    }
    *byte = (uint8_t)(*byte | bit);
    job->accepted++;
    if (row->level == LEVEL_CLIENT && !accept_check(audit, job)) {
        return false;
    }
    if (row->index < job->checked) {
        job->accepted_by_check += row->level != 0;
        job->accepted_unchecked += row->level == 0; /* audit_checks_of() judges the number */
    } else {
        job->accepted_checks += job->checked > 0;
    }
    audit->report->accepted++;
    return true;
}

/* Returns true when the outputs are too large to hand to the subtasks that wait for them. */
static bool has_too_large_outputs(const Bourse__V1__Result *result)
{
    Bourse__V1__Given given = BOURSE__V1__GIVEN__INIT;
    given.index = result->index;
    given.n_outputs = result->n_outputs;
    given.outputs = result->outputs;
    return bourse__v1__given__get_packed_size(&given) > LIMIT_GIVEN_BYTES;
}

/* Hashes the checkpoint of a result. The hash is zeros when the result left no checkpoint that can
 * be kept. */
static bool hash_saved(struct audit *audit, const Bourse__V1__Result *result,
                       struct hash32 *ret_hash)
{
    Bourse__V1__Saved saved = BOURSE__V1__SAVED__INIT;
    *ret_hash = (struct hash32){{0}};
    if (result->saved == NULL || result->saved->n_files == 0) {
        return true;
    }
    saved.n_files = result->saved->n_files;
    saved.files = result->saved->files;
    const size_t length = bourse__v1__saved__get_packed_size(&saved);
    if (length > LIMIT_CHECKPOINT_BYTES) {
        return true;
    }
    uint8_t *bytes = malloc(length);
    if (bytes == NULL) {
        return audit_out_of_memory(audit);
    }
    (void)bourse__v1__saved__pack(&saved, bytes); /* fits: the size was measured */
    *ret_hash = sha256_of(bytes, length);
    free(bytes);
    return true;
}

/* A job that saves its state pays for a preempted attempt only if the attempt left a new
 * checkpoint. */
static bool check_saved(struct audit *audit, const struct audit_lease *lease,
                        const Bourse__V1__Result *result)
{
    const struct audit_row *row = &audit->rows.row;
    const struct hash32 nothing = {{0}};
    if (lease->job->saved == NULL || row->status == ATTEMPT_LATE) {
        return true;
    }
    struct hash32 *last = &lease->job->saved[row->index];
    struct hash32 hash = nothing;
    const bool is_paid = row->status == ATTEMPT_FAILED_PAID && row->outcome == OUTCOME_PREEMPTED;
    if (is_paid && (!hash_saved(audit, result, &hash) ||
                    !audit_expect(audit, !hash32_is_zero(&hash),
                                  "a preempted attempt is paid only if it left a checkpoint") ||
                    !audit_expect(audit, !hash32_equal(&hash, last),
                                  "a preempted attempt is paid only if its checkpoint is new"))) {
        return false;
    }
    *last = hash;
    return true;
}

static bool check_status(struct audit *audit, const struct audit_lease *lease,
                         const struct audit_held *held, const Bourse__V1__Result *result)
{
    const struct audit_row *row = &audit->rows.row;
    /* A check without the verdict accept is paid, and so is a result that no check could decide. */
    bool may_fail = held != NULL || (lease->job->checked > 0 && row->index >= lease->job->checked);
    switch (row->status) {
    case ATTEMPT_ACCEPTED:
        return check_accepted(audit, lease, result);
    case ATTEMPT_FAILED_PAID:
        return audit_expect(
            audit, row->outcome != OUTCOME_OK || has_too_large_outputs(result) || may_fail,
            "a result with outcome ok fails only by a check or by too large outputs");
    case ATTEMPT_FAILED_UNPAID:
    case ATTEMPT_LATE:
    case ATTEMPT_REFUTED:
        return audit_expect(audit, row->paid_ns == 0 && row->charge == 0,
                            "late, refused and refuted work is not paid");
    default:
        return audit_expect(audit, false, "the result's status is known");
    }
}

/* Checks charge = floor(price x paid time of the lease so far / 3.6e12) - earlier charges of the
 * lease. */
static bool check_charge(struct audit *audit, struct audit_lease *lease,
                         const Bourse__V1__Result *result)
{
    const struct audit_row *row = &audit->rows.row;
    int64_t most;
    int64_t total = 0;
    int64_t fee;
    if (!checked_mul(result->busy_ns, lease->width, &most)) {
        most = INT64_MAX;
    }
    if (!audit_expect(audit, row->paid_ns >= 0, "paid time is not negative") ||
        !audit_expect(audit, row->paid_ns == 0 || row->paid_ns <= most,
                      "no more time is paid than was claimed") ||
        !audit_expect(audit, checked_add(lease->paid_ns, row->paid_ns, &lease->paid_ns),
                      "paid time fits 64 bits") ||
        !audit_expect(audit,
                      checked_muldiv_floor(lease->price, lease->paid_ns, NS_PER_HOUR, &total),
                      "the charge fits 64 bits") ||
        !audit_expect_i64(audit,
                          "the charge is floor(price x paid / 3.6e12) on the lease's total, less "
                          "what was charged",
                          total - lease->charged, row->charge)) {
        return false;
    }
    lease->charged = total;
    if (!checked_muldiv_floor(row->charge, audit->genesis.fee_ppm, 1000000, &fee)) {
        return audit_expect(audit, false, "the fee fits 64 bits");
    }
    audit->due = (struct audit_due){.job = lease->job,
                                    .lease = row->lease,
                                    .index = row->index,
                                    .attempt = row->attempt,
                                    .provider_number = lease->provider_number,
                                    .capture = row->charge - fee,
                                    .fee = fee};
    return true;
}

/* A result whose outputs were not stored is not paid. A check has no outputs. */
static bool check_stored(struct audit *audit, const struct audit_sent *sent)
{
    const struct audit_row *row = &audit->rows.row;
    struct hash32 name = audit_number(row->lease);
    const struct audit_lease *lease = audit_map_find(&audit->leases, &name);
    const bool is_check =
        lease != NULL && lease->job->checked > 0 && row->index >= lease->job->checked;
    const bool has_files =
        row->outcome == OUTCOME_OK ||
        (row->outcome == OUTCOME_PREEMPTED && lease != NULL && lease->job->saved != NULL);
    return !sent->is_missing || is_check || !has_files ||
           audit_expect(audit, row->status == ATTEMPT_FAILED_UNPAID || row->status == ATTEMPT_LATE,
                        "a result with an output that was not stored is neither accepted nor paid");
}

bool audit_held_row(struct audit *audit, struct audit_command *command)
{
    struct hash32 name = audit_number(audit->rows.row.lease);
    const struct audit_lease *lease = audit_map_find(&audit->leases, &name);
    const struct audit_sent *sent = check_sent(audit, command);
    return sent != NULL && check_attempt(audit, sent->result) && check_signer(audit, command) &&
           check_batch(audit, command) && check_lease(audit, lease) &&
           audit_expect(audit, sent->result->outcome == OUTCOME_OK,
                        "only a result with outcome ok is held") &&
           audit_expect(audit, !sent->is_missing, "only a result with stored outputs is held") &&
           audit_hold(audit, lease, &command->dice);
}

/* Checks the row's statements about its result, and their consequences. */
static bool check_outcome(struct audit *audit, const struct audit_command *command,
                          struct audit_held *held, const Bourse__V1__Result *result)
{
    const struct audit_row *row = &audit->rows.row;
    struct hash32 name = audit_number(row->lease);
    struct audit_lease *lease = audit_map_find(&audit->leases, &name);
    if (!check_attempt(audit, result) ||
        !audit_expect_i64(audit, "the row's outcome is the one in the signed result",
                          result->outcome, row->outcome) ||
        !check_lease(audit, lease) ||
        !audit_expect_i64(audit, "the result's price is the lease's", lease->price, row->price) ||
        !audit_level(audit, command, lease, held, result) ||
        !check_status(audit, lease, held, result) || !check_saved(audit, lease, result)) {
        return false;
    }
    const bool is_in_time =
        held == NULL && (row->status == ATTEMPT_ACCEPTED || row->status == ATTEMPT_FAILED_PAID);
    if (is_in_time && !audit_lease_worked(audit, lease)) {
        return false;
    }
    audit->report->results++;
    return check_charge(audit, lease, result);
}

/* Checks the RESULT row of a held result. The batch of a held result came with an earlier command,
 * and was checked there. */
static bool check_held(struct audit *audit, const struct audit_command *command,
                       struct audit_held *held)
{
    const struct audit_row *row = &audit->rows.row;
    struct hash32 hash = sha256_of(row->bytes, row->length);
    Bourse__V1__Result *result = NULL;
    if (!audit_expect_bytes(audit, "the result's hash is the held result's", held->hash.bytes,
                            row->hash.bytes, 32) ||
        !audit_expect_bytes(audit, "the result's bytes are the held result's", held->hash.bytes,
                            hash.bytes, 32)) {
        return false;
    }
    if (codec_decode_result(row->bytes, row->length, &result, NULL) != CODEC_OK) {
        return audit_out_of_memory(audit); /* these bytes were decoded before */
    }
    const bool good = check_outcome(audit, command, held, result);
    codec_result_free(&result);
    return good;
}

bool audit_result_row(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    struct audit_held *held = audit_held_of(audit);
    if (held != NULL) {
        return check_held(audit, command, held);
    }
    if (!audit_expect_i64(audit, "a result that was not held came with the row's command",
                          (int64_t)command->index, (int64_t)row->batch_index)) {
        return false;
    }
    const struct audit_sent *sent = check_sent(audit, command);
    return sent != NULL && check_bytes(audit, command) && check_signer(audit, command) &&
           check_batch(audit, command) && check_stored(audit, sent) &&
           check_outcome(audit, command, NULL, sent->result);
}

bool audit_settlement_row(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    struct hash32 name = audit_id(&row->job);
    struct audit_job *job = audit_map_find(&audit->jobs, &name);
    (void)command; /* any command may end a job: a result, a cancel, a tick */
    if (!audit_expect(audit, job != NULL && !job->is_settled, "a job is settled once") ||
        !audit_expect(audit, job->has_hold && (!job->hold_is_open || job->captured == job->budget),
                      "the job's hold has ended") ||
        !audit_expect_i64(audit, "the job's charge is the sum of its payments", job->captured,
                          row->charged) ||
        !audit_expect_i64(audit, "the job's returned money is the money released", job->released,
                          row->released) ||
        !audit_expect(audit, row->charged <= job->budget, "the job cost no more than its budget") ||
        !audit_expect_i64(audit, "the job's accepted subtasks are those of its results",
                          job->accepted, row->accepted) ||
        !audit_expect_i64(audit,
                          "the job's accepted, failed and cancelled subtasks are all its subtasks",
                          job->subtasks, (int64_t)row->accepted + row->failed + row->cancelled) ||
        !audit_checks_of(audit, job)) {
        return false;
    }
    job->is_settled = true;
    job->hold_is_open = false;
    return true;
}

/* Table outcomes names the attempt of each subtask that its receipt proves: the accepted attempt,
 * or else the last failed one. */
bool audit_outcomes(struct audit *audit)
{
    static const char query[] =
        "WITH decided AS (SELECT job, idx, max(CASE WHEN status = 0 THEN entry END) AS accepted,"
        "  max(CASE WHEN status IN (1, 2, 4) THEN entry END) AS failed FROM results"
        " WHERE status <> 3 GROUP BY job, idx)"
        " SELECT coalesce(r.accepted, r.failed), o.entry FROM decided r LEFT JOIN outcomes o"
        "  ON o.job = r.job AND o.idx = r.idx WHERE o.entry IS NOT coalesce(r.accepted, r.failed)"
        " UNION ALL SELECT 0, o.entry FROM outcomes o LEFT JOIN results r ON r.entry = o.entry"
        "  WHERE r.job IS NOT o.job OR r.idx IS NOT o.idx LIMIT 1";
    sqlite3_stmt *select;
    if (sqlite3_prepare_v2(audit->database, query, -1, &select, NULL) != SQLITE_OK) {
        return audit_unreadable(audit, "table outcomes: %s", sqlite3_errmsg(audit->database));
    }
    int code = sqlite3_step(select);
    bool good = code == SQLITE_DONE;
    if (code == SQLITE_ROW) {
        (void)audit_finding(audit, "outcomes", (uint64_t)sqlite3_column_int64(select, 1),
                            "entry %lld decided the subtask, not the entry in outcomes",
                            (long long)sqlite3_column_int64(select, 0));
    } else if (code != SQLITE_DONE) {
        (void)audit_unreadable(audit, "table outcomes: %s", sqlite3_errmsg(audit->database));
    }
    (void)sqlite3_finalize(select); /* read only */
    return good;
}
