/* Jobs come, end and are forgotten in random order, while other jobs are about to use the same
 * files. Orders fail half-way as on a full disk, and the keeper starts anew. After each step every
 * open job has all its blobs, every job that was not forgotten is whole, and the account is charged
 * for what it owns. At the end all is forgotten, and no blob is left. */
#include "broker/blob/keeper/keeper_internal.h"

#include "base/random.h"
#include "broker/blob/port/forget_order.h"
#include "broker/core/outgoing.h"
#include "ledger/store/sqlite.h"
#include "protocol/codec.h"
#include "protocol/message.h"
#include "tests/support/blob_store_play.h"
#include "tests/support/property_seed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

enum { POOL = 24, JOBS_MAX = 120, INPUTS = 4, STEPS = 400, GRACE_MS = 3600000, QUOTA = 1 << 20 };

struct planned {
    struct id128 id;
    struct hash32 blobs[INPUTS + 2]; /* inputs, the manifest, then an output of its result */
    size_t inputs;
    enum { IN_FLIGHT, OPEN, ENDED, FORGOTTEN } state;
    bool has_result;
};

static struct {
    struct planned jobs[JOBS_MAX];
    size_t count;
    int64_t entry; /* of the ledger, the next */
    sqlite3 *ledger, *blobs;
    struct logtime *clock;
    struct queue *notes;
    pthread_t thread;
    unsigned waited; /* forgettings that had to wait for the end of the grace */
    struct keeper keeper;
    atomic_int orders_left; /* before an order fails; negative: none fails */
    struct random dice;
} world;

static void run_sql(sqlite3 *database, const char *sql)
{
    ck_assert_msg(sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(database));
}

static void hex_of(const void *bytes, size_t length, char ret_hex[65])
{
    text_hex(bytes, length, ret_hex);
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
        if (atomic_fetch_sub(&world.orders_left, 1) == 0) {
            order->bytes = 0;
            order->is_full = true;
        } else {
            ck_assert_int_eq(forget_order_do(order, store), BLOB_OK);
        }
        watermark_raise(&order->done, 1);
    }
    return NULL;
}

/* About six blobs: more than so many are often condemned, and the next forgetting must wait. */
enum { QUOTA_BYTES = 120 };

static void open_keeper(void)
{
    world.keeper = (struct keeper){.config = {.notes = world.notes,
                                              .clock = world.clock,
                                              .quota_bytes = QUOTA_BYTES,
                                              .retain_ms = INT64_MAX / 2,
                                              .retain_most_ms = INT64_MAX / 2,
                                              .grace_ms = GRACE_MS}};
    (void)snprintf(world.keeper.config.database, sizeof world.keeper.config.database,
                   "%s/ledger.db", folder);
    (void)snprintf(world.keeper.config.blobs, sizeof world.keeper.config.blobs, "%s", folder);
    ck_assert(keeper_open(&world.keeper));
    ck_assert(keeper_learn(&world.keeper));
}

static void begin(void)
{
    struct ledger_store *ledger = NULL;
    char path[128];
    setup();
    reopen(QUOTA);
    (void)snprintf(path, sizeof path, "%s/ledger.db", folder);
    ck_assert_int_eq(ledger_store_open(path, &ledger), LEDGER_STORE_OK);
    ledger_store_close(&ledger);
    ck_assert_int_eq(sqlite3_open(path, &world.ledger), SQLITE_OK);
    (void)snprintf(path, sizeof path, "%s/blobs.db", folder);
    ck_assert_int_eq(sqlite3_open(path, &world.blobs), SQLITE_OK);
    (void)sqlite3_busy_timeout(world.blobs, 5000);
    run_sql(world.ledger, "INSERT INTO accounts VALUES (1, 1, 1, NULL, 3, "
                          "x'0303030303030303030303030303030303030303030303030303030303030303', 1, "
                          "'alice')");
    world.entry = 2;
    world.count = 0;
    atomic_store(&world.orders_left, -1);
    world.clock = logtime_create(INT64_C(1700000000000000000));
    ck_assert_ptr_nonnull(world.clock);
    world.notes = queue_create(16);
    ck_assert_ptr_nonnull(world.notes);
    ck_assert_int_eq(pthread_create(&world.thread, NULL, do_orders, NULL), 0);
    open_keeper();
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

/* ---------------------------------------------------------------- blobs and jobs */

static struct hash32 send_bytes(const void *bytes, size_t length)
{
    const struct hash32 hash = sha256_of(bytes, length);
    uint64_t stored;
    bool complete = false;
    ck_assert_int_eq(put(ALICE, hash, bytes, length, 0, length, &stored, &complete), BLOB_OK);
    ck_assert(complete);
    return hash;
}

/* Sends blob `number` of the pool if the store does not say that it is there. */
static struct hash32 send_from_pool(uint64_t number)
{
    char text[32];
    const int length = snprintf(text, sizeof text, "blob %02u of the pool", (unsigned)number);
    const struct hash32 hash = sha256_of(text, (size_t)length);
    return blob_store_has(store, ALICE, NULL, &hash) == BLOB_OK ? hash
                                                                : send_bytes(text, (size_t)length);
}

/* A client sends what a job needs. The job is submitted in a later step. */
static void begin_job(void)
{
    struct planned *job = &world.jobs[world.count++];
    Bourse__V1__ManifestInput inputs[INPUTS];
    Bourse__V1__ManifestInput *shared[INPUTS];
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    char names[INPUTS][8];
    *job = (struct planned){.inputs = 1 + random_below(&world.dice, INPUTS)};
    for (size_t i = 0; i < sizeof job->id.bytes; i++) {
        job->id.bytes[i] = (uint8_t)random_below(&world.dice, 256);
    }
    for (size_t i = 0; i < job->inputs; i++) {
        job->blobs[i] = send_from_pool(random_below(&world.dice, POOL));
        (void)snprintf(names[i], sizeof names[i], "in%zu", i);
        bourse__v1__manifest_input__init(&inputs[i]);
        inputs[i].name = names[i];
        inputs[i].hash = (ProtobufCBinaryData){.data = job->blobs[i].bytes, .len = 32};
        inputs[i].size = 19;
        shared[i] = &inputs[i];
    }
    manifest.version = 1;
    manifest.executor = "command";
    manifest.name = "job";
    manifest.n_shared = job->inputs;
    manifest.shared = shared;
    manifest.subtask_count = 1;
    size_t length = 0;
    uint8_t *bytes = codec_encode(&manifest.base, &length);
    ck_assert_ptr_nonnull(bytes);
    job->blobs[job->inputs] = send_bytes(bytes, length);
    free(bytes);
}

static void submit_job(struct planned *job)
{
    char id[65];
    char manifest[65];
    char sql[512];
    hex_of(job->id.bytes, sizeof job->id.bytes, id);
    hex_of(job->blobs[job->inputs].bytes, 32, manifest);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO jobs VALUES (%lld, 1, 1000000, NULL, x'%s', "
                   "x'0303030303030303030303030303030303030303030303030303030303030303', x'%s', 1, "
                   "1, 1, 1, 'job')",
                   (long long)world.entry++, id, manifest);
    run_sql(world.ledger, sql);
    job->state = OPEN;
}

/* A result names an output, which may be a blob that other jobs use as an input. */
static void add_result(struct planned *job)
{
    const struct hash32 output = send_from_pool(random_below(&world.dice, POOL));
    uint8_t zeros[32] = {0};
    Bourse__V1__Output file = BOURSE__V1__OUTPUT__INIT;
    Bourse__V1__Output *files[] = {&file};
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    file.name = "out";
    file.hash = (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)output.bytes, .len = 32};
    file.size = 19;
    result.cluster = (ProtobufCBinaryData){.data = zeros, .len = 16};
    result.job = (ProtobufCBinaryData){.data = job->id.bytes, .len = 16};
    result.provider = (ProtobufCBinaryData){.data = zeros, .len = 32};
    result.device = (ProtobufCBinaryData){.data = zeros, .len = 16};
    result.manifest = (ProtobufCBinaryData){.data = job->blobs[job->inputs].bytes, .len = 32};
    result.attempt = 1;
    result.lease = 1;
    result.outcome = OUTCOME_OK;
    result.n_outputs = 1;
    result.outputs = files;
    size_t length = 0;
    uint8_t *bytes = codec_encode(&result.base, &length);
    ck_assert_ptr_nonnull(bytes);
    sqlite3_stmt *insert = NULL;
    ck_assert_int_eq(sqlite3_prepare_v2(world.ledger,
                                        "INSERT INTO results VALUES (?1, 1, 1000000, NULL, ?2, 0, "
                                        "1, 1, zeroblob(32), zeroblob(32), zeroblob(32), 1, 0, 0, "
                                        "1, 1, 1, 0, zeroblob(32), 0, ?3)",
                                        -1, &insert, NULL),
                     SQLITE_OK);
    (void)sqlite3_bind_int64(insert, 1, world.entry);
    (void)sqlite3_bind_blob(insert, 2, job->id.bytes, 16, SQLITE_STATIC);
    (void)sqlite3_bind_blob(insert, 3, bytes, (int)length, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(insert), SQLITE_DONE);
    (void)sqlite3_finalize(insert);
    char id[65];
    char sql[256];
    hex_of(job->id.bytes, sizeof job->id.bytes, id);
    (void)snprintf(sql, sizeof sql, "INSERT INTO outcomes VALUES (x'%s', 0, %lld, 0)", id,
                   (long long)world.entry++);
    run_sql(world.ledger, sql);
    free(bytes);
    job->blobs[job->inputs + 1] = output;
    job->has_result = true;
}

static void end_job(struct planned *job)
{
    char id[65];
    char sql[256];
    hex_of(job->id.bytes, sizeof job->id.bytes, id);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO settlements VALUES (%lld, 1, 2000000, NULL, x'%s', 1, 1, 0, 0, 0, "
                   "0)",
                   (long long)world.entry++, id);
    run_sql(world.ledger, sql);
    job->state = ENDED;
}

/* ---------------------------------------------------------------- forgetting */

static void forget_some(void)
{
    struct known_job *known[KEEPER_JOBS_AT_ONCE];
    struct planned *chosen[KEEPER_JOBS_AT_ONCE];
    struct keeper_share shares[KEEPER_JOBS_AT_ONCE];
    size_t count = 0;
    ck_assert(keeper_learn(&world.keeper));
    for (size_t i = 0; i < world.count && count < 4; i++) {
        struct planned *job = &world.jobs[i];
        if (job->state == ENDED && random_below(&world.dice, 3) == 0) {
            known[count] = job_catalog_find(world.keeper.catalog, &job->id);
            ck_assert_ptr_nonnull(known[count]);
            ck_assert_int_gt(known[count]->ended_ms, 0);
            chosen[count++] = job;
        }
    }
    const int64_t before = usage(ALICE);
    const bool fails = random_below(&world.dice, 5) == 0;
    atomic_store(&world.orders_left, fails ? (int)random_below(&world.dice, 2) : -1);
    const enum keeper_status status =
        keeper_forget(&world.keeper, ALICE, known, count, FORGET_ASKED, false, shares);
    atomic_store(&world.orders_left, -1);
    uint64_t freed = 0;
    for (size_t i = 0; i < count && status == KEEPER_OK; i++) {
        chosen[i]->state = FORGOTTEN;
        freed += shares[i].bytes;
    }
    if (status == KEEPER_OK) {
        ck_assert_int_eq(before - usage(ALICE), (int64_t)freed);
        return;
    }
    ck_assert(status == KEEPER_FULL || status == KEEPER_GRACE);
    world.waited += status == KEEPER_GRACE;
    for (size_t i = 0; i < count; i++) { /* the next look of the keeper goes on with them */
        chosen[i]->state = blob_forget_has(store, &chosen[i]->id) ? FORGOTTEN : ENDED;
    }
    keeper_close(&world.keeper);
    open_keeper();
}

/* The grace passes for what is condemned. Clients whose files the store said to be there submit
 * before that. */
static void pass_grace(void)
{
    for (size_t i = 0; i < world.count; i++) {
        if (world.jobs[i].state == IN_FLIGHT) {
            submit_job(&world.jobs[i]);
        }
    }
    run_sql(world.blobs, "UPDATE condemned SET since_s = 1; UPDATE forgotten SET at_ms = 1");
    for (int i = 0; i < 2; i++) { /* the first may only end a round of the accounts */
        world.keeper.next_removal_ns = 0;
        keeper_tidy(&world.keeper);
    }
}

/* ---------------------------------------------------------------- what must hold */

static int64_t number(const char *sql)
{
    sqlite3_stmt *select = NULL;
    ck_assert_int_eq(sqlite3_prepare_v2(world.blobs, sql, -1, &select, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(select), SQLITE_ROW);
    const int64_t value = sqlite3_column_int64(select, 0);
    (void)sqlite3_finalize(select);
    return value;
}

static void check_all(void)
{
    for (size_t i = 0; i < world.count; i++) {
        const struct planned *job = &world.jobs[i];
        const size_t count = job->inputs + 1 + job->has_result;
        for (size_t k = 0; k < count && (job->state == OPEN || job->state == ENDED); k++) {
            ck_assert_msg(blob_store_lends(store, ALICE, &job->blobs[k]) == BLOB_OK &&
                              blob_store_find(store, &job->blobs[k]) == BLOB_OK,
                          "job %zu (state %d) lost blob %zu", i, (int)job->state, k);
        }
    }
    ck_assert_int_eq(usage(ALICE),
                     number("SELECT ifnull(sum(size), 0) FROM blob JOIN owner USING (hash) WHERE "
                            "account = 3 AND NOT EXISTS (SELECT 1 FROM condemned c WHERE "
                            "c.account = owner.account AND c.hash = owner.hash)"));
}

static void step(void)
{
    struct planned *job =
        world.count == 0 ? NULL : &world.jobs[random_below(&world.dice, (uint32_t)world.count)];
    switch (random_below(&world.dice, 8)) {
    case 0:
    case 1:
        if (world.count < JOBS_MAX) {
            begin_job();
        }
        break;
    case 2:
    case 3:
        if (job != NULL && job->state == IN_FLIGHT) {
            submit_job(job);
        } else if (job != NULL && job->state == OPEN && !job->has_result) {
            add_result(job);
        }
        break;
    case 4:
    case 5:
        if (job != NULL && job->state == OPEN) {
            end_job(job);
        }
        break;
    case 6:
        forget_some();
        break;
    default:
        pass_grace();
        break;
    }
}

START_TEST(no_open_job_loses_a_blob)
{
    world.dice = random_seeded(property_seed(23));
    for (int i = 0; i < STEPS; i++) {
        step();
        check_all();
    }
    pass_grace();
    for (size_t i = 0; i < world.count; i++) {
        if (world.jobs[i].state == OPEN) {
            end_job(&world.jobs[i]);
        }
    }
    for (int i = 0; i < 1000 && number("SELECT count(*) FROM owner") > 0; i++) {
        forget_some();
        pass_grace();
        check_all();
    }
    ck_assert_int_eq(number("SELECT count(*) FROM blob"), 0);
    ck_assert_int_eq(number("SELECT count(*) FROM condemned"), 0);
    ck_assert_int_eq(usage(ALICE), 0);
    ck_assert_uint_gt(world.waited, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("forget");
    TCase *tests = tcase_create("forget");
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, no_open_job_loses_a_blob);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
