#include "ledger/store/sqlite.h"

#include <check.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sha256.h"
#include "ledger/accounts.h"
#include "ledger/receipt.h"
#include "tests/support/checked_market.h"
#include "tests/support/scarce_vfs.h"
#include "tests/support/suite.h"

static char folder[64];
static char path[96];

static void make_folder(void)
{
    strcpy(folder, "/tmp/bourse-store-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/ledger.db", folder);
}

static void remove_folder(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    for (size_t i = 0; i < 4; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        (void)unlink(name);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}

static struct ledger_store *open_store(void)
{
    struct ledger_store *store;
    enum ledger_store_status status = ledger_store_open(path, &store);
    ck_assert_msg(status == LEDGER_STORE_OK, "%s", ledger_store_error(store));
    return store;
}

static struct ledger_record mint_record(uint32_t account, int64_t amount)
{
    struct ledger_record record = {.kind = LEDGER_TRANSFER, .log_index = 1, .log_time_ns = 5};
    record.debit = ACCOUNT_MINT;
    record.credit = account;
    record.amount_micro = amount;
    return record;
}

static void append(struct ledger_store *store, struct ledger_record record)
{
    enum ledger_store_status status = ledger_store_append(store, &record, NULL);
    ck_assert_msg(status == LEDGER_STORE_OK, "%s", ledger_store_error(store));
}

static void mint(struct ledger_store *store, uint32_t account, int64_t amount)
{
    ck_assert_int_eq(ledger_store_begin(store), LEDGER_STORE_OK);
    append(store, mint_record(account, amount));
    ck_assert_int_eq(ledger_store_commit(store), LEDGER_STORE_OK);
}

static int64_t query(struct ledger_store *store, const char *sql)
{
    sqlite3_stmt *statement;
    ck_assert_int_eq(sqlite3_prepare_v2(ledger_store_database(store), sql, -1, &statement, NULL),
                     SQLITE_OK);
    int64_t value =
        sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : INT64_MIN;
    sqlite3_finalize(statement);
    return value;
}

START_TEST(a_new_ledger_is_empty_and_private)
{
    struct ledger_store *store = open_store();
    struct stat status;
    ck_assert_uint_eq(ledger_store_tree(store)->size, 0);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
    ck_assert_int_eq(query(store, "PRAGMA synchronous"), 2);
    ledger_store_close(&store);
    ck_assert_ptr_null(store);
}
END_TEST

START_TEST(one_broker_at_a_time)
{
    struct ledger_store *store = open_store();
    struct ledger_store *second;
    ck_assert_int_eq(ledger_store_open(path, &second), LEDGER_STORE_LOCKED);
    ck_assert_ptr_nonnull(strstr(ledger_store_error(second), "another broker"));
    ledger_store_close(&second);
    ledger_store_close(&store);
    store = open_store();
    ledger_store_close(&store);
}
END_TEST

START_TEST(another_schema_is_refused)
{
    static const char *const versions[] = {"PRAGMA user_version = 4", "PRAGMA user_version = 2"};
    static const char *const advice[] = {"newer program", "older program"};
    for (int i = 0; i < 2; i++) {
        struct ledger_store *store = open_store();
        ck_assert_int_eq(sqlite3_exec(ledger_store_database(store), versions[i], NULL, NULL, NULL),
                         SQLITE_OK);
        ledger_store_close(&store);
        ck_assert_int_eq(ledger_store_open(path, &store), LEDGER_STORE_NEWER);
        ck_assert_ptr_nonnull(strstr(ledger_store_error(store), advice[i]));
        ledger_store_close(&store);
        remove_folder();
        make_folder();
    }
}
END_TEST

START_TEST(what_was_committed_is_there_after_reopening)
{
    struct ledger_store *store = open_store();
    for (uint32_t i = 0; i < 600; i++) {
        mint(store, 3 + i % 5, 10 + i);
    }
    struct merkle before = *ledger_store_tree(store);
    struct hash32 root = merkle_root(&before);
    ledger_store_close(&store);
    store = open_store();
    struct hash32 again = merkle_root(ledger_store_tree(store));
    ck_assert_uint_eq(ledger_store_tree(store)->size, 600);
    ck_assert(hash32_equal(&root, &again));
    ck_assert_int_eq(query(store, "SELECT max(entry) FROM transfers"), 600);
    ck_assert_int_eq(query(store, "SELECT sum(available) FROM balances"), 0);
    ck_assert_int_eq(query(store, "SELECT count(*) FROM tree WHERE level = 8"), 2);
    ck_assert_int_eq(query(store, "SELECT count(*) FROM tree WHERE level NOT IN (0, 8)"), 0);
    mint(store, 3, 1);
    ck_assert_int_eq(query(store, "SELECT max(entry) FROM transfers"), 601);
    ledger_store_close(&store);
}
END_TEST

START_TEST(a_rolled_back_group_leaves_no_trace)
{
    struct ledger_store *store = open_store();
    mint(store, 3, 100);
    struct hash32 root = merkle_root(ledger_store_tree(store));
    ck_assert_int_eq(ledger_store_begin(store), LEDGER_STORE_OK);
    append(store, mint_record(3, 7));
    append(store, mint_record(4, 7));
    ledger_store_rollback(store);
    struct hash32 after = merkle_root(ledger_store_tree(store));
    ck_assert(hash32_equal(&root, &after));
    ck_assert_int_eq(query(store, "SELECT count(*) FROM transfers"), 1);
    ck_assert_int_eq(query(store, "SELECT count(*) FROM tree"), 1);
    mint(store, 3, 11);
    ck_assert_int_eq(query(store, "SELECT available FROM balances WHERE account = 3"), 111);
    ck_assert_int_eq(query(store, "SELECT max(entry) FROM transfers"), 2);
    ledger_store_close(&store);
}
END_TEST

START_TEST(balances_follow_the_postings)
{
    struct ledger_store *store = open_store();
    struct ledger_record record = {.log_index = 2, .debit = 3, .credit = 3};
    mint(store, 3, 1000);
    ck_assert_int_eq(ledger_store_begin(store), LEDGER_STORE_OK);
    record.kind = LEDGER_HOLD;
    record.amount_micro = 600;
    append(store, record);
    record.kind = LEDGER_CAPTURE;
    record.credit = 4;
    record.amount_micro = 100;
    append(store, record);
    record.kind = LEDGER_FEE;
    record.credit = ACCOUNT_FEES;
    record.amount_micro = 5;
    append(store, record);
    record.kind = LEDGER_RELEASE;
    record.credit = 3;
    record.amount_micro = 495;
    append(store, record);
    record.kind = LEDGER_HOLD;
    record.amount_micro = 50;
    append(store, record);
    ck_assert_int_eq(ledger_store_commit(store), LEDGER_STORE_OK);
    ck_assert_int_eq(query(store, "SELECT available FROM balances WHERE account = 3"), 845);
    ck_assert_int_eq(query(store, "SELECT held FROM balances WHERE account = 3"), 50);
    ck_assert_int_eq(query(store, "SELECT available FROM balances WHERE account = 4"), 100);
    ck_assert_int_eq(query(store, "SELECT available FROM balances WHERE account = 1"), 5);
    ck_assert_int_eq(query(store, "SELECT available FROM balances WHERE account = 0"), -1000);
    ledger_store_close(&store);
}
END_TEST

START_TEST(a_balance_below_zero_stops_the_group)
{
    struct ledger_store *store = open_store();
    struct ledger_record record = {
        .kind = LEDGER_TRANSFER, .debit = 3, .credit = 4, .amount_micro = 101};
    mint(store, 3, 100);
    ck_assert_int_eq(ledger_store_begin(store), LEDGER_STORE_OK);
    append(store, record);
    ck_assert_int_eq(ledger_store_commit(store), LEDGER_STORE_CORRUPT);
    ck_assert_ptr_nonnull(strstr(ledger_store_error(store), "balances"));
    ck_assert_int_eq(query(store, "SELECT count(*) FROM transfers"), 1);
    mint(store, 3, 1);
    ck_assert_int_eq(query(store, "SELECT available FROM balances WHERE account = 3"), 101);
    ledger_store_close(&store);
}
END_TEST

START_TEST(a_full_disk_changes_nothing)
{
    struct ledger_store *store = open_store();
    mint(store, 3, 100);
    struct hash32 root = merkle_root(ledger_store_tree(store));
    char limit[64];
    snprintf(limit, sizeof limit, "PRAGMA max_page_count = %lld",
             (long long)query(store, "PRAGMA page_count"));
    ck_assert_int_eq(sqlite3_exec(ledger_store_database(store), limit, NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(ledger_store_begin(store), LEDGER_STORE_OK);
    enum ledger_store_status status = LEDGER_STORE_OK;
    for (int i = 0; i < 10000 && status == LEDGER_STORE_OK; i++) {
        struct ledger_record record = mint_record(3, 1);
        status = ledger_store_append(store, &record, NULL);
    }
    ck_assert_int_eq(status, LEDGER_STORE_FULL);
    ledger_store_rollback(store); /* harmless: it has been done */
    struct hash32 after = merkle_root(ledger_store_tree(store));
    ck_assert(hash32_equal(&root, &after));
    ck_assert_int_eq(query(store, "SELECT count(*) FROM transfers"), 1);
    ck_assert_int_eq(sqlite3_exec(ledger_store_database(store), "PRAGMA max_page_count = 100000",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    mint(store, 3, 1);
    ck_assert_int_eq(query(store, "SELECT available FROM balances WHERE account = 3"), 101);
    ledger_store_close(&store);
}
END_TEST

/* The linker prefers these to the C library's, for SQLite too, whichever it calls. */
static int write_error;
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset);
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset);
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
    if (write_error != 0) {
        errno = write_error;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, bytes, length, offset);
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset)
{
    return pwrite(fd, bytes, length, offset);
}

START_TEST(a_quota_that_is_used_up_is_a_full_disk)
{
    static const struct {
        int error;
        enum ledger_store_status status;
    } writes[] = {
        {ENOSPC, LEDGER_STORE_FULL}, {EDQUOT, LEDGER_STORE_FULL}, {EIO, LEDGER_STORE_FAILED}};
    struct ledger_store *store = open_store();
    mint(store, 3, 100);
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        struct ledger_record record = mint_record(3, 1);
        ck_assert_int_eq(ledger_store_begin(store), LEDGER_STORE_OK);
        append(store, record);
        write_error = writes[i].error;
        ck_assert_int_eq(ledger_store_commit(store), writes[i].status);
        write_error = 0;
    }
    mint(store, 3, 1);
    ck_assert_int_eq(query(store, "SELECT available FROM balances WHERE account = 3"), 101);
    ledger_store_close(&store);
}
END_TEST

/* An entry in the log is durable; a failed copy must not have the entry written twice. */
START_TEST(a_full_disk_after_the_commit_does_not_undo_it)
{
    static const int codes[] = {SQLITE_FULL, SQLITE_IOERR_SHMSIZE};
    scarce_register();
    struct ledger_store *store = open_store();
    ledger_store_checkpoint_every(store, 1);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        scarce.database_write = codes[i];
        mint(store, 3, 100);
    }
    scarce.database_write = 0;
    ck_assert_int_eq(query(store, "SELECT available FROM balances WHERE account = 3"), 200);
    ledger_store_close(&store);
    scarce_unregister();
}
END_TEST

/* A process that dies in the middle of a group, by its own hand: neither close nor rollback
 * runs. */
START_TEST(a_crash_between_begin_and_commit_leaves_the_state_before)
{
    struct ledger_store *store = open_store();
    mint(store, 3, 100);
    ledger_store_close(&store);
    pid_t child = fork();
    if (child == 0) {
        struct ledger_record record = mint_record(3, 1);
        if (ledger_store_open(path, &store) == LEDGER_STORE_OK &&
            ledger_store_begin(store) == LEDGER_STORE_OK &&
            ledger_store_append(store, &record, NULL) == LEDGER_STORE_OK) {
            _exit(42);
        }
        _exit(1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WEXITSTATUS(status), 42);
    store = open_store();
    ck_assert_uint_eq(ledger_store_tree(store)->size, 1);
    ck_assert_int_eq(query(store, "SELECT available FROM balances WHERE account = 3"), 100);
    ledger_store_close(&store);
}
END_TEST

START_TEST(a_damaged_tree_is_noticed_at_start)
{
    struct ledger_store *store = open_store();
    for (int i = 0; i < 300; i++) {
        mint(store, 3, 1);
    }
    ck_assert_int_eq(sqlite3_exec(ledger_store_database(store), "DELETE FROM tree WHERE level = 8",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ledger_store_close(&store);
    ck_assert_int_eq(ledger_store_open(path, &store), LEDGER_STORE_CORRUPT);
    ck_assert_ptr_nonnull(strstr(ledger_store_error(store), "table tree"));
    ledger_store_close(&store);
}
END_TEST

/* ---- readers, on the finished small market */

START_TEST(receipts_of_every_decided_subtask_verify)
{
    struct small_market market;
    struct ledger_reader *reader;
    static char text[RECEIPT_TEXT_MAX];
    static uint8_t scratch[RECEIPT_TEXT_MAX];
    static const size_t decided[] = {0, 2, 3}; /* subtask 1 by its second attempt */
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    for (uint32_t index = 0; index < 3; index++) {
        size_t length;
        struct receipt receipt;
        ck_assert_int_eq(ledger_reader_receipt(reader, &market.cluster, &market.job, index, text,
                                               sizeof text, &length),
                         LEDGER_STORE_OK);
        ck_assert_int_eq(receipt_verify(text, length, "bourse.test/small", identity_key(market.log),
                                        scratch, sizeof scratch, &receipt),
                         RECEIPT_OK);
        ck_assert_uint_eq(receipt.leaf.index, index);
        ck_assert_uint_eq(receipt.leaf.attempt, index == 1 ? 2 : 1);
        ck_assert(hash32_equal(&receipt.leaf.hash, &market.results[decided[index]]));
        ck_assert_int_eq(ledger_reader_receipt(reader, &market.cluster, &market.job, index, text,
                                               length, &length),
                         LEDGER_STORE_FULL);
    }
    size_t length;
    ck_assert_int_eq(
        ledger_reader_receipt(reader, &market.cluster, &market.job, 3, text, sizeof text, &length),
        LEDGER_STORE_NOT_FOUND);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

/* Its batch came with a command before the one that logged it; what was refuted has no receipt. */
START_TEST(a_result_that_was_held_has_a_receipt_that_names_its_check)
{
    struct checked_market told = {.lie = LIE_NONE};
    struct ledger_reader *reader;
    static char text[RECEIPT_TEXT_MAX];
    static uint8_t scratch[RECEIPT_TEXT_MAX];
    char error[LEDGER_CHECK_TEXT];
    size_t length;
    struct receipt receipt;
    checked_market_create(&told);
    const struct small_market *market = &told.market;
    ck_assert_int_eq(ledger_reader_open(market->database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(
        ledger_reader_receipt(reader, &market->cluster, &told.job, 1, text, sizeof text, &length),
        LEDGER_STORE_OK);
    ck_assert_int_eq(receipt_verify(text, length, "bourse.test/small", identity_key(market->log),
                                    scratch, sizeof scratch, &receipt),
                     RECEIPT_OK);
    ck_assert_uint_eq(receipt.leaf.attempt, 2);
    ck_assert_uint_lt(receipt.leaf.batch_index, receipt.leaf.log_index);
    ck_assert_uint_eq(receipt.leaf.level, CHECK_CHEAP);
    ck_assert(hash32_equal(&receipt.leaf.check, &told.check));
    ck_assert_int_eq(ledger_check(ledger_reader_database(reader), identity_key(market->log), error),
                     LEDGER_STORE_OK);
    ledger_reader_close(&reader);
    small_market_sql(market, "UPDATE held SET idx = 7");
    ck_assert_int_eq(ledger_reader_open(market->database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_check(ledger_reader_database(reader), identity_key(market->log), error),
                     LEDGER_STORE_CORRUPT);
    ck_assert_msg(strstr(error, "table held, entry") != NULL, "%s", error);
    ledger_reader_close(&reader);
    checked_market_destroy(&told);
}
END_TEST

START_TEST(a_result_that_no_checkpoint_covers_has_no_receipt_yet)
{
    struct small_market market;
    struct ledger_reader *reader;
    static char text[RECEIPT_TEXT_MAX];
    size_t length;
    small_market_create(&market, NULL, NULL);
    small_market_sql(&market, "UPDATE checkpoint SET tree_size = 2");
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(
        ledger_reader_receipt(reader, &market.cluster, &market.job, 0, text, sizeof text, &length),
        LEDGER_STORE_NOT_FOUND);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

START_TEST(outcomes_are_the_accepted_attempt_else_the_last_failed)
{
    struct small_market market;
    struct ledger_reader *reader;
    struct ledger_outcome_row rows[8];
    size_t count;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_reader_outcomes(reader, &market.job, 0, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(rows[i].index, i);
        ck_assert_uint_eq(rows[i].attempt, i == 1 ? 2 : 1);
        ck_assert_uint_eq(rows[i].status, 0);
    }
    ck_assert_int_eq(rows[0].charge_micro, 333333);
    ck_assert_int_eq(rows[0].paid_ns, 333333333);
    struct hash32 hash = sha256_of(rows[1].result, rows[1].result_length);
    ck_assert(hash32_equal(&hash, &market.results[2]));
    size_t bytes = rows[0].result_length + rows[1].result_length;
    for (size_t i = 0; i < count; i++) {
        free(rows[i].result);
    }
    ck_assert_int_eq(ledger_reader_outcomes(reader, &market.job, 0, 8, bytes, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 2);
    free(rows[0].result);
    free(rows[1].result);
    ck_assert_int_eq(ledger_reader_outcomes(reader, &market.job, 2, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(rows[0].index, 2);
    free(rows[0].result);
    ck_assert_int_eq(ledger_reader_outcomes(reader, &market.cluster, 0, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 0);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

START_TEST(other_results_are_all_that_do_not_decide_their_subtask)
{
    struct small_market market;
    struct ledger_reader *reader;
    struct ledger_outcome_row rows[8];
    size_t count;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_reader_others(reader, &market.job, 0, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(rows[0].index, 1);
    ck_assert_uint_eq(rows[0].attempt, 1);
    ck_assert_uint_ne(rows[0].status, 0);
    struct hash32 hash = sha256_of(rows[0].result, rows[0].result_length);
    ck_assert(hash32_equal(&hash, &market.results[1]));
    free(rows[0].result);
    uint64_t entry = rows[0].entry;
    ck_assert_int_eq(ledger_reader_others(reader, &market.job, entry, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 1);
    free(rows[0].result);
    ck_assert_int_eq(ledger_reader_others(reader, &market.job, entry + 1, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(ledger_reader_others(reader, &market.cluster, 0, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 0);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

START_TEST(trades_come_newest_first_and_in_pages)
{
    struct small_market market;
    struct ledger_reader *reader;
    struct ledger_trade_row rows[4];
    size_t count = 9;
    small_market_create(&market, NULL, NULL);
    small_market_sql(&market,
                     "INSERT INTO fills SELECT entry + 1000, log_index, log_time_ns, leaf, "
                     "lease + 1, ask, bid, job, provider, consumer, device, slots + 5, "
                     "price, term_ns, '' FROM fills");
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_reader_trades(reader, 0, 4, rows, &count), LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(rows[0].entry, rows[1].entry + 1000);
    ck_assert_uint_eq(rows[0].slots, 7);
    ck_assert_uint_gt(rows[0].log_index, 0);
    ck_assert_str_eq(rows[0].instrument, "");
    ck_assert_uint_eq(rows[1].slots, 2);
    ck_assert_str_eq(rows[1].instrument, "cpu.x86_64.avx2");
    ck_assert_int_gt(rows[1].price_micro, 0);
    uint64_t newest = rows[0].entry;
    ck_assert_int_eq(ledger_reader_trades(reader, newest, 4, rows, &count), LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_lt(rows[0].entry, newest);
    ck_assert_int_eq(ledger_reader_trades(reader, UINT64_MAX, 1, rows, &count), LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(rows[0].entry, newest);
    ck_assert_int_eq(ledger_reader_trades(reader, 1, 4, rows, &count), LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 0);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

START_TEST(a_statement_adds_up_to_the_balance)
{
    struct small_market market;
    struct ledger_reader *reader;
    struct ledger_statement_row rows[32];
    size_t count;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_reader_statement(reader, SMALL_MARKET_OWNER, 0, 32, rows, &count),
                     LEDGER_STORE_OK);
    int64_t available = 0;
    int64_t held = 0;
    for (size_t i = 0; i < count; i++) {
        available += rows[i].amount_micro;
        held += rows[i].held_micro;
        ck_assert(i == 0 || rows[i].entry < rows[i - 1].entry);
    }
    /* two mints, a hold, four captures and fees, a release; 1 988 888 micro-credits were charged */
    ck_assert_uint_eq(count, 2 + 1 + 8 + 1);
    ck_assert_int_eq(available, 1005000000 - 1988888);
    ck_assert_int_eq(held, 0);
    int64_t fees = 0;
    for (size_t i = 0; i < count; i++) {
        fees -= rows[i].kind == LEDGER_FEE ? rows[i].held_micro : 0; /* out of escrow */
    }
    ck_assert_int_eq(rows[0].kind, LEDGER_RELEASE);
    ck_assert(!rows[0].has_index);
    ck_assert_uint_eq(rows[0].counterparty, UINT32_MAX);
    ck_assert_int_eq(rows[1].kind, LEDGER_FEE);
    ck_assert(rows[1].has_index);
    ck_assert_uint_eq(rows[1].index, 2);
    ck_assert_uint_eq(rows[1].counterparty, ACCOUNT_FEES);
    ck_assert(id128_equal(&rows[1].job, &market.job));

    uint64_t before = rows[3].entry;
    ck_assert_int_eq(ledger_reader_statement(reader, SMALL_MARKET_OWNER, before, 2, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_lt(rows[0].entry, before);
    ck_assert_int_eq(ledger_reader_statement(reader, SMALL_MARKET_PROVIDER, 0, 32, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 1 + 4);
    ck_assert_uint_eq(rows[0].counterparty, SMALL_MARKET_OWNER);
    ck_assert_int_gt(rows[0].amount_micro, 0);
    /* Each capture says what it left to the market, and which device earned it. */
    for (size_t i = 0; i < count; i++) {
        bool is_capture = rows[i].kind == LEDGER_CAPTURE;
        fees -= rows[i].fee_micro;
        ck_assert_int_eq(rows[i].fee_micro > 0, is_capture);
        ck_assert_int_eq(!id128_is_zero(&rows[i].device), is_capture);
    }
    ck_assert_int_eq(fees, 0);
    ck_assert_int_eq(ledger_reader_statement(reader, 77, 0, 32, rows, &count), LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 0);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

START_TEST(accepted_results_are_found_page_by_page)
{
    struct small_market market;
    struct ledger_reader *reader;
    struct ledger_statement_row rows[8];
    size_t count = 9;
    uint64_t next = 9;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_reader_results(reader, SMALL_MARKET_PROVIDER, 0, LEDGER_WALK, 8, rows,
                                           &count, &next),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 3); /* of the four that were paid one had failed */
    ck_assert_uint_eq(next, 0);
    uint64_t entries[3];
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(rows[i].kind, LEDGER_RESULT);
        ck_assert_int_eq(rows[i].amount_micro, 0);
        ck_assert(id128_equal(&rows[i].job, &market.job));
        ck_assert(!id128_is_zero(&rows[i].device));
        ck_assert(i == 0 || rows[i].entry < rows[i - 1].entry);
        entries[i] = rows[i].entry;
    }
    /* Steps of any length, empty ones among them, give the same. */
    for (uint64_t walk = 1; walk < 40; walk += 2) {
        size_t found = 0;
        next = 0;
        do {
            ck_assert_int_eq(ledger_reader_results(reader, SMALL_MARKET_PROVIDER, next, walk, 2,
                                                   rows, &count, &next),
                             LEDGER_STORE_OK);
            for (size_t i = 0; i < count; i++) {
                ck_assert_uint_lt(found, 3);
                ck_assert_uint_eq(rows[i].entry, entries[found++]);
            }
        } while (next > 1);
        ck_assert_uint_eq(found, 3);
    }
    ck_assert_int_eq(
        ledger_reader_results(reader, SMALL_MARKET_OWNER, 0, LEDGER_WALK, 8, rows, &count, &next),
        LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 0);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

/* A program that failed was given what it took before. */
START_TEST(results_at_price_0_say_what_was_given)
{
    struct small_market market;
    struct ledger_reader *reader;
    sqlite3 *database;
    struct ledger_statement_row rows[8];
    size_t count = 9;
    uint64_t next = 9;
    int64_t given_ns = 0;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_reader_results(reader, SMALL_MARKET_PROVIDER, 0, LEDGER_WALK, 8, rows,
                                           &count, &next),
                     LEDGER_STORE_OK);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(rows[i].given_ns, 0); /* it was paid */
        ck_assert(!rows[i].is_failed);
    }
    ck_assert_int_eq(sqlite3_open(market.database, &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database, "UPDATE results SET price = 0", NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(ledger_reader_results(reader, SMALL_MARKET_PROVIDER, 0, LEDGER_WALK, 8, rows,
                                           &count, &next),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 4);
    unsigned failed = 0;
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_gt(rows[i].given_ns, 0);
        given_ns += rows[i].given_ns;
        failed += rows[i].is_failed;
    }
    ck_assert_uint_eq(failed, 1);
    sqlite3_stmt *sum;
    ck_assert_int_eq(
        sqlite3_prepare_v2(database, "SELECT sum(paid_ns) FROM results", -1, &sum, NULL),
        SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(sum), SQLITE_ROW);
    ck_assert_int_eq(given_ns, sqlite3_column_int64(sum, 0));
    sqlite3_finalize(sum);
    sqlite3_close(database);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

static enum ledger_store_status check(const struct small_market *market, char *ret_error)
{
    sqlite3 *database;
    ck_assert_int_eq(sqlite3_open(market->database, &database), SQLITE_OK);
    enum ledger_store_status status = ledger_check(database, identity_key(market->log), ret_error);
    sqlite3_close(database);
    return status;
}

START_TEST(a_start_holds_outcomes_and_results_against_each_other)
{
    static const char *const changes[] = {
        "DELETE FROM outcomes",
        "DELETE FROM outcomes WHERE idx = 2",
        "UPDATE outcomes SET rank = 1 WHERE idx = 0",
        "UPDATE outcomes SET idx = 7 WHERE idx = 0",
        /* of subtask 1 the second attempt was accepted, the first had failed */
        "UPDATE outcomes SET entry = (SELECT min(entry) FROM results WHERE idx = 1) WHERE idx = 1",
        ("UPDATE outcomes SET rank = 1, entry = (SELECT min(entry) FROM results WHERE idx = 1)"
         " WHERE idx = 1"),
        "INSERT INTO outcomes SELECT job, 9, entry, rank FROM outcomes WHERE idx = 0",
    };
    char error[LEDGER_CHECK_TEXT];
    struct small_market market;
    small_market_create(&market, NULL, NULL);
    ck_assert_msg(check(&market, error) == LEDGER_STORE_OK, "%s", error);
    small_market_destroy(&market);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        small_market_create(&market, NULL, NULL);
        small_market_sql(&market, changes[i]);
        ck_assert_msg(check(&market, error) == LEDGER_STORE_CORRUPT, "passed: %s", changes[i]);
        ck_assert_msg(strstr(error, "table outcomes") != NULL, "%s: %s", changes[i], error);
        small_market_destroy(&market);
    }
}
END_TEST

START_TEST(readers_see_committed_groups_only)
{
    struct ledger_reader *reader;
    struct ledger_statement_row rows[4];
    size_t count;
    struct ledger_store *store = open_store();
    mint(store, 3, 100);
    ck_assert_int_eq(ledger_reader_open(path, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_store_begin(store), LEDGER_STORE_OK);
    append(store, mint_record(3, 1));
    ck_assert_int_eq(ledger_reader_statement(reader, 3, 0, 4, rows, &count), LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(ledger_store_commit(store), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_reader_statement(reader, 3, 0, 4, rows, &count), LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 2);
    char note[CHECKPOINT_TEXT_SIZE];
    uint64_t size;
    ck_assert_int_eq(ledger_reader_checkpoint(reader, note, &size), LEDGER_STORE_NOT_FOUND);
    ledger_reader_close(&reader);
    ledger_store_close(&store);
    ck_assert_int_ne(ledger_reader_open("/nonexistent/ledger.db", &reader), LEDGER_STORE_OK);
    ck_assert_ptr_null(reader);
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("ledger store");
    TCase *tests = tcase_create("store");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, a_new_ledger_is_empty_and_private);
    tcase_add_test(tests, one_broker_at_a_time);
    tcase_add_test(tests, another_schema_is_refused);
    tcase_add_test(tests, what_was_committed_is_there_after_reopening);
    tcase_add_test(tests, a_rolled_back_group_leaves_no_trace);
    tcase_add_test(tests, balances_follow_the_postings);
    tcase_add_test(tests, a_balance_below_zero_stops_the_group);
    tcase_add_test(tests, a_full_disk_changes_nothing);
    tcase_add_test(tests, a_quota_that_is_used_up_is_a_full_disk);
    tcase_add_test(tests, a_full_disk_after_the_commit_does_not_undo_it);
    tcase_add_test(tests, a_crash_between_begin_and_commit_leaves_the_state_before);
    tcase_add_test(tests, a_damaged_tree_is_noticed_at_start);
    tcase_add_test(tests, readers_see_committed_groups_only);
    suite_add_tcase(suite, tests);
    TCase *readers = tcase_create("readers");
    tcase_set_timeout(readers, 120);
    tcase_add_test(readers, receipts_of_every_decided_subtask_verify);
    tcase_add_test(readers, a_result_that_was_held_has_a_receipt_that_names_its_check);
    tcase_add_test(readers, a_result_that_no_checkpoint_covers_has_no_receipt_yet);
    tcase_add_test(readers, outcomes_are_the_accepted_attempt_else_the_last_failed);
    tcase_add_test(readers, other_results_are_all_that_do_not_decide_their_subtask);
    tcase_add_test(readers, trades_come_newest_first_and_in_pages);
    tcase_add_test(readers, a_statement_adds_up_to_the_balance);
    tcase_add_test(readers, accepted_results_are_found_page_by_page);
    tcase_add_test(readers, results_at_price_0_say_what_was_given);
    tcase_add_test(readers, a_start_holds_outcomes_and_results_against_each_other);
    suite_add_tcase(suite, readers);
    return suite_run(suite);
}
