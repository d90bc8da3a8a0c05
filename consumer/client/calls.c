/* The calls of libbourse that read, and those of the operator, each send one request and translate
 * one answer. */
#include "consumer/client/client.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/text.h"
#include "consumer/client/names.h"
#include "consumer/client/rows.h"
#include "consumer/job/tasks.h"
#include "ledger/checkpoint.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/invitation.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PAGE_ROWS = LIMIT_ROWS };

bool bourse_cancel(struct bourse *bourse, const char *id, struct bourse_error *ret_error)
{
    struct id128 job;
    if (!client_id_read(id, &job, ret_error)) {
        return false;
    }
    Bourse__V1__JobCancel body = BOURSE__V1__JOB_CANCEL__INIT;
    body.job = client_bytes(job.bytes, sizeof job.bytes);
    return client_call(bourse, MESSAGE_JOB_CANCEL, &body.base, 0, NULL, ret_error);
}

/* `part` below 0 leaves the choice to the broker; `subtask` below 0 names none. */
static bool explain(struct bourse *bourse, const char *id, int64_t part, int64_t subtask,
                    struct bourse_explanation *ret_explanation, struct bourse_error *ret_error)
{
    struct id128 job;
    if (!client_id_read(id, &job, ret_error)) {
        return false;
    }
    Bourse__V1__ExplainRequest body = BOURSE__V1__EXPLAIN_REQUEST__INIT;
    body.job = client_bytes(job.bytes, sizeof job.bytes);
    body.has_part = part >= 0;
    body.part = part >= 0 ? (uint32_t)part : 0;
    body.has_subtask = subtask >= 0;
    body.subtask = subtask >= 0 ? (uint32_t)subtask : 0;
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    if (!client_call(bourse, MESSAGE_EXPLAIN_REQUEST, &body.base, MESSAGE_EXPLAIN_REPLY, &answer,
                     ret_error)) {
        return false;
    }
    const Bourse__V1__ExplainReply *reply = (const void *)answer;
    rows_explanation(reply->explanation, ret_explanation);
    client_copy(ret_explanation->state, sizeof ret_explanation->state, reply->state);
    ret_explanation->parts = reply->has_parts ? reply->parts : 0;
    ret_explanation->part = reply->has_part ? reply->part : 0;
    ret_explanation->first = reply->has_first ? reply->first : 0;
    ret_explanation->subtasks = reply->has_subtasks ? reply->subtasks : 0;
    ret_explanation->waiting = reply->has_waiting ? reply->waiting : 0;
    ret_explanation->running = reply->has_running ? reply->running : 0;
    ret_explanation->queued =
        reply->queued < ret_explanation->running ? reply->queued : ret_explanation->running;
    ret_explanation->subtask = reply->has_subtask ? reply->subtask : 0;
    ret_explanation->tries = reply->has_tries ? reply->tries : 0;
    ret_explanation->waits_on = reply->has_waits_on ? reply->waits_on : 0;
    ret_explanation->behind = reply->has_behind ? reply->behind : 0;
    if (reply->subtask_state != NULL) {
        client_copy(ret_explanation->subtask_state, sizeof ret_explanation->subtask_state,
                    reply->subtask_state);
    }
    if (reply->provider != NULL && reply->device != NULL) {
        client_copy(ret_explanation->provider, sizeof ret_explanation->provider, reply->provider);
        client_copy(ret_explanation->device, sizeof ret_explanation->device, reply->device);
    }
    return true;
}

bool bourse_explain_subtask(struct bourse *bourse, const char *id, uint32_t index,
                            struct bourse_explanation *ret_explanation,
                            struct bourse_error *ret_error)
{
    return explain(bourse, id, -1, index, ret_explanation, ret_error);
}

bool bourse_explain(struct bourse *bourse, const char *id,
                    struct bourse_explanation *ret_explanation, struct bourse_error *ret_error)
{
    return explain(bourse, id, -1, -1, ret_explanation, ret_error);
}

bool bourse_explain_part(struct bourse *bourse, const char *id, uint32_t part,
                         struct bourse_explanation *ret_explanation, struct bourse_error *ret_error)
{
    return explain(bourse, id, part, -1, ret_explanation, ret_error);
}

bool bourse_balance(struct bourse *bourse, struct bourse_balance *ret_balance,
                    struct bourse_error *ret_error)
{
    Bourse__V1__BalanceRequest body = BOURSE__V1__BALANCE_REQUEST__INIT;
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    if (!client_call(bourse, MESSAGE_BALANCE_REQUEST, &body.base, MESSAGE_BALANCE_REPLY, &answer,
                     ret_error)) {
        return false;
    }
    const Bourse__V1__BalanceReply *reply = (const void *)answer;
    *ret_balance = (struct bourse_balance){.available_micro = reply->available_micro,
                                           .held_micro = reply->held_micro,
                                           .index = reply->index};
    text_hex(reply->account.data, 32, ret_balance->account);
    client_copy(ret_balance->name, sizeof ret_balance->name, reply->name);
    ret_balance->halted = reply->has_halted && reply->halted;
    ret_balance->frozen = reply->has_frozen && reply->frozen;
    client_copy(ret_balance->halted_why, sizeof ret_balance->halted_why, reply->halted_why);
    client_copy(ret_balance->frozen_why, sizeof ret_balance->frozen_why, reply->frozen_why);
    return true;
}

bool bourse_donated(struct bourse *bourse, struct bourse_donated *ret_donated,
                    struct bourse_error *ret_error)
{
    Bourse__V1__DonationsRequest body = BOURSE__V1__DONATIONS_REQUEST__INIT;
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    if (!client_call(bourse, MESSAGE_DONATIONS_REQUEST, &body.base, MESSAGE_DONATIONS_REPLY,
                     &answer, ret_error)) {
        return false;
    }
    const Bourse__V1__DonationsReply *reply = (const void *)answer;
    *ret_donated = (struct bourse_donated){.used_ns = reply->used_ns,
                                           .promised_ns = reply->promised_ns,
                                           .waiting = reply->waiting,
                                           .place = reply->has_place ? reply->place : 0,
                                           .given_ns = reply->has_given_ns ? reply->given_ns : 0};
    return true;
}

static struct bourse_entry entry_from_wire(const Bourse__V1__StatementRow *row)
{
    struct bourse_entry entry = {.entry = row->entry,
                                 .log_index = row->log_index,
                                 .time_ms = row->time_ms,
                                 .kind = (int)row->kind,
                                 .kind_text = names_entry_kind(row->kind),
                                 .amount_micro = row->amount_micro,
                                 .held_micro = row->held_micro,
                                 .has_subtask = row->has_subtask,
                                 .subtask = row->subtask};
    if (row->has_job) {
        text_hex(row->job.data, 16, entry.job);
    }
    if (row->has_device) {
        text_hex(row->device.data, 16, entry.device);
    }
    entry.fee_micro = row->has_fee_micro ? row->fee_micro : 0;
    entry.given_ns = row->has_given_ns ? row->given_ns : 0;
    entry.failed = row->has_failed && row->failed;
    client_copy(entry.counterparty, sizeof entry.counterparty, row->counterparty);
    return entry;
}

static bool walk_entries(struct bourse *bourse, bool results, uint64_t limit,
                         bourse_entry_visitor *visitor, void *context,
                         struct bourse_error *ret_error)
{
    uint64_t left = limit == 0 ? UINT64_MAX : limit;
    uint64_t before = 0;
    while (left > 0) {
        Bourse__V1__StatementRequest body = BOURSE__V1__STATEMENT_REQUEST__INIT;
        body.has_before = before != 0;
        body.before = before;
        body.has_limit = 1;
        body.limit = left < PAGE_ROWS ? (uint32_t)left : PAGE_ROWS;
        body.has_results = results;
        body.results = results;
        CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
        if (!client_call(bourse, MESSAGE_STATEMENT_REQUEST, &body.base, MESSAGE_STATEMENT_REPLY,
                         &answer, ret_error)) {
            return false;
        }
        const Bourse__V1__StatementReply *reply = (const void *)answer;
        for (size_t i = 0; i < reply->n_rows && left > 0; i++, left--) {
            struct bourse_entry entry = entry_from_wire(reply->rows[i]);
            if (!visitor(context, &entry)) {
                return true;
            }
        }
        bool goes_down = before == 0 || reply->next_before < before;
        if (!reply->has_next_before || (reply->n_rows == 0 && !results) || !goes_down) {
            return true;
        }
        before = reply->next_before;
    }
    return true;
}

bool bourse_statement(struct bourse *bourse, uint64_t limit, bourse_entry_visitor *visitor,
                      void *context, struct bourse_error *ret_error)
{
    return walk_entries(bourse, false, limit, visitor, context, ret_error);
}

bool bourse_provided(struct bourse *bourse, bourse_entry_visitor *visitor, void *context,
                     struct bourse_error *ret_error)
{
    return walk_entries(bourse, true, 0, visitor, context, ret_error);
}

/* Visits one page. `ret_stopped` says that the visitor wants no more. */
static bool read_page(struct bourse *client, const struct id128 *job,
                      const Bourse__V1__OutcomesRequest *body, bourse_outcome_visitor *visitor,
                      void *context, ProtobufCMessage **ret_answer, bool *ret_stopped,
                      struct bourse_error *error)
{
    *ret_stopped = false;
    if (!client_call(client, MESSAGE_OUTCOMES_REQUEST, &body->base, MESSAGE_OUTCOMES_REPLY,
                     ret_answer, error)) {
        return false;
    }
    CLEANUP(rows_outcome_free) struct bourse_outcome *outcome = malloc(sizeof *outcome);
    if (outcome == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    const Bourse__V1__OutcomesReply *reply = (const void *)*ret_answer;
    for (size_t i = 0; i < reply->n_rows && !*ret_stopped; i++) {
        if (!rows_outcome(reply->rows[i], job, outcome)) {
            return client_fail(error, BOURSE_UNVERIFIED,
                               "the broker sent a result of subtask %u that does not decode, or is "
                               "not this job's",
                               reply->rows[i]->index);
        }
        *ret_stopped = !visitor(context, outcome);
    }
    return true;
}

/* Visits outcomes from the position in `body` to the end. */
static bool walk_outcomes(struct bourse *client, const char *id, Bourse__V1__OutcomesRequest body,
                          bourse_outcome_visitor *visitor, void *context,
                          struct bourse_error *error)
{
    struct id128 job;
    if (!client_id_read(id, &job, error)) {
        return false;
    }
    body.job = client_bytes(job.bytes, sizeof job.bytes);
    for (;;) {
        CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
        bool is_stopped;
        if (!read_page(client, &job, &body, visitor, context, &answer, &is_stopped, error)) {
            return false;
        }
        const Bourse__V1__OutcomesReply *reply = (const void *)answer;
        bool goes_on = body.has_others_from
                           ? reply->has_next_entry && reply->next_entry > body.others_from
                           : reply->has_next && reply->next > body.from;
        if (is_stopped || !goes_on) {
            return true;
        }
        body.from = reply->next;
        body.others_from = reply->next_entry;
    }
}

bool client_outcomes(struct bourse *client, const char *id, uint32_t from, uint32_t page_rows,
                     bourse_outcome_visitor *visitor, void *context, struct bourse_error *error)
{
    Bourse__V1__OutcomesRequest body = BOURSE__V1__OUTCOMES_REQUEST__INIT;
    body.from = from;
    body.limit = page_rows;
    return walk_outcomes(client, id, body, visitor, context, error);
}

bool client_other_outcomes(struct bourse *client, const char *id, bourse_outcome_visitor *visitor,
                           void *context, struct bourse_error *error)
{
    Bourse__V1__OutcomesRequest body = BOURSE__V1__OUTCOMES_REQUEST__INIT;
    body.limit = PAGE_ROWS;
    body.has_others_from = true;
    return walk_outcomes(client, id, body, visitor, context, error);
}

bool bourse_outcomes(struct bourse *bourse, const char *id, uint32_t from,
                     bourse_outcome_visitor *visitor, void *context, struct bourse_error *ret_error)
{
    return client_outcomes(bourse, id, from, PAGE_ROWS, visitor, context, ret_error);
}

bool client_no_result(struct bourse *client, const char *id, uint32_t index,
                      struct bourse_error *error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_jobs(client, id, &jobs, error)) {
        return false;
    }
    char label[TASKS_LABEL_SIZE];
    tasks_label_of(client, id, index, label);
    return bourse_jobs_row(jobs, 0)->state == BOURSE_OPEN
               ? client_fail(error, BOURSE_NOT_FOUND, "%s has no result yet", label)
               : client_fail(error, BOURSE_NOT_FOUND,
                             "%s was cancelled before it had a result; `bourse ps %.8s` says how "
                             "the job ended",
                             label, id);
}

bool client_check_checkpoint(const struct market *market, const Bourse__V1__CheckpointReply *reply,
                             struct bourse_error *error)
{
    struct checkpoint checkpoint;
    if (!checkpoint_read((const char *)reply->note.data, reply->note.len, &market->log_key,
                         &checkpoint) ||
        strcmp(checkpoint.origin, market->origin) != 0 || checkpoint.size != reply->tree_size) {
        return client_fail(error, BOURSE_UNVERIFIED,
                           "the broker's checkpoint is not one that the market's log key signed; "
                           "ask again, then tell the operator, whose `bourse-broker audit` finds "
                           "out whether the log is damaged");
    }
    return true;
}

bool bourse_checkpoint(struct bourse *bourse, char **ret_text, uint64_t *ret_tree_size,
                       struct bourse_error *ret_error)
{
    Bourse__V1__CheckpointRequest body = BOURSE__V1__CHECKPOINT_REQUEST__INIT;
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    if (!client_call(bourse, MESSAGE_CHECKPOINT_REQUEST, &body.base, MESSAGE_CHECKPOINT_REPLY,
                     &answer, ret_error)) {
        return false;
    }
    const Bourse__V1__CheckpointReply *reply = (const void *)answer;
    if (!client_check_checkpoint(&bourse->market, reply, ret_error) ||
        !client_copy_text(reply->note, ret_text, ret_error)) {
        return false;
    }
    *ret_tree_size = reply->tree_size;
    return true;
}

void bourse_free(void *memory)
{
    free(memory);
}

/* ---------------------------------------------------------------- the operator */

bool bourse_mint(struct bourse *bourse, const char *account, int64_t amount_micro, const char *note,
                 struct bourse_error *ret_error)
{
    struct key32 key;
    if (!client_key_read(account, &key, ret_error)) {
        return false;
    }
    char copy[LIMIT_TEXT_BYTES + 1];
    client_copy(copy, sizeof copy, note);
    Bourse__V1__Mint body = BOURSE__V1__MINT__INIT;
    body.account = client_bytes(key.bytes, sizeof key.bytes);
    body.amount_micro = amount_micro;
    body.note = copy[0] != '\0' ? copy : NULL;
    return client_call(bourse, MESSAGE_MINT, &body.base, 0, NULL, ret_error);
}

bool bourse_invite(struct bourse *bourse, unsigned roles, int64_t credits_micro, int64_t valid_ms,
                   const char *name, char *ret_text, size_t capacity,
                   struct bourse_error *ret_error)
{
    if (!client_name_fits(name, ret_error) || !client_ready(bourse, ret_error)) {
        return false;
    }
    int64_t now_ms = consumer_session_log_time_ms(bourse->session, clock_monotonic_ns());
    struct invitation invitation = {
        .market = bourse->market, .token = entropy_id(), .expires_ms = now_ms + valid_ms};
    struct hash32 hash = sha256_of(invitation.token.bytes, sizeof invitation.token.bytes);
    char copy[LIMIT_NAME_BYTES + 1];
    client_copy(copy, sizeof copy, name);

    Bourse__V1__InviteCreate body = BOURSE__V1__INVITE_CREATE__INIT;
    body.token_hash = client_bytes(hash.bytes, sizeof hash.bytes);
    body.roles = roles;
    body.credits_micro = credits_micro;
    body.expires_ms = now_ms + valid_ms;
    body.name = copy[0] != '\0' ? copy : NULL;
    if (!client_call(bourse, MESSAGE_INVITE_CREATE, &body.base, 0, NULL, ret_error)) {
        return false;
    }
    bool written = invitation_write(&invitation, ret_text, capacity);
    sodium_memzero(&invitation.token, sizeof invitation.token);
    return written ? true
                   : client_fail(ret_error, BOURSE_LOCAL,
                                 "the text of the invitation is longer than the caller's buffer");
}

bool bourse_freeze(struct bourse *bourse, const char *account, bool frozen, const char *reason,
                   struct bourse_error *ret_error)
{
    struct key32 key;
    if (!client_key_read(account, &key, ret_error)) {
        return false;
    }
    char copy[LIMIT_TEXT_BYTES + 1];
    client_copy(copy, sizeof copy, reason);
    Bourse__V1__Freeze body = BOURSE__V1__FREEZE__INIT;
    body.account = client_bytes(key.bytes, sizeof key.bytes);
    body.frozen = frozen;
    body.reason = copy[0] != '\0' ? copy : NULL;
    return client_call(bourse, MESSAGE_FREEZE, &body.base, 0, NULL, ret_error);
}

bool bourse_halt(struct bourse *bourse, bool halted, const char *reason,
                 struct bourse_error *ret_error)
{
    char copy[LIMIT_TEXT_BYTES + 1];
    client_copy(copy, sizeof copy, reason);
    Bourse__V1__Halt body = BOURSE__V1__HALT__INIT;
    body.halted = halted;
    body.reason = copy[0] != '\0' ? copy : NULL;
    return client_call(bourse, MESSAGE_HALT, &body.base, 0, NULL, ret_error);
}

bool bourse_set_bands(struct bourse *bourse, const struct bourse_bands *bands, const char *reason,
                      struct bourse_error *ret_error)
{
    char copy[LIMIT_TEXT_BYTES + 1];
    client_copy(copy, sizeof copy, reason);
    Bourse__V1__SetBands body = BOURSE__V1__SET_BANDS__INIT;
    body.has_least_micro = bands->least_micro >= 0;
    body.least_micro = bands->least_micro;
    body.has_most_micro = bands->most_micro >= 0;
    body.most_micro = bands->most_micro;
    body.has_notional_micro = bands->notional_micro >= 0;
    body.notional_micro = bands->notional_micro;
    body.reason = copy[0] != '\0' ? copy : NULL;
    return client_call(bourse, MESSAGE_SET_BANDS, &body.base, 0, NULL, ret_error);
}

bool bourse_set_owner(struct bourse *bourse, const char *const *accounts, size_t count,
                      const char *owner, const char *reason, struct bourse_error *ret_error)
{
    struct key32 keys[LIMIT_OWNER_ACCOUNTS];
    ProtobufCBinaryData pointers[LIMIT_OWNER_ACCOUNTS];
    char copy[LIMIT_TEXT_BYTES + 1];
    char name[LIMIT_NAME_BYTES + 1];
    Bourse__V1__SetOwner body = BOURSE__V1__SET_OWNER__INIT;
    if (count == 0 || count > LIMIT_OWNER_ACCOUNTS) {
        return client_fail(ret_error, BOURSE_USAGE,
                           "%zu accounts are named; an owner is set for 1 to %d accounts at a time",
                           count, LIMIT_OWNER_ACCOUNTS);
    }
    if (!client_name_fits(owner, ret_error)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!client_key_read(accounts[i], &keys[i], ret_error)) {
            return false;
        }
        pointers[i] = client_bytes(keys[i].bytes, sizeof keys[i].bytes);
    }
    client_copy(copy, sizeof copy, reason);
    client_copy(name, sizeof name, owner);
    body.n_accounts = count;
    body.accounts = pointers;
    body.name = name;
    body.reason = copy[0] != '\0' ? copy : NULL;
    return client_call(bourse, MESSAGE_SET_OWNER, &body.base, 0, NULL, ret_error);
}

static struct bourse_account_row account_from_wire(const Bourse__V1__AccountRow *row)
{
    struct bourse_account_row account = {.number = row->number,
                                         .roles = row->roles,
                                         .available_micro = row->available_micro,
                                         .held_micro = row->held_micro,
                                         .frozen = row->frozen};
    text_hex(row->account.data, 32, account.account);
    client_copy(account.name, sizeof account.name, row->name);
    client_copy(account.owner, sizeof account.owner, row->owner);
    return account;
}

bool bourse_accounts(struct bourse *bourse, bourse_account_visitor *visitor, void *context,
                     bool *ret_halted, struct bourse_error *ret_error)
{
    uint32_t from = 0;
    for (;;) {
        Bourse__V1__AccountsRequest body = BOURSE__V1__ACCOUNTS_REQUEST__INIT;
        body.has_from = 1;
        body.from = from;
        body.has_limit = 1;
        body.limit = PAGE_ROWS;
        CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
        if (!client_call(bourse, MESSAGE_ACCOUNTS_REQUEST, &body.base, MESSAGE_ACCOUNTS_REPLY,
                         &answer, ret_error)) {
            return false;
        }
        const Bourse__V1__AccountsReply *reply = (const void *)answer;
        *ret_halted = reply->has_halted && reply->halted;
        for (size_t i = 0; i < reply->n_rows; i++) {
            struct bourse_account_row row = account_from_wire(reply->rows[i]);
            if (!visitor(context, &row)) {
                return true;
            }
        }
        uint32_t last = reply->n_rows > 0 ? reply->rows[reply->n_rows - 1]->number : 0;
        if (reply->n_rows < PAGE_ROWS || last < from) {
            return true;
        }
        from = last + 1;
    }
}
