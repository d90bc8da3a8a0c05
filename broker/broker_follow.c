/* A broker whose journal is on etcd follows the leader here, until it leads itself.
 *
 * The main thread reads each entry, applies it, and writes it to this disk. A standby answers the
 * control port meanwhile. When the leader is silent for long, or has resigned, the broker tries to
 * take the lead. Nothing that a follower applies has an effect outside: it dispatches nothing. */
#include "broker/broker_internal.h"

#include "base/checked.h"
#include "broker/answer/trade_history.h"
#include "broker/cluster/membership.h"
#include "broker/cluster/transfer.h"
#include "broker/copies/copy_follower.h"
#include "broker/copies/copy_peers.h"
#include "broker/fatal.h"
#include "broker/standby.h"
#include "broker/storage/etcd/replicated.h"
#include "broker/storage/etcd/succession.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/market.h"
#include "runtime/notify.h"
#include "runtime/private_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    TURN_MS = 200, /* the longest wait for one entry: a signal waits so long */
    ALIVE_MS = 1000
};

/* A vigil is the state of a broker that follows. */
struct vigil {
    struct broker *broker;
    struct replicated *replicated;
    struct standby *standby;
    struct copy_follower *copies; /* NULL: `addresses` does not say where blobs are */
    char name[COPY_PEER_NAME_SIZE];
    struct succession succession;
    struct journal_leader leader;
    uint64_t next_mark; /* command */
    int64_t news_ns;    /* monotonic: the newest entry came; 0: none yet */
    int64_t alive_ns;   /* the supervisor heard of this broker */
};

/* ---------------------------------------------------------------- what a follower tells */

static void tell(struct vigil *vigil)
{
    const int64_t now_ns = clock_monotonic_ns();
    struct following_note *following = standby_following(vigil->standby);
    const struct broker *broker = vigil->broker;
    const int64_t at_end_ns = atomic_load(&broker->store.replica.at_end_ns);
    following_note_leader(following, vigil->leader.address);
    following_note_state(following, exchange_index(broker->exchange),
                         exchange_log_time_ns(broker->exchange));
    /* Etcd may answer from a member that is behind: only what came shows that a leader goes on. */
    following_note_fresh(following, at_end_ns < vigil->news_ns ? at_end_ns : vigil->news_ns);
    if (notify_alive_every_ns() > 0 && now_ns - vigil->alive_ns >= ALIVE_MS * NS_PER_MS) {
        vigil->alive_ns = now_ns;
        notify_alive();
    }
}

/* Sends the thread that copies blobs to the leader's blob port, which `addresses` has. */
static void point_at_leader(struct vigil *vigil)
{
    const struct broker_config *config = &vigil->broker->config;
    const char *endpoint = "";
    if (vigil->copies == NULL) {
        return;
    }
    for (size_t i = 0; i < config->address_count; i++) {
        if (strcmp(config->addresses[i].control, vigil->leader.address) == 0) {
            endpoint = config->addresses[i].blobs;
        }
    }
    if (endpoint[0] == '\0' && vigil->leader.address[0] != '\0') {
        log_warning("%s leads and is not in `addresses` of broker.yaml: its blobs are not copied "
                    "to this broker",
                    vigil->leader.address);
    }
    copy_follower_point(vigil->copies, endpoint);
}

static void tell_leader(struct vigil *vigil)
{
    const struct journal_leader *leader = &vigil->leader;
    point_at_leader(vigil);
    log_info("follows %s%s%s, which leads the journal on etcd under epoch %" PRIu64, leader->broker,
             leader->address[0] == '\0' ? "" : " at ", leader->address, leader->epoch);
}

/* ---------------------------------------------------------------- entries */

/* The snapshots' thread applies the same entries a second time and compares the state, so a
 * follower checks itself, too. */
static void request_snapshot(struct vigil *vigil)
{
    struct broker *broker = vigil->broker;
    const struct journal_last *last = &broker->store.last;
    if (broker->config.snapshot_every == 0 || last->next_command <= vigil->next_mark) {
        return;
    }
    vigil->next_mark = last->next_command - 1 + broker->config.snapshot_every;
    struct snapshot_request *request = calloc(1, sizeof *request);
    if (request == NULL) {
        return; /* the next mark makes the next request */
    }
    pthread_mutex_lock(standby_state(vigil->standby)); /* the hash counts as a read */
    const struct hash32 state = exchange_state_hash(broker->exchange);
    pthread_mutex_unlock(standby_state(vigil->standby));
    request->mark = (struct snapshot_mark){.command = last->next_command - 1,
                                           .entry = last->index,
                                           .chain = last->chain,
                                           .state = state};
    if (!queue_try_push(broker->snapshot_requests, &request->link)) {
        free(request);
    }
}

/* ---------------------------------------------------------------- leading */

static const char *address_of(const struct broker *broker)
{
    return broker->config.cluster_address[0] != '\0' ? broker->config.cluster_address
                                                     : broker->market.control;
}

static bool try_to_lead(struct vigil *vigil, bool *ret_leads, struct problem *ret_problem)
{
    const struct broker *broker = vigil->broker;
    const enum journal_status status =
        replicated_lead(vigil->replicated, address_of(broker), ret_problem);
    *ret_leads = status == JOURNAL_OK;
    if (status == JOURNAL_CORRUPT) {
        return false;
    }
    if (status != JOURNAL_OK) {
        log_info("does not lead yet: %s", journal_status_text(status));
        succession_refused(&vigil->succession, clock_monotonic_ns());
    }
    return true;
}

/* Returns true when this process led until it handed the lead over, and nobody has led since. */
static bool has_handed_over(const struct broker *broker, const struct journal_leader *leader)
{
    return broker->handed_over_epoch != 0 && leader->epoch == broker->handed_over_epoch;
}

/* Returns what the leader that resigned wished. A broker that has just handed the lead over lets
 * another one have it. */
static enum succession_wish wish_of(const struct vigil *vigil, const struct journal_leader *leader)
{
    const struct broker *broker = vigil->broker;
    const char *wish = replicated_wish(leader);
    char rank[TRANSFER_WISH_SIZE];
    transfer_wish_rank(broker->config.cluster_rank, rank);
    if (strcmp(wish, rank) == 0 || (wish[0] != '\0' && strcmp(wish, address_of(broker)) == 0)) {
        return SUCCESSION_ME;
    }
    return wish[0] != '\0' || has_handed_over(broker, leader) ? SUCCESSION_ANOTHER
                                                              : SUCCESSION_ANYBODY;
}

/* There is no entry at present: who leads, and for how long was it silent? */
static bool keep_quiet(struct vigil *vigil, bool *ret_leads, struct problem *ret_problem)
{
    struct journal_leader leader;
    if (!replicated_leader(vigil->replicated, &leader)) {
        return true;
    }
    const bool is_resigned = replicated_is_resigned(&leader);
    const int64_t now_ns = clock_monotonic_ns();
    const bool is_other = leader.epoch != vigil->leader.epoch;
    vigil->leader = leader;
    if (is_other && !is_resigned) {
        tell_leader(vigil);
    }
    succession_quiet(&vigil->succession, leader.epoch, is_resigned, now_ns);
    succession_wishes(&vigil->succession, wish_of(vigil, &leader));
    if (!succession_is_due(&vigil->succession, now_ns)) {
        return true;
    }
    log_info("%s: this broker tries to lead after entry %" PRIu64,
             is_resigned ? "the leader gave the lead up" : "the leader is silent",
             vigil->broker->store.last.index);
    return try_to_lead(vigil, ret_leads, ret_problem);
}

/* ---------------------------------------------------------------- the vigil */

/* Returns true when a signal ends the broker. */
static bool is_ended(const struct broker *broker)
{
    struct pollfd item = {.fd = broker->signals, .events = POLLIN};
    struct signalfd_siginfo info;
    while (poll(&item, 1, 0) > 0 &&
           read(broker->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGHUP) {
            return true;
        }
        log_info("a broker that follows reads broker.yaml at its start only");
    }
    return false;
}

/* Reads what is on etcd already, without a word to anybody. Succeeds when nothing is left. */
static bool catch_up(struct vigil *vigil, struct problem *ret_problem)
{
    enum replicated_turn turn = REPLICATED_NEWS;
    while (turn == REPLICATED_NEWS && !vigil->broker->has_ended) {
        turn = replicated_follow(vigil->replicated, 0, ret_problem);
        vigil->broker->has_ended = is_ended(vigil->broker);
    }
    if (turn == REPLICATED_DEAF) {
        problem_set(ret_problem, "etcd does not answer: start again when it does");
    }
    return turn != REPLICATED_DEAF && turn != REPLICATED_FAILED;
}

static bool take_turn(struct vigil *vigil, bool *ret_leads, struct problem *ret_problem)
{
    switch (replicated_follow(vigil->replicated, TURN_MS, ret_problem)) {
    case REPLICATED_NEWS:
        vigil->news_ns = clock_monotonic_ns();
        succession_entry(&vigil->succession, replicated_is_starting(vigil->replicated),
                         clock_monotonic_ns());
        request_snapshot(vigil);
        return true;
    case REPLICATED_QUIET:
        return keep_quiet(vigil, ret_leads, ret_problem);
    case REPLICATED_DEAF:
        return true;
    case REPLICATED_FAILED:
        break;
    }
    return false;
}

/* A broker without `addresses` follows the journal all the same. */
static bool start_copies(struct vigil *vigil, struct problem *ret_problem)
{
    const struct broker *broker = vigil->broker;
    if (broker->config.address_count == 0) {
        log_info("blobs are not copied to this broker: `addresses` in broker.yaml does not say "
                 "where the brokers' blob ports are");
        return true;
    }
    (void)snprintf(vigil->name, sizeof vigil->name, "rank %u, %.48s", broker->config.cluster_rank,
                   broker->market.control);
    const struct copy_follower_config config = {.context = broker->context,
                                                .identity = broker->store.transport_key,
                                                .folder = broker->blobs_folder,
                                                .quota_bytes = broker->config.blob_quota_bytes,
                                                .size_bytes = broker->config.blob_size_bytes,
                                                .name = vigil->name};
    vigil->copies = copy_follower_start(&config, ret_problem);
    return vigil->copies != NULL;
}

/* Members may follow the market here, too. */
static bool open_feed(struct broker *broker, struct problem *ret_problem)
{
    broker->has_feed =
        broker->has_feed || trade_history_load(broker->database, broker->exchange, ret_problem);
    return broker->has_feed;
}

static void tell_effects(void *context, const struct exchange_effects *effects)
{
    standby_applied(context, effects);
}

static bool watch(struct vigil *vigil, struct problem *ret_problem)
{
    struct broker *broker = vigil->broker;
    bool leads = false;
    bool good = true;
    if (!start_copies(vigil, ret_problem) || !open_feed(broker, ret_problem)) {
        return false;
    }
    vigil->standby = standby_start(broker);
    const struct replicated_readers readers = {
        .state = standby_state(vigil->standby), .applied = tell_effects, .context = vigil->standby};
    replicated_share(vigil->replicated, &readers);
    vigil->succession =
        succession_start(broker->config.cluster_rank, vigil->leader.epoch, clock_monotonic_ns());
    succession_entry(&vigil->succession, replicated_is_starting(vigil->replicated),
                     clock_monotonic_ns());
    vigil->next_mark = broker->store.last.next_command - 1 + broker->config.snapshot_every;
    if (!replicated_is_resigned(&vigil->leader)) {
        tell_leader(vigil);
    }
    while (good && !leads && !broker->has_ended) {
        tell(vigil);
        good = take_turn(vigil, &leads, ret_problem);
        broker->has_ended = !leads && is_ended(broker);
    }
    replicated_share(vigil->replicated, NULL);
    copy_follower_stop(&vigil->copies); /* the store is the leader's from now on */
    standby_stop(&vigil->standby);
    return good && !broker->has_ended;
}

/* A follower looks like a broker that serves, from outside: its port answers. */
static bool open_to_others(struct broker *broker, struct problem *ret_problem)
{
    if (!broker_announce(broker, ret_problem)) {
        return false;
    }
    broker->is_announced = true;
    broker->snapshots = snapshots_start(broker->database, broker->snapshots_folder,
                                        &broker->config.limits, broker->snapshot_requests);
    notify_ready();
    return true;
}

/* Nobody leads, so there is nobody to follow. Another broker may be faster all the same. */
static bool lead_at_once(struct vigil *vigil, bool *ret_leads, struct problem *ret_problem)
{
    return catch_up(vigil, ret_problem) && !vigil->broker->has_ended &&
           try_to_lead(vigil, ret_leads, ret_problem);
}

static bool follow(struct vigil *vigil, struct problem *ret_problem)
{
    bool leads = false;
    const bool is_free = replicated_leader(vigil->replicated, &vigil->leader) &&
                         replicated_is_free(vigil->replicated, &vigil->leader) &&
                         !has_handed_over(vigil->broker, &vigil->leader);
    if (is_free && !lead_at_once(vigil, &leads, ret_problem)) {
        return false;
    }
    return leads || (open_to_others(vigil->broker, ret_problem) && watch(vigil, ret_problem));
}

/* `addresses` says where others find the blob port; else they find it where it is. */
static bool enter(struct broker *broker, struct problem *ret_problem)
{
    struct membership_config config = {.config = &broker->config,
                                       .store = &broker->store,
                                       .control = address_of(broker),
                                       .blobs = broker->market.blobs};
    for (size_t i = 0; i < broker->config.address_count; i++) {
        if (strcmp(broker->config.addresses[i].control, config.control) == 0) {
            config.blobs = broker->config.addresses[i].blobs;
        }
    }
    broker->membership = membership_enter(&config, ret_problem);
    return broker->membership != NULL;
}

bool broker_follow(struct broker *broker, bool adopt, struct problem *ret_problem)
{
    struct vigil vigil = {.broker = broker};
    /* A broker that could not open its blobs shall not depose another first. */
    if (!private_folder(broker->blobs_folder, true, ret_problem) ||
        !private_folder(broker->snapshots_folder, true, ret_problem) ||
        !broker_open_ports(broker, ret_problem)) {
        return false;
    }
    vigil.replicated =
        replicated_open(&broker->store, broker->exchange, &broker->config, adopt, ret_problem);
    const bool good =
        vigil.replicated != NULL && enter(broker, ret_problem) && follow(&vigil, ret_problem);
    replicated_close(&vigil.replicated);
    if (good) {
        membership_tell(broker->membership); /* this broker leads now */
    }
    return good;
}
