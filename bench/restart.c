/* bench/restart.c measures how long a broker needs to start, by how much it has behind it. The
 * program prints one JSON object.
 *
 *     restart [--subtasks N] [--results R] [--broker PROGRAM] [--make DIR] [--json]
 *
 * The program fills a market with one job of N [100000] finished subtasks, through the broker's own
 * exchange and storage. Each of its agent's messages has R [16] results, and each journal entry one
 * message. Then the program starts bourse-broker on the market: after a clean stop, after kill -9,
 * and with the files out of the page cache. It says when market.yaml was there, and how much memory
 * the start took. --make DIR only makes the market and leaves it. */
#include "base/checked.h"
#include "base/sha256.h"
#include "broker/core/group.h"
#include "broker/storage/snapshot/snapshot_file.h"
#include "broker/storage/storage.h"
#include "protocol/codec.h"
#include "protocol/results.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/market.h"
#include "runtime/private_folder.h"
#include "runtime/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 64, OWNER = 3, PROVIDER = 4, START_SECONDS_MOST = 600 };
#define BUSY_NS (2 * NS_PER_MS)
#define PRICE_MICRO INT64_C(3600000)

struct arguments {
    uint32_t subtasks, results;
    const char *broker, *make;
};

/* A filler fills a market. It does in one loop what the core, the committer and an agent do. */
struct filler {
    struct storage store;
    struct broker_config config;
    struct exchange *exchange;
    struct identity *owner, *provider;
    struct group *group;
    struct id128 device, job;
    struct hash32 manifest;
    struct exchange_work *work; /* dispatched, not answered: a ring of `subtasks` */
    uint32_t work_capacity, work_first, work_count;
    int64_t now_ns;
    uint64_t ids, next_snapshot;
};

static _Noreturn void die(const char *what, const struct problem *problem)
{
    (void)fprintf(stderr, "restart: %s%s%s\n", what, problem == NULL ? "" : ": ",
                  problem == NULL ? "" : problem->text);
    exit(EXIT_FAILURE);
}

static ProtobufCBinaryData view(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

/* ---------------------------------------------------------------- commands */

static void note_work(struct filler *filler)
{
    const struct exchange_effects *effects = &filler->group->effects;
    for (size_t i = 0; i < effects->count; i++) {
        if (effects->items[i].type == EFFECT_REJECT) {
            (void)fprintf(stderr, "restart: refused (%u, %s)\n", effects->items[i].reject.code,
                          effects->items[i].reject.field);
            exit(EXIT_FAILURE);
        }
        if (effects->items[i].type == EFFECT_DISPATCH) {
            uint32_t at = (filler->work_first + filler->work_count++) % filler->work_capacity;
            filler->work[at] = effects->items[i].work;
        }
    }
}

static void snapshot_when_due(struct filler *filler)
{
    const struct journal_last *last = &filler->store.last;
    if (last->next_command <= filler->next_snapshot) {
        return;
    }
    char folder[PATH_MAX];
    struct problem problem;
    struct snapshot_mark mark = {.command = last->next_command - 1,
                                 .entry = last->index,
                                 .chain = last->chain,
                                 .state = exchange_state_hash(filler->exchange)};
    if (!folder_path(filler->store.folder, MARKET_SNAPSHOTS, folder, sizeof folder, &problem) ||
        !private_folder(folder, true, &problem) ||
        !snapshot_write(folder, filler->exchange, &mark, &problem)) {
        die("a snapshot", &problem);
    }
    filler->next_snapshot = mark.command + filler->config.snapshot_every;
}

/* Applies one command and commits it as an entry of its own. */
static void commit(struct filler *filler, struct exchange_command *command,
                   const struct group_command *entry)
{
    struct group *group = filler->group;
    filler->now_ns += NS_PER_MS;
    command->index = exchange_index(filler->exchange) + 1;
    command->log_time_ns = filler->now_ns;
    command->account = entry->entry.account;
    if (exchange_step(filler->exchange, command, &group->effects) != EXCHANGE_OK) {
        die("the exchange", NULL);
    }
    group->first_command = command->index;
    group->command_count = 1;
    group->commands[0] = *entry;
    group->commands[0].entry.log_time_ns = filler->now_ns;
    if (storage_commit(&filler->store, group) != STORAGE_OK) {
        die("the disk is full", NULL);
    }
    note_work(filler);
    group_clear(group);
    snapshot_when_due(filler);
}

static struct id128 send(struct filler *filler, enum message_type type, uint32_t account,
                         const struct identity *signer, const ProtobufCMessage *body)
{
    struct request *request = request_create();
    size_t length = 0;
    uint8_t *bytes = codec_encode(body, &length);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = (uint16_t)type,
                                .session = 1,
                                .sequence = ++filler->ids,
                                .id = entropy_id(),
                                .created_ms = filler->now_ns / NS_PER_MS,
                                .body = bytes,
                                .body_length = (uint32_t)length};
    if (signer != NULL) {
        (void)identity_sign_envelope(signer, &filler->store.genesis.cluster, &envelope);
    }
    request->length = envelope_size(&envelope);
    request->message = malloc(request->length);
    if (request->message == NULL) {
        die("out of memory", NULL);
    }
    envelope_write(&envelope, request->message, request->length);
    free(bytes);
    struct codec_error error;
    if (envelope_read(request->message, request->length, UINT32_MAX, &request->envelope) !=
            ENVELOPE_OK ||
        translate_message(&request->envelope, &filler->store.genesis.cluster, &request->translation,
                          &error) != REJECT_NONE) {
        die("a message of ours", NULL);
    }
    struct group_command entry = {
        .request = request,
        .entry = {.account = account,
                  .kind = type == MESSAGE_RESULTS ? ENTRY_RESULTS : ENTRY_MESSAGE,
                  .verdict = 1,
                  .payload = request->message,
                  .payload_length = (uint32_t)request->length}};
    struct id128 id = envelope.id;
    commit(filler, &request->translation.command, &entry);
    return id;
}

/* ---------------------------------------------------------------- the story */

static void found(struct filler *filler)
{
    uint8_t payload[GENESIS_BYTES_MAX];
    struct translation translation = {0};
    const struct id128 no_cluster = {0};
    struct group_command entry = {.entry = {.account = EXCHANGE_NO_ACCOUNT,
                                            .kind = ENTRY_GENESIS,
                                            .payload = payload,
                                            .payload_length = (uint32_t)storage_genesis(
                                                &filler->store, payload, sizeof payload)}};
    if (!translate_entry(&entry.entry, 1, &no_cluster, &translation)) {
        die("the genesis", NULL);
    }
    commit(filler, &translation.command, &entry);
    translation_fini(&translation);
}

static void offer(struct filler *filler)
{
    Bourse__V1__Device device = BOURSE__V1__DEVICE__INIT;
    Bourse__V1__Device *devices[] = {&device};
    device.device = view(&filler->device, sizeof filler->device);
    device.instrument = (char *)(uintptr_t) "cpu.x86_64.avx2";
    device.slots = SLOTS;
    Bourse__V1__Advertise advertise = BOURSE__V1__ADVERTISE__INIT;
    advertise.n_devices = 1;
    advertise.devices = devices;
    (void)send(filler, MESSAGE_ADVERTISE, PROVIDER, filler->provider, &advertise.base);
    Bourse__V1__AskPlace ask = BOURSE__V1__ASK_PLACE__INIT;
    ask.device = view(&filler->device, sizeof filler->device);
    ask.slots = SLOTS;
    ask.price_micro = PRICE_MICRO;
    (void)send(filler, MESSAGE_ASK_PLACE, PROVIDER, filler->provider, &ask.base);
}

static void submit(struct filler *filler, uint32_t subtasks)
{
    Bourse__V1__Requirement needs = BOURSE__V1__REQUIREMENT__INIT;
    Bourse__V1__SubmitJob job = BOURSE__V1__SUBMIT_JOB__INIT;
    job.name = (char *)(uintptr_t) "restart";
    job.manifest = view(&filler->manifest, sizeof filler->manifest);
    job.subtasks = subtasks;
    job.budget_micro = 100000 * INT64_C(1000000);
    job.needs = &needs;
    job.slots = 1;
    job.limit_ms = 60000;
    job.term_ms = 3600000;
    job.verify = (char *)(uintptr_t) "none";
    filler->job = send(filler, MESSAGE_SUBMIT_JOB, OWNER, filler->owner, &job.base);
}

static uint8_t *encode_result(struct filler *filler, const struct exchange_work *work,
                              size_t *ret_length)
{
    struct hash32 hash = sha256_of(work, sizeof *work);
    Bourse__V1__Output output = BOURSE__V1__OUTPUT__INIT;
    output.name = (char *)(uintptr_t) "stdout";
    output.hash = view(&hash, sizeof hash);
    output.size = 12;
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    result.cluster = view(&filler->store.genesis.cluster, sizeof filler->store.genesis.cluster);
    result.job = view(&filler->job, sizeof filler->job);
    result.index = work->index;
    result.attempt = work->attempt;
    result.lease = work->lease;
    result.provider = view(identity_key(filler->provider), 32);
    result.device = view(&filler->device, sizeof filler->device);
    result.manifest = view(&filler->manifest, sizeof filler->manifest);
    result.outcome = OUTCOME_OK;
    result.started_ms = filler->now_ns / NS_PER_MS;
    result.busy_ns = BUSY_NS;
    result.has_exit_code = true;
    result.standard_output = &output;
    return codec_encode(&result.base, ret_length);
}

static void answer(struct filler *filler, uint32_t most)
{
    ProtobufCBinaryData encoded[LIMIT_RESULTS];
    struct hash32 leaves[LIMIT_RESULTS];
    uint32_t count = 0;
    while (count < most && filler->work_count > 0) {
        const struct exchange_work *work = &filler->work[filler->work_first];
        encoded[count].data = encode_result(filler, work, &encoded[count].len);
        leaves[count] = results_leaf(encoded[count].data, encoded[count].len);
        count++;
        filler->work_first = (filler->work_first + 1) % filler->work_capacity;
        filler->work_count--;
    }
    struct hash32 root = results_root(leaves, count);
    struct signature64 signature =
        results_sign(filler->provider, &filler->store.genesis.cluster, &root);
    Bourse__V1__Results results = BOURSE__V1__RESULTS__INIT;
    results.signature = view(&signature, sizeof signature);
    results.n_results = count;
    results.results = encoded;
    filler->now_ns += BUSY_NS;
    (void)send(filler, MESSAGE_RESULTS, PROVIDER, NULL, &results.base);
    for (uint32_t i = 0; i < count; i++) {
        free(encoded[i].data);
    }
}

static struct identity *identity_of(uint8_t seed_byte)
{
    uint8_t seed[32] = {seed_byte};
    struct identity *identity = identity_create(seed);
    if (identity == NULL) {
        die("out of memory", NULL);
    }
    return identity;
}

static void add_account(struct genesis *genesis, const struct identity *identity, uint32_t roles,
                        const char *name)
{
    struct genesis_account *account = &genesis->accounts[genesis->account_count++];
    account->key = *identity_key(identity);
    account->roles = roles;
    account->credits_micro = 1000000 * INT64_C(1000000);
    (void)snprintf(account->name, sizeof account->name, "%s", name);
}

static void fill(const char *folder, const struct arguments *arguments)
{
    struct filler filler = {.owner = identity_of(1),
                            .provider = identity_of(2),
                            .group = group_create(),
                            .device = {{7}},
                            .manifest = {{9}},
                            .work_capacity = arguments->subtasks,
                            .work = calloc(arguments->subtasks, sizeof(struct exchange_work))};
    struct problem problem;
    bool is_new = false;
    if (!config_load(folder, false, &filler.config, &problem)) {
        die("the config", &problem);
    }
    add_account(&filler.config.genesis, filler.owner, ROLE_CONSUMER | ROLE_OPERATOR, "owner");
    add_account(&filler.config.genesis, filler.provider, ROLE_PROVIDER, "provider");
    filler.next_snapshot = filler.config.snapshot_every;
    filler.now_ns = clock_wall_ns() - (arguments->subtasks + NS_PER_S / NS_PER_MS) * 4 * NS_PER_MS;
    filler.exchange = exchange_create(&filler.config.limits);
    if (filler.group == NULL || filler.work == NULL || filler.exchange == NULL) {
        die("out of memory", NULL);
    }
    if (!storage_open(folder, &filler.config, false, &filler.store, &is_new, &problem) ||
        !storage_lead(&filler.store, 0, &problem)) {
        die("the market", &problem);
    }
    found(&filler);
    offer(&filler);
    submit(&filler, arguments->subtasks);
    while (filler.work_count > 0) {
        answer(&filler, arguments->results);
    }
    struct exchange_job_row job;
    if (!exchange_job(filler.exchange, &filler.job, &job) || job.accepted != arguments->subtasks) {
        die("the job did not end", NULL);
    }
    storage_close(&filler.store);
    exchange_destroy(&filler.exchange);
    group_destroy(&filler.group);
    identity_destroy(&filler.owner);
    identity_destroy(&filler.provider);
    free(filler.work);
}

/* ---------------------------------------------------------------- starts */

struct start {
    double seconds;
    double cpu_s; /* of all threads, so far: what a busy machine hardly changes */
    long peak_kib;
};

static long peak_kib_of(pid_t pid)
{
    char path[64];
    char line[256];
    long kib = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = strtol(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        (void)fclose(file); /* only read */
    }
    return kib;
}

static double cpu_seconds_of(pid_t pid)
{
    char path[64];
    char line[1024] = "";
    unsigned long user = 0;
    unsigned long system = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        if (fgets(line, sizeof line, file) == NULL) {
            line[0] = '\0'; /* counts as no time */
        }
        (void)fclose(file); /* only read */
    }
    const char *fields = strrchr(line, ')'); /* a name may hold blanks */
    if (fields == NULL || sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                                 &user, &system) != 2) {
        return 0;
    }
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static pid_t spawn(const char *broker, const char *folder)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl(broker, broker, "--dir", folder, "--log", "error", (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* Starts the broker, measures until it is ready, and ends it with `signal`. */
static struct start measure(const char *broker, const char *folder, int signal)
{
    char ready[PATH_MAX];
    struct problem problem;
    const struct timespec look = {.tv_nsec = 500000};
    if (!folder_path(folder, MARKET_FILE, ready, sizeof ready, &problem)) {
        die("the folder", &problem);
    }
    (void)unlink(ready);
    int64_t begin_ns = clock_monotonic_ns();
    pid_t pid = spawn(broker, folder);
    int status;
    while (access(ready, F_OK) != 0) {
        if (waitpid(pid, &status, WNOHANG) == pid ||
            clock_monotonic_ns() - begin_ns > START_SECONDS_MOST * NS_PER_S) {
            die("the broker did not start", NULL);
        }
        (void)nanosleep(&look, NULL); /* between two looks at a file */
    }
    struct start start = {.seconds = (double)(clock_monotonic_ns() - begin_ns) / 1e9,
                          .cpu_s = cpu_seconds_of(pid),
                          .peak_kib = peak_kib_of(pid)};
    (void)kill(pid, signal);
    (void)waitpid(pid, &status, 0);
    return start;
}

/* Drops a file from the page cache, as a reboot does. */
static off_t forget(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat status = {0};
    struct problem problem;
    if (!folder_path(folder, name, path, sizeof path, &problem)) {
        die("the folder", &problem);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fdatasync(fd); /* only clean pages can be dropped */
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        (void)fstat(fd, &status);
        (void)close(fd); /* only read */
    }
    return status.st_size;
}

static void report(const char *folder, const struct arguments *arguments)
{
    struct start first = measure(arguments->broker, folder, SIGTERM);
    struct start stopped = measure(arguments->broker, folder, SIGKILL);
    struct start killed = measure(arguments->broker, folder, SIGTERM);
    off_t bytes = forget(folder, MARKET_DATABASE);
    struct start cold = measure(arguments->broker, folder, SIGTERM);
    (void)printf(
        "{\"subtasks\":%" PRIu32 ",\"results_per_entry\":%" PRIu32
        ",\"database_bytes\":%lld,\"first_s\":%.3f,\"after_stop_s\":%.3f,\"after_kill_s\":%.3f,"
        "\"cold_s\":%.3f,\"cpu_s\":%.2f,\"peak_bytes\":%lld}\n",
        arguments->subtasks, arguments->results, (long long)bytes, first.seconds, stopped.seconds,
        killed.seconds, cold.seconds, killed.cpu_s, (long long)(killed.peak_kib * 1024));
}

/* ---------------------------------------------------------------- the whole */

static uint32_t number(const char *text, uint32_t most)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || value == 0 || value > most) {
        die("a number is out of range", NULL);
    }
    return (uint32_t)value;
}

static void parse(int argc, char **argv, struct arguments *ret)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            continue; /* there is no other form */
        }
        if (i + 1 == argc) {
            die("usage: restart [--subtasks N] [--results R] [--broker PROGRAM] [--make DIR] "
                "[--json]",
                NULL);
        }
        const char *value = argv[++i];
        if (strcmp(argv[i - 1], "--subtasks") == 0) {
            ret->subtasks = number(value, LIMIT_SUBTASKS);
        } else if (strcmp(argv[i - 1], "--results") == 0) {
            ret->results = number(value, LIMIT_RESULTS);
        } else if (strcmp(argv[i - 1], "--broker") == 0) {
            ret->broker = value;
        } else if (strcmp(argv[i - 1], "--make") == 0) {
            ret->make = value;
        } else {
            die("unknown option", NULL);
        }
    }
}

static void remove_folder(const char *folder)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", folder, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    char beside[PATH_MAX];
    char folder[] = "/tmp/bourse-restart-XXXXXX";
    struct arguments arguments = {.subtasks = 100000, .results = 16};
    struct problem problem;
    parse(argc, argv, &arguments);
    if (!process_start(&problem)) {
        die("start", &problem);
    }
    if (arguments.make != NULL) {
        fill(arguments.make, &arguments);
        return EXIT_SUCCESS;
    }
    if (arguments.broker == NULL) {
        if (!process_folder(beside, sizeof beside - 32)) {
            die("where is the broker?", NULL);
        }
        (void)strcat(beside, "/../bin/bourse-broker");
        arguments.broker = beside;
    }
    if (mkdtemp(folder) == NULL) {
        die("no folder", NULL);
    }
    fill(folder, &arguments);
    report(folder, &arguments);
    remove_folder(folder);
    return EXIT_SUCCESS;
}
