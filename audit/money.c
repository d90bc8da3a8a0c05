/* The audit checks accounts, postings, holds and balances. docs/ledger.md section 5 has the
 * rules. */
#include "audit/audit_internal.h"

#include "base/array.h"
#include "base/sha256.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MINT = 0, FEES = 1, FIRST_USER = 3, KIND_MESSAGE = 1, KIND_GENESIS = 2 };

/* ---- accounts */

static bool add_account(struct audit *audit, const struct key32 *key, uint32_t roles)
{
    struct audit_account *accounts = array_with_room(audit->accounts, audit->account_count,
                                                     &audit->account_capacity, sizeof *accounts);
    if (accounts == NULL) {
        return audit_out_of_memory(audit);
    }
    audit->accounts = accounts;
    audit->accounts[audit->account_count++] = (struct audit_account){.key = *key, .roles = roles};
    return true;
}

static bool open_system_accounts(struct audit *audit)
{
    static const struct key32 nobody;
    while (audit->account_count < FIRST_USER) {
        if (!add_account(audit, &nobody, 0)) {
            return false;
        }
    }
    return true;
}

static const struct genesis_account *founder(const struct audit *audit, uint32_t number)
{
    uint32_t position = number - FIRST_USER;
    return position < audit->genesis.account_count ? &audit->genesis.accounts[position] : NULL;
}

static struct audit_invitation *invitation_of(struct audit *audit,
                                              const struct audit_command *command)
{
    const Bourse__V1__Join *body = (const Bourse__V1__Join *)command->body;
    struct hash32 token = sha256_of(body->token.data, body->token.len);
    return audit_map_find(&audit->invitations, &token);
}

static bool check_founder(struct audit *audit)
{
    const struct audit_row *row = &audit->rows.row;
    const struct genesis_account *account = founder(audit, row->number);
    return audit_expect(audit, account != NULL, "the genesis has the account") &&
           audit_expect_bytes(audit, "the account's key is the one in the genesis",
                              account->key.bytes, row->owner.bytes, 32) &&
           audit_expect_i64(audit, "the account's roles are those in the genesis", account->roles,
                            row->roles) &&
           audit_expect_name(audit, "the account's name is the one in the genesis", account->name);
}

static bool check_joiner(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    struct key32 key = codec_key(((const Bourse__V1__Join *)command->body)->account);
    struct audit_invitation *invitation = invitation_of(audit, command);
    if (!audit_expect_bytes(audit, "the account's key is the one that joined", key.bytes,
                            row->owner.bytes, 32) ||
        !audit_expect(audit, invitation != NULL, "an operator made the invitation") ||
        !audit_expect(audit, !invitation->is_used, "an invitation is redeemed once") ||
        !audit_expect(audit, invitation->expires_ms * 1000000 > command->log_time_ns,
                      "the account's invitation was valid") ||
        !audit_expect_i64(audit, "the account's roles are those of the invitation",
                          invitation->roles, row->roles)) {
        return false;
    }
    const char *name = ((const Bourse__V1__Join *)command->body)->name;
    if (!audit_expect_name(audit, "the account's name is its own or the invitation's",
                           name != NULL && name[0] != '\0' ? name : invitation->name)) {
        return false;
    }
    invitation->is_used = true;
    return true;
}

bool audit_account_row(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    uint32_t number;
    struct hash32 name;
    if (!open_system_accounts(audit) ||
        !audit_expect_i64(audit, "accounts are numbered in order", audit->account_count,
                          row->number) ||
        !audit_expect(audit, !audit_account_number(audit, &row->owner, &number),
                      "a key has one account")) {
        return false;
    }
    bool joins = command->kind == KIND_MESSAGE && command->type == MESSAGE_JOIN &&
                 command->accounts_opened == 0;
    bool founds = command->kind == KIND_GENESIS;
    if (!audit_expect(audit, joins || founds, "only the genesis and a JOIN open accounts") ||
        !(joins ? check_joiner(audit, command) : check_founder(audit))) {
        return false;
    }
    command->accounts_opened++;
    audit->report->accounts++;
    memcpy(name.bytes, row->owner.bytes, sizeof name.bytes);
    uint32_t *kept = audit_map_add(&audit->numbers, &name, sizeof *kept);
    if (kept == NULL) {
        return audit_out_of_memory(audit);
    }
    *kept = row->number;
    return add_account(audit, &row->owner, row->roles);
}

/* ---- postings */

static bool move(struct audit *audit, uint32_t account, int64_t available, int64_t held)
{
    struct audit_account *balance = &audit->accounts[account];
    if (__builtin_add_overflow(balance->available, available, &balance->available) ||
        __builtin_add_overflow(balance->held, held, &balance->held)) {
        return audit_expect(audit, false, "a balance fits 64 bits");
    }
    return audit_expect(audit, balance->available >= 0 || account == MINT,
                        "no balance but the mint's is negative") &&
           audit_expect(audit, balance->held >= 0, "no held balance is negative");
}

static bool check_mint(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    int64_t amount = 0;
    const struct key32 *key = NULL;
    struct key32 named;
    bool is_first = command->mints_made == 0;
    if (command->kind == KIND_GENESIS) {
        const struct genesis_account *account = founder(audit, row->credit);
        is_first = account != NULL && audit->accounts[row->credit].available == 0;
        amount = account != NULL ? account->credits_micro : 0;
        key = account != NULL ? &account->key : NULL;
    } else if (command->type == MESSAGE_MINT) {
        const Bourse__V1__Mint *body = (const Bourse__V1__Mint *)command->body;
        amount = body->amount_micro;
        named = codec_key(body->account);
        key = &named;
        if (!audit_expect(audit, (audit->accounts[command->account].roles & ROLE_OPERATOR) != 0,
                          "only an operator mints")) {
            return false;
        }
    } else if (command->type == MESSAGE_JOIN && command->accounts_opened == 1) {
        amount = invitation_of(audit, command)->credits;
        named = codec_key(((const Bourse__V1__Join *)command->body)->account);
        key = &named;
    }
    if (!audit_expect(audit, key != NULL && is_first,
                      "a signed command or the genesis made the mint, once") ||
        !audit_expect_i64(audit, "the amount is the one that was signed", amount, row->amount) ||
        !audit_expect_bytes(audit, "the credits go to the account that was named", key->bytes,
                            audit->accounts[row->credit].key.bytes, 32)) {
        return false;
    }
    command->mints_made++;
    audit->report->minted_micro += row->amount;
    return move(audit, MINT, -row->amount, 0) && move(audit, row->credit, row->amount, 0);
}

static bool check_hold(struct audit *audit, struct audit_job *job)
{
    const struct audit_row *row = &audit->rows.row;
    if (!audit_expect(audit, !job->has_hold, "a job has one hold") ||
        !audit_expect_i64(audit, "the hold is the job's budget", job->budget, row->amount)) {
        return false;
    }
    job->has_hold = true;
    job->hold_is_open = true;
    return move(audit, row->debit, -row->amount, row->amount);
}

/* Checks that the owner raises the budget of an open job. */
static bool check_raise(struct audit *audit, const struct audit_command *command,
                        struct audit_job *job)
{
    const struct audit_row *row = &audit->rows.row;
    const Bourse__V1__OrderReplace *body = (const Bourse__V1__OrderReplace *)command->body;
    if (!audit_expect(audit, job->has_hold && job->hold_is_open, "the raised hold is open") ||
        !audit_expect_bytes(audit, "the raised hold is of the job that was signed",
                            body->order.data, row->job.bytes, 16) ||
        !audit_expect_i64(audit, "the money is the signer's", command->account, row->debit) ||
        !audit_expect(audit, body->has_budget_micro, "a budget was signed") ||
        !audit_expect_i64(audit, "the budget becomes the one that was signed",
                          body->budget_micro - job->budget, row->amount)) {
        return false;
    }
    job->budget = body->budget_micro;
    return move(audit, row->debit, -row->amount, row->amount);
}

static bool check_release(struct audit *audit, struct audit_job *job)
{
    const struct audit_row *row = &audit->rows.row;
    if (!audit_expect(audit, job->hold_is_open, "a hold ends once") ||
        !audit_expect_i64(audit, "the amount released is the rest of the hold",
                          job->budget - job->captured, row->amount)) {
        return false;
    }
    job->hold_is_open = false;
    job->released = row->amount;
    return move(audit, row->debit, row->amount, -row->amount);
}

/* Payments come right after the result that earned them: first the capture, then the fee. */
static bool check_payment(struct audit *audit, struct audit_job *job)
{
    const struct audit_row *row = &audit->rows.row;
    struct audit_due *due = &audit->due;
    bool is_fee = row->kind == MONEY_FEE;
    int64_t *amount = is_fee ? &due->fee : &due->capture;
    if (!audit_expect(audit, due->job == job && *amount > 0, "a result earned the payment") ||
        !audit_expect_i64(audit,
                          is_fee ? "the fee is floor(charge x fee_ppm / 10^6)"
                                 : "the provider gets the charge less the fee",
                          *amount, row->amount) ||
        !audit_expect_i64(
            audit, is_fee ? "fees go to account 1" : "the payment goes to the result's signer",
            is_fee ? FEES : due->provider_number, row->credit) ||
        !audit_expect_i64(audit, "the payment names the result's lease", (int64_t)due->lease,
                          (int64_t)row->lease) ||
        !audit_expect_i64(audit, "the payment names the result's subtask", due->index,
                          row->index) ||
        !audit_expect_i64(audit, "the payment names the result's attempt", due->attempt,
                          row->attempt) ||
        !audit_expect(audit, job->hold_is_open, "the job's hold is open") ||
        !audit_expect(audit, row->amount <= job->budget - job->captured,
                      "no more is captured than was held")) {
        return false;
    }
    *amount = 0;
    job->captured += row->amount;
    audit->report->fees_micro += is_fee ? row->amount : 0;
    audit->report->charged_micro += row->amount;
    return move(audit, row->debit, 0, -row->amount) && move(audit, row->credit, row->amount, 0);
}

bool audit_transfer_row(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    const bool is_budget = row->kind == MONEY_HOLD && command->type != MESSAGE_ORDER_REPLACE;
    if (!audit_expect(audit, row->amount >= (is_budget ? 0 : 1), "amounts are above zero") ||
        !audit_expect(audit,
                      row->debit < audit->account_count && row->credit < audit->account_count,
                      "the posting's accounts exist")) {
        return false;
    }
    if (row->kind != MONEY_CAPTURE && row->kind != MONEY_FEE && !audit_nothing_due(audit)) {
        return false;
    }
    if (row->kind == MONEY_MINT) {
        return audit_expect(audit, row->debit == MINT,
                            "credits are only minted, never withdrawn") &&
               check_mint(audit, command);
    }
    struct hash32 name = audit_id(&row->job);
    struct audit_job *job = audit_map_find(&audit->jobs, &name);
    if (!audit_expect(audit, job != NULL, "the posting's job exists") ||
        !audit_expect_i64(audit, "the money is the job owner's", job->owner_number, row->debit)) {
        return false;
    }
    if (row->kind == MONEY_CAPTURE || row->kind == MONEY_FEE) {
        return check_payment(audit, job);
    }
    if (!audit_expect(audit, row->debit == row->credit, "a hold stays with its account")) {
        return false;
    }
    if (row->kind == MONEY_HOLD) {
        return command->type == MESSAGE_ORDER_REPLACE ? check_raise(audit, command, job)
                                                      : check_hold(audit, job);
    }
    return audit_expect(audit, row->kind == MONEY_RELEASE || row->kind == MONEY_EXPIRE,
                        "the posting's kind is known") &&
           check_release(audit, job);
}

bool audit_nothing_due(struct audit *audit)
{
    const struct audit_due *due = &audit->due;
    if (due->capture == 0 && due->fee == 0) {
        return true;
    }
    return audit_finding(audit, "transfers", audit->rows.row.entry,
                         "the charge of subtask %" PRIu32 ", attempt %" PRIu32
                         " was not posted before this entry",
                         due->index, due->attempt);
}

/* ---- balances */

static bool check_balance(struct audit *audit, int64_t number, int64_t available, int64_t held)
{
    static const struct audit_account nothing;
    const struct audit_account *account =
        number >= 0 && number < audit->account_count ? &audit->accounts[number] : &nothing;
    if (available == account->available && held == account->held) {
        return true;
    }
    struct audit_report *report = audit->report;
    /* A text that is too long is cut. */
    (void)snprintf(report->expected, sizeof report->expected,
                   "%" PRId64 " available, %" PRId64 " held", account->available, account->held);
    (void)snprintf(report->found, sizeof report->found, "%" PRId64 " available, %" PRId64 " held",
                   available, held);
    return audit_finding(audit, "balances", (uint64_t)number,
                         "account %" PRId64 " is not the sum of its postings", number);
}

static bool check_stored(struct audit *audit, sqlite3_stmt *select)
{
    uint32_t next = 0;
    int code;
    while ((code = sqlite3_step(select)) == SQLITE_ROW) {
        int64_t number = sqlite3_column_int64(select, 0);
        /* Accounts without a row have never moved. */
        for (; next < number && next < audit->account_count; next++) {
            if (!check_balance(audit, next, 0, 0)) {
                return false;
            }
        }
        if (!check_balance(audit, number, sqlite3_column_int64(select, 1),
                           sqlite3_column_int64(select, 2))) {
            return false;
        }
        next = (uint32_t)number + 1;
    }
    for (; next < audit->account_count; next++) {
        if (!check_balance(audit, next, 0, 0)) {
            return false;
        }
    }
    return code == SQLITE_DONE ||
           audit_unreadable(audit, "table balances: %s", sqlite3_errmsg(audit->database));
}

static bool check_sums(struct audit *audit)
{
    __extension__ __int128 sum = 0;
    int64_t open_holds = 0;
    for (uint32_t i = 0; i < audit->account_count; i++) {
        sum += audit->accounts[i].available;
        sum += audit->accounts[i].held;
        audit->report->held_micro += audit->accounts[i].held;
    }
    for (size_t i = 0; i < audit->jobs.capacity; i++) {
        const struct audit_job *job = audit->jobs.slots[i].value;
        open_holds += job != NULL && job->hold_is_open ? job->budget - job->captured : 0;
    }
    if (sum != 0) {
        return audit_finding(audit, "balances", 0, "the balances do not sum to zero");
    }
    return open_holds == audit->report->held_micro ||
           audit_finding(audit, "balances", 0, "the held money is not the sum of the open holds");
}

bool audit_balances(struct audit *audit)
{
    sqlite3_stmt *select;
    if (sqlite3_prepare_v2(audit->database,
                           "SELECT account, available, held FROM balances ORDER BY account", -1,
                           &select, NULL) != SQLITE_OK) {
        return audit_unreadable(audit, "table balances: %s", sqlite3_errmsg(audit->database));
    }
    bool good = check_stored(audit, select);
    (void)sqlite3_finalize(select); /* read only */
    return good && check_sums(audit);
}
