/* The keeper lets accounts take turns, reads a bounded number of manifests in a look, tries again
 * what cannot be read now, and lets files expire by log time. */
#include "broker/blob/keeper/keeper_internal.h"

#include "broker/blob/port/forget_order.h"
#include "broker/core/logtime.h"
#include "broker/core/outgoing.h"
#include "ledger/store/sqlite.h"
#include "protocol/codec.h"
#include "tests/support/blob_store_play.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

#define SECOND_NS INT64_C(1000000000)
#define YEAR_S INT64_C(31536000)

enum { GRACE_MS = 60000, ENDED_S = 100 };

static struct {
    sqlite3 *ledger, *blobs;
    struct logtime *clock;
    struct queue *notes;
    pthread_t thread;
    int64_t entry;
    struct keeper keeper;
} world;

static void run_sql(sqlite3 *database, const char *sql)
{
    ck_assert_msg(sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(database));
}

static int64_t number(sqlite3 *database, const char *sql)
{
    sqlite3_stmt *select = NULL;
    ck_assert_int_eq(sqlite3_prepare_v2(database, sql, -1, &select, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(select), SQLITE_ROW);
    const int64_t value = sqlite3_column_int64(select, 0);
    (void)sqlite3_finalize(select);
    return value;
}

/* Stands in for the blob port's thread. */
static void *do_orders(void *argument)
{
    (void)argument;
    while (!queue_finished(world.notes)) {
        struct queue_link *link = queue_pop(world.notes, QUEUE_FOREVER);
        if (link == NULL) {
            continue;
        }
        struct outgoing *note = QUEUE_ELEMENT(link, struct outgoing, link);
        struct forget_order *order = note->order;
        outgoing_destroy(&note);
        ck_assert_int_eq(forget_order_do(order, store), BLOB_OK);
        watermark_raise(&order->done, 1);
    }
    return NULL;
}

static void set_log_time(int64_t log_s)
{
    logtime_destroy(&world.clock);
    world.clock = logtime_create(log_s * SECOND_NS);
    ck_assert_ptr_nonnull(world.clock);
    world.keeper.config.clock = world.clock;
    world.keeper.next_expiry_ns = world.keeper.next_removal_ns = 0;
}

static void begin(void)
{
    struct ledger_store *ledger = NULL;
    char path[128];
    setup();
    (void)snprintf(path, sizeof path, "%s/ledger.db", folder);
    ck_assert_int_eq(ledger_store_open(path, &ledger), LEDGER_STORE_OK);
    ledger_store_close(&ledger);
    ck_assert_int_eq(sqlite3_open(path, &world.ledger), SQLITE_OK);
    world.keeper = (struct keeper){.tidied_account = -1,
                                   .expired_account = -1,
                                   .config = {.quota_bytes = 1 << 20,
                                              .retain_ms = INT64_MAX,
                                              .retain_most_ms = INT64_MAX,
                                              .grace_ms = GRACE_MS}};
    (void)snprintf(world.keeper.config.database, sizeof world.keeper.config.database, "%s", path);
    (void)snprintf(world.keeper.config.blobs, sizeof world.keeper.config.blobs, "%s", folder);
    (void)snprintf(path, sizeof path, "%s/blobs.db", folder);
    ck_assert_int_eq(sqlite3_open(path, &world.blobs), SQLITE_OK);
    (void)sqlite3_busy_timeout(world.blobs, 5000);
    run_sql(world.ledger,
            "INSERT INTO accounts VALUES (1, 1, 1, NULL, 3, "
            "x'0303030303030303030303030303030303030303030303030303030303030303', 1, 'alice'),"
            "(2, 1, 1, NULL, 4, "
            "x'0404040404040404040404040404040404040404040404040404040404040404', 1, 'bob')");
    world.entry = 3;
    world.notes = queue_create(16);
    ck_assert_ptr_nonnull(world.notes);
    world.keeper.config.notes = world.notes;
    ck_assert_int_eq(pthread_create(&world.thread, NULL, do_orders, NULL), 0);
    ck_assert(keeper_open(&world.keeper));
    set_log_time(ENDED_S);
}

static void end(void)
{
    keeper_close(&world.keeper);
    queue_close(world.notes);
    (void)pthread_join(world.thread, NULL);
    queue_destroy(&world.notes);
    logtime_destroy(&world.clock);
    (void)sqlite3_close(world.ledger);
    (void)sqlite3_close(world.blobs);
    teardown();
}

static struct hash32 send_bytes(uint32_t account, const void *bytes, size_t length)
{
    const struct hash32 hash = sha256_of(bytes, length);
    uint64_t stored;
    bool complete = false;
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    const struct blob_chunk chunk = {
        .account = account, .hash = hash, .size = length, .data = bytes, .length = length};
    ck_assert_int_eq(blob_store_put(store, &chunk, 0, &stored, &complete), BLOB_OK);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    ck_assert(complete);
    return hash;
}

/* Adds job `number` of the account with a manifest of its own, which is all that the job stores.
 * `retain_ms` negative: the job says nothing. */
static void add_job(uint32_t account, unsigned number, int64_t retain_ms, bool has_ended)
{
    char name[32];
    char sql[512];
    char manifest_hex[65];
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    (void)snprintf(name, sizeof name, "job %u", number);
    manifest.version = 1;
    manifest.executor = "command";
    manifest.name = name;
    manifest.subtask_count = 1;
    manifest.has_retain_ms = retain_ms >= 0;
    manifest.retain_ms = retain_ms >= 0 ? retain_ms : 0;
    size_t length = 0;
    uint8_t *bytes = codec_encode(&manifest.base, &length);
    ck_assert_ptr_nonnull(bytes);
    const struct hash32 hash = send_bytes(account, bytes, length);
    free(bytes);
    text_hex(hash.bytes, sizeof hash.bytes, manifest_hex);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO jobs VALUES (%lld, 1, 1000000, NULL, x'%032x', "
                   "(SELECT key FROM accounts WHERE number = %u), x'%s', 1, 1, 1, 1, 'job')",
                   (long long)world.entry++, number, account, manifest_hex);
    run_sql(world.ledger, sql);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO settlements VALUES (%lld, 1, %lld, NULL, x'%032x', 1, 1, 0, 0, 0, "
                   "0)",
                   (long long)world.entry++, (long long)(ENDED_S * SECOND_NS), number);
    if (has_ended) {
        run_sql(world.ledger, sql);
    }
}

static size_t count_jobs(bool (*is)(const struct known_job *))
{
    size_t count = 0;
    for (size_t i = 0; i < job_catalog_count(world.keeper.catalog); i++) {
        count += is(job_catalog_at(world.keeper.catalog, i));
    }
    return count;
}

static bool has_expiry(const struct known_job *job)
{
    return job->expires_ms != 0;
}

static bool is_forgotten(const struct known_job *job)
{
    return job->is_forgotten;
}

/* The wall clock of this machine is decades ahead of log time, as after a jump. */
START_TEST(files_expire_by_log_time_alone)
{
    add_job(ALICE, 1, YEAR_S * 1000, true);
    set_log_time(ENDED_S + YEAR_S - 100);
    keeper_expire(&world.keeper);
    ck_assert_uint_eq(count_jobs(has_expiry), 1);
    ck_assert_uint_eq(count_jobs(is_forgotten), 0);
    set_log_time(ENDED_S + YEAR_S + 1);
    keeper_expire(&world.keeper);
    ck_assert_uint_eq(count_jobs(is_forgotten), 1);
    ck_assert_int_eq(usage(ALICE), 0);
}
END_TEST

START_TEST(no_files_expire_before_the_shortest_time)
{
    world.keeper.config.retain_least_ms = 600000;
    add_job(ALICE, 1, 0, true);
    set_log_time(ENDED_S + 500);
    keeper_expire(&world.keeper);
    ck_assert_uint_eq(count_jobs(is_forgotten), 0);
    set_log_time(ENDED_S + 601);
    keeper_expire(&world.keeper);
    ck_assert_uint_eq(count_jobs(is_forgotten), 1);
}
END_TEST

START_TEST(a_look_reads_a_bounded_number_of_manifests)
{
    enum { JOBS = KEEPER_MANIFESTS_AT_ONCE + 44 };
    for (unsigned i = 1; i <= JOBS; i++) {
        add_job(ALICE, i, -1, true);
    }
    keeper_expire(&world.keeper);
    ck_assert_uint_eq(count_jobs(has_expiry), KEEPER_MANIFESTS_AT_ONCE);
    keeper_expire(&world.keeper); /* the next look comes at once, and has the rest */
    ck_assert_uint_eq(count_jobs(has_expiry), JOBS);
    const int64_t next_ns = world.keeper.next_expiry_ns;
    keeper_expire(&world.keeper); /* is not due */
    ck_assert_int_eq(world.keeper.next_expiry_ns, next_ns);
}
END_TEST

START_TEST(what_cannot_be_read_now_is_tried_again)
{
    add_job(ALICE, 1, 0, true);
    add_job(BOB, 2, 0, true);
    run_sql(world.ledger, "UPDATE jobs SET manifest = substr(manifest, 1, 31) WHERE entry = 3");
    set_log_time(ENDED_S + 10);
    keeper_expire(&world.keeper);
    ck_assert_uint_eq(count_jobs(has_expiry), 1);
    ck_assert_uint_eq(count_jobs(is_forgotten), 1); /* the other job goes */
    ck_assert_int_gt(usage(ALICE), 0);

    add_job(ALICE, 3, -1, false); /* the catalogue is read again */
    run_sql(world.ledger, "UPDATE jobs SET manifest = (SELECT manifest FROM jobs WHERE entry = 7) "
                          "WHERE entry = 3");
    run_sql(world.ledger, "DELETE FROM jobs WHERE entry = 7");
    for (int i = 0; i < 3; i++) {
        set_log_time(ENDED_S + 20);
        keeper_expire(&world.keeper);
    }
    ck_assert_uint_eq(count_jobs(has_expiry), 2);
}
END_TEST

static int64_t condemned_of(uint32_t account)
{
    char sql[96];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM condemned WHERE account = %u", account);
    return number(world.blobs, sql);
}

static void condemn_job(unsigned number)
{
    struct keeper_share share;
    struct id128 id = {{0}};
    id.bytes[15] = (uint8_t)number;
    ck_assert(keeper_learn(&world.keeper));
    struct known_job *job = job_catalog_find(world.keeper.catalog, &id);
    ck_assert_ptr_nonnull(job);
    ck_assert_int_eq(
        keeper_forget(&world.keeper, job->account, &job, 1, FORGET_ASKED, false, &share),
        KEEPER_OK);
    ck_assert_uint_eq(share.blobs, 1);
}

START_TEST(accounts_take_turns_when_blobs_are_removed)
{
    add_job(ALICE, 1, -1, true);
    add_job(BOB, 2, -1, true);
    condemn_job(1);
    condemn_job(2);
    set_log_time(ENDED_S + GRACE_MS / 1000 - 10);
    keeper_tidy(&world.keeper);
    ck_assert_int_eq(condemned_of(ALICE) + condemned_of(BOB), 2); /* within the grace */

    set_log_time(ENDED_S + GRACE_MS / 1000 + 10);
    keeper_tidy(&world.keeper);
    ck_assert_int_eq(condemned_of(ALICE), 0);
    ck_assert_int_eq(condemned_of(BOB), 1);
    keeper_tidy(&world.keeper);
    ck_assert_int_eq(condemned_of(BOB), 0);
    ck_assert_int_eq(number(world.blobs, "SELECT count(*) FROM blob"), 0);
    keeper_tidy(&world.keeper); /* the round ends, and no account waits */
    ck_assert_int_eq(world.keeper.next_removal_ns, 0);
    ck_assert_int_eq(world.keeper.tidied_account, -1);
}
END_TEST

/* An open job of alice needs files that nobody knows while its manifest is lost. */
START_TEST(an_account_that_waits_holds_up_no_other)
{
    add_job(ALICE, 1, -1, true);
    add_job(BOB, 2, -1, true);
    condemn_job(1);
    condemn_job(2);
    add_job(ALICE, 3, -1, false);
    run_sql(world.ledger, "UPDATE jobs SET manifest = randomblob(32) WHERE entry = 7");
    set_log_time(ENDED_S + GRACE_MS / 1000 + 10);
    for (int i = 0; i < 2; i++) {
        keeper_tidy(&world.keeper);
    }
    ck_assert_int_eq(condemned_of(ALICE), 1);
    ck_assert_int_eq(condemned_of(BOB), 0);
    for (int i = 0; i < 2 && world.keeper.next_removal_ns == 0; i++) {
        keeper_tidy(&world.keeper);
    }
    ck_assert_int_gt(world.keeper.next_removal_ns, 0); /* is tried again later */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("keeper");
    TCase *tests = tcase_create("keeper");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, files_expire_by_log_time_alone);
    tcase_add_test(tests, no_files_expire_before_the_shortest_time);
    tcase_add_test(tests, a_look_reads_a_bounded_number_of_manifests);
    tcase_add_test(tests, what_cannot_be_read_now_is_tried_again);
    tcase_add_test(tests, accounts_take_turns_when_blobs_are_removed);
    tcase_add_test(tests, an_account_that_waits_holds_up_no_other);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
