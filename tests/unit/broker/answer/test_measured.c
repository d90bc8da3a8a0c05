/* The tests follow what work took: by name, size and class, as kept, and as read from a ledger. */
#include "broker/answer/measuring.h"
#include "planner/cost/pace.h"
#include "planner/schedule/list_schedule.h"
#include "tests/support/small_market.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "base/text.h"
#include "protocol/codec.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool count_row(void *context, const struct measured_row *row)
{
    (void)row;
    (*(size_t *)context)++;
    return true;
}

static size_t count_rows(const struct measured *measured)
{
    size_t count = 0;
    ck_assert(measured_each(measured, NULL, count_row, &count));
    return count;
}

/* ---------------------------------------------------------------- names of work */

static char executor[] = "command";
static char program[] = "xz";
static char level[] = "-9";
static char faster[] = "-1";
static char input[] = "{in}";

static Bourse__V1__Manifest manifest_of(char **arguments, size_t count)
{
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    manifest.version = 1;
    manifest.executor = executor;
    manifest.name = program;
    manifest.n_arguments = count;
    manifest.arguments = arguments;
    manifest.subtask_count = 2;
    return manifest;
}

static bool is_same_name(const Bourse__V1__Manifest *a, const Bourse__V1__Manifest *b)
{
    const struct work one = work_of(a, 0);
    const struct work other = work_of(b, 0);
    return hash32_equal(&one.name, &other.name);
}

START_TEST(work_is_named_by_what_decides_it)
{
    char *slow[] = {program, level, input};
    char *fast[] = {program, faster, input};
    char *joined[] = {program, input};
    Bourse__V1__Manifest one = manifest_of(slow, 3);
    Bourse__V1__Manifest other = manifest_of(slow, 3);
    other.name = faster; /* what a job is called does not */
    other.has_expect_ns = 1;
    other.expect_ns = 7;
    ck_assert(is_same_name(&one, &other));
    other = manifest_of(fast, 3);
    ck_assert(!is_same_name(&one, &other));
    other = manifest_of(joined, 2);
    ck_assert(!is_same_name(&one, &other));
    other = manifest_of(slow, 3);
    other.standard_input = input;
    ck_assert(!is_same_name(&one, &other));

    Bourse__V1__ManifestInput script = BOURSE__V1__MANIFEST_INPUT__INIT;
    Bourse__V1__ManifestInput *scripts[] = {&script};
    struct hash32 hash = sha256_of("1", 1);
    script.name = program;
    script.hash = (ProtobufCBinaryData){.data = hash.bytes, .len = 32};
    other = manifest_of(slow, 3);
    other.n_shared = 1;
    other.shared = scripts;
    ck_assert(!is_same_name(&one, &other));
    const struct work before = work_of(&other, 0);
    hash = sha256_of("2", 1); /* another script under the same name */
    const struct work after = work_of(&other, 0);
    ck_assert(!hash32_equal(&before.name, &after.name));

    Bourse__V1__ManifestPart part = BOURSE__V1__MANIFEST_PART__INIT;
    Bourse__V1__ManifestPart *parts[] = {&part};
    Bourse__V1__ManifestTerms terms = BOURSE__V1__MANIFEST_TERMS__INIT;
    part.subtasks = 2;
    part.slots = 4;
    terms.n_parts = 1;
    terms.parts = parts;
    other = manifest_of(slow, 3);
    other.terms = &terms;
    ck_assert(!is_same_name(&one, &other));
}
END_TEST

START_TEST(a_task_is_work_of_its_own)
{
    char *arguments[] = {program, level};
    char *others[] = {program, faster};
    Bourse__V1__Manifest manifest = manifest_of(arguments, 2);
    Bourse__V1__ManifestTask task = BOURSE__V1__MANIFEST_TASK__INIT;
    Bourse__V1__ManifestSubtask first = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    Bourse__V1__ManifestSubtask second = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    Bourse__V1__ManifestSubtask *subtasks[] = {&first, &second};
    task.n_arguments = 2;
    task.arguments = others;
    second.task = &task;
    manifest.n_subtasks = 2;
    manifest.subtasks = subtasks;
    const struct work one = work_of(&manifest, 0);
    const struct work other = work_of(&manifest, 1);
    ck_assert(!hash32_equal(&one.name, &other.name));
    manifest.arguments = others; /* now the first is the same */
    const struct work changed = work_of(&manifest, 0);
    ck_assert(hash32_equal(&changed.name, &other.name));
}
END_TEST

START_TEST(tiles_of_other_shapes_are_other_work)
{
    static char tensor[] = "tensor";
    static char first[] = "0 0 512 256";
    static char alike[] = "512 1024 500 250"; /* elsewhere in C, and hardly smaller */
    static char wide[] = "0 0 256 512";
    static char other[] = "0 0 512 256 1";
    Bourse__V1__Manifest manifest = manifest_of(NULL, 0);
    Bourse__V1__ManifestSubtask tiles[5];
    Bourse__V1__ManifestSubtask *subtasks[5];
    char *const values[] = {first, alike, wide, other, NULL};
    struct work works[5];
    manifest.n_subtasks = 5;
    manifest.subtasks = subtasks;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < 5; i++) {
            bourse__v1__manifest_subtask__init(&tiles[i]);
            tiles[i].value = values[i];
            subtasks[i] = &tiles[i];
            works[i] = work_of(&manifest, i);
        }
        /* A program's value is text, and every subtask has its own. */
        ck_assert(hash32_equal(&works[3].name, &works[4].name));
        ck_assert_int_eq(hash32_equal(&works[0].name, &works[4].name), pass == 0);
        ck_assert_int_eq(hash32_equal(&works[0].name, &works[2].name), pass == 0);
        manifest.executor = tensor;
    }
    ck_assert_uint_eq(work_size(512), work_size(600));
    ck_assert(!hash32_equal(&works[0].name, &works[1].name)); /* 500 is a step below 512 */
    tiles[1].value = first;
    works[1] = work_of(&manifest, 1);
    ck_assert(hash32_equal(&works[0].name, &works[1].name));
}
END_TEST

START_TEST(sizes_are_quarters_of_a_power_of_two)
{
    Bourse__V1__Manifest manifest = manifest_of(NULL, 0);
    Bourse__V1__ManifestInput file = BOURSE__V1__MANIFEST_INPUT__INIT;
    Bourse__V1__ManifestInput *files[] = {&file};
    Bourse__V1__ManifestSubtask subtask = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    Bourse__V1__ManifestSubtask *subtasks[] = {&subtask};
    subtask.n_inputs = 1;
    subtask.inputs = files;
    manifest.n_subtasks = 1;
    manifest.subtasks = subtasks;
    ck_assert_uint_eq(work_of(&manifest, 0).size, 0);
    static const struct {
        uint64_t bytes;
        uint32_t size;
    } cases[] = {{1, 1},  {2, 5},        {3, 7},        {4, 9},        {5, 10},          {7, 12},
                 {8, 13}, {1 << 20, 81}, {1310719, 81}, {1310720, 82}, {UINT64_MAX, 256}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file.size = cases[i].bytes;
        ck_assert_uint_eq(work_of(&manifest, 0).size, cases[i].size);
    }
    for (uint32_t size = 10; size < WORK_SIZES; size++) { /* the least is the first that has it */
        file.size = work_bytes(size);
        ck_assert_uint_eq(work_of(&manifest, 0).size, size);
        file.size--;
        ck_assert_uint_eq(work_of(&manifest, 0).size, size - 1);
    }
}
END_TEST

/* ---------------------------------------------------------------- rows */

static struct work work_number(uint32_t number)
{
    return (struct work){.name = sha256_of(&number, sizeof number), .size = number % 7};
}

static bool copy_row(void *context, const struct measured_row *row)
{
    *(struct measured_row *)context = *row;
    return true;
}

/* Returns the one row of a name; its count is 0 when there is none. */
static struct measured_row row_of(const struct measured *measured, const struct work *work)
{
    struct measured_row row = {.at_ns = 0};
    (void)measured_each(measured, &work->name, copy_row, &row);
    return row;
}

START_TEST(rows_are_by_name_size_and_class)
{
    struct measured *measured = measured_create();
    struct work work = work_number(1);
    ck_assert(measured_add(measured, &work, "cpu", NULL, 10, 1));
    ck_assert(measured_add(measured, &work, "cpu", NULL, 20, 2));
    ck_assert(!measured_add(measured, &work, "cpu", NULL, 0, 3));
    ck_assert_uint_eq(count_rows(measured), 1);
    ck_assert_uint_eq(row_of(measured, &work).history.count, 2);
    ck_assert_int_eq(row_of(measured, &work).at_ns, 2);
    ck_assert(measured_add(measured, &work, "gpu", NULL, 10, 1));
    work.size++;
    ck_assert(measured_add(measured, &work, "gpu", NULL, 10, 1));
    ck_assert_uint_eq(count_rows(measured), 3);
    measured_destroy(&measured);
}
END_TEST

START_TEST(what_was_measured_longest_ago_makes_room)
{
    struct measured *measured = measured_create();
    const struct work first = work_number(0);
    const struct work second = work_number(1);
    for (uint32_t i = 0; i < MEASURED_ROWS; i++) {
        const struct work work = work_number(i);
        ck_assert(measured_add(measured, &work, "cpu", NULL, 10, i));
    }
    ck_assert(measured_add(measured, &first, "cpu", NULL, 10, MEASURED_ROWS)); /* now the newest */
    const struct work more = work_number(MEASURED_ROWS);
    ck_assert(measured_add(measured, &more, "cpu", NULL, 10, MEASURED_ROWS + 1));
    ck_assert_uint_eq(count_rows(measured), MEASURED_ROWS);
    ck_assert_uint_eq(row_of(measured, &first).history.count, 2);
    ck_assert_uint_eq(row_of(measured, &second).history.count, 0);
    ck_assert_uint_eq(row_of(measured, &more).history.count, 1);
    measured_destroy(&measured);
}
END_TEST

/* ---------------------------------------------------------------- devices of unlike speeds */

enum { SUBTASKS = 60, DEVICES = 3 };
#define SUBTASK_NS INT64_C(200000000)

static struct measured *classes, *devices;

static struct measured_device device_number(uint32_t number)
{
    struct measured_device device = {.device = {{1}}};
    device.device.bytes[1] = (uint8_t)number;
    return device;
}

/* Deals work to devices of one class; the first takes SUBTASK_NS, the second twice and the third
 * three times as long. */
static struct list_schedule *dealt(const int64_t takes_ns[DEVICES])
{
    static int64_t all_take_ns[DEVICES * SUBTASKS];
    const struct list_schedule_part part = {.subtasks = SUBTASKS, .slots = 1};
    struct list_schedule_device places[DEVICES];
    struct list_schedule *deal = NULL;
    for (uint32_t d = 0; d < DEVICES; d++) {
        places[d] =
            (struct list_schedule_device){.slots = 1, .price_micro = 1, .parts = 1, .of_class = d};
        for (uint32_t i = 0; i < SUBTASKS; i++) {
            all_take_ns[d * SUBTASKS + i] = takes_ns[d];
        }
    }
    const struct list_schedule_input job = {.parts = &part,
                                            .part_count = 1,
                                            .takes_ns = all_take_ns,
                                            .class_count = DEVICES,
                                            .devices = places,
                                            .device_count = DEVICES};
    ck_assert_int_eq(list_schedule_make(&job, &deal), LIST_SCHEDULE_OK);
    return deal;
}

/* Runs the work as results really come; the device where it ran is in both tables then. */
static int64_t run_once(const struct work *work)
{
    const int64_t takes_ns[DEVICES] = {SUBTASK_NS, 2 * SUBTASK_NS, 3 * SUBTASK_NS};
    struct list_schedule *deal = dealt(takes_ns);
    const int64_t makespan_ns = deal->makespan_ns;
    for (uint32_t k = 0; k < SUBTASKS; k++) {
        uint32_t next = k;
        for (uint32_t i = k + 1; i < SUBTASKS; i++) {
            next = deal->runs[i].end_ns < deal->runs[next].end_ns ? i : next;
        }
        const struct list_schedule_run run = deal->runs[next];
        const struct measured_device device = device_number(run.device);
        deal->runs[next] = deal->runs[k];
        ck_assert(measured_add(classes, work, "cpu", NULL, takes_ns[run.device], run.end_ns));
        ck_assert(measured_add(devices, work, "cpu", &device, takes_ns[run.device], run.end_ns));
    }
    list_schedule_destroy(&deal);
    return makespan_ns;
}

static struct paces *paces;

/* Takes a row for a device by its class, at its pace. */
static bool take_paced(void *context, const struct measured_row *row)
{
    int64_t *takes_ns = context;
    const struct measured_row all = row_of(classes, &row->work);
    takes_ns[row->device.device.bytes[1]] =
        pace_takes_ns(paces_summarise(paces, devices, &all).median, paces_of(paces, row));
    return true;
}

/* Takes a row that is told beside the class and goes before it. */
static bool take_told(void *context, const struct measured_row *row,
                      const struct history_summary *took)
{
    int64_t *takes_ns = context;
    if (!id128_is_zero(&row->device.device)) {
        takes_ns[row->device.device.bytes[1]] = took->median;
    }
    return true;
}

static int64_t planned_ns(const struct work *work)
{
    int64_t takes_ns[DEVICES] = {0};
    paces = paces_create(devices);
    (void)measured_each(devices, &work->name, take_paced, takes_ns);
    ck_assert(paces_tell(paces, classes, devices, &work->name, take_told, takes_ns));
    paces_destroy(&paces);
    struct list_schedule *deal = dealt(takes_ns);
    const int64_t makespan_ns = deal->makespan_ns;
    list_schedule_destroy(&deal);
    return makespan_ns;
}

START_TEST(a_plan_learns_that_devices_of_a_class_are_of_unlike_speeds)
{
    const struct work work = work_number(1);
    classes = measured_create();
    devices = measured_create();
    for (int run = 0; run < 4; run++) {
        const int64_t took_ns = run_once(&work);
        const int64_t plan_ns = planned_ns(&work);
        ck_assert_int_ge(plan_ns, took_ns / 100 * 80);
        ck_assert_int_le(plan_ns, took_ns / 100 * 120);
    }
    ck_assert_uint_eq(count_rows(classes), 1);
    ck_assert_uint_eq(count_rows(devices), DEVICES);
    measured_destroy(&classes);
    measured_destroy(&devices);
}
END_TEST

static void measure(const struct work *work, uint32_t number, int64_t took_ns)
{
    const struct measured_device device = device_number(number);
    ck_assert(measured_add(classes, work, "cpu", NULL, took_ns, 1));
    ck_assert(measured_add(devices, work, "cpu", &device, took_ns, 1));
}

static int64_t of_class(const struct work *work)
{
    const struct measured_row row = row_of(classes, work);
    return paces_summarise(paces, devices, &row).median;
}

/* Two devices, of which the second takes three times as long at all that both did. What only the
 * second did takes a third of that on the first; what each did once takes what it took on the
 * first. */
START_TEST(one_sample_on_a_slow_device_says_what_its_class_takes)
{
    const struct work slow = work_number(50);
    const struct work both = work_number(51);
    const struct work fast = work_number(52);
    classes = measured_create();
    devices = measured_create();
    for (uint32_t i = 0; i < 8; i++) {
        const struct work work = work_number(i);
        measure(&work, 0, 1000 * (i + 1));
        measure(&work, 1, 3000 * (i + 1));
    }
    measure(&slow, 1, 900);
    measure(&both, 1, 603);
    measure(&both, 0, 201);
    measure(&fast, 0, 400);
    measure(&fast, 0, 400);
    paces = NULL;
    ck_assert_int_eq(of_class(&slow), 900); /* nothing is known of their speeds */
    paces = paces_create(devices);
    ck_assert_int_eq(of_class(&slow), 300);
    ck_assert_int_eq(of_class(&both), 201);
    ck_assert_int_eq(of_class(&fast), 400);
    const struct measured_row there = {.device_class = "cpu", .device = device_number(1)};
    ck_assert_uint_eq(paces_of(paces, &there), 3 * PACE_ONE);
    const struct measured_row other = {.device_class = "gpu", .device = device_number(1)};
    ck_assert_uint_eq(paces_of(paces, &other), PACE_ONE);
    paces_destroy(&paces);
    measured_destroy(&classes);
    measured_destroy(&devices);
}
END_TEST

/* A work that took twice as long on its device as ever is an outlier. Other devices' times do not
 * matter: they are no mode of their own. */
START_TEST(outliers_are_looked_for_at_one_pace)
{
    const struct work work = work_number(1);
    classes = measured_create();
    devices = measured_create();
    for (uint32_t i = 0; i < 12; i++) {
        measure(&work, 0, i == 3 ? 3000 : 1000 + i);
    }
    for (uint32_t i = 0; i < 8; i++) {
        measure(&work, 1, 3000 + 3 * (i + 1));
    }
    const struct measured_row row = row_of(classes, &work);
    ck_assert_uint_eq(paces_summarise(NULL, devices, &row).outliers, 0);
    paces = paces_create(devices);
    ck_assert_uint_eq(paces_summarise(paces, devices, &row).outliers, 1);
    ck_assert_int_le(paces_summarise(paces, devices, &row).p90, 1020);
    paces_destroy(&paces);
    measured_destroy(&classes);
    measured_destroy(&devices);
}
END_TEST

START_TEST(a_device_is_unlike_its_class_by_more_than_a_fifth_in_four_samples)
{
    const struct history_summary all = {.count = 8, .median = 1000};
    ck_assert(!measured_is_unlike(&all, PACE_ONE, &(struct history_summary){3, 0, 1201, 0}));
    ck_assert(measured_is_unlike(&all, PACE_ONE, &(struct history_summary){4, 0, 1201, 0}));
    ck_assert(!measured_is_unlike(&all, PACE_ONE, &(struct history_summary){4, 0, 1200, 0}));
    /* The device is as slow as its class, for once. */
    ck_assert(measured_is_unlike(&all, 2 * PACE_ONE, &(struct history_summary){4, 0, 1200, 0}));
}
END_TEST

enum { MANY = 8192, SIZES = 8 };

struct told {
    size_t of_classes, of_devices;
};

static bool count_told(void *context, const struct measured_row *row,
                       const struct history_summary *took)
{
    struct told *told = context;
    const bool is_device = !id128_is_zero(&row->device.device);
    ck_assert(is_device || told->of_devices == 0);
    ck_assert_int_eq(took->median, is_device ? 3000 : 1000);
    told->of_devices += is_device;
    told->of_classes += !is_device;
    return true;
}

/* Every second at pace 3. With the square of the devices this takes minutes. */
START_TEST(many_devices_of_unlike_speed_are_told_in_one_look)
{
    struct told told = {0};
    struct work work = work_number(1);
    classes = measured_create();
    devices = measured_create();
    for (uint32_t i = 0; i < MANY; i++) {
        const bool is_slow = i / SIZES % 2 == 1;
        struct measured_row row = {.work = work, .device_class = "cpu"};
        row.work.size = i % SIZES;
        for (uint32_t k = 0; k < HISTORY_SAMPLES; k++) {
            ck_assert(history_add(&row.history, is_slow ? 3000 : 1000));
        }
        if (i < 2 * SIZES && is_slow) { /* the newest of its class */
            measured_put(classes, &row);
        }
        row.device.device = (struct id128){{1, (uint8_t)(i / SIZES), (uint8_t)(i / SIZES >> 8)}};
        measured_put(devices, &row);
    }
    paces = paces_create(devices);
    ck_assert(paces_tell(paces, classes, devices, &work.name, count_told, &told));
    ck_assert_uint_eq(told.of_classes, SIZES);
    ck_assert_uint_eq(told.of_devices, MANY / 2);
    paces_destroy(&paces);
    measured_destroy(&classes);
    measured_destroy(&devices);
}
END_TEST

static bool count_like(void *context, const struct measured_row *row)
{
    ck_assert_str_eq(row->device_class, "cpu");
    ck_assert_uint_eq(row->work.size, 3);
    (*(size_t *)context)++;
    return *(size_t *)context < 3;
}

START_TEST(rows_of_one_class_are_looked_at_alone)
{
    struct measured *measured = measured_create();
    struct work work = work_number(3);
    for (uint32_t i = 0; i < 5 * 4; i++) {
        const struct measured_device device = device_number(i);
        work.size = i % 4;
        ck_assert(measured_add(measured, &work, "cpu", &device, 10, 1));
        ck_assert(measured_add(measured, &work, "gpu", &device, 10, 1));
    }
    size_t count = 0;
    const struct measured_row row = {.work = work, .device_class = "cpu"};
    ck_assert(!measured_each_like(measured, &row, count_like, &count)); /* stopped */
    ck_assert_uint_eq(count, 3);
    const struct measured_row none = {.work = work, .device_class = "npu"};
    ck_assert(measured_each_like(measured, &none, count_like, &count));
    measured_destroy(&measured);
}
END_TEST

/* ---------------------------------------------------------------- out of a ledger */

static struct small_market market;
static char history[128], blobs[128];
static struct ledger_reader *ledger;

static void store_manifest(void)
{
    char path[256];
    sqlite3 *database;
    sqlite3_stmt *insert;
    uint8_t *bytes;
    size_t length;
    const struct hash32 hash = small_market_manifest(&bytes, &length);
    ck_assert_int_eq(mkdir(blobs, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/blobs.db", blobs);
    ck_assert_int_eq(sqlite3_open(path, &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database,
                                  "CREATE TABLE blob (hash BLOB NOT NULL UNIQUE, size INTEGER NOT "
                                  "NULL, bytes BLOB) STRICT",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_prepare_v2(database, "INSERT INTO blob VALUES (?, ?, ?)", -1, &insert, NULL),
        SQLITE_OK);
    sqlite3_bind_blob(insert, 1, hash.bytes, 32, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 2, (sqlite3_int64)length);
    sqlite3_bind_blob(insert, 3, bytes, (int)length, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(insert), SQLITE_DONE);
    sqlite3_finalize(insert);
    sqlite3_close(database);
    free(bytes);
}

static void begin(void)
{
    ck_assert_int_ge(sodium_init(), 0);
    small_market_create(&market, NULL, NULL);
    (void)snprintf(history, sizeof history, "%s-history", market.database);
    (void)snprintf(blobs, sizeof blobs, "%s-blobs", market.folder);
    store_manifest();
    ck_assert_int_eq(ledger_reader_open(market.database, &ledger), LEDGER_STORE_OK);
}

static void end(void)
{
    char path[256];
    ledger_reader_close(&ledger);
    (void)snprintf(path, sizeof path, "%s/blobs.db", blobs);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(blobs), 0);
    small_market_destroy(&market);
}

/* The work of the market's job. */
static struct work its_work(void)
{
    uint8_t *bytes;
    size_t length;
    struct codec_error error;
    Bourse__V1__Manifest *manifest = NULL;
    (void)small_market_manifest(&bytes, &length);
    ck_assert_int_eq(codec_decode_manifest(bytes, length, &manifest, &error), CODEC_OK);
    const struct work work = work_of(manifest, 0);
    codec_manifest_free(&manifest);
    free(bytes);
    return work;
}

static void check_rows(const struct measuring *measuring)
{
    const struct work work = its_work();
    const struct measured_row row = row_of(measuring_rows(measuring), &work);
    ck_assert_uint_eq(count_rows(measuring_rows(measuring)), 1);
    ck_assert_str_eq(row.device_class, "cpu.x86_64.avx2");
    ck_assert_uint_eq(row.history.count, 3); /* and not the attempt that failed */
    ck_assert_int_eq(row.history.samples[1], 666666667);
    ck_assert_int_gt(row.at_ns, 0);
    ck_assert_uint_eq(count_rows(measuring_devices(measuring)), 1);
    const struct measured_row device = row_of(measuring_devices(measuring), &work);
    ck_assert_str_eq(device.device_class, row.device_class);
    ck_assert(!id128_is_zero(&device.device.device));
    ck_assert_int_eq(memcmp(&device.history, &row.history, sizeof row.history), 0);
}

START_TEST(accepted_results_are_read_out_of_the_ledger_once)
{
    struct measuring *measuring = measuring_open(history, blobs);
    ck_assert_ptr_nonnull(measuring);
    ck_assert_uint_eq(count_rows(measuring_rows(measuring)), 0);
    ck_assert(!measuring_look(measuring, ledger));
    check_rows(measuring);
    ck_assert(!measuring_look(measuring, ledger)); /* there is nothing new */
    check_rows(measuring);
    measuring_close(&measuring);
}
END_TEST

START_TEST(what_was_measured_is_there_after_a_restart)
{
    struct stat status;
    struct measuring *measuring = measuring_open(history, blobs);
    (void)measuring_look(measuring, ledger);
    measuring_close(&measuring);
    ck_assert_int_eq(stat(history, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    measuring = measuring_open(history, blobs);
    check_rows(measuring);
    (void)measuring_look(measuring, ledger); /* not counted twice */
    check_rows(measuring);
    measuring_close(&measuring);
}
END_TEST

START_TEST(a_damaged_file_is_made_anew_from_the_ledger)
{
    FILE *file = fopen(history, "we");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 200; i++) {
        (void)fputs("this is no database of anybody's. ", file);
    }
    (void)fclose(file);
    struct measuring *measuring = measuring_open(history, blobs);
    ck_assert_ptr_nonnull(measuring);
    (void)measuring_look(measuring, ledger);
    check_rows(measuring);
    measuring_close(&measuring);
}
END_TEST

/* A restore of an older ledger looks like this. */
START_TEST(a_file_of_a_later_time_is_made_anew_from_the_ledger)
{
    struct measuring *measuring = measuring_open(history, blobs);
    (void)measuring_look(measuring, ledger);
    measuring_close(&measuring);
    sqlite3 *database;
    ck_assert_int_eq(sqlite3_open(history, &database), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(database, "UPDATE mark SET entry = 1000000; UPDATE measured SET class = 'x'",
                     NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(database);
    measuring = measuring_open(history, blobs);
    (void)measuring_look(measuring, ledger);
    check_rows(measuring);
    measuring_close(&measuring);
}
END_TEST

START_TEST(of_a_manifest_that_is_not_there_nothing_is_measured)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/blobs.db", blobs);
    ck_assert_int_eq(unlink(path), 0);
    struct measuring *measuring = measuring_open(history, blobs);
    ck_assert(!measuring_look(measuring, ledger));
    ck_assert_uint_eq(count_rows(measuring_rows(measuring)), 0);
    measuring_close(&measuring);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("measured");
    TCase *names = tcase_create("work");
    tcase_add_test(names, work_is_named_by_what_decides_it);
    tcase_add_test(names, a_task_is_work_of_its_own);
    tcase_add_test(names, tiles_of_other_shapes_are_other_work);
    tcase_add_test(names, sizes_are_quarters_of_a_power_of_two);
    suite_add_tcase(suite, names);
    TCase *rows = tcase_create("rows");
    tcase_add_test(rows, rows_are_by_name_size_and_class);
    tcase_add_test(rows, what_was_measured_longest_ago_makes_room);
    tcase_add_test(rows, a_plan_learns_that_devices_of_a_class_are_of_unlike_speeds);
    tcase_add_test(rows, one_sample_on_a_slow_device_says_what_its_class_takes);
    tcase_add_test(rows, outliers_are_looked_for_at_one_pace);
    tcase_add_test(rows, rows_of_one_class_are_looked_at_alone);
    tcase_add_test(rows, many_devices_of_unlike_speed_are_told_in_one_look);
    tcase_add_test(rows, a_device_is_unlike_its_class_by_more_than_a_fifth_in_four_samples);
    suite_add_tcase(suite, rows);
    TCase *ledgers = tcase_create("a ledger");
    tcase_add_checked_fixture(ledgers, begin, end);
    tcase_add_test(ledgers, accepted_results_are_read_out_of_the_ledger_once);
    tcase_add_test(ledgers, what_was_measured_is_there_after_a_restart);
    tcase_add_test(ledgers, a_damaged_file_is_made_anew_from_the_ledger);
    tcase_add_test(ledgers, a_file_of_a_later_time_is_made_anew_from_the_ledger);
    tcase_add_test(ledgers, of_a_manifest_that_is_not_there_nothing_is_measured);
    suite_add_tcase(suite, ledgers);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
