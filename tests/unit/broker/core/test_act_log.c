/* The audit log over a small market's ledger: written by broker/core/act_log.h, read by the audit,
 * which shares no code with it; every way of tampering is named. */
#include "broker/core/act_log.h"

#include "audit/audit.h"
#include "broker/core/translate.h"
#include "exchange/exchange.h"
#include "tests/support/scarce_vfs.h"
#include "tests/support/small_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 6 };

static struct small_market market;
static struct identity *key;
static sqlite3 *database;
static struct act_log *acts;
static struct problem problem;
static int64_t log_time_ns; /* of the last record */

static void sql(const char *text)
{
    char *error = NULL;
    ck_assert_msg(sqlite3_exec(database, text, NULL, NULL, &error) == SQLITE_OK, "%s: %s", text,
                  error);
}

static void write_mark(void)
{
    struct head_file *file;
    struct head head;
    ck_assert_int_eq(head_open(market.head, &file, &head, &problem), HEAD_OK);
    head.acts = *act_log_mark(acts);
    ck_assert_int_eq(head_write(file, &head), HEAD_OK);
    head_close(&file);
}

static void append(enum act_kind kind, uint32_t account, const char *text)
{
    struct act act = {
        .kind = kind, .account = account, .log_time_ns = ++log_time_ns, .log_index = 3};
    if (kind == ACT_START || kind == ACT_ADOPT) {
        act.target = *identity_key(key);
        act.log_index = 1000; /* mints before it have no record */
    }
    (void)snprintf(act.text, sizeof act.text, "%s", text);
    ck_assert_int_eq(act_log_append(acts, &act), ACT_LOG_OK);
}

static bool open_acts(void)
{
    struct head head;
    ck_assert_int_eq(head_read(market.head, &head, &problem), HEAD_OK);
    return act_log_open(database, &head.acts, key, &market.cluster, &acts, &problem);
}

static void begin(void)
{
    const uint8_t seed[32] = {9};
    log_time_ns = 1700000000000000000;
    small_market_create(&market, NULL, NULL);
    key = identity_create(seed);
    ck_assert_int_eq(sqlite3_open(market.database, &database), SQLITE_OK);
    ck_assert_msg(open_acts(), "%s", problem.text);
    sql("BEGIN");
    append(ACT_START, EXCHANGE_NO_ACCOUNT, "bourse-broker 1");
    append(ACT_MINT, 3, "for \xc3\xa4pples");
    append(ACT_FREEZE, 3, "");
    append(ACT_HALT, 3, "lunch");
    append(ACT_REFUSAL, 4, "");
    append(ACT_REFUSAL, 4, "");
    sql("COMMIT");
    act_log_committed(acts);
    write_mark();
}

static void end(void)
{
    act_log_close(&acts);
    sqlite3_close(database);
    identity_destroy(&key);
    small_market_destroy(&market);
}

struct seen {
    size_t count;
    struct audit_act last;
};

static bool see(void *context, const struct audit_act *act)
{
    struct seen *seen = context;
    seen->count++;
    seen->last = *act;
    return true;
}

static struct audit_report audit(uint64_t since, struct seen *ret_seen)
{
    struct audit_report report;
    *ret_seen = (struct seen){0};
    audit_acts_run(market.folder, since, see, ret_seen, &report);
    return report;
}

static void expect_finding(uint64_t entry, const char *words)
{
    struct seen seen;
    struct audit_report report = audit(1, &seen);
    ck_assert_msg(report.verdict == AUDIT_FINDING && strstr(report.what, words) != NULL,
                  "expected \"%s\" of record %llu, found %d: %s of %llu", words,
                  (unsigned long long)entry, (int)report.verdict, report.what,
                  (unsigned long long)report.entry);
    ck_assert_uint_eq(report.entry, entry);
}

START_TEST(what_was_written_is_read_back)
{
    struct seen seen;
    struct audit_report report = audit(1, &seen);
    ck_assert_msg(report.verdict == AUDIT_OK, "%s", report.what);
    ck_assert_uint_eq(report.acts, RECORDS);
    ck_assert_uint_eq(seen.count, RECORDS);
    ck_assert_str_eq(report.head, "ok");
    ck_assert_uint_eq(report.signatures, 1);
    report = audit(4, &seen);
    ck_assert_uint_eq(seen.count, 3);
    ck_assert_uint_eq(seen.last.number, RECORDS);
    ck_assert_uint_eq(seen.last.account, 4);
    ck_assert_int_eq(seen.last.log_time_ns, log_time_ns);
}
END_TEST

START_TEST(a_changed_record_is_named)
{
    sql("UPDATE acts SET bytes = CAST(substr(bytes, 1, length(bytes) - 1) || 'k' AS BLOB) "
        "WHERE number = 4");
    expect_finding(4, "was changed");
}
END_TEST

START_TEST(a_removed_record_is_named)
{
    sql("DELETE FROM acts WHERE number = 3");
    expect_finding(3, "missing");
}
END_TEST

START_TEST(a_removed_record_is_found_when_the_rest_moves_up)
{
    sql("DELETE FROM acts WHERE number = 3");
    sql("UPDATE acts SET number = -number WHERE number > 3");
    sql("UPDATE acts SET number = -number - 1 WHERE number < 0");
    expect_finding(3, "was changed");
}
END_TEST

START_TEST(two_records_that_changed_places_are_named)
{
    sql("UPDATE acts SET number = -1 WHERE number = 2");
    sql("UPDATE acts SET number = 2 WHERE number = 3");
    sql("UPDATE acts SET number = 3 WHERE number = -1");
    expect_finding(2, "was changed");
}
END_TEST

START_TEST(a_cut_end_is_found_by_the_mark_outside)
{
    sql("DELETE FROM acts WHERE number > 4");
    expect_finding(5, "HEAD has seen record 6");
    act_log_close(&acts);
    ck_assert(!open_acts());
    ck_assert_ptr_nonnull(strstr(problem.text, "record 6"));
}
END_TEST

START_TEST(a_table_that_is_gone_is_found)
{
    act_log_close(&acts);
    sql("DROP TABLE acts");
    expect_finding(0, "the table is missing");
    ck_assert(!open_acts());
}
END_TEST

START_TEST(an_end_written_anew_is_found_by_the_mark_outside)
{
    /* Chained as it must be, by somebody who does not have HEAD. */
    struct act_log_mark before = *act_log_mark(acts);
    sql("DELETE FROM acts WHERE number = 6");
    act_log_close(&acts);
    ck_assert(act_log_open(database, NULL, key, &market.cluster, &acts, &problem));
    sql("BEGIN");
    append(ACT_REFUSAL, 3, "");
    sql("COMMIT");
    act_log_committed(acts);
    ck_assert_uint_eq(act_log_mark(acts)->number, before.number);
    expect_finding(6, "not the one that HEAD has seen");
    act_log_close(&acts);
    ck_assert(!open_acts());
    ck_assert_ptr_nonnull(strstr(problem.text, "differs from HEAD"));
}
END_TEST

START_TEST(a_mark_by_another_key_is_found)
{
    const uint8_t seed[32] = {8};
    act_log_close(&acts);
    identity_destroy(&key);
    key = identity_create(seed);
    ck_assert(!open_acts());
    ck_assert_ptr_nonnull(strstr(problem.text, "audit.key"));
    ck_assert(act_log_open(database, NULL, key, &market.cluster, &acts, &problem));
    write_mark();
    expect_finding(0, "not signed by the key that its starts name");
    sql("BEGIN");
    append(ACT_START, EXCHANGE_NO_ACCOUNT, "");
    sql("COMMIT");
    expect_finding(RECORDS + 1, "another audit key");
}
END_TEST

START_TEST(only_an_adoption_may_bring_another_key)
{
    const uint8_t seed[32] = {8};
    act_log_close(&acts);
    identity_destroy(&key);
    key = identity_create(seed);
    ck_assert(act_log_open(database, NULL, key, &market.cluster, &acts, &problem));
    sql("BEGIN");
    append(ACT_ADOPT, EXCHANGE_NO_ACCOUNT, "");
    append(ACT_START, EXCHANGE_NO_ACCOUNT, "");
    sql("COMMIT");
    act_log_committed(acts);
    write_mark();
    struct seen seen;
    ck_assert_int_eq(audit(1, &seen).verdict, AUDIT_OK);
    act_log_close(&acts);
    ck_assert_msg(open_acts(), "%s", problem.text);
}
END_TEST

static enum act_log_reach hold_against(const struct act_log_mark *mark,
                                       struct act_log_mark *ret_mark, uint64_t *ret_lost)
{
    problem.text[0] = '\0';
    return act_log_hold_against(database, mark, &market.cluster, ret_mark, ret_lost, &problem);
}

/* A restore checks a log that came back beside a mark that did not; audit.key may be elsewhere. */
START_TEST(a_log_is_held_against_a_mark_that_was_kept_elsewhere)
{
    const struct act_log_mark before = *act_log_mark(acts);
    struct act_log_mark left;
    uint64_t lost = 99;
    sql("BEGIN");
    append(ACT_STOP, EXCHANGE_NO_ACCOUNT, "");
    append(ACT_START, EXCHANGE_NO_ACCOUNT, "");
    sql("COMMIT");
    act_log_committed(acts);
    const struct act_log_mark after = *act_log_mark(acts);
    ck_assert_int_eq(hold_against(&before, &left, &lost), ACT_LOG_REACHED);
    ck_assert_mem_eq(&left, &before, sizeof left);
    ck_assert_uint_eq(lost, 0);
    ck_assert_int_eq(hold_against(&after, &left, &lost), ACT_LOG_REACHED);
    ck_assert_mem_eq(&left, &after, sizeof left);

    struct act_log_mark forged = before;
    forged.chain.bytes[3] ^= 1;
    ck_assert_int_eq(hold_against(&forged, &left, &lost), ACT_LOG_OTHER);
    ck_assert_ptr_nonnull(strstr(problem.text, "record 6 of the audit log is not the one"));
    forged = before;
    forged.signature.bytes[3] ^= 1;
    ck_assert_int_eq(hold_against(&forged, &left, &lost), ACT_LOG_OTHER);
    ck_assert_ptr_nonnull(strstr(problem.text, "not signed"));

    sql("DELETE FROM acts WHERE number > 5");
    ck_assert_int_eq(hold_against(&after, &left, &lost), ACT_LOG_SHORT);
    ck_assert_uint_eq(lost, RECORDS + 2 - 5);
    ck_assert_uint_eq(left.number, 0);
    forged = after;
    forged.number += 1000; /* a loss that is not signed is none */
    ck_assert_int_eq(hold_against(&forged, &left, &lost), ACT_LOG_OTHER);
    sql("DELETE FROM acts WHERE number = 3");
    forged = before;
    forged.number = 3;
    ck_assert_int_eq(hold_against(&forged, &left, &lost), ACT_LOG_OTHER);
    act_log_close(&acts);
    sql("DROP TABLE acts"); /* of a time before there was one */
    ck_assert_int_eq(hold_against(&after, &left, &lost), ACT_LOG_SHORT);
    ck_assert_uint_eq(lost, RECORDS + 2);
    const struct act_log_mark none = {.number = 0};
    ck_assert_int_eq(hold_against(&none, &left, &lost), ACT_LOG_REACHED);
}
END_TEST

START_TEST(a_mark_of_before_an_adoption_is_right_and_is_not_kept)
{
    const uint8_t seed[32] = {8};
    const struct act_log_mark before = *act_log_mark(acts);
    struct act_log_mark left;
    uint64_t lost;
    act_log_close(&acts);
    identity_destroy(&key);
    key = identity_create(seed);
    ck_assert(act_log_open(database, NULL, key, &market.cluster, &acts, &problem));
    sql("BEGIN");
    append(ACT_ADOPT, EXCHANGE_NO_ACCOUNT, "");
    sql("COMMIT");
    act_log_committed(acts);
    ck_assert_int_eq(hold_against(&before, &left, &lost), ACT_LOG_REACHED);
    ck_assert_uint_eq(left.number,
                      0); /* the key of today did not sign it: a start would refuse it */
}
END_TEST

START_TEST(a_mint_or_a_freeze_without_a_record_is_found)
{
    /* The log begins before the market's first mint, and has no record of it. */
    act_log_close(&acts);
    sql("DROP TABLE acts");
    ck_assert(act_log_open(database, NULL, key, &market.cluster, &acts, &problem));
    struct act first = {.kind = ACT_START, .log_index = 1, .target = *identity_key(key)};
    sql("BEGIN");
    ck_assert_int_eq(act_log_append(acts, &first), ACT_LOG_OK);
    sql("COMMIT");
    act_log_committed(acts);
    write_mark();
    expect_finding(0, "has no record");
}
END_TEST

static void record(enum act_kind kind, uint64_t log_index)
{
    struct act act = {.kind = kind,
                      .account = EXCHANGE_NO_ACCOUNT,
                      .log_time_ns = ++log_time_ns,
                      .log_index = log_index,
                      .target = *identity_key(key)};
    sql("BEGIN");
    ck_assert_int_eq(act_log_append(acts, &act), ACT_LOG_OK);
    sql("COMMIT");
    act_log_committed(acts);
    write_mark();
}

/* The verdict of the whole audit: "" when it found nothing. */
static const char *whole_audit(void)
{
    static struct audit_report report;
    audit_run(market.folder, &report);
    ck_assert_int_ne(report.verdict, AUDIT_UNREADABLE);
    return report.verdict == AUDIT_OK ? "" : report.what;
}

/* Whoever wrote entries has said that it started, and what limits it brought: the journal shows
 * both. */
START_TEST(a_start_or_limits_that_the_journal_shows_and_the_log_does_not_are_found)
{
    uint8_t payload[TRANSLATE_LIMITS_BYTES];
    struct exchange_set_limits set = {.rules = EXCHANGE_RULES, .limits = exchange_limits_default()};
    const int64_t now = INT64_C(1800000000000000000);
    const struct entry_command tick = {
        .log_time_ns = now, .account = UINT32_MAX, .kind = ENTRY_TICK};
    const struct entry_command limits = {.log_time_ns = now,
                                         .account = UINT32_MAX,
                                         .kind = ENTRY_LIMITS,
                                         .payload = payload,
                                         .payload_length = sizeof payload};
    translate_limits(&set, payload);
    act_log_close(&acts);
    sql("DROP TABLE acts"); /* a log that begins in the middle of the journal */
    ck_assert(act_log_open(database, NULL, key, &market.cluster, &acts, &problem));
    uint64_t last = small_market_go_on(&market, &tick, 1);
    record(ACT_START, last);
    ck_assert_str_eq(whole_audit(), "");
    last = small_market_go_on(&market, &tick, 1);
    ck_assert_str_eq(whole_audit(), ""); /* that start */
    uint64_t next = small_market_go_on(&market, &tick, 1);
    ck_assert_msg(strstr(whole_audit(), "another broker began to write") != NULL, "%s",
                  whole_audit());
    record(ACT_STOP, last);
    ck_assert_str_ne(whole_audit(), "");
    record(ACT_START, last);
    ck_assert_str_eq(whole_audit(), "");

    last = small_market_go_on(&market, &limits, 1); /* the first change nothing */
    record(ACT_START, next);
    ck_assert_str_eq(whole_audit(), "");
    next = small_market_go_on(&market, &limits, 1);
    record(ACT_START, last);
    ck_assert_msg(strstr(whole_audit(), "the limits changed") != NULL, "%s", whole_audit());
    record(ACT_LIMITS, last);
    ck_assert_str_eq(whole_audit(), "");
    struct seen seen;
    ck_assert_int_eq(audit(1, &seen).verdict,
                     AUDIT_OK); /* the log alone is not held against the journal */
}
END_TEST

START_TEST(what_was_rolled_back_never_was)
{
    struct act_log_mark before = *act_log_mark(acts);
    sql("BEGIN");
    append(ACT_STOP, EXCHANGE_NO_ACCOUNT, "");
    sql("ROLLBACK");
    act_log_rolled_back(acts);
    ck_assert_mem_eq(&before, act_log_mark(acts), sizeof before);
    sql("BEGIN");
    append(ACT_REFUSAL, 3, "");
    sql("COMMIT");
    act_log_committed(acts);
    ck_assert_uint_eq(act_log_mark(acts)->number, RECORDS + 1);
    /* Committed, and killed before HEAD was written: ahead of it is no finding, and it goes on. */
    struct seen seen;
    ck_assert_int_eq(audit(1, &seen).verdict, AUDIT_OK);
    ck_assert_uint_eq(seen.count, RECORDS + 1);
    act_log_close(&acts);
    ck_assert_msg(open_acts(), "%s", problem.text);
    ck_assert_uint_eq(act_log_mark(acts)->number, RECORDS + 1);
    ck_assert_int_eq(act_log_time_ns(acts), log_time_ns);
}
END_TEST

/* The index of a log that grows past its first region needs room of its own. */
START_TEST(a_full_disk_is_told_from_one_that_fails)
{
    enum { PAGES = 4000, APPENDS_MAX = 400 }; /* the first region is of 4062 pages */
    struct act act = {.kind = ACT_REFUSAL, .log_time_ns = log_time_ns, .log_index = 3};
    char fill[128];
    enum act_log_status status = ACT_LOG_OK;
    act_log_close(&acts);
    sqlite3_close(database);
    scarce_register();
    ck_assert_int_eq(sqlite3_open(market.database, &database), SQLITE_OK);
    (void)sqlite3_extended_result_codes(database, 1);
    (void)sqlite3_wal_autocheckpoint(database, 0);
    ck_assert_msg(open_acts(), "%s", problem.text);
    (void)snprintf(fill, sizeof fill,
                   "CREATE TABLE fill(x); INSERT INTO fill SELECT zeroblob(%d * page_size)"
                   " FROM pragma_page_size",
                   PAGES);
    sql(fill);
    scarce.index_grow = SQLITE_IOERR_SHMSIZE;
    for (int i = 0; status == ACT_LOG_OK && i < APPENDS_MAX; i++) {
        status = act_log_append(acts, &act);
    }
    ck_assert_int_eq(status, ACT_LOG_FULL);
    scarce.index_grow = 0;
    ck_assert_int_eq(act_log_append(acts, &act), ACT_LOG_OK);
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("act_log");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, what_was_written_is_read_back);
    tcase_add_test(tests, a_changed_record_is_named);
    tcase_add_test(tests, a_removed_record_is_named);
    tcase_add_test(tests, a_removed_record_is_found_when_the_rest_moves_up);
    tcase_add_test(tests, two_records_that_changed_places_are_named);
    tcase_add_test(tests, a_cut_end_is_found_by_the_mark_outside);
    tcase_add_test(tests, a_table_that_is_gone_is_found);
    tcase_add_test(tests, an_end_written_anew_is_found_by_the_mark_outside);
    tcase_add_test(tests, a_mark_by_another_key_is_found);
    tcase_add_test(tests, only_an_adoption_may_bring_another_key);
    tcase_add_test(tests, a_log_is_held_against_a_mark_that_was_kept_elsewhere);
    tcase_add_test(tests, a_mark_of_before_an_adoption_is_right_and_is_not_kept);
    tcase_add_test(tests, a_mint_or_a_freeze_without_a_record_is_found);
    tcase_add_test(tests, a_start_or_limits_that_the_journal_shows_and_the_log_does_not_are_found);
    tcase_add_test(tests, what_was_rolled_back_never_was);
    tcase_add_test(tests, a_full_disk_is_told_from_one_that_fails);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
