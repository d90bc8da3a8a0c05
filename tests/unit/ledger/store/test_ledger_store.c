/* The tests follow the ledger in SQLite: groups of records, full disks, crashes, damage. */
#include "ledger/store/sqlite.h"

#include "ledger/accounts.h"
#include "tests/support/scarce_vfs.h"
#include "tests/support/suite.h"

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
    const struct suite_test tests[] = {
        TEST(a_new_ledger_is_empty_and_private),
        TEST(one_broker_at_a_time),
        TEST(another_schema_is_refused),
        TEST(what_was_committed_is_there_after_reopening),
        TEST(a_rolled_back_group_leaves_no_trace),
        TEST(balances_follow_the_postings),
        TEST(a_balance_below_zero_stops_the_group),
        TEST(a_full_disk_changes_nothing),
        TEST(a_quota_that_is_used_up_is_a_full_disk),
        TEST(a_full_disk_after_the_commit_does_not_undo_it),
        TEST(a_crash_between_begin_and_commit_leaves_the_state_before),
        TEST(a_damaged_tree_is_noticed_at_start),
        TEST(readers_see_committed_groups_only)};
    return suite_main("ledger store", make_folder, remove_folder, tests,
                      sizeof tests / sizeof tests[0]);
}
