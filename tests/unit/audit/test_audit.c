#include "audit/audit.h"

#include <check.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/message.h"
#include "tests/support/small_market.h"
#include "tests/support/suite.h"

START_TEST(a_true_market_is_ok)
{
    struct small_market market;
    struct audit_report report;
    small_market_create(&market, NULL, NULL);
    audit_run(market.folder, &report);
    ck_assert_msg(report.verdict == AUDIT_OK, "%s %lu: %s (expected %s, found %s)", report.table,
                  (unsigned long)report.entry, report.what, report.expected, report.found);
    ck_assert_uint_eq(report.journal_entries, SMALL_MARKET_ENTRIES);
    ck_assert_uint_eq(report.commands, 1 + 3 + 3 + 1 + 1 + 1 + 1);
    ck_assert_uint_eq(report.signatures, 3 + 3 + 1 + 2 + 1); /* commands, batches, the checkpoint */
    ck_assert_uint_eq(report.accounts, 2);
    ck_assert_uint_eq(report.jobs, 1);
    ck_assert_uint_eq(report.fills, 1);
    ck_assert_uint_eq(report.results, 4);
    ck_assert_uint_eq(report.accepted, 3);
    ck_assert_int_eq(report.minted_micro, 1012000000);
    ck_assert_int_eq(report.charged_micro, 1988888);
    ck_assert_int_eq(report.held_micro, 0);
    ck_assert_uint_eq(report.tree_size, report.leaves);
    ck_assert_str_eq(report.head, "ok");
    small_market_destroy(&market);
}
END_TEST

/* Wrongs planted with SQL in the finished database, and the table (and a word of the line) that
 * must name them. */
struct planted {
    const char *sql;
    const char *table;
    const char *words;
};

static const struct planted planted[] = {
    /* postings and balances */
    {"UPDATE journal SET next_command = next_command + 1000 WHERE idx = 2", "journal",
     "next_command"},
    {"UPDATE transfers SET amount = amount + 1 WHERE kind = 4 AND idx = 0", "transfers",
     "charge less the fee"},
    {"UPDATE transfers SET amount = amount - 1 WHERE kind = 7 AND idx = 2", "transfers", "fee_ppm"},
    {"UPDATE transfers SET credit = 3 WHERE kind = 4 AND idx = 0", "transfers", "result's signer"},
    {"UPDATE transfers SET credit = 2 WHERE kind = 7 AND idx = 0", "transfers", "account 1"},
    {"UPDATE transfers SET debit = 4 WHERE kind = 4 AND idx = 0", "transfers", "job owner's"},
    {"UPDATE transfers SET amount = -5 WHERE kind = 4 AND idx = 0", "transfers", "above zero"},
    {"UPDATE transfers SET credit = 99 WHERE kind = 4 AND idx = 0", "transfers", "accounts exist"},
    {"UPDATE transfers SET lease = 2 WHERE kind = 4 AND idx = 0", "transfers", "lease"},
    {"UPDATE transfers SET amount = amount + 1 WHERE kind = 2 AND credit = 4", "transfers",
     "signed"},
    {"UPDATE transfers SET amount = amount + 1 WHERE kind = 3", "transfers", "budget"},
    {"UPDATE transfers SET amount = amount - 1 WHERE kind = 5", "transfers", "rest of the hold"},
    {"UPDATE transfers SET kind = 3 WHERE kind = 5", "transfers", "one hold"},
    {"UPDATE balances SET available = available + 1 WHERE account = 4", "balances", "account 4"},
    {"UPDATE balances SET available = available + 1, held = 1 WHERE account = 3", "balances",
     "account 3"},
    {"DELETE FROM balances WHERE account = 1", "balances", "account 1"},
    {"INSERT INTO balances VALUES(9, 5, 0)", "balances", "account 9"},
    /* numbering */
    {"DELETE FROM transfers WHERE kind = 7 AND idx = 0", "results", "without a gap"},
    {"UPDATE results SET leaf = leaf + 100 WHERE idx = 2", "results", "order of entries"},
    {"UPDATE asks SET leaf = NULL", "asks", "leaf"},
    {"UPDATE fills SET log_time_ns = log_time_ns + 1", "fills", "time"},
    {"UPDATE settlements SET log_index = 99", "settlements", "log index"},
    {"UPDATE settlements SET log_index = 1", "settlements", "never go back"},
    /* tree and checkpoint */
    {"UPDATE tree SET hash = zeroblob(32) WHERE level = 0 AND idx = 5", "tree",
     "node 5 of level 0"},
    {"DELETE FROM tree WHERE level = 0 AND idx = 5", "tree", "node 5 of level 0"},
    {"INSERT INTO tree VALUES(0, 1000, zeroblob(32))", "tree", "leaves"},
    {"UPDATE checkpoint SET tree_size = tree_size - 1", "checkpoint", "re-derived"},
    {"UPDATE checkpoint SET tree_size = 1000", "checkpoint", "leaves"},
    {"UPDATE checkpoint SET note = substr(note, 1, length(note) - 6) || 'AAAA=' || char(10)",
     "checkpoint", "not signed"},
    {"DELETE FROM checkpoint", "checkpoint", "missing"},
    {"UPDATE accounts SET roles = 34 WHERE number = 4", "accounts", "roles"},
    /* jobs, orders, fills */
    {"UPDATE jobs SET budget = budget * 2", "jobs", "budget"},
    {"UPDATE jobs SET manifest = zeroblob(32)", "jobs", "manifest"},
    {"UPDATE jobs SET name = 'another'", "jobs", "name"},
    {"UPDATE accounts SET name = 'another' WHERE number = 3", "accounts", "name is the one in"},
    {"UPDATE accounts SET name = 'another' WHERE number = 4", "accounts", "invitation's"},
    {"UPDATE jobs SET name = name || char(0)", "jobs", "range"},
    {"UPDATE jobs SET owner = (SELECT key FROM accounts WHERE number = 4)", "jobs", "signed"},
    {"UPDATE asks SET price = price - 1", "asks", "price"},
    {"UPDATE asks SET slots = 99", "asks", "slots"},
    {"UPDATE bids SET price = 99000000000", "bids", "price band"},
    {"UPDATE bids SET width = 2", "bids", "width"},
    {"UPDATE fills SET price = price + 1", "fills", "maker's price"},
    {"UPDATE fills SET slots = 3", "fills", "slots"},
    {"UPDATE fills SET ask = zeroblob(16)", "fills", "ask"},
    {"UPDATE fills SET provider = consumer", "fills", "provider"},
    {"UPDATE fills SET instrument = 'cpu.x86_64.avx512'", "fills", "instrument"},
    /* results */
    {"UPDATE results SET hash = zeroblob(32) WHERE idx = 2", "results", "hash"},
    {"UPDATE results SET bytes = x'00' WHERE idx = 2", "results", "bytes"},
    {"UPDATE results SET position = 9 WHERE idx = 2", "results", "batch"},
    {"UPDATE results SET attempt = 7 WHERE idx = 2", "results", "attempt"},
    {"UPDATE results SET outcome = 1 WHERE idx = 2", "results", "outcome"},
    {"UPDATE results SET provider = consumer WHERE idx = 2", "results", "provider"},
    {"UPDATE results SET charge = charge + 1 WHERE idx = 2", "results", "floor"},
    {"UPDATE results SET paid_ns = paid_ns * 2 WHERE idx = 2", "results", "claimed"},
    {"UPDATE results SET paid_ns = -1 WHERE idx = 2", "results", "negative"},
    {"UPDATE results SET status = 3 WHERE idx = 2", "results", "not paid"},
    {"UPDATE results SET status = 0 WHERE idx = 1 AND attempt = 1", "results",
     "outcome ok is accepted"},
    {"UPDATE results SET status = 1 WHERE idx = 2", "results", "outcome ok fails only"},
    {"UPDATE results SET lease = 3 WHERE idx = 2", "results", "lease"},
    {"UPDATE results SET log_index = 'x' WHERE 0", "", ""}, /* nothing planted: nothing found */
    {"UPDATE batches SET signature = zeroblob(64)", "batches", "sent"},
    {"UPDATE settlements SET accepted = 2, failed = 1", "settlements", "accepted"},
    {"UPDATE settlements SET cancelled = 1", "settlements", "all its subtasks"},
    {"UPDATE settlements SET charged = charged - 1", "settlements", "payments"},
    {"UPDATE settlements SET released = released + 1", "settlements", "released"},
    {"UPDATE outcomes SET entry = (SELECT entry FROM results WHERE idx = 1 AND attempt = 1) WHERE "
     "idx = 1",
     "outcomes", "decided"},
    {"DELETE FROM outcomes WHERE idx = 0", "outcomes", "decided"},
    /* journal */
    {"UPDATE journal SET bytes = CAST(substr(bytes, 1, length(bytes) - 1) || x'7f' AS BLOB) WHERE "
     "idx = 3",
     "journal", "hash"},
    {"DELETE FROM journal WHERE idx = 5", "journal", "missing"},
    {"UPDATE journal_base SET next_command = 99", "journal_base", "first command"},
    {"UPDATE journal_base SET chain = x'00'", "journal_base", "follows another entry"},
    {"UPDATE journal_base SET state = x'00'", "journal_base", "follows another entry"},
    {"UPDATE journal_base SET epoch = 0", "journal_base", "epoch"},
    {"UPDATE journal_base SET epoch = -1", "journal_base", "epoch"},
    {"UPDATE journal_base SET epoch = 9223372036854775807", "journal_base", "epoch"},
    {"UPDATE journal SET chain = zeroblob(32) WHERE idx = 2", "journal", "hash"},
};
enum { PLANTED = sizeof planted / sizeof planted[0] };

static void assert_named(const struct audit_report *report, const struct planted *wrong)
{
    if (wrong->table[0] == '\0') {
        ck_assert_int_eq(report->verdict, AUDIT_OK);
        return;
    }
    ck_assert_msg(report->verdict == AUDIT_FINDING, "not found: %s (%s)", wrong->sql, report->what);
    ck_assert_msg(strcmp(report->table, wrong->table) == 0 &&
                      strstr(report->what, wrong->words) != NULL,
                  "%s: named %s %lu: %s", wrong->sql, report->table, (unsigned long)report->entry,
                  report->what);
}

START_TEST(a_planted_wrong_is_named)
{
    struct small_market market;
    struct audit_report report;
    small_market_create(&market, NULL, NULL);
    small_market_sql(&market, planted[_i].sql);
    audit_run(market.folder, &report);
    assert_named(&report, &planted[_i]);
    small_market_destroy(&market);
}
END_TEST

/* Wrongs of a lying broker: bent before they were stored, so that leaf, tree and checkpoint
 * agree with them. */
struct lie {
    enum ledger_kind kind;
    uint32_t index;
    const char *field;
    int64_t change;
    const char *table, *words;
};

static const struct lie lies[] = {
    {LEDGER_FILL, 0, "price", 1, "fills", "maker's price"},
    {LEDGER_RESULT, 2, "charge", 1, "results", "floor"},
    {LEDGER_RESULT, 2, "paid", 100000000, "results", "claimed"},
    {LEDGER_RESULT, 1, "status", -1, "results", "outcome ok is accepted"},
    {LEDGER_CAPTURE, 2, "amount", -1, "transfers", "charge less the fee"},
    {LEDGER_FEE, 2, "amount", -1, "transfers", "fee_ppm"},
    {LEDGER_CAPTURE, 2, "credit", -1, "transfers", "result's signer"},
    {LEDGER_TRANSFER, 0, "amount", 1, "transfers", "signed"},
    {LEDGER_JOB, 0, "amount", 1, "jobs", "budget"},
    {LEDGER_ASK, 0, "price", -1, "asks", "price"},
    {LEDGER_ACCOUNT, 0, "roles", 1, "accounts", "roles"},
    {LEDGER_SETTLED, 0, "accepted", -1, "settlements", "accepted"},
    {LEDGER_CAPTURE, 1, "drop", 0, "transfers", "not posted"},
    {LEDGER_FEE, 2, "drop", 0, "transfers", "not posted"},
};
enum { LIES = sizeof lies / sizeof lies[0] };

static bool tell(void *context, uint64_t number, struct ledger_record *record)
{
    const struct lie *lie = context;
    (void)number;
    if (record->kind != lie->kind || record->index != lie->index) {
        return true;
    }
    if (strcmp(lie->field, "drop") == 0) {
        return false;
    }
    if (strcmp(lie->field, "price") == 0) {
        record->price_micro += lie->change;
    } else if (strcmp(lie->field, "charge") == 0) {
        record->charge_micro += lie->change;
    } else if (strcmp(lie->field, "paid") == 0) {
        record->paid_ns += lie->change;
    } else if (strcmp(lie->field, "status") == 0) {
        record->status = ATTEMPT_ACCEPTED;
    } else if (strcmp(lie->field, "amount") == 0) {
        record->amount_micro += lie->change;
    } else if (strcmp(lie->field, "credit") == 0) {
        record->credit = (uint32_t)(record->credit + lie->change);
    } else if (strcmp(lie->field, "roles") == 0) {
        record->roles ^= (uint32_t)lie->change;
    } else {
        record->accepted = (uint32_t)(record->accepted + lie->change);
    }
    return true;
}

START_TEST(a_lying_broker_is_caught)
{
    struct small_market market;
    struct audit_report report;
    struct lie lie = lies[_i];
    small_market_create(&market, tell, &lie);
    audit_run(market.folder, &report);
    ck_assert_msg(report.verdict == AUDIT_FINDING, "lie %d not found (%s)", _i, report.what);
    ck_assert_msg(strcmp(report.table, lie.table) == 0, "lie %d: %s: %s", _i, report.table,
                  report.what);
    ck_assert_msg(strstr(report.what, lie.words) != NULL, "lie %d: %s: %s", _i, report.table,
                  report.what);
    small_market_destroy(&market);
}
END_TEST

static bool tell_another_subtask(void *context, uint64_t number, struct ledger_record *record)
{
    (void)context;
    (void)number;
    if (record->kind == LEDGER_RESULT && record->index == 2) {
        record->index = 0;
    }
    return true;
}

START_TEST(another_subtask_than_was_signed_is_caught)
{
    struct small_market market;
    struct audit_report report;
    small_market_create(&market, tell_another_subtask, NULL);
    audit_run(market.folder, &report);
    ck_assert_int_eq(report.verdict, AUDIT_FINDING);
    ck_assert_str_eq(report.table, "results");
    ck_assert_ptr_nonnull(strstr(report.what, "subtask"));
    small_market_destroy(&market);
}
END_TEST

/* The second batch repeats subtask 0's result, rightly without a record: here it is recorded,
 * and accepted again. */
struct first_result {
    uint8_t bytes[512];
    uint32_t length;
    struct hash32 hash;
};

static bool tell_duplicate(void *context, uint64_t number, struct ledger_record *record)
{
    struct first_result *first = context;
    (void)number;
    if (record->kind == LEDGER_RESULT && record->index == 0) {
        ck_assert_uint_le(record->result_length, sizeof first->bytes);
        memcpy(first->bytes, record->result, record->result_length);
        first->length = record->result_length;
        first->hash = record->hash;
    }
    if (record->kind == LEDGER_RESULT && record->index == 1 && record->attempt == 2) {
        record->index = 0;
        record->attempt = 1;
        record->position = 0;
        record->result = first->bytes;
        record->result_length = first->length;
        record->hash = first->hash;
    }
    return true;
}

START_TEST(a_subtask_accepted_twice_is_caught)
{
    struct small_market market;
    struct audit_report report;
    struct first_result first = {.length = 0};
    small_market_create(&market, tell_duplicate, &first);
    audit_run(market.folder, &report);
    ck_assert_int_eq(report.verdict, AUDIT_FINDING);
    ck_assert_str_eq(report.table, "results");
    ck_assert_ptr_nonnull(strstr(report.what, "accepted once"));
    small_market_destroy(&market);
}
END_TEST

START_TEST(an_accepted_result_of_a_simulated_device_says_so)
{
    for (int says_so = 0; says_so < 2; says_so++) {
        struct small_market market;
        struct audit_report report;
        small_market_create_on(&market, "sim.lpu.groq.v1", says_so == 1);
        audit_run(market.folder, &report);
        if (says_so == 1) {
            ck_assert_msg(report.verdict == AUDIT_OK, "%s: %s", report.table, report.what);
        } else {
            ck_assert_int_eq(report.verdict, AUDIT_FINDING);
            ck_assert_str_eq(report.table, "results");
            ck_assert_ptr_nonnull(strstr(report.what, "its device is simulated"));
        }
        small_market_destroy(&market);
    }
}
END_TEST

static bool tell_later_ask(void *context, uint64_t number, struct ledger_record *record)
{
    const struct small_market *market = context;
    (void)number;
    if (record->kind == LEDGER_FILL) {
        record->order = market->other_ask;
        record->device = market->other_device;
    }
    return true;
}

START_TEST(a_fill_past_the_better_ask_is_caught)
{
    struct small_market market;
    struct audit_report report;
    small_market_create(&market, tell_later_ask, &market);
    audit_run(market.folder, &report);
    ck_assert_int_eq(report.verdict, AUDIT_FINDING);
    ck_assert_str_eq(report.table, "fills");
    ck_assert_ptr_nonnull(strstr(report.what, "best ask"));
    small_market_destroy(&market);
}
END_TEST

START_TEST(head_and_journal_must_agree)
{
    struct small_market market;
    struct audit_report report;
    small_market_create(&market, NULL, NULL);
    FILE *file = fopen(market.head, "r+b");
    ck_assert_ptr_nonnull(file);
    uint8_t junk[2048] = {1};
    ck_assert_uint_eq(fwrite(junk, 1, sizeof junk, file), sizeof junk);
    fclose(file);
    audit_run(market.folder, &report);
    ck_assert_int_eq(report.verdict, AUDIT_FINDING);
    ck_assert_str_eq(report.table, "HEAD");
    ck_assert_int_eq(unlink(market.head), 0);
    audit_run(market.folder, &report);
    ck_assert_int_eq(report.verdict, AUDIT_OK);
    ck_assert_str_eq(report.head, "missing");
    small_market_destroy(&market);
}
END_TEST

/* Writes junk over one slot of HEAD. */
static void damage_slot(const struct small_market *market, long slot)
{
    FILE *file = fopen(market->head, "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, slot * HEAD_SLOT_BYTES + 100, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite("junk", 1, 4, file), 4);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(a_damaged_copy_of_a_mark_is_said_and_is_no_finding)
{
    struct small_market market;
    struct audit_report report;
    struct head head;
    struct head_file *file;
    struct problem problem;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(head_open(market.head, &file, &head, &problem), HEAD_OK);
    for (int i = 0; i < 2; i++) { /* every slot has a mark now */
        ck_assert_int_eq(head_write(file, &head), HEAD_OK);
    }
    head_close(&file);
    audit_run(market.folder, &report);
    ck_assert_int_eq(report.verdict, AUDIT_OK);
    ck_assert_uint_eq(report.head_damaged, 0);
    for (long slot = 0; slot < 3; slot++) {
        damage_slot(&market, slot);
        audit_run(market.folder, &report);
        ck_assert_msg(report.verdict == AUDIT_OK, "%s: %s", report.table, report.what);
        ck_assert_str_eq(report.head, "ok");
        ck_assert_int_eq((long)report.head_damaged, slot + 1);
    }
    damage_slot(&market, 3); /* no mark is whole: that is a finding, and none "was used" */
    audit_run(market.folder, &report);
    ck_assert_int_eq(report.verdict, AUDIT_FINDING);
    ck_assert_str_eq(report.table, "HEAD");
    ck_assert_uint_eq(report.head_damaged, 0);
    small_market_destroy(&market);
}
END_TEST

START_TEST(a_head_ahead_of_the_journal_is_found)
{
    struct small_market market;
    struct audit_report report;
    struct head head;
    struct head_file *file;
    struct problem problem;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(head_open(market.head, &file, &head, &problem), HEAD_OK);
    head.index++;
    ck_assert_int_eq(head_write(file, &head), HEAD_OK);
    audit_run(market.folder, &report);
    ck_assert_int_eq(report.verdict, AUDIT_FINDING);
    ck_assert_str_eq(report.table, "HEAD");
    head.index--;
    head.tree_size++;
    ck_assert_int_eq(head_write(file, &head), HEAD_OK);
    head_close(&file);
    audit_run(market.folder, &report);
    ck_assert_int_eq(report.verdict, AUDIT_FINDING);
    ck_assert_str_eq(report.table, "HEAD");
    small_market_destroy(&market);
}
END_TEST

static bool see_act(void *context, const struct audit_act *act)
{
    (void)context;
    (void)act;
    return true;
}

/* The tables of a first start that did not end: no row, and no HEAD. */
static void empty_ledger(struct small_market *market)
{
    char path[PATH_MAX];
    small_market_sql(
        market, "DELETE FROM journal; DELETE FROM accounts; DELETE FROM transfers; DELETE FROM "
                "jobs; DELETE FROM asks; DELETE FROM bids; DELETE FROM cancels; DELETE FROM "
                "fills; DELETE FROM results; DELETE FROM settlements; DELETE FROM flags; "
                "DELETE FROM held; DELETE FROM epochs; DELETE FROM balances; DELETE FROM "
                "outcomes; DELETE FROM batches; DELETE FROM tree; DELETE FROM checkpoint; "
                "UPDATE journal_base SET idx = 0, next_command = 1, epoch = "
                "0, chain = zeroblob(32), state = zeroblob(32)");
    (void)snprintf(path, sizeof path, "%s/HEAD", market->folder);
    ck_assert_int_eq(unlink(path), 0);
}

START_TEST(what_is_no_market_has_no_verdict)
{
    struct audit_report report;
    audit_run("/nonexistent", &report);
    ck_assert_int_eq(report.verdict, AUDIT_UNREADABLE);
    ck_assert_ptr_nonnull(strstr(report.what, "there is no journal"));
    struct small_market market;
    small_market_create(&market, NULL, NULL);
    small_market_sql(&market, "PRAGMA user_version = 7");
    audit_run(market.folder, &report);
    ck_assert_int_eq(report.verdict, AUDIT_UNREADABLE);
    ck_assert_ptr_nonnull(strstr(report.what, "version 7"));
    struct audit_report acts;
    small_market_sql(&market, "PRAGMA user_version = 3");
    empty_ledger(&market);
    audit_run(market.folder, &report);
    ck_assert_int_eq(report.verdict, AUDIT_UNREADABLE);
    ck_assert_ptr_nonnull(strstr(report.what, "there is no journal"));
    audit_acts_run(market.folder, 1, see_act, NULL, &acts);
    ck_assert_int_eq(acts.verdict, AUDIT_UNREADABLE);
    small_market_destroy(&market);
    small_market_create(&market, NULL, NULL);
    small_market_sql(&market, "DROP TABLE fills");
    audit_run(market.folder, &report);
    ck_assert_int_eq(report.verdict, AUDIT_UNREADABLE);
    small_market_destroy(&market);
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("audit");
    TCase *tests = tcase_create("audit");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_true_market_is_ok);
    tcase_add_loop_test(tests, a_planted_wrong_is_named, 0, PLANTED);
    tcase_add_loop_test(tests, a_lying_broker_is_caught, 0, LIES);
    tcase_add_test(tests, another_subtask_than_was_signed_is_caught);
    tcase_add_test(tests, a_subtask_accepted_twice_is_caught);
    tcase_add_test(tests, a_fill_past_the_better_ask_is_caught);
    tcase_add_test(tests, an_accepted_result_of_a_simulated_device_says_so);
    tcase_add_test(tests, head_and_journal_must_agree);
    tcase_add_test(tests, a_damaged_copy_of_a_mark_is_said_and_is_no_finding);
    tcase_add_test(tests, a_head_ahead_of_the_journal_is_found);
    tcase_add_test(tests, what_is_no_market_has_no_verdict);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
