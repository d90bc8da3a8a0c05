/* The tests ask what a replay says of a ledger whose tables are not what its journal leads to.
 *
 * The journals are the recorded ones of tests/golden, under a key that can sign. They are replayed
 * into a ledger as a broker stores one, and then a row is changed. */
#include "broker/core/act_log.h"
#include "broker/core/translate.h"
#include "broker/storage/entry.h"
#include "broker/storage/head.h"
#include "broker/storage/journal_sqlite.h"
#include "broker/storage/replay.h"
#include "broker/storage/storage.h"

#include "base/cursor.h"
#include "base/sha256.h"
#include "runtime/market.h"
#include "tests/support/small_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JOURNAL_MAX = 1 << 20, COMMANDS_MAX = 64, TABLES = 17 };

struct built {
    char folder[64];
    char database[96];
    struct identity *log;
    struct ledger_store *store;
    struct journal *journal;
    struct journal_last last;
    uint64_t epoch;
    int64_t end_ns; /* log time of the last command */
    struct exchange *exchange;
    uint8_t *pristine; /* the database as it was written */
    size_t length;
};

static struct built built;
static struct problem problem;

/* ---------------------------------------------------------------- a ledger as a broker stores it
 */

static bool store_records(void *context, const struct translation *said,
                          const struct exchange_effects *effects)
{
    (void)context; /* there is one */
    for (size_t i = 0; i < effects->count; i++) {
        const struct ledger_record *record = &effects->items[i].ledger;
        struct ledger_batch batch;
        if (effects->items[i].type == EFFECT_LEDGER) {
            const bool has_batch = storage_batch_of(said, record, &batch);
            ck_assert_int_eq(ledger_store_append(built.store, record, has_batch ? &batch : NULL),
                             LEDGER_STORE_OK);
        }
    }
    return true;
}

static struct signature64 sign_note(void *context, const void *text, size_t length)
{
    return identity_sign(context, text, length);
}

static void set_checkpoint(const struct genesis *genesis)
{
    const struct merkle *tree = ledger_store_tree(built.store);
    struct checkpoint checkpoint = {.size = tree->size, .root = merkle_root(tree)};
    char note[CHECKPOINT_TEXT_SIZE];
    memcpy(checkpoint.origin, genesis->origin, sizeof checkpoint.origin);
    const size_t length =
        checkpoint_write(&checkpoint, identity_key(built.log), sign_note, built.log, note);
    ck_assert_int_eq(ledger_store_set_checkpoint(built.store, note, length, tree->size),
                     LEDGER_STORE_OK);
}

/* The recorded entry again: chained anew, as its genesis names a key of ours. */
static void store_entry(const uint8_t *recorded, size_t recorded_length, struct genesis *genesis)
{
    static uint8_t bytes[JOURNAL_MAX];
    static uint8_t own[GENESIS_BYTES_MAX];
    struct entry_command commands[COMMANDS_MAX];
    struct entry_head head;
    size_t position = 0;
    uint32_t count = 0;
    ck_assert(entry_read_head(recorded, recorded_length, &head));
    while (entry_next(recorded, recorded_length, &position, &commands[count])) {
        struct entry_command *command = &commands[count++];
        if (command->kind == ENTRY_GENESIS) {
            ck_assert(genesis_read(command->payload, command->payload_length, genesis));
            genesis->log_key = *identity_key(built.log);
            command->payload_length = (uint32_t)genesis_write(genesis, own, sizeof own);
            command->payload = own;
        }
    }
    head.index = built.last.index + 1;
    head.epoch = built.epoch;
    head.previous = built.last.chain;
    const size_t length = entry_write(&head, commands, bytes, sizeof bytes);
    const struct journal_entry entry = {.index = head.index, .bytes = bytes, .length = length};
    ck_assert_int_eq(ledger_store_begin(built.store), LEDGER_STORE_OK);
    ck_assert_int_eq(journal_append(built.journal, built.epoch, &entry, 1), JOURNAL_OK);
    ck_assert_msg(replay_entry(built.exchange, bytes, length, store_records, NULL, &problem) ==
                      REPLAY_OK,
                  "%s", problem.text);
    set_checkpoint(genesis);
    ck_assert_int_eq(ledger_store_commit(built.store), LEDGER_STORE_OK);
    built.last.index = head.index;
    built.last.chain = sha256_of(bytes, length);
}

static uint8_t *read_file(const char *path, size_t *ret_length)
{
    FILE *file = fopen(path, "rbe");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    *ret_length = (size_t)ftell(file);
    uint8_t *bytes = malloc(*ret_length);
    rewind(file);
    ck_assert_uint_eq(fread(bytes, 1, *ret_length, file), *ret_length);
    ck_assert_int_eq(fclose(file), 0);
    return bytes;
}

static void remove_file(const char *suffix)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s%s", built.database, suffix);
    (void)unlink(path); /* it need not be there */
}

static void restore(void)
{
    remove_file("-wal");
    remove_file("-shm");
    FILE *file = fopen(built.database, "wbe");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(built.pristine, 1, built.length, file), built.length);
    ck_assert_int_eq(fclose(file), 0);
}

static void build(const char *name)
{
    static const uint8_t seed[32] = {7};
    char path[256];
    size_t length;
    struct genesis genesis;
    const struct exchange_limits limits = exchange_limits_default();
    const struct journal_leader me = {.broker = "test"};
    const struct head none = {0};
    const struct journal_sqlite_start start = {.head = &none};
    memset(&built, 0, sizeof built);
    (void)snprintf(built.folder, sizeof built.folder, "/tmp/bourse-replay-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(built.folder));
    (void)snprintf(built.database, sizeof built.database, "%s/" MARKET_DATABASE, built.folder);
    built.log = identity_create(seed);
    built.exchange = exchange_create(&limits);
    ck_assert_int_eq(ledger_store_open(built.database, &built.store), LEDGER_STORE_OK);
    ck_assert_int_eq(journal_sqlite_open(ledger_store_database(built.store), &start, &built.journal,
                                         &built.last, &problem),
                     JOURNAL_OK);
    ck_assert_int_eq(journal_lead(built.journal, 0, &me, &built.epoch), JOURNAL_OK);
    (void)snprintf(path, sizeof path, BOURSE_SOURCE_DIR "/tests/golden/%s.journal", name);
    uint8_t *recorded = read_file(path, &length);
    struct reader in = reader_over(recorded, length);
    while (reader_left(&in) > 0) {
        const uint32_t entry_length = reader_u32(&in);
        const uint8_t *entry = reader_view(&in, entry_length);
        ck_assert_ptr_nonnull(entry);
        store_entry(entry, entry_length, &genesis);
    }
    free(recorded);
    journal_destroy(&built.journal);
    ledger_store_close(&built.store);
    built.end_ns = exchange_log_time_ns(built.exchange);
    exchange_destroy(&built.exchange);
    built.pristine = read_file(built.database, &built.length);
}

static void end(void)
{
    restore();
    remove_file("");
    remove_file("-lock");
    remove_file("-history");
    ck_assert_int_eq(rmdir(built.folder), 0);
    identity_destroy(&built.log);
    free(built.pristine);
}

/* ---------------------------------------------------------------- changes */

static bool change(const char *sql)
{
    sqlite3 *database;
    char *text = NULL;
    restore();
    ck_assert_int_eq(sqlite3_open(built.database, &database), SQLITE_OK);
    const int code = sqlite3_exec(database, sql, NULL, NULL, &text);
    ck_assert_msg(code == SQLITE_OK, "%s: %s", sql, text);
    const bool changed = sqlite3_changes(database) > 0;
    ck_assert_int_eq(sqlite3_close(database), SQLITE_OK);
    return changed;
}

static void assert_named(const char *sql, const char *table, const char *words)
{
    struct replay_summary summary;
    char start[64];
    ck_assert_msg(change(sql), "nothing was changed: %s", sql);
    problem.text[0] = '\0';
    ck_assert_msg(replay_check(built.folder, &summary, &problem) == REPLAY_WRONG,
                  "it passes, or could not be done, after %s: %s", sql, problem.text);
    (void)snprintf(start, sizeof start, "table %s, ", table);
    ck_assert_msg(strncmp(problem.text, start, strlen(start)) == 0 &&
                      strstr(problem.text, words) != NULL,
                  "%s: told as: %s", sql, problem.text);
}

static const char *const tables[TABLES] = {
    "accounts", "transfers", "jobs",        "asks",     "bids",      "cancels",
    "fills",    "results",   "settlements", "flags",    "held",      "epochs",
    "batches",  "tree",      "balances",    "outcomes", "checkpoint"};

/* One value of every column of a row in the middle becomes another, of the same type. */
static void change_columns(const char *table)
{
    sqlite3 *database;
    sqlite3_stmt *columns;
    char sql[512];
    struct column {
        char name[32], type[16];
    } found[32];
    int count = 0;
    restore();
    ck_assert_int_eq(sqlite3_open(built.database, &database), SQLITE_OK);
    (void)snprintf(sql, sizeof sql, "SELECT name, type FROM pragma_table_info('%s')", table);
    ck_assert_int_eq(sqlite3_prepare_v2(database, sql, -1, &columns, NULL), SQLITE_OK);
    while (sqlite3_step(columns) == SQLITE_ROW) {
        struct column *column = &found[count++];
        (void)snprintf(column->name, sizeof column->name, "%s",
                       (const char *)sqlite3_column_text(columns, 0));
        (void)snprintf(column->type, sizeof column->type, "%s",
                       (const char *)sqlite3_column_text(columns, 1));
    }
    (void)sqlite3_finalize(columns);
    (void)sqlite3_close(database);
    ck_assert_int_gt(count, 1);
    for (int i = 0; i < count; i++) {
        const char *name = found[i].name;
        const bool is_key =
            i == 0 || (i == 1 && (strcmp(table, "tree") == 0 || strcmp(table, "outcomes") == 0));
        const char *to = strcmp(found[i].type, "TEXT") == 0   ? "%s || '!'"
                         : strcmp(found[i].type, "BLOB") == 0 ? "CAST(%s || x'07' AS BLOB)"
                                                              : "%s + 100000";
        char words[64];
        char value[64];
        if (strcmp(name, "note") == 0 || strcmp(table, "checkpoint") == 0) {
            continue; /* its own test: it is signed */
        }
        (void)snprintf(value, sizeof value, to, name);
        (void)snprintf(words, sizeof words, is_key ? "%.0sdiffers from its replay" : "column %s ",
                       name);
        (void)snprintf(
            sql, sizeof sql,
            "UPDATE %s SET %s = %s WHERE %s IN (SELECT %s FROM %s WHERE %s IS NOT NULL "
            "ORDER BY %s LIMIT 1 OFFSET (SELECT count(*) / 2 FROM %s WHERE %s IS NOT NULL))",
            table, name, value, name, name, table, name, name, table, name);
        if (strcmp(name, "leaf") == 0 &&
            (strcmp(table, "flags") == 0 || strcmp(table, "transfers") == 0)) {
            (void)snprintf(sql, sizeof sql, "UPDATE %s SET leaf = 1 WHERE leaf IS NULL", table);
        }
        assert_named(sql, table, words);
    }
}

/* One of them sets no flag. */
static const char *journal_with(const char *table)
{
    return strcmp(table, "flags") == 0 ? "orders" : "replay";
}

START_TEST(a_ledger_as_the_broker_wrote_it_agrees)
{
    struct replay_summary summary;
    build(_i == 0 ? "replay" : "orders");
    ck_assert_msg(replay_check(built.folder, &summary, &problem) == REPLAY_OK, "%s", problem.text);
    ck_assert_uint_gt(summary.tree_size, 256); /* so that a level above the leaves is stored */
    end();
}
END_TEST

START_TEST(each_column_of_each_table_is_compared)
{
    build(journal_with(tables[_i]));
    change_columns(tables[_i]);
    end();
}
END_TEST

START_TEST(a_row_that_is_gone_is_named)
{
    char sql[256];
    build(journal_with(tables[_i]));
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM %s WHERE rowid = (SELECT rowid FROM %s ORDER BY 1 LIMIT 1)",
                   tables[_i], tables[_i]);
    if (strcmp(tables[_i], "tree") == 0) {
        (void)snprintf(sql, sizeof sql, "DELETE FROM tree WHERE level = 8");
    } else if (strcmp(tables[_i], "outcomes") == 0) {
        (void)snprintf(sql, sizeof sql, "DELETE FROM outcomes WHERE idx = 0");
    } else if (strcmp(tables[_i], "checkpoint") == 0) {
        (void)snprintf(sql, sizeof sql, "DELETE FROM checkpoint");
    }
    assert_named(sql, tables[_i], "");
    end();
}
END_TEST

static const struct {
    const char *table, *sql, *words;
} more[] = {
    {"flags",
     "INSERT INTO flags SELECT 1000000, log_index, log_time_ns, leaf, owner, state, name FROM "
     "flags LIMIT 1",
     "entry 1000000 differs from its replay: the ledger has this row"},
    {"batches", "INSERT INTO batches SELECT 1000000, signature, leaves FROM batches LIMIT 1",
     "log_index 1000000 differs"},
    {"tree", "INSERT INTO tree SELECT 0, 1000000, hash FROM tree LIMIT 1", "level 0, idx 1000000"},
    {"tree", "INSERT INTO tree SELECT 3, 0, hash FROM tree LIMIT 1", "level 3, idx 0"},
    {"tree", "INSERT INTO tree SELECT 16, 0, hash FROM tree LIMIT 1", "level 16, idx 0"},
    {"balances", "INSERT INTO balances VALUES(1000, 0, 0)", "account 1000 differs"},
    {"outcomes", "INSERT INTO outcomes SELECT job, 1000000, entry, rank FROM outcomes LIMIT 1",
     "idx 1000000"},
    {"checkpoint", "UPDATE checkpoint SET tree_size = 7",
     "column tree_size differs from its replay: the ledger has 7, the journal leads to "},
    {"cancels", "DELETE FROM cancels WHERE entry = (SELECT min(entry) FROM cancels)",
     "differs from its replay: the journal leads to this row, and the ledger does not have it"},
    {"transfers", "UPDATE transfers SET amount = 5 WHERE kind = 3",
     "column amount differs from its replay: the ledger has 5, the journal leads to "},
    {"accounts", "UPDATE accounts SET name = 'a' || char(10) || 'b' WHERE number = 3",
     "the ledger has \"a?b\", the journal leads to \""},
};

START_TEST(what_is_too_much_or_other_is_named_with_both_values)
{
    build("orders");
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        assert_named(more[i].sql, more[i].table, more[i].words);
    }
    end();
}
END_TEST

/* ---------------------------------------------------------------- what does not follow from the
 * journal */

static void write_head(const struct head *head)
{
    char path[96];
    struct head_file *file = NULL;
    (void)snprintf(path, sizeof path, "%s/" MARKET_HEAD, built.folder);
    (void)unlink(path); /* it need not be there */
    ck_assert_int_eq(head_create(path, head, &file, &problem), HEAD_OK);
    head_close(&file);
}

static void assert_head_names(const struct head *head, const char *words)
{
    struct replay_summary summary;
    restore();
    write_head(head);
    problem.text[0] = '\0';
    ck_assert_int_eq(replay_check(built.folder, &summary, &problem), REPLAY_WRONG);
    ck_assert_msg(strstr(problem.text, words) != NULL, "told as: %s", problem.text);
}

START_TEST(the_numbers_of_entries_are_compared)
{
    build("replay");
    assert_named("UPDATE journal SET next_command = next_command + 1000 WHERE idx = 2", "journal",
                 "entry 2, column next_command");
    end();
}
END_TEST

START_TEST(what_stands_below_the_first_entry_is_compared)
{
    static const char *const damages[] = {
        "UPDATE journal_base SET idx = 5",
        "UPDATE journal_base SET chain = x'00'",
        "UPDATE journal_base SET next_command = 2",
        "UPDATE journal_base SET state = x'00'",
        "UPDATE journal_base SET epoch = 0",
        "UPDATE journal_base SET epoch = -1",
        "UPDATE journal_base SET epoch = 9223372036854775807",
        "DELETE FROM journal_base",
    };
    build("replay");
    assert_named(damages[_i], "journal_base", "row 1");
    end();
}
END_TEST

START_TEST(the_journal_reaches_head)
{
    struct replay_summary summary;
    char path[96];
    char words[64];
    build("replay");
    struct head head = {.index = built.last.index, .chain = built.last.chain};
    write_head(&head);
    ck_assert_msg(replay_check(built.folder, &summary, &problem) == REPLAY_OK, "%s", problem.text);
    ck_assert(summary.has_head);
    head.tree_size = summary.tree_size + 1;
    assert_head_names(&head, "table tree, leaf ");
    head.tree_size = 0;
    head.chain.bytes[0] ^= 1;
    assert_head_names(&head, "is not the one that HEAD has seen");
    head.index += 30;
    (void)snprintf(words, sizeof words, "table journal, entry %llu is missing",
                   (unsigned long long)built.last.index + 1);
    assert_head_names(&head, words);
    (void)snprintf(path, sizeof path, "%s/" MARKET_HEAD, built.folder);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(replay_check(built.folder, &summary, &problem), REPLAY_OK);
    ck_assert(!summary.has_head);
    end();
}
END_TEST

/* Three records of an audit log, as a broker appends them. */
static void add_acts(void)
{
    static const uint8_t seed[32] = {9};
    sqlite3 *database;
    struct act_log *log = NULL;
    struct identity *key = identity_create(seed);
    const struct id128 cluster = {{1}};
    restore();
    ck_assert_int_eq(sqlite3_open(built.database, &database), SQLITE_OK);
    ck_assert(act_log_open(database, NULL, key, &cluster, &log, &problem));
    for (int i = 0; i < 3; i++) {
        const struct act act = {
            .kind = i == 0 ? ACT_START : ACT_REFUSAL, .log_index = 1, .target = *identity_key(key)};
        ck_assert_int_eq(act_log_append(log, &act), ACT_LOG_OK);
        act_log_committed(log);
    }
    act_log_close(&log);
    ck_assert_int_eq(sqlite3_close(database), SQLITE_OK);
    identity_destroy(&key);
    free(built.pristine);
    built.pristine = read_file(built.database, &built.length);
}

START_TEST(the_audit_log_is_a_chain)
{
    struct replay_summary summary;
    build("replay");
    add_acts();
    ck_assert_msg(replay_check(built.folder, &summary, &problem) == REPLAY_OK, "%s", problem.text);
    assert_named("UPDATE acts SET bytes = zeroblob(10) WHERE number = 2", "acts", "record 2 ");
    assert_named("UPDATE acts SET log_index = 7 WHERE number = 3", "acts", "record 3 ");
    assert_named("DELETE FROM acts WHERE number = 1", "acts", "record 1 ");
    end();
}
END_TEST

/* Another release goes on here: limits under its rules, then a command of its own. The verdict is
 * neither a difference nor a failure of the machine: the line says both numbers, and what to do. */
START_TEST(a_journal_that_spans_other_rules_is_told_as_that)
{
    struct replay_summary summary;
    struct small_market market;
    char expected[64];
    uint8_t payload[TRANSLATE_LIMITS_BYTES];
    const struct exchange_set_limits set = {.rules = EXCHANGE_RULES + 1,
                                            .limits = exchange_limits_default()};
    translate_limits(&set, payload);
    build("replay");
    const struct entry_command commands[] = {
        {.log_time_ns = built.end_ns,
         .account = UINT32_MAX,
         .kind = ENTRY_LIMITS,
         .payload = payload,
         .payload_length = sizeof payload},
        {.log_time_ns = built.end_ns, .account = UINT32_MAX, .kind = ENTRY_TICK},
    };
    memcpy(market.database, built.database, sizeof market.database);
    (void)small_market_go_on(&market, commands, 2);
    ck_assert_msg(replay_check(built.folder, &summary, &problem) == REPLAY_OTHER_RULES, "%s",
                  problem.text);
    (void)snprintf(expected, sizeof expected, "under rules %d, and this bourse-broker",
                   EXCHANGE_RULES + 1);
    ck_assert_msg(strstr(problem.text, expected) != NULL, "%s", problem.text);
    ck_assert_ptr_nonnull(strstr(problem.text, "RULES: "));
    ck_assert_ptr_nonnull(strstr(problem.text, "bourse-broker audit"));
    end();
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("tables of a replay");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, a_ledger_as_the_broker_wrote_it_agrees, 0, 2);
    tcase_add_loop_test(tests, each_column_of_each_table_is_compared, 0, TABLES - 1);
    tcase_add_loop_test(tests, a_row_that_is_gone_is_named, 0, TABLES);
    tcase_add_test(tests, the_numbers_of_entries_are_compared);
    tcase_add_loop_test(tests, what_stands_below_the_first_entry_is_compared, 0, 8);
    tcase_add_test(tests, the_journal_reaches_head);
    tcase_add_test(tests, the_audit_log_is_a_chain);
    tcase_add_test(tests, a_journal_that_spans_other_rules_is_told_as_that);
    tcase_add_test(tests, what_is_too_much_or_other_is_named_with_both_values);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
