/* bench/journal.c measures how fast a journal takes entries, one after the other, as the committer
 * appends them. The program prints one JSON object.
 *
 *     journal [--seconds S] [--rounds R] [--dir FOLDER] [--source ROOT] [--json]
 *
 * "sqlite" is the journal of one broker: a transaction with the entry, then HEAD, both fsynced.
 * "etcd" is three members on this machine with TLS, started by the program in FOLDER [a new folder
 * below /tmp]. Both get entries with 200 bytes and with 64 KiB of commands. A round takes S [3]
 * seconds, and R [5] rounds are made in turns. Where etcd is not installed, it is left out. */
#include "base/array.h"
#include "base/checked.h"
#include "base/sha256.h"
#include "broker/storage/entry.h"
#include "broker/storage/etcd/journal_etcd.h"
#include "broker/storage/head.h"
#include "broker/storage/journal_sqlite.h"
#include "ledger/store/sqlite.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/process.h"
#include "tests/support/etcd_cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS_MAX = 50, PATH_SIZE = 600, SIZES = 2, NS_PER_US_INT = 1000 };
static const size_t sizes[SIZES] = {200, 64 << 10};
#define QUOTA_BYTES (UINT64_C(2) << 30)

/* A target is a journal, and where it ends. */
struct target {
    const char *name;
    struct journal *journal;
    struct ledger_store *ledger; /* sqlite: its transactions */
    struct head_file *head;      /* sqlite */
    uint64_t epoch;
    struct journal_last last;
};

/* A series is what was measured of one journal with one size. */
struct series {
    double per_s[ROUNDS_MAX];
    size_t rounds;
    int64_t *took_ns;
    size_t count, capacity;
};

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "journal: %s\n", what);
    exit(EXIT_FAILURE);
}

/* ---- one entry */

static void append(struct target *target, size_t bytes)
{
    static uint8_t payload[64 << 10];
    static uint8_t buffer[(64 << 10) + 256];
    const struct entry_head head = {.count = 1,
                                    .index = target->last.index + 1,
                                    .epoch = target->epoch,
                                    .batch = entropy_id(),
                                    .previous = target->last.chain,
                                    .first_command = target->last.next_command};
    const struct entry_command command = {.account = UINT32_MAX,
                                          .kind = ENTRY_TICK,
                                          .payload = payload,
                                          .payload_length = (uint32_t)bytes};
    const size_t length = entry_write(&head, &command, buffer, sizeof buffer);
    const struct journal_entry entry = {.index = head.index, .bytes = buffer, .length = length};
    if (target->ledger != NULL && ledger_store_begin(target->ledger) != LEDGER_STORE_OK) {
        give_up("no transaction begins");
    }
    enum journal_status status = journal_append(target->journal, target->epoch, &entry, 1);
    while (status == JOURNAL_UNKNOWN) {
        status = journal_append(target->journal, target->epoch, &entry, 1);
    }
    if (status != JOURNAL_OK) {
        give_up(journal_status_text(status));
    }
    target->last.index++;
    target->last.next_command++;
    target->last.chain = sha256_of(buffer, length);
    if (target->ledger != NULL) {
        const struct head mark = {.index = target->last.index, .chain = target->last.chain};
        if (ledger_store_commit(target->ledger) != LEDGER_STORE_OK ||
            head_write(target->head, &mark) != HEAD_OK) {
            give_up("an entry could not be committed");
        }
    }
}

static void measure(struct target *target, size_t bytes, double seconds, struct series *series)
{
    const int64_t begin_ns = clock_monotonic_ns();
    const int64_t end_ns = begin_ns + (int64_t)(seconds * (double)NS_PER_S);
    int64_t now_ns = begin_ns;
    uint64_t appended = 0;
    while (now_ns < end_ns) {
        append(target, bytes);
        const int64_t after_ns = clock_monotonic_ns();
        int64_t *took_ns = array_with_room(series->took_ns, series->count, &series->capacity,
                                           sizeof *series->took_ns);
        if (took_ns == NULL) {
            give_up("out of memory");
        }
        series->took_ns = took_ns;
        series->took_ns[series->count++] = after_ns - now_ns;
        now_ns = after_ns;
        appended++;
    }
    series->per_s[series->rounds++] =
        (double)appended * (double)NS_PER_S / (double)(now_ns - begin_ns);
    /* Etcd keeps the end only, as under a broker. */
    const struct journal_base base = {.index = target->last.index, .chain = target->last.chain};
    while (journal_truncate(target->journal, target->epoch, &base) == JOURNAL_UNKNOWN) {
    }
}

/* ---- the journals */

static void open_sqlite(struct target *target, const char *folder)
{
    char path[PATH_SIZE];
    struct problem problem;
    const struct head nothing = {.index = 0};
    const struct journal_sqlite_start start = {.head = &nothing};
    const struct journal_leader me = {.epoch = 0};
    target->name = "sqlite";
    (void)snprintf(path, sizeof path, "%s/ledger.db", folder);
    if (ledger_store_open(path, &target->ledger) != LEDGER_STORE_OK ||
        journal_sqlite_open(ledger_store_database(target->ledger), &start, &target->journal,
                            &target->last, &problem) != JOURNAL_OK) {
        give_up("the journal of one broker cannot be made");
    }
    (void)snprintf(path, sizeof path, "%s/HEAD", folder);
    if (head_create(path, &nothing, &target->head, &problem) != HEAD_OK ||
        journal_lead(target->journal, 0, &me, &target->epoch) != JOURNAL_OK) {
        give_up("the journal of one broker cannot be led");
    }
}

static void open_etcd(struct target *target, struct etcd_cluster *cluster, const char *folder,
                      const char *source)
{
    struct problem problem = {.text = ""};
    uint64_t etcd_cluster;
    const struct journal_leader me = {.broker = "bench"};
    const struct journal_etcd_start start = {.config = &cluster->config, .cluster = {{1}}};
    target->name = "etcd";
    target->last.next_command = 1;
    if (!etcd_cluster_start(cluster, source, folder, QUOTA_BYTES)) {
        give_up("three members of etcd do not start");
    }
    if (journal_etcd_open(&start, &target->journal, &etcd_cluster, &problem) != JOURNAL_OK ||
        journal_lead(target->journal, 0, &me, &target->epoch) != JOURNAL_OK) {
        etcd_cluster_end(cluster);
        give_up(problem.text);
    }
}

static void close_target(struct target *target)
{
    journal_destroy(&target->journal);
    ledger_store_close(&target->ledger);
    head_close(&target->head);
}

/* ---- the figures */

static int by_number(const void *one, const void *other)
{
    const double a = *(const double *)one;
    const double b = *(const double *)other;
    return (a > b) - (a < b);
}

static int by_time(const void *one, const void *other)
{
    const int64_t a = *(const int64_t *)one;
    const int64_t b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static double percentile_us(const struct series *series, double part)
{
    const size_t place = (size_t)(part * (double)(series->count - 1));
    return (double)series->took_ns[place] / NS_PER_US_INT;
}

static void print(const struct target *target, size_t bytes, struct series *series, bool is_last)
{
    qsort(series->per_s, series->rounds, sizeof series->per_s[0], by_number);
    qsort(series->took_ns, series->count, sizeof series->took_ns[0], by_time);
    printf("  {\"journal\":\"%s\",\"command_bytes\":%zu,\"rounds\":%zu,\"entries\":%zu,"
           "\"per_s\":{\"median\":%.1f,\"least\":%.1f,\"most\":%.1f},"
           "\"p50_us\":%.0f,\"p99_us\":%.0f}%s\n",
           target->name, bytes, series->rounds, series->count, series->per_s[series->rounds / 2],
           series->per_s[0], series->per_s[series->rounds - 1], percentile_us(series, 0.50),
           percentile_us(series, 0.99), is_last ? "" : ",");
}

struct arguments {
    double seconds;
    size_t rounds;
    const char *folder, *source;
};

static void read_arguments(int count, char **words, struct arguments *ret_arguments)
{
    *ret_arguments = (struct arguments){.seconds = 3, .rounds = 5, .source = "."};
    for (int i = 1; i < count; i++) {
        const char *value = i + 1 < count ? words[i + 1] : "";
        if (strcmp(words[i], "--json") == 0) {
            continue;
        }
        if (strcmp(words[i], "--seconds") == 0) {
            ret_arguments->seconds = strtod(value, NULL);
        } else if (strcmp(words[i], "--rounds") == 0) {
            ret_arguments->rounds = (size_t)strtoul(value, NULL, 10);
        } else if (strcmp(words[i], "--dir") == 0) {
            ret_arguments->folder = value;
        } else if (strcmp(words[i], "--source") == 0) {
            ret_arguments->source = value;
        } else {
            give_up("usage: journal [--seconds S] [--rounds R] [--dir FOLDER] [--source ROOT] "
                    "[--json]");
        }
        i++;
    }
    if (ret_arguments->seconds <= 0 || ret_arguments->rounds == 0 ||
        ret_arguments->rounds > ROUNDS_MAX) {
        give_up("--seconds is above 0, --rounds is 1 to 50");
    }
}

int main(int count, char **words)
{
    static struct etcd_cluster cluster;
    static struct target targets[2];
    static struct series series[2][SIZES];
    struct arguments arguments;
    struct problem problem;
    char folder[PATH_SIZE] = "/tmp/bourse-journal-XXXXXX";
    read_arguments(count, words, &arguments);
    if (arguments.folder != NULL) {
        (void)snprintf(folder, sizeof folder, "%s", arguments.folder);
    } else if (mkdtemp(folder) == NULL) {
        give_up("no folder can be made below /tmp");
    }
    if (!process_start(&problem)) {
        give_up(problem.text);
    }
    const size_t target_count = etcd_cluster_is_possible() ? 2 : 1;
    open_sqlite(&targets[0], folder);
    if (target_count == 2) {
        open_etcd(&targets[1], &cluster, folder, arguments.source);
    }
    for (size_t round = 0; round < arguments.rounds; round++) {
        for (size_t i = 0; i < target_count * SIZES; i++) {
            measure(&targets[i / SIZES], sizes[i % SIZES], arguments.seconds,
                    &series[i / SIZES][i % SIZES]);
        }
    }
    printf("{\"processors\":%ld,\"seconds\":%.1f,\"series\":[\n", sysconf(_SC_NPROCESSORS_ONLN),
           arguments.seconds);
    for (size_t i = 0; i < target_count * SIZES; i++) {
        print(&targets[i / SIZES], sizes[i % SIZES], &series[i / SIZES][i % SIZES],
              i + 1 == target_count * SIZES);
        free(series[i / SIZES][i % SIZES].took_ns);
    }
    printf("]}\n");
    for (size_t i = 0; i < target_count; i++) {
        close_target(&targets[i]);
    }
    etcd_cluster_end(&cluster);
    if (arguments.folder == NULL) {
        char command[PATH_SIZE + 16];
        (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
        return system(command) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
