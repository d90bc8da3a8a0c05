/* The audit records which referees judged a result, and which accounts have one owner. Since rules
 * 18 two referees of different owners refute a result, and a judge of a subtask never makes it
 * (docs/ledger.md section 7). */
#include "audit/audit_internal.h"

#include "base/cursor.h"
#include "base/sha256.h"

#include <string.h>

enum { RULES_OF_TWO = 18, NO_ACCUSER = 0 };

bool audit_two_refute(const struct audit *audit)
{
    return audit->rules >= RULES_OF_TWO;
}

/* ---- owners */

static bool have_one_owner(const struct audit *audit, uint32_t a, uint32_t b)
{
    const uint64_t group = audit->accounts[a].group;
    return a == b || (group != 0 && group == audit->accounts[b].group);
}

static uint64_t group_named(const struct audit *audit, const char *name, uint64_t index)
{
    for (uint32_t i = 0; i < audit->account_count; i++) {
        if (audit->accounts[i].group != 0 && strcmp(audit->accounts[i].owner, name) == 0) {
            return audit->accounts[i].group;
        }
    }
    return index;
}

bool audit_set_owner(struct audit *audit, const struct audit_command *command)
{
    const Bourse__V1__SetOwner *body = (const Bourse__V1__SetOwner *)command->body;
    char name[AUDIT_NAME_SIZE] = "";
    audit_cut_name(name, body->name);
    const uint64_t group = name[0] != '\0' ? group_named(audit, name, command->index) : 0;
    if (!audit_expect(audit, (audit->accounts[command->account].roles & ROLE_OPERATOR) != 0,
                      "an operator named the owner of the accounts")) {
        return false;
    }
    for (size_t i = 0; i < body->n_accounts; i++) {
        const struct key32 key = codec_key(body->accounts[i]);
        uint32_t number;
        if (!audit_expect(audit, audit_account_number(audit, &key, &number),
                          "only accounts that exist have an owner")) {
            return false;
        }
        audit->accounts[number].group = group;
        memset(audit->accounts[number].owner, 0, sizeof audit->accounts[number].owner);
        memcpy(audit->accounts[number].owner, name, strlen(name));
    }
    return true;
}

/* ---- juries */

static struct hash32 jury_name(const struct audit_job *job, uint32_t index)
{
    struct hash32 name = audit_id(&job->id);
    struct writer out = writer_over(name.bytes + sizeof job->id.bytes, 4);
    writer_u32(&out, index);
    return name;
}

static bool add_judge(struct audit *audit, const struct audit_held *held, uint32_t referee)
{
    const struct hash32 name = jury_name(held->job, held->index);
    struct audit_jury *jury = audit_map_find(&audit->juries, &name);
    if (jury == NULL) {
        jury = audit_map_add(&audit->juries, &name, sizeof *jury);
    }
    if (jury == NULL) {
        return audit_out_of_memory(audit);
    }
    if (jury->count < AUDIT_JUDGES) {
        jury->accounts[jury->count++] = referee;
    }
    return true;
}

bool audit_may_make(struct audit *audit, const struct audit_lease *lease)
{
    const struct hash32 name = jury_name(lease->job, audit->rows.row.index);
    const struct audit_jury *jury = audit_map_find(&audit->juries, &name);
    bool may = true;
    for (uint32_t i = 0; jury != NULL && may && i < jury->count; i++) {
        may = !have_one_owner(audit, jury->accounts[i], lease->provider_number);
    }
    return audit_expect(audit, may, "the owner of the result's maker has not judged the subtask");
}

/* ---- verdicts on held results */

bool audit_may_judge(const struct audit *audit, const struct audit_held *held, uint32_t referee)
{
    const bool accepts = audit->rows.row.status == ATTEMPT_ACCEPTED;
    return !audit_two_refute(audit) || (!have_one_owner(audit, referee, held->maker_number) &&
                                        (!accepts || held->accuser == NO_ACCUSER ||
                                         !have_one_owner(audit, referee, held->accuser)));
}

/* Returns true when the check follows the job's manifest, on the device of its lease. Any other
 * check counts as refused. */
static bool is_honest(const struct audit_lease *lease, const Bourse__V1__Result *result)
{
    const struct hash32 manifest = codec_hash(result->manifest);
    const struct id128 device = codec_id(result->device);
    return hash32_equal(&manifest, &lease->job->manifest) && id128_equal(&device, &lease->device) &&
           lease->is_simulated == (result->has_simulated && result->simulated);
}

/* The check of the current row counts if it may judge. A counting check came in time, and its owner
 * is neither the maker's nor an earlier accuser's. */
bool audit_note_verdict(struct audit *audit, const struct audit_lease *lease,
                        struct audit_held *held, const struct audit_check *check,
                        const Bourse__V1__Result *result)
{
    const bool is_missing = audit_lacks_product(check) && check->status == ATTEMPT_FAILED_UNPAID &&
                            is_honest(lease, result);
    const bool is_verdict = check->outcome == OUTCOME_OK && check->status == ATTEMPT_FAILED_PAID;
    const bool rejects = is_verdict && check->verdict == VERDICT_REJECT;
    const uint32_t referee = check->provider_number;
    if (!audit_two_refute(audit)) { /* doubts from now count under later rules */
        held->doubts += is_verdict && check->verdict == VERDICT_UNSURE;
        return true;
    }
    if ((!is_missing && !is_verdict) || have_one_owner(audit, referee, held->maker_number) ||
        (held->accuser != NO_ACCUSER && have_one_owner(audit, referee, held->accuser))) {
        return true;
    }
    held->doubts += is_missing || check->verdict == VERDICT_UNSURE;
    if (rejects && held->accuser == NO_ACCUSER) {
        held->accuser = referee; /* no provider's account has number 0 */
        held->accused_by = check->attempt;
    } else if (rejects) {
        held->is_confirmed = true;
    }
    return add_judge(audit, held, referee);
}

/* ---- the client's decision */

static struct hash32 hash_of_command(const struct audit_command *command)
{
    uint8_t type[2];
    struct writer out = writer_over(type, sizeof type);
    writer_u16(&out, command->envelope.type);
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, type, sizeof type);
    sha256_add(&hash, command->envelope.body, command->envelope.body_length);
    return sha256_end(&hash);
}

/* The client refutes only a result that a referee of another owner has accused. */
static uint8_t status_of_word(const struct audit *audit, const struct audit_held *held,
                              uint32_t verdict)
{
    const bool is_second = held->accuser != NO_ACCUSER &&
                           !have_one_owner(audit, held->accuser, held->job->owner_number);
    return verdict == VERDICT_ACCEPT                ? ATTEMPT_ACCEPTED
           : verdict == VERDICT_REJECT && is_second ? ATTEMPT_REFUTED
                                                    : ATTEMPT_FAILED_PAID;
}

bool audit_client_word(struct audit *audit, const struct audit_command *command,
                       const struct audit_held *held)
{
    const struct audit_row *row = &audit->rows.row;
    if (!audit_expect(audit, audit_two_refute(audit) && held != NULL,
                      "the result's level is known to the rules in force") ||
        !audit_expect(audit, command->type == MESSAGE_JUDGE_RESULT,
                      "a signed JudgeResult decided the result") ||
        !audit_expect_i64(audit, "the job's client judged the result", held->job->owner_number,
                          command->account)) {
        return false;
    }
    const Bourse__V1__JudgeResult *body = (const Bourse__V1__JudgeResult *)command->body;
    const struct id128 job = codec_id(body->job);
    const struct hash32 result = codec_hash(body->result);
    const struct hash32 said = codec_hash(body->seed);
    const struct hash32 seed = audit_seed(held, held->job->checked + held->index,
                                          held->accuser == NO_ACCUSER ? 0 : held->accused_by);
    const struct hash32 check = hash_of_command(command);
    audit->report->checked++;
    return audit_expect(audit,
                        id128_equal(&job, &held->job->id) && body->index == held->index &&
                            body->attempt == held->attempt && hash32_equal(&result, &held->hash),
                        "the signed JudgeResult names the held result") &&
           audit_expect_bytes(audit, "the result's check is the client's JudgeResult", check.bytes,
                              row->check.bytes, 32) &&
           audit_expect_bytes(audit, "the client's seed was drawn from the dice", seed.bytes,
                              said.bytes, 32) &&
           audit_expect_i64(audit, "the result's status follows from the client's verdict",
                            status_of_word(audit, held, body->verdict), row->status);
}
