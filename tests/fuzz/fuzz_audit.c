/* The target feeds what the audit reads with code of its own: a journal entry, records of the audit
 * log, HEAD. The maker of the folder may have put anything there. The audit ends with a verdict,
 * and with words when the verdict is not "ok".
 *
 * The input is u16 length and the entry, then up to ACTS_MOST times u16 length and a record, then
 * HEAD. Hashes are set right, so that the code behind their check is reached. */
#include "tests/fuzz/as_file.h"

#include "audit/audit.h"
#include "base/cursor.h"
#include "base/sha256.h"
#include "ledger/store/sqlite.h"

#include <sodium.h>
#include <sqlite3.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LOG_INDEX_AT = 44 }; /* in a record */
enum { ACTS_MOST = 3, ACT_BYTES = 512, HEAD_BYTES = 2048, HEAD_SLOT = 512 };

static sqlite3 *database;
static sqlite3_stmt *put_entry, *put_act;
static char database_path[128];

static void remove_database(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    (void)sqlite3_finalize(put_entry);
    (void)sqlite3_finalize(put_act);
    (void)sqlite3_close(database);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char path[sizeof database_path + 8];
        (void)snprintf(path, sizeof path, "%s%s", database_path, ends[i]);
        (void)unlink(path);
    }
    as_file_remove();
}

static void make_database(void)
{
    static const char tables[] =
        "PRAGMA synchronous = OFF;"
        "CREATE TABLE journal(idx INTEGER PRIMARY KEY, chain BLOB NOT NULL,"
        "  next_command INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;"
        "CREATE TABLE journal_base(id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL,"
        "  idx INTEGER NOT NULL, chain BLOB NOT NULL, state BLOB NOT NULL,"
        "  next_command INTEGER NOT NULL) STRICT;"
        "INSERT INTO journal_base VALUES(1, 9223372036854775806, 0, zeroblob(32), zeroblob(32), 1);"
        "CREATE TABLE acts(number INTEGER PRIMARY KEY, log_index INTEGER NOT NULL,"
        "  chain BLOB NOT NULL, bytes BLOB NOT NULL) STRICT";
    struct ledger_store *store = NULL;
    assert(sodium_init() >= 0);
    (void)snprintf(database_path, sizeof database_path, "%s/ledger.db", as_file_folder());
    assert(ledger_store_open(database_path, &store) == LEDGER_STORE_OK);
    ledger_store_close(&store);
    assert(sqlite3_open(database_path, &database) == SQLITE_OK);
    assert(sqlite3_exec(database, tables, NULL, NULL, NULL) == SQLITE_OK);
    assert(sqlite3_prepare_v2(database, "INSERT INTO journal VALUES(1, ?1, 2, ?2)", -1, &put_entry,
                              NULL) == SQLITE_OK);
    assert(sqlite3_prepare_v2(database, "INSERT INTO acts VALUES(?1, ?4, ?2, ?3)", -1, &put_act,
                              NULL) == SQLITE_OK);
    assert(atexit(remove_database) == 0);
}

static void run_insert(sqlite3_stmt *insert)
{
    assert(sqlite3_step(insert) == SQLITE_DONE);
    assert(sqlite3_reset(insert) == SQLITE_OK);
}

static void insert_entry(struct reader *in)
{
    size_t length = reader_u16(in);
    const uint8_t *bytes = reader_view(in, length);
    if (bytes != NULL && length > 0) {
        struct hash32 chain = sha256_of(bytes, length);
        assert(sqlite3_bind_blob(put_entry, 1, chain.bytes, 32, SQLITE_STATIC) == SQLITE_OK);
        assert(sqlite3_bind_blob(put_entry, 2, bytes, (int)length, SQLITE_STATIC) == SQLITE_OK);
        run_insert(put_entry);
    }
}

static void insert_acts(struct reader *in)
{
    uint8_t chained[32 + ACT_BYTES] = {0};
    struct hash32 chain = {{0}};
    for (int number = 1; number <= ACTS_MOST; number++) {
        size_t length = reader_u16(in) % (ACT_BYTES + 1);
        const uint8_t *bytes = reader_view(in, length);
        if (bytes == NULL || length == 0) {
            break;
        }
        memcpy(chained + 32, bytes, length);
        chain = sha256_of(chained, 32 + length);
        memcpy(chained, chain.bytes, 32);
        assert(sqlite3_bind_int(put_act, 1, number) == SQLITE_OK);
        assert(sqlite3_bind_blob(put_act, 2, chain.bytes, 32, SQLITE_STATIC) == SQLITE_OK);
        assert(sqlite3_bind_blob(put_act, 3, bytes, (int)length, SQLITE_STATIC) == SQLITE_OK);
        struct reader record = reader_over(bytes, length);
        (void)reader_view(&record, LOG_INDEX_AT);
        sqlite3_int64 log_index = reader_i64(&record); /* as its row has it */
        assert(sqlite3_bind_int64(put_act, 4, log_index) == SQLITE_OK);
        run_insert(put_act);
    }
}

static void write_head(const uint8_t *bytes, size_t length)
{
    uint8_t head[HEAD_BYTES] = {0};
    memcpy(head, bytes, length < sizeof head ? length : sizeof head);
    for (size_t at = 0; at < HEAD_BYTES; at += HEAD_SLOT) {
        struct hash32 hash = sha256_of(head + at, HEAD_SLOT - 32);
        memcpy(head + at + HEAD_SLOT - 32, hash.bytes, 32);
    }
    (void)as_file("HEAD", head, sizeof head);
}

static bool on_act(void *context, const struct audit_act *act)
{
    int *count = context;
    assert(memchr(act->text, 0, sizeof act->text) != NULL);
    assert(audit_act_name(act->kind)[0] != '\0');
    return ++*count <= ACTS_MOST;
}

static void check_report(const struct audit_report *report)
{
    assert(memchr(report->what, 0, sizeof report->what) != NULL);
    assert((report->verdict == AUDIT_OK) == (report->what[0] == '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct audit_report report;
    if (database == NULL) {
        make_database();
    }
    assert(sqlite3_exec(database, "BEGIN; DELETE FROM journal; DELETE FROM acts", NULL, NULL,
                        NULL) == SQLITE_OK);
    struct reader in = reader_over(data, size);
    insert_entry(&in);
    insert_acts(&in);
    assert(sqlite3_exec(database, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
    write_head(data + in.position, size - in.position);

    int acts = 0;
    audit_run(as_file_folder(), &report);
    check_report(&report);
    audit_acts_run(as_file_folder(), 1, on_act, &acts, &report);
    check_report(&report);
    return 0;
}
