/* bench/ledger.c measures durable transfers per second of the ledger's store beside raw SQLite, and
 * what a subtask takes on the disk. The program prints one JSON object.
 *
 *     ledger [--json] [--rounds N] [--transfers N] [--batch N] [--accounts N]
 *
 * A round has both ways, one after the other, in a new folder below /tmp. `store` appends captures
 * between --accounts accounts [100], --batch of them [1000] to a commit, with balances netted once
 * per commit (ledger/store/sqlite.h). `raw` has the least that SQLite can do for the same promise:
 * one row for each transfer in a table without an index, and the same netted balances. Every commit
 * is synced. `subtasks` appends results of no-ops, 256 to a signature, without journal entries. */
#include "ledger/store/sqlite.h"
#include "runtime/clock.h"

#include <getopt.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUNDS_MOST = 100, ACCOUNTS_MOST = 10000, PATH_SIZE = 96, RESULT_BYTES = 280, BATCH = 256 };

static uint32_t rounds = 5, transfers = 200000, batch = 1000, accounts = 100;
static char folder[] = "/tmp/bourse-bench-ledger-XXXXXX";

static _Noreturn void die(const char *what)
{
    (void)fprintf(stderr, "ledger: %s\n", what);
    exit(1);
}

static void path_of(const char *name, char ret_path[PATH_SIZE])
{
    (void)snprintf(ret_path, PATH_SIZE, "%s/%s", folder, name);
}

static void forget(const char *name)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char path[PATH_SIZE + 8];
        (void)snprintf(path, sizeof path, "%s/%s%s", folder, name, ends[i]);
        (void)unlink(path); /* it may not be there */
    }
}

/* A way took so long in one round. */
struct took {
    double per_s, cpu_us;
};

static int64_t processor_ns(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
           (int64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

static struct took took_since(int64_t wall_ns, int64_t cpu_ns, uint32_t count)
{
    return (struct took){.per_s = (double)count * 1e9 / (double)(clock_monotonic_ns() - wall_ns),
                         .cpu_us = (double)(processor_ns() - cpu_ns) / 1e3 / (double)count};
}

/* ---------------------------------------------------------------- the store */

static void must(struct ledger_store *store, enum ledger_store_status status)
{
    if (status != LEDGER_STORE_OK) {
        die(ledger_store_error(store));
    }
}

static struct ledger_store *open_store(const char *name)
{
    char path[PATH_SIZE];
    struct ledger_store *store = NULL;
    path_of(name, path);
    if (ledger_store_open(path, &store) != LEDGER_STORE_OK) {
        die("the ledger cannot be opened");
    }
    return store;
}

/* Gives every account something to pay with, as held money. */
static void fund(struct ledger_store *store)
{
    must(store, ledger_store_begin(store));
    for (uint32_t i = 1; i <= accounts; i++) {
        const struct ledger_record mint = {
            .kind = LEDGER_TRANSFER, .log_index = 1, .credit = i, .amount_micro = INT64_C(1) << 40};
        const struct ledger_record hold = {.kind = LEDGER_HOLD,
                                           .log_index = 1,
                                           .debit = i,
                                           .credit = i,
                                           .amount_micro = INT64_C(1) << 40};
        must(store, ledger_store_append(store, &mint, NULL));
        must(store, ledger_store_append(store, &hold, NULL));
    }
    must(store, ledger_store_commit(store));
}

static struct ledger_record capture_of(uint32_t number)
{
    struct ledger_record capture = {.kind = LEDGER_CAPTURE,
                                    .log_index = 2 + number / batch,
                                    .log_time_ns = number,
                                    .debit = 1 + number % accounts,
                                    .credit = 1 + number * 7 % accounts,
                                    .amount_micro = 1 + number % 1000,
                                    .lease = number / 1000,
                                    .index = number};
    memcpy(capture.job.bytes, &number, 2);
    return capture;
}

static struct took time_store(void)
{
    struct ledger_store *store = open_store("store.db");
    fund(store);
    const int64_t wall_ns = clock_monotonic_ns();
    const int64_t cpu_ns = processor_ns();
    for (uint32_t done = 0; done < transfers;) {
        must(store, ledger_store_begin(store));
        for (uint32_t i = 0; i < batch && done < transfers; i++) {
            const struct ledger_record capture = capture_of(done++);
            must(store, ledger_store_append(store, &capture, NULL));
        }
        must(store, ledger_store_commit(store));
    }
    const struct took took = took_since(wall_ns, cpu_ns, transfers);
    ledger_store_close(&store);
    forget("store.db");
    return took;
}

/* ---------------------------------------------------------------- raw SQLite */

struct raw {
    sqlite3 *database;
    sqlite3_stmt *insert, *move;
    int64_t net[ACCOUNTS_MOST + 1];
};

static void raw_must(const struct raw *raw, bool good)
{
    if (!good) {
        die(sqlite3_errmsg(raw->database));
    }
}

static void raw_run(const struct raw *raw, const char *sql)
{
    raw_must(raw, sqlite3_exec(raw->database, sql, NULL, NULL, NULL) == SQLITE_OK);
}

static void raw_open(struct raw *raw)
{
    char path[PATH_SIZE];
    path_of("raw.db", path);
    raw_must(raw, sqlite3_open_v2(path, &raw->database,
                                  SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                                  NULL) == SQLITE_OK);
    raw_run(raw, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                 "CREATE TABLE transfers(entry INTEGER PRIMARY KEY, debit INTEGER, credit INTEGER,"
                 " amount INTEGER, job BLOB, lease INTEGER, idx INTEGER) STRICT;"
                 "CREATE TABLE balances(account INTEGER PRIMARY KEY, available INTEGER) STRICT;");
    for (uint32_t i = 1; i <= accounts; i++) {
        char sql[80];
        (void)snprintf(sql, sizeof sql, "INSERT INTO balances VALUES(%" PRIu32 ", 0)", i);
        raw_run(raw, sql);
    }
    raw_must(raw, sqlite3_prepare_v2(raw->database,
                                     "INSERT INTO transfers VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)", -1,
                                     &raw->insert, NULL) == SQLITE_OK &&
                      sqlite3_prepare_v2(
                          raw->database,
                          "UPDATE balances SET available = available + ?2 WHERE account = ?1", -1,
                          &raw->move, NULL) == SQLITE_OK);
}

static void raw_insert(struct raw *raw, uint32_t number)
{
    const struct ledger_record transfer = capture_of(number);
    (void)sqlite3_bind_int64(raw->insert, 1, number);
    (void)sqlite3_bind_int64(raw->insert, 2, transfer.debit);
    (void)sqlite3_bind_int64(raw->insert, 3, transfer.credit);
    (void)sqlite3_bind_int64(raw->insert, 4, transfer.amount_micro);
    (void)sqlite3_bind_blob(raw->insert, 5, transfer.job.bytes, 16, SQLITE_STATIC);
    (void)sqlite3_bind_int64(raw->insert, 6, (sqlite3_int64)transfer.lease);
    (void)sqlite3_bind_int64(raw->insert, 7, transfer.index);
    raw_must(raw, sqlite3_step(raw->insert) == SQLITE_DONE);
    (void)sqlite3_reset(raw->insert); /* repeats the step's code */
    raw->net[transfer.debit] -= transfer.amount_micro;
    raw->net[transfer.credit] += transfer.amount_micro;
}

static void raw_move(struct raw *raw)
{
    for (uint32_t i = 1; i <= accounts; i++) {
        if (raw->net[i] != 0) {
            (void)sqlite3_bind_int64(raw->move, 1, i);
            (void)sqlite3_bind_int64(raw->move, 2, raw->net[i]);
            raw_must(raw, sqlite3_step(raw->move) == SQLITE_DONE);
            (void)sqlite3_reset(raw->move); /* repeats the step's code */
            raw->net[i] = 0;
        }
    }
}

static struct took time_raw(void)
{
    static struct raw raw;
    raw = (struct raw){.database = NULL};
    raw_open(&raw);
    const int64_t wall_ns = clock_monotonic_ns();
    const int64_t cpu_ns = processor_ns();
    for (uint32_t done = 0; done < transfers;) {
        raw_run(&raw, "BEGIN IMMEDIATE");
        for (uint32_t i = 0; i < batch && done < transfers; i++) {
            raw_insert(&raw, done++);
        }
        raw_move(&raw);
        raw_run(&raw, "COMMIT");
    }
    const struct took took = took_since(wall_ns, cpu_ns, transfers);
    (void)sqlite3_finalize(raw.insert);
    (void)sqlite3_finalize(raw.move);
    (void)sqlite3_close(raw.database);
    forget("raw.db");
    return took;
}

/* ---------------------------------------------------------------- subtasks */

static struct ledger_record result_of(uint32_t number, const uint8_t bytes[RESULT_BYTES])
{
    struct ledger_record result = {.kind = LEDGER_RESULT,
                                   .log_index = 2 + number / BATCH,
                                   .log_time_ns = number,
                                   .lease = 1,
                                   .index = number,
                                   .attempt = 1,
                                   .price_micro = 100000,
                                   .paid_ns = 20000,
                                   .result = bytes,
                                   .result_length = RESULT_BYTES,
                                   .position = number % BATCH,
                                   .batch_index = 2 + number / BATCH};
    memset(result.owner.bytes, 1, sizeof result.owner.bytes);
    memset(result.provider.bytes, 2, sizeof result.provider.bytes);
    memcpy(result.hash.bytes, &number, sizeof number);
    return result;
}

/* Counts the rows of all tables that grow with the subtasks. */
static double rows_of(const char *path)
{
    static const char sql[] =
        "SELECT (SELECT count(*) FROM results) + (SELECT count(*) FROM outcomes) +"
        " (SELECT count(*) FROM tree) + (SELECT count(*) FROM batches)";
    sqlite3 *database = NULL;
    sqlite3_stmt *select = NULL;
    if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(database, sql, -1, &select, NULL) != SQLITE_OK ||
        sqlite3_step(select) != SQLITE_ROW) {
        die("the rows cannot be counted");
    }
    const double rows = sqlite3_column_double(select, 0);
    (void)sqlite3_finalize(select); /* only read */
    (void)sqlite3_close(database);
    return rows;
}

static struct took time_subtasks(double *ret_bytes, double *ret_rows)
{
    static uint8_t bytes[RESULT_BYTES];
    static struct hash32 leaves[BATCH];
    char path[PATH_SIZE];
    struct stat status = {.st_size = 0};
    const struct ledger_batch signature = {.leaves = leaves, .count = BATCH};
    struct ledger_store *store = open_store("subtasks.db");
    const int64_t wall_ns = clock_monotonic_ns();
    const int64_t cpu_ns = processor_ns();
    for (uint32_t done = 0; done < transfers;) {
        must(store, ledger_store_begin(store));
        for (uint32_t i = 0; i < batch && done < transfers; i++) {
            const struct ledger_record result = result_of(done++, bytes);
            must(store, ledger_store_append(store, &result, &signature));
        }
        must(store, ledger_store_commit(store));
    }
    const struct took took = took_since(wall_ns, cpu_ns, transfers);
    ledger_store_close(&store);
    path_of("subtasks.db", path);
    if (stat(path, &status) != 0) {
        die("the ledger is gone");
    }
    *ret_bytes = (double)status.st_size / (double)transfers;
    *ret_rows = rows_of(path) / (double)transfers;
    forget("subtasks.db");
    return took;
}

/* ---------------------------------------------------------------- figures */

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static void print_spread(const char *name, double *values, int decimals)
{
    qsort(values, rounds, sizeof *values, compare);
    (void)printf("\"%s\":%.*f,\"%s_range\":[%.*f,%.*f]", name, decimals,
                 (values[rounds / 2] + values[(rounds - 1) / 2]) / 2, name, decimals, values[0],
                 decimals, values[rounds - 1]);
}

static void measure(void)
{
    enum { STORE, RAW, RATIO, STORE_US, RAW_US, SUBTASKS, SUBTASK_US, FIGURES };
    static const char *const names[FIGURES] = {"store_per_s",   "raw_per_s",  "ratio",
                                               "store_cpu_us",  "raw_cpu_us", "subtasks_per_s",
                                               "subtask_cpu_us"};
    static double values[FIGURES][ROUNDS_MOST];
    double bytes = 0;
    double rows = 0;
    for (uint32_t i = 0; i < rounds; i++) {
        const struct took store = time_store();
        const struct took raw = time_raw();
        const struct took subtasks = time_subtasks(&bytes, &rows);
        values[STORE][i] = store.per_s;
        values[RAW][i] = raw.per_s;
        values[RATIO][i] = store.per_s / raw.per_s;
        values[STORE_US][i] = store.cpu_us;
        values[RAW_US][i] = raw.cpu_us;
        values[SUBTASKS][i] = subtasks.per_s;
        values[SUBTASK_US][i] = subtasks.cpu_us;
    }
    (void)printf("{\"transfers\":%" PRIu32 ",\"batch\":%" PRIu32 ",\"accounts\":%" PRIu32
                 ",\"sqlite\":\"%s\",",
                 transfers, batch, accounts, sqlite3_libversion());
    for (size_t i = 0; i < FIGURES; i++) {
        print_spread(names[i], values[i], i == RATIO || i == STORE_US || i >= RAW_US ? 2 : 0);
        (void)printf(",");
    }
    (void)printf("\"rows_per_subtask\":%.2f,\"bytes_per_subtask\":%.0f}\n", rows, bytes);
}

static bool read_number(const char *text, uint32_t most, uint32_t *ret_number)
{
    char *end = NULL;
    const unsigned long number = strtoul(text, &end, 10);
    *ret_number = (uint32_t)number;
    return end != text && *end == '\0' && number > 0 && number <= most;
}

static bool read_options(int argc, char **argv)
{
    enum { JSON = 1, ROUNDS, TRANSFERS, PER_COMMIT, ACCOUNTS };
    static const struct option table[] = {{"json", no_argument, NULL, JSON},
                                          {"rounds", required_argument, NULL, ROUNDS},
                                          {"transfers", required_argument, NULL, TRANSFERS},
                                          {"batch", required_argument, NULL, PER_COMMIT},
                                          {"accounts", required_argument, NULL, ACCOUNTS},
                                          {NULL, 0, NULL, 0}};
    bool good = true;
    for (int found; good && (found = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        good = found == JSON /* the only form there is */ ||
               (found == ROUNDS && read_number(optarg, ROUNDS_MOST, &rounds)) ||
               (found == TRANSFERS && read_number(optarg, 100000000, &transfers)) ||
               (found == PER_COMMIT && read_number(optarg, 1000000, &batch)) ||
               (found == ACCOUNTS && read_number(optarg, ACCOUNTS_MOST, &accounts));
    }
    return good && optind == argc;
}

int main(int argc, char **argv)
{
    if (!read_options(argc, argv)) {
        (void)fprintf(stderr, "usage: ledger [--json] [--rounds 5] [--transfers 200000] "
                              "[--batch 1000] [--accounts 100]\n");
        return 2;
    }
    if (sodium_init() < 0 || mkdtemp(folder) == NULL) {
        die("the process cannot start");
    }
    measure();
    (void)rmdir(folder); /* it is empty */
    return 0;
}
