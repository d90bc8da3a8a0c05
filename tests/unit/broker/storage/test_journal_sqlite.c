#include "broker/storage/journal_sqlite.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sha256.h"
#include "broker/storage/entry.h"
#include "ledger/store/sqlite.h"
#include "tests/support/small_market.h"
#include "tests/support/suite.h"

/* A journal of its own, in memory: what the engine promises call by call. */
struct bench {
    sqlite3 *database;
    struct journal *journal;
    struct journal_last last;
    uint64_t epoch;
    struct problem problem;
};

static enum journal_status reopen(struct bench *bench, const struct journal_sqlite_start *start)
{
    journal_destroy(&bench->journal);
    return journal_sqlite_open(bench->database, start, &bench->journal, &bench->last,
                               &bench->problem);
}

static void open_bench(struct bench *bench)
{
    struct journal_sqlite_start start = {0};
    struct journal_leader me = {.broker = "test"};
    *bench = (struct bench){0};
    ck_assert_int_eq(sqlite3_open(":memory:", &bench->database), SQLITE_OK);
    ck_assert_int_eq(reopen(bench, &start), JOURNAL_OK);
    ck_assert_uint_eq(bench->last.index, 0);
    ck_assert_uint_eq(bench->last.next_command, 1);
    ck_assert_int_eq(journal_lead(bench->journal, 0, &me, &bench->epoch), JOURNAL_OK);
}

static void close_bench(struct bench *bench)
{
    journal_destroy(&bench->journal);
    ck_assert_int_eq(sqlite3_close(bench->database), SQLITE_OK);
}

static struct journal_entry entry_after(const struct journal_last *last, uint8_t mark,
                                        uint8_t bytes[256])
{
    struct entry_head head = {.count = 2,
                              .index = last->index + 1,
                              .epoch = 1,
                              .previous = last->chain,
                              .first_command = last->next_command};
    struct entry_command commands[2] = {
        {.log_time_ns = 1, .account = UINT32_MAX, .kind = ENTRY_TICK},
        {.log_time_ns = 2,
         .account = UINT32_MAX,
         .kind = ENTRY_TICK,
         .payload = &mark,
         .payload_length = 1},
    };
    size_t length = entry_write(&head, commands, bytes, 256);
    ck_assert_uint_gt(length, 0);
    return (struct journal_entry){.index = head.index, .bytes = bytes, .length = length};
}

static void move_on(struct journal_last *last, const struct journal_entry *entry)
{
    last->index++;
    last->next_command += 2;
    last->chain = sha256_of(entry->bytes, entry->length);
}

static void append(struct bench *bench, uint8_t mark)
{
    uint8_t bytes[256];
    struct journal_entry entry = entry_after(&bench->last, mark, bytes);
    ck_assert_int_eq(journal_append(bench->journal, bench->epoch, &entry, 1), JOURNAL_OK);
    move_on(&bench->last, &entry);
}

START_TEST(what_is_appended_is_read_back)
{
    struct bench bench;
    struct journal_entry entry;
    open_bench(&bench);
    for (uint8_t i = 1; i <= 5; i++) {
        append(&bench, i);
    }
    for (uint64_t index = 1; index <= 5; index++) {
        ck_assert_int_eq(journal_next(bench.journal, index, &entry, 0), JOURNAL_OK);
        ck_assert_uint_eq(entry.index, index);
        ck_assert_uint_eq(entry.bytes[entry.length - 1], index);
    }
    ck_assert_int_eq(journal_next(bench.journal, 6, &entry, 0), JOURNAL_UNAVAILABLE);
    struct journal_last last = bench.last;
    struct journal_sqlite_start start = {.head = &(struct head){.index = 4}};
    ck_assert_int_eq(reopen(&bench, &start), JOURNAL_CORRUPT); /* no chain value given */
    struct head head = {.index = last.index, .chain = last.chain};
    start.head = &head;
    ck_assert_int_eq(reopen(&bench, &start), JOURNAL_OK);
    ck_assert_uint_eq(bench.last.index, 5);
    ck_assert_uint_eq(bench.last.next_command, 11);
    ck_assert(hash32_equal(&bench.last.chain, &last.chain));
    close_bench(&bench);
}
END_TEST

START_TEST(a_damaged_base_is_told_as_that)
{
    static const char *const damages[][2] = {
        {"chain = x'00'", "its row is damaged or missing"},
        {"epoch = -1", "its row is damaged or missing"},
        {"epoch = 9223372036854775807", "its row is damaged or missing"},
        {"epoch = 0", "its epoch is 0, and entry 1 was written under epoch 1"},
    };
    const struct journal_sqlite_start start = {0};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        struct bench bench;
        char update[80];
        open_bench(&bench);
        append(&bench, 1);
        (void)snprintf(update, sizeof update, "UPDATE journal_base SET %s", damages[i][0]);
        ck_assert_int_eq(sqlite3_exec(bench.database, update, NULL, NULL, NULL), SQLITE_OK);
        ck_assert_int_eq(reopen(&bench, &start), JOURNAL_CORRUPT);
        ck_assert_ptr_nonnull(strstr(bench.problem.text, "table journal_base: "));
        ck_assert_ptr_nonnull(strstr(bench.problem.text, damages[i][1]));
        close_bench(&bench);
    }
}
END_TEST

START_TEST(a_base_that_is_gone_is_not_made_up)
{
    struct bench bench;
    const struct journal_sqlite_start start = {0};
    open_bench(&bench);
    append(&bench, 1);
    ck_assert_int_eq(sqlite3_exec(bench.database, "DELETE FROM journal_base", NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(reopen(&bench, &start), JOURNAL_CORRUPT); /* the epoch went with it */
    ck_assert_ptr_nonnull(
        strstr(bench.problem.text, "table journal_base: its row is damaged or missing"));
    close_bench(&bench);
}
END_TEST

START_TEST(an_entry_that_was_read_holds_no_transaction_open)
{
    struct bench bench;
    struct journal_entry entry;
    open_bench(&bench);
    append(&bench, 1);
    ck_assert_int_eq(journal_next(bench.journal, 1, &entry, 0), JOURNAL_OK);
    for (sqlite3_stmt *at = sqlite3_next_stmt(bench.database, NULL); at != NULL;
         at = sqlite3_next_stmt(bench.database, at)) {
        ck_assert_int_eq(sqlite3_stmt_busy(at), 0);
    }
    close_bench(&bench);
}
END_TEST

START_TEST(only_the_entry_that_follows_is_taken)
{
    struct bench bench;
    uint8_t bytes[256];
    struct journal_entry entry;
    open_bench(&bench);
    append(&bench, 1);
    struct journal_last wrong = bench.last;
    wrong.index++;
    entry = entry_after(&wrong, 2, bytes);
    ck_assert_int_eq(journal_append(bench.journal, bench.epoch, &entry, 1), JOURNAL_CORRUPT);
    wrong = bench.last;
    wrong.chain.bytes[0] ^= 1;
    entry = entry_after(&wrong, 2, bytes);
    ck_assert_int_eq(journal_append(bench.journal, bench.epoch, &entry, 1), JOURNAL_CORRUPT);
    wrong = bench.last;
    wrong.next_command++;
    entry = entry_after(&wrong, 2, bytes);
    ck_assert_int_eq(journal_append(bench.journal, bench.epoch, &entry, 1), JOURNAL_CORRUPT);
    entry = entry_after(&bench.last, 2, bytes);
    entry.length--;
    ck_assert_int_eq(journal_append(bench.journal, bench.epoch, &entry, 1), JOURNAL_CORRUPT);
    entry.length = ENTRY_MAX_BYTES + 1;
    ck_assert_int_eq(journal_append(bench.journal, bench.epoch, &entry, 1), JOURNAL_TOO_LARGE);
    append(&bench, 2);
    close_bench(&bench);
}
END_TEST

START_TEST(an_append_is_all_or_nothing)
{
    struct bench bench;
    uint8_t bytes[2][256];
    struct journal_entry entries[2];
    open_bench(&bench);
    struct journal_last after = bench.last;
    entries[0] = entry_after(&bench.last, 1, bytes[0]);
    move_on(&after, &entries[0]);
    after.chain.bytes[5] ^= 1;
    entries[1] = entry_after(&after, 2, bytes[1]);
    ck_assert_int_eq(journal_append(bench.journal, bench.epoch, entries, 2), JOURNAL_CORRUPT);
    ck_assert_int_eq(journal_next(bench.journal, 1, &entries[0], 0), JOURNAL_UNAVAILABLE);
    append(&bench, 1);
    close_bench(&bench);
}
END_TEST

START_TEST(an_append_joins_the_callers_transaction)
{
    struct bench bench;
    uint8_t bytes[256];
    struct journal_entry entry;
    open_bench(&bench);
    append(&bench, 1);
    ck_assert_int_eq(sqlite3_exec(bench.database, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
    entry = entry_after(&bench.last, 2, bytes);
    ck_assert_int_eq(journal_append(bench.journal, bench.epoch, &entry, 1), JOURNAL_OK);
    ck_assert_int_eq(sqlite3_get_autocommit(bench.database), 0);
    ck_assert_int_eq(sqlite3_exec(bench.database, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(journal_next(bench.journal, 2, &entry, 0), JOURNAL_UNAVAILABLE);
    append(&bench, 3);
    ck_assert_int_eq(sqlite3_get_autocommit(bench.database), 1);
    close_bench(&bench);
}
END_TEST

START_TEST(only_the_leader_of_now_appends)
{
    struct bench bench;
    uint8_t bytes[256];
    struct journal_leader me = {.broker = "again"};
    uint64_t epoch;
    open_bench(&bench);
    append(&bench, 1);
    ck_assert_int_eq(journal_lead(bench.journal, 0, &me, &epoch), JOURNAL_BEHIND);
    ck_assert_int_eq(journal_lead(bench.journal, 1, &me, &epoch), JOURNAL_OK);
    ck_assert_uint_gt(epoch, bench.epoch);
    struct journal_entry entry = entry_after(&bench.last, 2, bytes);
    ck_assert_int_eq(journal_append(bench.journal, bench.epoch, &entry, 1), JOURNAL_DEPOSED);
    bench.epoch = epoch;
    append(&bench, 2);
    struct journal_leader leader;
    ck_assert_int_eq(journal_leader(bench.journal, &leader), JOURNAL_OK);
    ck_assert_str_eq(leader.broker, "again");
    ck_assert_uint_eq(leader.epoch, epoch);
    close_bench(&bench);
}
END_TEST

/* Makes the tables of a journal whose entries up to `base` were cut off; no broker cuts yet. */
static void cut(struct bench *bench, const struct journal_last *base)
{
    static const char *const texts[] = {
        "DELETE FROM journal WHERE idx <= ?1",
        "UPDATE journal_base SET idx = ?1, chain = ?2, next_command = ?3",
    };
    for (int i = 0; i < 2; i++) {
        sqlite3_stmt *statement;
        ck_assert_int_eq(sqlite3_prepare_v2(bench->database, texts[i], -1, &statement, NULL),
                         SQLITE_OK);
        (void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)base->index);
        if (i == 1) {
            (void)sqlite3_bind_blob(statement, 2, base->chain.bytes, 32, SQLITE_STATIC);
            (void)sqlite3_bind_int64(statement, 3, (sqlite3_int64)base->next_command);
        }
        ck_assert_int_eq(sqlite3_step(statement), SQLITE_DONE);
        ck_assert_int_eq(sqlite3_finalize(statement), SQLITE_OK);
    }
}

START_TEST(a_cut_journal_goes_on_from_its_base)
{
    struct bench bench;
    struct journal_entry entry;
    open_bench(&bench);
    struct journal_last base = {.index = 0};
    for (uint8_t i = 1; i <= 6; i++) {
        append(&bench, i);
        base = i == 3 ? bench.last : base;
    }
    cut(&bench, &base);
    ck_assert_int_eq(journal_next(bench.journal, 3, &entry, 0), JOURNAL_BEHIND);
    ck_assert_int_eq(journal_next(bench.journal, 4, &entry, 0), JOURNAL_OK);
    ck_assert_int_eq(journal_next(bench.journal, 5, &entry, 0), JOURNAL_OK);
    struct head head = {.index = bench.last.index, .chain = bench.last.chain};
    struct journal_sqlite_start start = {.head = &head};
    ck_assert_int_eq(reopen(&bench, &start), JOURNAL_OK);
    ck_assert_uint_eq(bench.last.index, 6);
    struct journal_leader me = {.broker = "test"};
    ck_assert_int_eq(journal_lead(bench.journal, 6, &me, &bench.epoch), JOURNAL_OK);
    cut(&bench, &bench.last);
    ck_assert_int_eq(reopen(&bench, &start), JOURNAL_OK);
    ck_assert_int_eq(journal_lead(bench.journal, 6, &me, &bench.epoch), JOURNAL_OK);
    append(&bench, 7);
    close_bench(&bench);
}
END_TEST

/* ---- starts, on the files of the small market */

static enum journal_status start_market(const struct small_market *market, bool adopt,
                                        struct problem *ret_problem)
{
    struct ledger_store *store;
    struct journal *journal = NULL;
    struct journal_last last;
    struct head head;
    ret_problem->text[0] = '\0';
    ck_assert_int_eq(ledger_store_open(market->database, &store), LEDGER_STORE_OK);
    enum head_status found = head_read(market->head, &head, ret_problem);
    struct journal_sqlite_start start = {.head = found == HEAD_OK ? &head : NULL,
                                         .tree_size = ledger_store_tree(store)->size,
                                         .adopt = adopt};
    enum journal_status status =
        journal_sqlite_open(ledger_store_database(store), &start, &journal, &last, ret_problem);
    if (status == JOURNAL_OK) {
        ck_assert_uint_eq(last.index, SMALL_MARKET_ENTRIES);
    }
    journal_destroy(&journal);
    ledger_store_close(&store);
    return status;
}

static void assert_refused(const struct small_market *market, const char *words)
{
    struct problem problem;
    ck_assert_int_eq(start_market(market, false, &problem), JOURNAL_CORRUPT);
    ck_assert_msg(strstr(problem.text, words) != NULL, "%s", problem.text);
}

START_TEST(a_whole_market_starts)
{
    struct small_market market;
    struct problem problem;
    small_market_create(&market, NULL, NULL);
    ck_assert_msg(start_market(&market, false, &problem) == JOURNAL_OK, "%s", problem.text);
    small_market_destroy(&market);
}
END_TEST

static const char *const damages[] = {
    "UPDATE journal SET bytes = CAST(substr(bytes, 1, length(bytes) - 1) || x'7f' AS BLOB) WHERE "
    "idx = 3",
    "UPDATE journal SET chain = zeroblob(32) WHERE idx = 3",
    "UPDATE journal SET next_command = next_command + 1 WHERE idx = 3",
    "DELETE FROM journal WHERE idx = 4",
    "UPDATE journal SET bytes = (SELECT bytes FROM journal WHERE idx = 2),"
    " chain = (SELECT chain FROM journal WHERE idx = 2) WHERE idx = 4",
    "UPDATE journal SET bytes = x'00' WHERE idx = 4",
    "UPDATE journal SET chain = x'00' WHERE idx = 4",
};
enum { DAMAGES = sizeof damages / sizeof damages[0] };

START_TEST(a_damaged_row_is_named)
{
    struct small_market market;
    small_market_create(&market, NULL, NULL);
    small_market_sql(&market, damages[_i]);
    assert_refused(&market, strstr(damages[_i], "idx = 3") != NULL ? "entry 3" : "entry 4");
    small_market_destroy(&market);
}
END_TEST

START_TEST(a_journal_that_ends_short_of_head_is_refused)
{
    struct small_market market;
    small_market_create(&market, NULL, NULL);
    small_market_sql(&market, "DELETE FROM journal WHERE idx = 7");
    assert_refused(&market, "ends at entry 6 but HEAD has seen 7");
    small_market_sql(&market, "DELETE FROM journal");
    assert_refused(&market, "ends at entry 0 but HEAD has seen 7");
    small_market_destroy(&market);
}
END_TEST

static void copy_file(const char *from, const char *to)
{
    char command[256];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(an_old_copy_of_the_database_is_refused)
{
    struct small_market market;
    struct problem problem;
    char backup[128];
    small_market_create(&market, NULL, NULL);
    snprintf(backup, sizeof backup, "%s/backup", market.folder);
    copy_file(market.database, backup);
    /* Life goes on, then the old copy is put back. */
    struct ledger_store *store;
    struct journal *journal;
    struct journal_last last;
    struct head head;
    struct head_file *file;
    uint64_t epoch;
    struct journal_leader me = {.broker = "test"};
    uint8_t bytes[256];
    ck_assert_int_eq(head_open(market.head, &file, &head, &problem), HEAD_OK);
    ck_assert_int_eq(ledger_store_open(market.database, &store), LEDGER_STORE_OK);
    struct journal_sqlite_start start = {.head = &head,
                                         .tree_size = ledger_store_tree(store)->size};
    ck_assert_int_eq(
        journal_sqlite_open(ledger_store_database(store), &start, &journal, &last, &problem),
        JOURNAL_OK);
    ledger_store_trust(store);
    ck_assert_int_eq(journal_lead(journal, last.index, &me, &epoch), JOURNAL_OK);
    struct journal_entry entry = entry_after(&last, 1, bytes);
    ck_assert_int_eq(journal_append(journal, epoch, &entry, 1), JOURNAL_OK);
    move_on(&last, &entry);
    head.index = last.index;
    head.chain = last.chain;
    ck_assert_int_eq(head_write(file, &head), HEAD_OK);
    head_close(&file);
    journal_destroy(&journal);
    ledger_store_close(&store);
    ck_assert_int_eq(rename(backup, market.database), 0);
    assert_refused(&market, "old backup");
    small_market_destroy(&market);
}
END_TEST

START_TEST(another_history_is_refused)
{
    struct small_market market;
    struct head head;
    struct head_file *file;
    struct problem problem;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(head_open(market.head, &file, &head, &problem), HEAD_OK);
    head.chain.bytes[0] ^= 1;
    ck_assert_int_eq(head_write(file, &head), HEAD_OK);
    head_close(&file);
    assert_refused(&market, "another history");
    small_market_destroy(&market);
}
END_TEST

START_TEST(a_tree_shorter_than_was_signed_is_refused)
{
    struct small_market market;
    small_market_create(&market, NULL, NULL);
    small_market_sql(&market, "DELETE FROM tree WHERE idx = (SELECT max(idx) FROM tree)");
    assert_refused(&market, "was signed");
    small_market_destroy(&market);
}
END_TEST

START_TEST(a_lost_head_must_be_adopted)
{
    struct small_market market;
    struct problem problem;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(unlink(market.head), 0);
    assert_refused(&market, "HEAD is missing");
    ck_assert_int_eq(start_market(&market, true, &problem), JOURNAL_OK);
    small_market_destroy(&market);
}
END_TEST

START_TEST(a_journal_ahead_of_head_is_right)
{
    struct small_market market;
    struct head head;
    struct head_file *file;
    struct problem problem;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(head_open(market.head, &file, &head, &problem), HEAD_OK);
    head_close(&file);
    /* The crash came after the commit and before HEAD was written. */
    head = (struct head){0};
    ck_assert_int_eq(head_create(market.head, &head, &file, &problem), HEAD_OK);
    head_close(&file);
    ck_assert_msg(start_market(&market, false, &problem) == JOURNAL_OK, "%s", problem.text);
    small_market_destroy(&market);
}
END_TEST

START_TEST(overwritten_pages_are_noticed)
{
    struct small_market market;
    struct problem problem;
    small_market_create(&market, NULL, NULL);
    FILE *file = fopen(market.database, "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    uint8_t noise[4096];
    memset(noise, 0xa5, sizeof noise);
    ck_assert_int_eq(fseek(file, size / 4096 / 2 * 4096, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(noise, 1, sizeof noise, file), sizeof noise);
    fclose(file);
    struct ledger_store *store;
    enum ledger_store_status opened = ledger_store_open(market.database, &store);
    ledger_store_close(&store);
    if (opened == LEDGER_STORE_OK) {
        ck_assert_int_eq(start_market(&market, false, &problem), JOURNAL_CORRUPT);
    } else {
        ck_assert_int_eq(opened, LEDGER_STORE_CORRUPT);
    }
    small_market_destroy(&market);
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("sqlite journal");
    TCase *calls = tcase_create("calls");
    tcase_add_test(calls, what_is_appended_is_read_back);
    tcase_add_test(calls, a_damaged_base_is_told_as_that);
    tcase_add_test(calls, a_base_that_is_gone_is_not_made_up);
    tcase_add_test(calls, an_entry_that_was_read_holds_no_transaction_open);
    tcase_add_test(calls, only_the_entry_that_follows_is_taken);
    tcase_add_test(calls, an_append_is_all_or_nothing);
    tcase_add_test(calls, an_append_joins_the_callers_transaction);
    tcase_add_test(calls, only_the_leader_of_now_appends);
    tcase_add_test(calls, a_cut_journal_goes_on_from_its_base);
    suite_add_tcase(suite, calls);
    TCase *starts = tcase_create("starts");
    tcase_set_timeout(starts, 120);
    tcase_add_test(starts, a_whole_market_starts);
    tcase_add_loop_test(starts, a_damaged_row_is_named, 0, DAMAGES);
    tcase_add_test(starts, a_journal_that_ends_short_of_head_is_refused);
    tcase_add_test(starts, an_old_copy_of_the_database_is_refused);
    tcase_add_test(starts, another_history_is_refused);
    tcase_add_test(starts, a_tree_shorter_than_was_signed_is_refused);
    tcase_add_test(starts, a_lost_head_must_be_adopted);
    tcase_add_test(starts, a_journal_ahead_of_head_is_right);
    tcase_add_test(starts, overwritten_pages_are_noticed);
    suite_add_tcase(suite, starts);
    return suite_run(suite);
}
