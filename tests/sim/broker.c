#include "tests/sim/broker.h"

#include "base/sha256.h"
#include "broker/core/committer.h"
#include "broker/core/core.h"
#include "broker/core/follower.h"
#include "broker/core/privileged_acts.h"
#include "broker/fatal.h"
#include "broker/gateway/gateway.h"
#include "broker/gateway/verify.h"
#include "broker/storage/replay.h"
#include "broker/storage/snapshot/snapshots.h"
#include "exchange/view/feed.h"
#include "protocol/identity.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "tests/sim/fibre.h"
#include "tests/sim/look.h"
#include "tests/sim/net.h"
#include "tests/sim/oracle.h"
#include "tests/sim/port.h"
#include "tests/sim/process.h"
#include "tests/sim/sides.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUEST_QUEUE = 4096, RELEASE_QUEUE = 16384, NOTE_QUEUE = 4096, READ_QUEUE = 256 };
#define FOLLOW_NS (50 * SIM_MS)
#define TAKEOVER_NS (2 * SIM_S)
#define LOOK_NS (500 * SIM_MS)
#define RESEND_NS (300 * SIM_MS)
#define EPOCH_NS (60 * SIM_S)

struct inner {
    struct broker *broker;
    struct storage store; /* of which only journal, epoch, last, buffer and refusals are used */
    struct exchange *exchange;
    struct epoch epoch;
    struct router port;
    struct disk_reserve reserve; /* without a reserve: a full disk is waited out */
    struct queue *worker_in, *core_in, *groups, *to_tables, *applied, *returned, *releases, *notes,
        *names, *reads, *snapshot_requests;
    atomic_uint committing;
};

static struct broker *present(void)
{
    return (struct broker *)(void *)((char *)world.current - offsetof(struct broker, process));
}

static void hears(struct host *host, uint32_t route, const struct key32 *client,
                  const uint8_t *bytes, size_t length)
{
    struct broker *broker = (struct broker *)(void *)((char *)host - offsetof(struct broker, host));
    if (broker->serves) {
        port_hears(&broker->inner->port, route, client, bytes, length);
    }
}

/* ---------------------------------------------------------------- the end of it */

static void bury(struct broker *broker)
{
    trace("%s has ended", broker->process.name);
    if (broker->inner != NULL) {
        port_empty(&broker->inner->port);
    }
    broker->inner = NULL;
    broker->serves = false;
    broker->wants_to_lead = false;
    fibres_end(&broker->process);
    process_end(&broker->process);
    net_host_ended(&broker->host);
}

static void begin_again(void *context, uint64_t a, uint64_t b)
{
    struct broker *broker = context;
    (void)a;
    (void)b;
    if (!broker->process.runs) {
        broker_start(broker);
    }
}

static void after_fatal(void *context, uint64_t life, uint64_t unused)
{
    struct broker *broker = context;
    (void)unused;
    if (broker->process.runs && broker->process.life == life) {
        bury(broker);
        event_in(draw_time(DICE_FAULTS, 10 * SIM_MS, 3 * SIM_S), NULL, begin_again, broker, 0, 0);
    }
}

void process_stops(const char *why, bool is_deposed)
{
    struct broker *broker = present();
    (void)why;
    (void)is_deposed;
    broker->fatal++;
    assert(fibre_current() != NULL);
    event_in(0, NULL, after_fatal, broker, broker->process.life, 0);
    fibre_abandon();
}

void broker_crash(struct broker *broker)
{
    if (broker->process.runs) {
        bury(broker);
    }
    event_in(draw_time(DICE_FAULTS, 10 * SIM_MS, 5 * SIM_S), NULL, begin_again, broker, 0, 0);
}

void broker_forget(struct broker *broker)
{
    if (broker->process.runs) {
        bury(broker);
    }
    sim_free(broker->snapshot.bytes);
    broker->snapshot.bytes = NULL;
    broker->secrets = (struct epoch_secrets){.now = {{0}}};
}

/* ---------------------------------------------------------------- the commit */

/* Offers acts in the transaction of the entry, as broker/storage/storage_commit.c does. */
static void offer_acts(const struct group *group, const struct hash32 *chain)
{
    struct act *acts = calloc(group->effects.count + 1, sizeof *acts);
    size_t count = 0;
    if (acts == NULL) {
        fatal("out of memory for the audit log");
    }
    for (size_t i = 0; i < group->effects.count; i++) {
        count += privileged_act_of(group, &group->effects.items[i], &acts[count]);
    }
    oracle_offers_acts(chain, acts, count);
    free(acts);
}

static enum journal_status append(struct inner *inner, const struct journal_entry *entry)
{
    struct process *before = process_enter(NULL); /* the log outlives the broker */
    enum journal_status status = journal_append(inner->store.journal, inner->store.epoch, entry, 1);
    process_leave(before);
    if (status != JOURNAL_OK) {
        fault_happened(FAULT_JOURNAL);
        trace("append of entry %" PRIu64 ": %s", entry->index, journal_status_text(status));
    }
    return status;
}

/* The same bytes until their fate is known: nothing else may stand at this index before. */
static enum journal_status append_resolved(struct broker *broker, const struct journal_entry *entry)
{
    bool is_unknown = false;
    for (;;) {
        fibre_wait(draw_time(DICE_ORDER, broker->commit_least_ns, broker->commit_most_ns));
        enum journal_status status = append(broker->inner, entry);
        if (status == JOURNAL_FULL && !is_unknown) {
            return status;
        }
        if (status != JOURNAL_UNKNOWN && status != JOURNAL_FULL && status != JOURNAL_UNAVAILABLE) {
            return status;
        }
        is_unknown = is_unknown || status == JOURNAL_UNKNOWN;
        fibre_wait(draw_time(DICE_ORDER, SIM_MS, RESEND_NS));
    }
}

/* The journal in memory takes no room on a disk. */
void storage_save_space(struct storage *store, bool is_scarce)
{
    (void)store;
    (void)is_scarce;
}

enum storage_status storage_commit(struct storage *store, const struct group *group)
{
    struct broker *broker = present();
    struct inner *inner = broker->inner;
    assert(store == &inner->store);
    assert(group->first_command == store->last.next_command);
    const size_t length = group_write_entry(group, store->last.index + 1, store->epoch,
                                            &store->last.chain, store->buffer);
    const struct journal_entry entry = {
        .index = store->last.index + 1, .bytes = store->buffer, .length = length};
    const struct hash32 chain = sha256_of(store->buffer, length);
    offer_acts(group, &chain);
    switch (append_resolved(broker, &entry)) {
    case JOURNAL_OK:
        break;
    case JOURNAL_FULL:
        return STORAGE_FULL;
    case JOURNAL_DEPOSED:
        broker->deposed++;
        fatal("deposed: another broker leads; stopped, to follow it");
    case JOURNAL_UNKNOWN:
    case JOURNAL_BEHIND:
    case JOURNAL_TOO_LARGE:
    case JOURNAL_UNAVAILABLE:
    case JOURNAL_CORRUPT:
        sim_fail("entry %" PRIu64 " was refused in an impossible way", entry.index);
    }
    store->last.index++;
    store->last.chain = chain;
    store->last.next_command += group->command_count;
    trace("entry %" PRIu64 " is in: commands %" PRIu64 " to %" PRIu64, store->last.index,
          group->first_command, store->last.next_command - 1);
    oracle_follow();
    if (group->has_mark) {
        oracle_compare(store->last.next_command - 1, &group->mark, "live");
    }
    return STORAGE_OK;
}

enum storage_status storage_write_acts(struct storage *store, int64_t log_ns, bool all)
{
    size_t count = refusals_take(store->refusals, clock_monotonic_ns(), all, store->refused);
    oracle_refuses(store->refused, count, log_ns);
    return STORAGE_OK;
}

/* ---------------------------------------------------------------- following */

static enum journal_status next_entry(struct inner *inner, struct journal_entry *ret_entry)
{
    struct process *before = process_enter(NULL);
    enum journal_status status =
        journal_next(inner->store.journal, inner->store.last.index + 1, ret_entry, 0);
    process_leave(before);
    return status;
}

/* Applies what is in the log. False when the rest was cut away: the snapshot is too old. */
static void follow(struct inner *inner)
{
    struct journal_entry entry;
    struct journal_last *last = &inner->store.last;
    enum journal_status status;
    while ((status = next_entry(inner, &entry)) == JOURNAL_OK) {
        struct problem problem = {.text = ""};
        struct entry_head head;
        if (!entry_read_head(entry.bytes, entry.length, &head)) {
            sim_fail("entry %" PRIu64 " cannot be read back", entry.index);
        }
        if (replay_entry(inner->exchange, entry.bytes, entry.length, NULL, NULL, &problem) !=
            REPLAY_OK) {
            fatal("%s", problem.text);
        }
        last->index = entry.index;
        last->chain = sha256_of(entry.bytes, entry.length);
        last->next_command = head.first_command + head.count;
    }
    if (status != JOURNAL_UNAVAILABLE) {
        sim_fail("entry %" PRIu64 " cannot be followed: %s", last->index + 1,
                 journal_status_text(status));
    }
}

/* Loads the snapshot on the broker's disk, if there is one; otherwise it begins with nothing. */
static void load(struct inner *inner)
{
    const struct broker *broker = inner->broker;
    inner->store.last.next_command = 1;
    if (broker->snapshot.bytes == NULL) {
        inner->exchange = exchange_create(broker->limits);
    } else {
        inner->exchange =
            exchange_load(broker->limits, broker->snapshot.bytes, broker->snapshot.length);
        inner->store.last.index = broker->snapshot.entry;
        inner->store.last.chain = broker->snapshot.chain;
    }
    if (inner->exchange == NULL) {
        fatal("out of memory for the exchange");
    }
    if (broker->snapshot.bytes != NULL) {
        trace("loads the snapshot at command %" PRIu64, exchange_index(inner->exchange));
        inner->store.last.next_command = exchange_index(inner->exchange) + 1;
    }
}

/* ---------------------------------------------------------------- snapshots */

/* Makes a snapshot as snapshots.c does: a second exchange, from the last snapshot
 * and the entries after it, is compared. */
static void make_snapshot(struct broker *broker, const struct snapshot_mark *mark)
{
    struct problem problem = {.text = ""};
    struct exchange *exchange =
        broker->snapshot.bytes == NULL
            ? exchange_create(broker->limits)
            : exchange_load(broker->limits, broker->snapshot.bytes, broker->snapshot.length);
    uint64_t index = broker->snapshot.bytes == NULL ? 0 : broker->snapshot.entry;
    bool good = exchange != NULL;
    while (good && index < mark->entry) {
        struct journal_entry entry;
        struct process *before = process_enter(NULL);
        enum journal_status status =
            journal_next(broker->inner->store.journal, index + 1, &entry, 0);
        process_leave(before);
        if (status == JOURNAL_UNAVAILABLE) {
            fibre_wait(FOLLOW_NS);
            continue;
        }
        good = status == JOURNAL_OK &&
               replay_entry(exchange, entry.bytes, entry.length, NULL, NULL, &problem) == REPLAY_OK;
        index++;
    }
    size_t length = 0;
    uint8_t *bytes = good ? exchange_save(exchange, &length) : NULL;
    if (bytes != NULL) {
        struct hash32 state = exchange_state_hash(exchange);
        if (!hash32_equal(&state, &mark->state)) {
            sim_fail("the snapshot at command %" PRIu64 " differs from the live state",
                     mark->command);
        }
        sim_free(broker->snapshot.bytes);
        broker->snapshot.bytes = sim_alloc(length);
        memcpy(broker->snapshot.bytes, bytes, length);
        broker->snapshot.length = length;
        broker->snapshot.entry = mark->entry;
        broker->snapshot.chain = mark->chain;
        trace("snapshot at command %" PRIu64 ", %zu bytes", mark->command, length);
    } else {
        trace("no snapshot at command %" PRIu64 ": %s", mark->command, problem.text);
    }
    free(bytes);
    exchange_destroy(&exchange);
}

static void *run_snapshots(void *argument)
{
    struct broker *broker = argument;
    for (;;) {
        struct queue_link *link = queue_pop(broker->inner->snapshot_requests, QUEUE_FOREVER);
        if (link != NULL) {
            struct snapshot_request *request = QUEUE_ELEMENT(link, struct snapshot_request, link);
            make_snapshot(broker, &request->mark);
            free(request);
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- leading */

static void make_queues(struct inner *inner)
{
    inner->worker_in = sides_queue(REQUEST_QUEUE);
    inner->core_in = sides_queue(REQUEST_QUEUE);
    inner->groups = sides_queue(CORE_GROUPS);
    inner->to_tables = sides_queue(CORE_GROUPS);
    inner->applied = sides_queue(CORE_GROUPS);
    inner->returned = sides_queue(CORE_GROUPS);
    inner->releases = sides_queue(RELEASE_QUEUE);
    inner->notes = sides_queue(NOTE_QUEUE);
    inner->names = sides_queue(NOTE_QUEUE);
    inner->reads = sides_queue(READ_QUEUE);
    inner->snapshot_requests = sides_queue(4);
}

static void start_threads(struct broker *broker)
{
    struct inner *inner = broker->inner;
    const struct genesis *genesis = broker->genesis;
    struct logtime *clock = logtime_create(exchange_log_time_ns(inner->exchange));
    struct directory *directory = directory_of(inner->exchange);
    inner->store.refusals = refusals_create();
    if (clock == NULL || directory == NULL || inner->store.refusals == NULL ||
        !exchange_feed_open(inner->exchange, 0)) {
        fatal("out of memory");
    }
    uint64_t index = exchange_index(inner->exchange);
    make_queues(inner);
    (void)fibre_create(run_snapshots, broker);
    (void)fibre_create(sides_run_notes, inner->notes);
    (void)fibre_create(sides_run_notes, inner->names);

    const struct committer_config committer = {.store = &inner->store,
                                               .groups = inner->groups,
                                               .follower = inner->to_tables,
                                               .applied = inner->applied,
                                               .returned = inner->returned,
                                               .core = inner->core_in,
                                               .committing = &inner->committing,
                                               .releases = inner->releases,
                                               .blobs = inner->notes,
                                               .names = inner->names,
                                               .reserve = &inner->reserve};
    (void)committer_start(&committer);
    const struct follower_config follower = {.store = &inner->store,
                                             .groups = inner->to_tables,
                                             .applied = inner->applied,
                                             .returned = inner->returned,
                                             .core = inner->core_in,
                                             .snapshots = inner->snapshot_requests,
                                             .reserve = &inner->reserve,
                                             .clock = clock};
    (void)follower_start(&follower);
    const struct core_config core = {.exchange = inner->exchange,
                                     .clock = clock,
                                     .epoch = &inner->epoch,
                                     .inbound = inner->core_in,
                                     .groups = inner->groups,
                                     .returned = inner->returned,
                                     .committing = &inner->committing,
                                     .reader = inner->reads,
                                     .mark_every = broker->mark_every,
                                     .reserve = &inner->reserve};
    (void)core_start(&core);
    const struct verify_config verify = {.inbound = inner->worker_in,
                                         .core = inner->core_in,
                                         .releases = inner->releases,
                                         .cluster = genesis->cluster,
                                         .look = sim_look};
    (void)verify_start(&verify);
    struct gateway_config gateway = {.router = &inner->port,
                                     .directory = directory,
                                     .clock = clock,
                                     .workers = {inner->worker_in},
                                     .worker_count = 1,
                                     .releases = inner->releases,
                                     .heartbeat_ms = 1000,
                                     .rate = 5000,
                                     .rate_anonymous = 20,
                                     .cluster = genesis->cluster,
                                     .log_key = genesis->log_key,
                                     .index = index,
                                     .index_log_ns = exchange_log_time_ns(inner->exchange),
                                     .reserve = &inner->reserve,
                                     .refusals = inner->store.refusals};
    memcpy(gateway.origin, genesis->origin, sizeof gateway.origin);
    (void)gateway_start(&gateway);
}

/* The first entry of an empty log. */
static void commit_alone(struct broker *broker, const struct entry_command *entry)
{
    struct group *group = group_create();
    if (group == NULL) {
        fatal("out of memory");
    }
    struct translation translation = {0};
    struct exchange *exchange = broker->inner->exchange;
    const struct id128 cluster = exchange_cluster(exchange);
    const uint64_t index = exchange_index(exchange) + 1;
    if (!translate_entry(entry, index, &cluster, &translation) ||
        exchange_step(exchange, &translation.command, &group->effects) != EXCHANGE_OK) {
        fatal("a command of the broker's own is not valid");
    }
    group->first_command = index;
    group->command_count = 1;
    group->commands[0].entry = *entry;
    while (storage_commit(&broker->inner->store, group) == STORAGE_FULL) {
        fibre_wait(SIM_S);
    }
    translation_fini(&translation);
    group_destroy(&group);
}

static void commit_genesis(struct broker *broker)
{
    uint8_t payload[GENESIS_BYTES_MAX];
    const struct entry_command entry = {
        .log_time_ns = clock_wall_ns(),
        .account = EXCHANGE_NO_ACCOUNT,
        .kind = ENTRY_GENESIS,
        .payload = payload,
        .payload_length = (uint32_t)genesis_write(broker->genesis, payload, sizeof payload)};
    commit_alone(broker, &entry);
}

static bool keep_secrets(void *context, const struct epoch_secrets *secrets)
{
    struct broker *broker = context;
    broker->secrets = *secrets;
    return true;
}

/* No other broker than the one that began an epoch knows its secret. */
static void recall_secrets(struct broker *broker)
{
    struct inner *inner = broker->inner;
    struct hash32 commitment;
    inner->epoch = (struct epoch){
        .secrets = broker->secrets, .length_ns = EPOCH_NS, .keep = keep_secrets, .context = broker};
    epoch_start(&inner->epoch, exchange_epochs(inner->exchange, &commitment),
                exchange_log_time_ns(inner->exchange));
}

/* A broker that was deposed and has nothing to append would not notice. */
static void *run_look(void *argument)
{
    struct broker *broker = argument;
    for (;;) {
        struct journal_leader leader;
        fibre_wait(LOOK_NS);
        if (journal_leader(broker->inner->store.journal, &leader) == JOURNAL_OK &&
            leader.epoch != broker->inner->store.epoch) {
            broker->deposed++;
            fatal("deposed: another broker leads; stopped, to follow it");
        }
    }
    return NULL;
}

/* Returns true when the log has had no leader worth the name for long enough. */
static bool should_lead(const struct broker *broker, int64_t *silent_since_ns)
{
    if (broker->wants_to_lead || net_leader_is_gone()) {
        if (broker->wants_to_lead ||
            world.now_ns - *silent_since_ns >= (int64_t)broker->rank * TAKEOVER_NS) {
            return true;
        }
        return false;
    }
    *silent_since_ns = world.now_ns;
    return false;
}

static bool lead(struct broker *broker)
{
    struct inner *inner = broker->inner;
    struct journal_leader me = {.epoch = 0};
    (void)snprintf(me.broker, sizeof me.broker, "%s", broker->process.name);
    struct process *before = process_enter(NULL);
    enum journal_status status =
        journal_lead(inner->store.journal, inner->store.last.index, &me, &inner->store.epoch);
    process_leave(before);
    oracle_follow(); /* what was on its way may have arrived */
    trace("leads at entry %" PRIu64 ": %s", inner->store.last.index, journal_status_text(status));
    return status == JOURNAL_OK;
}

static void *run(void *argument)
{
    struct broker *broker = argument;
    struct inner *inner = broker->inner;
    int64_t silent_since_ns = world.now_ns;
    load(inner);
    for (;;) {
        follow(inner);
        if (should_lead(broker, &silent_since_ns) && lead(broker)) {
            break;
        }
        fibre_wait(draw_time(DICE_ORDER, FOLLOW_NS / 2, FOLLOW_NS));
    }
    if (inner->store.last.index == 0) {
        commit_genesis(broker);
    }
    recall_secrets(broker);
    if (inner->store.last.index > 0) {
        struct hash32 state = exchange_state_hash(inner->exchange);
        oracle_compare(exchange_index(inner->exchange), &state, "replayed");
    }
    oracle_serves();
    start_threads(broker);
    (void)fibre_create(run_look, broker);
    broker->serves = true;
    broker->wants_to_lead = false;
    net_set_leader(&broker->host);
    return NULL;
}

void broker_start(struct broker *broker)
{
    process_begin(&broker->process);
    broker->host = (struct host){.process = &broker->process, .hears = hears};
    broker->started++;
    trace("%s starts", broker->process.name);
    struct process *before = process_enter(&broker->process);
    struct inner *inner = calloc(1, sizeof *inner);
    broker->inner = inner;
    inner->broker = broker;
    inner->store.journal = journal_memory_open(broker->log);
    inner->store.buffer = malloc(ENTRY_MAX_BYTES);
    assert(inner->store.journal != NULL && inner->store.buffer != NULL);
    (void)fibre_create(run, broker);
    process_leave(before);
}

bool broker_state(struct broker *broker, uint64_t *ret_command, struct hash32 *ret_state)
{
    const struct inner *inner = broker->inner;
    if (!broker->process.runs || inner->exchange == NULL ||
        exchange_index(inner->exchange) >= inner->store.last.next_command) {
        return false;
    }
    *ret_command = exchange_index(inner->exchange);
    *ret_state = exchange_state_hash(inner->exchange);
    return true;
}
