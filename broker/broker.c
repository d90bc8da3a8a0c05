#include "broker/broker.h"

#include "broker/answer/reader.h"
#include "broker/answer/trade_history.h"
#include "broker/blob/blob_census.h"
#include "broker/blob/blob_recover.h"
#include "broker/blob/port/blobs.h"
#include "broker/blob/standing_leases.h"
#include "broker/broker_internal.h"
#include "broker/copies/copy_store.h"
#include "broker/core/committer.h"
#include "broker/core/core.h"
#include "broker/core/logtime.h"
#include "broker/fatal.h"
#include "broker/gateway/gateway.h"
#include "broker/gateway/verify.h"
#include "broker/rights.h"
#include "broker/storage/epoch.h"
#include "broker/storage/etcd/replicated.h"
#include "broker/storage/etcd/succession.h"
#include "broker/storage/snapshot/snapshots.h"
#include "protocol/route/endpoint.h"
#include "runtime/log.h"
#include "runtime/market.h"
#include "runtime/notify.h"
#include "runtime/private_folder.h"
#include "runtime/router.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    REQUEST_QUEUE = 4096,
    RELEASE_QUEUE = 16384,
    NOTE_QUEUE = 4096,
    READ_QUEUE = 256,
    SNAPSHOT_QUEUE = 4
};

/* ---------------------------------------------------------------- the dice */

static bool keep_secrets(void *context, const struct epoch_secrets *secrets)
{
    const struct broker *broker = context;
    struct problem problem;
    if (epoch_store(broker->epoch_path, secrets, &problem)) {
        return true;
    }
    log_warning("%s: the dice are still made of the old secret", problem.text);
    return false;
}

/* The disk may give the secret at the next start. A start without the secret would overwrite it. */
static bool recall_secrets(struct broker *broker, struct problem *ret_problem)
{
    struct problem problem;
    broker->epoch =
        (struct epoch){.length_ns = EPOCH_LENGTH_NS, .keep = keep_secrets, .context = broker};
    switch (epoch_load(broker->epoch_path, &broker->epoch.secrets, &problem)) {
    case EPOCH_LOADED:
        break;
    case EPOCH_SPOILT:
        log_warning("%s", problem.text);
        break;
    case EPOCH_UNREAD:
        problem_set(ret_problem, "%s", problem.text);
        return false;
    }
    struct hash32 commitment;
    epoch_start(&broker->epoch, exchange_epochs(broker->exchange, &commitment),
                exchange_log_time_ns(broker->exchange));
    return true;
}

/* ---------------------------------------------------------------- state for the threads */

static bool prepare_tables(struct broker *broker, struct problem *ret_problem)
{
    bool good = true;
    for (size_t i = 0; i < sizeof broker->directories / sizeof broker->directories[0]; i++) {
        broker->directories[i] = directory_of(broker->exchange);
        good = good && broker->directories[i] != NULL;
    }
    broker->access = blob_access_create();
    broker->outputs = outputs_open(broker->blobs_folder);
    good = good && broker->access != NULL && broker->outputs != NULL &&
           standing_leases_restore(broker->exchange, broker->access, broker->outputs);
    if (!good) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    if (!broker->has_feed && !trade_history_load(broker->database, broker->exchange, ret_problem)) {
        return false;
    }
    struct blob_store_config config = {.folder = broker->blobs_folder,
                                       .quota_bytes = broker->config.blob_quota_bytes,
                                       .size_bytes = broker->config.blob_size_bytes};
    if (!blob_store_open(&config, &broker->blob_store, ret_problem)) {
        return false;
    }
    /* The store notes its changes from here on, for the brokers that follow. */
    if (copy_store_begin(broker->blob_store, broker->store.leads.epoch) != BLOB_OK) {
        problem_set(ret_problem, "%.300s", blob_store_error(broker->blob_store));
        return false;
    }
    if (!blob_recover(broker->blob_store, broker->database, broker->exchange, ret_problem)) {
        return false;
    }
    return blob_census(broker->blob_store, broker->blobs_folder, broker->database, ret_problem);
}

static bool make_queues(struct broker *broker, struct problem *ret_problem)
{
    bool good = true;
    for (unsigned i = 0; i < broker->config.workers; i++) {
        broker->workers_in[i] = queue_create(REQUEST_QUEUE);
        good = good && broker->workers_in[i] != NULL;
    }
    broker->core_in = queue_create(REQUEST_QUEUE);
    broker->groups = queue_create(CORE_GROUPS);
    broker->to_tables = queue_create(CORE_GROUPS);
    broker->applied = queue_create(CORE_GROUPS);
    broker->returned = queue_create(CORE_GROUPS);
    broker->releases = queue_create(RELEASE_QUEUE);
    broker->budget = budget_create(broker->config.steps);
    broker->notes = queue_create(NOTE_QUEUE);
    broker->names = queue_create(NOTE_QUEUE);
    broker->reads = queue_create(READ_QUEUE);
    broker->keeps = queue_create(READ_QUEUE);
    broker->snapshot_requests = queue_create(SNAPSHOT_QUEUE);
    good = good && broker->core_in != NULL && broker->groups != NULL && broker->to_tables != NULL &&
           broker->applied != NULL && broker->returned != NULL && broker->releases != NULL &&
           broker->notes != NULL && broker->names != NULL && broker->reads != NULL &&
           broker->keeps != NULL && broker->snapshot_requests != NULL && broker->budget != NULL;
    if (!good) {
        problem_set(ret_problem, "no memory or no file descriptor is left to start");
    }
    return good;
}

/* ---------------------------------------------------------------- threads */

static void start_gateway(struct broker *broker, uint64_t index, int64_t index_log_ns)
{
    const struct genesis *genesis = &broker->store.genesis;
    struct gateway_config gateway = {
        .router = broker->control,
        .directory = broker->directories[0],
        .clock = broker->clock,
        .worker_count = broker->config.workers,
        .releases = broker->releases,
        .heartbeat_ms = broker->config.heartbeat_ms,
        .rate = broker->config.rate,
        .rate_anonymous = broker->config.rate_anonymous,
        .budget = broker->budget,
        .cluster = genesis->cluster,
        .log_key = genesis->log_key,
        .index = index,
        .index_log_ns = index_log_ns,
        .reserve = &broker->reserve,
        .quorum = broker->store.replicated != NULL ? &broker->store.quorum : NULL,
        .refusals = broker->store.refusals};
    memcpy(gateway.origin, genesis->origin, sizeof gateway.origin);
    for (unsigned i = 0; i < broker->config.workers; i++) {
        const struct verify_config verify = {.inbound = broker->workers_in[i],
                                             .core = broker->core_in,
                                             .releases = broker->releases,
                                             .budget = broker->budget,
                                             .cluster = genesis->cluster,
                                             .look = outputs_look,
                                             .context = broker->outputs};
        broker->workers[i] = verify_start(&verify);
        gateway.workers[i] = broker->workers_in[i];
    }
    if (endpoint_is_tcp(broker->market.blobs, strlen(broker->market.blobs))) {
        gateway.blob_endpoint = broker->market.blobs;
    }
    broker->gateway = gateway_start(&gateway);
}

static void start_keeper(struct broker *broker)
{
    struct keeper_config keeper = {.inbound = broker->keeps,
                                   .notes = broker->notes,
                                   .releases = broker->releases,
                                   .budget = broker->budget,
                                   .clock = broker->clock,
                                   .durable = &broker->store.durable,
                                   .applied = &broker->store.applied,
                                   .quota_bytes = broker->config.blob_quota_bytes,
                                   .retain_ms = broker->config.blob_retain_ms,
                                   .retain_most_ms = broker->config.blob_retain_most_ms,
                                   .retain_least_ms = broker->config.blob_retain_least_ms,
                                   .grace_ms = broker->config.forget_grace_ms};
    (void)snprintf(keeper.database, sizeof keeper.database, "%s", broker->database);
    (void)snprintf(keeper.blobs, sizeof keeper.blobs, "%s", broker->blobs_folder);
    broker->keeper = keeper_start(&keeper);
}

static void start_threads(struct broker *broker)
{
    const struct genesis *genesis = &broker->store.genesis;
    uint64_t index = exchange_index(broker->exchange);
    int64_t index_log_ns = exchange_log_time_ns(broker->exchange);

    if (broker->snapshots == NULL) { /* else it runs since this broker followed */
        broker->snapshots = snapshots_start(broker->database, broker->snapshots_folder,
                                            &broker->config.limits, broker->snapshot_requests);
    }

    struct reader_config reader = {.cluster = genesis->cluster,
                                   .directory = broker->directories[1],
                                   .inbound = broker->reads,
                                   .names = broker->names,
                                   .releases = broker->releases,
                                   .durable = &broker->store.durable,
                                   .applied = &broker->store.applied,
                                   .synced = &broker->store.synced,
                                   .reserve = &broker->reserve,
                                   .budget = broker->budget};
    (void)snprintf(reader.database, sizeof reader.database, "%s", broker->database);
    (void)snprintf(reader.history, sizeof reader.history, "%s", broker->history);
    (void)snprintf(reader.blobs, sizeof reader.blobs, "%s", broker->blobs_folder);
    broker->reader = reader_start(&reader);

    const struct blobs_config blobs = {.router = broker->blob_port,
                                       .file_port = broker->file_port,
                                       .quota_bytes = broker->config.blob_quota_bytes,
                                       .size_bytes = broker->config.blob_size_bytes,
                                       .store = broker->blob_store,
                                       .directory = broker->directories[2],
                                       .access = broker->access,
                                       .outputs = broker->outputs,
                                       .notes = broker->notes,
                                       .reserve = &broker->reserve,
                                       .clock = broker->clock,
                                       .refusals = broker->store.refusals,
                                       .self = broker->store.leads.epoch > 0
                                                   ? identity_transport(broker->store.transport_key)
                                                   : NULL,
                                       .copies = broker->config.cluster_copies,
                                       .database = broker->database};
    broker->blobs = blobs_start(&blobs);

    start_keeper(broker);

    const struct follower_config follower = {.store = &broker->store,
                                             .groups = broker->to_tables,
                                             .applied = broker->applied,
                                             .returned = broker->returned,
                                             .core = broker->core_in,
                                             .snapshots = broker->snapshot_requests,
                                             .reserve = &broker->reserve,
                                             .clock = broker->clock};
    broker->follower = follower_start(&follower);

    const struct committer_config committer = {.store = &broker->store,
                                               .groups = broker->groups,
                                               .follower = broker->to_tables,
                                               .applied = broker->applied,
                                               .returned = broker->returned,
                                               .core = broker->core_in,
                                               .committing = &broker->committing,
                                               .releases = broker->releases,
                                               .blobs = broker->notes,
                                               .outputs = broker->outputs,
                                               .names = broker->names,
                                               .reserve = &broker->reserve};
    broker->committer = committer_start(&committer);

    const struct core_config core = {
        .exchange = broker->exchange,
        .clock = broker->clock,
        .epoch = &broker->epoch,
        .inbound = broker->core_in,
        .groups = broker->groups,
        .returned = broker->returned,
        .committing = &broker->committing,
        .reader = broker->reads,
        .keeper = broker->keeps,
        .releases = broker->releases,
        .quorum = broker->store.replicated != NULL ? &broker->store.quorum : NULL,
        .database = broker->database,
        .snapshots = broker->snapshots_folder,
        .limits = &broker->config.limits,
        .mark_every = broker->config.snapshot_every,
        .group_bytes = broker->config.etcd.member_count > 0 ? GROUP_BYTES_ON_ETCD : GROUP_BYTES,
        .beat_ms = broker->config.etcd.member_count > 0 ? SUCCESSION_BEAT_MS : 0,
        .reserve = &broker->reserve,
        .challenge_ms = broker->config.challenge_ms,
        .heartbeat_ms = broker->config.heartbeat_ms,
        .challenges_path = broker->challenges,
        .budget = broker->budget,
        .refusals = broker->store.refusals};
    broker->core = core_start(&core);

    start_gateway(broker, index, index_log_ns);
    /* The threads own what is forgotten here. */
    memset(broker->directories, 0, sizeof broker->directories);
    broker->access = NULL;
    broker->blob_store = NULL;
}

/* Returns the mark of the journal's end. The next start from a snapshot there replays nothing,
 * whatever its rules are. */
static struct snapshot_mark mark_of_end(const struct broker *broker)
{
    const struct journal_last *last = &broker->store.last;
    return (struct snapshot_mark){.command = last->next_command - 1,
                                  .entry = last->index,
                                  .chain = last->chain,
                                  .state = exchange_state_hash(broker->exchange)};
}

/* Stops in the order in which work flows: everything inside is applied, committed and answered. */
static void stop_threads(struct broker *broker)
{
    gateway_drain(broker->gateway);
    for (unsigned i = 0; i < broker->config.workers; i++) {
        verify_stop(&broker->workers[i]);
    }
    atomic_store(&broker->store.ends, true); /* nobody is left who could wait for etcd */
    core_stop(&broker->core);
    committer_stop(&broker->committer);
    follower_stop(&broker->follower);
    replicated_resign(&broker->store, broker->wish); /* first of all: others wait */
    reader_stop(&broker->reader);
    keeper_stop(&broker->keeper);
    const struct snapshot_mark end = mark_of_end(broker);
    /* The space left on a full disk is for cancels. */
    snapshots_stop(&broker->snapshots,
                   disk_reserve_state(&broker->reserve) == DISK_RESERVE_UNUSED ? &end : NULL);
    blobs_stop(&broker->blobs);
    gateway_stop(&broker->gateway);
}

static void drain_groups(struct queue *queue)
{
    for (struct queue_link *link; (link = queue_pop(queue, 0)) != NULL;) {
        struct group *group = QUEUE_ELEMENT(link, struct group, link);
        group_destroy(&group);
    }
}

static void close_all(struct broker *broker)
{
    membership_stop(&broker->membership);
    broker_close_ports(broker);
    struct queue *requests[] = {broker->core_in, broker->reads, broker->keeps};
    struct queue *notes[] = {broker->releases, broker->notes, broker->names};
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        if (requests[i] != NULL) {
            request_drain(requests[i]);
            queue_destroy(&requests[i]);
        }
    }
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        if (notes[i] != NULL) {
            outgoing_drain(notes[i]);
            queue_destroy(&notes[i]);
        }
    }
    for (unsigned i = 0; i < broker->config.workers; i++) {
        if (broker->workers_in[i] != NULL) {
            request_drain(broker->workers_in[i]);
            queue_destroy(&broker->workers_in[i]);
        }
    }
    if (broker->returned != NULL) {
        drain_groups(broker->returned);
    }
    queue_destroy(&broker->returned);
    budget_destroy(&broker->budget);
    queue_destroy(&broker->groups);
    queue_destroy(&broker->to_tables);
    queue_destroy(&broker->applied);
    queue_destroy(&broker->snapshot_requests);
    for (size_t i = 0; i < sizeof broker->directories / sizeof broker->directories[0]; i++) {
        directory_destroy(&broker->directories[i]);
    }
    blob_access_destroy(&broker->access);
    blob_store_close(&broker->blob_store);
    outputs_close(&broker->outputs);
    exchange_destroy(&broker->exchange);
    logtime_destroy(&broker->clock);
    storage_close(&broker->store);
}

/* ---------------------------------------------------------------- the whole broker */

static bool find_folder(struct broker *broker, const char *folder, struct problem *ret_problem)
{
    struct stat status;
    if (!private_folder(folder, true, ret_problem)) {
        return false;
    }
    if (realpath(folder, broker->folder) == NULL || stat(broker->folder, &status) != 0) {
        problem_set(ret_problem, "%s: %s", folder, strerror(errno));
        return false;
    }
    broker->is_group = (status.st_mode & S_IXGRP) != 0;
    broker->group = status.st_gid;
    return folder_path(broker->folder, MARKET_FILE, broker->market_path, sizeof broker->market_path,
                       ret_problem) &&
           folder_path(broker->folder, MARKET_FILE ".old", broker->old_market_path,
                       sizeof broker->old_market_path, ret_problem) &&
           folder_path(broker->folder, MARKET_EPOCH, broker->epoch_path, sizeof broker->epoch_path,
                       ret_problem) &&
           folder_path(broker->folder, MARKET_DATABASE, broker->database, sizeof broker->database,
                       ret_problem) &&
           folder_path(broker->folder, MARKET_BLOBS, broker->blobs_folder,
                       sizeof broker->blobs_folder, ret_problem) &&
           folder_path(broker->folder, MARKET_HISTORY, broker->history, sizeof broker->history,
                       ret_problem) &&
           folder_path(broker->folder, MARKET_CHALLENGES, broker->challenges,
                       sizeof broker->challenges, ret_problem) &&
           folder_path(broker->folder, MARKET_SNAPSHOTS, broker->snapshots_folder,
                       sizeof broker->snapshots_folder, ret_problem) &&
           (access(broker->snapshots_folder, F_OK) != 0 || /* it is made once the start is good */
            private_folder(broker->snapshots_folder, false, ret_problem));
}

/* Writes the last record: all refusals until now, and that the broker stopped properly. */
static void note_stop(struct broker *broker)
{
    int64_t now_ns = logtime_now(broker->clock);
    struct act ended = {.kind = ACT_STOP, .account = EXCHANGE_NO_ACCOUNT};
    storage_note(&broker->store, &ended);
    if (storage_write_acts(&broker->store, now_ns, true) == STORAGE_FULL) {
        log_error("the disk is full: that the broker stopped is not in the audit log");
    }
}

static bool start(struct broker *broker, const struct broker_options *options, bool *ret_moved,
                  struct problem *ret_problem)
{
    bool is_new = false;
    if (!config_load(broker->folder, !options->adopt, &broker->config, ret_problem) ||
        !rights_reduce(&broker->config, broker->group, ret_problem) ||
        !membership_check_new(broker->folder, &broker->config, options->adopt, ret_problem) ||
        !broker_open_storage(broker, options->adopt, &is_new, ret_problem)) {
        return false;
    }
    (void)transfer_take(broker->folder, broker->wish); /* meant for an earlier run */
    broker->wish[0] = '\0';
    *ret_moved = rename(broker->market_path, broker->old_market_path) == 0;
    if (!make_queues(broker, ret_problem) ||
        !broker_start_exchange(broker, is_new, options->adopt, ret_problem) ||
        !prepare_tables(broker, ret_problem) ||
        (broker->context == NULL && !broker_open_ports(broker, ret_problem)) ||
        !private_folder(broker->snapshots_folder, true, ret_problem)) {
        return false;
    }
    int64_t last_ns = exchange_log_time_ns(broker->exchange);
    int64_t last_act_ns = act_log_time_ns(broker->store.acts);
    broker->clock = logtime_create(last_ns > last_act_ns ? last_ns : last_act_ns);
    if (broker->clock == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    if (!recall_secrets(broker, ret_problem)) {
        return false;
    }
    disk_reserve_open(&broker->reserve, broker->folder, broker->config.reserve_bytes);
    if (storage_write_acts(&broker->store, logtime_now(broker->clock), false) == STORAGE_FULL) {
        log_error("the disk is full: that the broker started is not in the audit log yet");
    }
    log_info("%s market %s at command %" PRIu64, is_new ? "new" : "open",
             broker->store.genesis.origin, exchange_index(broker->exchange));
    start_threads(broker);
    broker->store.made = (struct storage_made){.lock = false}; /* the files stay */
    return true;
}

/* The file of a killed broker goes until we are ready, but its disk space is kept. A start that is
 * refused gives the file its name back. */
static bool start_or_undo(struct broker *broker, const struct broker_options *options,
                          struct problem *ret_problem)
{
    bool is_moved = false;
    const bool good = find_folder(broker, options->folder, ret_problem) &&
                      start(broker, options, &is_moved, ret_problem);
    if (!good && broker->is_announced) {
        (void)unlink(broker->market_path);
    } else if (!good && is_moved) {
        (void)rename(broker->old_market_path, broker->market_path);
    }
    return good;
}

/* Ends what runs while a broker follows, and what a start that failed after that leaves. */
static void stop_following(struct broker *broker)
{
    if (broker->snapshots == NULL) {
        return;
    }
    if (broker->has_ended) {
        log_info("stopping");
        notify_stopping();
    }
    const struct snapshot_mark end = mark_of_end(broker);
    snapshots_stop(&broker->snapshots, broker->has_ended ? &end : NULL);
}

/* Runs until a signal, or until another broker shall lead. The latter sets *handed_over to the
 * epoch that ended; the former sets it to 0. */
static bool run_once(const struct broker_options *options, uint64_t *handed_over,
                     struct problem *ret_problem)
{
    struct broker *broker = calloc(1, sizeof *broker);
    if (broker == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    broker->store.lock = -1;
    broker->file_port = -1;
    broker->signals = options->signals;
    broker->handed_over_epoch = *handed_over;
    *handed_over = 0;
    bool started = start_or_undo(broker, options, ret_problem);
    if (started) {
        started = broker_serve(broker, options->signals, ret_problem);
        if (started && !broker->hands_over) {
            log_info("stopping");
        }
        if (!broker->hands_over) {
            notify_stopping();
        }
        (void)unlink(broker->market_path); /* no new client shall find us */
        stop_threads(broker);
        note_stop(broker);
        *handed_over = broker->hands_over ? broker->store.leads.epoch : 0;
    }
    const bool has_followed = broker->has_ended;
    stop_following(broker);
    close_all(broker);
    free(broker);
    return started || has_followed;
}

/* A broker that handed the lead over goes on as one that follows. */
bool broker_run(const struct broker_options *options, struct problem *ret_problem)
{
    struct broker_options next = *options;
    uint64_t handed_over = 0;
    bool good;
    do {
        good = run_once(&next, &handed_over, ret_problem);
        next.adopt = false;
    } while (good && handed_over != 0);
    return good;
}
