/* The audit verifies dice, held results, and the checks that decided them. docs/ledger.md section 7
 * has the rules. */
#include "audit/audit_internal.h"

#include "base/cursor.h"
#include "base/sha256.h"

#include <inttypes.h>
#include <sodium.h>
#include <string.h>

enum {
    KIND_EPOCH = 8,
    EPOCH_BYTES = 64,
    LEVEL_NONE = 0,
    LEVEL_CHEAP = 1,
    LEVEL_CLIENT = 2,
    MISSING_TO_REFUTE = 2, /* before rules 18 */
    DOUBTS_TO_REDO = 2,    /* checks that found no bytes, or were unsure; since rules 18 */
};

static const struct hash32 nothing;

/* ---- epochs */

/* Returns true when the commitment is the hash of the secret. */
static bool fits(const struct hash32 *secret, const struct hash32 *commitment)
{
    struct hash32 hash = sha256_of(secret->bytes, sizeof secret->bytes);
    return hash32_equal(&hash, commitment);
}

/* Finds the secret of the epoch that begins with the current row. The next epoch shows the
 * secret. */
static bool find_secret(struct audit *audit)
{
    sqlite3_stmt *select;
    struct hash32 secret = nothing;
    if (sqlite3_prepare_v2(audit->database,
                           "SELECT secret FROM epochs WHERE entry > ?1 ORDER BY entry LIMIT 1", -1,
                           &select, NULL) != SQLITE_OK) {
        return audit_unreadable(audit, "table epochs: %s", sqlite3_errmsg(audit->database));
    }
    /* A failed bind finds nothing. */
    (void)sqlite3_bind_int64(select, 1, (sqlite3_int64)audit->rows.row.entry);
    if (sqlite3_step(select) == SQLITE_ROW && sqlite3_column_bytes(select, 0) == 32) {
        memcpy(secret.bytes, sqlite3_column_blob(select, 0), 32);
    }
    (void)sqlite3_finalize(select); /* read only */
    audit->secret = secret;
    /* The next epoch's row gives the finding when the secret does not fit. */
    audit->has_secret = fits(&secret, &audit->commitment);
    return true;
}

bool audit_epoch_row(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    if (!audit_expect(audit,
                      command->kind == KIND_EPOCH && command->payload_length == EPOCH_BYTES &&
                          command->epochs_begun == 0,
                      "one command of the broker began the epoch") ||
        !audit_expect_bytes(audit, "the epoch's commitment is its command's", command->payload,
                            row->hash.bytes, 32) ||
        !audit_expect_bytes(audit, "the epoch's secret is its command's", command->payload + 32,
                            row->check.bytes, 32)) {
        return false;
    }
    if (!hash32_equal(&row->check, &nothing)) {
        struct hash32 hash = sha256_of(row->check.bytes, 32);
        if (!audit_expect(audit, audit->has_epoch, "the first epoch shows no secret") ||
            !audit_expect_bytes(audit,
                                "the shown secret is the one that the epoch before committed to",
                                audit->commitment.bytes, hash.bytes, 32)) {
            return false;
        }
    }
    command->epochs_begun++;
    audit->report->epochs++;
    audit->has_epoch = true;
    audit->commitment = row->hash;
    return find_secret(audit);
}

bool audit_epoch_command(struct audit *audit, const struct audit_command *command)
{
    struct hash32 secret;
    if (command->kind != KIND_EPOCH || command->epochs_begun > 0) {
        return true;
    }
    if (command->payload_length != EPOCH_BYTES) {
        return audit_finding(audit, "journal", audit->report->journal_entries + 1,
                             "command %" PRIu64 " has not the 64 bytes of an epoch",
                             command->index);
    }
    memcpy(secret.bytes, command->payload + 32, sizeof secret.bytes);
    bool is_refused = !hash32_equal(&secret, &nothing) &&
                      !(audit->has_epoch && fits(&secret, &audit->commitment));
    return is_refused ||
           audit_finding(audit, "epochs", 0,
                         "the row of the epoch that command %" PRIu64 " began is missing",
                         command->index);
}

bool audit_dice(struct audit *audit, const struct audit_command *command)
{
    struct hash32 dice = nothing;
    uint8_t message[8];
    struct writer out = writer_over(message, sizeof message);
    if (audit->has_epoch && !audit->has_secret) {
        return true; /* the epoch's secret is not shown yet, or was lost */
    }
    if (audit->has_epoch) {
        writer_u64(&out, command->index);
        /* The call always returns 0. */
        (void)crypto_auth_hmacsha256(dice.bytes, message, sizeof message, audit->secret.bytes);
        audit->report->dice++;
    }
    return hash32_equal(&dice, &command->dice) ||
           audit_finding(audit, "journal", audit->report->journal_entries + 1,
                         "the dice of command %" PRIu64 " are not those of its epoch",
                         command->index);
}

/* ---- held results */

static struct hash32 held_name(uint64_t batch_index, uint32_t position)
{
    struct hash32 name = audit_number(batch_index);
    struct writer out = writer_over(name.bytes + 8, 4);
    writer_u32(&out, position);
    return name;
}

bool audit_hold(struct audit *audit, const struct audit_lease *lease, const struct hash32 *dice)
{
    const struct audit_row *row = &audit->rows.row;
    struct hash32 name = held_name(row->log_index, row->position);
    if (!audit_expect(audit, row->index < lease->job->checked,
                      "only a result that will be checked is held") ||
        !audit_expect(audit, !lease->job->is_settled, "no result of a settled job is held")) {
        return false;
    }
    if (!audit_may_make(audit, lease)) {
        return false;
    }
    struct audit_held *held = audit_map_add(&audit->held, &name, sizeof *held);
    if (held == NULL) {
        return audit_out_of_memory(audit);
    }
    *held = (struct audit_held){.job = lease->job,
                                .entry = row->entry,
                                .hash = row->hash,
                                .dice = *dice,
                                .index = row->index,
                                .attempt = row->attempt,
                                .lease = row->lease,
                                .maker_number = lease->provider_number,
                                .before = lease->job->held_now[row->index]};
    lease->job->held++;
    lease->job->held_now[row->index] = held;
    return true;
}

struct audit_held *audit_held_of(const struct audit *audit)
{
    struct hash32 name = held_name(audit->rows.row.batch_index, audit->rows.row.position);
    return audit_map_find(&audit->held, &name);
}

/* ---- outcomes of checks */

/* Since these rules the broker looks for itself whether an input is missing, before it sequences
 * the result that says so. By earlier rules the broker believed the result. */
enum { RULES_OF_INPUTS = 19 };

static bool broker_lacks(const struct audit *audit, const struct audit_command *command)
{
    return audit->rules < RULES_OF_INPUTS || command->sent[audit->rows.row.position].is_missing;
}

static bool note_check(struct audit *audit, const struct audit_command *command,
                       const struct audit_lease *lease, const Bourse__V1__Result *result)
{
    const struct audit_row *row = &audit->rows.row;
    const bool accepts = result->has_verdict && result->verdict == VERDICT_ACCEPT;
    if (!audit_expect(audit, (audit->accounts[lease->provider_number].roles & ROLE_REFEREE) != 0,
                      "a check is run by a referee") ||
        !audit_expect(audit, row->status != ATTEMPT_ACCEPTED || accepts,
                      "an accepted check has the verdict accept") ||
        !audit_expect(audit, audit_map_find(&audit->checks, &row->hash) == NULL,
                      "a result is recorded once")) {
        return false;
    }
    struct audit_check *check = audit_map_add(&audit->checks, &row->hash, sizeof *check);
    if (check == NULL) {
        return audit_out_of_memory(audit);
    }
    *check = (struct audit_check){.job = lease->job,
                                  .index = row->index,
                                  .attempt = row->attempt,
                                  .provider_number = lease->provider_number,
                                  .outcome = row->outcome,
                                  .status = row->status,
                                  .is_lost = broker_lacks(audit, command),
                                  .lacks_factor = result->has_lacks_factor && result->lacks_factor,
                                  .verdict = result->has_verdict ? result->verdict : VERDICT_NONE};
    if (result->has_seed) {
        check->seed = codec_hash(result->seed);
    }
    struct audit_held *held = lease->job->held_now[row->index - lease->job->checked];
    if (held != NULL && audit_lacks_product(check)) {
        held->missing++;
    }
    return held == NULL || audit_note_verdict(audit, lease, held, check, result);
}

struct hash32 audit_seed(const struct audit_held *held, uint32_t index, uint32_t attempt)
{
    static const char domain[] = "bourse/check/v1"; /* hashed with its NUL */
    uint8_t bytes[sizeof domain + 32 + 32 + 4 + 4];
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_bytes(&out, domain, sizeof domain);
    writer_bytes(&out, held->dice.bytes, 32);
    writer_bytes(&out, held->hash.bytes, 32);
    writer_u32(&out, index);
    writer_u32(&out, attempt);
    return sha256_of(bytes, out.position);
}

/* Returns true when the outcome of the check supports the row's status. */
static bool supports_status(const struct audit *audit, const struct audit_held *held,
                            const struct audit_check *check)
{
    const struct audit_row *row = &audit->rows.row;
    const bool is_confirmed = held->is_confirmed || !audit_two_refute(audit);
    const bool is_missing = audit_lacks_product(check);
    const bool may_refute = !audit_two_refute(audit) && held->missing >= MISSING_TO_REFUTE;
    const bool is_doubted = audit_two_refute(audit) && held->doubts >= DOUBTS_TO_REDO;
    const bool is_paid = check->status == ATTEMPT_FAILED_PAID;
    switch (row->status) {
    case ATTEMPT_ACCEPTED:
        return check->status == ATTEMPT_ACCEPTED && check->verdict == VERDICT_ACCEPT;
    case ATTEMPT_REFUTED:
        return is_confirmed &&
               ((is_paid && check->verdict == VERDICT_REJECT) || (is_missing && may_refute));
    case ATTEMPT_FAILED_PAID:
        return (is_paid && check->verdict == VERDICT_UNSURE) ||
               (is_missing && check->status == ATTEMPT_FAILED_UNPAID && is_doubted);
    default:
        return false;
    }
}

static bool check_cheap(struct audit *audit, const struct audit_lease *lease,
                        const struct audit_held *held)
{
    const struct audit_row *row = &audit->rows.row;
    const struct audit_check *check = audit_map_find(&audit->checks, &row->check);
    if (!audit_expect(audit, held != NULL, "only a held result is checked") ||
        !audit_expect(audit, check != NULL, "the result's check is an earlier result") ||
        !audit_expect(audit,
                      check->job == held->job && check->index == held->job->checked + held->index,
                      "the result's check is the check of its subtask") ||
        !audit_expect(audit,
                      check->provider_number != lease->provider_number &&
                          audit_may_judge(audit, held, check->provider_number),
                      "a referee of another owner checked the result") ||
        !audit_expect(audit, supports_status(audit, held, check),
                      "the result's status follows from its check")) {
        return false;
    }
    struct hash32 seed = audit_seed(held, check->index, check->attempt);
    if (check->outcome == OUTCOME_OK &&
        !audit_expect_bytes(audit, "the seed of the result's check was drawn from the dice",
                            seed.bytes, check->seed.bytes, 32)) {
        return false;
    }
    audit->report->checked++;
    return true;
}

/* Marks the held result as settled by the current row, its one RESULT. */
static bool settle_held(struct audit *audit, struct audit_held *held)
{
    const struct audit_row *row = &audit->rows.row;
    if (!audit_expect(audit, !held->is_settled, "a held result is settled once") ||
        !audit_expect_i64(audit, "the result's subtask is the held result's", held->index,
                          row->index) ||
        !audit_expect_i64(audit, "the result's attempt is the held result's", held->attempt,
                          row->attempt) ||
        !audit_expect_i64(audit, "the result's lease is the held result's", (int64_t)held->lease,
                          (int64_t)row->lease)) {
        return false;
    }
    held->is_settled = true;
    held->job->held--;
    struct audit_held **at = &held->job->held_now[held->index];
    while (*at != held) {
        at = &(*at)->before;
    }
    *at = held->before;
    return true;
}

bool audit_level(struct audit *audit, const struct audit_command *command,
                 const struct audit_lease *lease, struct audit_held *held,
                 const Bourse__V1__Result *result)
{
    const struct audit_row *row = &audit->rows.row;
    const struct audit_job *job = lease->job;
    if (held != NULL && !settle_held(audit, held)) {
        return false;
    }
    if (row->level == LEVEL_CHEAP) {
        return check_cheap(audit, lease, held);
    }
    if (row->level == LEVEL_CLIENT) {
        return audit_client_word(audit, command, held);
    }
    return audit_expect(audit, row->level == LEVEL_NONE, "the result's level is known") &&
           audit_expect_bytes(audit, "an unchecked result names no check", nothing.bytes,
                              row->check.bytes, 32) &&
           audit_expect(audit, row->status != ATTEMPT_REFUTED, "only a check refutes a result") &&
           (job->checked == 0 || row->index < job->checked ||
            note_check(audit, command, lease, result));
}

bool audit_checks_of(struct audit *audit, const struct audit_job *job)
{
    const struct audit_row *row = &audit->rows.row;
    for (uint32_t i = 0; job->held > 0 && i < job->checked; i++) {
        const struct audit_held *held = job->held_now[i];
        if (held != NULL) {
            return audit_finding(audit, "held", held->entry,
                                 "the result of subtask %" PRIu32 ", attempt %" PRIu32
                                 " was held, and the job ended without a verdict on the result",
                                 held->index, held->attempt);
        }
    }
    return audit_expect_i64(audit, "every accepted check decided a result", job->accepted_checks,
                            job->accepted_by_check) &&
           audit_expect(audit, job->accepted_unchecked == 0 || row->status != JOB_DONE,
                        "unchecked results are accepted only in a job that did not end as done");
}
