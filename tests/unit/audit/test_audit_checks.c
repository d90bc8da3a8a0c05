/* The audit against a market whose results were checked: every way to cheat with dice, seeds and
 * verdicts is named. */
#include "audit/audit.h"
#include "protocol/message.h"
#include "tests/support/checked_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static void audit(struct checked_market *told, struct audit_report *ret_report)
{
    checked_market_create(told);
    audit_run(told->market.folder, ret_report);
    checked_market_destroy(told);
}

START_TEST(a_true_market_with_checks_is_ok)
{
    struct checked_market told = {.lie = LIE_NONE};
    struct audit_report report;
    audit(&told, &report);
    ck_assert_msg(report.verdict == AUDIT_OK, "%s %lu: %s (%s, %s)", report.table,
                  (unsigned long)report.entry, report.what, report.expected, report.found);
    ck_assert_uint_eq(report.epochs, 2);
    ck_assert_uint_eq(report.dice, 5);
    ck_assert_uint_eq(report.checked, 3);
}
END_TEST

static const struct {
    enum checked_lie lie;
    const char *table, *words;
} lies[] = {
    {LIE_DICE, "journal", "are not those of its epoch"},
    {LIE_SECRET, "epochs", "the epoch before committed to"},
    {LIE_SEED, "results", "the seed of the result's check was drawn from the dice"},
    {LIE_OWN_CHECK, "results", "a referee of another owner checked the result"},
    {LIE_NO_REFEREE, "results", "a check is run by a referee"},
};
enum { LIES = sizeof lies / sizeof lies[0] };

static void assert_found(const struct audit_report *report, const char *table, const char *words)
{
    ck_assert_msg(report->verdict == AUDIT_FINDING, "not found: %s (%s)", words, report->what);
    ck_assert_msg(strcmp(report->table, table) == 0 && strstr(report->what, words) != NULL,
                  "%s: named %s %lu: %s", words, report->table, (unsigned long)report->entry,
                  report->what);
    ck_assert_uint_gt(report->entry, 0);
}

START_TEST(a_lie_of_a_member_or_the_broker_is_named)
{
    struct checked_market told = {.lie = lies[_i].lie};
    struct audit_report report;
    audit(&told, &report);
    assert_found(&report, lies[_i].table, lies[_i].words);
}
END_TEST

/* Rows that a lying broker writes: leaf, tree and checkpoint agree with them. */
struct bent {
    const char *what;
    const char *table, *words;
    struct hash32 other; /* hash of the check of subtask 0 */
};

static bool is(const struct bent *bent, const char *what)
{
    return strcmp(bent->what, what) == 0;
}

static bool bend(void *context, uint64_t number, struct ledger_record *record)
{
    struct bent *bent = context;
    (void)number;
    bool is_checked = record->kind == LEDGER_RESULT && record->level == CHECK_CHEAP;
    bool is_refuted = is_checked && record->status == ATTEMPT_REFUTED;
    if (is_checked && record->index == 0) {
        bent->other = record->check;
    }
    if (is(bent, "no result") && is_refuted) {
        return false;
    }
    if (is(bent, "refuted is accepted") && is_refuted) {
        record->status = ATTEMPT_ACCEPTED;
    } else if (is(bent, "accepted is refuted") && is_checked && record->index == 0) {
        record->status = ATTEMPT_REFUTED;
        record->paid_ns = record->charge_micro = 0;
    } else if (is(bent, "another's check") && is_checked && record->index == 1) {
        record->check = bent->other;
    } else if (is(bent, "no such check") && is_checked) {
        record->check.bytes[0] ^= 1;
    } else if (is(bent, "not checked") && is_checked && record->status == ATTEMPT_ACCEPTED &&
               record->index == 0) {
        record->level = CHECK_NONE;
        memset(record->check.bytes, 0, sizeof record->check.bytes);
    } else if (is(bent, "refuted by nobody") && is_refuted) {
        record->level = CHECK_NONE;
        memset(record->check.bytes, 0, sizeof record->check.bytes);
    } else if (is(bent, "level") && is_checked) {
        record->level = 2;
    } else if (is(bent, "check of what is not checked") && record->kind == LEDGER_RESULT &&
               !is_checked && record->index == 0) {
        record->check.bytes[0] = 1;
    } else if (is(bent, "other bytes") && is_checked) {
        record->result_length--;
    } else if (is(bent, "other command") && is_checked && record->index == 0) {
        record->batch_index--;
    } else if (is(bent, "commitment") && record->kind == LEDGER_EPOCH) {
        record->hash.bytes[0] ^= 1;
    } else if (is(bent, "shown too early") && record->kind == LEDGER_EPOCH) {
        record->check.bytes[0] ^= 1;
    } else if (is(bent, "no epoch") && record->kind == LEDGER_EPOCH) {
        return false;
    } else if (is(bent, "held hash") && record->kind == LEDGER_HELD) {
        record->hash.bytes[0] ^= 1;
    } else if (is(bent, "held attempt") && record->kind == LEDGER_HELD) {
        record->attempt++;
    }
    return true;
}

static const struct bent bents[] = {
    {"no result", "held", "was held, and the job ended without a verdict on the result", {{0}}},
    {"refuted is accepted", "results", "the result's status follows from its check", {{0}}},
    {"accepted is refuted", "results", "the result's status follows from its check", {{0}}},
    {"another's check", "results", "the result's check is the check of its subtask", {{0}}},
    {"no such check", "results", "the result's check is an earlier result", {{0}}},
    {"not checked", "settlements", "every accepted check decided a result", {{0}}},
    {"refuted by nobody", "results", "only a check refutes a result", {{0}}},
    {"level", "results", "the result's level is known", {{0}}},
    {"check of what is not checked", "results", "an unchecked result names no check", {{0}}},
    {"other bytes", "results", "the result's bytes are the held result's", {{0}}},
    {"other command", "results", "a result that was not held came with the row's command", {{0}}},
    {"commitment", "epochs", "the epoch's commitment is its command's", {{0}}},
    {"shown too early", "epochs", "the epoch's secret is its command's", {{0}}},
    {"held hash", "held", "the result's hash is the hash of the bytes sent", {{0}}},
    {"held attempt", "held", "the row's attempt is the one in the signed result", {{0}}},
};
enum { BENTS = sizeof bents / sizeof bents[0] };

START_TEST(a_row_that_does_not_follow_is_named)
{
    struct bent bent = bents[_i];
    struct checked_market told = {.lie = LIE_ROW, .bend = bend, .context = &bent};
    struct audit_report report;
    audit(&told, &report);
    assert_found(&report, bent.table, bent.words);
}
END_TEST

START_TEST(since_rules_18_two_of_different_owners_refute)
{
    static const enum checked_lie tales[] = {LIE_NONE, LIE_ALONE, LIE_ONE_OWNER};
    struct checked_market told = {.lie = tales[_i], .of_two = true};
    struct audit_report report;
    audit(&told, &report);
    if (tales[_i] == LIE_NONE) {
        ck_assert_msg(report.verdict == AUDIT_OK, "%s %lu: %s (%s, %s)", report.table,
                      (unsigned long)report.entry, report.what, report.expected, report.found);
        ck_assert_uint_eq(report.checked, 3);
    } else {
        assert_found(&report, "results", "the result's status follows from its check");
    }
}
END_TEST

/* A true story audits ok with its three checks; in a false one a result has another status. */
static void assert_told(const struct audit_report *report, bool is_true)
{
    if (is_true) {
        ck_assert_msg(report->verdict == AUDIT_OK, "%s %lu: %s (%s, %s)", report->table,
                      (unsigned long)report->entry, report->what, report->expected, report->found);
        ck_assert_uint_eq(report->checked, 3);
    } else {
        assert_found(report, "results", "the result's status follows from its check");
    }
}

/* The outputs were stored when the result came: since rules 18 their maker answers for them no
 * more. */
static const struct {
    bool of_two;
    enum checked_lie lie;
    enum checked_loss loss;
    bool is_true;
} losses[] = {
    {true, LIE_NONE, LOSS_PAID, true},     {true, LIE_ALONE, LOSS_PAID, false},
    {true, LIE_NONE, LOSS_REFUTED, false}, {false, LIE_NONE, LOSS_REFUTED, true},
    {false, LIE_NONE, LOSS_PAID, false},   {true, LIE_NONE, LOSS_FACTOR, false},
};
enum { LOSSES = sizeof losses / sizeof losses[0] };

START_TEST(what_the_store_lost_refutes_nobody_since_rules_18)
{
    struct checked_market told = {
        .lie = losses[_i].lie, .of_two = losses[_i].of_two, .loss = losses[_i].loss};
    struct audit_report report;
    audit(&told, &report);
    assert_told(&report, losses[_i].is_true);
}
END_TEST

/* Since rules 19 the broker looks first: the word of a referee alone doubts no result. */
START_TEST(what_the_broker_has_is_not_lost_since_rules_19)
{
    static const struct {
        uint32_t rules;
        bool is_unproved, is_true;
    } tales[] = {{18, true, true}, {19, false, true}, {19, true, false}};
    struct checked_market told = {.of_two = true,
                                  .loss = LOSS_PAID,
                                  .rules = tales[_i].rules,
                                  .is_unproved = tales[_i].is_unproved};
    struct audit_report report;
    audit(&told, &report);
    assert_told(&report, tales[_i].is_true);
}
END_TEST

START_TEST(an_epoch_without_its_row_is_found)
{
    struct bent bent = {.what = "no epoch"};
    struct checked_market told = {.lie = LIE_ROW, .bend = bend, .context = &bent};
    struct audit_report report;
    audit(&told, &report);
    ck_assert_int_eq(report.verdict, AUDIT_FINDING);
    ck_assert_str_eq(report.table, "epochs");
    ck_assert_ptr_nonnull(strstr(report.what, "is missing"));
}
END_TEST

/* Nobody can say any more whether those dice were right: that is no finding, and is counted. */
START_TEST(a_secret_that_was_never_shown_leaves_its_dice_alone)
{
    struct checked_market told = {.lie = LIE_NONE};
    struct audit_report report;
    checked_market_create(&told);
    small_market_sql(&told.market,
                     "UPDATE epochs SET secret = zeroblob(32) WHERE secret <> zeroblob(32)");
    audit_run(told.market.folder, &report);
    ck_assert_int_eq(report.verdict, AUDIT_FINDING); /* but its row was damaged */
    ck_assert_str_eq(report.table, "epochs");
    ck_assert_uint_eq(report.dice, 0);
    ck_assert_uint_eq(report.checked, 3);
    checked_market_destroy(&told);
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("audit of checks");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_true_market_with_checks_is_ok);
    tcase_add_loop_test(tests, a_lie_of_a_member_or_the_broker_is_named, 0, LIES);
    tcase_add_loop_test(tests, a_row_that_does_not_follow_is_named, 0, BENTS);
    tcase_add_loop_test(tests, since_rules_18_two_of_different_owners_refute, 0, 3);
    tcase_add_loop_test(tests, what_the_store_lost_refutes_nobody_since_rules_18, 0, LOSSES);
    tcase_add_loop_test(tests, what_the_broker_has_is_not_lost_since_rules_19, 0, 3);
    tcase_add_test(tests, an_epoch_without_its_row_is_found);
    tcase_add_test(tests, a_secret_that_was_never_shown_leaves_its_dice_alone);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
