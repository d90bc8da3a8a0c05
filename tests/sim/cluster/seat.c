#include "tests/sim/cluster/seat.h"

#include "broker/storage/entry.h"
#include "broker/storage/etcd/succession.h"
#include "exchange/view/feed.h"
#include "runtime/entropy.h"
#include "tests/sim/fibre.h"
#include "tests/sim/look.h"
#include "tests/sim/oracle.h"
#include "tests/sim/people.h"
#include "tests/sim/process.h"
#include "tests/sim/sides.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUEST_QUEUE = 4096, RELEASE_QUEUE = 16384, NOTE_QUEUE = 4096, READ_QUEUE = 256 };
#define EPOCH_NS (60 * SIM_S)

struct seat seats[SEATS];
static uint64_t joins;

uint64_t seats_joined(void)
{
    return joins;
}

struct seat *seat_present(void)
{
    return (struct seat *)(void *)((char *)world.current - offsetof(struct seat, process));
}

static void hears(struct host *host, uint32_t route, const struct key32 *client,
                  const uint8_t *bytes, size_t length)
{
    struct seat *seat = (struct seat *)(void *)((char *)host - offsetof(struct seat, host));
    if (seat->is_open) {
        port_hears(&seat->port, route, client, bytes, length);
    }
}

/* ---------------------------------------------------------------- the end of it */

static void bury(struct seat *seat)
{
    trace("%s has ended, with %" PRIu64 " entries", seat->process.name, seat->disk.count);
    port_empty(&seat->port);
    seat->port = (struct router){.first = NULL};
    seat->broker = NULL;
    seat->is_open = seat->serves = false;
    fibres_end(&seat->process);
    process_end(&seat->process);
}

static void begin_again(void *context, uint64_t a, uint64_t b)
{
    struct seat *seat = context;
    (void)a;
    (void)b;
    if (!seat->process.runs) {
        seat_start(seat);
    }
}

static void after_stop(void *context, uint64_t life, uint64_t unused)
{
    struct seat *seat = context;
    (void)unused;
    if (seat->process.runs && seat->process.life == life) {
        bury(seat);
        event_in(draw_time(DICE_FAULTS, 10 * SIM_MS, 2 * SIM_S), NULL, begin_again, seat, 0, 0);
    }
}

static _Noreturn void stop(struct seat *seat)
{
    event_in(0, NULL, after_stop, seat, seat->process.life, 0);
    fibre_abandon();
}

void process_stops(const char *why, bool is_deposed)
{
    if (!is_deposed) {
        sim_fail("a broker stops: %s", why);
    }
    stop(seat_present());
}

void seat_crash(struct seat *seat, int64_t away_ns)
{
    if (seat->process.runs) {
        bury(seat);
    }
    event_in(away_ns + draw_time(DICE_FAULTS, 10 * SIM_MS, 3 * SIM_S), NULL, begin_again, seat, 0,
             0);
}

/* ---------------------------------------------------------------- the start */

static bool keep_secrets(void *context, const struct epoch_secrets *secrets)
{
    struct seat *seat = context;
    seat->disk.secrets = *secrets;
    return true;
}

/* No other broker than the one that began an epoch knows its secret. */
static void recall_secrets(struct seat *seat)
{
    struct broker *broker = seat->broker;
    struct hash32 commitment;
    broker->epoch = (struct epoch){.secrets = seat->disk.secrets,
                                   .length_ns = EPOCH_NS,
                                   .keep = keep_secrets,
                                   .context = seat};
    epoch_start(&broker->epoch, exchange_epochs(broker->exchange, &commitment),
                exchange_log_time_ns(broker->exchange));
}

static void make_queues(struct broker *broker)
{
    broker->workers_in[0] = sides_queue(REQUEST_QUEUE);
    broker->core_in = sides_queue(REQUEST_QUEUE);
    broker->groups = sides_queue(CORE_GROUPS);
    broker->to_tables = sides_queue(CORE_GROUPS);
    broker->applied = sides_queue(CORE_GROUPS);
    broker->returned = sides_queue(CORE_GROUPS);
    broker->releases = sides_queue(RELEASE_QUEUE);
    broker->notes = sides_queue(NOTE_QUEUE);
    broker->names = sides_queue(NOTE_QUEUE);
    broker->reads = sides_queue(READ_QUEUE);
    broker->snapshot_requests = sides_queue(4);
}

static void start_ledger(struct broker *broker)
{
    const struct committer_config committer = {.store = &broker->store,
                                               .groups = broker->groups,
                                               .follower = broker->to_tables,
                                               .applied = broker->applied,
                                               .returned = broker->returned,
                                               .core = broker->core_in,
                                               .committing = &broker->committing,
                                               .releases = broker->releases,
                                               .blobs = broker->notes,
                                               .names = broker->names,
                                               .reserve = &broker->reserve};
    const struct follower_config follower = {.store = &broker->store,
                                             .groups = broker->to_tables,
                                             .applied = broker->applied,
                                             .returned = broker->returned,
                                             .core = broker->core_in,
                                             .snapshots = broker->snapshot_requests,
                                             .reserve = &broker->reserve,
                                             .clock = broker->clock};
    (void)fibre_create(sides_run_notes, broker->notes);
    (void)fibre_create(sides_run_notes, broker->names);
    (void)committer_start(&committer);
    (void)follower_start(&follower);
}

static void start_core(struct broker *broker)
{
    const struct core_config core = {.exchange = broker->exchange,
                                     .clock = broker->clock,
                                     .epoch = &broker->epoch,
                                     .inbound = broker->core_in,
                                     .groups = broker->groups,
                                     .returned = broker->returned,
                                     .committing = &broker->committing,
                                     .reader = broker->reads,
                                     .group_bytes = GROUP_BYTES_ON_ETCD,
                                     .beat_ms = SUCCESSION_BEAT_MS,
                                     .reserve = &broker->reserve};
    const struct verify_config verify = {.inbound = broker->workers_in[0],
                                         .core = broker->core_in,
                                         .releases = broker->releases,
                                         .cluster = people.genesis.cluster,
                                         .look = sim_look};
    (void)core_start(&core);
    (void)verify_start(&verify);
}

static void start_gateway(struct broker *broker, uint64_t index)
{
    struct gateway_config gateway = {.router = broker->control,
                                     .directory = broker->directories[0],
                                     .clock = broker->clock,
                                     .workers = {broker->workers_in[0]},
                                     .worker_count = 1,
                                     .releases = broker->releases,
                                     .heartbeat_ms = 1000,
                                     .rate = 5000,
                                     .rate_anonymous = 20,
                                     .cluster = people.genesis.cluster,
                                     .log_key = people.genesis.log_key,
                                     .index = index,
                                     .index_log_ns = exchange_log_time_ns(broker->exchange),
                                     .reserve = &broker->reserve,
                                     .quorum = &broker->store.quorum,
                                     .refusals = broker->store.refusals};
    memcpy(gateway.origin, people.genesis.origin, sizeof gateway.origin);
    (void)gateway_start(&gateway);
}

static void serve(struct seat *seat)
{
    struct broker *broker = seat->broker;
    const uint64_t index = exchange_index(broker->exchange);
    recall_secrets(seat);
    broker->clock = logtime_create(exchange_log_time_ns(broker->exchange));
    broker->directories[0] = directory_of(broker->exchange);
    assert(broker->clock != NULL && broker->directories[0] != NULL);
    if (!broker->has_feed && !exchange_feed_open(broker->exchange, 0)) {
        sim_fail("no memory for the feed");
    }
    oracle_serves();
    make_queues(broker);
    start_ledger(broker);
    start_core(broker);
    start_gateway(broker, index);
    seat->serves = true;
    trace("serves from command %" PRIu64 " on", index);
}

static void configure(struct seat *seat)
{
    struct broker *broker = seat->broker;
    struct broker_config *config = &broker->config;
    const struct contact *addresses;
    (void)net_addresses(&addresses);
    config->limits = people.limits;
    config->cluster_rank = seat->number;
    config->heartbeat_ms = 1000;
    config->rate = 5000;
    config->rate_anonymous = 20;
    config->steps = BUDGET_STEPS;
    (void)snprintf(config->cluster_address, sizeof config->cluster_address, "%s",
                   addresses[seat->number].control);
    for (config->etcd.member_count = 0; config->etcd.member_count < 3;) {
        const size_t i = config->etcd.member_count++;
        (void)snprintf(config->etcd.members[i], sizeof config->etcd.members[i], "https://m%zu:1",
                       i);
    }
    broker->signals = -1;
    broker->control = &seat->port;
}

static void open_storage(struct seat *seat)
{
    struct storage *store = &seat->broker->store;
    const struct seat_disk *disk = &seat->disk;
    (void)snprintf(store->folder, sizeof store->folder, "/market%u", seat->number);
    store->genesis = people.genesis;
    store->audit_key = seat->audit_key;
    store->last_run_ns = disk->last_run_ns;
    store->last = (struct journal_last){.index = disk->count, .next_command = disk->next_command};
    if (disk->count > 0) {
        store->last.chain = disk->entries[disk->count - 1].chain;
    }
    store->table = store->last;
    store->buffer = malloc(ENTRY_MAX_BYTES);
    store->refusals = refusals_create();
    assert(store->buffer != NULL && store->refusals != NULL);
}

/* A start may fail because etcd does not answer, or has cut away what this folder lacks. */
static void fail_start(struct seat *seat, const char *why)
{
    trace("cannot start: %s", why);
    if (strstr(why, "etcd no longer has entry") != NULL) {
        joins++;
        seat_join(seat);
    } else if (strstr(why, "not answer") == NULL && strstr(why, "does not open") == NULL &&
               strstr(why, "no member of etcd") == NULL) {
        sim_fail("a broker cannot start: %s", why);
    }
}

static void *run(void *argument)
{
    struct seat *seat = argument;
    struct problem problem = {.text = ""};
    const bool is_new = seat->disk.count == 0;
    seat->broker = calloc(1, sizeof *seat->broker);
    assert(seat->broker != NULL);
    configure(seat);
    open_storage(seat);
    if (!broker_start_exchange(seat->broker, is_new, false, &problem)) {
        fail_start(seat, problem.text);
        stop(seat);
    }
    serve(seat);
    return NULL;
}

void seat_start(struct seat *seat)
{
    process_begin(&seat->process);
    trace("%s starts, with %" PRIu64 " entries", seat->process.name, seat->disk.count);
    struct process *before = process_enter(&seat->process);
    (void)fibre_create(run, seat);
    process_leave(before);
}

void seat_join(struct seat *seat)
{
    const struct seat *furthest = seat;
    for (unsigned i = 0; i < SEATS; i++) {
        furthest = seats[i].disk.count > furthest->disk.count ? &seats[i] : furthest;
    }
    if (furthest != seat) {
        seat_disk_copy(&seat->disk, &furthest->disk);
    }
    trace("%s begins anew with %" PRIu64 " entries of %s", seat->process.name, seat->disk.count,
          furthest->process.name);
}

void seats_make(uint32_t disk_slow, uint32_t cuts)
{
    static const uint8_t seed[32] = {27};
    memset(seats, 0, sizeof seats);
    for (unsigned i = 0; i < SEATS; i++) {
        struct seat *seat = &seats[i];
        seat->number = i;
        (void)snprintf(seat->process.name, sizeof seat->process.name, "broker%u", i);
        seat->host = (struct host){.process = &seat->process, .hears = hears};
        net_add_host(&seat->host);
        seat->audit_key = identity_create(seed);
        seat->disk.next_command = 1;
        assert(seat->audit_key != NULL);
        seat->disk_least_ns = 100 * SIM_US;
        seat->disk_most_ns = draw_time(DICE_FAULTS, 200 * SIM_US, 20 * SIM_MS);
        seat->disk_slow = disk_slow;
        seat->cuts = cuts;
    }
}
